from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Generator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from records.errors import ConfigError, RunError, UnknownExperiment
from records.models import Run
from reimpl import runner, version, workers
from reimpl.experiments.exact import ExactPoint
from reimpl.experiments.points import RetrievalPoint
from reimpl.runner import RerunSummary, rerun, run_id

ROOT = Path(__file__).parents[2]


class Recorder:
    """Takes the place of the ledger and of the command line's output."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir, self.runs, self.lines = runs_dir, list[Run](), list[str]()

    def rerun(self, *names: str, jobs: int | None = 1, known: tuple[str, ...] = ()) -> RerunSummary:
        return rerun(
            names,
            runs_dir=self.runs_dir,
            known_run_ids=known,
            record=self.runs.append,
            jobs=jobs,
            echo=self.lines.append,
        )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recorder, RerunSummary]:
    recorder = Recorder(tmp_path_factory.mktemp("runs"))
    return recorder, recorder.rerun("exact", jobs=2)


def small(**changes: object) -> RetrievalPoint:
    fields: dict[str, object] = {
        "setting": "capacity", "feature_map": "elu1", "rule": "sum", "S": 8, "seed": 1,
        "eval_every": 20, "eval_sequences": 2, "max_steps": 200, "goal": 0.0,
    }  # fmt: skip
    return RetrievalPoint.model_validate(fields | changes)


def job(point: RetrievalPoint, folder: Path) -> workers.Job:
    return workers.Job(run_id("capacity", point), "capacity", point, folder)


def test_every_point_becomes_a_run(finished: tuple[Recorder, RerunSummary]) -> None:
    recorder, summary = finished
    assert tuple(run.run_id for run in recorder.runs) == summary.done
    assert (len(summary.done), summary.known, summary.failed) == (6, (), ())


def test_runs_say_how_they_were_made(finished: tuple[Recorder, RerunSummary]) -> None:
    run = finished[0].runs[0]
    assert run.code_version == version.code_version()
    assert run.environment["threads"] == "1"
    assert {"python", "torch", "numpy", "platform", "device"} <= set(run.environment)


def test_times_are_utc(finished: tuple[Recorder, RerunSummary]) -> None:
    for run in finished[0].runs:
        assert run.started.utcoffset() == run.finished.utcoffset() == timedelta(0)
        assert run.started <= run.finished


def test_folders_of_finished_runs_are_removed(finished: tuple[Recorder, RerunSummary]) -> None:
    assert list(finished[0].runs_dir.iterdir()) == []


def test_plain_lines_count_the_runs(finished: tuple[Recorder, RerunSummary]) -> None:
    assert finished[0].lines[-1].startswith("[6/6] exact ")


def test_known_runs_are_skipped(finished: tuple[Recorder, RerunSummary], tmp_path: Path) -> None:
    again = Recorder(tmp_path)
    summary = again.rerun("exact", known=finished[1].done)
    assert (set(summary.known), summary.done, again.runs) == (set(finished[1].done), (), [])


def test_run_id_depends_on_configuration_seed_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_id("exact", ExactPoint(group="sizes", seed=1))
    assert first == run_id("exact", ExactPoint(group="sizes", seed=1))
    others = [
        run_id("exact", ExactPoint(group="sizes", seed=2)),
        run_id("exact", ExactPoint(group="capacity", seed=1)),
    ]
    monkeypatch.setattr(runner, "code_version", lambda: "another")
    others.append(run_id("exact", ExactPoint(group="sizes", seed=1)))
    assert len({first, *others}) == 4


@pytest.mark.parametrize("folder", [".", "experiments", "ops", "ops/deeper"])
def test_source_changes_change_the_code_version(folder: str, tmp_path: Path) -> None:
    source = tmp_path / folder / "a.py"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("x = 1")
    before = version._source_digest(tmp_path)
    source.write_text("x = 2")
    assert version._source_digest(tmp_path) != before


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == version.VERSION


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_progress_bar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen, recorder = Terminal(), Recorder(tmp_path)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(runner, "run_jobs", all_fail)
    recorder.rerun("exact")
    assert "6/6" in screen.getvalue()
    assert "failed: as it must" in screen.getvalue()
    assert recorder.lines == []


def all_fail(
    jobs: Sequence[workers.Job], workers_wanted: int
) -> Generator[workers.Message, None, None]:
    """Stand in for the workers where a test is not about them."""
    yield from (workers.Message("failed", job, "as it must") for job in jobs)


def test_a_failing_point_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    bad = small(feature_map="dpfp999")
    messages = list(workers.run_jobs([job(bad, tmp_path / "a"), job(small(), tmp_path / "b")], 1))
    ends = [m for m in messages if m.ends]
    assert [m.kind for m in ends] == ["failed", "finished"]
    assert "DPFP-999 does not exist" in str(ends[0].content)


def test_a_killed_worker_fails_its_job_and_the_next_goes_on(tmp_path: Path) -> None:
    endless = small(max_steps=100_000, patience=100_000)
    running = workers.run_jobs([job(endless, tmp_path / "a"), job(small(), tmp_path / "b")], 1)
    assert next(running).kind == "progress"
    [child] = [p for p in multiprocessing.active_children() if p.pid]
    child.kill()
    ends = [m for m in running if m.ends]
    assert [m.kind for m in ends] == ["failed", "finished"]
    assert "worker process died" in str(ends[0].content)


def test_a_killed_run_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    chosen = small(max_steps=400, patience=100)
    running = workers.run_jobs([job(chosen, tmp_path / "cut")], 1)
    next(running)
    running.close()
    assert multiprocessing.active_children() == []
    assert (tmp_path / "cut" / "checkpoint.pt").exists()
    both = [job(chosen, tmp_path / "cut"), job(chosen, tmp_path / "whole")]
    messages = list(workers.run_jobs(both, 1))
    assert [m.job.folder.name for m in messages if m.kind == "resumed"] == ["cut"]
    ends = [m.content.metrics for m in messages if isinstance(m.content, workers.Finished)]
    assert len(ends) == 2
    assert ends[0] == ends[1]


INTERRUPTED = """
import sys, pathlib
from reimpl import experiments, runner
from reimpl.experiments.base import Experiment
from tests_runner_points import points
if __name__ == "__main__":
    capacity = experiments.get("capacity")
    experiments._EXPERIMENTS["capacity"] = Experiment("capacity", "", points, capacity.measure)
    try:
        runner.rerun(["capacity"], runs_dir=pathlib.Path("runs"), known_run_ids=(), jobs=2,
                     record=lambda run: print("RECORDED", flush=True),
                     echo=lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        sys.exit(130)
"""
POINTS = """
from reimpl.experiments.points import RetrievalPoint
def points(scale, seeds, stream):
    base = dict(setting="capacity", feature_map="elu1", rule="sum", seed=1, eval_every=20,
                eval_sequences=2, goal=0.0)
    return [RetrievalPoint(**base, S=8, max_steps=20),
            RetrievalPoint(**base, S=9, max_steps=100_000, patience=100_000)]
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process group")
def test_ctrl_c_keeps_what_is_finished_and_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(INTERRUPTED)
    (tmp_path / "tests_runner_points.py").write_text(POINTS)
    process = subprocess.Popen(
        [sys.executable, "main.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    deadline = time.monotonic() + 50
    assert process.stdout is not None
    while "[1/2]" not in process.stdout.readline() and time.monotonic() < deadline:
        pass
    while not list(tmp_path.glob("runs/*/checkpoint.pt")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate()
    watchdog.cancel()
    assert (process.returncode, errors) == (130, "")
    assert "interrupted: 1 of 2 runs are finished and kept" in out
    assert len(list(tmp_path.glob("runs/*/checkpoint.pt"))) == 1


def test_an_unfinished_run_of_other_code_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "run_jobs", all_fail)
    [first, *_] = runner.plan(["exact"], "quick", None, None, tmp_path)
    (tmp_path / "old").mkdir()
    label = {"point": first.point_key, "code_version": "0.0.1+abc"}
    (tmp_path / "old" / workers.LABEL).write_text(json.dumps(label))
    recorder = Recorder(tmp_path)
    recorder.rerun("exact")
    assert "unfinished run of code version 0.0.1+abc" in recorder.lines[0]


def test_repeated_names_are_run_once(tmp_path: Path) -> None:
    once = runner.plan(["exact"], "quick", None, None, tmp_path)
    assert runner.plan(["exact", "exact"], "quick", None, None, tmp_path) == once


def test_an_unknown_experiment_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with pytest.raises(UnknownExperiment):
        recorder.rerun("exact", "fig9")
    assert recorder.runs == []


def test_no_workers_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Recorder(tmp_path).rerun("exact", jobs=0)


def test_an_unusable_folder_is_a_run_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot create the folder"):
        Recorder(tmp_path / "file" / "runs").rerun("exact")
