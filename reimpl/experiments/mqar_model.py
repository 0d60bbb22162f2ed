"""The model of the recall experiment: a short convolution, then a mixer; no MLP, no positions.

    x = e(symbols);  x ← x + C(LN(x));  x ← x + M(LN(x));  logits = LN(x) eᵀ

C(u) = conv₃(u) ⊙ (W u + b) + u lets a value see its key; the mixer M has to recall. All fast-weight
mixers are one module that differs in the update rule only, so that at equal sizes they have equal
states. Zoology's Identity in place of the MLP adds one more LN(x) to x after each layer; here
nothing stands in its place.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    layer_norm,
    normalize,
    pad,
    rms_norm,
    scaled_dot_product_attention,
    silu,
    softplus,
)

from reimpl.experiments.mqar_data import Batch
from reimpl.experiments.mqar_point import CONVOLUTION, MqarPoint
from reimpl.ops import fast_weight_attention

STD = 0.02
EPS = 1e-5
LARGEST_DECAY = 16.0
STEPS = (0.001, 0.1)
"""Range of the gated delta rule's first step sizes, as its published layer draws them."""


def causal_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """Return Σ_j weight_j ⊙ x_{i − taps + 1 + j} for ``x`` ``[b, L, d]``, weight ``[taps, d]``."""
    taps, length = weight.shape[0], x.shape[1]
    padded = pad(x, (0, 0, taps - 1, 0))
    shifted = padded[:, :length] * weight[0]
    for j in range(1, taps):
        shifted = torch.addcmul(shifted, padded[:, j : j + length], weight[j])
    return shifted


def by_head(x: Tensor, heads: int) -> Tensor:
    """Split the last dimension of ``[b, L, heads · d]`` into ``[b, L, heads, d]``."""
    return x.reshape(*x.shape[:-1], heads, -1)


