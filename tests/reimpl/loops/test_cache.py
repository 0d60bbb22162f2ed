from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import reimpl

CALL = """
import numpy as np
from reimpl.loops.features import Tables
from reimpl.loops.weights import sum_forward
one, rows, w = np.ones((1, 4)), np.zeros((1, 1), np.int64), np.zeros((1, 1))
sum_forward(Tables(0, 0, one, one, one, one), (rows, rows), one, w)
print(w[0, 0])
"""


def test_a_change_in_a_called_file_is_compiled_anew(tmp_path: Path) -> None:
    """``weights`` calls into ``features``: φ(2) = 3 in four places, then 4 after the change."""
    source = Path(reimpl.__file__).parent
    copy = tmp_path / "reimpl"
    shutil.copytree(source / "loops", copy / "loops", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").write_text("")

    def call() -> str:
        done = subprocess.run(
            [sys.executable, "-c", CALL], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert call() == "12.0"
    path = copy / "loops" / "features.py"
    text = path.read_text(encoding="utf-8")
    assert "x + one if" in text
    path.write_text(text.replace("x + one if", "x + one + one if"), encoding="utf-8")
    assert call() == "16.0"
