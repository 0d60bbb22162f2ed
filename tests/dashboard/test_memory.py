"""The Memory page's small memory, held against the equations by hand and in numpy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard import memory, memory_charts
from records.errors import ConfigError

PAIRS = st.lists(
    st.tuples(st.sampled_from("ABCDEFGH"), st.integers(0, 9)).map(lambda p: memory.Write(*p)),
    min_size=1,
    max_size=30,
)


def returns(found: pd.DataFrame, rule: str) -> dict[str, str]:
    rows = found[found["rule"] == rule].drop_duplicates("key")
    return dict(zip(rows["key"], rows["returns"], strict=True))


def test_pairs_are_read_in_any_spacing() -> None:
    wanted = [memory.Write("A", 3), memory.Write("B", 5)]
    assert memory.parse_writes(" a=3,B = 5;") == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [("A=3 B", "'B' is no pair"), ("A=33", "'3' is no pair"), ("", "nothing is written")],
)
def test_what_is_no_pair_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memory.parse_writes(text)


def test_too_many_pairs_are_refused() -> None:
    with pytest.raises(ConfigError, match="61 pairs are too many"):
        memory.parse_writes("A=1 " * 61)


@given(writes=PAIRS)
@settings(max_examples=30, deadline=None)
def test_with_orthogonal_keys_the_delta_rule_returns_what_was_written_last(
    writes: list[memory.Write],
) -> None:  # Eq. 24 at β = 1: the old value is taken off its key, no other key is touched
    found = memory.read_back(writes, 8, 1.0, orthogonal=True)
    assert returns(found, "delta") == {write.key: str(write.value) for write in writes}
    assert found[found["rule"] == "delta"]["right"].all()


def test_a_tie_and_an_empty_read_are_called_so() -> None:
    found = memory.read_back(memory.parse_writes("A=3 B=5 A=7"), 4, 1.0, orthogonal=True)
    assert returns(found, "sum") == {"A": "3 or 7", "B": "5"}
    assert returns(found, "gated sum") == {"A": "7", "B": "nothing"}
    assert found.groupby(["rule", "key"])["right"].first()["sum", "A"] is np.False_


@given(writes=PAIRS, beta=st.floats(0, 1), d_key=st.integers(2, 12))
@settings(max_examples=30, deadline=None)
def test_states_are_those_of_the_equations(
    writes: list[memory.Write], beta: float, d_key: int
) -> None:
    names = list(dict.fromkeys(write.key for write in writes))
    k = memory.keys(len(names), d_key, orthogonal=False).numpy()
    S = {rule: np.zeros((d_key, memory.DIGITS)) for rule in memory.COMPARED}
    for write in writes:
        at, v = k[names.index(write.key)], np.eye(memory.DIGITS)[write.value]
        S["sum"] += np.outer(at, v)  # Eq. 17
        S["gated_sum"] = (1 - beta) * S["gated_sum"] + beta * np.outer(at, v)  # Eq. 52
        S["delta"] = S["delta"] + beta * np.outer(at, v - at @ S["delta"])  # Eq. 24
    found = memory.read_back(writes, d_key, beta, orthogonal=False)
    for rule, words in memory.COMPARED.items():
        rows = found[found["rule"] == words]
        returned = rows["returned"].to_numpy().reshape(len(names), memory.DIGITS)
        np.testing.assert_allclose(returned, k @ S[rule], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("count", "d_key"), [(3, 8), (8, 8), (12, 8)])
def test_keys_are_orthogonal_as_far_as_they_can_be(count: int, d_key: int) -> None:
    found = memory.keys(count, d_key, orthogonal=True).numpy()
    first = found[:d_key]
    np.testing.assert_allclose(first @ first.T, np.eye(len(first)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-12)


def test_up_to_d_keys_are_returned_and_more_are_not() -> None:
    errors = memory.error_by_count(8, 1.0, orthogonal=True, draws=3)
    wide = errors.pivot(index="keys", columns="rule", values="error")
    assert (wide.loc[:8, ["sum", "delta"]] < 1e-20).all().all()
    assert (wide.loc[10:, ["sum", "delta"]] > 0.05).all().all()


def test_random_keys_written_again_help_the_delta_rule_alone() -> None:
    once, often = (
        memory.error_by_count(16, 1.0, orthogonal=False, passes=passes, draws=5)
        .set_index(["rule", "keys"])["error"]
        for passes in (1, 5)
    )  # fmt: skip
    assert often["delta", 8] < once["delta", 8] / 2
    assert often["sum", 8] > once["sum", 8]


def test_the_map_draws_a_number_a_digit_and_boxes_the_written_one() -> None:
    found = memory.read_back([memory.Write("A", 3)], 4, 1.0, orthogonal=True)
    spec = memory_charts.returned(found[found["rule"] == "sum"]).to_dict()
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rect", "text", "rect"]
    (rows,) = spec["datasets"].values()
    assert [row["digit"] for row in rows if row["boxed"]] == [3]


def test_the_error_chart_marks_the_length_of_the_keys() -> None:
    errors = memory.error_by_count(4, 1.0, orthogonal=True, draws=1)
    spec = memory_charts.error_by_count(errors, 4).to_dict()
    assert [{"keys": 4, "label": "d_dot = 4"}] in spec["datasets"].values()
