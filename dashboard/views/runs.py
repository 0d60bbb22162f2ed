"""Runs: how each was made, what it measured, and the curves of several compared."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import address, charts, data, frames, queries
from dashboard.markup import MOST_COMPARED, plain_markdown
from dashboard.page import chart, counted, downloads, empty, table


def render() -> None:
    """Show the page."""
    st.title("Runs")
    runs = queries.runs(data.ask)
    if runs.empty:
        empty("No run in this workspace yet. Start with `fwp rerun`, then reload this page.")
        return
    experiments = sorted(runs["experiment"].unique())
    address.start_several("experiment", experiments)
    wanted = st.pills(
        "Experiment",
        experiments,
        selection_mode="multi",
        format_func=plain_markdown,
        key="experiment",
    )
    address.keep("experiment", wanted)
    kept = runs[runs["experiment"].isin(wanted)] if wanted else runs
    kept = _of_origin(kept.assign(origin=[_ORIGINS[bool(s)] for s in kept["shipped"]]))
    st.text(f"{len(kept)} of {counted(len(runs), 'run')}, the newest first")
    if kept.empty:
        empty("No run fits these filters. Take one away.")
        return
    _table(kept)
    downloads(kept, "runs")
    _compare(kept)
    _detail(kept)


_ORIGINS = {False: "made here", True: "shipped"}


def _of_origin(runs: pd.DataFrame) -> pd.DataFrame:
    """Let the reader choose between shipped reference runs and those of this workspace."""
    address.start_several("origin", list(_ORIGINS.values()))
    wanted = st.pills("Origin", list(_ORIGINS.values()), selection_mode="multi", key="origin")
    address.keep("origin", wanted)
    if "shipped" in set(runs["origin"]):
        st.caption("Shipped runs are reference runs that came with the project.")
    return runs[runs["origin"].isin(wanted)] if wanted else runs


def _table(runs: pd.DataFrame) -> None:
    shown = runs[
        [
            *("run_id", "origin", "experiment", "seed", "finished", "claims", "metrics"),
            "signature",
        ]
    ]
    took = [_took(seconds) for seconds in (runs["finished"] - runs["started"]).dt.total_seconds()]
    table(shown.assign(took=took).rename(columns={"run_id": "run"}), label="Runs", height=320)


def _took(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _compare(runs: pd.DataFrame) -> None:
    st.subheader("Runs compared", anchor="curves")
    address.start_several("compared", list(runs["run_id"]), MOST_COMPARED)
    chosen = st.multiselect(
        "Runs",
        list(runs["run_id"]),
        key="compared",
        max_selections=MOST_COMPARED,
        placeholder=f"choose up to {MOST_COMPARED}",
    )
    address.keep("compared", chosen)
    if not chosen:
        return
    if len(chosen) > 1:
        _differences(runs.set_index("run_id", drop=False).loc[chosen])
    points = queries.curves(data.ask, chosen)
    if points.empty:
        empty("These runs have recorded no curve.")
        return
    address.start_switch("log")
    logarithmic = st.toggle("Logarithmic axis", key="log")
    address.keep("log", logarithmic)
    for name in points["name"].unique():
        drawn = points[points["name"] == name].assign(series=lambda frame: frame["run_id"])
        chart(charts.curves(drawn, metric=name, logarithmic=logarithmic), label=f"Curves of {name}")
    downloads(points, "curves")


def _differences(runs: pd.DataFrame) -> None:
    """Show in what runs differ, and what each measured."""
    st.caption("In what they differ")
    table(frames.differences(runs), label="Settings that are not the same in these runs")
    st.caption("What each measured")
    measured = queries.compared_metrics(data.ask, list(runs["run_id"]))
    wide = measured.pivot(index="name", columns="run_id", values="value")
    wide = wide.reindex(columns=list(runs["run_id"]))
    wide = wide.reindex(list(dict.fromkeys(measured["name"]))).reset_index()
    wide.columns.name = None
    table(wide, label="Metrics of these runs side by side")


def _detail(runs: pd.DataFrame) -> None:
    st.subheader("One run", anchor="run")
    rows = {row["run_id"]: row for row in frames.records(runs)}
    address.start_one("run", rows)
    chosen = st.selectbox("Run", list(rows), key="run")
    address.keep("run", chosen)
    if chosen is not None:
        _show_run(rows[chosen])


def _show_run(run: dict[str, Any]) -> None:
    st.caption("Signature: paste it beside any number of this run")
    st.code(run["signature"], language=None, wrap_lines=True)
    left, right = st.columns(2)
    with left:
        st.caption("Configuration")
        table(frames.pairs(run["config"]), label="Configuration of the run")
    with right:
        st.caption("Environment")
        table(frames.pairs(run["environment"]), label="Environment of the run")
    st.caption("What it measured")
    table(queries.final_metrics(data.ask, run["run_id"]), label="Metrics of the run")
    points = queries.curves(data.ask, [run["run_id"]])
    if not points.empty:
        for name in points["name"].unique():
            drawn = points[points["name"] == name].assign(series=run["run_id"])
            chart(charts.curves(drawn, metric=name), label=f"{name} of the run")
        downloads(points, "curves of this run")


if __name__ == "__main__":
    render()
