"""The fast-weight update by chunks, in plain torch: matrix products, and one step a chunk.

Inside a chunk the reads Y of all keys and queries are affine in the state S at its start and in the
chunk's own writes V (UT transform; Yang et al. 2024, arXiv 2406.06484):

    Y = reads S + scores V             keys' rows above, queries' rows below
    E = v − Y_keys,  V = β E           so E = (I + scores_keys diag β)⁻¹ (v − reads_keys S)
    S ← carry S + writesᵀ V

with the products of ``decays``. Rules that do not look before they write have V = v and no keys'
rows. The gradient runs the same recursion backward. States are kept for the first position of each
chunk only, so memory is linear in length; chunks are taken a few at a time, so that what is at work
stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from reimpl.ops.decays import Decay, Decayed, HeadDecay, KeyDecay, NoDecay
from reimpl.ops.packing import Group, Packing, Step, most_chunks, plan
from reimpl.ops.problem import Problem

GROUP_NUMBERS = 2**17
"""Numbers in one tensor of a group of chunks: half a megabyte in float32."""
SUBSTITUTED = 16
"""Largest triangular matrix that is inverted by substitution; larger ones by halves."""
TINY = 1e-30
"""Stands in for β = 0 where β is divided by; what it adds is lost in rounding."""


class Chunks(NamedTuple):
    """A group's inputs, n = chunks · heads.

    ``rows`` ``[n, r · C, d_key]`` holds the keys if the rule looks, and the queries (scaled); k is
    ``[n, C, d_key]``, v ``[n, C, d_value]``, ``beta`` ``[n, C, 1]`` or None.
    """

    rows: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor | None
    decay: Decay


def saved_shapes(problem: Problem, chunk_size: int) -> list[tuple[int, ...]]:
    """Return the shapes of what ``forward`` keeps, with room for the most chunks there can be.

    States at the chunks' starts; for rules that look, the errors E and the inverse matrices.
    """
    p, size = problem, fitting_size(problem, chunk_size)
    sequences = None if p.cu_seqlens is None else p.sequences
    n = most_chunks(p.batch, p.length, sequences, size) * p.heads
    states = (n, p.d_key, p.d_value)
    return [states, (n, size, p.d_value), (n, size, size)] if p.looks else [states]


def fitting_size(problem: Problem, chunk_size: int) -> int:
    """Return the chunk size, or the power of two that holds the whole length if that is less."""
    return min(chunk_size, 1 << (problem.length - 1).bit_length())


def forward(problem: Problem, chunk_size: int, keep: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return outputs, last states and, if ``keep``, what ``backward`` needs."""
    p = problem
    packing = plan(p.batch, p.length, p.cu_seqlens, fitting_size(p, chunk_size))
    shapes = saved_shapes(p, chunk_size) if keep else []
    saved = [p.v.new_empty(shape, dtype=p.dtype) for shape in shapes]
    output = p.v.new_empty(p.v.shape, dtype=p.output_dtype)
    S = packing.sort(p.initial()).flatten(0, 1)
    for group in packing.groups(_group_chunks(p, packing)):
        place = slice(group.start * p.heads, (group.start + group.chunks) * p.heads)
        y = _forward_group(p, packing, group, S, [kept[place] for kept in saved])
        packing.unpack_into(output, torch.unflatten(y, 0, (-1, p.heads)), group)
    return output, packing.unsort(torch.unflatten(S, 0, (-1, p.heads))), saved


