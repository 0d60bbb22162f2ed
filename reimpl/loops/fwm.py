"""The fast weight memory on one-hot values: its state, written to and scaled down, and gradients.

The rule is delta's, W ← W + k uᵀ with u = β (v − Wᵀk), and after every write but the first the
state is divided by its Frobenius norm where that is above 1. The scaling depends on the whole
state, so the state is kept, ``[d, S]`` for one sequence at a time, but only touched once in
``CHUNK`` writes. Within a chunk that starts from W₀, with pₜ the product of its scales so far and
ũₜ = uₜ / pₜ₋₁,

    Wₜ = pₜ (W₀ + Σⱼ≤ₜ kⱼ ũⱼᵀ)    and    Wₜ₋₁ᵀkₜ = pₜ₋₁ (W₀ᵀkₜ + Σⱼ<ₜ (kₜ·kⱼ) ũⱼ),

and the norm follows from scalars: ‖W + k uᵀ‖² = ‖W‖² + 2 u·Wᵀk + ‖u‖² ‖k‖².
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from records.errors import ConfigError
from reimpl.loops.compiled import compiled

Array = Any
CHUNK = 4
SEGMENT = 8
"""Chunks between two states that the backward pass keeps; it goes through the rest again."""
WIDTH = 16
"""Rows are padded to a multiple of this, so that loops have no remainder."""


def fwm_readout(K: Tensor, Q: Tensor, beta: Tensor, values: Tensor, S: int) -> Tensor:
    """Return Wᵀq for every query after all writes: ``[b, n, S]``.

    ``K`` ``[b, L, d]`` and ``Q`` ``[b, n, d]`` are features, ``beta`` ``[b, L]`` the write
    strengths, ``values`` ``[b, L]`` (int64, 0 to S − 1) the place of the 1 in each written value.
    Differentiable in ``K``, ``Q`` and ``beta``. Raises ConfigError where shapes or values do not
    fit.
    """
    rows = tuple(K.shape[:2])
    if beta.shape != rows or values.shape != rows or Q.shape != (rows[0], Q.shape[1], K.shape[2]):
        raise ConfigError(
            f"keys {list(K.shape)} need β and values {list(rows)} and queries of the same size, "
            f"got {list(beta.shape)}, {list(values.shape)} and {list(Q.shape)}"
        )
    if values.numel() and not 0 <= int(values.min()) <= int(values.max()) < S:
        raise ConfigError(
            f"values lie in 0 to {S - 1}, got {int(values.min())} to {int(values.max())}"
        )
    state: Tensor = _State.apply(K, beta, values, S)  # type: ignore[no-untyped-call]
    return Q @ state


class Saved(NamedTuple):
    """What the writes leave for the backward pass; L is padded to whole chunks, S to ``WIDTH``.

    ``values`` ``[b, L]`` are not padded, so they tell where a sequence ends. ``U`` ``[b, L, S]``
    holds ũ, ``V`` Wᵀk, ``scales`` ``[b, L]`` what the state was multiplied by after the write.
    """

    values: Array
    K: Array
    beta: Array
    U: Array
    V: Array
    scales: Array


class _State(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, K: Tensor, beta: Tensor, values: Tensor, S: int) -> Tensor:
        b, length, d = K.shape
        more, wide = -length % CHUNK, S + -S % WIDTH
        keys, strengths = pad(K.detach(), (0, 0, 0, more)), pad(beta.detach(), (0, more))
        U, V = keys.new_zeros(2, b, length + more, wide)
        state, scales = keys.new_zeros(b, d, wide), torch.ones_like(strengths)
        tensors = (keys.contiguous(), strengths.contiguous(), U, V, scales)
        ctx.saved = Saved(values.contiguous().numpy(), *(x.numpy() for x in tensors))
        write(ctx.saved, state.numpy())
        return state[:, :, :S]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dstate: Tensor) -> tuple[Tensor | None, ...]:
        saved: Saved = ctx.saved
        G = pad(dstate, (0, saved.U.shape[2] - dstate.shape[2])).contiguous()
        dK, dbeta = (torch.zeros(x.shape, dtype=G.dtype) for x in (saved.K, saved.beta))
        write_backward(saved, G.numpy(), dK.numpy(), dbeta.numpy())
        length = saved.values.shape[1]
        return dK[:, :length], dbeta[:, :length], None, None


@compiled
def write(x: Saved, W: Array) -> None:
    """Write all keys into ``W`` ``[b, d, S]``, which is zero, and fill ``U``, ``V``, ``scales``."""
    K, U, scales = x.K, x.U, x.scales
    one = W.dtype.type(1)
    R, gram = np.empty((CHUNK, W.shape[2]), W.dtype), np.empty((CHUNK, CHUNK), W.dtype)
    for n in range(K.shape[0]):
        norm2 = W.dtype.type(0)
        for t in range(0, K.shape[1], CHUNK):
            _read(W[n], K, n, t, R)
            _gram(K, n, t, gram)
            norm2 = _write_chunk(x, n, t, R, gram, norm2)
            p = one
            for i in range(CHUNK):
                p *= scales[n, t + i]
            _add(W[n], p, p, K, n, t, U[n, t : t + CHUNK])


@compiled
def _read(W: Array, K: Array, n: int, t: int, out: Array) -> None:
    """Write Wᵀk of the chunk's keys into ``out`` ``[CHUNK, S]``; four rows of W at a time."""
    d, whole = W.shape[0], W.shape[0] - W.shape[0] % 4
    out[:] = 0
    for r in range(0, whole, 4):
        for j in range(CHUNK):
            a, b, c, e = K[n, t + j, r], K[n, t + j, r + 1], K[n, t + j, r + 2], K[n, t + j, r + 3]
            for s in range(W.shape[1]):
                out[j, s] += a * W[r, s] + b * W[r + 1, s] + c * W[r + 2, s] + e * W[r + 3, s]
    for r in range(whole, d):
        for j in range(CHUNK):
            for s in range(W.shape[1]):
                out[j, s] += K[n, t + j, r] * W[r, s]


