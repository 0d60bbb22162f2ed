"""What the pages share: errors as text, the choice of a paper, tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from markupsafe import Markup

from dashboard import address, data, frames, queries
from dashboard.charts import Layers
from dashboard.marks import MEANINGS
from dashboard.markup import badge, plain_markdown
from records.errors import FwpError

_PAPER = "chosen paper"


def show(render: Callable[[], None]) -> None:
    """Run a page; an error of ours is shown as a message with its next step, not as a trace."""
    try:
        for problem in data.problems():
            st.warning(plain_markdown(problem))
        render()
    except FwpError as error:
        st.error("This page could not be shown.")
        st.code(str(error), language=None, wrap_lines=True)


def html(body: Markup) -> None:
    """Show HTML that was put together from escaped parts."""
    st.html(str(body))


def empty(text: str) -> None:
    """Say why there is nothing here and what to do about it; ``text`` is Markdown of our own."""
    st.info(text, icon=":material/info:")


def chosen_paper() -> dict[str, object] | None:
    """Return the paper whose claims are shown, chosen by the reader where there are several."""
    papers = frames.records(queries.subjects(data.ask))
    if not papers:
        empty("The workspace holds no paper yet. Add one with `fwp import FOLDER`.")
        return None
    if len(papers) == 1:
        return papers[0]
    titles = {str(p["paper_id"]): f"{p['title']} ({p['paper_id']})" for p in papers}
    if st.session_state.get(_PAPER) not in titles:
        address.start_one("paper", titles)
        st.session_state[_PAPER] = st.session_state.get("paper", next(iter(titles)))

    def remember() -> None:
        st.session_state[_PAPER] = st.session_state["paper"]

    # a page does not know what another page's widget says, so each begins with what was remembered
    st.session_state["paper"] = st.session_state[_PAPER]
    chosen = st.selectbox(
        "Paper", list(titles), format_func=titles.__getitem__, key="paper", on_change=remember
    )
    address.keep("paper", chosen)
    return next(p for p in papers if p["paper_id"] == chosen)


def chosen_part(key: str, names: Mapping[str, str]) -> str:
    """Return which of several parts the reader has chosen, the first unless the address says so.

    Only what is chosen need be drawn, while tabs would draw all. ``names`` are the labels by id.
    """
    address.start_one(key, names)
    if key not in st.session_state:
        st.session_state[key] = next(iter(names))
    chosen = st.segmented_control(
        key.capitalize(),
        list(names),
        key=key,
        format_func=lambda name: plain_markdown(names[name]),
        required=True,
    )
    address.keep(key, chosen)
    return str(chosen)


def table(frame: pd.DataFrame, *, label: str, height: int | None = None) -> None:
    """Show a frame as a table; ``label`` describes it to a screen reader."""
    st.dataframe(
        frames.showable(frame),
        hide_index=True,
        column_config=column_config(frame),
        height=height or "auto",
        placeholder="",
        alt=label,
    )


def column_config(frame: pd.DataFrame) -> dict[str, Any]:
    """Return wide columns for long texts and links for addresses."""
    wide = {"claim", "statement", "reason", "excerpt", "signature", "source"}
    config: dict[str, Any] = {
        name: st.column_config.TextColumn(width="large") for name in frame.columns if name in wide
    }
    if "url" in frame.columns:
        config["url"] = st.column_config.LinkColumn("link", display_text="open", width="small")
    return config


def chart(drawn: Layers, *, label: str) -> None:
    """Show a chart over the page's width; ``label`` describes it to a screen reader.

    The tests hold every chart against Vega-Lite's schema; doing it here again would take longer
    than all else that makes the page.
    """
    st.vega_lite_chart(drawn.to_dict(validate=False), width="stretch", alt=label)


def downloads(frame: pd.DataFrame, name: str) -> None:
    """Offer a frame as CSV and as Parquet; the bytes are made when a button is pressed."""
    left, right = st.columns(2)
    left.download_button(
        f"Download {name} as CSV",
        lambda: frame.to_csv(index=False),
        f"{name}.csv",
        "text/csv",
        key=f"{name}-csv",
        on_click="ignore",
    )
    right.download_button(
        f"Download {name} as Parquet",
        lambda: frames.parquet(frame),
        f"{name}.parquet",
        "application/vnd.apache.parquet",
        key=f"{name}-parquet",
        on_click="ignore",
    )


def meanings() -> None:
    """Offer what the verdicts mean."""
    with st.expander("What the verdicts mean"):
        for name, meaning in MEANINGS.items():
            html(Markup("{} {}").format(badge(name), meaning))


def counted(number: int, noun: str) -> str:
    """Return '1 claim', '2 claims'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
