"""The models of the retrieval task (Sec. 6.1): embeddings, projections, and a read-out each.

In training every sequence is asked once, and the answer is differentiated: the compiled loops give
it from tables, without keys or state. In an evaluation one sequence is asked for all its keys.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from reimpl.experiments.readouts import (
    EPS,
    by_value,
    delta_weights,
    softmax_table_weights,
    softmax_weights,
    sum_weights,
)
from reimpl.experiments.retrieval_point import RetrievalPoint
from reimpl.experiments.streams import Batch
from reimpl.feature_maps import FeatureMap, feature_map, sum_normalise
from reimpl.loops import readout as loops
from reimpl.loops.readout import Written


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

    def __init__(self, point: RetrievalPoint) -> None:
        super().__init__()
        self.point = point
        for name, tensor in draw_parameters(point).items():
            self.register_parameter(name, nn.Parameter(tensor))

    @abstractmethod
    def answers(self, batch: Batch) -> Tensor:
        """Return the answers to one query a sequence, differentiably: ``[batch, 1, S]``."""

    @abstractmethod
    def all_answers(self, batch: Batch) -> Tensor:
        """Return the answers to any number of queries a sequence: ``[batch, n, S]``."""

    def written(self, batch: Batch) -> Written:
        """Return the tables of the two parts of a key, and the sequences."""
        A = self.e @ self.key_e.T + self.key_bias
        return Written(A, self.key_v.T, batch.keys, batch.values)

    def queries(self, batch: Batch) -> Tensor:
        """Return q of every query: ``[batch, n, d]``."""
        return self.e[batch.query] @ self.query.T + self.query_bias

    def gates(self) -> tuple[Tensor, Tensor]:
        """Return the parts of β's logit that come from the key and from the value: ``[S]``."""
        return self.e @ self.beta_e + self.beta_bias, self.beta_v

    def beta(self, batch: Batch) -> Tensor:
        """Return β of every write: ``[batch, L]``."""
        of_key, of_value = self.gates()
        return torch.sigmoid(of_key[batch.keys] + of_value[batch.values])

    def _by_value(self, weights: Tensor, batch: Batch) -> Tensor:
        return by_value(weights, batch.values, self.point.S)


class SoftmaxModel(RetrievalModel):
    """Softmax attention."""

    def answers(self, batch: Batch) -> Tensor:
        """Return the answers to one query a sequence."""
        weights = softmax_table_weights(self.written(batch), self.queries(batch)[:, 0])
        return self._by_value(weights[:, None], batch)

    def all_answers(self, batch: Batch) -> Tensor:
        """Return the answers to any number of queries a sequence."""
        return self._by_value(softmax_weights(self.written(batch).k, self.queries(batch)), batch)


class FastWeightModel(RetrievalModel):
    """A model with a feature map φ; ``generator`` is where its random features come from."""

    def __init__(self, point: RetrievalPoint, generator: torch.Generator | None = None) -> None:
        super().__init__(point)
        self.phi: FeatureMap = feature_map(point.feature_map, generator)


class SumModel(FastWeightModel):
    """The sum rule with attention normalisation (Eq. 17-19)."""

    def answers(self, batch: Batch) -> Tensor:
        """Return the answers to one query a sequence."""
        self.phi.redraw(self.point.d_key)
        weights = loops.sum_weights(self.phi, self.written(batch), self.queries(batch)[:, 0])
        return self._by_value(sum_normalise(weights, EPS)[:, None], batch)

    def all_answers(self, batch: Batch) -> Tensor:
        """Return the answers to any number of queries a sequence."""
        self.phi.redraw(self.point.d_key)
        K, Q = self.phi(self.written(batch).k), self.phi(self.queries(batch))
        return self._by_value(sum_weights(K, Q), batch)


class DeltaModel(FastWeightModel):
    """The delta rule with sum normalisation (Eq. 24, 29)."""

    def answers(self, batch: Batch) -> Tensor:
        """Return the answers to one query a sequence."""
        self.phi.redraw(self.point.d_key)
        q = sum_normalise(self.phi(self.queries(batch)[:, 0]), EPS)
        weights = loops.delta_weights(self.phi, self.written(batch), self.gates(), q)
        return self._by_value(weights[:, None], batch)

    def all_answers(self, batch: Batch) -> Tensor:
        """Return the answers to any number of queries a sequence."""
        self.phi.redraw(self.point.d_key)
        K = sum_normalise(self.phi(self.written(batch).k))
        Q = sum_normalise(self.phi(self.queries(batch)), EPS)
        return self._by_value(delta_weights(K, Q, self.beta(batch)), batch)


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
