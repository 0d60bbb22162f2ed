"""Files from which a killed run goes on: written whole or not at all, and read with suspicion."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from records.files import write_whole

NAME = "checkpoint.pt"


class UnusableCheckpoint(Exception):
    """The file is there, but another point or code version wrote it, or it is damaged."""


def save(folder: Path, identity: str, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors, numbers, strings, lists, dicts) for the run ``identity``.

    A reader finds the previous file or the new one, never a part of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save({"identity": identity, "state": state}, buffer)
    write_whole(folder / NAME, buffer.getvalue())


def load(folder: Path, identity: str) -> dict[str, Any] | None:
    """Return the state that ``save`` wrote for ``identity``, or None where there is no file.

    Raises UnusableCheckpoint, saying why, where the file cannot be used.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        found = torch.load(path, weights_only=True, map_location="cpu")
        state, wrote = found["state"], found["identity"]
    except Exception as error:  # what torch raises depends on the bytes: IndexError, too
        raise UnusableCheckpoint(
            f"checkpoint {path} cannot be read ({type(error).__name__})"
        ) from error
    if wrote != identity:
        raise UnusableCheckpoint(
            f"checkpoint {path} was written by another configuration or code version"
        )
    return dict(state)
