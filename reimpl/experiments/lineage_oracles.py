"""Update rules as other projects publish them, in plain torch, behind one call.

An oracle never answers from code that is not the one asked for: what is missing or has changed is
a RunError. Scale is 1 throughout; functions that always divide q by √d_key get it multiplied first.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor

from records.errors import RunError
from reimpl.experiments.lineage import FLA, TRANSFORMERS, installed_version

INSTALL = "pip install 'fwp-repro[oracles]' (make setup does that)"


class Inputs(NamedTuple):
    """What a rule is run on.

    ``q``, ``k`` ``[batch, length, heads, d_key]``; ``v`` ``[batch, length, heads, d_value]``;
    ``beta`` ``[batch, length, heads]``; ``decay`` = log α, of the shape of ``beta`` or of ``k``;
    ``state`` ``[batch, heads, d_key, d_value]``, None for zeros.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor | None = None
    decay: Tensor | None = None
    state: Tensor | None = None

    def to(self, dtype: torch.dtype) -> Inputs:
        """Return the inputs in another precision."""
        return Inputs(*(None if x is None else x.to(dtype) for x in self))  # type: ignore[arg-type]

    @property
    def state_shape(self) -> tuple[int, ...]:
        """``[batch, heads, d_key, d_value]``."""
        batch, _, heads, d_value = self.v.shape
        return (batch, heads, self.k.shape[-1], d_value)


Result = tuple[Tensor, Tensor]
"""Outputs ``[batch, length, heads, d_value]`` and the last state."""


@dataclass(frozen=True)
class Oracle:
    """A published function: ``arguments`` puts inputs into its keywords.

    ``precision`` is what it computes in, or the highest that it keeps. ``heads_first``: its outputs
    are ``[batch, heads, length, d_value]``. Without ``takes_state`` it starts from zeros only.
    """

    package: str
    module: str
    function: str
    arguments: Callable[[Inputs], dict[str, Any]]
    precision: torch.dtype = torch.float32
    heads_first: bool = False
    takes_state: bool = True

    def __call__(self, x: Inputs) -> Result:
        """Run the published code; raises RunError where it is missing or is not what was tested."""
        function, arguments = self._load(), self.arguments(x)
        try:
            output, state = function(**arguments)
        except (TypeError, ValueError) as error:
            raise self._changed(str(error)) from error
        batch, length, heads, d_value = x.v.shape
        rows = (heads, length) if self.heads_first else (length, heads)
        self._expect("outputs", output, (batch, *rows, d_value))
        self._expect("the last state", state, x.state_shape)
        return output.transpose(1, 2) if self.heads_first else output, state

    def _expect(self, name: str, found: object, shape: tuple[int, ...]) -> None:
        has = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
        if has != list(shape):
            raise self._changed(f"{name} should be {list(shape)}, got {has}")

    def _load(self) -> Callable[..., Any]:
        """Return the innermost function: transformers wraps it to dispatch to a GPU kernel."""
        if installed_version(self.package) is None:
            raise RunError(
                f"{self.package}, on whose code this is measured, is not installed; "
                f"install it with {INSTALL}"
            )
        try:
            wrapped = getattr(_quietly_imported(self.module), self.function)
        except (ImportError, AttributeError) as error:
            raise self._changed(str(error)) from error
        function: Callable[..., Any] = inspect.unwrap(wrapped)
        return function

    def _changed(self, what: str) -> RunError:
        return RunError(
            f"{self.module}.{self.function} of {self.package} {installed_version(self.package)} "
            f"cannot be used as it was tested: {what}; install the tested versions "
            f"with {INSTALL}"
        )


def _quietly_imported(module: str) -> Any:
    """Import ``module`` without the remark that this machine has no GPU."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Triton is not supported on current platform")
        return import_module(module)


def fla_gated(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's gated delta rules; also its fused recurrent kernel."""
    return fla_ungated(x) | {"g": x.decay}


def fla_ungated(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's fused delta rule."""
    return fla_sum(x) | {"beta": x.beta}


def fla_sum(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's linear attention."""
    arguments = {"q": x.q, "k": x.k, "v": x.v, "scale": 1.0}
    return arguments | {"initial_state": x.state, "output_final_state": True}


def fla_gated_sum(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's linear attention with a decay."""
    return fla_sum(x) | {"g": x.decay}


def fla_delta_recurrence(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's plain delta rule, position by position."""
    return _heads_first(x) | {"initial_state": x.state, "output_final_state": True}


def fla_delta_chunkwise(x: Inputs) -> dict[str, Any]:
    """flash-linear-attention's plain delta rule in chunks, which must divide the length."""
    if x.state is not None:
        raise ValueError("it starts from an empty state only")
    return _heads_first(x) | {"chunk_size": math.gcd(x.v.shape[1], 32)}


def qwen(x: Inputs) -> dict[str, Any]:
    """Qwen3-Next in transformers, whose query and key normalisation is off by default."""
    arguments = {"query": _unscaled(x.q), "key": x.k, "value": x.v, "g": x.decay, "beta": x.beta}
    return arguments | {"initial_state": x.state, "output_final_state": True}


def _heads_first(x: Inputs) -> dict[str, Any]:
    assert x.beta is not None
    tensors = {"q": _unscaled(x.q), "k": x.k, "v": x.v, "beta": x.beta}
    return {name: tensor.transpose(1, 2) for name, tensor in tensors.items()}


def _unscaled(q: Tensor) -> Tensor:
    return q * math.sqrt(q.shape[-1])


DELTA = "fla.ops.delta_rule.naive"
GATED = "fla.ops.gated_delta_rule.naive"
KDA = "fla.ops.kda.naive"
QWEN = "transformers.models.qwen3_next.modeling_qwen3_next"

DELTA_RECURRENT = Oracle(
    FLA, DELTA, "delta_rule_recurrence", fla_delta_recurrence, heads_first=True
)
DELTA_CHUNK = Oracle(
    FLA,
    DELTA,
    "delta_rule_chunkwise",
    fla_delta_chunkwise,
    precision=torch.float64,
    heads_first=True,
    takes_state=False,
)
GATED_RECURRENT = Oracle(FLA, GATED, "naive_recurrent_gated_delta_rule", fla_gated)
GATED_CHUNK = Oracle(FLA, GATED, "naive_chunk_gated_delta_rule", fla_gated)
KDA_RECURRENT = Oracle(FLA, KDA, "naive_recurrent_kda", fla_gated)
QWEN_RECURRENT = Oracle(TRANSFORMERS, QWEN, "torch_recurrent_gated_delta_rule", qwen)
QWEN_CHUNK = Oracle(TRANSFORMERS, QWEN, "torch_chunk_gated_delta_rule", qwen)
