"""Perplexity by word: the paper's sliding window (Sec. 6.3), and with a state that goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from records.errors import ConfigError
from reimpl.data import Ids
from reimpl.model import LanguageModel

WINDOWS = {"cpu": 16, "cuda": 256}
"""Windows that are read side by side, by device; on a CPU more of them leave its cache."""


@dataclass(frozen=True)
class Score:
    """−log p of all words predicted, in nats, and how many there are."""

    nats: float
    words: int

    @property
    def perplexity(self) -> float:
        """Return exp(nats a word); infinite where that is beyond a float."""
        return math.inf if self.nats / self.words > 700 else math.exp(self.nats / self.words)


@torch.no_grad()
def sliding_window(model: LanguageModel, ids: Ids, *, windows: int | None = None) -> Score:
    """Score every word of ``ids`` but the first, by the paper's evaluation.

    A window of the model's segment slides by one word. All positions of the first window count,
    and of each later one the last: every word is predicted once, from as much context as a window
    holds. ``windows`` are read at a time; the result is that of one at a time. Raises ConfigError
    for a text that has no two words.
    """
    _require_words(ids)
    windows = windows or _windows(model)
    length = min(model.config.segment, len(ids) - 1)
    first = _one_pass(model, ids[: length + 1])
    later = sliding_window_view(ids[1:-1], length) if len(ids) - 2 >= length else ids[:0]
    targets = ids[length + 1 :]
    nats = [first]
    for start in range(0, len(targets), windows):
        h, _ = model(_words(model, later[start : start + windows]), last=True)
        nats.append(_sum(model, h[:, -1], targets[start : start + windows]))
    return Score(float(torch.stack(nats).sum()), len(ids) - 1)


def _one_pass(model: LanguageModel, ids: Ids) -> torch.Tensor:
    h, _ = model(_words(model, ids[None, :-1]))
    return _sum(model, h, ids[None, 1:])


@torch.no_grad()
def carried_context(model: LanguageModel, ids: Ids) -> Score:
    """Score every word of ``ids`` but the first, with a state that goes on from the start.

    The text is read a segment at a time (Table 4). Raises ConfigError for a model whose state
    grows, or whose positions begin anew with each segment.
    """
    _require_words(ids)
    config = model.config
    if config.rule == "softmax" or config.positions:
        raise ConfigError(
            "carried context needs fast weights without positions: the cache of softmax attention "
            "grows with the text, and positions count from the end of a segment"
        )
    nats, states = [], None
    for start in range(0, len(ids) - 1, config.segment):
        words = ids[start : start + config.segment + 1]
        h, states = model(_words(model, words[None, :-1]), states)
        nats.append(_sum(model, h, words[None, 1:]))
    return Score(float(torch.stack(nats).sum()), len(ids) - 1)


@torch.no_grad()
def segments(model: LanguageModel, ids: Ids, carry: bool) -> Score:
    """Score segment after segment, each by itself unless ``carry``: what training optimises.

    Words that do not fill a segment are left out. Much faster than ``sliding_window`` and worse in
    perplexity, since the first words of a segment have little context.
    """
    if carry:
        return carried_context(model, ids)
    length = min(model.config.segment, len(ids) - 1)
    count, windows = (len(ids) - 1) // length, _windows(model)
    inputs, targets = (ids[i : i + count * length].reshape(count, length) for i in (0, 1))
    nats = [
        _sum(model, model(_words(model, inputs[rows]))[0], targets[rows])
        for rows in (slice(i, i + windows) for i in range(0, count, windows))
    ]
    return Score(float(torch.stack(nats).sum()), count * length)


def _require_words(ids: Ids) -> None:
    if len(ids) < 2:
        raise ConfigError(f"a text of {len(ids)} words has none to predict; give at least 2")


def _windows(model: LanguageModel) -> int:
    return WINDOWS.get(model.embedding.weight.device.type, WINDOWS["cpu"])


def _words(model: LanguageModel, ids: Ids) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int64)).to(
        model.embedding.weight.device
    )


def _sum(model: LanguageModel, hidden: torch.Tensor, targets: Ids) -> torch.Tensor:
    return model.nats(hidden, _words(model, targets)).double().sum()
