"""Charts for dashboard and report: pure functions from a frame to an Altair chart."""

from __future__ import annotations

import math
import re
from typing import Any

import altair as alt
import pandas as pd

from dashboard.marks import BLUE, SERIES, SHAPES, VERDICTS

Layers = alt.LayerChart | alt.FacetChart
_SMALLEST_LABELLED_SHARE = 0.055


def coverage(frame: pd.DataFrame) -> Layers:
    """Return stacked bars: the share of each kind's claims that has each verdict.

    Args:
        frame: columns ``kind``, ``verdict``, ``claims`` and ``of_kind`` (all claims of the kind).
            A part says its symbol and number where there is room for them; the symbols are
            explained by ``markup.legend``, which wraps where a chart's legend would be cut off.
    """
    bars = alt.Chart(_coverage_parts(frame)).encode(
        y=alt.Y("row:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, ticks=False)),
        order=alt.Order("place:Q"),
        tooltip=["kind:N", "verdict:N", "claims:Q"],
    )
    names = list(VERDICTS)
    drawn = bars.mark_bar(height={"band": 0.72}, stroke="#ffffff", strokeWidth=1).encode(
        x=alt.X("start:Q", title="share of claims", axis=alt.Axis(format="%", grid=False)),
        x2="end:Q",
        color=alt.Color(
            "name:N",
            title=None,
            scale=alt.Scale(
                domain=[f"{VERDICTS[n].symbol} {n}" for n in names],
                range=[VERDICTS[n].colour for n in names],
            ),
            legend=None,
        ),
    )
    labels = bars.mark_text(fontWeight="bold", fontSize=12).encode(
        x="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None)
    )
    return alt.layer(drawn, labels, height=alt.Step(38))


def _coverage_parts(frame: pd.DataFrame) -> pd.DataFrame:
    parts = frame.copy()
    parts["place"] = [list(VERDICTS).index(verdict) for verdict in parts["verdict"]]
    share = parts["claims"] / parts["of_kind"]
    parts["end"] = share.groupby(parts["kind"], sort=False).cumsum()
    parts["start"] = parts["end"] - share
    parts["middle"] = parts["end"] - share / 2
    marks = [VERDICTS[verdict] for verdict in parts["verdict"]]
    parts["ink"] = [mark.on_colour for mark in marks]
    parts["name"] = [f"{m.symbol} {v}" for m, v in zip(marks, parts["verdict"], strict=True)]
    parts["label"] = [
        f"{mark.symbol} {count}" if part >= _SMALLEST_LABELLED_SHARE else ""
        for mark, count, part in zip(marks, parts["claims"], share, strict=True)
    ]
    parts["row"] = [
        f"{str(kind).replace('_', ' ')} ({total})"
        for kind, total in zip(parts["kind"], parts["of_kind"], strict=True)
    ]
    return parts


def curves(
    frame: pd.DataFrame, *, metric: str, claimed: float | None = None, logarithmic: bool = False
) -> Layers:
    """Return training curves, one line a ``series``, over ``step``.

    Args:
        frame: columns ``series``, ``step`` and ``value``.
        metric: the title of the y axis.
        claimed: a claimed value to be marked by a dashed line.
        logarithmic: whether the y axis is; points that are not above zero are left out then.
    """
    points = frame[frame["value"] > 0] if logarithmic else frame
    lines = (
        alt.Chart(points)
        .mark_line(point=alt.OverlayMarkDef(size=28))
        .encode(
            x=alt.X("step:Q", title="training step", axis=alt.Axis(grid=False)),
            y=alt.Y("value:Q", title=metric, scale=scale(logarithmic), axis=alt.Axis(tickCount=6)),
            color=alt.Color("series:N", legend=legend(1), scale=colours(frame)),
            shape=alt.Shape("series:N", legend=legend(1), scale=shapes(frame)),
            tooltip=["series:N", "step:Q", alt.Tooltip("value:Q", format=".4g")],
        )
    )
    if claimed is None or (logarithmic and claimed <= 0):
        return alt.layer(lines, height=260)
    return alt.layer(lines, *claimed_rule(claimed), height=260)


RESULT_MARKS = ("bars", "lines", "points")
"""How the rows of a statement can be drawn."""


def of_result(frame: pd.DataFrame, x: str, y: str, kind: str, series: str | None = None) -> Layers:
    """Return the rows of an SQL result as bars, lines or points.

    Args:
        frame: the rows, of which those without a finite ``y`` are left out.
        x: the column across; numbers and times on their scale, all else by name.
        y: a column of numbers.
        kind: one of ``RESULT_MARKS``; bars are by name in any case.
        series: a column whose values are told apart by colour and shape; None for one series.
    """
    values = pd.to_numeric(frame[y], errors="coerce")
    points = pd.DataFrame({"x": frame[x], "y": values.astype(float)})
    points["series"] = "" if series is None else frame[series].astype(str)
    points = points[points["y"].abs() < math.inf]
    type_ = "N" if kind == "bars" else _type(points["x"])
    if type_ == "N":
        points["x"] = points["x"].astype(str)
    colour = alt.Undefined if series is None else _by_series(points)
    base = alt.Chart(points).encode(
        x=alt.X(f"x:{type_}", title=x, sort=None, axis=alt.Axis(labelLimit=240)),
        y=alt.Y("y:Q", title=y),
        tooltip=[alt.Tooltip(f"x:{type_}", title=x), alt.Tooltip("y:Q", title=y), "series:N"],
        color=colour,
    )
    marks = {
        "bars": base.mark_bar(color=BLUE),
        "lines": base.mark_line(color=BLUE, point=True),
        "points": base.mark_point(color=BLUE, filled=True, size=50, opacity=0.8),
    }
    return alt.layer(marks[kind], height=340)


def _type(values: pd.Series) -> str:
    """Return Vega-Lite's letter for the scale that values have: quantity, time or name."""
    if pd.api.types.is_bool_dtype(values):
        return "N"
    if pd.api.types.is_numeric_dtype(values):
        return "Q"
    return "T" if pd.api.types.is_datetime64_any_dtype(values) else "N"


def _by_series(points: pd.DataFrame) -> alt.Color:
    return alt.Color("series:N", title=None, scale=colours(points), legend=legend(2))


def claimed_rule(claimed: float) -> tuple[alt.Chart, alt.Chart]:
    """Return a dashed line at a claimed value, and its label."""
    base = alt.Chart(pd.DataFrame({"value": [claimed], "label": [f"claimed {claimed:.4g}"]}))
    rule = base.mark_rule(strokeDash=[6, 4], color="#7f7f7f", strokeWidth=1.5).encode(y="value:Q")
    text = base.mark_text(align="left", dx=6, dy=-8, color="#7f7f7f", fontSize=12)
    return rule, text.encode(x=alt.value(0), y="value:Q", text="label:N")


def scale(logarithmic: bool) -> alt.Scale:
    """Return the scale of a y axis."""
    return alt.Scale(type="log") if logarithmic else alt.Scale(zero=True)


def legend(columns: int) -> alt.Legend:
    """Return a legend above the plot, of so many columns."""
    return alt.Legend(title=None, orient="top", columns=columns, labelLimit=420, symbolOpacity=1)


def _names(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(map(str, frame["series"])))


def colours(frame: pd.DataFrame) -> alt.Scale:
    """Return the colours of the frame's series, in their order."""
    names = _names(frame)
    return alt.Scale(domain=names, range=[SERIES[i % len(SERIES)] for i in range(len(names))])


def shapes(frame: pd.DataFrame) -> alt.Scale:
    """Return the shapes of the frame's series, in their order."""
    names = _names(frame)
    return alt.Scale(
        domain=names,
        range=[SHAPES[(i + i // len(SERIES)) % len(SHAPES)] for i in range(len(names))],
    )


def png(chart: Layers, width: int = 760) -> bytes:
    """Return a chart as a PNG on white, sharp enough for a dense screen."""
    import vl_convert

    spec = _sized(chart, width) | {"background": "white"}
    return bytes(vl_convert.vegalite_to_png(spec, scale=1.5, allowed_base_urls=[]))


def _sized(chart: Layers, width: int) -> dict[str, Any]:
    sized = chart if isinstance(chart, alt.FacetChart) else chart.properties(width=width)
    return dict(sized.configure_view(stroke=None).to_dict())


def svg(chart: Layers, name: str, width: int = 640) -> str:
    """Return a chart as an SVG element without any outside reference.

    ``name`` makes its inner ids unique on a page that shows several charts; ``width`` is that of
    a single plot, while small multiples keep their own.
    """
    import vl_convert

    spec = _sized(chart, width) | {
        "background": "transparent",
        "padding": {"left": 24, "right": 8, "top": 5, "bottom": 5},
    }
    text = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    text = re.sub(r"<svg ([^>]*?)width=\"[\d.]+\" height=\"[\d.]+\"", r"<svg \1", text, count=1)
    return re.sub(r"\b((?:clip|gradient)_?\d+)\b", rf"{name}-\1", text)
