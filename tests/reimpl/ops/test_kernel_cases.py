"""Faults that other implementations of these rules have had, as tests of ours.

Each test names the report (project and number on its tracker) whose kind of fault it would show.
Compilers' faults on GPUs can only be seen there: ``fwp bench --device cuda --check`` runs these
shapes too. Offsets past 2³¹ and the grids of the kernels are tested with the kernels.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl.ops import fast_weight_attention, fast_weight_step
from tests.reimpl.ops.cases import RULES, WAYS, Case, case, error, errors, run

LIMIT = 5e-6
"""Relative error in float32 against float64; the largest measured is 1e-6."""
GATED = ("gated_delta", "kda")
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_gradients_of_one_full_chunk(way: str) -> None:
    """flash-linear-attention 984: dk and dbeta wrong at one chunk of 64, d = 32, scale 0.1."""
    x = case("delta", seed=1, batch=1, length=64, heads=1, d_key=32, d_value=32, state=False)
    found = errors(x.to(torch.float32), way, scale=0.1, chunk_size=64)
    assert max(found.values()) < LIMIT, found


@every_way
@pytest.mark.parametrize("rule", GATED)
@pytest.mark.parametrize("decay", [0.0, -1e-4, -0.7, -20.0])
def test_gradients_in_every_regime_of_decay(way: str, rule: str, decay: float) -> None:
    """flash-linear-attention 640, 891: strong decays hide a wrong term, zero decay shows it."""
    x = case(rule, seed=2, batch=1, heads=1, length=20, decay=decay)
    found = errors(x.to(torch.float32), way, chunk_size=16)
    assert max(found.values()) < LIMIT, found


@every_way
def test_an_integer_scale_is_the_number_it_is(way: str) -> None:
    """flash-linear-attention 1262: a scale of 1, an int, was compiled as a constant, and wrong."""
    x = case("delta", seed=3, batch=1, heads=1, length=18).to(torch.float32)
    whole, real = run(x, way, scale=1), run(x, way, scale=1.0)
    assert all(torch.equal(whole[name], real[name]) for name in real)


@every_way
def test_keys_of_length_one_stay_finite_in_half_precision(way: str) -> None:
    """flash-linear-attention 99 and 736: NaN in the inverse, with keys that were not normalised."""
    x = case("delta", seed=4, batch=1, heads=1, length=64, d_key=16, d_value=16)
    half = x.to(torch.float16)
    if way == "chunkwise":  # the interpreter multiplies half-precision tiles wrongly
        half = half.to(torch.float32)
    found = run(half, way)
    assert all(tensor.isfinite().all() for tensor in found.values())


@every_way
def test_keys_that_blow_up_the_recurrence_blow_up_alike(way: str) -> None:
    """flash-linear-attention 736: with keys of length 8 the eigenvalue 1 − β‖k‖² is far below −1.

    The error is as large as the recurrence itself makes it in float32: some 1e-4 after 12 writes.
    """
    x = case("delta", seed=5, batch=1, heads=1, length=12, d_key=64, d_value=4, state=False)
    x = Case(**(vars(x) | {"k": 8 * x.k}))
    found = errors(x.to(torch.float32), way)
    assert max(found.values()) < 1e-3, found


def test_many_packed_sequences_are_no_limit() -> None:
    """flash-linear-attention 1077: more than 65,535 sequences exceeded a grid's second axis."""
    n = 70_000
    q, k, v = (torch.randn(1, n, 1, 2) for _ in range(3))
    y, S = fast_weight_attention(
        q, k, v, rule="sum", cu_seqlens=torch.arange(n + 1), output_final_state=True
    )
    torch.testing.assert_close(y, v * (q * k).sum(-1, keepdim=True))
    assert S is not None
    assert S.shape == (n, 1, 2, 2)


def test_packing_is_never_replaced_silently() -> None:
    """flash-linear-attention 838: bounds were overruled by those that a mask implied."""
    x = case("delta", seed=6, batch=2, length=8)
    with pytest.raises(ConfigError, match="cu_seqlens"):
        fast_weight_attention(
            x.q, x.k, x.v, x.beta, rule="delta", cu_seqlens=torch.tensor([0, 4, 8])
        )


