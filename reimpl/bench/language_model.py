"""The language models: training steps of each rule in turns, and the sliding window's batching."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from reimpl.bench.report import Report, Section, Spread, cpu_name, environment
from reimpl.bench.timing import Run, interleave, ratio
from reimpl.evaluation import WINDOWS, sliding_window
from reimpl.experiments.cost_run import training_step
from reimpl.experiments.language_model_point import Preset, point
from reimpl.model import LanguageModel
from reimpl.model_config import ModelConfig

Echo = Callable[[str], None]
LIMIT = 1e-9
"""The largest error of loss and gradients in float64, relative to the largest value."""
WINDOW_LIMIT = 1e-4
"""The largest relative error of the batched windows' nats, in float32."""
SPEED_TARGETS = {"sum": 0.85, "delta, recurrence": 5.0}
"""Words per second of the delta model, as a multiple of those of the other."""
WINDOW_TARGET = 20.0
EVALUATED = {True: 20, False: 200}
"""Words that the windows predict, in the quick and in the full bench."""


def models(quick: bool) -> dict[str, ModelConfig]:
    """Return the laptop scale's models (tiny ones if ``quick``), without dropout."""
    rows = {
        "delta": "delta-network",
        "sum": "linear-transformer-sum",
        "softmax": "transformer",
        "performer delta": "performer-delta",
    }
    preset: Preset = "quick" if quick else "laptop"
    found = {n: point(row, preset, 1).model.changed(dropout=0.0) for n, row in rows.items()}
    return found | {"delta, recurrence": found["delta"].changed(backend="reference")}


def measure(*, quick: bool, repeats: int | None, threads: int | None, echo: Echo) -> Report:
    """Time steps of all models and both ways of evaluating; fails where a check does."""
    torch.set_num_threads(threads or 1)
    repeats = repeats or (3 if quick else 5)
    training, wrong = _training(quick, repeats, echo)
    evaluation, off = _evaluation(quick, repeats, echo)
    about = environment(cpu_name(), threads=str(torch.get_num_threads()))
    return Report(about | {"op": "language model"}, [training, evaluation], wrong or off)


def check(config: ModelConfig) -> float:
    """Return the error of loss and gradients against the Python recurrence, in float64."""
    found = []
    for backend in (config.backend, "reference"):
        torch.manual_seed(1)
        model = LanguageModel(config.changed(backend=backend)).double()
        words = torch.randint(config.vocabulary, (2, min(96, config.segment) + 1))
        torch.manual_seed(2)
        loss = model.loss(words[:, :-1], words[:, 1:])[0].mean()
        found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    largest = max(float(x.detach().abs().max()) for x in found[1])
    return max(float((a - b).detach().abs().max()) for a, b in zip(*found, strict=True)) / largest


def _training(quick: bool, repeats: int, echo: Echo) -> tuple[Section, bool]:
    configs, batch = models(quick), 2 if quick else 16
    errors = {}
    for name, config in configs.items():
        echo(f"checking {name} ...")
        errors[name] = check(config)
    right = {name: config for name, config in configs.items() if errors[name] <= LIMIT}
    echo(f"timing {len(right)} models in {repeats} rounds ...")
    steps = {name: training_step(config, batch, 1) for name, config in right.items()}
    seconds = interleave({name: _ready(step) for name, step in steps.items()}, repeats)
    words = batch * configs["delta"].segment
    rows = [_row(name, errors[name], seconds, words) for name in configs]
    notes = (
        f"A step of {batch} segments of {configs['delta'].segment} words: loss, gradients, Adam.",
        f"Medians and quartiles of {repeats} rounds; ratios are within a round. delta to it: the",
        "delta model's words per second as a multiple of this model's. recurrence: the same model,",
        "its rule one word after the other in Python.",
    )
    columns = ("model", "words/s", "delta to it", "wanted")
    return Section("Training", columns, rows, notes), len(right) < len(configs)


def _ready(run: Run) -> Callable[[], Run]:
    return lambda: run


def _row(name: str, error: float, seconds: dict[str, list[float]], words: int) -> tuple[Any, ...]:
    if name not in seconds:
        return (name, f"wrong: error {error:.1e}", None, None)
    to_delta = ratio(seconds[name], seconds["delta"]) if "delta" in seconds else None
    speed = Spread.of([words / taken for taken in seconds[name]])
    return (name, speed, to_delta if name != "delta" else None, SPEED_TARGETS.get(name))


def _evaluation(quick: bool, repeats: int, echo: Echo) -> tuple[Section, bool]:
    rows: list[tuple[Any, ...]] = []
    wrong = False
    for name in ("delta", "sum", "softmax"):
        echo(f"sliding window of {name} ...")
        config = models(quick)[name]
        torch.manual_seed(1)
        model = LanguageModel(config).eval()
        length = config.segment + 1 + EVALUATED[quick]
        ids = np.random.default_rng(1).integers(0, config.vocabulary, length).astype(np.int32)
        one, many = (sliding_window(model, ids, windows=n).nats for n in (1, None))
        if abs(one - many) > WINDOW_LIMIT * abs(one):
            rows.append((name, f"wrong: {many:.6g} nats, not {one:.6g}", None, None, None))
            wrong = True
            continue
        ways = {n: partial(sliding_window, model, ids, windows=n) for n in (1, None)}
        seconds = interleave({n: _ready(way) for n, way in ways.items()}, repeats)
        speeds = {n: Spread.of([EVALUATED[quick] / t for t in seconds[n]]) for n in (None, 1)}
        times = ratio(seconds[1], seconds[None])
        rows.append((name, speeds[None], speeds[1], times, WINDOW_TARGET))
    notes = (
        f"Words predicted per second, {WINDOWS['cpu']} windows at a time and one by one. Positions",
        "are counted from a window's end, so that no two windows share any work: batching saves",
        "what torch spends on each call, and nothing of the products.",
    )
    columns = ("model", "batched", "one by one", "times", "wanted")
    return Section("Sliding-window evaluation", columns, rows, notes), wrong
