from __future__ import annotations

import math

import pytest
import torch

from records.errors import ConfigError
from reimpl.model import (
    PRESETS,
    FastWeightAttention,
    LanguageModel,
    ModelConfig,
    parameter_count,
    sinusoids,
    state_size,
)
from reimpl.rules import run_rule

RULES = ("softmax", "sum", "delta")


def tiny(**changes: object) -> ModelConfig:
    sizes: dict[str, object] = {
        "d_model": 12, "d_head": 4, "heads": 3, "layers": 2, "d_ffn": 20,
        "segment": 8, "vocabulary": 50, "cutoffs": (10, 20, 35), "dropout": 0.0,
    }  # fmt: skip
    return ModelConfig.model_validate(sizes | changes)


def build(config: ModelConfig, seed: int = 0) -> LanguageModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LanguageModel(config)


def words(*shape: int) -> torch.Tensor:
    return torch.randint(0, 50, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("preset", "millions"), [("small", 44.03), ("medium", 89.87)])
def test_parameter_counts_are_those_of_the_authors_code(preset: str, millions: float) -> None:
    # 44.03M and 89.87M: what the authors' language-model toolkit builds.
    assert round(parameter_count(PRESETS[preset]) / 1e6, 2) == millions


@pytest.mark.parametrize(("preset", "extra"), [("small", 8 * 128 * 16), ("medium", 8 * 256 * 16)])
def test_the_delta_rule_adds_one_output_per_head(preset: str, extra: int) -> None:
    delta = PRESETS[preset]
    plain = delta.model_copy(update={"rule": "sum"})
    assert parameter_count(delta) - parameter_count(plain) == extra


def test_medium_state_has_as_many_numbers_as_table_4_says() -> None:
    # Table 4: 0.13M = heads · d_head · d_head · layers.
    assert state_size(PRESETS["medium"]) == 8 * 32 * 32 * 16


@pytest.mark.parametrize("rule", ["sum", "delta"])
def test_fast_weight_state_does_not_grow(rule: str) -> None:
    assert state_size(tiny(rule=rule), 7) == state_size(tiny(rule=rule), 1)


def test_softmax_cache_grows_with_every_word() -> None:
    config = tiny(rule="softmax")
    assert state_size(config, 7) == 7 * state_size(config, 1) == 7 * 2 * 12 * 2


@pytest.mark.parametrize("rule", RULES)
def test_words_do_not_see_the_future(rule: str) -> None:
    model, text = build(tiny(rule=rule)), words(2, 8)
    changed = text.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 50
    torch.testing.assert_close(model(text)[0][:, :5], model(changed)[0][:, :5])


@pytest.mark.parametrize(
    ("rule", "normalisation"),
    [*((rule, "sum") for rule in RULES), ("sum", "attention"), ("delta", "attention")],
)
def test_carried_state_goes_on_from_the_last_segment(rule: str, normalisation: str) -> None:
    model = build(tiny(rule=rule, normalisation=normalisation, positions=False))
    text = words(2, 8)
    whole, _ = model(text)
    first, states = model(text[:, :3])
    second, _ = model(text[:, 3:], states)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cutoffs", [(), (10,), (10, 20, 35)])
def test_adaptive_softmax_probabilities_sum_to_one(cutoffs: tuple[int, ...]) -> None:
    model = build(tiny(cutoffs=cutoffs))
    h = torch.randn(1, 12, generator=torch.Generator().manual_seed(0))
    nats = model.softmax(h.expand(50, -1), torch.arange(50), model.embedding.weight)
    assert float((-nats).exp().sum().detach()) == pytest.approx(1.0, rel=1e-5)


def test_output_scale_multiplies_by_the_inverse_root_of_d_head() -> None:
    scaled, plain = (
        FastWeightAttention(tiny(output_scale=on)).requires_grad_(False) for on in (True, False)
    )
    plain.load_state_dict(scaled.state_dict())
    x = torch.randn(1, 4, 12)
    torch.testing.assert_close(scaled(x, None)[0], plain(x, None)[0] / math.sqrt(4))


def test_attention_is_run_rule_between_two_projections() -> None:
    layer = FastWeightAttention(tiny(output_scale=False)).requires_grad_(False)
    x = torch.randn(2, 5, 12)
    parts = (x @ layer.project.weight.T).reshape(2, 5, 3, 13)
    q, k, v, b = parts.split([4, 4, 4, 1], dim=-1)
    expected = run_rule(
        layer.phi(q), layer.phi(k), v, torch.sigmoid(b[..., 0]), rule="delta", normalisation="sum"
    ).output.reshape(2, 5, 12)
    torch.testing.assert_close(layer(x, None)[0], expected @ layer.output.weight.T)


def test_loss_has_gradients_for_every_parameter() -> None:
    model, text = build(tiny()), words(4, 30)
    model.loss(text[:, :-1], text[:, 1:])[0].mean().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in model.parameters())


def test_positions_count_backward_to_zero() -> None:
    table = sinusoids(3, 4)
    torch.testing.assert_close(table[-1], torch.tensor([0.0, 0.0, 1.0, 1.0]))
    assert float(table[0, 0]) == pytest.approx(math.sin(2.0))


def test_initial_weights_have_the_stated_spread() -> None:
    weight = build(tiny(vocabulary=5000, cutoffs=())).embedding.weight
    assert float(weight.detach().std()) == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize(
    "changes", [{"cutoffs": (20, 10)}, {"cutoffs": (60,)}, {"d_model": 11}, {"cutoffs": (0, 5)}]
)
def test_sizes_that_do_not_fit_are_config_errors(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        tiny(**changes)


@pytest.mark.parametrize("rule", ["sum", "delta"])
@pytest.mark.parametrize("normalisation", ["sum", "attention"])
def test_signed_features_cannot_be_normalised(rule: str, normalisation: str) -> None:
    with pytest.raises(ConfigError, match="'tanh' has negative features"):
        tiny(rule=rule, feature_map="tanh", normalisation=normalisation)


@pytest.mark.parametrize("rule", ["sum", "delta"])
def test_signed_features_go_without_normalisation(rule: str) -> None:
    assert tiny(rule=rule, feature_map="tanh", normalisation="none").feature_map == "tanh"
