from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from records.errors import ConfigError
from reimpl.experiments.retrieval import _build, query_losses
from reimpl.experiments.retrieval_models import FastWeightModel, RetrievalModel
from reimpl.experiments.retrieval_plain import plain_answers
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.experiments.streams import Batch, open_stream
from reimpl.feature_maps import Dpfp, FeatureMap, Tanh, feature_map, sum_normalise
from reimpl.loops.readout import Written, delta_weights, sum_weights

MAPS = ("elu1", "dpfp1", "dpfp2", "dpfp3", "favor5", "favor16")


def leaf(*shape: int, seed: int, dtype: torch.dtype = torch.float64, scale: float = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale
    return x.to(dtype).requires_grad_()


def written(seed: int, S: int, length: int, d: int, dtype: torch.dtype = torch.float64) -> Written:
    generator = torch.Generator().manual_seed(seed)
    keys, values = torch.randint(0, S, (2, 3, length), generator=generator)
    A, B = leaf(S, d, seed=seed, dtype=dtype), leaf(S, d, seed=seed + 1, dtype=dtype, scale=0.5)
    return Written(A, B, keys, values)


def drawn_map(name: str, d: int) -> FeatureMap:
    phi = feature_map(name, torch.Generator().manual_seed(1))
    phi.redraw(d)
    return phi


def plain_sum(phi: FeatureMap, w: Written, q: Tensor) -> Tensor:
    return torch.einsum("bld,bd->bl", phi(w.k), phi(q))


def plain_delta(phi: FeatureMap, w: Written, gates: tuple[Tensor, Tensor], q: Tensor) -> Tensor:
    K, p = sum_normalise(phi(w.k)), q
    beta = torch.sigmoid(gates[0][w.keys] + gates[1][w.values])
    found = []
    for i in reversed(range(K.shape[1])):
        c = beta[:, i] * (K[:, i] * p).sum(-1)
        p = p - c[:, None] * K[:, i]
        found.append(c)
    return torch.stack(found[::-1], 1)


def relative_errors(found: Tensor, expected: Tensor, inputs: list[Tensor]) -> list[float]:
    """Return the largest errors of output and gradients, relative to the largest value of each."""
    g = torch.randn(found.shape, generator=torch.Generator().manual_seed(9)).to(found.dtype)
    pairs = [(found, expected)]
    pairs += zip(
        torch.autograd.grad(found, inputs, g), torch.autograd.grad(expected, inputs, g), strict=True
    )
    largest = [float(b.detach().abs().max()) for _, b in pairs]
    # a gradient that is 0 but for rounding is compared on the scale of the others
    floor = max(1e-3 * max(largest), 1e-300)
    return [
        float((a - b).detach().abs().max()) / max(size, floor)
        for (a, b), size in zip(pairs, largest, strict=True)
    ]


@pytest.mark.parametrize("name", MAPS)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), length=st.integers(1, 40), d=st.integers(4, 20))
def test_sum_weights_and_gradients_are_those_of_the_features(
    name: str, seed: int, length: int, d: int
) -> None:
    phi, w, q = drawn_map(name, d), written(seed, 11, length, d), leaf(3, d, seed=seed + 2)
    found, expected = sum_weights(phi, w, q), plain_sum(phi, w, q)
    assert max(relative_errors(found, expected, [w.A, w.B, q])) < 1e-10


@pytest.mark.parametrize("name", MAPS)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), length=st.integers(1, 40), d=st.integers(4, 20))
def test_delta_weights_and_gradients_are_those_of_the_recurrence(
    name: str, seed: int, length: int, d: int
) -> None:
    phi, w = drawn_map(name, d), written(seed, 11, length, d)
    gates = leaf(11, seed=seed + 3), leaf(11, seed=seed + 4)
    q = sum_normalise(phi(leaf(3, d, seed=seed + 2))).detach().requires_grad_()
    found, expected = delta_weights(phi, w, gates, q), plain_delta(phi, w, gates, q)
    assume(not expected.isnan().any())  # a small key can have no DPFP feature at all
    assert max(relative_errors(found, expected, [w.A, w.B, *gates, q])) < 1e-10


@pytest.mark.parametrize("name", MAPS)
def test_float32_stays_within_a_few_roundings_of_float64(name: str) -> None:
    phi, w = drawn_map(name, 16), written(3, 11, 60, 16, torch.float32)
    gates = leaf(11, seed=6, dtype=torch.float32), leaf(11, seed=7, dtype=torch.float32)
    q = sum_normalise(phi(leaf(3, 16, seed=5, dtype=torch.float32))).detach()
    wide = w._replace(A=w.A.double(), B=w.B.double())
    exact = plain_delta(phi, wide, (gates[0].double(), gates[1].double()), q.double())
    found = delta_weights(phi, w, gates, q)
    assert found.dtype == torch.float32
    assert float((found - exact).abs().max() / exact.abs().max()) < 2e-5


