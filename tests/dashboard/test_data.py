"""Answers are kept for one state of the ledger, and no longer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard import data, queries
from records.errors import QueryError
from records.models import Run
from records.workspace import Workspace

COUNT_RUNS = "SELECT count(*) AS runs FROM runs"


def runs_seen() -> int:
    return int(data.ask(COUNT_RUNS)["runs"][0])


def test_home_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FWP_HOME", str(tmp_path / "here"))
    assert data.home() == tmp_path / "here"
    monkeypatch.delenv("FWP_HOME")
    monkeypatch.chdir(tmp_path)
    assert data.home() == tmp_path / "workspace"


def test_a_run_written_meanwhile_is_seen(homed: Workspace, run_of: Callable[..., Run]) -> None:
    before = runs_seen()
    homed.append("run/new", [run_of("some/claim", "loss", 1.0)])
    assert runs_seen() == before + 1


def test_an_answer_is_asked_once_for_one_state(
    homed: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = runs_seen()
    monkeypatch.setattr(Workspace, "query", lambda *_args, **_kwargs: pytest.fail("asked again"))
    assert runs_seen() == seen


def test_a_deleted_index_is_rebuilt(homed: Workspace) -> None:
    seen = runs_seen()
    (homed.home / "index.duckdb").unlink()
    assert runs_seen() == seen
    assert data.ask("SELECT count(*) AS n FROM claims")["n"][0] > 0


def test_a_deleted_workspace_is_filled_again(homed: Workspace) -> None:
    claims = data.ask("SELECT count(*) AS n FROM claims")["n"][0]
    shutil.rmtree(homed.home)
    assert data.ask("SELECT count(*)  AS n FROM claims")["n"][0] == claims


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY papers TO '/tmp/papers.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL httpfs",
        "SET memory_limit = '1GB'",
        "DELETE FROM papers",
        "SELECT 1; SELECT 2",
        "SELEC 1",
    ],
)
def test_a_users_statement_can_only_read_the_store(homed: Workspace, statement: str) -> None:
    with pytest.raises(QueryError):
        data.answer(statement)


def test_a_large_result_is_cut_and_says_so(homed: Workspace) -> None:
    result = data.answer("SELECT * FROM range(5000)")
    assert (len(result.rows), result.truncated) == (data.SQL_ROWS, True)


def test_a_runaway_statement_is_stopped(homed: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "SQL_SECONDS", 0.2)
    with pytest.raises(QueryError, match="stopped"):
        data.answer("SELECT count(*) FROM range(1000000000000) a, range(1000000) b")


def test_coverage_counts_what_the_stores_view_counts(filled: Workspace) -> None:
    paper = str(filled.query("SELECT min(paper_id) FROM claims").rows[0][0])
    frame = queries.coverage(lambda sql: filled.query(sql).frame(), paper)
    ours = {(r["kind"], r["verdict"]): r["claims"] for r in frame.to_dict("records")}
    for row in filled.query("SELECT * FROM claim_coverage").dicts():
        for verdict in ("reproduced", "direction reproduced", "not reproduced", "not run"):
            assert ours.get((row["kind"], verdict), 0) == row[verdict.replace(" ", "_")]


def test_quotes_in_ids_stay_text(homed: Workspace) -> None:
    for text in ("x' OR '1'='1", "'; DROP TABLE papers; --", "\\'"):
        assert queries.statuses(data.ask, text).empty
        assert queries.runs(data.ask, [text]).empty
    assert queries.runs(data.ask, []).empty


def test_long_curves_are_thinned_and_keep_their_end(
    homed: Workspace, run_of: Callable[..., Run]
) -> None:
    run = run_of("some/claim", "loss", 1.0)
    curve = [
        run.metrics[1].model_copy(update={"step": k, "value": 1.0 / k}) for k in range(1, 5001)
    ]
    homed.append("run/long", [run.model_copy(update={"metrics": tuple(curve)})])
    points = queries.curves(data.ask, [run.run_id])
    assert 300 < len(points) <= 402
    assert (points["step"].min(), points["step"].max()) == (1, 5000)


def test_the_dashboard_imports_neither_torch_nor_its_siblings() -> None:
    code = (
        "import sys, dashboard.app, dashboard.report, dashboard.launch\n"
        "from dashboard.views import citations, claims, evidence, overview, runs, sql\n"
        "print([m for m in ('torch', 'reimpl', 'provenance') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
