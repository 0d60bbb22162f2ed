"""Random sequences of key-value pairs for the retrieval task (Sec. 6.1).

Two streams: ``authors`` draws what the authors' program drew (NumPy's legacy generator, seed 1),
so that their logs can be replayed; ``ours`` is for further seeds. Keys and values are numbers
from 0 to S−1; each sequence has one query, answered by the value last written for that key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

MAX_QUERIES = 200
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sequences ``keys``, ``values`` ``[batch, length]``; ``query``, ``answer`` ``[batch, n]``.

    In training n is 1; in an evaluation one sequence (batch 1) gets all the queries.
    """

    keys: Tensor
    values: Tensor
    query: Tensor
    answer: Tensor


class Stream(Protocol):
    """A source of batches whose position can be kept in a checkpoint."""

    def train_batch(self, batch: int) -> Batch:
        """Return ``batch`` sequences of length L with one query each."""

    def eval_sequence(self) -> Batch:
        """Return one sequence of length S with its distinct keys, at most 200, as queries."""

    def state(self) -> dict[str, Any]:
        """Return the position in the stream, as tensors and numbers."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a position that ``state`` returned."""


class AuthorsStream:
    """The authors' draws, in their order: for each sequence its keys, its values, its query."""

    def __init__(self, S: int, length: int, replace: bool, seed: int) -> None:
        self.S, self.length, self.replace = S, length, replace
        self._rng = np.random.RandomState(seed)

    def _symbols(self, length: int) -> Ints:
        if self.replace:
            return self._rng.randint(0, self.S, size=length).astype(np.int64)
        return self._rng.permutation(self.S)[:length].astype(np.int64)

    def train_batch(self, batch: int) -> Batch:
        """Return ``batch`` sequences of length L with one query each."""
        keys, values = np.empty((2, batch, self.length), dtype=np.int64)
        place = np.empty(batch, dtype=np.int64)
        for i in range(batch):
            keys[i], values[i] = self._symbols(self.length), self._symbols(self.length)
            place[i] = self._rng.randint(0, self.length)
        return with_queries(keys, values, place)

    def eval_sequence(self) -> Batch:
        """Return one sequence of length S with its distinct keys, at most 200, as queries."""
        return with_all_queries(self._symbols(self.S), self._symbols(self.S))

    def state(self) -> dict[str, Any]:
        """Return the generator's state."""
        _, words, position, has_gauss, gauss = self._rng.get_state(legacy=True)
        return {
            "words": torch.from_numpy(np.asarray(words).astype(np.int64)),
            "rest": [int(position), int(has_gauss), float(gauss)],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Set the generator to a state that ``state`` returned."""
        words = state["words"].numpy().astype(np.uint32)
        self._rng.set_state(("MT19937", words, *state["rest"]))


class OurStream:
    """The same task from a generator of our own: whole batches at a time, any seed."""

    def __init__(self, S: int, length: int, replace: bool, seed: int) -> None:
        self.S, self.length, self.replace = S, length, replace
        self._rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, S])))

    def _symbols(self, batch: int, length: int) -> Ints:
        if self.replace:
            return self._rng.integers(0, self.S, size=(batch, length))
        order = np.tile(np.arange(self.S, dtype=np.int64), (batch, 1))
        return self._rng.permuted(order, axis=1)[:, :length]

    def train_batch(self, batch: int) -> Batch:
        """Return ``batch`` sequences of length L with one query each."""
        keys, values = self._symbols(batch, self.length), self._symbols(batch, self.length)
        return with_queries(keys, values, self._rng.integers(0, self.length, size=batch))

    def eval_sequence(self) -> Batch:
        """Return one sequence of length S with its distinct keys, at most 200, as queries."""
        return with_all_queries(self._symbols(1, self.S)[0], self._symbols(1, self.S)[0])

    def state(self) -> dict[str, Any]:
        """Return the generator's state; its 128-bit numbers as text."""
        inner = self._rng.bit_generator.state
        words = {name: str(value) for name, value in inner["state"].items()}
        return {"words": words, "rest": [int(inner["has_uint32"]), int(inner["uinteger"])]}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the generator to a state that ``state`` returned."""
        has_uint32, uinteger = state["rest"]
        self._rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {name: int(value) for name, value in state["words"].items()},
            "has_uint32": has_uint32,
            "uinteger": uinteger,
        }


def with_queries(keys: Ints, values: Ints, place: Ints) -> Batch:
    """Ask each sequence for the key at ``place``; the answer is at that key's last position."""
    rows = np.arange(len(keys))
    query = keys[rows, place]
    same = keys == query[:, None]
    last = keys.shape[1] - 1 - same[:, ::-1].argmax(axis=1)
    return _tensors(keys, values, query[:, None], values[rows, last][:, None])


def with_all_queries(keys: Ints, values: Ints) -> Batch:
    """Ask one sequence for each of its distinct keys in ascending order, at most 200."""
    query, from_end = np.unique(keys[::-1], return_index=True)
    answer = values[len(keys) - 1 - from_end]
    return _tensors(keys[None], values[None], query[None, :MAX_QUERIES], answer[None, :MAX_QUERIES])


def _tensors(*arrays: Ints) -> Batch:
    return Batch(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays))


def open_stream(name: str, S: int, length: int, replace: bool, seed: int) -> Stream:
    """Return the stream ``authors`` or ``ours`` at its beginning."""
    kind = AuthorsStream if name == "authors" else OurStream
    return kind(S, length, replace, seed)
