"""How a chunk forgets: the products of decays inside it, and their gradients.

Every exponent is a sum of log decays over a stretch of positions, taken over that stretch itself
and never as a difference of two longer sums. So no exponent exceeds zero, a decay of −∞ forgets
everything without making NaN, and a gradient is a sum of the terms that it consists of.

A chunk has C keys k ``[n, C, d_key]`` and ``rows`` ``[n, r · C, d_key]`` that read: the queries, or
the keys and below them the queries (r = 2). The products are

- ``scores[i, j]`` = row_i · Diag(α_{j+1} … α_i) k_j, for j ≤ i, and j < i where row i is a key;
- ``reads[i]`` = Diag(α_1 … α_i) row_i, which reads the state at the chunk's start;
- ``writes[j]`` = Diag(α_{j+1} … α_C) k_j, which adds to the state at its end;
- ``carry`` = Diag(α_1 … α_C), ``[n, d_key or 1, 1]``, or None where it is the identity.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Decayed(NamedTuple):
    """The four products of the module's docstring, or their gradients."""

    scores: Tensor
    reads: Tensor
    writes: Tensor
    carry: Tensor | None


class Gradients(NamedTuple):
    """Gradients of the queries, of the keys wherever they stand, and of the log decay if any."""

    q: Tensor
    k: Tensor
    decay: Tensor | None


class Decay(Protocol):
    """One way to forget."""

    def apply(self, rows: Tensor, k: Tensor) -> Decayed:
        """Return the decayed products of a chunk."""

    def gradients(self, rows: Tensor, k: Tensor, products: Decayed, grads: Decayed) -> Gradients:
        """Return the gradients of the inputs of ``apply``; ``grads`` is used up."""


class NoDecay:
    """Rules that forget nothing by themselves (α = 1)."""

    def apply(self, rows: Tensor, k: Tensor) -> Decayed:
        """Return the scores; reads and writes are the rows and keys themselves."""
        return Decayed(_causal(torch.bmm(rows, k.mT)), rows, k, None)

    def gradients(self, rows: Tensor, k: Tensor, products: Decayed, grads: Decayed) -> Gradients:
        """Return the gradients; ``grads`` is used up."""
        d_scores = _causal(grads.scores)
        return Gradients(*_products(rows, k, d_scores, grads.reads, grads.writes), None)


class HeadDecay:
    """One decay a head and position; ``log_decay`` is ``[n, C]``."""

    def __init__(self, log_decay: Tensor) -> None:
        size = log_decay.shape[1]
        self._later = torch.ones(size, size, dtype=torch.bool, device=log_decay.device).tril(-1)
        each = log_decay[:, :, None].expand(-1, -1, size)
        self._within = torch.where(self._later, each, 0).cumsum(1).exp_()
        self._since_start = log_decay.cumsum(1).exp_()[:, :, None]
        self._until_end = _sum_after(log_decay, 1).exp_()[:, :, None]
        self._carry = self._since_start[:, -1:]

    def apply(self, rows: Tensor, k: Tensor) -> Decayed:
        """Return the decayed products of a chunk."""
        scores = _causal(torch.bmm(rows, k.mT))
        _by_kind(scores, k).mul_(self._within[:, None])
        reads = rows.clone()
        _by_kind(reads, k).mul_(self._since_start[:, None])
        return Decayed(scores, reads, k * self._until_end, self._carry)

    def gradients(self, rows: Tensor, k: Tensor, products: Decayed, grads: Decayed) -> Gradients:
        """Return the gradients; ``grads`` is used up."""
        assert grads.carry is not None
        d_scores = _causal(grads.scores)
        pairs = _by_kind(d_scores * products.scores, k).sum(1)
        crossing = torch.where(self._later, _sum_from(pairs, 1), 0).sum(2)
        since = _by_kind((grads.reads * products.reads).sum(-1), k).sum(1)
        until = (grads.writes * products.writes).sum(-1)
        across = grads.carry.sum((1, 2))[:, None] * self._carry[:, :, 0]
        d_decay = crossing + _sum_from(since, 1) + _sum_before(until, 1) + across
        _by_kind(d_scores, k).mul_(self._within[:, None])
        _by_kind(grads.reads, k).mul_(self._since_start[:, None])
        d_writes = grads.writes.mul_(self._until_end)
        return Gradients(*_products(rows, k, d_scores, grads.reads, d_writes), d_decay)


