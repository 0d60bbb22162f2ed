"""The sweep on a Ray cluster: a local one with two workers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.errors import ConfigError
from reimpl import ray_executor, workers
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.runner import run_id

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")


def job(folder: Path, S: int, max_steps: int) -> workers.Job:
    point = RetrievalPoint(
        setting="capacity", feature_map="elu1", rule="sum", S=S, seed=1, eval_every=20,
        eval_sequences=2, goal=0.0, patience=10_000, max_steps=max_steps,
    )  # fmt: skip
    return workers.Job(run_id("capacity", point), "capacity", point, folder)


def never(job: workers.Job) -> bool:
    return False


def measuring_processes() -> Iterator[int]:
    """Yield the processes of Ray that have a task of ours in hand, as they name themselves."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::_measure" in path.read_bytes():
                yield int(path.parent.name)
        except OSError:
            continue


def finished(messages: list[workers.Message]) -> dict[str, workers.Finished]:
    return {
        m.job.folder.name: m.content for m in messages if isinstance(m.content, workers.Finished)
    }


def test_a_killed_worker_s_point_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    """Two points on two workers; one worker is killed once its point has a checkpoint."""
    pytest.importorskip("ray")
    jobs = [job(tmp_path / "long", 40, 4000), job(tmp_path / "short", 8, 40)]
    killed, messages = 0, []
    for message in ray_executor.run_jobs(jobs, 2, never):
        messages.append(message)
        if not killed and message.job == jobs[0] and (tmp_path / "long/checkpoint.pt").exists():
            for pid in measuring_processes():
                os.kill(pid, signal.SIGKILL)
                killed += 1
    assert killed
    assert [m.job.folder.name for m in messages if m.kind == "resumed"][-1:] == ["long"]
    ends = finished(messages)
    assert ends.keys() == {"long", "short"}
    whole = job(tmp_path / "whole", 40, 4000)
    uninterrupted = finished(list(workers.run_jobs([whole], 1, never)))
    assert ends["long"].metrics == uninterrupted["whole"].metrics
    assert ends["long"].environment["threads"] == "1"


def test_a_point_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    bad = job(tmp_path / "bad", 8, 40)
    broken = workers.Job(
        bad.run_id,
        bad.experiment,
        bad.point.model_copy(update={"feature_map": "dpfp999"}),
        bad.folder,
    )
    [end] = [m for m in ray_executor.run_jobs([broken], 1, never) if m.ends]
    assert end.kind == "failed"
    assert "DPFP-999 does not exist" in str(end.content)


def test_without_ray_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'fwp-repro\[ray\]'"):
        next(ray_executor.run_jobs([], 1, never))


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match=r"no Ray cluster answers at nowhere\.invalid:1"):
        next(ray_executor.run_jobs([], 1, never, address="nowhere.invalid:1"))
