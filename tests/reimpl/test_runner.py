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
from reimpl import experiments, runner, version, workers
from reimpl.experiments import base
from reimpl.experiments.exact import ExactPoint
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.runner import Executor, RerunSummary, Selection, TimeLeft, plan, rerun, run_id

ROOT = Path(__file__).parents[2]


class Recorder:
    """Takes the place of the ledger and of the command line's output."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir, self.runs, self.lines = runs_dir, list[Run](), list[str]()

    def rerun(
        self,
        *names: str,
        jobs: int | None = 1,
        known: tuple[str, ...] = (),
        selection: Selection | None = None,
        executor: Executor = workers.run_jobs,
    ) -> RerunSummary:
        return rerun(
            names,
            selection=selection,
            runs_dir=self.runs_dir,
            is_known=lambda run_id: run_id in known,
            record=self.runs.append,
            jobs=jobs,
            executor=executor,
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
    assert run.code_version == version.code_version()  # of all of reimpl: exact names no sources
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
    monkeypatch.setattr(base, "code_version", lambda *names: "another")
    others.append(run_id("exact", ExactPoint(group="sizes", seed=1)))
    assert len({first, *others}) == 4


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a package whose module ``root`` imports ``near``, and in a function ``ops.deep``."""
    files = {
        "root.py": "from reimpl.near import x\ndef f():\n    from reimpl import ops\n",
        "near.py": "from reimpl.experiments.base import y\nx = 1\n",
        "ops/__init__.py": "from reimpl.ops.deep import z\n",
        "ops/deep.py": "z = 1\n",
        "experiments/base.py": "y = 1\n",
        "elsewhere.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(version, "PACKAGE", tmp_path)
    version.code_version.cache_clear()
    return tmp_path


def changes_the_version(path: Path, *roots: str) -> bool:
    before = version.code_version(*roots)
    path.write_text(path.read_text() + "more = 2\n")
    version.code_version.cache_clear()
    return before != version.code_version(*roots)


def test_what_a_module_imports_is_found_in_functions_too(package: Path) -> None:
    assert version.imported(["reimpl.root"]) == [
        "reimpl.near", "reimpl.ops", "reimpl.ops.deep", "reimpl.root",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["root.py", "near.py", "ops/deep.py"])
def test_a_change_in_what_is_imported_changes_the_code_version(package: Path, name: str) -> None:
    assert changes_the_version(package / name, "reimpl.root")


@pytest.mark.parametrize("name", ["elsewhere.py", "experiments/base.py"])
def test_a_change_elsewhere_leaves_the_code_version(package: Path, name: str) -> None:
    assert not changes_the_version(package / name, "reimpl.root")


@pytest.mark.parametrize("name", ["root.py", "elsewhere.py", "ops/deep.py", "experiments/base.py"])
def test_without_roots_every_source_counts(package: Path, name: str) -> None:
    assert changes_the_version(package / name)


def test_the_retrieval_code_is_what_its_numbers_depend_on() -> None:
    found = set(version.imported(["reimpl.experiments.retrieval_memory"]))
    assert {"reimpl.loops.fwm", "reimpl.loops.weights", "reimpl.feature_maps"} <= found
    assert not found & {"reimpl.runner", "reimpl.ops", "reimpl.experiments.exact"}


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == version.VERSION


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_progress_bar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen, recorder = Terminal(), Recorder(tmp_path)
    monkeypatch.setattr(sys, "stderr", screen)
    recorder.rerun("exact", executor=all_fail)
    assert "6/6" in screen.getvalue()
    assert "failed: as it must" in screen.getvalue()
    assert recorder.lines == []


def never(job: workers.Job) -> bool:
    return False


def all_fail(
    jobs: Sequence[workers.Job], workers_wanted: int, is_known: object
) -> Generator[workers.Message, None, None]:
    """Stand in for the workers where a test is not about them."""
    yield from (workers.Message("failed", job, "as it must") for job in jobs)


def test_a_failing_point_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    bad = small(feature_map="dpfp999")
    messages = list(
        workers.run_jobs([job(bad, tmp_path / "a"), job(small(), tmp_path / "b")], 1, never)
    )
    ends = [m for m in messages if m.ends]
    assert [m.kind for m in ends] == ["failed", "finished"]
    assert "DPFP-999 does not exist" in str(ends[0].content)


def test_a_killed_worker_fails_its_job_and_the_next_goes_on(tmp_path: Path) -> None:
    endless = small(max_steps=100_000, patience=100_000)
    running = workers.run_jobs(
        [job(endless, tmp_path / "a"), job(small(), tmp_path / "b")], 1, never
    )
    assert next(running).kind == "progress"
    [child] = [p for p in multiprocessing.active_children() if p.pid]
    child.kill()
    ends = [m for m in running if m.ends]
    assert [m.kind for m in ends] == ["failed", "finished"]
    assert "worker process died" in str(ends[0].content)


def test_a_killed_run_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    chosen = small(max_steps=400, patience=100)
    running = workers.run_jobs([job(chosen, tmp_path / "cut")], 1, never)
    next(running)
    running.close()
    assert multiprocessing.active_children() == []
    assert (tmp_path / "cut" / "checkpoint.pt").exists()
    both = [job(chosen, tmp_path / "cut"), job(chosen, tmp_path / "whole")]
    messages = list(workers.run_jobs(both, 1, never))
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
        runner.rerun(["capacity"], runs_dir=pathlib.Path("runs"), jobs=2,
                     is_known=lambda run_id: False,
                     record=lambda run: print("RECORDED", flush=True),
                     echo=lambda line: print(line, flush=True))
    except KeyboardInterrupt as error:
        sys.exit(143 if isinstance(error, runner.Terminated) else 130)
"""
POINTS = """
from reimpl.experiments.points import RetrievalPoint
def points(scale, seeds, stream):
    base = dict(setting="capacity", feature_map="elu1", rule="sum", seed=1, eval_every=20,
                eval_sequences=2, goal=0.0)
    return [RetrievalPoint(**base, S=8, max_steps=20),
            RetrievalPoint(**base, S=9, max_steps=100_000, patience=100_000)]
"""


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_termination_keep_what_is_finished_and_the_checkpoint(
    tmp_path: Path, sent: signal.Signals
) -> None:
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
    # a terminal's Ctrl-C reaches the whole group, a kill only the process
    (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
    out, errors = process.communicate()
    watchdog.cancel()
    assert (process.returncode, errors) == (128 + sent, "")
    assert "interrupted: 1 of 2 runs are finished and kept" in out
    assert len(list(tmp_path.glob("runs/*/checkpoint.pt"))) == 1


def test_an_unfinished_run_of_other_code_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [first, *_] = runner.plan(["exact"], Selection(), tmp_path)
    (tmp_path / "old").mkdir()
    label = {"point": first.point_key, "code_version": "0.0.1+abc"}
    (tmp_path / "old" / workers.LABEL).write_text(json.dumps(label))
    recorder = Recorder(tmp_path)
    recorder.rerun("exact", executor=all_fail)
    assert "unfinished run of code version 0.0.1+abc" in recorder.lines[0]


def test_repeated_names_are_run_once(tmp_path: Path) -> None:
    once = runner.plan(["exact"], Selection(), tmp_path)
    assert runner.plan(["exact", "exact"], Selection(), tmp_path) == once


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


def test_a_point_that_another_sweep_has_in_hand_is_left_to_it(tmp_path: Path) -> None:
    endless = job(small(max_steps=100_000, patience=100_000), tmp_path / "a")
    first = workers.run_jobs([endless], 1, never)
    next(first)
    [message] = workers.run_jobs([endless], 1, never)
    assert message.kind == "left"
    assert f"another sweep (process {os.getpid()} on " in str(message.content)
    first.close()
    second = workers.run_jobs([endless], 1, never)
    assert next(second).kind == "resumed"
    second.close()


def test_no_moment_lies_between_locked_and_known(tmp_path: Path) -> None:
    """What two sweeps share is measured once, even while the first is writing it down."""
    shared = job(small(max_steps=20), tmp_path / "a")
    recorded: list[workers.Job] = []
    for message in workers.run_jobs([shared], 1, never):
        if message.kind == "finished":
            [other] = workers.run_jobs([shared], 1, recorded.__contains__)
            assert (other.kind, "is measuring it" in str(other.content)) == ("left", True)
            recorded.append(shared)
    [other] = workers.run_jobs([shared], 1, recorded.__contains__)
    assert (other.kind, "has measured it" in str(other.content)) == ("left", True)


HOLDING = """
import sys, pathlib, time
from reimpl import workers
from tests_runner_points import points
[point, _] = points("", None, None)
job = workers.Job("x", "capacity", point, pathlib.Path("a").resolve())
waiting = workers.Waiting([job], lambda job: False)
waiting.pop()
print("holds it", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "holding.py").write_text(HOLDING)
    (tmp_path / "tests_runner_points.py").write_text(POINTS)
    path = f"{ROOT}{os.pathsep}{tmp_path}"
    chosen = job(small(max_steps=20), tmp_path / "a")
    with subprocess.Popen(
        [sys.executable, "holding.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds it\n"
        [message] = workers.run_jobs([chosen], 1, never)
        assert f"(process {holder.pid} on " in str(message.content)
        holder.kill()
    assert [m.kind for m in workers.run_jobs([chosen], 1, never) if m.ends] == ["finished"]


def test_a_point_that_became_known_while_it_waited_is_left(tmp_path: Path) -> None:
    points = [job(small(S=S, max_steps=20), tmp_path / str(S)) for S in (8, 9)]
    asked: list[workers.Job] = []

    def known_from_the_second_on(asked_for: workers.Job) -> bool:
        asked.append(asked_for)
        return len(asked) > 1

    ends = [m for m in workers.run_jobs(points, 1, known_from_the_second_on) if m.ends]
    assert [m.kind for m in ends] == ["finished", "left"]


def test_points_that_were_left_are_in_the_summary(tmp_path: Path) -> None:
    def all_left(
        jobs: Sequence[workers.Job], workers_wanted: int, is_known: object
    ) -> Generator[workers.Message, None, None]:
        yield from (workers.Message("left", job, "taken") for job in jobs)

    summary = Recorder(tmp_path).rerun("exact", executor=all_left)
    assert (len(summary.left), summary.failed, summary.done) == (6, (), ())


def test_time_left_goes_by_cost_not_by_count(tmp_path: Path) -> None:
    """A tenth of the cost took 6 minutes, so 54 are left."""
    now = [0.0]
    jobs = [job(small(S=S), tmp_path) for S in (8, 9)]
    left = TimeLeft(jobs, clock=lambda: now[0])
    left._cost = {jobs[0].run_id: 1.0, jobs[1].run_id: 9.0}
    left._all = 10.0
    assert str(left) == ""
    now[0] = 360.0
    left.note(workers.Message("failed", jobs[0], "x"))
    assert str(left) == "about 54 min left"
    left.note(workers.Message("failed", jobs[1], "x"))
    assert str(left) == ""


def test_larger_points_cost_more() -> None:
    cost = experiments.get("update-rule").cost
    fields = {"setting": "update-rule", "seed": 1}
    small_, large = (
        cost(RetrievalPoint.model_validate(fields | {"feature_map": p, "rule": r, "S": S}))
        for p, r, S in (("dpfp1", "delta", 20), ("dpfp1", "fwm", 200))
    )
    assert large > 20 * small_


def test_a_figure_can_be_narrowed_to_lines_and_sizes() -> None:
    chosen = Selection(scale="paper", lines=("dpfp1-sum",), sizes=(60, 80))
    points = chosen.points(experiments.get("capacity"))
    assert [(p.line, p.size) for p in points] == [("dpfp1-sum", 60), ("dpfp1-sum", 80)]


@pytest.mark.parametrize(
    ("name", "selection", "message"),
    [
        (
            "capacity",
            Selection(lines=("gpt",)),
            "no model 'gpt' in 'capacity' at scale 'quick'; known: softmax-softmax, elu1-sum",
        ),
        ("capacity", Selection(sizes=(1,)), "no size 1 .*known: 20, 40"),
        ("capacity", Selection(sizes=(10_020,)), "no size 10020 .*known: 20, 40"),
        ("exact", Selection(sizes=(20,)), "no size 20 in 'exact' at .*; there is none"),
    ],
)
def test_what_a_figure_has_not_is_an_error_that_lists_what_it_has(
    name: str, selection: Selection, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan([name], selection, Path("runs"))


def test_a_line_that_one_of_the_experiments_has_leaves_out_the_others() -> None:
    chosen = Selection(scale="paper", lines=("dpfp1-fwm",), sizes=(20,))
    jobs = plan(["capacity", "update-rule"], chosen, Path("runs"))
    assert [(j.experiment, j.point.line) for j in jobs] == [("update-rule", "dpfp1-fwm")]


@pytest.mark.parametrize("S", [1, 10_001])
def test_a_point_has_2_to_10000_symbols(S: int) -> None:
    with pytest.raises(ValueError, match="S"):
        small(S=S)


def test_a_file_in_place_of_a_runs_folder_fails_that_point_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("step,loss\n100,0.5\n")
    jobs = [job(small(max_steps=20), tmp_path / "a"), job(small(S=9, max_steps=20), tmp_path / "b")]
    ends = [m for m in workers.run_jobs(jobs, 1, never) if m.ends]
    assert [m.kind for m in ends] == ["failed", "finished"]
    assert "cannot be used (File exists); make it writable, move it away" in str(ends[0].content)
    assert (tmp_path / "a").read_text().startswith("step,loss")


@pytest.mark.parametrize("content", [b"", b"step,loss\n100,0.5\n", b"PK\x03\x04" + b"\0" * 100])
def test_garbage_for_a_checkpoint_is_said_and_the_point_starts_afresh(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "checkpoint.pt").write_bytes(content)
    messages = list(workers.run_jobs([job(small(max_steps=20), tmp_path / "a")], 1, never))
    assert [m.kind for m in messages if m.kind != "progress"] == ["notice", "finished"]
    assert "cannot be read" in str(messages[0].content)


def test_the_cheapest_points_come_first(tmp_path: Path) -> None:
    recorder, order = Recorder(tmp_path), list[float]()

    def note(
        jobs: Sequence[workers.Job], workers_wanted: int, is_known: object
    ) -> Generator[workers.Message, None, None]:
        order.extend(job.cost for job in jobs)
        return all_fail(jobs, workers_wanted, is_known)

    recorder.rerun("capacity", executor=note)
    assert order == sorted(order)
    assert order[0] < order[-1]
