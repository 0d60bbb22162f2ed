"""Proceedings of Machine Learning Research: its pages and volume files; all pure.

Volume numbers are handed out on request, so a number says nothing of the conference: v130 belongs
to AISTATS 2021, v139 to ICML 2021. Only the volume's header tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from provenance.match import Venue, venue_series, volume_number
from provenance.works import Request, Work
from records.errors import UnreadableAnswer

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

SOURCE = "PMLR"
PARSER = "pmlr/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_DEEPEST = 200
_SITE = "https://proceedings.mlr.press"

_HEADER = re.compile(
    r"""^Volume\s+(?P<volume>R?\d+):\s+
        (?P<name>.+?),\s+
        (?P<dates>\d{1,2}\b[^,]*?\b(?P<year>\d{4}))\b
        (?:,\s*(?P<place>.*))?$""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class VolumeHeader:
    """The headline of a volume's page: "Volume 139: NAME, DATES, PLACE".

    ``year`` is that of the conference's dates, not of the publication.
    """

    volume: str
    conference: str
    dates: str
    year: int
    place: str | None

    @property
    def venue(self) -> Venue | None:
        """The conference series and year; None for a name that ``venues.toml`` does not list."""
        series = venue_series(self.conference)
        return Venue(series, self.year) if series else None


def parse_volume_header(text: str) -> VolumeHeader | None:
    """Parse the headline of a volume page; None where it has not the form of one."""
    match = _HEADER.match(" ".join(text.replace("\xa0", " ").split()))
    if match is None:
        return None
    return VolumeHeader(
        volume=match["volume"],
        conference=match["name"],
        dates=match["dates"],
        year=int(match["year"]),
        place=match["place"],
    )


# What to ask


def volume_request(volume: str) -> Request:
    """Ask for the page of a volume ("139", "R5"), which has its header and lists its papers."""
    return _request(f"{_SITE}/{_folder(volume)}/", "text/html")


def citeproc_request(volume: str) -> Request:
    """Ask for the file with the records of all papers of a volume."""
    return _request(f"{_SITE}/{_folder(volume)}/assets/bib/citeproc.yaml", "text/yaml, */*")


def paper_request(volume: str, pmlr_id: str) -> Request:
    """Ask for the page of one paper ("schlag21a")."""
    return _request(f"{_SITE}/{_folder(volume)}/{pmlr_id}.html", "text/html")


def _request(url: str, accept: str) -> Request:
    return Request(source=SOURCE, url=url, accept=accept)


def _folder(volume: str) -> str:
    return volume.lower() if volume.upper().startswith("R") else f"v{volume}"


# The file of a volume


