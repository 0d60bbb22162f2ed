"""The fast-weight update one token at a time, fused: one launch forward, one backward.

A program holds the state of one sequence, one head and a block of value columns in registers and
walks over its tokens; columns do not depend on each other. The gradient walks back in blocks of
``REPLAY`` tokens: it replays a block's states from the one that was kept at its start into a small
scratch, then goes through it in reverse. Everything is float32, exponents are the given decays, and
offsets are 64 bits wide.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from reimpl.ops.launching import CompileCase, Config, Tuned
from reimpl.ops.problem import Problem

REPLAY = 16
"""Tokens between two states that are kept for the gradient."""
NO_DECAY, HEAD_DECAY, KEY_DECAY = 0, 1, 2

Strides = tuple[int, int, int]


@triton.jit  # type: ignore[untyped-decorator]
def _bounds(cu_seqlens, sequence, length, REPLAY: tl.constexpr, PACKED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return a sequence's row, first token, length, and the place of its first kept state."""
    if PACKED:
        start = tl.load(cu_seqlens + sequence).to(tl.int64)
        stop = tl.load(cu_seqlens + sequence + 1).to(tl.int64)
        row = sequence * 0
        place = start // REPLAY + sequence
        count = (stop - start).to(tl.int32)
    else:
        start = sequence * 0
        row = sequence
        place = sequence * tl.cdiv(length, REPLAY)
        count = length
    return row, start, count, place


