"""Worker processes: each measures one point at a time, with one torch thread."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Literal

from filelock import BaseFileLock, FileLock, Timeout

from records.files import write_whole
from records.models import Metric, digest
from reimpl import experiments
from reimpl.experiments.base import Point, Progress, ProgressKind

LABEL = "point.json"
HOLDER = "holder"
"""In a run's folder: which process has it in hand."""


@dataclass(frozen=True)
class Job:
    """One point to measure; ``folder`` is where its checkpoints live."""

    run_id: str
    experiment: str
    point: Point
    folder: Path

    @property
    def point_key(self) -> str:
        """Identity of the point whatever the code version."""
        return digest([self.experiment, self.point.config, self.point.seed])

    @property
    def code_version(self) -> str:
        """The version of the code that decides the numbers."""
        return experiments.get(self.experiment).code_version(self.point)

    @property
    def lock(self) -> Path:
        """The file that is locked by the sweep which has the job in hand."""
        return self.folder.with_name(f"{self.folder.name}.lock")

    @property
    def cost(self) -> float:
        """About how much work it is; the unit is the experiment's."""
        return experiments.get(self.experiment).cost(self.point)


@dataclass(frozen=True)
class Finished:
    """What a worker measured: times are UTC, ``environment`` is the worker's."""

    metrics: tuple[Metric, ...]
    environment: dict[str, str]
    started: datetime
    finished: datetime


@dataclass(frozen=True)
class Message:
    """From a worker about its job: a line of text, why it failed or was left, or the result."""

    kind: ProgressKind | Literal["failed", "left", "finished"]
    job: Job
    content: str | Finished

    @property
    def ends(self) -> bool:
        """Whether the job is over."""
        return self.kind in ("failed", "left", "finished")


def serve(connection: Connection) -> None:
    """Measure the jobs that come over ``connection`` until it closes or None comes.

    Ctrl-C is left to the parent. A lost parent ends the worker at its next message.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)
    try:
        while (job := connection.recv()) is not None:
            connection.send(_measure(job, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _measure(job: Job, connection: Connection) -> Message:
    def progress(line: str, *, kind: ProgressKind = "progress") -> None:
        connection.send(Message(kind, job, line))

    return measure(job, progress)


def measure(job: Job, progress: Progress) -> Message:
    """Measure a job in this process and return its last message."""
    from reimpl.version import environment

    try:
        started = _label_folder(job)
        metrics = experiments.get(job.experiment).run(job.point, job.folder, progress)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        trace = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(trace.filename).name}:{trace.lineno}"
        return Message("failed", job, f"{type(error).__name__}: {error} (at {place})")
    return Message("finished", job, Finished(metrics, environment(), started, datetime.now(UTC)))


def _label_folder(job: Job) -> datetime:
    """Say in the folder of a run what it is for; return when the run was first begun (UTC).

    The label tells a later code version whose checkpoint it finds.
    """
    job.folder.mkdir(parents=True, exist_ok=True)
    path = job.folder / LABEL
    try:
        return datetime.fromisoformat(json.loads(path.read_text(encoding="utf-8"))["started"])
    except (OSError, ValueError, KeyError, TypeError):
        started = datetime.now(UTC)
    label = {"point": job.point_key, "code_version": job.code_version, "started": str(started)}
    write_whole(path, json.dumps(label).encode())
    return started


def clear(folder: Path) -> None:
    """Remove what a run kept in order to be gone on with; its curves (Parquet) stay."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix != ".parquet":
                path.unlink()
        folder.rmdir()


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Connection
    job: Job | None = None

    def give(self, job: Job | None) -> None:
        self.job = job
        self.connection.send(job)

    def lost(self) -> Message | None:
        """Return why the job in hand failed, for a worker that has died."""
        if self.job is None:
            return None
        self.process.join()
        return Message(
            "failed", self.job, f"the worker process died (exit code {self.process.exitcode})"
        )


