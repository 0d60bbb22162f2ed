"""The retrieval trainings: our compiled steps against the same models in torch, in two ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from reimpl.bench.memory import peak_of
from reimpl.bench.report import Report, Section, Spread, cpu_name, environment
from reimpl.bench.timing import ratio
from reimpl.experiments import retrieval, retrieval_memory
from reimpl.experiments.readouts import fwm_answers
from reimpl.experiments.retrieval import Training, query_losses
from reimpl.experiments.retrieval_models import FastWeightModel, RetrievalModel
from reimpl.experiments.retrieval_plain import plain_answers
from reimpl.experiments.retrieval_point import RetrievalPoint, Setting, training
from reimpl.experiments.streams import Batch
from reimpl.feature_maps import FeatureMap

Answers = Callable[[RetrievalModel, Batch], Tensor]
Echo = Callable[[str], None]
LIMIT = 1e-10
"""The largest error of loss and gradients in float64, relative to the largest value."""
STEP_SECONDS = 0.3
"""How long steps are taken for one time."""
LARGEST_STATES = 8e9
"""Bytes of all states of a step, S writes of each sequence, beyond which they are not kept."""
LONG_SECONDS = 5.0
"""A step that takes longer is timed once."""


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
_LARGE = (("softmax", "softmax"), ("elu1", "sum"), ("dpfp1", "sum"), ("dpfp3", "sum"))
_FAVOR = (("favor64", "sum"), ("favor512", "sum"))
_DELTA = (("elu1", "delta"), ("dpfp1", "delta"), ("dpfp2", "delta"), ("favor128", "delta"))
FULL = (
    *_cases("capacity", _LARGE, SUM_TARGETS),
    *_cases("capacity", _FAVOR, {S: SUM_TARGETS[S] for S in (20, 200)}),
    *_cases("update-rule", _DELTA, DELTA_TARGETS),
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
    steps, rest, failed = [], [], False
    for case in cases:
        echo(f"{case.label}, S = {case.S} ...")
        error = check(case)
        if error > LIMIT:
            failed = True
            steps.append((case.label, case.S, f"wrong: error {error:.1e}", *[None] * 5))
            continue
        steps.append((case.label, case.S, *_times(case, repeats)))
        rest.append((case.label, case.S, *_evaluation_and_memory(case)))
    about = environment(cpu_name(), threads=str(torch.get_num_threads())) | {"op": "retrieval"}
    return Report(about, [_steps_section(steps, repeats), _rest_section(rest)], failed)


def _steps_section(rows: list[tuple[Any, ...]], repeats: int) -> Section:
    notes = (
        "A step draws a batch, answers one query a sequence, differentiates, and is Adam's.",
        f"Medians and quartiles of {repeats} rounds (one where a step takes {LONG_SECONDS:g} s);",
        "ratios are within a round. torch: the same without our loops, by the weights of the",
        "values, as evaluations are. writes: the state, one association after the other, by torch;",
        f"blank where its states would take more than {LARGEST_STATES / 1e9:g} GB.",
        "wanted: times as fast as the authors' program, which is not here, that was hoped for.",
    )
    columns = ("model", "S", "ms", "torch, ms", "times", "writes, ms", "times", "wanted")
    return Section("Training steps", columns, rows, notes)


def _rest_section(rows: list[tuple[Any, ...]]) -> Section:
    notes = (
        "Evaluation: ms for one sequence of S writes and all its queries; an evaluation has 20.",
        "MB: the peak of one training step, in a process of its own.",
    )
    columns = ("model", "S", "evaluation", "by writes", "MB", "MB, torch", "MB, writes")
    return Section("Evaluation and memory", columns, rows, notes)


def start(point: RetrievalPoint) -> Training:
    """Return the training of a point, before its first step."""
    module = retrieval_memory if point.rule == "fwm" else retrieval
    return Training.start(point, module._build)


def ours(model: RetrievalModel, batch: Batch) -> Tensor:
    """Answer one query by the compiled loops."""
    return model.answers(batch)


def by_chunks(model: RetrievalModel, batch: Batch) -> Tensor:
    """Answer in torch without our loops: by the weights of the values, or the memory's state.

    The delta rule's weights and the memory's state are computed a chunk of writes at a time.
    """
    if model.point.rule != "fwm":
        return model.all_answers(batch)
    assert isinstance(model, FastWeightModel)
    K, Q = model.phi(model.written(batch).k), model.phi(model.queries(batch))
    V = one_hot(batch.values, model.point.S).to(K.dtype)
    return fwm_answers(K, Q, model.beta(batch), V)


def by_writes(model: RetrievalModel, batch: Batch) -> Tensor:
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
    for answers in (ours, by_writes):
        run.generator.manual_seed(1)
        loss = query_losses(answers(model, batch), batch.answer).mean()
        found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    largest = max(float(x.detach().abs().max()) for x in found[1])
    errors = [float((a - b).detach().abs().max()) for a, b in zip(*found, strict=True)]
    return max(errors) / largest


def _times(case: Case, repeats: int) -> tuple[Any, ...]:
    """Return our time, and time and ratio of both peers, and what was wanted."""
    runs = {answers: start(case.point) for answers in (ours, *_peers(case))}
    counts = {answers: _count(partial(step, run, answers)) for answers, run in runs.items()}
    rounds = 1 if 0 in counts.values() else repeats
    seconds = {
        answers: [
            _seconds(partial(step, run, answers), max(1, counts[answers])) for _ in range(rounds)
        ]
        for answers, run in runs.items()
    }
    milliseconds = {name: Spread.of([1e3 * t for t in each]) for name, each in seconds.items()}
    times = {name: ratio(each, seconds[ours]) for name, each in seconds.items()}
    return (
        milliseconds[ours],
        *(milliseconds[by_chunks], times[by_chunks]),
        *(milliseconds.get(by_writes), times.get(by_writes)),
        case.wanted,
    )


def _peers(case: Case) -> tuple[Answers, ...]:
    """Return the peers that this machine should have the memory for."""
    point = case.point
    phi = getattr(start(point).model, "phi", None)
    d_dot = phi.d_dot(point.d_key) if isinstance(phi, FeatureMap) else 0
    states = 4.0 * point.batch * point.length * point.S * d_dot
    return (by_chunks,) if states > LARGEST_STATES else (by_chunks, by_writes)


def _count(work: Callable[[], object]) -> int:
    """Return how many times to do some work for one time; 0 where one is already long."""
    work()
    seconds = _seconds(work, 1)
    return 0 if seconds > LONG_SECONDS else max(1, int(STEP_SECONDS / seconds))


def _evaluation_and_memory(case: Case) -> tuple[Any, ...]:
    run = start(case.point)
    peers = _peers(case)
    evaluations: dict[Answers, float] = {}
    for answers in peers:
        evaluate = partial(_evaluate, run, answers)
        evaluate()
        evaluations[answers] = round(1e3 * _seconds(evaluate, 1), 1)
    peaks = {each: peak_of(partial(_one_step, case, each), 8, case.S) for each in (ours, *peers)}
    return (
        *(evaluations.get(each) for each in (by_chunks, by_writes)),
        *(_rounded(peaks.get(each)) for each in (ours, by_chunks, by_writes)),
    )


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _seconds(work: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - started) / count


@torch.no_grad()
def _evaluate(run: Training, answers: Answers) -> None:
    answers(run.model, run.stream.eval_sequence())


def _one_step(case: Case, answers: Answers, S: int) -> None:
    step(start(replace(case, S=S).point), answers)
