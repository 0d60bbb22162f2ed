"""Rules on where and under which name a paper was published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provenance.case import Case, Finding, ProceedingsEntry
from provenance.match import (
    fold,
    nearest_title,
    normal_pages,
    ordinals,
    parse_venue,
    same_authors,
    same_title,
    series_mentioned,
    venue_series,
)
from records.models import Assertion, Evidence, ListEntry

_NEARLY_THE_SAME = 0.85
"""Similarity from which two titles may be one, miscopied or shortened."""

_ARXIV_FIELD = re.compile(r"\barxiv\b.*?\b(comment|journal[-_ ]?ref|doi)\b", re.I)


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
    if found == asserted:
        return Finding("venue", value, "confirmed", reads, evidence, found=found)
    reason = f"{reads}, which is {found}"
    return Finding("venue", value, "contradicted", reason, evidence, "wrong", found)


def _readings(count: int) -> str:
    return "one reading" if count == 1 else f"{count} readings"


def accepted_list(case: Case) -> Iterator[Finding]:
    """A paper of a conference is on the list of that conference's papers, if the list is whole."""
    for value in case.values("venue"):
        asserted = parse_venue(value)
        for evidence in case.store.of_kind("accepted-list"):
            if asserted is not None and evidence.facts.get("venue") == str(asserted):
                yield _look_up(case, value, evidence)


def _look_up(case: Case, value: str, evidence: Evidence) -> Finding:
    entries = case.store.listings.get(evidence.evidence_id, [])
    ids = [evidence.evidence_id]
    if len(entries) != evidence.facts.get("length"):
        reason = (
            f"{evidence.source}: {len(entries)} of {evidence.facts.get('length')} entries are in "
            "the store, so absence would prove nothing"
        )
        return Finding("venue", value, "unavailable", reason, ids)
    for entry in entries:
        if case.is_title(entry.title):
            pages = f", pages {entry.pages}" if entry.pages else ""
            reason = f"on the list of {len(entries)} papers: {evidence.source}{pages}"
            return Finding("venue", value, "confirmed", reason, ids, found=entry.title)
    nearest, similarity = _nearest(case, entries)
    if similarity >= _NEARLY_THE_SAME:
        reason = f"{evidence.source} has a title much like it, '{nearest}': compare them by hand"
        return Finding("venue", value, "unavailable", reason, ids, found=nearest)
    reason = f"absent from the list of {len(entries)} papers: {evidence.source}"
    if nearest:
        reason += f" (nearest title there: '{nearest}')"
    return Finding("venue", value, "absent", reason, ids, found=nearest)


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
    """One source should not give one field two values."""
    said: dict[tuple[str, str], list[Assertion]] = {}
    for assertion in case.assertions:
        said.setdefault((assertion.field, assertion.evidence_id), []).append(assertion)
    for (field, evidence_id), assertions in said.items():
        if len({fold(a.value) for a in assertions}) > 1:
            texts = [a.value + (f" (per {a.basis})" if a.basis else "") for a in assertions]
            both = " and ".join(dict.fromkeys(texts))
            reason = f"{case.store.evidence[evidence_id].source} contradicts itself: it says {both}"
            yield Finding(field, None, "contradicted", reason, [evidence_id], "wrong")


def bibliographic_fields(case: Case) -> Iterator[Finding]:
    """Volume, pages, authors and year against the paper's entries in the proceedings."""
    for field, found, evidence in _proceedings_facts(case):
        for value in case.values(field):
            same = _same_value(field, value, found)
            reason = f"the proceedings have {found} ({_readings(len(evidence))})"
            if same and field == "authors" and fold(value) == fold(found) and value != found:
                reason += ", the same but for accents"
            yield Finding(
                field,
                value,
                "confirmed" if same else "contradicted",
                reason,
                evidence,
                None if same else "wrong",
                found,
            )


