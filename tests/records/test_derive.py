from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.curated import SHIPPED, load_folder
from records.derive import Point, derived_value, is_decided, members, series
from records.models import Claim, Curve, Derivation, Metric, Record, Run, Tolerance
from records.verdict import judge, judge_modes, measurements

FOLDER = SHIPPED / "2102.11174"
START = datetime(2026, 1, 1, tzinfo=UTC)


def figure_point(
    S: int, claimed: float | None = 0.5, phi: str = "elu1", rule: str = "sum"
) -> Claim:
    return Claim(
        claim_id=f"p/{phi}-{rule}-{S}", paper_id="p", kind="synthetic", locator="Fig. 1",
        statement="s", metric="eval_loss", claimed=claimed,
        comparison="diverges" if claimed is None else "=", tolerance=Tolerance(absolute=0.1),
        conditions={"feature_map": phi, "rule": rule, "S": S}, experiment="x", evidence_id="e",
    )  # fmt: skip


def derived(**how: object) -> Claim:
    return Claim(
        claim_id="p/derived", paper_id="p", kind="synthetic", locator="text", statement="s",
        metric="m", claimed=40, tolerance=Tolerance(absolute=20), experiment="x", evidence_id="e",
        derivation=Derivation.model_validate(how),
    )  # fmt: skip


KNEE = derived(reduce="knee", threshold=0.01, over={"feature_map": ["elu1"]})


Values = list[tuple[Claim, float]]


def points(claim: Claim, values: Values) -> list[Point]:
    assert claim.derivation is not None
    return [
        Point(p, series(p, claim.derivation), float(p.conditions["S"]), value)
        for p, value in values
    ]


def value_of(claim: Claim, values: Values) -> float:
    return derived_value(claim, points(claim, values))


def knee(losses: Iterable[float]) -> float:
    return value_of(KNEE, [(figure_point(20 * (i + 1)), x) for i, x in enumerate(losses)])


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((0.001, 0.01, 0.02), 40),
        ((0.001, 0.02, 0.001), 20),
        ((0.5, 0.001), 0),
        ((0.001, math.nan), 20),
        ((0.001, 0.001), 40),
    ],
)
def test_a_knee_is_the_last_place_before_the_first_failure(
    losses: tuple[float, ...], expected: float
) -> None:
    assert knee(losses) == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_all_points_up_to_a_knee_hold_and_the_next_does_not(losses: list[float]) -> None:
    held = int(knee(losses)) // 20
    assert all(x <= 0.01 for x in losses[:held])
    assert held == len(losses) or losses[held] > 0.01


def test_the_lowest_value_ignores_divergence_unless_all_diverge() -> None:
    claim = derived(reduce="lowest")
    a, b = figure_point(20), figure_point(40)
    assert value_of(claim, [(a, math.nan), (b, 0.3)]) == 0.3
    assert math.isnan(value_of(claim, [(a, math.nan), (b, math.nan)]))


def test_share_lowest_counts_the_places_where_another_line_fails() -> None:
    """S = 20: nobody fails; 40: the subject is lowest; 60: it is not; 80: it does not fail."""
    claim = derived(reduce="share_lowest", threshold=0.01, subject=["softmax", "softmax"])
    values: Values = []
    for S, own, other in ((20, 0, 0.001), (40, 0.2, 0.3), (60, 0.4, 0.3), (80, 0.009, math.nan)):
        values.append((figure_point(S, phi="softmax", rule="softmax"), own))
        values.append((figure_point(S), other))
    assert value_of(claim, values) == 2 / 3


def test_a_rank_counts_the_lines_that_are_lower() -> None:
    claim = derived(reduce="rank", subject=["elu1", "sum"])
    values = [(figure_point(20, phi=phi), x) for phi, x in (("elu1", 0.3), ("a", 0.1), ("b", 0.5))]
    assert value_of(claim, values) == 2


