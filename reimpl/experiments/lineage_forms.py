"""Every published form of a descendant against Eq. 24, with its gate open and partly closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from reimpl.experiments import lineage_oracles as oracles
from reimpl.experiments.exact import Measured
from reimpl.experiments.exact_equivalence import SHAPES, relative_error
from reimpl.experiments.lineage import Subject
from reimpl.experiments.lineage_oracles import Inputs, Oracle, Result
from reimpl.rules import run_rule

CLOSING = -0.1
"""The decay that must not compute Eq. 24: the state loses a tenth at every position."""

Gate = Literal["none", "head", "key"]


@dataclass(frozen=True)
class Form:
    """One way to compute a descendant, and whether its decay is one a head or one a key channel."""

    compute: Callable[[Inputs], Result]
    gate: Gate
    precision: torch.dtype
    takes_state: bool = True


def published(oracle: Oracle, gate: Gate) -> Form:
    """Return the form that an oracle computes."""
    return Form(oracle, gate, oracle.precision, oracle.takes_state)


def equation(rule: str, gate: Gate) -> Form:
    """Return the form that the update equation of ``rule`` is, in float64."""
    return Form(lambda x: _run(x, rule), gate, torch.float64)


FORMS: dict[Subject, dict[str, Form]] = {
    "equations": {
        "gated-deltanet-equation": equation("gated_delta", "head"),
        "kda-equation": equation("kda", "key"),
    },
    "delta-rule": {
        "delta-rule-recurrent": published(oracles.DELTA_RECURRENT, "none"),
        "delta-rule-chunk": published(oracles.DELTA_CHUNK, "none"),
    },
    "gated-deltanet": {
        "gated-deltanet-recurrent": published(oracles.GATED_RECURRENT, "head"),
        "gated-deltanet-chunk": published(oracles.GATED_CHUNK, "head"),
    },
    "kda": {"kda-recurrent": published(oracles.KDA_RECURRENT, "key")},
    "qwen3-next": {
        "qwen3-next-recurrent": published(oracles.QWEN_RECURRENT, "head"),
        "qwen3-next-chunk": published(oracles.QWEN_CHUNK, "head"),
    },
}


def measure(subject: Subject, seed: int) -> Measured:
    """Return the largest error with the gate open, the least difference with it partly closed.

    Both are over ``SHAPES``, outputs and last states. A NaN anywhere is the result.
    """
    generator = torch.Generator().manual_seed(seed)
    measured: Measured = {}
    for slug, form in FORMS[subject].items():
        inputs = [draw(shape, form, generator) for shape in SHAPES]
        measured[slug] = ("max_relative_error", float(differences(form, inputs, 0.0).max()))
        if form.gate != "none":
            least = float(differences(form, inputs, CLOSING).min())
            measured[f"{slug}-closing"] = ("min_relative_difference", least)
    return measured


def draw(shape: tuple[int, ...], form: Form, generator: torch.Generator) -> Inputs:
    """Return inputs without a decay that the form's precision can hold; keys have unit length."""
    batch, length, heads, d_key, d_value = shape

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64)

    q, k = normal(2, batch, length, heads, d_key)
    v = normal(batch, length, heads, d_value)
    beta = torch.sigmoid(normal(batch, length, heads))
    state = normal(batch, heads, d_key, d_value)
    k = k / k.norm(dim=-1, keepdim=True)
    return Inputs(q, k, v, beta, state=state if form.takes_state else None).to(form.precision)


def differences(form: Form, inputs: list[Inputs], decay: float) -> Tensor:
    """Return the relative errors of outputs and states against Eq. 24, carried out in float64."""
    errors = []
    for x in inputs:
        expected = _run(x.to(torch.float64), "delta")
        for found, exact in zip(form.compute(gated(x, form.gate, decay)), expected, strict=True):
            errors.append(relative_error(found.to(torch.float64), exact))
    return torch.tensor(errors, dtype=torch.float64)


def gated(x: Inputs, gate: Gate, decay: float) -> Inputs:
    """Return the inputs with one decay at every gate."""
    like = {"none": None, "head": x.beta, "key": x.k}[gate]
    return x if like is None else x._replace(decay=torch.full_like(like, decay))


def _run(x: Inputs, rule: str) -> Result:
    result = run_rule(x.q, x.k, x.v, x.beta, x.decay, rule=rule, initial_state=x.state)
    return result.output, result.state
