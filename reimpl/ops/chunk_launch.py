"""Launches of the chunkwise kernels: two forward and two backward.

A slot is a place for one chunk. How many there are follows from shapes alone, so nothing waits for
the device to tell how long packed sequences are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from reimpl.ops import chunk_kernel as kernels
from reimpl.ops.launching import CompileCase, Config, Tuned, block, compile_case, example
from reimpl.ops.problem import Problem

SMALLEST_CHUNK = 16


def fitting_size(problem: Problem, chunk_size: int | None = None) -> int:
    """Return the chunk size, a power of two from 16 to 64: what is asked for, if that fits."""
    p = problem
    if operand_dtype(p.v.dtype) == torch.float32:
        fits = 32 if p.decay is None else 16
    else:
        fits = 64 if 32 < max(p.d_key, p.d_value) <= 128 and not p.decays_per_key else 32
    size = fits if chunk_size is None else min(fits, block(chunk_size))
    while size > SMALLEST_CHUNK and p.length <= size // 2:
        size //= 2
    return size


def is_suitable(problem: Problem) -> bool:
    """Whether the kernels keep their tiles in registers; larger keys work, but spill."""
    most = {torch.bfloat16: 256, torch.float16: 128}
    return problem.k.shape[3] <= most.get(problem.v.dtype, 64)


def operand_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type of operands and of all that is kept for the gradient."""
    return dtype if dtype == torch.bfloat16 else torch.float32


