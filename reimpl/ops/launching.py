"""How kernels are tuned, launched and compiled ahead of time.

A kernel has a short list of configurations. On a GPU triton's autotuner picks one a shape; under
the interpreter, which has nothing to time, the first is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from torch import Tensor

from reimpl.ops.problem import Problem

LARGEST_HEAD = 256
"""Head dimensions that the kernels take."""

INTERPRETED = bool(triton.knobs.runtime.interpret)
"""Whether triton's interpreter runs what is decorated in this process (TRITON_INTERPRET=1)."""

POINTERS = {
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.float32: "*fp32",
    torch.int32: "*i32",
    torch.int64: "*i64",
}

_pinned: ContextVar[int | None] = ContextVar("pinned configuration", default=None)


@dataclass(frozen=True)
class Config:
    """One way to compile a kernel: block sizes and the shape of a program."""

    num_warps: int
    num_stages: int = 1
    blocks: dict[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The choice in a few words, such as ``BV=32 warps=4 stages=2``."""
        blocks = "".join(f"{name}={size} " for name, size in self.blocks.items())
        return f"{blocks}warps={self.num_warps} stages={self.num_stages}"


@dataclass(frozen=True)
class CompileCase:
    """One kernel in one configuration, for compilation without a GPU.

    ``signature`` gives each argument's triton type (``*bf16``, ``i64``, ``fp32``, ``constexpr``);
    ``constants`` the values of the constexpr ones, the configuration's blocks among them.
    ``aligned`` names the addresses and integers that a launch finds to be multiples of 16, as the
    JIT compiler does.
    """

    name: str
    kernel: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    num_warps: int
    num_stages: int
    aligned: tuple[str, ...] = ()


def interpreted(kernel: Any) -> bool:
    """Whether triton's interpreter runs this kernel (TRITON_INTERPRET=1 when it was imported)."""
    return not isinstance(kernel, triton.JITFunction)


@contextmanager
def pinned(index: int) -> Iterator[None]:
    """Launch each kernel in its configuration ``index`` (modulo its number) inside this block."""
    token = _pinned.set(index)
    try:
        yield
    finally:
        _pinned.reset(token)


class Tuned:
    """A kernel with its configurations; ``key`` names the arguments that the choice depends on.

    An integer in the key that is no compile-time constant counts by its power of two.

    ``configs(arguments)`` lists what fits a launch, best guess first. Kernels must write each
    output from inputs alone, since tuning runs them several times.
    """

    def __init__(
        self,
        kernel: Any,
        configs: Callable[[dict[str, Any]], Sequence[Config]],
        key: Sequence[str],
    ) -> None:
        self.kernel = kernel
        self.configs = configs
        self.key = tuple(key)
        self._best: dict[tuple[Any, ...], Config] = {}

    def launch(
        self,
        grid: Callable[[dict[str, int]], tuple[int, ...]],
        *,
        tune: bool = True,
        **arguments: Any,
    ) -> None:
        """Run the kernel on ``grid(blocks)`` programs.

        Without ``tune``, for kernels that overwrite what they read, the first one is used.
        """
        tensor = next(x for x in arguments.values() if isinstance(x, Tensor))
        with torch.cuda.device(tensor.device.index if tensor.is_cuda else -1):
            config = self._choose(grid, arguments) if tune else self.configs(arguments)[0]
            self._run(config, grid, arguments)

    def _run(
        self, config: Config, grid: Callable[[dict[str, int]], tuple[int, ...]], arguments: Any
    ) -> None:
        meta = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        self.kernel[grid(config.blocks)](**arguments, **config.blocks, **meta)

    def _choose(self, grid: Any, arguments: dict[str, Any]) -> Config:
        configs = self.configs(arguments)
        pin = _pinned.get()
        if pin is not None:
            return configs[pin % len(configs)]
        if len(configs) == 1 or interpreted(self.kernel) or not torch.cuda.is_available():
            return configs[0]
        if torch.cuda.is_current_stream_capturing():  # nothing may be timed
            return configs[0]
        key = tuple(_rounded(name, arguments[name]) for name in self.key)
        if key not in self._best:
            times = [
                triton.testing.do_bench(lambda c=c: self._run(c, grid, arguments), quantiles=[0.5])
                for c in configs
            ]
            self._best[key] = configs[times.index(min(times))]
        return self._best[key]


def _rounded(name: str, value: Any) -> Any:
    return value if name.isupper() else value.bit_length()


def compile_case(
    name: str, kernel: Any, arguments: dict[str, Any], config: Config, runtime: Sequence[str]
) -> CompileCase:
    """Return the case that a launch with these arguments compiles; tensors may have no memory.

    Compile-time constants have names in capitals; ``runtime`` names the integers that the kernel
    is not specialised on.
    """
    given = arguments | config.blocks
    names = list(kernel.arg_names)
    types = {name: _triton_type(name, given[name]) for name in names}
    constants = {name: given[name] for name in names if types[name] == "constexpr"}
    specialised = [n for n in names if types[n] in ("i32", "i64") and n not in runtime]
    aligned = [n for n in names if types[n].startswith("*")]
    aligned += [n for n in specialised if given[n] % 16 == 0]
    stages = config.num_stages
    return CompileCase(name, kernel, types, constants, config.num_warps, stages, tuple(aligned))


def _triton_type(name: str, value: Any) -> str:
    if name.isupper() or value is None:
        return "constexpr"
    if isinstance(value, Tensor):
        return POINTERS[value.dtype]
    if isinstance(value, float):
        return "fp32"
    return "i32" if abs(value) < 2**31 else "i64"


def example(dtype: torch.dtype, size: int, looks: bool, decays: int, packed: bool) -> Problem:
    """Return a problem whose tensors have shapes but no memory, heads of ``size`` among them.

    ``decays`` is 0 for none, 1 for one a head, 2 for one a key channel.
    """

    def made(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    places = (1, 4096, 8)
    q, k, v = (made(*places, size, dtype=dtype) for _ in range(3))
    beta = made(*places) if looks else None
    decay = made(*places, *(size,) * (decays - 1)) if decays else None
    sequences, cu_seqlens = (2, made(3, dtype=torch.int32)) if packed else (1, None)
    initial = made(sequences, 8, size, size)
    return Problem(q, k, v, beta, decay, initial, cu_seqlens, 1.0, dtype)


def block(size: int) -> int:
    """Return the power of two, at least 16, that holds ``size``: what a tile product needs."""
    return max(16, 1 << (size - 1).bit_length())
