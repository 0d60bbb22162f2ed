"""App. B: one write into a state with two stored associations, by the delta and the gated rule."""

from __future__ import annotations

import torch

from reimpl.experiments.exact import Measured
from reimpl.experiments.exact_capacity import normal, orthonormal_keys
from reimpl.experiments.exact_equivalence import relative_error
from reimpl.rules import delta_step, gated_sum_step, outer, read

D_DOT, D_VALUE = 32, 8


def measure(seed: int) -> Measured:
    """Store (k₁, v₁) and (k₂, v₂), write (k₂, v₃), and compare the reads with App. B."""
    generator = torch.Generator().manual_seed(seed)
    k1, k2 = orthonormal_keys(D_DOT, generator)[:2]
    v1, v2, v3 = normal((3, D_VALUE), generator)
    beta = torch.rand((), generator=generator, dtype=torch.float64)
    stored = outer(k1, v1) + outer(k2, v2)
    delta = delta_step(stored, k2, v3, beta)
    gated = gated_sum_step(stored, k2, v3, beta)
    mixed = (1 - beta) * v2 + beta * v3
    errors = {
        "appendix-b-delta-rewrites": relative_error(read(delta, k2), mixed),
        "appendix-b-gated-rewrites": relative_error(read(gated, k2), mixed),
        "appendix-b-delta-keeps": relative_error(read(delta, k1), v1),
        "appendix-b-gated-scales": relative_error(read(gated, k1), (1 - beta) * v1),
    }
    return {slug: ("max_relative_error", error) for slug, error in errors.items()}
