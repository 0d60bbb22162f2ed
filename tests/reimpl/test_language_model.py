"""The rows of Tables 2 to 5 as points, and a run of each kind from the text to its metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch

import records
from records.curated import load_folder
from records.errors import ConfigError, DataError
from records.models import Claim, Metric
from reimpl import data, experiments, training, workers
from reimpl.corpora import king_james
from reimpl.data import build
from reimpl.experiments import language_model_run
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.language_model_point import (
    KJV_WORDS,
    ROWS,
    TABLES,
    LanguageModelPoint,
    point,
)
from reimpl.model import parameter_count, state_size
from reimpl.runner import Selection

EXPERIMENT = experiments.get("language-model")
CLAIMS = Path(records.__file__).parent / "data" / "2102.11174"


def silent(line: str, *, kind: ProgressKind = "progress") -> None:
    pass


def points(scale: str, **arguments: object) -> list[LanguageModelPoint]:
    selection = Selection(scale, **arguments)  # type: ignore[arg-type]
    found = selection.points(EXPERIMENT)
    assert all(isinstance(each, LanguageModelPoint) for each in found)
    return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def curated() -> dict[str, Claim]:
    return {r.claim_id: r for r in load_folder(CLAIMS) if isinstance(r, Claim)}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The King James text, built once for all tests here."""
    root = tmp_path_factory.mktemp("corpora")
    build(king_james(), root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FWP_CORPORA", str(root))
        yield root


def tables(curated: dict[str, Claim]) -> set[str]:
    """The claims of Tables 2 to 5, without the split; Transformer-XL is no model of ours."""
    wanted = {
        claim_id.rsplit("-", 1)[0]
        for claim_id, claim in curated.items()
        if claim.experiment == "language-model"
        and "/table" in claim_id
        and "transformer-xl" not in claim_id
    }
    assert {int(claim_id.split("/table")[1][0]) for claim_id in wanted} == set(TABLES)
    return wanted


# The points


def test_paper_scale_decides_every_claim_of_the_tables(curated: dict[str, Claim]) -> None:
    measured = {claim for each in points("paper") for claim in each.measures}
    assert tables(curated) <= measured
    for claim in measured - tables(curated):
        assert claim == "2102.11174/language-model/delta-needs-sum-normalisation"
        assert claim in curated


def test_the_conditions_of_a_claim_are_those_of_its_model(curated: dict[str, Claim]) -> None:
    for each in points("paper"):
        for name in each.claims:
            if "/table" not in name:
                continue
            conditions = curated[f"{name}-valid"].conditions
            if "d_dot" in conditions and each.model.rule != "softmax":
                state = state_size(each.model.changed(attention_normalisation="none"))
                # the paper counts the features of all heads (Table 5: 8 heads of 32 are 256)
                assert state == 16 * conditions["d_dot"] * each.model.d_head
            if "attention_normalisation" in conditions:
                is_on = each.model.attention_normalisation != "none"
                assert is_on == conditions["attention_normalisation"]


def test_all_rows_of_a_size_have_about_as_many_parameters() -> None:
    sizes = {p: parameter_count(point("transformer", p, 1).model) for p in ("small", "medium")}
    for each in points("paper"):
        assert parameter_count(each.model) == pytest.approx(sizes[each.preset], rel=0.005)


def test_a_laptop_runs_every_row_with_three_seeds_on_one_budget() -> None:
    found = points("laptop")
    assert {(p.row, p.seed) for p in found} == {(row, s) for row in ROWS for s in (1, 2, 3)}
    budgets = {(p.training.batch, p.training.steps, p.model.segment) for p in found}
    assert budgets == {(16, 900, 256)}


def test_a_table_is_its_rows() -> None:
    # Table 2: softmax and two maps by two rules
    assert {p.row for p in points("laptop", tables=(2,))} == {
        "transformer", "linear-transformer-sum", "delta-network", "performer-sum",
        "performer-delta",
    }  # fmt: skip
    assert {p.row for p in points("laptop", tables=(4,))} == {"carried-sum", "carried-delta"}
    assert {p.line for p in points("paper", tables=(3,))} == {
        "delta-network-medium", "delta-network-attn-norm-medium", "delta-network-no-pos-medium",
        "delta-network-no-pos-attn-norm-medium",
    }  # fmt: skip


def test_carried_rows_have_no_positions_and_carry() -> None:
    for each in points("paper", tables=(4,)):
        assert each.training.carry
        assert not each.model.positions


def test_as_released_normalises_and_scales_the_output_of_fast_weights() -> None:
    found = {p.line: p for p in points("paper", as_released=True)}
    assert found["transformer-small"].model == point("transformer", "small", 1).model
    delta = found["delta-network-small"]
    assert (delta.model.attention_normalisation, delta.model.output_scale) == ("output", True)
    assert delta.training.batch == 8
    assert found["delta-network-medium"].training.batch == 56
    assert delta.config != point("delta-network", "small", 1).config


def test_an_unknown_row_is_a_config_error() -> None:
    values = point("transformer", "quick", 1).model_dump() | {"row": "gpt"}
    with pytest.raises(ConfigError, match="no row 'gpt'; known: transformer, linear"):
        LanguageModelPoint.model_validate(values)


def test_the_vocabulary_is_that_of_the_text(text: Path) -> None:
    assert len(data.open_corpus("kjv", text).words) == KJV_WORDS


# Runs


def measured(each: LanguageModelPoint, folder: Path) -> list[Metric]:
    folder.mkdir(parents=True)
    return list(EXPERIMENT.run(each, folder, silent))


def values(metrics: list[Metric]) -> dict[str, float]:
    return {m.name: m.value for m in metrics if m.step is None}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.usefixtures("text")
def test_every_row_trains_and_is_better_than_chance_or_diverges_as_claimed(
    row: str, tmp_path: Path
) -> None:
    each = point(row, "quick", 1)
    found = measured(each, tmp_path / "home" / "runs" / "id")
    assert not any(metric.claim_id for metric in found)  # too short for any claim
    by_name = values(found)
    if row == "delta-without-sum-normalisation":  # the paper's own claim of it
        assert by_name["diverged"] == 1
        return
    for split in ("valid", "test"):
        assert 1 < by_name[f"{split}_perplexity"] < KJV_WORDS / 2
    assert by_name["diverged"] == 0
    assert by_name["parameters"] == parameter_count(each.model)
    assert by_name["words_per_second"] > 0
    steps = [m.step for m in found if m.name == "perplexity_curve"]
    assert steps == [20, 40]
    frame = pd.read_parquet(tmp_path / "home" / "runs" / "id" / training.CURVES)
    assert set(frame["metric"]) == {"loss", "valid_perplexity", "words_per_second"}


@pytest.mark.usefixtures("text")
def test_a_run_repeats_to_the_bit(tmp_path: Path) -> None:
    each = point("performer-delta", "quick", 3)
    first, second = (measured(each, tmp_path / "runs" / name) for name in ("a", "b"))
    timed = {"words_per_second"}
    assert [m for m in first if m.name not in timed] == [m for m in second if m.name not in timed]


def shortened(each: LanguageModelPoint) -> LanguageModelPoint:
    """Return a laptop point with the model and the steps of the quick scale."""
    quick = point(each.row, "quick", each.seed)
    return each.model_copy(
        update={"model": quick.model, "training": quick.training, "eval_words": 50}
    )


@pytest.mark.usefixtures("text")
def test_a_laptop_run_measures_its_claims_at_reduced_scale(
    tmp_path: Path, curated: dict[str, Claim]
) -> None:
    each = shortened(point("delta-network", "laptop", 1))
    claimed = [m for m in measured(each, tmp_path / "runs" / "id") if m.claim_id]
    assert {m.claim_id for m in claimed} == {
        f"2102.11174/{name}-{split}"
        for name in (
            "table2/delta-network-small",
            "table3/delta-network-medium-pos-yes-attn-norm-no",
        )
        for split in ("valid", "test")
    }
    for metric in claimed:
        assert metric.scale == "reduced"
        assert metric.name == curated[str(metric.claim_id)].metric


@pytest.mark.usefixtures("text")
def test_a_training_that_diverges_has_perplexities_of_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = training.LanguageModel.loss

    def fails(self: training.LanguageModel, *arguments: torch.Tensor) -> object:
        nats, states = real(self, *arguments)  # type: ignore[arg-type]
        return nats * math.nan, states

    monkeypatch.setattr(training.LanguageModel, "loss", fails)
    each = shortened(point("delta-without-sum-normalisation", "laptop", 1))
    found = measured(each, tmp_path / "runs" / "id")
    assert values(found)["diverged"] == 1
    claimed = [m for m in found if m.claim_id]
    assert [m.claim_id for m in claimed] == [
        "2102.11174/language-model/delta-needs-sum-normalisation"
    ]
    assert math.isnan(claimed[0].value)


def test_what_is_cleared_leaves_the_curves(tmp_path: Path) -> None:
    folder = tmp_path / "id"
    folder.mkdir()
    for name in ("checkpoint.pt", training.CURVES, workers.LABEL):
        (folder / name).write_bytes(b"x")
    workers.clear(folder)
    assert [path.name for path in folder.iterdir()] == [training.CURVES]
    (folder / training.CURVES).unlink()
    workers.clear(folder)
    assert not folder.exists()


def test_a_paper_run_without_the_text_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FWP_CORPORA", raising=False)
    folder = tmp_path / "runs" / "id"
    with pytest.raises(DataError, match="fwp corpus build wikitext-103 --from FOLDER"):
        language_model_run.measure(point("delta-network", "small", 1), folder, silent)
    assert not folder.exists()


@pytest.mark.usefixtures("text")
def test_a_text_with_another_vocabulary_is_refused(tmp_path: Path) -> None:
    each = point("transformer", "quick", 1)
    other = each.model_copy(update={"model": each.model.changed(vocabulary=5_000)})
    with pytest.raises(ConfigError, match="has 6,976 word types and the model 5,000"):
        language_model_run.measure(other, tmp_path / "runs" / "id", silent)
