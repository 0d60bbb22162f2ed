"""Synthetic retrieval (Sec. 6.1): training and evaluation, and what they measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from records.models import Metric, Scale, digest
from reimpl import checkpoint
from reimpl.experiments.base import Progress
from reimpl.experiments.retrieval_models import (
    DeltaModel,
    RetrievalModel,
    SoftmaxModel,
    SumModel,
)
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.experiments.streams import Stream, open_stream
from reimpl.version import code_version

Build = Callable[[RetrievalPoint, torch.Generator], RetrievalModel]
"""Makes the model of a point; its random features come from the generator."""


def query_losses(predicted: Tensor, answer: Tensor) -> Tensor:
    """Return ½ ‖v − v̂‖² of every query ``[batch, n]``."""
    target = one_hot(answer, predicted.shape[-1])
    return (predicted - target).square().sum(-1) / 2


@dataclass
class Training:
    """A training under way: all that its next step depends on."""

    model: RetrievalModel
    optimiser: torch.optim.Optimizer
    stream: Stream
    generator: torch.Generator
    step: int = 0
    history: list[tuple[int, float]] = field(default_factory=list)

    @classmethod
    def start(cls, point: RetrievalPoint, build: Build) -> Training:
        """Return the training of ``point`` before its first step."""
        generator = torch.Generator().manual_seed(point.seed)
        model = build(point, generator)
        optimiser = torch.optim.Adam(model.parameters(), lr=point.learning_rate, fused=True)
        stream = open_stream(point.stream, point.S, point.length, point.replace, point.seed)
        return cls(model, optimiser, stream, generator)

    def train_until_evaluation(self) -> None:
        """Take the steps up to the next evaluation, evaluate, and add to the history."""
        point = self.model.point
        for _ in range(point.eval_every):
            batch = self.stream.train_batch(point.batch)
            loss = query_losses(self.model.answers(batch), batch.answer).mean()
            self.optimiser.zero_grad()
            torch.autograd.backward(loss)
            self.optimiser.step()
        self.step += point.eval_every
        self.history.append((self.step, self.evaluate()))

    @torch.no_grad()
    def evaluate(self) -> float:
        """Return the mean over the means of batches of queries, over all evaluation sequences."""
        means: list[float] = []
        batch = self.model.point.batch
        for _ in range(self.model.point.eval_sequences):
            sequence = self.stream.eval_sequence()
            losses = query_losses(self.model.all_answers(sequence), sequence.answer).flatten()
            means += [part.mean().item() for part in torch.split(losses, batch)]
        return sum(means) / len(means)

    def state(self) -> dict[str, Any]:
        """Return what ``restore`` needs to go on exactly from here."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "stream": self.stream.state(),
            "generator": self.generator.get_state(),
            "step": self.step,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.stream.restore(state["stream"])
        self.generator.set_state(state["generator"])
        self.step, self.history = state["step"], list(state["history"])


def stop_reason(history: list[tuple[int, float]], point: RetrievalPoint) -> str | None:
    """Return why training ends after this history of (step, loss), or None while it goes on."""
    if not history:
        return None
    losses = [loss for _, loss in history]
    if math.isnan(losses[-1]):
        return "nan"
    if losses[-1] <= point.goal:
        return "converged"
    if len(losses) - 1 - losses.index(min(losses)) > point.patience:
        return "no_progress"
    return "max_steps" if history[-1][0] >= point.max_steps else None


def measure(point: RetrievalPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train ``point`` to its end, keeping a checkpoint at every evaluation."""
    return train(point, _build, checkpoint_dir, progress)


def _build(point: RetrievalPoint, generator: torch.Generator) -> RetrievalModel:
    if point.rule == "softmax":
        return SoftmaxModel(point)
    return {"sum": SumModel, "delta": DeltaModel}[point.rule](point, generator)


def train(
    point: RetrievalPoint, build: Build, checkpoint_dir: Path, progress: Progress
) -> tuple[Metric, ...]:
    """Train the model that ``build`` makes for ``point``, keeping a checkpoint at every evaluation.

    A checkpoint that is there already is gone on from.
    """
    training = Training.start(point, build)
    identity = digest([point.model_dump(mode="json"), code_version(build.__module__)])
    _resume(training, checkpoint_dir, identity, progress)
    while (reason := stop_reason(training.history, point)) is None:
        training.train_until_evaluation()
        checkpoint.save(checkpoint_dir, identity, training.state())
        step, loss = training.history[-1]
        progress(f"{point.label}: step {step}, evaluation loss {loss:.4g}")
    progress(f"{point.label}: ended at step {training.step} ({reason})")
    return metrics(training.history, point)


def _resume(training: Training, folder: Path, identity: str, progress: Progress) -> None:
    label = training.model.point.label
    try:
        state = checkpoint.load(folder, identity)
    except checkpoint.UnusableCheckpoint as error:
        progress(f"{label}: {error}; started afresh", kind="notice")
        return
    if state is not None:
        training.restore(state)
        progress(f"{label}: goes on from step {training.step}", kind="resumed")


def metrics(history: list[tuple[int, float]], point: RetrievalPoint) -> tuple[Metric, ...]:
    """Return best and last evaluation loss, the steps taken and the curve."""
    scale: Scale = "paper" if point.follows_protocol else "reduced"

    def metric(
        name: str, value: float, claim_id: str | None = None, step: int | None = None
    ) -> Metric:
        return Metric(
            name=name,
            value=value,
            claim_id=claim_id,
            scale=scale,
            replay=point.replays,
            step=step,
        )

    finite = [loss for _, loss in history if not math.isnan(loss)]
    best = min(finite, default=math.nan)
    last_step, last_loss = history[-1]
    text = (metric("eval_loss", best, point.text_claim_id),) if point.text_claim_id else ()
    return (
        metric("eval_loss", best, point.claim_id),
        *text,
        metric("last_eval_loss", last_loss, point.claim_id),
        metric("steps", last_step),
        *(metric("eval_loss_curve", loss, step=step) for step, loss in history),
    )
