"""Which code made a number: the project's version and a digest of all sources under ``reimpl``."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

VERSION = "0.1.0"
"""The version in pyproject.toml, here so that an uninstalled checkout makes the same run ids."""


@cache
def code_version() -> str:
    """Return ``<version>+<10 hex digits>``; any change to a source file changes the digits."""
    return f"{VERSION}+{_source_digest(Path(__file__).parent)}"


def _source_digest(folder: Path) -> str:
    """Return 10 hex digits of the names and contents of all ``*.py`` below ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
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
        "platform": platform.platform(),
        "device": "cpu",
        "threads": str(torch.get_num_threads()),
    }