def parse_citeproc(body: bytes, evidence_id: str) -> list[Work]:
    """Return the papers of a volume's ``citeproc.yaml``.

    ``year`` is that of the volume's issue, which the file dates with the conference; the venue is
    the ``container-title``. A record without a title is left out.

    Raises:
        UnreadableAnswer: the body is no YAML list of records, or none of them has a title.
    """
    import yaml

    if _is_nested(body):
        raise _unreadable("YAML that is nested deeper than any record is")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        records = yaml.load(body, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(f"no YAML ({type(error).__name__})") from error
    if not isinstance(records, list):
        raise _unreadable("no list of records")
    works = [
        _record_work(r, evidence_id) for r in records if isinstance(r, Mapping) and r.get("title")
    ]
    if not works:
        raise _unreadable("a list in which no record has a title")
    return works


def _is_nested(body: bytes) -> bool:
    """Tell whether YAML is nested so deeply that libyaml would overflow the stack and crash."""
    depth = 0
    for bracket in re.finditer(rb"[\[\]{}]", body):
        depth = depth + 1 if bracket[0] in b"[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            return True
    return re.search(rb"(?:[-?:][ \t]+){%d}" % _DEEPEST, body) is not None


def _record_work(record: Mapping[str, Any], evidence_id: str) -> Work:
    venue = _line(record.get("container-title"))
    url = _line(record.get("URL"))
    pages = _line(record.get("page")) or "-".join(
        _line(record[name]) for name in ("firstpage", "lastpage") if record.get(name)
    )
    volume = _line(record.get("volume"))
    return Work(
        source=SOURCE,
        authority="proceedings",
        work_key=f"v{volume}/{_line(record.get('id')) or _stem(url)}",
        title=_line(record["title"]),
        authors=tuple(name for a in _list(record.get("author")) if (name := _name(a))),
        year=_issued(record.get("issued")),
        kind="proceedings",
        venue=venue or None,
        series=venue_series(venue) if venue else None,
        volume=volume_number(volume) or volume or None,
        pages=pages or None,
        url=url or None,
        evidence_id=evidence_id,
    )


def _line(value: object) -> str:
    """Return a scalar as text in one line, with plain spaces; "" for anything else."""
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _name(author: object) -> str:
    if not isinstance(author, Mapping):
        return _line(author)
    parts = ("given", "prefix", "family", "suffix")
    return " ".join(word for part in parts if (word := _line(author.get(part))))


def _issued(value: object) -> int | None:
    """Return the year of CSL's ``issued``: ``{date-parts: [2021, 7, 1]}``, nested or not."""
    parts = value.get("date-parts") if isinstance(value, Mapping) else value
    while isinstance(parts, list) and parts:
        parts = parts[0]
    text = _line(parts)
    return int(text) if re.fullmatch(r"(?:19|20)\d\d", text) else None


def _stem(url: str) -> str:
    return url.rpartition("/")[2].removesuffix(".html")


# The page of a volume


@dataclass(frozen=True)
class ListedPaper:
    """A paper as the page of its volume lists it; what the page does not say is None or empty."""

    title: str
    authors: tuple[str, ...]
    pages: str | None
    url: str | None


@dataclass(frozen=True)
class VolumePage:
    """The page of a volume: its header, as it stands there and parsed, and the papers it lists."""

    header_text: str
    header: VolumeHeader | None
    papers: tuple[ListedPaper, ...]


def parse_volume_page(body: bytes) -> VolumePage:
    """Parse the page of a volume, in the markup of PMLR's theme or in today's of its fork.

    Raises:
        UnreadableAnswer: the page has no header of a volume, or no paper that can be told.
    """
    page = _soup(body)
    headers = [_words(tag) for tag in page.select("h1, h2")]
    header = next((text for text in headers if re.match(r"Volume R?\d+:", text)), None)
    if header is None:
        raise _unreadable("a page without the header of a volume ('Volume 139: ...')")
    papers = [_paper(tag, header) for tag in page.select("div.paper, .publications__item")]
    listed = tuple(paper for paper in papers if paper is not None)
    if not listed:
        raise _unreadable("a volume's page whose papers are marked up in another way")
    return VolumePage(header, parse_volume_header(header), listed)


def _paper(tag: Tag, header: str) -> ListedPaper | None:
    title = tag.select_one(".title, .publications__title, .publications__item-title")
    if title is None or not _words(title):
        return None
    authors = tag.select_one(".authors, .publications__authors, .publications__item-authors")
    names = _words(authors).rstrip(";").split(",") if authors is not None else []
    pages = re.search(r"PMLR R?\d+:\s*([\w-]+(?:[–-][\w-]+)?)", _words(tag))
    link = next((a for a in tag.select("a[href]") if str(a["href"]).endswith(".html")), None)
    volume = re.match(r"Volume (R?\d+)", header)
    base = f"{_SITE}/{_folder(volume[1])}/" if volume else _SITE
    return ListedPaper(
        title=_words(title),
        authors=tuple(name.strip() for name in names if name.strip()),
        pages=pages[1] if pages else None,
        url=urljoin(base, str(link["href"])) if link is not None else None,
    )


# The page of a paper


def parse_paper_page(body: bytes, evidence_id: str) -> list[Work]:
    """Return the paper that a page's ``citation_*`` tags describe.

    ``citation_publication_date`` is when PMLR published, not when the conference was, so ``year``
    is read from the line that gives the pages, where the page has it.

    Raises:
        UnreadableAnswer: the page has no ``citation_title``.
    """
    page = _soup(body)
    tags: dict[str, list[str]] = {}
    for tag in page.select("meta[name^=citation_]"):
        tags.setdefault(str(tag["name"]), []).append(_line(str(tag.get("content", ""))))
    first = {name: values[0] for name, values in tags.items() if values[0]}
    if "citation_title" not in first:
        raise _unreadable("a page without citation_title")
    info = page.select_one("#info")
    place = re.search(r"PMLR (R?\d+):([\w–-]+),\s*(\d{4})", _words(info) if info else "")
    venue = first.get("citation_conference_title") or first.get("citation_inbook_title")
    pages = "-".join(
        first[name] for name in ("citation_firstpage", "citation_lastpage") if name in first
    )
    link = page.select_one("link[rel=canonical][href]")
    url = str(link["href"]) if link is not None else None
    return [
        Work(
            source=SOURCE,
            authority="proceedings",
            work_key=f"v{place[1] if place else '?'}/{_stem(url or '') or 'paper'}",
            title=first["citation_title"],
            authors=tuple(name for name in tags.get("citation_author", ()) if name),
            year=int(place[3]) if place else None,
            kind="proceedings",
            venue=venue,
            series=venue_series(venue) if venue else None,
            volume=place[1] if place else None,
            pages=pages or None,
            url=url,
            evidence_id=evidence_id,
        )
    ]


def _soup(body: bytes) -> BeautifulSoup:
    from bs4 import BeautifulSoup

    return BeautifulSoup(body, "lxml")


def _words(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").replace("\xa0", " ").split()).replace(" ,", ",")


def _unreadable(what: str) -> UnreadableAnswer:
    return UnreadableAnswer(f"{SOURCE} answers with {what}")
