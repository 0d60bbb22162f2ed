from __future__ import annotations

import csv
import io
import json
import math

import pytest

from records.exchange import claimed, number, render

COLUMNS = ("name", "value", "list")
ROWS = [("a,b", 0.5, ["x", "y"]), ('q"uote', math.nan, []), (None, None, None)]


def test_json_is_strict_and_names_what_is_not_finite() -> None:
    read = json.loads(render(COLUMNS, ROWS, "json"), parse_constant=pytest.fail)
    assert read[0] == {"name": "a,b", "value": 0.5, "list": ["x", "y"]}
    assert read[1]["value"] == "NaN"
    assert read[2] == {"name": None, "value": None, "list": None}


def test_csv_reads_back() -> None:
    read = list(csv.reader(io.StringIO(render(COLUMNS, ROWS, "csv"))))
    assert read == [
        ["name", "value", "list"],
        ["a,b", "0.5", "x; y"],
        ['q"uote', "nan", ""],
        ["", "", ""],
    ]


def test_a_table_shows_markup_as_it_is() -> None:
    assert "[bold]not bold[/bold]" in render(("x",), [("[bold]not bold[/bold]",)], "table")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (2021, "2021"),
        (66000.0, "66,000"),
        (44034715.0, "44,034,715"),
        (0.00076642, "0.0007664"),
        (math.nan, "NaN"),
        (-math.inf, "-inf"),
        (38.3, "38.3"),
    ],
)
def test_a_number_is_shown_as_people_read_it(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "comparison", "margin", "text"),
    [
        (0.5, "=", 0.02, "0.5 ± 0.02"),
        (260, ">", 0.0, "> 260"),
        (None, "diverges", None, "diverges"),
    ],
)
def test_a_claim_is_shown_with_its_comparison_and_margin(
    value: float | None, comparison: str, margin: float | None, text: str
) -> None:
    assert claimed(value, comparison, margin) == text


def test_a_terminal_is_shown_control_characters_and_does_not_obey_them() -> None:
    shown = render(("x",), [("a\x1b[2Jb\x07",)], "table")
    assert "\x1b" not in shown
    assert r"a\x1b[2Jb\x07" in shown


def test_json_names_what_is_not_finite_inside_a_struct() -> None:
    text = render(("s",), [({"a": math.nan, "b": [math.inf]},)], "json")
    assert json.loads(text, parse_constant=pytest.fail) == [{"s": {"a": "NaN", "b": ["Infinity"]}}]
