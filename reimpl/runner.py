"""Carry out experiments: skip what is known, resume what was interrupted, record what finishes."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from records.errors import ConfigError, RunError
from records.models import Run, digest
from reimpl import experiments
from reimpl.experiments.base import Experiment, Point
from reimpl.workers import LABEL, Finished, Job, Message, clear, run_jobs, usable_cores

Echo = Callable[[str], None]
Executor = Callable[[Sequence[Job], int, Callable[[Job], bool]], Generator[Message, None, None]]
"""Measures jobs with so many workers, leaving those that are known by their turn."""


@dataclass(frozen=True)
class Selection:
    """Which points of an experiment are wanted.

    ``seeds`` and ``stream`` are as ``Experiment.points`` takes them; ``lines`` (such as
    ``dpfp1-sum``) and ``sizes`` (S) narrow its figure down and ``tables`` (numbers) its tables, all
    of them where empty. ``as_released`` takes the authors' code where it differs from their text.
    """

    scale: str = "quick"
    seeds: int | None = None
    stream: str | None = None
    lines: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    tables: tuple[int, ...] = ()
    as_released: bool = False

    def points(self, experiment: Experiment) -> list[Point]:
        """Return the points of one experiment; it need not have every line and size."""
        return [
            point.as_released() if self.as_released else point
            for point in experiment.points(self.scale, self.seeds, self.stream)
            if (not self.lines or point.line in self.lines)
            and (not self.sizes or point.size in self.sizes)
            and (not self.tables or set(self.tables) & set(point.tables))
        ]

    def require_known(self, chosen: Sequence[Experiment]) -> None:
        """Raise ConfigError where a line, size or table is of none of these experiments.

        Likewise where ``as_released`` would change no point of theirs.
        """
        points = [p for e in chosen for p in e.points(self.scale, self.seeds, self.stream)]
        lines = list(dict.fromkeys(point.line for point in points if point.line))
        sizes = sorted({point.size for point in points if point.size is not None})
        names = " or ".join(repr(experiment.name) for experiment in chosen)
        tables = sorted({table for point in points for table in point.tables})
        if self.as_released and all(point == point.as_released() for point in points):
            raise ConfigError(f"{names} follows the paper and its code alike; leave --as-released")
        for what, wanted, known in (
            ("model", self.lines, lines),
            ("size", self.sizes, sizes),
            ("table", self.tables, tables),
        ):
            for name in dict.fromkeys(wanted):
                if name not in known:
                    listed = f"known: {', '.join(map(str, known))}" if known else "there is none"
                    raise ConfigError(
                        f"no {what} {name!r} in {names} at scale {self.scale!r}; "
                        f"{listed}{_more(self.scale)}"
                    )


def _more(scale: str) -> str:
    return "" if scale == "paper" else "; --scale paper has all of the paper's"


class RerunSummary(BaseModel):
    """What became of the points that were asked for, as run ids.

    ``done`` were measured now, in the order in which they ended; ``resumed`` went on from a
    checkpoint; ``known`` were there already; ``left`` were taken by another sweep meanwhile;
    ``failed`` pairs a run id with the reason.
    """

    model_config = ConfigDict(frozen=True)

    done: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def run_id(experiment: str, point: Point) -> str:
    """Return the id that this point has under the present code: equal inputs, equal id."""
    return digest(
        [experiment, point.config, point.seed, experiments.get(experiment).code_version(point)]
    )


def rerun(
    names: Sequence[str],
    *,
    selection: Selection | None = None,
    runs_dir: Path,
    is_known: Callable[[str], bool],
    record: Callable[[Run], None],
    jobs: int | None = None,
    executor: Executor = run_jobs,
    echo: Echo,
) -> RerunSummary:
    """Measure the selected points of the experiments ``names`` (all experiments where empty).

    The cheapest come first: half of Figs. 2 and 3 is there after a sixth of the time that it
    takes with the dearest first, and all of it 1 % later (212 measured points, two workers).
    ``jobs`` worker processes (one for each core where None) keep checkpoints under
    ``runs_dir/<run_id>``; ``record`` gets each run the moment it ends, and ``is_known`` tells of a
    run id whether it was recorded, by this sweep or another. A point that fails is reported and the
    others go on. Ctrl-C and SIGTERM end the workers, keep what is finished and raise
    KeyboardInterrupt (Terminated for SIGTERM). Raises UnknownExperiment, ConfigError, or RunError
    where ``runs_dir`` is unusable.
    """
    if jobs is not None and jobs < 1:
        raise ConfigError(f"the number of worker processes must be at least 1, got {jobs}")
    planned = plan(names or experiments.names(), selection or Selection(), runs_dir)
    known = tuple(job.run_id for job in planned if is_known(job.run_id))
    todo = sorted((job for job in planned if job.run_id not in known), key=lambda job: job.cost)
    _make_folder(runs_dir)
    if known:
        echo(f"{len(known)} of {len(planned)} runs are known already")
    _report_stale(todo, runs_dir, echo)
    workers = min(jobs or usable_cores(), max(1, len(todo)))
    messages = executor(todo, workers, lambda job: is_known(job.run_id))
    with _terminated_like_interrupted():
        return _carry_out(todo, record, messages, echo).model_copy(update={"known": known})


def plan(names: Sequence[str], selection: Selection, runs_dir: Path) -> list[Job]:
    """Return one job for each selected point of the experiments ``names``, without repeats."""
    chosen = [experiments.get(name) for name in dict.fromkeys(names)]
    selection.require_known(chosen)
    jobs = [
        Job(run_id(each.name, point), each.name, point, runs_dir / run_id(each.name, point))
        for each in chosen
        for point in selection.points(each)
    ]
    return list({job.run_id: job for job in jobs}.values())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot create the folder for runs {folder}: {error.strerror}; choose another --home"
        ) from error


def _report_stale(todo: Sequence[Job], runs_dir: Path, echo: Echo) -> None:
    """Say which unfinished runs of another code version are there but cannot be gone on with."""
    wanted = {job.point_key: job for job in todo}
    for path in sorted(runs_dir.glob(f"*/{LABEL}")):
        try:
            label = json.loads(path.read_text(encoding="utf-8"))
            job = wanted.get(label["point"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if job is not None and path.parent != job.folder:
            echo(
                f"{job.point.label}: {path.parent} is an unfinished run of code version "
                f"{label.get('code_version')}, not of {job.code_version}; started afresh"
            )


class Terminated(KeyboardInterrupt):
    """SIGTERM came, and is obeyed as Ctrl-C is."""


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a sweep as Ctrl-C does; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _carry_out(
    todo: Sequence[Job],
    record: Callable[[Run], None],
    messages: Generator[Message, None, None],
    echo: Echo,
) -> RerunSummary:
    done: list[str] = []
    resumed: list[str] = []
    left: list[str] = []
    failed: list[tuple[str, str]] = []
    try:
        with _display(todo, echo) as show:
            for message in messages:
                if isinstance(message.content, Finished):
                    record(_run(message.job, message.content))
                    clear(message.job.folder)
                    done.append(message.job.run_id)
                elif message.kind == "failed":
                    failed.append((message.job.run_id, message.content))
                elif message.kind == "left":
                    left.append(message.job.run_id)
                elif message.kind == "resumed":
                    resumed.append(message.job.run_id)
                show(message)
    except KeyboardInterrupt:
        echo(
            f"interrupted: {len(done)} of {len(todo)} runs are finished and kept; "
            "the same command goes on with the rest"
        )
        raise
    finally:
        messages.close()
    return RerunSummary(
        done=tuple(done), resumed=tuple(resumed), left=tuple(left), failed=tuple(failed)
    )


def _run(job: Job, result: Finished) -> Run:
    return Run(
        run_id=job.run_id,
        experiment=job.experiment,
        config=job.point.config,
        seed=job.point.seed,
        code_version=job.code_version,
        environment=result.environment,
        started=result.started,
        finished=result.finished,
        metrics=result.metrics,
    )


@contextmanager
def _display(todo: Sequence[Job], echo: Echo) -> Iterator[Callable[[Message], None]]:
    """Show messages on a live bar where stderr is a terminal, else pass them to ``echo``."""
    left = TimeLeft(todo)
    if not sys.stderr.isatty():
        yield _plain(left, echo)
        return
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=len(todo), left="")

        def show(message: Message) -> None:
            left.note(message)
            bar.update(task, description=_describe(message), left=str(left))
            if message.ends:
                bar.advance(task)
            if message.kind in ("failed", "left", "notice", "resumed"):
                bar.console.print(_describe(message), markup=False)

        yield show


def _plain(left: TimeLeft, echo: Echo) -> Callable[[Message], None]:
    """Echo notices and what ended, but not every evaluation."""

    def show(message: Message) -> None:
        left.note(message)
        if message.ends:
            ending = f"; {left}" if str(left) else ""
            echo(f"[{left.ended}/{left.total}] {_describe(message)}{ending}")
        elif message.kind != "progress":
            echo(_describe(message))

    return show


class TimeLeft:
    """How long the rest of a sweep will take, from what its finished part took.

    Points count by their cost; ``clock`` is in seconds.
    """

    def __init__(self, todo: Sequence[Job], clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.ended = len(todo), 0
        self._clock, self._started = clock, clock()
        self._cost = {job.run_id: job.cost for job in todo}
        self._all, self._done = sum(self._cost.values()), 0.0

    def note(self, message: Message) -> None:
        """Take note of a job that has ended."""
        if message.ends:
            self.ended += 1
            self._done += self._cost[message.job.run_id]

    def __str__(self) -> str:
        """Return ``about 2 h 05 min left``; nothing while nothing has ended or all has."""
        if not 0 < self.ended < self.total:
            return ""
        seconds = (self._clock() - self._started) * (self._all / self._done - 1)
        minutes = round(seconds / 60)
        if minutes < 1:
            return "under a minute left"
        hours, minutes = divmod(minutes, 60)
        return f"about {f'{hours} h {minutes:02d}' if hours else minutes} min left"


def _describe(message: Message) -> str:
    if isinstance(message.content, Finished):
        seconds = (message.content.finished - message.content.started).total_seconds()
        return f"{message.job.point.label}: done in {seconds:.1f} s"
    assert isinstance(message.content, str)
    if message.kind == "failed":
        return f"{message.job.point.label}: failed: {message.content}"
    return message.content
