"""The record's lineage claim: the delta rule of 2021 is the mechanism inside its descendants.

Code that others published for a descendant runs with its gate open (a decay of 0) and must compute
Eq. 24; with the gate partly closed it must not. Each descendant is one point, so that a package
that is not there fails the points on its code and no others.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, get_args

from records.models import Metric
from reimpl.experiments.base import PAPER_ID, Experiment, Point, Progress

Subject = Literal["equations", "delta-rule", "gated-deltanet", "kda", "qwen3-next"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)

FLA, TRANSFORMERS = "fla-core", "transformers"
PACKAGES: dict[Subject, str] = {
    "delta-rule": FLA,
    "gated-deltanet": FLA,
    "kda": FLA,
    "qwen3-next": TRANSFORMERS,
}
"""The distribution that holds the code of a subject; ``equations`` are those of reimpl.rules."""


class LineagePoint(Point):
    """One subject; ``seed`` draws the inputs, ``code`` names whose code runs and its version."""

    subject: Subject
    code: str

    @property
    def label(self) -> str:
        """A few words for a progress line."""
        return f"lineage {self.subject} seed {self.seed}"


def installed_version(package: str) -> str | None:
    """Return the version of an installed distribution, without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def claim_id(slug: str) -> str:
    """Return the id of the claim that the comparison ``slug`` measures."""
    return f"{PAPER_ID}/lineage/{slug}"


def points(scale: str, seeds: int | None, stream: str | None) -> list[LineagePoint]:
    """Return all subjects for each seed; every scale runs the same, and no stream is the authors'.

    The points hold the versions that are installed now: another version is another run.
    """
    return [
        LineagePoint(subject=subject, code=_code(subject), seed=seed)
        for seed in range(1, (seeds or 1) + 1)
        for subject in SUBJECTS
    ]


def _code(subject: Subject) -> str:
    package = PACKAGES.get(subject)
    if package is None:
        return "reimpl.rules"
    return f"{package} {installed_version(package) or '(not installed)'}"


def run(point: LineagePoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Compare every form of the subject with Eq. 24; raises RunError where its code is missing."""
    from reimpl.experiments.lineage_forms import measure

    measured = measure(point.subject, point.seed)
    progress(f"{point.label}: {len(measured)} numbers measured")
    return tuple(
        Metric(name=name, value=value, claim_id=claim_id(slug))
        for slug, (name, value) in measured.items()
    )


EXPERIMENT = Experiment(
    name="lineage",
    description="Eq. 24 inside the published code of Gated DeltaNet, KDA and Qwen3-Next",
    list_points=points,
    measure=run,
)
