"""The sum rule with DPFP-ν, without its features.

With x' and y' the mirrored, rectified key and query of Eq. 37 and z = x'·y' element by element,
φ(k)·φ(q) = Σⱼ Σᵢ zᵢ zᵢ₋ⱼ over j = 1..ν: 2d ν products where φ alone takes as many to form.
Arguments are as in ``weights``, but ``q`` ``[b, d]`` is the query itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reimpl.loops.compiled import compiled
from reimpl.loops.features import Tables

Array = Any
Pair = Any


@compiled
def forward(t: Tables, rows: Pair, q: Array, w: Array) -> None:
    """Write φ(kᵢ)·φ(q) of every write i into ``w`` ``[b, L]`` (Eq. 17)."""
    nu, A, B = t.nu, t.A, t.B
    keys, values = rows
    z = np.empty(2 * A.shape[1] + 2 * nu, q.dtype)
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            _common(nu, A, B, keys[n, i], values[n, i], q, n, z)
            w[n, i] = _correlation(nu, z)


@compiled
def _common(nu: int, A: Array, B: Array, k: int, v: int, q: Array, n: int, z: Array) -> None:
    """Write z into ``z`` from place ν on, and what comes before and after it, turning round."""
    d, zero = A.shape[1], q.dtype.type(0)
    positive, negative = np.uintp(nu), np.uintp(nu + d)
    for i in range(d):
        x, y = A[k, i] + B[v, i], q[n, i]
        both = x * y
        z[positive + np.uintp(i)] = zero if x < zero or y < zero else both
        z[negative + np.uintp(i)] = zero if x > zero or y > zero else both
    for i in range(nu):
        z[i] = z[2 * d + i]
        z[2 * d + nu + i] = z[nu + i]


@compiled
def _correlation(nu: int, z: Array) -> Any:
    total, own = z.dtype.type(0), np.uintp(nu)
    for j in range(nu):
        before = np.uintp(nu - 1 - j)
        for i in range(z.size - 2 * nu):
            total += z[own + np.uintp(i)] * z[before + np.uintp(i)]
    return total


@compiled
def backward(t: Tables, rows: Pair, q: Array, dw: Array, dAB: Pair, dq: Array) -> None:
    """Add the gradients of ``forward`` to those of the tables, ``dAB``, and to ``dq``."""
    nu, A, B = t.nu, t.A, t.B
    keys, values = rows
    dA, dB = dAB
    d, zero = A.shape[1], q.dtype.type(0)
    z = np.empty(2 * d + 2 * nu, q.dtype)
    dz = np.empty(2 * d, q.dtype)
    half = np.uintp(d)
    for n in range(keys.shape[0]):
        for i in range(keys.shape[1]):
            k, v, g = keys[n, i], values[n, i], dw[n, i]
            _common(nu, A, B, k, v, q, n, z)
            _neighbours(nu, z, dz)
            for j in range(d):
                x, y = A[k, j] + B[v, j], q[n, j]
                along = dz[j] if x > zero else dz[half + np.uintp(j)]
                shared = zero if x * y <= zero else g * along
                dA[k, j] += shared * y
                dB[v, j] += shared * y
                dq[n, j] += shared * x


@compiled
def _neighbours(nu: int, z: Array, dz: Array) -> None:
    """Write the derivative of ``_correlation``: the sum of the ν before and the ν after."""
    for i in range(dz.size):
        dz[i] = z[np.uintp(nu - 1) + np.uintp(i)] + z[np.uintp(nu + 1) + np.uintp(i)]
    for j in range(1, nu):
        before, after = np.uintp(nu - 1 - j), np.uintp(nu + 1 + j)
        for i in range(dz.size):
            dz[i] += z[before + np.uintp(i)] + z[after + np.uintp(i)]
