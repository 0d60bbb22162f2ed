"""A claim against its runs: pure, without torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from records.derive import Point, derived_value, fault, is_decided, margin, members, series
from records.models import Claim, Metric, Run, Tolerance, Verdict, VerdictName

RULE_VERSION = 4
ENOUGH_SEEDS = 3
"""Seeds of our own streams that weigh more than a replay of the authors'."""


@dataclass(frozen=True)
class Measurement:
    """One measurement of one claim: the metric, and the run that it came from."""

    metric: Metric
    run: Run

    @property
    def mode(self) -> str:
        """Whose random streams the run drew from: ``authors``, ``ours``, or ``any``."""
        return "authors" if self.metric.replay else str(self.run.config.get("stream", "any"))


MODES = ("authors", "ours")
Measured = Mapping[str, Sequence[Measurement]]


def measurements(runs: Sequence[Run]) -> dict[str, list[Measurement]]:
    """Group the metrics that measure a claim by its id.

    Of equal settings the newest run counts, and a shipped one only where none was made here.
    """
    newest: dict[tuple[str, str, int, str, str], Measurement] = {}
    for run in sorted(runs, key=lambda run: (not run.shipped, run.finished)):
        for metric in run.metrics:
            if metric.claim_id is not None:
                found = Measurement(metric, run)
                key = (metric.claim_id, metric.name, run.seed, metric.scale, found.mode)
                newest[key] = found
    grouped: dict[str, list[Measurement]] = {}
    for measurement in newest.values():
        grouped.setdefault(str(measurement.metric.claim_id), []).append(measurement)
    return grouped


def judge(claim: Claim, measured: Measured, claims: Mapping[str, Claim] | None = None) -> Verdict:
    """Judge a claim.

    Measurements under the claim's own conditions decide between ``reproduced`` and ``not
    reproduced``. Where there are only smaller ones, the claim can at most have its direction
    reproduced: the same order against the claim that it is compared to. Three or more seeds of our
    own streams weigh more than a replay of the authors' streams. A replay is held to its own,
    narrower tolerance (rule ``replay``); where rounding has made it drift beyond that, it is one
    more seed, held to the general tolerance (rule ``value``), and the reason says so. A claim
    about several points (rule ``derived``) is judged by those of one mode, once they decide it.

    Args:
        claim: the claim to judge.
        measured: all measurements by claim id, as ``measurements`` groups them.
        claims: all claims by id; needed where ``claim`` is derived from some or compared to one.
    """
    if claim.derivation is not None:
        return _judge_derived(claim, measured, claims or {}, MODES)
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


def judge_modes(
    claim: Claim, measured: Measured, claims: Mapping[str, Claim]
) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdict of each mode in which the claim was measured under its own conditions."""
    for mode in MODES:
        if claim.derivation is not None:
            found = _judge_derived(claim, measured, claims, (mode,))
            if found.verdict != "not run":
                yield mode, found
            continue
        own = _full(claim, measured, mode)
        if own:
            yield mode, _judge_value(claim, own)


def _full(claim: Claim, measured: Measured, mode: str) -> list[Measurement]:
    """Return what was measured under the claim's own conditions in one mode."""
    return [
        m
        for m in measured.get(claim.claim_id, ())
        if m.metric.name == claim.metric and m.metric.scale == "paper" and m.mode == mode
    ]


def _weightiest(measured: Sequence[Measurement]) -> list[Measurement]:
    ours = [m for m in measured if m.mode != "authors"]
    authors = [m for m in measured if m.mode == "authors"]
    return ours if len(ours) >= ENOUGH_SEEDS or not authors else authors


