"""Kernels run under Triton's interpreter, chosen when triton is imported; buffers start as NaN."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

torch.set_num_threads(1)


def _poisoned(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def made(*args: Any, **kwargs: Any) -> Tensor:
        buffer = make(*args, **kwargs)
        return buffer.fill_(float("nan")) if buffer.is_floating_point() else buffer

    return made


@pytest.fixture(autouse=True)
def _nan_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill every buffer that code asks for with NaN, so that what is not written shows."""
    for owner, name in ((torch, "empty"), (torch, "empty_like"), (Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, _poisoned(getattr(owner, name)))
