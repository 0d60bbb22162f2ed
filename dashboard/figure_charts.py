"""Charts of the paper's experiments: pure functions from a frame to an Altair chart."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from dashboard.charts import Layers, claimed_rule, colours, legend, scale, shapes
from records.front import front

_WHOSE = ("claimed", "measured")
_PANEL = {"width": 175, "height": 120}


def by_size(
    frame: pd.DataFrame,
    *,
    metric: str,
    logarithmic: bool = False,
    columns: int = 2,
    height: int = 340,
) -> Layers:
    """Return a metric against the size S for each series, as the paper's figures do.

    Args:
        frame: columns ``series``, ``S``, ``value``, ``spread`` (standard deviation over seeds, or
            missing), ``whose`` (``claimed`` or ``measured``), ``claim_id`` and ``verdict``.
            Claimed points are hollow and joined by a line, measured ones are filled and stand on
            a bar of one spread up and down.
        metric: the title of the y axis.
        logarithmic: whether the y axis is; points that are not above zero are left out then.
        columns: columns of the legend.
        height: of the plot, or of plot and legend where the page fits them into it.
    """
    points = _with_bars(frame, logarithmic)
    key = legend(columns)
    layers = _sized_layers(points, frame, metric, logarithmic, key, (45, 80))
    return alt.layer(*layers, data=points, height=height)


def by_size_panels(
    frame: pd.DataFrame, *, metric: str, logarithmic: bool = False, columns: int = 4
) -> Layers:
    """Return ``by_size`` in small multiples, one panel a series, all on the same axes.

    ``columns`` is how many panels stand side by side; the other arguments are those of
    ``by_size``.
    """
    points = _with_bars(frame, logarithmic)
    layers = _sized_layers(points, frame, metric, logarithmic, None, (18, 30))
    panel = alt.Facet("series:N", sort=list(dict.fromkeys(frame["series"])), title=None)
    return alt.layer(*layers, data=points, **_PANEL).facet(facet=panel, columns=columns)


def _sized_layers(
    points: pd.DataFrame,
    frame: pd.DataFrame,
    metric: str,
    logarithmic: bool,
    key: alt.Legend | None,
    sizes: tuple[int, int],
) -> list[alt.Chart]:
    base = alt.Chart().encode(
        x=alt.X("S:Q", title="S, number of associations", axis=alt.Axis(grid=False, tickCount=6)),
        y=alt.Y("value:Q", title=metric, scale=scale(logarithmic), axis=alt.Axis(tickCount=6)),
        color=alt.Color("series:N", legend=key, scale=colours(frame)),
        tooltip=[
            "series:N",
            "whose:N",
            "S:Q",
            *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("value", "spread")),
            "verdict:N",
        ],
    )
    shape = alt.Shape("series:N", legend=key, scale=shapes(frame))
    claimed, measured = (base.transform_filter(f"datum.whose == '{w}'") for w in _WHOSE)
    # no shape on the line: it would bring a filled point with it
    layers = [claimed.mark_line(strokeWidth=1, opacity=0.5)]
    if points["spread"].notna().any():
        spread = base.transform_filter("isValid(datum.spread)")
        layers.append(spread.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"))
    hollow = claimed.mark_point(filled=False, size=sizes[0], strokeWidth=1.3, opacity=1)
    filled = measured.mark_point(filled=True, size=sizes[1], opacity=1)
    return [*layers, hollow.encode(shape=shape), filled.encode(shape=shape)]


def _with_bars(frame: pd.DataFrame, logarithmic: bool) -> pd.DataFrame:
    """Return the points that can be shown, with both ends of the bar of their spread.

    On a logarithmic axis a bar that would reach 0 ends at the smallest value shown.
    """
    points = frame[frame["value"] > 0] if logarithmic else frame
    points = points.assign(
        low=points["value"] - points["spread"], high=points["value"] + points["spread"]
    )
    if logarithmic and len(points):
        floor = points["value"].min()
        points["low"] = points["low"].where(points["low"].isna() | (points["low"] > 0), floor)
    return points


def logged_and_measured(
    frame: pd.DataFrame,
    *,
    metric: str,
    claimed: float | None = None,
    logarithmic: bool = True,
    height: int = 380,
) -> Layers:
    """Return training curves: the authors' logs as thin lines, ours as points on thick ones.

    Args:
        frame: columns ``series``, ``whose`` (``logged`` or ``measured``), ``line`` (what tells
            several curves of one series apart), ``step`` and ``value``.
        metric: the title of the y axis.
        claimed: a claimed value to be marked by a dashed line.
        logarithmic: whether the y axis is; points that are not above zero are left out then.
        height: of the plot, or of plot and legend where the page fits them into it.
    """
    points = frame[frame["value"] > 0] if logarithmic else frame
    key = legend(2)
    base = alt.Chart().encode(
        x=alt.X("step:Q", title="training step", axis=alt.Axis(grid=False)),
        y=alt.Y("value:Q", title=metric, scale=scale(logarithmic), axis=alt.Axis(tickCount=6)),
        color=alt.Color("series:N", legend=key, scale=colours(frame)),
        detail="line:N",
        tooltip=["series:N", "whose:N", "step:Q", alt.Tooltip("value:Q", format=".4g")],
    )
    shape = alt.Shape("series:N", legend=key, scale=shapes(frame))
    logged, measured = (base.transform_filter(f"datum.whose == '{w}'") for w in _CURVES)
    layers = [
        measured.mark_line(strokeWidth=4, opacity=0.35),
        # a training that ended at its first evaluation has no line, only the dot on it
        logged.mark_line(strokeWidth=1.2, point=alt.OverlayMarkDef(size=9)),
        measured.mark_point(filled=True, size=34, opacity=0.9).encode(shape=shape),
    ]
    drawn = alt.layer(*layers, data=points)
    if claimed is None or math.isnan(claimed) or (logarithmic and claimed <= 0):
        return drawn.properties(height=height)
    return alt.layer(drawn, *claimed_rule(claimed), height=height)


_CURVES = ("logged", "measured")


def on_front(frame: pd.DataFrame) -> pd.Series:
    """Tell which points are on the Pareto front of their ``whose``; see ``records.front``.

    Points of different ``whose`` did different tasks and are not compared.
    """
    rows = list(zip(frame["whose"], frame["bytes"], frame["accuracy"], strict=True))
    fronts = {whose: front((b, a) for w, b, a in rows if w == whose) for whose, _, _ in rows}
    kept = [(size, accuracy) in fronts[whose] for whose, size, accuracy in rows]
    return pd.Series(kept, index=frame.index, dtype=bool)


def pareto(frame: pd.DataFrame, *, height: int = 380) -> Layers:
    """Return accuracy against the bytes of state, one line a mixer, with each Pareto front.

    Args:
        frame: columns ``mixer``, ``bytes``, ``accuracy`` and ``whose`` (``literature``, or whose
            name says at which scale). The literature's points are hollow on dashed lines, ours
            filled on solid ones; the points of a front stand on its grey steps, within a ring.
        height: of the plot, or of plot and legend where the page fits them into it.
    """
    points = frame.assign(series=frame["mixer"], front=on_front(frame))
    key = legend(5)
    base = alt.Chart().encode(
        x=alt.X(
            "bytes:Q",
            title="bytes of state",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(grid=False, format=",", labelOverlap="greedy"),
        ),
        y=alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(zero=False)),
        color=alt.Color("series:N", legend=key, scale=colours(points)),
        detail="whose:N",
        tooltip=[
            "mixer:N",
            "whose:N",
            alt.Tooltip("bytes:Q", format=","),
            alt.Tooltip("accuracy:Q", format=".4g"),
            alt.Tooltip("front:N", title="on the front"),
        ],
    )
    theirs = base.transform_filter("datum.whose == 'literature'")
    ours = base.transform_filter("datum.whose != 'literature'")
    shape = alt.Shape("series:N", legend=key, scale=shapes(points))
    ringed = base.transform_filter("datum.front")
    grey = alt.value("#7f7f7f")
    layers = (
        ringed.mark_line(interpolate="step-after", strokeWidth=5, opacity=0.25).encode(color=grey),
        theirs.mark_line(strokeWidth=1.2, strokeDash=[5, 3]),
        ours.mark_line(strokeWidth=1.6),
        theirs.mark_point(filled=False, size=60, opacity=1).encode(shape=shape),
        ours.mark_point(filled=True, size=80, opacity=1).encode(shape=shape),
        ringed.mark_point(filled=False, size=230, strokeWidth=1.4).encode(color=grey),
    )
    return alt.layer(*layers, data=points, height=height)
