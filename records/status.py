"""Assertions and checks into a status for every asserted value: pure.

Two kinds of finding speak against a value: a check that contradicts it, and its absence from a
list that was read to the end. The second alone is no proof, so it refutes only together with a
contradiction or with another value of the same field that is verified.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from records.models import Assertion, Check, Grade, Status, StatusName


def derive_statuses(assertions: Iterable[Assertion], checks: Iterable[Check]) -> list[Status]:
    """Return one status for each value that any source asserts, in order of first assertion."""
    found: dict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in checks:
        found[check.paper_id, check.field].append(check)
    fields: dict[tuple[str, str], list[Assertion]] = defaultdict(list)
    for assertion in assertions:
        fields[assertion.paper_id, assertion.field].append(assertion)
    return [
        status
        for key, asserted in fields.items()
        for status in _field_statuses(asserted, found[key])
    ]


def _field_statuses(assertions: Sequence[Assertion], checks: Sequence[Check]) -> list[Status]:
    values = list(dict.fromkeys(a.value for a in assertions))
    findings = {value: [c for c in checks if c.value == value] for value in values}
    verified = [value for value in values if _is_verified(findings[value])]
    standing = [value for value in values if not _is_refuted(findings[value])]
    return [
        _status(
            [a for a in assertions if a.value == value],
            findings[value],
            others=[v for v in standing if v != value],
            verified_others=[v for v in verified if v != value],
        )
        for value in values
    ]


def _is_verified(checks: Sequence[Check]) -> bool:
    outcomes = {check.outcome for check in checks}
    return "confirmed" in outcomes and "contradicted" not in outcomes


def _is_refuted(checks: Sequence[Check]) -> bool:
    outcomes = {check.outcome for check in checks}
    return "contradicted" in outcomes and "confirmed" not in outcomes


def _status(
    assertions: Sequence[Assertion],
    checks: Sequence[Check],
    others: Sequence[str],
    verified_others: Sequence[str],
) -> Status:
    name = _name(checks, others, verified_others)
    telling = _telling(name, checks)
    reason = "; ".join(dict.fromkeys(check.reason for check in telling))
    if not reason:
        reason = _silent_reason(name, checks, others)
    evidence = [a.evidence_id for a in assertions] + [e for c in telling for e in c.evidence_ids]
    first = assertions[0]
    return Status(
        paper_id=first.paper_id,
        field=first.field,
        value=first.value,
        status=name,
        reason=reason,
        evidence_ids=tuple(dict.fromkeys(evidence)),
        grade=None if name == "unverified" else lowest_grade(check.grade for check in telling),
    )


def lowest_grade(grades: Iterable[Grade | None]) -> Grade | None:
    """Return ``transcribed`` if any of the grades is no more than that; None if there is none."""
    found = set(grades) - {None}
    if "transcribed" in found:
        return "transcribed"
    return "captured" if found else None


def _name(
    checks: Sequence[Check], others: Sequence[str], verified_others: Sequence[str]
) -> StatusName:
    against = [check for check in checks if check.outcome == "contradicted"]
    if against and any(check.outcome == "confirmed" for check in checks):
        return "contested"
    if against:
        outdated = all(check.severity == "outdated" for check in against)
        return "outdated" if outdated else "refuted"
    if _is_verified(checks):
        return "verified"
    if verified_others and any(check.outcome == "absent" for check in checks):
        return "refuted"
    return "contested" if others and not verified_others else "unverified"


def _telling(name: StatusName, checks: Sequence[Check]) -> list[Check]:
    wanted = {
        "verified": {"confirmed"},
        "refuted": {"contradicted", "absent"},
        "outdated": {"contradicted"},
        "contested": {"confirmed", "contradicted", "absent"},
        "unverified": {"absent", "unavailable"},
    }[name]
    return [check for check in checks if check.outcome in wanted]


def _silent_reason(name: StatusName, checks: Sequence[Check], others: Sequence[str]) -> str:
    if name == "contested":
        return "sources disagree and no check decides; also asserted: " + ", ".join(others)
    return "no check speaks of this value"
