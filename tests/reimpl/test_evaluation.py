from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from records.errors import ConfigError
from reimpl.data import Ids
from reimpl.evaluation import Score, carried_context, segments, sliding_window
from reimpl.model import LanguageModel
from reimpl.model_config import MODEL_RULES, ModelConfig

L = 8


def model(**changes: object) -> LanguageModel:
    sizes: dict[str, object] = {
        "d_model": 12, "d_head": 4, "heads": 3, "layers": 2, "d_ffn": 20, "segment": L,
        "vocabulary": 50, "cutoffs": (10, 20), "dropout": 0.0,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LanguageModel(ModelConfig.model_validate(sizes | changes)).double().eval()


def text(length: int) -> Ids:
    return np.random.default_rng(5).integers(0, 50, length).astype(np.int32)


def by_definition(m: LanguageModel, ids: Ids) -> float:
    """All positions of the first window, then the last one only, one window at a time."""
    words = torch.from_numpy(ids.astype(np.int64))
    length = min(L, len(ids) - 1)
    total = float(m.loss(words[None, :length], words[None, 1 : length + 1])[0].sum().detach())
    for end in range(length + 1, len(ids)):
        window = words[None, end - length : end]
        nats, _ = m.loss(window, words[None, end - length + 1 : end + 1])
        total += float(nats[0, -1].detach())
    return total


@pytest.mark.parametrize("rule", MODEL_RULES)
@pytest.mark.parametrize("positions", [True, False])
def test_batched_windows_score_as_one_at_a_time(rule: str, positions: bool) -> None:
    m, ids = model(rule=rule, positions=positions), text(61)
    expected = by_definition(m, ids)
    for windows in (1, 7, 100, None):
        found = sliding_window(m, ids, windows=windows)
        assert found.nats == pytest.approx(expected, rel=1e-10)
        assert found.words == 60


@pytest.mark.parametrize("length", [2, L, L + 1, L + 2, L + 3])
def test_texts_about_as_long_as_a_window(length: int) -> None:
    m, ids = model(), text(length)
    found = sliding_window(m, ids)
    assert (found.nats, found.words) == (pytest.approx(by_definition(m, ids)), length - 1)


@pytest.mark.parametrize("rule", [rule for rule in MODEL_RULES if rule != "softmax"])
def test_carried_context_is_one_pass_over_the_whole_text(rule: str) -> None:
    m, ids = model(rule=rule, positions=False), text(45)
    words = torch.from_numpy(ids.astype(np.int64))[None]
    whole, _ = m.loss(words[:, :-1], words[:, 1:])
    found = carried_context(m, ids)
    assert found.words == 44
    assert found.nats == pytest.approx(float(whole.sum().detach()), rel=1e-9)


def test_segments_stand_alone() -> None:
    m, ids = model(), text(3 * L + 5)
    words = torch.from_numpy(ids.astype(np.int64))
    expected = sum(
        float(m.loss(words[None, i : i + L], words[None, i + 1 : i + L + 1])[0].sum().detach())
        for i in (0, L, 2 * L)
    )
    found = segments(m, ids, carry=False)
    assert (found.nats, found.words) == (pytest.approx(expected), 3 * L)


@pytest.mark.parametrize("changes", [{"rule": "softmax", "positions": False}, {}])
def test_a_state_that_grows_or_begins_anew_is_not_carried(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="carried context needs fast weights without positions"):
        carried_context(model(**changes), text(20))


@pytest.mark.parametrize("evaluate", [sliding_window, carried_context])
def test_a_text_without_two_words_is_refused(evaluate: object) -> None:
    with pytest.raises(ConfigError, match="a text of 1 words has none to predict"):
        evaluate(model(positions=False), text(1))  # type: ignore[operator]


def test_perplexity_is_the_exponential_of_nats_a_word() -> None:
    assert Score(math.log(50) * 10, 10).perplexity == pytest.approx(50)
    assert Score(1e6, 10).perplexity == math.inf
    assert math.isnan(Score(math.nan, 10).perplexity)
