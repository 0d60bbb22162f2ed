"""The bench on a GPU: check every rule and kernel configuration, then time ours and others'."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from records.errors import ConfigError
from reimpl.bench import checks, peers
from reimpl.bench.compiling import available_cores
from reimpl.bench.inputs import Inputs, Op, Shape, forward, forward_backward, make_inputs, ours
from reimpl.bench.report import Report, Section, Spread, environment, installed
from reimpl.bench.timing import Budget, Run
from reimpl.ops import fast_weight_step

Echo = Callable[[str], None]
Cell = Spread | str | None
Bench = Callable[[Run], Spread]
"""How a run is timed, in milliseconds."""

SHARE_OF_CHECKS = 0.6
"""The part of the budget that checks may take; times need the rest."""
MOST_WORKERS = 12
"""Processes that check at once: each compiles on a core, and holds a context on the GPU."""
CHECKS_A_WORKER = 40
"""After as many a worker starts afresh: a fault in one kernel spoils its process's context."""
NOT_MEASURED = "not measured: the budget was spent"
TUNING = 45.0
"""Seconds that others' kernels may take to tune themselves: what must be left to begin."""
PEER_LIMIT = 2e-2
"""Largest relative error of others' outputs: whether they are called as they are meant to be."""


@dataclass(frozen=True)
class Work:
    """What is timed; ``floor`` is milliseconds forward, and forward + backward, where known.

    It is that of reading and writing all arguments at 4.3 TB/s and of the products at 790 TFLOP/s.
    """

    rule: str
    shape: Shape
    dtype: torch.dtype = torch.bfloat16
    floor: tuple[float | None, float | None] = (None, None)


TOKENS = 65_536
"""Positions of all rows together, so that lengths can be compared."""
LONG = Shape(8, 4096, 16, 128, 128)
STEP = replace(LONG, length=1)
PAPER = Shape(96, 256, 8, 16, 16)
WORK = (
    Work("delta", LONG, floor=(0.125, 0.45)),
    Work("delta", PAPER),
    Work("gated_delta", LONG, floor=(0.125, 0.45)),
    Work("delta", PAPER, torch.float32),
    Work("kda", LONG),
    Work("sum", LONG, floor=(0.125, 0.45)),
    *(
        Work(rule, Shape(TOKENS // length, length, 16, 128, 128))
        for rule in ("gated_delta", "delta")
        for length in (256, 1024, 4096, 16_384, 65_536)
    ),
)
COLUMNS = ("rule", "dtype", "shape", "what", "forward_ms", "forward_backward_ms",
           "floor_forward_ms", "floor_both_ms")  # fmt: skip


def measure(*, check: bool, budget: float, echo: Echo) -> Report:
    """Check and time on this machine's GPU within about ``budget`` seconds.

    The report fails where a check does. Raises ConfigError without a GPU.
    """
    if not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda needs an NVIDIA GPU and torch built for CUDA, and torch sees none; "
            "without one: fwp bench, or fwp bench --compile-only"
        )
    whole = Budget(budget)
    sections, sound = [], True
    if check:
        cases = checks.check_list(("recurrent", "chunkwise"))
        rows = list(_checked(cases, whole.part(SHARE_OF_CHECKS), echo))
        sections += checks.sections(rows)
        sound = all(row[-1] in (checks.OK, NOT_MEASURED) for row in rows)
    timed, fast = time_all(WORK, whole, echo)
    decoded, steps = time_decoding(whole, echo)
    sections += [timed, decoded]
    name = torch.cuda.get_device_name()
    more = {"cuda": str(torch.version.cuda), "fla": installed("flash-linear-attention")}
    return Report(environment(name, **more), sections, failed=not (sound and fast and steps))


def _checked(cases: Sequence[checks.Case], budget: Budget, echo: Echo) -> Iterator[checks.Row]:
    """Yield a row for each case, in processes beside each other: most of the time is compiling."""
    done: set[int] = set()
    workers = min(MOST_WORKERS, available_cores())
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, torch.set_num_threads, (1,), CHECKS_A_WORKER) as pool:
        rows = pool.imap_unordered(_numbered, enumerate(cases))
        try:
            while len(done) < len(cases):
                index, row = rows.next(timeout=budget.left)
                done.add(index)
                echo(f"check {len(done)}/{len(cases)}: {' '.join(map(str, row[:7]))} {row[-1]}")
                yield row
        except multiprocessing.TimeoutError:
            echo(f"{len(cases) - len(done)} checks were not reached in {budget.seconds:.0f} s")
    for index, case in enumerate(cases):
        if index not in done:
            yield checks.row(case, {}, NOT_MEASURED)


def _numbered(numbered: tuple[int, checks.Case]) -> tuple[int, checks.Row]:
    index, case = numbered
    return index, checks.run_case(case, "cuda")


@dataclass(frozen=True)
class Contender:
    """One way to do the work. ``peer``: not ours, so only its outputs are checked, if at all."""

    op: Op
    peer: bool = False
    heads_first: bool = False

    @property
    def preparation(self) -> float:
        """Seconds that must be left before it is begun."""
        return TUNING if self.peer and not self.heads_first else 0.0


