"""SQL: one reading statement at a time, sealed off from files, network and settings."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import address, charts, data, frames, queries
from dashboard.page import chart, downloads, empty
from records.errors import QueryError
from records.index import Result
from records.questions import ready_questions

_KEY = "q"
_MOST_PAGES = 1_000


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

    def from_the_start() -> None:
        st.session_state["page"] = 1

    def take() -> None:
        from_the_start()
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
    text = st.text_area("Statement", key=_KEY, height=170, on_change=from_the_start)
    st.button("Run", type="primary", help="Ctrl+Enter in the editor runs it too")
    st.caption(
        f"Read-only. Stopped after {data.SQL_SECONDS:g} s; {data.SQL_ROWS} rows a page. "
        "The page's address carries the statement: copy it to share."
    )
    address.keep(_KEY, text)
    return text


def _result(statement: str) -> None:
    page = _page()
    address.keep("page", str(page) if page > 1 else None)
    if not statement.strip():
        empty("Write a statement, or choose a ready question.")
        return
    try:
        result = data.answer(statement, page)
    except QueryError as error:
        st.error("The statement was not answered:")
        st.code(str(error), language=None, wrap_lines=True)
        return
    frame = frames.showable(result.frame())
    _size(result, page, len(frame))
    st.dataframe(frame, hide_index=True, alt="Result of the statement")
    _chart(frame)
    if page == 1 and not result.truncated:
        downloads(frame, "result")
    elif st.button("Fetch all rows for a download"):
        try:
            downloads(frames.showable(data.whole_answer(statement)), "result")
        except QueryError as error:
            st.error("All rows at once cannot be had:")
            st.code(str(error), language=None, wrap_lines=True)


def _page() -> int:
    """Return the page of the result that the reader wants."""
    if "page" not in st.session_state:
        wanted = st.query_params.get("page", "")
        number = wanted.isascii() and wanted.isdecimal() and len(wanted) < len(str(_MOST_PAGES)) + 1
        known = number and 0 < int(wanted) <= _MOST_PAGES
        st.session_state["page"] = int(wanted) if known else 1
    return int(st.session_state["page"])


def _size(result: Result, page: int, rows: int) -> None:
    """Say how many rows are shown, and let the reader turn the page where there are more."""
    if page == 1 and not result.truncated:
        st.text(f"{rows} rows" if rows != 1 else "1 row")
        return
    first = (page - 1) * data.SQL_ROWS
    more = "there are more" if result.truncated else "the last"
    st.text(f"rows {first + 1} to {first + rows}: {more}" if rows else "no row on this page")
    st.number_input("Page", 1, _MOST_PAGES, key="page")
    st.caption("Rows keep their places over pages only where the statement has an ORDER BY.")


def _chart(frame: pd.DataFrame) -> None:
    """Draw the rows, where the reader asks for it and there is a number to draw."""
    numbers = list(frame.select_dtypes("number", exclude="timedelta").columns)
    if frame.empty or not numbers:
        return
    address.start_one("draw", charts.RESULT_MARKS)
    kind = st.pills("Draw it as", list(charts.RESULT_MARKS), key="draw")
    address.keep("draw", kind)
    if kind is None:
        return
    columns = list(map(str, frame.columns))
    across, up, by = st.columns(3)
    with across:
        x = str(_column("Across", "x", columns, 0))
    with up:
        y = str(_column("Up", "y", numbers, len(numbers) - 1))
    with by:
        series = _column("Colour", "colour", columns, None)
    drawn = charts.of_result(frame, x, y, kind, series)
    chart(drawn, label=f"{y} against {x}, one mark a row; the rows are in the table above")


def _column(label: str, key: str, columns: list[str], index: int | None) -> str | None:
    """Return the column that the reader chooses, or the address names."""
    address.start_one(key, columns)
    if index is not None and key not in st.session_state:
        st.session_state[key] = columns[index]
    chosen = st.selectbox(label, columns, index=None, key=key, placeholder="none")
    address.keep(key, chosen)
    return chosen


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
