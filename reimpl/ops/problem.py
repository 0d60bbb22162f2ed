"""One checked call of the fast-weight update, in the form that all backends take."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Problem(NamedTuple):
    """Inputs of one update, shapes as in ``fast_weight_attention``.

    The rule is in what is given: with ``beta`` a write looks at what is stored and corrects it
    (delta), without it v is added as it is; ``decay`` is one a head or one a key channel.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor | None
    decay: Tensor | None
    initial_state: Tensor | None
    cu_seqlens: Tensor | None
    scale: float
    output_dtype: torch.dtype

    @property
    def batch(self) -> int:
        """Rows of the input; 1 for packed sequences."""
        return self.v.shape[0]

    @property
    def length(self) -> int:
        """Positions in a row."""
        return self.v.shape[1]

    @property
    def heads(self) -> int:
        """Heads H."""
        return self.v.shape[2]

    @property
    def d_key(self) -> int:
        """Size of a key: the paper's d_dot."""
        return self.k.shape[3]

    @property
    def d_value(self) -> int:
        """Size of a value."""
        return self.v.shape[3]

    @property
    def sequences(self) -> int:
        """Sequences, each with a state of its own."""
        return self.batch if self.cu_seqlens is None else len(self.cu_seqlens) - 1

    @property
    def state_shape(self) -> tuple[int, int, int, int]:
        """``[sequences, heads, d_key, d_value]``."""
        return (self.sequences, self.heads, self.d_key, self.d_value)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of states and sums: float64 where the inputs are, else float32."""
        return torch.promote_types(torch.float32, self.v.dtype)

    @property
    def looks(self) -> bool:
        """Whether a write reads first: the delta rules."""
        return self.beta is not None

    @property
    def decays_per_key(self) -> bool:
        """Whether each key channel has a decay of its own (KDA)."""
        return self.decay is not None and self.decay.ndim == 4

    def initial(self) -> Tensor:
        """Return the first states, zeros if none were given."""
        if self.initial_state is None:
            return self.v.new_zeros(self.state_shape, dtype=self.dtype)
        return self.initial_state
