"""Claims: what the paper says beside what was measured, and the detail of one claim."""

from __future__ import annotations

from typing import Any, get_args

import pandas as pd
import streamlit as st

from dashboard import (
    address,
    charts,
    data,
    figure_charts,
    figure_queries,
    frames,
    paper_tables,
    queries,
)
from dashboard.marks import VERDICTS, labelled
from dashboard.markup import badge, command_markdown, legend, plain_markdown, run_links
from dashboard.page import (
    chart,
    chosen_paper,
    chosen_part,
    column_config,
    counted,
    downloads,
    empty,
    html,
    meanings,
    table,
)
from dashboard.views import figures
from records.models import ClaimKind

_MOST_SIGNATURES = 4


def render() -> None:
    """Show the page."""
    st.title("Claims")
    paper = chosen_paper()
    if paper is None:
        return
    paper_id = str(paper["paper_id"])
    claims = queries.side_by_side(data.ask, paper_id)
    if claims.empty:
        empty("This paper has no claims yet. Add a `claim.csv` to its data folder.")
        return
    meanings()
    _PARTS[chosen_part("part", {name: name.capitalize() for name in _PARTS})](paper_id)


def _filtered(paper_id: str) -> None:
    """Show the claims that fit the filters, and one of them in detail."""
    claims = queries.side_by_side(data.ask, paper_id)
    kept = _filters(claims)
    st.text(f"{len(kept)} of {counted(len(claims), 'claim')}")
    if kept.empty:
        empty("No claim fits these filters. Take one away.")
    else:
        _table(kept.reset_index(drop=True))
        _detail(kept)


def _tables(paper_id: str) -> None:
    """Show the paper's tables as it prints them, our number in each cell below its own."""
    shown = dict(paper_tables.tables(paper_tables.cells(data.ask, paper_id), links=True))
    if not shown:
        empty("No claim of this paper stands in one of its tables.")
        return
    st.caption(
        "Above in each cell what the paper prints, below it our number with the verdict; a scale "
        "in brackets says that the run was smaller than the paper's, so that only orders compare."
    )
    html(legend(VERDICTS))
    html(shown[chosen_part("table", {name: name for name in shown})])


def _filters(claims: pd.DataFrame) -> pd.DataFrame:
    kinds = [kind for kind in get_args(ClaimKind) if kind in set(claims["kind"])]
    locators = sorted(claims["locator"].unique())
    address.start_several("kind", kinds)
    address.start_several("verdict", VERDICTS)
    address.start_several("locator", locators)
    address.start_text("words")
    left, right = st.columns(2)
    kind = left.pills(
        "Kind",
        kinds,
        selection_mode="multi",
        format_func=_spaced,
        key="kind",
        wrap=True,
    )
    verdict = right.pills(
        "Verdict",
        list(VERDICTS),
        selection_mode="multi",
        format_func=labelled,
        key="verdict",
        wrap=True,
    )
    locator = left.multiselect(
        "Place in the paper",
        locators,
        key="locator",
        placeholder="anywhere",
    )
    text = right.text_input("Words", key="words", placeholder="such as: DPFP-1 S = 60")
    for key, value in (("kind", kind), ("verdict", verdict), ("locator", locator), ("words", text)):
        address.keep(key, value)
    return frames.keep_claims(claims, kind or (), locator, verdict or (), text or "")


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _table(kept: pd.DataFrame) -> None:
    shown = frames.claims_table(kept)
    ids = list(kept["claim_id"])

    def choose() -> None:
        rows = st.session_state["claims_table"]["selection"]["rows"]
        if rows and rows[0] < len(ids):
            st.session_state["claim"] = ids[rows[0]]

    st.dataframe(
        shown,
        hide_index=True,
        height=390,
        column_config=column_config(shown),
        on_select=choose,
        selection_mode="single-row",
        key="claims_table",
        alt="Claims with claimed and measured value and verdict",
    )


def _detail(kept: pd.DataFrame) -> None:
    rows = {row["claim_id"]: row for row in frames.records(kept)}

    def named(claim_id: str) -> str:
        return f"{rows[claim_id]['locator']}: {rows[claim_id]['statement']}"

    address.start_one("claim", rows)
    chosen = st.selectbox(
        "Claim in detail (a row chosen above, or search here)",
        list(rows),
        key="claim",
        format_func=named,
    )
    address.keep("claim", chosen)
    if chosen is not None:
        _show_claim(rows[chosen])


