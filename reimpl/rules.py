"""Every update rule, one write at a time and one line of algebra each; slow on purpose.

A state S ``[..., d_key, d_value]`` is the transpose of the paper's W: a read is Sᵀk. Here k and q
are already φ(k) and φ(q), so ``d_key`` is the paper's d_dot. β is the write strength in [0, 1];
``decay`` is log α ≤ 0, so a decay of 0 forgets nothing. States are float32, or float64 where the
inputs are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from records.errors import ConfigError
from reimpl.feature_maps import sum_normalise

Rule = Literal["sum", "gated_sum", "fwm", "delta", "gated_delta", "kda"]
Normalisation = Literal["none", "sum", "attention"]
RULES: tuple[str, ...] = get_args(Rule)
NORMALISATIONS: tuple[str, ...] = get_args(Normalisation)


def read(S: Tensor, k: Tensor) -> Tensor:
    """Return Sᵀk ``[..., d_value]`` for ``k`` ``[..., d_key]``: the value stored at k."""
    return torch.einsum("...kv,...k->...v", S, k)


def outer(k: Tensor, v: Tensor) -> Tensor:
    """Return k vᵀ ``[..., d_key, d_value]``."""
    return k.unsqueeze(-1) * v.unsqueeze(-2)


def _per_key(beta: Tensor) -> Tensor:
    return beta.unsqueeze(-1)


def _per_state(beta: Tensor) -> Tensor:
    return beta[..., None, None]


def sum_step(S: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """S ← S + k vᵀ (Eq. 17)."""
    return S + outer(k, v)


def gated_sum_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """S ← (1−β) S + β k vᵀ (Eq. 52, Peng et al. 2021); ``beta`` is ``[...]``."""
    return (1 - _per_state(beta)) * S + outer(_per_key(beta) * k, v)


def delta_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """S ← S + β k (v − Sᵀk)ᵀ (Eq. 24); ``beta`` is ``[...]``."""
    return S + outer(k, _per_key(beta) * (v - read(S, k)))


def replace_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """Write v_new = β v + (1−β) v̄ and remove v̄ = Sᵀk, both at k (Eq. 21-23)."""
    v_bar = read(S, k)
    v_new = _per_key(beta) * v + (1 - _per_key(beta)) * v_bar
    return S + outer(k, v_new) - outer(k, v_bar)


def fwm_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """Delta step whose result is scaled down to ‖S‖_F = 1 where it is longer (Schlag et al. 2021).

    Schlag, Munkhdalai and Schmidhuber, *Learning Associative Inference Using Fast Weight Memory*.
    """
    S = delta_step(S, k, v, beta)
    norm = S.flatten(-2).norm(dim=-1)
    return S / _per_state(norm.clamp(min=1))


def gated_delta_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """Delta step on α S (Yang et al. 2024); ``decay`` = log α is ``[...]``, one per head."""
    return delta_step(_per_state(decay.exp()) * S, k, v, beta)


def kda_step(S: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """Delta step on Diag(α) S (Kimi Linear); ``decay`` = log α ``[..., d_key]``, one per row."""
    return delta_step(decay.exp().unsqueeze(-1) * S, k, v, beta)


def normalised_delta_step(S: Tensor, z: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """Delta step whose read v̄ is divided by z·k, z before this write (Eq. 26-28).

    v̄ is 0 for the first write, where z is 0.
    """
    weight = (z * k).sum(-1, keepdim=True)
    safe = torch.where(weight == 0, torch.ones_like(weight), weight)
    v_bar = torch.where(weight == 0, torch.zeros_like(v), read(S, k) / safe)
    return S + outer(k, _per_key(beta) * (v - v_bar))


class RuleResult(NamedTuple):
    """Outputs ``[batch, length, heads, d_value]``, the last state, and Σk where it is kept.

    ``z`` is ``[batch, heads, d_key]`` under attention normalisation (Eq. 18), else None.
    """

    output: Tensor
    state: Tensor
    z: Tensor | None


def run_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    decay: Tensor | None = None,
    *,
    rule: str,
    initial_state: Tensor | None = None,
    initial_z: Tensor | None = None,
    normalisation: str = "none",
    eps: float = 0.0,
) -> RuleResult:
    """Write every position into the state and read it with the query, one position at a time.

    ``q``, ``k`` are φ(q), φ(k) ``[batch, length, heads, d_key]``, ``v`` ``[batch, length, heads,
    d_value]``, ``beta`` ``[batch, length, heads]`` (all rules but ``sum``), ``decay`` of that shape
    for ``gated_delta`` and of the shape of ``k`` for ``kda``. ``normalisation`` is ``none``,
    ``sum`` (Eq. 29, applied here to q and k) or ``attention`` (Eq. 17-19 for ``sum``, 26-28 for
    ``delta``); ``eps`` is added to the denominators of Eq. 29 and of the outputs. ``initial_state``
    ``[batch, heads, d_key, d_value]`` goes on from an earlier result; ``initial_z``, that result's
    ``z``, comes with it under attention normalisation and must be left out otherwise. Raises
    ConfigError where the arguments do not fit each other.
    """
    check_inputs(q, k, v, beta, decay, rule, normalisation)
    _check_start(initial_state, initial_z, normalisation)
    dtype = torch.promote_types(torch.float32, v.dtype)
    q, k = q.to(dtype), k.to(dtype)
    if normalisation == "sum":
        q, k = sum_normalise(q, eps), sum_normalise(k, eps)
    S = _initial(initial_state, (v.shape[0], v.shape[2], k.shape[3], v.shape[3]), "state", v, dtype)
    z = _initial(initial_z, (v.shape[0], v.shape[2], k.shape[3]), "z", v, dtype)
    outputs = []
    for q_i, k_i, v_i, beta_i, decay_i in _positions(q, k, v, beta, decay, dtype):
        if normalisation == "attention" and rule == "delta":
            assert beta_i is not None
            S = normalised_delta_step(S, z, k_i, v_i, beta_i)
        else:
            S = step(S, k_i, v_i, beta_i, decay_i, rule)
        z = z + k_i
        y = read(S, q_i)
        if normalisation == "attention":
            y = y / ((z * q_i).sum(-1, keepdim=True) + eps)
        outputs.append(y.to(v.dtype))
    return RuleResult(torch.stack(outputs, 1), S, z if normalisation == "attention" else None)


def _positions(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor | None, decay: Tensor | None, dtype: torch.dtype
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]]:
    """Yield the inputs of each position in turn."""

    def each(x: Tensor | None) -> Iterable[Tensor | None]:
        return [None] * v.shape[1] if x is None else x.to(dtype).unbind(1)

    required = (x.to(dtype).unbind(1) for x in (q, k, v))
    return zip(*required, each(beta), each(decay), strict=True)


def step(
    S: Tensor, k: Tensor, v: Tensor, beta: Tensor | None, decay: Tensor | None, rule: str
) -> Tensor:
    """Return the state after one write under ``rule``, for arguments that fit it."""
    if rule == "sum":
        return sum_step(S, k, v)
    assert beta is not None
    if rule in ("gated_delta", "kda"):
        assert decay is not None
        return (gated_delta_step if rule == "gated_delta" else kda_step)(S, k, v, beta, decay)
    return {"gated_sum": gated_sum_step, "fwm": fwm_step, "delta": delta_step}[rule](S, k, v, beta)


def linear_attention(
    q: Tensor, k: Tensor, v: Tensor, *, normalise: bool = False, eps: float = 0.0
) -> Tensor:
    """Causal attention with weights φ(q)·φ(k), as a length × length matrix and without a state.

    Shapes as in ``run_rule``; ``normalise`` divides each row of weights by its sum plus ``eps``.
    Equals the ``sum`` rule (Sec. 3.2).
    """
    weights = torch.einsum("bihd,bjhd->bhij", q, k).tril()
    if normalise:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    return torch.einsum("bhij,bjhv->bihv", weights, v)


def check_inputs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None,
    decay: Tensor | None,
    rule: str,
    normalisation: str,
) -> None:
    """Raise ConfigError where shapes, rule and normalisation do not fit each other."""
    if rule not in RULES:
        raise ConfigError(f"unknown update rule {rule!r}; known: {', '.join(RULES)}")
    if normalisation not in NORMALISATIONS:
        raise ConfigError(f"unknown normalisation {normalisation!r}; known: {NORMALISATIONS}")
    if normalisation == "attention" and rule not in ("sum", "delta"):
        raise ConfigError(
            f"attention normalisation is defined for the rules sum and delta, not for {rule!r}; "
            "use normalisation 'sum' or 'none'"
        )
    if v.ndim != 4 or v.shape[1] == 0:
        raise ConfigError(f"v must be [batch, length ≥ 1, heads, d_value], got {list(v.shape)}")
    heads = tuple(v.shape[:3])
    keys = (*heads, k.shape[-1])
    _expect("k", k, keys)
    _expect("q", q, keys)
    if rule != "sum":
        _expect("beta", beta, heads)
    if rule in ("gated_delta", "kda"):
        _expect("decay", decay, keys if rule == "kda" else heads)


def _check_start(S: Tensor | None, z: Tensor | None, normalisation: str) -> None:
    """Raise ConfigError where a state to go on from lacks its z, or has one that nothing reads."""
    if normalisation != "attention" and z is not None:
        raise ConfigError(
            f"initial_z belongs to attention normalisation; leave it out for {normalisation!r}"
        )
    if normalisation == "attention" and (S is None) != (z is None):
        given, missing = (
            ("initial_z", "initial_state") if S is None else ("initial_state", "initial_z")
        )
        raise ConfigError(
            f"attention normalisation got {given} without {missing}; pass state and z of one "
            "earlier result, or neither"
        )


def _expect(name: str, tensor: Tensor | None, shape: tuple[int, ...]) -> None:
    found = None if tensor is None else tuple(tensor.shape)
    if found != shape:
        what = "is missing" if found is None else f"has shape {list(found)}"
        raise ConfigError(f"{name} {what}; this rule needs {list(shape)}")


def _initial(
    given: Tensor | None, shape: tuple[int, ...], name: str, like: Tensor, dtype: torch.dtype
) -> Tensor:
    if given is None:
        return torch.zeros(shape, device=like.device, dtype=dtype)
    _expect(f"initial_{name}", given, shape)
    return given.to(device=like.device, dtype=dtype)
