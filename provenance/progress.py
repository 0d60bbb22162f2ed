"""How far asking has come: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Tick = Callable[[], None]
Meter = Callable[[int], AbstractContextManager[Tick]]
"""Takes how much there is to do, and gives what is to be called after each part of it."""


@contextmanager
def no_meter(_: int) -> Iterator[Tick]:
    """Show nothing."""
    yield lambda: None


@contextmanager
def terminal_meter(total: int) -> Iterator[Tick]:
    """Show a bar with the time left on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking up", total=total)
        yield lambda: bar.advance(task)
