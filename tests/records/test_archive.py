"""The evidence archive read by whoever has only the workspace's folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from provenance.evidence import Archive, Exchange
from records.archive import Capture, read_capture, text_of
from records.errors import EvidenceError


def stored(folder: Path, body: bytes = b"<b>page</b>", media_type: str = "text/html") -> Capture:
    url = "https://example.org/page"
    headers = (("Content-Type", media_type),)
    return Archive(folder).store(Exchange("S", url, url, 200, (), headers, body))


def test_what_was_stored_is_read(tmp_path: Path) -> None:
    kept = stored(tmp_path)
    assert read_capture(tmp_path, kept.evidence_id) == (kept, b"<b>page</b>")


def test_the_part_of_an_id_that_names_a_finding_is_left_out(tmp_path: Path) -> None:
    kept = stored(tmp_path)
    assert read_capture(tmp_path, f"{kept.evidence_id}#title")[0] == kept


def test_of_two_equal_answers_the_newest_is_read(tmp_path: Path) -> None:
    url = "https://example.org/page"
    exchange = Exchange("S", url, url, 200, body=b"x")
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    first, second = (Archive(tmp_path).store(exchange, moment) for moment in times)
    assert first.evidence_id == second.evidence_id
    assert read_capture(tmp_path, first.evidence_id)[0].fetched == times[1]


@pytest.mark.parametrize("evidence_id", ["pmlr-v139", "warc:", "warc:../../etc/passwd", "warc:0-0"])
def test_an_id_that_is_not_there_is_an_evidence_error(tmp_path: Path, evidence_id: str) -> None:
    stored(tmp_path)
    with pytest.raises(EvidenceError, match="is not in the evidence archive"):
        read_capture(tmp_path, evidence_id)


def test_an_archive_that_is_not_there_is_an_evidence_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="is not in the evidence archive"):
        read_capture(tmp_path / "none", "warc:0000000000000000-0000000000000000")


def test_a_damaged_file_is_an_evidence_error(tmp_path: Path) -> None:
    kept = stored(tmp_path)
    path = tmp_path / kept.file
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(EvidenceError, match="cut short"):
        read_capture(tmp_path, kept.evidence_id)


def test_only_a_media_type_of_text_is_text(tmp_path: Path) -> None:
    for media_type, text in (("text/html", "a\ufffd"), ("application/pdf", None)):
        kept = stored(tmp_path, b"a\xff", media_type)
        assert text_of(kept, b"a\xff") == text
