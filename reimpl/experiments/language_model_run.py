"""Train one language model and measure its perplexities."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from records.errors import ConfigError
from records.models import Metric, Scale, digest
from reimpl.data import Corpus, corpora_folder, open_corpus
from reimpl.evaluation import carried_context, sliding_window
from reimpl.experiments.base import Progress
from reimpl.experiments.language_model_point import LanguageModelPoint
from reimpl.training import Devices, Place, Recipe, Trained, train
from reimpl.version import code_version

HELD_OUT = ("valid", "test")
EVALUATION_SEED = 2
"""What FAVOR+'s features for the evaluation are drawn from, together with the run's seed."""


def measure(
    point: LanguageModelPoint, checkpoint_dir: Path, progress: Progress
) -> tuple[Metric, ...]:
    """Train the point's model, going on from a checkpoint that is there, and evaluate it.

    A training whose loss becomes NaN has perplexities of NaN. Raises DataError where the text is
    missing or damaged.
    """
    corpus = _corpus(point, checkpoint_dir)
    return _metrics(point, _trained(point, corpus, checkpoint_dir, progress), corpus)


def only_train(
    point: LanguageModelPoint, checkpoint_dir: Path, progress: Progress, devices: Devices
) -> None:
    """Train on several devices; the checkpoint stays for ``measure`` to find."""
    _trained(point, _corpus(point, checkpoint_dir), checkpoint_dir, progress, devices)


def _corpus(point: LanguageModelPoint, checkpoint_dir: Path) -> Corpus:
    """Open the point's text in the workspace that the run's folder is in."""
    corpus = open_corpus(point.corpus, corpora_folder(checkpoint_dir.parents[1]))
    if len(corpus.words) != point.model.vocabulary:
        raise ConfigError(
            f"{corpus.folder} has {len(corpus.words):,} word types and the model "
            f"{point.model.vocabulary:,}; remove the folder and build the corpus again"
        )
    return corpus


def _trained(
    point: LanguageModelPoint,
    corpus: Corpus,
    folder: Path,
    progress: Progress,
    devices: Devices | None = None,
) -> Trained:
    identity = digest([point.model_dump(mode="json"), code_version(__name__)])
    place = Place(folder, identity, point.label, progress)
    return train(Recipe(point.model, point.training, point.seed), corpus, place, devices)


def _metrics(point: LanguageModelPoint, trained: Trained, corpus: Corpus) -> tuple[Metric, ...]:
    scale: Scale = "paper" if point.is_paper_scale else "reduced"

    def metric(name: str, value: float, **more: object) -> Metric:
        return Metric.model_validate({"name": name, "value": value, "scale": scale} | more)

    found = {split: _perplexity(point, trained, corpus, split) for split in HELD_OUT}
    curves = {"loss": "loss_curve", "valid_perplexity": "perplexity_curve"}
    return (
        *(metric(f"{split}_perplexity", value) for split, value in found.items()),
        *(
            metric("perplexity", value, claim_id=_claim_id(claim, split))
            for claim in point.measures
            for split, value in found.items()
            if _is_about(claim, split)
        ),
        metric("words_per_second", trained.median("words_per_second")),
        metric("parameters", sum(p.numel() for p in trained.model.parameters())),
        metric("diverged", float(trained.diverged_at is not None)),
        *(
            metric(curves[each.metric], each.value, step=each.step)
            for each in trained.curves
            if each.metric in curves
        ),
    )


def _claim_id(claim: str, split: str) -> str:
    """Return the id of a claim: those of tables have one for each split."""
    return f"{claim}-{split}" if "/table" in claim else claim


def _is_about(claim: str, split: str) -> bool:
    return "/table" in claim or split == "valid"


def _perplexity(point: LanguageModelPoint, trained: Trained, corpus: Corpus, split: str) -> float:
    if trained.diverged_at is not None:
        return math.nan
    ids = getattr(corpus, split)
    if point.eval_words is not None:
        ids = ids[: point.eval_words + 1]
    torch.manual_seed(EVALUATION_SEED + 1000 * point.seed)
    trained.model.redraw()
    evaluate = carried_context if point.training.carry else sliding_window
    return evaluate(trained.model, ids).perplexity
