"""The chunkwise kernels against the rules taken one position at a time in float64.

Errors are relative to the largest number of what is compared. The interpreter multiplies float32
tiles exactly as written; what tensor cores round is checked on a GPU.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from reimpl.ops import chunk_launch
from reimpl.ops.problem import Problem
from reimpl.rules import outer, read

FLOAT32 = 2e-6
"""Largest relative error against float64: some sixteen roundings of float32."""
MODES = [(looks, decays) for looks in (False, True) for decays in (0, 1, 2)]
LOG_2 = 0.6931471805599453


class Result(NamedTuple):
    """Outputs, last states, and the gradients of all inputs that were given, by name."""

    output: Tensor
    state: Tensor
    grads: dict[str, Tensor]


def made(
    looks: bool,
    decays: int,
    *,
    seed: int = 0,
    length: int = 21,
    d_key: int = 20,
    d_value: int = 12,
    heads: int = 1,
    bounds: list[int] | None = None,
    state: bool = True,
    scale: float = 0.7,
) -> Problem:
    """Return a random problem; ``decays`` is 0 for none, 1 for one a head, 2 for one a channel."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    batch = 2 if bounds is None else 1
    places = (batch, length, heads)
    sequences = batch if bounds is None else len(bounds) - 1
    k = normal(*places, d_key)
    return Problem(
        normal(*places, d_key),
        k / k.norm(dim=-1, keepdim=True),
        normal(*places, d_value),
        torch.rand(places, generator=generator) if looks else None,
        -0.5 * torch.rand((*places, *(d_key,) * (decays - 1)), generator=generator)
        if decays
        else None,
        normal(sequences, heads, d_key, d_value) if state else None,
        None if bounds is None else torch.tensor(bounds),
        scale,
        torch.float32,
    )


def weights(p: Problem) -> tuple[Tensor, Tensor]:
    """Return the gradients that come back to outputs and last states."""
    generator = torch.Generator().manual_seed(99)
    return torch.randn(p.v.shape, generator=generator), torch.randn(
        p.state_shape, generator=generator
    )


NAMES = ("q", "k", "v", "beta", "decay", "initial_state")


def expected(p: Problem) -> Result:
    """Return what the rule says, one position at a time in float64."""
    x = {n: getattr(p, n) for n in NAMES}
    x = {n: t.double().requires_grad_() for n, t in x.items() if t is not None}
    bounds = [0, p.length] if p.cu_seqlens is None else p.cu_seqlens.tolist()
    outputs, states = [], []
    for n, (start, stop) in enumerate(pairwise(bounds)):
        S = torch.zeros(p.state_shape[1:], dtype=torch.float64).expand(p.batch, -1, -1, -1)
        if "initial_state" in x:
            S = x["initial_state"] if p.cu_seqlens is None else x["initial_state"][n : n + 1]
        for t in range(start, stop):
            S = step(p, x, S, t)
            outputs.append(p.scale * read(S, x["q"][:, t]))
        states.append(S)
    output, state = torch.stack(outputs, 1), torch.cat(states)
    d_output, d_state = weights(p)
    total = (output * d_output).sum() + (state * d_state).sum()
    return Result(output, state, dict(zip(x, torch.autograd.grad(total, x.values()), strict=True)))


def step(p: Problem, x: dict[str, Tensor], S: Tensor, t: int) -> Tensor:
    """Return the states after position ``t``."""
    if "decay" in x:
        alpha = x["decay"][:, t].exp()
        S = S * (alpha[..., None] if p.decays_per_key else alpha[..., None, None])
    written = x["v"][:, t]
    if "beta" in x:
        written = x["beta"][:, t, :, None] * (written - read(S, x["k"][:, t]))
    return S + outer(x["k"][:, t], written)


