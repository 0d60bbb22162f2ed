"""Claims about several points: their value from the values of the points, pure.

A knee, a rank or an order is no number of one run. ``Derivation`` says which other claims are its
points, and each function here makes the one number from theirs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from records.models import Claim, Derivation, Tolerance

Series = tuple[object, ...]


@dataclass(frozen=True)
class Point:
    """One claim with what was measured for it: its place, its series, the value and the course.

    ``value`` and ``course``, (step, value) pairs, are NaN where the training diverged.
    """

    claim: Claim
    series: Series
    place: float
    value: float
    course: tuple[tuple[int, float], ...] = ()


def members(claim: Claim, claims: Mapping[str, Claim]) -> list[Claim]:
    """Return the claims that are the points of ``claim``, in the order of their ids' store."""
    how = _derivation(claim)
    return [
        other
        for other in claims.values()
        if other.paper_id == claim.paper_id
        and other.experiment == claim.experiment
        and (other.metric == how.metric or other.comparison == "diverges")
        and other.derivation is None
        and other.comparison in ("=", "diverges")
        and set(how.series) <= other.conditions.keys()
        and _is_number(other.conditions.get(how.axis))
        and all(other.conditions.get(name) in values for name, values in how.over.items())
    ]


def fault(claim: Claim, points: Sequence[Claim]) -> str | None:
    """Return why a claim can be derived from no measurement of these points; None if it can."""
    how = _derivation(claim)
    if not points:
        return "no claim in the store is one of its points"
    if how.subject and how.subject not in {series(point, how) for point in points}:
        return f"none of its {len(points)} points is of the line {how.subject!r}"
    if how.reduce in ("rank", "rank_by_mean"):
        places = {point.conditions[how.axis] for point in points}
        if len(places) > 1:
            return f"a rank is taken at one place, and its points lie at {len(places)}"
    if len({(series(point, how), point.conditions[how.axis]) for point in points}) < len(points):
        return f"several of its points share a line (by {', '.join(how.series)}) and a place"
    return None


def is_decided(claim: Claim, points: Sequence[Claim], values: Mapping[str, float]) -> bool:
    """Tell whether the values measured so far, by claim id, fix the value of ``claim``.

    A knee is fixed once the first point that fails, and all before it, are measured; everything
    else needs all points.
    """
    how = _derivation(claim)
    for point in sorted(points, key=lambda p: float(p.conditions[how.axis])):
        if point.claim_id not in values:
            return False
        if how.reduce == "knee" and not values[point.claim_id] <= _threshold(how):
            return True
    return bool(points)


def series(claim: Claim, how: Derivation) -> Series:
    """Return what tells a claim's series from another: the conditions that ``how`` names."""
    return tuple(claim.conditions.get(name) for name in how.series)


def derived_value(claim: Claim, points: Sequence[Point]) -> float:
    """Return the value of a derived claim from its points, as many as decide it."""
    how = _derivation(claim)
    return _REDUCTIONS[how.reduce](how, points)


def _derivation(claim: Claim) -> Derivation:
    if claim.derivation is None:
        raise ValueError(f"claim {claim.claim_id} is not derived from others")
    return claim.derivation


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rank(value: float) -> float:
    """Return the value for ordering: a divergence is worse than any number."""
    return math.inf if math.isnan(value) else value


def _knee(how: Derivation, points: Sequence[Point]) -> float:
    """Return the largest place up to which every point is at most the threshold; 0 for none."""
    reached = 0.0
    for point in sorted(points, key=lambda p: p.place):
        if not point.value <= _threshold(how):
            break
        reached = point.place
    return reached


def _lowest(how: Derivation, points: Sequence[Point]) -> float:
    """Return the lowest value; NaN where every point diverged."""
    lowest = min(_rank(point.value) for point in points)
    return lowest if math.isfinite(lowest) else math.nan


def _share_lowest(how: Derivation, points: Sequence[Point]) -> float:
    """Return at what share of the places where another series is above the threshold the subject
    is not, or has the lowest value.
    """
    contested = [
        here
        for here in _by_place(points)
        if any(not p.value <= _threshold(how) for p in here if p.series != how.subject)
    ]
    won = sum(_wins(how, here) for here in contested)
    return won / len(contested) if contested else math.nan


def _wins(how: Derivation, here: Sequence[Point]) -> bool:
    own = next((_rank(p.value) for p in here if p.series == how.subject), math.inf)
    return own <= _threshold(how) or own <= min(_rank(p.value) for p in here)


def _by_place(points: Sequence[Point]) -> list[list[Point]]:
    places = sorted({point.place for point in points})
    return [[point for point in points if point.place == place] for place in places]


def _rank_of_subject(how: Derivation, points: Sequence[Point]) -> float:
    """Return 1 for the lowest value among the series, and so on."""
    return _place_among(how, {point.series: _rank(point.value) for point in points})


def _rank_by_mean(how: Derivation, points: Sequence[Point]) -> float:
    """Return the rank of the subject by its mean up to a step; a course that ended stays there."""
    return _place_among(how, {point.series: _mean_course(how, point) for point in points})


def _place_among(how: Derivation, values: Mapping[Series, float]) -> float:
    """Return the subject's rank; NaN where no line has a value, so that all would be first."""
    if all(map(math.isinf, values.values())):
        return math.nan
    own = values[how.subject]
    return 1.0 + sum(value < own for name, value in values.items() if name != how.subject)


def _mean_course(how: Derivation, point: Point) -> float:
    if not point.course or how.until is None:
        return math.inf
    steps = [step for step, _ in point.course]
    spacing = steps[0]
    values = [_rank(value) for step, value in point.course if step <= how.until]
    missing = how.until // spacing - len(values)
    return statistics.fmean([*values, *[values[-1]] * missing]) if values else math.inf


def _order(how: Derivation, points: Sequence[Point]) -> float:
    """Return the share of pairs, clearly apart in what is claimed, that are measured in the same
    order; NaN where no pair is.
    """
    pairs = [
        (a, b)
        for here in _by_place(points)
        for a, b in combinations(here, 2)
        if _apart(a.claim, b.claim)
    ]
    same = sum(
        (_claimed(a.claim) < _claimed(b.claim)) == (_rank(a.value) < _rank(b.value))
        and _rank(a.value) != _rank(b.value)
        for a, b in pairs
    )
    return same / len(pairs) if pairs else math.nan


def _claimed(claim: Claim) -> float:
    return math.inf if claim.claimed is None else claim.claimed


def _apart(a: Claim, b: Claim) -> bool:
    """Tell whether two claimed values are further apart than either may be measured off."""
    difference = abs(_claimed(a) - _claimed(b))
    return difference > max(margin(c.claimed, c.tolerance) for c in (a, b))


def margin(claimed: float | None, tolerance: Tolerance) -> float:
    """Return how far a measured value may lie from the claimed one; 0 for a divergence."""
    if claimed is None:
        return 0.0
    return max(tolerance.absolute, tolerance.relative * abs(claimed))


def _threshold(how: Derivation) -> float:
    return math.nan if how.threshold is None else how.threshold


_REDUCTIONS: dict[str, Callable[[Derivation, Sequence[Point]], float]] = {
    "knee": _knee,
    "lowest": _lowest,
    "share_lowest": _share_lowest,
    "rank": _rank_of_subject,
    "rank_by_mean": _rank_by_mean,
    "order": _order,
}
