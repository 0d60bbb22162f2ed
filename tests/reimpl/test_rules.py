"""Every rule against plain NumPy loops over single numbers, written here from the equations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from records.errors import ConfigError
from reimpl.rules import RULES, delta_step, linear_attention, replace_step, run_rule

Floats = npt.NDArray[np.float64]
RTOL = 1e-10
ATTENTION = {"normalisation": "attention"}


def inputs(seed: int, length: int = 9, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(2, length, 3, *shape, generator=generator, dtype=torch.float64)

    return {
        "q": normal(5).abs().to(dtype),
        "k": (normal(5).abs() / 3).to(dtype),
        "v": normal(4).to(dtype),
        "beta": torch.sigmoid(normal()).to(dtype),
    }


def decay_for(rule: str, x: dict[str, Tensor]) -> Tensor | None:
    like = {"gated_delta": x["beta"], "kda": x["k"]}.get(rule)
    if like is None:
        return None
    generator = torch.Generator().manual_seed(99)
    return -torch.rand(like.shape, generator=generator, dtype=like.dtype)


def naive(rule: str, x: dict[str, Tensor], decay: Tensor | None) -> Floats:
    """Run one batch element and head at a time with the paper's W (d_value × d_key)."""
    q, k, v, beta = (x[name].numpy() for name in ("q", "k", "v", "beta"))
    out = np.zeros(v.shape)
    for b in range(v.shape[0]):
        for h in range(v.shape[2]):
            W = np.zeros((v.shape[3], k.shape[3]))
            for i in range(v.shape[1]):
                key, value, strength = k[b, i, h], v[b, i, h], beta[b, i, h]
                if decay is not None:
                    W = W * np.exp(decay[b, i, h].numpy())
                if rule == "sum":
                    W = W + np.outer(value, key)
                elif rule == "gated_sum":
                    W = (1 - strength) * W + strength * np.outer(value, key)
                else:
                    W = W @ (np.eye(len(key)) - strength * np.outer(key, key))
                    W = W + strength * np.outer(value, key)
                if rule == "fwm":
                    W = W / max(1.0, np.sqrt((W**2).sum()))
                out[b, i, h] = W @ q[b, i, h]
    return out


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [0, 1])
def test_rule_equals_a_naive_loop(rule: str, seed: int) -> None:
    x = inputs(seed)
    decay = decay_for(rule, x)
    found = run_rule(**x, decay=decay, rule=rule).output
    torch.testing.assert_close(found, torch.from_numpy(naive(rule, x, decay)), rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("rule", ["gated_delta", "kda"])
def test_a_decay_of_zero_gives_the_delta_rule(rule: str) -> None:
    x = inputs(2)
    decay = torch.zeros_like(x["beta"] if rule == "gated_delta" else x["k"])
    found, delta = run_rule(**x, decay=decay, rule=rule), run_rule(**x, rule="delta")
    torch.testing.assert_close(found.state, delta.state, rtol=RTOL, atol=RTOL)


@given(seed=st.integers(0, 2**31))
def test_eq_23_equals_eq_24(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    S, k, v, beta = (
        torch.randn(*shape, generator=generator, dtype=torch.float64)
        for shape in ((2, 6, 3), (2, 6), (2, 3), (2,))
    )
    torch.testing.assert_close(
        replace_step(S, k, v, beta), delta_step(S, k, v, beta), rtol=RTOL, atol=RTOL
    )


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), length=st.integers(1, 20), normalise=st.booleans())
def test_sum_rule_equals_linear_attention(seed: int, length: int, normalise: bool) -> None:
    x = inputs(seed, length)
    q, k, v = x["q"], x["k"], x["v"]
    found = run_rule(q, k, v, rule="sum", normalisation="attention" if normalise else "none")
    expected = linear_attention(q, k, v, normalise=normalise)
    torch.testing.assert_close(found.output, expected, rtol=RTOL, atol=RTOL)


def test_linear_attention_ignores_the_future() -> None:
    x = inputs(3)
    later = x["v"].clone()
    later[:, 5:] += 1
    before = linear_attention(x["q"], x["k"], x["v"])
    torch.testing.assert_close(linear_attention(x["q"], x["k"], later)[:, :5], before[:, :5])


