"""The retrieval trainings: our compiled steps against the same model written out in torch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from reimpl.bench.memory import peak_of
from reimpl.bench.report import Report, Section, Spread, cpu_name, environment
from reimpl.experiments import retrieval, retrieval_memory
from reimpl.experiments.retrieval import Training, query_losses
from reimpl.experiments.retrieval_models import FastWeightModel, RetrievalModel
from reimpl.experiments.retrieval_plain import plain_answers
from reimpl.experiments.retrieval_point import RetrievalPoint, Setting, training
from reimpl.experiments.streams import Batch

Answers = Callable[[RetrievalModel, Batch], Tensor]
Echo = Callable[[str], None]
LIMIT = 1e-10
"""The largest error of loss and gradients in float64, relative to the largest value."""
STEP_SECONDS = 0.3
"""How long our steps are taken for one time."""


@dataclass(frozen=True)
class Case:
    """One model at one S, and how many times faster than the peer it should train."""

    setting: Setting
    phi: str
    rule: str
    S: int
    wanted: float | None = None

    @property
    def point(self) -> RetrievalPoint:
        """The point of the figure, with the authors' streams."""
        fields = {"setting": self.setting, "feature_map": self.phi, "rule": self.rule, "S": self.S}
        return RetrievalPoint.model_validate(fields | {"seed": 1} | training(self.phi, self.rule))

    @property
    def label(self) -> str:
        """Map and rule, as the figures name them."""
        return self.phi if self.rule == "softmax" else f"{self.phi} {self.rule}"


def _cases(
    setting: Setting, models: tuple[tuple[str, str], ...], wanted: dict[int, float]
) -> list[Case]:
    return [Case(setting, phi, rule, S, goal) for phi, rule in models for S, goal in wanted.items()]


SUM_TARGETS = {20: 9.0, 200: 25.0, 600: 65.0}
DELTA_TARGETS = {20: 60.0, 100: 550.0, 200: 1970.0}
FULL = (
    *_cases(
        "capacity",
        (("softmax", "softmax"), ("elu1", "sum"), ("dpfp1", "sum"), ("dpfp3", "sum")),
        SUM_TARGETS,
    ),
    *_cases("capacity", (("favor64", "sum"), ("favor512", "sum")), SUM_TARGETS),
    *_cases("update-rule", (("elu1", "delta"), ("dpfp1", "delta")), DELTA_TARGETS),
    *_cases("update-rule", (("dpfp2", "delta"), ("favor128", "delta")), DELTA_TARGETS),
    *(Case("update-rule", phi, "fwm", S) for phi in ("tanh", "dpfp1") for S in (20, 100)),
)
QUICK = tuple(
    replace(case, wanted=None) for case in FULL if case.S == 20 and "favor" not in case.phi
)


def measure(*, quick: bool, repeats: int | None, threads: int | None, echo: Echo) -> Report:
    """Time every case on one thread (or ``threads``); the report fails where a check does."""
    torch.set_num_threads(threads or 1)
    return run_cases(QUICK if quick else FULL, repeats or 3, echo)


def run_cases(cases: tuple[Case, ...], repeats: int, echo: Echo) -> Report:
    """Check, time and weigh each case."""
    rows, failed = [], False
    for case in cases:
        echo(f"{case.label}, S = {case.S} ...")
        error = check(case)
        if error > LIMIT:
            failed = True
            rows.append((case.label, case.S, f"wrong: error {error:.1e}", *[None] * 7))
            continue
        rows.append((case.label, case.S, *_row(case, repeats)))
    notes = (
        "A step draws a batch, answers one query a sequence, differentiates, and is Adam's.",
        f"Medians and quartiles of {repeats} rounds; ratios are within a round. plain: the state,",
        "written one association after the other, by torch. wanted: times as fast as the authors'",
        "program that the project set itself. MB: the peak of one step, in a process of its own.",
        "evaluation: ms for one sequence of S writes and all its queries; an evaluation has 20.",
    )
    columns = (
        *("model", "S", "ms/step", "plain", "times as fast", "wanted"),
        *("MB", "plain MB", "evaluation", "plain evaluation"),
    )
    threads = str(torch.get_num_threads())
    about = environment(cpu_name(), threads=threads) | {"op": "retrieval"}
    return Report(about, [Section("Training steps", columns, rows, notes)], failed)


def start(point: RetrievalPoint) -> Training:
    """Return the training of a point, before its first step."""
    module = retrieval_memory if point.rule == "fwm" else retrieval
    return Training.start(point, module._build)


def ours(model: RetrievalModel, batch: Batch) -> Tensor:
    """Answer by the compiled loops."""
    return model.answers(batch)


def plain(model: RetrievalModel, batch: Batch) -> Tensor:
    """Answer by the state, one write after the other, with random features drawn anew."""
    if isinstance(model, FastWeightModel):
        model.phi.redraw(model.point.d_key)
    return plain_answers(model, batch)


def step(run: Training, answers: Answers) -> None:
    """Take one training step with the given answers."""
    batch = run.stream.train_batch(run.model.point.batch)
    loss = query_losses(answers(run.model, batch), batch.answer).mean()
    run.optimiser.zero_grad()
    torch.autograd.backward(loss)
    run.optimiser.step()


def check(case: Case) -> float:
    """Return the error of our loss and gradients against the plain ones, in float64.

    At a tenth of S, and at least 8: the same loops, in a fraction of the time.
    """
    small = replace(case, S=max(8, case.S // 10))
    run = start(small.point)
    model, batch = run.model.double(), run.stream.train_batch(4)
    found = []
    for answers in (ours, plain):
        run.generator.manual_seed(1)
        loss = query_losses(answers(model, batch), batch.answer).mean()
        found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    largest = max(float(x.detach().abs().max()) for x in found[1])
    errors = [float((a - b).detach().abs().max()) for a, b in zip(*found, strict=True)]
    return max(errors) / largest


def _row(case: Case, repeats: int) -> tuple[Any, ...]:
    mine, theirs = start(case.point), start(case.point)
    step(mine, ours)
    count = max(1, int(STEP_SECONDS / _seconds(partial(step, mine, ours), 1)))
    times: list[tuple[float, float]] = []
    for _ in range(repeats):
        fast = _seconds(partial(step, mine, ours), count)
        times.append((fast, _seconds(partial(step, theirs, plain), 1)))
    evaluations = [_seconds(partial(_evaluate, mine, way), 1) for way in (all_ours, plain)]
    peaks = [peak_of(partial(_one_step, case, plainly), 8, case.S) for plainly in (False, True)]
    return (
        Spread.of([1e3 * a for a, _ in times]),
        Spread.of([1e3 * b for _, b in times]),
        Spread.of([b / a for a, b in times]),
        case.wanted,
        *(None if peak is None else round(peak) for peak in peaks),
        *(round(1e3 * seconds, 1) for seconds in evaluations),
    )


def _seconds(work: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - started) / count


def all_ours(model: RetrievalModel, batch: Batch) -> Tensor:
    """Answer all queries of a sequence, as evaluations do."""
    return model.all_answers(batch)


@torch.no_grad()
def _evaluate(run: Training, answers: Answers) -> None:
    answers(run.model, run.stream.eval_sequence())


def _one_step(case: Case, plainly: bool, S: int) -> None:
    step(start(replace(case, S=S).point), plain if plainly else ours)