def test_a_decay_of_the_values_is_refused() -> None:
    """flash-linear-attention 623: a gate on the values changed the keys."""
    x = case("kda", seed=7, length=4)
    assert x.decay is not None
    with pytest.raises(ConfigError, match=r"decay has shape \[2, 4, 2, 7\], expected \[2, 4, 2, 5"):
        fast_weight_attention(
            x.q, x.k, x.v, x.beta, torch.zeros_like(x.v), rule="kda", backend="chunk"
        )


@every_way
@pytest.mark.parametrize("rule", RULES)
def test_nothing_outside_the_inputs_is_read(way: str, rule: str) -> None:
    """flash-linear-attention 913: reads past the end, silent or NaN by luck of what lay there."""
    x = case(rule, seed=8, batch=1, heads=1, length=19).to(torch.float32)

    def amid_nan(t: Tensor | None) -> Tensor | None:
        if t is None:
            return None
        room = torch.full((t.numel() + 8192,), float("nan"))
        room[4096 : 4096 + t.numel()] = t.flatten()
        return room[4096 : 4096 + t.numel()].view(t.shape)

    names = ("q", "k", "v", "beta", "decay", "initial_state")
    inside = Case(**(vars(x) | {n: amid_nan(getattr(x, n)) for n in names}))
    apart, found = run(x, way), run(inside, way)
    assert all(torch.equal(apart[name], found[name]) for name in apart)


def test_a_thousand_chunks_are_finite() -> None:
    """flash-linear-attention 913: NaN from 1,024 blocks on."""
    x = case("delta", seed=9, batch=2, length=1024, heads=16, d_key=4, d_value=4)
    found = errors(x.to(torch.float32), "chunk", chunk_size=16)
    assert max(found.values()) < LIMIT, found


@every_way
def test_what_strong_decays_forgot_stays_forgotten(way: str) -> None:
    """sglang 39971: clamped exponents brought forgotten keys back; log₂ decays down to −485."""
    x = case("kda", seed=10, batch=1, heads=1, length=70, d_key=4, d_value=4, decay=-1.0)
    assert x.decay is not None
    generator = torch.Generator().manual_seed(10)
    strong = -(torch.rand(x.decay.shape, generator=generator, dtype=torch.float64) ** 3)
    x.decay[:] = strong * 485 * math.log(2) / 16
    found = errors(x.to(torch.float32), way, chunk_size=64)
    assert max(found.values()) < LIMIT, found


@every_way
@pytest.mark.parametrize("rule", GATED)
def test_a_decay_of_minus_infinity_forgets_everything(way: str, rule: str) -> None:
    x = case(rule, seed=11, batch=1, heads=1, length=20)
    assert x.decay is not None
    x.decay[:, 7] = -math.inf
    found = errors(x.to(torch.float32), way)
    assert max(found.values()) < LIMIT, found
    assert not run(x.to(torch.float32), way)["d_decay"][:, 7].any()


def test_outputs_beyond_half_precision_are_kept_on_request() -> None:
    """vllm 54146: a state in float32 read out into float16 became infinite past 65,504."""
    k = torch.zeros(1, 40, 1, 2, dtype=torch.float16)
    k[..., 0] = 1
    v = torch.full((1, 40, 1, 2), 60_000.0, dtype=torch.float16)
    plain, _ = fast_weight_attention(k, k, v, rule="sum")
    assert plain[0, -1].isinf().all()
    wide, _ = fast_weight_attention(k, k, v, rule="sum", output_dtype=torch.float32)
    assert float(wide[0, -1, 0, 0].detach()) == 40 * float(v[0, 0, 0, 0])
    scaled, _ = fast_weight_attention(k, k, v, rule="sum", scale=1 / 40)
    assert scaled.isfinite().all()


