"""Peak memory of some work, in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

WARM_UP = 64
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_megabytes(rule: str, batch: int, length: int, heads: int, dim: int) -> float | None:
    """Return the peak of one forward and backward pass of an update rule, as ``peak_of`` does."""
    return peak_of(partial(_pass, rule, batch, heads, dim), WARM_UP, length)


def peak_of(work: Callable[[int], object], small: int, large: int) -> float | None:
    """Return the highest resident set of ``work(large)`` less what the process had before it.

    So inputs, gradients and all that is kept between the passes count; the libraries and what
    ``work(small)``, called first, makes them load do not. None where the kernel does not tell
    (anywhere but on Linux). One thread: each has buffers. ``work`` must be picklable.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        return fresh.submit(measure_here, work, small, large).result()


def measure_here(work: Callable[[int], object], small: int, large: int) -> float | None:
    """Do what ``peak_of`` says in this process, which must be fresh."""
    import torch

    torch.set_num_threads(1)
    work(small)
    try:
        RESET.write_text("5")
        before = _status("VmRSS")
        work(large)
        return (_status("VmHWM") - before) / 1024
    except OSError:
        return None


def _pass(rule: str, batch: int, heads: int, dim: int, length: int) -> None:
    from reimpl.bench.inputs import Shape, forward_backward, make_inputs, ours

    inputs = make_inputs(rule, Shape(batch, length, heads, dim, dim), state=False)
    forward_backward(ours(rule), inputs)()


def _status(field: str) -> int:
    """Return a size in KB that the kernel tells of this process."""
    (size,) = re.findall(rf"^{field}:\s*(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    return int(size)
