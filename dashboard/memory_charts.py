"""Charts of the Memory page: pure functions from a frame to an Altair chart."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.charts import Layers, colours, legend, shapes


def returned(frame: pd.DataFrame) -> Layers:
    """Return what one rule returns for each key, as a map of keys by digits.

    Args:
        frame: columns ``key``, ``digit``, ``returned`` and ``written`` of one rule; the digit last
            written at a key stands in a box. A colour is always accompanied by its number.
    """
    reach = max(1.0, float(frame["returned"].abs().max()))
    boxed = frame.assign(boxed=frame["digit"] == frame["written"])
    base = alt.Chart(boxed).encode(
        x=alt.X("digit:O", title="digit", axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("key:N", title="key", sort=None),
        tooltip=["key:N", "digit:O", alt.Tooltip("returned:Q", format=".3f"), "written:O"],
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "returned:Q",
            scale=alt.Scale(domain=[-reach, 0, reach], range=["#d55e00", "#f4f4f4", "#0072b2"]),
            legend=None,
        )
    )
    strong = f"abs(datum.returned) > {0.6 * reach}"
    ink = alt.condition(strong, alt.value("#ffffff"), alt.value("#222222"))
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text("returned:Q", format=".1f"), color=ink
    )
    box = base.transform_filter("datum.boxed").mark_rect(
        filled=False, stroke="#e69f00", strokeWidth=2.5
    )
    return alt.layer(cells, numbers, box, height=alt.Step(26))


def error_by_count(frame: pd.DataFrame, d_key: int, *, height: int = 320) -> Layers:
    """Return the error of the read against the number of keys, a line a rule, d_dot marked.

    Args:
        frame: columns ``rule``, ``keys`` and ``error``.
        d_key: the length of the keys; a dashed line stands there.
        height: of the plot, or of plot and legend where the page fits them into it.
    """
    points = frame.assign(series=frame["rule"])
    base = alt.Chart(points).encode(
        x=alt.X("keys:Q", title="number of keys", axis=alt.Axis(grid=False)),
        y=alt.Y("error:Q", title="relative error of the read", scale=alt.Scale(zero=True)),
        color=alt.Color("series:N", legend=legend(3), scale=colours(points)),
        tooltip=["rule:N", "keys:Q", alt.Tooltip("error:Q", format=".3g")],
    )
    shape = alt.Shape("series:N", legend=legend(3), scale=shapes(points))
    mark = alt.Chart(pd.DataFrame({"keys": [d_key], "label": [f"d_dot = {d_key}"]}))
    rule = mark.mark_rule(strokeDash=[6, 4], color="#7f7f7f").encode(x="keys:Q")
    text = mark.mark_text(align="left", dx=5, dy=10, color="#7f7f7f", fontSize=12).encode(
        x="keys:Q", y=alt.value(0), text="label:N"
    )
    lines = base.mark_line(strokeWidth=1.6)
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(shape=shape)
    return alt.layer(rule, text, lines, dots, height=height)
