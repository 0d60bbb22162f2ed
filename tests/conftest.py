"""Fixtures for all tests: workspaces that are cheap to make, and the command line in-process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

import fwp
from provenance.verify import verify
from records.workspace import Workspace, open_workspace

NOBODY = 65534

os.environ["FWP_OFFLINE"] = "1"  # no test asks a live source, nor does a command that one starts

# a busy machine makes single examples slow, and that is no failure
settings.register_profile("repository", deadline=None)
settings.load_profile("repository")


@dataclass(frozen=True)
class Outcome:
    """What one command did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def seeded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verified workspace that no test may change; ``workspace`` is a copy of it."""
    home = tmp_path_factory.mktemp("seeded") / "workspace"
    workspace = open_workspace(home)
    verify(workspace)
    workspace.query("SELECT 1")
    return home


@pytest.fixture
def workspace(seeded_home: Path, tmp_path: Path) -> Workspace:
    """A fresh workspace with the shipped records, verified."""
    home = tmp_path / "workspace"
    shutil.copytree(seeded_home, home)
    return Workspace(home)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run one command of the command line in this process."""

    def run_command(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        try:
            code = fwp.main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 2
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def read_only_workspace(seeded_home: Path) -> Iterator[Workspace]:
    """A workspace in which nobody may write, used by a user for whom that counts."""
    folder = Path(tempfile.mkdtemp())
    home = folder / "workspace"
    shutil.copytree(seeded_home, home)
    folder.chmod(0o755)
    for path in [home, *home.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with without_privileges():
            yield Workspace(home)
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Act as a user for whom file permissions count, also where tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
