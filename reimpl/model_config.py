"""Sizes and switches of the language model of Sec. 6.3, without torch.

Where the paper's text and the authors' released code differ, a switch says which; the defaults are
the text's, and ``as_released`` gives the code's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.errors import ConfigError

WIKITEXT103_WORDS = 267_735

ModelRule = Literal["softmax", "sum", "gated_sum", "delta", "gated_delta", "kda"]
MODEL_RULES: tuple[ModelRule, ...] = get_args(ModelRule)
AttentionNormalisation = Literal["none", "output", "both"]


class ModelConfig(BaseModel):
    """Sizes and choices of one model; the defaults are those that both presets share.

    - ``rule``: how fast weights are written; ``softmax`` is the ordinary transformer.
    - ``sum_normalisation``: φ(q) and φ(k) are divided by their sums (Eq. 29).
    - ``attention_normalisation``: ``both`` divides what the delta rule reads before a write and
      what is put out by z·φ(k) and z·φ(q) (Eq. 26-28; for the sum rule the latter, Eq. 19);
      ``output`` divides only what is put out, as the released code does.
    - ``output_scale``: the output is multiplied by d_head^−½, as in the released code and not in
      Eq. 25.
    - ``positions``: sinusoidal encodings are added to the embeddings, counted backward.
    - ``backend``: of ``fast_weight_attention``; ``reference`` is the recurrence in Python.
    - ``cutoffs``: the first word ids of the rare clusters of the adaptive softmax.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    d_model: int = Field(ge=1)
    d_head: int = Field(ge=1)
    segment: int = Field(ge=1, description="words in a training segment")
    layers: int = Field(default=16, ge=1)
    heads: int = Field(default=8, ge=1)
    d_ffn: int = Field(default=2048, ge=1)
    rule: ModelRule = "delta"
    feature_map: str = "elu1"
    sum_normalisation: bool = True
    attention_normalisation: AttentionNormalisation = "none"
    output_scale: bool = False
    positions: bool = True
    dropout: float = Field(default=0.1, ge=0, lt=1)
    backend: Literal["auto", "reference", "chunk", "triton"] = "auto"
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
        if self.attention_normalisation != "none" and self.rule not in ("sum", "delta", "softmax"):
            raise ConfigError(
                f"attention normalisation is defined for the sum and delta rules, not for "
                f"{self.rule!r}, which forgets what z still counts; use 'none'"
            )
        return self

    def changed(self, **changes: Any) -> ModelConfig:
        """Return a copy with other values, validated."""
        return ModelConfig.model_validate(self.model_dump() | changes)

    def as_released(self) -> ModelConfig:
        """Return the choices of the authors' released training scripts.

        They leave attention normalisation of the output on and scale the output (IDSIA/lmtool-fwp,
        as the curated record has it); a softmax transformer has neither choice.
        """
        if self.rule == "softmax":
            return self
        return self.changed(attention_normalisation="output", output_scale=True)


PRESETS = {
    "small": ModelConfig(d_model=128, d_head=16, segment=256),
    "medium": ModelConfig(d_model=256, d_head=32, segment=384),
}
