"""A small world of papers, and fakes of the sources that describe it as the real ones do.

Each module here stands in for one source: ``routes(works)`` returns the routes of that source for
``tests.provenance.loopback.serve``, answering from the works that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class WorldWork:
    """A paper as it truly is; each fake source tells what the real source would know of it.

    ``series`` is a key of ``venues.toml`` and ``venue`` the conference's or journal's full name
    without year; both None for a paper that is only a preprint. ``titles`` are arXiv's, one a
    version, the last one being the present one. ``year`` is that of the publication, or of the
    first posting for a preprint, ``posted`` the day of version 1.
    """

    title: str
    authors: tuple[str, ...]
    year: int
    venue: str | None = None
    series: str | None = None
    volume: str | None = None  # of PMLR or of the journal
    number: str | None = None
    pages: str | None = None
    doi: str | None = None
    dblp_key: str | None = None
    arxiv_id: str | None = None
    titles: tuple[str, ...] = ()
    posted: str = "2021-02-22"
    comment: str | None = None
    journal_ref: str | None = None
    arxiv_doi: str | None = None
    openreview_id: str | None = None
    pmlr_id: str | None = None  # schlag21a
    pmlr_header: str | None = None  # "International Conference on Machine Learning, 18-24 July ..."
    workshop: bool = False
    retracted: bool = False
    extra: dict[str, str] = field(default_factory=dict)