def slots(problem: Problem, size: int) -> int:
    """Return how many chunks of ``size`` positions there can be."""
    p = problem
    if p.cu_seqlens is None:
        return p.batch * -(-p.length // size)
    return p.length // size + p.sequences


def _kept(problem: Problem, size: int) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return shape and type of what the kernels share, by its name there.

    The scores P and the state at each chunk's start; for rules that look, T and the errors E; with
    one decay a key channel Q₊, K₊, K₋ and carry.
    """
    p, operand = problem, operand_dtype(problem.v.dtype)
    tiles, keys = (slots(p, size), p.heads), tuple(p.k.shape)
    shapes: dict[str, tuple[int, ...]] = {"scores": (*tiles, size, size)}
    shapes["states"] = (*tiles, p.d_key, p.d_value)
    if p.looks:
        shapes |= {"inverse": (*tiles, size, size), "errors": tuple(p.v.shape)}
    if p.decays_per_key:
        shapes |= {"q_since": keys, "k_until": keys} | ({"k_since": keys} if p.looks else {})
    kept = {name: (shape, operand) for name, shape in shapes.items()}
    return kept | ({"carry": ((*tiles, p.d_key), torch.float32)} if p.decays_per_key else {})


def saved_shapes(problem: Problem, chunk_size: int | None = None) -> list[tuple[int, ...]]:
    """Return the shapes of what ``forward`` keeps."""
    return [shape for shape, _ in _kept(problem, fitting_size(problem, chunk_size)).values()]


def saved_dtypes(problem: Problem) -> list[torch.dtype]:
    """Return the types of what ``forward`` keeps."""
    return [dtype for _, dtype in _kept(problem, SMALLEST_CHUNK).values()]


def forward(
    problem: Problem, keep: bool, chunk_size: int | None = None
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Return outputs, last states and, if ``keep``, what ``backward`` needs."""
    launches, result = _plan_forward(_launchable(problem), keep, chunk_size)
    _run(launches)
    return result


def backward(
    problem: Problem,
    saved: list[Tensor],
    d_output: Tensor,
    d_state: Tensor | None,
    chunk_size: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    """Return the gradients of q, k, v, beta, decay and the initial state, contiguous.

    ``d_state`` is that of the last states, None where they are not used. The first three have the
    type of their inputs, the others are float32; those of beta and decay are None where there is
    none.
    """
    launches, result = _plan_backward(_launchable(problem), saved, d_output, d_state, chunk_size)
    _run(launches)
    dq, dk, dv, d_beta, d_decay, d_initial = result
    return dq, dk, dv.to(problem.v.dtype), d_beta, d_decay, d_initial


class Launch(NamedTuple):
    """One kernel with its arguments; ``grid(blocks)`` is how many programs it takes."""

    name: str
    kernel: Tuned
    grid: Callable[[dict[str, int]], tuple[int]]
    arguments: dict[str, Any]


def _run(launches: list[Launch]) -> None:
    for each in launches:
        each.kernel.launch(each.grid, **each.arguments)


def _plan_forward(
    p: Problem, keep: bool, chunk_size: int | None
) -> tuple[list[Launch], tuple[Tensor, Tensor, list[Tensor]]]:
    """Return the launches, and what they fill."""
    size = fitting_size(p, chunk_size)
    kinds = _kept(p, size)
    if not keep:
        kinds |= {name: ((0,), kinds[name][1]) for name in ("states", "errors") if name in kinds}
    kept = {name: _empty(p, shape, dtype) for name, (shape, dtype) in kinds.items()}
    output = _empty(p, tuple(p.v.shape), p.output_dtype)
    final = _empty(p, p.state_shape, torch.float32)
    prepared = {
        **_inputs(p, size, p.q, p.k),
        **_named(kept, "scores", "inverse", "q_since", "k_since", "k_until", "carry"),
        "sequences": p.sequences,
    }
    del prepared["DV"]
    scanned = {
        **_scanned(p, size, kept),
        **_named(kept, "states", "errors"),
        **_strided("v", p.v),
        "initial": p.initial_state,
        "output": output,
        "final": final,
        "STARTS": p.initial_state is not None,
        "KEEP": keep,
    }
    launches = [
        Launch("prepare", PREPARE, lambda _: (slots(p, size) * p.heads,), prepared),
        Launch("scan", SCAN, lambda blocks: _scans(p, blocks), scanned),
    ]
    return launches, (output, final, list(kept.values()) if keep else [])


def _plan_backward(
    p: Problem,
    saved: list[Tensor],
    d_output: Tensor,
    d_state: Tensor | None,
    chunk_size: int | None,
) -> tuple[list[Launch], tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor]]:
    """Return the launches, and what they fill; dv is in the operands' type."""
    size = fitting_size(p, chunk_size)
    kept = dict(zip(_kept(p, size), saved, strict=True))
    dq, dk = (_empty(p, tuple(p.k.shape), p.k.dtype) for _ in range(2))
    dv = _empty(p, tuple(p.v.shape), operand_dtype(p.v.dtype))
    d_beta, d_decay = (
        None if x is None else _empty(p, tuple(x.shape), torch.float32) for x in (p.beta, p.decay)
    )
    d_initial = _empty(p, p.state_shape, torch.float32)
    states = kept["states"]
    shared = {
        "d_output": d_output.contiguous(),
        "dv": dv,
        "d_states": _empty(p, tuple(states.shape), states.dtype),
    }
    scanned = {
        **_scanned(p, size, kept),
        **shared,
        "d_final": None if d_state is None else d_state.contiguous(),
        "d_initial": d_initial,
        "ENDS": d_state is not None,
    }
    finished = {
        **_inputs(p, size, p.q, p.k),
        **shared,
        **_named(kept, "scores", "states"),
        **_strided("writes", kept.get("errors", p.v)),
        "dq": dq,
        "dk": dk,
        "d_beta": d_beta,
        "d_decay": d_decay,
        "sequences": p.sequences,
    }
    launches = [
        Launch("scan_backward", SCAN_BACKWARD, lambda blocks: _scans(p, blocks), scanned),
        Launch("gradients", GRADIENTS, lambda _: (slots(p, size) * p.heads,), finished),
    ]
    return launches, (dq, dk, dv, d_beta, d_decay, d_initial)


def _scans(p: Problem, blocks: dict[str, int]) -> tuple[int]:
    return (p.sequences * p.heads * -(-p.d_value // blocks["BV"]),)


def _empty(problem: Problem, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return problem.v.new_empty(shape, dtype=dtype)


def _launchable(problem: Problem) -> Problem:
    """Return the problem with the memory layouts that the kernels read.

    Offsets inside a chunk have 32 bits, so its positions may not lie too far apart.
    """
    p = problem
    q, k, v = (
        x if x.stride(-1) == 1 and x.stride(1) < 2**24 else x.contiguous() for x in (p.q, p.k, p.v)
    )
    small = (p.beta, p.decay, p.initial_state, p.cu_seqlens)
    beta, decay, initial, cu_seqlens = (None if x is None else x.contiguous() for x in small)
    return p._replace(
        q=q, k=k, v=v, beta=beta, decay=decay, initial_state=initial, cu_seqlens=cu_seqlens
    )


def _strided(name: str, x: Tensor) -> dict[str, Any]:
    row, token, head, _ = x.stride()
    return {name: x, f"{name}_row": row, f"{name}_token": token, f"{name}_head": head}


def _named(kept: dict[str, Tensor], *names: str) -> dict[str, Tensor | None]:
    return {name: kept.get(name) for name in names}


def _inputs(p: Problem, size: int, q: Tensor, k: Tensor) -> dict[str, Any]:
    """Return the arguments that all kernels share."""
    decays = kernels.KEY_DECAY if p.decays_per_key else kernels.HEAD_DECAY
    return {
        **_strided("q", q),
        **_strided("k", k),
        "beta": p.beta,
        "decay": p.decay,
        "cu_seqlens": p.cu_seqlens,
        "scale": float(p.scale),
        "length": p.length,
        "heads": p.heads,
        "DK": p.d_key,
        "DV": p.d_value,
        "C": size,
        "LEVELS": size.bit_length() - 1,
        "LOOKS": p.looks,
        "DECAY": int((kernels.NO_DECAY if p.decay is None else decays).value),
        "VARLEN": p.cu_seqlens is not None,
        "PRECISION": "tf32x3" if p.v.dtype == torch.float32 else "tf32",
    }


def _scanned(p: Problem, size: int, kept: dict[str, Tensor]) -> dict[str, Any]:
    """Return the arguments of both scans: queries and keys as they read, keys as they write."""
    return {
        **_inputs(p, size, kept.get("q_since", p.q), kept.get("k_since", p.k)),
        **_strided("k_writes", kept.get("k_until", p.k)),
        **_named(kept, "scores", "inverse", "carry"),
        "BK": block(p.d_key),
    }


def _configs(arguments: dict[str, Any], *choices: tuple[int, int, dict[str, int]]) -> list[Config]:
    """Return the choices (warps, stages, blocks), blocks no larger than their dimension."""
    most = {"BK": block(arguments["DK"]), "BV": block(arguments.get("DV", 1))}
    configs: list[Config] = []
    for warps, stages, blocks in choices:
        fitting = {name: min(size, most[name]) for name, size in blocks.items()}
        config = Config(warps, stages, fitting)
        if config not in configs:
            configs.append(config)
    return configs


def _is_float32(arguments: dict[str, Any]) -> bool:
    return bool(arguments["scores"].dtype == torch.float32)


def _prepare_configs(arguments: dict[str, Any]) -> list[Config]:
    if arguments["DECAY"] == kernels.KEY_DECAY.value:
        return _configs(arguments, (8, 1, {"BK": 32}))
    if _is_float32(arguments):
        return _configs(arguments, (4, 1, {"BK": 32}))
    return _configs(arguments, (4, 1, {"BK": 64}))


def _scan_configs(arguments: dict[str, Any]) -> list[Config]:
    if _is_float32(arguments) or arguments["DK"] > 128:
        return _configs(arguments, (8, 1, {"BV": 16}), (4, 1, {"BV": 16}))
    return _configs(arguments, (8, 2, {"BV": 32}), (8, 1, {"BV": 32}))


def _scan_backward_configs(arguments: dict[str, Any]) -> list[Config]:
    if arguments["PRECISION"] == "tf32x3":
        return _configs(arguments, (8, 1, {"BV": 16}))
    return _configs(arguments, (8, 2, {"BV": 32}), (8, 1, {"BV": 32}))


def _gradients_configs(arguments: dict[str, Any]) -> list[Config]:
    is_head_decay = arguments["DECAY"] == kernels.HEAD_DECAY.value
    small, large = {"BK": 16, "BV": 16}, {"BK": 32, "BV": 32}
    if _is_float32(arguments):
        if not is_head_decay or arguments["DK"] > 32:
            return _configs(arguments, (8, 1, small))
        return _configs(arguments, (4, 1, large if arguments["PRECISION"] == "tf32" else small))
    if arguments["DECAY"] == kernels.KEY_DECAY.value:
        return _configs(arguments, (4, 1, small), (8, 1, small))
    if is_head_decay:
        return _configs(arguments, (8, 1, {"BK": 16, "BV": 32}))
    return _configs(arguments, (4, 1, large))


KEY = ("DK", "DV", "C", "LOOKS", "DECAY", "PRECISION")
PREPARE = Tuned(kernels.prepare, _prepare_configs, [name for name in KEY if name != "DV"])
SCAN = Tuned(kernels.scan, _scan_configs, (*KEY, "KEEP"))
SCAN_BACKWARD = Tuned(kernels.scan_backward, _scan_backward_configs, KEY)
GRADIENTS = Tuned(kernels.gradients, _gradients_configs, KEY)


def compile_cases() -> list[CompileCase]:
    """Return the configurations of all four kernels over types, head sizes, decays and packing."""
    bf16, fp16, fp32 = torch.bfloat16, torch.float16, torch.float32
    modes = (
        (bf16, 128, True, 0, False),
        (bf16, 128, True, 1, True),
        (bf16, 128, True, 2, False),
        (bf16, 16, True, 0, False),
        (bf16, 64, False, 1, True),
        (bf16, 256, True, 2, False),
        (fp16, 128, True, 0, False),
        (fp32, 64, True, 1, False),
        (fp32, 16, True, 2, False),
    )
    return [case for mode in modes for case in _cases_of(*mode)]


def _cases_of(
    dtype: torch.dtype, size: int, looks: bool, decays: int, packed: bool
) -> Iterator[CompileCase]:
    """Yield what a problem of this kind launches, in every configuration."""
    problem = example(dtype, size, looks, decays, packed)
    launches, (output, final, saved) = _plan_forward(problem, True, None)
    launches += _plan_backward(problem, saved, output, final, None)[0]
    label = f"d={size} {dtype} {'delta' if looks else 'sum'} decay={decays} packed={int(packed)}"
    for each in launches:
        for config in each.kernel.configs(each.arguments):
            title = f"chunkwise {each.name} {label}"
            yield compile_case(title, each.kernel.kernel, each.arguments, config, kernels.RUNTIME)
