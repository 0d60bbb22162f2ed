"""The fast update against code that others wrote, forward and backward.

Oracles take the same float32 tensors and compute in float32 too, so a difference is the rounding of
both. It is relative to the largest value of the oracle's tensor.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reimpl.experiments import lineage_oracles as oracles
from reimpl.experiments.exact_equivalence import relative_error
from reimpl.experiments.lineage import FLA
from reimpl.experiments.lineage_oracles import Inputs, Oracle, Result
from reimpl.ops import fast_weight_attention

BATCH, LENGTH, HEADS, D_KEY, D_VALUE = 2, 80, 2, 16, 24
"""The length is a multiple of no chunk but the smallest, and takes several of each oracle's."""

DECAYS: dict[str, tuple[float, float]] = {
    "open": (0.0, 0.0),
    "nearly open": (-1e-4, 0.0),
    "mild": (-0.2, 0.0),
    "strong": (-20.0, 0.0),
    "shut": (-0.2, 0.0),
}
"""Bounds between which log α is drawn; where ``shut``, a tenth of them are −∞."""

BOUND = 2e-6
"""For outputs, states and gradients: 2.5 times the largest difference that was seen, 8e-7."""
CANCELLING = 4e-5
"""For chunked oracles at strong decays: they subtract running sums of log α, which reach −640 in a
chunk of 64 and are rounded to 3e-5 there. It is their error (1.3e-5 against our float64)."""

LINEAR = Oracle(FLA, "fla.ops.linear_attn.naive", "naive_recurrent_linear_attn", oracles.fla_sum)
SIMPLE_GLA = Oracle(
    FLA, "fla.ops.simple_gla.naive", "naive_recurrent_simple_gla", oracles.fla_gated_sum
)
FUSED_DELTA = Oracle(
    FLA, "fla.ops.delta_rule.fused_recurrent", "fused_recurrent_delta_rule", oracles.fla_ungated
)
FUSED_GATED = Oracle(
    FLA,
    "fla.ops.gated_delta_rule.fused_recurrent",
    "fused_recurrent_gated_delta_rule",
    oracles.fla_gated,
)
FUSED_KDA = Oracle(
    FLA,
    "fla.ops.gated_delta_rule.fused_recurrent",
    "fused_recurrent_gated_delta_rule",
    lambda x: oracles.fla_ungated(x) | {"gk": x.decay},
)

UNGATED = {
    "delta, fla recurrent": ("delta", oracles.DELTA_RECURRENT),
    "delta, fla chunk": ("delta", oracles.DELTA_CHUNK),
    "sum, fla recurrent": ("sum", LINEAR),
}
GATED = {
    "gated_delta, fla recurrent": ("gated_delta", oracles.GATED_RECURRENT),
    "gated_delta, fla chunk": ("gated_delta", oracles.GATED_CHUNK),
    "gated_delta, Qwen3-Next recurrent": ("gated_delta", oracles.QWEN_RECURRENT),
    "gated_delta, Qwen3-Next chunk": ("gated_delta", oracles.QWEN_CHUNK),
    "kda, fla recurrent": ("kda", oracles.KDA_RECURRENT),
}
FUSED = {
    "delta": ("delta", FUSED_DELTA),
    "gated_delta": ("gated_delta", FUSED_GATED),
    "kda": ("kda", FUSED_KDA),
}


def draw(
    rule: str, decay: str = "open", *, with_state: bool = True, length: int = LENGTH
) -> Inputs:
    """Return float32 inputs with keys and queries of unit length; β fills [0, 1]."""
    generator = torch.Generator().manual_seed(7)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator)

    q, k = torch.nn.functional.normalize(normal(2, BATCH, length, HEADS, D_KEY), dim=-1)
    beta = torch.rand(BATCH, length, HEADS, generator=generator)
    like = {"gated_delta": beta, "kda": k}.get(rule)
    return Inputs(
        q,
        k,
        normal(BATCH, length, HEADS, D_VALUE),
        None if rule == "sum" else beta,
        None if like is None else gates(like, decay, generator),
        normal(BATCH, HEADS, D_KEY, D_VALUE) if with_state else None,
    )


def gates(like: Tensor, decay: str, generator: torch.Generator) -> Tensor:
    """Return log α of the shape of ``like``."""
    drawn = torch.empty_like(like).uniform_(*DECAYS[decay], generator=generator)
    shut = torch.rand(like.shape, generator=generator) < (0.1 if decay == "shut" else 0.0)
    return drawn.masked_fill(shut, float("-inf"))


def ours(rule: str) -> Callable[[Inputs], Result]:
    """Return our fast update under ``rule``."""

    def run(x: Inputs) -> Result:
        output, state = fast_weight_attention(
            *x[:5],
            rule=rule,
            initial_state=x.state,
            output_final_state=True,
            backend="chunk",
        )
        assert state is not None
        return output, state

    return run


