"""Inner loops compiled for the CPU: the retrieval models without their states.

Numba keeps machine code beside a source file for as long as that file does not change, though a
function may call into other files that do. So the code is kept in a folder of this state of all of
them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numba

_HERE = Path(__file__).parent
_STATE = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py"))))
_CONFIG: Any = numba.config  # whose names come from the environment
_CACHE = Path(_CONFIG.CACHE_DIR or _HERE / "__pycache__")

_CONFIG.CACHE_DIR = str(_CACHE / f"numba-{_STATE.hexdigest()[:10]}")