def _forward_group(
    p: Problem, packing: Packing, group: Group, S: Tensor, kept: list[Tensor]
) -> Tensor:
    """Return the group's outputs ``[n, C, d_value]``; S goes on in place, ``kept`` is filled."""
    x = _cut(p, packing, group)
    products = x.decay.apply(x.rows, x.k)
    size = x.k.shape[1]
    y = x.v.new_empty(len(x.v), x.rows.shape[1], p.d_value)
    writes = x.v
    if x.beta is not None:
        corrections = products.scores[:, :size] * x.beta.mT
        inverse = kept[2] if kept else torch.empty_like(corrections)
        invert_unit_lower(corrections, out=inverse)
        errors = kept[1] if kept else torch.empty_like(x.v)
        writes = torch.empty_like(x.v)
    for place, n in _slices(group.steps, group.start, p.heads):
        state = S[:n]
        if kept:
            kept[0][place] = state
        torch.bmm(products.reads[place], state, out=y[place])
        if x.beta is not None:
            torch.bmm(inverse[place], x.v[place] - y[place, :size], out=errors[place])
            torch.mul(errors[place], x.beta[place], out=writes[place])
        if products.carry is not None:
            state.mul_(products.carry[place])
        state.baddbmm_(products.writes[place].mT, writes[place])
    return torch.baddbmm(y[:, -size:], products.scores[:, -size:], writes)


