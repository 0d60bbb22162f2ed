"""Sequences of multi-query associative recall (MQAR, Arora et al. 2023), drawn batch by batch.

A sequence of ``length`` symbols opens with n pairs, key value key value …; then each key is asked
once. Keys are n different symbols of 1 … V/2 − 1, values n different ones of V/2 … V − 1. The
queries stand at every second place after the pairs: place i (from 0) is drawn with probability
proportional to (i + 1)^(a − 1), without replacement, so that for a near 0 most queries follow soon
(a power law) and for a = 1 they are uniform. All other symbols are drawn from the whole vocabulary.

Every batch has a seed of its own, made of the point's seed, its use, its segment and its number:
nothing needs to be kept between epochs, and a resumed run draws the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from reimpl.experiments.mqar_point import MqarPoint, Segment

TRAINING, TEST, ORDER, DROPOUT = range(4)
"""What a stream of random numbers is for."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """``inputs`` ``[batch, length]``; the keys at ``places`` ``[batch, n]`` ask for ``answers``."""

    inputs: Tensor
    places: Tensor
    answers: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(self.inputs.to(device), self.places.to(device), self.answers.to(device))


def generator(*words: int) -> np.random.Generator:
    """Return the random numbers that belong to these words."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def draw(
    rng: np.random.Generator, batch: int, segment: Segment, vocabulary: int, power: float
) -> Batch:
    """Return ``batch`` sequences of a segment."""
    n, half = segment.pairs, vocabulary // 2
    inputs = rng.integers(0, vocabulary, (batch, segment.length))
    keys = _distinct(rng, batch, n, half - 1) + 1
    values = _distinct(rng, batch, n, vocabulary - half) + half
    inputs[:, 0 : 2 * n : 2], inputs[:, 1 : 2 * n : 2] = keys, values
    places = 2 * n + 2 * query_places(rng, batch, n, segment.length // 2 - n, power)
    np.put_along_axis(inputs, places, keys, axis=1)
    return Batch(*(torch.from_numpy(x) for x in (inputs, places, values)))


def _distinct(rng: np.random.Generator, batch: int, n: int, count: int) -> Ints:
    """Return n different numbers of 0 … count − 1 for each sequence, in random order."""
    order = np.tile(np.arange(count, dtype=np.int64), (batch, 1))
    return rng.permuted(order, axis=1)[:, :n]


def query_places(rng: np.random.Generator, batch: int, n: int, count: int, power: float) -> Ints:
    """Return for each sequence n different places of 0 … count − 1, by the power law.

    Exponential waiting times with rates (i + 1)^(a − 1): the order in which places come first is
    that of drawing one after the other without replacement.
    """
    rates = np.arange(1, count + 1) ** (power - 1.0)
    arrivals = rng.standard_exponential((batch, count)) / rates
    return arrivals.argsort(axis=1)[:, :n].astype(np.int64)


def epoch_batches(point: MqarPoint, epoch: int) -> Iterator[Batch]:
    """Yield the training batches, the same ones in every epoch, in an order of the epoch's own."""
    numbers = [
        (s, i) for s, segment in enumerate(point.training) for i in range(_count(point, segment))
    ]
    for place in generator(point.seed, ORDER, epoch).permutation(len(numbers)):
        yield _batch(point, TRAINING, *numbers[place])


def steps_per_epoch(point: MqarPoint) -> int:
    """Return how many batches an epoch has."""
    return sum(_count(point, segment) for segment in point.training)


def test_batches(point: MqarPoint, segment: int) -> Iterator[Batch]:
    """Yield the batches of a test segment, the same ones at every evaluation."""
    for i in range(_count(point, point.test[segment])):
        yield _batch(point, TEST, segment, i)


def _count(point: MqarPoint, segment: Segment) -> int:
    return -(-segment.examples // point.batch)


def _batch(point: MqarPoint, use: int, s: int, i: int) -> Batch:
    segment = (point.training if use == TRAINING else point.test)[s]
    size = min(point.batch, segment.examples - i * point.batch)
    rng = generator(point.seed, use, s, i)
    return draw(rng, size, segment, point.vocabulary, point.power)
