"""OpenAlex: works by DOI and by title; all pure.

Format: docs.openalex.org/api-entities/works. A work merges what several places say; the primary one
is often a repository although the work was published, so it never decides the venue. Only a place
that is a conference or a journal does, and only if the work has one such place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from provenance.match import venue_series
from provenance.sources.answers import items_of, line, listed, mapped, year
from provenance.works import Request, Work, WorkKind

SOURCE = "OpenAlex"
PARSER = "openalex/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

MOST_AUTHORS = 100
"""In a list of works, each list of authors is cut after so many; a work by itself has them all."""

_API = "https://api.openalex.org/works"
_FIELDS = "id,doi,title,publication_year,type,ids,authorships,locations,biblio,is_retracted"
_ARXIV = re.compile(
    r"arxiv\.org/(?:abs|pdf)/(?P<id>\d{4}\.\d{4,5})|10\.48550/arxiv\.(?P<doi>\d{4}\.\d{4,5})", re.I
)
_KINDS: Mapping[str, WorkKind] = {"conference": "proceedings", "journal": "journal"}


def doi_request(doi: str) -> Request:
    """Ask for the work of a DOI, arXiv's (10.48550/arXiv.2102.11174) among them."""
    return _request(f"{_API}/doi:{quote(doi.lower(), safe='/')}?{urlencode({'select': _FIELDS})}")


def title_request(title: str, most: int = 10) -> Request:
    """Ask for the works whose title has these words."""
    words = " ".join(re.findall(r"\w+", title))
    fields = {"filter": f"title.search:{words}", "per-page": most, "select": _FIELDS}
    return _request(f"{_API}?{urlencode(fields)}")


def _request(url: str) -> Request:
    return Request(source=SOURCE, url=url, accept="application/json")


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return the works of an answer: one work, or a list of results.

    Raises:
        UnreadableAnswer: the body is not OpenAlex's JSON.
    """
    items = items_of(body, SOURCE, "results", "id")
    works = [describe(item, evidence_id) for item in items if isinstance(item, Mapping)]
    return [work for work in works if work is not None]


def describe(item: Mapping[str, Any], evidence_id: str) -> Work | None:
    """Describe one work, of the API or of the snapshot; None without key or title."""
    key, title = line(item.get("id")), line(item.get("title") or item.get("display_name"))
    if not key or not title:
        return None
    places = [place for place in listed(item.get("locations")) if isinstance(place, Mapping)]
    venue, kind = _published_in(places)
    biblio = mapped(item.get("biblio")) if venue else {}
    retracted = item.get("is_retracted")
    doi = line(item.get("doi")).lower().removeprefix("https://doi.org/")
    return Work(
        source=SOURCE,
        authority="openalex",
        work_key=key.rpartition("/")[2],
        title=title,
        authors=_authors(item),
        authors_complete=len(listed(item.get("authorships"))) != MOST_AUTHORS,
        year=year(item.get("publication_year")),
        kind=kind,
        venue=venue,
        series=venue_series(venue) if venue else None,
        volume=line(biblio.get("volume")) or None,
        number=line(biblio.get("issue")) or None,
        pages=_pages(biblio),
        doi=None if not doi or doi.startswith("10.48550/") else doi,
        arxiv_id=_arxiv_id(places, doi),
        url=_owner(places) or key,
        retracted=retracted if isinstance(retracted, bool) else None,
        evidence_id=evidence_id,
    )


def _authors(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names as they stand on the work.

    The profile's name (``display_name``) is another spelling in a third of all cases, and now and
    then another person.
    """
    names = []
    for each in listed(item.get("authorships")):
        if isinstance(each, Mapping):
            author = each.get("author")
            profile = author.get("display_name") if isinstance(author, Mapping) else None
            names.append(line(each.get("raw_author_name")) or line(profile))
    return tuple(name for name in names if name)


def _published_in(places: Sequence[Mapping[str, Any]]) -> tuple[str | None, WorkKind | None]:
    """Return the one conference or journal among the places, or None where there are more."""
    found: dict[str, WorkKind] = {}
    for place in places:
        source = place.get("source")
        if isinstance(source, Mapping) and source.get("type") in _KINDS:
            name = line(source.get("display_name"))
            if name:
                found[name] = _KINDS[str(source["type"])]
    if len(found) == 1:
        return next(iter(found.items()))
    return None, None if found or not places or not all(map(_is_arxiv, places)) else "preprint"


def _is_arxiv(place: Mapping[str, Any]) -> bool:
    return bool(_ARXIV.search(line(place.get("landing_page_url"))))


def _arxiv_id(places: Sequence[Mapping[str, Any]], doi: str) -> str | None:
    text = " ".join([doi, *(line(place.get("landing_page_url")) for place in places)])
    ids = {match["id"] or match["doi"] for match in _ARXIV.finditer(text)}
    return ids.pop() if len(ids) == 1 else None


def _owner(places: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the link to the page of who published the proceedings, if one is there."""
    hosts = ("proceedings.mlr.press", "openreview.net", "proceedings.neurips.cc", "papers.nips.cc")
    links = [line(place.get("landing_page_url")) for place in places]
    return next((link for link in links if any(host in link for host in hosts)), None)


def _pages(biblio: Mapping[str, Any]) -> str | None:
    ends = [line(biblio.get("first_page")), line(biblio.get("last_page"))]
    return "-".join(dict.fromkeys(end for end in ends if end)) or None
