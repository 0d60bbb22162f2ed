"""A workspace folder, ready to be asked: created, seeded with the shipped data, indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records.curated import load_folder, require_known_references, shipped_folders
from records.errors import WorkspaceError
from records.index import Index, Result
from records.ledger import Ledger
from records.models import Record


@dataclass(frozen=True)
class Workspace:
    """One workspace; build it with ``open_workspace``."""

    home: Path

    @property
    def runs_dir(self) -> Path:
        """The folder for what unfinished runs keep in order to be resumed."""
        return self.home / "runs"

    def append(self, origin: str, records: Sequence[Record]) -> None:
        """Add one batch to the ledger; the index follows at the next query."""
        Ledger(self.home).append(origin, records)

    def query(self, sql: str, *, timeout: float = 60.0, limit: int | None = None) -> Result:
        """Answer one read-only statement from an index that is up to date."""
        index = Index(self.home)
        index.refresh()
        return index.query(sql, timeout=timeout, limit=limit)

    def records(self) -> list[Record]:
        """Return all current records of the ledger."""
        return Ledger(self.home).read().current()

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each ledger file that was left out, after bringing up the index."""
        return Index(self.home).refresh()


def open_workspace(home: Path) -> Workspace:
    """Open a workspace; an empty or missing folder is created and loaded with the shipped data.

    Raises:
        WorkspaceError: the folder cannot be created, read or written.
        DataError: the shipped data are damaged.
    """
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


def import_folder(workspace: Workspace, folder: Path) -> int:
    """Add a user's own folder of data files; return the number of records.

    Raises:
        DataError: a file is unusable, or names evidence that is nowhere; nothing is added then.
    """
    records = load_folder(folder)
    require_known_references(records, known=workspace.records())
    workspace.append(f"import/{folder.resolve().name}", records)
    return len(records)