def kernels(p: Problem, size: int | None = 16) -> Result:
    """Return what the kernels say, in chunks of ``size``."""
    output, state, saved = chunk_launch.forward(p, True, size)
    assert [tuple(x.shape) for x in saved] == chunk_launch.saved_shapes(p, size)
    assert [x.dtype for x in saved] == chunk_launch.saved_dtypes(p)
    grads = chunk_launch.backward(p, saved, *weights(p), size)
    given = {n: g for n, g in zip(NAMES, grads, strict=True) if getattr(p, n) is not None}
    return Result(output, state, {n: g for n, g in given.items() if g is not None})


def error(x: Tensor, y: Tensor) -> float:
    assert x.shape == y.shape
    difference = (x.double() - y.detach()).abs().max()
    return float(difference / y.detach().abs().max().clamp(min=1e-30))


def compare(p: Problem, size: int | None = 16, within: float = FLOAT32) -> None:
    """Hold outputs, states and every gradient of the kernels against the rule."""
    found, right = kernels(p, size), expected(p)
    errors = {"output": error(found.output, right.output), "state": error(found.state, right.state)}
    assert found.grads.keys() == right.grads.keys()
    errors |= {n: error(found.grads[n], right.grads[n]) for n in right.grads}
    assert max(errors.values()) < within, errors


@pytest.mark.parametrize(("looks", "decays"), MODES)
@pytest.mark.parametrize("length", [1, 7, 40])
def test_output_state_and_gradients(looks: bool, decays: int, length: int) -> None:
    compare(made(looks, decays, length=length, seed=length, heads=2))


@pytest.mark.parametrize(("looks", "decays"), MODES)
def test_without_an_initial_state(looks: bool, decays: int) -> None:
    compare(made(looks, decays, state=False))


@pytest.mark.parametrize("decays", [0, 1, 2])
def test_chunks_of_the_size_that_is_used(decays: int) -> None:
    p = made(True, decays, length=70, d_key=8, d_value=8)
    assert chunk_launch.fitting_size(p) in (16, 32)
    compare(p, None)


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("decays", [0, 1, 2])
def test_chunks_of_64(looks: bool, decays: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_launch, "fitting_size", lambda problem, size=None: 64)
    compare(made(looks, decays, length=70, d_key=8, d_value=8), 64)


@pytest.mark.parametrize(("looks", "decays"), MODES)
def test_several_blocks_of_keys_and_values(looks: bool, decays: int) -> None:
    compare(made(looks, decays, length=18, d_key=72, d_value=40))


@pytest.mark.parametrize(("looks", "decays"), MODES)
def test_packed_sequences_some_of_them_empty(looks: bool, decays: int) -> None:
    bounds = [0, 0, 17, 17, 18, 50, 50]
    compare(made(looks, decays, length=50, bounds=bounds))


def test_packed_sequences_of_64_bit_bounds_and_of_32_bit_bounds_agree() -> None:
    p = made(True, 1, length=20, bounds=[0, 3, 20])
    assert p.cu_seqlens is not None
    short = p._replace(cu_seqlens=p.cu_seqlens.int())
    assert torch.equal(kernels(p).output, kernels(short).output)


@pytest.mark.parametrize("decays", [1, 2])
@pytest.mark.parametrize("value", [0.0, -1e-6, -485 * LOG_2 / 16, -50.0, -300.0, float("-inf")])
def test_decays_from_none_to_all(decays: int, value: float) -> None:
    p = made(True, decays, length=24)
    assert p.decay is not None
    compare(p._replace(decay=torch.full_like(p.decay, value)))


@pytest.mark.parametrize("decays", [1, 2])
def test_decays_that_forget_everything_now_and_then(decays: int) -> None:
    p = made(True, decays, length=24)
    assert p.decay is not None
    decay = p.decay.clone()
    decay[:, ::5] = float("-inf")
    compare(p._replace(decay=decay))


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("decays", [1, 2])
@pytest.mark.parametrize("value", [-0.1, -50.0, float("-inf")])
def test_first_decay_has_no_gradient_without_a_state(
    looks: bool, decays: int, value: float
) -> None:
    p = made(looks, decays, length=24, state=False)
    assert p.decay is not None
    found = kernels(p._replace(decay=torch.full_like(p.decay, value)))
    first = found.grads["decay"][:, 0]
    assert torch.equal(first, torch.zeros_like(first))


