"""Citations: the papers that a paper cites, those that cite it, and findings on the links."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import address, citation_charts, citation_frames, citation_queries, data
from dashboard.citation_queries import ROLES
from dashboard.marks import labelled
from dashboard.markup import plain_markdown
from dashboard.page import chart, chosen_paper, counted, downloads, empty, table


def render() -> None:
    """Show the page."""
    st.title("Citations")
    paper = chosen_paper()
    if paper is None:
        return
    paper_id = str(paper["paper_id"])
    links = citation_frames.merged(citation_queries.links(data.ask, paper_id))
    if links.empty:
        empty("No citation link of this paper is on record. Add a map with `fwp import FOLDER`.")
    else:
        kept = _filters(links)
        _table(kept, len(links), paper_id)
        _pictures(paper, kept)
    _counts(paper_id)
    _findings(paper_id)
    _bibliographies()


def _filters(links: pd.DataFrame) -> pd.DataFrame:
    left, right = st.columns(2)
    with left:
        address.start_one("role", ROLES)
        role = st.pills("Direction", list(ROLES), format_func=ROLES.__getitem__, key="role")
        address.keep("role", role)
    with right:
        address.start_text("words")
        words = st.text_input("Words", key="words", placeholder="such as: delta 2024")
        address.keep("words", words)
    return citation_frames.keep_links(links, role, words or "")


def _table(kept: pd.DataFrame, total: int, paper_id: str) -> None:
    st.text(f"{len(kept)} of {counted(total, 'link')}")
    found = citation_queries.findings(data.ask, paper_id)
    partial = found.loc[found["severity"] == "incomplete", ["field", "reason"]].to_numpy()
    if len(partial):
        st.caption("; ".join(plain_markdown(f"{field}: {reason}") for field, reason in partial))
    if kept.empty:
        empty("No link fits these filters. Take one away.")
        return
    shown = citation_frames.links_table(kept)
    table(shown, label="Citation links", height=360)
    downloads(shown, "links")
    if not kept["outcome"].isin(["confirmed", "contradicted", "absent"]).any():
        empty(
            "No citing paper's own reference list has been read, so no link is proved. "
            "Run `fwp verify` with a network."
        )


def _pictures(paper: dict[str, object], kept: pd.DataFrame) -> None:
    nodes = citation_frames.graph(paper, kept)
    if nodes.empty:
        return
    st.subheader("The paper among them", anchor="graph")
    chart(
        citation_charts.graph(nodes),
        label="Citing papers above the paper, cited ones below, by year; all are in the table",
    )
    st.caption("Each point is a paper of the table above, in the year of its first posting.")
    st.subheader("By year", anchor="timeline")
    years = citation_frames.by_year(kept)
    chart(citation_charts.timeline(years), label="Number of cited and citing papers by year")


def _counts(paper_id: str) -> None:
    stated = citation_queries.stated_counts(data.ask, paper_id)
    if stated.empty:
        return
    st.subheader("How many there are, as sources state it", anchor="counts")
    table(stated, label="Stated numbers of citations and references")


def _findings(paper_id: str) -> None:
    st.subheader("What the checks found", anchor="findings")
    found = citation_queries.findings(data.ask, paper_id)
    if found.empty:
        empty("No check has looked at these links. Run `fwp verify`, then reload this page.")
        return
    shown = found.assign(
        outcome=found["outcome"].map(labelled),
        severity=[labelled(s) if isinstance(s, str) else "" for s in found["severity"]],
    )
    table(shown, label="Findings on links and counts")


def _bibliographies() -> None:
    checked = citation_queries.bibliographies(data.ask)
    if checked.empty:
        return
    st.subheader("Reference lists that were verified here", anchor="lists")
    files = sorted(checked["file"].unique())
    address.start_one("file", files)
    file = st.selectbox("File", files, key="file")
    address.keep("file", file)
    table(checked[checked["file"] == file], label="Entries of the list with their findings")


if __name__ == "__main__":
    render()
