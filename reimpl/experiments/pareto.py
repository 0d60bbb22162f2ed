"""Recall against state size (MQAR): does the delta rule recall more at equal bytes of state?

Scales:

- ``paper``: Zoology's task, training and sizes, d_model 64, 128, 256; for a GPU.
- ``laptop``: the same definition, made small enough for two cores and half an hour. Smaller are
  the vocabulary (512 instead of 8,192), the sequences (64 and 128 symbols with 4 to 32 pairs
  instead of 64 to 256 with 4 to 64, tested up to 512 with 128 pairs instead of 1,024 with 256),
  the training (2,080 steps of 32 sequences in 10 epochs instead of 22,624 of 256 in 32), and the
  test (128 sequences a segment instead of 1,000). States are Zoology's two smaller ones and two
  below them.
- ``quick``: a few steps of every mixer, to see that it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records.models import Metric
from reimpl.experiments.base import Experiment, Progress
from reimpl.experiments.mqar_point import Mixer, MqarPoint, segments

Size = tuple[int, int, int]
"""d_model, and d_key and d_value of each of two heads."""

SMALL: tuple[Size, ...] = ((64, 8, 8), (64, 16, 16))
ZOOLOGY: tuple[Size, ...] = ((64, 32, 32), (128, 64, 64), (256, 128, 128))
WIDE: tuple[Size, ...] = ((64, 32, 64), (128, 64, 128), (256, 128, 256))
"""Zoology's Gated DeltaNet has values twice as wide as keys."""

GRIDS: dict[str, dict[Mixer, tuple[Size, ...]]] = {
    "quick": dict.fromkeys(("softmax", "sum", "gated_sum", "delta", "gated_delta"), ((16, 8, 8),)),
    "laptop": {
        "softmax": ZOOLOGY[:1],
        "sum": (*SMALL, *ZOOLOGY[:2]),
        "gated_sum": ZOOLOGY[:1],
        "delta": (*SMALL, *ZOOLOGY[:2]),
        "gated_delta": ZOOLOGY[:1],
    },
    "paper": {
        "softmax": ZOOLOGY,
        "sum": (*SMALL, *ZOOLOGY),
        "gated_sum": ZOOLOGY,
        "delta": (*SMALL, *ZOOLOGY),
        "gated_delta": (*ZOOLOGY, *WIDE),
    },
}

_TASKS: dict[str, dict[str, Any]] = {
    "quick": {
        "vocabulary": 32,
        "training": segments((16, 2, 64), (16, 4, 64)),
        "test": segments((16, 4, 32)),
        "learning_rates": (1e-3, 1e-2),
        "epochs": 2,
        "batch": 16,
    },
    "laptop": {
        "vocabulary": 512,
        "training": segments((64, 4, 2_048), (64, 8, 1_536), (64, 16, 1_536), (128, 32, 1_536)),
        "test": segments(
            *((64, n, 128) for n in (4, 8, 16)), *((4 * n, n, 128) for n in (32, 64, 128))
        ),
        "epochs": 10,
        "batch": 32,
    },
    "paper": {},
}


def points(scale: str, seeds: int | None, stream: str | None) -> list[MqarPoint]:
    """Return a point for each seed, mixer and size; no stream is the authors'."""
    return [
        _point(scale, mixer, size, seed)
        for seed in range(1, (seeds or 1) + 1)
        for mixer, sizes in GRIDS[scale].items()
        for size in sizes
    ]


def _point(scale: str, mixer: Mixer, size: Size, seed: int) -> MqarPoint:
    d_model, d_key, d_value = size
    return MqarPoint(
        mixer=mixer, d_model=d_model, d_key=d_key, d_value=d_value, seed=seed, **_TASKS[scale]
    )


def cost(point: MqarPoint) -> float:
    """Return about how long a point takes on one core, in no unit.

    Symbols trained on, times the widths of what they pass through; the share of the heads is fitted
    to an epoch of each point of the laptop scale.
    """
    symbols = sum(segment.length * segment.examples for segment in point.training)
    share = 0.2 if point.mixer == "softmax" else 0.5
    width = point.d_model + share * point.heads * (point.d_key + point.d_value)
    return float(symbols * point.epochs * len(point.learning_rates) * width)


def run(point: MqarPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train the point with each of its learning rates; the best one's accuracy counts."""
    import torch

    torch.set_flush_denormal(False)  # a worker keeps what the point before it had set
    from reimpl.experiments.mqar import measure

    return measure(point, checkpoint_dir, progress)


def _sources(_: MqarPoint) -> tuple[str, ...]:
    return ("reimpl.experiments.mqar",)


EXPERIMENT = Experiment(
    name="pareto",
    description="Recall against bytes of state (MQAR): sum, delta and their gated forms",
    list_points=points,
    measure=run,
    sources=_sources,
    cost=cost,
)
