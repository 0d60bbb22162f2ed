from __future__ import annotations

import math

import pytest
import torch

from records.errors import ConfigError
from reimpl.feature_maps import sum_normalise
from reimpl.model import (
    EPS,
    FastWeightAttention,
    LanguageModel,
    parameter_count,
    sinusoids,
    state_size,
)
from reimpl.model_config import MODEL_RULES, PRESETS, ModelConfig
from reimpl.rules import run_rule

FAST_RULES = tuple(rule for rule in MODEL_RULES if rule != "softmax")


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


@pytest.mark.parametrize("rule", FAST_RULES)
def test_fast_weight_state_does_not_grow(rule: str) -> None:
    assert state_size(tiny(rule=rule), 7) == state_size(tiny(rule=rule), 1)


def test_softmax_cache_grows_with_every_word() -> None:
    config = tiny(rule="softmax")
    assert state_size(config, 7) == 7 * state_size(config, 1) == 7 * 2 * 12 * 2


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_words_do_not_see_the_future(rule: str) -> None:
    model, text = build(tiny(rule=rule)), words(2, 8)
    changed = text.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 50
    torch.testing.assert_close(model(text)[0][:, :5], model(changed)[0][:, :5])


@pytest.mark.parametrize(
    ("rule", "normalised"),
    [
        *((rule, "none") for rule in MODEL_RULES),
        *((rule, how) for rule in ("sum", "delta") for how in ("output", "both")),
    ],
)
def test_carried_state_goes_on_from_the_last_segment(rule: str, normalised: str) -> None:
    model = build(tiny(rule=rule, attention_normalisation=normalised, positions=False))
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


@pytest.mark.parametrize(
    "changes", [{"sum_normalisation": True}, {"attention_normalisation": "output"}]
)
@pytest.mark.parametrize("rule", ["sum", "delta"])
def test_signed_features_cannot_be_normalised(rule: str, changes: dict[str, object]) -> None:
    config = tiny(rule=rule, feature_map="tanh", **({"sum_normalisation": False} | changes))
    with pytest.raises(ConfigError, match="'tanh' has negative features"):
        LanguageModel(config)


@pytest.mark.parametrize("rule", ["sum", "delta"])
def test_signed_features_go_without_normalisation(rule: str) -> None:
    model = build(tiny(rule=rule, feature_map="tanh", sum_normalisation=False))
    assert bool(model(words(2, 8))[0].isfinite().all())


@pytest.mark.parametrize("rule", ["gated_sum", "gated_delta", "kda"])
def test_rules_that_forget_have_no_attention_normalisation(rule: str) -> None:
    with pytest.raises(ConfigError, match="attention normalisation is defined for the sum and"):
        tiny(rule=rule, attention_normalisation="both")


@pytest.mark.parametrize("rule", ["sum", "delta"])
@pytest.mark.parametrize("summed", [True, False])
@pytest.mark.parametrize("feature_map", ["elu1", "dpfp1"])
def test_attention_normalisation_is_that_of_run_rule(
    rule: str, summed: bool, feature_map: str
) -> None:
    """Eq. 26-28, computed by the plain delta rule with β and v rescaled, in float64."""
    config = tiny(
        rule=rule, attention_normalisation="both", sum_normalisation=summed, feature_map=feature_map
    )
    layer = FastWeightAttention(config).double().requires_grad_(False)
    x = torch.randn(2, 40, 12, dtype=torch.float64) * 5
    parts = (x @ layer.project.weight.T).reshape(2, 40, 3, -1)
    q, k, v, b = parts.split([4, 4, 4, parts.shape[-1] - 12], dim=-1)
    phi_q, phi_k = layer.phi(q), layer.phi(k)
    if summed:
        phi_q, phi_k = sum_normalise(phi_q), sum_normalise(phi_k)
    beta = torch.sigmoid(b[..., 0]) if rule == "delta" else None
    expected = run_rule(phi_q, phi_k, v, beta, rule=rule, normalisation="attention", eps=EPS)
    got, state = layer(x, None)
    largest = float(expected.output.abs().max())
    wanted = expected.output.reshape(2, 40, 12) @ layer.output.weight.T
    assert float((got - wanted).abs().max()) < 1e-9 * max(1.0, largest)
    assert float((state["S"] - expected.state).abs().max()) < 1e-9 * largest


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_last_is_the_last_position_of_the_whole(rule: str) -> None:
    model, text = build(tiny(rule=rule)), words(3, 8)
    whole, states = model(text)
    last, same = model(text, last=True)
    torch.testing.assert_close(last, whole[:, -1:])
    assert all(
        torch.equal(a[name], b[name]) for a, b in zip(states, same, strict=True) for name in a
    )


