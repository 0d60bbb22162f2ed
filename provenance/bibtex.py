"""BibTeX and BibLaTeX files, taken apart into references.

``bibtexparser`` finds the entries; values, macros and inherited fields are resolved here, so that a
damaged entry costs no other one and every reference knows its own text and line.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bibtexparser import model
from bibtexparser.entrypoint import parse_string

from provenance.identifiers import bare_arxiv_id, find_identifiers, names_only_arxiv
from provenance.match import parse_venue
from provenance.names import split_authors
from provenance.tex import plain_text
from provenance.works import Reference

MONTHS = dict(
    zip(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
        ("January", "February", "March", "April", "May", "June", "July", "August", "September",
         "October", "November", "December"),
        strict=True,
    )
)  # fmt: skip
_INHERITED = {
    "title": "booktitle",
    "booktitle": "booktitle",
    "year": "year",
    "date": "date",
    "volume": "volume",
    "publisher": "publisher",
    "series": "series",
}
_OTHERS = {"others", "et al", "et al.", "et. al.", "et alii"}
_PLACEHOLDER = re.compile(
    r"^\(.*\)$|^see\b|^(?:tbd|todo|unknown|anonymous|n/?a|none|author names?|\?+|-+|\.+)$",
    re.IGNORECASE,
)
_NOTHING: tuple[str, ...] = ()
_NO_NAME = "the author field holds no name"
_HEAD = re.compile(r"@\s*(?P<kind>(?!comment|preamble|string)\w+)\s*[{(]\s*(?P<key>[^,\s]*)", re.I)


@dataclass(frozen=True)
class _Entry:
    """An entry as the file has it, or a macro, which has no type and one field: its name."""

    raw: str
    line: int
    key: str
    kind: str
    fields: Mapping[str, str]
    problems: tuple[str, ...] = ()


def parse_bibtex(text: str) -> list[Reference]:
    """Return the entries of a file in their order; damaged ones say what is wrong with them."""
    blocks = list(_blocks(text))
    macros = _macros([block for block in blocks if not block.kind])
    entries = [block for block in blocks if block.kind]
    values = [_resolved(entry.fields, macros) for entry in entries]
    by_key = {e.key.lower(): v for e, v in zip(reversed(entries), reversed(values), strict=True)}
    references: list[Reference] = []
    seen: set[str] = set()
    for position, (entry, own) in enumerate(zip(entries, values, strict=True), start=1):
        again = f"the key {entry.key!r} is used by an earlier entry"
        twice = (again,) if entry.key.lower() in seen else ()
        seen.add(entry.key.lower())
        entry = replace(entry, problems=(*entry.problems, *twice))
        references.append(_reference(entry, _with_parent(own, by_key), position))
    return references


def _blocks(text: str) -> Iterator[_Entry]:
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)  # what it logs, problems say
    for block in parse_string(text, parse_stack=[]).blocks:
        whole, problems = block, _NOTHING
        if failed := isinstance(block, model.ParsingFailedBlock):
            whole, problems = _mended(block)
        raw, line = block.raw or "", int(block.start_line or 0) + 1
        if isinstance(whole, model.Entry):
            fields, twice = _fields(whole)
            found = (*problems, *twice)
            yield _Entry(raw, line, whole.key or "?", whole.entry_type.lower(), fields, found)
        elif isinstance(whole, model.String):
            yield _Entry(raw, line, whole.key, "", {whole.key: str(whole.value)})
        elif failed and (match := _HEAD.match(raw)):
            yield _Entry(raw, line, match["key"] or "?", match["kind"].lower(), {}, problems)


def _fields(entry: model.Entry) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the fields by name; of a field that is there twice the first, as BibTeX takes it."""
    fields: dict[str, str] = {}
    twice = []
    for field in entry.fields:
        name = (field.key.split() or [""])[-1].lower()  # a comment may stand before it
        if name in fields:
            twice.append(f"the field {name!r} is there twice")
        fields.setdefault(name, str(field.value))
    return fields, tuple(twice)


def _mended(block: model.ParsingFailedBlock) -> tuple[model.Block, tuple[str, ...]]:
    """Return the entry within a block that the parser gave up on, and what was wrong."""
    if block.ignore_error_block is not None:  # a key or field that is there twice
        return block.ignore_error_block, ()
    raw = (block.raw or "").rstrip().rstrip(",")
    missing = max(1, raw.count("{") - raw.count("}"))
    for closing in ("}" * missing, '"' + "}" * missing, "}" * (missing + 1)):
        found = parse_string(raw + closing, parse_stack=[]).entries
        if len(found) == 1 and found[0].fields:
            return found[0], ("braces or quotes are not closed; read as if they were at its end",)
    return block, ("the entry cannot be read: braces, quotes or commas are missing",)


def _macros(blocks: Sequence[_Entry]) -> dict[str, str]:
    """Return the values of macros by lower-case name; one may use those before it."""
    known = dict(MONTHS)
    for block in blocks:
        known[block.key.lower()] = _value(block.fields[block.key], known)
    return known


def _resolved(fields: Mapping[str, str], macros: Mapping[str, str]) -> dict[str, str]:
    return {name: _value(raw, macros) for name, raw in fields.items()}


