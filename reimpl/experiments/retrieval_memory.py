"""Synthetic retrieval with the fast weight memory, whose scaling needs the state."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from records.models import Metric
from reimpl.experiments.base import Progress
from reimpl.experiments.retrieval import train
from reimpl.experiments.retrieval_models import FastWeightModel
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.experiments.streams import Batch
from reimpl.loops.fwm import fwm_readout


class MemoryModel(FastWeightModel):
    """The fast weight memory: the delta rule, its state scaled down to norm 1 after each write.

    Answers are layer-normalised.
    """

    def answers(self, batch: Batch) -> Tensor:
        """Return the answers to one query a sequence."""
        return self.all_answers(batch)

    def all_answers(self, batch: Batch) -> Tensor:
        """Return the answers to any number of queries a sequence."""
        K, Q = self.phi(self.written(batch).k), self.phi(self.queries(batch))
        S = self.point.S
        return layer_norm(fwm_readout(K, Q, self.beta(batch), batch.values, S), [S])


def measure(point: RetrievalPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train ``point`` to its end, keeping a checkpoint at every evaluation."""
    return train(point, _build, checkpoint_dir, progress)


def _build(point: RetrievalPoint, generator: torch.Generator) -> MemoryModel:
    return MemoryModel(point, generator)
