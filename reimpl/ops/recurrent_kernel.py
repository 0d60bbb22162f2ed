"""The fast-weight update position by position, as one Triton kernel forward and one backward.

A program owns one tile of one head's state, all key channels by BV value channels, keeps it in
registers in float32 and walks a sequence. With α = exp(decay), for rules that look,

    S' = Diag(α) S,  E = v − S'ᵀk,  S = S' + k (β E)ᵀ,  o = scale · Sᵀq    (else E = v, β = 1)

For the gradient it keeps E and the state before every ``EVERY``-th position. Backward replays the
states of one such block from there into a scratch that stays in the L2 cache, and walks the block
in reverse with G = ∂S:

    G ← G + scale · q doᵀ,  x = Gᵀk,  w = β x
    dq = scale · S do,  dk = G (β E) − S' w,  dv = w,  dβ = E · x             (dk = G v, dv = x)
    G ← G − k wᵀ,  ddecay = rows of G ∘ S' summed,  G ← Diag(α) G

ddecay is that product and no difference of larger terms, so it is exactly 0 where S' is: at the
first position, and for a decay of −∞. No exponent exceeds 0 and nothing but inputs and outputs is
rounded below float32. Every product is a sum over one axis of a tile: at d = 16 there is nothing
for tensor cores. Each walk loads a position's inputs while it works on the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from reimpl.ops.launching import CompileCase, Config, Tuned, block, compile_case, example
from reimpl.ops.problem import Problem

NO_DECAY = tl.constexpr(0)
HEAD_DECAY = tl.constexpr(1)
KEY_DECAY = tl.constexpr(2)

EVERY = 32
"""Positions from one kept state to the next."""
SCRATCH_BYTES = 2**27
"""Most memory for replayed states; programs take turns beyond it."""
RUNTIME = ["length", "items", "positions"]
"""Integers on whose values no kernel is specialised."""


@triton.jit
def _place(item, heads, width: tl.constexpr, BV: tl.constexpr):
    """Return the sequence, head and block of values of an item, to count in 64 bits from here."""
    parts = (width + BV - 1) // BV
    state = item // parts
    wide = tl.full([], 1, tl.int64)
    return state // heads * wide, state % heads * wide, item % parts * wide


@triton.jit
def _sequence(cu_seqlens, sequence, length, EVERY: tl.constexpr, VARLEN: tl.constexpr):
    """Return a sequence's row in the batch, first position, length and first kept state.

    Packed sequences share row 0; each may leave one place for a state unused behind its own.
    """
    row, begin, count = sequence, sequence * 0, sequence * 0 + length
    slot = sequence * ((length + EVERY - 1) // EVERY)
    if VARLEN:
        row = begin
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        count = tl.load(cu_seqlens + sequence + 1).to(tl.int64) - begin
        slot = begin // EVERY + sequence
    return row, begin, count, slot


@triton.jit
def _load_decay(base, keys, there, in_key, DECAY: tl.constexpr):
    """Return a position's log decay: ``[keys]`` if each key channel has its own, else a scalar."""
    if DECAY == KEY_DECAY:
        return tl.load(base + keys, mask=in_key & there, other=0.0)
    elif DECAY == HEAD_DECAY:  # noqa: RET505 - triton compiles one branch only
        return tl.load(base, mask=there, other=0.0)
    else:
        return 0.0


@triton.jit
def _decayed(tile, log, DECAY: tl.constexpr):
    """Return Diag(exp(log)) · tile."""
    if DECAY == KEY_DECAY:
        return tile * tl.exp(log.to(tl.float32))[:, None]
    elif DECAY == HEAD_DECAY:  # noqa: RET505 - triton compiles one branch only
        return tile * tl.exp(log.to(tl.float32))
    else:
        return tile


