"""The loop that merges two streams by event time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]  # documented, but not exported by name

from . import intrinsics
from .intrinsics import pointer_to
from .jit import compiled

__all__ = ["merge_times"]

#: Digests of these are part of what machine code here depends on.
COMPILED_WITH = (intrinsics,)


@compiled
def merge_times(at_r: Any, n_r: Any, at_s: Any, n_s: Any, stream: Any, ts: Any, s_before: Any) -> None:
    """Write the arrival order of ``n_r`` and ``n_s`` tuples, whose times, int64 at addresses ``at_r`` and ``at_s``,
    rise, R's first at equal times: their ``stream`` (r + s,) and ``ts``, and the number of S ``s_before`` each R (r,).
    Without branches on the times.
    """
    times_r, times_s = carray(pointer_to(at_r), (n_r,), np.int64), carray(pointer_to(at_s), (n_s,), np.int64)
    r = s = at = 0
    while r < n_r and s < n_s:
        a, b = times_r[r], times_s[s]
        of_s = b < a
        stream[at] = of_s
        ts[at] = b if of_s else a
        s_before[r] = s
        s += of_s
        r += not of_s
        at += 1
    while r < n_r:
        stream[at], ts[at], s_before[r] = 0, times_r[r], s
        r += 1
        at += 1
    while s < n_s:
        stream[at], ts[at] = 1, times_s[s]
        s += 1
        at += 1
