"""One language model of Tables 2 to 5: its row, its sizes and its training, without torch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from records.errors import ConfigError
from reimpl.experiments.base import PAPER_ID, Point
from reimpl.model_config import PRESETS, ModelConfig
from reimpl.training_config import (
    PAPER_TRAINING,
    RELEASED_SMALL_DELTA_BATCH,
    TrainingConfig,
)

Preset = Literal["quick", "laptop", "small", "medium"]

KJV_WORDS = 6_976
"""Word types of the King James text with its held-out books, rare words being one."""


class Row(BaseModel):
    """A row of a table: what it changes in the model, and its claims by preset.

    ``claims`` are ids without the paper and the split; the laptop and quick scales stand for the
    first preset of each table. ``m`` is FAVOR+'s number of features by preset.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    changes: dict[str, Any] = Field(default_factory=dict)
    claims: dict[Literal["small", "medium"], tuple[str, ...]]
    m: dict[Literal["small", "medium"], int] | None = None
    carry: bool = False


SUM: dict[str, Any] = {
    "rule": "sum",
    "sum_normalisation": False,
    "attention_normalisation": "both",
}
"""The linear transformer: attention normalisation, Eq. 17-19."""
CARRIED: dict[str, Any] = {"positions": False, "sum_normalisation": True}
PERFORMER_M: dict[Literal["small", "medium"], int] = {"small": 8, "medium": 16}


def _both(name: str, *more: str) -> dict[Literal["small", "medium"], tuple[str, ...]]:
    """Return the claims of a row of Table 2, which has both sizes."""
    return {
        "small": (f"table2/{name}-small", *(m for m in more if "small" in m)),
        "medium": (f"table2/{name}-medium", *(m for m in more if "medium" in m)),
    }


def _small(name: str) -> dict[Literal["small", "medium"], tuple[str, ...]]:
    return {"small": (f"table5/{name}-small-d-dot-256",)}


def _medium(name: str) -> dict[Literal["small", "medium"], tuple[str, ...]]:
    return {"medium": (name,)}


def _table3(positions: bool, normalised: bool) -> str:
    names = {True: "yes", False: "no"}
    return f"table3/delta-network-medium-pos-{names[positions]}-attn-norm-{names[normalised]}"


ROWS: dict[str, Row] = {
    "transformer": Row(
        changes={"rule": "softmax"},
        claims=_both("transformer", "table5/transformer-small-d-dot-256"),
    ),
    "linear-transformer-sum": Row(changes=SUM, claims=_both("linear-transformer-sum")),
    "delta-network": Row(claims=_both("delta-network", _table3(True, False))),
    "performer-sum": Row(changes=SUM, claims=_both("performer-sum"), m=PERFORMER_M),
    "performer-delta": Row(claims=_both("performer-delta"), m=PERFORMER_M),
    "delta-network-attn-norm": Row(
        changes={"attention_normalisation": "both"}, claims=_medium(_table3(True, True))
    ),
    "delta-network-no-pos": Row(
        changes={"positions": False}, claims=_medium(_table3(False, False))
    ),
    "delta-network-no-pos-attn-norm": Row(
        changes={"positions": False, "attention_normalisation": "both"},
        claims=_medium(_table3(False, True)),
    ),
    "carried-sum": Row(
        changes={"rule": "sum"} | CARRIED,
        claims=_medium("table4/linear-transformer-sum-medium-state-m-0.13"),
        carry=True,
    ),
    "carried-delta": Row(
        changes=CARRIED,
        claims=_medium("table4/delta-network-medium-state-m-0.13"),
        carry=True,
    ),
    "performer-16-sum": Row(changes=SUM, claims=_small("performer-m-16-sum"), m={"small": 16}),
    "performer-16-delta": Row(claims=_small("performer-m-16-delta"), m={"small": 16}),
    "dpfp-1-sum": Row(changes=SUM | {"feature_map": "dpfp1"}, claims=_small("dpfp-nu-1-sum")),
    "dpfp-1-delta": Row(changes={"feature_map": "dpfp1"}, claims=_small("dpfp-nu-1-delta")),
    "delta-without-sum-normalisation": Row(
        changes={"sum_normalisation": False},
        claims={"small": ("language-model/delta-needs-sum-normalisation",)},
    ),
}
TABLES = (2, 3, 4, 5)

