"""The language model of Sec. 6.3: a post-layer-norm transformer whose attention is fast weights.

Word embeddings are shared between input and adaptive softmax. The presets ``small`` and ``medium``
are the paper's two sizes.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import linear, log_softmax, relu

from records.errors import ConfigError
from reimpl.feature_maps import feature_map, sum_normalise
from reimpl.ops import fast_weight_attention
from reimpl.rules import Normalisation, run_rule

WIKITEXT103_WORDS = 267_735
INIT_STD = 0.02


class ModelConfig(BaseModel):
    """Sizes and choices of one model; the defaults are those that both presets share.

    ``rule`` ``softmax`` is the ordinary transformer. ``output_scale`` multiplies the attention's
    output by d_head^−½, as the authors' code does and Eq. 25 does not. ``positions`` adds
    sinusoidal encodings to the embeddings. ``cutoffs`` are the first word ids of the rare clusters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    d_model: int = Field(ge=1)
    d_head: int = Field(ge=1)
    segment: int = Field(ge=1, description="words in a training segment")
    layers: int = Field(default=16, ge=1)
    heads: int = Field(default=8, ge=1)
    d_ffn: int = Field(default=2048, ge=1)
    rule: Literal["softmax", "sum", "delta"] = "delta"
    feature_map: str = "elu1"
    normalisation: Normalisation = "sum"
    output_scale: bool = True
    positions: bool = True
    dropout: float = Field(default=0.1, ge=0, lt=1)
    vocabulary: int = Field(default=WIKITEXT103_WORDS, ge=2)
    cutoffs: tuple[int, ...] = (20_000, 40_000, 200_000)

    @model_validator(mode="after")
    def _fits(self) -> ModelConfig:
        ends = (0, *self.cutoffs, self.vocabulary)
        if any(a >= b for a, b in pairwise(ends)):
            raise ConfigError(
                f"cutoffs {self.cutoffs} must ascend and lie below the vocabulary "
                f"{self.vocabulary}; pass cutoffs=() for a plain softmax"
            )
        if self.d_model % 2:
            raise ConfigError(f"d_model must be even for sinusoidal positions, got {self.d_model}")
        summed = self.rule != "softmax" and self.normalisation != "none"
        if summed and feature_map(self.feature_map).signed:
            raise ConfigError(
                f"feature map {self.feature_map!r} has negative features, whose sum may be zero: "
                f"normalisation {self.normalisation!r} is not defined for it; use 'none'"
            )
        return self

    @property
    def projected(self) -> int:
        """Outputs of the one projection: q, k, v and, for the delta rule, β, of every head."""
        return self.heads * (3 * self.d_head + (self.rule == "delta"))


PRESETS = {
    "small": ModelConfig(d_model=128, d_head=16, segment=256),
    "medium": ModelConfig(d_model=256, d_head=32, segment=384),
}

LayerState = dict[str, Tensor]


class FastWeightAttention(nn.Module):
    """Sum or delta rule with φ and normalisation (Eq. 17-29), heads side by side.

    The state is S ``[batch, heads, d_dot, d_head]`` and, with attention normalisation, z.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.phi = feature_map(config.feature_map)
        self.project = nn.Linear(config.d_model, config.projected, bias=False)
        self.output = nn.Linear(config.heads * config.d_head, config.d_model, bias=False)

    def forward(self, x: Tensor, state: LayerState | None) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the state to go on from."""
        c = self.config
        parts = self.project(x).unflatten(-1, (c.heads, -1))
        q, k, v = parts[..., : 3 * c.d_head].chunk(3, dim=-1)
        beta = torch.sigmoid(parts[..., -1]) if c.rule == "delta" else None
        if self.training:
            self.phi.redraw(c.d_head)
        y, state = _attend(self.phi(q), self.phi(k), v, beta, c, state or {})
        if c.output_scale:
            y = y * c.d_head**-0.5
        return self.output(y.flatten(-2)), state


def _attend(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor | None, config: ModelConfig, state: LayerState
) -> tuple[Tensor, LayerState]:
    """Apply the model's rule and normalisation to φ(q), φ(k); return outputs and the next state.

    Under attention normalisation z is a column of the state, written by values of 1 (Eq. 18). The
    delta rule so normalised (Eq. 26-28) divides each read by it, which has no parallel form.
    """
    S, z = state.get("S"), state.get("z")
    attention = config.normalisation == "attention"
    if attention and config.rule == "delta":
        result = run_rule(
            q,
            k,
            v,
            beta,
            rule="delta",
            normalisation="attention",
            initial_state=S,
            initial_z=z,
        )
        assert result.z is not None
        return result.output, {"S": result.state, "z": result.z}
    if config.normalisation == "sum":
        q, k = sum_normalise(q), sum_normalise(k)
    if attention:
        v = torch.cat([v, torch.ones_like(v[..., :1])], -1)
        S = None if S is None or z is None else torch.cat([S, z.unsqueeze(-1)], -1)
    q, k = q.to(v.dtype), k.to(v.dtype)
    y, S = fast_weight_attention(
        q, k, v, beta, rule=config.rule, initial_state=S, output_final_state=True
    )
    assert S is not None
    if attention:
        return y[..., :-1] / y[..., -1:], {"S": S[..., :-1], "z": S[..., -1]}
    return y, {"S": S}


