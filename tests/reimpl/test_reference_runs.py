"""The runs that ship with the project are what the present code produces."""

from __future__ import annotations

from pathlib import Path

import pytest

from records.curated import load_jsonl
from records.models import Run, digest
from records.workspace import REFERENCE_RUNS
from reimpl import experiments
from reimpl.experiments import retrieval, retrieval_memory
from reimpl.experiments.retrieval import Training
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.runner import Selection

FILES = sorted(REFERENCE_RUNS.glob("*.jsonl"))


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [r for path in FILES for r in load_jsonl(path) if isinstance(r, Run)]


def test_every_record_is_a_run_and_no_run_is_there_twice(runs: list[Run]) -> None:
    assert len(runs) == sum(len(path.read_text("utf-8").splitlines()) for path in FILES)
    assert len({run.run_id for run in runs}) == len(runs) > 0


def test_the_id_of_a_run_is_that_of_what_made_it(runs: list[Run]) -> None:
    for run in runs:
        made = [run.experiment, run.config, run.seed, run.code_version]
        assert run.run_id == digest(made)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_holds_one_sweep(path: Path) -> None:
    """One of the figures in one mode, or one experiment that has no modes at one scale."""
    found = {
        (r.experiment, r.config.get("stream", "laptop"))
        for r in load_jsonl(path)
        if isinstance(r, Run)
    }
    assert [path.stem] == [f"{experiment}-{sweep}" for experiment, sweep in found]


def test_every_run_is_a_point_that_a_command_runs(runs: list[Run]) -> None:
    """Its configuration is one that a scale of its experiment has, so that anyone can rerun it."""
    seeds = max(run.seed for run in runs)
    wanted = {
        "capacity": (Selection("paper"), Selection("paper", seeds, "ours")),
        "update-rule": (Selection("paper"), Selection("paper", seeds, "ours")),
        "pareto": (Selection("laptop", seeds),),
        "language-model": (Selection("laptop", seeds),),
        "language-model-cost": (Selection("laptop", seeds),),
    }
    known = {
        digest([name, point.config, point.seed])
        for name in {run.experiment for run in runs}
        for selection in wanted[name]
        for point in selection.points(experiments.get(name))
    }
    assert {digest([run.experiment, run.config, run.seed]) for run in runs} <= known


# The quickest of each rule; their first evaluations differ between processors by rounding only.
REPLAYED = (
    ("capacity", "softmax-softmax", 20),
    ("capacity", "elu1-sum", 40),
    ("capacity", "dpfp1-sum", 40),
    ("update-rule", "elu1-delta", 20),
    ("update-rule", "dpfp1-delta", 20),
    ("update-rule", "dpfp1-fwm", 20),
)


@pytest.mark.parametrize(("experiment", "line", "S"), REPLAYED)
def test_the_present_code_still_starts_as_the_shipped_run_did(
    experiment: str, line: str, S: int, runs: list[Run]
) -> None:
    [run] = [
        r
        for r in runs
        if r.experiment == experiment
        and r.config["stream"] == "authors"
        and (f"{r.config['feature_map']}-{r.config['rule']}", r.config["S"]) == (line, S)
    ]
    point = RetrievalPoint.model_validate(run.config | {"seed": run.seed})
    module = retrieval_memory if point.rule == "fwm" else retrieval
    training = Training.start(point, module._build)
    for metric in [m for m in run.metrics if m.name == "eval_loss_curve"][:2]:
        training.train_until_evaluation()
        assert training.history[-1] == (metric.step, pytest.approx(metric.value, rel=1e-2))
