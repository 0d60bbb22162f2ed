"""SQL: one reading statement at a time, sealed off from files, network and settings."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import address, data, frames, queries
from dashboard.page import empty
from records.errors import QueryError
from records.questions import ready_questions

_KEY = "q"


def render() -> None:
    """Show the page."""
    st.title("SQL")
    left, right = st.columns([2, 1])
    with left:
        statement = _editor()
        _result(statement)
    with right:
        _schema()


def _editor() -> str:
    ready = ready_questions()
    address.start_text(_KEY, ready[0].sql)

    def take() -> None:
        chosen = st.session_state["question"]
        if chosen is not None:
            st.session_state[_KEY] = next(q.sql for q in ready if q.title == chosen)

    st.selectbox(
        "Ready questions",
        [q.title for q in ready],
        index=None,
        key="question",
        placeholder="choose one",
        on_change=take,
    )
    text = st.text_area("Statement", key=_KEY, height=170)
    st.button("Run", type="primary", help="Ctrl+Enter in the editor runs it too")
    st.caption(
        f"Read-only. Stopped after {data.SQL_SECONDS:g} s; at most {data.SQL_ROWS} rows are "
        "shown. The page's address carries the statement: copy it to share."
    )
    address.keep(_KEY, text)
    return text


def _result(statement: str) -> None:
    if not statement.strip():
        empty("Write a statement, or choose a ready question.")
        return
    try:
        result = data.answer(statement)
    except QueryError as error:
        st.error("The statement was not answered:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    frame = frames.showable(result.frame())
    if result.truncated:
        st.warning(
            f"There are more rows: these are the first {len(frame)}. Narrow the question, "
            "or use LIMIT and OFFSET."
        )
    st.text(f"{len(frame)} rows" if len(frame) != 1 else "1 row")
    st.dataframe(frame, hide_index=True, alt="Result of the statement")
    st.download_button("Download as CSV", _csv(frame), "result.csv", "text/csv", on_click="ignore")


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False)


def _schema() -> None:
    st.subheader("Tables and views", anchor="schema")
    columns = queries.schema(data.ask)
    for name, rows in columns.groupby("table_name", sort=False):
        kind = "view" if rows["is_view"].iloc[0] else "table"
        with st.expander(f"`{name}` ({kind})"):
            lines = (
                f"{c}  {t}" for c, t in zip(rows["column_name"], rows["data_type"], strict=True)
            )
            st.code("\n".join(lines), language=None)


if __name__ == "__main__":
    render()
