from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import one_hot

from records.errors import ConfigError
from reimpl.loops.fwm import fwm_readout
from reimpl.rules import delta_step, fwm_step

Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def drawn(seed: int, b: int, length: int, d: int, S: int, n: int = 1, scale: float = 1.0) -> Inputs:
    """Return K, Q, β and values in float64; K is ``scale`` times normal."""
    generator = torch.Generator().manual_seed(seed)
    K = torch.randn(b, length, d, generator=generator, dtype=torch.float64) * scale
    Q = torch.randn(b, n, d, generator=generator, dtype=torch.float64)
    beta = torch.rand(b, length, generator=generator, dtype=torch.float64)
    values = torch.randint(0, S, (b, length), generator=generator)
    return K.requires_grad_(), Q.requires_grad_(), beta.requires_grad_(), values


def plain(inputs: Inputs, S: int) -> Tensor:
    """Return Wᵀq from the reference steps; the first write is not scaled down."""
    K, Q, beta, values = inputs
    V = one_hot(values, S).to(K.dtype)
    W = K.new_zeros(K.shape[0], K.shape[2], S)
    for t in range(K.shape[1]):
        W = (fwm_step if t else delta_step)(W, K[:, t], V[:, t], beta[:, t])
    return Q @ W


def errors(inputs: Inputs, S: int) -> list[float]:
    """Return the largest errors of output and gradients, relative to the largest value of each."""
    found, expected = fwm_readout(*inputs, S), plain(inputs, S)
    g = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=found.dtype)
    pairs = [(found, expected)]
    pairs += zip(
        torch.autograd.grad(found, inputs[:3], g),
        torch.autograd.grad(expected, inputs[:3], g),
        strict=True,
    )
    largest = [float(b.detach().abs().max()) for _, b in pairs]
    # a gradient that is 0 but for rounding is compared on the scale of the others
    floor = max(1e-3 * max(largest), 1e-300)
    return [
        float((a - b).detach().abs().max()) / max(size, floor)
        for (a, b), size in zip(pairs, largest, strict=True)
    ]


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    length=st.integers(1, 90),
    d=st.integers(1, 13),
    S=st.integers(1, 40),
    scale=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_answers_and_gradients_are_those_of_the_reference_steps(
    seed: int, length: int, d: int, S: int, scale: float
) -> None:
    assert max(errors(drawn(seed, 2, length, d, S, scale=scale), S)) < 1e-10


@pytest.mark.parametrize(("d", "S"), [(64, 20), (128, 50)])
def test_the_shapes_of_the_sweep(d: int, S: int) -> None:
    assert max(errors(drawn(4, 3, 2 * S, d, S, scale=0.5), S)) < 1e-10


def test_any_number_of_queries_is_answered_by_one_state() -> None:
    assert max(errors(drawn(5, 1, 30, 8, 11, n=7), 11)) < 1e-10


def test_states_that_stay_within_the_norm_are_not_scaled() -> None:
    """Keys this small never fill the norm, so the answers are the plain delta rule's."""
    K, Q, beta, values = drawn(6, 2, 12, 6, 9, scale=1e-3)
    W = K.new_zeros(2, 6, 9)
    for t in range(12):
        W = delta_step(W, K[:, t], one_hot(values, 9).double()[:, t], beta[:, t])
    torch.testing.assert_close(fwm_readout(K, Q, beta, values, 9), Q @ W, rtol=1e-12, atol=0)


def test_float32_stays_within_a_few_roundings_of_float64() -> None:
    K, Q, beta, values = drawn(7, 2, 200, 64, 100)
    narrow = [x.detach().float().requires_grad_() for x in (K, Q, beta)]
    found = fwm_readout(*narrow, values, 100)
    exact = fwm_readout(K, Q, beta, values, 100)
    assert found.dtype == torch.float32
    assert float((found - exact).detach().abs().max() / exact.detach().abs().max()) < 1e-5
    grads = torch.autograd.grad(found.sum(), narrow)
    for a, b in zip(grads, torch.autograd.grad(exact.sum(), (K, Q, beta)), strict=True):
        assert float((a - b).abs().max() / b.abs().max()) < 1e-4


def test_nan_comes_through() -> None:
    K, Q, beta, values = drawn(8, 1, 9, 5, 4)
    with torch.no_grad():
        K[0, 3] = math.nan
    assert torch.isnan(fwm_readout(K, Q, beta, values, 4)).all()


def test_a_value_outside_the_symbols_is_refused() -> None:
    K, Q, beta, values = drawn(9, 1, 9, 5, 4)
    with pytest.raises(ConfigError, match="values lie in 0 to 2"):
        fwm_readout(K, Q, beta, values.clamp(min=3), 3)


def test_shapes_that_do_not_fit_are_refused() -> None:
    K, Q, beta, values = drawn(10, 2, 9, 5, 4)
    with pytest.raises(ConfigError, match=r"need β and values \[2, 9\]"):
        fwm_readout(K, Q, beta[:, :8], values, 4)