def contenders(rule: str) -> dict[str, Contender]:
    """Return all that are timed for a rule, by name."""
    found = {
        "auto": Contender(ours(rule)),
        "recurrent": Contender(ours(rule, "triton", kernel="recurrent")),
        "chunkwise": Contender(ours(rule, "triton", kernel="chunkwise")),
    }
    found |= {name: Contender(op, peer=True) for name, op in peers.fla_ops(rule).items()}
    return found | {"sdpa": Contender(peers.softmax, peer=True, heads_first=True)}


def do_bench(run: Run) -> Spread:
    """Time with CUDA events, the cache cleared between runs."""
    import triton

    return Spread(*triton.testing.do_bench(run, quantiles=[0.5, 0.25, 0.75]))


def time_all(
    work: Sequence[Work],
    budget: Budget,
    echo: Echo,
    *,
    device: str = "cuda",
    bench: Bench = do_bench,
    choose: Callable[[str], dict[str, Contender]] = contenders,
) -> tuple[Section, bool]:
    """Time all work while the budget lasts; return the table and whether all checks held."""
    failures = _Checks(device)
    rows: list[tuple[object, ...]] = []
    for each in work:
        for name, contender in choose(each.rule).items():
            cells: tuple[Cell, Cell] = (NOT_MEASURED, NOT_MEASURED)
            if budget.left > contender.preparation:
                reason = failures.of(each, name, contender)
                cells = (reason, reason) if reason else _timed(each, contender, device, bench)
            echo(f"{each.rule} {each.shape.label} {name}: {cells[0]} {cells[1]}")
            rows.append((*_labels(each), name, *cells, *each.floor))
    notes = [] if peers.has_fla() else ["flash-linear-attention is not installed: not compared."]
    notes.append("Medians and quartiles. sdpa is causal softmax attention; floor: see the README.")
    return Section("Times on the GPU", COLUMNS, rows, tuple(notes)), not failures.ours_failed


def _labels(work: Work) -> tuple[str, str, str]:
    return work.rule, str(work.dtype).removeprefix("torch."), work.shape.label


class _Checks:
    """Which contenders must not be timed, asked once for each rule, precision and dimensions."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._found: dict[tuple[object, ...], str | None] = {}
        self.ours_failed = False

    def of(self, work: Work, name: str, contender: Contender) -> str | None:
        """Return why the contender must not be timed, or None."""
        shape = work.shape
        key = (work.rule, work.dtype, shape.d_key, shape.d_value, name)
        if key not in self._found:
            self._found[key] = self._ask(work, shape.shortened(), contender)
        return self._found[key]

    def _ask(self, work: Work, short: Shape, contender: Contender) -> str | None:
        if contender.heads_first:
            return None
        if contender.peer:
            return checks.check_output(
                contender.op, work.rule, short, work.dtype, self._device, PEER_LIMIT
            )
        reason = checks.check_op(contender.op, work.rule, short, work.dtype, self._device)
        self.ours_failed |= reason is not None
        return reason


def _timed(work: Work, contender: Contender, device: str, bench: Bench) -> tuple[Cell, Cell]:
    rule = "sum" if contender.heads_first else work.rule
    inputs = make_inputs(rule, work.shape, dtype=work.dtype, device=device, state=False)
    if contender.heads_first:
        inputs = inputs.heads_first()

    made = (forward(contender.op, inputs), forward_backward(contender.op, inputs))
    return _attempt(bench, made[0]), _attempt(bench, made[1])


def time_decoding(
    budget: Budget,
    echo: Echo,
    *,
    shape: Shape = STEP,
    dtype: torch.dtype = torch.bfloat16,
    device: str = "cuda",
    bench: Bench = do_bench,
) -> tuple[Section, bool]:
    """Time one token of each sequence, the state in place; others return a new one."""
    rows: list[tuple[object, ...]] = []
    sound = True
    for rule in ("delta", "gated_delta", "kda"):
        inputs = make_inputs(rule, shape, dtype=dtype, device=device)
        reason = checks.check_step(rule, replace(shape, length=8), dtype, device)
        sound &= reason is None
        others = peers.fla_ops(rule).get(peers.RECURRENT) if device == "cuda" else None
        runs = {"fast_weight_step": _step(rule, inputs)}
        if others is not None:
            runs[peers.RECURRENT] = forward(others, inputs)
        for name, run in runs.items():
            mine = name == "fast_weight_step"
            cell: Cell = reason if mine and reason else NOT_MEASURED
            if budget.left > 0 and not (mine and reason):
                cell = _attempt(bench, run)
            echo(f"decoding {rule} {name}: {cell}")
            rows.append((rule, shape.label, name, cell))
    return Section("Decoding on the GPU", ("rule", "shape", "what", "ms_per_token"), rows), sound


def _attempt(bench: Bench, run: Run) -> Cell:
    try:
        return bench(run)
    except Exception as error:  # no backward, no memory: the row says so
        return checks.described(error)


def _step(rule: str, inputs: Inputs) -> Run:
    (token,) = inputs.tokens()
    assert inputs.initial_state is not None
    state = inputs.initial_state.clone()
    return partial(fast_weight_step, **token, state=state, rule=rule, inplace=True)
