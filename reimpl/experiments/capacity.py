"""Fig. 2: how many associations a sum of outer products holds, by feature map (setting 1)."""

from __future__ import annotations

from pathlib import Path

from records.models import Metric
from reimpl.experiments.base import Experiment, Progress
from reimpl.experiments.points import RetrievalPoint, retrieval_points

MAPS = ("elu1", "dpfp1", "dpfp2", "dpfp3", "favor64", "favor128", "favor512")
MODELS = (("softmax", "softmax"), *((phi, "sum") for phi in MAPS))
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {
        "softmax": (20, 40, 60),
        "elu1": (20, 40, 60, 80),
        "dpfp1": (20, 40, 60, 100),
        "dpfp2": (20, 60),
        "dpfp3": (20, 60),
        "favor64": (20,),
    },
    "laptop": {phi: (20, 40, 60, 80, 100, 140, 200) for phi, _ in MODELS},
    "paper": {phi: tuple(range(20, 601, 20)) for phi, _ in MODELS},
}


def points(scale: str, seeds: int | None, stream: str | None) -> list[RetrievalPoint]:
    """Return the points of ``scale``, in the order of the figure's legend."""
    sizes = SIZES[scale]
    models = [(phi, rule, sizes[phi]) for phi, rule in MODELS if phi in sizes]
    return retrieval_points("capacity", models, seeds, stream)


def run(point: RetrievalPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train the point's model and return its evaluation losses."""
    from reimpl.experiments.retrieval import measure

    return measure(point, checkpoint_dir, progress)


EXPERIMENT = Experiment(
    name="capacity",
    description="Fig. 2: retrieval loss against the number of associations, by feature map",
    list_points=points,
    measure=run,
)
