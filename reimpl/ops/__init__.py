"""The update rules, fast: ``fast_weight_attention``, and ``fast_weight_step`` to decode."""

from reimpl.ops.attention import fast_weight_attention, fast_weight_step

__all__ = ["fast_weight_attention", "fast_weight_step"]
