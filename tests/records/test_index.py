from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from records.errors import QueryError, StoreIndexError, WorkspaceError
from records.index import Index
from records.models import Metric, Run
from records.questions import ready_questions
from records.workspace import Workspace, open_workspace

# the names and columns that DESIGN fixes for other tools
VIEWS = {
    "statuses": "paper_id field value status reason evidence_ids",
    "side_by_side": "claim_id paper_id locator kind statement metric claimed measured spread seeds "
    "verdict reason run_ids",
    "contested": "paper_id field value status said_by",
    "claim_coverage": "kind claims reproduced direction_reproduced not_reproduced not_run",
    "mode_coverage": "experiment mode claims reproduced not_reproduced not_run",
}
TABLES = [
    "papers",
    "assertions",
    "evidence",
    "checks",
    "citations",
    "claims",
    "runs",
    "metrics",
    "verdicts",
    "mode_verdicts",
    "logged_curves",
]
OWN_RUNS = "SELECT count(*) FROM runs WHERE NOT shipped"
SOLVED = "2102.11174/update-rule/dpfp1-delta-S20"


def a_run(run_id: str, claim_id: str, value: float, seed: int = 1) -> Run:
    now = datetime.now(UTC)
    return Run(
        run_id=run_id,
        experiment="x",
        config={"S": 20, "stream": "ours"},
        seed=seed,
        code_version="c",
        environment={"torch": "2"},
        started=now,
        finished=now,
        metrics=(Metric(name="eval_loss", value=value, claim_id=claim_id),),
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_that_others_rely_on(workspace: Workspace, view: str) -> None:
    columns = workspace.query(f"SELECT * FROM {view}").columns
    expected = tuple(VIEWS[view].split())
    assert columns[: len(expected)] == expected


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_there(workspace: Workspace, table: str) -> None:
    assert workspace.query(f"SELECT * FROM {table}").columns


def test_every_claim_has_one_row_side_by_side(workspace: Workspace) -> None:
    sql = "SELECT (SELECT count(*) FROM claims), (SELECT count(*) FROM side_by_side)"
    claims, rows = workspace.query(sql).rows[0]
    assert claims == rows > 400


def test_the_contested_view_shows_both_values_and_who_says_them(workspace: Workspace) -> None:
    sql = "SELECT value, status, said_by, declared_status FROM contested WHERE field = 'venue'"
    rows = {row[0]: row[1:] for row in workspace.query(sql).rows}
    assert rows["icml 2021"][0] == "verified"
    assert rows["iclr 2021"][0] == "refuted"
    assert rows["iclr 2021"][1] == ["the original record of the paper (its note and fields)"]
    assert rows["icml 2021"][2] == rows["iclr 2021"][2] == "contested"


def test_a_recorded_run_is_judged_at_the_next_query(workspace: Workspace) -> None:
    runs = [a_run(f"r{seed}", SOLVED, 0.0008, seed) for seed in (1, 2, 3)]
    workspace.append("run/r", runs)
    sql = f"SELECT measured, verdict, run_ids FROM side_by_side WHERE claim_id = '{SOLVED}'"
    assert workspace.query(sql).rows == ((0.0008, "reproduced", ["r1", "r2", "r3"]),)


def test_each_mode_is_judged_and_counted_apart(workspace: Workspace) -> None:
    """The authors' log ends at 0.000766, to be met within 0.001; 0.5 is far off."""
    for path in (workspace.home / "ledger").glob("*-reference_*"):
        path.unlink()
    replayed = a_run("a", SOLVED, 0.0008)
    metric = replayed.metrics[0].model_copy(update={"replay": True})
    replayed = replayed.model_copy(update={"metrics": (metric,)})
    workspace.append("run/r", [replayed, a_run("o", SOLVED, 0.5)])
    sql = f"SELECT mode, verdict, measured FROM mode_verdicts WHERE claim_id = '{SOLVED}'"
    assert workspace.query(f"{sql} ORDER BY mode").rows == (
        ("authors", "reproduced", 0.0008),
        ("ours", "not reproduced", 0.5),
    )
    sql = "SELECT * FROM mode_coverage WHERE experiment = 'update-rule' AND mode = 'ours'"
    (counted,) = workspace.query(sql).dicts()
    assert (counted["reproduced"], counted["not_reproduced"]) == (0, 1)
    assert counted["not_run"] == counted["claims"] - 1


def test_the_shipped_runs_are_told_from_those_made_here(workspace: Workspace) -> None:
    sql = "SELECT shipped, count(*) FROM runs GROUP BY shipped ORDER BY shipped"
    [(shipped, count)] = workspace.query(sql).rows
    workspace.append("run/r", [a_run("r", "nothing", 1.0)])
    assert shipped is True
    assert workspace.query(sql).rows == ((False, 1), (True, count))


def test_a_run_made_here_is_not_hidden_by_a_shipped_one_of_its_id(workspace: Workspace) -> None:
    """Equal inputs have equal ids; a newer version may bring its runs in after one's own."""
    own = a_run("r", "nothing", 1.0)
    workspace.append("run/r", [own])
    workspace.append("reference/x", [own.model_copy(update={"shipped": True})])
    assert workspace.query("SELECT shipped FROM runs WHERE run_id = 'r'").rows == ((False,),)


def test_the_authors_logged_courses_can_be_asked_for(workspace: Workspace) -> None:
    """Their log of DPFP-1 with delta, S = 20, ends at step 700 with the loss 0.0007664201."""
    sql = f"SELECT step, value FROM logged_curves WHERE claim_id = '{SOLVED}' ORDER BY step"
    rows = workspace.query(sql).rows
    assert [step for step, _ in rows] == list(range(100, 701, 100))
    assert rows[-1][1] == 0.0007664201


def test_a_deleted_index_is_rebuilt_with_the_same_rows(workspace: Workspace) -> None:
    sql = "SELECT * FROM side_by_side"
    before = workspace.query(sql)
    (workspace.home / "index.duckdb").unlink()
    assert repr(workspace.query(sql).rows) == repr(before.rows)  # a NaN is not equal to itself


@pytest.mark.parametrize("garbage", [b"", b"not a database", b"\0" * 20000])
def test_a_corrupted_index_is_rebuilt_and_said_so(workspace: Workspace, garbage: bytes) -> None:
    (workspace.home / "index.duckdb").write_bytes(garbage)
    assert "could not be read and was rebuilt" in workspace.problems()[0]
    assert workspace.query("SELECT count(*) FROM papers").rows == ((61,),)


def test_an_index_cut_short_is_rebuilt(workspace: Workspace) -> None:
    path = workspace.home / "index.duckdb"
    path.write_bytes(path.read_bytes()[:12288])
    assert workspace.query("SELECT count(*) FROM papers").rows == ((61,),)


def test_a_problem_with_the_ledger_is_told_again_until_it_is_gone(workspace: Workspace) -> None:
    name = Index(workspace.home).ledger.names()[0]
    (workspace.home / "ledger" / name).write_text("damaged\n")
    (workspace.home / "index.duckdb").unlink()
    assert name in workspace.problems()[0]
    assert name in workspace.problems()[0]


def test_the_index_is_not_rebuilt_when_nothing_changed(workspace: Workspace) -> None:
    workspace.query("SELECT 1")
    before = (workspace.home / "index.duckdb").stat().st_mtime_ns
    workspace.query("SELECT 1")
    assert (workspace.home / "index.duckdb").stat().st_mtime_ns == before


def test_a_reader_that_holds_the_index_open_does_not_stop_a_rebuild(workspace: Workspace) -> None:
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True);"
        "print('open', flush=True); sys.stdin.read(); print(len(c.sql('FROM claims').fetchall()))"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(workspace.home / "index.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "open\n"
    workspace.append("run/r", [a_run("r", "nothing", 1.0)])
    assert workspace.query(OWN_RUNS).rows == ((1,),)
    out, _ = reader.communicate("")
    assert int(out) > 400


def _write_and_ask(home: str, worker: int, count: int) -> None:
    workspace = open_workspace(Path(home))
    for number in range(count):
        name = f"{worker}-{number}"
        workspace.append(f"run/{name}", [a_run(name, "nothing", 1.0)])
        workspace.query("SELECT count(*) FROM runs")


def test_two_processes_at_once_both_finish_and_nothing_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    home = str(tmp_path / "workspace")
    workers = [context.Process(target=_write_and_ask, args=(home, n, 5)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    workspace = open_workspace(Path(home))
    assert workspace.problems() == ()
    assert workspace.query(OWN_RUNS).rows == ((10,),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "COPY claims TO '{tmp}/out.csv'",
        "EXPORT DATABASE '{tmp}/out'",
        "ATTACH '{tmp}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "RESET threads",
        "PRAGMA enable_profiling",
        "INSERT INTO papers (paper_id) VALUES ('x')",
        "UPDATE claims SET claimed = 0",
        "DELETE FROM claims",
        "DROP TABLE claims",
        "CREATE TABLE t (x INTEGER)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CHECKPOINT",
        "BEGIN",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
    ],
)
def test_a_query_reaches_the_store_and_nothing_else(
    workspace: Workspace, tmp_path: Path, sql: str
) -> None:
    before = sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(QueryError):
        workspace.query(sql.format(tmp=tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_query_cannot_see_the_variables_of_this_process(workspace: Workspace) -> None:
    import pandas as pd

    secret = pd.DataFrame({"x": [1]})
    assert len(secret) == 1
    with pytest.raises(QueryError, match="secret"):
        workspace.query("SELECT * FROM secret")


def test_a_wrong_statement_carries_the_message_of_duckdb(workspace: Workspace) -> None:
    with pytest.raises(QueryError, match="klaims"):
        workspace.query("SELECT * FROM klaims")


@pytest.mark.parametrize("sql", ["", "SELECT 1; SELECT 2", "-- nothing"])
def test_anything_but_one_statement_is_refused(workspace: Workspace, sql: str) -> None:
    with pytest.raises(QueryError, match="give one statement"):
        workspace.query(sql)


def test_a_runaway_statement_is_stopped(workspace: Workspace) -> None:
    started = time.monotonic()
    with pytest.raises(QueryError, match=r"stopped after 0\.3 s"):
        workspace.query(
            "SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)", timeout=0.3
        )
    assert time.monotonic() - started < 20


def test_a_result_is_cut_at_the_limit_and_says_so(workspace: Workspace) -> None:
    result = workspace.query("SELECT * FROM claims", limit=10)
    assert len(result.rows) == 10
    assert result.truncated
    assert not workspace.query("SELECT * FROM claims LIMIT 10", limit=10).truncated


@pytest.mark.parametrize(
    ("sql", "columns"),
    [("SELECT 1 a, 2 a", ("a", "a_2")), ("SELECT 1 a, 2 a, 3 a_2", ("a", "a_3", "a_2"))],
)
def test_columns_of_one_name_are_told_apart(
    workspace: Workspace, sql: str, columns: tuple[str, ...]
) -> None:
    assert workspace.query(sql).columns == columns


@pytest.mark.parametrize("timeout", [0, -1, 1e12, float("nan"), float("inf")])
def test_a_time_limit_is_a_number_of_seconds(workspace: Workspace, timeout: float) -> None:
    with pytest.raises(QueryError, match="number of seconds above 0"):
        workspace.query("SELECT 1", timeout=timeout)


def test_a_large_answer_is_stopped_at_the_time_limit_too(workspace: Workspace) -> None:
    with pytest.raises(QueryError, match=r"stopped after 0\.02 s"):
        workspace.query("SELECT * FROM range(1900000)", timeout=0.02)


def test_an_answer_that_no_memory_holds_is_refused(workspace: Workspace) -> None:
    with pytest.raises(QueryError, match="ask for less with LIMIT"):
        workspace.query("SELECT * FROM range(2000000)")


def test_a_query_leaves_nothing_beside_the_index(workspace: Workspace) -> None:
    before = sorted(p.name for p in workspace.home.iterdir())
    workspace.query("SELECT a.title FROM listings a, listings b ORDER BY random() LIMIT 5")
    assert sorted(p.name for p in workspace.home.iterdir()) == before


def test_an_index_with_damaged_blocks_mends_itself(
    workspace: Workspace,
) -> None:
    path = workspace.home / "index.duckdb"
    content = bytearray(path.read_bytes())
    for start in range(12288, len(content), 262144):
        content[start + 5000 : start + 5100] = b"x" * 100
    path.write_bytes(content)
    with suppress(StoreIndexError):
        workspace.query("SELECT count(DISTINCT title) FROM listings")
    assert workspace.query("SELECT count(DISTINCT title) FROM listings").rows[0][0] > 2000


def test_a_damaged_shipped_batch_is_written_again(workspace: Workspace) -> None:
    (name,) = [n for n in Index(workspace.home).ledger.names() if "curated_2102" in n]
    path = workspace.home / "ledger" / name
    path.write_bytes(path.read_bytes().replace(b"Schlag", b"Schlug", 1))
    assert name in open_workspace(workspace.home).problems()[0]
    assert workspace.query("SELECT count(*) FROM claims").rows[0][0] > 400


@pytest.mark.parametrize("question", ready_questions(), ids=lambda q: q.title)
def test_a_ready_question_has_an_answer(workspace: Workspace, question: object) -> None:
    assert workspace.query(question.sql).columns  # type: ignore[attr-defined]


def test_a_read_only_workspace_still_answers(read_only_workspace: Workspace) -> None:
    assert open_workspace(read_only_workspace.home) == read_only_workspace
    assert read_only_workspace.query("SELECT count(*) FROM papers").rows == ((61,),)


def test_a_read_only_workspace_refuses_a_batch_and_names_the_way_out(
    read_only_workspace: Workspace,
) -> None:
    with pytest.raises(WorkspaceError, match=r"cannot write to the workspace .*--home"):
        read_only_workspace.append("run/r", [a_run("r", "nothing", 1.0)])


def test_a_workspace_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=r"cannot create the workspace .*--home"):
        open_workspace(tmp_path / "file" / "workspace")


def test_a_folder_in_the_place_of_the_index_is_an_error(workspace: Workspace) -> None:
    index = Index(workspace.home)
    index.path.unlink()
    index.path.mkdir()
    with pytest.raises(WorkspaceError, match="cannot write the index"):
        index.refresh()


@pytest.mark.parametrize(
    "sql", ["SELECT " + "(" * 5_000, "SELECT 1" + " UNION ALL SELECT 1" * 20_000, "(" * 200_000]
)
def test_what_the_parser_would_take_minutes_for_is_refused_at_once(
    workspace: Workspace, sql: str
) -> None:
    with pytest.raises(QueryError, match="characters at most and its brackets"):
        workspace.query(sql)


def test_many_columns_of_one_name_are_numbered(workspace: Workspace) -> None:
    columns = workspace.query("SELECT " + ", ".join(["1 AS a"] * 3_000) + ", 2 AS a_2").columns
    assert len(set(columns)) == 3_001
    assert columns[:3] == ("a", "a_3", "a_4")


def test_rows_can_be_left_out_before_the_first(workspace: Workspace) -> None:
    result = workspace.query("SELECT * FROM range(5_000)", limit=2, skip=3_000)
    assert (result.rows, result.truncated) == (((3_000,), (3_001,)), True)
    assert workspace.query("SELECT 1", limit=2, skip=5).rows == ()


def test_large_integers_beside_a_null_keep_their_digits(workspace: Workspace) -> None:
    frame = workspace.query("SELECT 9007199254740993 AS n UNION ALL SELECT NULL").frame()
    assert frame["n"].tolist()[0] == 2**53 + 1


def test_an_index_with_a_wrong_checksum_is_removed_and_rebuilt(workspace: Workspace) -> None:
    (count,) = workspace.query("SELECT count(*) FROM logged_curves").rows[0]
    path = workspace.home / "index.duckdb"
    content = bytearray(path.read_bytes())
    content[20_000:] = bytes(byte ^ 0xFF for byte in content[20_000:])
    path.write_bytes(content)
    with suppress(StoreIndexError):
        workspace.query("SELECT sum(value) FROM logged_curves")
    assert workspace.query("SELECT count(*) FROM logged_curves").rows[0][0] == count
