"""The language model of Sec. 6.3: a post-layer-norm transformer whose attention is fast weights.

Word embeddings are shared between input and adaptive softmax. The presets ``small`` and ``medium``
are the paper's two sizes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, relu, scaled_dot_product_attention

from records.errors import ConfigError
from reimpl.adaptive import AdaptiveSoftmax
from reimpl.feature_maps import feature_map, sum_normalise
from reimpl.model_config import PRESETS, WIKITEXT103_WORDS, ModelConfig
from reimpl.ops import fast_weight_attention

__all__ = ["PRESETS", "WIKITEXT103_WORDS", "LanguageModel", "LayerState", "ModelConfig"]

INIT_STD = 0.02
EPS = 1e-6
"""Added to z·φ(q): DPFP's features can be disjoint, and Sec. 6.1 adds as much."""
DECAY_TEMPERATURE = 16.0
"""log α = log σ(·) / 16: gates start near 0.96 (gated linear attention, Yang et al. 2023)."""

LayerState = dict[str, Tensor]


class FastWeightAttention(nn.Module):
    """An update rule with φ and normalisation (Eq. 17-29), heads side by side.

    One projection gives q, k, v of every head and what its rule needs: β = σ(·) for all but the sum
    rule, a decay a head for ``gated_delta`` and one for each of d_dot features for ``kda``. The
    state is S ``[batch, heads, d_dot, d_head]`` and, with attention normalisation, z = Σ φ(k).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.phi = feature_map(config.feature_map)
        normalised = config.sum_normalisation or config.attention_normalisation != "none"
        if normalised and self.phi.signed:
            raise ConfigError(
                f"feature map {config.feature_map!r} has negative features, whose sum may be zero: "
                "neither sum nor attention normalisation is defined for it; switch both off"
            )
        d_dot = self.phi.d_dot(config.d_head)
        self.gates = {"sum": (0, 0), "gated_delta": (1, 1), "kda": (1, d_dot)}.get(
            config.rule, (1, 0)
        )
        each = 3 * config.d_head + sum(self.gates)
        self.project = nn.Linear(config.d_model, config.heads * each, bias=False)
        self.output = nn.Linear(config.heads * config.d_head, config.d_model, bias=False)

    def forward(
        self, x: Tensor, state: LayerState | None, last: bool = False
    ) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the state to go on from.

        With ``last`` only the last position is put out: ``[batch, 1, d_model]``.
        """
        c = self.config
        parts = self.project(x).unflatten(-1, (c.heads, -1))
        betas, decays = self.gates
        q, k, v, beta, decay = parts.split([c.d_head] * 3 + [betas, decays], dim=-1)
        if self.training:
            self.phi.redraw(c.d_head)
        phi_q, phi_k = self.phi(q), self.phi(k)
        if c.sum_normalisation:
            phi_q, phi_k = sum_normalise(phi_q), sum_normalise(phi_k)
        write = torch.sigmoid(beta[..., 0]) if betas else None
        y, state = self._attend(phi_q, phi_k, v, write, _log_decay(decay, c.rule), state or {})
        if last:
            y = y[:, -1:]
        if c.output_scale:
            y = y * c.d_head**-0.5
        return self.output(y.flatten(-2)), state

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        beta: Tensor | None,
        decay: Tensor | None,
        state: LayerState,
    ) -> tuple[Tensor, LayerState]:
        """Apply the rule and attention normalisation to φ(q), φ(k).

        The normalised delta rule, S + β k (v − Sᵀk / w)ᵀ with w = z·k (Eq. 26), is the plain one
        with β/w and w v in place of β and v, so it needs no code of its own. Where w is 0 no key
        written before overlaps this one, Sᵀk is 0 and any w will do.
        """
        c = self.config
        weights = None
        carried: LayerState = {}
        if c.attention_normalisation != "none":
            z = k.to(torch.promote_types(k.dtype, torch.float32)).cumsum(1)
            if "z" in state:
                z = z + state["z"][:, None]
            weights = (z * q).sum(-1, keepdim=True)
            carried["z"] = z[:, -1]
            if beta is not None and c.attention_normalisation == "both":
                w = ((z - k) * k).sum(-1)
                w = torch.where(w > 0, w, torch.ones_like(w))
                beta, v = beta / w, v * w.unsqueeze(-1)
        y, S = fast_weight_attention(
            q.to(v.dtype),
            k.to(v.dtype),
            v,
            beta,
            decay,
            rule=c.rule,
            initial_state=state.get("S"),
            output_final_state=True,
            backend=c.backend,
        )
        assert S is not None
        carried["S"] = S
        return y if weights is None else (y / (weights + EPS)).to(v.dtype), carried