@triton.jit(do_not_specialize=RUNTIME)
def run_forward(
    q,
    k,
    v,
    beta,
    decay,
    initial,
    final,
    output,
    errors,
    states,
    cu_seqlens,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    v_row,
    v_token,
    v_head,
    beta_row,
    beta_token,
    beta_head,
    decay_row,
    decay_token,
    decay_head,
    scale,
    length,
    heads,
    items,
    DK: tl.constexpr,
    DV: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    STARTS: tl.constexpr,
    KEEP: tl.constexpr,
    EVERY: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """Write outputs and last states and, with ``KEEP``, errors and the state of each block's start.

    ``final`` may be ``initial``: a program reads its tile before it writes it.
    """
    sequence, head, part = _place(tl.program_id(0), heads, DV, BV)
    row, begin, count, slot = _sequence(cu_seqlens, sequence, length, EVERY, VARLEN)
    keys = tl.arange(0, BK)
    columns = part * BV + tl.arange(0, BV)
    in_key, in_value = keys < DK, columns < DV
    tile = keys[:, None] * DV + columns[None, :]
    in_tile = in_key[:, None] & in_value[None, :]
    state_size = tl.full([], DK * DV, tl.int64)

    q += row * q_row + begin * q_token + head * q_head
    k += row * k_row + begin * k_token + head * k_head
    v += row * v_row + begin * v_token + head * v_head
    position = (row * length + begin) * heads + head
    output += position * DV
    if LOOKS:
        beta += row * beta_row + begin * beta_token + head * beta_head
        if KEEP:
            errors += position * DV
    if DECAY != NO_DECAY:
        decay += row * decay_row + begin * decay_token + head * decay_head

    S = tl.zeros((BK, BV), tl.float32)
    if STARTS:
        initial += (sequence * heads + head) * state_size
        S = tl.load(initial + tile, mask=in_tile, other=0.0)

    there = count > 0
    q_next = tl.load(q + keys, mask=in_key & there, other=0.0)
    k_next = tl.load(k + keys, mask=in_key & there, other=0.0)
    v_next = tl.load(v + columns, mask=in_value & there, other=0.0)
    if LOOKS:
        beta_next = tl.load(beta, mask=there, other=0.0)
    if DECAY != NO_DECAY:
        decay_next = _load_decay(decay, keys, there, in_key, DECAY)
    for i in range(count):
        if KEEP:  # noqa: SIM102 - a compile-time constant, then a value
            if i % EVERY == 0:
                kept = ((slot + i // EVERY) * heads + head) * state_size
                tl.store(states + kept + tile, S, mask=in_tile)
        q_i, k_i, e = q_next.to(tl.float32), k_next.to(tl.float32), v_next.to(tl.float32)
        there = i + 1 < count
        q_next = tl.load(q + (i + 1) * q_token + keys, mask=in_key & there, other=0.0)
        k_next = tl.load(k + (i + 1) * k_token + keys, mask=in_key & there, other=0.0)
        v_next = tl.load(v + (i + 1) * v_token + columns, mask=in_value & there, other=0.0)
        if DECAY != NO_DECAY:
            S = _decayed(S, decay_next, DECAY)
            decay_next = _load_decay(decay + (i + 1) * decay_token, keys, there, in_key, DECAY)
        if LOOKS:
            e -= tl.sum(S * k_i[:, None], 0)
            if KEEP:
                tl.store(errors + i * heads * DV + columns, e, mask=in_value)
            e *= beta_next.to(tl.float32)
            beta_next = tl.load(beta + (i + 1) * beta_token, mask=there, other=0.0)
        S += k_i[:, None] * e[None, :]
        o = tl.sum(S * q_i[:, None], 0) * scale
        tl.store(output + i * heads * DV + columns, o.to(output.dtype.element_ty), mask=in_value)
    final += (sequence * heads + head) * state_size
    tl.store(final + tile, S, mask=in_tile)


@triton.jit(do_not_specialize=RUNTIME)
def run_backward(
    q,
    k,
    writes,
    beta,
    decay,
    states,
    d_output,
    d_final,
    scratch,
    cu_seqlens,
    dq,
    dk,
    dv,
    d_beta,
    d_decay,
    d_initial,
    q_row,
    q_token,
    q_head,
    k_row,
    k_token,
    k_head,
    writes_row,
    writes_token,
    writes_head,
    beta_row,
    beta_token,
    beta_head,
    decay_row,
    decay_token,
    decay_head,
    scale,
    length,
    heads,
    items,
    positions,
    DK: tl.constexpr,
    DV: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    VARLEN: tl.constexpr,
    ENDS: tl.constexpr,
    EVERY: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
):
    """Write the gradients of all inputs; ``writes`` is E for rules that look, else v.

    Gradients that are sums over values (of q, k, beta, decay) get one part for each block of them,
    ``positions`` (batch · length · heads) vectors or numbers apart.
    """
    keys = tl.arange(0, BK)
    in_key = keys < DK
    state_size = tl.full([], DK * DV, tl.int64)
    replayed = keys[:, None] * BV + tl.arange(0, BV)[None, :]
    scratch += tl.program_id(0).to(tl.int64) * (EVERY * BK * BV)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        sequence, head, part = _place(item, heads, DV, BV)
        row, begin, count, slot = _sequence(cu_seqlens, sequence, length, EVERY, VARLEN)
        columns = part * BV + tl.arange(0, BV)
        in_value = columns < DV
        tile = keys[:, None] * DV + columns[None, :]
        in_tile = in_key[:, None] & in_value[None, :]
        q_at = q + row * q_row + begin * q_token + head * q_head
        k_at = k + row * k_row + begin * k_token + head * k_head
        e_at = writes + row * writes_row + begin * writes_token + head * writes_head
        if LOOKS:
            beta_at = beta + row * beta_row + begin * beta_token + head * beta_head
        if DECAY != NO_DECAY:
            decay_at = decay + row * decay_row + begin * decay_token + head * decay_head
        position = (row * length + begin) * heads + head
        partial = part * positions + position

        G = tl.zeros((BK, BV), tl.float32)
        if ENDS:
            end_at = (sequence * heads + head) * state_size
            G = tl.load(d_final + end_at + tile, mask=in_tile, other=0.0)

        blocks = (count + EVERY - 1) // EVERY
        for n in range(blocks):
            first = (blocks - 1 - n) * EVERY
            size = tl.minimum(count - first, EVERY)
            kept = ((slot + blocks - 1 - n) * heads + head) * state_size
            S = tl.load(states + kept + tile, mask=in_tile, other=0.0)

            k_next = tl.load(k_at + first * k_token + keys, mask=in_key, other=0.0)
            e_next = tl.load(e_at + first * writes_token + columns, mask=in_value, other=0.0)
            if LOOKS:
                beta_next = tl.load(beta_at + first * beta_token)
            if DECAY != NO_DECAY:
                decay_next = _load_decay(decay_at + first * decay_token, keys, True, in_key, DECAY)
            for j in range(size):
                tl.store(scratch + j * (BK * BV) + replayed, S)
                i = first + j + 1
                there = j + 1 < size
                k_i, u = k_next.to(tl.float32), e_next.to(tl.float32)
                k_next = tl.load(k_at + i * k_token + keys, mask=in_key & there, other=0.0)
                e_next = tl.load(
                    e_at + i * writes_token + columns, mask=in_value & there, other=0.0
                )
                if DECAY != NO_DECAY:
                    S = _decayed(S, decay_next, DECAY)
                    decay_next = _load_decay(decay_at + i * decay_token, keys, there, in_key, DECAY)
                if LOOKS:
                    u *= beta_next.to(tl.float32)
                    beta_next = tl.load(beta_at + i * beta_token, mask=there, other=0.0)
                S += k_i[:, None] * u[None, :]
            tl.debug_barrier()

            i = first + size - 1
            q_next = tl.load(q_at + i * q_token + keys, mask=in_key, other=0.0)
            k_next = tl.load(k_at + i * k_token + keys, mask=in_key, other=0.0)
            e_next = tl.load(e_at + i * writes_token + columns, mask=in_value, other=0.0)
            o_next = tl.load(
                d_output + (position + i * heads) * DV + columns, mask=in_value, other=0.0
            )
            if LOOKS:
                beta_next = tl.load(beta_at + i * beta_token)
            if DECAY != NO_DECAY:
                decay_next = _load_decay(decay_at + i * decay_token, keys, True, in_key, DECAY)
            for j in range(size):
                i = first + size - 1 - j
                there = j + 1 < size
                before = tl.load(scratch + (size - 1 - j) * (BK * BV) + replayed)
                q_i, k_i = q_next.to(tl.float32), k_next.to(tl.float32)
                e, d_o = e_next.to(tl.float32), o_next.to(tl.float32) * scale
                q_next = tl.load(q_at + (i - 1) * q_token + keys, mask=in_key & there, other=0.0)
                k_next = tl.load(k_at + (i - 1) * k_token + keys, mask=in_key & there, other=0.0)
                e_next = tl.load(
                    e_at + (i - 1) * writes_token + columns, mask=in_value & there, other=0.0
                )
                o_next = tl.load(
                    d_output + (position + (i - 1) * heads) * DV + columns,
                    mask=in_value & there,
                    other=0.0,
                )
                if DECAY != NO_DECAY:
                    log = decay_next
                    before = _decayed(before, log, DECAY)
                    decay_next = _load_decay(
                        decay_at + (i - 1) * decay_token, keys, there, in_key, DECAY
                    )

                G += q_i[:, None] * d_o[None, :]
                x = tl.sum(G * k_i[:, None], 0)
                u = e
                if LOOKS:
                    beta_i = beta_next.to(tl.float32)
                    beta_next = tl.load(beta_at + (i - 1) * beta_token, mask=there, other=0.0)
                    tl.store(d_beta + partial + i * heads, tl.sum(e * x, 0))
                    u = e * beta_i
                    x *= beta_i
                dv_at = dv + (position + i * heads) * DV + columns
                tl.store(dv_at, x.to(dv.dtype.element_ty), mask=in_value)
                dq_i = tl.sum((before + k_i[:, None] * u[None, :]) * d_o[None, :], 1)
                dk_i = tl.sum(G * u[None, :], 1)
                if LOOKS:
                    dk_i = tl.sum(G * u[None, :] - before * x[None, :], 1)
                    G -= k_i[:, None] * x[None, :]
                at = (partial + i * heads) * DK + keys
                tl.store(dq + at, dq_i.to(dq.dtype.element_ty), mask=in_key)
                tl.store(dk + at, dk_i.to(dk.dtype.element_ty), mask=in_key)
                if DECAY != NO_DECAY:
                    d_log = tl.sum(G * before, 1)
                    if DECAY == KEY_DECAY:
                        tl.store(d_decay + at, d_log, mask=in_key)
                    else:
                        tl.store(d_decay + partial + i * heads, tl.sum(d_log, 0))
                    G = _decayed(G, log, DECAY)
            tl.debug_barrier()
        first_at = (sequence * heads + head) * state_size
        tl.store(d_initial + first_at + tile, G, mask=in_tile)


def saved_shapes(problem: Problem) -> list[tuple[int, ...]]:
    """Return the shapes of what ``forward`` keeps: states and, for rules that look, errors."""
    p = problem
    blocks = p.batch * -(-p.length // EVERY)
    if p.cu_seqlens is not None:
        blocks = p.length // EVERY + p.sequences
    states = (blocks, p.heads, p.d_key, p.d_value)
    return [states, tuple(p.v.shape)] if p.looks else [states]


def saved_dtypes(problem: Problem) -> list[torch.dtype]:
    """Return the types of what ``forward`` keeps."""
    return [torch.float32 for _ in saved_shapes(problem)]


def forward(problem: Problem, keep: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return outputs, last states and, if ``keep``, what ``backward`` needs."""
    p = _launchable(problem)
    output, final = _empty(p, p.v.shape, p.output_dtype), _empty(p, p.state_shape)
    saved = [_empty(p, shape) for shape in saved_shapes(p)] if keep else []
    FORWARD.launch(_forward_grid(p), **_forward_arguments(p, output, final, saved))
    return output, final, saved


def step(problem: Problem, state: Tensor, out_state: Tensor) -> Tensor:
    """Go on from ``state``, write the last states to ``out_state`` and return the outputs.

    Both may be one buffer; the launch is therefore never repeated for tuning.
    """
    p = _launchable(problem._replace(initial_state=state))
    output = _empty(p, p.v.shape, p.output_dtype)
    final = out_state if out_state.is_contiguous() else _empty(p, p.state_shape)
    FORWARD.launch(_forward_grid(p), tune=False, **_forward_arguments(p, output, final, []))
    if final is not out_state:
        out_state.copy_(final)
    return output


def backward(
    problem: Problem, saved: list[Tensor], d_output: Tensor, d_state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """Return the gradients of q, k, v, beta, decay and the initial state, contiguous.

    ``d_state`` is that of the last states, None where they are not used. The first three have the
    types of q, k and v, the others float32.
    """
    p = _launchable(problem)
    grads = _gradients(p)
    arguments = _backward_arguments(p, saved, d_output, d_state, grads)
    BACKWARD.launch(lambda _: (len(arguments["scratch"]),), **arguments)
    return (
        _joined(grads.dq, p.q.dtype),
        _joined(grads.dk, p.k.dtype),
        grads.dv,
        None if grads.d_beta is None else _joined(grads.d_beta, torch.float32),
        None if grads.d_decay is None else _joined(grads.d_decay, torch.float32),
        grads.d_initial,
    )


class Gradients(NamedTuple):
    """What ``run_backward`` fills; dq, dk, d_beta and d_decay ``[parts, ...]`` are to be summed."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    d_beta: Tensor | None
    d_decay: Tensor | None
    d_initial: Tensor


def _gradients(p: Problem) -> Gradients:
    parts = -(-p.d_value // _backward_width(p.d_key, p.d_value))

    def partial(x: Tensor, dtype: torch.dtype) -> Tensor:
        return _empty(p, (parts, *x.shape), dtype if parts == 1 else torch.float32)

    return Gradients(
        partial(p.q, p.q.dtype),
        partial(p.k, p.k.dtype),
        _empty(p, p.v.shape, p.v.dtype),
        None if p.beta is None else partial(p.beta, torch.float32),
        None if p.decay is None else partial(p.decay, torch.float32),
        _empty(p, p.state_shape),
    )


def _joined(parts: Tensor, dtype: torch.dtype) -> Tensor:
    return parts[0] if len(parts) == 1 else parts.sum(0).to(dtype)


def _launchable(problem: Problem) -> Problem:
    """Return the problem with the memory layouts that the kernels read."""
    p = problem
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (p.q, p.k, p.v))
    decay = p.decay
    if p.decays_per_key and decay is not None and decay.stride(-1) != 1:
        decay = decay.contiguous()
    initial, bounds = (
        None if x is None else x.contiguous() for x in (p.initial_state, p.cu_seqlens)
    )
    return p._replace(q=q, k=k, v=v, decay=decay, initial_state=initial, cu_seqlens=bounds)


def _empty(p: Problem, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    return p.v.new_empty(shape, dtype=dtype)


def _strided(name: str, x: Tensor | None) -> dict[str, Any]:
    row, token, head = (0, 0, 0) if x is None else x.stride()[:3]
    return {name: x, f"{name}_row": row, f"{name}_token": token, f"{name}_head": head}


def _inputs(p: Problem) -> dict[str, Any]:
    """Return the arguments that both kernels share."""
    decays = KEY_DECAY if p.decays_per_key else HEAD_DECAY
    return {
        **_strided("q", p.q),
        **_strided("k", p.k),
        **_strided("beta", p.beta),
        **_strided("decay", p.decay),
        "cu_seqlens": p.cu_seqlens,
        "scale": float(p.scale),
        "length": p.length,
        "heads": p.heads,
        "DK": p.d_key,
        "DV": p.d_value,
        "LOOKS": p.looks,
        "DECAY": (NO_DECAY if p.decay is None else decays).value,
        "VARLEN": p.cu_seqlens is not None,
        "EVERY": EVERY,
        "BK": block(p.d_key),
    }


def _forward_arguments(
    p: Problem, output: Tensor, final: Tensor, saved: list[Tensor]
) -> dict[str, Any]:
    states, errors = (*saved, None, None)[:2]
    return {
        **_inputs(p),
        **_strided("v", p.v),
        "initial": p.initial_state,
        "final": final,
        "output": output,
        "errors": errors,
        "states": states,
        "items": p.sequences * p.heads,
        "STARTS": p.initial_state is not None,
        "KEEP": bool(saved),
    }


def _forward_grid(p: Problem) -> Callable[[dict[str, int]], tuple[int, ...]]:
    """Return one program for each sequence, head and block of values, all along the first axis."""
    return lambda blocks: (p.sequences * p.heads * -(-p.d_value // blocks["BV"]),)


def _backward_arguments(
    p: Problem, saved: list[Tensor], d_output: Tensor, d_state: Tensor | None, grads: Gradients
) -> dict[str, Any]:
    items = p.sequences * p.heads * len(grads.dq)
    tile = EVERY * _backward_width(p.d_key, p.d_value) * block(p.d_key)
    programs = max(1, min(items, SCRATCH_BYTES // (4 * tile)))
    return {
        **_inputs(p),
        **_strided("writes", saved[1] if p.looks else p.v),
        **grads._asdict(),
        "states": saved[0],
        "d_output": d_output.contiguous(),
        "d_final": None if d_state is None else d_state.contiguous(),
        "scratch": _empty(p, (programs, tile)),
        "items": items,
        "positions": p.batch * p.length * p.heads,
        "ENDS": d_state is not None,
    }


def _backward_width(d_key: int, d_value: int) -> int:
    """Return the value channels of a program backward; the same in all configurations."""
    return min(block(d_value), 16 if d_key > 64 else 32)


def _warps(arguments: dict[str, Any], width: int, elements: int) -> int:
    """Return the warps that leave each thread at most ``elements`` of its program's tile."""
    return max(1, block(arguments["DK"]) * width // (32 * elements))


def _forward_configs(arguments: dict[str, Any]) -> list[Config]:
    widths = [width for width in (32, 16, 8) if width <= block(arguments["DV"])]
    return [Config(_warps(arguments, width, 32), 1, {"BV": width}) for width in widths]


def _backward_configs(arguments: dict[str, Any]) -> list[Config]:
    width = _backward_width(arguments["DK"], arguments["DV"])
    return [Config(min(8, _warps(arguments, width, 8)), 1, {"BV": width})]


KEY = ("DK", "DV", "LOOKS", "DECAY", "items")
FORWARD = Tuned(run_forward, _forward_configs, (*KEY, "KEEP"))
BACKWARD = Tuned(run_backward, _backward_configs, KEY)


def compile_cases() -> list[CompileCase]:
    """Return the configurations of both kernels over types, head sizes, rules and packing.

    Rules with one decay a key channel need the most registers, so all sizes are theirs; sizes that
    blocks do not fill need more than others.
    """
    bf16, fp32 = torch.bfloat16, torch.float32
    modes = (
        *((bf16, size, True, 2, False) for size in (16, 64, 128, 256)),
        *((fp32, size, True, 2, True) for size in (16, 128)),
        *((bf16, size, True, 2, True) for size in (20, 100)),
        *((bf16, 64, True, decays, False) for decays in (0, 1)),
        *((bf16, 64, False, decays, True) for decays in (0, 1, 2)),
    )
    return [case for mode in modes for case in _cases_of(*mode)]


def _cases_of(
    dtype: torch.dtype, size: int, looks: bool, decays: int, packed: bool
) -> Iterator[CompileCase]:
    """Yield what a problem of this kind launches, in every configuration."""
    p = example(dtype, size, looks, decays, packed)
    saved = [_empty(p, shape) for shape in saved_shapes(p)]
    launches = (
        ("forward", FORWARD, _forward_arguments(p, p.v, p.initial(), saved)),
        ("backward", BACKWARD, _backward_arguments(p, saved, p.v, p.initial(), _gradients(p))),
    )
    label = f"d={size} {dtype} {'delta' if looks else 'sum'} decay={decays} packed={int(packed)}"
    for name, tuned, arguments in launches:
        for config in tuned.configs(arguments):
            title = f"recurrent {name} {label}"
            yield compile_case(title, tuned.kernel, arguments, config, RUNTIME)
