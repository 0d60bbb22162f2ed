"""Cached, read-only answers of the store for the dashboard.

An answer is kept for one state of the ledger: as soon as another process adds a batch, the next
page view asks again. Nothing here holds the index open between two questions.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from records.errors import StoreIndexError
from records.index import Index, Result
from records.workspace import Workspace, default_home, open_workspace

SQL_SECONDS = 10.0
SQL_ROWS = 1000
_PAGE_SECONDS = 60.0


def home() -> Path:
    """Return the workspace folder: FWP_HOME, or ./workspace."""
    return default_home().resolve()


def workspace() -> Workspace:
    """Return the workspace, opened once for as long as its ledger is there."""
    folder = home()
    if not (folder / "ledger").is_dir():
        _opened.clear()
    return _opened(folder)


@st.cache_resource(show_spinner="Opening the workspace")
def _opened(folder: Path) -> Workspace:
    return open_workspace(folder)


def ask(sql: str) -> pd.DataFrame:
    """Answer one statement of the dashboard's own; see ``records.workspace.Workspace.query``."""
    return _answer(sql, _PAGE_SECONDS, None).frame()


def answer(sql: str, page: int = 1) -> Result:
    """Return one page of ``SQL_ROWS`` rows of the answer to a user's statement.

    Raises:
        QueryError: the statement is wrong, not permitted, or took longer than ``SQL_SECONDS``.
    """
    return _answer(sql, SQL_SECONDS, SQL_ROWS, (page - 1) * SQL_ROWS)


def whole_answer(sql: str) -> pd.DataFrame:
    """Return all rows of the answer to a user's statement, for a download; they are not kept.

    Raises:
        QueryError: as ``answer`` does, or there are more rows than one answer may have.
    """
    return workspace().query(sql, timeout=SQL_SECONDS).frame()


def _answer(sql: str, seconds: float, most: int | None, skip: int = 0) -> Result:
    opened = workspace()
    return _cached(opened.home, Index(opened.home).fingerprint(), sql, seconds, most, skip)


@st.cache_data(show_spinner=False, max_entries=200)
def _cached(
    folder: Path, state: str, sql: str, seconds: float, most: int | None, skip: int
) -> Result:
    """Ask the store; ``state`` is only there to be part of the cache's key."""
    try:
        return Workspace(folder).query(sql, timeout=seconds, limit=most, skip=skip)
    except StoreIndexError:
        # the index was deleted between its refresh and the question: build it and ask again
        return Workspace(folder).query(sql, timeout=seconds, limit=most, skip=skip)


def problems() -> tuple[str, ...]:
    """Return a sentence for each part of the ledger that could not be read."""
    return workspace().problems()
