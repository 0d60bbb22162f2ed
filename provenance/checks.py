"""The rules, by name and version, and how they are applied to a store: pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from provenance import record_checks, transcription, venue_checks
from provenance.case import Case, Finding, Store
from provenance.match import normal_value
from records.models import Check, Severity, Status, StatusName, digest
from records.status import derive_statuses


@dataclass(frozen=True)
class Rule:
    """A named rule; its version goes up when its outcome for any input may change."""

    name: str
    version: int
    apply: Callable[[Case], Iterator[Finding]]


RULES = (
    Rule("volume-venue", 1, venue_checks.volume_venue),
    Rule("namesake", 1, venue_checks.namesake),
    Rule("accepted-list", 1, venue_checks.accepted_list),
    Rule("unread-venue", 1, venue_checks.unread_venue),
    Rule("cited-field", 1, venue_checks.cited_field),
    Rule("note-against-field", 1, venue_checks.note_against_field),
    Rule("bibliographic-fields", 1, venue_checks.bibliographic_fields),
    Rule("title-versions", 1, venue_checks.title_versions),
    Rule("listed-title", 1, venue_checks.listed_title),
    Rule("volume-statement", 1, venue_checks.volume_statement),
    Rule("arxiv-id-date", 1, record_checks.arxiv_id_date),
    Rule("identifier-title", 1, record_checks.identifier_title),
    Rule("version-dates", 1, record_checks.version_dates),
    Rule("citation-chronology", 1, record_checks.citation_chronology),
    Rule("citation-link", 2, record_checks.citation_links),
    Rule("stated-counts", 1, record_checks.stated_counts),
    Rule("formula-dimensions", 1, record_checks.formula_dimensions),
    Rule("stated-absence", 1, record_checks.stated_absence),
    Rule("live-arxiv", 2, record_checks.live_arxiv),
    Rule("unread-title", 1, record_checks.unread_title),
    Rule("claim-transcription", 1, transcription.claim_transcription),
)
_DECLARED = ("declared-status", 1)


def check_paper(paper_id: str, store: Store) -> list[Check]:
    """Apply every rule to one paper; the same store gives the same checks."""
    case = Case(paper_id, store)
    checks = [
        case.check(rule.name, rule.version, finding)
        for rule in RULES
        for finding in _findings(rule, case)
    ]
    statuses = derive_statuses(case.assertions, checks)
    declared = _declared_statuses(case, statuses)
    return _unique([*checks, *(case.check(*_DECLARED, finding) for finding in declared)])


def _findings(rule: Rule, case: Case) -> list[Finding]:
    """Return what a rule finds; evidence in a form that it cannot read makes it unavailable."""
    try:
        return list(rule.apply(case))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = (
            f"the rule could not read the evidence as it is written ({type(error).__name__}: "
            f"{error!s:.100})"
        )
        return [Finding(rule.name, None, "unavailable", reason)]


@cache
def rules_id() -> str:
    """Return what identifies these rules: a digest of the code that they consist of."""
    folder = Path(__file__).parent
    sources = sorted([*folder.rglob("*.py"), *folder.glob("*.toml")])
    return digest([path.read_text(encoding="utf-8") for path in sources])


def _declared_statuses(case: Case, statuses: Sequence[Status]) -> Iterator[Finding]:
    """Compare a status that a record declares for a field ("venue status") with the derived one."""
    for assertion in case.assertions:
        derived = [s for s in statuses if f"{s.field} status" == assertion.field]
        if not derived:
            continue
        summary = _summary(derived)
        reason = f"the record declares {assertion.value}; derived: " + ", ".join(
            f"{s.value} {s.status}" for s in derived
        )
        evidence = [e for s in derived for e in s.evidence_ids]
        field, value = assertion.field, assertion.value
        if summary == value:
            yield Finding(field, value, "confirmed", reason, evidence, found=summary)
            continue
        severity: Severity = "outdated" if value in get_args(StatusName) else "wrong"
        yield Finding(field, value, "contradicted", reason, evidence, severity, summary)


def _summary(statuses: Sequence[Status]) -> str:
    """Return the status of a field as a whole: settled by one verified value, or else open."""
    names: dict[str, StatusName] = {}
    for status in statuses:
        form = normal_value(status.field, status.value)
        if names.get(form) != "verified":
            names[form] = status.status
    found = list(names.values())
    if found.count("verified") == 1 and set(found) <= {"verified", "refuted", "outdated"}:
        return "verified"
    return "contested" if len(found) > 1 or "contested" in found else found[0]


def _unique(checks: Sequence[Check]) -> list[Check]:
    return list({check.check_id: check for check in checks}.values())
