"""The parts of the chunkwise torch backend, and what it keeps in memory."""

from __future__ import annotations

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reimpl.ops.chunk import invert_unit_lower
from reimpl.ops.decays import HeadDecay, KeyDecay
from reimpl.ops.packing import most_chunks, plan
from reimpl.ops.problem import Problem
from tests.reimpl.ops.cases import case, run

ANY_FIXTURE = [HealthCheck.function_scoped_fixture]


@settings(max_examples=30, suppress_health_check=ANY_FIXTURE)
@given(seed=st.integers(0, 2**20), size=st.sampled_from([1, 2, 16, 32, 128]))
def test_the_inverse_of_a_unit_lower_triangle_is_one(seed: int, size: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(3, size, size, generator=generator, dtype=torch.float64).tril(-1) / 4
    inverse = torch.empty_like(A)
    invert_unit_lower(A, out=inverse)
    eye = torch.eye(size, dtype=A.dtype)
    residual = (eye + A) @ inverse - eye
    assert float(residual.abs().max()) < 1e-12 * max(1.0, float(inverse.abs().max()))


def test_the_inverse_is_stable_where_a_series_in_powers_is_not() -> None:
    """Equal keys and β = 1 make A all ones: powers reach 1e37, the inverse has entries 1 and −1."""
    A = torch.ones(1, 128, 128).tril(-1)
    inverse = torch.empty_like(A)
    invert_unit_lower(A, out=inverse)
    right = torch.eye(128) - torch.eye(128).roll(1, 0).tril(-1)
    assert torch.equal(inverse[0], right)


@settings(max_examples=40, suppress_health_check=ANY_FIXTURE)
@given(
    lengths=st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(sum),
    size=st.sampled_from([1, 4, 8]),
    most=st.integers(0, 12),
)
def test_packing_and_unpacking_gives_each_token_back(
    lengths: list[int], size: int, most: int
) -> None:
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    length = sum(lengths)
    packing = plan(1, length, bounds, size)
    x = torch.arange(length * 6.0).view(1, length, 2, 3)
    back = torch.empty_like(x)
    chunks = 0
    for group in packing.groups(most):
        packing.unpack_into(back, packing.pack(x, group, torch.float64), group)
        chunks += group.chunks
    assert torch.equal(back, x)
    assert (
        chunks == sum(-(-n // size) for n in lengths) <= most_chunks(1, length, len(lengths), size)
    )


@settings(max_examples=40, suppress_health_check=ANY_FIXTURE)
@given(batch=st.integers(1, 3), length=st.integers(1, 20), size=st.sampled_from([1, 4, 8]))
def test_rows_of_one_length_come_back_too(batch: int, length: int, size: int) -> None:
    packing = plan(batch, length, None, size)
    x = torch.arange(batch * length * 2.0).view(batch, length, 2)
    back = torch.empty_like(x)
    for group in packing.groups(3):
        packing.unpack_into(back, packing.pack(x, group, torch.float32), group)
    assert torch.equal(back, x)


def test_one_decay_for_all_channels_is_the_decay_of_the_head() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(3, 16, 5, generator=generator, dtype=torch.float64)
    k = rows[:, :8]
    log_decay = -torch.rand(3, 8, generator=generator, dtype=torch.float64)
    by_head = HeadDecay(log_decay).apply(rows, k)
    by_key = KeyDecay(log_decay[..., None].expand(-1, -1, 5).contiguous()).apply(rows, k)
    for a, b in zip(by_head, by_key, strict=True):
        assert a is not None
        assert b is not None
        torch.testing.assert_close(a.expand_as(b), b, rtol=1e-12, atol=1e-14)


def test_products_of_decays_are_exact_where_differences_of_long_sums_are_not() -> None:
    """After 7 decays of −80 the last factor exp(−0.001) must survive in float32.

    Cumulative sums near −560 are spaced 6e-5 apart: their difference would be off by up to 6 %.
    """
    log_decay = torch.full((1, 8), -80.0)
    log_decay[0, -1] = -0.001
    ones = torch.ones(1, 8, 1)
    right = torch.tensor(-0.001).double().exp()
    for decay in (HeadDecay(log_decay), KeyDecay(log_decay[..., None])):
        scores = decay.apply(ones, ones).scores
        assert abs(float(scores[0, 7, 6]) - float(right)) < 1e-7


def test_what_the_gradient_keeps_grows_linearly_with_length() -> None:
    """A loop under autograd keeps a d × d state for every token (mlx-lm issue 1870)."""

    def kept(length: int) -> int:
        sizes: list[int] = []

        def pack(x: torch.Tensor) -> torch.Tensor:
            sizes.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            x = case("delta", seed=2, length=length, batch=1, d_key=32, d_value=32)
            run(x, "chunk", chunk_size=32)
        return sum(sizes)

    d, heads, chunk = 32, 2, 32
    inputs_and_errors, states, inverses, loss = 4 * d + 1, d * d / chunk, chunk, d
    per_token = heads * (inputs_and_errors + states + inverses + loss)
    assert kept(256) - kept(128) == 128 * per_token


def test_a_problem_says_what_its_rule_does() -> None:
    x = case("kda", seed=3).to(torch.bfloat16)
    p = Problem(x.q, x.k, x.v, x.beta, x.decay, None, None, 1.0, torch.float16)
    assert p.looks
    assert p.decays_per_key
    assert p.dtype == torch.float32
    assert p.state_shape == (2, 2, 5, 7)
    assert not p.initial().any()
