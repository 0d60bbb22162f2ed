"""What a bench found: tables with the signature of how they were made, as text and as JSON."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from records.errors import ConfigError
from records.exchange import table
from records.files import write_whole
from reimpl.version import code_version


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing: their median and quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Summarise at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high)

    def __str__(self) -> str:
        return f"{_short(self.median)} ({_short(self.low)}–{_short(self.high)})"


def _short(value: float) -> str:
    """Return three significant digits without an exponent where people can read it so."""
    if value == 0 or not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


@dataclass(frozen=True)
class Section:
    """One table. Where ``in_text`` is False it is only in the JSON."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()
    in_text: bool = True

    def text(self) -> str:
        """Return the table for people, its notes below."""
        return "\n".join([table(self.columns, self.rows, title=self.title), *self.notes])

    def plain(self) -> dict[str, Any]:
        """Return the table as JSON has it: one object a row."""
        rows = [{c: _plain(v) for c, v in zip(self.columns, row, strict=True)} for row in self.rows]
        return {"title": self.title, "rows": rows, "notes": list(self.notes)}


@dataclass(frozen=True)
class Report:
    """All tables of one call; ``failed`` where a check did not hold."""

    environment: Mapping[str, str]
    sections: list[Section]
    failed: bool

    @property
    def signature(self) -> str:
        """How every number here was made, in one line."""
        return "|".join(f"{name}:{value}" for name, value in self.environment.items())

    def text(self) -> str:
        """Return the tables for people."""
        shown = [section.text() for section in self.sections if section.in_text]
        return "\n\n".join([*shown, self.signature])

    def json(self) -> str:
        """Return everything; measurements are ``{median, low, high}``."""
        document = {
            "signature": self.signature,
            "environment": dict(self.environment),
            "failed": self.failed,
            "sections": [section.plain() for section in self.sections],
        }
        return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)

    def write(self, path: Path) -> None:
        """Write the JSON, whole or not at all; ConfigError where that cannot be done."""
        try:
            write_whole(path, (self.json() + "\n").encode())
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Spread):
        return {name: _plain(number) for name, number in asdict(value).items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def environment(device: str, **more: str) -> dict[str, str]:
    """Return what a number depends on: op, device, versions, code and day."""
    return {
        "op": "fast_weight_attention",
        "device": device,
        "torch": installed("torch"),
        "triton": installed("triton"),
        "python": platform.python_version(),
        **more,
        "version": code_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def installed(package: str) -> str:
    """Return the version of an installed distribution, or ``none``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def cpu_name() -> str:
    """Return the processor's name as its maker writes it, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
