"""φ of a written key from two table rows, and its gradient, one key at a time.

A key is the sum of a row that belongs to its symbol and one that belongs to its value,
k = a + b, so a table of each is projected once a step and no key is ever stored. The rows of
``Tables.A`` and ``Tables.B`` (``[S, width]``) hold, by map:

- ``ELU1``: a, b, of size d; ``XA`` and ``XB`` hold exp(a) and exp(b), whose product spares an
  exponential a key.
- ``DPFP``: a, b; no further tables.
- ``FAVOR``: [a; exp(u − x)] with u = [Ra; −Ra] − ‖a‖²/2, where the shift x of the row, in ``XA``
  ``[S, 1]``, keeps the exponents in range; likewise b. Then φ(k) is the product of the two rows'
  features times exp(x_a + x_b − a·b). Gradients are those of a and u.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reimpl.loops.compiled import compiled

ELU1, DPFP, FAVOR = 0, 1, 2
Array = Any


class Tables(NamedTuple):
    """The map (``kind``; ``nu`` is DPFP's ν) and the tables of the two parts of a key."""

    kind: int
    nu: int
    A: Array
    B: Array
    XA: Array
    XB: Array


@compiled
def features(t: Tables, k: int, v: int, work: Array, phi: Array) -> None:
    """Write φ of row ``k`` of ``A`` + row ``v`` of ``B`` into ``phi`` ``[d_dot]``.

    ``work`` ``[2d + ν]`` is scratch that DPFP uses.
    """
    if t.kind == ELU1:
        _elu1(t.A, t.B, t.XA, t.XB, k, v, phi)
    elif t.kind == DPFP:
        _mirror(t.nu, t.A, t.B, k, v, work)
        _products(t.nu, work, phi)
    else:
        _favor(t.A, t.B, t.XA[k, 0] + t.XB[v, 0], k, v, phi)


@compiled
def _elu1(A: Array, B: Array, XA: Array, XB: Array, k: int, v: int, phi: Array) -> None:
    one, zero = phi.dtype.type(1), phi.dtype.type(0)
    for i in range(A.shape[1]):
        x = A[k, i] + B[v, i]
        phi[i] = x + one if x > zero else XA[k, i] * XB[v, i]


@compiled
def _products(nu: int, work: Array, phi: Array) -> None:
    n, own = work.size - nu, np.uintp(nu)
    for j in range(nu):
        at, rolled = np.uintp(j * n), np.uintp(nu - 1 - j)
        for i in range(n):
            phi[at + np.uintp(i)] = work[own + np.uintp(i)] * work[rolled + np.uintp(i)]


@compiled
def _favor(A: Array, B: Array, exponent: Any, k: int, v: int, phi: Array) -> None:
    d = np.uintp(A.shape[1] - phi.size)
    for i in range(d):
        exponent -= A[k, i] * B[v, i]
    scale = math.exp(exponent)
    for i in range(phi.size):
        j = d + np.uintp(i)
        phi[i] = A[k, j] * B[v, j] * scale


@compiled
def _mirror(nu: int, A: Array, B: Array, k: int, v: int, work: Array) -> None:
    """Write [relu(x); relu(−x)] into ``work`` from place ν on, and its last ν before it."""
    d, zero = A.shape[1], work.dtype.type(0)
    positive, negative = np.uintp(nu), np.uintp(nu + d)
    for i in range(d):
        x = A[k, i] + B[v, i]
        work[positive + np.uintp(i)] = zero if x < zero else x
        work[negative + np.uintp(i)] = zero if x > zero else -x
    for i in range(nu):
        work[i] = work[2 * d + i]


@compiled
def features_backward(
    t: Tables,
    k: int,
    v: int,
    phi: Array,
    dphi: Array,
    work: Array,
    dwork: Array,
    dA: Array,
    dB: Array,
) -> None:
    """Add the gradient of the rows to ``dA`` and ``dB``, those of ``A`` and ``B``.

    ``phi`` and ``work`` are as ``features`` left them; ``dwork`` is scratch of the size of
    ``work``.
    """
    if t.kind == ELU1:
        _elu1_backward(t.A, t.B, k, v, phi, dphi, dA, dB)
    elif t.kind == DPFP:
        _products_backward(t.nu, dphi, work, dwork)
        _mirror_backward(t.nu, t.A, t.B, k, v, dwork, dA, dB)
    else:
        _favor_backward(t.A, t.B, k, v, phi, dphi, dA, dB)


@compiled
def _elu1_backward(
    A: Array, B: Array, k: int, v: int, phi: Array, dphi: Array, dA: Array, dB: Array
) -> None:
    zero = phi.dtype.type(0)
    for i in range(A.shape[1]):
        g = dphi[i] if A[k, i] + B[v, i] > zero else dphi[i] * phi[i]
        dA[k, i] += g
        dB[v, i] += g


@compiled
def _mirror_backward(
    nu: int, A: Array, B: Array, k: int, v: int, dwork: Array, dA: Array, dB: Array
) -> None:
    d, zero = A.shape[1], dwork.dtype.type(0)
    positive, negative = np.uintp(nu), np.uintp(nu + d)
    for i in range(d):
        x = A[k, i] + B[v, i]
        plus, minus = dwork[positive + np.uintp(i)], dwork[negative + np.uintp(i)]
        g = plus if x > zero else -minus if x < zero else zero
        dA[k, i] += g
        dB[v, i] += g


@compiled
def _products_backward(nu: int, dphi: Array, work: Array, dwork: Array) -> None:
    n = work.size - nu
    dwork[:] = 0
    own = np.uintp(nu)
    for j in range(nu):
        at, rolled = np.uintp(j * n), np.uintp(nu - 1 - j)
        for i in range(n):
            dwork[own + np.uintp(i)] += dphi[at + np.uintp(i)] * work[rolled + np.uintp(i)]
        for i in range(n):
            dwork[rolled + np.uintp(i)] += dphi[at + np.uintp(i)] * work[own + np.uintp(i)]
    for i in range(nu):
        dwork[n + i] += dwork[i]


@compiled
def _favor_backward(
    A: Array, B: Array, k: int, v: int, phi: Array, dphi: Array, dA: Array, dB: Array
) -> None:
    d, total = np.uintp(A.shape[1] - phi.size), phi.dtype.type(0)
    for i in range(phi.size):
        g, j = dphi[i] * phi[i], d + np.uintp(i)
        total += g
        dA[k, j] += g
        dB[v, j] += g
    for i in range(d):
        dA[k, i] -= total * B[v, i]
        dB[v, i] -= total * A[k, i]


@compiled
def scratch(t: Tables, d_dot: int) -> tuple[Array, Array, Array, Array]:
    """Return what one key at a time needs: φ and its gradient, ``work`` and its gradient."""
    size, dtype = 2 * t.A.shape[1] + t.nu if t.kind == DPFP else 1, t.A.dtype
    return (
        np.empty(d_dot, dtype),
        np.empty(d_dot, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
    )
