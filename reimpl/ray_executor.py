"""Measure jobs on a Ray cluster, one task and one core each.

Checkpoints and locks lie in the workspace, so a point whose worker died goes on from there on
another node only if all nodes see that folder; otherwise it starts again. Every node needs this
project in this version. Ray is an optional extra.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from records.errors import ConfigError
from reimpl.experiments.base import ProgressKind
from reimpl.workers import HOLDER, Finished, Job, Message, Waiting, clear, measure

POLL_SECONDS = 0.5
ANSWER_SECONDS = 5.0
"""How long a cluster may take to answer; Ray itself would try for minutes."""
RETRIES = 3
"""How often a point is begun again where its worker process or node was lost."""


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    is_known: Callable[[Job], bool],
    *,
    address: str | None = None,
) -> Generator[Message, None, None]:
    """Yield the messages of all jobs as ``workers.run_jobs`` does; closing it cancels the rest.

    ``address`` is that of a running cluster, whose cores are all used; without one a local one with
    ``workers`` cores is started, and stopped at the end. Raises ConfigError where Ray is missing or
    does not answer.
    """
    ray = _ray()
    _connect(ray, address, workers)
    try:
        cores = max(1, int(ray.cluster_resources().get("CPU", 1))) if address else workers
        with closing(Waiting(jobs, is_known)) as waiting:
            yield from _messages(ray, waiting, cores)
    finally:
        ray.shutdown()


def at(address: str | None) -> Callable[..., Generator[Message, None, None]]:
    """Return the executor of the cluster at ``address``."""
    return partial(run_jobs, address=address)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "the executor 'ray' needs the package ray; install it with: pip install "
            "'fwp-repro[ray]'"
        ) from error
    return ray


def _connect(ray: Any, address: str | None, workers: int) -> None:
    if address is not None:
        _require_answer(address)
    cores = {} if address else {"num_cpus": workers}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        with _signals_kept():
            ray.init(
                address=address or "local",
                include_dashboard=False if address is None else None,
                log_to_driver=False,
                logging_level="ERROR",
                **cores,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address or 'this machine'}: {error}"
        ) from error


def _require_answer(address: str) -> None:
    """Raise ConfigError unless something listens at ``host:port``; other forms are left to Ray."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address}: {error}; start one with: ray start --head"
        ) from error


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Undo that Ray takes SIGTERM for itself, which would end a sweep without a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _messages(ray: Any, waiting: Waiting, cores: int) -> Generator[Message, None, None]:
    lines = ray.remote(num_cpus=0)(_Lines).remote()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_measure)
    running: dict[Any, Job] = {}
    noticed: set[str | Finished] = set()
    try:
        while True:
            while len(running) < cores and (job := waiting.pop()) is not None:
                running[task.remote(job, lines)] = job
            yield from waiting.passed()
            if not running:
                return
            ended, _ = ray.wait(list(running), num_returns=1, timeout=POLL_SECONDS)
            for message in ray.get(lines.take.remote()):
                if message.kind != "notice" or message.content not in noticed:
                    yield message
                if message.kind == "notice":
                    noticed.add(message.content)
            for reference in ended:
                job = running.pop(reference)
                yield _outcome(ray, reference, job)
                waiting.release(job)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _outcome(ray: Any, reference: Any, job: Job) -> Message:
    try:
        message: Message = ray.get(reference)
    except ray.exceptions.RayError as error:
        reason = str(error).splitlines()[0]
        return Message("failed", job, f"Ray lost it {RETRIES + 1} times: {reason}")
    return message


class _Lines:
    """Collects what the tasks say, until it is taken."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    def add(self, message: Message) -> None:
        """Keep a message."""
        self._messages.append(message)

    def take(self) -> list[Message]:
        """Return the messages since the last time."""
        taken, self._messages = self._messages, []
        return taken


def _measure(job: Job, lines: Any) -> Message:
    import torch

    from reimpl.runner import run_id

    torch.set_num_threads(1)
    node = socket.gethostname()

    def progress(line: str, *, kind: ProgressKind = "progress") -> None:
        lines.add.remote(Message(kind, job, line))

    if run_id(job.experiment, job.point) != job.run_id:
        return Message("failed", job, f"node {node} has another version of this project")
    if (job.folder / HOLDER).exists():
        return measure(job, progress)
    progress(
        f"node {node} does not see {job.folder.parent}: a point that loses its worker there starts "
        "again on another node",
        kind="notice",
    )
    message = measure(job, progress)
    if message.kind == "finished":
        clear(job.folder)
    return message
