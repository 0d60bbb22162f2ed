from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import conv1d

import records
from records.curated import load_folder
from records.errors import ConfigError
from records.models import Claim
from reimpl.experiments import mqar_data, pareto
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.mqar import Training, mean, measure, metrics
from reimpl.experiments.mqar_data import Batch, draw, epoch_batches, query_places, steps_per_epoch
from reimpl.experiments.mqar_model import FastWeights, MqarModel, causal_convolution
from reimpl.experiments.mqar_point import (
    CLAIMED,
    LEARNING_RATES,
    MIXERS,
    Mixer,
    MqarPoint,
    Segment,
    segments,
)
from reimpl.rules import run_rule

CLAIMS = Path(records.__file__).parent / "data" / "2102.11174"


def silent(line: str, *, kind: ProgressKind = "progress") -> None:
    pass


def small(**changes: object) -> MqarPoint:
    fields: dict[str, object] = {
        "mixer": "delta", "d_model": 8, "d_key": 4, "d_value": 4, "vocabulary": 32, "batch": 8,
        "training": segments((16, 2, 20), (16, 4, 8)), "test": segments((16, 4, 12), (24, 4, 4)),
        "learning_rates": (1e-3, 1e-2), "epochs": 2, "seed": 1,
    }  # fmt: skip
    return MqarPoint.model_validate(fields | changes)


def model(point: MqarPoint) -> MqarModel:
    return MqarModel(point, torch.Generator().manual_seed(point.seed)).double()


def sequences(point: MqarPoint, seed: int = 3, count: int = 5) -> Batch:
    return draw(np.random.default_rng(seed), count, point.test[0], point.vocabulary, point.power)


# State sizes: the bytes under DeltaNet's and Gated DeltaNet's points in Zoology's figure


@pytest.mark.parametrize(
    ("mixer", "d_model", "d_value", "expected"),
    [
        ("delta", 64, 32, 8_960),  # 4·2·32·32 + 4·3·64 = 8,192 + 768
        ("delta", 128, 64, 34_304),  # 4·2·64·64 + 4·3·128 = 32,768 + 1,536
        ("delta", 256, 128, 134_144),  # 4·2·128·128 + 4·3·256 = 131,072 + 3,072
        ("gated_delta", 64, 64, 17_152),  # 4·2·32·64 + 4·3·64 = 16,384 + 768
        ("gated_delta", 128, 128, 67_072),  # 4·2·64·128 + 4·3·128 = 65,536 + 1,536
        # keys and values of 1,024 positions: 4·2·(32 + 32)·1,024 + 4·3·64 = 524,288 + 768
        ("softmax", 64, 32, 525_056),
    ],
)
def test_state_bytes_are_those_of_zoologys_figure(
    mixer: Mixer, d_model: int, d_value: int, expected: int
) -> None:
    point = MqarPoint(mixer=mixer, d_model=d_model, d_key=d_model // 2, d_value=d_value, seed=1)
    assert point.state_bytes == expected


@pytest.mark.parametrize("mixer", [m for m in MIXERS if m != "softmax"])
def test_mixer_bytes_are_those_of_the_state_that_the_rule_keeps(mixer: Mixer) -> None:
    point = small(mixer=mixer, heads=3, d_key=4, d_value=6)
    q, v = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 6)
    beta = None if mixer == "sum" else torch.zeros(1, 2, 3)
    decay = torch.zeros(1, 2, 3) if mixer == "gated_delta" else None
    state = run_rule(q, q, v, beta, decay, rule=mixer).state
    assert point.mixer_bytes == state.numel() * state.element_size()


# Sequences


def test_a_sequence_is_its_pairs_and_then_every_key_once_at_a_query_place() -> None:
    segment, vocabulary = Segment(length=40, pairs=6, examples=1), 30
    batch = draw(np.random.default_rng(7), 50, segment, vocabulary, 0.01)
    keys, values = batch.inputs[:, 0:12:2], batch.inputs[:, 1:12:2]
    assert batch.inputs.shape == (50, 40)
    assert torch.equal(batch.inputs.gather(1, batch.places), keys)
    assert torch.equal(batch.answers, values)
    assert ((keys >= 1) & (keys < 15)).all()
    assert ((values >= 15) & (values < 30)).all()
    assert ((batch.places >= 12) & (batch.places % 2 == 0)).all()
    for row in (*keys, *values, *batch.places):
        assert len(row.unique()) == 6


