"""App. A.2: what sum normalisation (Eq. 29) does to the delta rule, and what happens without.

Growth is that of one value v written again and again at one key k, from S = 0. With the strength
s = β‖k‖², Eq. 24 makes the error after n writes (1 − s)ⁿ v and the state k (1 − (1 − s)ⁿ) vᵀ/‖k‖².
So both grow without bound exactly where s > 2, where the norm after 2n writes, n even, is
1 + |1 − s|ⁿ > 2 times that after n; and where 0 ≤ s ≤ 1, as sum normalisation has it (Σk = 1,
k ≥ 0 and β ≤ 1), the error never grows and ‖S‖_F never exceeds ‖v‖/‖k‖.
"""

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
HALFWAY = 100
"""Writes, of twice as many, after which the norm of a growing state is taken."""
UNSTABLE = 3.0
JUST_ABOVE, JUST_BELOW = 2.01, 1.99
ROUNDING = 1e-12
"""Errors below this fraction of the value are rounding: going from one to another is no growth."""


def measure(seed: int) -> Measured:
    """Return the errors of A.2's identities, then errors and states under repeated writes."""
    generator = torch.Generator().manual_seed(seed)
    phis = [feature_map(name)(normal((KEYS, D_KEY), generator)) for name in MAPS]
    normalised = [sum_normalise(phi) for phi in phis]
    name = "max_relative_error"
    return {
        "sum-normalisation-identity": (name, max(identity_error(k) for k in normalised)),
        "sum-normalisation-balance": (name, max(balance_error(k, generator) for k in normalised)),
        **_error_growth(phis, generator),
        **_state_growth(phis, generator),
    }


def _beta(generator: torch.Generator) -> Tensor:
    return torch.sigmoid(normal((KEYS,), generator))


def identity_error(k: Tensor) -> float:
    """Return how far Σⱼ kᵢ kⱼ is from kᵢ for keys ``k`` ``[n, d_dot]``; 0 where Σⱼ kⱼ = 1."""
    return relative_error((k[:, :, None] * k[:, None, :]).sum(-1), k)


def balance_error(k: Tensor, generator: torch.Generator) -> float:
    """Return how far a write of v at ``k`` is from removing as much of v̄ as it writes of v (β = 1).

    The weight of a value in the state is the sum of its coefficients over the key components: a
    real delta step must change Σⱼ Sⱼ by exactly v − v̄.
    """
    S, v = normal((KEYS, k.shape[1], D_VALUE), generator), normal((KEYS, D_VALUE), generator)
    change = delta_step(S, k, v, torch.ones(KEYS, dtype=S.dtype)) - S
    return relative_error(change.sum(-2), v - read(S, k))


def _error_growth(phis: list[Tensor], generator: torch.Generator) -> Measured:
    """Return the extremes of the error's growth over all steps, keys and maps."""
    pairs = [_factors(phi, generator) for phi in phis]
    found = torch.stack([factors for factors, _ in pairs], 1)
    predicted = torch.stack([factor for _, factor in pairs], 1).unsqueeze(2)
    far, above, below, summed = found
    name = "growth_factor"
    return {
        "growth-without-normalisation": (name, float(far.min())),
        "growth-just-above-two": (name, float(above.min())),
        "growth-just-below-two": (name, float(below.max())),
        "growth-factor-prediction": (
            "max_relative_error",
            float((found[:3] / predicted - 1).abs().max()),
        ),
        "growth-with-sum-normalisation": (name, float(summed.max())),
    }


def _factors(phi: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return growth factors ``[4, 12, n]`` for ``phi`` ``[n, d_dot]``, and |1 − s| of three.

    The four are keys with s between 3 and 6, with s = 2.01, with s = 1.99, and the first ones again
    with Σk = 1, at the same β.
    """
    beta = _beta(generator)
    drawn = UNSTABLE * (1 + torch.rand(KEYS, generator=generator, dtype=phi.dtype))
    s = torch.stack([drawn, *(torch.full_like(drawn, x) for x in (JUST_ABOVE, JUST_BELOW))])
    keys = [scaled(phi, beta, strength) for strength in s]
    keys.append(sum_normalise(keys[0]))
    return torch.stack([growth_factors(k, beta, generator) for k in keys]), (1 - s).abs()


def _state_growth(phis: list[Tensor], generator: torch.Generator) -> Measured:
    """Return the least growth of ‖S‖_F from 100 to 200 writes at s = 2.01, and the largest norm.

    The latter is over all writes, with the same keys sum-normalised and as a multiple of ‖v‖/‖k‖.
    """
    ratios, largest = [], []
    for phi in phis:
        beta = _beta(generator)
        k = scaled(phi, beta, JUST_ABOVE)
        _, norms = repeated_writes(k, beta, 2 * HALFWAY, generator)
        ratios.append(float((norms[-1] / norms[HALFWAY]).min()))
        _, norms = repeated_writes(sum_normalise(k), beta, 2 * HALFWAY, generator)
        largest.append(float(norms.max()))
    return {
        "state-norm-without-normalisation": ("state_norm_ratio", min(ratios)),
        "state-norm-with-sum-normalisation": ("state_norm", max(largest)),
    }


def scaled(phi: Tensor, beta: Tensor, strength: Tensor | float) -> Tensor:
    """Return features ``phi`` ``[n, d_dot]`` at the length that makes β‖φ(k)‖² ``strength``."""
    return phi * (strength / beta / phi.square().sum(-1)).sqrt()[:, None]


def growth_factors(k: Tensor, beta: Tensor, generator: torch.Generator) -> Tensor:
    """Return the factor of the error at each of 12 writes ``[12, n]``; ``k`` ``[n, d_dot]``."""
    errors, _ = repeated_writes(k, beta, WRITES, generator)
    errors = errors.clamp(min=ROUNDING)
    return errors[1:] / errors[:-1]


def repeated_writes(
    k: Tensor, beta: Tensor, writes: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Write one random value again and again at each key ``k`` ``[n, d_dot]``, from S = 0.

    Returns the error ‖v − Sᵀk‖ / ‖v‖ and the state's norm ‖S‖_F ‖k‖ / ‖v‖ after 0, 1, … writes,
    both ``[writes + 1, n]``; ``beta`` is ``[n]``.
    """
    v = normal((len(k), D_VALUE), generator)
    S = torch.zeros(len(k), k.shape[1], D_VALUE, dtype=k.dtype)
    states = [S]
    for _ in range(writes):
        states.append(S := delta_step(S, k, v, beta))
    length = v.norm(dim=-1)
    errors = [(v - read(S, k)).norm(dim=-1) / length for S in states]
    norms = [S.flatten(-2).norm(dim=-1) * k.norm(dim=-1) / length for S in states]
    return torch.stack(errors), torch.stack(norms)
