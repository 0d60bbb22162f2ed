from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import torch

import fwp
import records
from records.curated import load_folder
from records.errors import RunError
from records.models import Claim, Metric, Run
from records.verdict import judge, measurements
from reimpl import experiments
from reimpl.experiments import lineage, lineage_oracles
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.lineage import LineagePoint
from reimpl.experiments.lineage_forms import FORMS, differences, draw, measure
from reimpl.runner import rerun

ROOT = Path(__file__).parents[2]
CURATED = Path(records.__file__).parent / "data" / "2102.11174"
SHAPE = (1, 5, 2, 4, 3)

Change = Callable[..., Any]


def silent(line: str, *, kind: ProgressKind = "progress") -> None:
    pass


@pytest.fixture(scope="module")
def claims() -> dict[str, Claim]:
    curated = (r for r in load_folder(CURATED) if isinstance(r, Claim))
    return {claim.claim_id: claim for claim in curated if claim.experiment == "lineage"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    experiment, folder = experiments.get("lineage"), tmp_path_factory.mktemp("lineage")
    metrics = [m for point in experiment.points() for m in experiment.run(point, folder, silent)]
    by_claim = {str(m.claim_id): m for m in metrics}
    assert len(by_claim) == len(metrics)
    return by_claim


def test_every_claim_is_measured_and_nothing_else(
    claims: dict[str, Claim], measured: dict[str, Metric]
) -> None:
    assert len(claims) == 16
    assert {key: m.name for key, m in measured.items()} == {
        key: claim.metric for key, claim in claims.items()
    }


def test_a_claim_states_the_precision_and_the_code_that_run(claims: dict[str, Claim]) -> None:
    for slug, form in (item for forms in FORMS.values() for item in forms.items()):
        conditions = claims[lineage.claim_id(slug)].conditions
        assert f"torch.{conditions['precision']}" == str(form.precision)
        if isinstance(form.compute, lineage_oracles.Oracle):
            code = f"{form.compute.module}.{form.compute.function}"
            assert conditions["code"] == code


def test_published_code_with_an_open_gate_is_eq_24_to_rounding(
    claims: dict[str, Claim], measured: dict[str, Metric]
) -> None:
    # what their code rounds to: float32 keeps 6e-8 an operation, float64 1e-16
    bounds = {"float32": 2e-6, "float64": 1e-14}
    found = {k: m.value for k, m in measured.items() if m.name == "max_relative_error"}
    assert len(found) == 9
    assert {
        key: value
        for key, value in found.items()
        if not value < bounds[str(claims[key].conditions["precision"])]
    } == {}


def test_a_gate_that_closes_is_far_from_eq_24(measured: dict[str, Metric]) -> None:
    # exp(−0.1): the state loses 10 % in one step
    found = [m.value for m in measured.values() if m.name == "min_relative_difference"]
    assert len(found) == 7
    assert all(value > 0.05 for value in found)


def test_every_claim_is_reproduced(claims: dict[str, Claim], tmp_path: Path) -> None:
    runs: list[Run] = []
    rerun(
        ["lineage"],
        runs_dir=tmp_path,
        is_known=lambda run_id: False,
        record=runs.append,
        echo=silent,
    )
    verdicts = [judge(claim, measurements(runs)) for claim in claims.values()]
    assert [v.reason for v in verdicts if v.verdict != "reproduced"] == []


def test_a_point_names_the_version_of_the_code_it_runs() -> None:
    named = {point.subject: point.code for point in lineage.points("quick", None, None)}
    assert named["equations"] == "reimpl.rules"
    assert named["kda"] == f"fla-core {version('fla-core')}"
    assert named["qwen3-next"] == f"transformers {version('transformers')}"


def test_seeds_repeat_every_subject() -> None:
    points = experiments.get("lineage").points(seeds=2)
    assert len(points) == len(set(points)) == 10


def test_the_main_job_needs_no_extra() -> None:
    assert "lineage" not in fwp.QUICK


def missing(package: str) -> str:
    raise PackageNotFoundError(package)


@pytest.mark.parametrize("subject", ["delta-rule", "gated-deltanet", "kda", "qwen3-next"])
def test_without_its_package_a_point_fails_and_says_what_to_install(
    subject: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lineage, "version", missing)
    (point,) = [p for p in lineage.points("quick", None, None) if p.subject == subject]
    assert point.code.endswith("(not installed)")
    with pytest.raises(RunError, match=r"not installed; install it with .*fwp-repro\[oracles\]"):
        lineage.run(point, tmp_path, silent)


def test_the_equations_need_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lineage, "version", missing)
    point = LineagePoint(subject="equations", code="reimpl.rules", seed=1)
    assert len(lineage.run(point, tmp_path, silent)) == 4


