"""The part of the Claims page that redraws the paper's figures and tells what holds in a mode."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import address, data, figure_charts, figure_queries, frames
from dashboard.figure_queries import MODE_NAMES, MODES
from dashboard.markup import command_markdown
from dashboard.page import chart, chosen_part, counted, empty, table

_CAPTIONS = (
    "those that decide the verdict",
    "a replay of the authors' random numbers",
    "other random numbers, several seeds",
)


def render(paper_id: str) -> None:
    """Show the paper's figures, one at a time."""
    experiments = frames.records(figure_queries.sized_experiments(data.ask, paper_id))
    rows = {row["experiment"]: row for row in experiments}
    if not rows:
        empty("No claim of this paper is a point of a figure over a size.")
        return
    row = rows[chosen_part("figure", {name: _figure_name(row) for name, row in rows.items()})]
    st.caption(
        "Hollow points on a thin line: the values that the paper's claims state. "
        "Filled points: the median of the runs in this workspace, on a bar of one standard "
        "deviation over seeds where there are several."
    )
    address.start_one("mode", MODES)
    mode = str(
        st.radio(
            "Measured by",
            list(MODES),
            format_func=MODES.get,
            captions=list(_CAPTIONS),
            key="mode",
            horizontal=True,
        )
    )
    address.keep("mode", mode)
    logarithmic, panels = _switch("Logarithmic axis", "log"), _switch("A panel a model", "panels")
    _by_size(paper_id, row, mode, logarithmic, panels)
    _over_training(paper_id, row, mode)


def modes(paper_id: str) -> None:
    """Show the knees, and what holds by the runs of one mode alone."""
    _knees(paper_id)
    _modes(paper_id)


def _switch(label: str, key: str) -> bool:
    address.start_switch(key)
    on = st.toggle(label, key=key)
    address.keep(key, on)
    return on


def _figure_name(row: dict[str, Any]) -> str:
    return f"{row['locators']} ({row['experiment']})"


def _by_size(
    paper_id: str, row: dict[str, Any], mode: str, logarithmic: bool, panels: bool
) -> None:
    points = figure_queries.sized_points(data.ask, paper_id, row["experiment"], mode)
    names = list(points["series"].unique())
    chosen = st.multiselect("Series", names, default=names, key=f"series-{row['experiment']}")
    kept = points[points["series"].isin(chosen)]
    if kept.empty:
        empty("Choose at least one series.")
        return
    metric = row["metric"]
    if panels:
        drawn = figure_charts.by_size_panels(kept, metric=metric, logarithmic=logarithmic)
    else:
        drawn = figure_charts.by_size(
            kept, metric=metric, logarithmic=logarithmic, columns=2, height=560
        )
    chart(drawn, label=f"{metric} against S for each series, claimed and measured")
    measured = int((kept["whose"] == "measured").sum())
    st.text(
        f"{counted(len(kept) - measured, 'claimed point')}, "
        f"{counted(measured, 'measured point')}. Claims of a divergence have no point."
    )
    if not measured:
        empty(f"No run of this mode has measured these points: {_how(row['experiment'], mode)}.")


def _how(experiment: str, mode: str) -> str:
    stream = "" if mode == "weightiest" else f" --stream {mode}"
    return command_markdown(f"fwp rerun {experiment}{stream}")


def _over_training(paper_id: str, row: dict[str, Any], mode: str) -> None:
    """Show the loss over training at one size, the authors' log beside the runs' curves."""
    experiment = row["experiment"]
    sizes = figure_queries.logged_sizes(data.ask, paper_id, experiment)
    if not sizes:
        return
    st.markdown("**Over training: the authors' logs beside our runs**")
    key = f"size-{experiment}"
    address.start_one(key, [str(size) for size in sizes])
    size = st.selectbox("S, number of associations", [str(size) for size in sizes], key=key)
    address.keep(key, size)
    points = figure_queries.curves_at(data.ask, paper_id, experiment, int(size), mode)
    names = list(points["series"].unique())
    default = figure_queries.first_lines(names)
    chosen = st.multiselect("Lines", names, default=default, key=f"lines-{experiment}-{size}")
    kept = points[points["series"].isin(chosen)]
    if kept.empty:
        empty("Choose at least one line.")
        return
    drawn = figure_charts.logged_and_measured(kept, metric=row["metric"])
    chart(drawn, label=f"{row['metric']} over training at S = {size}, logged and measured")
    ours = kept.loc[kept["whose"] == "measured", "line"].nunique()
    st.text(
        f"Thin lines: the authors' training logs. Points on thick lines: {counted(ours, 'run')} "
        "of the mode chosen above."
    )


def _knees(paper_id: str) -> None:
    knees = figure_queries.knees(data.ask, paper_id)
    if knees.empty:
        empty("This paper claims no number of associations that a model holds.")
        return
    st.subheader("How many associations each model holds", anchor="knees")
    table(frames.knees_table(knees), label="Knees: claimed, logged and measured in each mode")


def _modes(paper_id: str) -> None:
    coverage = figure_queries.mode_coverage(data.ask, paper_id)
    if coverage.empty:
        empty("No run has drawn from a known kind of random streams. Start with `fwp rerun`.")
        return
    st.subheader("What holds by the runs of one mode alone", anchor="modes")
    table(frames.mode_table(coverage, MODE_NAMES), label="Claims that hold, by experiment and mode")
    misses = figure_queries.mode_misses(data.ask, paper_id)
    if misses.empty:
        st.text("Each claim that was measured is within its tolerance in each mode.")
        return
    st.caption(f"{counted(len(misses), 'row')}, one for each claim and mode, not within tolerance")
    table(frames.misses_table(misses, MODE_NAMES), label="Claims outside their tolerance in a mode")


def recall(paper_id: str) -> None:
    """Show recall against state size, ours and the literature's."""
    points = figure_queries.recall_against_state(data.ask, paper_id)
    if points.empty:
        empty("No claim of this paper is about recall against state size.")
        return
    st.subheader("Recall against state size", anchor="recall")
    chart(figure_charts.pareto(points), label="Accuracy against bytes of state, with the fronts")
    st.caption(
        "Filled points: our runs, a line a mixer. Hollow points on dashed lines: the literature. "
        "A ring and the grey steps mark a Pareto front; points of different scales did different "
        "tasks, so each scale has a front of its own."
    )
    _recall_points(points)


def _recall_points(points: pd.DataFrame) -> None:
    if set(points["whose"]) == {"literature"}:
        empty("No run has measured recall against state size. Start with `fwp rerun pareto`.")
    front = figure_charts.on_front(points)
    table(frames.recall_table(points, front), label="Points of recall against state size")
