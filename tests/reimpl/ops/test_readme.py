"""The example of the operators' README runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reimpl import ops

README = Path(ops.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_the_example_trains_and_decodes() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["q"].grad.isfinite().all()
    assert names["y_next"].shape == (2, 8, 64)
    assert names["state"].shape == (2, 8, 64, 64)