def test_query_places_follow_the_power_law() -> None:
    # one query: place i with probability (i + 1)^(a − 1) / Σ, here for a = 0.2 and 5 places
    found = query_places(np.random.default_rng(1), 40_000, 1, 5, 0.2)[:, 0]
    weights = np.arange(1, 6) ** -0.8
    expected = weights / weights.sum()
    spread = np.sqrt(expected * (1 - expected) / 40_000)
    shares = np.bincount(found, minlength=5) / 40_000
    assert (np.abs(shares - expected) < 5 * spread).all()


def test_the_second_query_is_drawn_from_the_places_that_are_left() -> None:
    found = query_places(np.random.default_rng(2), 40_000, 2, 3, 0.5)
    after_first = found[found[:, 0] == 0][:, 1]
    expected = 2**-0.5 / (2**-0.5 + 3**-0.5)
    spread = math.sqrt(expected * (1 - expected) / len(after_first))
    assert abs((after_first == 1).mean() - expected) < 5 * spread


def test_epochs_have_the_same_batches_in_another_order() -> None:
    point = small()
    first, again, second = (
        [b.inputs.numpy().tobytes() for b in epoch_batches(point, epoch)] for epoch in (0, 0, 1)
    )
    assert first == again != second
    assert sorted(first) == sorted(second)
    assert len(first) == steps_per_epoch(point) == 4  # 20 and 8 sequences in batches of 8


def test_seeds_and_uses_have_sequences_of_their_own() -> None:
    drawn = [next(epoch_batches(small(seed=seed), 0)).inputs for seed in (1, 2)]
    alike = segments((16, 4, 8))
    point = small(training=alike, test=alike)
    tested = next(mqar_data.test_batches(point, 0)).inputs
    assert not torch.equal(*drawn)
    assert not torch.equal(next(epoch_batches(point, 0)).inputs, tested)


# The model


def test_the_convolution_is_the_causal_one_of_torch() -> None:
    x, weight = torch.randn(2, 7, 3).double(), torch.randn(4, 3).double()
    expected = conv1d(x.mT, weight.T[:, None], padding=3, groups=3)[..., :7].mT
    torch.testing.assert_close(causal_convolution(x, weight), expected)


@pytest.mark.parametrize("mixer", MIXERS)
def test_an_answer_depends_on_nothing_that_comes_later(mixer: Mixer) -> None:
    point = small(mixer=mixer)
    batch, net = sequences(point), model(point)
    changed = batch.inputs.clone()
    first = int(batch.places.min())
    changed[:, first + 1 :] = 0
    early = Batch(batch.inputs, torch.full((5, 1), first), batch.answers)
    cut = Batch(changed, early.places, batch.answers)
    torch.testing.assert_close(net(cut), net(early))


@pytest.mark.parametrize("mixer", MIXERS)
def test_an_answer_depends_on_the_values_before_it(mixer: Mixer) -> None:
    point = small(mixer=mixer)
    batch, net = sequences(point), model(point)
    changed = batch.inputs.clone()
    changed[:, 1] = 33 - changed[:, 1] % 16  # another symbol of the upper half
    other = Batch(changed % 32, batch.places, batch.answers)
    assert not torch.allclose(net(other), net(batch), rtol=1e-6, atol=0)


def test_attention_is_the_softmax_of_all_keys_so_far() -> None:
    point = small(mixer="softmax", heads=2, d_key=4, d_value=6)
    u, layer = torch.randn(3, 5, 8).double(), model(point).mixer
    projected = u @ layer.project.T  # type: ignore[operator]
    q, k = (x.unflatten(-1, (2, 4)) for x in (projected[..., :8], projected[..., 8:16]))
    v = projected[..., 16:].unflatten(-1, (2, 6))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) / 2  # √d_key = 2
    scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf)
    read = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2)
    torch.testing.assert_close(layer(u), read @ layer.out.T)  # type: ignore[operator]


