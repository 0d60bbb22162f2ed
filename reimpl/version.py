"""Which code made a number: the project's version and a digest of the sources that decided it."""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

VERSION = "0.1.0"
"""The version in pyproject.toml, here so that an uninstalled checkout makes the same run ids."""


PACKAGE = Path(__file__).parent
INFRASTRUCTURE = frozenset(
    f"reimpl.{name}" for name in ("version", "checkpoint", "experiments", "experiments.base")
)
"""Modules that carry numbers about and decide none."""


@cache
def code_version(*roots: str) -> str:
    """Return ``<version>+<10 hex digits>``; any change to a source file changes the digits.

    With ``roots``, names of modules of ``reimpl``, only these and what they import count, so that
    work elsewhere leaves the version of a long sweep as it was. Without, all of ``reimpl`` does.
    """
    names = imported(roots) if roots else ()
    paths = [_path(name) for name in names] if roots else PACKAGE.rglob("*.py")
    return f"{VERSION}+{_source_digest(PACKAGE, paths)}"


def imported(roots: Iterable[str]) -> list[str]:
    """Return the modules of ``reimpl`` that ``roots`` are and import, directly or not, sorted.

    Imports inside functions count; ``INFRASTRUCTURE`` does not, nor do parent packages that no
    statement names.
    """
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found | INFRASTRUCTURE:
            found.add(name)
            waiting += _imports(_path(name))
    return sorted(found)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [name for name in inside if _is_module(name)]
            names = modules if len(modules) == len(inside) else [node.module, *modules]
        yield from (name for name in names if _is_module(name))


def _is_module(name: str) -> bool:
    return name.split(".")[0] == "reimpl" and _path(name).is_file()


def _path(name: str) -> Path:
    base = PACKAGE.joinpath(*name.split(".")[1:])
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def _source_digest(folder: Path, paths: Iterable[Path]) -> str:
    """Return 10 hex digits of the names, relative to ``folder``, and contents of ``paths``."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:10]


def environment() -> dict[str, str]:
    """Return what else a number may depend on: versions, platform, device and threads."""
    import numpy
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "numba": metadata.version("numba"),
        "platform": platform.platform(),
        "device": _device(),
        "threads": str(torch.get_num_threads()),
        "denormals": "kept" if torch.tensor(1e-40) * 1 > 0 else "flushed",
    }


def _device() -> str:
    """Return the name of the GPU that this process has worked on, and ``cpu`` if on none."""
    import torch

    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_device_name() if used else "cpu"
