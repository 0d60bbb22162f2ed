"""The README's commands are run, and what it prints of them is what they print."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.launch import free_port

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def examples() -> list[tuple[str, list[str]]]:
    """Return each ``$ fwp`` command of the README with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def words(line: str) -> str:
    return " ".join(line.split())


WRONG = ("fwp verify 2102.11174 --offline", "fwp verify refs.bib --index --offline")
EXAMPLES = [example for example in examples() if "browse" not in example[0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: the README's own data files in it, and ``fwp all`` done."""
    here = tmp_path_factory.mktemp("reader")
    (toml,) = re.findall(
        r"^```toml\n(# mine/record\.toml\n.*?)^```", README, re.MULTILINE | re.DOTALL
    )
    (here / "mine").mkdir()
    (here / "mine" / "record.toml").write_text(toml, encoding="utf-8")
    for text, name in re.findall(r"^```bibtex\n(% (\w+\.bib)\n.*?)^```", README, re.M | re.S):
        (here / name).write_text(text, encoding="utf-8")
    done = fwp("all", here)
    assert done.returncode == 0, done.stderr
    return here


@pytest.fixture(scope="module")
def outputs(folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """What each command printed, all of them run in the order of the README."""
    return {command: fwp(command.removeprefix("fwp "), folder) for command, _ in EXAMPLES}


def fwp(command: str, here: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fwp", *shlex.split(command)],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_readme_shows_the_four_uses() -> None:
    verbs = {command.split()[1] for command, _ in examples()}
    assert {"verify", "rerun", "query", "browse"} <= verbs


@pytest.mark.parametrize(("command", "lines"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_a_command_prints_what_the_readme_shows(
    outputs: dict[str, subprocess.CompletedProcess[str]], command: str, lines: list[str]
) -> None:
    done = outputs[command]
    assert done.returncode == (1 if command in WRONG else 0), done.stderr
    printed = iter([words(line) for line in done.stdout.splitlines()])
    assert lines
    assert [line for line in lines if not any(words(line) in text for text in printed)] == []


def test_browse_prints_the_address_and_ends_with_ctrl_c(folder: Path) -> None:
    (lines,) = [lines for command, lines in examples() if command.startswith("fwp browse")]
    port = free_port("localhost", None)
    server = subprocess.Popen(
        [sys.executable, "-m", "fwp", "browse", "--no-browser", "--port", str(port)],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline().strip() == lines[0].replace("8501", str(port))
    server.send_signal(signal.SIGINT)
    assert server.wait(30) == 0


def test_every_file_and_folder_that_the_readme_names_is_there() -> None:
    named = re.findall(r"\]\((?!http)([^)#]+)\)|`([a-z]+/)`", README)
    paths = {first or second for first, second in named} - {"ledger/", "runs/"}
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_fwp_all_ends_with_the_coverage_table_and_the_report(folder: Path) -> None:
    done = fwp("all", folder)
    assert done.returncode == 0
    last = [words(line) for line in done.stdout.partition("Claims by kind")[2].splitlines()]
    (shown,) = [lines for command, lines in examples() if "claim_coverage" in command]
    assert [line for line in shown if words(line) not in last] == []
    assert (folder / "workspace" / "report.html").is_file()
