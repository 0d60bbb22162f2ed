"""Peak memory of one forward and backward pass, in a process of its own."""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

WARM_UP = 64
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_megabytes(rule: str, batch: int, length: int, heads: int, dim: int) -> float | None:
    """Return the highest resident set less what the process had before it made its inputs.

    So inputs, gradients and all that is kept between the passes count; the libraries do not. None
    where the kernel does not tell (anywhere but on Linux). One thread: each has buffers.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        return fresh.submit(_measure, rule, batch, length, heads, dim).result()


def _measure(rule: str, batch: int, length: int, heads: int, dim: int) -> float | None:
    import torch

    from reimpl.bench.inputs import Shape, forward_backward, make_inputs, ours

    torch.set_num_threads(1)

    def once(positions: int) -> None:
        inputs = make_inputs(rule, Shape(batch, positions, heads, dim, dim), state=False)
        forward_backward(ours(rule), inputs)()

    once(WARM_UP)
    try:
        RESET.write_text("5")
        before = _status("VmRSS")
        once(length)
        return (_status("VmHWM") - before) / 1024
    except OSError:
        return None


def _status(field: str) -> int:
    """Return a size in KB that the kernel tells of this process."""
    (size,) = re.findall(rf"^{field}:\s*(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    return int(size)
