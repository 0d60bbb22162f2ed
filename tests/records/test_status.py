from __future__ import annotations

import pytest

from records.models import Assertion, Check, Outcome, Severity, Status
from records.status import derive_statuses


def says(value: str, field: str = "venue") -> Assertion:
    return Assertion(
        assertion_id=f"{field}-{value}", paper_id="p", field=field, value=value, evidence_id="s"
    )


def finds(value: str, outcome: Outcome, severity: Severity | None = None) -> Check:
    return Check(
        rule="r",
        rule_version=1,
        paper_id="p",
        field="venue",
        value=value,
        outcome=outcome,
        severity=severity,
        reason=f"{value} {outcome}",
        evidence_ids=("e",),
        grade="transcribed",
    )


def statuses(assertions: list[Assertion], checks: list[Check]) -> dict[str, str]:
    return {s.value: s.status for s in derive_statuses(assertions, checks)}


@pytest.mark.parametrize(
    ("checks", "status"),
    [
        ([], "unverified"),
        ([finds("a", "unavailable")], "unverified"),
        ([finds("a", "not_applicable")], "unverified"),
        ([finds("a", "confirmed")], "verified"),
        ([finds("a", "confirmed"), finds("a", "unavailable")], "verified"),
        ([finds("a", "contradicted", "wrong")], "refuted"),
        ([finds("a", "contradicted", "outdated")], "outdated"),
        ([finds("a", "contradicted", "outdated"), finds("a", "contradicted", "wrong")], "refuted"),
        ([finds("a", "confirmed"), finds("a", "contradicted", "wrong")], "contested"),
    ],
)
def test_a_single_value_follows_its_checks(checks: list[Check], status: str) -> None:
    assert statuses([says("a")], checks) == {"a": status}


def test_a_silent_source_never_makes_a_value_false() -> None:
    checks = [finds("a", "unavailable"), finds("b", "confirmed")]
    assert statuses([says("a"), says("b")], checks)["a"] == "unverified"


def test_absence_alone_refutes_nothing() -> None:
    assert statuses([says("a")], [finds("a", "absent", "wrong")]) == {"a": "unverified"}


def test_absence_refutes_where_another_value_is_verified() -> None:
    checks = [finds("a", "absent", "wrong"), finds("b", "confirmed")]
    assert statuses([says("a"), says("b")], checks) == {"a": "refuted", "b": "verified"}


def test_values_that_no_check_decides_are_contested() -> None:
    assert statuses([says("a"), says("b")], []) == {"a": "contested", "b": "contested"}


def test_a_value_of_another_field_does_not_matter() -> None:
    assert statuses([says("a"), says("b", "year")], []) == {"a": "unverified", "b": "unverified"}


def test_the_status_names_the_evidence_of_assertion_and_check() -> None:
    (status,) = derive_statuses([says("a")], [finds("a", "confirmed")])
    assert status.evidence_ids == ("s", "e")
    assert status.reason == "a confirmed"


def test_a_status_is_graded_by_the_weakest_deciding_check() -> None:
    strong = finds("a", "confirmed").model_copy(update={"grade": "captured"})
    sets = ([strong], [strong, finds("a", "confirmed")], [finds("a", "unavailable")])
    graded = [derive_statuses([says("a")], checks)[0].grade for checks in sets]
    assert graded == ["captured", "transcribed", None]


def test_every_asserted_value_has_one_status_in_order_of_assertion() -> None:
    found: list[Status] = derive_statuses([says("b"), says("a"), says("b")], [])
    assert [s.value for s in found] == ["b", "a"]
