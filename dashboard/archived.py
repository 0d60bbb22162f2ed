"""The archived bytes of a source as harmless text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from records import archive
from records.exchange import printable

PART = 20_000
"""Characters of a text that are shown at once."""


@dataclass(frozen=True)
class Opened:
    """A captured answer: what describes it, its bytes, and its text if it is one."""

    capture: archive.Capture
    body: bytes
    text: str | None

    @property
    def parts(self) -> int:
        """How many parts of ``PART`` characters the text has."""
        return max(1, -(-len(self.text or "") // PART))

    def part(self, number: int) -> str:
        """Return one part of the text, counted from 1, without control characters."""
        return printable((self.text or "")[(number - 1) * PART : number * PART])


def open_capture(home: Path, evidence_id: str) -> Opened:
    """Return what the archive of a workspace holds of a source, its hash computed anew.

    Raises:
        EvidenceError: it holds nothing, or what it holds is damaged.
    """
    capture, body = archive.read_capture(home / archive.FOLDER, evidence_id)
    return Opened(capture, body, archive.text_of(capture, body))
