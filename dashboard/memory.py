"""A small fast-weight memory to write into and read from, by ``reimpl.rules``.

The one module of the dashboard, with its page, that imports reimpl, and with it torch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl import rules

COMPARED = {"sum": "sum", "gated_sum": "gated sum", "delta": "delta"}
"""The rules that the page compares, with their names in words."""
DIGITS = 10
MOST_WRITES = 60
_ZERO = 1e-9
_PAIR = re.compile(r"([A-Za-z])\s*=\s*([0-9])")


class Write(NamedTuple):
    """A key, a letter, and the digit to be stored at it."""

    key: str
    value: int


def parse_writes(text: str) -> list[Write]:
    """Return the pairs of a text such as ``A=3 B=5 A=7``.

    Raises:
        ConfigError: the text holds something else, no pair, or more than ``MOST_WRITES``.
    """
    rest = _PAIR.sub(" ", text).replace(",", " ").replace(";", " ").split()
    if rest:
        raise ConfigError(f"{rest[0][:20]!r} is no pair; write a letter, = and a digit: A=3 B=5")
    pairs = [Write(found[1].upper(), int(found[2])) for found in _PAIR.finditer(text)]
    if not pairs:
        raise ConfigError("nothing is written yet; write a letter, = and a digit: A=3 B=5")
    if len(pairs) > MOST_WRITES:
        raise ConfigError(f"{len(pairs)} pairs are too many to show; write {MOST_WRITES} at most")
    return pairs


def keys(count: int, d_key: int, *, orthogonal: bool, seed: int = 0) -> Tensor:
    """Return ``count`` unit keys ``[count, d_key]``, float64.

    Args:
        count: the number of keys.
        d_key: their length, the paper's d_dot.
        orthogonal: whether the first ``d_key`` keys are orthogonal to each other. More than that
            cannot be; the others then are random, as all are without it.
        seed: of the random ones.
    """
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(count, d_key, generator=generator, dtype=torch.float64)
    if orthogonal:
        square = torch.randn(d_key, d_key, generator=generator, dtype=torch.float64)
        first = min(count, d_key)
        random[:first] = torch.linalg.qr(square).Q[:first]
    return torch.nn.functional.normalize(random, dim=-1)


def read_back(
    writes: list[Write], d_key: int, beta: float, *, orthogonal: bool, seed: int = 0
) -> pd.DataFrame:
    """Write the pairs one after the other and read each key once from the state at the end.

    Args:
        writes: the pairs; a digit is stored as a one-hot vector of ``DIGITS``.
        d_key: the length of the keys.
        beta: the write strength β in [0, 1]; the sum rule has none.
        orthogonal, seed: of the keys, see ``keys``.

    Returns:
        One row a rule, key and digit: ``rule`` (in words), ``key``, ``digit``, ``returned`` (the
        component of Sᵀk that stands for the digit), ``written`` (the digit last written there),
        ``returns`` (the digit of the largest component as text, several where they are equal,
        ``nothing`` where none is above 0) and ``right``, whether that is the written one alone.
    """
    names = list(dict.fromkeys(write.key for write in writes))
    table = keys(len(names), d_key, orthogonal=orthogonal, seed=seed)
    k = table[[names.index(write.key) for write in writes]]
    v = torch.eye(DIGITS, dtype=torch.float64)[[write.value for write in writes]]
    last = {write.key: write.value for write in writes}
    rows = []
    for rule, words in COMPARED.items():
        returned = rules.read(_state(rule, k, v, beta), table)
        for name, values in zip(names, returned.tolist(), strict=True):
            largest = _largest(values)
            rows += [
                (words, name, digit, value, last[name], largest, largest == str(last[name]))
                for digit, value in enumerate(values)
            ]
    columns = ["rule", "key", "digit", "returned", "written", "returns", "right"]
    return pd.DataFrame(rows, columns=columns)


def _largest(values: Sequence[float]) -> str:
    most = max(values)
    if most < _ZERO:
        return "nothing"
    return " or ".join(str(n) for n, value in enumerate(values) if most - value < _ZERO)


def _state(rule: str, k: Tensor, v: Tensor, beta: float) -> Tensor:
    """Return the state ``[d_key, d_value]`` after writing ``v`` ``[length, d_value]`` at ``k``."""
    k, v = k[None, :, None], v[None, :, None]
    strength = None if rule == "sum" else torch.full(k.shape[:3], beta, dtype=k.dtype)
    return rules.run_rule(k, k, v, strength, rule=rule).state[0, 0]


def error_by_count(
    d_key: int, beta: float, *, orthogonal: bool, passes: int = 1, draws: int = 8
) -> pd.DataFrame:
    """Return how well each rule returns n values from a state of ``d_key`` rows, for n up to 3 d.

    Each of n keys is written ``passes`` times, in order, always with the same random value of
    ``d_key`` components; then all are read.

    Returns:
        Columns ``rule`` (in words), ``keys`` (n), ``error``: ‖read − v‖² / ‖v‖², over all keys, the
        median of ``draws`` draws of keys and values.
    """
    counts = sorted({max(1, round(d_key * part / 8)) for part in range(1, 25)})
    rows = []
    for count in counts:
        found = [_errors(count, d_key, beta, orthogonal, passes, seed) for seed in range(draws)]
        for at, words in enumerate(COMPARED.values()):
            middle = torch.tensor([errors[at] for errors in found]).median()
            rows.append((words, count, float(middle)))
    return pd.DataFrame(rows, columns=["rule", "keys", "error"])


def _errors(
    count: int, d_key: int, beta: float, orthogonal: bool, passes: int, seed: int
) -> list[float]:
    table = keys(count, d_key, orthogonal=orthogonal, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1_000)
    values = torch.randn(count, d_key, generator=generator, dtype=table.dtype)
    k, v = table.repeat(passes, 1), values.repeat(passes, 1)
    states = [_state(rule, k, v, beta) for rule in COMPARED]
    return [
        float((rules.read(state, table) - values).square().sum() / values.square().sum())
        for state in states
    ]
