from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.models import Claim, Comparison, Metric, Run, Scale, Tolerance, Verdict
from records.verdict import judge, measurements

START = datetime(2026, 1, 1, tzinfo=UTC)


def claim(claimed: float | None = 1.0, comparison: Comparison = "=", **fields: object) -> Claim:
    values: dict[str, object] = {
        "claim_id": "c",
        "paper_id": "p",
        "kind": "synthetic",
        "locator": "Fig. 2",
        "statement": "s",
        "metric": "loss",
        "claimed": claimed,
        "comparison": comparison,
        "evidence_id": "e",
        **fields,
    }
    return Claim.model_validate(values)


def measured(
    value: float,
    seed: int = 1,
    *,
    claim_id: str = "c",
    scale: Scale = "paper",
    replay: bool = False,
    minute: int = 0,
) -> Run:
    metric = Metric(name="loss", value=value, claim_id=claim_id, scale=scale, replay=replay)
    at = START + timedelta(minutes=minute)
    return Run(
        run_id=f"{claim_id}-{seed}-{minute}-{scale}-{replay}",
        experiment="x",
        config={},
        seed=seed,
        code_version="v",
        environment={},
        started=at,
        finished=at,
        metrics=(metric,),
    )


def verdict(of: Claim, *runs: Run, others: tuple[Claim, ...] = ()) -> Verdict:
    return judge(of, measurements(runs), {c.claim_id: c for c in (of, *others)})


def test_a_claim_without_runs_is_not_run() -> None:
    assert verdict(claim()).verdict == "not run"


def test_a_metric_of_another_name_does_not_measure_the_claim() -> None:
    assert verdict(claim(metric="steps"), measured(1.0)).verdict == "not run"


@given(
    claimed=st.floats(-1e6, 1e6),
    error=st.floats(-1e3, 1e3),
    absolute=st.floats(0, 1e3),
    relative=st.floats(0, 1),
)
def test_an_equal_value_is_reproduced_exactly_within_the_larger_tolerance(
    claimed: float, error: float, absolute: float, relative: float
) -> None:
    tolerance = Tolerance(absolute=absolute, relative=relative)
    value = claimed + error
    within = abs(value - claimed) <= max(absolute, relative * abs(claimed))
    name = verdict(claim(claimed, tolerance=tolerance), measured(value)).verdict
    assert (name == "reproduced") == within


@pytest.mark.parametrize(
    ("comparison", "value", "name"),
    [
        (">", 261, "reproduced"),
        (">", 260, "not reproduced"),
        (">=", 260, "reproduced"),
        ("<", 260, "not reproduced"),
        ("<=", 260, "reproduced"),
        ("<", 259, "reproduced"),
        ("=", 260, "reproduced"),
        ("=", 260.001, "not reproduced"),
        (">", math.nan, "not reproduced"),
        ("=", math.nan, "not reproduced"),
        ("<=", math.inf, "not reproduced"),
    ],
)
def test_a_bound_holds_or_not(comparison: Comparison, value: float, name: str) -> None:
    assert verdict(claim(260, comparison), measured(value)).verdict == name


@pytest.mark.parametrize(
    ("value", "name"),
    [(math.nan, "reproduced"), (math.inf, "reproduced"), (0.5, "not reproduced")],
)
def test_a_claimed_divergence_needs_a_divergence(value: float, name: str) -> None:
    assert verdict(claim(None, "diverges"), measured(value)).verdict == name


def test_the_median_over_seeds_counts_and_their_spread_is_given() -> None:
    found = verdict(claim(1.0), measured(0.0, 1), measured(1.0, 2), measured(2.0, 3))
    assert found.verdict == "reproduced"
    assert found.measured == 1.0
    assert found.spread == pytest.approx(1.0)  # sample standard deviation of 0, 1, 2
    assert found.seeds == (1, 2, 3)
    assert "median of 3 seeds" in found.reason


def test_a_single_seed_has_no_spread() -> None:
    assert verdict(claim(), measured(1.0)).spread is None


def test_one_diverged_seed_of_three_does_not_hide_the_median() -> None:
    found = verdict(claim(1.0), measured(math.nan, 1), measured(1.0, 2), measured(1.0, 3))
    assert found.measured == 1.0
    assert found.spread is None


def test_two_diverged_seeds_of_three_make_the_measurement_a_divergence() -> None:
    found = verdict(claim(1.0), measured(math.nan, 1), measured(math.nan, 2), measured(1.0, 3))
    assert found.measured is not None
    assert math.isnan(found.measured)
    assert found.verdict == "not reproduced"


