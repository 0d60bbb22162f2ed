from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from records.errors import ConfigError, RunError
from reimpl import checkpoint, training
from reimpl.corpora import Source
from reimpl.data import Corpus, build
from reimpl.distributed import devices_of
from reimpl.experiments.base import ProgressKind
from reimpl.model_config import ModelConfig
from reimpl.training import CURVES, Place, Recipe, Trained, train
from reimpl.training_config import PAPER_TRAINING, TrainingConfig

ROOT = Path(__file__).parents[2]


class Stop(Exception):
    """What the tests interrupt a training with."""


def recipe(seed: int = 1, model: dict[str, Any] | None = None, **changes: Any) -> Recipe:
    sizes: dict[str, Any] = {
        "d_model": 16, "d_head": 4, "heads": 2, "layers": 1, "d_ffn": 16, "segment": 8,
        "vocabulary": 21, "cutoffs": (10,),
    }  # fmt: skip
    plan: dict[str, Any] = {
        "batch": 4, "steps": 30, "learning_rate": 1e-2, "warmup": 3, "evaluate_every": 10,
        "checkpoint_every": 10,
    }  # fmt: skip
    config = ModelConfig.model_validate(sizes | (model or {}))
    return Recipe(config, TrainingConfig.model_validate(plan | changes), seed)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Text in which a word tells much about the next, of 20 words and <eos>."""
    generator = np.random.default_rng(7)

    def line() -> str:
        words = [int(generator.integers(20))]
        for _ in range(9):
            words.append((words[-1] * 3 + int(generator.integers(3))) % 20)
        return " ".join(f"w{word}" for word in words)

    lines = {"train": [line() for _ in range(400)], "valid": [line() for _ in range(40)]}
    source = Source(
        "made", lines | {"test": lines["valid"]}, dict.fromkeys(lines | {"test": 1}, "made")
    )
    return build(source, tmp_path_factory.mktemp("corpora"))


class Reports(list[tuple[str, str]]):
    """Collects what a training reports; raises Stop at a line that holds ``stop_at``."""

    def __init__(self, stop_at: str = "\0") -> None:
        super().__init__()
        self.stop_at = stop_at

    def __call__(self, line: str, *, kind: ProgressKind = "progress") -> None:
        self.append((kind, line))
        if self.stop_at in line:
            raise Stop

    def of(self, kind: str) -> list[str]:
        return [line for k, line in self if k == kind]


def run(how: Recipe, corpus: Corpus, folder: Path, reports: Reports | None = None) -> Trained:
    folder.mkdir(exist_ok=True)
    to = Reports() if reports is None else reports
    return train(how, corpus, Place(folder, "identity", "made", to))


def weights(trained: Trained) -> dict[str, torch.Tensor]:
    return trained.model.state_dict()


def assert_equal(a: Trained, b: Trained) -> None:
    assert all(torch.equal(x, weights(b)[name]) for name, x in weights(a).items())


# The schedule (Sec. 6.3: 2,000 warm-up steps, a cosine to zero)


def test_the_rate_warms_up_linearly_and_falls_by_a_cosine_to_zero() -> None:
    paper = PAPER_TRAINING["small"]
    assert (paper.batch, paper.steps, paper.learning_rate) == (96, 500_000, 2.5e-4)
    assert [paper.rate_factor(s) for s in (0, 999, 1_999)] == [1 / 2_000, 0.5, 1.0]
    assert paper.rate_factor(250_000) == pytest.approx(0.5)
    assert paper.rate_factor(500_000) == pytest.approx(0.0, abs=1e-15)


def test_medium_is_trained_with_a_batch_of_56_for_400_000_steps() -> None:
    assert (PAPER_TRAINING["medium"].batch, PAPER_TRAINING["medium"].steps) == (56, 400_000)


def test_parts_of_a_batch_are_equal() -> None:
    with pytest.raises(ConfigError, match="10 streams cannot be computed in 4 equal parts"):
        TrainingConfig(batch=10, steps=1, accumulate=4)


# Training


@pytest.mark.parametrize("rule", ["softmax", "sum", "delta", "gated_delta"])
def test_training_learns_the_text(rule: str, corpus: Corpus, tmp_path: Path) -> None:
    how = recipe(
        model={"rule": rule, "dropout": 0.0}, batch=16, steps=300, warmup=10, evaluate_every=75
    )
    trained = run(how, corpus, tmp_path)
    perplexities = [p.value for p in trained.curves if p.metric == "valid_perplexity"]
    # a word after another: one of three, so at best about 3; without context about 20
    assert perplexities[-1] < 6.5 < perplexities[0]


def test_the_first_step_is_adam_on_the_mean_loss_with_clipped_gradients(
    corpus: Corpus, tmp_path: Path
) -> None:
    how = recipe(steps=1, warmup=0, model={"dropout": 0.0}, clip=0.01)
    trained = run(how, corpus, tmp_path)
    torch.manual_seed(training._number(how.seed, 0))
    model = training.LanguageModel(how.model)
    words = training.Streams(corpus.train, 4, 8).at(0)
    x, y = (torch.from_numpy(w.astype(np.int64)) for w in (words.inputs, words.targets))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.loss(x, y)[0].mean().backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimiser.step()
    for name, parameter in model.state_dict().items():
        torch.testing.assert_close(weights(trained)[name], parameter, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("carry", [False, True])
def test_an_interrupted_training_ends_with_the_same_weights(
    carry: bool, corpus: Corpus, tmp_path: Path
) -> None:
    how = recipe(carry=carry, model={"positions": not carry, "feature_map": "favor4"})
    whole = run(how, corpus, tmp_path / "whole")
    with pytest.raises(Stop):
        run(how, corpus, tmp_path / "cut", Reports("step 20, validation"))
    reports = Reports()
    resumed = run(how, corpus, tmp_path / "cut", reports)
    assert reports.of("resumed") == ["made: goes on from step 10"]
    assert_equal(whole, resumed)
    assert [p for p in resumed.curves if p.metric != "words_per_second"] == [
        p for p in whole.curves if p.metric != "words_per_second"
    ]


def test_a_finished_training_is_not_trained_again(corpus: Corpus, tmp_path: Path) -> None:
    first = run(recipe(), corpus, tmp_path)
    reports = Reports()
    again = run(recipe(), corpus, tmp_path, reports)
    assert_equal(first, again)
    assert again.curves == first.curves
    assert not reports.of("progress")


def test_a_batch_in_parts_trains_as_the_whole(corpus: Corpus, tmp_path: Path) -> None:
    parts, whole = (
        run(recipe(accumulate=n, model={"dropout": 0.0}), corpus, tmp_path / str(n)) for n in (2, 1)
    )
    for name, parameter in weights(whole).items():
        torch.testing.assert_close(weights(parts)[name], parameter, rtol=1e-3, atol=1e-4)


def test_a_carried_state_reaches_the_next_segment_and_not_the_next_epoch(
    corpus: Corpus, tmp_path: Path
) -> None:
    seen: list[bool] = []
    real = training.LanguageModel.loss

    def spy(self: Any, words: Any, targets: Any, states: Any = None) -> Any:
        seen.append(states is not None and not states[0]["S"].requires_grad)
        return real(self, words, targets, states)

    how = recipe(carry=True, steps=5, batch=100, model={"positions": False}, evaluate_every=99)
    patch = pytest.MonkeyPatch()
    patch.setattr(training.LanguageModel, "loss", spy)
    try:
        run(how, corpus, tmp_path)
    finally:
        patch.undo()
    assert training.Streams(corpus.train, 100, 8).per_epoch == 5
    assert seen == [False, True, True, True, True]


def test_curves_are_kept_as_parquet(corpus: Corpus, tmp_path: Path) -> None:
    trained = run(recipe(), corpus, tmp_path)
    frame = pd.read_parquet(tmp_path / CURVES)
    assert list(frame.columns) == ["metric", "step", "value"]
    assert len(frame) == len(trained.curves)
    assert set(frame["metric"]) == {"loss", "words_per_second", "valid_perplexity"}


def test_progress_tells_loss_speed_and_time_left(corpus: Corpus, tmp_path: Path) -> None:
    reports = Reports()
    run(recipe(), corpus, tmp_path, reports)
    line = reports.of("progress")[0]
    assert all(part in line for part in ("step 10/30", "loss", "words/s", "left"))


# What goes wrong


def test_a_loss_that_is_nan_ends_the_training_and_keeps_the_checkpoint(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = training.LanguageModel.loss
    calls = iter(range(1_000))

    def fails(self: Any, *arguments: Any) -> Any:
        nats, states = real(self, *arguments)
        return (nats * math.nan if next(calls) == 24 else nats), states

    monkeypatch.setattr(training.LanguageModel, "loss", fails)
    reports = Reports()
    trained = run(recipe(steps=60), corpus, tmp_path, reports)
    assert trained.diverged_at == 30
    assert reports.of("notice") == ["made: the loss is not finite at step 30; the training ends"]
    kept = checkpoint.load(tmp_path, "identity")
    assert kept is not None
    assert kept["global_step"] == 20
    assert all(bool(x.isfinite().all()) for x in kept["state_dict"].values())


@pytest.mark.parametrize("damage", ["cut", "identity"])
def test_a_checkpoint_that_cannot_be_used_is_reported(
    damage: str, corpus: Corpus, tmp_path: Path
) -> None:
    how = recipe()
    run(how, corpus, tmp_path)
    path = tmp_path / checkpoint.NAME
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:1_000])
    else:
        checkpoint.save(tmp_path, "another", {"global_step": 3})
    reports = Reports()
    run(how, corpus, tmp_path, reports)
    assert len(reports.of("notice")) == 1
    assert reports.of("notice")[0].endswith("started afresh")


def test_a_full_disk_leaves_the_checkpoint_before(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[Path, bytes], None] = checkpoint.write_whole
    writes = iter(range(100))

    def full(path: Path, content: bytes) -> None:
        if next(writes) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(checkpoint, "write_whole", full)
    with pytest.raises(RunError, match=r"cannot be written \(No space left on device\); the one"):
        run(recipe(), corpus, tmp_path)
    kept = checkpoint.load(tmp_path, "identity")
    assert kept is not None
    assert kept["global_step"] == 10


def test_a_text_that_is_too_short_is_a_config_error(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no segment of 8 in 4000 streams"):
        run(recipe(batch=4_000), corpus, tmp_path)


# Several processes

WORKER = """
import sys
from pathlib import Path
from reimpl import data
from reimpl.distributed import leave_group
from reimpl.training import Devices, Place, train
from tests.reimpl.test_training import recipe
data.NAMES = ("made",)
folder, world, carry = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "carry"
how = recipe(model={"dropout": 0.0, "positions": not carry}, carry=carry)
place = Place(folder, "identity", "made", lambda line, **_: None)
train(how, data.open_corpus("made", Path(sys.argv[1])), place, Devices("cpu", world, 1, "ddp"))
leave_group()
"""


@pytest.mark.parametrize("carry", ["carry", "fresh"])
def test_two_processes_train_as_one(carry: str, corpus: Corpus, tmp_path: Path) -> None:
    script = tmp_path / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    states = []
    for world in (1, 2):
        folder = tmp_path / str(world)
        folder.mkdir()
        command = [
            sys.executable, "-m", "torch.distributed.run", "--standalone",
            "--nproc-per-node", str(world),
            str(script), str(corpus.folder.parent), str(folder), str(world), carry,
        ]  # fmt: skip
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        state = checkpoint.load(folder, "identity")
        assert state is not None
        states.append(state)
    one, two = states
    for name, parameter in one["state_dict"].items():
        torch.testing.assert_close(two["state_dict"][name], parameter, rtol=1e-3, atol=1e-4)
    losses = [
        [value for metric, _, value in state["callbacks"]["_Log"]["curves"] if metric == "loss"]
        for state in states
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    if carry == "carry":
        S = [state["carried"][0][0]["S"] for state in states]
        torch.testing.assert_close(S[1], S[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("environment", "devices", "nodes"),
    [
        ({"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, 2, 2),
        ({"SLURM_NTASKS": "8", "SLURM_NNODES": "2"}, 4, 2),
    ],
)
def test_devices_are_those_that_the_launcher_tells_of(
    environment: dict[str, str], devices: int, nodes: int
) -> None:
    found = devices_of(environment, "cuda")
    assert (found.devices, found.nodes, found.strategy) == (devices, nodes, "ddp")


def test_without_a_launcher_the_way_is_told() -> None:
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node 2 -m reimpl"):
        devices_of({}, "cuda")
