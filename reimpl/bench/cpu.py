"""The bench on a CPU: ratios and growth of time, memory, and decoding, beside their targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from reimpl.bench import checks, memory, peers
from reimpl.bench.inputs import Inputs, Op, Shape, forward_backward, make_inputs, ours
from reimpl.bench.report import Report, Section, Spread, cpu_name, environment
from reimpl.bench.timing import Run, exponent, interleave, ratio
from reimpl.ops import fast_weight_attention, fast_weight_step

Echo = Callable[[str], None]
DTYPE = torch.float32
RULE = "delta"
PAPER = Shape(96, 256, 8, 16, 16)
"""The small language model of Sec. 6.3: a batch of 96 on segments of 256."""
WINDOW = 100
"""Tokens that are decoded for one time."""


@dataclass(frozen=True)
class Plan:
    """What is measured: at ``head`` for each of ``lengths``, at PAPER's shape, and decoding."""

    head: Shape
    lengths: tuple[int, ...]
    paper: Shape | None
    rules_at: int | None
    memory_lengths: tuple[int, ...]
    positions: tuple[int, ...]
    repeats: int


HEAD = Shape(4, 16384, 8, 64, 64)
FULL = Plan(
    head=HEAD,
    lengths=(256, 512, 1024, 2048, 4096, 16384),
    paper=PAPER,
    rules_at=1024,
    memory_lengths=(1024, 2048, 4096, 16384),
    positions=(1_000, 10_000, 100_000),
    repeats=7,
)
QUICK = replace(
    FULL,
    head=replace(HEAD, length=1024),
    lengths=(256, 1024),
    paper=None,
    rules_at=None,
    memory_lengths=(1024, 4096),
    positions=(1_000, 10_000),
    repeats=3,
)


@dataclass(frozen=True)
class Contender:
    """One way to do the work; ``longest`` is up to which length it is timed."""

    name: str
    rule: str
    op: Op
    longest: int
    heads_first: bool = False
    checked: bool = True


OURS, RECURRENCE, SUM, SDPA = "ours", "recurrence", "sum", "sdpa"
CONTENDERS = (
    Contender(OURS, RULE, ours(RULE), 1 << 20),
    Contender(RECURRENCE, RULE, ours(RULE, "reference"), 2048),
    Contender(SUM, "sum", ours("sum"), 1 << 20),
    Contender(SDPA, "sum", peers.softmax, 4096, heads_first=True, checked=False),
)
Times = dict[tuple[str, Shape], list[float]]
Failures = dict[tuple[str, Shape], str]


def measure(
    *, quick: bool, check: bool, repeats: int | None, threads: int | None, echo: Echo
) -> Report:
    """Measure on this CPU; the report fails where an op fails its check, whose times are absent."""
    if threads is not None:
        torch.set_num_threads(threads)
    plan = QUICK if quick else FULL
    return run_plan(plan if repeats is None else replace(plan, repeats=repeats), check, echo)


def run_plan(
    plan: Plan, check: bool, echo: Echo, contenders: Sequence[Contender] = CONTENDERS
) -> Report:
    """Carry a plan out."""
    sections, sound = [], True
    if check:
        echo("checking every rule, precision and shape ...")
        rows = [checks.run_case(case, "cpu") for case in checks.check_list((None,))]
        sections += checks.sections(rows)
        sound = all(row[-1] == checks.OK for row in rows)
    echo("checking what is timed ...")
    failures = _failures(plan, contenders)
    echo(f"timing forward and backward, {plan.repeats} rounds ...")
    times = _times(plan, contenders, failures)
    compared = _comparison(plan, times, failures)
    rules, rules_failed = _rules(plan, echo)
    echo("measuring memory ...")
    peaks = _peaks(plan) if (OURS, plan.head) not in failures else {}
    echo("decoding ...")
    decoding = _Decoding.measured(plan)
    targets = _targets(times, peaks, decoding, plan)
    sections += [compared, *rules, _memory(plan, peaks), *decoding.sections(), targets]
    failed = bool(failures) or rules_failed or decoding.failed or not sound
    threads = str(torch.get_num_threads())
    return Report(environment(cpu_name(), threads=threads), sections, failed)


def _shapes(plan: Plan) -> list[Shape]:
    paper = [] if plan.paper is None else [plan.paper]
    return [*(replace(plan.head, length=length) for length in plan.lengths), *paper]


def _failures(plan: Plan, contenders: Sequence[Contender]) -> Failures:
    """Return why ops must not be timed; ``plan.head`` stands for all its lengths."""
    found = {}
    for shape in filter(None, (plan.head, plan.paper)):
        for each in contenders:
            if not each.checked:
                continue
            reason = checks.check_op(each.op, each.rule, shape.shortened(), DTYPE, "cpu")
            if reason is not None:
                found[each.name, shape] = reason
    return found


