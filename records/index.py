"""The DuckDB index over the ledger, and read-only SQL on it; the only importer of duckdb.

An open DuckDB file keeps other processes from writing or even reading it, so every query opens the
index, answers and closes it again. A stale index is rebuilt in a folder of its own and renamed over
the old one: a reader in another process goes on with the file that it has.
"""

from __future__ import annotations

import io
import itertools
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from filelock import FileLock, Timeout

from records.changes import changes
from records.errors import QueryError, StoreIndexError, WorkspaceError
from records.files import write_whole
from records.ledger import Contents, Ledger
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
    current_runs,
    digest,
    distinct,
    latest,
)
from records.status import derive_statuses
from records.verdict import judge, judge_modes, measurements

if TYPE_CHECKING:
    import pandas as pd

_SCHEMA = Path(__file__).with_name("schema.sql")
_LOCK_SECONDS = 120
_SEALED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GB",
    "lock_configuration": "true",
}
_READING = {"SELECT", "EXPLAIN"}
_DAMAGE = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException)
_MOST_ROWS = 2_000_000
_MOST_CHARACTERS = 500_000_000
_PART = 1_000
_LONGEST, _DEEPEST = 100_000, 500
"""Characters of a statement, and brackets within brackets in it."""
_EXACT = 2**53
"""From here on not every integer is a float."""


