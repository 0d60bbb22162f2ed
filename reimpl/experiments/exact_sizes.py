"""Sec. 6.3 and Table 4: parameters and state sizes, counted on built modules."""

from __future__ import annotations

import torch

from reimpl.experiments.exact import Measured
from reimpl.model import (
    PRESETS,
    FastWeightAttention,
    LayerState,
    ModelConfig,
    SoftmaxAttention,
    parameter_count,
    state_size,
)

TRANSFORMER_XL = ((15, 1), (64, 64), (128, 128), (384, 384))
"""Memory and target lengths of Table 4's Transformer-XL rows.

Its state is measured as the cache of the medium softmax model after memory + target words.
"""
LENGTHS = (1, 4, 16, 64, 256, 1024)


def measure(seed: int) -> Measured:
    """Return counts for the presets, Transformer-XL's memories, and growth over the length."""
    measured: Measured = {}
    for size, config in PRESETS.items():
        delta, plain = parameter_count(config), parameter_count(_with(config, rule="sum"))
        measured[f"parameters-{size}"] = ("parameters", delta)
        measured[f"extra-parameters-{size}"] = ("parameters", delta - plain)
    medium = PRESETS["medium"]
    for rule in ("sum", "delta"):
        count = parameter_count(_with(medium, rule=rule))
        measured[f"parameters-table4-{rule}"] = ("parameters", count)
    for rule in ("sum", "delta"):
        carried = state_size(_with(medium, rule=rule))
        measured[f"state-size-medium-{rule}"] = ("state_size", carried)
    for memory, target in TRANSFORMER_XL:
        carried = state_size(_with(medium, rule="softmax"), memory + target)
        measured[f"state-size-transformer-xl-{memory}-{target}"] = ("state_size", carried)
    for rule in ("sum", "delta", "softmax"):
        measured[f"state-growth-{rule}"] = ("state_growth", state_growth(rule, seed))
    return measured


def _with(config: ModelConfig, rule: str) -> ModelConfig:
    return ModelConfig.model_validate(config.model_dump() | {"rule": rule})


def state_growth(rule: str, seed: int) -> float:
    """Return the largest state over ``LENGTHS`` words fed on, as a multiple of that after one."""
    generator = torch.Generator().manual_seed(seed)
    config = ModelConfig.model_validate(
        {"d_model": 32, "d_head": 8, "heads": 4, "segment": 64, "rule": rule}
    )
    layer = (SoftmaxAttention if rule == "softmax" else FastWeightAttention)(config).eval()
    state: LayerState | None = None
    sizes: list[int] = []
    fed = 0
    for length in LENGTHS:
        x = torch.randn(1, length - fed, config.d_model, generator=generator)
        with torch.no_grad():
            _, state = layer(x, state)
        fed = length
        sizes.append(sum(tensor.numel() for tensor in state.values()))
    return max(sizes) / sizes[0]