def _times(plan: Plan, contenders: Sequence[Contender], failures: Failures) -> Times:
    jobs = {}
    longest = {
        (each.rule, shape): make_inputs(each.rule, shape, dtype=DTYPE, state=False)
        for shape in filter(None, (plan.head, plan.paper))
        for each in contenders
    }
    for shape in _shapes(plan):
        family = plan.head if shape != plan.paper else shape
        for each in contenders:
            if shape.length <= each.longest and (each.name, family) not in failures:
                inputs = longest[each.rule, family]
                jobs[each.name, shape] = partial(_prepared, each, inputs, shape.length)
    return interleave(jobs, plan.repeats)


def _prepared(contender: Contender, inputs: Inputs, length: int) -> Run:
    inputs = inputs.first(length)
    return forward_backward(contender.op, inputs.heads_first() if contender.heads_first else inputs)


def _milliseconds(seconds: list[float]) -> Spread:
    return Spread.of([1e3 * each for each in seconds])


def _comparison(plan: Plan, times: Times, failures: Failures) -> Section:
    rows: list[tuple[str, str, Spread | str, Spread | None]] = []
    for shape in _shapes(plan):
        family = plan.head if shape != plan.paper else shape
        mine = times.get((OURS, shape))
        for name in (OURS, RECURRENCE, SUM, SDPA):
            taken = times.get((name, shape))
            if taken:
                compared = ratio(taken, mine) if mine else None
                rows.append((shape.label, name, _milliseconds(taken), compared))
            elif (name, family) in failures:
                rows.append((shape.label, name, failures[name, family], None))
    notes = (
        f"Rule {RULE}, float32: medians and quartiles of {plan.repeats} rounds, in each of",
        "which all ran in turn; ratios are within a round. recurrence: one position at a time;",
        "sum: the chunkwise sum rule; sdpa: causal softmax attention.",
    )
    return Section("Forward + backward", ("shape", "what", "ms", "times ours"), rows, notes)


def _rules(plan: Plan, echo: Echo) -> tuple[list[Section], bool]:
    """Return the times of all rules at one length, and whether one fails its check."""
    if plan.rules_at is None:
        return [], False
    echo("timing the other rules ...")
    shape = replace(plan.head, length=plan.rules_at)
    contenders = [Contender(rule, rule, ours(rule), shape.length) for rule in checks.RULES]
    single = replace(plan, head=shape, lengths=(shape.length,), paper=None)
    failures = _failures(single, contenders)
    times = _times(single, contenders, failures)
    rows = []
    for rule in checks.RULES:
        taken, base = times.get((rule, shape)), times.get(("sum", shape))
        shown = _milliseconds(taken) if taken else failures[rule, shape]
        rows.append((rule, shown, ratio(taken, base) if taken and base else None))
    columns = ("rule", "ours_ms", "times the sum rule")
    return [Section(f"Every rule at {shape.label}", columns, rows)], bool(failures)


def _peaks(plan: Plan) -> dict[int, float]:
    """Return peak megabytes by length, empty where the system does not tell."""
    head = plan.head
    peaks = {
        length: memory.peak_megabytes(RULE, head.batch, length, head.heads, head.d_key)
        for length in plan.memory_lengths
    }
    return {length: peak for length, peak in peaks.items() if peak is not None}


def _memory(plan: Plan, peaks: dict[int, float]) -> Section:
    head = plan.head
    position = head.batch * head.heads * head.d_key * 4 / 2**20
    rows = [
        (replace(head, length=length).label, peak, peak / (position * length))
        for length, peak in peaks.items()
    ]
    notes = (
        "Highest resident set of a fresh process with one thread, less what it had before it made",
        "the inputs: inputs, gradients and all that is kept. tensors: peak over the size of q.",
    )
    unknown = ("Not measured: this system does not tell, or the op fails its check.",)
    columns = ("shape", "peak_mb", "tensors")
    return Section("Peak memory, forward + backward", columns, rows, notes if peaks else unknown)


class _Decoding:
    """Times of one token by rule and position, or why the step fails its check."""

    RULES = ("delta", "gated_delta")

    def __init__(self, times: dict[tuple[str, int], list[float]], failures: dict[str, str]) -> None:
        self.times = times
        self.failures = failures

    @classmethod
    def measured(cls, plan: Plan) -> _Decoding:
        """Decode at each position, after as many tokens, one window a round."""
        shape = replace(plan.head, batch=1, length=WINDOW)
        failures = {
            rule: reason
            for rule in cls.RULES
            if (reason := checks.check_step(rule, replace(shape, length=16), DTYPE, "cpu"))
            is not None
        }
        jobs = {}
        for rule in (r for r in cls.RULES if r not in failures):
            inputs = make_inputs(rule, shape, dtype=DTYPE)
            for position, state in _states(rule, shape, plan.positions).items():
                jobs[rule, position] = partial(_decoder, rule, inputs, state)
        rounds = 3 * plan.repeats  # a window takes milliseconds
        return cls(interleave(jobs, rounds), failures)

    @property
    def failed(self) -> bool:
        """Whether a step fails its check."""
        return bool(self.failures)

    def drift(self, rule: str) -> Spread | None:
        """Return how much longer the last position takes than the first, in each round."""
        timed = [times for (name, _), times in self.times.items() if name == rule]
        return ratio(timed[-1], timed[0]) if timed else None

    def sections(self) -> list[Section]:
        """Return the table."""
        rows: list[tuple[object, ...]] = []
        for (rule, position), times in self.times.items():
            first = next(t for (name, _), t in self.times.items() if name == rule)
            micro = Spread.of([1e6 * t / WINDOW for t in times])
            rows.append((rule, position, micro, ratio(times, first)))
        rows += [(rule, None, reason, None) for rule, reason in self.failures.items()]
        columns = ("rule", "position", "us_per_token", "times the first")
        note = (
            f"Each time is of {WINDOW} tokens after as many as the position says, state in place."
        )
        return [Section("Decoding, one sequence", columns, rows, (note,))]


