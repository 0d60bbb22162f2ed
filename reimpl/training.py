"""Train a language model with Lightning: resumable to the bit, on one device or many.

What is random in a step is drawn from numbers made of the seed, the step and the process, and the
words of a step follow from its number, so that a checkpoint needs neither.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import lightning
import numpy as np
import pandas as pd
import torch
from lightning.pytorch.plugins import CheckpointIO
from torch import Tensor
from torch.utils.data import IterableDataset

from records.errors import RunError
from records.files import write_whole
from reimpl import checkpoint
from reimpl.data import Corpus, Streams
from reimpl.evaluation import segments
from reimpl.experiments.base import Progress
from reimpl.model import LanguageModel, LayerState
from reimpl.model_config import ModelConfig
from reimpl.training_config import TrainingConfig

CURVES = "curves.parquet"
LOG_STEPS = 20
"""Steps between two points of the loss curve, and between two looks for a loss that is NaN."""
CURVE_WORDS = 50_000
"""Validation words that a point of the curve is taken over."""


@dataclass(frozen=True)
class Recipe:
    """What the trained weights depend on, beside the text."""

    model: ModelConfig
    training: TrainingConfig
    seed: int


@dataclass(frozen=True)
class Place:
    """Where a training keeps its checkpoint and curves, under which identity, and reports to."""

    folder: Path
    identity: str
    label: str
    report: Progress


@dataclass(frozen=True)
class Devices:
    """On what to train: the arguments of Lightning's Trainer that say so."""

    accelerator: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")
    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"


class CurvePoint(NamedTuple):
    """The value of a metric at a step."""

    metric: str
    step: int
    value: float


@dataclass(frozen=True)
class Trained:
    """The model after its last step, or after the last good one where the loss became NaN."""

    model: LanguageModel
    curves: tuple[CurvePoint, ...]
    diverged_at: int | None

    def median(self, metric: str) -> float:
        """Return the median of a metric over its curve; NaN where it has none."""
        values = [point.value for point in self.curves if point.metric == metric]
        return float(np.median(values)) if values else math.nan


def train(recipe: Recipe, corpus: Corpus, place: Place, devices: Devices | None = None) -> Trained:
    """Train from the start, or from the checkpoint in ``place``; evaluation is left to the caller.

    A checkpoint of another configuration or code, or a damaged one, is reported and not used. A
    loss that is not finite ends the training; the checkpoint before it stays. Raises ConfigError
    where recipe and text do not fit, RunError where a checkpoint cannot be written.
    """
    devices = devices or Devices()
    torch.manual_seed(_number(recipe.seed, 0))
    module = _Module(recipe, corpus)
    log = _Log(recipe, corpus, place)
    with _quiet():
        trainer = lightning.Trainer(
            accelerator=devices.accelerator,
            devices=devices.devices,
            num_nodes=devices.nodes,
            strategy=devices.strategy,
            precision=recipe.training.precision,
            max_steps=recipe.training.steps,
            max_epochs=-1,
            accumulate_grad_batches=recipe.training.accumulate,
            gradient_clip_val=recipe.training.clip,
            callbacks=[log],
            plugins=[_WholeCheckpoints(place)],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=place.folder,
        )
        trainer.fit(module, ckpt_path=_usable(place))
    return Trained(module.model.eval(), tuple(log.curves), log.diverged_at)


def _usable(place: Place) -> str | None:
    """Return the path of a checkpoint to go on from."""
    try:
        found = checkpoint.load(place.folder, place.identity)
    except checkpoint.UnusableCheckpoint as error:
        place.report(f"{place.label}: {error}; started afresh", kind="notice")
        return None
    if found is None:
        return None
    place.report(f"{place.label}: goes on from step {found['global_step']}", kind="resumed")
    return str(place.folder / checkpoint.NAME)


def _number(*parts: int) -> int:
    """Return a number to seed a generator with, of its own for each sequence of ``parts``."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


class _WholeCheckpoints(CheckpointIO):
    """Checkpoints that are there whole or not at all, and say what they are of."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def save_checkpoint(
        self, checkpoint_: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        try:
            checkpoint.save(Path(path).parent, self._place.identity, checkpoint_)
        except OSError as error:
            raise RunError(
                f"the checkpoint {path} cannot be written ({error.strerror}); the one before it "
                "stays; make room and give the same command to go on from there"
            ) from error

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        found = checkpoint.load(Path(path).parent, self._place.identity)
        assert found is not None
        return found

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


class _Step(NamedTuple):
    """One part of a batch: words ``[streams, segment]`` and the words after each."""

    step: int
    part: int
    first: bool
    inputs: Tensor
    targets: Tensor


class _Steps(IterableDataset[_Step]):
    """The parts of all batches from step ``start`` on, of one process."""

    def __init__(self, parts: list[Streams], start: int, stop: int) -> None:
        self._parts, self._steps = parts, range(start, stop)

    def __iter__(self) -> Iterator[_Step]:
        for step in self._steps:
            for part, streams in enumerate(self._parts):
                batch = streams.at(step)
                inputs, targets = (
                    torch.from_numpy(x.astype(np.int64)) for x in (batch.inputs, batch.targets)
                )
                yield _Step(step, part, batch.first, inputs, targets)