def test_attention_normalised_delta_rule_equals_eq_26_to_28() -> None:
    x = inputs(4)
    found = run_rule(**x, rule="delta", normalisation="attention").output
    q, k, v, beta = (t[0, :, 0].numpy() for t in x.values())
    W, z = np.zeros((4, 5)), np.zeros(5)
    for i in range(len(v)):
        v_bar = W @ k[i] / (z @ k[i]) if i else np.zeros(4)
        z = z + k[i]
        W = W + beta[i] * np.outer(v[i] - v_bar, k[i])
        np.testing.assert_allclose(found[0, i, 0].numpy(), W @ q[i] / (z @ q[i]), rtol=RTOL)


def test_sum_normalisation_is_eq_29_on_keys_and_queries() -> None:
    x = inputs(5)
    scaled = {name: x[name] / x[name].sum(-1, keepdim=True) for name in ("q", "k")}
    found = run_rule(**x, rule="delta", normalisation="sum").output
    torch.testing.assert_close(found, run_rule(**(x | scaled), rule="delta").output)


@pytest.mark.parametrize(
    ("rule", "normalisation"),
    [(rule, "none") for rule in RULES] + [("sum", "attention"), ("delta", "attention")],
)
def test_a_sequence_may_be_cut_anywhere(rule: str, normalisation: str) -> None:
    x = inputs(6)
    if (decay := decay_for(rule, x)) is not None:
        x["decay"] = decay
    whole = run_rule(**x, rule=rule, normalisation=normalisation)
    first = run_rule(**{n: t[:, :4] for n, t in x.items()}, rule=rule, normalisation=normalisation)
    second = run_rule(
        **{n: t[:, 4:] for n, t in x.items()},
        rule=rule,
        normalisation=normalisation,
        initial_state=first.state,
        initial_z=first.z,
    )
    joined = torch.cat([first.output, second.output], 1)
    torch.testing.assert_close(joined, whole.output, rtol=RTOL, atol=RTOL)


def test_fwm_state_norm_is_at_most_one() -> None:
    x = inputs(7)
    x["k"] = 10 * x["k"]
    norms = run_rule(**x, rule="fwm").state.flatten(-2).norm(dim=-1)
    assert bool((norms <= 1 + 1e-12).all())


def test_state_is_float32_for_half_precision_inputs() -> None:
    x = inputs(8, dtype=torch.bfloat16)
    result = run_rule(**x, rule="delta")
    assert (result.state.dtype, result.output.dtype) == (torch.float32, torch.bfloat16)


def test_gradients_reach_every_input() -> None:
    x = {name: t.requires_grad_() for name, t in inputs(9, length=4).items()}
    decay = torch.zeros_like(x["k"]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *t: run_rule(*t, rule="kda").output, (*x.values(), decay), fast_mode=True
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "hebb"}, "unknown update rule 'hebb'"),
        ({"normalisation": "softmax"}, "unknown normalisation"),
        ({"rule": "fwm", "normalisation": "attention"}, "not for 'fwm'"),
        ({"beta": None}, "beta is missing"),
        ({"rule": "kda"}, "decay is missing"),
        ({"k": torch.ones(2, 9, 3, 7)}, "q has shape"),
        ({"beta": torch.ones(2, 9)}, "beta has shape"),
        ({"v": torch.ones(2, 9, 4)}, "v must be"),
        ({"initial_state": torch.ones(2, 3, 4, 5)}, "initial_state has shape"),
        ({"initial_state": torch.ones(2, 3, 5, 4), **ATTENTION}, "initial_state without initial_z"),
        ({"initial_z": torch.ones(2, 3, 5), **ATTENTION}, "initial_z without initial_state"),
        ({"initial_z": torch.ones(2, 3, 5)}, "initial_z belongs to attention normalisation"),
    ],
)
def test_arguments_that_do_not_fit_are_config_errors(
    change: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {**inputs(0), "rule": "delta"}
    with pytest.raises(ConfigError, match=message):
        run_rule(**(arguments | change))  # type: ignore[arg-type]
