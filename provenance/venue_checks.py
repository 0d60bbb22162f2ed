"""Rules on where and under which name a paper was published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provenance.case import Case, Finding, ProceedingsEntry
from provenance.match import (
    fold,
    nearest_title,
    normal_pages,
    normal_value,
    ordinals,
    parse_venue,
    same_title,
    series_mentioned,
    stated_year,
    venue_series,
    volume_number,
)
from provenance.names import Comparison, compare_authors, split_authors
from provenance.sources.arxiv import Version, parse_versions
from records.models import Assertion, Evidence, ListEntry, Outcome, Severity

_NEARLY_THE_SAME = 0.85
"""Similarity from which two titles may be one, miscopied or shortened."""

_WHOSE = "whether that is this paper, its authors would tell, and they could not be compared"

_SINGLE = (
    "title",
    "authors",
    "venue",
    "year",
    "volume",
    "pages",
    "doi",
    "arxiv id",
    "first posted",
)
"""Fields of which a paper has one value."""

_ARXIV_FIELD = re.compile(r"\barxiv(?:'s)?\s+(comment|journal[-_ ]?ref|doi)\b", re.I)


def volume_venue(case: Case) -> Iterator[Finding]:
    """A venue is what the header of the volume says in whose contents the paper stands."""
    for value in case.values("venue"):
        asserted = parse_venue(value)
        for volume in dict.fromkeys(entry.volume for entry in case.proceedings):
            if asserted is not None:
                entries = [entry for entry in case.proceedings if entry.volume == volume]
                yield _compare_venue(value, str(asserted), entries)


def _compare_venue(value: str, asserted: str, entries: Sequence[ProceedingsEntry]) -> Finding:
    header, venue = entries[0].header_evidence, entries[0].venue
    evidence = [entry.evidence.evidence_id for entry in entries]
    where = f"PMLR v{entries[0].volume} lists the paper ({_readings(len(entries))})"
    if header is None or venue is None:
        reason = f"{where}, but the header of that volume was not read"
        return Finding("venue", value, "unavailable", reason, evidence)
    evidence.append(header.evidence_id)
    found = str(venue)
    reads = f"{where}; the volume's own header reads '{entries[0].header}'"
    if not any(entry.same_authors for entry in entries):
        return Finding("venue", value, "unavailable", f"{reads}; {_WHOSE}", evidence, found=found)
    if found == asserted:
        return Finding("venue", value, "confirmed", reads, evidence, found=found)
    reason = f"{reads}, which is {found}"
    return Finding("venue", value, "contradicted", reason, evidence, "wrong", found)


def namesake(case: Case) -> Iterator[Finding]:
    """An entry of the same title by other authors is another paper's, or the authors are wrong."""
    for entry in case.namesakes:
        if entry.same_authors is False:
            reason = (
                f"{entry.evidence.source} has a paper of this title by {'; '.join(entry.authors)}, "
                "none of whom is asserted as an author of this one"
            )
            yield Finding("authors", None, "unavailable", reason, [entry.evidence.evidence_id])


def _readings(count: int) -> str:
    return "one reading" if count == 1 else f"{count} readings"


def accepted_list(case: Case) -> Iterator[Finding]:
    """A paper of a conference is on the list of that conference's papers, if the list is whole."""
    for value in case.values("venue"):
        asserted = parse_venue(value)
        for evidence in case.store.of_kind("accepted-list"):
            listed = parse_venue(str(evidence.facts.get("venue", "")))
            if asserted is not None and listed == asserted:
                yield _look_up(case, value, evidence)


