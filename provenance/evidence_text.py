"""The evidence archive, for people: what it holds, one piece of it, and whether it is whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from provenance.evidence import Archive
from records.archive import Capture, text_of
from records.errors import EvidenceError
from records.exchange import printable

SHOWN = 4000
"""Characters of a body that are shown; the whole of it can be written to a file."""


@dataclass(frozen=True)
class Health:
    """What a check of the archive found: how many captures are whole, and what is amiss."""

    whole: int
    problems: tuple[str, ...]


def capture_rows(captures: Iterable[Capture], known: set[str]) -> list[tuple[str, str, str, str]]:
    """Return a row (id, grade, day, source) for each capture that ``known`` does not name."""
    rows = {
        c.evidence_id: (c.evidence_id, "captured", str(c.fetched.date()), f"{c.source}: {c.url}")
        for c in captures
        if c.evidence_id not in known
    }
    return list(rows.values())


def capture_fields(capture: Capture, body: bytes) -> list[tuple[str, str]]:
    """Return what describes a capture, and the beginning of its body as harmless text."""
    fields = [(name, str(value)) for name, value in capture.model_dump(mode="json").items()]
    return [*fields, ("body", _shown(capture, body))]


def _shown(capture: Capture, body: bytes) -> str:
    text = text_of(capture, body)
    if text is None:
        return f"({len(body):,} bytes of {capture.media_type or 'an unnamed type'})"
    more = f"\n... ({len(text):,} characters in all)" if len(text) > SHOWN else ""
    return printable(text[:SHOWN]) + more


def check_archive(archive: Archive, cited: Sequence[str]) -> Health:
    """Read and hash every file, and look for what the ledger rests on.

    Args:
        archive: the folder of captures.
        cited: the ids of captured evidence that the ledger holds.
    """
    problems = archive.check()
    held = {capture.evidence_id for capture in archive.captures()}
    for evidence_id in cited:
        if evidence_id.partition("#")[0] not in held:
            problems.append(
                f"{evidence_id} is cited by the ledger, and the archive {archive.folder} does not "
                "hold it whole; copy the archive's folder with the ledger, or verify again online"
            )
    return Health(whole=len(list(archive.captures())), problems=tuple(problems))


def body_of(archive: Archive, evidence_id: str) -> tuple[Capture, bytes]:
    """Return a capture and its body.

    Raises:
        EvidenceError: the archive does not hold it whole.
    """
    capture = archive.get(evidence_id)
    body = archive.read(capture)
    if len(body) != capture.size:
        raise EvidenceError(f"{evidence_id} has {len(body)} bytes, not {capture.size}")
    return capture, body
