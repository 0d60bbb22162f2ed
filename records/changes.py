"""What the last session of work has changed: verdicts and statuses before it and after it. Pure.

A session is what was rerun or verified without a long pause, such as one ``fwp all``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from records.ledger import Batch, Contents
from records.models import (
    Assertion,
    Change,
    Check,
    Claim,
    Paper,
    Record,
    Status,
    Verdict,
    current_runs,
    latest,
)
from records.status import derive_statuses
from records.verdict import judge, measurements

PAUSE = timedelta(minutes=30)
"""The longest time between two batches of one session."""
_WORK = ("run/", "verify/")


def last_session(batches: Sequence[Batch]) -> list[Batch]:
    """Return the batches of the last session, oldest first; none where nothing was done yet.

    Args:
        batches: of a ledger, oldest first. Those that load what ships with the project are no work.
    """
    session: list[Batch] = []
    for batch in reversed([b for b in batches if b.origin.startswith(_WORK)]):
        if session and session[0].created - batch.created > PAUSE:
            break
        session.insert(0, batch)
    return session


def changes(
    contents: Contents, verdicts: Sequence[Verdict], statuses: Sequence[Status]
) -> list[Change]:
    """Return what the last session has changed, verdicts first, each in the order of the store.

    Args:
        contents: all batches of the ledger.
        verdicts: of all claims, as they are now.
        statuses: of all asserted values, as they are now.
    """
    session = last_session(contents.batches)
    if not session:
        return []
    names = {batch.name for batch in session}
    earlier = tuple(batch for batch in contents.batches if batch.name not in names)
    before = Contents(earlier, ()).current()
    since = session[0].created
    judged = {v.claim_id: v.verdict for v in verdicts_of(before)}
    stood = {(s.paper_id, s.field, s.value): s.status for s in statuses_of(before)}
    claims = (record for record in contents.current() if isinstance(record, Claim))
    papers = {claim.claim_id: claim.paper_id for claim in claims}
    found = [
        Change(
            kind="verdict",
            paper_id=papers[v.claim_id],
            claim_id=v.claim_id,
            before=judged.get(v.claim_id),
            after=v.verdict,
            since=since,
        )
        for v in verdicts
        if judged.get(v.claim_id) != v.verdict
    ]
    return found + [
        Change(
            kind="status",
            paper_id=s.paper_id,
            field=s.field,
            value=s.value,
            before=stood.get((s.paper_id, s.field, s.value)),
            after=s.status,
            since=since,
        )
        for s in statuses
        if stood.get((s.paper_id, s.field, s.value)) != s.status
    ]


def verdicts_of(records: Sequence[Record]) -> list[Verdict]:
    """Return the verdict on each claim of the records by their runs."""
    claims = {claim.claim_id: claim for claim in latest(records, Claim, "claim_id")}
    measured = measurements(current_runs(records))
    return [judge(claim, measured, claims) for claim in claims.values()]


def statuses_of(records: Sequence[Record]) -> list[Status]:
    """Return the status of each value that the records assert, by their checks."""
    known = {paper.paper_id for paper in latest(records, Paper, "paper_id")}
    checks = [r for r in records if isinstance(r, Check) and r.paper_id in known]
    return derive_statuses(latest(records, Assertion, "assertion_id"), checks)
