"""The bench: what it refuses to time, how it renders, and that every kernel compiles."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl.bench import Settings, checks, cpu, cuda, language_model, memory, retrieval
from reimpl.bench.compiling import SHARED_KB, compile_all
from reimpl.bench.inputs import Inputs, Shape, forward_backward, make_inputs, ours
from reimpl.bench.report import Report, Section, Spread
from reimpl.bench.timing import Budget, Run, exponent, interleave, ratio
from tests.conftest import Outcome

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="triton is for Linux")
TINY = cpu.Plan(
    head=Shape(1, 40, 2, 8, 8),
    lengths=(20, 40),
    paper=Shape(2, 20, 2, 4, 4),
    rules_at=20,
    memory_lengths=(),
    positions=(3, 40),
    repeats=2,
)
SMALL = Shape(1, 20, 2, 8, 8)


def wrong(x: Inputs) -> tuple[Tensor, Tensor | None]:
    """A delta rule whose key gradient is a tenth too large."""
    k = x.k * 1.1 - (x.k * 0.1).detach()
    return ours("delta")(replace(x, k=k))


def silent(_: str) -> None:
    pass


class Clock:
    """A clock that goes on by ``step`` with every look at it."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


# how times are taken


def test_jobs_take_turns_and_their_second_run_counts() -> None:
    order = []

    def job(name: str) -> Callable[[], Run]:
        return lambda: lambda: order.append(name)

    times = interleave({"a": job("a"), "b": job("b")}, 2, Clock(1.0))
    assert "".join(order) == "aabbaabb"
    assert times == {"a": [1.0, 1.0], "b": [1.0, 1.0]}


def test_a_ratio_is_taken_within_each_round() -> None:
    assert ratio([2.0, 20.0, 6.0], [1.0, 10.0, 2.0]) == Spread(2.0, 2.0, 2.5)


def test_the_exponent_of_a_power_law() -> None:
    assert exponent({n: 3.0 * n**1.25 for n in (512, 1024, 16384)}) == pytest.approx(1.25)


def test_a_budget_is_spent_and_can_be_parted() -> None:
    clock = Clock(0.0)
    budget = Budget(10, clock)
    half = budget.part(0.5)
    clock.now = 4
    assert (budget.left, half.left) == (6, 1)
    clock.now = 11
    assert (budget.left, half.left) == (0, 0)


# what is reported


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0412, "0.0412"),
        (41.234, "41.2"),
        (1234.5, "1,234"),
        (3e-5, "3.00e-05"),
        (0.0, "0.00e+00"),
    ],
)
def test_a_spread_reads_in_three_digits(value: float, text: str) -> None:
    assert str(Spread(value, value, value)) == f"{text} ({text}–{text})"


def test_a_report_has_one_signature_and_no_bare_nan_in_its_json() -> None:
    section = Section(
        "T", ("what", "ms", "error"), [("a", Spread(1.0, 0.5, 2.0), math.inf)], ("n",)
    )
    hidden = Section("only in the JSON", ("x",), [(math.nan,)], in_text=False)
    report = Report({"op": "o", "date": "2021-02-22"}, [section, hidden], failed=False)
    found = json.loads(report.json())
    assert found["signature"] == "op:o|date:2021-02-22"
    assert found["sections"][0]["rows"] == [
        {"what": "a", "ms": {"median": 1.0, "low": 0.5, "high": 2.0}, "error": "inf"}
    ]
    assert "only in the JSON" not in report.text()
    assert report.text().endswith("op:o|date:2021-02-22")