class _Module(lightning.LightningModule):
    """The model with its loss and optimiser, and the states that are carried."""

    def __init__(self, recipe: Recipe, corpus: Corpus) -> None:
        super().__init__()
        self.recipe, self.corpus = recipe, corpus
        self.model = LanguageModel(recipe.model)
        self.carried: list[list[LayerState] | None] = [None] * recipe.training.accumulate

    def streams(self) -> list[Streams]:
        """Return the streams of each part of this process's share of the batch."""
        t, parts = self.recipe.training, self.recipe.training.accumulate
        return [
            Streams(
                self.corpus.train,
                t.batch,
                self.recipe.model.segment,
                self.trainer.global_rank * parts + part,
                self.trainer.world_size * parts,
            )
            for part in range(parts)
        ]

    def train_dataloader(self) -> Any:
        steps = _Steps(self.streams(), self.global_step, self.recipe.training.steps)
        return torch.utils.data.DataLoader(steps, batch_size=None)

    def configure_optimizers(self) -> Any:
        t = self.recipe.training
        optimiser = torch.optim.Adam(
            self.parameters(), lr=t.learning_rate, fused=t.precision != "16-mixed"
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, t.rate_factor)
        return {
            "optimizer": optimiser,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    def training_step(self, batch: _Step, batch_idx: int) -> Tensor:
        torch.manual_seed(
            _number(self.recipe.seed, 1, batch.step, batch.part, self.trainer.global_rank)
        )
        states = None
        if self.recipe.training.carry and not batch.first:
            states = self.carried[batch.part]
        nats, states = self.model.loss(batch.inputs, batch.targets, states)
        if self.recipe.training.carry:
            self.carried[batch.part] = [
                {name: x.detach() for name, x in layer.items()} for layer in states
            ]
        return nats.mean()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the carried states of all processes, in their order."""
        if self.carried[0] is not None:
            checkpoint["carried"] = [_gathered(self, states) for states in self.carried]

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take this process's share of the carried states."""
        if "carried" in checkpoint:
            self.carried = [_shared(self, states) for states in checkpoint["carried"]]


def _gathered(module: _Module, states: list[LayerState] | None) -> list[LayerState]:
    """Return carried states with the streams of all processes, rank after rank."""
    found = []
    for layer in states or ():
        whole: LayerState = {name: cast(Tensor, module.all_gather(x)) for name, x in layer.items()}
        found.append({n: x.reshape(-1, *layer[n].shape[1:]) for n, x in whole.items()})
    return found


def _shared(module: _Module, states: list[LayerState]) -> list[LayerState]:
    rank, world = module.trainer.global_rank, module.trainer.world_size
    return [
        {name: x.chunk(world)[rank].to(module.device) for name, x in layer.items()}
        for layer in states
    ]


class _Log(lightning.Callback):
    """Reports, keeps curves and checkpoints, and ends a training whose loss is not finite."""

    def __init__(self, recipe: Recipe, corpus: Corpus, place: Place) -> None:
        self.recipe, self.corpus, self.place = recipe, corpus, place
        self.curves: list[CurvePoint] = []
        self.diverged_at: int | None = None
        self._losses: list[Tensor] = []
        self._since = time.perf_counter()
        self._trained = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed training keeps on."""
        return {"curves": [tuple(point) for point in self.curves]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.curves = [CurvePoint(*point) for point in state_dict["curves"]]

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self._since = time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        *_: Any,
    ) -> None:
        self._losses.append(outputs["loss"].detach() * trainer.accumulate_grad_batches)
        t, step = self.recipe.training, trainer.global_step
        if len(self._losses) % t.accumulate:
            return
        ends = step == t.steps
        evaluates = step % t.evaluate_every == 0 or ends
        saves = step % t.checkpoint_every == 0 or ends
        if not (step % LOG_STEPS == 0 or evaluates or saves):
            return
        if not self._note_loss(trainer, step):
            trainer.should_stop = True
            return
        if evaluates and trainer.is_global_zero:
            self._evaluate(pl_module, step)
        if saves:
            trainer.save_checkpoint(self.place.folder / checkpoint.NAME)
            if trainer.is_global_zero:
                write_curves(self.place.folder, self.curves)
        self._since = time.perf_counter()

    def _note_loss(self, trainer: lightning.Trainer, step: int) -> bool:
        """Add to the curves and report; tell whether the loss is finite on every process."""
        losses = trainer.strategy.reduce(torch.stack(self._losses), reduce_op="mean")
        assert isinstance(losses, Tensor)
        loss, steps = float(losses.mean()), len(self._losses) // self.recipe.training.accumulate
        self._losses = []
        seconds = time.perf_counter() - self._since
        t = self.recipe.training
        speed = steps * t.batch * self.recipe.model.segment / seconds
        if not math.isfinite(loss):
            self.diverged_at = step
            self.place.report(
                f"{self.place.label}: the loss is not finite at step {step}; the training ends",
                kind="notice",
            )
            return False
        self.curves += [CurvePoint("loss", step, loss), CurvePoint("words_per_second", step, speed)]
        left = (t.steps - step) * t.batch * self.recipe.model.segment / speed
        self.place.report(
            f"{self.place.label}: step {step}/{t.steps}, loss {loss:.3f}, {speed:,.0f} words/s, "
            f"about {_duration(left)} left"
        )
        return True

    def _evaluate(self, module: lightning.LightningModule, step: int) -> None:
        assert isinstance(module, _Module)
        model = module.model
        model.eval()
        ids = self.corpus.valid[: CURVE_WORDS + 1]
        score = segments(model, ids, self.recipe.training.carry)
        model.train()
        self.curves.append(CurvePoint("valid_perplexity", step, score.perplexity))
        self.place.report(
            f"{self.place.label}: step {step}, validation perplexity {score.perplexity:.2f}"
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def write_curves(folder: Path, curves: list[CurvePoint]) -> None:
    """Write the curves as Parquet: columns metric, step and value."""
    frame = pd.DataFrame(curves, columns=["metric", "step", "value"])
    write_whole(folder / CURVES, frame.to_parquet(index=False))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Lightning's remarks about hardware and loaders to itself."""
    logger = logging.getLogger("lightning.pytorch")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            yield
    finally:
        logger.setLevel(before)
