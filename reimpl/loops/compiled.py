"""How the loops of this package are compiled: for one thread, vectorised, NaN kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` at its first call and keep the machine code on disk.

    Sums may be reordered and multiplications fused; a NaN or infinity is never assumed away, and
    0 / 0 is NaN as in torch. Numba lets negative places count from the end, which keeps loops over
    a computed place from being vectorised: such places are unsigned (``np.uintp``). Literals would
    widen float32 to float64, so constants are made in the arrays' type.
    """
    made: Callable[..., Any] = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
    )(function)
    return made
