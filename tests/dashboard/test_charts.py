"""Frames in, chart specifications out."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dashboard import charts
from dashboard.marks import VERDICTS

COVERAGE = pd.DataFrame(
    [
        ("exact", "reproduced", 3, 4),
        ("exact", "not run", 1, 4),
        ("synthetic", "direction reproduced", 2, 100),
        ("synthetic", "not reproduced", 98, 100),
    ],
    columns=["kind", "verdict", "claims", "of_kind"],
)
CURVES = pd.DataFrame({"series": ["r"] * 3, "step": [100, 200, 300], "value": [1.0, 0.5, 0.1]})


def rows_of(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return list(spec["datasets"].values())


def layers_by_mark(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {layer["mark"]["type"]: layer for layer in spec["layer"]}


def test_coverage_stacks_one_part_a_row_and_ends_at_the_whole() -> None:
    spec = charts.coverage(COVERAGE).to_dict()
    (rows,) = rows_of(spec)
    assert len(rows) == len(COVERAGE)
    ends = {row["kind"]: row["end"] for row in rows}
    assert ends == pytest.approx({"exact": 1.0, "synthetic": 1.0})
    bar = layers_by_mark(spec)["bar"]["encoding"]
    assert (bar["x"]["field"], bar["x2"]["field"], bar["y"]["field"]) == ("start", "end", "row")
    assert bar["color"]["scale"]["range"] == [mark.colour for mark in VERDICTS.values()]


def test_coverage_says_its_numbers_in_text_where_there_is_room() -> None:
    (rows,) = rows_of(charts.coverage(COVERAGE).to_dict())
    labels = {(row["kind"], row["verdict"]): row["label"] for row in rows}
    assert labels["exact", "reproduced"] == f"{VERDICTS['reproduced'].symbol} 3"
    assert labels["synthetic", "direction reproduced"] == ""
    assert {row["row"] for row in rows} == {"exact (4)", "synthetic (100)"}


def test_series_keep_apart_by_shape_as_well_as_colour() -> None:
    many = pd.DataFrame({"series": list("abcdefgh")})
    assert len(set(charts.colours(many).to_dict()["range"])) == 8
    assert len(set(charts.shapes(many).to_dict()["range"])) == 8


def test_curves_mark_the_claimed_value() -> None:
    spec = charts.curves(CURVES, metric="loss", claimed=0.2).to_dict()
    marks = layers_by_mark(spec)
    assert set(marks) == {"line", "rule", "text"}
    assert (marks["line"]["encoding"]["x"]["field"], marks["line"]["encoding"]["y"]["field"]) == (
        "step",
        "value",
    )
    assert sorted(map(len, rows_of(spec))) == [1, len(CURVES)]


def test_curves_without_a_claimed_value_have_one_layer() -> None:
    assert len(charts.curves(CURVES, metric="loss").to_dict()["layer"]) == 1


def test_svg_holds_no_outside_reference_and_escapes_texts() -> None:
    hostile = CURVES.assign(series="<script>alert(1)</script>")
    text = charts.svg(charts.curves(hostile, metric="<b>"), "one")
    assert text.startswith("<svg")
    assert "<script" not in text
    assert "<b>" not in text
    assert text.count("http") == text.count('"http://www.w3.org/')


@pytest.mark.parametrize(
    ("x", "kind", "scale"),
    [("n", "points", "quantitative"), ("name", "lines", "nominal"), ("n", "bars", "nominal"),
     ("day", "lines", "temporal")],
)  # fmt: skip
def test_a_result_is_drawn_on_the_scale_that_its_values_have(x: str, kind: str, scale: str) -> None:
    days = pd.to_datetime(["2021-02-22", "2021-06-09"], utc=True)
    frame = pd.DataFrame({"n": [1, 2], "name": ["a", "b"], "day": days, "y": [0.5, 0.7]})
    (layer,) = charts.of_result(frame, x, "y", kind).to_dict()["layer"]
    assert layer["encoding"]["x"]["type"] == scale
    assert layer["encoding"]["y"]["title"] == "y"


def test_a_result_without_finite_numbers_has_no_marks() -> None:
    frame = pd.DataFrame({"n": ["a", "b"], "y": [float("nan"), float("inf")]})
    assert rows_of(charts.of_result(frame, "n", "y", "bars").to_dict()) == [[]]


def test_rows_of_a_result_are_told_apart_by_a_column() -> None:
    frame = pd.DataFrame({"n": [1, 1], "y": [1.0, 2.0], "who": ["ours", "theirs"]})
    (layer,) = charts.of_result(frame, "n", "y", "lines", "who").to_dict()["layer"]
    assert layer["encoding"]["color"]["scale"]["domain"] == ["ours", "theirs"]