def _look_up(case: Case, value: str, evidence: Evidence) -> Finding:
    entries = case.store.listings.get(evidence.evidence_id, [])
    ids = [evidence.evidence_id]
    if (gap := _gap(entries, evidence.facts.get("length"))) is not None:
        reason = f"{evidence.source}: {gap}, so absence would prove nothing"
        return Finding("venue", value, "unavailable", reason, ids)
    for entry in entries:
        ours = case.by_its_authors(entry.authors)
        if case.is_title(entry.title) and ours is not False:
            pages = f", pages {entry.pages}" if entry.pages else ""
            reason = f"on the list of {len(entries)} papers: {evidence.source}{pages}"
            if ours is None:
                return Finding("venue", value, "unavailable", f"{reason}; {_WHOSE}", ids)
            return Finding("venue", value, "confirmed", reason, ids, found=entry.title)
    nearest, similarity = _nearest(case, entries)
    if similarity >= _NEARLY_THE_SAME:
        reason = f"{evidence.source} has a title much like it, '{nearest}': compare them by hand"
        return Finding("venue", value, "unavailable", reason, ids, found=nearest)
    reason = f"absent from the list of {len(entries)} papers: {evidence.source}"
    if nearest:
        reason += f" (nearest title there: '{nearest}')"
    return Finding("venue", value, "absent", reason, ids, found=nearest)


def _gap(entries: Sequence[ListEntry], length: object) -> str | None:
    """Say what a list lacks to be whole: ``length`` distinct titles at the places 1 to length."""
    if len(entries) != length:
        return f"{len(entries)} of {length} entries are in the store"
    if {e.position for e in entries} != set(range(1, len(entries) + 1)):
        return "its places are not numbered through"
    if len({fold(e.title) for e in entries}) < len(entries):
        return "it has a title twice"
    return None


def _nearest(case: Case, entries: Sequence[ListEntry]) -> tuple[str, float]:
    """Return the title on a list that is most like one of the paper's, and their similarity."""
    found = [nearest_title(title, (e.title for e in entries)) for title in case.titles]
    return max((pair for pair in found if pair), key=lambda pair: pair[1], default=("", 0.0))


def unread_venue(case: Case) -> Iterator[Finding]:
    """A venue of which no known series and year can be read is not checked."""
    for value in case.values("venue"):
        if parse_venue(value) is None:
            reason = "no conference that venues.toml lists, followed by its year, could be read"
            yield Finding("venue", value, "unavailable", reason, case.sources_of("venue", value))


def cited_field(case: Case) -> Iterator[Finding]:
    """A value said to come from a field of the arXiv entry needs that field to be there.

    Where it is not, the value has lost its ground and is not yet wrong: ``absent``.
    """
    for assertion in case.assertions:
        match = _ARXIV_FIELD.search(assertion.basis or "")
        if match is None:
            continue
        field, value = assertion.field, assertion.value
        name = re.sub(r"[- ]", "_", match[1].lower())
        readings = case.about("arxiv-entry")
        if not readings:
            reason = f"rests on arXiv's {name} field, and no reading of that page is on hand"
            yield Finding(field, value, "unavailable", reason)
        for reading in readings:
            if name in reading.facts.get("absent_fields", []):
                day = f", {reading.read_on}" if reading.read_on else ""
                reason = (
                    f"the source rests on arXiv's {name} field, and that field does not exist "
                    f"({reading.source}{day})"
                )
                evidence = [reading.evidence_id]
                found = f"no {name} field"
                yield Finding(field, value, "absent", reason, evidence, found=found)


def note_against_field(case: Case) -> Iterator[Finding]:
    """One source should not give two values for a field that has only one."""
    said: dict[tuple[str, str], list[Assertion]] = {}
    for assertion in case.assertions:
        history = case.store.evidence.get(assertion.evidence_id)
        is_history = history is not None and history.kind == "arxiv-versions"
        if assertion.field in _SINGLE and not is_history:
            said.setdefault((assertion.field, assertion.evidence_id), []).append(assertion)
    for (field, evidence_id), assertions in said.items():
        values = [a.value for a in assertions]
        if any(_contradict(field, values[0], other) for other in values[1:]):
            texts = [a.value + (f" (per {a.basis})" if a.basis else "") for a in assertions]
            both = " and ".join(dict.fromkeys(texts))
            reason = f"{case.store.evidence[evidence_id].source} contradicts itself: it says {both}"
            yield Finding(field, None, "contradicted", reason, [evidence_id], "wrong")


def _contradict(field: str, one: str, other: str) -> bool:
    if field == "authors":
        return compare_authors(one, split_authors(other)[0]) == "different"
    return normal_value(field, one) != normal_value(field, other)


