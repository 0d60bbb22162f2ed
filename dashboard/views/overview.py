"""Overview: the paper's card, how many of its claims hold, what is contested or out of reach."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import charts, data, frames, queries
from dashboard.card import paper_card
from dashboard.marks import VERDICTS, labelled
from dashboard.markup import legend
from dashboard.page import chart, chosen_paper, counted, empty, html, meanings, table


def render() -> None:
    """Show the page."""
    paper = chosen_paper()
    if paper is None:
        return
    paper_id = str(paper["paper_id"])
    statuses = queries.statuses(data.ask, paper_id)
    coverage = queries.coverage(data.ask, paper_id)
    st.title("Overview")
    proceedings = queries.proceedings_links(data.ask, paper_id)
    html(paper_card(paper, statuses, proceedings, in_dashboard=True))
    _numbers(coverage, statuses)
    _coverage(coverage)
    _changed(queries.changes(data.ask, paper_id))
    _contested(statuses)
    _unavailable(queries.checks(data.ask, paper_id))


def _numbers(coverage: pd.DataFrame, statuses: pd.DataFrame) -> None:
    verdicts = coverage.groupby("verdict")["claims"].sum()
    claims, not_run = int(coverage["claims"].sum()), int(verdicts.get("not run", 0))
    shown = (
        ("Claims run", f"{claims - not_run} of {claims}"),
        ("Reproduced", str(verdicts.get("reproduced", 0))),
        ("Direction reproduced", str(verdicts.get("direction reproduced", 0))),
        ("Not reproduced", str(verdicts.get("not reproduced", 0))),
        ("Values verified", f"{(statuses['status'] == 'verified').sum()} of {len(statuses)}"),
    )
    with st.container(horizontal=True):
        for label, value in shown:
            st.metric(label, value, border=True, width="stretch")


def _coverage(coverage: pd.DataFrame) -> None:
    st.subheader("Do the paper's claims hold?", anchor="coverage")
    if coverage.empty:
        empty("This paper has no claims yet. Add a `claim.csv` to its data folder.")
        return
    html(legend(VERDICTS))
    meanings()
    chart(charts.coverage(coverage), label="Share of claims by kind and verdict; numbers below")
    table(frames.coverage_table(coverage), label="Number of claims by kind and verdict")
    if set(coverage["verdict"]) == {"not run"}:
        empty("No claim was run in this workspace. Start with `fwp rerun`.")


def _changed(changes: pd.DataFrame) -> None:
    st.subheader("What the last session changed", anchor="changed")
    if changes.empty:
        empty(
            "Nothing: no run and no check in this workspace has changed a verdict or a status "
            "lately. `fwp all` verifies the records and reruns the quick claims."
        )
        return
    since = changes["since"].iloc[0]
    verdicts = int((changes["kind"] == "verdict").sum())
    st.text(
        f"Since {since:%Y-%m-%d %H:%M} UTC: {counted(verdicts, 'verdict')} and "
        f"{counted(len(changes) - verdicts, 'asserted value')} changed."
    )
    table(frames.changes_table(changes), label="What changed, before and now", height=260)


def _contested(statuses: pd.DataFrame) -> None:
    st.subheader("What sources disagree on", anchor="contested")
    disputed = statuses[statuses.groupby("field")["value"].transform("size") > 1]
    if disputed.empty:
        empty("No two sources disagree on this paper.")
        return
    shown = pd.DataFrame(
        {
            "field": disputed["field"],
            "value": disputed["value"],
            "status": disputed["status"].map(labelled),
            "reason": disputed["reason"],
            "said by": disputed["said_by"],
            "the record calls it": disputed["declared"].fillna(""),
        }
    )
    table(shown, label="Fields with more than one asserted value")
    st.caption("The Evidence page tells the story of each field.")


def _unavailable(checks: pd.DataFrame) -> None:
    st.subheader("What could not be checked", anchor="unavailable")
    if checks.empty:
        empty("Nothing was checked yet. Run `fwp verify`, then reload this page.")
        return
    out_of_reach = checks[checks["outcome"] == "unavailable"]
    if out_of_reach.empty:
        st.text(f"Nothing: each of the {counted(len(checks), 'finding')} rests on a source read.")
        return
    table(out_of_reach[["field", "value", "reason", "rule"]], label="Values that were not checked")


if __name__ == "__main__":
    render()
