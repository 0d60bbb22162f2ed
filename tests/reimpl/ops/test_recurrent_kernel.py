"""What only the recurrent kernels do: offsets, grids, blocks of columns, the choice of tiles."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reimpl.ops import recurrent_kernel
from reimpl.ops.launching import Tuned, pinned
from reimpl.ops.problem import Problem
from tests.reimpl.ops.cases import case, errors, run

F32 = 2e-6


def test_offsets_past_two_to_the_31_reach_the_right_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """flash-linear-attention 1080: B · T · H · D past 2³¹ read and wrote elsewhere.

    The tensors have 2³¹ + 1024 numbers each, of which only the last four tokens are touched. The
    interpreter copies each argument to itself, so it gets the first token as the whole.
    """
    torch.use_deterministic_algorithms(False)  # NaN in all buffers would be 4 GB of real memory
    launch = Tuned._run

    def launch_on_views(self: Tuned, config: Any, grid: Any, arguments: dict[str, Any]) -> None:
        large = {n: a for n, a in arguments.items() if isinstance(a, torch.Tensor) and a.ndim == 4}
        launch(self, config, grid, arguments | {n: a[:, :1] for n, a in large.items()})

    monkeypatch.setattr(Tuned, "_run", launch_on_views)
    length, d = 2**31 // 256 + 4, 256
    q, k, v = (torch.empty(1, length, 1, d, dtype=torch.float16) for _ in range(3))
    x = case("sum", seed=1, batch=1, length=4, heads=1, d_key=d, d_value=d).to(torch.float16)
    for whole, end in ((q, x.q), (k, x.k), (v, x.v)):
        whole[:, -4:] = end
    bounds = torch.tensor([length - 4, length])
    problem = Problem(q, k, v, None, None, x.initial_state, bounds, 1.0, torch.float16)
    output, state, _ = recurrent_kernel.forward(problem, keep=False)
    monkeypatch.undo()
    right = run(x, "recurrent")
    assert torch.equal(output[:, -4:], right["output"])
    assert torch.equal(state, right["state"])


def test_grids_have_one_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid's second and third axes end at 65,535; the first at 2³¹ − 1."""
    grids: list[tuple[int, ...]] = []

    def note(self: Tuned, grid: Any, **arguments: Any) -> None:
        grids.append(grid({"BV": 16}))

    monkeypatch.setattr(Tuned, "launch", note)
    n, heads, d = 30_000, 4, 32
    q = torch.zeros(1, n, heads, d)
    problem = Problem(q, q, q, None, None, None, torch.arange(n + 1), 1.0, q.dtype)
    recurrent_kernel.forward(problem, keep=True)
    assert grids == [(n * heads * 2,)]


@pytest.mark.parametrize("rule", ["sum", "delta", "gated_delta", "kda"])
def test_blocks_of_columns_add_up(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent_kernel, "_backward_width", lambda d_key, d_value: 4)
    x = case(rule, seed=2, batch=1, heads=2, length=19, d_key=6, d_value=11)
    found = errors(x.to(torch.float32), "recurrent")
    assert max(found.values()) < F32, found


@pytest.mark.parametrize("index", range(3))
def test_every_configuration_gives_the_recurrence(index: int) -> None:
    x = case("kda", seed=3, batch=1, heads=1, length=3, d_key=70, d_value=100)
    with pinned(index):
        found = errors(x.to(torch.float32), "recurrent")
    assert max(found.values()) < F32, found


def test_programs_take_turns_where_replayed_states_would_fill_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recurrent_kernel, "SCRATCH_BYTES", 1)
    x = case("gated_delta", seed=5, batch=2, heads=2, length=19)
    found = errors(x.to(torch.float32), "recurrent")
    assert max(found.values()) < F32, found


def test_kept_states_are_one_in_thirty_two_tokens() -> None:
    x = case("delta", seed=4, batch=1, length=64)
    p = Problem(x.q, x.k, x.v, x.beta, None, None, None, 1.0, torch.float32)
    assert recurrent_kernel.saved_shapes(p) == [(2, 2, 5, 7), (1, 64, 2, 7)]