def _show_claim(row: dict[str, Any]) -> None:
    claim = frames.records(queries.claim(data.ask, row["claim_id"]))[0]
    with st.container(border=True):
        st.text(row["statement"])
        html(badge(frames.shown_verdict(row)))
        st.text(row["reason"])
        if row["scale"] not in (None, "paper"):
            st.warning(
                f"Measured at the scale “{plain_markdown(row['scale'])}”: on a smaller model, a "
                "shorter training or another text than the paper's, as the configuration of the "
                "runs says. Such a number is never compared with the paper's, only its order "
                "among others. The README says under “What is not there yet” how far that carries."
            )
        _numbers(row, claim)
        left, right = st.columns(2)
        left.caption("Conditions")
        with left:
            table(frames.pairs(claim["conditions"]), label="Conditions of the claim")
        reference = frames.pairs(claim["reference"])
        if not reference.empty:
            right.caption("Also stated for this point, not judged")
            with right:
                table(reference, label="Reference values of the claim")
        st.caption("Where it stands")
        st.text(f"{claim['locator']}, as read in: {claim['source']}\n{claim['claim_id']}")
        _runs(row, claim)


def _numbers(row: dict[str, Any], claim: dict[str, Any]) -> None:
    shown = (
        ("Metric", str(claim["metric"])),
        ("Claimed", frames.claimed_text(row)),
        ("Measured", frames.measured_text(row["measured"], diverged=bool(row["diverged"])) or "–"),
        ("Spread over seeds", frames.measured_text(row["spread"]) or "–"),
        ("Seeds", ", ".join(map(str, row["seeds"] or ())) or "–"),
    )
    for column, (label, value) in zip(st.columns(len(shown)), shown, strict=True):
        column.caption(label)
        column.text(value)


def _runs(row: dict[str, Any], claim: dict[str, Any]) -> None:
    run_ids = list(row["run_ids"] if row["run_ids"] is not None else ())
    if run_ids:
        st.caption(f"Signature of {counted(len(run_ids), 'run')} behind the number")
        html(run_links(run_ids))
        with st.container(height=240 if len(run_ids) > _MOST_SIGNATURES else "content"):
            for signature in queries.runs(data.ask, run_ids)["signature"]:
                st.code(signature, language=None, wrap_lines=True)
    else:
        command = command_markdown(f"fwp rerun {claim['experiment'] or '--list'}")
        empty(f"No run has measured this claim. See {command}.")
    if claim["derivation"] is None:
        _curves(run_ids, claim, row)


def _curves(run_ids: list[str], claim: dict[str, Any], row: dict[str, Any]) -> None:
    """Show the runs' curves, over the authors' log of this point where there is one."""
    claimed = claim["claimed"] if row["scale"] in (None, "paper") else None
    both = figure_queries.curves_of(data.ask, claim["claim_id"])
    if not both.empty:
        names = both["line"].where(both["whose"] == "measured", "the authors' log")
        logarithmic = bool((both["value"] > 0).all())
        drawn = figure_charts.logged_and_measured(
            both.assign(series=names),
            metric=str(claim["metric"]),
            claimed=claimed,
            logarithmic=logarithmic,
            height=300,
        )
        chart(drawn, label="The authors' logged curve and the runs' curves, with the claimed value")
        st.caption(
            "Thin line: the authors' training log. Points on a thick line: the runs behind the "
            "number."
        )
        return
    points = queries.curves(data.ask, run_ids)
    if not points.empty:
        downloads(points, "curves")
    for name in points["name"].unique():
        course = points[points["name"] == name].assign(series=lambda frame: frame["run_id"])
        of_metric = name.removesuffix("_curve") == claim["metric"]
        drawn = charts.curves(course, metric=name, claimed=claimed if of_metric else None)
        chart(drawn, label=f"{name.replace('_', ' ')} of the runs over training")


# shown one at a time, so that no reader waits for what another asked for
_PARTS = {
    "claims": _filtered,
    "tables": _tables,
    "figures": figures.render,
    "capacity": figures.modes,
    "recall": figures.recall,
}


if __name__ == "__main__":
    render()
