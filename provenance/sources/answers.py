"""What the parsers of JSON answers share: values of any kind, taken as what they should be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from records.errors import UnreadableAnswer

_BROKEN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def read_json(body: bytes, source: str, *path: str) -> Any:
    """Return an answer, or what lies in it under some keys.

    Raises:
        UnreadableAnswer: the body is no JSON object, or has no such keys.
    """
    try:
        found = json.loads(body)
        if not isinstance(found, Mapping):
            raise TypeError("no object")
        for key in path:
            found = found[key]
    except _BROKEN as error:
        raise UnreadableAnswer(
            f"{source} answers with something else than was asked for ({type(error).__name__})"
        ) from error
    return found


def items_of(body: bytes, source: str, several: str, one: str) -> Sequence[Any]:
    """Return the items of an answer that is a list under a key, or one item, told by its own key.

    Raises:
        UnreadableAnswer: the answer is neither.
    """
    answer = read_json(body, source)
    if several in answer:
        return listed(answer[several])
    if one not in answer:
        raise UnreadableAnswer(f"{source} answers with neither {several!r} nor {one!r}")
    return [answer]


def listed(value: object) -> Sequence[Any]:
    """Return a list, empty for anything else."""
    return value if isinstance(value, list) else []


def mapped(value: object) -> Mapping[str, Any]:
    """Return an object, empty for anything else."""
    return value if isinstance(value, Mapping) else {}


def line(value: object) -> str:
    """Return text in one line, "" for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def year(value: object) -> int | None:
    """Return a number that can be a year, None for anything else."""
    plausible = isinstance(value, int) and not isinstance(value, bool) and 1000 <= value <= 2999
    return value if plausible else None  # type: ignore[return-value]
