"""Memory: write pairs into a small fast-weight memory and see which rules return them.

The one page that computes: it imports torch, and only when it is opened.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import address, memory, memory_charts
from dashboard.markup import plain_markdown
from dashboard.page import chart, empty, table
from records.errors import ConfigError

EXAMPLES = {
    "Two keys, apart": "A=3 B=5",
    "A key overwritten": "A=3 B=5 A=7 C=1",
    "As many keys as d_dot": "A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8",
    "More keys than d_dot": "A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8 I=9 J=0 K=1 L=2",
}
_FIRST = "A key overwritten"
_KEYS = {"orthogonal": "orthogonal, as far as d_dot allows", "random": "random directions"}


def render() -> None:
    """Show the page."""
    st.title("Memory")
    st.markdown(
        "A fast-weight memory is a matrix. The **sum** rule adds each pair to it; the **gated "
        "sum** lets the whole matrix fade a little at each write; the **delta** rule first reads "
        "what stands at the key and writes only the difference. All below is computed by "
        "`reimpl/rules.py`, the reference that the experiments are held against."
    )
    d_key, beta, orthogonal = _settings()
    _own_pairs(d_key, beta, orthogonal)
    _capacity(d_key, beta, orthogonal)


def _settings() -> tuple[int, float, bool]:
    left, middle, right = st.columns(3)
    with left:
        d_key = int(_number("d_dot, length of a key", "d", 8.0, (2.0, 32.0, 1.0)))
    with middle:
        beta = _number("β, write strength (gated sum and delta)", "beta", 1.0, (0.0, 1.0, 0.05))
    with right:
        address.start_one("keys", _KEYS)
        kind = st.radio("Keys", list(_KEYS), format_func=_KEYS.__getitem__, key="keys")
        address.keep("keys", kind)
    st.caption(
        "At β = 1 the delta rule replaces what stood at a key, and the gated sum forgets all but "
        "the newest pair; below 1 both keep a part of what was there."
    )
    return d_key, beta, kind != "random"


def _number(label: str, key: str, default: float, bounds: tuple[float, float, float]) -> float:
    """Return a number from a slider that starts at the address's, within (low, high, step)."""
    low, high, step = bounds
    if key not in st.session_state:
        try:
            wanted = float(st.query_params.get(key, default))
        except ValueError:
            wanted = default
        known = min(high, max(low, wanted)) if wanted == wanted else default
        st.session_state[key] = round(low + round((known - low) / step) * step, 6)
    value = float(st.slider(label, low, high, step=step, key=key, format="%g"))
    address.keep(key, f"{value:g}")
    return value


def _own_pairs(d_key: int, beta: float, orthogonal: bool) -> None:
    st.subheader("Your own pairs", anchor="pairs")
    address.start_text("pairs", EXAMPLES[_FIRST])

    def take() -> None:
        chosen = st.session_state["example"]
        if chosen is not None:
            st.session_state["pairs"] = EXAMPLES[chosen]

    st.pills("Examples", list(EXAMPLES), key="example", on_change=take)
    text = st.text_input(
        "Pairs in the order of writing: a letter, = and a digit; a letter may come again",
        key="pairs",
    )
    address.keep("pairs", text)
    try:
        writes = memory.parse_writes(text)
    except ConfigError as error:
        empty(plain_markdown(str(error)))
        return
    found = memory.read_back(writes, d_key, beta, orthogonal=orthogonal)
    table(_summary(found), label="For each key the digit last written and what each rule returns")
    st.caption(
        "One line a key, one column a digit: the component of the read that stands for the digit. "
        "The digit last written at the key stands in a box; the largest component is what the "
        "memory returns."
    )
    for column, (rule, rows) in zip(st.columns(3), found.groupby("rule", sort=False), strict=True):
        with column:
            st.markdown(f"**{rule}**")
            chart(memory_charts.returned(rows), label=f"What the {rule} rule returns for each key")


def _summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row a key: what was last written there, and what each rule returns."""
    once = found.drop_duplicates(["rule", "key"])
    marks = once["right"].map({True: "✓ ", False: "✗ "})
    shown = marks + once["returns"]
    wide = once.assign(shown=shown).pivot(index=["key", "written"], columns="rule", values="shown")
    wide = wide[list(dict.fromkeys(once["rule"]))].reset_index()
    wide.columns.name = None
    return wide.rename(columns={"written": "last written"})


def _capacity(d_key: int, beta: float, orthogonal: bool) -> None:
    st.subheader("How many pairs it holds", anchor="capacity")
    passes = int(_number("Times that each pair is written", "passes", 1.0, (1.0, 5.0, 1.0)))
    errors = _errors(d_key, beta, orthogonal, passes)
    chart(
        memory_charts.error_by_count(errors, d_key),
        label="Relative error of the read against the number of keys, for each rule",
    )
    st.caption(
        "Random values at n keys, all read at the end: ‖read − value‖² / ‖value‖², the median of "
        "8 draws. Beyond d_dot keys cannot all be orthogonal, and no rule returns all of them."
    )
    with st.expander("The numbers"):
        wide = errors.pivot(index="keys", columns="rule", values="error").reset_index()
        wide.columns.name = None
        table(wide, label="Relative error by number of keys and rule")


@st.cache_data(show_spinner=False, max_entries=50)
def _errors(d_key: int, beta: float, orthogonal: bool, passes: int) -> pd.DataFrame:
    return memory.error_by_count(d_key, beta, orthogonal=orthogonal, passes=passes)


if __name__ == "__main__":
    render()