def bibliographic_fields(case: Case) -> Iterator[Finding]:
    """Volume, pages, authors and year against the paper's entries in the proceedings.

    An entry that is not known to share an author with the paper decides nothing.
    """
    for field in ("volume", "pages", "year", "authors"):
        for value in case.values(field):
            yield from _against_entries(case, field, value)


def _against_entries(case: Case, field: str, value: str) -> Iterator[Finding]:
    """Yield one finding for each outcome, with the entries that lead to it."""
    groups: dict[Outcome, list[ProceedingsEntry]] = {}
    for entry in case.proceedings:
        outcome = _entry_outcome(field, value, entry)
        if outcome is not None:
            groups.setdefault(outcome, []).append(entry)
    for outcome, entries in groups.items():
        found = " or ".join(dict.fromkeys(_entry_value(field, entry) for entry in entries))
        evidence = [e.evidence.evidence_id for e in entries]
        if field == "year":
            evidence += [e.header_evidence.evidence_id for e in entries if e.header_evidence]
        reason = f"the proceedings have {found} ({_readings(len(entries))})"
        if outcome == "unavailable":
            same = all(entry.same_authors for entry in entries)
            reason += "; whether that is the same could not be told" if same else f"; {_WHOSE}"
        severity: Severity | None = "wrong" if outcome == "contradicted" else None
        yield Finding(field, value, outcome, reason, evidence, severity, found)


def _entry_value(field: str, entry: ProceedingsEntry) -> str:
    """Return what an entry has for a field; '' for nothing."""
    facts = entry.evidence.facts
    if field == "volume":
        return f"PMLR {entry.volume}" if entry.volume else ""
    if field == "pages":
        return normal_pages(str(facts.get("pages", ""))) or ""
    if field == "authors":
        return "; ".join(entry.authors)
    return " or ".join(_years(entry))


def _years(entry: ProceedingsEntry) -> list[str]:
    """Return the year of the conference and that of the entry, which can be a later one."""
    conference = [str(entry.venue.year)] if entry.venue else []
    own = [str(entry.evidence.facts["year"])] if "year" in entry.evidence.facts else []
    return list(dict.fromkeys([*conference, *own]))


def _entry_outcome(field: str, value: str, entry: ProceedingsEntry) -> Outcome | None:
    """Return how an entry bears on a value; None where it has nothing for the field."""
    if not _entry_value(field, entry):
        return None
    found = _compare_field(field, value, entry)
    if not entry.same_authors or found == "unclear":
        return "unavailable"
    return "confirmed" if found == "same" else "contradicted"


def _compare_field(field: str, value: str, entry: ProceedingsEntry) -> Comparison:
    """Compare a value with an entry's; what cannot be read is unclear."""
    if field == "authors":
        return compare_authors(value, entry.authors)
    read = {"year": stated_year, "pages": normal_pages, "volume": volume_number}[field](value)
    if read is None:
        return "unclear"
    has = _years(entry) if field == "year" else [normal_value(field, _entry_value(field, entry))]
    return "same" if read in has else "different"


def title_versions(case: Case) -> Iterator[Finding]:
    """The title is that of the latest arXiv version; an earlier one was right when written."""
    for history in case.about("arxiv-versions"):
        versions = parse_versions(history.facts)
        if any(version.title for version in versions):
            for value in case.values("title"):
                yield _title_finding(value, history, versions)


def _title_finding(value: str, history: Evidence, versions: Sequence[Version]) -> Finding:
    titled = [version for version in versions if version.title]
    latest, found = titled[-1], titled[-1].title or ""
    bearing = [version for version in titled if same_title(version.title or "", value)]
    now = f"{latest} is titled '{found}'"
    evidence = [history.evidence_id]
    if latest in bearing:
        return Finding("title", value, "confirmed", f"{history.source}: {now}", evidence)
    if bearing:
        reason = f"the title of {bearing[-1]}; {now}"
        return Finding("title", value, "contradicted", reason, evidence, "outdated", found)
    if len(titled) < len(versions):
        reason = f"none of the versions whose titles were read has it; {now}"
        return Finding("title", value, "unavailable", reason, evidence, found=found)
    reason = f"no version has it; {now}"
    return Finding("title", value, "contradicted", reason, evidence, "wrong", found)