def run_jobs(
    jobs: Sequence[Job], workers: int, is_known: Callable[[Job], bool]
) -> Generator[Message, None, None]:
    """Yield the messages of all jobs as they come; closing the iterator ends the workers.

    A worker that dies fails its job, and a new one takes its place. A job that ``is_known`` by the
    time of its turn, since another sweep has measured it, is left.
    """
    busy: list[_Worker] = []
    with closing(Waiting(jobs, is_known)) as waiting, _ended(busy):
        while True:
            while len(busy) < workers and (job := waiting.pop()) is not None:
                busy.append(_start())
                busy[-1].give(job)
            yield from waiting.passed()
            if not busy:
                return
            ready = wait([worker.connection for worker in busy])
            for worker in [w for w in busy if w.connection in ready]:
                message = _receive(worker)
                if message is not None:
                    yield message
                if message is None or message.ends:
                    if message is not None:
                        waiting.release(message.job)
                    _next_job(worker, waiting, busy)


def _receive(worker: _Worker) -> Message | None:
    try:
        message: Message = worker.connection.recv()
    except (EOFError, OSError):
        worker.connection.close()
        return worker.lost()
    return message


class Waiting:
    """The jobs whose turn has not come, and the locks of those in hand.

    A lock is held until the job's last message was dealt with, so that another sweep finds a point
    locked or known. The system lets go of it when this process ends, however that happens.
    """

    def __init__(self, jobs: Sequence[Job], is_known: Callable[[Job], bool]) -> None:
        self._jobs = list(reversed(jobs))
        self._is_known = is_known
        self._passed: list[Message] = []
        self._locks: dict[str, BaseFileLock] = {}

    def pop(self) -> Job | None:
        """Return the next job that is still to be done, locked."""
        while self._jobs:
            job = self._jobs.pop()
            try:
                reason = self._claim(job)
            except OSError as error:
                self.release(job)
                reason = (
                    f"{job.folder} cannot be used ({error.strerror}); make it writable, move it "
                    "away, or choose another --home"
                )
                self._passed.append(Message("failed", job, reason))
                continue
            if reason is None:
                return job
            self._passed.append(Message("left", job, f"{job.point.label}: {reason}"))
        return None

    def _claim(self, job: Job) -> str | None:
        """Lock a job against other sweeps; return why that cannot be, or None."""
        lock = FileLock(job.lock, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return f"{_holder(job)} is measuring it"
        self._locks[job.run_id] = lock
        if self._is_known(job):
            self.release(job)
            return "another sweep has measured it"
        job.folder.mkdir(exist_ok=True)
        who = f"process {os.getpid()} on {socket.gethostname()}"
        (job.folder / HOLDER).write_text(who, encoding="utf-8")
        return None

    def passed(self) -> Iterator[Message]:
        """Yield a message for each job that ``pop`` has passed over since the last time."""
        passed, self._passed = self._passed, []
        yield from passed

    def release(self, job: Job) -> None:
        """Let go of a job; where nothing of it is left to go on from, there is nothing to lock."""
        lock = self._locks.pop(job.run_id, None)
        if lock is not None:
            lock.release()
        if not (job.folder / HOLDER).exists():
            with suppress(OSError):  # Windows: another process is just looking
                job.lock.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of all jobs."""
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()


def _holder(job: Job) -> str:
    try:
        return f"another sweep ({(job.folder / HOLDER).read_text(encoding='utf-8')})"
    except (OSError, UnicodeDecodeError):
        return "another sweep"


def _next_job(worker: _Worker, waiting: Waiting, busy: list[_Worker]) -> None:
    """Give a free worker the next job; without one, or if it has died, let it go."""
    if not worker.connection.closed and (job := waiting.pop()) is not None:
        worker.give(job)
        return
    busy.remove(worker)
    if not worker.connection.closed:
        worker.give(None)
        worker.connection.close()
    worker.process.join()


def _start() -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    with _interrupts_held():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back, so that a process started meanwhile is never interrupted by it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ended(busy: list[_Worker]) -> Iterator[None]:
    """End the workers that are still running on the way out, whatever the reason."""
    try:
        yield
    finally:
        for worker in busy:
            worker.process.terminate()
        for worker in busy:
            worker.process.join()


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
