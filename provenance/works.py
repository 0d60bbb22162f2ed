"""What passes between the parts that check citations: references, works, requests, findings.

A reference is a citation as somebody wrote it, a work is what one source says of what was cited.
All are frozen, and nothing here fetches or judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import Field

from records.archive import Capture
from records.models import Authority, Outcome, Record, Severity

ReferenceFormat = Literal["bibtex", "csl-json", "markdown", "plain", "bbl"]
WorkKind = Literal["proceedings", "workshop", "journal", "preprint", "other"]
Existence = Literal["found", "not found", "ambiguous", "not checkable"]
CitationVerdict = Literal["correct", "wrong", "outdated", "incomplete", "unverifiable"]


class Reference(Record):
    """One entry of a bibliography, taken apart; what the entry does not say is None.

    ``key`` is the entry's own (BibTeX key, CSL id) or ``#3`` for the third of a list without keys;
    ``line`` is where it begins, from 1. ``raw`` is the text as it stands in the file; all other
    fields are plain Unicode without TeX. ``authors`` are names as written, in either order of their
    parts; ``truncated`` says that the list is marked as cut short ("et al.", "and others").
    ``venue`` is the conference, journal or series as it is written; ``arxiv_id`` has no version.
    ``fields`` holds what else the entry says, by BibTeX's field names. ``basis`` is a place that
    the reference itself names as the ground of a statement ("arXiv comment field"). ``problems``
    says what could not be read.
    """

    key: str = Field(min_length=1)
    position: int = Field(ge=1)
    line: int = Field(default=1, ge=1)
    format: ReferenceFormat
    raw: str
    entry_type: str | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    truncated: bool = False
    year: int | None = None
    venue: str | None = None
    volume: str | None = None
    number: str | None = None
    pages: str | None = None
    doi: str | None = None
    arxiv_id: str | None = None
    arxiv_version: int | None = None
    openreview_id: str | None = None
    url: str | None = None
    basis: str | None = None
    fields: dict[str, str] = Field(default_factory=dict)
    problems: tuple[str, ...] = ()


class Work(Record):
    """A work as one source describes it; what the source does not say is None or empty.

    ``work_key`` is the source's own name for it (``conf/icml/SchlagIS21``, ``2102.11174v3``).
    ``title`` is the title that the source has now, ``former_titles`` those that it had, oldest
    first. ``authors`` are in order, as the source writes them, without homonym numbers;
    ``authors_complete`` is False where the source cuts the list. ``venue`` is the source's own
    wording, ``series`` the key of ``venues.toml`` that it denotes, both for the place of
    publication and never for a repository. ``year`` is that of the publication at ``venue``, and
    for a preprint of its first posting, ``last_year`` that of its present version. ``comment`` and
    ``journal_ref`` are what the authors typed into arXiv's fields: None where there is no such
    field, empty where it is. ``evidence_id`` names the evidence that says so.
    """

    source: str = Field(min_length=1)
    authority: Authority
    work_key: str = Field(min_length=1)
    title: str = Field(min_length=1)
    former_titles: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    authors_complete: bool = True
    year: int | None = None
    last_year: int | None = None
    kind: WorkKind | None = None
    venue: str | None = None
    series: str | None = None
    volume: str | None = None
    number: str | None = None
    pages: str | None = None
    doi: str | None = None
    arxiv_id: str | None = None
    openreview_id: str | None = None
    dblp_key: str | None = None
    url: str | None = None
    retracted: bool | None = None
    comment: str | None = None
    journal_ref: str | None = None
    evidence_id: str = Field(min_length=1)


class Request(Record):
    """What is asked of a source: an absolute URL with its query, and what form is wanted.

    ``source`` names the source for people ("DBLP"). Contact and keys are added by what sends it.
    """

    source: str = Field(min_length=1)
    url: str = Field(pattern=r"^https://")
    accept: str = "*/*"


@dataclass(frozen=True)
class Answer:
    """A response of status 200 or 404 and its body, decoded from any transfer encoding."""

    capture: Capture
    body: bytes = field(repr=False)


class Fetcher(Protocol):
    """What answers requests: the network with its archive, or the archive alone."""

    def fetch(self, request: Request) -> Answer:
        """Return the answer to a request.

        Raises:
            SourceUnavailable: the source cannot be reached, refuses, is too slow or is broken; or,
                offline, no answer to this request is archived. Never says that a work is absent.
        """


class CitationFinding(Record):
    """What was found of one field of a reference.

    ``outcome`` is ``confirmed``, ``contradicted`` (then with a severity), ``unavailable`` (nobody
    could be asked, or nobody says) or ``absent``. ``cited`` is what the reference says, ``found``
    what the source says, ``source`` who says it.
    """

    field: str
    outcome: Outcome
    severity: Severity | None = None
    cited: str | None = None
    found: str | None = None
    source: str | None = None
    reason: str
    evidence_ids: tuple[str, ...] = ()


class CitationReport(Record):
    """One reference, checked: does the work exist, and is it described rightly.

    ``existence`` answers the first question, ``verdict`` sums up both. ``works`` are the
    descriptions that were taken to be of the cited work, most authoritative first. ``asked`` names
    the sources that answered, ``silent`` those that could not be asked, with the reason.
    """

    reference: Reference
    existence: Existence
    verdict: CitationVerdict
    works: tuple[Work, ...] = ()
    findings: tuple[CitationFinding, ...] = ()
    asked: tuple[str, ...] = ()
    silent: dict[str, str] = Field(default_factory=dict)