def test_a_report_is_written_whole_or_refused(tmp_path: Path) -> None:
    report = Report({"op": "o"}, [], failed=False)
    report.write(tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == json.loads(report.json())
    with pytest.raises(ConfigError, match="cannot write"):
        report.write(tmp_path / "nowhere" / "x.json")


# what is checked


@pytest.mark.parametrize("rule", checks.RULES)
def test_the_op_passes_its_check(rule: str) -> None:
    assert checks.check_op(ours(rule), rule, SMALL, torch.float32, "cpu") is None


def test_a_wrong_gradient_is_named() -> None:
    reason = checks.check_op(wrong, "delta", SMALL, torch.float32, "cpu")
    assert reason is not None
    assert "d_k 1.0e-01" in reason
    assert "d_q" not in reason


def test_what_is_not_written_shows_as_nan() -> None:
    def forgetful(x: Inputs) -> tuple[Tensor, None]:
        output, _ = ours("sum")(x)
        return torch.cat([output[:, :-1], torch.empty_like(output[:, -1:])], 1), None

    inputs = make_inputs("sum", SMALL, state=False)
    found = checks.errors(forgetful, inputs, checks.right_results(inputs, "sum"))
    assert found["output"] == math.inf
    assert not torch.are_deterministic_algorithms_enabled()


def test_an_op_that_raises_fails_its_check() -> None:
    def broken(_: Inputs) -> tuple[Tensor, None]:
        raise RuntimeError("no such kernel\nat length")

    reason = checks.check_op(broken, "delta", SMALL, torch.float32, "cpu")
    assert reason == "RuntimeError: no such kernel"


def test_negligible_gradients_are_compared_on_an_absolute_scale() -> None:
    tiny = torch.full((4,), 1e-12)
    assert checks.relative_error(tiny * 2, tiny) < 1e-6
    assert checks.relative_error(tiny * math.nan, tiny) == math.inf


def test_the_check_list_covers_rules_precisions_scales_decays_and_configurations() -> None:
    listed = checks.check_list(("recurrent", "chunkwise"))
    assert len(set(listed)) == len(listed)
    for name, values in (("rule", checks.RULES), ("dtype", checks.DTYPES)):
        assert {getattr(case, name) for case in listed} == set(values)
    assert {case.pin for case in listed} == set(range(checks.PINS))
    assert {case.decay for case in listed} == {None, *checks.REGIMES}
    assert any(case.scale == 1 and isinstance(case.scale, int) for case in listed)
    assert any(case.shape.bounds for case in listed)


@pytest.mark.parametrize("bounds", [None, (0, 0, 7, 20)])
def test_the_check_list_passes_on_a_cpu(bounds: tuple[int, ...] | None) -> None:
    shape = replace(SMALL, bounds=bounds)
    listed = checks.check_list((None,), dtypes=(torch.float32,), shapes=(shape,))
    rows = [checks.run_case(case, "cpu") for case in listed]
    assert [row for row in rows if row[-1] != checks.OK] == []
    titles = [section.title for section in checks.sections(rows)]
    assert titles == ["Relative errors against float64", "All checks"]


def test_failed_checks_have_a_table_of_their_own() -> None:
    case = checks.Case("delta", torch.float32, SMALL, None)
    rows = [checks.row(case, {"output": math.inf}, "bad"), checks.row(case, {}, checks.OK)]
    sections = {section.title: section for section in checks.sections(rows)}
    assert sections["Checks that failed"].rows == [rows[0]]
    assert sections["Relative errors against float64"].rows[0][3:5] == (2, 1)


# the bench on a CPU


@pytest.fixture(scope="module")
def tiny() -> Report:
    """A bench of toy sizes."""
    return cpu.run_plan(TINY, check=False, echo=silent)


def test_a_bench_times_everything_and_shows_its_targets(tiny: Report) -> None:
    assert not tiny.failed
    titles = [section.title for section in tiny.sections]
    assert titles == [
        "Forward + backward",
        "Every rule at B=1 L=20 H=2 D=8",
        "Peak memory, forward + backward",
        "Decoding, one sequence",
        "Targets",
    ]
    names = {row[1] for row in tiny.sections[0].rows}
    assert names == {"ours", "recurrence", "sum", "sdpa"}
    assert all(isinstance(row[2], Spread) for row in tiny.sections[0].rows)
    assert {row[:2] for row in tiny.sections[3].rows} == {
        (rule, position) for rule in ("delta", "gated_delta") for position in (3, 40)
    }
    assert {row[3] for row in tiny.sections[4].rows} <= {"yes", "no", "unclear", "not measured"}


@pytest.mark.parametrize(
    ("wanted", "measured", "met"),
    [
        ("≥ 20", Spread(25, 22, 30), "yes"),
        ("≥ 20", Spread(25, 19, 30), "unclear"),
        ("≤ 1.6", Spread(2, 1.7, 3), "no"),
        ("≤ 1.6", None, "not measured"),
    ],
)
def test_a_target_is_met_where_the_quartiles_meet_it(
    wanted: str, measured: Spread | None, met: str
) -> None:
    assert cpu._target("what", wanted, measured)[3] == met


@pytest.mark.parametrize(
    ("drift", "met"),
    [
        (None, "not measured"),
        (Spread(1.02, 0.99, 1.03), "yes"),
        (Spread(1.2, 1.1, 1.3), "no"),
        (Spread(1.2, 0.9, 1.5), "unclear"),
    ],
)
def test_decoding_is_flat_within_its_noise(drift: Spread | None, met: str) -> None:
    assert cpu._flatness("delta", drift)[3] == met


def test_growth_needs_all_lengths_of_the_target() -> None:
    plan = replace(TINY, lengths=(512, 1024, 16384))
    times = {("ours", replace(plan.head, length=n)): [n**1.0, n**1.2] for n in plan.lengths}
    growth = cpu._growth(times, plan)
    assert growth is not None
    assert (growth.median, growth.low) == pytest.approx((1.1, 1.05))
    assert cpu._growth({}, plan) is None


def test_an_op_that_fails_its_check_is_not_timed() -> None:
    contenders = (replace(cpu.CONTENDERS[0], op=wrong), *cpu.CONTENDERS[1:])
    report = cpu.run_plan(TINY, check=False, echo=silent, contenders=contenders)
    assert report.failed
    mine = [row for row in report.sections[0].rows if row[1] == "ours"]
    assert mine
    assert all("fails its check" in row[2] for row in mine)
    others = [row for row in report.sections[0].rows if row[1] != "ours"]
    assert all(isinstance(row[2], Spread) and row[3] is None for row in others)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from the Linux kernel")
def test_peak_memory_is_at_least_that_of_inputs_and_gradients() -> None:
    tensor = 4 * 2048 * 8 * 64 * 4 / 2**20
    peak = memory.peak_megabytes("delta", 4, 2048, 8, 64)
    assert peak is not None
    assert 8 * tensor < peak < 40 * tensor


# the bench on a GPU, as far as a CPU can tell


def chosen(rule: str) -> dict[str, cuda.Contender]:
    return {
        "ours": cuda.Contender(ours(rule)),
        "wrong": cuda.Contender(wrong),
        "sdpa": cuda.contenders(rule)["sdpa"],
    }


def test_gpu_rows_show_times_and_refusals() -> None:
    work = (cuda.Work("delta", SMALL, torch.float32, floor=(0.125, 0.45)),)

    def bench(run: Run) -> Spread:
        run()
        return Spread(1.0, 1.0, 1.0)

    section, sound = cuda.time_all(
        work, Budget(1e9), silent, device="cpu", bench=bench, choose=chosen
    )
    assert not sound
    once = Spread(1.0, 1.0, 1.0)
    found = {row[3]: row[4:] for row in section.rows}
    assert found["ours"] == found["sdpa"] == (once, once, 0.125, 0.45)
    assert "fails its check" in found["wrong"][0]


def test_rows_beyond_the_budget_say_that_they_were_not_measured() -> None:
    work = [cuda.Work("delta", SMALL, torch.float32)] * 3
    section, _ = cuda.time_all(
        work,
        Budget(2.0, Clock(1.0)),
        silent,
        device="cpu",
        bench=lambda _: Spread(1.0, 1.0, 1.0),
        choose=lambda rule: {"ours": cuda.Contender(ours(rule))},
    )
    cells = [row[4] for row in section.rows]
    assert cells == [Spread(1.0, 1.0, 1.0), cuda.NOT_MEASURED, cuda.NOT_MEASURED]


def test_a_step_is_timed_where_it_passes() -> None:
    section, sound = cuda.time_decoding(
        Budget(1e9),
        silent,
        shape=replace(SMALL, length=1),
        dtype=torch.float32,
        device="cpu",
        bench=lambda _: Spread(1.0, 1.0, 1.0),
    )
    assert sound
    assert [row[3] for row in section.rows] == [Spread(1.0, 1.0, 1.0)] * 3


def test_a_peer_without_a_backward_pass_shows_why() -> None:
    def forward_only(x: Inputs) -> tuple[Tensor, None]:
        if x.q.requires_grad:
            raise NotImplementedError("no backward")
        return ours("delta")(x)[0], None

    section, sound = cuda.time_all(
        [cuda.Work("delta", SMALL, torch.float32)],
        Budget(1e9),
        silent,
        device="cpu",
        bench=lambda run: (run(), Spread(1.0, 1.0, 1.0))[1],
        choose=lambda _: {"peer": cuda.Contender(forward_only, peer=True)},
    )
    assert sound
    assert section.rows[0][4:6] == (Spread(1.0, 1.0, 1.0), "NotImplementedError: no backward")


INTERPRETED = """
import torch
from reimpl.bench import checks
shapes = (checks.Shape(1, 20, 2, 16, 16), checks.Shape(1, 20, 1, 16, 24, (0, 0, 7, 20)))
for kernel in ("recurrent", "chunkwise"):
    for shape in shapes:
        for rule in checks.RULES:
            for pin in (0, 1):
                case = checks.Case(rule, torch.float32, shape, kernel, pin=pin)
                row = checks.run_case(case, "cpu")
                assert row[-1] == checks.OK, row
"""


@linux
def test_the_gpu_checks_pass_under_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# compiling without a GPU

TOY = """
import triton
import triton.language as tl
from reimpl.ops.launching import CompileCase

@triton.jit
def square(x, y, N: tl.constexpr, BT: tl.constexpr):
    i = tl.arange(0, BT)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + i)
    tl.store(y + i, tl.dot(a, a) + tl.dot(tl.trans(a), a))

@triton.jit
def broken(x, N: tl.constexpr):
    tl.store(x, tl.arange(0, N + 1))

def compile_cases():
    types = {"x": "*fp32", "y": "*fp32", "N": "constexpr", "BT": "constexpr"}
    cases = [
        CompileCase(f"square {n}", square, types, {"N": n, "BT": n}, 1, 1) for n in (16, 64)
    ]
    return [*cases, CompileCase("broken", broken, {"x": "*fp32", "N": "constexpr"}, {"N": 6}, 1, 1)]
"""


@linux
def test_spills_and_errors_fail_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_kernels.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    said: list[str] = []
    report = compile_all(["sm_80"], modules=["toy_kernels"], jobs=1, echo=said.append)
    rows = {row.kernel: row for row in report.sections[0].rows}
    assert report.failed
    assert rows["square 16"].result == "ok"
    assert rows["square 16"].spill_bytes == 0
    assert rows["square 16"].configuration == "BT=16 warps=1 stages=1"
    assert 0 < rows["square 16"].registers < 256
    assert rows["square 64"].result == "spills registers"
    assert rows["square 64"].spill_bytes > 0
    assert rows["broken"].registers is None
    assert "Error" in rows["broken"].result
    assert len(said) == 3


@linux
def test_every_kernel_compiles_without_spills_and_fits() -> None:
    environment = {n: v for n, v in os.environ.items() if n != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "fwp", "bench", "--compile-only", "--format", "json"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    rows = found["sections"][0]["rows"]
    assert [row for row in rows if row["result"] != "ok"] == []
    assert done.returncode == 0
    assert {row["arch"] for row in rows} == set(SHARED_KB)
    assert {row["kernel"].split()[0] for row in rows} == {"recurrent", "chunkwise"}
    assert all(row["spill_bytes"] == 0 for row in rows)
    assert all(row["shared_kb"] <= SHARED_KB[row["arch"]] for row in rows)


# the command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "0"], "--repeats is 0"),
        (["--threads", "-1"], "--threads is -1"),
        (["--budget", "nan"], "--budget is nan"),
        (["--arch", "sm_90"], "--compile-only"),
        (["--compile-only", "--arch", "sm_1"], "unknown architecture 'sm_1'"),
        (["--compile-only", "--device", "cuda"], "leave out"),
    ],
)
def test_bad_options_are_refused(
    run: Callable[..., Outcome], arguments: list[str], message: str
) -> None:
    outcome = run("bench", *arguments)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_command_says_what_to_do(run: Callable[..., Outcome]) -> None:
    outcome = run("bench", "--device", "cuda", "--check")
    assert outcome.code == 2
    assert "needs an NVIDIA GPU" in outcome.err
    assert "--compile-only" in outcome.err


