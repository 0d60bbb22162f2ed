"""Inner loops compiled for the CPU: the retrieval models without their states.

Numba keeps machine code beside a source file for as long as that file does not change, though a
function may call into other files that do. So the code is kept in a folder of this state of all of
them. Where Numba could not write there it would use a folder of its own choice, which knows of one
file only, or refuse to compile: so the folder is one that can be written to, at worst a temporary
one of this process.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba

_HERE = Path(__file__).parent
_STATE = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py"))))
_CONFIG: Any = numba.config  # whose names come from the environment


def _candidates() -> Iterator[Path]:
    if _CONFIG.CACHE_DIR:
        yield Path(_CONFIG.CACHE_DIR)
    yield _HERE / "__pycache__"
    try:
        yield Path.home() / ".cache" / "fwp-repro"
    except RuntimeError:  # a user without a home
        return


def _cache() -> Path:
    """Return a folder for the code of this state that can be written to."""
    for parent in _candidates():
        folder = parent / f"numba-{_STATE.hexdigest()[:10]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    folder = Path(tempfile.mkdtemp(prefix="fwp-numba-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_CONFIG.CACHE_DIR = str(_cache())
if _CONFIG.DISABLE_JIT:
    warnings.warn(
        "NUMBA_DISABLE_JIT is set: the loops of the retrieval models are interpreted, which takes "
        "hundreds of times as long",
        stacklevel=2,
    )
