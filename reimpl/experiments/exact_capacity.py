"""Sec. 4.1: how many associations a d_dot-dimensional key space holds, for either rule.

The capacity is measured: associations are added one by one, and it is the largest number that all
come back with a relative error of at most 1e-9.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reimpl.experiments.exact import Measured
from reimpl.feature_maps import feature_map
from reimpl.rules import delta_step, sum_step

SIZES = (16, 64, 256)
BEYOND = 4
D_KEY = 64
D_VALUE = 16
EXACT = 1e-9
THROUGH = {"elu1": 0, "dpfp1": 1, "dpfp2": 2, "dpfp3": 3}
"""Feature map to ν; ν = 0 stands for ELU + 1."""


def measure(seed: int) -> Measured:
    """Return capacities of orthonormal keys, the rule-independent bound, capacities through φ."""
    generator = torch.Generator().manual_seed(seed)
    measured: Measured = {}
    for d_dot in SIZES:
        keys = orthonormal_keys(d_dot, generator)
        measured |= _orthonormal(keys, d_dot, generator)
    for name, nu in THROUGH.items():
        phi = feature_map(name)
        keys = phi(torch.cat([one_hot_images(nu), normal((BEYOND, D_KEY), generator)]))
        for rule in ("sum", "delta"):
            errors = retrieval_errors(keys, rule, generator)
            measured[f"capacity-through-{name}-{rule}"] = ("capacity", capacity(errors))
    return measured


def _orthonormal(keys: Tensor, d_dot: int, generator: torch.Generator) -> Measured:
    measured: Measured = {}
    for rule in ("sum", "delta"):
        errors = retrieval_errors(keys, rule, generator)
        measured[f"capacity-{rule}-d{d_dot}"] = ("capacity", capacity(errors))
        measured[f"error-beyond-capacity-{rule}-d{d_dot}"] = ("retrieval_error", errors[d_dot])
    bound = [least_squares_error(keys[:n]) for n in range(1, len(keys) + 1)]
    measured[f"capacity-bound-d{d_dot}"] = ("capacity", capacity(bound))
    return measured


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw from N(0, 1) in float64."""
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def orthonormal_keys(d_dot: int, generator: torch.Generator) -> Tensor:
    """Return a random orthonormal basis and, after it, ``BEYOND`` random unit vectors, as rows."""
    basis = torch.linalg.qr(normal((d_dot, d_dot), generator)).Q
    more = normal((BEYOND, d_dot), generator)
    return torch.cat([basis, more / more.norm(dim=-1, keepdim=True)])


def one_hot_images(nu: int) -> Tensor:
    """Return keys in R^64 whose images under φ are all the one-hot vectors, as rows.

    DPFP-ν: two active entries of [relu(k); relu(−k)] at cyclic distance j ≤ ν have one product,
    so their image is one-hot. ELU + 1 (``nu`` 0): exp(−1000) is 0 in float64, and φ(0) is 1.
    """
    if nu == 0:
        return -1000 * (1 - torch.eye(D_KEY, dtype=torch.float64))
    pairs = [(a, (a - j) % (2 * D_KEY)) for j in range(1, nu + 1) for a in range(2 * D_KEY)]
    halves = torch.zeros(len(pairs), 2 * D_KEY, dtype=torch.float64)
    halves.scatter_(1, torch.tensor(pairs), 1.0)
    return halves[:, :D_KEY] - halves[:, D_KEY:]


def retrieval_errors(keys: Tensor, rule: str, generator: torch.Generator) -> list[float]:
    """Write ``keys`` ``[n, d_dot]`` one by one and read all written so far after each.

    Returns the relative errors after 1, 2, … n writes; the delta rule writes with β = 1.
    """
    V = normal((len(keys), D_VALUE), generator)
    S = torch.zeros(keys.shape[1], D_VALUE, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    errors = []
    for n, (k, v) in enumerate(zip(keys, V, strict=True), start=1):
        S = sum_step(S, k, v) if rule == "sum" else delta_step(S, k, v, one)
        errors.append(float((keys[:n] @ S - V[:n]).abs().max() / V[:n].abs().max()))
    return errors


def least_squares_error(keys: Tensor) -> float:
    """Return the error of the best state that any rule could reach for ``keys`` ``[n, d_dot]``.

    Values are one-hot, so every linear read-out is covered: min over S of ‖K S − I‖_F / √n.
    """
    identity = torch.eye(len(keys), dtype=torch.float64)
    S = torch.linalg.lstsq(keys, identity, driver="gelsd").solution
    return float((keys @ S - identity).norm() / identity.norm())


def capacity(errors: list[float]) -> float:
    """Return the number of associations up to which every error is at most 1e-9."""
    return float(next((n for n, error in enumerate(errors) if not error <= EXACT), len(errors)))
