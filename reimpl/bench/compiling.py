"""Compile every kernel without a GPU; tell registers, spills and shared memory.

Worker processes do it, in which triton's interpreter is off whatever the environment says: how a
kernel is decorated is decided when triton is imported. So nothing here imports it at the top.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from records.errors import ConfigError
from reimpl.bench.report import Report, Section, environment

if TYPE_CHECKING:
    from reimpl.ops.launching import CompileCase

MODULES = ("reimpl.ops.recurrent_kernel", "reimpl.ops.chunk_launch")
"""Modules whose ``compile_cases()`` list what is compiled."""
SHARED_KB = {"sm_80": 163, "sm_90": 227}
"""The most shared memory that one program may have, by architecture."""
ALIGNED = [["tt.divisibility", 16]]
"""What triton learns at a launch of a pointer that torch allocated, and of multiples of 16."""


class Compiled(NamedTuple):
    """One kernel, compiled; ``result`` is ``ok`` or why it cannot be used."""

    kernel: str
    configuration: str
    arch: str
    registers: int | None
    spill_bytes: int | None
    shared_kb: float | None
    result: str


def compile_all(
    archs: Sequence[str],
    *,
    modules: Sequence[str] = MODULES,
    jobs: int | None = None,
    echo: Callable[[str], None],
) -> Report:
    """Compile all cases for each architecture; the report fails where one spills or does not fit.

    ``jobs`` is the number of processes, one a core if None. Raises ConfigError where triton is
    not installed.
    """
    check_archs(archs)
    if find_spec("triton") is None:
        raise ConfigError(
            "triton is not installed, so no kernel can be compiled; it comes with this project on "
            "Linux and does not exist for other systems"
        )
    rows = sorted(_compiled(archs, modules, jobs or available_cores(), echo))
    wrong = [row for row in rows if row.result != "ok"]
    note = f"{len(rows)} compiled, {len(wrong)} with spills, too much shared memory or an error"
    section = Section("Compiled without a GPU", Compiled._fields, list(rows), (note,))
    return Report(environment(", ".join(archs)), [section], failed=bool(wrong))


def check_archs(archs: Sequence[str]) -> None:
    """Raise ConfigError for an architecture whose limits are not known here."""
    for arch in archs:
        if arch not in SHARED_KB:
            raise ConfigError(f"unknown architecture {arch!r}; use {' or '.join(SHARED_KB)}")


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compiled(
    archs: Sequence[str], modules: Sequence[str], jobs: int, echo: Callable[[str], None]
) -> Iterable[Compiled]:
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start_worker) as pool:
        counts = {module: pool.submit(_count, module) for module in modules}
        tasks = [
            pool.submit(_compile_numbered, module, index, arch)
            for module, count in counts.items()
            for index in range(count.result())
            for arch in archs
        ]
        for done, task in enumerate(as_completed(tasks), 1):
            row = task.result()
            echo(f"{done}/{len(tasks)} {row.arch} {row.kernel}: {row.result}")
            yield row


def _start_worker() -> None:
    os.environ.pop("TRITON_INTERPRET", None)


@cache
def _cases(module: str) -> list[CompileCase]:
    found: list[CompileCase] = import_module(module).compile_cases()
    return found


def _count(module: str) -> int:
    return len(_cases(module))


def _compile_numbered(module: str, index: int, arch: str) -> Compiled:
    case = _cases(module)[index]
    try:
        registers, spills, shared = _measure(case, arch)
    except Exception as error:  # a compiler's errors are of many kinds; the row shows this one
        reason = f"{type(error).__name__}: {str(error).strip()[-300:]}"
        return Compiled(case.name, _configuration(case), arch, None, None, None, reason)
    result = "ok"
    if spills:
        result = "spills registers"
    elif shared > SHARED_KB[arch]:
        result = f"needs more than {SHARED_KB[arch]} KB of shared memory"
    return Compiled(case.name, _configuration(case), arch, registers, spills, shared, result)


def _configuration(case: CompileCase) -> str:
    """Return block sizes and the shape of a program; the case's name says the rest."""
    blocks = [f"{n}={size}" for n, size in case.constants.items() if re.fullmatch("B[A-Z]", n)]
    return " ".join([*blocks, f"warps={case.num_warps}", f"stages={case.num_stages}"])


def _measure(case: CompileCase, arch: str) -> tuple[int, int, float]:
    """Return registers a thread, bytes spilled, and KB of shared memory."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = list(case.signature)
    aligned = {
        (names.index(name),): ALIGNED
        for name, kind in case.signature.items()
        if kind.startswith("*") or name in case.aligned
    }
    source = ASTSource(case.kernel, case.signature, case.constants, aligned)
    options = {"num_warps": case.num_warps, "num_stages": case.num_stages}
    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
    compiled = triton.compile(source, target=target, options=options)
    registers, spills = _assembled(compiled.asm["ptx"])
    return registers, spills, compiled.metadata.shared / 1024


def _assembled(ptx: str) -> tuple[int, int]:
    """Return registers a thread and bytes of spill stores, loads and stack that ptxas reports."""
    (gpu,) = re.findall(r"^\.target (sm_\w+)", ptx, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        done = subprocess.run(
            [_ptxas(), "-v", f"--gpu-name={gpu}", source, "-o", os.devnull],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise ConfigError(f"ptxas refused the kernel: {done.stderr.strip()}")
    (registers,) = re.findall(r"Used (\d+) registers", done.stderr)
    spills = re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", done.stderr)
    return int(registers), max(map(int, spills))


def _ptxas() -> Path:
    """Return the assembler that comes with triton."""
    import triton

    found = sorted(Path(triton.__file__).parent.rglob("ptxas"))
    if not found:
        raise ConfigError("triton's package has no ptxas; reinstall triton")
    return found[0]
