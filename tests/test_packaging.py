"""What holds for the project as a whole: packages, imports, and what no file may name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dashboard
import provenance
import records
import reimpl

ROOT = Path(__file__).parents[1]
PACKAGES = {"records", "provenance", "reimpl", "dashboard"}
ALLOWED = {
    "records": set(),
    "provenance": {"records"},
    "reimpl": {"records"},
    "dashboard": {"records"},
}
MAY_COMPUTE = Path("dashboard/memory.py")
"""The one module of the dashboard that imports reimpl; its page imports it when it is opened."""


def imports(path: Path) -> Iterator[str]:
    """Yield the top-level name of every import of a module, the lazy ones too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).partition(".")[0]


def modules() -> list[Path]:
    return sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize(
    "package", [records, provenance, reimpl, dashboard], ids=lambda p: p.__name__
)
def test_the_package_that_is_imported_is_ours(package: object) -> None:
    # another distribution installs a module called records, too
    assert Path(str(package.__file__)) == ROOT / package.__name__ / "__init__.py"  # type: ignore[attr-defined]


def test_the_packages_are_listed_one_by_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(p.parent.relative_to(ROOT).parts) for p in modules() if p.name == "__init__.py"
    }
    assert project["project"]["name"] == "fwp-repro"
    assert listed == found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_in_one_direction(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    allowed = ALLOWED[package] | ({"reimpl"} if path == ROOT / MAY_COMPUTE else set())
    assert PACKAGES & set(imports(path)) - {package} <= allowed


def test_only_the_index_imports_duckdb() -> None:
    importers = [str(p.relative_to(ROOT)) for p in modules() if "duckdb" in set(imports(p))]
    assert importers == ["records/index.py"]


@pytest.mark.parametrize(
    "modules_",
    [
        "records.workspace, records.verdict, records.exchange",
        "provenance.verify, provenance.text",
        "dashboard.report, dashboard.launch",
        "reimpl.experiments",
    ],
)
def test_torch_is_not_imported_by(modules_: str) -> None:
    code = f"import {modules_}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_help_answers_in_under_half_a_second() -> None:
    def seconds() -> float:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "fwp", "--help"], cwd=ROOT, check=True, capture_output=True
        )
        return time.perf_counter() - started

    assert min(seconds() for _ in range(5)) < 0.5


def test_the_pinned_versions_lie_in_the_declared_ranges() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(
        line.lower().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    extras = project["optional-dependencies"].values()
    declared = map(Requirement, [*project["dependencies"], *(r for extra in extras for r in extra)])
    for requirement in declared:
        if requirement.name != project["name"]:
            assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile(
        r"pypi\.or" + r"g|pythonhos" + r"ted|registry\.npm" + r"js|deb\.debi" + r"an\.org"
    )
    naming = [p.name for p in tracked() if hosts.search(p.read_text("utf-8", errors="ignore"))]
    assert naming == []
