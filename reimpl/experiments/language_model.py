"""Tables 2 to 5 of Sec. 6.3: language models by update rule, feature map and normalisation.

Scales:

- ``paper``: both sizes on WikiText-103, as the paper trains them; for GPUs.
- ``laptop``: every row as one small model (2 layers of d_model 128 with an FFN of 512, otherwise
  the small model) on the King James text (847,296 words for training, 6,976 types), 900 steps of
  16 segments of 256 words, perplexity over the first 6,000 words of two held-out books.
- ``quick``: a few steps of a tiny model, to see that every row runs.
"""

from __future__ import annotations

from pathlib import Path

from records.models import Metric
from reimpl.experiments.base import Experiment, Progress
from reimpl.experiments.language_model_point import ROWS, LanguageModelPoint, Preset, point

LAPTOP_SEEDS = 3


def points(scale: str, seeds: int | None, stream: str | None) -> list[LanguageModelPoint]:
    """Return a point for each seed, row and size; no stream is the authors'."""
    count = seeds or (LAPTOP_SEEDS if scale == "laptop" else 1)
    return [
        point(row, preset, seed)
        for seed in range(1, count + 1)
        for row in ROWS
        for preset in _presets(scale, row)
    ]


def _presets(scale: str, row: str) -> tuple[Preset, ...]:
    if scale == "paper":
        return tuple(ROWS[row].claims)
    return ("quick",) if scale == "quick" else ("laptop",)


def cost(each: LanguageModelPoint) -> float:
    """Return about how much a training multiplies, in no unit."""
    m, t = each.model, each.training
    layer = m.d_model * (4 * m.heads * m.d_head + 2 * m.d_ffn)
    return float(t.steps * t.batch * m.segment * (m.layers * layer + m.d_model * m.cutoffs[0]))


def run(each: LanguageModelPoint, checkpoint_dir: Path, progress: Progress) -> tuple[Metric, ...]:
    """Train the row's model and return its perplexities."""
    from reimpl.experiments.language_model_run import measure

    return measure(each, checkpoint_dir, progress)


def _sources(_: LanguageModelPoint) -> tuple[str, ...]:
    return ("reimpl.experiments.language_model_run",)


EXPERIMENT = Experiment(
    name="language-model",
    description="Perplexity of language models by rule, feature map and normalisation (Tables 2-5)",
    list_points=points,
    measure=run,
    sources=_sources,
    cost=cost,
)