class SoftmaxAttention(nn.Module):
    """Causal softmax attention; its state is the growing cache of keys and values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(config.d_model, config.projected, bias=False)
        self.output = nn.Linear(config.heads * config.d_head, config.d_model, bias=False)

    def forward(self, x: Tensor, state: LayerState | None) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the cache to go on from."""
        c = self.config
        q, k, v = self.project(x).unflatten(-1, (c.heads, -1)).chunk(3, dim=-1)
        if state is not None:
            k, v = torch.cat([state["k"], k], 1), torch.cat([state["v"], v], 1)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * c.d_head**-0.5
        future = torch.ones_like(scores, dtype=torch.bool).triu(1 + k.shape[1] - q.shape[1])
        weights = scores.masked_fill(future, -math.inf).softmax(-1)
        y = torch.einsum("bhij,bjhv->bihv", weights, v)
        return self.output(y.flatten(-2)), {"k": k, "v": v}


class Layer(nn.Module):
    """Attention and feed-forward network, each added to its input and then normalised."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        softmax = config.rule == "softmax"
        self.attention = SoftmaxAttention(config) if softmax else FastWeightAttention(config)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.up = nn.Linear(config.d_model, config.d_ffn)
        self.down = nn.Linear(config.d_ffn, config.d_model)
        self.ffn_norm = nn.LayerNorm(config.d_model)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, state: LayerState | None) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the layer's next state."""
        y, state = self.attention(x, state)
        x = self.attention_norm(x + self.drop(y))
        y = self.down(self.drop(relu(self.up(x))))
        return self.ffn_norm(x + self.drop(y)), state


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
        frequent = self.ends[0]
        weight = torch.cat([embedding[:frequent], self.cluster_weight])
        head = log_softmax(
            linear(h, weight, torch.cat([self.bias[:frequent], self.cluster_bias])), -1
        )
        cluster = torch.bucketize(words, torch.tensor(self.ends, device=words.device), right=True)
        entry = torch.where(cluster == 0, words, frequent + cluster - 1)
        loss = -head.gather(-1, entry[:, None]).squeeze(-1)
        for i, (start, end) in enumerate(pairwise(self.ends), start=1):
            rows = (cluster == i).nonzero().squeeze(-1)
            tail = log_softmax(linear(h[rows], embedding[start:end], self.bias[start:end]), -1)
            loss = loss.index_add(0, rows, -tail.gather(-1, (words[rows] - start)[:, None])[:, 0])
        return loss


class LanguageModel(nn.Module):
    """Words ``[batch, length]`` to hidden vectors, and to the loss of the next words."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.softmax = AdaptiveSoftmax(config)
        self.drop = nn.Dropout(config.dropout)
        self.apply(_initialise)

    def forward(
        self, words: Tensor, states: list[LayerState] | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """Return hidden vectors ``[batch, length, d_model]`` and every layer's next state."""
        x = self.embedding(words) * math.sqrt(self.config.d_model)
        if self.config.positions:
            x = x + sinusoids(words.shape[1], self.config.d_model).to(x)
        x, new_states = self.drop(x), []
        for i, layer in enumerate(self.layers):
            x, state = layer(x, None if states is None else states[i])
            new_states.append(state)
        return self.drop(x), new_states

    def loss(
        self, words: Tensor, targets: Tensor, states: list[LayerState] | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """Return −log p of each target ``[batch, length]`` in nats, and the next states."""
        h, states = self(words, states)
        nats = self.softmax(h.flatten(0, 1), targets.flatten(), self.embedding.weight)
        return nats.view_as(targets), states


def _initialise(module: nn.Module) -> None:
    """Draw weights from N(0, 0.02), layer norms from N(1, 0.02), and zero the biases."""
    if isinstance(module, nn.LayerNorm):
        nn.init.normal_(module.weight, 1.0, INIT_STD)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, 0.0, INIT_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, AdaptiveSoftmax):
        nn.init.normal_(module.cluster_weight, 0.0, INIT_STD)


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return position encodings ``[length, d_model]``, counted backward: the last word is 0."""
    position = torch.arange(length - 1, -1, -1, dtype=torch.float32)
    frequency = 10_000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    angle = position[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def parameter_count(config: ModelConfig) -> int:
    """Return the number of parameters of the module that ``config`` builds; shared ones once."""
    with torch.device("meta"):
        model = LanguageModel(config)
    return sum(parameter.numel() for parameter in model.parameters())


def state_size(config: ModelConfig, length: int = 1) -> int:
    """Return the numbers that the built model carries on after ``length`` words of one sequence.

    Constant for fast weights; 2 · length · d_model · layers for softmax with full heads.
    """
    with torch.device("meta"):
        model = LanguageModel(config).eval()
        _, states = model(torch.zeros(1, length, dtype=torch.long))
    return sum(tensor.numel() for state in states for tensor in state.values())
