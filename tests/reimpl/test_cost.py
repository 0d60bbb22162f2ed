"""What language models cost: the ratios that are held against the paper's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import records
from records.curated import load_folder
from records.models import Claim
from reimpl import experiments
from reimpl.experiments import cost, cost_run
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.cost import MEMORY_RATIOS, MODELS, SPEED_RATIOS, CostPoint

CLAIMS = Path(records.__file__).parent / "data" / "2102.11174"
EXPERIMENT = experiments.get("language-model-cost")


def silent(line: str, *, kind: ProgressKind = "progress") -> None:
    pass


def curated() -> dict[str, Claim]:
    return {r.claim_id: r for r in load_folder(CLAIMS) if isinstance(r, Claim)}


def test_every_ratio_is_a_claim_with_its_metric() -> None:
    names = {f"speed_ratio_{n}": f"speed-{n}" for n in SPEED_RATIOS}
    names |= {f"memory_ratio_{n}": f"memory-{n}" for n in MEMORY_RATIOS}
    for metric, name in names.items():
        claim = curated()[f"2102.11174/cost/{name}"]
        assert (claim.metric, claim.experiment) == (metric, "language-model-cost")


def test_the_paper_scale_is_its_batch_on_a_gpu() -> None:
    [paper], [laptop] = (EXPERIMENT.points(scale) for scale in ("paper", "laptop"))
    assert isinstance(paper, CostPoint)
    assert isinstance(laptop, CostPoint)
    assert (paper.batch, paper.scale("cuda"), paper.scale("cpu")) == (96, "paper", "reduced")
    assert laptop.scale("cuda") == "reduced"
    assert laptop.claim_id("speed-delta-to-sum") == "2102.11174/cost/speed-delta-to-sum"


def test_models_differ_only_in_what_is_compared() -> None:
    # App. D.3: one d_dot a head, 2 m = 32 for FAVOR+ (m = 16) and 2 d_head = 32 for DPFP-1
    whole = CostPoint(seed=1)
    assert {whole.model(name).layers for name in MODELS} == {16}
    assert whole.model("performer-delta").changed(feature_map="dpfp1") == whole.model("dpfp-delta")


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    [point] = EXPERIMENT.points("quick")
    metrics = EXPERIMENT.run(point, Path(), silent)
    assert not any(metric.claim_id for metric in metrics)  # the models are not the paper's
    assert {metric.scale for metric in metrics if "ratio" in metric.name} == {"reduced"}
    return {metric.name: metric.value for metric in metrics}


def test_a_run_measures_every_model_and_ratio(found: dict[str, float]) -> None:
    assert {f"words_per_second_{name}" for name in MODELS} <= set(found)
    assert {f"speed_ratio_{name}" for name in SPEED_RATIOS} <= set(found)
    assert all(value > 0 for value in found.values())


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
def test_memory_is_that_of_a_step(found: dict[str, float]) -> None:
    # weights of 2,000 words x 128 and one layer, their gradients and Adam's moments: over 10 MB
    for name in MODELS:
        assert 0.01 < found[f"gigabytes_{name}"] < 2
    for name, (one, other) in MEMORY_RATIOS.items():
        ratio = found[f"gigabytes_{one}"] / found[f"gigabytes_{other}"]
        assert found[f"memory_ratio_{name}"] == pytest.approx(ratio)


def test_ratios_of_speeds_are_of_times_the_other_way_round() -> None:
    times = {name: [1.0, 1.0, 1.0] for name in MODELS} | {"delta": [2.0, 4.0, 1.0]}
    metrics = cost_run._metrics(CostPoint(seed=1, batch=2), times, {"delta": 3.0, "sum": 2.0})
    by_name = {metric.name: metric.value for metric in metrics}
    assert by_name["speed_ratio_delta-to-sum"] == 0.5
    assert by_name["words_per_second_delta"] == 2 * 256 / 2.0
    assert by_name["memory_ratio_delta-to-sum"] == 1.5
    assert "memory_ratio_transformer-to-sum" not in by_name


def test_seeds_are_points() -> None:
    assert [p.seed for p in cost.points("quick", 3, None)] == [1, 2, 3]