@triton.jit  # type: ignore[untyped-decorator]
def forward_kernel(  # type: ignore[no-untyped-def]
    q,
    k,
    v,
    beta,
    decay,
    initial,
    cu_seqlens,
    output,
    final,
    errors,
    kept,
    scale,
    length,
    q_b,
    q_t,
    q_h,
    k_b,
    k_t,
    k_h,
    v_b,
    v_t,
    v_h,
    beta_b,
    beta_t,
    beta_h,
    decay_b,
    decay_t,
    decay_h,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    REPLAY: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    STARTS: tl.constexpr,
    PACKED: tl.constexpr,
    KEEP: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    blocks: tl.constexpr = (V + BV - 1) // BV
    block, head, sequence = program % blocks, program // blocks % H, program // (blocks * H)
    row, start, count, place = _bounds(cu_seqlens, sequence, length, REPLAY, PACKED)
    rows = tl.arange(0, BK)
    columns = block * BV + tl.arange(0, BV)
    row_in, column_in = rows < K, columns < V
    tile_in = row_in[:, None] & column_in[None, :]
    tile = rows[:, None] * V + columns[None, :]
    q += row * q_b + start * q_t + head * q_h + rows
    k += row * k_b + start * k_t + head * k_h + rows
    v += row * v_b + start * v_t + head * v_h + columns
    beta += row * beta_b + start * beta_t + head * beta_h
    decay += row * decay_b + start * decay_t + head * decay_h
    written = ((row * length + start) * H + head) * V + columns
    state = (sequence * H + head) * K * V + tile
    S = tl.zeros([BK, BV], tl.float32)
    if STARTS:
        S = tl.load(initial + state, mask=tile_in, other=0.0).to(tl.float32)
    for t in range(0, count):
        if KEEP:  # noqa: SIM102 - a constant, not a value
            if t % REPLAY == 0:
                tl.store(kept + ((place + t // REPLAY) * H + head) * K * V + tile, S, mask=tile_in)
        k_t_ = tl.load(k, mask=row_in, other=0.0).to(tl.float32)
        q_t_ = tl.load(q, mask=row_in, other=0.0).to(tl.float32)
        write = tl.load(v, mask=column_in, other=0.0).to(tl.float32)
        if DECAY == 1:
            S = S * tl.exp(tl.load(decay).to(tl.float32))
        if DECAY == 2:
            S = S * tl.exp(tl.load(decay + rows, mask=row_in, other=0.0).to(tl.float32))[:, None]
        if LOOKS:
            error = write - tl.sum(S * k_t_[:, None], 0)
            write = tl.load(beta).to(tl.float32) * error
            if KEEP:
                tl.store(errors + written, error, mask=column_in)
        S = S + k_t_[:, None] * write[None, :]
        y = tl.sum(S * q_t_[:, None], 0) * scale
        tl.store(output + written, y, mask=column_in)
        q += q_t
        k += k_t
        v += v_t
        beta += beta_t
        decay += decay_t
        written += H * V
    tl.store(final + state, S, mask=tile_in)


@triton.jit  # type: ignore[untyped-decorator]
def backward_kernel(  # type: ignore[no-untyped-def]
    q,
    k,
    v,
    beta,
    decay,
    cu_seqlens,
    errors,
    kept,
    scratch,
    d_output,
    d_final,
    d_q,
    d_k,
    d_v,
    d_beta,
    d_decay,
    d_initial,
    scale,
    length,
    tokens,
    q_b,
    q_t,
    q_h,
    k_b,
    k_t,
    k_h,
    v_b,
    v_t,
    v_h,
    beta_b,
    beta_t,
    beta_h,
    decay_b,
    decay_t,
    decay_h,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BK: tl.constexpr,
    BV: tl.constexpr,
    REPLAY: tl.constexpr,
    LOOKS: tl.constexpr,
    DECAY: tl.constexpr,
    PACKED: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    blocks: tl.constexpr = (V + BV - 1) // BV
    block, head, sequence = program % blocks, program // blocks % H, program // (blocks * H)
    row, start, count, place = _bounds(cu_seqlens, sequence, length, REPLAY, PACKED)
    rows = tl.arange(0, BK)
    lanes = tl.arange(0, BV)
    columns = block * BV + lanes
    row_in, column_in = rows < K, columns < V
    tile_in = row_in[:, None] & column_in[None, :]
    tile = rows[:, None] * V + columns[None, :]
    q += row * q_b + start * q_t + head * q_h + rows
    k += row * k_b + start * k_t + head * k_h + rows
    v += row * v_b + start * v_t + head * v_h + columns
    beta += row * beta_b + start * beta_t + head * beta_h
    decay += row * decay_b + start * decay_t + head * decay_h
    token = (row * length + start) * H + head
    part = block * tokens * H
    scratch += program * REPLAY * BK * BV + rows[:, None] * BV + lanes[None, :]
    state = (sequence * H + head) * K * V + tile
    G = tl.load(d_final + state, mask=tile_in, other=0.0)
    steps = tl.cdiv(count, REPLAY)
    for n in range(0, steps):
        first = (steps - 1 - n).to(tl.int64) * REPLAY
        here = tl.minimum(count - first, REPLAY).to(tl.int32)
        kept_state = kept + ((place + steps - 1 - n) * H + head) * K * V + tile
        S = tl.load(kept_state, mask=tile_in, other=0.0)
        for i in range(0, here):
            t = first + i
            k_t_ = tl.load(k + t * k_t, mask=row_in, other=0.0).to(tl.float32)
            if DECAY == 1:
                S = S * tl.exp(tl.load(decay + t * decay_t).to(tl.float32))
            if DECAY == 2:
                log = tl.load(decay + t * decay_t + rows, mask=row_in, other=0.0)
                S = S * tl.exp(log.to(tl.float32))[:, None]
            tl.store(scratch + i * BK * BV, S)
            if LOOKS:
                at = errors + (token + t * H) * V + columns
                write = tl.load(at, mask=column_in, other=0.0)
                write = write * tl.load(beta + t * beta_t).to(tl.float32)
            else:
                write = tl.load(v + t * v_t, mask=column_in, other=0.0).to(tl.float32)
            S = S + k_t_[:, None] * write[None, :]
        tl.debug_barrier()
        for i in range(0, here):
            t = first + here - 1 - i
            at = token + t * H
            S = tl.load(scratch + (here - 1 - i) * BK * BV)
            k_t_ = tl.load(k + t * k_t, mask=row_in, other=0.0).to(tl.float32)
            q_t_ = tl.load(q + t * q_t, mask=row_in, other=0.0).to(tl.float32)
            d_y = tl.load(d_output + at * V + columns, mask=column_in, other=0.0).to(tl.float32)
            d_y = d_y * scale
            if LOOKS:
                error = tl.load(errors + at * V + columns, mask=column_in, other=0.0)
                strength = tl.load(beta + t * beta_t).to(tl.float32)
                write = strength * error
            else:
                write = tl.load(v + t * v_t, mask=column_in, other=0.0).to(tl.float32)
            dq = tl.sum(S * d_y[None, :], 1) + k_t_ * tl.sum(write * d_y, 0)
            tl.store(d_q + (part + at) * K + rows, dq, mask=row_in)
            G = G + q_t_[:, None] * d_y[None, :]
            d_write = tl.sum(G * k_t_[:, None], 0)
            dk = tl.sum(G * write[None, :], 1)
            if LOOKS:
                tl.store(d_beta + part + at, tl.sum(error * d_write, 0))
                d_write = strength * d_write
                dk -= tl.sum(S * d_write[None, :], 1)
                G = G - k_t_[:, None] * d_write[None, :]
            tl.store(d_v + at * V + columns, d_write, mask=column_in)
            tl.store(d_k + (part + at) * K + rows, dk, mask=row_in)
            if DECAY == 1:
                tl.store(d_decay + part + at, tl.sum(tl.sum(G * S, 1), 0))
                G = G * tl.exp(tl.load(decay + t * decay_t).to(tl.float32))
            if DECAY == 2:
                tl.store(d_decay + (part + at) * K + rows, tl.sum(G * S, 1), mask=row_in)
                log = tl.load(decay + t * decay_t + rows, mask=row_in, other=0.0)
                G = G * tl.exp(log.to(tl.float32))[:, None]
        tl.debug_barrier()
    tl.store(d_initial + state, G, mask=tile_in)


def forward(problem: Problem, keep: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return outputs, last states and, if ``keep``, what ``backward`` needs."""
    p = problem
    final = p.v.new_empty(p.state_shape, dtype=torch.float32)
    saved = []
    if keep:
        made = zip(saved_shapes(p), saved_dtypes(p), strict=True)
        saved = [p.v.new_empty(shape, dtype=dtype) for shape, dtype in made]
    return _launch_forward(p, p.initial_state, final, saved), final, saved


def step(problem: Problem, state: Tensor, out_state: Tensor) -> Tensor:
    """Return the output ``[batch, 1, heads, d_value]`` of one token, and write the next state.

    ``out_state`` may be ``state``: each program reads its part of it before it writes it.
    """
    return _launch_forward(problem, state, out_state, [], tune=False)


def saved_shapes(problem: Problem) -> list[tuple[int, ...]]:
    """Return the shapes of what ``forward`` keeps: a state every ``REPLAY`` tokens, and errors."""
    p = problem
    if p.cu_seqlens is None:
        count = p.batch * -(-p.length // REPLAY)
    else:
        count = p.length // REPLAY + p.sequences
    states = (count, p.heads, p.d_key, p.d_value)
    return [states, (p.batch, p.length, p.heads, p.d_value)] if p.looks else [states]


def saved_dtypes(problem: Problem) -> list[torch.dtype]:
    """Return the dtypes that go with ``saved_shapes``."""
    return [torch.float32] * len(saved_shapes(problem))


def backward(
    problem: Problem, saved: list[Tensor], d_output: Tensor, d_state: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """Return the gradients of q, k, v, beta, decay and the initial state; None where not given."""
    p = problem
    kept, errors = saved[0], saved[-1]
    block = _backward_block(p.d_key, p.d_value)
    blocks = -(-p.d_value // block)
    programs = p.sequences * p.heads * blocks
    scratch = kept.new_empty(programs * REPLAY * _rows(p.d_key) * block)
    dq, dk, d_beta, d_decay = (
        None if x is None else _partial(x, blocks) for x in (p.q, p.k, p.beta, p.decay)
    )
    dv = p.v.new_empty(p.v.shape)
    d_initial = kept.new_empty(p.state_shape)
    _backward.launch(
        lambda _: (programs,),
        **_inputs(p),
        errors=errors,
        kept=kept,
        scratch=scratch,
        d_output=d_output.contiguous(),
        d_final=d_state.float().contiguous(),
        d_q=dq,
        d_k=dk,
        d_v=dv,
        d_beta=kept if d_beta is None else d_beta,
        d_decay=kept if d_decay is None else d_decay,
        d_initial=d_initial,
        tokens=p.batch * p.length,
        BV=block,
        **_modes(p),
    )
    assert dq is not None
    assert dk is not None
    return (
        _whole(dq, p.q.dtype),
        _whole(dk, p.k.dtype),
        dv,
        None if d_beta is None else _whole(d_beta, torch.float32),
        None if d_decay is None else _whole(d_decay, torch.float32),
        d_initial,
    )


def _partial(x: Tensor, blocks: int) -> Tensor:
    """Return room for a gradient, one for each block of columns that adds to it."""
    if blocks == 1 and x.ndim == 4:
        return x.new_empty((1, *x.shape))
    return x.new_empty((blocks, *x.shape), dtype=torch.float32)


def _whole(parts: Tensor, dtype: torch.dtype) -> Tensor:
    return (parts[0] if len(parts) == 1 else parts.sum(0)).to(dtype)


def _launch_forward(
    p: Problem, initial: Tensor | None, final: Tensor, saved: list[Tensor], tune: bool = True
) -> Tensor:
    output = p.v.new_empty(p.v.shape, dtype=p.output_dtype)
    _forward.launch(
        lambda blocks: (p.sequences * p.heads * -(-p.d_value // blocks["BV"]),),
        tune=tune,
        **_inputs(p),
        initial=final if initial is None else initial.contiguous(),
        output=output,
        final=final,
        errors=saved[-1] if saved else final,
        kept=saved[0] if saved else final,
        STARTS=initial is not None,
        KEEP=bool(saved),
        **_modes(p),
    )
    return output


def _inputs(p: Problem) -> dict[str, Any]:
    """Return the tensors that both kernels read, with their strides over batch, length and heads.

    The last dimension has stride 1; what is absent stands for itself as q and is never read.
    """
    named = {"q": p.q, "k": p.k, "v": p.v, "beta": p.beta, "decay": p.decay}
    arguments: dict[str, Any] = {"scale": p.scale, "length": p.length}
    for name, x in named.items():
        x = p.q if x is None else x
        if x.ndim == 4 and x.stride(3) != 1:
            x = x.contiguous()
        arguments[name] = x
        arguments |= {f"{name}_{d}": x.stride(i) for i, d in enumerate("bth")}
    arguments["cu_seqlens"] = p.q if p.cu_seqlens is None else p.cu_seqlens
    return arguments


def _modes(p: Problem) -> dict[str, Any]:
    """Return the constants that both kernels are compiled for."""
    decay = NO_DECAY if p.decay is None else KEY_DECAY if p.decays_per_key else HEAD_DECAY
    return {
        "H": p.heads,
        "K": p.d_key,
        "V": p.d_value,
        "BK": _rows(p.d_key),
        "REPLAY": REPLAY,
        "LOOKS": p.looks,
        "DECAY": decay,
        "PACKED": p.cu_seqlens is not None,
    }


def _rows(d_key: int) -> int:
    return max(2, _power(d_key))


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _columns(d_key: int, d_value: int, most: int) -> int:
    """Return how many columns a program takes: all, or as many as keep its tile at ``most``."""
    return max(2, min(_power(d_value), most // _rows(d_key)))


def _backward_block(d_key: int, d_value: int) -> int:
    return _columns(d_key, d_value, 2048)


def _forward_configs(arguments: dict[str, Any]) -> list[Config]:
    """Tiles of one warp's registers first; larger ones share the loads of keys among columns."""
    K, V = arguments["K"], arguments["V"]
    sizes = sorted({_columns(K, V, most) for most in (1024, 2048, 4096)})
    return [Config(max(1, _rows(K) * block // 1024), 1, {"BV": block}) for block in sizes]


def _backward_configs(arguments: dict[str, Any]) -> list[Config]:
    tile = arguments["BK"] * arguments["BV"]
    least = max(1, tile // 512)
    return [Config(least), Config(2 * least)]


_KEY = ("H", "K", "V", "length", "LOOKS", "DECAY", "PACKED")
_forward = Tuned(forward_kernel, _forward_configs, (*_KEY, "KEEP"))
_backward = Tuned(backward_kernel, _backward_configs, _KEY)


def compile_cases() -> list[CompileCase]:
    """Return the configurations of both kernels for the paper's heads and for large ones."""
    cases = []
    for K, V, looks, decay, packed, dtype in (
        (16, 16, True, NO_DECAY, False, "fp32"),
        (16, 16, False, NO_DECAY, False, "fp32"),
        (32, 32, True, HEAD_DECAY, True, "bf16"),
        (64, 64, True, KEY_DECAY, False, "bf16"),
        (128, 128, True, KEY_DECAY, True, "bf16"),
        (128, 128, True, HEAD_DECAY, False, "fp32"),
        (256, 256, True, KEY_DECAY, False, "fp32"),
        (256, 256, False, HEAD_DECAY, False, "bf16"),
    ):
        modes = {
            "H": 8,
            "K": K,
            "V": V,
            "BK": _rows(K),
            "REPLAY": REPLAY,
            "LOOKS": looks,
            "DECAY": decay,
            "PACKED": packed,
        }
        label = f"d={K} {dtype} {'delta' if looks else 'sum'} decay={decay} packed={int(packed)}"
        for config in _forward_configs(modes):
            constants = modes | config.blocks | {"STARTS": True, "KEEP": True}
            cases.append(_case(f"recurrent forward {label}", forward_kernel, constants, config, dtype))
        constants = modes | {"BV": _backward_block(K, V)}
        for config in _backward_configs(constants):
            cases.append(
                _case(f"recurrent backward {label}", backward_kernel, constants, config, dtype)
            )
    return cases


def _case(
    name: str, kernel: Any, constants: dict[str, Any], config: Config, dtype: str
) -> CompileCase:
    types = dict.fromkeys(kernel.arg_names, "i32") | dict.fromkeys(constants, "constexpr")
    floats = ("beta", "decay", "initial", "final", "errors", "kept", "scratch", "d_final")
    types |= {n: "*fp32" for n in (*floats, "d_q", "d_k", "d_beta", "d_decay", "d_initial")}
    types |= {n: f"*{dtype}" for n in ("q", "k", "v", "output", "d_output", "d_v")}
    types |= {"cu_seqlens": "*i64", "scale": "fp32"}
    signature = {n: types[n] for n in kernel.arg_names}
    return CompileCase(name, kernel, signature, constants, config.num_warps, config.num_stages)
