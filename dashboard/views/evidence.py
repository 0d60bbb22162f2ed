"""Evidence: for each asserted value who says so, and what the checks found."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import address, data, frames, queries
from dashboard.archived import open_capture
from dashboard.marks import labelled
from dashboard.page import empty, html, table
from dashboard.story import source_card, story
from records.errors import EvidenceError


def render() -> None:
    """Show the page."""
    st.title("Evidence")
    papers = {row["paper_id"]: row for row in frames.records(queries.described_papers(data.ask))}
    if not papers:
        empty("Nothing is asserted about any paper yet. Add records with `fwp import FOLDER`.")
        return
    address.start_one("record", papers)
    paper_id = st.selectbox(
        "Record",
        list(papers),
        key="record",
        format_func=lambda key: f"{papers[key]['title']} ({key})",
    )
    address.keep("record", paper_id)
    if paper_id is None:
        return
    statuses = queries.statuses(data.ask, paper_id)
    checks = queries.checks(data.ask, paper_id)
    _statuses(statuses)
    _story(paper_id, statuses, checks)
    _checks(checks)
    _sources(paper_id)


def _statuses(statuses: pd.DataFrame) -> None:
    st.subheader("Every asserted value and where it stands", anchor="statuses")
    shown = statuses[["field", "value", "status", "said_by", "reason"]].assign(
        status=statuses["status"].map(labelled)
    )
    table(shown.rename(columns={"said_by": "said by"}), label="Asserted values", height=320)


def _story(paper_id: str, statuses: pd.DataFrame, checks: pd.DataFrame) -> None:
    st.subheader("The story of one field", anchor="story")
    counts = statuses["field"].value_counts(sort=False)
    findings = checks["field"].value_counts()
    fields = sorted(map(str, counts.index), key=lambda f: (-counts[f], -findings.get(f, 0)))
    address.start_one("field", fields)
    field = st.selectbox(
        "Field (those with several values first)",
        fields,
        key="field",
        format_func=lambda name: f"{name}: {counts[name]} values" if counts[name] > 1 else name,
    )
    address.keep("field", field)
    if field is None:
        return
    said = frames.records(queries.assertions(data.ask, paper_id, field))
    found = frames.records(checks[checks["field"] == field])
    declared = frames.records(queries.assertions(data.ask, paper_id, f"{field} status"))
    html(story(said, found, declared, _evidence_by_id()))


def _evidence_by_id() -> dict[str, dict[str, Any]]:
    return {row["evidence_id"]: row for row in frames.records(queries.evidence(data.ask))}


def _checks(checks: pd.DataFrame) -> None:
    st.subheader("What the checks found", anchor="checks")
    if checks.empty:
        empty("No check has looked at this record. Run `fwp verify`, then reload this page.")
        return
    shown = checks.assign(
        **{
            name: checks[name].map(lambda n: labelled(n if isinstance(n, str) else None))
            for name in ("outcome", "severity", "grade")
        },
        rule=checks["rule"] + " " + checks["rule_version"].astype(str),
    )
    columns = ["outcome", "severity", "field", "value", "found", "reason", "grade", "rule"]
    table(shown[columns], label="Findings, the gravest first", height=320)


def _sources(paper_id: str) -> None:
    st.subheader("All sources", anchor="sources")
    st.caption(
        "captured: the bytes of the answer are kept and can be hashed again. "
        "transcribed: a person read the source and copied what it says."
    )
    sources = frames.with_links(queries.evidence(data.ask))
    columns = ["source", "authority", "grade", "read_on", "excerpt", "url", "sha256", "evidence_id"]
    shown = sources[columns].assign(grade=sources["grade"].map(labelled))
    table(shown.rename(columns={"read_on": "read on"}), label="Sources", height=320)
    of_record = set(queries.sources_of(data.ask, paper_id)["evidence_id"])
    rows = sorted(frames.records(sources), key=lambda row: row["evidence_id"] not in of_record)
    _one_source({row["evidence_id"]: row for row in rows})


def _one_source(sources: dict[str, dict[str, Any]]) -> None:
    st.subheader("One source", anchor="source")
    address.start_one("source", sources)
    chosen = st.selectbox(
        "Source",
        list(sources),
        key="source",
        format_func=lambda key: f"{sources[key]['source']} ({key})",
    )
    address.keep("source", chosen)
    if chosen is None:
        return
    row = sources[chosen]
    html(source_card(row))
    if row["grade"] == "captured":
        _archived(chosen, row["sha256"])
    elif row["facts"]:
        st.caption("What was copied from it")
        table(frames.pairs(row["facts"]), label="What was copied from the source")


def _archived(evidence_id: str, sha256: str | None) -> None:
    """Show the bytes of a captured source as text, which a browser never takes for a page."""
    try:
        opened = open_capture(data.home(), evidence_id)
    except EvidenceError as error:
        st.error("The archived bytes cannot be shown.")
        st.code(str(error), language=None, wrap_lines=True)
        return
    capture = opened.capture
    st.text(
        f"{capture.size:,} bytes of {capture.media_type}, answered with status {capture.status} "
        f"at {capture.fetched:%Y-%m-%d %H:%M} UTC, hashed again just now."
    )
    if sha256 in (None, capture.sha256):
        st.text("The sha256 is right.")
    else:
        st.error("The record names another sha256 than these bytes have:")
        st.code(capture.sha256, language=None, wrap_lines=True)
    if opened.text is None:
        st.text("These bytes are no text, so they are not shown.")
    else:
        part = 1
        if opened.parts > 1:
            part = int(st.number_input(f"Part, of {opened.parts}", 1, opened.parts, key="part"))
        st.code(opened.part(part), language=None, wrap_lines=True, height=360)
    st.download_button(
        "Download the bytes",
        opened.body,
        f"{capture.sha256[:16]}.bin",
        "application/octet-stream",
        on_click="ignore",
    )


if __name__ == "__main__":
    render()
