"""Charts of citation links: pure functions from a frame to an Altair chart."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.charts import Layers, legend
from dashboard.citation_queries import ROLES
from dashboard.marks import BLUE, ORANGE, VERMILION

_NAMES = [*ROLES.values(), "the paper itself"]
_COLOURS = alt.Scale(domain=_NAMES, range=[ORANGE, BLUE, VERMILION])
_SHAPES = alt.Scale(domain=_NAMES, range=["square", "circle", "diamond"])


def _across() -> alt.X:
    return alt.X(
        "year:Q",
        title="year of first posting",
        scale=alt.Scale(zero=False, nice=False, padding=14),
        axis=alt.Axis(format="d", grid=False, tickMinStep=1),
    )


def graph(frame: pd.DataFrame, *, height: int = 460) -> Layers:
    """Return the paper between the papers it cites, below, and those that cite it, above.

    Args:
        frame: see ``citation_frames.graph``.
        height: of the plot, or of plot and legend where the page fits them into it.
    """
    up_and_down = alt.Y("lane:Q", axis=None)
    base = alt.Chart(frame)
    colour = alt.Color("link:N", scale=_COLOURS, legend=legend(2))
    edges = base.mark_rule(strokeWidth=0.8, opacity=0.4).encode(
        x=_across(), y=up_and_down, x2="from_year:Q", y2="from_lane:Q", color=colour
    )
    nodes = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=_across(),
        y=up_and_down,
        color=colour,
        shape=alt.Shape("link:N", scale=_SHAPES, legend=legend(2)),
        tooltip=["title:N", "paper:N", alt.Tooltip("year:Q", format="d"), "link:N", "found:N"],
    )
    return alt.layer(edges, nodes, height=height)


def timeline(frame: pd.DataFrame, *, height: int = 220) -> Layers:
    """Return the number of cited and citing papers by year, as bars; see ``by_year``."""
    scale = alt.Scale(domain=_NAMES[:2], range=[ORANGE, BLUE])
    colour = alt.Color("link:N", scale=scale, legend=legend(2))
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("year:O", title="year of first posting", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("papers:Q", title="papers", axis=alt.Axis(tickMinStep=1)),
            color=colour,
            tooltip=["year:O", "link:N", "papers:Q"],
        )
    )
    return alt.layer(bars, height=height)
