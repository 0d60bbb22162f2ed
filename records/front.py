"""The Pareto front of what costs something and brings something: pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

Pair = tuple[float, float]


def front(points: Iterable[Pair]) -> list[Pair]:
    """Return the (cost, gain) pairs that none of the others beats, by rising cost.

    One pair beats another that costs at least as much and gains at most as much, unless the two are
    equal; equal ones are returned once. Here cost is the bytes of a state and gain an accuracy.
    A pair that is not finite has not been measured and is left out.
    """
    best = -math.inf
    kept: list[Pair] = []
    finite = {p for p in points if all(map(math.isfinite, p))}
    for cost, gain in sorted(finite, key=lambda p: (p[0], -p[1])):
        if gain > best:
            kept.append((cost, gain))
            best = gain
    return kept