def values_and_gradients(run: Callable[[Inputs], Result], x: Inputs) -> dict[str, Tensor]:
    """Return outputs, state, and the gradients of a random linear function of both."""
    leaves = {
        name: tensor.clone().requires_grad_()
        for name, tensor in x._asdict().items()
        if tensor is not None
    }
    output, state = run(Inputs(**leaves))
    generator = torch.Generator().manual_seed(8)
    weights = [torch.randn(y.shape, generator=generator).to(y.dtype) for y in (output, state)]
    total = (output * weights[0]).sum() + (state * weights[1]).sum()
    gradients = torch.autograd.grad(total, list(leaves.values()))
    named = {f"d{name}": gradient for name, gradient in zip(leaves, gradients, strict=True)}
    return {"output": output.detach(), "state": state.detach(), **named}


def errors(found: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    assert found.keys() == expected.keys()
    return {name: relative_error(found[name], expected[name]) for name in expected}


def assert_agree(
    rule: str, oracle: Callable[[Inputs], Result], x: Inputs, bound: float = BOUND
) -> None:
    """Hold outputs, last state and the gradients of all inputs against the oracle's."""
    expected = values_and_gradients(oracle, x)
    found = errors(values_and_gradients(ours(rule), x), expected)
    assert len(found) == 2 + sum(tensor is not None for tensor in x)
    assert all(error < bound for error in found.values()), found


@pytest.mark.parametrize("name", UNGATED)
def test_without_a_gate_we_agree_with_published_code(name: str) -> None:
    rule, oracle = UNGATED[name]
    assert_agree(rule, oracle, draw(rule, with_state=oracle.takes_state))


@pytest.mark.parametrize("decay", ["open", "nearly open", "mild", "strong"])
@pytest.mark.parametrize("name", GATED)
def test_with_a_gate_we_agree_with_published_code(name: str, decay: str) -> None:
    rule, oracle = GATED[name]
    cancels = "chunk" in name and decay == "strong"
    assert_agree(rule, oracle, draw(rule, decay), CANCELLING if cancels else BOUND)


@pytest.mark.parametrize("name", [name for name in GATED if "recurrent" in name])
def test_a_gate_that_shuts_clears_the_state_as_published_code_does(name: str) -> None:
    # chunked oracles give NaN here, −∞ less −∞
    rule, oracle = GATED[name]
    assert_agree(rule, oracle, draw(rule, "shut"))


def test_in_float64_we_agree_to_float64_with_the_oracle_that_keeps_it() -> None:
    x = draw("delta", with_state=False).to(torch.float64)
    expected = values_and_gradients(oracles.DELTA_CHUNK, x)
    found = errors(values_and_gradients(ours("delta"), x), expected)
    assert all(error < 1e-12 for error in found.values()), found


def test_the_gated_sum_agrees_with_a_decayed_sum_of_scaled_values() -> None:
    # Eq. 52 is linear attention with log α = log(1 − β) and βv in the place of v; β stays below
    # 0.95, where the oracle's logarithm is still well conditioned
    def decayed(x: Inputs) -> Result:
        assert x.beta is not None
        return SIMPLE_GLA(
            Inputs(x.q, x.k, x.beta[..., None] * x.v, decay=torch.log1p(-x.beta), state=x.state)
        )

    x = draw("gated_sum")
    assert x.beta is not None
    assert_agree("gated_sum", decayed, x._replace(beta=0.95 * x.beta))


@pytest.mark.parametrize("decay", ["open", "strong"])
@pytest.mark.parametrize("rule", FUSED)
def test_fused_kernels_of_fla_agree_in_the_interpreter(rule: str, decay: str) -> None:
    # forward only: fla's fused kernels have no gradient through a gate
    rule, oracle = FUSED[rule]
    x = draw(rule, decay, length=20)
    found = [relative_error(a, b) for a, b in zip(ours(rule)(x), oracle(x), strict=True)]
    assert all(error < BOUND for error in found), found


def test_the_fused_delta_kernels_of_fla_have_our_gradients() -> None:
    assert_agree("delta", FUSED_DELTA, draw("delta", length=20))


@pytest.mark.parametrize("name", GATED)
def test_an_oracle_notices_a_gate_that_is_left_out(name: str) -> None:
    rule, oracle = GATED[name]
    x = draw(rule, "mild")
    assert x.decay is not None
    open_, expected = ours(rule)(x._replace(decay=torch.zeros_like(x.decay))), oracle(x)
    assert min(relative_error(a, b) for a, b in zip(open_, expected, strict=True)) > 1e-2