def _judge_derived(
    claim: Claim, measured: Measured, claims: Mapping[str, Claim], modes: Sequence[str]
) -> Verdict:
    """Judge by the points of one mode: ours where it has enough seeds, else the first decided."""
    how = claim.derivation
    assert how is not None
    points = members(claim, claims)
    wrong = fault(claim, points)
    if wrong is not None:
        return _underived(claim, wrong)
    found = [_measured_points(points, measured, mode) for mode in modes]
    decided = [each for each in found if _decides(claim, points, each)]
    if not decided:
        count = max(map(len, found))
        need = "all before a failure" if how.reduce == "knee" else "all"
        return _underived(
            claim, f"{count} of its {len(points)} points are measured; {need} are needed"
        )
    many = [each for each in decided if min(map(len, each.values())) >= ENOUGH_SEEDS]
    return _judge_points(claim, points, (many or decided)[0])


def _underived(claim: Claim, reason: str) -> Verdict:
    return Verdict(
        claim_id=claim.claim_id, verdict="not run", rule=f"derived-{RULE_VERSION}", reason=reason
    )


def _measured_points(points: Sequence[Claim], measured: Measured, mode: str) -> Measured:
    """Return the measurements of one mode by claim id, for the points that it has measured."""
    found = {point.claim_id: _full(point, measured, mode) for point in points}
    return {claim_id: each for claim_id, each in found.items() if each}


def _decides(claim: Claim, points: Sequence[Claim], found: Measured) -> bool:
    return is_decided(claim, points, {name: _median(each) for name, each in found.items()})


def _judge_points(claim: Claim, wanted: Sequence[Claim], found: Measured) -> Verdict:
    points = [p for p in wanted if p.claim_id in found]
    value = derived_value(claim, [_point(claim, p, found[p.claim_id]) for p in points])
    if math.isnan(value) and claim.comparison != "diverges":
        return _underived(claim, f"its {len(points)} points leave its value undefined")
    used = [m for p in points for m in found[p.claim_id]]
    holds = _holds(claim, value, claim.tolerance)
    whole = len(points) == len(wanted)
    part = "" if whole else f" of its {len(wanted)}"
    noun = "point" if len(wanted) == 1 else "points"
    reason = (
        f"measured {value:.6g} from {len(points)}{part} {noun} ({_streams_text(used)}) against "
        f"{_claimed_text(claim, claim.tolerance)}"
    )
    name: VerdictName = "reproduced" if holds else "not reproduced"
    return Verdict(
        claim_id=claim.claim_id,
        verdict=name,
        reason=reason,
        rule=f"derived-{RULE_VERSION}",
        measured=value,
        spread=_derived_spread(claim, points, found) if whole else None,
        seeds=tuple(sorted({m.run.seed for m in used})),
        run_ids=tuple(dict.fromkeys(m.run.run_id for m in used)),
        margin=None if claim.claimed is None else margin(claim.claimed, claim.tolerance),
    )


def _point(claim: Claim, point: Claim, measured: Sequence[Measurement]) -> Point:
    how = claim.derivation
    assert how is not None
    return Point(
        claim=point,
        series=series(point, how),
        place=float(point.conditions[how.axis]),
        value=_median(measured),
        course=_course(how.metric, measured),
    )


def _course(metric: str, measured: Sequence[Measurement]) -> tuple[tuple[int, float], ...]:
    """Return the median course of the runs; one that has ended stays at its last value."""
    courses = [
        {m.step: m.value for m in each.run.metrics if m.name == f"{metric}_curve" and m.step}
        for each in measured
    ]
    if not all(courses):
        return ()
    steps = sorted({step for course in courses for step in course})
    return tuple((step, _middle([_held(course, step) for course in courses])) for step in steps)


def _held(course: Mapping[int, float], step: int) -> float:
    """Return the value of a course at a step: the last one up to there, or its first."""
    return course[max((s for s in course if s <= step), default=min(course))]


def _derived_spread(claim: Claim, points: Sequence[Claim], found: Measured) -> float | None:
    """Return the deviation over the seeds that measured all points; None for fewer than two."""
    seeds = set.intersection(*({m.run.seed for m in found[p.claim_id]} for p in points))
    values = [
        derived_value(
            claim,
            [_point(claim, p, [m for m in found[p.claim_id] if m.run.seed == s]) for p in points],
        )
        for s in sorted(seeds)
    ]
    return statistics.stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else None


