"""Random inputs of the update, and its outputs and gradients on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from reimpl.ops import attention
from reimpl.ops.attention import fast_weight_attention

GIVEN = ("q", "k", "v", "beta", "decay", "initial_state")
FASTEST_DECAY = 3.0
"""Random log decays lie between minus this and 0."""


@dataclass(frozen=True)
class Shape:
    """Sizes of one update; ``bounds`` packs sequences into the one row."""

    batch: int
    length: int
    heads: int
    d_key: int
    d_value: int
    bounds: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """The sizes as people write them."""
        dims = f"{self.d_key}" if self.d_key == self.d_value else f"{self.d_key}/{self.d_value}"
        packed = "" if self.bounds is None else f" packed {len(self.bounds) - 1}"
        return f"B={self.batch} L={self.length} H={self.heads} D={dims}{packed}"

    def shortened(self) -> Shape:
        """Return a shape with the same head dimensions that a float64 recurrence is done with soon.

        136 positions are several chunks of any size and a part of one.
        """
        batch, length, heads = min(self.batch, 2), min(self.length, 136), min(self.heads, 2)
        return replace(self, batch=batch, length=length, heads=heads)


@dataclass(frozen=True)
class Inputs:
    """Arguments of one update with the gradients that come back to its output and last state."""

    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor | None
    decay: Tensor | None
    initial_state: Tensor | None
    d_output: Tensor
    d_state: Tensor
    cu_seqlens: Tensor | None = None

    def given(self) -> dict[str, Any]:
        """Return the differentiable arguments that are there."""
        return {name: x for name in GIVEN if (x := getattr(self, name)) is not None}

    def map(self, change: Callable[[Tensor], Tensor]) -> Inputs:
        """Return inputs with ``change`` made to every floating-point tensor."""
        names = [field.name for field in fields(self) if field.name != "cu_seqlens"]
        present: dict[str, Any] = {n: x for n in names if (x := getattr(self, n)) is not None}
        return replace(self, **{name: change(x) for name, x in present.items()})

    def on(self, device: str) -> Inputs:
        """Return the same inputs on a device."""
        bounds = None if self.cu_seqlens is None else self.cu_seqlens.to(device)
        return replace(self.map(lambda x: x.to(device)), cu_seqlens=bounds)

    def leaves(self) -> Inputs:
        """Return the same inputs as leaves of a graph."""
        return replace(self, **{n: x.detach().requires_grad_() for n, x in self.given().items()})

    def tokens(self) -> list[dict[str, Any]]:
        """Return the arguments of a decoding step at each position, the state left out."""
        named = {name: x for name, x in self.given().items() if name != "initial_state"}
        return [
            {name: x[:, i].contiguous() for name, x in named.items()}
            for i in range(self.q.shape[1])
        ]

    def first(self, length: int) -> Inputs:
        """Return copies of the first ``length`` positions; not for packed sequences."""
        names = ("q", "k", "v", "beta", "decay", "d_output")
        cut: dict[str, Any] = {
            n: None if (x := getattr(self, n)) is None else x[:, :length] for n in names
        }
        return replace(self, **cut).map(lambda x: x.clone(memory_format=torch.contiguous_format))

    def heads_first(self) -> Inputs:
        """Return q, k, v, d_output as ``[batch, heads, length, dim]``, as softmax takes them."""
        names = ("q", "k", "v", "d_output")
        return replace(self, **{n: getattr(self, n).transpose(1, 2).contiguous() for n in names})


Op = Callable[[Inputs], tuple[Tensor, Tensor | None]]
"""An update: outputs and, where it gives them, last states."""


def make_inputs(
    rule: str,
    shape: Shape,
    *,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    decay: float | None = None,
    state: bool = True,
    seed: int = 0,
) -> Inputs:
    """Return normal q and v, keys of length 1, β in (0, 1), log decays random or all ``decay``.

    q, k, v and d_output are ``dtype``, all else float32. Without ``state`` there is no first state.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator, device=device)

    lead = (shape.batch, shape.length, shape.heads)
    sequences = shape.batch if shape.bounds is None else len(shape.bounds) - 1
    states = (sequences, shape.heads, shape.d_key, shape.d_value)
    decays = {"gated_delta": lead, "kda": (*lead, shape.d_key)}.get(rule)
    log_decay = None
    if decays is not None:
        log_decay = -FASTEST_DECAY * torch.rand(*decays, generator=generator, device=device)
        if decay is not None:
            log_decay.fill_(decay)
    return Inputs(
        normal(*lead, shape.d_key).to(dtype),
        normalize(normal(*lead, shape.d_key), dim=-1).to(dtype),
        normal(*lead, shape.d_value).to(dtype),
        None if rule == "sum" else torch.sigmoid(normal(*lead)),
        log_decay,
        normal(*states) if state else None,
        normal(*lead, shape.d_value).to(dtype),
        normal(*states),
        None if shape.bounds is None else torch.tensor(shape.bounds, device=device),
    )


def ours(
    rule: str, backend: str = "auto", *, scale: float = 1.0, kernel: attention.Kernel | None = None
) -> Op:
    """Return the project's op for a rule; ``kernel`` forces one family of triton kernels."""

    def op(x: Inputs) -> tuple[Tensor, Tensor | None]:
        with attention.kernel(kernel):
            return fast_weight_attention(
                **x.given(),
                rule=rule,
                scale=scale,
                cu_seqlens=x.cu_seqlens,
                output_final_state=True,
                backend=backend,
            )

    return op


def results(op: Op, inputs: Inputs) -> dict[str, Tensor]:
    """Return output, last state (where the op gives it) and the gradients of all inputs, named."""
    leaves = inputs.leaves()
    output, state = op(leaves)
    named = {"output": output.detach()}
    ends, seeds = [output], [inputs.d_output.to(output.dtype)]
    if state is not None:
        named["state"] = state.detach()
        ends.append(state)
        seeds.append(inputs.d_state.to(state.dtype))
    given = leaves.given()
    gradients = torch.autograd.grad(ends, list(given.values()), seeds)
    return named | {f"d_{name}": g for name, g in zip(given, gradients, strict=True)}


def forward(op: Op, inputs: Inputs) -> Callable[[], object]:
    """Return a run of the op without gradients."""

    def run() -> object:
        with torch.no_grad():
            return op(inputs)

    return run


def forward_backward(op: Op, inputs: Inputs) -> Callable[[], object]:
    """Return a run of the op and of the gradients of its output by all inputs."""
    leaves = inputs.leaves()
    given = list(leaves.given().values())

    def run() -> object:
        output, _ = op(leaves)
        return torch.autograd.grad(output, given, inputs.d_output)

    return run
