"""What the last session of work has changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from records.changes import PAUSE, changes, last_session, statuses_of, verdicts_of
from records.ledger import Batch, Contents
from records.models import Assertion, Change, Check, Claim, Evidence, Metric, Paper, Record, Run

START = datetime(2026, 1, 1, tzinfo=UTC)
STORE: list[Record] = [
    Evidence(evidence_id="e", source="s", authority="note", grade="transcribed", kind="note"),
    Paper(paper_id="p", title="T", evidence_id="e"),
    Assertion(assertion_id="a", paper_id="p", field="venue", value="icml 2021", evidence_id="e"),
    Claim(
        claim_id="p/c",
        paper_id="p",
        kind="synthetic",
        locator="Fig. 2",
        statement="the loss is 1",
        metric="loss",
        claimed=1.0,
        conditions={},
        evidence_id="e",
    ),
]


def batch(origin: str, minutes: float, records: Sequence[Record]) -> Batch:
    created = START + timedelta(minutes=minutes)
    return Batch(f"{minutes:09.1f}-{origin}", origin, created, tuple(records))


def run(value: float, name: str = "r") -> Run:
    return Run(
        run_id=name,
        experiment="x",
        config={},
        seed=1,
        code_version="c",
        environment={},
        started=START,
        finished=START,
        metrics=(Metric(name="loss", value=value, claim_id="p/c"),),
    )


def check(outcome: str) -> Check:
    return Check(
        rule="rule", rule_version=1, paper_id="p", field="venue", value="icml 2021",
        outcome=outcome, reason="r", evidence_ids=("e",), grade="transcribed",
    )  # fmt: skip


def found(*batches: Batch) -> list[Change]:
    contents = Contents(batches, ())
    now = contents.current()
    return changes(contents, verdicts_of(now), statuses_of(now))


def test_a_store_in_which_nothing_was_done_has_no_changes() -> None:
    assert found(batch("curated/p", 0, STORE), batch("reference/runs", 1, [run(1.0)])) == []


def test_a_first_run_and_a_first_check_are_changes() -> None:
    verdict, status = found(
        batch("curated/p", 0, STORE),
        batch("run/r", 10, [run(1.0)]),
        batch("verify/p", 12, [check("confirmed")]),
    )
    assert (verdict.claim_id, verdict.before, verdict.after) == ("p/c", "not run", "reproduced")
    assert (status.field, status.value) == ("venue", "icml 2021")
    assert (status.before, status.after) == ("unverified", "verified")
    assert {verdict.since, status.since} == {START + timedelta(minutes=10)}


def test_only_the_last_session_counts() -> None:
    apart = PAUSE.total_seconds() / 60 + 1
    (change,) = found(
        batch("curated/p", 0, STORE),
        batch("run/r", 10, [run(1.0)]),
        batch("verify/p", 10 + apart, [check("confirmed")]),
    )
    assert change.kind == "status"


def test_a_session_that_only_confirms_what_was_found_changes_nothing() -> None:
    first = [batch("curated/p", 0, STORE), batch("verify/p", 10, [check("confirmed")])]
    assert found(*first, batch("verify/p", 500, [check("confirmed")])) == []


def test_a_session_ends_at_the_first_long_pause_going_back() -> None:
    minutes = PAUSE.total_seconds() / 60
    times = (0, minutes + 1, minutes + 2)
    batches = [batch(f"run/{number}", time, []) for number, time in enumerate(times)]
    assert last_session(batches) == batches[1:]
