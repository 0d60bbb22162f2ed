"""The command line: exit codes, messages, and bad input that leaves everything as it was."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from provenance.evidence import Archive
from records.curated import SHIPPED
from records.ledger import Ledger
from records.models import Metric
from records.models import Run as RecordedRun
from records.workspace import Workspace, open_workspace
from reimpl.runner import RerunSummary
from tests.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def home(workspace: Workspace) -> Path:
    return workspace.home


def test_an_empty_workspace_is_loaded_by_the_first_command(run: Run, tmp_path: Path) -> None:
    outcome = run("query", "SELECT count(*) AS n FROM papers", "--home", tmp_path / "new" / "home",
                  "--format", "csv")  # fmt: skip
    assert (outcome.code, outcome.out) == (0, "n\n61\n")


def test_the_workspace_comes_from_the_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FWP_HOME", str(tmp_path / "from-env"))
    assert run("evidence", "list").code == 0
    assert (tmp_path / "from-env" / "ledger").is_dir()


def test_verify_finds_something_wrong_with_the_curated_record(run: Run, home: Path) -> None:
    outcome = run("verify", "--offline", "--home", home)
    assert outcome.code == 1
    assert "+ verified    icml 2021" in outcome.out
    assert "x refuted     iclr 2021" in outcome.out
    assert outcome.err == ""


def test_verify_of_a_paper_without_findings_succeeds(run: Run, home: Path) -> None:
    assert run("verify", "1706.03762", "--offline", "--home", home).code == 0


def test_strict_verification_wants_everything_checked(run: Run, home: Path) -> None:
    assert run("verify", "1706.03762", "--offline", "--strict", "--home", home).code == 1


def test_verify_says_which_sources_could_not_be_asked(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With an archive at hand; what it does not hold cannot be asked offline."""
    Archive(home / "evidence").folder.mkdir()
    outcome = run("verify", "1706.03762", "--home", home)
    assert "Could not be asked, so what is on record stands:" in outcome.err
    assert "arXiv is not asked (offline)" in outcome.err


def test_verify_gives_its_findings_as_json(run: Run, home: Path) -> None:
    found = json.loads(run("verify", "2102.11174", "--home", home, "--format", "json").out)
    assert {"field", "value", "status", "grade", "reason"} <= set(found["statuses"][0])
    refuting = [
        c for c in found["checks"] if c["value"] == "iclr 2021" and c["outcome"] != "confirmed"
    ]
    assert {c["rule"] for c in refuting} == {"volume-venue", "accepted-list", "cited-field"}
    assert all(c["evidence_ids"] and c["grade"] == "transcribed" for c in refuting)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nonsense"], "'nonsense' is no paper of the store"),
        (["query", "SELEC 1"], "syntax error"),
        (["query", "SELECT * FROM nowhere"], "nowhere"),
        (["query", "DROP TABLE claims"], "not permitted"),
        (["query", "SELECT * FROM read_csv('/etc/passwd')"], "disabled"),
        (["query", "SELECT 1; SELECT 2"], "give one statement"),
        (["query"], "give a statement"),
        (["query", "SELECT 1", "--format", "parquet"], "--output"),
        (
            ["query", "SELECT 1", "--format", "parquet", "--output", "/nowhere/x.parquet"],
            "/nowhere",
        ),
        (["query", "SELECT 1", "--format", "parquet", "--output", "."], "cannot write"),
        (["query", "SELECT 1", "--timeout", "nan"], "number of seconds"),
        (["query", "SELECT 1", "--output", "/nowhere/x.csv"], "cannot write /nowhere/x.csv"),
        (["rerun", "no-such-experiment"], "no-such-experiment"),
        (["rerun", "exact", "--jobs", "0"], "at least 1"),
        (["rerun", "capacity", "--seeds", "0"], "seeds"),
        (
            ["rerun", "capacity", "--model", "gpt"],
            "no model 'gpt' in 'capacity' at scale 'quick'; known: softmax-softmax",
        ),
        (["rerun", "capacity", "--size", "1"], "no size 1 in "),
        (["rerun", "capacity", "--size", "20000"], "no size 20000 in "),
        (["rerun", "exact", "--model", "dpfp1-sum"], "no model 'dpfp1-sum' in 'exact'"),
        (["rerun", "exact", "--ray-address", "a:1"], "belongs to --executor ray"),
        (["rerun", "language-model", "--table", "9"], "no table 9 in 'language-model' at"),
        (["rerun", "exact", "--table", "2"], "no table 2 in 'exact' at scale 'quick'; there is"),
        (["rerun", "exact", "--as-released"], "'exact' follows the paper and its code alike"),
        (["corpus", "build", "kjv", "--from", "."], "leave it out otherwise"),
        (["corpus", "build", "--from", "/nowhere"], "/nowhere is no folder"),
        (["corpus", "build", "--from", "."], "has neither wiki.train.tokens nor train.txt"),
        (["export", "--output", "runs.csv"], "ends in .jsonl"),
        (["export", "--output", "runs.jsonl"], "this workspace has made 0 runs"),
        (["evidence", "show", "no-such-id"], "no evidence 'no-such-id'"),
        (["evidence", "show"], "name the evidence"),
        (["verify", "refs.bib"], "refs.bib cannot be read"),
        (["import", "/nowhere"], "/nowhere is not there"),
        (["report", "--output", "/nowhere/report.html"], "/nowhere"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    run: Run, home: Path, arguments: list[str], message: str
) -> None:
    before = Ledger(home).names()
    outcome = run(*arguments, "--home", home)
    assert outcome.code == 2
    assert outcome.err.startswith("fwp: ")
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert Ledger(home).names() == before


