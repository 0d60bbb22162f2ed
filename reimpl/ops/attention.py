"""The public functions: check arguments, choose how to compute, bring the rules to one form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl import rules
from reimpl.ops import arguments, chunk, operators
from reimpl.ops.problem import Problem

Kernel = Literal["recurrent", "chunkwise"]

LARGEST_HEAD = 256
"""Head dimensions that the triton backend takes."""

_forced: Kernel | None = None


def fast_weight_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    decay: Tensor | None = None,
    *,
    rule: str,
    scale: float = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    chunk_size: int | None = None,
    backend: str = "auto",
    output_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Write every position into a fast weight matrix and read it with that position's query.

    Returns y ``[batch, length, heads, d_value]``, y_i = scale · S_iᵀ q_i (Eq. 25), and the last
    state, or None without ``output_final_state``. The update of S is the rule's line in ``rules``.

    - ``q``, ``k`` ``[batch, length, heads, d_key]``: φ(q), φ(k), mapped and normalised already. A
      delta rule is stable for β‖k‖² ≤ 2, as sum- or L2-normalised keys are; others may overflow.
    - ``v`` ``[batch, length, heads, d_value]``; q, k, v are float32, bfloat16, float16 or float64.
    - ``beta`` ``[batch, length, heads]``: write strength β, for all rules but ``sum``. Meant for
      [0, 1]; other values are computed as the equation says.
    - ``decay``: log α ≤ 0, −∞ included; ``[batch, length, heads]`` for ``gated_delta``,
      ``[batch, length, heads, d_key]`` for ``kda``. beta and decay may be float32 beside inputs of
      half precision, and are used in float32.
    - ``initial_state`` ``[sequences, heads, d_key, d_value]``: S of position 0, float32 (float64
      for float64 inputs), as is the state that is returned. Zeros if None.
    - ``cu_seqlens`` int ``[sequences + 1]``: bounds of sequences packed into one row (batch 1),
      from 0 to the length; a sequence may be empty.
    - ``backend``: ``reference`` steps through ``rules``; ``chunk`` is torch by chunks of
      ``chunk_size`` (16 to 128) and runs on any device; ``triton`` needs a GPU (or triton's
      interpreter) and head dimensions up to 256; ``auto`` takes triton where it can, else chunk,
      and the reference for ``fwm``, which has no parallel form.
    - ``output_dtype``: precision of y, that of v if None. Sums of long contexts can exceed
      float16's 65,504: ask for float32 then, or use ``scale``, which is applied before rounding.

    All inputs, the initial state and the decay have gradients. Raises ConfigError for arguments
    that do not fit.
    """
    arguments.check_choice("backend", backend, arguments.BACKENDS)
    tensors = {"q": q, "k": k, "v": v, "beta": beta, "decay": decay, "cu_seqlens": cu_seqlens}
    arguments.check_kinds(scale, output_dtype, **tensors, initial_state=initial_state)
    if v.ndim != 4:
        raise ConfigError(f"v must be [batch, length, heads, d_value], got {list(v.shape)}")
    arguments.check_tensors(q, k, v, beta, decay, rule)
    arguments.check_packing(cu_seqlens, v)
    sequences = v.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1
    shape = (sequences, v.shape[2], k.shape[3], v.shape[3])
    arguments.check_state("initial_state", initial_state, shape, v)
    if chunk_size is not None:
        arguments.check_choice("chunk_size", chunk_size, arguments.CHUNK_SIZES)
    problem = Problem(
        q, k, v, beta, decay, initial_state, cu_seqlens, float(scale), output_dtype or v.dtype
    )
    chosen = choose_backend(problem, rule, backend)
    if chosen == "reference":
        output, state = _reference(problem, rule)
    else:
        output, state = _fast(problem, rule, chosen, chunk_size)
    return output, state if output_final_state else None


