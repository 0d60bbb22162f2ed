from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import ConfigError
from reimpl.feature_maps import Dpfp, Favor, feature_map, sum_normalise


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("k", "active"),
    [((2.0, 3.0), 1), ((-2.0, 3.0), 2), ((-2.0, -3.0), 3), ((2.0, -3.0), 0)],
)
def test_dpfp1_in_two_dimensions_has_one_active_feature_per_quadrant(
    k: tuple[float, float], active: int
) -> None:
    # By hand from Eq. 37: x' = [relu(k); relu(-k)], φ_i = x'_i x'_{i-1} (cyclic), |k1 k2| = 6.
    expected = torch.zeros(4)
    expected[active] = 6.0
    torch.testing.assert_close(feature_map("dpfp1")(torch.tensor(k)), expected)


@given(nu=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_dpfp_equals_the_products_of_eq_37(nu: int, seed: int) -> None:
    k = random(3, seed=seed)
    x = [max(float(c), 0.0) for c in k] + [max(-float(c), 0.0) for c in k]
    expected = [x[i] * x[(i - j) % 6] for j in range(1, nu + 1) for i in range(6)]
    torch.testing.assert_close(Dpfp(nu)(k), torch.tensor(expected, dtype=torch.float64))


@given(nu=st.integers(6, 40))
def test_dpfp_rejects_nu_above_2d_minus_1(nu: int) -> None:
    with pytest.raises(ConfigError, match=r"ν runs from 1 to 2·d_key − 1 = 5"):
        Dpfp(nu)(torch.ones(3))


def test_dpfp_rejects_nu_below_1() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        feature_map("dpfp0")


@given(x=st.floats(-50, 50))
def test_elu1_is_x_plus_1_above_zero_and_exp_below(x: float) -> None:
    expected = x + 1 if x > 0 else math.exp(x)
    found = feature_map("elu1")(torch.tensor([x], dtype=torch.float64))
    torch.testing.assert_close(
        found, torch.tensor([expected], dtype=torch.float64), atol=1e-15, rtol=1e-12
    )


def test_favor_equals_eq_32_for_its_drawn_features() -> None:
    phi, x = Favor(6, torch.Generator().manual_seed(1)), random(5, 4)
    found = phi(x)
    assert phi.R is not None
    u = torch.einsum("mk,nk->nm", phi.R, x)
    scale = torch.exp(-(x**2).sum(-1, keepdim=True) / 2) / math.sqrt(12)
    torch.testing.assert_close(found, torch.cat([u.exp(), (-u).exp()], -1) * scale)


def test_favor_estimates_the_exponential_kernel() -> None:
    x, y = 0.5 * random(4, seed=1), 0.5 * random(4, seed=2)
    phi = Favor(200_000, torch.Generator().manual_seed(3))
    estimate = float(phi(x) @ phi(y))
    assert estimate == pytest.approx(math.exp(float(x @ y)), rel=0.02)


@pytest.mark.parametrize("d_key", [2, 4])
def test_favor_is_unbiased_along_every_axis(d_key: int) -> None:
    # x = eᵢ and y = eᵢ/2 have the kernel e^½. A row r of R adds e^{−5/8} cosh(1.5 rᵢ), of standard
    # deviation 1.95 e^½ for a Gaussian rᵢ: the mean over 100 redraws of 4,000 rows has a standard
    # error of at most 0.31 % (orthogonal rows lower it), and 1.5 % are about five of these.
    # Lengths that depend on the directions put every axis off by 3.6 % or more.
    phi, x = Favor(4000, torch.Generator().manual_seed(11)), torch.eye(d_key, dtype=torch.float64)
    total = torch.zeros(d_key, dtype=torch.float64)
    for _ in range(100):
        phi.redraw(d_key)
        total += (phi(x) * phi(x / 2)).sum(-1)
    assert (total / 100).tolist() == pytest.approx([math.exp(0.5)] * d_key, rel=0.015)


def test_favor_features_stay_float64_after_a_float32_call() -> None:
    phi, x = Favor(5, torch.Generator().manual_seed(7)), random(3, 4)
    before = phi(x)
    assert phi(x.float()).dtype == torch.float32
    assert torch.equal(phi(x), before)


def test_favor_blocks_are_orthogonal() -> None:
    phi = Favor(8, torch.Generator().manual_seed(0))
    phi.redraw(4)
    assert phi.R is not None
    for block in phi.R.split(4):
        gram = block @ block.T
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), atol=1e-12, rtol=0)


def test_favor_features_come_from_the_generator() -> None:
    x = random(3, 4)
    first, second = (Favor(5, torch.Generator().manual_seed(7))(x) for _ in range(2))
    assert torch.equal(first, second)


def test_favor_keeps_its_features_until_they_are_redrawn() -> None:
    phi, x = Favor(5, torch.Generator().manual_seed(7)), random(3, 4)
    before = phi(x)
    assert torch.equal(phi(x), before)
    phi.redraw(4)
    assert not torch.equal(phi(x), before)


@pytest.mark.parametrize("name", ["elu1", "tanh", "dpfp1", "dpfp3", "favor64"])
@pytest.mark.parametrize("d_key", [4, 64])
def test_d_dot_is_the_size_of_the_output(name: str, d_key: int) -> None:
    phi = feature_map(name)
    assert phi(torch.randn(2, 3, d_key)).shape == (2, 3, phi.d_dot(d_key))


@pytest.mark.parametrize("name", ["elu1", "tanh", "dpfp1", "dpfp3", "favor64"])
def test_signed_says_whether_features_are_negative(name: str) -> None:
    phi = feature_map(name)
    assert phi.signed == bool((phi(random(50, 4)) < 0).any())


@pytest.mark.parametrize("name", ["relu", "elu2", "dpfp", "favor", "", "favor-1"])
def test_unknown_names_are_config_errors(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown feature map"):
        feature_map(name)


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), name=st.sampled_from(["elu1", "dpfp1", "dpfp2", "favor8"]))
def test_sum_normalised_features_sum_to_one(seed: int, name: str) -> None:
    k = sum_normalise(feature_map(name)(random(7, 6, seed=seed)))
    torch.testing.assert_close(k.sum(-1), torch.ones(7, dtype=torch.float64))


def test_sum_normalise_adds_eps_to_the_sum() -> None:
    torch.testing.assert_close(
        sum_normalise(torch.tensor([1.0, 2.0]), eps=1.0), torch.tensor([0.25, 0.5])
    )
