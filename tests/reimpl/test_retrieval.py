from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from reimpl import checkpoint
from reimpl.experiments import retrieval, retrieval_memory
from reimpl.experiments.base import ProgressKind
from reimpl.experiments.points import retrieval_points
from reimpl.experiments.readouts import by_value, delta_weights, sum_weights
from reimpl.experiments.retrieval import Training, measure, metrics, stop_reason
from reimpl.experiments.retrieval_models import draw_parameters
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.rules import run_rule


def silent(line: str, *, kind: ProgressKind = "progress") -> None:
    pass


def point(**changes: object) -> RetrievalPoint:
    fields: dict[str, object] = {
        "setting": "update-rule", "feature_map": "dpfp1", "rule": "delta", "S": 8, "seed": 1,
    }  # fmt: skip
    return RetrievalPoint.model_validate(fields | changes)


def short(**changes: object) -> RetrievalPoint:
    return point(**({"eval_every": 5, "max_steps": 20, "eval_sequences": 2} | changes))


def drawn(seed: int, length: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    K, Q, beta = normal(3, length, 6) / 2, normal(3, 2, 6), torch.sigmoid(normal(3, length))
    return K, Q, beta, torch.randint(0, 5, (3, length), generator=generator)


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), length=st.integers(1, 50))
def test_delta_weights_read_what_the_state_would(seed: int, length: int) -> None:
    K, Q, beta, values = drawn(seed, length)
    V = one_hot(values, 5).double()
    S = run_rule(
        K[:, :, None], K[:, :, None], V[:, :, None], beta[:, :, None], rule="delta"
    ).state.squeeze(1)
    found = by_value(delta_weights(K, Q, beta), values, 5)
    torch.testing.assert_close(found, Q @ S, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("chunk", [1, 3, 50])
def test_delta_weights_do_not_depend_on_the_chunk(chunk: int) -> None:
    K, Q, beta, _ = drawn(1, 17)
    torch.testing.assert_close(
        delta_weights(K, Q, beta, chunk), delta_weights(K, Q, beta), rtol=1e-10, atol=1e-10
    )


def test_sum_weights_read_what_the_normalised_state_would() -> None:
    K, Q, _, values = drawn(2, 12)
    K, Q = K.abs(), Q.abs()
    S = torch.einsum("blk,blv->bkv", K, one_hot(values, 5).double())
    expected = (Q @ S) / ((K.sum(1, keepdim=True) * Q).sum(-1, keepdim=True) + 1e-6)
    torch.testing.assert_close(by_value(sum_weights(K, Q), values, 5), expected)


# Evaluation losses at steps 100, 200, … in the authors' logs, and the relative error allowed: our
# float32 operations come in another order than theirs, which were carried out on a GPU.
AUTHORS_LOGS = {
    "softmax/cat S=20": ("capacity", "softmax", "softmax", (0.0022082229, 0.0006343253), 1e-4),
    "linear/sum S=20": ("capacity", "elu1", "sum", (0.44525677, 0.38255256), 1e-4),
    "dpfp1/sum S=20": ("capacity", "dpfp1", "sum", (0.0007829439,), 1e-2),
    "dpfp1/delta S=20": ("update-rule", "dpfp1", "delta", (0.15664001, 0.035610087), 2e-2),
    "linear/delta S=20": ("update-rule", "elu1", "delta", (0.47309208, 0.43123865), 1e-4),
    "dpfp1/fwm S=20": ("update-rule", "dpfp1", "fwm", (2.328567,), 1e-3),
}


@pytest.mark.parametrize(
    ("setting", "phi", "rule", "expected", "rel"),
    [pytest.param(*row, id=f"authors' log, {name}") for name, row in AUTHORS_LOGS.items()],
)
def test_authors_stream_follows_the_authors_log(
    setting: str, phi: str, rule: str, expected: tuple[float, ...], rel: float
) -> None:
    build = (retrieval_memory if rule == "fwm" else retrieval)._build
    training = Training.start(point(setting=setting, feature_map=phi, rule=rule, S=20), build)
    for loss in expected:
        training.train_until_evaluation()
        assert training.history[-1][1] == pytest.approx(loss, rel=rel)


@pytest.mark.parametrize("stream", ["authors", "ours"])
@pytest.mark.parametrize("phi", ["dpfp1", "favor4"])
def test_an_interrupted_run_ends_with_the_same_numbers(
    stream: str, phi: str, tmp_path: Path
) -> None:
    chosen = short(stream=stream, feature_map=phi)

    def interrupt_at_step_10(line: str, *, kind: ProgressKind = "progress") -> None:
        if "step 10," in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(chosen, tmp_path / "cut", interrupt_at_step_10)
    lines: list[str] = []
    resumed = measure(chosen, tmp_path / "cut", lambda line, kind="progress": lines.append(line))
    assert "goes on from step 10" in lines[0]
    assert resumed == measure(chosen, tmp_path / "whole", silent)


@pytest.mark.parametrize("damage", ["truncated", "other point", "other content"])
def test_an_unusable_checkpoint_is_reported_and_started_afresh(damage: str, tmp_path: Path) -> None:
    chosen = short()
    expected = measure(chosen, tmp_path / "whole", silent)
    if damage == "other point":
        measure(short(S=9), tmp_path / "bad", silent)
    elif damage == "other content":
        torch.save([1, 2], tmp_path / "whole" / checkpoint.NAME)
    folder = tmp_path / ("bad" if damage == "other point" else "whole")
    if damage == "truncated":
        path = folder / checkpoint.NAME
        path.write_bytes(path.read_bytes()[:1000])
    lines: list[str] = []
    assert measure(chosen, folder, lambda line, kind="progress": lines.append(line)) == expected
    assert "started afresh" in lines[0]


def test_a_run_leaves_torchs_global_generator_alone(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    measure(short(feature_map="favor4"), tmp_path, silent)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("losses", "reason"),
    [
        ([], None),
        ([0.5], None),
        ([0.5, 0.001], "converged"),
        ([0.5, math.nan], "nan"),
        ([0.5, *[0.6] * 10], None),
        ([0.5, *[0.6] * 11], "no_progress"),
        ([0.5, *[0.5] * 11], "no_progress"),
        ([0.5, *[0.6] * 5, 0.4, *[0.6] * 10], None),
    ],
)
def test_training_stops_as_the_protocol_says(losses: list[float], reason: str | None) -> None:
    history = [(100 * i, loss) for i, loss in enumerate(losses, start=1)]
    assert stop_reason(history, point()) == reason


def test_training_stops_at_the_last_step() -> None:
    assert stop_reason([(100_000, 0.5)], point()) == "max_steps"


def test_metrics_are_best_and_last_loss_steps_and_curve() -> None:
    found = metrics([(100, 0.4), (200, 0.1), (300, 0.2)], point(S=20))
    named = {m.name: m.value for m in found if m.step is None}
    assert named == {"eval_loss": 0.1, "last_eval_loss": 0.2, "steps": 300.0}
    assert [(m.step, m.value) for m in found if m.step] == [(100, 0.4), (200, 0.1), (300, 0.2)]


def test_a_point_measures_its_own_claim_and_the_one_of_the_text() -> None:
    found = metrics([(100, 0.4), (200, 0.1), (300, 0.2)], point(S=20))
    own, text = "dpfp1-delta-S20", "delta-solves"
    assert [(m.name, str(m.claim_id).split("/")[-1]) for m in found if m.claim_id] == [
        ("eval_loss", own),
        ("eval_loss", text),
        ("last_eval_loss", own),
    ]


def test_a_run_without_a_finite_loss_measures_nan() -> None:
    assert math.isnan(metrics([(100, math.nan)], point())[0].value)


@pytest.mark.parametrize(
    ("changes", "replay", "scale"),
    [
        ({}, True, "paper"),
        ({"stream": "ours"}, False, "paper"),
        ({"feature_map": "favor64"}, False, "paper"),
        ({"max_steps": 500}, True, "reduced"),
    ],
)
def test_metrics_say_whether_they_replay_and_at_which_scale(
    changes: dict[str, object], replay: bool, scale: str
) -> None:
    judged = metrics([(100, 0.4)], point(**changes))[0]
    assert (judged.replay, judged.scale) == (replay, scale)


def test_tanh_fwm_trains_as_the_paper_says() -> None:
    [chosen] = retrieval_points("update-rule", {("tanh", "fwm"): (20,)}, None, None)
    assert (chosen.learning_rate, chosen.batch, chosen.follows_protocol) == (1e-4, 128, True)


def test_initial_key_projection_is_uniform_within_the_inverse_root_of_d_key() -> None:
    drawn = draw_parameters(point(S=50))
    for name in ("key_v", "key_e", "query"):
        assert 0.124 < float(drawn[name].abs().max()) <= 0.125