class KeyDecay:
    """One decay a key channel and position; ``log_decay`` is ``[n, C, d_key]``, C a power of two.

    The scores are built by halves: a pair (i, j) belongs to the one block whose second half holds i
    and whose first half holds j, where the decays split at the middle into one factor a row and one
    a column.
    """

    def __init__(self, log_decay: Tensor) -> None:
        self._log_decay = log_decay
        self._since_start = log_decay.cumsum(1).exp_()
        self._until_end = _sum_after(log_decay, 1).exp_()
        self._carry = self._since_start[:, -1, :, None]

    def apply(self, rows: Tensor, k: Tensor) -> Decayed:
        """Return the decayed products of a chunk."""
        size = k.shape[1]
        scores = rows.new_zeros(len(rows), rows.shape[1], size)
        _own(scores).copy_((rows[:, -size:] * k).sum(-1))
        for half in _halves(size):
            block_rows, columns, _, _ = self._split(rows, k, half)
            products = torch.einsum("nbrid,nbjd->nbrij", block_rows, columns)
            _blocks(scores, half).copy_(products)
        reads = rows.clone()
        _by_kind(reads, k).mul_(self._since_start[:, None])
        return Decayed(scores, reads, k * self._until_end, self._carry)

    def gradients(self, rows: Tensor, k: Tensor, products: Decayed, grads: Decayed) -> Gradients:
        """Return the gradients; ``grads`` is used up."""
        assert grads.carry is not None
        size = k.shape[1]
        since = _by_kind(grads.reads * products.reads, k).sum(1)
        until = grads.writes * products.writes
        across = (grads.carry.sum(2, keepdim=True) * self._carry).mT
        d_decay = _sum_from(since, 1) + _sum_before(until, 1) + across
        d_rows, d_k = grads.reads, grads.writes.mul_(self._until_end)
        _by_kind(d_rows, k).mul_(self._since_start[:, None])
        own = _own(grads.scores)[..., None]
        d_k += own * rows[:, -size:]
        d_rows[:, -size:] += own * k
        for half in _halves(size):
            block_rows, columns, from_middle, to_middle = self._split(rows, k, half)
            d_block = _blocks(grads.scores, half)
            d_block_rows = torch.einsum("nbrij,nbjd->nbrid", d_block, columns)
            d_columns = torch.einsum("nbrij,nbrid->nbjd", d_block, block_rows)
            first, second = _two_halves(d_decay, half)
            second += _sum_from((d_block_rows * block_rows).sum(2), 2)
            first += _sum_before(d_columns * columns, 2)
            _second_rows(d_rows, size, half).add_(d_block_rows * from_middle[:, :, None])
            _two_halves(d_k, half)[0].add_(d_columns * to_middle)
        if rows.shape[1] > size:
            d_k += d_rows[:, :size]
        return Gradients(d_rows[:, -size:], d_k, d_decay)

    def _split(self, rows: Tensor, k: Tensor, half: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return decayed rows ``[n, blocks, r, half, d]`` and columns, and the two factors."""
        first, second = _two_halves(self._log_decay, half)
        from_middle = second.cumsum(2).exp_()
        to_middle = _sum_after(first, 2).exp_()
        block_rows = _second_rows(rows, k.shape[1], half) * from_middle[:, :, None]
        return block_rows, _two_halves(k, half)[0] * to_middle, from_middle, to_middle


def _products(
    rows: Tensor, k: Tensor, d_scores: Tensor, d_reads: Tensor, d_writes: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of queries and keys where scores are plain products of rows and keys.

    Keys' scores are products of k with itself, D k + Dᵀ k = (D + Dᵀ) k. All but ``rows`` and ``k``
    are used up.
    """
    size = k.shape[1]
    if rows.shape[1] == size:
        return d_reads.baddbmm_(d_scores, k), d_writes.baddbmm_(d_scores.mT, rows)
    dq = torch.baddbmm(d_reads[:, size:], d_scores[:, size:], k)
    of_keys = d_scores[:, :size]
    of_keys.copy_(of_keys + of_keys.mT)
    return dq, d_writes.baddbmm_(d_scores.mT, rows).add_(d_reads[:, :size])


def _causal(scores: Tensor) -> Tensor:
    """Zero the scores of later keys, and of a key with itself, in place."""
    return scores.mul_(_mask(scores.shape[1], scores.shape[2], scores.dtype, scores.device))


@lru_cache(maxsize=16)
def _mask(rows: int, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    ones = torch.ones(size, size, dtype=dtype, device=device)
    return ones.tril() if rows == size else torch.cat([ones.tril(-1), ones.tril()])


def _by_kind(x: Tensor, k: Tensor) -> Tensor:
    """Return a view of ``[n, r · C, ...]`` as ``[n, r, C, ...]``."""
    return torch.unflatten(x, 1, (-1, k.shape[1]))


def _halves(size: int) -> list[int]:
    """Return half the size, a quarter of it, ... , 1."""
    return [size >> i for i in range(1, size.bit_length())]


def _two_halves(x: Tensor, half: int) -> tuple[Tensor, Tensor]:
    """Return views of the first and second halves ``[n, blocks, half, d]`` of each block of x."""
    blocks = torch.unflatten(x, 1, (-1, 2, half))
    return blocks[:, :, 0], blocks[:, :, 1]


def _second_rows(rows: Tensor, size: int, half: int) -> Tensor:
    """Return a view ``[n, blocks, r, half, d]`` of the rows in second halves."""
    return torch.unflatten(rows, 1, (-1, size // (2 * half), 2, half))[:, :, :, 1].transpose(1, 2)


def _blocks(scores: Tensor, half: int) -> Tensor:
    """Return a view ``[n, blocks, r, half, half]``: rows of a second half, columns of its first."""
    count = scores.shape[2] // (2 * half)
    blocks = torch.unflatten(torch.unflatten(scores, 2, (count, 2, half)), 1, (-1, count, 2, half))
    return blocks[:, :, :, 1, :, :, 0].diagonal(dim1=2, dim2=4).permute(0, 4, 1, 2, 3)


def _own(scores: Tensor) -> Tensor:
    """Return a view ``[n, C]`` of the queries' scores with the keys of their own positions."""
    return scores[:, -scores.shape[2] :].diagonal(dim1=1, dim2=2)


def _sum_from(x: Tensor, dim: int) -> Tensor:
    """Return the sum over each position and those after it."""
    return x.flip(dim).cumsum(dim).flip(dim)


def _sum_after(x: Tensor, dim: int) -> Tensor:
    """Return the sum over the positions after each one."""
    successors = torch.zeros_like(x)
    successors.narrow(dim, 0, x.shape[dim] - 1).copy_(x.narrow(dim, 1, x.shape[dim] - 1))
    return _sum_from(successors, dim)


def _sum_before(x: Tensor, dim: int) -> Tensor:
    """Return the sum over the positions before each one."""
    forerunners = torch.zeros_like(x)
    forerunners.narrow(dim, 1, x.shape[dim] - 1).copy_(x.narrow(dim, 0, x.shape[dim] - 1))
    return forerunners.cumsum(dim)
