"""A workspace folder, ready to be asked: created, seeded with the shipped data, indexed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from records.curated import (
    load_folder,
    load_jsonl,
    require_known_references,
    require_no_conflict,
    shipped_folders,
)
from records.errors import DataError, WorkspaceError
from records.files import write_whole
from records.index import Index, Result
from records.ledger import Ledger, to_line
from records.models import Record, Run, current_runs, digest

REFERENCE_RUNS = Path(__file__).parent / "reference"
"""Runs that ship with the project: one file a sweep, to which later runs are appended."""


@dataclass(frozen=True)
class Workspace:
    """One workspace; build it with ``open_workspace``."""

    home: Path

    @property
    def runs_dir(self) -> Path:
        """The folder for what unfinished runs keep in order to be resumed."""
        return self.home / "runs"

    def append(self, origin: str, records: Sequence[Record], *, repeat: bool = False) -> None:
        """Add one batch to the ledger as ``Ledger.append`` does; the next query sees it."""
        Ledger(self.home).append(origin, records, repeat=repeat)

    def query(
        self, sql: str, *, timeout: float = 60.0, limit: int | None = None, skip: int = 0
    ) -> Result:
        """Answer one read-only statement from an index that is up to date; see ``Index.query``."""
        index = Index(self.home)
        index.refresh()
        return index.query(sql, timeout=timeout, limit=limit, skip=skip)

    def known_runs(self) -> Callable[[str], bool]:
        """Return what tells of a run id whether the run was made here, or is by now.

        Runs that ship with the project are not among them; runs that another process records later
        are.
        """
        rows = self.query("SELECT run_id FROM runs WHERE NOT shipped").rows
        ledger = Ledger(self.home)
        known, seen = {row[0] for row in rows}, set(ledger.names())

        def is_known(run_id: str) -> bool:
            return run_id in known or any(
                f"-run_{run_id}-" in name for name in set(ledger.names()) - seen
            )

        return is_known

    def records(self) -> list[Record]:
        """Return all current records of the ledger."""
        return Ledger(self.home).read().current()

    def is_verified(self, rules: str) -> bool:
        """Tell whether these rules have judged all records that were brought in.

        Args:
            rules: what identifies the rules, as ``mark_verified`` was told.
        """
        ledger = Ledger(self.home)
        brought_in = max(ledger.newest("curated/"), ledger.newest("import/"))
        return ledger.newest(f"verified/{rules}") > brought_in

    def mark_verified(self, rules: str) -> None:
        """Note that these rules have judged all records; their findings are written before."""
        self.append(f"verified/{rules}", (), repeat=not self.is_verified(rules))

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each ledger file that was left out, after bringing up the index."""
        return Index(self.home).refresh()


def open_workspace(home: Path) -> Workspace:
    """Open a workspace; an empty or missing folder is created and loaded with the shipped data.

    Raises:
        WorkspaceError: the folder cannot be created, read or written.
        DataError: the shipped data are damaged.
    """
    home = home.resolve()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"cannot create the workspace {home}: {error.strerror}. "
            "Choose another folder with --home or FWP_HOME."
        ) from error
    workspace = Workspace(home)
    seed(workspace)
    return workspace


def seed(workspace: Workspace) -> None:
    """Bring the shipped curated data into the ledger where they are not there in this version."""
    shipped = {folder.name: load_folder(folder) for folder in shipped_folders()}
    everything = [record for records in shipped.values() for record in records]
    require_known_references(everything)
    for name, records in shipped.items():
        workspace.append(f"curated/{name}", records)
    for path in sorted(REFERENCE_RUNS.glob("*.jsonl")):
        _load_reference_runs(workspace, path)


def _load_reference_runs(workspace: Workspace, path: Path) -> None:
    """Bring in the runs of a file that ships with the project, unless that was done before.

    Parsing takes longer than most commands, so an empty batch notes the file's hash.
    """
    mark = reference_mark(path)
    ledger, origin = Ledger(workspace.home), f"reference/{path.stem}"
    batch = ledger.newest(origin)
    if batch and ledger.newest(mark) > batch and ledger.is_whole(batch):
        return
    runs = [record for record in load_jsonl(path) if isinstance(record, Run)]
    workspace.append(origin, [run.model_copy(update={"shipped": True}) for run in runs])
    workspace.append(mark, (), repeat=True)


def reference_mark(path: Path) -> str:
    """Return the origin of the empty batch which says that a file of shipped runs was loaded."""
    return f"loaded/{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def import_folder(workspace: Workspace, folder: Path) -> int:
    """Add a user's own folder of data files, or bring in its new state.

    Returns:
        The number of records brought in; 0 where the store had this state already.

    Raises:
        DataError: a file is unusable, names evidence that is nowhere, or gives an id that the
            store holds with other content; nothing is added then.
    """
    records = load_folder(folder)
    place = folder.resolve()
    origin = f"import/{place.name}-{digest(str(place))[:8]}"
    batches = Ledger(workspace.home).read().current_batches()
    others = [r for batch in batches if batch.origin != origin for r in batch.records]
    require_known_references([*records, *others])
    require_no_conflict(records, others)
    return len(records) if Ledger(workspace.home).append(origin, records) else 0


def export_runs(workspace: Workspace, path: Path, experiments: Sequence[str] = ()) -> int:
    """Write the runs that were made here, of these experiments or of all, one a line.

    The file is written whole or not at all; a folder with it can be imported elsewhere.

    Returns:
        The number of runs.

    Raises:
        DataError: the file has another ending than ``.jsonl``, there is no such run, or the file
            cannot be written.
    """
    if path.suffix != ".jsonl":
        raise DataError(f"{path}: name a file that ends in .jsonl, as fwp import needs it")
    own = [run for run in current_runs(workspace.records()) if not run.shipped]
    chosen = [run for run in own if not experiments or run.experiment in experiments]
    if not chosen:
        raise DataError(
            f"no run to export: this workspace has made {len(own)} runs, none of them of "
            f"{', '.join(experiments) or 'any experiment'}"
        )
    chosen.sort(key=lambda run: (run.finished, run.run_id))
    try:
        write_whole(path, "".join(to_line(run) + "\n" for run in chosen).encode())
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error
    return len(chosen)


def default_home() -> Path:
    """Return the workspace folder that the user has named in FWP_HOME, or ``workspace``."""
    return Path(os.environ.get("FWP_HOME") or "workspace")