def fast_weight_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    state: Tensor,
    beta: Tensor | None = None,
    decay: Tensor | None = None,
    *,
    rule: str,
    scale: float = 1.0,
    inplace: bool = False,
    backend: str = "auto",
    output_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """Write and read one position: what decoding does for each token.

    Arguments as for ``fast_weight_attention`` without the length: ``q``, ``k`` ``[batch, heads,
    d_key]``, ``v`` ``[batch, heads, d_value]``, ``beta`` ``[batch, heads]``, ``decay`` likewise or
    with ``d_key``; ``state`` ``[batch, heads, d_key, d_value]``. Returns y ``[batch, heads,
    d_value]`` and the next state, which with ``inplace`` is ``state`` itself, overwritten; that has
    no gradients. The cost does not depend on what went before. Raises ConfigError for arguments
    that do not fit; on a GPU the values of ``decay`` are not looked at, or each token would wait.
    """
    arguments.check_choice("backend", backend, arguments.BACKENDS)
    tensors = {"q": q, "k": k, "v": v, "state": state, "beta": beta, "decay": decay}
    arguments.check_kinds(scale, output_dtype, **tensors)
    if v.ndim != 3:
        raise ConfigError(f"v must be [batch, heads, d_value], got {list(v.shape)}")
    arguments.check_tensors(q, k, v, beta, decay, rule)
    arguments.check_state("state", state, (*v.shape[:2], k.shape[2], v.shape[2]), v)
    wants_gradient = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in tensors.values()
    )
    if inplace and wants_gradient:
        raise ConfigError("inplace overwrites the state, so no gradient can be taken; leave it out")
    if not v.is_cuda:
        arguments.check_values(decay, None, 1)
    dtype = output_dtype or v.dtype
    problem = Problem(
        q[:, None],
        k[:, None],
        v[:, None],
        None if beta is None else beta[:, None],
        None if decay is None else decay[:, None],
        None,
        None,
        float(scale),
        dtype,
    )
    chosen = choose_backend(problem, rule, backend)
    if chosen == "triton" and rule != "gated_sum" and not wants_gradient:
        next_state = state if inplace else state.clone()
        return operators.step(problem, next_state), next_state
    S = _stepped(problem, rule, state)
    output = (rules.read(S, q.to(problem.dtype)) * problem.scale).to(dtype)
    return output, state.copy_(S) if inplace else S


def _stepped(p: Problem, rule: str, state: Tensor) -> Tensor:
    """Return the state after the problem's one position, by ``rules``."""
    beta, decay = (None if x is None else x[:, 0].to(p.dtype) for x in (p.beta, p.decay))
    return rules.step(state, p.k[:, 0].to(p.dtype), p.v[:, 0].to(p.dtype), beta, decay, rule)


@contextmanager
def kernel(name: Kernel | None) -> Iterator[None]:
    """Have the triton backend use the kernels of this name inside the block, whatever the shape.

    For comparisons: the choice holds for the whole process.
    """
    global _forced
    before, _forced = _forced, name
    try:
        yield
    finally:
        _forced = before


def choose_kernel(problem: Problem) -> Kernel:
    """Return which kernels the triton backend uses for a shape.

    The recurrent ones keep a state in registers and need no tiles of 16: they are for states that
    are small, sequences that are short, and keys whose tiles the chunkwise ones could not hold.
    """
    if _forced is not None:
        return _forced
    from reimpl.ops import chunk_launch

    length, d_key, d_value = problem.v.shape[1], problem.k.shape[3], problem.v.shape[3]
    small = max(d_key, d_value) <= 32 and length <= 1024
    chunks = length >= 64 and not small and chunk_launch.is_suitable(problem)
    return "chunkwise" if chunks else "recurrent"


def choose_chunk(problem: Problem) -> int:
    """Return the chunk size of the torch backend: what measured fastest on a CPU, else 64.

    Work inside a chunk grows with its size, so small heads want small chunks.
    """
    if problem.v.device.type != "cpu":
        return 64
    return 16 if max(problem.k.shape[3], problem.v.shape[3]) <= 32 else 32


def choose_backend(problem: Problem, rule: str, backend: str) -> str:
    """Return ``reference``, ``chunk`` or ``triton``; ConfigError where ``backend`` cannot do it."""
    if rule == "fwm":
        if backend in ("chunk", "triton"):
            raise ConfigError(
                f"rule 'fwm' scales the state by its norm at every step and has no {backend} form; "
                "use backend 'reference' or 'auto'"
            )
        return "reference"
    if backend == "auto":
        return "triton" if problem.v.is_cuda and triton_obstacle(problem) is None else "chunk"
    if backend == "triton":
        obstacle = triton_obstacle(problem)
        if obstacle is not None:
            raise ConfigError(f"backend 'triton' cannot run this: {obstacle}; use backend 'chunk'")
    return backend


