"""The feature maps φ that turn keys and queries into fast-weight addresses (Sec. 5).

A map is a module called on ``[..., d_key]`` that returns ``[..., d_dot]``; ``d_dot(d_key)`` tells
the output size without computing anything. All maps are non-negative except ``tanh``, so all but
``tanh`` can be sum-normalised (Eq. 29).
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, relu

from records.errors import ConfigError


class FeatureMap(nn.Module):
    """φ: ``[..., d_key]`` to ``[..., d_dot(d_key)]``.

    ``signed`` tells whether features can be negative, so that their sum is no normaliser.
    """

    signed: ClassVar[bool] = False

    @abstractmethod
    def d_dot(self, d_key: int) -> int:
        """Return the size of φ(k) for keys of size ``d_key``."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Map keys or queries ``[..., d_key]`` to ``[..., d_dot]``."""

    def redraw(self, d_key: int) -> None:
        """Draw new random features; a map without randomness does nothing."""


class Elu1(FeatureMap):
    """φ(x) = ELU(x) + 1 (Katharopoulos et al. 2020), element by element; values above 0."""

    def d_dot(self, d_key: int) -> int:
        """Return ``d_key``: the map keeps the dimension."""
        return d_key

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., d_key]`` to ``[..., d_key]``."""
        return elu(x) + 1


class Tanh(FeatureMap):
    """φ(x) = tanh(x), as the fast weight memory uses it; signed, so it cannot be sum-normalised."""

    signed = True

    def d_dot(self, d_key: int) -> int:
        """Return ``d_key``: the map keeps the dimension."""
        return d_key

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., d_key]`` to ``[..., d_key]``."""
        return torch.tanh(x)


class Dpfp(FeatureMap):
    """DPFP-ν, Eq. 37: products of the rectified, mirrored input with its rolled copies.

    ``nu`` (ν) must be at least 1; a call raises ConfigError where ν exceeds 2 d_key − 1, because
    rolling by 2 d_key gives the input again.
    """

    def __init__(self, nu: int) -> None:
        super().__init__()
        if nu < 1:
            raise ConfigError(f"DPFP needs ν of at least 1, got {nu}; use dpfp1, dpfp2, …")
        self.nu = nu

    def d_dot(self, d_key: int) -> int:
        """Return 2 d_key ν; raises ConfigError where ν is out of range for ``d_key``."""
        if self.nu > 2 * d_key - 1:
            raise ConfigError(
                f"DPFP-{self.nu} does not exist for d_key = {d_key}: ν runs from 1 to "
                f"2·d_key − 1 = {2 * d_key - 1}; lower ν or take larger keys"
            )
        return 2 * d_key * self.nu

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., d_key]`` to ``[..., 2 d_key ν]``."""
        self.d_dot(x.shape[-1])
        halves = torch.cat([relu(x), relu(-x)], dim=-1)
        return torch.cat([halves * halves.roll(j, -1) for j in range(1, self.nu + 1)], dim=-1)


class Favor(FeatureMap):
    """FAVOR+ (Choromanski et al. 2021), Eq. 31-32, with m orthogonal random features.

    Each block of d_key rows of R is orthogonal, and each single row is a Gaussian vector up to its
    sign, which [exp(Rx); exp(−Rx)] does not see: φ(x)·φ(y) has the mean exp(x·y).
    Features are drawn at the first call, in float64 on the CPU from ``generator`` (torch's global
    one where None), so that a seed means the same features on every device; ``redraw`` draws anew.
    """

    R: Tensor | None

    def __init__(self, m: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if m < 1:
            raise ConfigError(f"FAVOR+ needs at least one random feature, got m = {m}")
        self.m = m
        self.generator = generator
        self.register_buffer("R", None, persistent=False)

    def d_dot(self, d_key: int) -> int:
        """Return 2 m, whatever ``d_key``."""
        return 2 * self.m

    def redraw(self, d_key: int) -> None:
        """Draw the m × d_key matrix R.

        Directions are the columns of Q of a Gaussian's QR factorisation; their lengths are the
        norms of its columns, which belong to the triangular factor and so do not depend on Q.
        """
        blocks = -(-self.m // d_key)
        gauss = torch.randn(
            blocks, d_key, d_key, generator=self.generator, dtype=torch.float64, device="cpu"
        )
        directions = torch.linalg.qr(gauss).Q
        lengths = gauss.norm(dim=-2, keepdim=True)
        self.R = (directions * lengths).mT.reshape(-1, d_key)[: self.m]

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., d_key]`` to ``[..., 2 m]``: [exp(Rx); exp(−Rx)] exp(−‖x‖²/2) / √(2m)."""
        if self.R is None or self.R.shape[1] != x.shape[-1]:
            self.redraw(x.shape[-1])
        assert self.R is not None
        u = x @ self.R.to(x).T
        shift = (x.square().sum(-1, keepdim=True) + math.log(2 * self.m)) / 2
        return torch.cat([torch.exp(u - shift), torch.exp(-u - shift)], dim=-1)


def feature_map(name: str, generator: torch.Generator | None = None) -> FeatureMap:
    """Return the map called ``elu1``, ``tanh``, ``dpfp<ν>`` or ``favor<m>``.

    ``generator`` is where FAVOR+ draws its features from. Raises ConfigError for other names.
    """
    if name == "elu1":
        return Elu1()
    if name == "tanh":
        return Tanh()
    match = re.fullmatch(r"(dpfp|favor)(\d+)", name)
    if match is None:
        raise ConfigError(
            f"unknown feature map {name!r}; use elu1, tanh, dpfp<ν> (dpfp1, dpfp2, …) or "
            "favor<m> (favor64, …)"
        )
    size = int(match[2])
    return Dpfp(size) if match[1] == "dpfp" else Favor(size, generator)


def sum_normalise(x: Tensor, eps: float = 0.0) -> Tensor:
    """Divide non-negative features ``[..., d_dot]`` by their sum plus ``eps`` (Eq. 29)."""
    return x / (x.sum(-1, keepdim=True) + eps)
