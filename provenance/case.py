"""What the rules look at: one paper's assertions, and the store around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from provenance.match import Venue, fold, same_title
from provenance.names import share_an_author, split_authors
from provenance.sources.arxiv import parse_versions
from provenance.sources.pmlr import VolumeHeader, parse_volume_header
from records.models import (
    Assertion,
    Check,
    Citation,
    Claim,
    Evidence,
    Grade,
    ListEntry,
    Outcome,
    Paper,
    Record,
    Severity,
    distinct,
    latest,
)
from records.status import lowest_grade


@dataclass(frozen=True)
class Store:
    """All current records, sorted by what they are. Build it with ``Store.of``."""

    papers: Mapping[str, Paper]
    evidence: Mapping[str, Evidence]
    assertions: Sequence[Assertion]
    citations: Sequence[Citation]
    claims: Sequence[Claim]
    listings: Mapping[str, Sequence[ListEntry]]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Store:
        """Sort records by type; of two with one id the later counts, of equal ones one."""
        records = list(records)
        listings: dict[str, list[ListEntry]] = defaultdict(list)
        for entry in distinct(records, ListEntry):
            listings[entry.evidence_id].append(entry)
        return cls(
            papers={r.paper_id: r for r in records if isinstance(r, Paper)},
            evidence={r.evidence_id: r for r in records if isinstance(r, Evidence)},
            assertions=latest(records, Assertion, "assertion_id"),
            citations=distinct(records, Citation),
            claims=latest(records, Claim, "claim_id"),
            listings=listings,
        )

    @cached_property
    def volume_headers(self) -> dict[str, tuple[Evidence, VolumeHeader]]:
        """The volume headers that were read, by volume number."""
        parsed = (
            (e, parse_volume_header(str(e.facts.get("header", ""))))
            for e in self.of_kind("pmlr-volume-header")
        )
        return {header.volume: (e, header) for e, header in parsed if header is not None}

    def grade(self, evidence_id: str) -> Grade:
        """Return the grade of a piece of evidence; what is not in the store has the lowest."""
        evidence = self.evidence.get(evidence_id)
        return evidence.grade if evidence else "transcribed"

    @cached_property
    def _by_kind(self) -> dict[str, list[Evidence]]:
        """The evidence by kind, without what a later or a better reading has superseded."""
        newest: dict[tuple[str, str], Evidence] = {}
        for evidence in self.evidence.values():
            subject = subject_of(evidence)
            if subject is not None and evidence.grade == "captured":
                known = newest.get((evidence.kind, subject))
                if known is None or (known.read_on or date.min) <= (evidence.read_on or date.min):
                    newest[evidence.kind, subject] = evidence
        kinds: dict[str, list[Evidence]] = defaultdict(list)
        for evidence in self.evidence.values():
            best = newest.get((evidence.kind, subject_of(evidence) or ""))
            if best is None or best is evidence:
                kinds[evidence.kind].append(evidence)
        return kinds

    def of_kind(self, kind: str) -> list[Evidence]:
        """Return the evidence whose facts have this format.

        Where the bytes of a source have been captured, the newest capture stands for all readings
        of the same thing; the others stay on record.
        """
        return self._by_kind.get(kind, [])


def subject_of(evidence: Evidence) -> str | None:
    """Return what a piece of evidence is about, the same for all readings of one thing.

    None for kinds of which captures are not made.
    """
    facts = evidence.facts
    if evidence.kind in ("arxiv-entry", "arxiv-versions", "reference-list", "paper-text"):
        return str(facts.get("arxiv_id"))
    if evidence.kind == "pmlr-volume-header":
        header = parse_volume_header(str(facts.get("header", "")))
        return header.volume if header else None
    if evidence.kind == "pmlr-entry":
        return f"{facts.get('volume')}/{fold(str(facts.get('title')))}"
    return str(facts.get("venue")) if evidence.kind == "accepted-list" else None


@dataclass(frozen=True)
class Finding:
    """What a rule yields; ``verify`` adds the rule, the paper and the grade of the evidence."""

    field: str
    value: str | None
    outcome: Outcome
    reason: str
    evidence: Sequence[str] = ()
    severity: Severity | None = None
    found: str = ""


@dataclass(frozen=True)
class ProceedingsEntry:
    """An entry in a proceedings volume, and the venue that the volume's header names.

    ``same_authors`` tells whether it shares an author with the paper; None where that is open.
    """

    evidence: Evidence
    volume: str
    authors: Sequence[str]
    same_authors: bool | None
    header_evidence: Evidence | None
    venue: Venue | None
    header: str


@dataclass(frozen=True)
class Case:
    """One paper as the rules see it."""

    paper_id: str
    store: Store

    @cached_property
    def assertions(self) -> list[Assertion]:
        """Everything asserted about this paper."""
        return [a for a in self.store.assertions if a.paper_id == self.paper_id]

    def values(self, field: str) -> list[str]:
        """Return the distinct values asserted for a field, in order."""
        return list(dict.fromkeys(a.value for a in self.assertions if a.field == field))

    @cached_property
    def arxiv_id(self) -> str | None:
        """The paper's arXiv identifier, as its record has it."""
        paper = self.store.papers.get(self.paper_id)
        return paper.arxiv_id if paper else None

    @cached_property
    def titles(self) -> list[str]:
        """The paper's titles: that of its record, and those that arXiv has had under its id.

        What is only asserted is not among them, since it is what the rules are to judge.
        """
        had = [v.title for e in self.about("arxiv-versions") for v in parse_versions(e.facts)]
        return list(dict.fromkeys(t for t in [self.record_title, *had] if t is not None))

    @cached_property
    def record_title(self) -> str | None:
        """The title that the paper's record has."""
        paper = self.store.papers.get(self.paper_id)
        return paper.title if paper else None

    def is_title(self, title: str) -> bool:
        """Tell whether this is one of the paper's titles."""
        return any(same_title(title, own) for own in self.titles)

    def by_its_authors(self, listed: Sequence[str]) -> bool | None:
        """Tell whether an author list shares one with those asserted; None if either is empty."""
        asserted = [name for value in self.values("authors") for name in split_authors(value)[0]]
        return share_an_author(asserted, listed) if asserted and listed else None

    def about(self, kind: str) -> list[Evidence]:
        """Return the evidence of a kind whose facts carry this paper's arXiv identifier."""
        return [
            e
            for e in self.store.of_kind(kind)
            if self.arxiv_id and e.facts.get("arxiv_id") == self.arxiv_id
        ]

    def sources_of(self, field: str, value: str) -> list[str]:
        """Return the ids of the evidence that asserts this value."""
        return [a.evidence_id for a in self.assertions if (a.field, a.value) == (field, value)]

    @cached_property
    def namesakes(self) -> list[ProceedingsEntry]:
        """The proceedings entries that carry one of the paper's titles, whoever wrote them."""
        entries = self.store.of_kind("pmlr-entry")
        return [self._entry(e) for e in entries if self.is_title(str(e.facts.get("title", "")))]

    @cached_property
    def proceedings(self) -> list[ProceedingsEntry]:
        """The proceedings entries of the paper: its title, and no list of other authors."""
        return [entry for entry in self.namesakes if entry.same_authors is not False]

    def _entry(self, evidence: Evidence) -> ProceedingsEntry:
        volume = str(evidence.facts.get("volume", ""))
        header_evidence, header = self.store.volume_headers.get(volume, (None, None))
        authors = evidence.facts.get("authors", [])
        listed = split_authors(authors)[0] if isinstance(authors, str) else list(map(str, authors))
        return ProceedingsEntry(
            evidence=evidence,
            volume=volume,
            authors=listed,
            same_authors=self.by_its_authors(listed),
            header_evidence=header_evidence,
            venue=header.venue if header else None,
            header=str(header_evidence.facts["header"]) if header_evidence else "",
        )

    def check(self, rule: str, version: int, finding: Finding) -> Check:
        """Return the finding as a record, graded by the weakest evidence that it rests on."""
        ids = tuple(dict.fromkeys(finding.evidence))
        return Check(
            rule=rule,
            rule_version=version,
            paper_id=self.paper_id,
            field=finding.field,
            value=finding.value,
            outcome=finding.outcome,
            severity=finding.severity,
            found=finding.found,
            reason=finding.reason,
            evidence_ids=ids,
            grade=lowest_grade(self.store.grade(i) for i in ids),
        )
