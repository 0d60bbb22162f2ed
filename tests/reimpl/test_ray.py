"""The sweep on a Ray cluster: a local one with two workers."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

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


def measuring_processes() -> list[int]:
    """Return this process's own descendants that have a task of ours in hand.

    Another sweep on this machine has processes of the same name, which are not ours to kill.
    """
    parents = {pid: parent for pid in all_processes() if (parent := parent_of(pid)) is not None}
    return [pid for pid in parents if is_ours(pid, parents) and b"ray::_measure" in command(pid)]


def all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def parent_of(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(status.rpartition(")")[2].split()[1])


def is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


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
    point = bad.point.model_copy(update={"feature_map": "dpfp999"})
    broken = dataclasses.replace(bad, point=point, run_id=run_id("capacity", point))
    [end] = [m for m in ray_executor.run_jobs([broken], 1, never) if m.ends]
    assert end.kind == "failed"
    assert "DPFP-999 does not exist" in str(end.content)


def test_without_ray_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'fwp-repro\[ray\]'"):
        next(ray_executor.run_jobs([], 1, never))


@pytest.mark.parametrize("address", ["nowhere.invalid:1", "127.0.0.1:1", "no address"])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(address: str) -> None:
    """Ray 2.60 itself tries for five minutes and cannot be interrupted meanwhile."""
    pytest.importorskip("ray")
    started = time.monotonic()
    with pytest.raises(ConfigError, match=f"no Ray cluster answers at {address}"):
        next(ray_executor.run_jobs([], 1, never, address=address))
    assert time.monotonic() - started < 30


def test_what_others_have_in_hand_or_have_measured_is_left_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One core and two points: the second is known by its turn. SIGTERM stays as it was."""
    pytest.importorskip("ray")
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # names no cluster for a local sweep
    jobs = [job(tmp_path / "a", 8, 40), job(tmp_path / "b", 9, 40)]
    asked: list[workers.Job] = []

    def known_from_the_second_on(asked_for: workers.Job) -> bool:
        asked.append(asked_for)
        return len(asked) > 1

    running = ray_executor.run_jobs(jobs, 1, known_from_the_second_on)
    ends = [m for m in running if m.ends]
    assert [(m.job.folder.name, m.kind) for m in ends] == [("a", "finished"), ("b", "left")]
    assert signal.getsignal(signal.SIGTERM) is handler


def lines_and_end(job: workers.Job) -> tuple[list[workers.Message], workers.Message]:
    """Measure a job as a node does, without Ray."""
    said: list[workers.Message] = []
    lines = SimpleNamespace(add=SimpleNamespace(remote=said.append))
    return said, ray_executor._measure(job, lines)


def test_a_node_with_other_code_measures_nothing(tmp_path: Path) -> None:
    good = job(tmp_path / "a", 8, 40)
    _, end = lines_and_end(dataclasses.replace(good, run_id="of-another-version"))
    assert (end.kind, "another version" in str(end.content)) == ("failed", True)


def test_a_node_that_does_not_see_the_workspace_says_so_and_cleans_up(tmp_path: Path) -> None:
    elsewhere = job(tmp_path / "elsewhere" / "a", 8, 40)
    said, end = lines_and_end(elsewhere)
    assert (said[0].kind, end.kind) == ("notice", "finished")
    assert "starts again on another node" in str(said[0].content)
    assert not elsewhere.folder.exists()