@compiled
def _add(W: Array, p: Any, scale: Any, K: Array, n: int, t: int, Y: Array) -> None:
    """Turn W into p W + scale Σⱼ kⱼ yⱼᵀ over the chunk."""
    for r in range(W.shape[0]):
        a, b = scale * K[n, t, r], scale * K[n, t + 1, r]
        c, e = scale * K[n, t + 2, r], scale * K[n, t + 3, r]
        for s in range(W.shape[1]):
            W[r, s] = p * W[r, s] + a * Y[0, s] + b * Y[1, s] + c * Y[2, s] + e * Y[3, s]


@compiled
def _gram(K: Array, n: int, t: int, gram: Array) -> None:
    """Write kᵢ·kⱼ of the chunk's keys, j ≤ i."""
    for i in range(CHUNK):
        for j in range(i + 1):
            total = K.dtype.type(0)
            for r in range(K.shape[2]):
                total += K[n, t + i, r] * K[n, t + j, r]
            gram[i, j] = total


@compiled
def _write_chunk(x: Saved, n: int, t: int, R: Array, gram: Array, norm2: Any) -> Any:
    """Fill ``U``, ``V`` and ``scales`` of a chunk; return ‖W‖² after it.

    ``R`` is W₀ᵀk of its keys; ``norm2`` is ‖W₀‖².
    """
    values, beta, U, V, scales = x.values, x.beta, x.U, x.V, x.scales
    zero, one, two = R.dtype.type(0), R.dtype.type(1), R.dtype.type(2)
    p = one
    for i in range(min(CHUNK, values.shape[1] - t)):
        for j in range(i):
            for s in range(R.shape[1]):
                R[i, s] += gram[i, j] * U[n, t + j, s]
        strength = beta[n, t + i]
        along, uu = zero, zero
        for s in range(R.shape[1]):
            V[n, t + i, s] = p * R[i, s]
        for s in range(R.shape[1]):
            U[n, t + i, s] = -strength * R[i, s]
        U[n, t + i, values[n, t + i]] += strength / p
        for s in range(R.shape[1]):
            along += U[n, t + i, s] * V[n, t + i, s]
            uu += U[n, t + i, s] * U[n, t + i, s]
        norm2 += two * p * along + p * p * uu * gram[i, i]
        if t + i > 0 and norm2 > one:
            scales[n, t + i] = one / math.sqrt(norm2)
            norm2 = one
        p *= scales[n, t + i]
    return norm2


