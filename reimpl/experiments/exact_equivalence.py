"""Sec. 3 and App. A.1: two ways of writing the same thing give the same numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from reimpl.experiments.exact import Measured
from reimpl.feature_maps import Elu1
from reimpl.rules import delta_step, linear_attention, replace_step, run_rule

SHAPES = ((1, 1, 1, 4, 3), (2, 17, 3, 8, 5), (1, 128, 2, 16, 16), (2, 64, 4, 64, 32))
"""Batch, length, heads, d_key, d_value."""


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, as a fraction of the largest expected value."""
    return float((found - expected).abs().max() / expected.abs().max())


def measure(seed: int) -> Measured:
    """Return the largest relative errors over ``SHAPES``."""
    generator = torch.Generator().manual_seed(seed)
    inputs = [_draw(shape, generator) for shape in SHAPES]
    name = "max_relative_error"
    return {
        "linear-attention": (name, max(_attention_error(x, False) for x in inputs)),
        "linear-attention-normalised": (name, max(_attention_error(x, True) for x in inputs)),
        "delta-two-forms": (name, max(_delta_error(x) for x in inputs)),
    }


def _draw(shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, ...]:
    batch, length, heads, d_key, d_value = shape

    def normal(size: int) -> Tensor:
        return torch.randn(batch, length, heads, size, generator=generator, dtype=torch.float64)

    phi = Elu1()
    beta = torch.sigmoid(normal(1)).squeeze(-1)
    return phi(normal(d_key)), phi(normal(d_key)), normal(d_value), beta


def _attention_error(x: tuple[Tensor, ...], normalise: bool) -> float:
    q, k, v, _ = x
    normalisation = "attention" if normalise else "none"
    by_state = run_rule(q, k, v, rule="sum", normalisation=normalisation).output
    return relative_error(by_state, linear_attention(q, k, v, normalise=normalise))


def _delta_error(x: tuple[Tensor, ...]) -> float:
    """Compare the states of Eq. 23 and Eq. 24 after every write, each form on its own state."""
    _, k, v, beta = x
    k = k / k.norm(dim=-1, keepdim=True)
    one = other = torch.zeros(*k.shape[::2], k.shape[3], v.shape[3], dtype=torch.float64)
    worst = 0.0
    for i in range(k.shape[1]):
        one = replace_step(one, k[:, i], v[:, i], beta[:, i])
        other = delta_step(other, k[:, i], v[:, i], beta[:, i])
        worst = max(worst, relative_error(one, other))
    return worst
