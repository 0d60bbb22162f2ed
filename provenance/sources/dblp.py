"""DBLP: hits of its publication search; all pure.

Format: dblp.org/faq/How+to+use+the+dblp+search+API.html. Authors come as one object where there is
one, with a number behind the name of namesakes; titles end with a full stop; text holds HTML
entities. Records of CoRR are arXiv's entries and no publication.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from provenance.match import venue_series
from provenance.sources.answers import listed, mapped, read_json
from provenance.works import Request, Work, WorkKind

SOURCE = "DBLP"
PARSER = "dblp/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_CORR = re.compile(r"^journals/corr/abs-(?P<id>\d{4}-\d{4,5})$")
_CORR_VOLUME = re.compile(r"^abs/(?P<id>.+)$")
_ARXIV_LINK = re.compile(
    r"arxiv\.org/abs/(?P<id>\d{4}\.\d{4,5})|10\.48550/arxiv\.(?P<doi>\d{4}\.\d{4,5})", re.I
)
_NOTE_LINK = re.compile(r"openreview\.net/forum\?id=(?P<id>[\w-]+)")


def title_request(title: str, most: int = 30) -> Request:
    """Ask for the records that have all words of a title."""
    words = " ".join(re.findall(r"\w+", title))
    query = urlencode({"q": words, "format": "json", "h": most})
    return Request(
        source=SOURCE, url=f"https://dblp.org/search/publ/api?{query}", accept="application/json"
    )


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return a description of each hit.

    Raises:
        UnreadableAnswer: the body is not the JSON of a search.
    """
    found = listed(mapped(read_json(body, SOURCE, "result", "hits")).get("hit"))
    infos = [hit.get("info") for hit in found if isinstance(hit, Mapping)]
    works = [describe(info, evidence_id) for info in infos if isinstance(info, Mapping)]
    return [work for work in works if work is not None]


def describe(info: Mapping[str, Any], evidence_id: str) -> Work | None:
    """Describe a record's fields, by the names of the search; None without key or title."""
    key, title = _text(info, "key"), _title(_text(info, "title"))
    if not key or not title:
        return None
    venue, volume = _text(info, "venue"), _text(info, "volume")
    links = " ".join([_text(info, "ee"), _text(info, "doi")])
    note = _NOTE_LINK.search(links)
    kind = _kind(key, _text(info, "type"), venue)
    preprint = kind == "preprint"
    year = _text(info, "year")
    doi = _text(info, "doi").lower()
    return Work(
        source=SOURCE,
        authority="dblp",
        work_key=key,
        title=title,
        authors=_authors(info.get("authors")),
        year=int(year) if re.fullmatch(r"\d{4}", year) else None,
        kind=kind,
        venue=None if preprint else venue or None,
        series=None if preprint else _series(venue),
        volume=None if preprint else volume or None,
        number=_text(info, "number") or None,
        pages=_text(info, "pages") or None,
        doi=None if preprint else doi or None,
        arxiv_id=_arxiv_id(key, volume, links),
        openreview_id=note["id"] if note else None,
        dblp_key=key,
        url=_text(info, "ee") or _text(info, "url") or None,
        evidence_id=evidence_id,
    )


def _text(info: Mapping[str, Any], name: str) -> str:
    """Return a field in one line without entities; of several values the first."""
    value = info.get(name, "")
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, Mapping):
        value = value.get("text", "")
    return " ".join(html.unescape(str(value)).split())


def _title(text: str) -> str:
    return text.removesuffix(".") if not text.endswith("..") else text


def _authors(value: object) -> tuple[str, ...]:
    authors = value.get("author", []) if isinstance(value, Mapping) else []
    names = [
        _text({"name": a}, "name") for a in (authors if isinstance(authors, list) else [authors])
    ]
    return tuple(re.sub(r"\s+\d{4}$", "", name) for name in names if name)


def _kind(key: str, label: str, venue: str) -> WorkKind:
    """Return the kind that a record's key, type and venue tell."""
    if key.startswith("journals/corr/"):
        return "preprint"
    if label == "Informal and Other Publications":
        return "other"
    if key.startswith("conf/"):
        return "workshop" if re.search(r"@|workshop", venue, re.IGNORECASE) else "proceedings"
    return "journal" if key.startswith("journals/") else "other"


def _series(venue: str) -> str | None:
    """Return the series that a venue's whole name denotes: "ICML", or a part: "ECCV (12)".

    The record's stream does not tell, since workshops are in the streams of their conferences.
    """
    return venue_series(re.sub(r"\s*\(\d+\)$", "", venue))


def _arxiv_id(key: str, volume: str, links: str) -> str | None:
    if match := _CORR.match(key):
        return match["id"].replace("-", ".")
    if key.startswith("journals/corr/") and (match := _CORR_VOLUME.match(volume)):
        return match["id"]
    match = _ARXIV_LINK.search(links)
    return (match["id"] or match["doi"]) if match else None
