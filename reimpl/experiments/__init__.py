"""The experiments by name: which points each runs, and which claims these measure.

Importing this package does not import torch; running a point does.
"""

from __future__ import annotations

from records.errors import UnknownExperiment
from reimpl.experiments import capacity, cost, exact, language_model, lineage, pareto, update_rule
from reimpl.experiments.base import SCALES, STREAMS, Experiment, Point

__all__ = ["SCALES", "STREAMS", "Experiment", "Point", "get", "names"]

_ALL = (
    exact.EXPERIMENT,
    lineage.EXPERIMENT,
    capacity.EXPERIMENT,
    update_rule.EXPERIMENT,
    pareto.EXPERIMENT,
    language_model.EXPERIMENT,
    cost.EXPERIMENT,
)
_EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}


def names() -> tuple[str, ...]:
    """Return the names of all experiments, the quickest first."""
    return tuple(_EXPERIMENTS)


def get(name: str) -> Experiment:
    """Return the experiment called ``name``; raises UnknownExperiment, listing the known ones."""
    if name not in _EXPERIMENTS:
        raise UnknownExperiment(f"unknown experiment {name!r}; known: {', '.join(names())}")
    return _EXPERIMENTS[name]
