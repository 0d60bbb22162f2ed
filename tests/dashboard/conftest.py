"""Workspaces with runs and findings in them; claim ids and numbers are read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from records.models import Assertion, Check, Claim, Evidence, Metric, Paper, Record, Run
from records.workspace import REFERENCE_RUNS, Workspace, open_workspace, reference_mark

STARTED = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> **b** [l](javascript:1)"
)


def make_run(claim_id: str, metric: str, value: float, *, seed: int = 1, suffix: str = "") -> Run:
    """A run of one measurement and a curve of three points that ends in it."""
    curve = [Metric(name="curve", value=value * k, step=100 * k) for k in (1, 2, 3)]
    return Run(
        run_id=f"{claim_id.replace('/', '-')}{suffix}-{seed}",
        experiment="test",
        config={"claim": claim_id},
        seed=seed,
        code_version="test",
        environment={"device": "cpu"},
        started=STARTED,
        finished=STARTED + timedelta(minutes=1),
        metrics=(Metric(name=metric, value=value, claim_id=claim_id), *curve),
    )


def make_point_run(claim: dict[str, Any], value: float, *, seed: int, stream: str) -> Run:
    """A run of one point over S by one kind of streams, with a curve that ends in its value."""
    name, replay = claim["metric"], stream == "authors"
    run = make_run(claim["claim_id"], name, value, seed=seed, suffix=f"-{stream}")
    metrics = (
        Metric(name=name, value=value, claim_id=claim["claim_id"], replay=replay),
        *(Metric(name=f"{name}_curve", value=value * k, step=100 * k) for k in (2, 1)),
    )
    config = {**run.config, "stream": stream}
    return run.model_copy(
        update={"metrics": metrics, "config": config, "experiment": claim["experiment"]}
    )


def add_run(workspace: Workspace, run: Run) -> None:
    workspace.append(f"run/{run.run_id}", [run])


def add_runs_at_the_claimed_values(workspace: Workspace, most: int = 6) -> int:
    """Measure the first claims over S exactly as claimed; return how many."""
    claims = workspace.query(
        "SELECT claim_id, metric, claimed FROM claims WHERE comparison = '=' "
        f"AND json_extract_string(conditions, 'S') IS NOT NULL ORDER BY ordinal LIMIT {most}"
    ).dicts()
    for claim in claims:
        add_run(workspace, make_run(claim["claim_id"], claim["metric"], claim["claimed"]))
    return len(claims)


def add_findings(workspace: Workspace) -> str:
    """Append one finding of each outcome on the first paper with claims; return its id."""
    row = workspace.query(
        "SELECT paper_id, field, value, evidence_id FROM assertions "
        "WHERE paper_id IN (SELECT paper_id FROM claims) AND field = 'title' LIMIT 1"
    ).dicts()[0]
    workspace.append(
        "verify/test",
        [
            Check(
                rule="test-rule",
                rule_version=1,
                paper_id=row["paper_id"],
                field=row["field"],
                value=row["value"],
                outcome=outcome,
                severity="wrong" if outcome == "contradicted" else None,
                reason=f"reason of {outcome}",
                evidence_ids=(row["evidence_id"],),
                grade="transcribed",
            )
            for outcome in ("confirmed", "contradicted", "absent", "unavailable")
        ],
    )
    return str(row["paper_id"])


def hostile_records() -> list[Record]:
    """A second paper whose every text tries to be markup."""
    return [
        Evidence(
            evidence_id="hostile",
            source=HOSTILE,
            authority="note",
            grade="transcribed",
            kind="note",
            url="javascript:window.hacked=1",
            excerpt=HOSTILE,
        ),
        Paper(
            paper_id="0-hostile",
            title=HOSTILE,
            year=2021,
            url="javascript:1",
            evidence_id="hostile",
        ),
        *(
            Assertion(
                assertion_id=f"hostile-{n}",
                paper_id="0-hostile",
                field="venue",
                value=f"{HOSTILE}{n}",
                evidence_id="hostile",
            )
            for n in range(2)
        ),
        Claim(
            claim_id="0-hostile/claim",
            paper_id="0-hostile",
            kind="synthetic",
            locator=HOSTILE,
            statement=HOSTILE,
            metric="loss",
            claimed=1.0,
            conditions={"feature_map": HOSTILE, "rule": "sum", "S": 20},
            experiment=HOSTILE,
            evidence_id="hostile",
        ),
    ]


@pytest.fixture
def run_of() -> Callable[..., Run]:
    """``make_run`` for tests."""
    return make_run


@pytest.fixture
def point_run() -> Callable[..., Run]:
    """``make_point_run`` for tests."""
    return make_point_run


@pytest.fixture(scope="session")
def hostile_batch() -> list[Record]:
    """``hostile_records`` with a run that measured their claim."""
    return [*hostile_records(), make_run("0-hostile/claim", "loss", 1.0, suffix=HOSTILE)]


@pytest.fixture
def hostile_text() -> str:
    return HOSTILE


@pytest.fixture(scope="session")
def unchecked_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace folder that no test may change; ``fresh`` is a copy of it.

    It is without the shipped reference runs, so that a test knows every run there is.
    """
    home = tmp_path_factory.mktemp("unchecked") / "ws"
    workspace = open_workspace(home)
    for batch in (home / "ledger").glob("*-reference_*"):
        batch.unlink()
    for path in REFERENCE_RUNS.glob("*.jsonl"):  # as if the files that ship were empty
        workspace.append(f"reference/{path.stem}", ())
        workspace.append(reference_mark(path), (), repeat=True)
    workspace.query("SELECT 1")
    return home