def _states(rule: str, shape: Shape, positions: Sequence[int]) -> dict[int, Tensor]:
    """Return the state after each of the positions, which rise."""
    state = torch.zeros(shape.batch, shape.heads, shape.d_key, shape.d_value)
    found = {}
    for start, stop in pairwise((0, *positions)):
        for seed, done in enumerate(range(start, stop, _PIECE), start):
            piece = make_inputs(rule, replace(shape, length=min(_PIECE, stop - done)), seed=seed)
            given = piece.given() | {"initial_state": state}
            _, last = fast_weight_attention(**given, rule=rule, output_final_state=True)
            assert last is not None
            state = last
        found[stop] = state
    return found


_PIECE = 8192


def _decoder(rule: str, inputs: Inputs, state: Tensor) -> Run:
    tokens, state = inputs.tokens(), state.clone()

    def run() -> None:
        for token in tokens:
            fast_weight_step(**token, state=state, rule=rule, inplace=True)

    return run


def _targets(times: Times, peaks: dict[int, float], decoding: _Decoding, plan: Plan) -> Section:
    """Return each target with what was measured; nothing where it was not."""

    def compared(of: str, to: str, length: int) -> Spread | None:
        shape = replace(plan.head, length=length)
        first, second = times.get((of, shape)), times.get((to, shape))
        return ratio(first, second) if first and second else None

    softmax = [x for n in plan.lengths if n >= 1024 and (x := compared(SDPA, OURS, n))]
    least = min(softmax, key=lambda x: x.median, default=None)
    rows = [
        _target("recurrence over ours, L = 1024", "≥ 20", compared(RECURRENCE, OURS, 1024)),
        _target("ours over the sum rule, L = 1024", "≤ 1.6", compared(OURS, SUM, 1024)),
        _target("SDPA over ours, least from L = 1024", "≥ 1", least),
        _target("exponent of time, L 512 to 16,384", "≤ 1.1", _growth(times, plan)),
        _target("exponent of memory", "≤ 1.05", _single(exponent(peaks)) if peaks else None),
        *(_flatness(rule, decoding.drift(rule)) for rule in decoding.RULES),
    ]
    return Section("Targets", ("what", "target", "measured", "met"), rows)


def _single(value: float) -> Spread:
    return Spread.of([value])


def _growth(times: Times, plan: Plan) -> Spread | None:
    """Return the exponent of our time in L, fitted in each round."""
    own = {n: times.get((OURS, replace(plan.head, length=n))) for n in plan.lengths if n >= 512}
    seconds = {n: rounds for n, rounds in own.items() if rounds}
    if not {512, 16384} <= set(seconds):
        return None
    rounds = zip(*seconds.values(), strict=True)
    return Spread.of([exponent(dict(zip(seconds, each, strict=True))) for each in rounds])


NOISE, TOO_NOISY = 0.05, 0.3
"""How far a ratio of equal times may be from 1, and which distance of its quartiles
tells nothing."""


def _flatness(rule: str, drift: Spread | None) -> tuple[str, str, Spread | None, str]:
    """Return whether the last position takes as long as the first, within the noise."""
    verdict = "not measured"
    if drift is not None:
        flat = drift.low - NOISE <= 1 <= drift.high + NOISE
        verdict = "yes" if flat else "no"
        if drift.high - drift.low > TOO_NOISY:
            verdict = "unclear"
    return (f"{rule}: token at the last position over the first", "1", drift, verdict)


def _target(what: str, wanted: str, measured: Spread | None) -> tuple[str, str, Spread | None, str]:
    """Return whether the quartiles meet a target; where they disagree it is unclear."""
    if measured is None:
        return (what, wanted, None, "not measured")
    sign, limit = wanted.split()
    low, high = (
        x >= float(limit) if sign == "≥" else x <= float(limit)
        for x in (measured.low, measured.high)
    )
    return (what, wanted, measured, "unclear" if low != high else "yes" if low else "no")
