"""The recall experiment (MQAR): training over all learning rates, and what it measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from records.models import Metric, Scale, digest
from reimpl import checkpoint
from reimpl.experiments import mqar_data
from reimpl.experiments.base import Progress
from reimpl.experiments.mqar_data import Batch
from reimpl.experiments.mqar_model import MqarModel
from reimpl.experiments.mqar_point import MqarPoint
from reimpl.version import code_version

Accuracies = tuple[float, ...]
"""Share of right answers, one number for each test segment."""


def mean(accuracies: Accuracies) -> float:
    """Return the accuracy of a model: the mean over the test segments, which weigh alike."""
    return sum(accuracies) / len(accuracies)


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass
class Training:
    """The training with one learning rate, and all that its next epoch depends on.

    AdamW; the rate falls by a cosine from epoch to epoch. Parameters, batches and dropout have
    random numbers of their own, so learning rates start alike and nothing is left in a global
    generator.
    """

    point: MqarPoint
    rate: float
    model: MqarModel = field(init=False)
    optimiser: torch.optim.Optimizer = field(init=False)
    history: list[Accuracies] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = torch.Generator().manual_seed(self.point.seed)
        self.model = MqarModel(self.point, start).to(_device())
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(),
            lr=self.rate,
            weight_decay=self.point.weight_decay,
            fused=True,
        )

    @property
    def ended(self) -> bool:
        """Whether the last epoch is over, or the accuracy above the goal."""
        reached = bool(self.history) and mean(self.history[-1]) > self.point.goal
        return reached or len(self.history) >= self.point.epochs

    def train_epoch(self) -> None:
        """Take an epoch's steps, test, and add to the history."""
        epoch = len(self.history)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * (1 + math.cos(math.pi * epoch / self.point.epochs)) / 2
        dropped = torch.Generator().manual_seed(
            int(mqar_data.generator(self.point.seed, mqar_data.DROPOUT, epoch).integers(2**62))
        )
        for batch in mqar_data.epoch_batches(self.point, epoch):
            there = batch.to(_device())
            logits = self.model(there, dropped)
            loss = cross_entropy(logits.flatten(0, 1), there.answers.flatten())
            self.optimiser.zero_grad()
            torch.autograd.backward(loss)
            self.optimiser.step()
        self.history.append(self.test())

    @torch.no_grad()
    def test(self) -> Accuracies:
        """Return the accuracy on each test segment."""
        return tuple(
            sum(self._right(batch) for batch in mqar_data.test_batches(self.point, s))
            / (segment.examples * segment.pairs)
            for s, segment in enumerate(self.point.test)
        )

    def _right(self, batch: Batch) -> int:
        there = batch.to(_device())
        found: Tensor = self.model(there).argmax(-1) == there.answers
        return int(found.sum())

    def state(self) -> dict[str, Any]:
        """Return what ``restore`` needs to go on exactly from here."""
        return {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "history": [list(accuracies) for accuracies in self.history],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``."""
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.history = [tuple(accuracies) for accuracies in state["history"]]


def measure(point: MqarPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train ``point`` with each of its learning rates, one after the other.

    There is a checkpoint after every epoch; one that is there already is gone on from.
    """
    identity = digest([point.model_dump(mode="json"), code_version(__name__)])
    ended, running = _resume(point, checkpoint_dir, identity, progress)
    for rate in point.learning_rates[len(ended) :]:
        training = Training(point, rate)
        if running is not None:
            training.restore(running)
            running = None
        while not training.ended:
            training.train_epoch()
            kept = {"ended": ended, "running": training.state()}
            checkpoint.save(checkpoint_dir, identity, kept)
            accuracy = mean(training.history[-1])
            progress(
                f"{point.label}: learning rate {rate:.2g}, epoch {len(training.history)}, "
                f"accuracy {accuracy:.3f}"
            )
        ended.append([list(accuracies) for accuracies in training.history])
    return metrics([[tuple(a) for a in history] for history in ended], point)


def _resume(
    point: MqarPoint, folder: Path, identity: str, progress: Progress
) -> tuple[list[list[list[float]]], dict[str, Any] | None]:
    """Return the histories of the rates that have ended, and the state of the one that runs."""
    try:
        state = checkpoint.load(folder, identity)
    except checkpoint.UnusableCheckpoint as error:
        progress(f"{point.label}: {error}; started afresh", kind="notice")
        return [], None
    if state is None:
        return [], None
    ended, running = list(state["ended"]), state["running"]
    rate, epoch = point.learning_rates[len(ended)], len(running["history"])
    progress(f"{point.label}: goes on from learning rate {rate:.2g}, epoch {epoch}", kind="resumed")
    return ended, running


def metrics(histories: list[list[Accuracies]], point: MqarPoint) -> tuple[Metric, ...]:
    """Return the accuracy with the best learning rate, with each, and its parts and curve.

    A learning rate counts with its last epoch; of equally good ones the smallest is the best.
    """
    scale: Scale = "paper" if point.follows_protocol else "reduced"

    def metric(
        name: str, value: float, claim_id: str | None = None, step: int | None = None
    ) -> Metric:
        return Metric(name=name, value=value, claim_id=claim_id, scale=scale, step=step)

    last = [mean(history[-1]) for history in histories]
    best = last.index(max(last))
    steps = mqar_data.steps_per_epoch(point)
    return (
        metric("accuracy", last[best], point.claim_id),
        metric("state_bytes", point.state_bytes),
        metric("learning_rate", point.learning_rates[best]),
        *(
            metric(f"accuracy_lr_{rate:.2g}", value)
            for rate, value in zip(point.learning_rates, last, strict=True)
        ),
        *(
            metric(f"accuracy_length_{segment.length}_pairs_{segment.pairs}", value)
            for segment, value in zip(point.test, histories[best][-1], strict=True)
        ),
        *(
            metric("accuracy_curve", mean(accuracies), step=steps * epoch)
            for epoch, accuracies in enumerate(histories[best], start=1)
        ),
    )
