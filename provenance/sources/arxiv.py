"""arXiv: the version history of a paper, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from provenance.match import parse_day


@dataclass(frozen=True)
class Version:
    """One version of an arXiv paper; a title or day that was not read is None."""

    number: int
    posted: date | None
    title: str | None

    def __str__(self) -> str:
        return f"v{self.number}" + (f" ({self.posted})" if self.posted else "")


def parse_versions(facts: Mapping[str, Any]) -> list[Version]:
    """Return the versions of an ``arxiv-versions`` evidence, the first one first.

    Raises:
        ValueError: ``versions`` is no list of tables with a whole number as ``version``.
    """
    versions = []
    for entry in facts.get("versions", []):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("version"), int):
            raise ValueError(f"a version is a table with a number, not {entry!r:.60}")
        title = entry.get("title")
        posted = parse_day(str(entry.get("posted")))
        versions.append(Version(entry["version"], posted, str(title) if title else None))
    return sorted(versions, key=lambda version: version.number)