@dataclass(frozen=True)
class Result:
    """Rows of a query. ``truncated`` tells that there were more than asked for."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool = False

    def dicts(self) -> list[dict[str, Any]]:
        """Return one dictionary a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return the rows as a pandas frame."""
        import pandas as pd

        # from objects, as integers beside a NULL would otherwise become floats and lose digits
        frame = pd.DataFrame(list(self.rows), columns=list(self.columns), dtype=object)
        return frame.apply(_typed) if self.columns else frame


class Index:
    """The index of one workspace.

    Args:
        home: the workspace folder, whose ledger is the source of every row.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "index.duckdb"
        self.ledger = Ledger(home)

    def refresh(self) -> tuple[str, ...]:
        """Rebuild the index if the ledger or the code that derives from it has changed.

        Returns:
            A sentence for each thing that was out of order: damaged batches, a corrupted index.

        Raises:
            WorkspaceError: the workspace cannot be written.
            StoreIndexError: the ledger's records do not fit together.
        """
        left = tuple(self.ledger.half_written())
        noted = self._problems_if_fresh()
        if noted is not None:
            return left + noted
        try:
            with FileLock(self.home / "index.lock", timeout=_LOCK_SECONDS):
                return left + self._rebuild()
        except Timeout as error:
            raise StoreIndexError(
                f"another process has been rebuilding {self.path} for {_LOCK_SECONDS} s; "
                f"end it, or delete {self.home / 'index.lock'}"
            ) from error
        except OSError as error:
            raise WorkspaceError(
                f"cannot write the index {self.path}: {error.strerror}. "
                "Choose a workspace that you may write to, with --home or FWP_HOME."
            ) from error

    def fingerprint(self) -> str:
        """Return a digest of everything that the index depends on."""
        return digest([self.ledger.state(), _code()])

    def query(
        self, sql: str, *, timeout: float = 60.0, limit: int | None = None, skip: int = 0
    ) -> Result:
        """Answer one read-only statement.

        The connection is sealed: it reads this index and nothing else, neither files nor network,
        and can change no setting.

        Args:
            sql: one SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN statement.
            timeout: seconds after which the statement is stopped.
            limit: the most rows to return; None for all.
            skip: how many rows to leave out before the first that is returned.

        Raises:
            QueryError: not one statement, not a reading one, wrong (with DuckDB's message), or
                stopped at the time limit.
        """
        with self._asked(sql, timeout) as (connection, expired):
            cursor = connection.execute(sql)
            described = cursor.description or []
            _skip(cursor, skip, expired, timeout)
            rows = _fetch(cursor, _MOST_ROWS if limit is None else limit + 1, expired, timeout)
        if limit is None and len(rows) == _MOST_ROWS:
            raise QueryError(f"the answer has {_MOST_ROWS:,} rows or more; ask for less with LIMIT")
        kept = rows if limit is None else rows[:limit]
        return Result(
            columns=_unique([column[0] for column in described]),
            rows=tuple(kept),
            truncated=len(rows) > len(kept),
        )

    @contextmanager
    def _asked(
        self, sql: str, timeout: float
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, threading.Event]]:
        """Open the index for one statement; what DuckDB has against it becomes an error of ours."""
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise QueryError(f"the time limit is a number of seconds above 0, not {timeout}")
        with _open_sealed(self.path) as connection:
            _require_one_reading_statement(connection, sql)
            with _interrupted_after(connection, timeout) as expired:
                try:
                    with _ctrl_c():
                        yield connection, expired
                except _DAMAGE as error:
                    raise self._damaged(error) from error
                except (duckdb.OutOfMemoryException, MemoryError) as error:
                    raise QueryError(
                        f"the statement needs more than {_SEALED['memory_limit']} of memory; "
                        "ask for less"
                    ) from error
                except duckdb.Error as error:
                    if expired.is_set():
                        raise _stopped(timeout) from error
                    if type(error) is duckdb.Error:  # what no kind of error is: a wrong checksum
                        raise self._damaged(error) from error
                    raise QueryError(str(error)) from error

    def _damaged(self, error: duckdb.Error) -> StoreIndexError:
        """Remove the index, so that the next question rebuilds it; return what to raise."""
        with suppress(OSError):
            self.path.unlink()
        return StoreIndexError(
            f"the index {self.path} is damaged; delete it where it is still there, and "
            f"the next command rebuilds it: {error}"
        )

    def export_parquet(self, sql: str, target: Path, *, timeout: float = 60.0) -> None:
        """Write the rows of one read-only statement to a Parquet file, complete or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        try:
            with self._asked(sql, timeout) as (connection, _):
                table = connection.sql(sql).to_arrow_table()
            pq.write_table(table.rename_columns(list(_unique(table.column_names))), buffer)
            write_whole(target, buffer.getvalue())
        except pa.ArrowException as error:
            raise QueryError(f"the rows do not fit into Parquet: {error}") from error
        except (OSError, ValueError) as error:
            raise QueryError(f"cannot write {target}: {error}") from error

    def _meta(self) -> dict[str, str] | None:
        """Return what the index file says of itself; None where it is missing or unreadable."""
        try:
            if not self.path.exists():
                return None
        except PermissionError as error:
            raise WorkspaceError(f"cannot read the workspace {self.home}: {error}") from error
        try:
            with _open_sealed(self.path) as connection:
                rows = connection.execute("SELECT key, value FROM meta").fetchall()
        except (duckdb.Error, StoreIndexError):
            return None
        return {str(key): str(value) for key, value in rows}

    def _problems_if_fresh(self) -> tuple[str, ...] | None:
        """Return the problems that an up-to-date index has noted; None if it is stale."""
        meta = self._meta()
        if meta is None or meta.get("fingerprint") != self.fingerprint():
            return None
        return tuple(json.loads(meta.get("problems", "[]")))

    def _rebuild(self) -> tuple[str, ...]:
        noted = self._problems_if_fresh()  # another process may have been faster
        if noted is not None:
            return noted
        corrupt = self.path.exists() and self._meta() is None
        fingerprint = self.fingerprint()
        contents = self.ledger.read()
        for left in self.home.glob(
            ".index-*"
        ):  # of a process that was killed; this one has the lock
            shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=".index-", dir=self.home))
        try:
            build(folder / "index.duckdb", contents, fingerprint)
            (folder / "index.duckdb").replace(self.path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if corrupt:
            return (f"the index {self.path} could not be read and was rebuilt", *contents.problems)
        return contents.problems


@cache
def _code() -> str:
    """Return a digest of the schema and of the code that derives rows from records."""
    sources = sorted([_SCHEMA, *_SCHEMA.parent.glob("*.py")])
    return digest([path.read_text(encoding="utf-8") for path in sources])


def build(path: Path, contents: Contents, fingerprint: str) -> None:
    """Build an index file from the current batches of a ledger.

    Raises:
        StoreIndexError: a value does not fit its column.
    """
    connection = duckdb.connect(str(path))
    try:
        with _ctrl_c():
            _fill(connection, contents, fingerprint)
    except duckdb.Error as error:
        raise StoreIndexError(f"the ledger's records do not fit together: {error}") from error
    finally:
        connection.close()


def _fill(connection: duckdb.DuckDBPyConnection, contents: Contents, fingerprint: str) -> None:
    connection.execute(_SCHEMA.read_text(encoding="utf-8"))
    for table, rows in _tables(contents).items():
        _insert(connection, table, rows)
    meta = {"fingerprint": fingerprint, "problems": json.dumps(contents.problems)}
    _insert(connection, "meta", [{"key": k, "value": v} for k, v in meta.items()])


@contextmanager
def _ctrl_c() -> Iterator[None]:
    """Let Ctrl-C be what it is: DuckDB turns it into a RuntimeError of this text."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from error
        raise


