"""Time by rounds, so that what disturbs the machine disturbs all contenders alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from reimpl.bench.report import Spread

Key = TypeVar("Key", bound=Hashable)
Run = Callable[[], object]
Clock = Callable[[], float]


def interleave(
    jobs: Mapping[Key, Callable[[], Run]], repeats: int, clock: Clock = time.perf_counter
) -> dict[Key, list[float]]:
    """Return the seconds of each job in each of ``repeats`` rounds; a round runs all jobs once.

    A job prepares its inputs and returns what is run twice. Only the second time counts, since then
    caches and allocator are no longer as the job before it left them.
    """
    seconds: dict[Key, list[float]] = {key: [] for key in jobs}
    for _ in range(repeats):
        for key, prepare in jobs.items():
            run = prepare()
            run()
            started = clock()
            run()
            seconds[key].append(clock() - started)
    return seconds


def ratio(of: list[float], to: list[float]) -> Spread:
    """Return the ratio of two jobs' times, taken in each round."""
    return Spread.of([a / b for a, b in zip(of, to, strict=True)])


def exponent(values: Mapping[int, float]) -> float:
    """Return p of the power law n^p that fits values at two or more sizes n best."""
    points = [(math.log(n), math.log(value)) for n, value in values.items()]
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in points)
    return covariance / sum((x - x_mean) ** 2 for x, _ in points)


class Budget:
    """Seconds that may be spent from now on."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._started = clock()

    @property
    def left(self) -> float:
        """Seconds that are left, 0 if none."""
        return max(0.0, self.seconds - (self._clock() - self._started))

    def part(self, share: float) -> Budget:
        """Return a budget of that share of what is left."""
        return Budget(share * self.left, self._clock)