def _log_decay(gates: Tensor, rule: str) -> Tensor | None:
    """Return log α ``[..., heads]`` (``[..., heads, d_dot]`` for ``kda``), None without gates."""
    if not gates.shape[-1]:
        return None
    decay = logsigmoid(gates) / DECAY_TEMPERATURE
    return decay if rule == "kda" else decay[..., 0]


class SoftmaxAttention(nn.Module):
    """Causal softmax attention; its state is the growing cache of keys and values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.heads * config.d_head
        self.project = nn.Linear(config.d_model, 3 * width, bias=False)
        self.output = nn.Linear(width, config.d_model, bias=False)

    def forward(
        self, x: Tensor, state: LayerState | None, last: bool = False
    ) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the cache to go on from.

        With ``last`` only the last position is put out: ``[batch, 1, d_model]``.
        """
        q, k, v = self.project(x).unflatten(-1, (self.config.heads, -1)).chunk(3, dim=-1)
        if state is not None:
            k, v = torch.cat([state["k"], k], 1), torch.cat([state["v"], v], 1)
        carried = {"k": k, "v": v}
        if last:
            q = q[:, -1:]
        y = _causal_attention(*(each.transpose(1, 2) for each in (q, k, v))).transpose(1, 2)
        return self.output(y.flatten(-2)), carried


def _causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend from the last positions: ``q`` ``[b, h, n, d]`` to ``k``, ``v`` ``[b, h, m, d]``."""
    n, m = q.shape[2], k.shape[2]
    if n == m:
        return scaled_dot_product_attention(q, k, v, is_causal=True)
    seen = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
    return scaled_dot_product_attention(q, k, v, attn_mask=None if n == 1 else seen)


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

    def forward(
        self, x: Tensor, state: LayerState | None, last: bool = False
    ) -> tuple[Tensor, LayerState]:
        """Map ``[batch, length, d_model]`` to the same shape and the layer's next state.

        With ``last`` only the last position is put out: ``[batch, 1, d_model]``.
        """
        y, state = self.attention(x, state, last)
        x = self.attention_norm((x[:, -1:] if last else x) + self.drop(y))
        y = self.down(self.drop(relu(self.up(x))))
        return self.ffn_norm(x + self.drop(y)), state


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
        self, words: Tensor, states: list[LayerState] | None = None, *, last: bool = False
    ) -> tuple[Tensor, list[LayerState]]:
        """Return hidden vectors ``[batch, length, d_model]`` and every layer's next state.

        With ``last`` only the last word's are computed in the last layer: ``[batch, 1, d_model]``.
        """
        x = self.embedding(words) * math.sqrt(self.config.d_model)
        if self.config.positions:
            x = x + sinusoids(words.shape[1], self.config.d_model).to(x)
        x, new_states = self.drop(x), []
        for i, layer in enumerate(self.layers):
            here = last and i == len(self.layers) - 1
            x, state = layer(x, None if states is None else states[i], here)
            new_states.append(state)
        return self.drop(x), new_states

    def loss(
        self, words: Tensor, targets: Tensor, states: list[LayerState] | None = None
    ) -> tuple[Tensor, list[LayerState]]:
        """Return −log p of each target ``[batch, length]`` in nats, and the next states."""
        h, states = self(words, states)
        return self.nats(h, targets), states

    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return −log p of ``targets`` ``[...]`` after ``hidden`` ``[..., d_model]``."""
        flat: Tensor = self.softmax(
            hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1), self.embedding.weight
        )
        return flat.view_as(targets)

    def redraw(self) -> None:
        """Draw the random features of every layer anew, from torch's global generator."""
        for layer in self.layers:
            if isinstance(layer.attention, FastWeightAttention):
                layer.attention.phi.redraw(self.config.d_head)

    @torch.no_grad()
    def generate(
        self, words: Tensor, count: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return ``words`` ``[batch, length]`` with ``count`` more, each drawn from the model.

        The prompt is read once; each further word costs the same and changes the state only (a
        softmax model's cache grows). Raises ConfigError for a model with positions: they are
        counted backward from the last word, so that each further word would change all before it.
        """
        if self.config.positions:
            raise ConfigError(
                "a model with positions counted backward cannot decode word by word; take one "
                "trained with positions=False"
            )
        was_training = self.training
        self.eval()
        h, states = self(words, last=True)
        for _ in range(count):
            chances = self.softmax.log_chances(h[:, -1], self.embedding.weight).exp()
            word = torch.multinomial(chances, 1, generator=generator)
            words = torch.cat([words, word], 1)
            h, states = self(word, states)
        self.train(was_training)
        return words


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