def model_and_batch(rule: str, phi: str, S: int = 9) -> tuple[RetrievalModel, Batch]:
    """Return a float64 model of the point and a training batch of 5."""
    point = RetrievalPoint.model_validate(
        {"setting": "update-rule", "feature_map": phi, "rule": rule, "S": S, "seed": 1}
    )
    model = _build(point, torch.Generator().manual_seed(3)).double()
    return model, open_stream("ours", S, 2 * S, True, 4).train_batch(5)


MODELS = [("softmax", "softmax"), *((rule, phi) for rule in ("sum", "delta") for phi in MAPS)]


@pytest.mark.parametrize(("rule", "phi"), MODELS)
def test_a_training_step_is_that_of_the_equations(
    rule: str, phi: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss and all parameter gradients equal those of the states, written one by one."""
    model, batch = model_and_batch(rule, phi)
    if isinstance(model, FastWeightModel):
        model.phi.redraw(64)
        monkeypatch.setattr(model.phi, "redraw", lambda d_key: None)
    losses = [
        query_losses(answers, batch.answer).mean()
        for answers in (model.answers(batch), plain_answers(model, batch))
    ]
    grads = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-10, atol=0)
    largest = max(float(g.abs().max()) for g in grads[1])
    for found, expected in zip(*grads, strict=True):
        assert float((found - expected).abs().max()) < 1e-10 * largest


@pytest.mark.parametrize(("rule", "phi"), MODELS)
def test_an_evaluation_answers_as_the_equations_do(
    rule: str, phi: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = model_and_batch(rule, phi)
    sequence = open_stream("ours", 9, 18, True, 4).eval_sequence()
    if isinstance(model, FastWeightModel):
        model.phi.redraw(64)
        monkeypatch.setattr(model.phi, "redraw", lambda d_key: None)
    with torch.no_grad():
        torch.testing.assert_close(
            model.all_answers(sequence), plain_answers(model, sequence), rtol=1e-9, atol=1e-12
        )


def test_features_far_outside_float32_are_kept_in_range() -> None:
    """exp(Ra − ‖a‖²/2) alone would be 0 in float32; the product of both parts is not."""
    phi = drawn_map("favor16", 8)
    a = torch.full((1, 8), 6.0)
    w = Written(a, -a + 0.1, torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1).long())
    assert float(torch.exp(-a.square().sum() / 2)) < 1e-38
    found, q = sum_weights(phi, w, torch.ones(1, 8)), torch.ones(1, 8)
    torch.testing.assert_close(found, plain_sum(phi, w, q), rtol=1e-4, atol=0)


def test_keys_whose_features_all_underflow_make_the_delta_rule_nan() -> None:
    """0 / 0 of Eq. 29, which has no epsilon for keys: what the authors' FAVOR+ runs show."""
    phi, rows = drawn_map("favor4", 64), torch.zeros(1, 1, dtype=torch.int64)
    w = Written(torch.full((1, 64), 50.0), torch.zeros(1, 64), rows, rows)
    gates = torch.zeros(1), torch.zeros(1)
    assert torch.isnan(delta_weights(phi, w, gates, torch.ones(1, 8))).all()


@pytest.mark.parametrize("where", ["A", "q"])
def test_nan_comes_through(where: str) -> None:
    phi, w, q = drawn_map("dpfp2", 6), written(1, 5, 8, 6), leaf(3, 6, seed=2)
    with torch.no_grad():
        (w.A if where == "A" else q).fill_(torch.nan)
    assert torch.isnan(sum_weights(phi, w, q)).all()


def test_a_row_outside_the_table_is_refused() -> None:
    w = written(1, 5, 8, 6)
    w.keys[0, 0] = 5
    with pytest.raises(ConfigError, match="rows from 0 to 5 are written, but the table has rows 0"):
        sum_weights(Dpfp(1), w, leaf(3, 6, seed=2))


def test_a_map_without_a_loop_is_refused() -> None:
    with pytest.raises(ConfigError, match="no compiled loop for the feature map Tanh"):
        sum_weights(Tanh(), written(1, 5, 8, 6), leaf(3, 6, seed=2))


def test_nu_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="DPFP-12 does not exist"):
        sum_weights(Dpfp(12), written(1, 5, 8, 6), leaf(3, 6, seed=2))
