"""One point of the recall experiment (MQAR): task, model, training and state size, without torch.

The defaults are the grid that Zoology's program trains DeltaNet on (Arora et al. 2023 and the
configuration ``original_mqar_configs`` of their repository); a smaller scale says what it changes.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.errors import ConfigError
from reimpl.experiments.base import PAPER_ID, Point

Mixer = Literal["softmax", "sum", "gated_sum", "delta", "gated_delta"]
MIXERS: tuple[Mixer, ...] = get_args(Mixer)

FLOAT_BYTES = 4
CONVOLUTION = 3
"""Taps of the convolution layer before the mixer; its state is that many inputs."""

_ZOOLOGY_BYTES = (8_960, 34_304, 134_144)
CLAIMED: dict[Mixer, tuple[int, ...]] = {
    "sum": _ZOOLOGY_BYTES,
    "delta": _ZOOLOGY_BYTES,
    "gated_delta": (17_152, 67_072),
}
"""Bytes of state at which there is a claim, by mixer."""


class Segment(BaseModel):
    """``examples`` sequences of ``length`` symbols with ``pairs`` key-value pairs each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: int = Field(ge=4)
    pairs: int = Field(ge=1)
    examples: int = Field(ge=1)

    @model_validator(mode="after")
    def _fits(self) -> Segment:
        if self.length % 2 or self.length < 4 * self.pairs:
            raise ConfigError(
                f"{self.pairs} pairs and their queries need an even length of at least "
                f"{4 * self.pairs}, got {self.length}; lower the pairs or take longer sequences"
            )
        return self


def segments(*sizes: tuple[int, int, int]) -> tuple[Segment, ...]:
    """Return a segment for each (length, pairs, examples)."""
    return tuple(Segment(length=L, pairs=n, examples=count) for L, n, count in sizes)


ZOOLOGY_TRAINING = segments(
    (64, 4, 100_000), (128, 8, 20_000), (256, 16, 20_000), (256, 32, 20_000), (256, 64, 20_000)
)
ZOOLOGY_TEST = segments(
    *((64, n, 1_000) for n in (4, 8, 16)), *((4 * n, n, 1_000) for n in (32, 64, 128, 256))
)
LEARNING_RATES = (1e-3, 10**-2.5, 1e-2, 10**-1.5)


class MqarPoint(Point):
    """One mixer with one state size; all its learning rates are trained, the best one counts.

    ``mixer_taps`` is the width of the convolutions on q, k and v inside a fast-weight mixer (0 for
    none; softmax attention has none). Zoology does not count what these remember as state.
    """

    mixer: Mixer
    d_model: int = Field(default=64, ge=1)
    heads: int = Field(default=2, ge=1)
    d_key: int = Field(default=32, ge=1)
    d_value: int = Field(default=32, ge=1)
    mixer_taps: int = Field(default=4, ge=0)
    vocabulary: int = Field(default=8_192, ge=8)
    training: tuple[Segment, ...] = Field(default=ZOOLOGY_TRAINING, min_length=1)
    test: tuple[Segment, ...] = Field(default=ZOOLOGY_TEST, min_length=1)
    learning_rates: tuple[float, ...] = Field(default=LEARNING_RATES, min_length=1)
    epochs: int = Field(default=32, ge=1)
    batch: int = Field(default=256, ge=1)
    weight_decay: float = Field(default=0.1, ge=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    goal: float = Field(default=0.99, gt=0)
    power: float = Field(default=0.01, gt=0)

    @model_validator(mode="after")
    def _fits(self) -> MqarPoint:
        most = max(segment.pairs for segment in self.training + self.test)
        if most > self.vocabulary // 2 - 1:
            raise ConfigError(
                f"{most} distinct keys do not fit in half a vocabulary of {self.vocabulary}; "
                f"take at least {2 * (most + 1)} symbols"
            )
        if any(rate <= 0 for rate in self.learning_rates):
            raise ConfigError(f"learning rates are positive, got {self.learning_rates}")
        return self

    @property
    def mixer_bytes(self) -> int:
        """Bytes that the mixer carries from one position to the next.

        A fast weight matrix a head, 4·H·d_key·d_value, whatever the length; for softmax attention
        the keys and values of the longest test sequence, 4·H·(d_key + d_value)·length.
        """
        if self.mixer == "softmax":
            longest = max(segment.length for segment in self.test)
            return FLOAT_BYTES * self.heads * (self.d_key + self.d_value) * longest
        return FLOAT_BYTES * self.heads * self.d_key * self.d_value

    @property
    def state_bytes(self) -> int:
        """Bytes of state of the model: the mixer's, and 4·3·d_model of the convolution layer."""
        return self.mixer_bytes + FLOAT_BYTES * CONVOLUTION * self.d_model

    @property
    def line(self) -> str:
        """The line of the figure that the point is on: its mixer."""
        return self.mixer.replace("_", "-")

    @property
    def size(self) -> int:
        """The point's place on the axis of the figure: its bytes of state."""
        return self.state_bytes

    @property
    def claim_id(self) -> str | None:
        """The claim about this mixer at this state size, where there is one."""
        if self.state_bytes not in CLAIMED.get(self.mixer, ()):
            return None
        return f"{PAPER_ID}/pareto/{self.line}-B{self.state_bytes}"

    @property
    def follows_protocol(self) -> bool:
        """Whether task and training are Zoology's; the model's sizes may be any."""
        sizes = {"mixer", "d_model", "heads", "d_key", "d_value", "seed"}
        chosen = {name: getattr(self, name) for name in sizes}
        return self == self.model_validate(chosen)

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"pareto {self.line} {self.state_bytes:,} B seed {self.seed}"