def _proceedings_facts(case: Case) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each field and value that entries carry, with the evidence that carries it."""
    carried: dict[tuple[str, str], list[str]] = {}
    for entry in case.proceedings:
        facts = entry.evidence.facts
        values = {"volume": f"PMLR {entry.volume}"}
        if "pages" in facts:
            values["pages"] = normal_pages(str(facts["pages"]))
        if "authors" in facts:
            values["authors"] = "; ".join(str(name) for name in facts["authors"])
        if entry.venue is not None:
            values["year"] = str(entry.venue.year)
        for item in values.items():
            carried.setdefault(item, []).append(entry.evidence.evidence_id)
    for (field, value), evidence in carried.items():
        yield field, value, evidence


def _same_value(field: str, asserted: str, found: str) -> bool:
    if field == "authors":
        return same_authors(_names(asserted), _names(found))
    return (normal_pages(asserted) if field == "pages" else asserted) == found


def _names(authors: str) -> list[str]:
    return [name.strip() for name in authors.split(";")]


def title_versions(case: Case) -> Iterator[Finding]:
    """The title is that of the latest arXiv version; an earlier one was right when written."""
    for history in case.about("arxiv-versions"):
        titled = [v for v in history.facts.get("versions", []) if v.get("title")]
        if not titled:
            continue
        latest = max(titled, key=lambda v: v["version"])
        for value in case.values("title"):
            match = [v for v in titled if same_title(v["title"], value)]
            yield _title_finding(value, history, latest, match)


def _title_finding(
    value: str, history: Evidence, latest: dict[str, str], match: list[dict[str, str]]
) -> Finding:
    now = f"v{latest['version']} ({latest['posted']}) is titled '{latest['title']}'"
    evidence = [history.evidence_id]
    if latest in match:
        return Finding("title", value, "confirmed", f"{history.source}: {now}", evidence)
    if match:
        was = f"the title of v{match[-1]['version']} ({match[-1]['posted']})"
        return Finding(
            "title", value, "contradicted", f"{was}; {now}", evidence, "outdated", latest["title"]
        )
    return Finding(
        "title",
        value,
        "contradicted",
        f"no version has it; {now}",
        evidence,
        "wrong",
        latest["title"],
    )


def listed_title(case: Case) -> Iterator[Finding]:
    """A title that stands on a proceedings list, or in an entry, is a title that was published."""
    for value in case.values("title"):
        lists = [e for e in case.store.of_kind("accepted-list") if _lists(case, e, value)]
        entries = [
            entry.evidence
            for entry in case.proceedings
            if same_title(str(entry.evidence.facts["title"]), value)
        ]
        if lists or entries:
            reason = "stands in " + ", ".join(e.source for e in [*lists, *entries])
            evidence = [e.evidence_id for e in [*lists, *entries]]
            yield Finding("title", value, "confirmed", reason, evidence)


def _lists(case: Case, evidence: Evidence, title: str) -> bool:
    entries = case.store.listings.get(evidence.evidence_id, [])
    return any(same_title(entry.title, title) for entry in entries)


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
    conference = str(volume.facts["conference"])
    found = f"{conference} {volume.facts['year']}"
    evidence = [volume.evidence_id]
    wrong = [
        f"nothing to do with {s.upper()}"
        for s in series_mentioned(statement)
        if s != venue_series(conference)
    ]
    if edition is not None:
        number = edition.facts["edition"]
        found += f", the {_ordinal(number)} of its series"
        evidence.append(edition.evidence_id)
        wrong += [f"not the {_ordinal(n)}" for n in ordinals(statement) if n != number]
    elif ordinals(statement) and not wrong:
        reason = f"it is {found}; which ordinal that has was not read"
        return Finding(field, statement, "unavailable", reason, evidence, found=found)
    if not wrong:
        return Finding(field, statement, "confirmed", f"it is {found}", evidence, found=found)
    reason = f"it is {found} ({', '.join(wrong)})"
    return Finding(field, statement, "contradicted", reason, evidence, "wrong", found)


def _ordinal(number: int) -> str:
    suffix = (
        "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    )
    return f"{number}{suffix}"
