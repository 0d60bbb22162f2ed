"""What language models cost to train (Sec. 6.3, App. D.3): words per second and memory.

The paper measured on a V100; here all models are measured in turns on this machine, on a GPU where
there is one. Their ratios are held against the paper's where the machine is a GPU with room for the
paper's batch; those of a CPU are shown beside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from records.models import Metric, Scale
from reimpl.experiments.base import PAPER_ID, Experiment, Point, Progress
from reimpl.experiments.language_model_point import ROWS
from reimpl.model_config import PRESETS, ModelConfig
from reimpl.training_config import PAPER_TRAINING

MODELS: dict[str, dict[str, Any]] = {
    "transformer": ROWS["transformer"].changes,
    "sum": ROWS["linear-transformer-sum"].changes,
    "delta": ROWS["delta-network"].changes,
    "performer-delta": ROWS["performer-16-delta"].changes | {"feature_map": "favor16"},
    "dpfp-delta": ROWS["dpfp-1-delta"].changes,
}
"""The small models whose cost the paper states."""
SPEED_RATIOS = {
    "delta-to-sum": ("delta", "sum"),
    "transformer-to-sum": ("transformer", "sum"),
    "performer-to-dpfp": ("performer-delta", "dpfp-delta"),
}
MEMORY_RATIOS = {"delta-to-sum": ("delta", "sum"), "transformer-to-sum": ("transformer", "sum")}


class CostPoint(Point):
    """The paper's small models, a training step of each in ``rounds`` turns.

    ``batch`` segments; ``layers`` and ``vocabulary`` are the paper's except at the quick scale.
    """

    batch: int = Field(default=PAPER_TRAINING["small"].batch, ge=1)
    rounds: int = Field(default=5, ge=1)
    layers: int = Field(default=16, ge=1)
    small_vocabulary: bool = False

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"language-model-cost batch {self.batch} seed {self.seed}"

    @property
    def is_whole(self) -> bool:
        """Whether the models are the paper's."""
        return self.layers == PRESETS["small"].layers and not self.small_vocabulary

    def model(self, name: str) -> ModelConfig:
        """Return the model called ``name`` in ``MODELS``."""
        sizes: dict[str, Any] = {"layers": self.layers}
        if self.small_vocabulary:
            sizes |= {"vocabulary": 2_000, "cutoffs": (500,)}
        return PRESETS["small"].changed(**(MODELS[name] | sizes))

    def claim_id(self, name: str) -> str | None:
        """Return the id of a claim, where the models are the paper's."""
        return f"{PAPER_ID}/cost/{name}" if self.is_whole else None

    def scale(self, device: str) -> Scale:
        """Return ``paper`` for the paper's models and batch on a GPU: cost depends on them all."""
        whole = self.is_whole and self.batch == PAPER_TRAINING["small"].batch
        return "paper" if whole and device == "cuda" else "reduced"


def points(scale: str, seeds: int | None, stream: str | None) -> list[CostPoint]:
    """Return a point for each seed: the paper's batch, 2 segments on a laptop, tiny models."""
    sizes: dict[str, Any] = {
        "paper": {},
        "laptop": {"batch": 2},
        "quick": {"batch": 2, "layers": 1, "rounds": 2, "small_vocabulary": True},
    }[scale]
    return [CostPoint(seed=seed, **sizes) for seed in range(1, (seeds or 1) + 1)]


def run(point: CostPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Measure the models in turns."""
    from reimpl.experiments.cost_run import measure

    return measure(point, progress)


def _sources(_: CostPoint) -> tuple[str, ...]:
    return ("reimpl.experiments.cost_run",)


EXPERIMENT = Experiment(
    name="language-model-cost",
    description="Words per second and memory of the language models, in turns (Sec. 6.3)",
    list_points=points,
    measure=run,
    sources=_sources,
    cost=lambda point: 1e12 if point.is_whole else 1e9,
)