@pytest.fixture
def fresh(unchecked_home: Path, tmp_path: Path) -> Workspace:
    """The shipped records, of which nothing was checked or run."""
    return Workspace(Path(shutil.copytree(unchecked_home, tmp_path / "ws")))


@pytest.fixture(scope="session")
def filled_home(unchecked_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with six reproduced claims and findings of each outcome; no test changes it."""
    home = tmp_path_factory.mktemp("filled") / "ws"
    workspace = Workspace(Path(shutil.copytree(unchecked_home, home)))
    add_runs_at_the_claimed_values(workspace)
    add_findings(workspace)
    workspace.query("SELECT 1")
    return home


@pytest.fixture
def filled(filled_home: Path, fresh: Workspace) -> Workspace:
    """``fresh``, with six reproduced claims and findings of each outcome."""
    shutil.rmtree(fresh.home)
    shutil.copytree(filled_home, fresh.home)
    return fresh


@pytest.fixture
def two_modes(fresh: Workspace) -> tuple[Workspace, dict[str, Any]]:
    """``fresh`` with a logged point measured by the authors' streams and three seeds of ours.

    Neither 0.5 nor the median 0.2 is what the point claims, which is a loss below 0.01.
    """
    claim = fresh.query(
        "SELECT *, conditions->>'S' AS S FROM claims WHERE experiment = 'capacity' "
        "AND comparison = '=' AND conditions->>'S' = '20' AND claimed < 0.01 "
        "AND claim_id IN (SELECT claim_id FROM logged_curves) ORDER BY ordinal LIMIT 1"
    ).dicts()[0]
    runs = [make_point_run(claim, 0.5, seed=1, stream="authors")]
    runs += [make_point_run(claim, 0.1 * seed, seed=seed, stream="ours") for seed in (1, 2, 3)]
    fresh.append("run/two-modes", runs)
    return fresh, claim


@pytest.fixture
def hostile(fresh: Workspace, hostile_batch: list[Record]) -> Workspace:
    fresh.append("import/hostile", hostile_batch)
    return fresh


@pytest.fixture
def homed(fresh: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The workspace as the one that the dashboard reads, without answers kept from other tests."""
    import streamlit as st

    monkeypatch.setenv("FWP_HOME", str(fresh.home))
    st.cache_data.clear()
    st.cache_resource.clear()
    yield fresh
    st.cache_data.clear()
    st.cache_resource.clear()
