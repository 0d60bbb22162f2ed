"""The ledger: append-only batches of records on disk, the truth that the index is built from.

A batch is one file that never changes, ``ledger/<time>-<origin>-<sha256[:16]>.jsonl``: a header
line, then one JSON object a record. A process that is killed while it writes one leaves a temporary
file and no batch. The hash in the name is that of the content: a damaged batch is noticed, reported
and left out.

Every batch has an origin ("curated/2102.11174", "verify/2102.11174", "run/1a2b"). The newest batch
of an origin is its current one; older ones stay on disk as history.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from records.errors import DataError, WorkspaceError
from records.files import write_whole
from records.models import (
    Assertion,
    Check,
    Citation,
    Claim,
    Curve,
    Evidence,
    ListEntry,
    Paper,
    Record,
    ReferenceCheck,
    Run,
)

RECORD_TYPES: dict[str, type[Record]] = {
    "paper": Paper,
    "evidence": Evidence,
    "listing": ListEntry,
    "assertion": Assertion,
    "check": Check,
    "citation": Citation,
    "reference": ReferenceCheck,
    "claim": Claim,
    "curve": Curve,
    "run": Run,
}
_TYPE_NAMES = {model: name for name, model in RECORD_TYPES.items()}
_NAME = re.compile(r"^(?P<time>\d{20})-(?P<slug>[\w.+-]+)-(?P<sha>[0-9a-f]{16})\.jsonl$")


@dataclass(frozen=True)
class Batch:
    """One batch as read from disk. ``created`` is UTC."""

    name: str
    origin: str
    created: datetime
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Contents:
    """All readable batches, oldest first, and a sentence for each file that was left out."""

    batches: tuple[Batch, ...]
    problems: tuple[str, ...]

    def current(self) -> list[Record]:
        """Return the records of the newest batch of each origin, in the order of writing."""
        return [record for batch in self.current_batches() for record in batch.records]

    def current_batches(self) -> list[Batch]:
        """Return the newest batch of each origin, oldest first."""
        newest = {batch.origin: batch.name for batch in self.batches}
        return [batch for batch in self.batches if newest[batch.origin] == batch.name]


def to_line(record: Record) -> str:
    """Return the JSON line of a record, with its type name first.

    In a run, the points of a curve are written as one metric with all their ``values``, and with
    their ``steps``, or where these are the first multiples of a number ``every`` so many.
    """
    body = record.model_dump(mode="json", exclude_defaults=True)
    if isinstance(record, Run):
        body["metrics"] = _folded(body["metrics"])
    return json.dumps({"type": _TYPE_NAMES[type(record)], **body}, ensure_ascii=False)


def from_line(line: str) -> Record:
    """Parse what ``to_line`` wrote.

    Raises:
        ValueError: the line is not a JSON object of a known type, or a field is invalid (then a
            pydantic ValidationError, which is a ValueError).
    """
    body = json.loads(line)
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")
    name = body.pop("type", None)
    if not isinstance(name, str) or name not in RECORD_TYPES:
        raise ValueError(f"field 'type' is {name!r}; known: {', '.join(RECORD_TYPES)}")
    if RECORD_TYPES[name] is Run and isinstance(body.get("metrics"), list):
        body["metrics"] = [metric for found in body["metrics"] for metric in _unfolded(found)]
    return RECORD_TYPES[name].model_validate(body)


def _folded(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    def kind(metric: dict[str, Any]) -> str:
        if "step" not in metric:
            return json.dumps(metric)
        return json.dumps({k: v for k, v in metric.items() if k not in ("step", "value")})

    found: list[dict[str, Any]] = []
    for _, each in groupby(metrics, kind):
        group = list(each)
        found += [_curve(group)] if len(group) > 1 and "step" in group[0] else group
    return found


def _curve(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    common = {k: v for k, v in points[0].items() if k not in ("step", "value")}
    steps = [point["step"] for point in points]
    even = steps == [steps[0] * i for i in range(1, len(steps) + 1)]
    place = {"every": steps[0]} if even else {"steps": steps}
    return common | place | {"values": [point["value"] for point in points]}


def _unfolded(metric: Any) -> list[Any]:
    if not (isinstance(metric, dict) and isinstance(metric.get("values"), list)):
        return [metric]
    common = dict(metric)
    values, every = common.pop("values"), common.pop("every", None)
    steps = common.pop("steps", None)
    if every is not None:
        steps = [every * i for i in range(1, len(values) + 1)]
    if not isinstance(steps, list) or len(steps) != len(values):
        raise ValueError("a curve needs as many 'steps' as 'values', or 'every'")
    return [common | {"step": s, "value": v} for s, v in zip(steps, values, strict=True)]


def first_error(error: Exception) -> str:
    """Return one line for a validation error: the field, what is wrong with it, and the value."""
    if not isinstance(error, ValidationError):
        return str(error)
    detail = error.errors()[0]
    field = ".".join(str(part) for part in detail["loc"]) or "record"
    return f"field '{field}': {detail['msg']} (got {detail['input']!r:.80})"


class Ledger:
    """The batches of one workspace folder.

    Args:
        home: the workspace; ``home/ledger`` is created by the first ``append``.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "ledger"

    def names(self) -> list[str]:
        """Return the file names of all batches, oldest first."""
        try:
            return sorted(p.name for p in self.folder.iterdir() if _NAME.match(p.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise WorkspaceError(
                f"cannot read the ledger {self.folder}: {error.strerror}"
            ) from error

    def newest(self, origins: str) -> str:
        """Return the name of the newest batch whose origin begins with this text; '' for none.

        Names sort by the time of writing.
        """
        prefix = re.sub(r"[^A-Za-z0-9_.+]", "_", origins)
        return max((n for n in self.names() if _slug_of(n).startswith(prefix)), default="")

    def is_whole(self, name: str) -> bool:
        """Tell whether a batch can be read and is what its name says."""
        match = _NAME.match(name)
        try:
            content = (self.folder / name).read_bytes()
        except OSError:
            return False
        return match is not None and _sha(content) == match["sha"]

    def append(
        self, origin: str, records: Sequence[Record], *, repeat: bool = False
    ) -> Path | None:
        """Write one batch; return its path, or None where the current batch says the same.

        With ``repeat`` it is written even then, so that its time says when it was found again.

        Raises:
            WorkspaceError: the folder cannot be written; nothing is left behind.
        """
        content = _serialise(origin, records)
        slug = _slug(origin)
        own = [name for name in self.names() if _slug_of(name) == slug]
        if own and not repeat and self._holds(own[-1], content):
            return None
        # a clock that was set back must not put the new batch before an older one
        when = max([time.time_ns(), *(int(name[:20]) + 1 for name in self.names()[-1:])])
        path = self.folder / f"{when:020d}-{slug}-{_sha(content)}.jsonl"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise WorkspaceError(
                f"cannot write to the workspace {self.folder.parent}: {error.strerror}. "
                "Choose a folder that you may write to, with --home or FWP_HOME."
            ) from error
        return path

    def _holds(self, name: str, content: bytes) -> bool:
        try:
            return (self.folder / name).read_bytes() == content
        except OSError:
            return False

    def state(self) -> list[tuple[str, int, int]]:
        """Return name, size and time of change of every batch: equal states, equal contents."""
        found = []
        for name in self.names():
            try:
                stat = (self.folder / name).stat()
            except OSError:
                continue
            found.append((name, stat.st_size, stat.st_mtime_ns))
        return found

    def read(self) -> Contents:
        """Read every batch. Damaged ones are named in ``problems``."""
        batches, problems = [], []
        for name in self.names():
            try:
                batches.append(_parse(name, (self.folder / name).read_bytes()))
            except DataError as error:
                problems.append(str(error))
            except OSError as error:
                problems.append(f"ledger batch {name} cannot be read ({error.strerror}); left out")
        return Contents(tuple(batches), tuple(problems))

    def half_written(self) -> Iterator[str]:
        """Yield a sentence for each batch that a process which has ended left half-written."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(".*.tmp")):
            pid = path.name.split(".")[-2]
            if not (pid.isdigit() and _is_alive(int(pid))):
                yield (
                    f"half-written batch {path.name} ignored: its process ended before it was "
                    "complete. It is safe to delete."
                )


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _serialise(origin: str, records: Iterable[Record]) -> bytes:
    lines = [to_line(record) for record in records]
    header = json.dumps({"origin": origin, "records": len(lines)}, ensure_ascii=False)
    return ("\n".join([header, *lines]) + "\n").encode()


def _slug(origin: str) -> str:
    """Return the part of a file name that stands for an origin; different ones, different parts."""
    plain = re.sub(r"[^A-Za-z0-9_.+]", "_", origin)
    family, _, rest = origin.partition("/")
    if plain == f"{family}_{rest}" and len(plain) <= 80:
        return plain
    return f"{plain[:60]}.{hashlib.sha256(origin.encode()).hexdigest()[:10]}"


def _slug_of(name: str) -> str:
    match = _NAME.match(name)
    return match["slug"] if match else ""


def _parse(name: str, content: bytes) -> Batch:
    match = _NAME.match(name)
    assert match is not None
    if _sha(content) != match["sha"]:
        raise DataError(
            f"ledger batch {name} is damaged (its content does not match its name); left out"
        )
    try:
        header, *lines = content.decode().rstrip("\n").split("\n")
        origin = str(json.loads(header)["origin"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"ledger batch {name} has no readable header; left out") from error
    records = []
    for number, line in enumerate(lines, start=2):
        try:
            records.append(from_line(line))
        except ValueError as error:
            raise DataError(
                f"ledger batch {name}, line {number}: {first_error(error)}; the batch was left out"
            ) from error
    created = datetime.fromtimestamp(int(match["time"]) / 1e9, tz=UTC)
    return Batch(name, origin, created, tuple(records))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
