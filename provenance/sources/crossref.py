"""Crossref: works by DOI and by title; all pure.

Format: api.crossref.org. Titles, subtitles and names of containers are lists, text holds JATS and
MathML markup and entities, an author may have one name only, an organisation has ``name``. arXiv's
DOIs are DataCite's and not here; proceedings without DOIs (PMLR, ICLR, NeurIPS) are not here
either, so a search often finds another work.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from provenance.match import fold, venue_series
from provenance.sources.answers import listed, mapped, read_json, year
from provenance.works import Request, Work, WorkKind

SOURCE = "Crossref"
PARSER = "crossref/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_API = "https://api.crossref.org/works"
_FIELDS = (
    "DOI,title,subtitle,author,container-title,issued,published,published-print,type,page,volume,"
    "issue,updated-by,URL"
)
_KINDS: Mapping[str, WorkKind] = {
    "proceedings-article": "proceedings",
    "journal-article": "journal",
    "posted-content": "preprint",
}


def doi_request(doi: str) -> Request:
    """Ask for the work of a DOI; the answer is 404 where Crossref does not have it."""
    return _request(f"{_API}/{quote(doi.lower(), safe='/')}")


def title_request(title: str, author: str | None = None, rows: int = 10) -> Request:
    """Ask for the works that are likest to a title, and to an author where one is known."""
    query = {"query.bibliographic": title, "rows": rows, "select": _FIELDS}
    if author:
        query["query.author"] = author
    return _request(f"{_API}?{urlencode(query)}")


def _request(url: str) -> Request:
    return Request(source=SOURCE, url=url, accept="application/json")


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return the works of an answer to either question.

    Raises:
        UnreadableAnswer: the body is not Crossref's JSON.
    """
    message = mapped(read_json(body, SOURCE, "message"))
    items = listed(message["items"]) if "items" in message else [message]
    works = [_work(item, evidence_id) for item in items if isinstance(item, Mapping)]
    return [work for work in works if work is not None]


def _work(item: Mapping[str, Any], evidence_id: str) -> Work | None:
    doi, title = str(item.get("DOI") or "").lower(), _title(item)
    if not doi or not title:
        return None
    kind = _KINDS.get(str(item.get("type")), "other")
    venue = None if kind == "preprint" else _venue(item)
    return Work(
        source=SOURCE,
        authority="crossref",
        work_key=doi,
        title=title,
        authors=tuple(name for a in listed(item.get("author")) if (name := _name(a))),
        year=_year(item),
        kind=kind,
        venue=venue,
        series=venue_series(venue) if venue else None,
        volume=_plain(item.get("volume")) or None,
        number=_plain(item.get("issue")) or None,
        pages=_plain(item.get("page")) or None,
        doi=doi,
        url=_plain(item.get("URL")) or None,
        retracted=_retracted(item, title),
        evidence_id=evidence_id,
    )


def _plain(value: object) -> str:
    """Return text in one line, without markup and entities; "" for what is no text."""
    if not isinstance(value, str | int):
        return ""
    bare = re.sub(r"</?[a-zA-Z][^<>]*>", "", str(value))
    return " ".join(html.unescape(bare).split())


def _title(item: Mapping[str, Any]) -> str:
    """Return the title with its subtitle, unless the title has it already."""
    titles = [text for t in listed(item.get("title")) if (text := _plain(t))]
    subtitles = [text for t in listed(item.get("subtitle")) if (text := _plain(t))]
    if not titles:
        return ""
    rest = subtitles[0] if subtitles and fold(subtitles[0]) not in fold(titles[0]) else ""
    return f"{titles[0].rstrip(':')}: {rest}" if rest else titles[0]


def _venue(item: Mapping[str, Any]) -> str | None:
    """Return the container's name, of a series and a volume in it the volume's."""
    names = [text for name in listed(item.get("container-title")) if (text := _plain(name))]
    return names[-1] if names else None


def _name(author: object) -> str:
    if not isinstance(author, Mapping):
        return ""
    parts = (author.get("given"), author.get("family"), author.get("suffix"))
    whole = " ".join(text for part in parts if (text := _plain(part)))
    return whole or _plain(author.get("name"))


def _year(item: Mapping[str, Any]) -> int | None:
    """Return the year of the printed issue, else of the first publication."""
    for name in ("published-print", "issued", "published"):
        parts = listed(mapped(item.get(name)).get("date-parts"))
        first = listed(parts[0]) if parts else []
        if first and (found := year(first[0])) is not None:
            return found
    return None


def _retracted(item: Mapping[str, Any], title: str) -> bool | None:
    """Return True for a work that its title or an update calls retracted, else None.

    Crossref knows of updates that publishers deposit, so that it names none proves nothing.
    """
    updates = [u.get("type") for u in listed(item.get("updated-by")) if isinstance(u, Mapping)]
    called = re.match(r"\[?retracted\b|retraction of:?", title, re.IGNORECASE)
    return True if called or "retraction" in updates or "removal" in updates else None
