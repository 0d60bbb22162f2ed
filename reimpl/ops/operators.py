"""The operators that torch sees: the update with its gradient, and the decoding step in place.

``method`` is ``chunk`` (torch), ``recurrent`` or ``chunkwise`` (triton). The kernels are imported
when they are first run, since triton is not everywhere.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reimpl.ops import arguments, chunk
from reimpl.ops.problem import Problem


def update(p: Problem, method: str, size: int, *, check_decay: bool) -> tuple[Tensor, Tensor]:
    """Return outputs and last states; ``check_decay`` refuses positive decays."""
    keep = torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in p)
    result: tuple[Tensor, Tensor, list[Tensor]] = _forward(*p, method, size, keep, check_decay)
    return result[:2]


def step(p: Problem, state: Tensor) -> Tensor:
    """Return the output ``[batch, heads, d_value]`` of one position; ``state`` goes on in place."""
    output: Tensor = _step(*p[:5], state, p.scale, p.output_dtype)
    return output[:, 0]


@torch.library.custom_op("fwp::update", mutates_args=())
def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None,
    decay: Tensor | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    scale: float,
    output_dtype: torch.dtype,
    method: str,
    size: int,
    keep: bool,
    check_decay: bool,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    p = Problem(q, k, v, beta, decay, initial_state, cu_seqlens, scale, output_dtype)
    arguments.check_values(decay if check_decay else None, cu_seqlens, p.length)
    if method == "chunk":
        return chunk.forward(p, size, keep)
    result: tuple[Tensor, Tensor, list[Tensor]] = _kernels(method).forward(p, keep)
    return result


@_forward.register_fake
def _(*arguments: Any) -> tuple[Tensor, Tensor, list[Tensor]]:
    p = Problem(*arguments[:9])
    method, size, keep, _ = arguments[9:]
    saved = _saved_like(p, method, size) if keep else []
    state = p.v.new_empty(p.state_shape, dtype=p.dtype)
    return p.v.new_empty(p.v.shape, dtype=p.output_dtype), state, saved


def _saved_like(p: Problem, method: str, size: int) -> list[Tensor]:
    if method == "chunk":
        return [p.v.new_empty(shape, dtype=p.dtype) for shape in chunk.saved_shapes(p, size)]
    kernels = _kernels(method)
    shapes, dtypes = kernels.saved_shapes(p), kernels.saved_dtypes(p)
    return [p.v.new_empty(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]


@torch.library.custom_op("fwp::update_backward", mutates_args=())
def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None,
    decay: Tensor | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    scale: float,
    output_dtype: torch.dtype,
    method: str,
    size: int,
    saved: list[Tensor],
    d_output: Tensor,
    d_state: Tensor,
) -> list[Tensor]:
    """Return the gradients of the tensors that are given, in the order of the arguments."""
    p = Problem(q, k, v, beta, decay, initial_state, cu_seqlens, scale, output_dtype)
    if method == "chunk":
        grads: Any = chunk.backward(p, saved, d_output, d_state, size)
    else:
        grads = _kernels(method).backward(p, saved, d_output, d_state)
    given = [(x, grad) for x, grad in zip(p[:6], grads, strict=True) if x is not None]
    return [grad.to(x.dtype) for x, grad in given]


@_backward.register_fake
def _(*arguments: Any) -> list[Tensor]:
    return [x.new_empty(x.shape) for x in arguments[:6] if x is not None]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    _, state, saved = output
    ctx.options = inputs[7:11]
    ctx.state_shape = state.shape
    ctx.state_dtype = state.dtype
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:7], *saved)


def _gradients(ctx: Any, d_output: Tensor | None, d_state: Tensor | None, _: Any) -> Any:
    tensors = ctx.saved_tensors
    inputs, saved = tensors[:7], list(tensors[7:])
    v = inputs[2]
    if d_output is None:
        d_output = v.new_zeros(v.shape, dtype=ctx.options[1])
    if d_state is None:
        d_state = v.new_zeros(ctx.state_shape, dtype=ctx.state_dtype)
    grads = iter(_backward(*inputs, *ctx.options, saved, d_output, d_state))
    return *(None if x is None else next(grads) for x in inputs[:6]), *(None,) * 7


torch.library.register_autograd("fwp::update", _gradients, setup_context=_setup_context)


@torch.library.custom_op("fwp::step_", mutates_args=("state",))
def _step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None,
    decay: Tensor | None,
    state: Tensor,
    scale: float,
    output_dtype: torch.dtype,
) -> Tensor:
    p = Problem(q, k, v, beta, decay, state, None, scale, output_dtype)
    output: Tensor = _kernels("recurrent").step(p, state, state)
    return output


@_step.register_fake
def _(*arguments: Any) -> Tensor:
    v, output_dtype = arguments[2], arguments[7]
    result: Tensor = v.new_empty(v.shape, dtype=output_dtype)
    return result


def _kernels(method: str) -> Any:
    """Return the module of a triton method."""
    if method == "recurrent":
        from reimpl.ops import recurrent_kernel

        return recurrent_kernel
    from reimpl.ops import chunk_launch

    return chunk_launch
