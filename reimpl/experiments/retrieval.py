"""Synthetic retrieval (Sec. 6.1): the model, its training and evaluation, what they measure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from records.models import Metric, Scale, digest
from reimpl import checkpoint
from reimpl.experiments.base import Progress
from reimpl.experiments.points import RetrievalPoint
from reimpl.experiments.readouts import (
    EPS,
    by_value,
    delta_weights,
    fwm_answers,
    softmax_weights,
    sum_weights,
)
from reimpl.experiments.streams import Batch, Stream, open_stream
from reimpl.feature_maps import FeatureMap, feature_map, sum_normalise
from reimpl.version import code_version


class RetrievalModel(nn.Module):
    """Key embeddings and the projections to k, q and β.

    A projection of [one-hot(v); e(k)] is a row for v plus the projected embedding of k, so all S
    embeddings are projected once and then looked up. Embeddings of the value symbols exist in the
    authors' model, but nothing reads them.
    """

    e: Tensor
    key_v: Tensor
    key_e: Tensor
    key_bias: Tensor
    query: Tensor
    query_bias: Tensor
    beta_v: Tensor
    beta_e: Tensor
    beta_bias: Tensor

    def __init__(self, point: RetrievalPoint, phi: FeatureMap | None) -> None:
        super().__init__()
        self.point, self.phi = point, phi
        for name, tensor in draw_parameters(point).items():
            self.register_parameter(name, nn.Parameter(tensor))

    def forward(self, batch: Batch) -> Tensor:
        """Return the predicted value vectors ``[batch, n, S]``."""
        e = self.e
        K = (e @ self.key_e.T + self.key_bias)[batch.keys] + self.key_v.T[batch.values]
        Q = (e @ self.query.T + self.query_bias)[batch.query]
        if self.phi is None:
            return by_value(softmax_weights(K, Q), batch.values, self.point.S)
        self.phi.redraw(self.point.d_key)
        return self._fast_weights(self.phi(K), self.phi(Q), batch)

    def _fast_weights(self, K: Tensor, Q: Tensor, batch: Batch) -> Tensor:
        S = self.point.S
        if self.point.rule == "sum":
            return by_value(sum_weights(K, Q), batch.values, S)
        logit = (self.e @ self.beta_e)[batch.keys] + self.beta_v[batch.values] + self.beta_bias
        beta = torch.sigmoid(logit)
        if self.point.rule == "fwm":
            return fwm_answers(K, Q, beta, one_hot(batch.values, S).to(K.dtype))
        K, Q = sum_normalise(K), sum_normalise(Q, EPS)
        return by_value(delta_weights(K, Q, beta), batch.values, S)


def draw_parameters(point: RetrievalPoint) -> dict[str, Tensor]:
    """Draw the initial parameters in the order in which the authors' modules drew theirs.

    Modules that the task never reads are built as well, for their draws. torch's global generator
    is seeded for this and then set back.
    """
    S, E, d = point.S, point.d_embedding, point.d_key
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(point.seed)
        nn.Embedding(S, S)
        embedding = nn.Embedding(2 * S, E)
        key, value, query = nn.Linear(E + S, d), nn.Linear(E + S, d), nn.Linear(E, d)
        beta = None
        if point.rule != "softmax":
            nn.Linear(E + S, d)
            beta = nn.Linear(E + S, 1)
        nn.init.normal_(embedding.weight)
        nn.init.xavier_uniform_(value.weight)
        for projection in (key, query):
            if point.rule == "softmax":
                nn.init.xavier_uniform_(projection.weight)
            else:
                nn.init.uniform_(projection.weight, -1 / math.sqrt(d), 1 / math.sqrt(d))
    return _parameters(S, embedding, key, query, beta if point.rule in ("fwm", "delta") else None)


def _parameters(
    S: int, embedding: nn.Embedding, key: nn.Linear, query: nn.Linear, beta: nn.Linear | None
) -> dict[str, Tensor]:
    drawn = {
        "e": embedding.weight[:S],
        "key_v": key.weight[:, :S],
        "key_e": key.weight[:, S:],
        "key_bias": key.bias,
        "query": query.weight,
        "query_bias": query.bias,
    }
    if beta is not None:
        drawn |= {
            "beta_v": beta.weight[0, :S],
            "beta_e": beta.weight[0, S:],
            "beta_bias": beta.bias,
        }
    return {name: tensor.detach().clone() for name, tensor in drawn.items()}


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
    def start(cls, point: RetrievalPoint) -> Training:
        """Return the training of ``point`` before its first step."""
        generator = torch.Generator().manual_seed(point.seed)
        phi = None if point.rule == "softmax" else feature_map(point.feature_map, generator)
        model = RetrievalModel(point, phi)
        optimiser = torch.optim.Adam(model.parameters(), lr=point.learning_rate, fused=True)
        stream = open_stream(point.stream, point.S, point.length, point.replace, point.seed)
        return cls(model, optimiser, stream, generator)

    def train_until_evaluation(self) -> None:
        """Take the steps up to the next evaluation, evaluate, and add to the history."""
        point = self.model.point
        for _ in range(point.eval_every):
            batch = self.stream.train_batch(point.batch)
            loss = query_losses(self.model(batch), batch.answer).mean()
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
            losses = query_losses(self.model(sequence), sequence.answer).flatten()
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
    identity = digest([point.model_dump(mode="json"), code_version()])
    training = _resume(point, checkpoint_dir, identity, progress)
    while (reason := stop_reason(training.history, point)) is None:
        training.train_until_evaluation()
        checkpoint.save(checkpoint_dir, identity, training.state())
        step, loss = training.history[-1]
        progress(f"{point.label}: step {step}, evaluation loss {loss:.4g}")
    progress(f"{point.label}: ended at step {training.step} ({reason})")
    return metrics(training.history, point)


def _resume(point: RetrievalPoint, folder: Path, identity: str, progress: Progress) -> Training:
    training = Training.start(point)
    try:
        state = checkpoint.load(folder, identity)
    except checkpoint.UnusableCheckpoint as error:
        progress(f"{point.label}: {error}; started afresh", kind="notice")
        return training
    if state is not None:
        training.restore(state)
        progress(f"{point.label}: goes on from step {training.step}", kind="resumed")
    return training


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
