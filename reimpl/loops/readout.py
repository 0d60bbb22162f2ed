"""The compiled loops as differentiable torch functions on tables of projected embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from records.errors import ConfigError
from reimpl.feature_maps import Dpfp, Elu1, Favor, FeatureMap
from reimpl.loops import dpfp_sum, weights
from reimpl.loops.features import DPFP, ELU1, FAVOR, Tables


class Written(NamedTuple):
    """What the sequences write: the tables, and which of their rows each write adds up.

    ``A`` ``[S, d]`` and ``B`` ``[S, d]`` hold the parts of a key that come from its symbol and
    from its value; ``keys``, ``values`` ``[b, L]`` are the rows, int64.
    """

    A: Tensor
    B: Tensor
    keys: Tensor
    values: Tensor

    @property
    def k(self) -> Tensor:
        """The keys themselves, ``[b, L, d]``."""
        return self.A[self.keys] + self.B[self.values]


def sum_weights(phi: FeatureMap, written: Written, q: Tensor) -> Tensor:
    """Return φ(kᵢ)·φ(q) for every write (Eq. 17): ``[b, L]``; ``q`` ``[b, d]`` is the query."""
    phi.d_dot(q.shape[-1])
    inner = q if isinstance(phi, Dpfp) else phi(q)
    return _apply(_Sum, phi, _rows(written), *_parts(phi, written), inner)


def delta_weights(
    phi: FeatureMap, written: Written, gates: tuple[Tensor, Tensor], q: Tensor
) -> Tensor:
    """Return the weight of every written value in the delta rule's answers: ``[b, L]``.

    Keys are divided by the sum of their features (Eq. 29); ``q`` ``[b, d_dot]`` is used as given.
    ``gates`` ``[S]`` hold the parts of β's logit that come from the symbol and from the value.
    """
    phi.d_dot(written.A.shape[-1])
    return _apply(_Delta, phi, _rows(written), *_parts(phi, written), *gates, q)


def _apply(function: Any, *arguments: Any) -> Tensor:
    weights: Tensor = function.apply(*arguments)
    return weights


Pair = tuple[Any, Any]


def _kind(phi: FeatureMap) -> int:
    kinds: dict[type[FeatureMap], int] = {Elu1: ELU1, Dpfp: DPFP, Favor: FAVOR}
    if type(phi) not in kinds:
        raise ConfigError(
            f"no compiled loop for the feature map {type(phi).__name__}; use ELU+1, DPFP or FAVOR+"
        )
    return kinds[type(phi)]


def _rows(written: Written) -> Pair:
    """Return keys and values as the loops read them, who trust that they lie in the tables."""
    for rows, table in zip(written[2:], written[:2], strict=True):
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < len(table):
            raise ConfigError(
                f"rows from {int(rows.min())} to {int(rows.max())} are written, "
                f"but the table has rows 0 to {len(table) - 1}"
            )
    return written.keys.contiguous().numpy(), written.values.contiguous().numpy()


def _parts(phi: FeatureMap, written: Written) -> tuple[Tensor, Tensor]:
    """Return the tables as the loops differentiate them: see ``features``."""
    if not isinstance(phi, Favor):
        return written.A, written.B
    return _with_exponents(phi, written.A, phi.d_dot(0)), _with_exponents(phi, written.B, 1)


def _with_exponents(phi: Favor, x: Tensor, size: int) -> Tensor:
    """Return [x; u]: ``[S, d + 2m]``, u the logarithm of φ(x), times √(2m/``size``)."""
    assert phi.R is not None
    u = x @ phi.R.to(x).T
    shift = (x.square().sum(-1, keepdim=True) + math.log(size)) / 2
    return torch.cat([x, u - shift, -u - shift], dim=-1)


def _ready(phi: FeatureMap, A: Tensor, B: Tensor) -> Tables:
    """Return the tables as the loops read them."""
    (a, xa), (b, xb) = _ready_one(phi, A), _ready_one(phi, B)
    return Tables(_kind(phi), getattr(phi, "nu", 0), a, b, xa, xb)


def _ready_one(phi: FeatureMap, table: Tensor) -> Pair:
    table = table.detach().contiguous()
    if isinstance(phi, Elu1):
        return table.numpy(), table.exp().numpy()
    if isinstance(phi, Favor):
        x, u = torch.tensor_split(table, [-phi.d_dot(0)], dim=-1)
        shift = u.amax(-1, keepdim=True)
        return torch.cat([x, torch.exp(u - shift)], -1).numpy(), shift.numpy()
    return table.numpy(), table[:, :0].numpy()


def _zeros(arrays: Iterable[Any], like: Tensor) -> list[Tensor]:
    return [torch.zeros(array.shape, dtype=like.dtype) for array in arrays]


def _numpy(tensors: Iterable[Tensor]) -> Any:
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


class _Sum(torch.autograd.Function):
    """``q`` is φ(q), or the query itself for DPFP, which has a loop of its own."""

    @staticmethod
    def forward(ctx: Any, phi: FeatureMap, rows: Pair, A: Tensor, B: Tensor, q: Tensor) -> Tensor:
        ctx.loops = (
            (dpfp_sum.forward, dpfp_sum.backward)
            if isinstance(phi, Dpfp)
            else (weights.sum_forward, weights.sum_backward)
        )
        ctx.given = (_ready(phi, A, B), rows, *_numpy([q]))
        w = q.new_empty(rows[0].shape)
        ctx.loops[0](*ctx.given, w.numpy())
        return w

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dw: Tensor) -> tuple[Tensor | None, ...]:
        tables, _, q = ctx.given
        dA, dB, dq = _zeros((tables.A, tables.B, q), dw)
        ctx.loops[1](*ctx.given, *_numpy([dw]), _numpy([dA, dB]), dq.numpy())
        return None, None, dA, dB, dq


class _Delta(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        phi: FeatureMap,
        rows: Pair,
        A: Tensor,
        B: Tensor,
        GA: Tensor,
        GB: Tensor,
        q: Tensor,
    ) -> Tensor:
        ctx.given = (_ready(phi, A, B), _numpy([GA, GB]), rows)
        w, p = q.new_empty(rows[0].shape), torch.empty_like(q)
        weights.delta_forward(*ctx.given, *_numpy([q]), w.numpy(), p.numpy())
        ctx.save_for_backward(w, p)
        return w

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dw: Tensor) -> tuple[Tensor | None, ...]:
        w, p = ctx.saved_tensors
        tables, gates, _ = ctx.given
        dA, dB, dGA, dGB, dq = found = _zeros((tables.A, tables.B, *gates, p), dw)
        into = (_numpy([dA, dB]), _numpy([dGA, dGB]), dq.numpy())
        weights.delta_backward(*ctx.given, *_numpy([w, p.clone(), dw]), *into)
        return None, None, *found