def listed_title(case: Case) -> Iterator[Finding]:
    """A title that the proceedings have for the paper's authors is its published title."""
    for value in case.values("title"):
        found = [
            (evidence, case.by_its_authors(entry.authors))
            for evidence in case.store.of_kind("accepted-list")
            for entry in case.store.listings.get(evidence.evidence_id, [])
            if same_title(entry.title, value) and case.is_title(value)
        ]
        found += [
            (entry.evidence, entry.same_authors)
            for entry in case.namesakes
            if same_title(str(entry.evidence.facts["title"]), value)
        ]
        if ours := [e for e, same in found if same]:
            yield _listed(value, ours, "confirmed")
        if unknown := [e for e, same in found if same is None]:
            yield _listed(value, unknown, "unavailable")


def _listed(value: str, evidence: Sequence[Evidence], outcome: Outcome) -> Finding:
    reason = "stands in " + ", ".join(e.source for e in evidence)
    if outcome == "unavailable":
        reason += f"; {_WHOSE}"
    return Finding("title", value, outcome, reason, [e.evidence_id for e in evidence])


def volume_statement(case: Case) -> Iterator[Finding]:
    """What is said of a PMLR volume against that volume: its conference and the ordinal of it."""
    for assertion in case.assertions:
        match = re.fullmatch(r"PMLR v(\w+)", assertion.field)
        if match is None:
            continue
        field, value = assertion.field, assertion.value
        volumes = [
            e for e in case.store.of_kind("pmlr-volume") if str(e.facts.get("volume")) == match[1]
        ]
        for volume in volumes:
            yield _compare_statement(field, value, volume, _edition(case, volume))
        if not volumes:
            yield Finding(field, value, "unavailable", f"volume {match[1]} was not read")


def _edition(case: Case, volume: Evidence) -> Evidence | None:
    """Return the evidence that says which ordinal the volume's conference has."""
    wanted = (volume.facts.get("conference"), volume.facts.get("year"))
    for evidence in case.store.of_kind("conference-edition"):
        if (evidence.facts.get("conference"), evidence.facts.get("year")) == wanted:
            return evidence
    return None


def _compare_statement(
    field: str, statement: str, volume: Evidence, edition: Evidence | None
) -> Finding:
    conference, year = str(volume.facts["conference"]), str(volume.facts["year"])
    evidence = [volume.evidence_id, *([edition.evidence_id] if edition else [])]
    number = edition.facts["edition"] if edition else None
    found = f"{conference} {year}" + (f", the {_ordinal(number)} of its series" if number else "")
    wrong = _wrong_parts(statement, venue_series(conference), year, number)
    if wrong:
        reason = f"it is {found} ({', '.join(wrong)})"
        return Finding(field, statement, "contradicted", reason, evidence, "wrong", found)
    named = venue_series(conference) in series_mentioned(statement)
    open_ordinal = number is None and ordinals(statement)
    outcome: Outcome = "confirmed" if named and not open_ordinal else "unavailable"
    reason = f"it is {found}" + (
        "" if outcome == "confirmed" else "; the statement was not decided"
    )
    return Finding(field, statement, outcome, reason, evidence, found=found)


def _wrong_parts(statement: str, series: str | None, year: str, number: int | None) -> list[str]:
    """Return what a statement says of a volume that is not so.

    Where it names the right series, year or ordinal too, another one beside it decides nothing.
    """
    named, counted = series_mentioned(statement), ordinals(statement)
    years = re.findall(r"\b(?:19|20)\d\d\b", statement)
    wrong = []
    if number is not None and counted and number not in counted:
        wrong.append(f"not the {_ordinal(counted[0])}")
    if named and series not in named:
        wrong.append(f"not {named[0].upper()}")
    if years and year not in years:
        wrong.append(f"not {years[0]}")
    return wrong


def _ordinal(number: int) -> str:
    suffix = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{suffix}"
