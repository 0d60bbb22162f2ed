"""Kernels run under Triton's interpreter, chosen when triton is imported; buffers start as NaN."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _nan_buffers() -> Iterator[None]:
    """Have torch fill every new buffer with NaN, so that what is not written shows."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)
