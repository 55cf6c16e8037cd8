"""Where tuples go in a grid, and where they look: levels in two dimensions, packed into one line a tuple."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .jit import compiled
from .levels import Levels

__all__ = ["owns", "probes"]

Array = npt.NDArray[Any]


def owns(levels: list[Levels], keys: list[Array]) -> npt.NDArray[np.int32]:
    """Per tuple its levels (n, 2); 0 in the second dimension if there is one only."""
    out = np.empty((len(keys[0]), 2), np.int32)
    parts = [level.of(k) for level, k in zip(levels, keys, strict=True)]
    out[:, 0] = parts[0]
    out[:, 1] = parts[1] if len(parts) == 2 else 0
    return out


def probes(levels: list[Levels], lows: list[Array], highs: list[Array]) -> npt.NDArray[np.int32]:
    """Per probe the first and last level that it looks at, in the first and in the second dimension (n, 4). Where an
    interval is empty, the last is −1 and the first 0.
    """
    out = np.empty((len(lows[0]), 4), np.int32)
    parts = [level.of(bounds[d]) for d, level in enumerate(levels) for bounds in (lows, highs)]
    none = np.zeros(len(out), np.int32)
    third, fourth = parts[2:] or (none, none)
    _pack(lows[0], highs[0], lows[-1], highs[-1], parts[0], parts[1], third, fourth, out)
    return out


@compiled
def _pack(low: Any, high: Any, other_low: Any, other_high: Any, first: Any, last: Any, other_first: Any,
          other_last: Any, out: Any) -> None:
    for i in range(len(out)):
        some = low[i] <= high[i] and other_low[i] <= other_high[i]
        out[i, 0] = first[i] if some else 0
        out[i, 1] = last[i] if some else -1
        out[i, 2] = other_first[i]
        out[i, 3] = other_last[i]
