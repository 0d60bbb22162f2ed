"""Time and weigh training steps of language models, all in turns."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from records.models import Metric
from reimpl.bench.memory import measure_here
from reimpl.experiments.base import Progress
from reimpl.experiments.cost import MEMORY_RATIOS, MODELS, SPEED_RATIOS, CostPoint
from reimpl.model import LanguageModel
from reimpl.model_config import ModelConfig

ZIPF = 1.05
"""Exponent of the frequencies that words are drawn with; about that of English."""
Step = Callable[[], None]


def training_step(config: ModelConfig, batch: int, seed: int) -> Step:
    """Return a function that takes one training step on made words, most of them frequent."""
    torch.manual_seed(seed)
    device = _device()
    model = LanguageModel(config).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=2.5e-4, fused=True)
    chances = torch.arange(1, config.vocabulary + 1, dtype=torch.float64) ** -ZIPF
    drawn = torch.multinomial(chances, batch * (config.segment + 1), replacement=True)
    words = drawn.view(batch, config.segment + 1).to(device)

    def step() -> None:
        loss = model.loss(words[:, :-1], words[:, 1:])[0].mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimiser.step()

    return step


def seconds(step: Step) -> float:
    """Return how long a step takes, to the end of what the device does."""
    _wait()
    started = time.perf_counter()
    step()
    _wait()
    return time.perf_counter() - started


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(point: CostPoint, progress: Progress) -> tuple[Metric, ...]:
    """Return words per second and gigabytes of each model, and the ratios that are claimed.

    Ratios of speeds are medians of those within a round. Memory is the peak of one step: what a GPU
    allocated, else the resident set of a process of its own (Linux only; left out elsewhere).
    """
    times: dict[str, list[float]] = {name: [] for name in MODELS}
    memory = {}
    for name in MODELS:
        progress(f"{point.label}: memory of {name}")
        memory[name] = _gigabytes(point, name)
    steps = {name: training_step(point.model(name), point.batch, point.seed) for name in MODELS}
    for turn in range(point.rounds + 1):
        progress(f"{point.label}: round {turn} of {point.rounds}")
        for name, step in steps.items():
            taken = seconds(step)
            if turn:
                times[name].append(taken)
    return tuple(_metrics(point, times, {n: m for n, m in memory.items() if m is not None}))


def _metrics(
    point: CostPoint, times: dict[str, list[float]], memory: dict[str, float]
) -> list[Metric]:
    words = point.batch * point.model("sum").segment
    found = [
        Metric(name=f"words_per_second_{name}", value=words / median(each))
        for name, each in times.items()
    ]
    found += [Metric(name=f"gigabytes_{name}", value=value) for name, value in memory.items()]
    for name, (one, other) in SPEED_RATIOS.items():
        ratio = median(b / a for a, b in zip(times[one], times[other], strict=True))
        found.append(_ratio(point, "speed", name, ratio))
    for name, (one, other) in MEMORY_RATIOS.items():
        if one in memory and other in memory:
            found.append(_ratio(point, "memory", name, memory[one] / memory[other]))
    return found


def _ratio(point: CostPoint, what: str, name: str, value: float) -> Metric:
    return Metric(
        name=f"{what}_ratio_{name}",
        value=value,
        claim_id=point.claim_id(f"{what}-{name}"),
        scale=point.scale(_device()),
    )


def _gigabytes(point: CostPoint, name: str) -> float | None:
    if torch.cuda.is_available():
        step = training_step(point.model(name), point.batch, point.seed)
        step()
        torch.cuda.reset_peak_memory_stats()
        step()
        return torch.cuda.max_memory_allocated() / 2**30
    command = [sys.executable, "-m", __name__, point.model_dump_json(), name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return None if done.stdout.strip() == "None" else float(done.stdout) / 1024


def _weigh(point: CostPoint, name: str) -> float | None:
    """Return the megabytes that a model and a step of it take, after a step with one segment."""

    def work(batch: int) -> None:
        training_step(point.model(name), batch, point.seed)()

    return measure_here(work, 1, point.batch)


if __name__ == "__main__":
    print(_weigh(CostPoint.model_validate_json(sys.argv[1]), sys.argv[2]))
