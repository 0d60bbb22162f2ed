"""Sec. 5: the size of φ(k) for keys of size 64, read off real outputs."""

from __future__ import annotations

import torch

from reimpl.experiments.exact import Measured
from reimpl.experiments.exact_capacity import image_size
from reimpl.feature_maps import feature_map

MAPS = ("elu1", "dpfp1", "dpfp2", "dpfp3", "favor64", "favor128", "favor512")


def measure(seed: int) -> Measured:
    """Return d_dot of every map."""
    generator = torch.Generator().manual_seed(seed)
    return {f"d-dot-{name}": ("d_dot", image_size(feature_map(name, generator))) for name in MAPS}