def _value(raw: str, macros: Mapping[str, str]) -> str:
    """Return a field's value: parts in braces, quotes or macros, joined by ``#``; TeX stays."""
    raw = raw.strip()
    if raw.startswith("{") and raw.endswith("}") and "#" not in raw:
        return raw[1:-1]
    parts = []
    for part in _parts(raw):
        if part[:1] + part[-1:] in ("{}", '""') and len(part) > 1:
            parts.append(part[1:-1])
        else:
            parts.append(macros.get(part.lower(), part))
    return "".join(parts)


def _parts(raw: str) -> list[str]:
    """Split a value at the ``#`` that stand outside braces and quotes."""
    parts, start, depth, quoted = [], 0, 0, False
    for i, char in enumerate(raw):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
        elif char == '"' and depth == 0:
            quoted = not quoted
        elif char == "#" and depth == 0 and not quoted:
            parts.append(raw[start:i].strip())
            start = i + 1
    return [*parts, raw[start:].strip()]


def _with_parent(fields: dict[str, str], by_key: Mapping[str, dict[str, str]]) -> dict[str, str]:
    """Add what an entry inherits from the one that its ``crossref`` names; only one step."""
    parent = by_key.get(fields.get("crossref", "").strip().lower(), {})
    inherited = {_INHERITED[name]: value for name, value in parent.items() if name in _INHERITED}
    return inherited | fields


def _reference(entry: _Entry, values: dict[str, str], position: int) -> Reference:
    authors, truncated = names_of(values.get("author", ""))
    plain = {name: plain_text(value) for name, value in values.items()}
    no_name = any(_PLACEHOLDER.match(name) for name in authors)
    found = find_identifiers(" ".join(_identifying(values)))
    arxiv = (
        _eprint(plain) or (found.arxiv_id and (found.arxiv_id, found.arxiv_version)) or (None, None)
    )
    return Reference(
        key=entry.key,
        position=position,
        line=entry.line,
        format="bibtex",
        raw=entry.raw,
        entry_type=entry.kind,
        title=plain.get("title") or None,
        authors=tuple(authors),
        truncated=truncated,
        year=year_in(plain.get("year") or plain.get("date", "")),
        venue=_venue(plain),
        volume=plain.get("volume") or None,
        number=plain.get("number") or None,
        pages=plain.get("pages") or None,
        doi=find_identifiers(plain.get("doi", "")).doi or found.doi,
        arxiv_id=arxiv[0],
        arxiv_version=arxiv[1],
        openreview_id=found.openreview_id,
        url=found.url,
        basis=basis_in(plain.get("note", "")),
        fields={k: v for k, v in plain.items() if k not in _OWN},
        problems=(*entry.problems, *((_NO_NAME,) if no_name else ())),
    )


_OWN = frozenset(("title", "author", "year", "volume", "number", "pages", "doi", "url"))


def _identifying(values: Mapping[str, str]) -> Iterator[str]:
    for name in ("doi", "url", "howpublished", "note", "journal", "journaltitle", "eprint", "ee"):
        text = re.sub(r"\\url\s*|[{}]|\\(?=[_&%#~])", "", values.get(name, ""))
        yield f"arXiv:{text}" if name == "eprint" and bare_arxiv_id(text) else text


def _eprint(plain: Mapping[str, str]) -> tuple[str, int | None] | None:
    archive = plain.get("archiveprefix") or plain.get("eprinttype") or "arxiv"
    return bare_arxiv_id(plain.get("eprint", "")) if archive.lower() == "arxiv" else None


def _venue(plain: Mapping[str, str]) -> str | None:
    """Return the conference or journal that an entry names; arXiv is none."""
    for name in ("booktitle", "journal", "journaltitle", "maintitle", "eventtitle"):
        text = plain.get(name, "")
        if text and not names_only_arxiv(text):
            return text
    noted = re.sub(r"\s*\(per [^)]*\)", "", plain.get("note") or plain.get("howpublished", ""))
    return noted if parse_venue(noted) else None


def names_of(raw: str) -> tuple[list[str], bool]:
    """Return the names of a BibTeX author field in plain text, and whether it is cut short.

    Names are separated by "and"; one in braces of its own is kept whole. A list that is separated
    by commas instead is taken apart too.
    """
    names = [plain_text(part).strip(" ,;") for part in _split_and(raw)]
    names = [name for name in names if name]
    kept = [name for name in names if name.lower() not in _OTHERS]
    truncated = len(kept) < len(names)
    if len(kept) == 1 and not raw.strip().startswith("{") and kept[0].count(",") > 1:
        kept, cut = split_authors(kept[0])
        truncated = truncated or cut
    return kept, truncated


def _split_and(raw: str) -> list[str]:
    """Split at each " and " that stands outside braces."""
    if "{" not in raw:
        return re.split(r"\s+and\s+", raw, flags=re.IGNORECASE)
    parts, start, depth = [], 0, 0
    for match in re.finditer(r"[{}]|\s+and(?=\s)", raw, re.IGNORECASE):
        token = match[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
        elif depth <= 0:
            parts.append(raw[start : match.start()])
            start = match.end()
    return [*parts, raw[start:]]


def year_in(text: str) -> int | None:
    """Return the year that a field gives ("2021a", "2021-07-18", "July 2021"), or None."""
    match = re.search(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)", text)
    return int(match[1]) if match else None


def basis_in(text: str) -> str | None:
    """Return the place that a text names as the ground of what it says, or None.

    "(per the arXiv comment field)" gives "arXiv comment field".
    """
    match = re.search(
        r"\(?\b(?:per|according to|from) (?:the |its )?(arxiv[^).;]*field)", text, re.I
    )
    return match[1].strip() if match else None
