"""Frames in, chart specifications of the paper's experiments out."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from dashboard import charts, figure_charts

POINTS = pd.DataFrame(
    [
        ("elu1", 20, 0.1, math.nan, "claimed", "a", ""),
        ("elu1", 40, 0.3, math.nan, "claimed", "b", ""),
        ("dpfp1", 20, 0.0, math.nan, "claimed", "c", ""),
        ("elu1", 20, 0.11, math.nan, "measured", "a", "reproduced"),
        ("elu1", 40, 0.25, 0.05, "measured", "b", "reproduced"),
        ("dpfp1", 40, 0.02, 0.03, "measured", "d", "reproduced"),
    ],
    columns=["series", "S", "value", "spread", "whose", "claim_id", "verdict"],
)
CURVES = pd.DataFrame(
    [
        ("delta", "logged", "claim", 100, 0.2),
        ("delta", "logged", "claim", 200, 0.0),
        ("delta", "measured", "run-1", 100, 0.21),
        ("delta", "measured", "run-2", 100, 0.19),
        ("sum", "logged", "other", 100, 0.5),
    ],
    columns=["series", "whose", "line", "step", "value"],
)
RECALL = pd.DataFrame(
    [
        ("delta", 100, 0.5, "ours"),
        ("delta", 200, 0.8, "ours"),
        ("sum", 100, 0.4, "ours"),
        ("sum", 300, 0.8, "ours"),
        ("softmax", 400, 0.9, "ours"),
        ("delta", 1000, 0.7, "literature"),
    ],
    columns=["mixer", "bytes", "accuracy", "whose"],
)


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    (rows,) = spec["datasets"].values()
    return list(rows)


def marks_of(layers: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(layer["mark"]["type"], layer["mark"].get("filled")) for layer in layers]


def test_by_size_has_one_row_a_point_and_sets_claimed_apart_by_hollow_marks() -> None:
    spec = figure_charts.by_size(POINTS, metric="eval_loss").to_dict()
    assert len(rows_of(spec)) == len(POINTS)
    line, bar, hollow, filled = spec["layer"]
    assert marks_of([line, bar]) == [("line", None), ("rule", None)]
    assert (hollow["mark"]["filled"], filled["mark"]["filled"]) == (False, True)
    assert "shape" not in line["encoding"]
    for layer, whose in ((line, "claimed"), (hollow, "claimed"), (filled, "measured")):
        assert layer["transform"] == [{"filter": f"datum.whose == '{whose}'"}]
    encoding = filled["encoding"]
    assert (encoding["x"]["field"], encoding["y"]["field"]) == ("S", "value")
    assert encoding["y"]["title"] == "eval_loss"
    assert encoding["color"]["field"] == encoding["shape"]["field"] == "series"


def test_a_bar_reaches_one_spread_up_and_down() -> None:
    spec = figure_charts.by_size(POINTS, metric="m").to_dict()
    bar = spec["layer"][1]["encoding"]
    assert (bar["y"]["field"], bar["y2"]["field"]) == ("low", "high")
    (row,) = [r for r in rows_of(spec) if r["claim_id"] == "b" and r["whose"] == "measured"]
    assert (row["low"], row["high"]) == pytest.approx((0.2, 0.3))


def test_points_without_a_spread_have_no_bars() -> None:
    spec = figure_charts.by_size(POINTS.assign(spread=None), metric="m").to_dict()
    assert "rule" not in [mark for mark, _ in marks_of(spec["layer"])]


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show() -> None:
    spec = figure_charts.by_size(POINTS, metric="eval_loss", logarithmic=True).to_dict()
    rows = rows_of(spec)
    assert len(rows) == len(POINTS) - 1
    assert min(row["low"] for row in rows if row["low"] is not None) == 0.02
    encoding = spec["layer"][-1]["encoding"]
    assert encoding["y"]["scale"]["type"] == "log"
    assert encoding["color"]["scale"]["domain"] == ["elu1", "dpfp1"]


def test_panels_are_one_a_series_in_their_order_on_shared_axes() -> None:
    spec = figure_charts.by_size_panels(POINTS, metric="eval_loss", columns=3).to_dict()
    assert (spec["facet"]["field"], spec["facet"]["sort"]) == ("series", ["elu1", "dpfp1"])
    assert spec["columns"] == 3
    assert "resolve" not in spec
    assert len(rows_of(spec)) == len(POINTS)
    assert all("data" not in layer for layer in spec["spec"]["layer"])


def test_panels_become_svg_with_a_title_for_each() -> None:
    text = charts.svg(figure_charts.by_size_panels(POINTS, metric="m"), "panels")
    assert ">elu1<" in text
    assert ">dpfp1<" in text


def test_logged_curves_are_thin_lines_and_measured_ones_points_on_thick_ones() -> None:
    spec = figure_charts.logged_and_measured(CURVES, metric="eval_loss").to_dict()
    thick, thin, points = spec["layer"]
    assert thick["mark"]["strokeWidth"] > thin["mark"]["strokeWidth"]
    filters = [layer["transform"][0]["filter"] for layer in spec["layer"]]
    assert ["measured" in text for text in filters] == [True, False, True]
    assert points["mark"]["filled"]
    assert points["encoding"]["detail"]["field"] == "line"
    assert points["encoding"]["y"]["scale"]["type"] == "log"
    assert len(rows_of(spec)) == len(CURVES) - 1  # the loss of 0 has no logarithm


@pytest.mark.parametrize(
    ("claimed", "marked"), [(0.2, True), (None, False), (math.nan, False), (0.0, False)]
)
def test_a_claimed_value_is_marked_where_the_axis_can_show_it(
    claimed: float | None, marked: bool
) -> None:
    spec = figure_charts.logged_and_measured(CURVES, metric="m", claimed=claimed).to_dict()
    assert ("claimed 0.2" in str(spec)) is marked


def test_the_front_holds_what_nothing_of_the_same_scale_beats() -> None:
    front = figure_charts.on_front(RECALL)
    held = RECALL[front][["mixer", "bytes"]].to_numpy().tolist()
    assert held == [["delta", 100], ["delta", 200], ["softmax", 400], ["delta", 1000]]


def test_equal_points_are_both_on_the_front() -> None:
    twice = pd.concat([RECALL.head(1), RECALL.head(1)], ignore_index=True)
    assert figure_charts.on_front(twice).all()


def test_front_of_nothing_is_nothing() -> None:
    assert figure_charts.on_front(RECALL.head(0)).empty


def test_recall_shows_the_literature_hollow_and_the_front_in_rings() -> None:
    spec = figure_charts.pareto(RECALL).to_dict()
    assert sum(row["front"] for row in rows_of(spec)) == 4
    drawn = {
        layer["transform"][0]["filter"]: layer["mark"].get("filled")
        for layer in spec["layer"]
        if layer["mark"]["type"] == "point"
    }
    assert drawn == {
        "datum.whose == 'literature'": False,
        "datum.whose != 'literature'": True,
        "datum.front": False,
    }
    x = spec["layer"][0]["encoding"]["x"]
    assert (x["field"], x["scale"]["type"]) == ("bytes", "log")
