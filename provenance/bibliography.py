"""Bibliographies of any kind, read as references: BibTeX, CSL-JSON, ``.bbl``, Markdown, plain text.

What a file is follows from its contents, and from its name where these leave it open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provenance.bibtex import basis_in, parse_bibtex, year_in
from provenance.identifiers import find_identifiers, names_only_arxiv
from provenance.reference_text import parse_bbl, parse_list
from provenance.works import Reference, ReferenceFormat
from records.errors import BibliographyError

LARGEST = 256 * 2**20
"""Bytes of a file that is read, at most."""

_SUFFIXES: Mapping[str, ReferenceFormat] = {
    ".bib": "bibtex",
    ".bbl": "bbl",
    ".json": "csl-json",
    ".md": "markdown",
    ".txt": "plain",
}
_CONTENTS: tuple[tuple[re.Pattern[str], ReferenceFormat], ...] = (
    (re.compile(r"\\bibitem\b|\\begin\{thebibliography\}"), "bbl"),
    (re.compile(r"^\s*@\s*\w+\s*[{(]", re.MULTILINE), "bibtex"),
    (re.compile(r"\A\s*[\[{]\s*(?:[{\"]|\Z)"), "csl-json"),
)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ENTRY_TYPES = {
    "paper-conference": "inproceedings",
    "article-journal": "article",
    "article": "misc",
    "chapter": "incollection",
    "book": "book",
    "thesis": "phdthesis",
    "report": "techreport",
}


def read_bibliography(path: Path) -> list[Reference]:
    """Read a file.

    Raises:
        BibliographyError: it cannot be read, is too large, is binary, or holds no reference.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise BibliographyError(
                f"{path} has {size / 2**20:.0f} MiB, more than the {LARGEST // 2**20} MiB that are "
                "read; split it"
            )
        data = path.read_bytes()
    except OSError as error:
        raise BibliographyError(
            f"the bibliography {path} cannot be read: {error.strerror or error}"
        ) from error
    try:
        text, problem = decode(data)
        references = parse_bibliography(text, _format(path.suffix.lower(), text))
    except BibliographyError as error:
        raise BibliographyError(f"{path}: {error}") from error
    if not references:
        raise BibliographyError(
            f"{path} holds no reference that could be told as one; name a .bib, .bbl, CSL-JSON, "
            ".md or .txt file with references"
        )
    if problem:
        references = [r.model_copy(update={"problems": (*r.problems, problem)}) for r in references]
    return references


def decode(data: bytes) -> tuple[str, str | None]:
    """Return a file's text, and what was wrong with its encoding.

    UTF-8, or UTF-16 where the file says so; lines that are no UTF-8 are read as Windows-1252.

    Raises:
        BibliographyError: the file is binary.
    """
    encoding = next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-16":
            raise BibliographyError("the text is damaged UTF-16; save it as UTF-8") from None
        text = "".join(map(_line_of, data.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)))
        return _require_text(text), "the file is not UTF-8 throughout; other lines read as cp1252"
    return _require_text(text), None


def _line_of(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")


def _require_text(text: str) -> str:
    controls = sum(char < " " and char not in "\t\n\r\f" for char in text)
    if controls > 2 + len(text) // 20:
        raise BibliographyError("this is a binary file and no bibliography")
    return text


def _format(suffix: str, text: str) -> ReferenceFormat:
    """Return what a file is; a name that says JSON or BibTeX is believed before the contents."""
    if suffix in (".bib", ".json", ".bbl"):
        return _SUFFIXES[suffix]
    found = next((form for pattern, form in _CONTENTS if pattern.search(text)), None)
    return found or _SUFFIXES.get(suffix, "plain")


def parse_bibliography(text: str, form: ReferenceFormat) -> list[Reference]:
    """Return the references of a text of a known kind.

    Raises:
        BibliographyError: the text is not of that kind at all.
    """
    if form == "bibtex":
        return parse_bibtex(text)
    if form == "csl-json":
        return parse_csl(text)
    return parse_bbl(text) if form == "bbl" else parse_list(text, form)


# CSL-JSON


def parse_csl(text: str) -> list[Reference]:
    """Return the items of CSL-JSON: a list of them, one alone, or a list under ``items``.

    Raises:
        BibliographyError: the text is no JSON, or none of CSL's.
    """
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BibliographyError(f"this is no JSON: {error}") from error
    if isinstance(items, Mapping):
        items = items.get("items", items.get("references", [items]))
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise BibliographyError("this is no CSL-JSON, which is a list of items")
    if items and not any("title" in item or "author" in item for item in items):
        raise BibliographyError("this is no CSL-JSON: no item has a title or an author")
    return [_csl_reference(item, n) for n, item in enumerate(items, start=1)]


def _csl_reference(item: Mapping[str, Any], position: int) -> Reference:
    text = {name: _text(value) for name, value in item.items() if isinstance(value, str | int)}
    venue = text.get("container-title") or text.get("event-title") or text.get("event") or None
    ids = find_identifiers(
        " ".join(
            text.get(n, "")
            for n in ("DOI", "URL", "number", "note", "container-title", "archive_location")
        )
    )
    names = [_csl_name(a) for a in item.get("author", []) if isinstance(a, Mapping)]
    kept = [name for name in names if name and name.lower() not in ("others", "et al", "et al.")]
    return Reference(
        key=text.get("id") or f"#{position}",
        position=position,
        format="csl-json",
        raw=json.dumps(item, ensure_ascii=False),
        entry_type=_ENTRY_TYPES.get(text.get("type", "")),
        title=text.get("title") or None,
        authors=tuple(kept),
        truncated=len(kept) < len(names),
        year=_csl_year(item.get("issued")),
        venue=None if venue is None or names_only_arxiv(venue) else venue,
        volume=text.get("volume") or None,
        number=text.get("issue") or None,
        pages=text.get("page") or None,
        doi=ids.doi,
        arxiv_id=ids.arxiv_id,
        arxiv_version=ids.arxiv_version,
        openreview_id=ids.openreview_id,
        url=text.get("URL") or ids.url,
        basis=basis_in(text.get("note", "")),
    )


def _text(value: str | int) -> str:
    bare = re.sub(r"</?(?:i|b|sub|sup|span)\b[^>]*>", "", str(value))
    return " ".join("".join(c if c.isprintable() else " " for c in bare).split())


def _csl_name(name: Mapping[str, Any]) -> str:
    if name.get("literal"):
        return _text(str(name["literal"]))
    parts = ("non-dropping-particle", "dropping-particle", "family", "suffix")
    family = " ".join(_text(str(name[part])) for part in parts if name.get(part))
    given = _text(str(name.get("given") or ""))
    return f"{family}, {given}" if family and given else family or given


def _csl_year(issued: object) -> int | None:
    if not isinstance(issued, Mapping):
        return year_in(str(issued or ""))
    parts = issued.get("date-parts")
    while isinstance(parts, list) and parts:
        parts = parts[0]
    return year_in(str(parts or issued.get("raw") or issued.get("literal") or ""))