def test_a_course_that_ended_early_keeps_its_last_value() -> None:
    """To step 400 the means are (0.4 + 0.1 + 0.1 + 0.1) / 4 = 0.175 and 0.2."""
    claim = derived(reduce="rank_by_mean", until=400, subject=["elu1", "sum"])
    early, late = figure_point(20), figure_point(20, phi="b")
    found = [
        Point(early, ("elu1", "sum"), 20, 0.1, ((100, 0.4), (200, 0.1))),
        Point(late, ("b", "sum"), 20, 0.2, tuple((100 * i, 0.2) for i in (1, 2, 3, 4, 5))),
    ]
    assert derived_value(claim, found) == 1


def test_an_order_counts_only_pairs_that_are_claimed_clearly_apart() -> None:
    """Claimed 0.1, 0.15 and 0.9 within 0.1: the first two are no pair, 0.9 pairs with both."""
    claim = derived(reduce="order")
    a, b, c = (figure_point(20, x, phi) for x, phi in ((0.1, "a"), (0.15, "b"), (0.9, "c")))
    assert value_of(claim, [(a, 0.5), (b, 0.4), (c, 0.45)]) == 0.5
    assert value_of(claim, [(a, 0.5), (b, 0.4), (c, math.nan)]) == 1


def test_a_claimed_divergence_is_above_every_number() -> None:
    claim = derived(reduce="order")
    a, b = figure_point(20, 0.5, "a"), figure_point(20, None, "b")
    assert value_of(claim, [(a, 0.5), (b, math.nan)]) == 1
    assert value_of(claim, [(a, 0.5), (b, 0.1)]) == 0


def test_members_are_the_points_that_the_derivation_selects() -> None:
    wanted = [figure_point(20), figure_point(40)]
    others = [
        figure_point(20, phi="dpfp1"),
        figure_point(60).model_copy(update={"paper_id": "q", "claim_id": "q/1"}),
        figure_point(60).model_copy(update={"experiment": "y", "claim_id": "p/y"}),
        figure_point(60).model_copy(update={"comparison": ">", "claim_id": "p/text"}),
        KNEE,
    ]
    claims = {claim.claim_id: claim for claim in [*others, *wanted]}
    assert members(KNEE, claims) == wanted


@pytest.mark.parametrize(
    "how",
    [
        {"reduce": "knee"},
        {"reduce": "rank"},
        {"reduce": "rank_by_mean", "subject": ["a", "b"]},
        {"reduce": "rank", "subject": ["a"]},
    ],
)
def test_a_derivation_without_what_it_needs_is_refused(how: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"needs '|one value for each name"):
        Derivation.model_validate(how)


def run(
    claim: Claim, loss: float, *, seed: int = 1, stream: str = "ours", shipped: bool = False,
    minute: int = 0, replay: bool | None = None,
) -> Run:  # fmt: skip
    replays = stream == "authors" if replay is None else replay
    metric = Metric(name="eval_loss", value=loss, claim_id=claim.claim_id, replay=replays)
    return Run(
        run_id=f"{claim.claim_id}-{seed}-{stream}-{minute}", experiment="x",
        config={"stream": stream}, seed=seed, code_version="c", environment={}, started=START,
        finished=START + timedelta(minutes=minute), metrics=(metric,), shipped=shipped,
    )  # fmt: skip


A, B, C = figure_point(20), figure_point(40), figure_point(60)
CLAIMS = {claim.claim_id: claim for claim in (A, B, C, KNEE)}


def test_a_derived_claim_waits_for_all_its_points() -> None:
    found = judge(KNEE, measurements([run(A, 0.001), run(B, 0.001)]), CLAIMS)
    assert found.verdict == "not run"
    assert found.reason == "2 of its 3 points are measured; all before a failure are needed"


