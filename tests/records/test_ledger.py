from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import WorkspaceError
from records.ledger import Ledger, from_line, to_line
from records.models import Metric, Paper, Run

ONE = Paper(paper_id="1", title="One", evidence_id="e")
TWO = Paper(paper_id="2", title="Two", evidence_id="e")


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    Ledger(tmp_path).append("a", [ONE, TWO])
    assert Ledger(tmp_path).read().current() == [ONE, TWO]


@given(st.text(min_size=1, max_size=200).filter(str.strip), st.none() | st.integers(1600, 2200))
def test_every_record_survives_its_line(text: str, year: int | None) -> None:
    paper = Paper(paper_id=text, title=text, year=year, evidence_id=text)
    line = to_line(paper)
    assert "\n" not in line
    assert from_line(line) == paper


@given(st.floats(allow_nan=False), st.none() | st.integers(0, 10**6))
def test_every_number_survives_its_line(value: float, step: int | None) -> None:
    now = datetime.now(UTC)
    run = Run(
        run_id="r", experiment="x", config={}, seed=1, code_version="c", environment={},
        started=now, finished=now, metrics=(Metric(name="m", value=value, step=step),),
    )  # fmt: skip
    assert from_line(to_line(run)) == run


def test_a_nan_metric_survives_the_ledger(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    run = Run(
        run_id="r", experiment="x", config={}, seed=1, code_version="c", environment={},
        started=now, finished=now, metrics=(Metric(name="eval_loss", value=float("nan")),),
    )  # fmt: skip
    Ledger(tmp_path).append("run/r", [run])
    (read,) = Ledger(tmp_path).read().current()
    assert isinstance(read, Run)
    assert read.metrics[0].value != read.metrics[0].value


def test_line_separators_inside_a_text_do_not_split_a_record(tmp_path: Path) -> None:
    odd = Paper(paper_id="1", title="a\u2028b\x85c\x1cd", evidence_id="e")
    Ledger(tmp_path).append("a", [odd])
    contents = Ledger(tmp_path).read()
    assert contents.problems == ()
    assert contents.current() == [odd]


def test_the_same_batch_again_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.append("a", [ONE]) is not None
    assert ledger.append("a", [ONE]) is None
    assert len(ledger.names()) == 1


def test_a_batch_that_returns_to_an_older_state_is_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for record in (ONE, TWO, ONE):
        ledger.append("a", [record])
    assert ledger.read().current() == [ONE]
    assert len(ledger.names()) == 3


def test_the_newest_batch_of_an_origin_counts_and_the_older_stays_on_disk(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a", [ONE])
    ledger.append("b", [ONE])
    ledger.append("a", [TWO])
    assert ledger.read().current() == [ONE, TWO]
    assert len(ledger.read().batches) == 3


def test_a_half_written_batch_of_a_dead_process_is_ignored_and_reported(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a", [ONE])
    left = ledger.folder / f".00000000000000000001-a-0123456789abcdef.jsonl.{dead_pid()}.tmp"
    left.write_text('{"origin": "a", "rec')
    assert ledger.read().current() == [ONE]
    (problem,) = ledger.half_written()
    assert problem.startswith(f"half-written batch {left.name} ignored")


def test_a_batch_that_another_process_is_writing_is_no_problem(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a", [ONE])
    (ledger.folder / f".x.jsonl.{os.getpid()}.tmp").write_text("")
    assert list(ledger.half_written()) == []


def test_a_damaged_batch_is_left_out_and_reported(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    path = ledger.append("a", [ONE])
    ledger.append("b", [TWO])
    assert path is not None
    path.write_bytes(path.read_bytes()[:-10])
    contents = ledger.read()
    assert contents.current() == [TWO]
    assert f"ledger batch {path.name} is damaged" in contents.problems[0]


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    ledger = Ledger(tmp_path)
    with pytest.raises(WorkspaceError, match="No space left on device"):
        ledger.append("a", [ONE])
    assert list(ledger.folder.iterdir()) == []


def test_a_killed_writer_loses_only_the_batch_in_hand(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from records.ledger import Ledger;"
        "from records.models import Paper; ledger = Ledger(Path(sys.argv[1]));"
        "ledger.append('a', [Paper(paper_id='1', title='One', evidence_id='e')]);"
        "os.fsync = lambda fd: os.kill(os.getpid(), 9);"
        "ledger.append('b', [Paper(paper_id='2', title='Two', evidence_id='e')])"
    )
    process = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert process.returncode == -9
    contents = Ledger(tmp_path).read()
    assert contents.current() == [ONE]
    assert contents.problems == ()
    assert len(list(Ledger(tmp_path).half_written())) == 1


def test_a_batch_can_be_written_again_to_say_that_it_still_holds(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("verify/1", [ONE])
    first = ledger.newest("verify/")
    assert ledger.append("verify/1", [ONE], repeat=True) is not None
    assert ledger.newest("verify/") > first
    assert ledger.newest("import/") == ""


def test_a_clock_that_was_set_back_does_not_hide_the_new_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a", [ONE])
    monkeypatch.setattr("time.time_ns", lambda: 1)
    ledger.append("a", [TWO])
    assert ledger.read().current() == [TWO]


@pytest.mark.parametrize("origin", ["a/b_c", "a_b/c", "a/b/c", "a/" + "x" * 300, "a/ü\n"])
def test_origins_that_look_alike_keep_apart(tmp_path: Path, origin: str) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a/b c", [ONE])
    ledger.append(origin, [TWO])
    assert ledger.append(origin, [TWO]) is None
    assert ledger.read().current() == [ONE, TWO]


def test_a_batch_without_a_header_is_left_out(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append("a", [ONE])
    content = b"[]\n"
    sha = hashlib.sha256(content).hexdigest()[:16]
    (ledger.folder / f"{1:020d}-b-{sha}.jsonl").write_bytes(content)
    contents = ledger.read()
    assert contents.current() == [ONE]
    assert "no readable header" in contents.problems[0]
