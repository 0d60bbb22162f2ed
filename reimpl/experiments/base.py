"""What an experiment is: a list of points, and a function that measures one point.

Nothing here imports torch, so that the command line can list experiments at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from records.errors import ConfigError, UnknownExperiment
from records.models import Metric
from reimpl.version import code_version

PAPER_ID = "2102.11174"
SCALES = ("quick", "laptop", "paper")
STREAMS = ("authors", "ours")
AUTHORS_SEED = 1
MOST_SEEDS = 1000

ProgressKind = Literal["progress", "notice", "resumed"]


class Progress(Protocol):
    """Where a running point reports to."""

    def __call__(self, line: str, *, kind: ProgressKind = "progress") -> None:
        """Take one line of text.

        A ``notice`` should be seen even where progress is not shown; ``resumed`` says that the
        point goes on from a checkpoint.
        """


class Point(BaseModel):
    """One configuration with one seed: what one run measures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int

    @property
    def config(self) -> dict[str, Any]:
        """Everything but the seed that the numbers depend on."""
        return self.model_dump(mode="json", exclude={"seed"})

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"seed {self.seed}"

    @property
    def line(self) -> str | None:
        """The line of a figure that the point is on, such as ``dpfp1-sum``; None for no figure."""
        names = [getattr(self, name, None) for name in ("feature_map", "rule")]
        return None if None in names else "-".join(map(str, names))

    @property
    def size(self) -> int | None:
        """The point's place on the axis of its figure, S; None for no figure."""
        return getattr(self, "S", None)

    @property
    def tables(self) -> tuple[int, ...]:
        """Numbers of the paper's tables that the point has a row of."""
        return ()

    def as_released(self) -> Point:
        """Return the point as the authors' code has it; itself where that is the paper's text."""
        return self


def _all_sources(_: Point) -> tuple[str, ...]:
    return ()


def _same_cost(_: Point) -> float:
    return 1.0


@dataclass(frozen=True)
class Experiment:
    """A named set of points and the function that measures one of them.

    ``list_points(scale, seeds, stream)`` gets a checked scale; ``measure(point, folder, progress)``
    keeps its checkpoints in ``folder`` and calls ``progress`` with a line of text now and then.
    ``sources(point)`` names the modules that decide the numbers; with what they import they make
    the code version (all of ``reimpl`` where there are none). ``cost(point)`` is about how much
    work a point is, in any unit, to tell how much of a sweep is left.
    """

    name: str
    description: str
    list_points: Callable[[str, int | None, str | None], Sequence[Point]]
    measure: Callable[[Any, Path, Progress], tuple[Metric, ...]]
    scales: tuple[str, ...] = SCALES
    sources: Callable[[Any], tuple[str, ...]] = _all_sources
    cost: Callable[[Any], float] = _same_cost

    def code_version(self, point: Point) -> str:
        """Return the version of the code that decides the numbers of ``point``."""
        return code_version(*self.sources(point))

    def points(
        self, scale: str = "quick", seeds: int | None = None, stream: str | None = None
    ) -> list[Point]:
        """Return the points of ``scale``.

        ``seeds`` asks for seeds 1 to ``seeds``; ``stream`` names the random streams. Raises
        UnknownExperiment for an unknown scale and ConfigError for other wrong values.
        """
        if scale not in self.scales:
            raise UnknownExperiment(
                f"experiment {self.name!r} has no scale {scale!r}; use {', '.join(self.scales)}"
            )
        if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
            raise ConfigError(f"the number of seeds is 1 to {MOST_SEEDS}, got {seeds}")
        if stream is not None and stream not in STREAMS:
            raise ConfigError(f"unknown random stream {stream!r}; use {' or '.join(STREAMS)}")
        return list(self.list_points(scale, seeds, stream))

    def run(self, point: Point, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
        """Measure ``point``, going on from a checkpoint in ``checkpoint_dir`` if there is one."""
        return self.measure(point, checkpoint_dir, progress)


def seeds_and_stream(seeds: int | None, stream: str | None) -> tuple[range, str]:
    """Return the seeds to run and the random stream.

    The authors ran seed 1 only, so their stream is the default for one seed and an error for more.
    """
    if stream is None:
        stream = "authors" if seeds in (None, AUTHORS_SEED) else "ours"
    if stream == "authors" and (seeds or 1) > 1:
        raise ConfigError(
            f"the authors' stream exists for one seed only, {seeds} were asked for; "
            "use --stream ours, or leave out --seeds"
        )
    return range(1, (seeds or 1) + 1), stream