@pytest.mark.parametrize("decays", [0, 1, 2])
def test_beta_of_zero_one_and_beyond(decays: int) -> None:
    p = made(True, decays, length=24)
    assert p.beta is not None
    beta = p.beta.clone()
    beta[:, 0::4], beta[:, 1::4], beta[:, 2::8], beta[:, 6::8] = 0.0, 1.0, 1.9, -0.6
    compare(p._replace(beta=beta))


def test_keys_of_small_norm() -> None:
    p = made(True, 1, length=24)
    compare(p._replace(k=p.k * 1e-3))


def test_keys_that_all_agree() -> None:
    p = made(True, 0, length=40)
    assert p.beta is not None
    compare(p._replace(k=p.k[:, :1].expand_as(p.k).contiguous(), beta=torch.ones_like(p.beta)))


def test_scale_may_be_an_int() -> None:
    compare(made(True, 0)._replace(scale=1))


@pytest.mark.parametrize("decays", [0, 2])
def test_views_of_one_projection(decays: int) -> None:
    p = made(True, decays, d_key=12, d_value=12)
    joint = torch.stack([p.q, p.k, p.v], 2)
    q, k, v = joint.unbind(2)
    compare(p._replace(q=q, k=k, v=v))


def test_heads_before_positions_and_expanded_gradients() -> None:
    p = made(True, 1)
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (p.q, p.k, p.v))
    strided = p._replace(q=q, k=k, v=v)
    output, _, saved = chunk_launch.forward(strided, True, 16)
    assert torch.equal(output, kernels(p).output)
    ones = torch.ones(()).expand(p.v.shape)
    dq = chunk_launch.backward(strided, saved, ones, None, 16)[0]
    assert torch.equal(dq, chunk_launch.backward(p, saved, ones.contiguous(), None, 16)[0])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # dq passes the range as well
def test_float16_states_may_pass_its_range() -> None:
    p = made(True, 1, d_key=8, d_value=8, state=False)
    q, v = p.q.half() * 1e-2, (p.v * 1e3).half()
    k = torch.zeros_like(q)
    k[..., 0] = 32.0
    p = p._replace(q=q, k=k, v=v, beta=None, decay=None)
    found, right = kernels(p), expected(p)
    assert right.state.abs().max() > 65504
    assert error(found.output, right.output) < FLOAT32
    assert error(found.state, right.state) < FLOAT32
    assert error(found.grads["v"], right.grads["v"]) < 1e-3
    assert found.grads["v"].dtype == torch.float16


def test_forward_alone_keeps_nothing() -> None:
    p = made(True, 2, length=40)
    output, state, saved = chunk_launch.forward(p, False, 16)
    full = chunk_launch.forward(p, True, 16)
    assert saved == []
    assert torch.equal(output, full[0])
    assert torch.equal(state, full[1])


INPUTS = ("q", "k", "v", "beta", "initial_state")


@pytest.mark.parametrize(
    ("decays", "name"), [*product((0, 1, 2), INPUTS), (1, "decay"), (2, "decay")]
)
def test_nan_passes_through(decays: int, name: str) -> None:
    p = made(True, decays, length=20)
    x = getattr(p, name)
    poisoned = x.clone()
    poisoned[:, 0] = float("nan")
    assert kernels(p._replace(**{name: poisoned})).output.isnan().any()


def test_grids_have_one_axis() -> None:
    cases = chunk_launch.compile_cases()
    assert {case.name.split()[1] for case in cases} == {
        "prepare",
        "scan",
        "scan_backward",
        "gradients",
    }
    p = made(True, 0)._replace(cu_seqlens=None)
    launches, _ = chunk_launch._plan_forward(p, False, 16)
    assert [len(each.grid({"BV": 16})) for each in launches] == [1, 1]
    assert launches[0].grid({}) == (2 * 2,)
