"""Sec. 5: the size of φ(k) for keys of size 64, and which features of DPFP-1 a plane's keys use."""

from __future__ import annotations

import torch
from torch import Tensor

from reimpl.experiments.exact import Measured
from reimpl.experiments.exact_capacity import D_KEY, normal
from reimpl.feature_maps import FeatureMap, feature_map

MAPS = ("elu1", "dpfp1", "dpfp2", "dpfp3", "favor64", "favor128", "favor512")
PLANE_KEYS = 4096


def measure(seed: int) -> Measured:
    """Return d_dot of every map, and how DPFP-1 shares out the quadrants of the plane."""
    generator = torch.Generator().manual_seed(seed)
    measured: Measured = {
        f"d-dot-{name}": ("d_dot", image_size(feature_map(name, generator))) for name in MAPS
    }
    keys = normal((PLANE_KEYS, 2), generator)
    active = feature_map("dpfp1")(keys) > 0
    measured["dpfp-quadrants"] = ("active_features", active_features(active))
    measured["dpfp-quadrants-differ"] = ("features_of_one_quadrant", own_features(keys, active))
    return measured


def image_size(phi: FeatureMap) -> int:
    """Return d_dot of ``phi`` for keys of size 64, from the shape of a real output."""
    return int(phi(torch.zeros(1, D_KEY)).shape[-1])


def active_features(active: Tensor) -> int:
    """Return the number of active features per key, of ``active`` ``[n, d_dot]``.

    Where keys differ, it is the number that is furthest from one.
    """
    counts = active.sum(-1)
    return int(counts[(counts - 1).abs().argmax()])


def own_features(keys: Tensor, active: Tensor) -> int:
    """Return how many features are active for keys ``[n, 2]`` of one quadrant and of no other."""
    quadrant = 2 * (keys[:, 0] > 0) + (keys[:, 1] > 0)
    used = torch.stack([active[quadrant == i].any(0) for i in range(4)])
    return int((used.sum(0) == 1).sum())