def test_sum_and_delta_differ_in_the_write_strength_alone() -> None:
    shapes = {
        mixer: {name: p.shape for name, p in model(small(mixer=mixer)).named_parameters()}
        for mixer in ("sum", "delta")
    }
    assert set(shapes["delta"].items()) - set(shapes["sum"].items()) == {
        ("mixer.beta", torch.Size([2, 8]))
    }
    assert shapes["sum"].keys() < shapes["delta"].keys()


def test_steps_of_the_gated_delta_rule_start_between_a_thousandth_and_a_tenth() -> None:
    layer = model(small(mixer="gated_delta", heads=50, d_key=1, d_value=1)).mixer
    assert isinstance(layer, FastWeights)
    step = torch.nn.functional.softplus(layer.decay_bias)
    assert ((step > 0.0009) & (step < 0.11)).all()
    assert (layer.log_a.exp() <= 16).all()


def test_dropout_is_drawn_from_its_own_generator() -> None:
    point = small(dropout=0.5)
    batch, net = sequences(point), model(point)
    before = torch.get_rng_state()
    one, again, other = (net(batch, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


# Training and measuring


@pytest.mark.parametrize("mixer", ["sum", "delta"])
def test_training_recalls_what_chance_cannot(mixer: Mixer) -> None:
    point = small(
        mixer=mixer, d_model=32, d_key=16, d_value=16, dropout=0.0, batch=32, epochs=12,
        vocabulary=16, training=segments((16, 2, 512)), test=segments((16, 2, 64)),
    )  # fmt: skip
    training = Training(point, 1e-2)
    while not training.ended:
        training.train_epoch()
    assert mean(training.history[-1]) > 0.5  # guessing one of the 8 values gives 0.125


def test_accuracy_is_the_share_of_right_answers_of_each_segment() -> None:
    training = Training(small(), 1e-3)
    expected = []
    for s in range(2):
        right = [
            training.model(b).argmax(-1) == b.answers
            for b in mqar_data.test_batches(training.point, s)
        ]
        expected.append(torch.cat(right).double().mean().item())
    assert training.test() == pytest.approx(expected)


@pytest.mark.parametrize("epoch", ["0.001, epoch 1", "0.001, epoch 2", "0.01, epoch 1"])
def test_an_interrupted_run_ends_with_the_same_numbers(epoch: str, tmp_path: Path) -> None:
    def interrupt(line: str, *, kind: ProgressKind = "progress") -> None:
        if epoch in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(small(), tmp_path / "cut", interrupt)
    lines: list[str] = []
    resumed = measure(small(), tmp_path / "cut", lambda line, kind="progress": lines.append(line))
    assert f"goes on from learning rate {epoch}" in lines[0]
    assert resumed == measure(small(), tmp_path / "whole", silent)


def test_a_checkpoint_of_another_point_is_reported_and_started_afresh(tmp_path: Path) -> None:
    measure(small(seed=2), tmp_path, silent)
    lines: list[str] = []
    found = measure(small(), tmp_path, lambda line, kind="progress": lines.append(line))
    assert "started afresh" in lines[0]
    assert found == measure(small(), tmp_path / "whole", silent)


def test_training_stops_above_the_goal_or_after_its_epochs() -> None:
    training = Training(small(epochs=3, goal=0.9), 1e-3)
    training.history = [(0.9, 0.9)]
    assert not training.ended
    training.history = [(0.9, 0.91)]
    assert training.ended
    training.history = [(0.1, 0.1)] * 3
    assert training.ended


def test_the_learning_rate_falls_by_a_cosine() -> None:
    training = Training(small(epochs=2), 1e-2)
    rates = []
    for _ in range(2):
        training.train_epoch()
        rates.append(training.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([1e-2, 5e-3])


def test_the_best_learning_rate_counts_and_each_is_told() -> None:
    histories = [[(0.2, 0.4), (0.5, 0.3)], [(0.4, 0.2), (0.8, 0.6)]]
    found = metrics(histories, small())
    named = {m.name: m.value for m in found if m.step is None}
    assert named == pytest.approx({
        "accuracy": 0.7,
        "state_bytes": 4 * 2 * 4 * 4 + 4 * 3 * 8,
        "learning_rate": 1e-2,
        "accuracy_lr_0.001": 0.4,
        "accuracy_lr_0.01": 0.7,
        "accuracy_length_16_pairs_4": 0.8,
        "accuracy_length_24_pairs_4": 0.6,
    })  # fmt: skip
    assert {m.step: m.value for m in found if m.step} == pytest.approx({4: 0.3, 8: 0.7})


def test_a_smaller_task_is_reduced_and_zoologys_is_not() -> None:
    assert {m.scale for m in metrics([[(0.1, 0.2)]] * 2, small())} == {"reduced"}
    whole = MqarPoint(mixer="delta", seed=1)
    (accuracy,) = (m for m in metrics([[(0.1,) * 7]] * 4, whole) if m.name == "accuracy")
    assert (accuracy.scale, accuracy.claim_id) == ("paper", "2102.11174/pareto/delta-B8960")


# Points and claims


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": ({"length": 14, "pairs": 4, "examples": 1},)}, "at least 16, got 14"),
        ({"training": ({"length": 17, "pairs": 4, "examples": 1},)}, "an even length"),
        ({"vocabulary": 8}, "take at least 10 symbols"),
        ({"learning_rates": (1e-3, 0.0)}, "learning rates are positive"),
    ],
)
def test_a_point_that_does_not_fit_is_a_config_error(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        small(**changes)


def test_the_paper_scale_is_zoologys() -> None:
    # original_mqar_configs.py: learning rates logspace(−3, −1.5, 4), batch 256, 32 epochs; 180,000
    # training sequences in batches of one segment are 391 + 4 · 79 steps
    points = pareto.EXPERIMENT.points("paper")
    assert all(isinstance(p, MqarPoint) and p.follows_protocol for p in points)
    assert np.allclose(LEARNING_RATES, np.logspace(-3, -1.5, 4))
    point = MqarPoint(mixer="delta", seed=1)
    assert (point.batch, point.epochs, steps_per_epoch(point)) == (256, 32, 707)
    assert (point.test[-1].length, point.test[-1].pairs) == (1_024, 256)


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_sum_and_delta_have_equal_bytes(scale: str) -> None:
    sizes = {
        line: [p.size for p in pareto.EXPERIMENT.points(scale) if p.line == line]
        for line in ("sum", "delta")
    }
    assert sizes["sum"] == sizes["delta"]
    assert len(set(sizes["sum"])) == len(sizes["sum"]) >= 4


def test_points_are_told_apart_by_mixer_bytes_and_seed() -> None:
    for scale in ("quick", "laptop", "paper"):
        points = pareto.EXPERIMENT.points(scale, 2)
        assert len({(p.line, p.size, p.seed) for p in points}) == len(points)


def test_the_larger_point_is_the_dearer_one() -> None:
    sizes = [p for p in pareto.points("laptop", None, None) if p.mixer == "delta"]
    costs = [pareto.cost(p) for p in sizes]
    assert costs == sorted(costs)


def test_every_claim_is_measured_at_the_paper_scale_under_its_own_conditions() -> None:
    claims = {
        r.claim_id: r
        for r in load_folder(CLAIMS)
        if isinstance(r, Claim) and r.experiment == "pareto"
    }
    points = {p.claim_id: p for p in pareto.points("paper", None, None) if p.claim_id}
    assert points.keys() == claims.keys()
    assert len(claims) == sum(map(len, CLAIMED.values()))
    for claim_id, point in points.items():
        for name, value in claims[claim_id].conditions.items():
            if name not in ("task", "taken"):
                assert getattr(point, name) == value, (claim_id, name)


def test_the_sum_rule_is_held_against_the_delta_rule_at_equal_bytes() -> None:
    claims = {r.claim_id: r for r in load_folder(CLAIMS) if isinstance(r, Claim)}
    for size in CLAIMED["sum"]:
        ours = claims[f"2102.11174/pareto/sum-B{size}"]
        delta = claims[f"2102.11174/pareto/delta-B{size}"]
        assert ours.compared_to == delta.claim_id
        assert ours.claimed is not None
        assert delta.claimed is not None
        # the figure is read to 0.005
        assert ours.claimed == pytest.approx(delta.claimed - 0.005)
