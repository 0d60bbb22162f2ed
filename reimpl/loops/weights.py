"""The weight of each written value in the answer to one query, for the sum and the delta rule.

One-hot values make the answer these weights, added up by value, so neither the state nor a matrix
of length × length is formed; time and memory are linear in the length. All loops run over one
sequence after the other: ``rows`` is (keys, values), ``[b, L]`` each, which index the rows of the
``Tables``; ``q`` ``[b, d_dot]`` is φ of the query.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reimpl.loops.compiled import compiled
from reimpl.loops.features import Tables, features, features_backward, scratch

Array = Any
Pair = Any


@compiled
def _dot(x: Array, Y: Array, n: int) -> Any:
    """Return x·y, y the row ``n`` of ``Y``."""
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * Y[n, i]
    return total


@compiled
def _add_scaled(Y: Array, n: int, scale: Any, x: Array) -> None:
    """Add scale · x to row ``n`` of ``Y``."""
    for i in range(x.size):
        Y[n, i] += scale * x[i]


@compiled
def sum_forward(t: Tables, rows: Pair, q: Array, w: Array) -> None:
    """Write φ(kᵢ)·φ(q) of every write i into ``w`` ``[b, L]`` (Eq. 17)."""
    phi, _, work, _ = scratch(t, q.shape[1])
    keys, values = rows
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            features(t, keys[n, i], values[n, i], work, phi)
            w[n, i] = _dot(phi, q, n)


@compiled
def sum_backward(t: Tables, rows: Pair, q: Array, dw: Array, dAB: Pair, dq: Array) -> None:
    """Add the gradients of ``sum_forward`` to those of the tables, ``dAB``, and to ``dq``."""
    phi, dphi, work, dwork = scratch(t, q.shape[1])
    (keys, values), (dA, dB) = rows, dAB
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            k, v, g = keys[n, i], values[n, i], dw[n, i]
            features(t, k, v, work, phi)
            _add_scaled(dq, n, g, phi)
            for j in range(phi.size):
                dphi[j] = g * q[n, j]
            features_backward(t, k, v, phi, dphi, work, dwork, dA, dB)


@compiled
def _normalised_key(t: Tables, k: int, v: int, work: Array, phi: Array, unit: Array) -> Any:
    """Write φ into ``phi`` and φ/Σφ into ``unit``; return Σφ (Eq. 29)."""
    features(t, k, v, work, phi)
    total = phi.dtype.type(0)
    for j in range(phi.size):
        total += phi[j]
    for j in range(phi.size):
        unit[j] = phi[j] / total
    return total


@compiled
def _strength(GA: Array, GB: Array, k: int, v: int) -> Any:
    """Return β of a write (Eq. 22)."""
    one = GA.dtype.type(1)
    return one / (one + math.exp(-GA[k] - GB[v]))


@compiled
def delta_forward(t: Tables, gates: Pair, rows: Pair, q: Array, w: Array, p: Array) -> None:
    """Write the weights of the delta rule into ``w`` ``[b, L]``.

    From Eq. 24, W_L q = Σᵢ wᵢ vᵢ where, going back from p = q, wᵢ = βᵢ kᵢ·p and then
    p ← p − wᵢ kᵢ, with kᵢ = φ/Σφ; the logit of βᵢ is the sum of the ``gates`` of the write's key
    and value. What remains of the query goes into ``p`` ``[b, d_dot]``, from which
    ``delta_backward`` goes forward again.
    """
    phi, unit, work, _ = scratch(t, q.shape[1])
    (keys, values), (GA, GB) = rows, gates
    p[:] = q
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1] - 1, -1, -1):
            k, v = keys[n, i], values[n, i]
            _normalised_key(t, k, v, work, phi, unit)
            c = _strength(GA, GB, k, v) * _dot(unit, p, n)
            w[n, i] = c
            _add_scaled(p, n, -c, unit)


@compiled
def delta_backward(
    t: Tables,
    gates: Pair,
    rows: Pair,
    w: Array,
    p: Array,
    dw: Array,
    dAB: Pair,
    dgates: Pair,
    dq: Array,
) -> None:
    """Add the gradients of ``delta_forward`` to those of tables and gates; write ``dq``.

    Runs forward in time: p before write i is p after it + wᵢ kᵢ, so ``p`` ends as q again.
    """
    phi, dphi, work, dwork = scratch(t, p.shape[1])
    unit, one = np.empty_like(phi), phi.dtype.type(1)
    (keys, values), (GA, GB), (dA, dB), (dGA, dGB) = rows, gates, dAB, dgates
    dq[:] = 0
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            k, v, c = keys[n, i], values[n, i], w[n, i]
            total = _normalised_key(t, k, v, work, phi, unit)
            _add_scaled(p, n, c, unit)
            beta = _strength(GA, GB, k, v)
            dc = dw[n, i] - _dot(unit, dq, n)
            dlogit = dc * _dot(unit, p, n) * beta * (one - beta)
            dGA[k] += dlogit
            dGB[v] += dlogit
            for j in range(unit.size):
                dphi[j] = dc * beta * p[n, j] - c * dq[n, j]
            _through_normalisation(unit, total, dphi)
            _add_scaled(dq, n, dc * beta, unit)
            features_backward(t, k, v, phi, dphi, work, dwork, dA, dB)


@compiled
def _through_normalisation(unit: Array, total: Any, gradient: Array) -> None:
    """Turn the gradient of φ/Σφ into that of φ."""
    along = unit.dtype.type(0)
    for j in range(unit.size):
        along += gradient[j] * unit[j]
    for j in range(unit.size):
        gradient[j] = (gradient[j] - along) / total
