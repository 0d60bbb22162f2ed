"""Random inputs of the update, and runs of it with gradients, that the tests here share."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from reimpl.ops import attention, fast_weight_attention

RULES = ("sum", "gated_sum", "delta", "gated_delta", "kda")
WAYS = ("chunk", "recurrent", "chunkwise")
"""The torch backend, and the two families of kernels of the triton backend."""


@dataclass(frozen=True)
class Case:
    """Inputs of one update, with the gradients that come back to its output and last state."""

    rule: str
    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor | None
    decay: Tensor | None
    initial_state: Tensor | None
    d_output: Tensor
    d_state: Tensor
    cu_seqlens: Tensor | None = None

    def to(self, dtype: torch.dtype) -> Case:
        """Return the case with q, k, v rounded to ``dtype``, and the rest to at least float32."""
        wide = torch.promote_types(dtype, torch.float32)
        changed: dict[str, Any] = {n: getattr(self, n).to(dtype) for n in ("q", "k", "v")}
        for name in ("beta", "decay", "initial_state", "d_output", "d_state"):
            x = getattr(self, name)
            changed[name] = None if x is None else x.to(wide)
        return replace(self, **changed)


def case(
    rule: str,
    *,
    seed: int,
    length: int = 21,
    batch: int = 2,
    heads: int = 2,
    d_key: int = 5,
    d_value: int = 7,
    bounds: list[int] | None = None,
    decay: float | None = None,
    state: bool = True,
) -> Case:
    """Return a case in float64; keys have length 1, decays are −3 to 0 or all ``decay``."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    batch = 1 if bounds else batch
    lead = (batch, length, heads)
    sequences = len(bounds) - 1 if bounds else batch
    decays = {"gated_delta": lead, "kda": (*lead, d_key)}.get(rule)
    log_decay = None if decays is None else -3 * torch.rand(*decays, generator=generator).double()
    if log_decay is not None and decay is not None:
        log_decay.fill_(decay)
    start = normal(sequences, heads, d_key, d_value)
    return Case(
        rule,
        normal(*lead, d_key),
        normalize(normal(*lead, d_key), dim=-1),
        normal(*lead, d_value),
        None if rule == "sum" else torch.sigmoid(normal(*lead)),
        log_decay,
        start if state else None,
        normal(*lead, d_value),
        normal(sequences, heads, d_key, d_value),
        torch.tensor(bounds) if bounds else None,
    )


def run(x: Case, way: str, **options: Any) -> dict[str, Tensor]:
    """Return output, last state and the gradients of all inputs, by name."""
    names = ("q", "k", "v", "beta", "decay", "initial_state")
    leaves = {n: t.detach().requires_grad_() for n in names if (t := getattr(x, n)) is not None}
    backend = way if way in ("chunk", "reference", "auto") else "triton"
    with nullcontext() if backend != "triton" else attention.kernel(way):  # type: ignore[arg-type]
        output, state = fast_weight_attention(
            **leaves,
            rule=x.rule,
            cu_seqlens=x.cu_seqlens,
            output_final_state=True,
            backend=backend,
            **options,
        )
        assert state is not None
        total = (output.to(x.d_output) * x.d_output).sum() + (state * x.d_state).sum()
        gradients = torch.autograd.grad(total, list(leaves.values()))
    named = {f"d_{n}": g for n, g in zip(leaves, gradients, strict=True)}
    return {"output": output.detach(), "state": state.detach(), **named}


def error(found: Tensor, right: Tensor) -> float:
    """Return ‖found − right‖ / ‖right‖ in float64; NaN and infinity count as infinite."""
    found, right = found.double(), right.double()
    if not torch.isfinite(found).all():
        return float("inf")
    return float((found - right).norm() / right.norm().clamp(min=1e-12))


def errors(x: Case, way: str, **options: Any) -> dict[str, float]:
    """Return the relative errors of ``run`` against the float64 recurrence on the same inputs."""
    right = run(x.to(torch.float64), "reference", scale=options.get("scale", 1.0))
    return {name: error(found, right[name]) for name, found in run(x, way, **options).items()}
