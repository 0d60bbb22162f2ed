from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import records
from records.models import Claim, Metric
from reimpl import experiments
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.exact_capacity import (
    capacity,
    least_squares_error,
    one_hot_images,
    orthonormal_keys,
    retrieval_errors,
)
from reimpl.experiments.exact_feature_maps import active_features, own_features
from reimpl.experiments.exact_normalisation import (
    balance_error,
    growth_factors,
    identity_error,
    repeated_writes,
)
from reimpl.experiments.exact_sizes import TRANSFORMER_XL
from reimpl.feature_maps import feature_map, sum_normalise

CLAIMS = Path(records.__file__).parent / "data" / "2102.11174" / "claim-exact.toml"


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    table = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"]
    return {claim.claim_id: claim for claim in map(Claim.model_validate, table)}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Metric]:
    exact, folder = experiments.get("exact"), tmp_path_factory.mktemp("exact")

    def silent(line: str, *, kind: ProgressKind = "progress") -> None:
        pass

    return [m for point in exact.points() for m in exact.run(point, folder, silent)]


def test_every_claim_is_measured_once_and_nothing_else(
    claims: dict[str, Claim], measured: list[Metric]
) -> None:
    assert sorted(str(m.claim_id) for m in measured) == sorted(claims)


def test_metrics_have_the_names_that_the_claims_ask_for(
    claims: dict[str, Claim], measured: list[Metric]
) -> None:
    assert [m.name for m in measured] == [claims[str(m.claim_id)].metric for m in measured]


def test_equivalences_hold_to_float64_precision(measured: list[Metric]) -> None:
    errors = {m.claim_id: m.value for m in measured if m.name == "max_relative_error"}
    assert len(errors) == 10
    assert max(errors.values()) < 1e-12


def test_exact_needs_every_group_once_per_seed() -> None:
    points = experiments.get("exact").points(seeds=2)
    assert len(points) == len(set(points)) == 12


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), d_dot=st.integers(1, 12), rule=st.sampled_from(["sum", "delta"]))
def test_orthonormal_keys_are_retrieved_up_to_d_dot_and_not_beyond(
    seed: int, d_dot: int, rule: str
) -> None:
    generator = torch.Generator().manual_seed(seed)
    errors = retrieval_errors(orthonormal_keys(d_dot, generator), rule, generator)
    assert max(errors[:d_dot]) < 1e-10
    assert capacity(errors) == d_dot


def test_no_state_reads_more_values_than_the_key_space_has_dimensions() -> None:
    # With one-hot values the best state leaves n − rank(K) of ‖I‖² = n unexplained: 1 of 6.
    keys = torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert least_squares_error(keys) == pytest.approx((1 / 6) ** 0.5, rel=1e-9)


@pytest.mark.parametrize(("name", "nu"), [("elu1", 0), ("dpfp1", 1), ("dpfp2", 2), ("dpfp3", 3)])
def test_constructed_keys_have_all_one_hot_vectors_as_images(name: str, nu: int) -> None:
    phi = feature_map(name)
    images = phi(one_hot_images(nu))
    order = images.argmax(-1)
    expected = torch.eye(phi.d_dot(64), dtype=torch.float64)
    assert torch.equal(images[order.argsort()], expected)


def test_capacity_counts_nan_as_an_error() -> None:
    assert capacity([0.0, float("nan"), 0.0]) == 1


@pytest.mark.parametrize("name", ["elu1", "dpfp2"])
def test_identity_of_appendix_a2_needs_the_normalisation(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    phi = feature_map(name)(torch.randn(64, 5, generator=generator, dtype=torch.float64))
    k = sum_normalise(phi)
    assert identity_error(k) < 1e-14
    assert balance_error(k, generator) < 1e-13
    assert identity_error(phi) > 0.1
    assert balance_error(phi, generator) > 0.1


def test_growth_is_that_of_the_update_equation() -> None:
    # β‖k‖² = 0.5 · 8 = 4: the error is multiplied by 1 − 4 at every write.
    found = growth_factors(*key_of_strength_4(), torch.Generator().manual_seed(0))
    assert found.flatten().tolist() == pytest.approx([3.0] * 12, rel=1e-12)


def test_state_under_repeated_writes_is_that_of_the_update_equation() -> None:
    # S = k (1 − (1 − 4)ⁿ) vᵀ / ‖k‖²: in units of ‖v‖ / ‖k‖ its norm is 0, 4, 8, 28.
    _, norms = repeated_writes(*key_of_strength_4(), 3, torch.Generator().manual_seed(0))
    assert norms.flatten().tolist() == pytest.approx([0.0, 4.0, 8.0, 28.0], rel=1e-12)


def key_of_strength_4() -> tuple[torch.Tensor, torch.Tensor]:
    k = torch.full((1, 2), 2.0, dtype=torch.float64)
    return k, torch.tensor([0.5], dtype=torch.float64)


def test_errors_that_are_rounding_do_not_count_as_growth() -> None:
    # β‖k‖² = 1: the first write is exact, and only rounding is left after it.
    k, beta = torch.tensor([[0.6, 0.8]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    assert float(growth_factors(k, beta, torch.Generator().manual_seed(0)).max()) == 1.0


def test_two_is_the_threshold_of_growth(measured: list[Metric]) -> None:
    # |1 − 2.01| and |1 − 1.99|; from 100 to 200 writes the state's norm changes by 1 + 1.01¹⁰⁰.
    found = by_slug(measured)
    assert found["growth-just-above-two"] == pytest.approx(1.01, rel=1e-12)
    assert found["growth-just-below-two"] == pytest.approx(0.99, rel=1e-12)
    assert found["state-norm-without-normalisation"] == pytest.approx(1 + 1.01**100, rel=1e-10)


def test_transformer_xl_sizes_are_those_of_the_built_model(measured: list[Metric]) -> None:
    # Table 4: 0.13M, 1.05M, 2.10M and 6.29M = 2 · (memory + target) · 256 · 16.
    found = by_slug(measured)
    sizes = [
        found[f"state-size-transformer-xl-{memory}-{target}"] for memory, target in TRANSFORMER_XL
    ]
    assert sizes == [131_072, 1_048_576, 2_097_152, 6_291_456]


def by_slug(measured: list[Metric]) -> dict[str, float]:
    return {str(m.claim_id).rsplit("/", 1)[1]: m.value for m in measured}


def test_active_features_is_the_number_furthest_from_one() -> None:
    rows = [[1, 0, 0, 0], [0, 0, 1, 0]]
    assert active_features(torch.tensor(rows, dtype=torch.bool)) == 1
    assert active_features(torch.tensor([*rows, [0, 0, 0, 0]], dtype=torch.bool)) == 0
    assert active_features(torch.tensor([*rows, [1, 1, 1, 0]], dtype=torch.bool)) == 3


def test_a_feature_that_two_quadrants_share_belongs_to_none() -> None:
    keys = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    assert own_features(keys, torch.eye(4, dtype=torch.bool)) == 4
    shared = torch.eye(4, dtype=torch.bool)
    shared[3] = shared[2]
    assert own_features(keys, shared) == 2