def test_of_two_runs_of_one_seed_the_newer_counts() -> None:
    found = verdict(claim(1.0), measured(5.0, minute=0), measured(1.0, minute=1))
    assert (found.measured, len(found.run_ids)) == (1.0, 1)


def test_a_replay_within_its_own_tolerance_is_said_to_be_so() -> None:
    narrow = claim(tolerance=Tolerance(absolute=0.5), replay_tolerance=Tolerance(absolute=0.01))
    found = verdict(narrow, measured(1.005, replay=True))
    assert (found.verdict, found.rule) == ("reproduced", "replay-4")
    assert found.reason.endswith("(replaying the authors' streams) against 1 ± 0.01")


def test_a_replay_that_drifts_is_held_to_the_general_tolerance() -> None:
    narrow = claim(tolerance=Tolerance(absolute=0.5), replay_tolerance=Tolerance(absolute=0.01))
    found = verdict(narrow, measured(1.2, replay=True))
    assert (found.verdict, found.rule) == ("reproduced", "value-4")
    assert "drifts from their log) against 1 ± 0.5" in found.reason
    assert verdict(narrow, measured(1.6, replay=True)).verdict == "not reproduced"


def test_three_seeds_of_our_own_weigh_more_than_a_replay() -> None:
    runs = [measured(2.0, seed) for seed in (1, 2, 3)]
    found = verdict(claim(), measured(1.0, replay=True), *runs)
    assert found.measured == 2.0
    found = verdict(claim(), measured(1.0, replay=True), *runs[:2])
    assert found.measured == 1.0
    assert "replaying the authors' streams" in found.reason


def test_a_reduced_run_without_a_baseline_decides_nothing() -> None:
    found = verdict(claim(), measured(1.0, scale="reduced"))
    assert (found.verdict, found.measured) == ("not run", 1.0)
    assert "only at a smaller scale" in found.reason


@pytest.mark.parametrize(
    ("mine", "theirs", "name"),
    [
        ((3.0, 4.0), (5.0, 6.0), "direction reproduced"),
        ((3.0, 5.5), (5.0, 6.0), "not reproduced"),
        ((7.0, 8.0), (5.0, 6.0), "not reproduced"),
        ((3.0, math.nan), (5.0, 6.0), "not reproduced"),
        ((3.0, 4.0), (5.0, math.nan), "direction reproduced"),
    ],
)
def test_a_direction_holds_only_beyond_the_spread_of_the_seeds(
    mine: tuple[float, float], theirs: tuple[float, float], name: str
) -> None:
    delta = claim(34.1, compared_to="sum")
    linear = claim(37.1, claim_id="sum")
    runs = [measured(v, seed, scale="reduced") for seed, v in enumerate(mine)]
    runs += [measured(v, seed, scale="reduced", claim_id="sum") for seed, v in enumerate(theirs)]
    assert verdict(delta, *runs, others=(linear,)).verdict == name


def test_the_worse_of_two_claims_has_its_direction_judged_the_other_way() -> None:
    linear = claim(37.1, compared_to="delta")
    delta = claim(34.1, claim_id="delta")
    runs = [measured(5.0, scale="reduced"), measured(4.0, scale="reduced", claim_id="delta")]
    assert verdict(linear, *runs, others=(delta,)).verdict == "direction reproduced"


@pytest.mark.parametrize(
    ("value", "name"), [(math.nan, "direction reproduced"), (9.0, "not reproduced")]
)
def test_a_claimed_divergence_is_not_had_by_being_worse(value: float, name: str) -> None:
    diverging = claim(None, "diverges", compared_to="delta")
    delta = claim(34.1, claim_id="delta")
    runs = [measured(value, scale="reduced"), measured(5.0, scale="reduced", claim_id="delta")]
    assert verdict(diverging, *runs, others=(delta,)).verdict == name


def test_a_run_that_diverged_does_not_bear_out_a_worse_but_finite_value() -> None:
    linear = claim(37.1, compared_to="delta")
    delta = claim(34.1, claim_id="delta")
    runs = [measured(math.nan, scale="reduced"), measured(4.0, scale="reduced", claim_id="delta")]
    assert verdict(linear, *runs, others=(delta,)).verdict == "not reproduced"


def test_a_run_at_the_papers_scale_outweighs_reduced_ones() -> None:
    found = verdict(claim(), measured(1.0), measured(9.0, scale="reduced"))
    assert found.verdict == "reproduced"


def test_the_reason_states_the_measured_value_and_the_tolerance() -> None:
    found = verdict(claim(tolerance=Tolerance(absolute=0.02)), measured(1.01))
    assert found.reason == "measured 1.01 (1 seed) against 1 ± 0.02"
    assert found.margin == 0.02
    assert found.rule == "value-4"
