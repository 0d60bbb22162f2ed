"""Carry out experiments: skip what is known, resume what was interrupted, record what finishes."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from records.errors import ConfigError, RunError
from records.models import Run, digest
from reimpl import experiments
from reimpl.experiments.base import Point
from reimpl.workers import LABEL, Finished, Job, Message, run_jobs, usable_cores

Echo = Callable[[str], None]


class RerunSummary(BaseModel):
    """What became of the points that were asked for, as run ids.

    ``done`` were measured now, in the order in which they ended; ``resumed`` went on from a
    checkpoint; ``known`` were there already; ``failed`` pairs a run id with the reason.
    """

    model_config = ConfigDict(frozen=True)

    done: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def run_id(experiment: str, point: Point) -> str:
    """Return the id that this point has under the present code: equal inputs, equal id."""
    return digest(
        [experiment, point.config, point.seed, experiments.get(experiment).code_version(point)]
    )


def rerun(
    names: Sequence[str],
    *,
    scale: str = "quick",
    seeds: int | None = None,
    stream: str | None = None,
    runs_dir: Path,
    known_run_ids: Collection[str],
    record: Callable[[Run], None],
    jobs: int | None = None,
    echo: Echo,
) -> RerunSummary:
    """Measure all points of the experiments ``names`` (all experiments where empty).

    ``jobs`` worker processes (one for each core where None) keep checkpoints under
    ``runs_dir/<run_id>``; ``record`` gets each run the moment it ends. A point that fails is
    reported and the others go on. Ctrl-C ends the workers, keeps what is finished and is raised
    again. Raises UnknownExperiment, ConfigError, or RunError where ``runs_dir`` is unusable.
    """
    if jobs is not None and jobs < 1:
        raise ConfigError(f"the number of worker processes must be at least 1, got {jobs}")
    planned = plan(names or experiments.names(), scale, seeds, stream, runs_dir)
    known = tuple(job.run_id for job in planned if job.run_id in known_run_ids)
    todo = [job for job in planned if job.run_id not in known]
    _make_folder(runs_dir)
    if known:
        echo(f"{len(known)} of {len(planned)} runs are known already")
    _report_stale(todo, runs_dir, echo)
    workers = min(jobs or usable_cores(), max(1, len(todo)))
    return _carry_out(todo, record, workers, echo).model_copy(update={"known": known})


def plan(
    names: Sequence[str], scale: str, seeds: int | None, stream: str | None, runs_dir: Path
) -> list[Job]:
    """Return one job for each point of the experiments ``names``, without repeats."""
    jobs = [
        Job(run_id(name, point), name, point, runs_dir / run_id(name, point))
        for name in dict.fromkeys(names)
        for point in experiments.get(name).points(scale, seeds, stream)
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


def _carry_out(
    todo: Sequence[Job], record: Callable[[Run], None], workers: int, echo: Echo
) -> RerunSummary:
    done: list[str] = []
    resumed: list[str] = []
    failed: list[tuple[str, str]] = []
    messages = run_jobs(todo, workers)
    try:
        with _display(len(todo), echo) as show:
            for message in messages:
                if isinstance(message.content, Finished):
                    record(_run(message.job, message.content))
                    shutil.rmtree(message.job.folder, ignore_errors=True)
                    done.append(message.job.run_id)
                elif message.kind == "failed":
                    failed.append((message.job.run_id, message.content))
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
    return RerunSummary(done=tuple(done), resumed=tuple(resumed), failed=tuple(failed))


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
def _display(total: int, echo: Echo) -> Iterator[Callable[[Message], None]]:
    """Show messages on a live bar where stderr is a terminal, else pass them to ``echo``."""
    if not sys.stderr.isatty():
        yield _plain(total, echo)
        return
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)

        def show(message: Message) -> None:
            bar.update(task, description=_describe(message))
            if message.ends:
                bar.advance(task)
            if message.kind in ("failed", "notice", "resumed"):
                bar.console.print(_describe(message), markup=False)

        yield show


def _plain(total: int, echo: Echo) -> Callable[[Message], None]:
    """Echo notices and what ended, but not every evaluation."""
    ended = 0

    def show(message: Message) -> None:
        nonlocal ended
        ended += message.ends
        if message.ends:
            echo(f"[{ended}/{total}] {_describe(message)}")
        elif message.kind != "progress":
            echo(_describe(message))

    return show


def _describe(message: Message) -> str:
    if isinstance(message.content, Finished):
        seconds = (message.content.finished - message.content.started).total_seconds()
        return f"{message.job.point.label}: done in {seconds:.1f} s"
    if message.kind == "failed":
        return f"{message.job.point.label}: failed: {message.content}"
    return message.content
