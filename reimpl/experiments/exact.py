"""The paper's claims that need no training, carried out in float64 on fresh random inputs.

Each group of checks is one point; its numbers carry the claim ids of ``claim-exact.toml``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal, get_args

from records.models import Metric
from reimpl.experiments.base import PAPER_ID, Experiment, Point, Progress

Group = Literal["equivalence", "capacity", "feature_maps", "normalisation", "gated_rule", "sizes"]
GROUPS: tuple[Group, ...] = get_args(Group)

Measured = dict[str, tuple[str, float]]
"""Claim slug to (metric name, value)."""


class ExactPoint(Point):
    """One group of checks; ``seed`` draws the random inputs."""

    group: Group

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"exact {self.group} seed {self.seed}"


def claim_id(slug: str) -> str:
    """Return the id of the claim that the check ``slug`` measures."""
    return f"{PAPER_ID}/exact/{slug}"


def points(scale: str, seeds: int | None, stream: str | None) -> list[ExactPoint]:
    """Return all groups for each seed; every scale runs the same, and no stream is the authors'."""
    return [
        ExactPoint(group=group, seed=seed)
        for seed in range(1, (seeds or 1) + 1)
        for group in GROUPS
    ]


def run(point: ExactPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Carry out the checks of the point's group; they are short and keep no checkpoint."""
    module = import_module(f"reimpl.experiments.exact_{point.group}")
    measured: Measured = module.measure(point.seed)
    progress(f"{point.label}: {len(measured)} numbers measured")
    return tuple(
        Metric(name=name, value=value, claim_id=claim_id(slug))
        for slug, (name, value) in measured.items()
    )


EXPERIMENT = Experiment(
    name="exact",
    description="Secs. 3-5, App. A and B, Table 4: equivalences, capacities and sizes, untrained",
    list_points=points,
    measure=run,
)