class Layer(nn.Module):
    """Parameters drawn from a generator: matrices N(0, 0.02²), convolutions uniform ±1/√taps."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def matrix(self, rows: int, columns: int) -> nn.Parameter:
        """Return a weight ``[rows, columns]``."""
        return nn.Parameter(torch.randn(rows, columns, generator=self._generator) * STD)

    def uniform(self, bound: float, *shape: int) -> nn.Parameter:
        """Return numbers between −bound and bound."""
        return nn.Parameter((2 * torch.rand(*shape, generator=self._generator) - 1) * bound)


class Convolution(Layer):
    """C(u) = conv₃(u) ⊙ (W u + b) + u: its state is the last three inputs."""

    def __init__(self, point: MqarPoint, generator: torch.Generator) -> None:
        super().__init__(generator)
        d, bound = point.d_model, 1 / math.sqrt(CONVOLUTION)
        self.weight = self.uniform(bound, CONVOLUTION, d)
        self.weight_bias = self.uniform(bound, d)
        self.gate = self.matrix(d, d)
        self.gate_bias = nn.Parameter(torch.zeros(d))

    def forward(self, u: Tensor) -> Tensor:
        """Map ``[b, L, d]`` to ``[b, L, d]``."""
        mixed = causal_convolution(u, self.weight) + self.weight_bias
        return torch.addcmul(u, mixed, u @ self.gate.T + self.gate_bias)


class Attention(Layer):
    """Causal softmax attention; what it remembers grows with the length."""

    def __init__(self, point: MqarPoint, generator: torch.Generator) -> None:
        super().__init__(generator)
        self.heads = point.heads
        self.split = [point.heads * d for d in (point.d_key, point.d_key, point.d_value)]
        self.project = self.matrix(sum(self.split), point.d_model)
        self.out = self.matrix(point.d_model, point.heads * point.d_value)

    def forward(self, u: Tensor) -> Tensor:
        """Map ``[b, L, d]`` to ``[b, L, d]``."""
        parts = torch.split(u @ self.project.T, self.split, -1)
        q, k, v = (x.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for x in parts)
        read = scaled_dot_product_attention(q, k, v, is_causal=True)
        return read.transpose(1, 2).flatten(2) @ self.out.T


class FastWeights(Layer):
    """A fast weight matrix a head, written and read at every position by the point's rule.

    q, k, v = SiLU(conv(W u)), q and k of unit length, β = σ(W_β u); the decay of ``gated_delta``
    is −a softplus(W_a u + b) with a > 0. Reads are RMS-normalised a head, so that the length of
    the state's columns is no obstacle to the sum rule.
    """

    def __init__(self, point: MqarPoint, generator: torch.Generator) -> None:
        super().__init__(generator)
        self.rule, self.heads, d = point.mixer, point.heads, point.d_model
        keys, values = point.heads * point.d_key, point.heads * point.d_value
        self.split = [keys, keys, values]
        self.project = self.matrix(2 * keys + values, d)
        self.out = self.matrix(d, values)
        self.norm = nn.Parameter(torch.ones(point.d_value))
        taps = point.mixer_taps
        self.taps = self.uniform(1 / math.sqrt(taps), taps, sum(self.split)) if taps else None
        self.beta = self.matrix(point.heads, d) if self.rule != "sum" else None
        self.decay = self.matrix(point.heads, d) if self.rule == "gated_delta" else None
        if self.decay is not None:
            self._draw_decay(point.heads)

    def _draw_decay(self, heads: int) -> None:
        """Draw a uniform in (0, 16) and softplus(b) log-uniform in (0.001, 0.1)."""
        first, last = (math.log(step) for step in STEPS)
        a, step = torch.rand(2, heads, generator=self._generator).double()
        step = torch.exp(first + step * (last - first))
        self.log_a = nn.Parameter((LARGEST_DECAY * (1 - a)).log().float())
        self.decay_bias = nn.Parameter(step.expm1().log().float())

    def forward(self, u: Tensor) -> Tensor:
        """Map ``[b, L, d]`` to ``[b, L, d]``."""
        mixed = u @ self.project.T
        if self.taps is not None:
            mixed = causal_convolution(mixed, self.taps)
        parts = torch.split(silu(mixed), self.split, -1)
        q, k, v = (x.reshape(*x.shape[:2], self.heads, -1) for x in parts)
        read, _ = fast_weight_attention(
            normalize(q, dim=-1),
            normalize(k, dim=-1),
            v,
            None if self.beta is None else torch.sigmoid(u @ self.beta.T),
            self._log_decay(u),
            rule=self.rule,
        )
        return rms_norm(read, self.norm.shape, self.norm, EPS).flatten(2) @ self.out.T

    def _log_decay(self, u: Tensor) -> Tensor | None:
        if self.decay is None:
            return None
        return -self.log_a.exp() * softplus(u @ self.decay.T + self.decay_bias)


class MqarModel(Layer):
    """Embedding (also the read-out), convolution and mixer, each layer behind a layer norm."""

    def __init__(self, point: MqarPoint, generator: torch.Generator) -> None:
        super().__init__(generator)
        d = point.d_model
        self.dropout = point.dropout
        self.embedding = self.matrix(point.vocabulary, d)
        self.norms = nn.Parameter(torch.stack([torch.ones(3, d), torch.zeros(3, d)]))
        self.convolution = Convolution(point, generator)
        kind = Attention if point.mixer == "softmax" else FastWeights
        self.mixer = kind(point, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """Return the logits of all symbols at the queries: ``[b, n, vocabulary]``.

        With a ``generator`` (on the CPU) embeddings are dropped out, as in training.
        """
        x = self.embedding[batch.inputs]
        if generator is not None and self.dropout:
            kept = torch.rand(x.shape, generator=generator) >= self.dropout
            x = x * kept.to(x.device) / (1 - self.dropout)
        x = x + self.convolution(self._normalised(x, 0))
        x = x + self.mixer(self._normalised(x, 1))
        places = batch.places[..., None].expand(-1, -1, x.shape[-1])
        return self._normalised(x.gather(1, places), 2) @ self.embedding.T

    def _normalised(self, x: Tensor, layer: int) -> Tensor:
        weight, bias = self.norms[0, layer], self.norms[1, layer]
        return layer_norm(x, weight.shape, weight, bias, EPS)
