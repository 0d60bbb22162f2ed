from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from records.front import front

numbers = st.integers(0, 9).map(float)


def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] >= other[1]


@given(st.lists(st.tuples(numbers, numbers)))
def test_the_front_is_what_no_other_pair_beats_by_rising_cost(
    points: list[tuple[float, float]],
) -> None:
    unbeaten = {p for p in points if not any(beats(other, p) for other in points)}
    assert front(points) == sorted(unbeaten)


def test_a_cheaper_pair_that_gains_as_much_takes_the_place() -> None:
    assert front([(8_960, 0.8), (2_816, 0.8), (34_304, 0.9)]) == [(2_816, 0.8), (34_304, 0.9)]


def test_what_was_not_measured_is_left_out() -> None:
    assert front([(8_960, math.nan), (math.inf, 1.0), (2_816, 0.5)]) == [(2_816, 0.5)]
    assert front([]) == []