def with_another_argument(published: Change) -> Change:
    return lambda *, q, k, v, g, beta, log_scale, **_: published(q, k, v, g, beta)


def with_the_state_transposed(published: Change) -> Change:
    def call(**arguments: Any) -> Any:
        output, state = published(**arguments)
        return output, state.transpose(-1, -2)

    return call


def with_one_head_for_all(published: Change) -> Change:
    def call(**arguments: Any) -> Any:
        output, state = published(**arguments)
        return output[:, :, :1], state

    return call


def without_a_state(published: Change) -> Change:
    return lambda **arguments: (published(**arguments)[0], None)


def with_outputs_only(published: Change) -> Change:
    return lambda **arguments: published(**arguments)[0].sum()


@pytest.mark.parametrize(
    "change",
    [
        with_another_argument,
        with_the_state_transposed,
        with_one_head_for_all,
        without_a_state,
        with_outputs_only,
    ],
)
def test_code_that_has_changed_gives_an_error_and_no_number(
    change: Callable[[Change], Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(lineage_oracles.KDA)
    published = module.naive_recurrent_kda
    monkeypatch.setattr(module, "naive_recurrent_kda", change(published))
    with pytest.raises(RunError, match=r"naive_recurrent_kda of fla-core .* cannot be used as it"):
        measure("kda", 1)


@pytest.mark.parametrize("gone", ["function", "module"])
def test_code_that_is_gone_gives_an_error_and_no_number(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(lineage_oracles.KDA)
    if gone == "function":
        monkeypatch.delattr(module, "naive_recurrent_kda")
    else:
        monkeypatch.setitem(sys.modules, lineage_oracles.KDA, None)
    with pytest.raises(RunError, match=r"install the tested versions with .*fwp-repro\[oracles\]"):
        measure("kda", 1)


def test_nan_in_one_of_many_outputs_is_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(lineage_oracles.KDA)
    published = module.naive_recurrent_kda

    def call(**arguments: Any) -> Any:
        output, state = published(**arguments)
        if output.shape[1] == 17:
            output[0, 0, 0, 0] = torch.nan
        return output, state

    monkeypatch.setattr(module, "naive_recurrent_kda", call)
    assert [value != value for _, value in measure("kda", 1).values()] == [True, True]


def test_outputs_and_the_last_state_both_count(monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS["gated-deltanet"]["gated-deltanet-recurrent"]
    x = draw(SHAPE, form, torch.Generator().manual_seed(0))
    module = import_module(lineage_oracles.GATED)
    published = module.naive_recurrent_gated_delta_rule

    def doubled(which: int) -> Change:
        return lambda **arguments: [
            y * (1 + (i == which)) for i, y in enumerate(published(**arguments))
        ]

    for which in (0, 1):
        monkeypatch.setattr(module, "naive_recurrent_gated_delta_rule", doubled(which))
        found = differences(form, [x], 0.0)
        assert float(found[which]) == pytest.approx(1.0, abs=1e-6)
        assert float(found[1 - which]) < 1e-6


def test_transformers_code_is_the_torch_function_and_not_its_dispatcher() -> None:
    for oracle in (lineage_oracles.QWEN_RECURRENT, lineage_oracles.QWEN_CHUNK):
        function = oracle._load()
        assert not hasattr(function, "__wrapped__")
        assert function.__module__ == oracle.module


def test_measuring_prints_nothing() -> None:
    code = (
        "from reimpl.experiments.lineage_forms import FORMS, measure\n"
        "for subject in FORMS: measure(subject, 1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
