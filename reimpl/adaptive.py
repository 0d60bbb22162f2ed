"""Adaptive softmax over words that are sorted by frequency, tied to the embedding."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax

from reimpl.model_config import ModelConfig


class AdaptiveSoftmax(nn.Module):
    """Log-likelihood of words in frequency clusters (Grave et al. 2017), tied to the embedding.

    The head scores the frequent words and one entry for each rare cluster; all clusters keep
    embeddings of full size (div_val 1).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.ends = (*config.cutoffs, config.vocabulary)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        clusters = len(config.cutoffs)
        self.cluster_weight = nn.Parameter(torch.zeros(clusters, config.d_model))
        self.cluster_bias = nn.Parameter(torch.zeros(clusters))

    def forward(self, h: Tensor, words: Tensor, embedding: Tensor) -> Tensor:
        """Return −log p(word) ``[n]`` for ``h`` ``[n, d_model]`` and ``words`` ``[n]``."""
        head, frequent = self._head(h, embedding), self.ends[0]
        cluster = torch.bucketize(words, torch.tensor(self.ends, device=words.device), right=True)
        entry = torch.where(cluster == 0, words, frequent + cluster - 1)
        loss = -head.gather(-1, entry[:, None]).squeeze(-1)
        for i, (start, end) in enumerate(pairwise(self.ends), start=1):
            rows = (cluster == i).nonzero().squeeze(-1)
            tail = self._tail(h[rows], embedding, start, end)
            loss = loss.index_add(0, rows, -tail.gather(-1, (words[rows] - start)[:, None])[:, 0])
        return loss

    def log_chances(self, h: Tensor, embedding: Tensor) -> Tensor:
        """Return log p ``[n, vocabulary]`` of every word for ``h`` ``[n, d_model]``."""
        head, frequent = self._head(h, embedding), self.ends[0]
        tails = [
            head[:, frequent + i, None] + self._tail(h, embedding, start, end)
            for i, (start, end) in enumerate(pairwise(self.ends))
        ]
        return torch.cat([head[:, :frequent], *tails], -1)

    def _head(self, h: Tensor, embedding: Tensor) -> Tensor:
        """Return log p of the frequent words and of each rare cluster as a whole."""
        frequent = self.ends[0]
        weight = torch.cat([embedding[:frequent], self.cluster_weight])
        bias = torch.cat([self.bias[:frequent], self.cluster_bias])
        return log_softmax(linear(h, weight, bias), -1)

    def _tail(self, h: Tensor, embedding: Tensor, start: int, end: int) -> Tensor:
        """Return log p of the words ``start`` to ``end`` within their cluster."""
        return log_softmax(linear(h, embedding[start:end], self.bias[start:end]), -1)
