"""The report's pictures and tables of the paper's experiments, where something was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from dashboard import charts, figure_charts, figure_queries, frames
from dashboard.figure_queries import MODE_NAMES
from dashboard.queries import Ask
from records.errors import ConfigError
from records.files import write_whole

Figure = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A chart of a paper's experiments; ``name`` is its own among them, and fit for a file."""

    name: str
    chart: charts.Layers
    label: str
    caption: str


def figures(ask: Ask, paper_id: str, name: str) -> Iterator[Figure]:
    """Yield each picture as ``svg``, ``label`` and ``caption``; ``name`` makes ids unique."""
    for picture in pictures(ask, paper_id):
        svg = Markup(charts.svg(picture.chart, f"{name}-{picture.name}"))
        yield {"svg": svg, "label": picture.label, "caption": picture.caption}


def write_pictures(ask: Ask, paper_id: str, folder: Path) -> list[Path]:
    """Write every picture of a paper as ``NAME.png`` into a folder, which is made; return them.

    Raises:
        ConfigError: the folder or a file in it cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures(ask, paper_id):
            path = folder / f"{picture.name}.png"
            write_whole(path, charts.png(picture.chart))
            written.append(path)
    except OSError as error:
        raise ConfigError(f"cannot write pictures into {folder}: {error.strerror}") from error
    return written


def pictures(ask: Ask, paper_id: str) -> Iterator[Picture]:
    """Yield metric against S, the same in panels for each mode, curves, and recall by state."""
    for row in frames.records(figure_queries.sized_experiments(ask, paper_id)):
        yield from _of_experiment(ask, paper_id, row)
    yield from _recall(ask, paper_id)


def _of_experiment(ask: Ask, paper_id: str, row: dict[str, Any]) -> Iterator[Picture]:
    """Yield metric against S, the same in panels for each mode, and the curves at the smallest S.

    Nothing where no claim of the experiment was measured.
    """
    experiment, metric = row["experiment"], row["metric"]
    title = f"{row['locators']} ({experiment})"
    points = figure_queries.sized_points(ask, paper_id, experiment)
    claimed, measured = _counts(points)
    if measured:
        yield Picture(
            experiment,
            figure_charts.by_size(points, metric=metric, columns=4),
            f"{title}: claimed and measured values against S",
            f"{title}. Hollow points on a thin line: {claimed} claimed values. "
            f"Filled points: {measured} measured here.",
        )
    for mode in figure_queries.measured_modes(ask, paper_id, experiment):
        points = figure_queries.sized_points(ask, paper_id, experiment, mode)
        if _counts(points)[1]:
            yield _panels(points, row, title, mode)
    sizes = figure_queries.logged_sizes(ask, paper_id, experiment)
    if measured and sizes:
        yield from _curves(ask, paper_id, row, sizes[0])


def _counts(points: pd.DataFrame) -> tuple[int, int]:
    measured = int((points["whose"] == "measured").sum())
    return len(points) - measured, measured


def _panels(points: pd.DataFrame, row: dict[str, Any], title: str, mode: str) -> Picture:
    return Picture(
        f"{row['experiment']}-{mode}",
        figure_charts.by_size_panels(points, metric=row["metric"], logarithmic=True),
        f"{title}: a panel a model, measured by {MODE_NAMES[mode]}",
        f"{title}, a panel a model, on a logarithmic axis. Filled points: {_counts(points)[1]} "
        f"measured by {MODE_NAMES[mode]} alone, with a bar of one standard deviation where there "
        "are several seeds.",
    )


def _curves(ask: Ask, paper_id: str, row: dict[str, Any], size: int) -> Iterator[Picture]:
    points = figure_queries.curves_at(ask, paper_id, row["experiment"], size)
    kept = points[points["series"].isin(figure_queries.first_lines(list(points["series"])))]
    runs = kept.loc[kept["whose"] == "measured", "line"].nunique()
    if not runs:
        return
    title = f"{row['metric']} over training at S = {size} ({row['experiment']})"
    yield Picture(
        f"{row['experiment']}-curves",
        figure_charts.logged_and_measured(kept, metric=row["metric"]),
        f"{title}, logged by the authors and measured",
        f"{title}. Thin lines: the authors' training logs. Points on thick lines: our runs, "
        f"{runs} in all.",
    )


def _recall(ask: Ask, paper_id: str) -> Iterator[Picture]:
    points = figure_queries.recall_against_state(ask, paper_id)
    if points.empty:
        return
    ours = int((points["whose"] != "literature").sum())
    counted = f"{ours} of our runs" if ours else "none, as no run here has measured it"
    yield Picture(
        "recall",
        figure_charts.pareto(points),
        "Recall against state size",
        f"Recall against state size. Filled points: {counted}. Hollow points on dashed lines: "
        f"{len(points) - ours} from the literature. A ring and the grey steps mark the Pareto "
        "front of each scale.",
    )


def tables(ask: Ask, paper_id: str) -> Iterator[dict[str, Any]]:
    """Yield the tables of knees and of what holds in each mode: title, columns, rows."""
    knees = figure_queries.knees(ask, paper_id)
    if not knees.empty:
        yield table("How many associations each model holds", frames.knees_table(knees))
    coverage = figure_queries.mode_coverage(ask, paper_id)
    if coverage.empty:
        return
    held = frames.mode_table(coverage, MODE_NAMES)
    yield table("What holds by the runs of one mode alone", held)
    misses = frames.misses_table(figure_queries.mode_misses(ask, paper_id), MODE_NAMES)
    yield table("Not within tolerance in a mode", misses)


def table(title: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as the report's template takes a table."""
    return {
        "title": title,
        "columns": list(frame.columns),
        "rows": frame.to_numpy().tolist(),
        "none": "None.",
    }
