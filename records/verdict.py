"""A claim against its runs: pure, without torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from records.models import Claim, Metric, Run, Tolerance, Verdict, VerdictName

RULE_VERSION = 2


@dataclass(frozen=True)
class Measurement:
    """One measurement of one claim: the metric, and the run that it came from."""

    metric: Metric
    run: Run


def measurements(runs: Sequence[Run]) -> dict[str, list[Measurement]]:
    """Group the metrics that measure a claim by its id; of equal settings the newest run counts."""
    newest: dict[tuple[str, str, int, str, bool], Measurement] = {}
    for run in sorted(runs, key=lambda run: run.finished):
        for metric in run.metrics:
            if metric.claim_id is not None:
                key = (metric.claim_id, metric.name, run.seed, metric.scale, metric.replay)
                newest[key] = Measurement(metric, run)
    grouped: dict[str, list[Measurement]] = {}
    for measurement in newest.values():
        grouped.setdefault(str(measurement.metric.claim_id), []).append(measurement)
    return grouped


def judge(
    claim: Claim,
    measured: Mapping[str, Sequence[Measurement]],
    claims: Mapping[str, Claim] | None = None,
) -> Verdict:
    """Judge a claim.

    Measurements under the claim's own conditions decide between ``reproduced`` and ``not
    reproduced``. Where there are only smaller ones, the claim can at most have its direction
    reproduced: the same order against the claim that it is compared to. Three or more seeds of our
    own streams weigh more than a replay of the authors' streams. A replay is held to its own,
    narrower tolerance (rule ``replay``); where rounding has made it drift beyond that, it is one
    more seed, held to the general tolerance (rule ``value``), and the reason says so.

    Args:
        claim: the claim to judge.
        measured: all measurements by claim id, as ``measurements`` groups them.
        claims: all claims by id; needed where ``claim.compared_to`` names one.
    """
    own = [m for m in measured.get(claim.claim_id, ()) if m.metric.name == claim.metric]
    full = [m for m in own if m.metric.scale == "paper"]
    if full:
        return _judge_value(claim, _weightiest(full))
    if own:
        return _judge_direction(claim, own, claims or {}, measured)
    return Verdict(
        claim_id=claim.claim_id,
        verdict="not run",
        rule=f"none-{RULE_VERSION}",
        reason="no run has measured this claim yet",
    )


def _weightiest(measured: Sequence[Measurement]) -> list[Measurement]:
    fresh = [m for m in measured if not m.metric.replay]
    replays = [m for m in measured if m.metric.replay]
    return fresh if len(fresh) >= 3 or not replays else replays


def _judge_value(claim: Claim, measured: Sequence[Measurement]) -> Verdict:
    value = _median(measured)
    how, held_to, rule = _seeds_text(measured), claim.tolerance, "value"
    if measured[0].metric.replay:
        how = "replaying the authors' streams"
        if claim.replay_tolerance and _holds(claim, value, claim.replay_tolerance):
            held_to, rule = claim.replay_tolerance, "replay"
        elif claim.replay_tolerance:
            how += ", which drifts from their log"
    holds = _holds(claim, value, held_to)
    reason = f"measured {value:.6g} ({how}) against {_claimed_text(claim, held_to)}"
    found = _verdict(claim, measured, "reproduced" if holds else "not reproduced", rule, reason)
    margin = None if claim.claimed is None else _margin(claim.claimed, held_to)
    return found.model_copy(update={"margin": margin})


def _holds(claim: Claim, value: float, tolerance: Tolerance) -> bool:
    if claim.comparison == "diverges":
        return not math.isfinite(value)
    assert claim.claimed is not None
    if not math.isfinite(value):
        return False
    margin = _margin(claim.claimed, tolerance)
    return {
        "=": abs(value - claim.claimed) <= margin,
        "<": value < claim.claimed + margin,
        "<=": value <= claim.claimed + margin,
        ">": value > claim.claimed - margin,
        ">=": value >= claim.claimed - margin,
    }[claim.comparison]


def _margin(claimed: float, tolerance: Tolerance) -> float:
    return max(tolerance.absolute, tolerance.relative * abs(claimed))


def _claimed_text(claim: Claim, tolerance: Tolerance) -> str:
    if claim.claimed is None:
        return "divergence"
    margin = _margin(claim.claimed, tolerance)
    sign = "" if claim.comparison == "=" else f"{claim.comparison} "
    return f"{sign}{claim.claimed:.6g}" + (f" ± {margin:.2g}" if margin else "")


def _judge_direction(
    claim: Claim,
    own: Sequence[Measurement],
    claims: Mapping[str, Claim],
    measured: Mapping[str, Sequence[Measurement]],
) -> Verdict:
    baseline = claims.get(claim.compared_to or "")
    other = [
        m
        for m in measured.get(claim.compared_to or "", ())
        if m.metric.name == claim.metric and m.metric.scale == "reduced"
    ]
    value = _median(own)
    if baseline is None or not other:
        reason = (
            f"measured {value:.6g}, but only at a smaller scale, with nothing to compare its "
            "order to"
        )
        return _verdict(claim, own, "not run", "direction", reason)
    holds = _same_order(claim, baseline, own, other)
    reason = (
        f"at a smaller scale: {value:.6g} against {_median(other):.6g} for {baseline.claim_id}; "
        f"the paper's order {'holds' if holds else 'does not hold'} beyond the seeds' spread"
    )
    return _verdict(
        claim, own, "direction reproduced" if holds else "not reproduced", "direction", reason
    )


def _same_order(
    claim: Claim, baseline: Claim, own: Sequence[Measurement], other: Sequence[Measurement]
) -> bool:
    """Tell whether all seeds of the one lie on the paper's side of all seeds of the other."""
    mine, theirs = _ranks(own), _ranks(other)
    claimed, base = _rank(claim.claimed), _rank(baseline.claimed)
    if claimed < base:
        return max(mine) < min(theirs)
    return claimed > base and min(mine) > max(theirs)


def _ranks(measured: Sequence[Measurement]) -> list[float]:
    return [_rank(m.metric.value) for m in measured]


def _rank(value: float | None) -> float:
    """Return the value for ordering: divergence (None or NaN) is beyond every number."""
    return math.inf if value is None or math.isnan(value) else value


def _median(measured: Sequence[Measurement]) -> float:
    """Return the median, a NaN (a diverged run) counting as worse than any number."""
    values = [m.metric.value for m in measured]
    middle = statistics.median(math.inf if math.isnan(v) else v for v in values)
    return math.nan if math.isinf(middle) and any(map(math.isnan, values)) else middle


def _seeds_text(measured: Sequence[Measurement]) -> str:
    count = len({m.run.seed for m in measured})
    return "1 seed" if count == 1 else f"median of {count} seeds"


def _verdict(
    claim: Claim, measured: Sequence[Measurement], name: VerdictName, rule: str, reason: str
) -> Verdict:
    values = [m.metric.value for m in measured]
    finite = all(map(math.isfinite, values))
    return Verdict(
        claim_id=claim.claim_id,
        verdict=name,
        reason=reason,
        rule=f"{rule}-{RULE_VERSION}",
        measured=_median(measured),
        spread=statistics.stdev(values) if len(values) > 1 and finite else None,
        seeds=tuple(sorted({m.run.seed for m in measured})),
        run_ids=tuple(dict.fromkeys(m.run.run_id for m in measured)),
    )
