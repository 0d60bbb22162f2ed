"""How a language model is trained, without torch."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.errors import ConfigError


class TrainingConfig(BaseModel):
    """Adam with a linear warm-up and a cosine to zero (Sec. 6.3); the defaults are the paper's.

    - ``batch``: streams that the text is cut into, over all processes.
    - ``accumulate``: parts of a batch that are computed one after the other, to save memory.
    - ``carry``: the state goes on from segment to segment, gradients stop there (Table 4).
    - ``evaluate_every``, ``checkpoint_every``: in steps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int = Field(ge=1)
    steps: int = Field(ge=1)
    learning_rate: float = Field(default=2.5e-4, gt=0)
    warmup: int = Field(default=2_000, ge=0)
    clip: float = Field(default=0.25, gt=0)
    carry: bool = False
    accumulate: int = Field(default=1, ge=1)
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    evaluate_every: int = Field(default=4_000, ge=1)
    checkpoint_every: int = Field(default=4_000, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> TrainingConfig:
        if self.batch % self.accumulate:
            raise ConfigError(
                f"a batch of {self.batch} streams cannot be computed in {self.accumulate} equal "
                "parts; let accumulate divide the batch"
            )
        return self

    def rate_factor(self, step: int) -> float:
        """Return the learning rate of step 0, 1, … as a share of the highest."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        return (1 + math.cos(math.pi * min(1.0, step / self.steps))) / 2


PAPER_TRAINING = {
    "small": TrainingConfig(batch=96, steps=500_000),
    "medium": TrainingConfig(batch=56, steps=400_000),
}
RELEASED_SMALL_DELTA_BATCH = 8
"""The batch of the authors' script for the small delta model, where the text says 96."""
