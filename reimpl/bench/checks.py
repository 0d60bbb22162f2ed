"""Hold an op against the recurrence of ``rules`` in float64: outputs, states, all gradients."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from reimpl.bench.inputs import Inputs, Op, Shape, make_inputs, ours, results
from reimpl.bench.report import Section
from reimpl.ops import fast_weight_step
from reimpl.ops.attention import Kernel

RULES = ("sum", "gated_sum", "delta", "gated_delta", "kda")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SHAPES = (
    Shape(2, 101, 2, 64, 64),
    Shape(3, 256, 8, 16, 16),
    Shape(1, 129, 2, 128, 128),
    Shape(1, 70, 2, 256, 256),
    Shape(1, 65, 3, 40, 100),
    Shape(1, 1, 2, 64, 64),
    Shape(1, 157, 2, 64, 64, (0, 0, 1, 64, 64, 157)),
)
REGIMES = (0.0, -1e-3, -20.0, -math.inf)
"""Log decays that all positions have, beside the random ones."""
PINNED_SHAPES = (SHAPES[0], SHAPES[2])
PINNED_DTYPES = (torch.float32, torch.bfloat16)
PINS = 3
"""The most configurations that a kernel has; one with fewer starts again from its first."""


class Limit(NamedTuple):
    """The largest relative errors that pass."""

    output: float
    gradient: float

    def passes(self, name: str, error: float) -> bool:
        """Whether the error of a result of that name is small enough."""
        return error <= (self.gradient if name.startswith("d_") else self.output)


_HALF = Limit(output=1e-2, gradient=8e-3)
LIMITS = {torch.float32: Limit(1e-4, 1e-4), torch.bfloat16: _HALF, torch.float16: _HALF}

NEGLIGIBLE = 1e-5
"""Root mean square below which values are compared on this scale, not on their own."""


def relative_error(found: Tensor, right: Tensor) -> float:
    """Return ‖found − right‖ / ‖right‖; infinite for a NaN or infinity."""
    found, right = found.cpu().double(), right.cpu().double()
    if not torch.isfinite(found).all():
        return math.inf
    floor = NEGLIGIBLE * math.sqrt(right.numel())
    return float((found - right).norm()) / max(float(right.norm()), floor)


@contextmanager
def poisoned() -> Iterator[None]:
    """Fill memory that is asked for with NaN, so that what nobody writes shows."""
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(enabled, warn_only=warn_only)


def right_results(inputs: Inputs, rule: str, scale: float = 1.0) -> dict[str, Tensor]:
    """Return what the recurrence gives in float64 for the same, rounded inputs; on the CPU.

    There it takes a core, of which there are many, and not a GPU that waits for each of its steps.
    """
    return results(ours(rule, "reference", scale=scale), _exact(inputs))


def _exact(inputs: Inputs) -> Inputs:
    return inputs.on("cpu").map(Tensor.double)


def errors(op: Op, inputs: Inputs, right: dict[str, Tensor]) -> dict[str, float]:
    """Return the relative error of each result that the op gives."""
    with poisoned():
        found = results(op, inputs)
    return {name: relative_error(x, right[name]) for name, x in found.items()}


def failure(found: dict[str, float], dtype: torch.dtype) -> str | None:
    """Return which results are outside the limits, and by how much; None where all pass."""
    limit = LIMITS[dtype]
    wrong = [
        f"{name} {error:.1e}" for name, error in found.items() if not limit.passes(name, error)
    ]
    if not wrong:
        return None
    return (
        f"fails its check against float64: relative errors {', '.join(wrong)} "
        f"(limits {limit.output:g}, gradients {limit.gradient:g})"
    )


def check_op(op: Op, rule: str, shape: Shape, dtype: torch.dtype, device: str) -> str | None:
    """Return why an op must not be timed, or None; without a first state, as it is timed."""
    inputs = make_inputs(rule, shape, dtype=dtype, device=device, state=False)
    try:
        return failure(errors(op, inputs, right_results(inputs, rule)), dtype)
    except Exception as error:  # others' code raises whatever it likes; the row shows it
        return described(error)


def check_output(
    op: Op, rule: str, shape: Shape, dtype: torch.dtype, device: str, limit: float
) -> str | None:
    """Return why an op that need not have gradients must not be timed, or None."""
    inputs = make_inputs(rule, shape, dtype=dtype, device=device, state=False)
    try:
        with torch.no_grad():
            right, _ = ours(rule, "reference")(_exact(inputs))
            output, _ = op(inputs)
    except Exception as error:  # as above
        return described(error)
    found = relative_error(output, right)
    return None if found <= limit else f"output is off by {found:.1e} (limit {limit:g})"


def check_step(rule: str, shape: Shape, dtype: torch.dtype, device: str) -> str | None:
    """Return why the decoding step must not be timed, or None: outputs and state by position."""
    inputs = make_inputs(rule, shape, dtype=dtype, device=device)
    assert inputs.initial_state is not None
    state = inputs.initial_state.clone()
    outputs = []
    try:
        with poisoned():
            for token in inputs.tokens():
                output, _ = fast_weight_step(**token, state=state, rule=rule, inplace=True)
                outputs.append(output)
        right = right_results(inputs, rule)
    except Exception as error:  # as above
        return described(error)
    found = {"output": torch.stack(outputs, 1), "state": state}
    return failure({n: relative_error(x, right[n]) for n, x in found.items()}, dtype)


def described(error: Exception) -> str:
    """Return an error's kind and first line, short enough for a cell."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"