def test_a_knee_is_known_once_a_point_fails() -> None:
    found = judge(KNEE, measurements([run(A, 0.001), run(B, 0.5)]), CLAIMS)
    assert (found.verdict, found.measured, found.spread) == ("reproduced", 20, None)
    assert found.reason == "measured 20 from 2 of its 3 points (1 seed) against 40 ± 20"


def test_a_knee_from_a_part_of_its_points_has_no_spread() -> None:
    """A seed may hold beyond the place where the median fails, and was not asked there."""
    runs = [run(p, x, seed=s) for s in (1, 2) for p, x in ((A, 0.001), (B, 0.5 * s - 0.495))]
    found = judge(KNEE, measurements(runs), CLAIMS)
    assert (found.measured, found.seeds, found.spread) == (20, (1, 2), None)


def test_a_knee_is_not_known_past_a_point_that_is_missing() -> None:
    found = judge(KNEE, measurements([run(A, 0.001), run(C, 0.5)]), CLAIMS)
    assert found.verdict == "not run"


@given(st.lists(st.none() | st.floats(0, 0.02), min_size=1, max_size=9))
def test_a_knee_that_is_decided_does_not_change_with_the_missing_points(
    losses: list[float | None],
) -> None:
    grid = [figure_point(20 * (i + 1)) for i in range(len(losses))]
    known = {p.claim_id: x for p, x in zip(grid, losses, strict=True) if x is not None}
    if is_decided(KNEE, grid, known):
        now = value_of(KNEE, [(p, known[p.claim_id]) for p in grid if p.claim_id in known])
        for rest in (0.0, 1.0, math.nan):
            assert now == value_of(KNEE, [(p, known.get(p.claim_id, rest)) for p in grid])


def test_anything_but_a_knee_needs_all_points() -> None:
    lowest = derived(reduce="lowest")
    assert not is_decided(lowest, [A, B], {A.claim_id: 0.5})
    assert is_decided(lowest, [A, B], {A.claim_id: 0.5, B.claim_id: 0.5})


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"reduce": "lowest", "over": {"rule": ["none"]}}, "no claim in the store is one of its"),
        ({"reduce": "lowest", "axis": "rule"}, "no claim in the store is one of its"),
        ({"reduce": "rank", "subject": ["typo", "sum"]}, "none of its 3 points is of the line"),
        ({"reduce": "rank", "subject": ["elu1", "sum"]}, "its points lie at 3"),
    ],
)
def test_a_derivation_that_no_run_can_answer_says_why(how: dict[str, object], reason: str) -> None:
    claim = derived(**how)
    found = judge(claim, measurements([run(p, 0.1) for p in (A, B, C)]), CLAIMS)
    assert found.verdict == "not run"
    assert reason in found.reason


def trained(claim: Claim, losses: list[float], seed: int) -> Run:
    curve = [
        Metric(name="eval_loss_curve", value=loss, step=100 * i)
        for i, loss in enumerate(losses, start=1)
    ]
    made = run(claim, losses[-1], seed=seed)
    return made.model_copy(update={"metrics": (*made.metrics, *curve)})


def test_a_median_course_goes_on_when_one_seed_has_ended() -> None:
    """Medians at 100, 200, 300 with the ended seed held at 0.1: 0.6, 0.3, 0.2; mean 0.3667.

    Cut where the first seed ends, the mean would be 0.45, and with that seed back at its first
    value 0.4: both behind the other line's 0.38.
    """
    other = figure_point(20, phi="b")
    rank = derived(reduce="rank_by_mean", until=300, subject=["elu1", "sum"])
    courses = ([0.5, 0.1], [0.6, 0.3, 0.2], [0.6, 0.4, 0.3])
    runs = [trained(A, losses, seed) for seed, losses in enumerate(courses, start=1)]
    runs += [trained(other, [0.38] * 3, seed) for seed in (1, 2, 3)]
    found = judge(rank, measurements(runs), {c.claim_id: c for c in (A, other, rank)})
    assert found.measured == 1


