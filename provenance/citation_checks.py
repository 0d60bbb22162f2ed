"""A reference held against what sources say of the cited work, field by field; all pure.

Two questions stay apart: does the work exist, and is it described rightly. What no source has is
"not found", which is a suspicion and no proof, so it is never wrong by itself; a venue that nobody
confirms or denies leaves the citation unverifiable, though the work is found. Where sources differ,
a citation that agrees with the proceedings, DBLP, the publisher or arXiv is not called wrong.

Severity: wrong is what the sources contradict; outdated what was right and has been superseded (a
preprint since published, a former title, a work since retracted); incomplete what is left out;
style what no reader could be misled by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from provenance.author_lists import AuthorFault, compare_author_lists
from provenance.citation_fields import (
    PUBLISHED,
    TRUSTED,
    finding,
    of_pages,
    of_venue,
    of_volume,
    of_year,
)
from provenance.identity import Cluster, Identified, identify
from provenance.match import fold, same_title, series_mentioned
from provenance.works import (
    CitationFinding,
    CitationReport,
    CitationVerdict,
    Existence,
    Reference,
    Work,
)
from records.models import Severity

VERSION = 1
"""Goes up when the judgement of any reference may change."""

MOST_AUTHORS = 300
"""Authors that are compared; a longer list counts as cut short."""

_STRUCTURED = ("bibtex", "csl-json", "bbl")
_GRAVITY: Mapping[Severity | None, int] = {
    "wrong": 0, "outdated": 1, "incomplete": 2, "style": 3, None: 4
}  # fmt: skip


def judge(
    reference: Reference,
    works: Sequence[Work],
    asked: Sequence[str],
    silent: Mapping[str, str],
) -> CitationReport:
    """Return what is right and what is wrong with a reference.

    Args:
        reference: the citation.
        works: what sources say of whatever was found for it, other works among them.
        asked: the sources that answered.
        silent: the sources that could not be asked, with the reason.
    """
    read = _bounded(reference)
    who = identify(read, works)
    existence = _existence(read, who, asked)
    findings = [*_without_sources(read), *_of_identifiers(read, who, asked)]
    if who.cited is not None:
        findings += _of_work(read, who)
    else:
        findings += _unknown(who, existence, asked, silent)
    return CitationReport(
        reference=reference,
        existence=existence,
        verdict=_verdict(existence, findings),
        works=who.cited.works if who.cited else (),
        findings=tuple(findings),
        asked=tuple(asked),
        silent=dict(silent),
    )


def _bounded(reference: Reference) -> Reference:
    """Return the reference as it is compared: no field longer than any real one, blanks as one."""
    texts = {
        name: _clipped(value, 1000)
        for name in ("title", "venue", "volume", "pages", "url", "basis")
        if (value := getattr(reference, name)) is not None
    }
    names = tuple(_clipped(name, 200) for name in reference.authors[:MOST_AUTHORS])
    cut = reference.truncated or len(names) < len(reference.authors)
    return reference.model_copy(update={**texts, "authors": names, "truncated": cut})


def _clipped(text: str, length: int) -> str:
    return " ".join(text[: 4 * length].split())[:length]


def _existence(reference: Reference, who: Identified, asked: Sequence[str]) -> Existence:
    if who.cited is not None:
        return "found"
    if who.rivals:
        return "ambiguous"
    nothing = reference.title is None and not reference.arxiv_id and not reference.doi
    return "not checkable" if nothing or not asked else "not found"


def _verdict(existence: Existence, findings: Sequence[CitationFinding]) -> CitationVerdict:
    faults = [
        f.severity for f in findings if f.outcome in ("contradicted", "absent") and f.severity
    ]
    worst = min(faults, key=lambda severity: _GRAVITY[severity], default=None)
    if worst is not None and worst != "style":
        return worst
    open_points = any(f.outcome == "unavailable" for f in findings)
    return "correct" if existence == "found" and not open_points else "unverifiable"


# What a reference shows by itself


def _without_sources(reference: Reference) -> Iterator[CitationFinding]:
    own = re.findall(r"(?<!\d)((?:19|20)\d\d)(?!\d)", reference.venue or "")
    years = {int(year) for year in own}
    if reference.year and len(years) == 1 and reference.year not in years:
        reason = f"the reference gives {reference.year} and, as the venue's year, {years.pop()}"
        yield finding("year", "wrong", reason, reference.year, found=reference.venue)
    if any("no name" in problem for problem in reference.problems):
        reason = "the author field holds a placeholder"
        yield finding("authors", "incomplete", reason, "; ".join(reference.authors))
    elif reference.format in _STRUCTURED and reference.title and not reference.authors:
        yield finding("authors", "incomplete", "no author is given")
    if reference.format in _STRUCTURED and reference.title and reference.year is None:
        yield finding("year", "incomplete", "no year is given")


def _of_identifiers(
    reference: Reference, who: Identified, asked: Sequence[str]
) -> Iterator[CitationFinding]:
    """Hold each identifier against the work that it names."""
    for field, other in who.strangers:
        work, cited = other.works[0], getattr(reference, field)
        reason = f"{_names(field)} {cited} is that of another work: {work.title}"
        yield finding(field, "wrong", reason, cited, work, _identifier(field, who.cited))
    told = {field for field, _ in who.strangers}
    if who.cited is None:
        return
    for field in ("arxiv_id", "doi", "openreview_id"):
        cited = getattr(reference, field)
        if not cited or field in told:
            continue
        known = [w for w in who.cited.works if getattr(w, field)]
        same = next((w for w in known if getattr(w, field).lower() == cited.lower()), None)
        if same is not None:
            yield finding(field, None, f"{same.source} has it", cited, same, cited)
        elif known and field == "arxiv_id":
            reason = f"the work's {_names(field)} is {known[0].arxiv_id}"
            yield finding(field, "wrong", reason, cited, known[0], known[0].arxiv_id)
        elif field == "doi" and "Crossref" in asked:
            yield finding(field, "style", "Crossref does not have this DOI", cited)


def _names(field: str) -> str:
    names = {"arxiv_id": "arXiv identifier", "doi": "DOI", "openreview_id": "OpenReview identifier"}
    return names.get(field, "address")


def _identifier(field: str, cited: Cluster | None) -> str | None:
    values = [getattr(work, field) for work in cited.works if getattr(work, field)] if cited else []
    return values[0] if values else None


def _unknown(
    who: Identified, existence: Existence, asked: Sequence[str], silent: Mapping[str, str]
) -> Iterator[CitationFinding]:
    if existence == "ambiguous":
        works = "; ".join(_described(rival.works[0]) for rival in who.rivals[:4])
        reason = f"several works have this title, and nothing decides between them: {works}"
    elif existence == "not found":
        reason = f"not found in {len(asked)} sources ({', '.join(asked)}), which is no proof"
    elif silent:
        reason = "no source could be asked: " + "; ".join(f"{s}: {r}" for s, r in silent.items())
    else:
        reason = "nothing in it could be looked up"
    yield CitationFinding(field="existence", outcome="unavailable", reason=reason)


def _described(work: Work) -> str:
    place = work.venue or (f"arXiv:{work.arxiv_id}" if work.arxiv_id else work.source)
    first = work.authors[0] if work.authors else "authors unknown"
    return f"{first}, {place}, {work.year or 'year unknown'}"


# The work that is cited


def _of_work(reference: Reference, who: Identified) -> Iterator[CitationFinding]:
    assert who.cited is not None
    works = who.cited.works
    yield from _title(reference, who)
    yield from _authors(reference, works)
    published = [w for w in works if w.kind in PUBLISHED and (w.venue or w.series)]
    yield from of_venue(reference, works, published)
    yield from of_year(reference, works, published)
    if reference.venue is not None:
        yield from of_pages(reference, published)
        yield from of_volume(reference, published)
    yield from _basis(reference, works)
    retracted = next((work for work in works if work.retracted), None)
    if retracted is not None:
        reason = f"{retracted.source} marks the work as retracted"
        yield finding("retraction", "outdated", reason, None, retracted, "retracted")


def _title(reference: Reference, who: Identified) -> Iterator[CitationFinding]:
    assert who.cited is not None
    if reference.title is None:
        return
    work, cited = who.cited.works[0], reference.title
    if who.title == "same":
        work = next((w for w in who.cited.works if same_title(w.title, cited)), work)
        yield finding("title", None, f"{work.source} has it", cited, work, work.title)
        return
    as_published = reference.venue is not None or "proceedings" in (reference.url or "")
    heard = any(w.arxiv_id == reference.arxiv_id for w in who.cited.works if w.authority == "arxiv")
    if reference.arxiv_id and not as_published and not heard and who.title == "similar":
        reason = "published under another title; arXiv, which may have had this one, was not heard"
        yield CitationFinding(
            field="title", outcome="unavailable", cited=cited, found=work.title, reason=reason,
            source=work.source, evidence_ids=(work.evidence_id,),
        )  # fmt: skip
        return
    whole: dict[str, tuple[Severity, str]] = {
        "former": ("wrong", "the published work has another title; this is a former one of arXiv's")
        if as_published
        else ("outdated", "arXiv had the work under this title formerly"),
        "typo": ("style", "the title differs by a slip"),
        "short": ("style", "the subtitle is left out"),
        "mention": ("style", "these are words of the title")
        if _is_mention(reference)
        else ("wrong", "words of the title are left out"),
        "longer": ("wrong", "the title has no such words at its end"),
    }
    severity, reason = whole.get(who.title, ("wrong", "the work has another title"))
    yield finding("title", severity, reason, cited, work, work.title)


def _is_mention(reference: Reference) -> bool:
    """Tell whether a reference only mentions a work, as running text does."""
    return reference.format not in _STRUCTURED and (reference.truncated or not reference.authors)


def _authors(reference: Reference, works: Sequence[Work]) -> Iterator[CitationFinding]:
    lists = [w for w in works if w.authors and w.authors_complete]
    if not reference.authors or not lists or any("no name" in p for p in reference.problems):
        return
    cited = "; ".join(reference.authors) + ("; et al." if reference.truncated else "")
    faults = [(work, _author_fault(reference, work.authors[:MOST_AUTHORS])) for work in lists]
    allowed = [
        (work, fault)
        for work, fault in faults
        if (fault is None or fault.is_style) and (work is lists[0] or work.authority in TRUSTED)
    ]
    work, fault = allowed[0] if allowed else faults[0]
    found = "; ".join(work.authors)
    if fault is None:
        yield finding("authors", None, f"{work.source} has them", cited, work, found)
    else:
        severity: Severity = "style" if fault.is_style else "wrong"
        yield finding("authors", severity, fault.reason, cited, work, found)


def _author_fault(reference: Reference, listed: Sequence[str]) -> AuthorFault | None:
    """Return what is wrong with the cited authors in the best reading of their list.

    In running text "Ha, David, Dai, Andrew" can be four families or two people.
    """
    cited = reference.authors
    fault = compare_author_lists(cited, reference.truncated, listed)
    if fault is None or reference.format in _STRUCTURED or len(cited) % 2:
        return fault
    if any(" " in family for family in cited[::2]):
        return fault
    pairs = [f"{a}, {b}" for a, b in zip(cited[::2], cited[1::2], strict=True)]
    other = compare_author_lists(pairs, reference.truncated, listed)
    return other if other is None or other.is_style else fault


def _basis(reference: Reference, works: Sequence[Work]) -> Iterator[CitationFinding]:
    """Hold "per the arXiv comment field" against that field."""
    if reference.basis is None:
        return
    name = "journal_ref" if re.search(r"journal", reference.basis, re.I) else "comment"
    entry = next((w for w in works if w.authority == "arxiv"), None)
    if entry is None:
        reason = f"the arXiv entry has not been read, so its {name} is not known"
        yield CitationFinding(
            field="basis", outcome="unavailable", cited=reference.basis, reason=reason
        )
        return
    value = getattr(entry, name)
    if value is None:
        reason = f"the arXiv entry has no {name} field"
        yield finding("basis", "wrong", reason, reference.basis, entry, f"no {name} field")
    elif set(series_mentioned(reference.venue or "")) - set(series_mentioned(value)):
        reason = f"the arXiv entry's {name} does not say so"
        yield finding("basis", "wrong", reason, reference.basis, entry, value)
    else:
        yield finding("basis", None, "the field says so", reference.basis, entry, value)


# Lists


def duplicates(reports: Sequence[CitationReport]) -> list[CitationReport]:
    """Return the reports, with a finding for each reference that cites what an earlier one does.

    The preprint and the publication of one work are one work.
    """
    first: dict[str, Reference] = {}
    out = []
    for report in reports:
        names = _work_names(report)
        earlier = next((first[name] for name in names if name in first), None)
        for name in names:
            first.setdefault(name, report.reference)
        out.append(report if earlier is None else _repeated(report, earlier))
    return out


def _work_names(report: CitationReport) -> set[str]:
    if report.works:
        return {f"{w.source}/{w.work_key.partition('v')[0] if w.kind == 'preprint' else w.work_key}"
                for w in report.works}  # fmt: skip
    reference = report.reference
    title = fold(reference.title or "").replace(" ", "")
    authors = "/".join(sorted(fold(name) for name in reference.authors))
    return {f"{title}|{authors}|{reference.year}"} if len(title) > 10 and authors else set()


def _repeated(report: CitationReport, earlier: Reference) -> CitationReport:
    reason = f"the same work is cited as {earlier.key} (line {earlier.line})"
    repeated = finding("duplicate", "wrong", reason, report.reference.key, found=earlier.key)
    findings = (*report.findings, repeated)
    return report.model_copy(
        update={"findings": findings, "verdict": _verdict(report.existence, findings)}
    )