def test_settings_have_defaults_for_everything() -> None:
    assert Settings().device == "cpu"


def test_a_run_has_gradients_of_all_inputs() -> None:
    inputs = make_inputs("kda", SMALL)
    gradients = forward_backward(ours("kda"), inputs)()
    assert isinstance(gradients, tuple)
    assert len(gradients) == 6


CASE = retrieval.Case("update-rule", "dpfp1", "delta", 8, wanted=2.0)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time one step each and weigh nothing."""
    monkeypatch.setattr(retrieval, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(retrieval, "peak_of", lambda *_: 12.3)


@pytest.mark.usefixtures("brief")
def test_the_retrieval_bench_compares_ours_with_both_peers() -> None:
    report = retrieval.run_cases((CASE,), 3, echo=lambda line: None)
    steps, rest = report.sections
    [(model, S, own, weights, by_chunks, writes, by_writes, wanted)] = steps.rows
    assert (model, S, wanted, report.failed) == ("dpfp1 delta", 8, 2.0, False)
    assert all(spread.median > 0 for spread in (own, weights, writes, by_chunks, by_writes))
    assert [row[4:] for row in rest.rows] == [(12, 12, 12)]
    assert report.environment["op"] == "retrieval"


@pytest.mark.usefixtures("brief")
def test_loops_that_fail_their_check_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "ours", lambda model, batch: 1.001 * model.answers(batch))
    report = retrieval.run_cases((CASE,), 1, echo=lambda line: None)
    assert report.failed
    [row] = report.sections[0].rows
    assert row[2].startswith("wrong: error")
    assert row[3:] == (None,) * 5
    assert report.sections[1].rows == []


@pytest.mark.parametrize("case", list(retrieval.QUICK), ids=lambda case: case.label)
def test_what_the_retrieval_bench_times_passes_its_check(case: retrieval.Case) -> None:
    assert retrieval.check(case) < retrieval.LIMIT


@pytest.mark.parametrize("case", list(retrieval.QUICK), ids=lambda case: case.label)
def test_both_peers_answer_alike(case: retrieval.Case) -> None:
    run = retrieval.start(dataclasses.replace(case, S=8).point)
    model, batch = run.model.double(), run.stream.train_batch(4)
    torch.testing.assert_close(
        retrieval.by_chunks(model, batch), retrieval.by_writes(model, batch), rtol=1e-8, atol=1e-8
    )


# The language models


def language_model_report() -> Report:
    return language_model.measure(quick=True, repeats=1, threads=1, echo=lambda line: None)


def test_the_language_model_bench_compares_rules_and_ways_of_evaluating() -> None:
    report = language_model_report()
    training, evaluation = report.sections
    assert [row[0] for row in training.rows] == list(language_model.models(quick=True))
    assert {row[0]: row[3] for row in training.rows if row[3]} == language_model.SPEED_TARGETS
    assert all(isinstance(row[1], Spread) for row in [*training.rows, *evaluation.rows])
    assert not report.failed


def test_a_language_model_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        language_model, "check", lambda config: 0.5 if config.rule == "sum" else 0.0
    )
    report = language_model_report()
    rows = {row[0]: row[1:] for row in report.sections[0].rows}
    assert report.failed
    assert rows["sum"] == ("wrong: error 5.0e-01", None, None)
