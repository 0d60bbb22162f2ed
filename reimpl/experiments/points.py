"""The points of the retrieval experiments, and what these experiments share, without torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from records.models import Metric
from reimpl.experiments.base import Experiment, Progress, seeds_and_stream
from reimpl.experiments.retrieval_point import RetrievalPoint, Setting, training

Model = tuple[str, str]
"""Feature map and rule."""
Sizes = Mapping[Model, Iterable[int]]
"""All S of each model, in the order of the figure's legend."""


def retrieval_points(
    setting: Setting, sizes: Sizes, seeds: int | None, stream: str | None
) -> list[RetrievalPoint]:
    """Return a point for each seed, model and S, in this order."""
    chosen, stream = seeds_and_stream(seeds, stream)
    return [
        RetrievalPoint.model_validate(
            {
                "setting": setting,
                "feature_map": phi,
                "rule": rule,
                "S": S,
                "seed": seed,
                "stream": stream,
                **training(phi, rule),
            }
        )
        for seed in chosen
        for (phi, rule), each_S in sizes.items()
        for S in each_S
    ]


def retrieval_experiment(
    setting: Setting, description: str, sizes: Mapping[str, Sizes]
) -> Experiment:
    """Return the experiment that trains the models of ``sizes[scale]``, named as its setting."""

    def points(scale: str, seeds: int | None, stream: str | None) -> list[RetrievalPoint]:
        return retrieval_points(setting, sizes[scale], seeds, stream)

    return Experiment(
        name=setting,
        description=description,
        list_points=points,
        measure=_train,
        sources=_sources,
        cost=_cost,
    )


def _train(point: RetrievalPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train the point's model and return its evaluation losses.

    FAVOR+ features shrink below 1e-38 as S grows, where the processor takes ten times as long.
    Under the sum rule they are taken for 0, which its epsilon of 1e-6 cannot tell apart; under the
    delta rule they are kept, since 0 / 0 there is a result. The run's environment says which.
    """
    import torch

    torch.set_flush_denormal(point.rule == "sum")
    if point.rule == "fwm":
        from reimpl.experiments.retrieval_memory import measure
    else:
        from reimpl.experiments.retrieval import measure

    return measure(point, checkpoint_dir, progress)


def _sources(point: RetrievalPoint) -> tuple[str, ...]:
    name = "retrieval_memory" if point.rule == "fwm" else "retrieval"
    return (f"reimpl.experiments.{name}",)


_STEPS = {"softmax": 0.2, "sum": 1.0, "delta": 1.5, "fwm": 15.0}
"""How many steps a rule's trainings take, compared with those of the sum rule."""


def _cost(point: RetrievalPoint) -> float:
    """Return about how long a point takes on one core, in no unit.

    A step's milliseconds come from what it computes. How many steps there will be is not known (the
    authors' logs have 100 to 36,000); that they grow as √S and differ by rule is fitted to the
    seconds of 212 points (quartiles 0.6 to 1.8 of the median, 5 % and 95 % 0.2 and 6).
    """
    tables = 1e-5 * point.S**2
    per_write = {"softmax": 1e-4, "sum": 4e-4, "delta": 6e-4, "fwm": 8e-5 * point.S}[point.rule]
    step = 0.5 + tables + per_write * point.batch * point.length * 0.7
    return step * math.sqrt(point.S) * _STEPS[point.rule]
