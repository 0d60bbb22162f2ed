"""One point of the retrieval experiments: the model, the task and the training, without torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from records.errors import ConfigError
from reimpl.experiments.base import AUTHORS_SEED, PAPER_ID, Point

Setting = Literal["capacity", "update-rule"]

_TEXT_CLAIMS = {
    ("capacity", "elu1", "sum", 60): "errs-elu1",
    ("capacity", "dpfp1", "sum", 60): "holds-dpfp1",
    ("update-rule", "dpfp1", "sum", 20): "sum-fails",
    ("update-rule", "dpfp1", "delta", 20): "delta-solves",
}


class RetrievalPoint(Point):
    """One model on one number of symbols S.

    ``feature_map`` is ``softmax`` or a name that ``feature_map()`` knows; ``rule`` is ``softmax``,
    ``sum``, ``fwm`` or ``delta``. The defaults are the paper's protocol.
    """

    setting: Setting
    feature_map: str
    rule: Literal["softmax", "sum", "fwm", "delta"]
    S: int = Field(ge=2, le=10_000)
    stream: Literal["authors", "ours"] = "authors"
    d_key: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    batch: int = Field(default=32, ge=1)
    eval_every: int = Field(default=100, ge=1)
    eval_sequences: int = Field(default=20, ge=1)
    patience: int = Field(default=10, ge=0)
    goal: float = Field(default=1e-3, ge=0)
    max_steps: int = Field(default=100_000, ge=1)

    @model_validator(mode="after")
    def _fits(self) -> RetrievalPoint:
        if (self.rule == "softmax") != (self.feature_map == "softmax"):
            raise ConfigError(
                f"feature map {self.feature_map!r} and rule {self.rule!r} do not go together: "
                "softmax attention has neither"
            )
        if self.stream == "authors" and self.seed != AUTHORS_SEED:
            raise ConfigError(
                f"the authors' stream has seed {AUTHORS_SEED} only, got {self.seed}; "
                "use the stream 'ours'"
            )
        return self

    @property
    def replace(self) -> bool:
        """Whether keys repeat within a sequence (setting 2)."""
        return self.setting == "update-rule"

    @property
    def length(self) -> int:
        """Number of writes L in a training sequence: S without and 2S with replacement."""
        return 2 * self.S if self.replace else self.S

    @property
    def d_embedding(self) -> int:
        """Size of a key embedding, for 2S symbols."""
        return int(2 * self.S * 1.1)

    @property
    def replays(self) -> bool:
        """Whether the run draws exactly what the authors drew.

        FAVOR+ does not: its features came from a generator on their GPU.
        """
        return self.stream == "authors" and not self.feature_map.startswith("favor")

    @property
    def claim_id(self) -> str:
        """The claim about this point of a figure."""
        return f"{PAPER_ID}/{self.setting}/{self.feature_map}-{self.rule}-S{self.S}"

    @property
    def text_claim_id(self) -> str | None:
        """The claim of the paper's text that the best evaluation loss of this point decides."""
        name = _TEXT_CLAIMS.get((self.setting, self.feature_map, self.rule, self.S))
        return f"{PAPER_ID}/{self.setting}/{name}" if name else None

    @property
    def follows_protocol(self) -> bool:
        """Whether the training settings are the paper's."""
        names = ("setting", "feature_map", "rule", "S", "stream", "seed")
        chosen = {name: getattr(self, name) for name in names}
        return self == self.model_validate(chosen | training(self.feature_map, self.rule))

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"{self.setting} {self.feature_map}-{self.rule} S={self.S} seed {self.seed}"


def training(phi: str, rule: str) -> dict[str, float]:
    """Return where a model's training differs from the default (fwm with tanh)."""
    return {"learning_rate": 1e-4, "batch": 128} if (phi, rule) == ("tanh", "fwm") else {}
