from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reimpl.experiments.streams import Batch, open_stream

STREAMS = ("authors", "ours")


def same(a: Batch, b: Batch) -> bool:
    return all(
        torch.equal(getattr(a, name), getattr(b, name))
        for name in ("keys", "values", "query", "answer")
    )


@pytest.mark.parametrize("replace", [False, True])
def test_authors_stream_draws_what_numpy_choice_draws(replace: bool) -> None:
    S, length = 6, 12 if replace else 6
    stream = open_stream("authors", S, length, replace, seed=1)
    batch, evaluation = stream.train_batch(3), stream.eval_sequence()
    rng = np.random.RandomState(1)
    for i in range(3):
        keys = rng.choice(np.arange(S), size=(length,), replace=replace)
        values = rng.choice(np.arange(S), size=(length,), replace=replace)
        query = rng.choice(keys)
        answer = values[np.where(keys == query)[0][-1]]
        assert batch.keys[i].tolist() == keys.tolist()
        assert batch.values[i].tolist() == values.tolist()
        assert (batch.query[i].item(), batch.answer[i].item()) == (query, answer)
    assert evaluation.keys[0].tolist() == rng.choice(S, size=(S,), replace=replace).tolist()
    assert evaluation.values[0].tolist() == rng.choice(S, size=(S,), replace=replace).tolist()


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(STREAMS), S=st.integers(2, 12))
def test_answer_is_the_last_value_of_the_key(seed: int, name: str, S: int) -> None:
    batch = open_stream(name, S, 2 * S, True, seed).train_batch(4)
    for keys, values, query, answer in zip(
        batch.keys.tolist(), batch.values.tolist(), batch.query.tolist(), batch.answer.tolist(),
        strict=True,
    ):  # fmt: skip
        assert dict(zip(keys, values, strict=True))[query[0]] == answer[0]


@pytest.mark.parametrize("name", STREAMS)
def test_without_replacement_every_key_and_value_comes_once(name: str) -> None:
    batch = open_stream(name, 9, 9, False, seed=1).train_batch(5)
    assert batch.keys.sort(1).values.tolist() == batch.values.sort(1).values.tolist()
    assert batch.keys.sort(1).values.tolist() == [list(range(9))] * 5


@pytest.mark.parametrize("name", STREAMS)
def test_evaluation_asks_for_the_distinct_keys_in_ascending_order(name: str) -> None:
    sequence = open_stream(name, 15, 30, True, seed=1).eval_sequence()
    assert sequence.keys.shape == (1, 15)
    assert sequence.query[0].tolist() == sorted(set(sequence.keys[0].tolist()))


@pytest.mark.parametrize("name", STREAMS)
def test_evaluation_asks_at_most_200_keys(name: str) -> None:
    sequence = open_stream(name, 230, 230, False, seed=1).eval_sequence()
    assert sequence.query.tolist() == [list(range(200))]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("replace", [False, True])
def test_a_stream_goes_on_from_its_state(name: str, replace: bool) -> None:
    stream = open_stream(name, 7, 7, replace, seed=1)
    stream.train_batch(3)
    state = stream.state()
    expected = stream.train_batch(3)
    other = open_stream(name, 7, 7, replace, seed=1)
    other.restore(state)
    assert same(other.train_batch(3), expected)


def test_streams_leave_the_global_generator_alone() -> None:
    np.random.seed(5)
    before = np.random.get_state()[1].tolist()
    open_stream("authors", 7, 7, False, seed=1).train_batch(2)
    assert np.random.get_state()[1].tolist() == before


def test_seeds_give_different_sequences() -> None:
    first, second = (open_stream("ours", 20, 20, False, seed).train_batch(2) for seed in (1, 2))
    assert not same(first, second)
