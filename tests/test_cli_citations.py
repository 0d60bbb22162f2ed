"""Bibliographies, evidence and the index on the command line, sources served from loopback."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

import fwp
from provenance.evidence import Archive
from records.workspace import Workspace
from tests.conftest import Outcome
from tests.provenance.loopback import Server, loopback_client, serve
from tests.provenance.world.whole import routes

Run = Callable[..., Outcome]
ROOT = Path(__file__).parents[1]

RIGHT = """@inproceedings{katharopoulos20,
  title = {Transformers are {RNN}s: Fast Autoregressive Transformers with Linear Attention},
  author = {Katharopoulos, Angelos and Vyas, Apoorv and Pappas, Nikolaos and Fleuret, François},
  booktitle = {International Conference on Machine Learning},
  pages = {5156--5165},
  year = 2020
}
"""
WRONG = """% kept
@inproceedings{schlag,
  title = "Linear Transformers Are Secretly Fast Weight Programmers",
  author = {Imanol Schlag and Kazuki Irie and Jürgen Schmidhuber},
  booktitle = {ICLR},   % as somebody wrote
  year = {2021},
}
"""


@pytest.fixture
def home(workspace: Workspace) -> Path:
    return workspace.home


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Server]:
    """Let the command line ask the loopback server in place of the sources."""
    with serve(routes()) as server:
        client = loopback_client(server, Archive(home / "evidence"))
        monkeypatch.setattr(fwp, "_fetcher", lambda *_: client)
        yield server


def bib(folder: Path, text: str, name: str = "refs.bib") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.usefixtures("online")
def test_a_right_bibliography_succeeds(run: Run, home: Path, tmp_path: Path) -> None:
    outcome = run("verify", bib(tmp_path, RIGHT), "--home", home)
    assert outcome.code == 0
    assert "1 reference: 1 correct" in outcome.out


@pytest.mark.usefixtures("online")
def test_a_wrong_one_exits_with_1_and_says_where(run: Run, home: Path, tmp_path: Path) -> None:
    outcome = run("verify", bib(tmp_path, RIGHT + WRONG), "--home", home)
    assert outcome.code == 1
    assert "venue (wrong)" in outcome.out
    assert "published elsewhere" not in outcome.out  # the table shows what was found instead
    assert "Machine Learning 2021" in " ".join(outcome.out.split())


@pytest.mark.usefixtures("online")
def test_json_holds_each_finding_with_its_evidence(run: Run, home: Path, tmp_path: Path) -> None:
    found = run("verify", bib(tmp_path, WRONG), "--home", home, "--format", "json")
    [file] = json.loads(found.out)["files"]
    [report] = file["references"]
    [fault] = [f for f in report["findings"] if f["severity"] == "wrong"]
    assert (fault["field"], fault["cited"]) == ("venue", "ICLR")
    shown = run("evidence", "show", fault["evidence_ids"][0], "--home", home)
    assert "Linear Transformers Are Secretly Fast Weight Programmers" in shown.out


@pytest.mark.usefixtures("online")
def test_sarif_and_markdown_are_for_other_programs(run: Run, home: Path, tmp_path: Path) -> None:
    path = bib(tmp_path, RIGHT + WRONG)
    sarif = json.loads(run("verify", path, "--home", home, "--format", "sarif").out)
    [result] = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("citation/venue", "error")
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == RIGHT.count("\n") + 2  # after a comment
    markdown = run("verify", path, "--home", home, "--format", "markdown").out
    assert "| schlag | wrong |" in markdown


@pytest.mark.usefixtures("online")
def test_sql_reaches_what_was_found_last_of_each_bibliography(
    run: Run, home: Path, tmp_path: Path
) -> None:
    sql = "SELECT entry, verdict, field, severity FROM reference_checks WHERE severity = 'wrong'"
    path = bib(tmp_path, RIGHT + WRONG)
    run("verify", path, "--home", home)
    found = run("query", sql, "--home", home, "--format", "csv").out
    assert found.splitlines()[1:] == ["schlag,wrong,venue,wrong"]
    path.write_text(RIGHT, encoding="utf-8")
    run("verify", path, "--home", home)
    assert run("query", sql, "--home", home, "--format", "csv").out.splitlines()[1:] == []


@pytest.mark.usefixtures("online")
def test_csv_has_a_row_for_each_finding(run: Run, home: Path, tmp_path: Path) -> None:
    out = run("verify", bib(tmp_path, WRONG), "--home", home, "--format", "csv").out
    rows = list(csv.DictReader(out.splitlines()))
    [wrong] = [row for row in rows if row["severity"] == "wrong"]
    assert (wrong["entry"], wrong["field"], wrong["cited"]) == ("schlag", "venue", "ICLR")


@pytest.mark.usefixtures("online")
def test_fix_corrects_what_is_wrong_and_keeps_all_else(
    run: Run, home: Path, tmp_path: Path
) -> None:
    source = bib(tmp_path, RIGHT + WRONG)
    outcome = run("verify", source, "--fix", tmp_path / "out.bib", "--home", home)
    assert outcome.code == 1  # the input was wrong
    fixed = (tmp_path / "out.bib").read_text(encoding="utf-8")
    assert fixed.startswith(RIGHT + "% kept\n@inproceedings{schlag,\n")
    assert "ICLR" not in fixed
    assert "% as somebody wrote" in fixed
    again = run("verify", tmp_path / "out.bib", "--home", home)
    assert again.code == 0, again.out
    assert source.read_text(encoding="utf-8") == RIGHT + WRONG


@pytest.mark.usefixtures("online")
def test_fix_never_writes_over_its_input(run: Run, home: Path, tmp_path: Path) -> None:
    source = bib(tmp_path, WRONG)
    (tmp_path / "link.bib").symlink_to(source)
    for target in (source, tmp_path / "link.bib"):
        outcome = run("verify", source, "--fix", target, "--home", home)
        assert outcome.code == 2
        assert "is the bibliography itself" in outcome.err
    assert source.read_text(encoding="utf-8") == WRONG


def test_evidence_survives_and_serves_the_next_run_offline(
    run: Run, home: Path, tmp_path: Path, online: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run("verify", bib(tmp_path, WRONG), "--home", home)
    asked = len(online.requests)
    monkeypatch.undo()
    again = run("verify", bib(tmp_path, WRONG), "--offline", "--home", home)
    assert again.out == first.out
    assert len(online.requests) == asked > 0


@pytest.mark.usefixtures("online")
def test_damaged_evidence_is_found(run: Run, home: Path, tmp_path: Path) -> None:
    run("verify", bib(tmp_path, RIGHT), "--home", home)
    assert run("evidence", "check", "--home", home).code == 0
    listed = json.loads(run("evidence", "list", "--home", home, "--format", "json").out)
    assert any(row["source"].startswith("DBLP: https://dblp.org/") for row in listed)
    victim = next((home / "evidence").glob("*.warc.gz"))
    victim.write_bytes(victim.read_bytes()[:-30])
    outcome = run("evidence", "check", "--home", home)
    assert outcome.code == 1
    assert victim.name in outcome.out


@pytest.mark.usefixtures("online")
def test_archived_bytes_can_be_written_to_a_file(run: Run, home: Path, tmp_path: Path) -> None:
    run("verify", bib(tmp_path, RIGHT), "--home", home)
    listed = json.loads(run("evidence", "list", "--home", home, "--format", "json").out)
    [capture] = [row for row in listed if row["source"].startswith("PMLR: ")]
    out = tmp_path / "volume.yaml"
    run("evidence", "show", capture["evidence_id"], "--output", out, "--home", home)
    assert "Transformers are RNNs" in out.read_text(encoding="utf-8")


@pytest.mark.usefixtures("online")
def test_hostile_titles_are_shown_harmlessly(run: Run, home: Path, tmp_path: Path) -> None:
    text = (
        "@misc{x\x1b[31m, title={<script>alert(1)</script> \x1b]0;owned\x07 '; DROP TABLE}, year=1}"
    )
    for form in ("table", "markdown", "json", "sarif"):
        outcome = run("verify", bib(tmp_path, text), "--home", home, "--format", form)
        assert outcome.code == 0
        assert "\x1b" not in outcome.out
        assert form != "markdown" or "<script>" not in outcome.out


def test_an_arxiv_identifier_alone_says_what_it_is(run: Run, home: Path, online: Server) -> None:
    outcome = run("verify", "arXiv:2412.20324", "--home", home)
    assert outcome.code == 0
    assert "AFLNet Five Years Later" in " ".join(outcome.out.split())
    assert online.requests


def test_an_index_answers_offline(run: Run, home: Path, tmp_path: Path) -> None:
    """Its records are right; what is cited is held against them and no source is asked."""
    truth = WRONG.replace("ICLR", "Proceedings of the 38th International Conference on "
                          "Machine Learning, {ICML} 2021")  # fmt: skip
    built = run("index", "build", bib(tmp_path, truth, "truth.bib"), "--home", home)
    assert built.code == 0, built.err
    outcome = run("verify", bib(tmp_path, WRONG), "--index", "--offline", "--home", home)
    assert outcome.code == 1
    assert "venue (wrong)" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nowhere.bib"], "cannot be read: No such file"),
        (["verify", "refs.bib", "--index"], "no local index"),
        (["verify", "--format", "sarif"], "shows bibliographies"),
        (["verify", "refs.bib", "2102.11174", "--format", "csv"], "not both at once"),
        (["verify", "refs.bib", "--seconds", "-1"], "no time in seconds"),
        (["verify", "refs.bib", "--seconds", "nan"], "no time in seconds"),
        (["verify", "refs.bib", "--seconds", "soon"], "soon"),
        (["verify", "--fix", "out.bib"], "--fix corrects one bibliography"),
        (["verify", "empty.bib"], "holds no reference"),
        (["verify", "binary.bib"], "binary"),
        (["verify", "broken.json"], "no JSON"),
        (["verify", "refs.txt", "--fix", "out.bib"], "only BibTeX files are corrected"),
        (["index", "build", "nowhere.bib"], "no file nowhere.bib"),
        (["index", "build", "binary.bib"], "binary.bib: this is a binary file"),
        (["index", "build", "empty.bib"], "no source of an index"),
        (["evidence", "show", "warc:0-0"], "is not in the evidence archive"),
        (["evidence", "show", "warc:../../etc/passwd"], "is not in the evidence archive"),
    ],
)
def test_bad_input_is_one_message_and_changes_nothing(
    arguments: list[str],
    message: str,
    run: Run,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bib(tmp_path, RIGHT)
    bib(tmp_path, "A. Author. A Title of Some Length. In ICML, 2021.", "refs.txt")
    bib(tmp_path, "% nothing", "empty.bib")
    bib(tmp_path, '[{"title": ', "broken.json")
    (tmp_path / "binary.bib").write_bytes(bytes(range(256)) * 40)
    before = sorted(home.rglob("*"))
    outcome = run(*arguments, "--offline" if arguments[0] == "verify" else "--home", *(
        ["--home"] if arguments[0] == "verify" else []), home)  # fmt: skip
    assert outcome.code == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "out.bib").exists()
    assert [p for p in sorted(home.rglob("*")) if "index.duckdb" not in p.name] == [
        p for p in before if "index.duckdb" not in p.name
    ]


def test_bench_verify_prints_the_table_of_the_labelled_cases(run: Run) -> None:
    outcome = run("bench", "verify", "--quick")
    assert outcome.code == 0
    assert "real citations" in outcome.out
    assert "target at least 95 % detected" in outcome.out


def test_the_hooks_and_the_action_call_commands_that_are_there() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for hook in hooks:
        program, *arguments = shlex.split(hook["entry"])
        options = fwp._parser().parse_args([*arguments, "refs.bib"])
        assert (program, options.targets) == ("fwp", ["refs.bib"])
        assert re.search(hook["files"], "paper/refs.bib")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    script = action["runs"]["steps"][-1]["run"]
    for line in re.findall(r"fwp verify (.*?) (?:>|>>) ", script):
        words = line.replace("$FILES", "refs.bib").replace('"${options[@]}"', "--strict")
        assert fwp._parser().parse_args(["verify", *shlex.split(words)]).strict is (
            "strict" in words
        )
