"""Measure jobs on a Ray cluster, one task and one core each.

Checkpoints and locks lie in the workspace, so a point whose worker died goes on from there on
another node only if all nodes see that folder; otherwise it starts again. Ray is an optional extra.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from records.errors import ConfigError
from reimpl.experiments.base import ProgressKind
from reimpl.workers import Job, Message, measure

POLL_SECONDS = 0.5
REACH_SECONDS = 10.0
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

    ``address`` is that of a running cluster; without one a local one with ``workers`` cores is
    started, and stopped at the end. Raises ConfigError where Ray is missing or does not answer.
    """
    ray = _ray()
    _connect(ray, address, workers)
    try:
        yield from _messages(ray, [job for job in jobs if not is_known(job)])
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
    cores = {} if address else {"num_cpus": workers}
    try:
        _reach(address)
        ray.init(address=address, include_dashboard=False, log_to_driver=False, **cores)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster answers at {address or 'this machine'}: {error}"
        ) from error


def _reach(address: str | None) -> None:
    """Raise OSError where nobody listens at HOST:PORT; Ray itself would wait for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()


def _messages(ray: Any, jobs: Sequence[Job]) -> Generator[Message, None, None]:
    lines = ray.remote(num_cpus=0)(_Lines).remote()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_measure)
    running = {task.remote(job, lines): job for job in jobs}
    try:
        while running:
            ended, _ = ray.wait(list(running), num_returns=len(running), timeout=POLL_SECONDS)
            yield from ray.get(lines.take.remote())
            for reference in ended:
                yield _outcome(ray, reference, running.pop(reference))
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

    torch.set_num_threads(1)

    def progress(line: str, *, kind: ProgressKind = "progress") -> None:
        lines.add.remote(Message(kind, job, line))

    message = measure(job, progress)
    while message.kind == "left":  # a lost worker's lock is let go as its process is reaped
        time.sleep(POLL_SECONDS)
        message = measure(job, progress)
    return message
