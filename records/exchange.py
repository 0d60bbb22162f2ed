"""Rows out of the store, in the formats that people and programs read."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import sys
from collections.abc import Sequence
from typing import Any

FORMATS = ("table", "csv", "json")


def render(columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    """Return rows as text.

    Args:
        columns: the column names.
        rows: one sequence a row, as long as ``columns``.
        form: ``table`` (for people), ``csv`` or ``json`` (an array of objects; NaN and infinities
            are the strings "NaN", "Infinity" and "-Infinity").
    """
    if form == "json":
        objects = [{c: _json(v) for c, v in zip(columns, row, strict=True)} for row in rows]
        return json.dumps(objects, ensure_ascii=False, indent=2, default=str)
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(value) for value in row] for row in rows)
        return buffer.getvalue().rstrip("\n")
    return table(columns, rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str | None = None) -> str:
    """Return rows as a table that fits the terminal; without one it is 120 columns wide."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size((120, 24)).columns if at_terminal else 120
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        drawn.add_column(
            Text(printable(column)), justify="right" if numeric else "left", overflow="fold"
        )
    for row in rows:
        drawn.add_row(*(Text(_shown(value)) for value in row))
    console = Console(file=io.StringIO(), width=max(width, 40), color_system=None)
    console.print(drawn)
    output = console.file
    assert isinstance(output, io.StringIO)
    return "\n".join(line.rstrip() for line in output.getvalue().rstrip().split("\n"))


def printable(text: str) -> str:
    """Return a text whose control characters, line breaks apart, a terminal shows and not obeys."""
    return "".join(c if c == "\n" or c.isprintable() else repr(c)[1:-1] for c in text)


def number(value: float | None) -> str:
    """Return a measured or claimed number as people read it.

    Whole numbers keep their digits, grouped in thousands from 10,000 on; others have four
    significant digits.
    """
    if value is None:
        return ""
    if math.isnan(value):
        return "NaN"
    if math.isfinite(value) and float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.0f}"
    return f"{value:.4g}"


def claimed(value: float | None, comparison: str, margin: float | None = None) -> str:
    """Return what a claim states of its metric: "260", "> 260", "0.5 ± 0.02" or "diverges"."""
    if comparison == "diverges":
        return comparison
    sign = "" if comparison == "=" else f"{comparison} "
    return f"{sign}{number(value)}" + (f" ± {number(margin)}" if margin else "")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _shown(value: Any) -> str:
    return number(value) if isinstance(value, float) else printable(_cell(value))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "; ".join(_cell(item) for item in value)
    return str(value)


def _json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value