def test_a_corpus_is_built_once_and_listed(run: Run, home: Path) -> None:
    wanted = "corpus,train,valid,test,types,folder"
    assert run("corpus", "list", "--home", home, "--format", "csv").out.splitlines() == [wanted]
    built = run("corpus", "build", "kjv", "--home", home, "--format", "csv")
    [row] = built.out.splitlines()[1:]
    assert built.code == 0
    assert row.startswith("kjv,847296,51516,45810,6976,")
    assert row.endswith(str(home / "corpora" / "kjv"))
    assert run("corpus", "list", "--home", home, "--format", "csv").out == built.out


def test_the_papers_scale_without_its_text_fails_with_the_way_to_get_it(
    run: Run, home: Path
) -> None:
    outcome = run(
        "rerun", "language-model", "--scale", "paper", "--model", "delta-network-small",
        "--home", home,
    )  # fmt: skip
    assert outcome.code == 1
    assert "fwp corpus build wikitext-103 --from FOLDER" in outcome.out + outcome.err
    assert "Traceback" not in outcome.out + outcome.err


@pytest.mark.parametrize("what", ["retrieval", "language-model"])
@pytest.mark.parametrize("option", ["--check", "--compile-only", "--device=cuda"])
def test_the_bench_of_a_training_takes_no_option_of_the_rules(
    run: Run, what: str, option: str
) -> None:
    outcome = run("bench", what, option)
    assert (outcome.code, outcome.err.startswith("fwp: ")) == (2, True)
    assert "leave out --check" in outcome.err


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], [], ["query", "SELECT 1", "--format", "xml"]]
)
def test_a_wrong_call_shows_the_usage(run: Run, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert "usage: fwp" in outcome.err


def test_a_workspace_that_cannot_be_made_is_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = run("query", "SELECT 1", "--home", tmp_path / "file" / "home")
    assert outcome.code == 2
    assert "cannot create the workspace" in outcome.err


def test_a_read_only_workspace_answers_queries(run: Run, read_only_workspace: Workspace) -> None:
    outcome = run("query", "SELECT 1 AS one", "--home", read_only_workspace.home, "--format", "csv")
    assert (outcome.code, outcome.out) == (0, "one\n1\n")


def test_a_half_written_batch_is_reported_and_the_command_goes_on(run: Run, home: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (home / "ledger" / f".x.jsonl.{gone.pid}.tmp").write_text('{"origin"')
    outcome = run("query", "SELECT 1 AS one", "--home", home, "--format", "csv")
    assert outcome.code == 0
    assert "half-written batch" in outcome.err


def test_a_corrupted_index_is_reported_and_rebuilt(run: Run, home: Path) -> None:
    (home / "index.duckdb").write_bytes(b"garbage")
    outcome = run("query", "SELECT count(*) AS n FROM papers", "--home", home, "--format", "csv")
    assert (outcome.code, outcome.out) == (0, "n\n61\n")
    assert "was rebuilt" in outcome.err


def test_a_query_writes_parquet_that_reads_back(run: Run, home: Path, tmp_path: Path) -> None:
    import pandas as pd

    target = tmp_path / "claims.parquet"
    sql = "SELECT claim_id, claimed, conditions FROM claims"
    assert run("query", sql, "--format", "parquet", "--output", target, "--home", home).code == 0
    assert len(pd.read_parquet(target)) > 400


def test_query_lists_tables_views_and_questions(run: Run, home: Path) -> None:
    out = run("query", "--list", "--home", home).out
    assert "claim_coverage" in out
    assert "Ready questions" in out


def test_a_broken_folder_adds_nothing(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "paper.csv").write_text("paper_id,title,evidence_id\n1,One,missing\n")
    before = Ledger(home).names()
    outcome = run("import", tmp_path / "mine", "--home", home)
    assert outcome.code == 2
    assert "'missing'" in outcome.err
    assert Ledger(home).names() == before


def test_another_paper_is_another_folder(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "record.toml").write_text(
        """
        [[evidence]]
        evidence_id = "mine"
        source = "my notes"
        authority = "note"
        grade = "transcribed"
        kind = "record"

        [[paper]]
        paper_id = "2011.07831"
        title = "Learning Associative Inference Using Fast Weight Memory"
        arxiv_id = "2011.07831"
        evidence_id = "mine"

        [[assertion]]
        assertion_id = "mine-title"
        paper_id = "2011.07831"
        field = "title"
        value = "Learning Associative Inference Using Fast Weight Memory"
        evidence_id = "mine"

        [[assertion]]
        assertion_id = "mine-authors"
        paper_id = "2011.07831"
        field = "authors"
        value = "Imanol Schlag et al."
        evidence_id = "mine"

        [[assertion]]
        assertion_id = "mine-venue"
        paper_id = "2011.07831"
        field = "venue"
        value = "iclr 2021"
        evidence_id = "mine"
        """
    )
    assert run("import", folder, "--home", home).code == 0
    sql = "SELECT status FROM statuses WHERE paper_id = '2011.07831' AND field = 'venue'"
    assert run("query", sql, "--home", home, "--format", "csv").out == "status\nverified\n"
    outcome = run("verify", "2011.07831", "--home", home)
    assert outcome.code == 0
    assert "+ verified    iclr 2021" in outcome.out


STATUS = "SELECT status FROM statuses WHERE field = 'venue' ORDER BY status"


def test_a_fresh_workspace_is_verified_before_it_is_asked(run: Run, tmp_path: Path) -> None:
    outcome = run("query", STATUS, "--home", tmp_path / "fresh", "--format", "csv")
    assert outcome.out == "status\nrefuted\nverified\n"


def test_what_an_interrupted_command_left_unverified_is_verified_by_the_next(
    run: Run, home: Path
) -> None:
    names = Ledger(home).names()
    for name in names:
        if "-verif" in name and "verify_1706" not in name:
            (home / "ledger" / name).unlink()
    outcome = run("query", STATUS, "--home", home, "--format", "csv")
    assert outcome.out == "status\nrefuted\nverified\n"
    assert len(Ledger(home).names()) == len(names)


def folder_of(path: Path, note: str, title: str) -> Path:
    path.mkdir(parents=True)
    (path / "record.toml").write_text(
        f"""
        [[evidence]]
        evidence_id = "{note}"
        source = "my notes"
        authority = "note"
        grade = "transcribed"
        kind = "record"

        [[paper]]
        paper_id = "{title}"
        title = "{title}"
        evidence_id = "{note}"
        """
    )
    return path


def test_two_folders_of_one_name_do_not_replace_each_other(
    run: Run, home: Path, tmp_path: Path
) -> None:
    for number in "12":
        folder = folder_of(tmp_path / number / "data", f"note-{number}", f"paper-{number}")
        assert run("import", folder, "--home", home).code == 0
    out = run("query", "SELECT paper_id FROM papers WHERE paper_id LIKE 'paper-%' ORDER BY ALL",
              "--home", home, "--format", "csv").out  # fmt: skip
    assert out == "paper_id\npaper-1\npaper-2\n"


def test_an_import_cannot_change_what_the_store_has(run: Run, home: Path, tmp_path: Path) -> None:
    before = Ledger(home).names()
    outcome = run("import", folder_of(tmp_path / "x", "record-note", "paper-x"), "--home", home)
    assert outcome.code == 2
    assert "Evidence record-note is in the store already" in outcome.err
    assert Ledger(home).names() == before


def test_a_source_can_be_renamed_and_brought_in_again(run: Run, home: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "x", "note-x", "paper-x")
    assert run("import", folder, "--home", home).code == 0
    assert run("verify", "paper-x", "--home", home).code == 0
    text = (folder / "record.toml").read_text()
    (folder / "record.toml").write_text(text.replace("note-x", "note-y"))
    assert run("import", folder, "--home", home).code == 0


def test_a_copy_of_what_the_store_has_changes_nothing(run: Run, home: Path, tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "2102.11174", tmp_path / "copy")
    before = run("verify", "2102.11174", "--home", home).out
    assert run("import", tmp_path / "copy", "--home", home).code == 0
    assert run("verify", "2102.11174", "--home", home).out == before


def test_importing_the_same_again_is_nothing_new(run: Run, home: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "x", "note-x", "paper-x")
    assert "2 records added" in run("import", folder, "--home", home).out
    assert "nothing new" in run("import", folder, "--home", home).out


def test_a_run_that_fails_is_named_and_the_exit_code_says_so(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = RerunSummary(failed=(("abc", "it broke"),))
    monkeypatch.setattr("reimpl.runner.rerun", lambda *_, **__: failed)
    outcome = run("rerun", "exact", "--home", home)
    assert outcome.code == 1
    assert "run abc failed: it broke" in outcome.err


def test_version_is_printed(run: Run) -> None:
    outcome = run("--version")
    assert (outcome.code, outcome.out.split()[0]) == (0, "fwp-repro")


def test_doctor_describes_the_workspace(run: Run, home: Path) -> None:
    rows = {
        r["what"]: r["is"]
        for r in json.loads(run("doctor", "--home", home, "--format", "json").out)
    }
    assert rows["workspace"] == str(home)
    assert " claims, " in rows["in the store"]


def test_output_into_a_closed_pipe_is_no_error(home: Path) -> None:
    command = f"{sys.executable} -m fwp query 'FROM listings' --home {home} --format csv | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("evidence_id")


MADE = datetime(2026, 1, 1, tzinfo=UTC)


def made_here(workspace: Workspace, run_id: str = "0123456789abcdef") -> RecordedRun:
    """Record a run as if it had just been made in the workspace."""
    made = RecordedRun(
        run_id=run_id, experiment="capacity", config={"S": 20}, seed=1, code_version="c",
        environment={}, started=MADE, finished=MADE,
        metrics=(Metric(name="loss", value=0.5), Metric(name="curve", value=0.5, step=100)),
    )  # fmt: skip
    workspace.append(f"run/{run_id}", [made])
    return made


def test_exported_runs_can_be_imported_elsewhere(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    made = made_here(workspace)
    (tmp_path / "runs").mkdir()
    outcome = run("export", "--output", tmp_path / "runs" / "mine.jsonl", "--home", workspace.home)
    assert outcome.out.startswith("1 runs written")
    other = open_workspace(tmp_path / "other")
    assert run("import", tmp_path / "runs", "--home", other.home).code == 0
    assert made in other.records()


def test_shipped_runs_are_not_exported_and_not_taken_for_ours(workspace: Workspace) -> None:
    [(shipped, run_id)] = workspace.query(
        "SELECT count(*), any_value(run_id) FROM runs WHERE shipped"
    ).rows
    assert shipped > 0
    assert not workspace.known_runs()(run_id)
    assert not [r for r in workspace.records() if isinstance(r, RecordedRun) and not r.shipped]


def test_a_run_that_another_process_records_becomes_known(workspace: Workspace) -> None:
    is_known = workspace.known_runs()
    assert not is_known("0123456789abcdef")
    made_here(workspace)
    assert is_known("0123456789abcdef")
    assert workspace.known_runs()("0123456789abcdef")


def test_a_workspace_of_a_newer_version_loses_nothing(run: Run, workspace: Workspace) -> None:
    """A batch with a record type that this version does not know is named, left out, and kept."""
    body = b'{"origin": "future/1", "records": 1}\n{"type": "hologram", "depth": 3}\n'
    name = f"{10**19}-future_1-{hashlib.sha256(body).hexdigest()[:16]}.jsonl"
    path = workspace.home / "ledger" / name
    path.write_bytes(body)
    outcome = run("query", "SELECT count(*) FROM claims", "--home", workspace.home)
    assert outcome.code == 0
    assert "'hologram'" in outcome.err
    assert path.read_bytes() == body


def test_a_training_log_is_no_folder_of_runs(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "train.csv").write_text("step,loss\n100,0.5\n")
    before = Ledger(home).names()
    outcome = run("import", tmp_path / "log", "--home", home)
    assert outcome.code == 2
    assert "named after its record type" in outcome.err
    assert Ledger(home).names() == before


def test_one_file_can_be_imported(run: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "paper-one.csv"
    path.write_text("paper_id,title,evidence_id\n2401.00001,A Work,record-note\n")
    outcome = run("import", path, "--home", home)
    assert (outcome.code, outcome.out.startswith("1 records added")) == (0, True)


def test_a_damaged_batch_of_shipped_runs_mends_once(run: Run, home: Path) -> None:
    count = ("query", "SELECT count(*) AS n FROM runs", "--format", "csv", "--home", home)
    before = run(*count).out
    path = next((home / "ledger").glob("*reference_capacity_authors*"))
    path.write_bytes(path.read_bytes() + b" ")
    assert run(*count).out == before
    names = Ledger(home).names()
    assert run(*count).out == before
    assert Ledger(home).names() == names
