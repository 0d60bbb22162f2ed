"""The public functions against the recurrence in float64, and their refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from reimpl.ops import fast_weight_attention, fast_weight_step
from reimpl.rules import RULES as ALL_RULES
from tests.reimpl.ops.cases import RULES, WAYS, case, error, errors, run

F32, F64 = 2e-6, 1e-13
"""Largest relative errors measured are 4e-7 and 1e-15."""


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("length", [1, 2, 16, 37])
def test_chunk_equals_the_recurrence_in_float64(rule: str, length: int) -> None:
    found = errors(case(rule, seed=length, length=length), "chunk", chunk_size=16)
    assert max(found.values()) < F64, found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_equals_the_recurrence_in_float32(rule: str, way: str) -> None:
    found = errors(case(rule, seed=3, length=37, batch=1).to(torch.float32), way)
    assert max(found.values()) < F32, found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", WAYS)
def test_packed_sequences_equal_each_alone(rule: str, way: str) -> None:
    bounds = [0, 0, 3, 21, 21, 40]
    packed = case(rule, seed=4, length=40, heads=1, bounds=bounds)
    found = errors(packed.to(torch.float32), way)
    assert max(found.values()) < F32, found


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 2**20),
    length=st.integers(1, 70),
    d_key=st.integers(1, 9),
    d_value=st.integers(1, 9),
    chunk_size=st.sampled_from([16, 32, 64]),
)
def test_chunks_of_any_size_give_the_recurrence(
    rule: str, seed: int, length: int, d_key: int, d_value: int, chunk_size: int
) -> None:
    x = case(rule, seed=seed, length=length, batch=1, heads=1, d_key=d_key, d_value=d_value)
    found = run(x, "chunk", chunk_size=chunk_size)
    right = run(x, "reference")
    for name, tensor in found.items():
        scale = max(1.0, float(right[name].norm()))
        assert float((tensor - right[name]).norm()) < F64 * scale, name


@pytest.mark.parametrize("rule", RULES)
def test_gradients_agree_with_finite_differences(rule: str) -> None:
    x = case(rule, seed=6, length=5, batch=1, heads=1, d_key=3, d_value=2)

    def f(*tensors: torch.Tensor) -> Any:
        names = ("q", "k", "v", "initial_state", "beta", "decay")
        given = dict(zip(names, tensors, strict=False))
        return fast_weight_attention(
            **given, rule=rule, output_final_state=True, backend="chunk", scale=0.7
        )

    inputs = [x.q, x.k, x.v, x.initial_state, x.beta, x.decay]
    leaves = [t.requires_grad_() for t in inputs if t is not None]
    assert torch.autograd.gradcheck(f, leaves, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("way", WAYS)
def test_beta_may_be_zero_one_or_outside(way: str) -> None:
    """β is meant for [0, 1]; the equation holds for other values as well, −0.3 and 1.7 here."""
    for rule in ("gated_sum", "delta"):
        x = case(rule, seed=7, length=9, batch=1)
        assert x.beta is not None
        x.beta[0, :4, 0] = torch.tensor([0.0, 1.0, -0.3, 1.7])
        found = errors(x.to(torch.float32), way)
        assert max(found.values()) < F32, (rule, found)


@pytest.mark.parametrize("way", WAYS)
def test_signs_of_gated_sum_stay_within_a_packed_sequence(way: str) -> None:
    """Half of the factors 1 − β are negative here, and a state comes in and goes out."""
    x = case("gated_sum", seed=20, length=24, heads=1, bounds=[0, 5, 5, 24])
    generator = torch.Generator().manual_seed(20)
    beta = 2 * torch.rand(1, 24, 1, generator=generator, dtype=torch.float64)
    assert (beta > 1).any()
    found = errors(replace(x, beta=beta).to(torch.float32), way)
    assert max(found.values()) < F32, found


@pytest.mark.parametrize("way", WAYS)
def test_views_of_one_projection_need_no_copy(way: str) -> None:
    x = case("delta", seed=8, length=18, d_key=6, d_value=6, batch=1).to(torch.float32)
    fused = torch.cat([x.q, x.k, x.v], -1)
    q, k, v = fused.chunk(3, -1)
    assert not q.is_contiguous()
    apart = run(x, way)
    views = run(type(x)(**(vars(x) | {"q": q, "k": k, "v": v})), way)
    assert all(torch.equal(apart[name], views[name]) for name in apart)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_keep_the_state_in_float32(dtype: torch.dtype) -> None:
    """Against float64 on the same rounded inputs: only the output is rounded, to half an ulp."""
    x = case("gated_delta", seed=9, length=40).to(dtype)
    right = run(x.to(torch.float64), "reference")
    for way in ("chunk", "recurrent"):
        found = run(x, way)
        assert found["output"].dtype == dtype
        assert found["state"].dtype == torch.float32
        assert error(found["state"], right["state"]) < F32
        assert error(found["output"], right["output"]) < torch.finfo(dtype).eps / 2
        assert error(found["d_q"], right["d_q"]) < torch.finfo(dtype).eps


def test_auto_steps_through_the_rule_that_has_no_parallel_form() -> None:
    x = case("delta", seed=10)
    y, S = fast_weight_attention(
        x.q, x.k, x.v, x.beta, rule="fwm", output_final_state=True, initial_state=x.initial_state
    )
    assert S is not None
    assert y.shape == x.v.shape
    assert float(S.flatten(2).norm(dim=-1).max()) <= 1 + 1e-12


@pytest.mark.parametrize("backend", ["chunk", "triton"])
def test_fwm_is_refused_where_it_has_no_form(backend: str) -> None:
    x = case("delta", seed=10)
    with pytest.raises(ConfigError, match="'fwm' scales the state by its norm"):
        fast_weight_attention(x.q, x.k, x.v, x.beta, rule="fwm", backend=backend)


def test_the_last_state_comes_only_on_request() -> None:
    x = case("sum", seed=11)
    assert fast_weight_attention(x.q, x.k, x.v, rule="sum")[1] is None


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("backend", ["auto", "triton"])
def test_steps_equal_the_whole_sequence(rule: str, backend: str) -> None:
    if rule == "fwm" and backend == "triton":
        return
    x = case("delta" if rule == "fwm" else rule, seed=12, length=6).to(torch.float32)
    start = x.initial_state
    assert start is not None
    y, S = fast_weight_attention(
        x.q, x.k, x.v, x.beta, x.decay, rule=rule, initial_state=start, output_final_state=True
    )
    state, steps = start.clone(), []
    for i in range(6):
        gates = [None if g is None else g[:, i] for g in (x.beta, x.decay)]
        y_i, state = fast_weight_step(
            x.q[:, i], x.k[:, i], x.v[:, i], state, *gates, rule=rule, backend=backend
        )
        steps.append(y_i)
    assert S is not None
    assert error(torch.stack(steps, 1), y) < F32
    assert error(state, S) < F32


@pytest.mark.parametrize("backend", ["auto", "triton"])
def test_a_step_updates_the_state_in_place_only_on_request(backend: str) -> None:
    x = case("delta", seed=13, length=1).to(torch.float32)
    assert x.initial_state is not None
    assert x.beta is not None
    inputs = (x.q[:, 0], x.k[:, 0], x.v[:, 0])
    state = x.initial_state.clone()
    options = {"beta": x.beta[:, 0], "rule": "delta", "backend": backend}
    _, fresh = fast_weight_step(*inputs, state, **options)
    assert torch.equal(state, x.initial_state)
    _, same = fast_weight_step(*inputs, state, inplace=True, **options)
    assert same is state
    assert torch.equal(same, fresh)


def test_a_step_has_gradients_unless_it_is_in_place() -> None:
    x = case("delta", seed=14, length=1)
    assert x.beta is not None
    q = x.q[:, 0].requires_grad_()
    arguments = (q, x.k[:, 0], x.v[:, 0], x.initial_state, x.beta[:, 0])
    y, _ = fast_weight_step(*arguments, rule="delta")
    (dq,) = torch.autograd.grad(y.sum(), [q])
    assert dq.shape == q.shape
    with pytest.raises(ConfigError, match="inplace overwrites the state"):
        fast_weight_step(*arguments, rule="delta", inplace=True)


@pytest.mark.parametrize("way", WAYS)
def test_torch_sees_a_well_formed_operator(way: str) -> None:
    x = case("kda", seed=15, length=18, batch=1, heads=1).to(torch.float32)
    tensors = [x.q, x.k, x.v, x.beta, x.decay, x.initial_state]
    leaves = [t.requires_grad_() for t in tensors if t is not None]
    options = (None, 1.0, torch.float32, way, 16, True, True)
    torch.library.opcheck(torch.ops.fwp.update.default, (*leaves, *options))


@pytest.mark.parametrize("way", ["chunk", "recurrent"])
def test_compiled_functions_hold_the_operator_whole(way: str) -> None:
    """Traced without a graph break and run with the same numbers and gradients."""
    x = case("gated_delta", seed=16, length=20, batch=1).to(torch.float32)

    def f(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        backend = "triton" if way == "recurrent" else way
        y, _ = fast_weight_attention(
            2 * q, k, x.v, x.beta, x.decay, rule="gated_delta", backend=backend
        )
        return y + 1

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    results = []
    for function in (f, compiled):
        q, k = x.q.detach().requires_grad_(), x.k.detach().requires_grad_()
        y = function(q, k)
        results.append((y, *torch.autograd.grad((y * x.d_output).sum(), [q, k])))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def bad(**changes: Any) -> dict[str, Any]:
    x = case("gated_delta", seed=17, length=4, batch=1).to(torch.float32)
    names = ("q", "k", "v", "beta", "decay")
    return {n: getattr(x, n) for n in names} | {"rule": "gated_delta"} | changes


LONG = torch.zeros(1, 4, 2, 300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (bad(rule="deltas"), "unknown update rule 'deltas'; use one of sum, "),
        (bad(backend="cuda"), "unknown backend 'cuda'; use one of auto"),
        (bad(chunk_size=48), "unknown chunk_size 48; use one of 16, 32, 64, 128"),
        (bad(q=torch.zeros(1, 4, 2, 6)), r"q has shape \[1, 4, 2, 6\], expected \[1, 4, 2, 5\]"),
        (bad(k=torch.zeros(1, 4, 5)), r"k has shape \[1, 4, 5\], expected \[1, 4, 2, 5\]"),
        (bad(v=torch.zeros(4, 2, 7)), r"v must be \[batch, length, heads, d_value\], got \[4, 2"),
        (bad(beta=None), r"beta is missing; rule 'gated_delta' needs it as \[1, 4, 2\]"),
        (bad(rule="delta"), r"rule 'delta' takes no decay, got \[1, 4, 2\]"),
        (bad(rule="sum"), "rule 'sum' takes no beta"),
        (bad(rule="kda"), r"decay has shape \[1, 4, 2\], expected \[1, 4, 2, 5\]"),
        (bad(decay=torch.full((1, 4, 2), 0.1)), "has 8 positive values, the largest 0.1"),
        (bad(q=torch.zeros(1, 4, 2, 5).half()), "q is float16 and v float32"),
        (bad(v=torch.zeros(1, 4, 2, 7, dtype=torch.int64)), r"v \[1, 4, 2, 7\] is int64; use"),
        (
            bad(beta=torch.zeros(1, 4, 2, device="meta")),
            r"beta \[1, 4, 2\] is on meta and v on cpu",
        ),
        (bad(initial_state=torch.zeros(1, 2, 7, 5)), r"initial_state has shape \[1, 2, 7, 5\]"),
        (
            bad(initial_state=torch.zeros(1, 2, 5, 7).bfloat16()),
            "initial_state is bfloat16; states are float32",
        ),
        (bad(cu_seqlens=torch.tensor([0, 3])), r"cu_seqlens \[0, 3\] must rise from 0 to the len"),
        (bad(cu_seqlens=torch.tensor([0, 3, 2, 4])), "without falling"),
        (bad(cu_seqlens=torch.tensor([1, 4])), r"cu_seqlens \[1, 4\] must rise from 0"),
        (bad(cu_seqlens=torch.tensor([0.0, 4.0])), "cu_seqlens is float32"),
        (bad(cu_seqlens=[0, 4]), "cu_seqlens is a list; pass a torch.Tensor"),
        (bad(v=[1.0]), "v is a list; pass a torch.Tensor"),
        (bad(scale="half"), "scale is 'half'; pass a number"),
        (bad(output_dtype=torch.int64), "output_dtype is torch.int64; use one of torch.float32"),
        (
            {"q": LONG, "k": LONG, "v": LONG, "rule": "sum", "backend": "triton"},
            "head dimensions are 300 and 300, at most 256 are supported; use backend 'chunk'",
        ),
        (
            {"q": LONG[:, :0], "k": LONG[:, :0], "v": LONG[:, :0], "rule": "sum"},
            "every dimension must be at least 1",
        ),
    ],
)
def test_unfit_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fast_weight_attention(**arguments)


def test_packed_sequences_lie_in_one_row() -> None:
    x = case("sum", seed=18, batch=2)
    with pytest.raises(ConfigError, match=r"with cu_seqlens v must be \[1, length, heads"):
        fast_weight_attention(x.q, x.k, x.v, rule="sum", cu_seqlens=torch.tensor([0, 21]))


@pytest.mark.parametrize("way", WAYS)
def test_nan_passes_through_and_stays_in_its_head(way: str) -> None:
    x = case("delta", seed=19, length=18, batch=1).to(torch.float32)
    x.v[0, 5, 0, 0] = float("nan")
    found = run(x, way)
    assert found["output"][0, 5:, 0].isnan().any()
    assert found["output"][:, :, 1].isfinite().all()
