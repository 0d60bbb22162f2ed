"""Bibliographies, checked: read the references, gather what is said of each, judge.

What is gathered comes from a local index, from archived answers and from the sources, in this
order; a reference that the index settles is not searched for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from provenance.bibliography import read_bibliography
from provenance.citation_checks import duplicates, judge
from provenance.citation_text import Checked
from provenance.local_index import LocalIndex
from provenance.lookup import Dossier, Echo, gather
from provenance.progress import Meter, no_meter
from provenance.questions import SourcePlanner
from provenance.sources.arxiv import with_former_titles
from provenance.targets import Targets
from provenance.works import CitationReport, Fetcher, Reference
from records.models import ReferenceCheck


@dataclass(frozen=True)
class Library:
    """Where descriptions of works come from: who answers requests, and a local index if any.

    ``seconds`` bounds the asking; what was not asked by then counts as unavailable. ``meter`` shows
    how far it has come.
    """

    fetcher: Fetcher
    index: LocalIndex | None = None
    seconds: float = 600.0
    meter: Meter = no_meter


def check_targets(targets: Targets, library: Library, echo: Echo = lambda _: None) -> list[Checked]:
    """Check bibliographies and single identifiers in one go, so that each request is made once.

    Raises:
        BibliographyError: a file cannot be read; nothing is asked then.
    """
    named = [(str(path), read_bibliography(path)) for path in targets.files]
    if targets.identifiers:
        named.append(("identifiers", list(targets.identifiers)))
    reports = iter(check_references([r for _, part in named for r in part], library, echo))
    return [Checked(name, duplicates(list(islice(reports, len(part))))) for name, part in named]


def stored(checked: Checked) -> list[ReferenceCheck]:
    """Return what was found of a bibliography as records of the store."""
    return [row for report in checked.reports for row in _stored(checked.name, report)]


def _stored(file: str, report: CitationReport) -> Iterator[ReferenceCheck]:
    head = ReferenceCheck(
        file=file,
        entry=report.reference.key,
        title=report.reference.title,
        existence=report.existence,
        verdict=report.verdict,
    )
    yield head
    for finding in report.findings:
        yield head.model_copy(update=dict(finding))


def check_references(
    references: Sequence[Reference], library: Library, echo: Echo = lambda _: None
) -> list[CitationReport]:
    """Return a report for each reference, in their order."""
    dossiers = [Dossier(reference) for reference in references]
    if library.index is not None:
        for dossier in dossiers:
            dossier.add(library.index.candidates(dossier.reference))
    gather(
        dossiers,
        SourcePlanner(),
        library.fetcher,
        seconds=library.seconds,
        echo=echo,
        meter=library.meter,
    )
    return [_judged(dossier, indexed=library.index is not None) for dossier in dossiers]


def _judged(dossier: Dossier, *, indexed: bool) -> CitationReport:
    works = with_former_titles(dossier.works)
    asked = [*(["local index"] if indexed else ()), *dossier.asked]
    return judge(dossier.reference, works, asked, dossier.silent)