REDUCED_MODELS: dict[Preset, dict[str, Any]] = {
    "quick": {"d_model": 32, "heads": 2, "layers": 1, "d_ffn": 64, "segment": 32},
    "laptop": {"d_model": 128, "heads": 8, "layers": 2, "d_ffn": 512, "segment": 256},
}
REDUCED_CUTOFFS = (500, 2_000)
REDUCED_TRAINING: dict[Preset, TrainingConfig] = {
    "quick": TrainingConfig(
        batch=8, steps=40, learning_rate=3e-3, warmup=10, evaluate_every=20, checkpoint_every=20
    ),
    "laptop": TrainingConfig(
        batch=16, steps=900, learning_rate=3e-3, warmup=90, evaluate_every=90, checkpoint_every=90
    ),
}
REDUCED_EVAL_WORDS: dict[Preset, int] = {"quick": 200, "laptop": 6_000}


class LanguageModelPoint(Point):
    """One row in one size, trained and evaluated with one seed.

    ``eval_words`` is how many words of the validation and the test text are predicted, from their
    start; None for all.
    """

    row: str
    preset: Preset
    corpus: Literal["kjv", "wikitext-103"]
    model: ModelConfig
    training: TrainingConfig
    eval_words: int | None = Field(default=None, ge=1)
    released: bool = False

    @model_validator(mode="after")
    def _is_a_row(self) -> LanguageModelPoint:
        if self.row not in ROWS:
            raise ConfigError(f"no row {self.row!r}; known: {', '.join(ROWS)}")
        return self

    @property
    def is_paper_scale(self) -> bool:
        """Whether model, text and training are the paper's."""
        return self.preset in PAPER_TRAINING

    @property
    def claims(self) -> tuple[str, ...]:
        """Return the ids of the row's claims, without the split."""
        claims = ROWS[self.row].claims
        if self.preset in ("small", "medium"):
            names = claims.get(self.preset, ())
        else:
            first: dict[str, str] = {}
            for size in ("small", "medium"):
                for name in claims.get(size, ()):
                    first.setdefault(name.split("/")[0], name)
            names = tuple(first.values())
        return tuple(f"{PAPER_ID}/{name}" for name in names)

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the claims that the run decides; what is quick is too short for any."""
        return () if self.preset == "quick" else self.claims

    @property
    def tables(self) -> tuple[int, ...]:
        """Numbers of the tables that have the row."""
        return tuple(n for n in TABLES if any(f"/table{n}/" in claim for claim in self.claims))

    @property
    def line(self) -> str:
        """The row, with the size where it is one of the paper's."""
        return f"{self.row}-{self.preset}" if self.is_paper_scale else self.row

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        released = ", as released" if self.released else ""
        return f"language-model {self.line}{released} seed {self.seed}"

    def as_released(self) -> LanguageModelPoint:
        """Return the point as the authors' released scripts would run it."""
        training = self.training
        if self.preset == "small" and self.model.rule == "delta":
            training = training.model_copy(update={"batch": RELEASED_SMALL_DELTA_BATCH})
        return self.model_copy(
            update={"model": self.model.as_released(), "training": training, "released": True}
        )


def point(row: str, preset: Preset, seed: int) -> LanguageModelPoint:
    """Return a row in one size."""
    how = ROWS[row]
    changes = dict(how.changes)
    if how.m is not None:
        changes["feature_map"] = f"favor{how.m['medium' if preset == 'medium' else 'small']}"
    values: dict[str, Any] = {"row": row, "preset": preset, "seed": seed}
    if preset == "small" or preset == "medium":
        model, training = PRESETS[preset].changed(**changes), PAPER_TRAINING[preset]
        values |= {"corpus": "wikitext-103"}
    else:
        sizes = PRESETS["small"].changed(
            **REDUCED_MODELS[preset], vocabulary=KJV_WORDS, cutoffs=REDUCED_CUTOFFS
        )
        model, training = sizes.changed(**changes), REDUCED_TRAINING[preset]
        values |= {"corpus": "kjv", "eval_words": REDUCED_EVAL_WORDS[preset]}
    if how.carry:
        training = training.model_copy(update={"carry": True})
    return LanguageModelPoint(model=model, training=training, **values)
