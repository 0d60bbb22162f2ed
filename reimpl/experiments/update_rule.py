"""Fig. 3 and its appendix: replacing values, by update rule (setting 2)."""

from __future__ import annotations

from pathlib import Path

from records.models import Metric
from reimpl.experiments.base import Experiment, Progress
from reimpl.experiments.points import RetrievalPoint, retrieval_points

MODELS: tuple[tuple[str, str], ...] = (
    ("dpfp1", "sum"),
    ("tanh", "fwm"),
    ("dpfp1", "fwm"),
    ("dpfp1", "delta"),
    ("dpfp2", "delta"),
    ("elu1", "delta"),
    ("favor64", "delta"),
    ("favor128", "delta"),
)
SIZES: dict[str, dict[tuple[str, str], tuple[int, ...]]] = {
    "quick": {
        ("dpfp1", "sum"): (20,),
        ("dpfp1", "delta"): (20,),
        ("dpfp2", "delta"): (20,),
        ("elu1", "delta"): (20,),
    },
    "laptop": dict.fromkeys(MODELS, (20, 40)),
    "paper": dict.fromkeys(MODELS, tuple(range(20, 201, 20))),
}


def points(scale: str, seeds: int | None, stream: str | None) -> list[RetrievalPoint]:
    """Return the points of ``scale``, in the order of the figure's legend."""
    sizes = SIZES[scale]
    models = [(model[0], model[1], sizes[model]) for model in MODELS if model in sizes]
    return retrieval_points("update-rule", models, seeds, stream)


def run(point: RetrievalPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train the point's model and return its evaluation losses."""
    from reimpl.experiments.retrieval import measure

    return measure(point, checkpoint_dir, progress)


EXPERIMENT = Experiment(
    name="update-rule",
    description="Fig. 3: retrieval loss where keys are written twice, by update rule",
    list_points=points,
    measure=run,
)
