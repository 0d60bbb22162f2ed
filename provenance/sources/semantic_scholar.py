"""Semantic Scholar: papers by identifier and by title; all pure.

Format: api.semanticscholar.org/api-docs/graph. Names are often abbreviated and sometimes broken,
and the venue is missing in a quarter of all papers; the DBLP key among the identifiers tells most.
What it gives as the venue of a preprint is arXiv, which is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from provenance.match import fold, venue_series
from provenance.sources.answers import items_of, line, listed, mapped, year
from provenance.works import Request, Work, WorkKind

SOURCE = "Semantic Scholar"
PARSER = "semantic-scholar/1"
"""Name and version of the parser; the version goes up when it reads anything differently."""

_API = "https://api.semanticscholar.org/graph/v1/paper"
_FIELDS = "title,authors,year,venue,publicationVenue,publicationTypes,journal,externalIds,url"
_REPOSITORIES = frozenset(("arxiv", "arxiv org", "corr", "biorxiv", "openreview", "zenodo"))


def paper_request(identifier: str) -> Request:
    """Ask for a paper by ``ARXIV:2102.11174`` or ``DOI:10.1/2``; 404 where it is not there."""
    return _request(f"{_API}/{quote(identifier, safe=':/')}?{urlencode({'fields': _FIELDS})}")


def match_request(title: str) -> Request:
    """Ask for the one paper that is likest to a title; 404 where none is."""
    return _request(f"{_API}/search/match?{urlencode({'query': title, 'fields': _FIELDS})}")


def _request(url: str) -> Request:
    return Request(source=SOURCE, url=url, accept="application/json")


def parse(body: bytes, evidence_id: str) -> list[Work]:
    """Return the papers of an answer: one paper, or the ``data`` of a search.

    Raises:
        UnreadableAnswer: the body is not Semantic Scholar's JSON.
    """
    papers = items_of(body, SOURCE, "data", "paperId")
    works = [describe(paper, evidence_id) for paper in papers if isinstance(paper, Mapping)]
    return [work for work in works if work is not None]


def describe(paper: Mapping[str, Any], evidence_id: str) -> Work | None:
    """Describe one paper as the API gives it; None without key or title."""
    key, title = line(paper.get("paperId")), line(paper.get("title"))
    if not key or not title:
        return None
    ids = mapped(paper.get("externalIds"))
    dblp = line(ids.get("DBLP")) or None
    venue = _venue(paper)
    doi = line(ids.get("DOI")).lower()
    journal = mapped(paper.get("journal")) if venue else {}
    return Work(
        source=SOURCE,
        authority="semantic_scholar",
        work_key=key,
        title=title,
        authors=tuple(
            name for a in listed(paper.get("authors")) if (name := line(mapped(a).get("name")))
        ),
        year=year(paper.get("year")),
        kind=_kind(dblp, venue, paper),
        venue=venue,
        series=venue_series(venue) if venue else None,
        volume=line(journal.get("volume")) or None,
        pages=line(journal.get("pages")) or None,
        doi=None if not doi or doi.startswith("10.48550/") else doi,
        arxiv_id=_arxiv_id(ids, doi),
        dblp_key=dblp,
        url=line(paper.get("url")) or None,
        evidence_id=evidence_id,
    )


def _venue(paper: Mapping[str, Any]) -> str | None:
    """Return the venue, the fuller name first; None for a repository."""
    names = (mapped(paper.get("publicationVenue")).get("name"), paper.get("venue"))
    venue = next((text for name in names if (text := line(name))), "")
    return venue if venue and fold(venue) not in _REPOSITORIES else None


def _kind(dblp: str | None, venue: str | None, paper: Mapping[str, Any]) -> WorkKind | None:
    """Return the kind that the DBLP key tells, else the venue's type; None where neither does."""
    if venue is None:
        return "preprint" if dblp is None or dblp.startswith("journals/corr/") else None
    if re.search(r"workshop", venue, re.IGNORECASE):
        return "workshop"
    if dblp and dblp.startswith(("conf/", "journals/")) and not dblp.startswith("journals/corr/"):
        return "proceedings" if dblp.startswith("conf/") else "journal"
    label = mapped(paper.get("publicationVenue")).get("type")
    kinds: dict[object, WorkKind] = {"conference": "proceedings", "journal": "journal"}
    return kinds.get(label)


def _arxiv_id(ids: Mapping[str, Any], doi: str) -> str | None:
    match = re.fullmatch(r"10\.48550/arxiv\.(.+)", doi)
    return line(ids.get("ArXiv")) or (match[1] if match else None)
