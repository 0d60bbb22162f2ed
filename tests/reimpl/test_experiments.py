from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import records
from records.curated import load_folder
from records.errors import ConfigError, UnknownExperiment
from records.models import Claim
from reimpl import experiments
from reimpl.experiments.points import RetrievalPoint

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["reimpl.experiments", "reimpl.runner"])
def test_importing_does_not_import_torch(module: str) -> None:
    code = (
        f"import sys, {module}; from reimpl import experiments\n"
        "[experiments.get(n).points(s) for n in experiments.names() for s in experiments.SCALES]\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_names_are_the_seven_experiments() -> None:
    assert experiments.names() == (
        "exact", "lineage", "capacity", "update-rule", "pareto", "language-model",
        "language-model-cost",
    )  # fmt: skip


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownExperiment, match="'fig2'; known: exact, lineage, capacity, update-rule"
    ):
        experiments.get("fig2")


@pytest.mark.parametrize("name", experiments.names())
def test_an_unknown_scale_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownExperiment, match="no scale 'huge'; use quick, laptop, paper"):
        experiments.get(name).points("huge")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 0}, "1 to 1000"),
        ({"seeds": 10**9}, "1 to 1000"),
        ({"stream": "theirs"}, "unknown random stream 'theirs'"),
        ({"stream": "authors", "seeds": 3}, "one seed only"),
    ],
)
def test_wrong_seeds_and_streams_are_config_errors(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        experiments.get("capacity").points("quick", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"seed": 2}, "seed 1 only"), ({"rule": "softmax"}, "do not go together")],
)
def test_points_that_do_not_fit_are_config_errors(changes: dict[str, object], message: str) -> None:
    fields = {"setting": "capacity", "feature_map": "elu1", "rule": "sum", "S": 20, "seed": 1}
    with pytest.raises(ConfigError, match=message):
        RetrievalPoint.model_validate(fields | changes)


def retrieval_points(scale: str, **arguments: int) -> list[RetrievalPoint]:
    return [
        point
        for name in ("capacity", "update-rule")
        for point in experiments.get(name).points(scale, **arguments)
        if isinstance(point, RetrievalPoint)
    ]


def test_paper_scale_has_every_point_that_the_authors_logged() -> None:
    # Fig. 2: 8 models at S = 20, 40, … 600; Fig. 3 and appendix: 8 models at S = 20, … 200.
    ids = {point.claim_id for point in retrieval_points("paper")}
    assert len(ids) == 8 * 30 + 8 * 10
    assert "2102.11174/capacity/softmax-softmax-S600" in ids
    assert "2102.11174/update-rule/tanh-fwm-S200" in ids


@pytest.mark.parametrize("scale", ["quick", "laptop"])
def test_smaller_scales_are_parts_of_the_paper_scale(scale: str) -> None:
    assert set(retrieval_points(scale)) < set(retrieval_points("paper"))


def test_one_seed_follows_the_authors_and_more_are_our_own() -> None:
    assert {p.stream for p in retrieval_points("quick")} == {"authors"}
    several = retrieval_points("quick", seeds=3)
    assert {(p.stream, p.seed) for p in several} == {("ours", 1), ("ours", 2), ("ours", 3)}


def test_every_point_measures_a_claim_that_is_curated() -> None:
    folder = Path(records.__file__).parent / "data" / "2102.11174"
    curated = {r.claim_id: r for r in load_folder(folder) if isinstance(r, Claim)}
    for point in retrieval_points("paper"):
        claim = curated[point.claim_id]
        assert (claim.conditions["S"], claim.conditions["L"]) == (point.S, point.length)
        assert point.text_claim_id is None or point.text_claim_id in curated