@pytest.mark.parametrize("rule", MODEL_RULES)
def test_prefill_and_decode_equal_the_full_forward(rule: str) -> None:
    model, text = build(tiny(rule=rule, positions=False)).double(), words(2, 12)
    whole, _ = model(text)
    _, states = model(text[:, :5])
    for i in range(5, 12):
        h, states = model(text[:, i : i + 1], states)
        assert float((h[:, 0] - whole[:, i]).detach().abs().max()) < 1e-5


def test_generated_words_are_drawn_from_the_chances_of_the_full_forward() -> None:
    model, text = build(tiny(positions=False)), words(1, 6)
    with torch.no_grad():
        model.softmax.bias[7] = 50.0  # word 7 all but certain
        model.softmax.bias[8] = 48.0
    drawn = [model.generate(text, 1, torch.Generator().manual_seed(s))[0, -1] for s in range(300)]
    h = model(text)[0].detach()
    chance = float(model.softmax.log_chances(h[:, -1], model.embedding.weight).detach()[0, 7].exp())
    share = sum(int(word) == 7 for word in drawn) / 300
    assert share == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 300))


def test_generating_keeps_the_prompt_and_the_mode() -> None:
    model, text = build(tiny(positions=False)).train(), words(2, 6)
    out = model.generate(text, 4)
    assert torch.equal(out[:, :6], text)
    assert out.shape == (2, 10)
    assert model.training


def test_a_model_with_positions_cannot_decode_word_by_word() -> None:
    with pytest.raises(ConfigError, match="positions=False"):
        build(tiny()).generate(words(1, 4), 1)


def test_chances_of_all_words_are_those_of_each() -> None:
    model = build(tiny())
    h = torch.randn(50, 12, generator=torch.Generator().manual_seed(0))
    each = model.nats(h, torch.arange(50))
    whole = model.softmax.log_chances(h, model.embedding.weight)
    torch.testing.assert_close(-each, whole.diagonal())


def test_as_released_is_the_authors_code() -> None:
    # record.toml: output attention normalisation on, output scaled by the inverse root of d_head
    released = PRESETS["small"].as_released()
    assert (released.attention_normalisation, released.output_scale) == ("output", True)
    assert PRESETS["small"].attention_normalisation == "none"
    assert not PRESETS["small"].output_scale


def test_a_released_softmax_model_is_the_papers() -> None:
    plain = PRESETS["small"].changed(rule="softmax")
    assert plain.as_released() == plain


def test_random_features_are_drawn_anew_in_training_only() -> None:
    model, text = build(tiny(feature_map="favor6")), words(2, 8)
    phi = model.layers[0].attention.phi  # type: ignore[union-attr]
    model(text)
    first = phi.R.clone()  # type: ignore[operator,union-attr]
    model.eval()(text)
    model(text)
    second = phi.R  # type: ignore[union-attr]
    model.train()(text)
    assert not torch.equal(phi.R, second)  # type: ignore[arg-type,union-attr]
    assert torch.equal(second, first)  # type: ignore[arg-type]