def _judge_value(claim: Claim, measured: Sequence[Measurement]) -> Verdict:
    value = _median(measured)
    how, held_to, rule = _streams_text(measured), claim.tolerance, "value"
    if measured[0].metric.replay:
        if claim.replay_tolerance and _holds(claim, value, claim.replay_tolerance):
            held_to, rule = claim.replay_tolerance, "replay"
        elif claim.replay_tolerance:
            how += ", which drifts from their log"
    holds = _holds(claim, value, held_to)
    reason = f"measured {value:.6g} ({how}) against {_claimed_text(claim, held_to)}"
    found = _verdict(claim, measured, "reproduced" if holds else "not reproduced", rule, reason)
    wide = None if claim.claimed is None else margin(claim.claimed, held_to)
    return found.model_copy(update={"margin": wide})


def _holds(claim: Claim, value: float, tolerance: Tolerance) -> bool:
    if claim.comparison == "diverges":
        return not math.isfinite(value)
    assert claim.claimed is not None
    if not math.isfinite(value):
        return False
    wide = margin(claim.claimed, tolerance)
    return {
        "=": abs(value - claim.claimed) <= wide,
        "<": value < claim.claimed + wide,
        "<=": value <= claim.claimed + wide,
        ">": value > claim.claimed - wide,
        ">=": value >= claim.claimed - wide,
    }[claim.comparison]


def _claimed_text(claim: Claim, tolerance: Tolerance) -> str:
    if claim.claimed is None:
        return "divergence"
    wide = margin(claim.claimed, tolerance)
    sign = "" if claim.comparison == "=" else f"{claim.comparison} "
    return f"{sign}{claim.claimed:.6g}" + (f" ± {wide:.2g}" if wide else "")


def _judge_direction(
    claim: Claim,
    own: Sequence[Measurement],
    claims: Mapping[str, Claim],
    measured: Measured,
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
    several = min(len({m.run.seed for m in each}) for each in (own, other)) > 1
    how_far = "beyond the seeds' spread" if several else "in one seed, the spread being unknown"
    reason = (
        f"at a smaller scale: {value:.6g} against {_median(other):.6g} for {baseline.claim_id}; "
        f"the paper's order {'holds' if holds else 'does not hold'} {how_far}"
    )
    return _verdict(
        claim, own, "direction reproduced" if holds else "not reproduced", "direction", reason
    )


def _same_order(
    claim: Claim, baseline: Claim, own: Sequence[Measurement], other: Sequence[Measurement]
) -> bool:
    """Tell whether all seeds of the one lie on the paper's side of all seeds of the other.

    A claim of divergence needs divergence, whatever the order; one of a finite value is not borne
    out by a run that diverged.
    """
    mine, theirs = _ranks(own), _ranks(other)
    if claim.comparison == "diverges":
        return all(map(math.isinf, mine))
    if claim.comparison not in (">", ">=") and any(map(math.isinf, mine)):
        return False
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
    """Return the median over the measurements."""
    return _middle([m.metric.value for m in measured])


def _middle(values: Sequence[float]) -> float:
    """Return the median, a NaN (a diverged run) counting as worse than any number."""
    middle = statistics.median(math.inf if math.isnan(v) else v for v in values)
    return math.nan if math.isinf(middle) and any(map(math.isnan, values)) else middle


def _seeds_text(measured: Sequence[Measurement]) -> str:
    count = len({m.run.seed for m in measured})
    return "1 seed" if count == 1 else f"median of {count} seeds"


def _streams_text(measured: Sequence[Measurement]) -> str:
    """Say which random streams the runs drew from: ours, the authors', or these only in part."""
    if measured[0].mode != "authors":
        return _seeds_text(measured)
    if all(m.metric.replay for m in measured):
        return "replaying the authors' streams"
    return f"{_seeds_text(measured)}; not all of the authors' draws can be repeated here"


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
