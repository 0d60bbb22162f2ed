"""Others' kernels for the same rules: flash-linear-attention and torch's softmax attention."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from reimpl.bench.inputs import Inputs, Op

DECAY_NAME = "g"
CHUNK, RECURRENT = "fla chunk", "fla recurrent"
_FLA = {
    "delta": ("fla.ops.delta_rule", "chunk_delta_rule", "fused_recurrent_delta_rule"),
    "gated_delta": (
        "fla.ops.gated_delta_rule",
        "chunk_gated_delta_rule",
        "fused_recurrent_gated_delta_rule",
    ),
    "kda": ("fla.ops.kda", "chunk_kda", "fused_recurrent_kda"),
}


def softmax(x: Inputs) -> tuple[Tensor, None]:
    """Causal softmax attention of inputs whose heads come first."""
    return scaled_dot_product_attention(x.q, x.k, x.v, is_causal=True, scale=1.0), None


def has_fla() -> bool:
    """Whether flash-linear-attention is installed."""
    return find_spec("fla") is not None


def fla_ops(rule: str) -> dict[str, Op]:
    """Return its kernels for a rule, by name; none where it has none, or is not installed.

    It is imported by the first call, so that what an import raises is shown where a call's is.
    """
    if rule not in _FLA or not has_fla():
        return {}
    module, chunk, recurrent = _FLA[rule]
    return {CHUNK: _lazily(module, chunk), RECURRENT: _lazily(module, recurrent)}


def _lazily(module: str, name: str) -> Op:
    def op(x: Inputs) -> tuple[Tensor, Tensor | None]:
        function = getattr(import_module(module), name)
        decay = {} if x.decay is None else {DECAY_NAME: x.decay}
        output, state = function(
            q=x.q,
            k=x.k,
            v=x.v,
            beta=x.beta,
            scale=1.0,
            initial_state=x.initial_state,
            output_final_state=True,
            cu_seqlens=x.cu_seqlens,
            **decay,
        )
        return output, state

    return op