@dataclass(frozen=True)
class Case:
    """One check, in the kernels' configuration ``pin``; ``kernel`` None is the torch backend."""

    rule: str
    dtype: torch.dtype
    shape: Shape
    kernel: Kernel | None
    decay: float | None = None
    scale: float = 0.5
    pin: int = 0


COLUMNS = ("rule", "dtype", "shape", "kernel", "decay", "scale", "configuration",
           "output error", "gradient error", "result")  # fmt: skip
Row = tuple[str, str, str, str, str, float, int, float, float, str]
OK = "ok"


def check_list(
    kernels: tuple[Kernel | None, ...],
    *,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    shapes: tuple[Shape, ...] = SHAPES,
    pins: int = PINS,
) -> list[Case]:
    """Return every rule in every precision and shape, then other scales and decays, then pins."""
    every = [Case(*x) for x in itertools.product(RULES, dtypes, shapes, kernels)]
    plain = [case for case in every if case.shape == shapes[0]]
    # an argument that is the integer 1 is compiled in, and has been lost that way
    scaled = [replace(case, scale=1) for case in plain]
    gated = [case for case in plain if case.rule in ("gated_delta", "kda")]
    decayed = [replace(case, decay=decay) for decay in REGIMES for case in gated]
    in_pins = [
        case
        for case in every
        if case.kernel and case.shape in PINNED_SHAPES and case.dtype in PINNED_DTYPES
    ]
    pinned = [replace(case, pin=pin) for pin in range(1, pins) for case in in_pins]
    return [*every, *scaled, *decayed, *pinned]


def run_case(case: Case, device: str) -> Row:
    """Do one check."""
    inputs = make_inputs(
        case.rule, case.shape, dtype=case.dtype, device=device, decay=case.decay, seed=1
    )
    backend = "chunk" if case.kernel is None else "triton"
    op = ours(case.rule, backend, scale=case.scale, kernel=case.kernel)
    try:
        right = right_results(inputs, case.rule, case.scale)
        with _configuration(case):
            found = errors(op, inputs, right)
    except Exception as error:  # a compiler's too: the row shows it, the other checks go on
        return row(case, {}, described(error))
    return row(case, found, failure(found, case.dtype) or OK)


def _configuration(case: Case) -> AbstractContextManager[None]:
    """Return a block in which kernels use the case's configuration; the torch backend has none."""
    if case.kernel is None:
        return nullcontext()
    from reimpl.ops import launching

    return launching.pinned(case.pin)


def row(case: Case, found: dict[str, float], result: str) -> Row:
    worst = [
        max((e for n, e in found.items() if n.startswith("d_") is gradient), default=math.nan)
        for gradient in (False, True)
    ]
    return (
        case.rule,
        str(case.dtype).removeprefix("torch."),
        case.shape.label,
        case.kernel or "torch",
        "random" if case.decay is None else f"{case.decay:g}",
        case.scale,
        case.pin,
        worst[0],
        worst[1],
        result,
    )


def sections(rows: list[Row]) -> list[Section]:
    """Return the checks by rule, precision and kernel, those that failed, and (in JSON) all."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row[0], row[1], row[3]), []).append(row)
    summary = [
        (
            *key,
            len(group),
            sum(row[-1] != OK for row in group),
            max(row[7] for row in group),
            max(row[8] for row in group),
            "{0.output:g} / {0.gradient:g}".format(LIMITS[getattr(torch, key[1])]),
        )
        for key, group in groups.items()
    ]
    columns = ("rule", "dtype", "kernel", "checks", "failed", "worst output", "worst gradient",
               "limits")  # fmt: skip
    failed = [row for row in rows if row[-1] != OK]
    found = [Section("Relative errors against float64", columns, summary)]
    if failed:
        found.append(Section("Checks that failed", COLUMNS, list(failed)))
    return [*found, Section("All checks", COLUMNS, list(rows), in_text=False)]