def triton_obstacle(problem: Problem) -> str | None:
    """Return why the triton backend cannot take a problem, or None."""
    p = problem
    d_key, d_value = p.k.shape[-1], p.v.shape[-1]  # torch 2.9 cannot trace a tuple's properties
    if max(d_key, d_value) > LARGEST_HEAD:
        return f"head dimensions are {d_key} and {d_value}, at most {LARGEST_HEAD} are supported"
    if p.v.dtype == torch.float64:
        return "the inputs are float64"
    try:
        from reimpl.ops import launching
    except ImportError as error:
        return f"triton cannot be imported ({error})"
    if not p.v.is_cuda and not launching.INTERPRETED:
        return f"the inputs are on {p.v.device} (set TRITON_INTERPRET=1 to interpret kernels there)"
    return None


def _reference(p: Problem, rule: str) -> tuple[Tensor, Tensor]:
    """Step through ``rules``, sequence by sequence; autograd follows every step."""
    arguments.check_values(p.decay, p.cu_seqlens, p.length)
    if p.cu_seqlens is None:
        return _reference_row(p, rule, slice(None), p.initial())
    bounds = p.cu_seqlens.tolist()
    outputs, states = [], []
    for i, (start, stop) in enumerate(pairwise(bounds)):
        first = p.initial()[i : i + 1]
        y, S = _reference_row(p, rule, slice(start, stop), first) if start < stop else (None, first)
        outputs += [] if y is None else [y]
        states.append(S)
    return torch.cat(outputs, 1), torch.cat(states)


def _reference_row(
    p: Problem, rule: str, positions: slice, initial: Tensor
) -> tuple[Tensor, Tensor]:
    q, k, v, beta, decay = (None if x is None else x[:, positions] for x in p[:5])
    assert q is not None
    assert k is not None
    assert v is not None
    result = rules.run_rule(
        q.to(p.dtype) * p.scale, k, v.to(p.dtype), beta, decay, rule=rule, initial_state=initial
    )
    return result.output.to(p.output_dtype), result.state


def _fast(p: Problem, rule: str, backend: str, chunk_size: int | None) -> tuple[Tensor, Tensor]:
    """Run one of the operators."""
    method, size = "chunk", chunk_size or choose_chunk(p)
    if backend == "triton":
        method, size = choose_kernel(p), 0  # the kernels choose their own
    if rule == "gated_sum":
        return _gated_sum(p, method, size)
    return operators.update(p, method, size, check_decay=True)


def _gated_sum(p: Problem, method: str, size: int) -> tuple[Tensor, Tensor]:
    """Run gated sum (Eq. 52) as the decayed sum of βv with α = |1 − β|.

    Where 1 − β is negative, the signs multiplied up to a position go to its key and query: the
    product of two of them is the sign of what lies between. A factor of zero is replaced by one
    that is lost in rounding, so that the gradient of its logarithm exists.
    """
    assert p.beta is not None
    beta = p.beta.to(p.dtype)
    kept = 1 - beta
    kept = kept + torch.where(kept.abs() < chunk.TINY, chunk.TINY - kept, 0).detach()
    signs = torch.where(kept < 0, -1.0, 1.0).to(p.dtype).cumprod(1).detach()
    before = torch.cat([torch.ones_like(signs[:, :1]), signs], 1)
    if p.cu_seqlens is None:
        first, last = before[:, 0], before[:, -1]
    else:
        first, last = before[0, p.cu_seqlens[:-1].long()], before[0, p.cu_seqlens[1:].long()]
    turn = signs[..., None].to(p.v.dtype)
    decayed = p._replace(
        q=p.q * turn,
        k=p.k * turn,
        v=(beta[..., None] * p.v).to(p.v.dtype),
        beta=None,
        decay=kept.abs().log(),
        initial_state=p.initial() * first[..., None, None],
    )
    output, state = operators.update(decayed, method, size, check_decay=False)
    return output, state * last[..., None, None]
