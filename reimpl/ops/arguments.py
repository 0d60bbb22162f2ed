"""Checks of the public functions' arguments; an error names the argument, its shape, the cure."""

from __future__ import annotations

import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl.rules import RULES

BACKENDS = ("auto", "reference", "chunk", "triton")
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
CHUNK_SIZES = (16, 32, 64, 128)


def check_choice(name: str, value: object, known: tuple[object, ...]) -> None:
    """Raise ConfigError where ``value`` is none of those known."""
    if value not in known:
        raise ConfigError(f"unknown {name} {value!r}; use one of {', '.join(map(str, known))}")


def check_kinds(scale: object, output_dtype: object, **tensors: object) -> None:
    """Raise ConfigError for what is no tensor, no number or no floating-point dtype."""
    for name, x in tensors.items():
        if x is not None and not isinstance(x, Tensor):
            raise ConfigError(f"{name} is a {type(x).__name__}; pass a torch.Tensor")
    if not isinstance(scale, int | float):
        raise ConfigError(f"scale is {scale!r}; pass a number")
    if output_dtype is not None and output_dtype not in FLOATS:
        raise ConfigError(
            f"output_dtype is {output_dtype}; use one of {', '.join(map(str, FLOATS))}, or None"
        )


def check_tensors(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor | None, decay: Tensor | None, rule: str
) -> None:
    """Raise ConfigError where rule, shapes, dtypes and devices do not fit each other.

    Shapes are ``[..., dim]`` for q, k, v and ``[...]`` for beta; a decay is ``[...]``, or
    ``[..., d_key]`` for kda.
    """
    check_choice("update rule", rule, RULES)
    _check_float("v", v)
    lead = tuple(v.shape[:-1])
    keys = (*lead, k.shape[-1] if k.ndim else 0)
    for name, x in (("k", k), ("q", q)):
        expect_shape(name, x, keys, f"v is {list(v.shape)}, k {list(k.shape)}")
    for name, x in (("q", q), ("k", k)):
        if x.dtype != v.dtype:
            raise ConfigError(
                f"{name} is {_short(x.dtype)} and v {_short(v.dtype)}; q, k and v share one dtype"
            )
    wants_decay = rule in ("gated_delta", "kda")
    _check_gate("beta", beta, lead, v, rule, wanted=rule != "sum")
    _check_gate("decay", decay, keys if rule == "kda" else lead, v, rule, wanted=wants_decay)
    for name, x in (("q", q), ("k", k)):
        _check_device(name, x, v)
    if 0 in v.shape or 0 in k.shape:
        raise ConfigError(
            f"every dimension must be at least 1; v is {list(v.shape)}, k {list(k.shape)}"
        )


def _check_gate(
    name: str, x: Tensor | None, shape: tuple[int, ...], v: Tensor, rule: str, *, wanted: bool
) -> None:
    if x is None:
        if wanted:
            raise ConfigError(f"{name} is missing; rule {rule!r} needs it as {list(shape)}")
        return
    if not wanted:
        raise ConfigError(f"rule {rule!r} takes no {name}, got {list(x.shape)}; leave it out")
    expect_shape(name, x, shape, f"rule {rule!r} with v {list(v.shape)}")
    _check_float(name, x)
    _check_device(name, x, v)


def check_state(name: str, state: Tensor | None, shape: tuple[int, ...], v: Tensor) -> None:
    """Raise ConfigError where a state has another shape, precision or device than it must."""
    if state is None:
        return
    expect_shape(name, state, shape, "[sequences, heads, d_key, d_value]")
    dtype = torch.promote_types(torch.float32, v.dtype)
    if state.dtype != dtype:
        raise ConfigError(
            f"{name} is {_short(state.dtype)}; states are {_short(dtype)} for {_short(v.dtype)} "
            f"inputs: pass {name}.to({_short(dtype)})"
        )
    _check_device(name, state, v)


def check_packing(cu_seqlens: Tensor | None, v: Tensor) -> None:
    """Raise ConfigError where ``cu_seqlens`` cannot delimit sequences, whatever its values."""
    if cu_seqlens is None:
        return
    if cu_seqlens.ndim != 1 or len(cu_seqlens) < 2 or cu_seqlens.dtype not in _INTEGERS:
        raise ConfigError(
            f"cu_seqlens is {_short(cu_seqlens.dtype)} {list(cu_seqlens.shape)}; it must be int32 "
            "or int64 [sequences + 1]: 0, the end of each sequence, so at last the length"
        )
    if v.shape[0] != 1:
        raise ConfigError(
            f"packed sequences lie in one row: with cu_seqlens v must be [1, length, heads, "
            f"d_value], got {list(v.shape)}"
        )
    _check_device("cu_seqlens", cu_seqlens, v)


_INTEGERS = (torch.int32, torch.int64)


def check_values(decay: Tensor | None, cu_seqlens: Tensor | None, length: int) -> None:
    """Raise ConfigError for a positive decay, or bounds that do not rise from 0 to the length.

    NaN passes. Reads the tensors, so a GPU is waited for, except while a graph is captured.
    """
    some = decay if decay is not None else cu_seqlens
    if some is None or (some.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    if decay is not None and bool((decay > 0).any()):
        raise ConfigError(
            f"decay {list(decay.shape)} has {int((decay > 0).sum())} positive values, the largest "
            f"{float(decay.nan_to_num(-1.0).max()):.3g}; it is log α with α ≤ 1, so at most 0"
        )
    if cu_seqlens is not None:
        bounds = cu_seqlens.tolist()
        if bounds[0] != 0 or bounds[-1] != length or bounds != sorted(bounds):
            shown = str(bounds if len(bounds) <= 8 else [*bounds[:4], "...", *bounds[-3:]])
            raise ConfigError(
                f"cu_seqlens {shown} must rise from 0 to the length {length} without falling"
            )


def expect_shape(name: str, x: Tensor, shape: tuple[int, ...], because: str) -> None:
    """Raise ConfigError where ``x`` has another shape."""
    if tuple(x.shape) != shape:
        raise ConfigError(f"{name} has shape {list(x.shape)}, expected {list(shape)} ({because})")


def _check_float(name: str, x: Tensor) -> None:
    if x.dtype not in FLOATS:
        raise ConfigError(
            f"{name} {list(x.shape)} is {_short(x.dtype)}; use float32, bfloat16, float16 or, on "
            "the torch backends, float64"
        )


def _check_device(name: str, x: Tensor, v: Tensor) -> None:
    if x.device != v.device:
        raise ConfigError(
            f"{name} {list(x.shape)} is on {x.device} and v on {v.device}; move it there"
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
