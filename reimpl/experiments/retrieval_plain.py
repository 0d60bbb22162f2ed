"""The retrieval models as the equations stand, to check and time the compiled ones against.

Every key is projected from [one-hot(v); e(k)], the state is kept, and the writes go into it one
after the other; torch differentiates all of it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, one_hot

from reimpl.experiments.readouts import EPS, softmax_weights
from reimpl.experiments.retrieval_models import FastWeightModel, RetrievalModel
from reimpl.experiments.streams import Batch
from reimpl.feature_maps import sum_normalise
from reimpl.rules import delta_step, fwm_step, sum_step


def plain_answers(model: RetrievalModel, batch: Batch) -> Tensor:
    """Return what ``model`` answers to all queries of ``batch``: ``[b, n, S]``.

    Random features are those that the model's map holds; they are not drawn anew.
    """
    V = one_hot(batch.values, model.point.S).to(model.e.dtype)
    x = torch.cat([V, model.e[batch.keys]], -1)
    K = x @ torch.cat([model.key_v, model.key_e], 1).T + model.key_bias
    Q = model.e[batch.query] @ model.query.T + model.query_bias
    if not isinstance(model, FastWeightModel):
        return softmax_weights(K, Q) @ V
    K, Q = model.phi(K), model.phi(Q)
    if model.point.rule == "sum":
        return _sum_answers(K, V, Q)
    beta = torch.sigmoid(x @ torch.cat([model.beta_v, model.beta_e]) + model.beta_bias)
    if model.point.rule == "fwm":
        return layer_norm(Q @ _memory(K, V, beta), [V.shape[-1]])
    return sum_normalise(Q, EPS) @ _delta_state(sum_normalise(K), V, beta)


def _empty(K: Tensor, V: Tensor) -> Tensor:
    return K.new_zeros(K.shape[0], K.shape[2], V.shape[2])


def _sum_answers(K: Tensor, V: Tensor, Q: Tensor) -> Tensor:
    S, z = _empty(K, V), K.new_zeros(K.shape[0], K.shape[2])
    for k, v in zip(K.unbind(1), V.unbind(1), strict=True):
        S, z = sum_step(S, k, v), z + k
    return (Q @ S) / (Q @ z[:, :, None] + EPS)


def _delta_state(K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
    S = _empty(K, V)
    for k, v, b in zip(K.unbind(1), V.unbind(1), beta.unbind(1), strict=True):
        S = delta_step(S, k, v, b)
    return S


def _memory(K: Tensor, V: Tensor, beta: Tensor) -> Tensor:
    """Return the state of the fast weight memory; its first write is not scaled down."""
    S = delta_step(_empty(K, V), K[:, 0], V[:, 0], beta[:, 0])
    for i in range(1, K.shape[1]):
        S = fwm_step(S, K[:, i], V[:, i], beta[:, i])
    return S
