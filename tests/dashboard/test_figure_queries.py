"""What the pictures are drawn from: the store's own numbers, by mode, size and experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from dashboard import figure_queries, frames
from records.models import Metric, Run
from records.workspace import Workspace

RunOf = Callable[..., Run]
CAPACITY = "capacity"


def asking(workspace: Workspace) -> Callable[[str], pd.DataFrame]:
    return lambda sql: workspace.query(sql).frame()


def one_claim(workspace: Workspace, where: str) -> dict[str, Any]:
    return workspace.query(f"SELECT * FROM claims WHERE {where} ORDER BY ordinal LIMIT 1").dicts()[
        0
    ]


def paper_of(workspace: Workspace) -> str:
    return str(one_claim(workspace, "experiment = 'capacity'")["paper_id"])


def test_the_mode_says_whose_measurement_is_shown(
    two_modes: tuple[Workspace, dict[str, Any]],
) -> None:
    workspace, claim = two_modes
    shown = {}
    for mode in figure_queries.MODES:
        points = figure_queries.sized_points(
            asking(workspace), claim["paper_id"], claim["experiment"], mode
        )
        (row,) = frames.records(points[points["whose"] == "measured"])
        shown[mode] = (round(row["value"], 6), row["spread"] and round(row["spread"], 6))
    assert shown["authors"] == (0.5, None)
    assert shown["ours"] == (0.2, 0.1)  # the median and standard deviation of 0.1, 0.2 and 0.3
    assert shown["weightiest"] in {shown["authors"], shown["ours"]}


def test_every_finite_point_of_the_figure_is_claimed(fresh: Workspace) -> None:
    paper = paper_of(fresh)
    points = figure_queries.sized_points(asking(fresh), paper, CAPACITY, "ours")
    (count,) = fresh.query(
        "SELECT count(*) FROM claims WHERE experiment = 'capacity' AND comparison = '=' "
        "AND isfinite(claimed) AND conditions->>'S' IS NOT NULL "
        "AND conditions->>'feature_map' IS NOT NULL"
    ).rows[0]
    assert (points["whose"] == "claimed").sum() == len(points) == count > 0


def test_measured_modes_are_those_with_a_measurement(
    two_modes: tuple[Workspace, dict[str, Any]],
) -> None:
    workspace, claim = two_modes
    ask, paper = asking(workspace), claim["paper_id"]
    assert figure_queries.measured_modes(ask, paper, CAPACITY) == ["authors", "ours"]
    assert figure_queries.measured_modes(ask, paper, "update-rule") == []


def test_curves_at_a_size_are_the_logs_and_the_runs_of_the_mode(
    two_modes: tuple[Workspace, dict[str, Any]],
) -> None:
    workspace, claim = two_modes
    points = figure_queries.curves_at(
        asking(workspace), claim["paper_id"], CAPACITY, int(claim["S"]), "ours"
    )
    logs = workspace.query(
        "SELECT count(DISTINCT claim_id) FROM logged_curves JOIN claims USING (claim_id) "
        f"WHERE experiment = 'capacity' AND conditions->>'S' = '{claim['S']}'"
    ).rows[0][0]
    logged = points[points["whose"] == "logged"]
    ours = points[points["whose"] == "measured"]
    assert logged["line"].nunique() == logged["series"].nunique() == logs
    assert ours["line"].nunique() == 3
    assert set(ours["step"]) == {100, 200}
    (expected,) = set(logged.loc[logged["line"] == claim["claim_id"], "series"])
    assert set(ours["series"]) == {expected}


def test_a_claims_curves_are_its_own(two_modes: tuple[Workspace, dict[str, Any]]) -> None:
    workspace, claim = two_modes
    points = figure_queries.curves_of(asking(workspace), claim["claim_id"])
    logged = points[points["whose"] == "logged"]
    stored = workspace.query(
        f"SELECT step, value FROM logged_curves WHERE claim_id = '{claim['claim_id']}' "
        "AND isfinite(value) ORDER BY step"
    ).rows
    assert logged[["step", "value"]].to_numpy().tolist() == [list(row) for row in stored]
    assert set(points["whose"]) == {"logged", "measured"}


def test_a_claim_without_a_log_has_no_logged_curve(fresh: Workspace) -> None:
    claim = one_claim(fresh, "claim_id NOT IN (SELECT claim_id FROM logged_curves)")
    assert figure_queries.curves_of(asking(fresh), claim["claim_id"]).empty


def test_logged_sizes_ascend_from_the_smallest(fresh: Workspace) -> None:
    sizes = figure_queries.logged_sizes(asking(fresh), paper_of(fresh), "update-rule")
    assert sizes == sorted(set(sizes))
    assert sizes[0] == 20  # Fig. 3 of the paper


def test_first_lines_are_those_of_figure_3_or_all() -> None:
    four = list(figure_queries.FIRST_LINES)
    assert figure_queries.first_lines([*four, "dpfp2 · delta"]) == four
    assert figure_queries.first_lines(["softmax", "dpfp1 · sum"]) == ["softmax", "dpfp1 · sum"]


def test_knees_are_all_claims_of_that_kind_with_what_the_logs_give(fresh: Workspace) -> None:
    paper = paper_of(fresh)
    knees = figure_queries.knees(asking(fresh), paper)
    stored = fresh.query(
        "SELECT claimed, (reference->>'from_the_authors_logs')::DOUBLE FROM claims "
        "WHERE derivation->>'reduce' = 'knee' ORDER BY ordinal"
    ).rows
    assert knees[["claimed", "logged"]].to_numpy().tolist() == [list(row) for row in stored]
    table = frames.knees_table(knees)
    assert len(table) == len(stored) > 0
    assert set(table["by our seeds"]) == {""}
    assert set(table["verdict"]) == {"○ not run"}


def test_a_measured_knee_stands_in_the_column_of_its_mode(
    fresh: Workspace, point_run: RunOf
) -> None:
    points = fresh.query(
        "SELECT claim_id, experiment, metric, claimed FROM claims WHERE experiment = 'capacity' "
        "AND comparison = '=' AND conditions->>'feature_map' = 'elu1' "
        "AND conditions->>'S' IS NOT NULL AND derivation IS NULL"
    ).dicts()
    runs = [point_run(point, point["claimed"], seed=1, stream="authors") for point in points]
    fresh.append("run/elu1", runs)
    knees = figure_queries.knees(asking(fresh), paper_of(fresh))
    (row,) = frames.records(knees[knees["model"].str.startswith("elu1")])
    # the claimed values are the authors' logged ones, so their knee is the logs' knee
    assert row["authors"] == row["logged"]
    assert row["ours"] is None


def test_mode_coverage_adds_up_to_the_claims_of_an_experiment(
    two_modes: tuple[Workspace, dict[str, Any]],
) -> None:
    workspace, claim = two_modes
    coverage = figure_queries.mode_coverage(asking(workspace), claim["paper_id"])
    stored = workspace.query(
        "SELECT experiment, mode, claims, reproduced, not_reproduced, not_run FROM mode_coverage"
    ).dicts()
    assert coverage[list(stored[0])].to_dict("records") == stored
    assert set(coverage["mode"]) == {"authors", "ours"}


def test_misses_say_the_mode_and_the_reason(two_modes: tuple[Workspace, dict[str, Any]]) -> None:
    workspace, claim = two_modes
    misses = figure_queries.mode_misses(asking(workspace), claim["paper_id"])
    table = frames.misses_table(misses, figure_queries.MODE_NAMES)
    mine = table[table["claim"] == claim["statement"]]
    assert set(mine["mode"]) == {"the authors' streams", "our seeds"}
    assert all("against" in reason for reason in mine["reason"])


def recall_run(run_of: RunOf, paper: str, value: float, *, seed: int, scale: Any) -> Run:
    run = run_of(f"{paper}/pareto/delta-B64", "accuracy", value, seed=seed, suffix=scale)
    metrics = (
        Metric(name="accuracy", value=value, scale=scale),  # no claim is about 64 bytes
        Metric(name="state_bytes", value=64.0, scale=scale),
        Metric(name="accuracy_curve", value=0.1, step=1, scale=scale),
    )
    config = {"mixer": "delta", "test": [{"length": 64}, {"length": 128}]}
    return run.model_copy(update={"metrics": metrics, "config": config, "experiment": "pareto"})


def test_recall_takes_the_median_of_runs_of_one_scale(fresh: Workspace, run_of: RunOf) -> None:
    paper = paper_of(fresh)
    reduced = [
        recall_run(run_of, paper, 0.1 * seed, seed=seed, scale="reduced") for seed in (1, 2, 4)
    ]
    whole = recall_run(run_of, paper, 0.9, seed=1, scale="paper")
    fresh.append("run/recall", [*reduced, whole])
    points = figure_queries.recall_against_state(asking(fresh), paper)
    ours = points[points["whose"] != "literature"]
    assert ours.to_numpy().tolist() == [
        ["delta", 64.0, 0.9, "ours"],
        ["delta", 64.0, pytest.approx(0.2), "ours, reduced scale, sequences to 128"],
    ]
    assert figure_queries.recall_against_state(asking(fresh), "another paper").empty


def test_recall_names_the_literatures_points_by_mixer_and_bytes(fresh: Workspace) -> None:
    points = figure_queries.recall_against_state(asking(fresh), paper_of(fresh))
    stored = fresh.query(
        "SELECT conditions->>'mixer', (conditions->>'state_bytes')::DOUBLE, claimed FROM claims "
        "WHERE metric = 'accuracy' AND comparison = '=' AND conditions->>'mixer' IS NOT NULL"
    ).rows
    shown = points[["mixer", "bytes", "accuracy"]].to_numpy().tolist()
    assert sorted(map(tuple, shown)) == sorted(map(tuple, stored))
    assert set(points["whose"]) <= {"literature"}