def backward(
    problem: Problem, saved: list[Tensor], d_output: Tensor, d_state: Tensor, chunk_size: int
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """Return the gradients of q, k, v, beta, decay and the initial state, contiguous.

    ``d_state`` is that of the last states. Those of beta and decay are None where there is none.
    """
    p = problem
    packing = plan(p.batch, p.length, p.cu_seqlens, fitting_size(p, chunk_size))
    inputs = (p.q, p.k, p.v, p.beta, p.decay)
    grads = [None if x is None else x.new_empty(x.shape) for x in inputs]
    dS = packing.sort(d_state.to(p.dtype)).flatten(0, 1)
    for group in reversed(list(packing.groups(_group_chunks(p, packing)))):
        place = slice(group.start * p.heads, (group.start + group.chunks) * p.heads)
        kept = [each[place] for each in saved]
        parts = _backward_group(p, packing, group, dS, kept, d_output)
        for grad, part in zip(grads, parts, strict=True):
            if grad is not None and part is not None:
                packing.unpack_into(grad, torch.unflatten(part, 0, (-1, p.heads)), group)
    dq, dk, dv, d_beta, d_decay = grads
    assert dq is not None
    assert dk is not None
    assert dv is not None
    return dq, dk, dv, d_beta, d_decay, packing.unsort(torch.unflatten(dS, 0, (-1, p.heads)))


def _backward_group(
    p: Problem, packing: Packing, group: Group, dS: Tensor, kept: list[Tensor], d_output: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the gradients of q, k, v, beta, decay in chunks; dS goes back in place.

    With h the gradient of a write V before the later reads of it in its chunk are known,
    (I + diag β · scores_keys)ᵀ h = scores_queriesᵀ dO + writes dS, d_v = β h and d_β = E · h.
    """
    x = _cut(p, packing, group)
    products = x.decay.apply(x.rows, x.k)
    n, size = len(x.v), x.k.shape[1]
    states = kept[0]
    writes = x.v if x.beta is None else kept[1] * x.beta
    d_reads = x.v.new_empty(n, x.rows.shape[1], p.d_value)
    packing.pack_into(torch.unflatten(d_reads[:, -size:], 0, (-1, p.heads)), d_output, group)
    d_writes = torch.bmm(products.scores[:, -size:].mT, d_reads[:, -size:])
    if x.beta is not None:
        solve = (kept[2] * x.beta).div_(x.beta.mT).mT
        minus_beta = -x.beta
        h = torch.empty_like(d_writes)
    d_write_keys = torch.empty_like(x.k)
    d_carry = None if products.carry is None else torch.empty_like(states)
    for place, active in reversed(list(_slices(group.steps, group.start, p.heads))):
        d_state = dS[:active]
        torch.bmm(writes[place], d_state.mT, out=d_write_keys[place])
        d_writes[place].baddbmm_(products.writes[place], d_state)
        if x.beta is not None:
            torch.bmm(solve[place], d_writes[place], out=h[place])
            torch.mul(h[place], minus_beta[place], out=d_reads[place, :size])
        if products.carry is not None and d_carry is not None:
            torch.mul(states[place], d_state, out=d_carry[place])
            d_state.mul_(products.carry[place])
        d_state.baddbmm_(products.reads[place].mT, d_reads[place])
    grads = Decayed(
        torch.bmm(d_reads, writes.mT), torch.bmm(d_reads, states.mT), d_write_keys, d_carry
    )
    dv, d_beta = d_writes, None
    if x.beta is not None:
        dv, d_beta = h * x.beta, (kept[1] * h).sum(-1)
    dq, dk, d_decay = x.decay.gradients(x.rows, x.k, products, grads)
    return dq if p.scale == 1 else dq.mul_(p.scale), dk, dv, d_beta, d_decay


def _cut(p: Problem, packing: Packing, group: Group) -> Chunks:
    """Cut a group out of the inputs."""
    size, kinds = packing.size, 2 if p.looks else 1
    rows = p.v.new_empty((group.chunks, p.heads, kinds, size, p.d_key), dtype=p.dtype)
    packing.pack_into(rows[:, :, -1], p.q, group)
    if p.scale != 1:
        rows[:, :, -1].mul_(p.scale)
    if p.looks:
        packing.pack_into(rows[:, :, 0], p.k, group)
        k = rows[:, :, 0]
    else:
        k = packing.pack(p.k, group, p.dtype)
    v = packing.pack(p.v, group, p.dtype).flatten(0, 1)
    beta = None
    if p.beta is not None:
        beta = packing.pack(p.beta, group, p.dtype).flatten(0, 1)[..., None]
        beta = beta.masked_fill_(beta.abs() < TINY, TINY)
    rows = rows.flatten(0, 1).flatten(1, 2)
    return Chunks(rows, k.flatten(0, 1), v, beta, _decay(p, packing, group))


def _decay(p: Problem, packing: Packing, group: Group) -> Decay:
    if p.decay is None:
        return NoDecay()
    log_decay = packing.pack(p.decay, group, p.dtype).flatten(0, 1)
    return KeyDecay(log_decay) if p.decays_per_key else HeadDecay(log_decay)


def _group_chunks(p: Problem, packing: Packing) -> int:
    """Return how many chunks to take at a time."""
    return GROUP_NUMBERS // (p.heads * packing.size * max(p.d_key, p.d_value))


def _slices(steps: tuple[Step, ...], start: int, heads: int) -> Iterator[tuple[slice, int]]:
    """Yield each step's place among the group's n pieces, and how many pieces it has."""
    for step in steps:
        place = slice((step.start - start) * heads, (step.stop - start) * heads)
        yield place, place.stop - place.start


def invert_unit_lower(A: Tensor, out: Tensor) -> None:
    """Write (I + A)⁻¹ to ``out``, for strictly lower triangular A ``[n, C, C]``, C a power of two.

    Blocks on the diagonal by substitution, then pairs of them by
    [[X, 0], [Y, Z]]⁻¹ = [[X⁻¹, 0], [−Z⁻¹ Y X⁻¹, Z⁻¹]], which is as stable as substitution; a series
    in powers of A is not.
    """
    n, size, _ = A.shape
    block = min(SUBSTITUTED, size)
    eye = torch.eye(block, dtype=A.dtype, device=A.device).expand(n, block, block)
    out.zero_()
    for i in range(0, size, block):
        here = slice(i, i + block)
        out[:, here, here] = torch.linalg.solve_triangular(
            A[:, here, here], eye, upper=False, unitriangular=True
        )
    while block < size:
        for i in range(0, size, 2 * block):
            first, second = slice(i, i + block), slice(i + block, i + 2 * block)
            right = torch.bmm(A[:, second, first], out[:, first, first])
            out[:, second, first] = torch.bmm(out[:, second, second], right).neg_()
        block *= 2
