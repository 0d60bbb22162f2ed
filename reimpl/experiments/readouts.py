"""What a written sequence answers to a few queries, computed without a state where that is faster.

The read-out is a weighted sum of the written values; values are one-hot, so the weights, added up
by value, are the answer. For the sum they are attention weights, for the delta rule the recurrence
of the query backward in time. The fast weight memory, whose scaling depends on the state, keeps it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from reimpl.feature_maps import sum_normalise
from reimpl.loops.readout import Written

EPS = 1e-6
CHUNK = 20
FWM_CHUNK = 8


def softmax_weights(K: Tensor, Q: Tensor) -> Tensor:
    """Return softmax attention weights ``[b, n, L]``; ``K`` ``[b, L, d]``, ``Q`` ``[b, n, d]``."""
    return torch.softmax(Q @ K.mT / math.sqrt(K.shape[-1]), dim=-1)


def softmax_table_weights(written: Written, q: Tensor) -> Tensor:
    """Return softmax attention weights ``[b, L]`` of one query ``q`` ``[b, d]`` a sequence.

    q·k is the sum of q·a and q·b, so the table rows are multiplied and then looked up.
    """
    logits = torch.gather(q @ written.A.T, 1, written.keys)
    logits = logits + torch.gather(q @ written.B.T, 1, written.values)
    return torch.softmax(logits / math.sqrt(q.shape[-1]), dim=-1)


def sum_weights(K: Tensor, Q: Tensor) -> Tensor:
    """Return φ(k)·φ(q) over their sum plus 1e-6 (Eq. 17-19): ``[b, n, L]``."""
    return sum_normalise(Q @ K.mT, EPS)


def delta_weights(K: Tensor, Q: Tensor, beta: Tensor, chunk: int = CHUNK) -> Tensor:
    """Return the weight of every written value in the delta rule's answers: ``[b, n, L]``.

    From Eq. 24, W_L q = Σᵢ cᵢ vᵢ where, going back from p = q, cᵢ = βᵢ kᵢ·p and then
    p ← p − cᵢ kᵢ. Within a chunk the c solve a triangular system. ``K`` ``[b, L, d_dot]``, ``Q``
    ``[b, n, d_dot]``, ``beta`` ``[b, L]``.
    """
    P, weights = Q, []
    for end in range(K.shape[1], 0, -chunk):
        k, b = K[:, max(0, end - chunk) : end], beta[:, max(0, end - chunk) : end, None]
        system = torch.triu(b * (k @ k.mT), 1) + torch.eye(k.shape[1]).to(k)
        c = torch.linalg.solve_triangular(system, b * (k @ P.mT), upper=True).mT
        P = P - c @ k
        weights.append(c)
    return torch.cat(weights[::-1], dim=-1)


def by_value(weights: Tensor, values: Tensor, S: int) -> Tensor:
    """Add up ``weights`` ``[b, n, L]`` by the written value ``[b, L]``: ``[b, n, S]``."""
    index = values.unsqueeze(1).expand_as(weights)
    return weights.new_zeros(*weights.shape[:2], S).scatter_add(-1, index, weights)


def fwm_answers(K: Tensor, Q: Tensor, beta: Tensor, V: Tensor) -> Tensor:
    """Return the fast weight memory's layer-normalised answers ``[b, n, S]``; ``V`` ``[b, L, S]``.

    The first write is not scaled down, as in the authors' program. The state is read and changed
    once in a chunk of writes; ‖S‖² ``[b, 1, 1]`` is updated rather than computed anew.
    """
    S = K.new_zeros(K.shape[0], K.shape[2], V.shape[2])
    norm2 = K.new_zeros(K.shape[0], 1, 1)
    parts = zip(*(torch.split(x, FWM_CHUNK, 1) for x in (K, V, beta)), strict=True)
    for i, (k, v, b) in enumerate(parts):
        S, norm2 = _fwm_chunk(S, norm2, k, v, b, first=i == 0)
    return layer_norm(Q @ S, [V.shape[2]])


def _fwm_chunk(
    S: Tensor, norm2: Tensor, K: Tensor, V: Tensor, beta: Tensor, first: bool
) -> tuple[Tensor, Tensor]:
    """Return state and ‖S‖² after the writes of a chunk; ``first`` spares the first one.

    The scaling of the writes so far is kept apart as a factor c: S = c (S₀ + Σⱼ kⱼ uⱼᵀ/cⱼ).
    """
    gram, lengths = K @ K.mT, K.square().sum(-1)[..., None, None].unbind(1)
    reads, strengths = torch.split(K @ S, 1, 1), beta[..., None, None].unbind(1)
    c, updates = torch.ones_like(norm2), K.new_zeros(K.shape[0], 0, V.shape[2])
    for i, (read, v, k2, b) in enumerate(
        zip(reads, torch.split(V, 1, 1), lengths, strengths, strict=True)
    ):
        v_bar = c * torch.baddbmm(read, gram[:, i : i + 1, :i], updates)
        u = b * (v - v_bar)
        updates = torch.cat([updates, u / c], 1)
        norm2 = norm2 + (u * (2 * v_bar + k2 * u)).sum(-1, keepdim=True)
        if i > 0 or not first:
            limit = norm2.clamp(min=1)
            c, norm2 = c * limit.rsqrt(), norm2 / limit
    return c * torch.baddbmm(S, K.mT, updates), norm2