def _tables(contents: Contents) -> dict[str, list[dict[str, Any]]]:
    records = contents.current()
    assertions = latest(records, Assertion, "assertion_id")
    claims = latest(records, Claim, "claim_id")
    papers = latest(records, Paper, "paper_id")
    known = {paper.paper_id for paper in papers}
    checks = [r for r in records if isinstance(r, Check) and r.paper_id in known]
    runs = current_runs(records)
    by_id = {claim.claim_id: claim for claim in claims}
    measured = measurements(runs)
    verdicts = [judge(claim, measured, by_id) for claim in claims]
    statuses = derive_statuses(assertions, checks)
    return {
        "papers": _rows(papers),
        "evidence": _rows(latest(records, Evidence, "evidence_id")),
        "listings": _rows(distinct(records, ListEntry)),
        "assertions": _rows(assertions),
        "checks": [
            {"check_id": c.check_id, **row} for c, row in zip(checks, _rows(checks), strict=True)
        ],
        "reference_checks": _rows(distinct(records, ReferenceCheck)),
        "citations": _rows(distinct(records, Citation)),
        "claims": _numbered(_rows(claims)),
        "runs": [
            {**r.model_dump(mode="json", exclude={"metrics"}), "signature": r.signature}
            for r in runs
        ],
        "metrics": [{"run_id": run.run_id, **row} for run in runs for row in _rows(run.metrics)],
        "logged_curves": [row for curve in distinct(records, Curve) for row in _points(curve)],
        "verdicts": _rows(verdicts),
        "mode_verdicts": [
            {"mode": mode, **verdict.model_dump(mode="json")}
            for claim in claims
            for mode, verdict in judge_modes(claim, measured, by_id)
        ],
        "derived_statuses": _numbered(_rows(statuses)),
        "changes": _rows(changes(contents, verdicts, statuses)),
    }


def _rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    return [record.model_dump(mode="json") for record in records]


def _points(curve: Curve) -> list[dict[str, Any]]:
    whole = {"claim_id": curve.claim_id, "metric": curve.metric, "evidence_id": curve.evidence_id}
    return [
        {**whole, "step": curve.every * number, "value": value}
        for number, value in enumerate(curve.model_dump(mode="json")["values"], start=1)
    ]


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "ordinal": number} for number, row in enumerate(rows)]


def _insert(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]]
) -> None:
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    structure = json.dumps([{name: kind for name, kind, *_ in described}])
    connection.execute(
        f"INSERT INTO {table} SELECT unnest(from_json($1::JSON, $2), recursive := true)",
        [json.dumps(rows), structure],
    )


@contextmanager
def _open_sealed(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        connection = duckdb.connect(str(path), read_only=True, config=dict(_SEALED))
    except duckdb.Error as error:
        raise StoreIndexError(f"the index {path} cannot be opened: {error}") from error
    try:
        yield connection
    finally:
        connection.close()


def _typed(column: pd.Series) -> pd.Series:
    """Return a column of objects with the type that pandas finds for it, where no digit is lost."""
    large = any(isinstance(value, int) and abs(value) > _EXACT for value in column)
    return column if large else column.infer_objects()


def _require_one_reading_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    if len(sql) > _LONGEST or _depth(sql) > _DEEPEST:
        # DuckDB's parser takes minutes for what is longer or deeper and cannot be interrupted
        raise QueryError(
            f"a statement has {_LONGEST:,} characters at most and its brackets are nested "
            f"{_DEEPEST} deep at most"
        )
    try:
        statements = connection.extract_statements(sql)
    except (duckdb.Error, TypeError, UnicodeError) as error:
        raise QueryError(str(error)) from error
    if len(statements) != 1:
        raise QueryError(f"give one statement; this is {len(statements)}")
    kind = statements[0].type.name
    if kind not in _READING:
        raise QueryError(
            f"{kind} statements are not permitted: the store is read-only here. "
            "Use SELECT, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN."
        )


def _depth(sql: str) -> int:
    """Return how deep the statement's brackets are nested, those within its strings included."""
    steps = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
    depths = itertools.accumulate(steps.get(character, 0) for character in sql)
    return max(depths, default=0)


@contextmanager
def _interrupted_after(
    connection: duckdb.DuckDBPyConnection, seconds: float
) -> Iterator[threading.Event]:
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        connection.interrupt()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return the column names with repeated ones numbered, as frames need them distinct."""
    unique: dict[str, None] = {}
    others, numbers = set(names), dict.fromkeys(names, 2)
    for name in names:
        new = name
        while new in unique or (new != name and new in others):
            new = f"{name}_{numbers[name]}"
            numbers[name] += 1
        unique[new] = None
    return tuple(unique)


def _skip(
    cursor: duckdb.DuckDBPyConnection, count: int, expired: threading.Event, timeout: float
) -> None:
    """Take rows from the cursor and keep none."""
    while count > 0 and (part := cursor.fetchmany(min(_PART, count))):
        count -= len(part)
        if expired.is_set():
            raise _stopped(timeout)


def _fetch(
    cursor: duckdb.DuckDBPyConnection, most: int, expired: threading.Event, timeout: float
) -> list[tuple[Any, ...]]:
    """Return at most ``most`` rows, taken in parts so that limits of time and size are heeded."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    while len(rows) < most and (part := cursor.fetchmany(min(_PART, most - len(rows)))):
        rows += part
        size += sum(len(value) for row in part for value in row if isinstance(value, str | bytes))
        if size > _MOST_CHARACTERS:
            raise QueryError(f"the answer has over {_MOST_CHARACTERS:,} characters; ask for less")
        if expired.is_set():
            raise _stopped(timeout)
    return rows


def _stopped(timeout: float) -> QueryError:
    return QueryError(f"the statement was stopped after {timeout:g} s; ask for less")
