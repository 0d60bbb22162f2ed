"""Rules on identifiers, dates, citation links, counts and technical statements of a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from provenance.case import Case, Finding
from provenance.formula import DimensionError, FormulaError, shape_of
from provenance.match import Month, arxiv_month, fold, parse_day, same_title
from provenance.sources.arxiv import parse_versions
from provenance.sources.reference_list import cites
from records.models import Citation, Evidence

_COSTS = ("words_per_second", "tokens_per_second")


def arxiv_id_date(case: Case) -> Iterator[Finding]:
    """The digits YYMM of an arXiv identifier are the month of its first announcement.

    A submission is announced within days, so its date lies in that month or at the end of the one
    before; moderation can hold it longer, and nothing is announced before it is submitted. That
    the two agree proves neither of them, so agreement is a finding about the pair.
    """
    for identifier in case.values("arxiv id"):
        for posted in case.values("first posted"):
            yield from _id_against_date(case, identifier, posted)
    month = arxiv_month(case.arxiv_id or "")
    if month is not None:
        for value in case.values("year first posted"):
            yield _posting_year(case, value, month)


def _id_against_date(case: Case, identifier: str, posted: str) -> Iterator[Finding]:
    given, day = arxiv_month(identifier), _month_of(posted)
    if given is None or day is None:
        return
    evidence = case.sources_of("arxiv id", identifier) + case.sources_of("first posted", posted)
    reason = f"the identifier was given out in {given}, and the paper was first posted {posted}"
    pair = ("arxiv id and first posted", f"{identifier}, {posted}")
    if day > given:
        yield Finding(*pair, "contradicted", f"{reason}: one is wrong", evidence, "wrong")
    elif given in (day, day.following()):
        yield Finding(*pair, "confirmed", reason, evidence)
    else:
        yield Finding(*pair, "unavailable", f"{reason}: was it held that long?", evidence)


def _month_of(day: str) -> Month | None:
    parsed = parse_day(day)
    return Month(parsed.year, parsed.month) if parsed else None


def _posting_year(case: Case, value: str, month: Month) -> Finding:
    field = "year first posted"
    evidence = case.sources_of(field, value)
    given = f"the identifier {case.arxiv_id} was given out in {month}"
    turn_of_year = {str(month.year - 1), *([str(month.year)] if month.month == 1 else [])}
    if value in turn_of_year:
        reason = f"{given}; whether it was submitted before the turn of the year, arXiv has to tell"
        return Finding(field, value, "unavailable", reason, evidence, found=str(month.year))
    same = value == str(month.year)
    return Finding(
        field,
        value,
        "confirmed" if same else "contradicted",
        given,
        evidence,
        None if same else "wrong",
        str(month.year),
    )


def identifier_title(case: Case) -> Iterator[Finding]:
    """An arXiv identifier is right if what arXiv has under it bears the title of the record."""
    for identifier in case.values("arxiv id"):
        for history in case.store.of_kind("arxiv-versions"):
            titles = [v.title for v in parse_versions(history.facts) if v.title]
            if history.facts.get("arxiv_id") == identifier and titles:
                yield _titled(case, identifier, titles, history)


def _titled(case: Case, identifier: str, titles: list[str], history: Evidence) -> Finding:
    same = any(same_title(title, case.record_title or "") for title in titles)
    return Finding(
        "arxiv id",
        identifier,
        "confirmed" if same else "contradicted",
        f"{history.source}: it is titled '{titles[-1]}'",
        [history.evidence_id],
        None if same else "wrong",
        titles[-1],
    )


def version_dates(case: Case) -> Iterator[Finding]:
    """The date of first posting is that of version 1."""
    for history in case.about("arxiv-versions"):
        for first in [v for v in parse_versions(history.facts) if v.number == 1]:
            for value in case.values("first posted"):
                yield _first_posted(value, first.posted, history)


def _first_posted(value: str, posted: date | None, history: Evidence) -> Finding:
    asserted, field, evidence = parse_day(value), "first posted", [history.evidence_id]
    if asserted is None or posted is None:
        reason = f"{history.source}: the dates could not be read as year-month-day"
        return Finding(field, value, "unavailable", reason, evidence)
    reason = f"{history.source}: v1 was posted {posted}"
    if asserted == posted:
        return Finding(field, value, "confirmed", reason, evidence, found=str(posted))
    return Finding(field, value, "contradicted", reason, evidence, "wrong", str(posted))


def citation_chronology(case: Case) -> Iterator[Finding]:
    """A reference cannot be younger than the paper that cites it.

    That it is not younger says nothing of whether the link is there.
    """
    for link in case.store.citations:
        if link.citing_id == case.paper_id:
            yield _chronology(case, link)


def _chronology(case: Case, link: Citation) -> Finding:
    pair = ("citation dates", f"{link.citing_id} cites {link.cited_id}")
    cited = arxiv_month(_arxiv_id(case, link.cited_id))
    first = arxiv_month(_arxiv_id(case, link.citing_id))
    evidence = [link.evidence_id]
    if cited is None or first is None:
        return Finding(*pair, "unavailable", "no arXiv date for both papers", evidence)
    last, history = _last_version(case, link.citing_id)
    evidence += history
    until = last or first
    dates = f"the reference's identifier is of {cited}, the citing paper of {until}"
    paper = case.store.papers.get(link.cited_id)
    year = paper.year if paper else None
    if cited <= until or (year is not None and year < until.year):
        return Finding(*pair, "confirmed", f"possible: {dates}", evidence)
    if last is None or year is None or year <= until.year:
        reason = f"{dates}; it may have been out before, or a later version may cite it"
        return Finding(*pair, "unavailable", reason, evidence)
    return Finding(*pair, "contradicted", f"impossible: {dates}", evidence, "wrong")


def _arxiv_id(case: Case, paper_id: str) -> str:
    paper = case.store.papers.get(paper_id)
    return (paper.arxiv_id if paper else None) or paper_id


def _last_version(case: Case, paper_id: str) -> tuple[Month | None, list[str]]:
    for history in Case(paper_id, case.store).about("arxiv-versions"):
        dates = [v.posted for v in parse_versions(history.facts) if v.posted]
        if dates:
            return Month(max(dates).year, max(dates).month), [history.evidence_id]
    return None, []


def citation_links(case: Case) -> Iterator[Finding]:
    """A link is proved by the reference list of the citing paper, as its own text has it."""
    links = [c for c in case.store.citations if c.citing_id == case.paper_id]
    lists = case.about("reference-list")
    if links and not lists:
        reason = (
            f"the reference list of {case.paper_id} has not been read, so its listed references "
            f"({len(links)}) are unproved"
        )
        yield Finding("citation", None, "unavailable", reason, [links[0].evidence_id])
    for link in links if lists else ():
        yield _link(case, link, lists[-1])


def _link(case: Case, link: Citation, read: Evidence) -> Finding:
    pair = ("citation", f"{link.citing_id} cites {link.cited_id}")
    entries = [str(entry) for entry in read.facts.get("entries", [])]
    cited = case.store.papers.get(link.cited_id)
    title = cited.title if cited else ""
    evidence = [read.evidence_id, link.evidence_id]
    entry = cites(entries, title, _arxiv_id(case, link.cited_id))
    if entry is not None:
        reason = f"the reference list of {link.citing_id} has it"
        return Finding(*pair, "confirmed", reason, evidence, found=" ".join(entry.split()))
    reason = (
        f"neither the title nor the arXiv identifier is among the {len(entries)} entries of the "
        f"reference list of {link.citing_id} ({read.source})"
    )
    return Finding(*pair, "absent", reason, evidence)


def stated_counts(case: Case) -> Iterator[Finding]:
    """Counts that a citation map states, against the links that this map lists."""
    for citation_map in case.store.of_kind("citation-map"):
        links = [c for c in case.store.citations if c.evidence_id == citation_map.evidence_id]
        cited = sum(c.citing_id == case.paper_id for c in links)
        citing = sum(c.cited_id == case.paper_id for c in links)
        for field, listed in (("references, listed", cited), ("cited by, listed", citing)):
            yield from _listed(case, field, listed, citation_map)
        totals = (("references", cited), ("references, mapped", cited), ("cited by", citing))
        for field, listed in totals:
            yield from _total(case, field, listed, citation_map)


def _stated(case: Case, field: str, source: Evidence) -> list[str]:
    """Return the values of a field that this source states."""
    return [v for v in case.values(field) if source.evidence_id in case.sources_of(field, v)]


def _listed(case: Case, field: str, listed: int, source: Evidence) -> Iterator[Finding]:
    for value in _stated(case, field, source):
        same = value == str(listed)
        yield Finding(
            field,
            value,
            "confirmed" if same else "contradicted",
            f"{listed} links are listed",
            [source.evidence_id],
            None if same else "wrong",
            str(listed),
        )


def _total(case: Case, field: str, listed: int, source: Evidence) -> Iterator[Finding]:
    for value in _stated(case, field, source):
        if not (value.isdecimal() and len(value) < 10):
            reason = "it could not be read as a number"
            yield Finding(field, value, "unavailable", reason, [source.evidence_id])
        elif int(value) < listed:
            reason = f"{value} are stated, yet {listed} are listed"
            yield Finding(
                field, value, "contradicted", reason, [source.evidence_id], "wrong", str(listed)
            )
        else:
            reason = (
                f"{listed} of the {value} stated are listed; the others cannot be counted offline"
            )
            yield Finding(
                field, value, "unavailable", reason, [source.evidence_id], "incomplete", str(listed)
            )


def formula_dimensions(case: Case) -> Iterator[Finding]:
    """A printed update rule has to type-check with the shapes that its source gives its symbols.

    That it does is no proof of the formula, only of its dimensions.
    """
    for value in case.values("update rule"):
        for evidence_id in case.sources_of("update rule", value):
            shapes = case.store.evidence[evidence_id].facts.get("shapes")
            if shapes:
                yield _dimensions(value, evidence_id, shapes)


def _dimensions(formula: str, evidence_id: str, shapes: dict[str, list[str]]) -> Finding:
    field = "update rule"
    try:
        rows, columns = shape_of(formula, shapes)
    except DimensionError as error:
        reason = f"does not type-check unless those dimensions are equal: {error}"
        return Finding(field, formula, "contradicted", reason, [evidence_id], "wrong")
    except FormulaError as error:
        reason = f"the formula could not be read: {error}"
        return Finding(field, formula, "unavailable", reason, [evidence_id])
    reason = f"every term is {rows}×{columns}"
    return Finding(f"{field}, dimensions", formula, "confirmed", reason, [evidence_id])


def stated_absence(case: Case) -> Iterator[Finding]:
    """ "No throughput number" is false of a paper that prints one."""
    for value in case.values("throughput"):
        if not re.match(r"no\b", value, re.I):
            continue
        claims = [
            c for c in case.store.claims if c.paper_id == case.paper_id and c.metric in _COSTS
        ]
        if claims:
            printed = "; ".join(f"{c.locator}: {c.statement}" for c in claims[:3])
            more = f" and {len(claims) - 3} more" if len(claims) > 3 else ""
            reason = f"the paper prints {len(claims)} such numbers: {printed}{more}"
            evidence = [c.evidence_id for c in claims]
            yield Finding("throughput", value, "contradicted", reason, evidence, "wrong")
        else:
            reason = "no claim with a throughput is on record; the text itself was not searched"
            yield Finding("throughput", value, "unavailable", reason)


def live_arxiv(case: Case) -> Iterator[Finding]:
    """What is said of an optional field of the arXiv entry, against arXiv's own answer."""
    entries = [e for e in case.about("arxiv-entry") if e.grade == "captured"]
    for field in ("arxiv comment", "arxiv journal_ref"):
        for value in case.values(field):
            if entries:
                yield _entry_field(field, value, entries[-1])
                continue
            sources = case.sources_of(field, value)
            names = ", ".join(case.store.evidence[i].source for i in sources)
            reason = f"arXiv itself has not been asked; this rests on a reading ({names})"
            yield Finding(field, value, "unavailable", reason, sources)


def _entry_field(field: str, value: str, entry: Evidence) -> Finding:
    name = field.removeprefix("arxiv ")
    there = entry.facts.get(name)
    if name in entry.facts.get("absent_fields", []):
        found, same = "absent", value == "absent"
    else:
        found, same = f"{there!r}", value != "absent" and fold(value) == fold(str(there))
    reason = f"arXiv's entry has {'no ' + name if found == 'absent' else f'the {name} {found}'}"
    if same:
        return Finding(field, value, "confirmed", reason, [entry.evidence_id], found=found)
    return Finding(field, value, "contradicted", reason, [entry.evidence_id], "wrong", found)


def unread_title(case: Case) -> Iterator[Finding]:
    """A title with an arXiv identifier is proved by arXiv's own entry, read by nobody so far."""
    read = case.about("arxiv-versions") or case.proceedings
    for value in [] if read else case.values("title"):
        reason = f"arXiv has not been asked whether {case.arxiv_id or case.paper_id} has this title"
        yield Finding("title", value, "unavailable", reason, case.sources_of("title", value))