@compiled
def write_backward(x: Saved, G: Array, dK: Array, dbeta: Array) -> None:
    """Turn ``G`` ``[b, d, S]``, the gradient of the state, into ``dK`` and ``dbeta``.

    States are made again from a few that a first pass keeps: taking the writes back would divide
    by the scales, which magnifies rounding errors.
    """
    K, d, S = x.K, G.shape[1], G.shape[2]
    chunks = K.shape[1] // CHUNK
    kept = np.empty(((chunks - 1) // SEGMENT + 1, d, S), G.dtype)
    states = np.empty((SEGMENT, d, S), G.dtype)
    for n in range(K.shape[0]):
        _keep(x, n, kept)
        dnorm2 = G.dtype.type(0)
        for segment in range(kept.shape[0] - 1, -1, -1):
            first = segment * SEGMENT
            last = min(first + SEGMENT, chunks) - 1
            states[0] = kept[segment]
            for c in range(first, last):
                states[c - first + 1] = states[c - first]
                _forward_again(x, n, c * CHUNK, states[c - first + 1])
            for c in range(last, first - 1, -1):
                dnorm2 = _chunk_backward(
                    x, n, c * CHUNK, states[c - first], G[n], dnorm2, dK, dbeta
                )


@compiled
def _forward_again(x: Saved, n: int, t: int, W: Array) -> None:
    """Take the state from before a chunk to after it."""
    p = W.dtype.type(1)
    for i in range(CHUNK):
        p *= x.scales[n, t + i]
    _add(W, p, p, x.K, n, t, x.U[n, t : t + CHUNK])


@compiled
def _keep(x: Saved, n: int, kept: Array) -> None:
    """Write the state before every ``SEGMENT``-th chunk into ``kept``."""
    W = np.zeros(kept.shape[1:], kept.dtype)
    for c in range(x.K.shape[1] // CHUNK):
        if c % SEGMENT == 0:
            kept[c // SEGMENT] = W
        _forward_again(x, n, c * CHUNK, W)


@compiled
def _chunk_backward(
    x: Saved, n: int, t: int, W: Array, G: Array, dnorm2: Any, dK: Array, dbeta: Array
) -> Any:
    """Take ``G`` and the gradient of ‖W‖², which is returned, to before a chunk; W is W₀."""
    K, U, scales = x.K, x.U, x.scales
    one = G.dtype.type(1)
    dU, dR = np.empty((CHUNK, G.shape[1]), G.dtype), np.empty((CHUNK, G.shape[1]), G.dtype)
    gram, dgram = np.zeros((CHUNK, CHUNK), G.dtype), np.zeros((CHUNK, CHUNK), G.dtype)
    p = np.ones(CHUNK + 1, G.dtype)
    for i in range(CHUNK):
        p[i + 1] = p[i] * scales[n, t + i]
    _gram(K, n, t, gram)
    _read(G, K, n, t, dU)
    dp = _key_gradients(G, W, U, n, t, p[CHUNK], dK)
    for i in range(CHUNK):
        for s in range(G.shape[1]):
            dp += U[n, t + i, s] * dU[i, s]
    for i in range(CHUNK):
        for s in range(G.shape[1]):
            dU[i, s] *= p[CHUNK]
    dnorm2 = _writes_backward(x, n, t, p, gram, dU, dR, dgram, dp, dnorm2, dbeta)
    _gram_backward(K, n, t, dgram, dK)
    _add_products(W, dR, n, t, dK)
    _add(G, p[CHUNK], one, K, n, t, dR)
    return dnorm2


@compiled
def _key_gradients(G: Array, W: Array, U: Array, n: int, t: int, p: Any, dK: Array) -> Any:
    """Write p G ũ into ``dK``; return ⟨G, W⟩."""
    zero = G.dtype.type(0)
    inner = zero
    for r in range(G.shape[0]):
        a, b, c, e, w = zero, zero, zero, zero, zero
        for s in range(G.shape[1]):
            g = G[r, s]
            w += g * W[r, s]
            a += g * U[n, t, s]
            b += g * U[n, t + 1, s]
            c += g * U[n, t + 2, s]
            e += g * U[n, t + 3, s]
        inner += w
        dK[n, t, r], dK[n, t + 1, r], dK[n, t + 2, r], dK[n, t + 3, r] = p * a, p * b, p * c, p * e
    return inner


@compiled
def _add_products(W: Array, dR: Array, n: int, t: int, dK: Array) -> None:
    """Add W dr to the gradient of each key of the chunk."""
    zero = W.dtype.type(0)
    for r in range(W.shape[0]):
        a, b, c, e = zero, zero, zero, zero
        for s in range(W.shape[1]):
            w = W[r, s]
            a += w * dR[0, s]
            b += w * dR[1, s]
            c += w * dR[2, s]
            e += w * dR[3, s]
        dK[n, t, r] += a
        dK[n, t + 1, r] += b
        dK[n, t + 2, r] += c
        dK[n, t + 3, r] += e


@compiled
def _writes_backward(
    x: Saved,
    n: int,
    t: int,
    p: Array,
    gram: Array,
    dU: Array,
    dR: Array,
    dgram: Array,
    dp: Any,
    dnorm2: Any,
    dbeta: Array,
) -> Any:
    """Go back through ``_write_chunk``.

    ``dU`` is the gradient of ũ from the end of the chunk and is added to, ``dR`` and ``dgram`` are
    written; ``dp`` is the gradient of the product of all scales, ``dnorm2`` of ‖W‖².
    """
    values, U, V, scales = x.values, x.U, x.V, x.scales
    zero, one, two = dR.dtype.type(0), dR.dtype.type(1), dR.dtype.type(2)
    dR[:] = 0
    for i in range(min(CHUNK, values.shape[1] - t) - 1, -1, -1):
        before, scale, strength = p[i], scales[n, t + i], x.beta[n, t + i]
        if scale < one:
            dnorm2 = -(scale * scale * scale) * dp * before / two
        dp *= scale
        uu, along, loss, value = zero, zero, zero, values[n, t + i]
        for s in range(dU.shape[1]):
            uu += U[n, t + i, s] * U[n, t + i, s]
            along += U[n, t + i, s] * dU[i, s]
        dgram[i, i] += dnorm2 * uu * before * before
        dp -= along / before
        a, m = two * dnorm2 * before, two * dnorm2 * gram[i, i] * before
        for s in range(dU.shape[1]):
            u, v_bar = U[n, t + i, s], V[n, t + i, s]
            du = dU[i, s] / before + a / before * v_bar + m * u
            dv_bar = a * u - strength * du
            dU[i, s] = du
            dR[i, s] = dv_bar * before
            loss += dv_bar * v_bar
        dp += loss / before
        direct = zero
        for s in range(dU.shape[1]):
            direct -= dU[i, s] * V[n, t + i, s]
        dbeta[n, t + i] = direct + dU[i, value]
        for j in range(i):
            shared = zero
            for s in range(dU.shape[1]):
                shared += dR[i, s] * U[n, t + j, s]
            dgram[i, j] = shared
            for s in range(dU.shape[1]):
                dU[j, s] += gram[i, j] * dR[i, s]
    return dnorm2


@compiled
def _gram_backward(K: Array, n: int, t: int, dgram: Array, dK: Array) -> None:
    """Add the gradients of ``_gram`` to those of the keys."""
    for i in range(CHUNK):
        for j in range(i + 1):
            for r in range(K.shape[2]):
                dK[n, t + i, r] += dgram[i, j] * K[n, t + j, r]
            for r in range(K.shape[2]):
                dK[n, t + j, r] += dgram[i, j] * K[n, t + i, r]
