"""Frames of the store into what tables and pages show: pure."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd

from dashboard.marks import NOT_JUDGED, labelled
from dashboard.markup import safe_url
from records.exchange import claimed, number

_SIMPLE = (str, bool, float, date, datetime, type(None))
_LARGEST = 2**63
_EXACT_DIGITS = 15
"""Digits that a float always keeps."""


def is_missing(value: Any) -> bool:
    """Tell whether a cell stands for NULL."""
    return value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries, None where the store has NULL."""
    return [
        {str(name): None if is_missing(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def measured_text(value: Any, *, diverged: bool = False) -> str:
    """Return a measured number as people read it; '' for none."""
    if diverged:
        return "diverged"
    return "" if is_missing(value) else number(float(value))


def shown_verdict(row: Mapping[str, Any]) -> str:
    """Return the row's verdict as it is shown: a claim that was measured is not "not run"."""
    measured = bool(row["diverged"]) or not is_missing(row["measured"])
    return NOT_JUDGED if row["verdict"] == "not run" and measured else str(row["verdict"])


def claimed_text(row: Mapping[str, Any]) -> str:
    """Return what the row's claim states: '260', '> 260', 'diverges'."""
    value = None if is_missing(row["claimed"]) else row["claimed"]
    return claimed(value, row["comparison"])


def claims_table(side_by_side: pd.DataFrame) -> pd.DataFrame:
    """Return the table of claims: claimed, measured, spread and verdict as text."""
    columns = ["claim", "where", "claimed", "measured", "spread", "seeds", "verdict", "reason"]
    rows = [
        {
            "claim": row["statement"],
            "where": row["locator"],
            "claimed": claimed_text(row),
            "measured": measured_text(row["measured"], diverged=bool(row["diverged"])),
            "spread": measured_text(row["spread"]),
            "seeds": len(row["seeds"]) if row["seeds"] is not None else 0,
            "verdict": labelled(shown_verdict(row)),
            "reason": row["reason"],
        }
        for row in records(side_by_side)
    ]
    return pd.DataFrame(rows, columns=columns)


def keep_claims(
    frame: pd.DataFrame,
    kinds: Iterable[str] = (),
    locators: Iterable[str] = (),
    verdicts: Iterable[str] = (),
    text: str = "",
) -> pd.DataFrame:
    """Return the claims that fit every filter; an empty filter lets everything through.

    ``text`` is looked for in statement, id, metric and reason, word by word, in any case.
    """
    keep = pd.Series(True, index=frame.index)
    for column, wanted in (("kind", kinds), ("locator", locators), ("verdict", verdicts)):
        chosen = list(wanted)
        if chosen:
            keep &= frame[column].isin(chosen)
    searched = (
        frame[["statement", "claim_id", "metric", "reason"]].astype(str).agg(" ".join, axis=1)
    )
    for word in text.lower().split():
        keep &= searched.str.lower().str.contains(word, regex=False)
    return frame[keep]


def coverage_table(coverage: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of claims, one row a kind and one column a verdict, with totals."""
    names = ["reproduced", "direction reproduced", "not reproduced", "not run"]
    table = coverage.pivot_table(
        index="kind", columns="verdict", values="claims", aggfunc="sum", sort=False, fill_value=0
    ).reindex(columns=names, fill_value=0)
    table.insert(0, "claims", table.sum(axis=1))
    table.loc["all"] = table.sum()
    table = table.astype(int).rename(columns={name: labelled(name) for name in names})
    table.columns.name = None
    table.index = pd.Index([str(kind).replace("_", " ") for kind in table.index], name="kind")
    return table.reset_index()


def knees_table(knees: pd.DataFrame) -> pd.DataFrame:
    """Return the table of knees: claimed, from the authors' logs, and measured in each mode."""
    rows = [
        {
            "model": row["model"],
            "metric": str(row["metric"]).replace("_", " "),
            "claimed": claimed_text(row),
            "from the authors' logs": measured_text(row["logged"]),
            "by the authors' streams": measured_text(row["authors"]),
            "by our seeds": measured_text(row["ours"]),
            "verdict": labelled(row["verdict"]),
            "reason": row["reason"],
        }
        for row in records(knees)
    ]
    return pd.DataFrame(rows)


def mode_table(coverage: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return how many claims hold by the runs of one mode; ``names`` says how modes are called."""
    shown = coverage.assign(mode=[names.get(mode, mode) for mode in coverage["mode"]])
    verdicts = ("reproduced", "direction_reproduced", "not_reproduced", "not_run")
    return shown.rename(columns={name: labelled(name.replace("_", " ")) for name in verdicts})


def misses_table(misses: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the claims that one mode's runs do not reproduce, with both values and the reason."""
    columns = ["mode", "claim", "where", "claimed", "measured", "reason"]
    rows = [
        {
            "mode": names.get(row["mode"], row["mode"]),
            "claim": row["statement"],
            "where": row["locator"],
            "claimed": claimed_text(row),
            "measured": measured_text(row["measured"], diverged=bool(row["diverged"])),
            "reason": row["reason"],
        }
        for row in records(misses)
    ]
    return pd.DataFrame(rows, columns=columns)


def recall_table(points: pd.DataFrame, front: pd.Series) -> pd.DataFrame:
    """Return the points of accuracy against bytes of state, and which are on a Pareto front."""
    return points.assign(
        bytes=points["bytes"].astype(int),
        accuracy=[number(float(value)) for value in points["accuracy"]],
        front=["on the front" if on else "" for on in front],
    ).rename(columns={"front": "Pareto front"})


def pairs(text: Any) -> pd.DataFrame:
    """Return a JSON object (or a dictionary) as rows of name and value."""
    body = json.loads(text) if isinstance(text, str) and text else text
    items = body.items() if isinstance(body, dict) else ()
    return pd.DataFrame(
        [(str(name), _cell_text(value)) for name, value in items], columns=["name", "value"]
    )


def parquet(frame: pd.DataFrame) -> bytes:
    """Return a frame as a Parquet file; lists and structures in it as text."""
    buffer = io.BytesIO()
    showable(frame).to_parquet(buffer, index=False)
    return buffer.getvalue()


def changes_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Return what the last session changed: of what, from which verdict or status to which."""
    return pd.DataFrame(
        {
            "of": changes["subject"],
            "before": [labelled(name) or "–" for name in changes["before"]],
            "now": changes["after"].map(labelled),
        }
    )


def differences(runs: pd.DataFrame) -> pd.DataFrame:
    """Return in what runs differ: a row a setting of configuration, environment or code.

    Columns ``setting`` and one a run, by its id. What is the same in all of them is left out.
    """
    held: dict[str, dict[str, str]] = {}
    for run in records(runs):
        settings = {"seed": run["seed"], "code version": run["code_version"]}
        for part in ("config", "environment"):
            body = json.loads(run[part]) if run[part] else {}
            named = body if isinstance(body, dict) else {"all": body}
            settings |= {f"{part}: {name}": value for name, value in named.items()}
        held[run["run_id"]] = {name: _cell_text(value) for name, value in settings.items()}
    table = pd.DataFrame(held).fillna("")
    several = table[table.nunique(axis=1) > 1]
    name = "setting" if "setting" not in held else "setting of the runs"
    return several.rename_axis(name).reset_index()


def showable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with what no table can show as text: lists, structures, oversized numbers.

    A column of decimals becomes one of floats where no digit is lost.
    """
    return frame.apply(_showable) if len(frame.columns) else frame.copy()


def _showable(column: pd.Series) -> pd.Series:
    if column.dtype != object:
        return column
    held = [value for value in column if not is_missing(value)]
    if held and all(isinstance(value, Decimal) and _is_exact(value) for value in held):
        return column.astype(float)
    kinds = {type(value) for value in held}
    if len(kinds) <= 1 and all(map(_is_simple, held)):
        return column
    return column.map(_cell_text, na_action="ignore")


def _is_exact(value: Decimal) -> bool:
    return value.is_finite() and len(value.as_tuple().digits) <= _EXACT_DIGITS


def with_links(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with every ``url`` that is not an http or https address emptied."""
    return frame.assign(url=frame["url"].map(safe_url))


def _is_simple(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < _LARGEST
    return isinstance(value, _SIMPLE)


def _cell_text(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(_plain(value), ensure_ascii=False, default=str)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def _plain(value: Any) -> Any:
    """Return a structure with its keys as text, as JSON has them."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
