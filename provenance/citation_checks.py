"""A reference held against what sources say of the cited work, field by field; all pure.

Two questions stay apart: does the work exist, and is it described rightly. What no source has is
"not found", which is a suspicion and no proof, so it is never wrong by itself. Where sources
differ, a citation that agrees with the proceedings, DBLP, the publisher or arXiv is not called
wrong.

Severity: wrong is what the sources contradict; outdated what was right and has been superseded (a
preprint since published, a former title, a work since retracted); incomplete what is left out;
style what no reader could be misled by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from provenance.author_lists import AuthorFault, compare_author_lists
from provenance.identity import Cluster, Identified, identify, posted_year
from provenance.match import fold, normal_pages, series_mentioned, volume_number
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

_STRUCTURED = ("bibtex", "csl-json", "bbl")
_SERIES_OF_VOLUMES = re.compile(r"\bPMLR\b|proceedings of machine learning research", re.IGNORECASE)
_WORKSHOP = re.compile(r"workshop|\bws\b|symposium on.*@", re.IGNORECASE)
_REPORT = re.compile(r"technical report|tech\.? rep|manuscript|thesis|blog", re.IGNORECASE)
_PUBLISHED = ("proceedings", "journal")
_TRUSTED = ("proceedings", "dblp", "arxiv", "authors")
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
    who = identify(reference, works)
    existence = _existence(reference, who, asked)
    findings = [*_without_sources(reference), *_of_identifiers(reference, who, asked)]
    if who.cited is not None:
        findings += _of_work(reference, who)
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
    return "correct" if existence == "found" else "unverifiable"


def _finding(
    field: str,
    severity: Severity | None,
    reason: str,
    cited: object = None,
    source: Work | None = None,
    found: object = None,
) -> CitationFinding:
    """Return a finding; without a severity the field is confirmed."""
    return CitationFinding(
        field=field,
        outcome="contradicted" if severity else "confirmed",
        severity=severity,
        cited=None if cited is None else str(cited),
        found=None if found is None else str(found),
        source=source.source if source else None,
        reason=reason,
        evidence_ids=(source.evidence_id,) if source else (),
    )


# What a reference shows by itself


def _without_sources(reference: Reference) -> Iterator[CitationFinding]:
    own = re.findall(r"(?<!\d)((?:19|20)\d\d)(?!\d)", reference.venue or "")
    years = {int(year) for year in own}
    if reference.year and len(years) == 1 and reference.year not in years:
        reason = f"the reference gives {reference.year} and, as the venue's year, {years.pop()}"
        yield _finding("year", "wrong", reason, reference.year, found=reference.venue)
    if any("no name" in problem for problem in reference.problems):
        reason = "the author field holds a placeholder"
        yield _finding("authors", "incomplete", reason, "; ".join(reference.authors))
    elif reference.format in _STRUCTURED and reference.title and not reference.authors:
        yield _finding("authors", "incomplete", "no author is given")
    if reference.format in _STRUCTURED and reference.title and reference.year is None:
        yield _finding("year", "incomplete", "no year is given")


def _of_identifiers(
    reference: Reference, who: Identified, asked: Sequence[str]
) -> Iterator[CitationFinding]:
    """Hold each identifier against the work that it names."""
    for field, other in who.strangers:
        work, cited = other.works[0], getattr(reference, field)
        reason = f"{_names(field)} {cited} is that of another work: {work.title}"
        yield _finding(field, "wrong", reason, cited, work, _identifier(field, who.cited))
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
            yield _finding(field, None, f"{same.source} has it", cited, same, cited)
        elif known and field == "arxiv_id":
            reason = f"the work's {_names(field)} is {known[0].arxiv_id}"
            yield _finding(field, "wrong", reason, cited, known[0], known[0].arxiv_id)
        elif field == "doi" and "Crossref" in asked:
            yield _finding(field, "style", "Crossref does not have this DOI", cited)


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
    published = [w for w in works if w.kind in _PUBLISHED and (w.venue or w.series)]
    yield from _venue(reference, works, published)
    yield from _year(reference, works, published)
    if reference.venue is not None:
        yield from _pages(reference, published)
        yield from _volume(reference, published)
    yield from _basis(reference, works)
    retracted = next((work for work in works if work.retracted), None)
    if retracted is not None:
        reason = f"{retracted.source} marks the work as retracted"
        yield _finding("retraction", "outdated", reason, None, retracted, "retracted")


def _title(reference: Reference, who: Identified) -> Iterator[CitationFinding]:
    assert who.cited is not None
    if reference.title is None:
        return
    work, cited = who.cited.works[0], reference.title
    if who.title == "same":
        yield _finding("title", None, f"{work.source} has it", cited, work, work.title)
        return
    as_published = reference.venue is not None or "proceedings" in (reference.url or "")
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
    yield _finding("title", severity, reason, cited, work, work.title)


def _is_mention(reference: Reference) -> bool:
    """Tell whether a reference only mentions a work, as running text does."""
    return reference.format not in _STRUCTURED and (reference.truncated or not reference.authors)


def _authors(reference: Reference, works: Sequence[Work]) -> Iterator[CitationFinding]:
    lists = [w for w in works if w.authors and w.authors_complete]
    if not reference.authors or not lists or any("no name" in p for p in reference.problems):
        return
    cited = "; ".join(reference.authors) + ("; et al." if reference.truncated else "")
    faults = [(work, _author_fault(reference, work.authors)) for work in lists]
    allowed = [
        (work, fault)
        for work, fault in faults
        if (fault is None or fault.is_style)
        and (work is lists[0] or work.authority in (*_TRUSTED, "crossref"))
    ]
    work, fault = allowed[0] if allowed else faults[0]
    found = "; ".join(work.authors)
    if fault is None:
        yield _finding("authors", None, f"{work.source} has them", cited, work, found)
    else:
        severity: Severity = "style" if fault.is_style else "wrong"
        yield _finding("authors", severity, fault.reason, cited, work, found)


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


def _venue(
    reference: Reference, works: Sequence[Work], published: Sequence[Work]
) -> Iterator[CitationFinding]:
    certain = [w for w in published if w.authority in _TRUSTED or w.dblp_key or w.kind == "journal"]
    if reference.venue is None:
        yield from _no_venue(reference, certain)
        return
    cited = reference.venue
    if not published:
        yield from _venue_unknown(reference, works)
        return
    agreeing = next((w for w in published if _same_venue(reference, w)), None)
    if agreeing is not None:
        yield _finding("venue", None, f"{agreeing.source} has it", cited, agreeing, agreeing.venue)
        if agreeing.kind == "proceedings" and _is_in_journal_field(reference):
            reason = "a conference stands in the journal field of an @article"
            yield _finding("entry_type", "style", reason, "article", agreeing, "inproceedings")
        return
    work = certain[0] if certain else published[0]
    if _WORKSHOP.search(cited):
        reason = "a workshop is cited, and only the later publication was found"
        yield CitationFinding(
            field="venue", outcome="unavailable", cited=cited, found=_where(work), reason=reason,
            source=work.source, evidence_ids=(work.evidence_id,),
        )  # fmt: skip
    elif not certain:
        reason = f"{work.source} names another venue, and is not reliable in that"
        yield CitationFinding(
            field="venue", outcome="unavailable", cited=cited, found=_where(work), reason=reason,
            source=work.source, evidence_ids=(work.evidence_id,),
        )  # fmt: skip
    elif _REPORT.search(cited):
        reason = "cited as a report, and published since"
        yield _finding("venue", "outdated", reason, cited, work, _where(work))
    else:
        yield _finding("venue", "wrong", "published elsewhere", cited, work, _where(work))


def _is_in_journal_field(reference: Reference) -> bool:
    named = reference.entry_type == "article" and "journal" in reference.fields
    return named and not _SERIES_OF_VOLUMES.search(reference.venue or "")


def _no_venue(reference: Reference, certain: Sequence[Work]) -> Iterator[CitationFinding]:
    """Judge a reference without venue: a preprint that has been published, or a gap."""
    if not certain or reference.title is None:
        return
    work = certain[0]
    if reference.arxiv_id or _cites_preprint(reference):
        reason = "cited as a preprint, and published since"
        yield _finding("venue", "outdated", reason, "preprint", work, _where(work))
    elif not (reference.url or reference.doi or reference.openreview_id):
        reason = "no venue is given, and the work has been published"
        yield _finding("venue", "incomplete", reason, None, work, _where(work))


def _cites_preprint(reference: Reference) -> bool:
    place = " ".join(
        [reference.fields.get("journal", ""), reference.fields.get("howpublished", "")]
    )
    return bool(
        re.search(r"arxiv|preprint|corr\b", f"{place} {reference.url or ''}", re.IGNORECASE)
    )


def _venue_unknown(reference: Reference, works: Sequence[Work]) -> Iterator[CitationFinding]:
    work = works[0]
    reason = f"{work.source} has the work and says of no publication"
    yield CitationFinding(
        field="venue", outcome="unavailable", cited=reference.venue, reason=reason,
        source=work.source, evidence_ids=(work.evidence_id,),
    )  # fmt: skip


def _where(work: Work) -> str:
    return f"{work.venue or work.series} {work.year or ''}".strip()


def _same_venue(reference: Reference, work: Work) -> bool:
    """Tell whether the cited venue can be that of a work, in the words of either."""
    cited = reference.venue or ""
    if _WORKSHOP.search(cited) and work.kind != "workshop":
        return False
    if _SERIES_OF_VOLUMES.search(cited):
        volume, own = volume_number(reference.volume or ""), volume_number(work.volume or "")
        return volume is None or own is None or volume == own
    named = series_mentioned(cited)
    if work.series:
        return work.series in named if named else _alike(cited, work.venue or work.series)
    return _alike(cited, work.venue or "")


def _alike(one: str, other: str) -> bool:
    """Tell whether two names of a journal or conference can be of one, words being shortened."""
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs:
        return False
    acronym = "".join(word[0] for word in theirs)
    if len(ours) == 1 and len(theirs) > 2 and ours[0] == acronym:
        return True
    short, long = sorted((ours, theirs), key=len)
    rest = iter(long)
    return all(any(_stands_for(word, whole) for whole in rest) for word in short)


def _words(name: str) -> list[str]:
    bare = re.sub(r"\([^()]*\)|\b(?:19|20)\d\d\b|\b\d+(?:st|nd|rd|th)\b", " ", name)
    small = {"of", "the", "on", "in", "and", "for", "proceedings", "proc", "annual", "a"}
    return [word for word in fold(bare).split() if word not in small and not word.isdigit()]


def _stands_for(word: str, whole: str) -> bool:
    return whole.startswith(word) or word.startswith(whole)


def _year(
    reference: Reference, works: Sequence[Work], published: Sequence[Work]
) -> Iterator[CitationFinding]:
    """Hold the year against that of what is cited: the publication, or any time of the preprint."""
    if reference.year is None:
        return
    final = {w.year: w for w in reversed(published) if w.year and w.authority != "semantic_scholar"}
    preprints = [w for w in works if w.kind == "preprint" and w.year]
    first = [w.year for w in preprints if w.year]
    if (posted := posted_year(next((w.arxiv_id for w in works if w.arxiv_id), None))) is not None:
        first.append(posted)
    if reference.year in final:
        work = final[reference.year]
        yield _finding("year", None, f"{work.source} has it", reference.year, work, work.year)
    elif reference.venue is not None and final and _names_published(reference, published):
        work = final[max(final)] if len(final) == 1 else next(iter(reversed(final.values())))
        hint = "; that is the preprint's year" if reference.year in first else ""
        reason = f"{_where(work)}{hint}"
        yield _finding("year", "wrong", reason, reference.year, work, work.year)
    elif first or final:
        yield from _preprint_year(reference, works, sorted({*first, *final}))


def _names_published(reference: Reference, published: Sequence[Work]) -> bool:
    return any(_same_venue(reference, work) for work in published)


def _preprint_year(
    reference: Reference, works: Sequence[Work], known: Sequence[int]
) -> Iterator[CitationFinding]:
    """Judge a year that need not be that of the publication.

    From the first posting to the publication any year can be meant, and up to the present version
    of the preprint where it is cited as one; for a preprint whose present version is not known, a
    later year is left open.
    """
    assert reference.year is not None
    work = works[0]
    ends = [w.last_year for w in works if w.last_year]
    published = any(w.kind in _PUBLISHED for w in works)
    last = max([*known, *(ends if reference.arxiv_id or not published else ())])
    if known[0] <= reference.year <= last:
        yield _finding("year", None, f"{work.source} has it", reference.year, work)
    elif reference.year < known[0] or published or ends:
        found = f"{known[0]}-{last}" if last > known[0] else known[0]
        reason = f"the work is of {found}"
        yield _finding("year", "wrong", reason, reference.year, work, known[-1])


def _pages(reference: Reference, published: Sequence[Work]) -> Iterator[CitationFinding]:
    cited = normal_pages(reference.pages or "")
    known = [(w, normal_pages(w.pages or "")) for w in published if w.pages]
    if cited is None or not known or not _names_published(reference, published):
        return
    for work, pages in known:
        if pages == cited or (pages or "").split("-")[0] == cited:
            yield _finding(
                "pages", None, f"{work.source} has them", reference.pages, work, work.pages
            )
            return
    reliable = [
        w for w, p in known if p and "-" in p and w.authority in ("proceedings", "dblp", "crossref")
    ]
    if reliable and "-" in cited:
        work = reliable[0]
        reason = f"{work.source} has other pages"
        yield _finding("pages", "wrong", reason, reference.pages, work, work.pages)


def _volume(reference: Reference, published: Sequence[Work]) -> Iterator[CitationFinding]:
    cited = re.sub(r"\D", "", reference.volume or "")
    known = [(w, re.sub(r"\D", "", w.volume or "")) for w in published if w.volume]
    if not cited or not known or not _names_published(reference, published):
        return
    for work, volume in known:
        if volume == cited:
            yield _finding(
                "volume", None, f"{work.source} has it", reference.volume, work, work.volume
            )
            return
    reliable = [w for w, v in known if v and w.authority in ("proceedings", "dblp", "crossref")]
    if reliable:
        work = reliable[0]
        reason = f"{work.source} has another volume"
        yield _finding("volume", "wrong", reason, reference.volume, work, work.volume)


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
        yield _finding("basis", "wrong", reason, reference.basis, entry, f"no {name} field")
    elif set(series_mentioned(reference.venue or "")) - set(series_mentioned(value)):
        reason = f"the arXiv entry's {name} does not say so"
        yield _finding("basis", "wrong", reason, reference.basis, entry, value)
    else:
        yield _finding("basis", None, "the field says so", reference.basis, entry, value)


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
    finding = _finding("duplicate", "wrong", reason, report.reference.key, found=earlier.key)
    findings = (*report.findings, finding)
    return report.model_copy(
        update={"findings": findings, "verdict": _verdict(report.existence, findings)}
    )