@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_diverged_seed_of_three_does_not_move_the_median_course_down(at: int) -> None:
    """The median of 0.3, 0.4 and a divergence is 0.4, which is behind the other line's 0.35."""
    other = figure_point(20, phi="b")
    rank = derived(reduce="rank_by_mean", until=100, subject=["elu1", "sum"])
    losses = [0.3, 0.4]
    losses.insert(at, math.nan)
    runs = [trained(A, [loss], seed) for seed, loss in enumerate(losses, start=1)]
    runs += [trained(other, [0.35], seed) for seed in (1, 2, 3)]
    found = judge(rank, measurements(runs), {c.claim_id: c for c in (A, other, rank)})
    assert found.measured == 2


def test_points_that_are_no_replay_are_not_called_one() -> None:
    runs = [run(p, 0.5, stream="authors", replay=p is not B) for p in (A, B, C)]
    found = judge(KNEE, measurements(runs), CLAIMS)
    assert "not all of the authors' draws can be repeated here" in found.reason


@given(st.permutations(range(4)))
def test_an_order_does_not_depend_on_the_order_of_its_points(places: list[int]) -> None:
    claim = derived(reduce="order")
    lines = [figure_point(20, 0.2 * i, phi) for i, phi in enumerate("abcd", start=1)]
    values = [(line, 0.1 * (i + 1)) for i, line in enumerate(lines)]
    assert value_of(claim, [values[i] for i in places]) == 1


def test_a_derived_claim_is_judged_by_its_own_tolerance() -> None:
    runs = [run(A, 0.001), run(B, 0.5), run(C, 0.5)]
    found = judge(KNEE, measurements(runs), CLAIMS)
    assert (found.verdict, found.measured, found.margin) == ("reproduced", 20, 20)
    assert found.reason == "measured 20 from 3 points (1 seed) against 40 ± 20"
    assert set(found.run_ids) == {each.run_id for each in runs}


def test_points_of_two_modes_are_not_mixed() -> None:
    runs = [run(A, 0.001), run(B, 0.5, stream="authors"), run(C, 0.5)]
    assert judge(KNEE, measurements(runs), CLAIMS).verdict == "not run"


def test_three_seeds_of_every_point_outweigh_the_replay() -> None:
    """Medians over our seeds give the knee 20, each single seed 20, 20 and 0."""
    runs = [run(p, 0.001, stream="authors") for p in (A, B, C)]
    losses = [(A, (0.001, 0.001, 0.5)), (B, (0.5, 0.5, 0.5)), (C, (0.5, 0.5, 0.5))]
    runs += [run(p, x, seed=i) for p, each in losses for i, x in enumerate(each, start=1)]
    found = judge(KNEE, measurements(runs), CLAIMS)
    assert (found.measured, found.seeds) == (20, (1, 2, 3))
    assert found.spread == pytest.approx(11.547, rel=1e-4)  # of 20, 20, 0


def test_each_mode_has_its_own_verdict() -> None:
    runs = [run(A, 0.5, stream="authors"), run(A, 0.9)]
    found = dict(judge_modes(A, measurements(runs), CLAIMS))
    assert {mode: v.verdict for mode, v in found.items()} == {
        "authors": "reproduced",
        "ours": "not reproduced",
    }


def test_a_mode_without_runs_has_no_verdict() -> None:
    measured = measurements([run(A, 0.001)])
    assert [mode for mode, _ in judge_modes(A, measured, CLAIMS)] == ["ours"]
    assert not list(judge_modes(KNEE, measured, CLAIMS))


def test_a_run_without_a_choice_of_streams_has_no_mode() -> None:
    exact = run(A, 0.5).model_copy(update={"config": {}})
    assert not list(judge_modes(A, measurements([exact]), CLAIMS))
    assert judge(A, measurements([exact]), CLAIMS).verdict == "reproduced"