@pytest.mark.parametrize("backend", ["auto", "triton"])
def test_gates_keep_their_precision_while_decoding(backend: str) -> None:
    """sglang 38975: β rounded to bfloat16 at each step, 1.6e-3 off after 1,000 steps."""
    steps = 1000 if backend == "auto" else 100
    x = case("gated_delta", seed=12, batch=1, heads=1, length=steps, decay=-1e-3).to(torch.bfloat16)
    assert x.initial_state is not None
    assert x.beta is not None
    assert x.decay is not None
    state = x.initial_state.clone()
    for i in range(steps):
        gates = (x.beta[:, i], x.decay[:, i])
        inputs = (x.q[:, i], x.k[:, i], x.v[:, i], state)
        fast_weight_step(*inputs, *gates, rule="gated_delta", inplace=True, backend=backend)
    assert error(state, run(x.to(torch.float64), "reference")["state"]) < 1e-6


def test_states_are_never_in_half_precision() -> None:
    """ollama 15865: a state written back in bfloat16 ruined the output after two tokens."""
    x = case("delta", seed=13, length=4).to(torch.bfloat16)
    options = {"rule": "delta", "output_final_state": True}
    _, S = fast_weight_attention(x.q, x.k, x.v, x.beta, **options)
    assert S is not None
    assert S.dtype == torch.float32
    with pytest.raises(ConfigError, match="initial_state is bfloat16; states are float32"):
        fast_weight_attention(x.q, x.k, x.v, x.beta, initial_state=S.bfloat16(), **options)


@every_way
def test_prefill_and_decoding_give_what_one_pass_gives(way: str) -> None:
    """transformers 46190: lengths that are no multiple of the chunk, up to 0.125 apart."""
    x = case("gated_delta", seed=14, batch=1, heads=1, length=40).to(torch.float32)
    whole = run(x, way, chunk_size=16)

    def part(t: Tensor | None, start: int, stop: int | None) -> Tensor | None:
        return None if t is None else t[:, start:stop]

    names = ("q", "k", "v", "beta", "decay", "d_output")
    prefill = Case(**(vars(x) | {n: part(getattr(x, n), 0, 37) for n in names}))
    first = run(prefill, way, chunk_size=16)
    assert error(first["output"], whole["output"][:, :37]) < 1e-6
    state = first["state"]
    for i in range(37, 40):
        q, k, v, beta, decay = (getattr(x, n)[:, i] for n in names[:5])
        y, state = fast_weight_step(q, k, v, state, beta, decay, rule="gated_delta")
        assert error(y, whole["output"][:, i]) < 1e-6
    assert error(state, whole["state"]) < 1e-6


@every_way
@pytest.mark.parametrize("rule", GATED)
def test_the_first_decay_of_an_empty_state_has_no_gradient(way: str, rule: str) -> None:
    """FlashQLA 28: differences of large sums left noise where the gradient is exactly zero."""
    x = case(rule, seed=15, batch=1, heads=1, length=20, state=False)
    assert x.decay is not None
    x.decay[:, 1:] *= 8
    found = errors(x.to(torch.float32), way)
    assert found["d_decay"] < LIMIT
    assert not run(x.to(torch.float32), way)["d_decay"][:, 0].any()


@every_way
def test_one_token_without_a_state_starts_at_zero(way: str) -> None:
    """vllm 51562: a first chunk of one token read a state that was left in the buffer."""
    x = case("delta", seed=16, batch=1, length=1, state=False).to(torch.float32)
    assert x.beta is not None
    written = x.beta[..., None] * x.v
    right = written * (x.q * x.k).sum(-1, keepdim=True)
    assert error(run(x, way)["output"], right) < 1e-6


@every_way
def test_features_that_are_all_zero_give_zero(way: str) -> None:
    """fast-transformers 11: a normaliser of zero; the operator has none, and none is hidden."""
    x = case("sum", seed=17, batch=1, heads=1, length=5, state=False).to(torch.float32)
    zero = torch.zeros_like(x.k)
    found = run(Case(**(vars(x) | {"q": zero, "k": zero})), way)
    assert not found["output"].any()
    assert all(tensor.isfinite().all() for tensor in found.values())
