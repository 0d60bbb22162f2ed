"""Widgets and the page's address: what was chosen stands in the address, by its id.

Streamlit's own binding writes an option's label into the address; an id stays right when a label
is reworded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from dashboard.markup import plain_markdown


def start_one(key: str, options: Collection[str]) -> None:
    """Let a widget of one choice start at what the address names, and forget a vanished option."""
    if key not in st.session_state:
        wanted = st.query_params.get(key)
        if wanted in options:
            st.session_state[key] = wanted
        elif wanted:
            st.warning(
                f"The address asks for {plain_markdown(key)} “{plain_markdown(wanted[:200])}”, "
                "which is not here. What is shown is another."
            )
    elif st.session_state[key] not in options:
        del st.session_state[key]


def start_several(key: str, options: Collection[str], most: int | None = None) -> None:
    """Let a widget of several choices start at those that the address names, ``most`` of them."""
    chosen = st.session_state[key] if key in st.session_state else st.query_params.get_all(key)
    known = dict.fromkeys(option for option in chosen or () if option in options)
    st.session_state[key] = list(known)[:most]


def start_text(key: str, default: str = "") -> None:
    """Let a text field start at the text in the address."""
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(key) or default


def start_switch(key: str) -> None:
    """Let a switch start as the address says."""
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(key) == "on"


def keep(key: str, value: str | bool | Sequence[str] | None) -> None:
    """Write what was chosen into the address; nothing chosen takes it away."""
    if not value:
        st.query_params.pop(key, None)
    elif value is True:
        st.query_params[key] = "on"
    else:
        st.query_params[key] = value