def test_draws_that_cannot_be_repeated_are_named() -> None:
    """FAVOR+ drew its features on the authors' GPU: their stream, but no replay."""
    measured = measurements([run(A, 0.5, stream="authors", replay=False)])
    [(mode, found)] = judge_modes(A, measured, CLAIMS)
    assert (mode, found.rule) == ("authors", "value-4")
    assert "not all of the authors' draws can be repeated here" in found.reason


def test_a_run_made_here_counts_before_a_shipped_one() -> None:
    runs = [run(A, 0.5, minute=0), run(A, 0.9, minute=5, shipped=True)]
    assert judge(A, measurements(runs), CLAIMS).measured == 0.5


def test_seed_one_of_both_streams_are_two_measurements() -> None:
    found = measurements([run(A, 0.5, stream="authors", replay=False), run(A, 0.6)])
    assert len(found[A.claim_id]) == 2


@pytest.fixture(scope="module")
def shipped() -> list[Record]:
    return load_folder(FOLDER)


def test_what_the_authors_logs_give_is_what_the_claims_state_as_reference(
    shipped: list[Record],
) -> None:
    claims = {r.claim_id: r for r in shipped if isinstance(r, Claim)}
    logs = {r.claim_id: r for r in shipped if isinstance(r, Curve)}
    checked = 0
    for claim in claims.values():
        if claim.derivation is None or claim.experiment not in ("capacity", "update-rule"):
            continue
        found = derived_value(claim, [_logged(claim, p, logs) for p in members(claim, claims)])
        stated = claim.reference.get("from_the_authors_logs", claim.claimed)
        assert (math.isnan(found) and stated is None) or found == stated
        checked += 1
    assert checked == 52  # 9 of the text, 3 about all S, 40 orders


def _logged(claim: Claim, point: Claim, logs: dict[str, Curve]) -> Point:
    assert claim.derivation is not None
    log = logs[point.claim_id]
    course = tuple((log.every * (i + 1), value) for i, value in enumerate(log.values))
    value = math.nan if point.claimed is None else point.claimed
    return Point(
        point, series(point, claim.derivation), float(point.conditions["S"]), value, course
    )


def test_a_logged_course_ends_where_the_claim_says(shipped: list[Record]) -> None:
    logs = {r.claim_id: r for r in shipped if isinstance(r, Curve)}
    with (FOLDER / "claim-figures.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(logs) == 320
    for row in rows:
        log = logs[row["claim_id"]]
        assert log.every * len(log.values) == int(row["reference.steps"])
        if row["reference.last_eval_loss"]:
            assert log.values[-1] == pytest.approx(
                float(row["reference.last_eval_loss"]), nan_ok=True
            )


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(ValueError, match="threshold"):
        Derivation.model_validate({"reduce": "knee", "threshold": math.nan})


def test_a_rank_before_the_first_value_is_no_rank() -> None:
    claim = derived(reduce="rank_by_mean", until=1, subject=["elu1", "sum"])
    courses = [
        Point(figure_point(20, phi=phi), (phi, "sum"), 20, 0.1, ((100, 0.4),))
        for phi in ("elu1", "b")
    ]
    assert math.isnan(derived_value(claim, courses))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"reduce": "order"}, "its 2 points leave its value undefined"),
        (
            {"reduce": "share_lowest", "threshold": 1e9, "subject": ["elu1", "sum"]},
            "its 2 points leave its value undefined",
        ),
        (
            {"reduce": "rank", "series": ["rule"], "subject": ["sum"]},
            "several of its points share a line (by rule) and a place",
        ),
    ],
)
def test_a_claim_without_a_value_is_not_judged(how: dict[str, object], reason: str) -> None:
    a, b = figure_point(20, phi="elu1"), figure_point(20, phi="dpfp1")
    claim = derived(**how)
    claims = {c.claim_id: c for c in (a, b, claim)}
    found = judge(claim, measurements([run(a, 0.1), run(b, 0.2)]), claims)
    assert (found.verdict, found.reason) == ("not run", reason)
