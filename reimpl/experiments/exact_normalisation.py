"""App. A.2: what sum normalisation (Eq. 29) does to the delta rule, and what happens without."""

from __future__ import annotations

import torch
from torch import Tensor

from reimpl.experiments.exact import Measured
from reimpl.experiments.exact_capacity import normal
from reimpl.experiments.exact_equivalence import relative_error
from reimpl.feature_maps import feature_map, sum_normalise
from reimpl.rules import delta_step, read

MAPS = ("elu1", "dpfp1", "dpfp3")
KEYS, D_KEY, D_VALUE = 64, 16, 8
WRITES = 12
UNSTABLE = 3.0


def measure(seed: int) -> Measured:
    """Return the errors of A.2's identities and the growth of repeatedly written states."""
    generator = torch.Generator().manual_seed(seed)
    phis = [feature_map(name)(normal((KEYS, D_KEY), generator)) for name in MAPS]
    growth = [_growth_without(k, generator) for k in phis]
    bounded = [growth_factors(sum_normalise(k), _beta(generator), generator) for k in phis]
    name = "max_relative_error"
    return {
        "sum-normalisation-identity": (name, max(identity_error(k) for k in phis)),
        "sum-normalisation-balance": (name, max(balance_error(k, generator) for k in phis)),
        "growth-without-normalisation": ("growth_factor", min(g for g, _ in growth)),
        "growth-factor-prediction": (name, max(error for _, error in growth)),
        "growth-with-sum-normalisation": (
            "growth_factor",
            max(float(b.max()) for b in bounded),
        ),
    }


def _beta(generator: torch.Generator) -> Tensor:
    return torch.sigmoid(normal((KEYS,), generator))


def identity_error(phi: Tensor) -> float:
    """Return how far Σⱼ kᵢ kⱼ is from kᵢ for sum-normalised features ``phi`` ``[n, d_dot]``."""
    k = sum_normalise(phi)
    return relative_error((k[:, :, None] * k[:, None, :]).sum(-1), k)


def balance_error(phi: Tensor, generator: torch.Generator) -> float:
    """Return how far a write of v is from removing as much of v̄ as it writes of v (β = 1).

    The weight of a value in the state is the sum of its coefficients over the key components: a
    real delta step must change Σⱼ Sⱼ by exactly v − v̄.
    """
    k = sum_normalise(phi)
    S, v = normal((KEYS, k.shape[1], D_VALUE), generator), normal((KEYS, D_VALUE), generator)
    change = delta_step(S, k, v, torch.ones(KEYS, dtype=S.dtype)) - S
    return relative_error(change.sum(-2), v - read(S, k))


def growth_factors(k: Tensor, beta: Tensor, generator: torch.Generator) -> Tensor:
    """Return the factor by which the error at ``k`` ``[n, d_dot]`` changes per repeated write.

    One value is written ``WRITES`` times at the same key; the factor is the geometric mean.
    """
    v = normal((len(k), D_VALUE), generator)
    S = torch.zeros(len(k), k.shape[1], D_VALUE, dtype=k.dtype)
    for _ in range(WRITES):
        S = delta_step(S, k, v, beta)
    ratio: Tensor = (v - read(S, k)).norm(dim=-1) / v.norm(dim=-1)
    return ratio.pow(1 / WRITES)


def _growth_without(phi: Tensor, generator: torch.Generator) -> tuple[float, float]:
    """Return the smallest growth where β‖φ(k)‖² > 2 and its distance from |1 − β‖φ(k)‖²|.

    Keys are scaled to β‖φ(k)‖² between 3 and 6, as unnormalised keys may have any length.
    """
    beta = _beta(generator)
    strength = UNSTABLE * (1 + torch.rand(KEYS, generator=generator, dtype=phi.dtype))
    k = phi * (strength / beta / phi.square().sum(-1)).sqrt()[:, None]
    found = growth_factors(k, beta, generator)
    predicted = (1 - beta * k.square().sum(-1)).abs()
    return float(found.min()), relative_error(found, predicted)
