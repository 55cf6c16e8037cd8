"""Source of the check that an index's candidates go through: in the window, and all tests hold."""

from __future__ import annotations

from ..lang.plan import Plan
from .tests_source import test_source, used_slots

__all__ = ["verify_source"]

#: How many candidates ahead memory is asked for.
_AHEAD = 16

_TEMPLATE = '''import numba
import numpy as np
from splitjoin.cpu.cells import prefetch


@numba.njit(nogil=True, cache=True)
def verify(workers, worker, base, start, end, count, found, {keys}, {bounds}):
    """Keep of the candidates ``found``, rows of the other stream, what matches; counts and rows move up, in order."""
    n, at = np.int64(0), np.int64(0)
    for p in range(len(count)):
        before, last, ascending = n, np.int64(-1), True
        for _ in range(count[p]):
            k = found[at]
            if at + {ahead} < len(found):
                soon = max((found[at + {ahead}] - worker) // workers - base, 0)
                {prefetch}
            at += 1
            # No branches, so that no candidate waits for the memory of the one before.
            seen = (k >= start[p]) & (k < end[p])
            w = ((k - worker) // workers if workers > 1 else k) - base
            w = w if seen else 0
            holds = seen & ({test})
            found[n] = k
            ascending &= (not holds) | (k > last)
            last = k if holds else last
            n += np.int64(holds)
        if not ascending:
            found[before:n].sort()
        count[p] = n - before
    return n
'''


def verify_source(plan: Plan, side: str) -> str:
    """The module that verifies candidates of stream ``side`` by the tests of ``plan``."""
    prefetch = "; ".join(f"prefetch(key{slot}, soon)" for slot in used_slots(plan, side))
    return _TEMPLATE.format(
        ahead=_AHEAD, prefetch=prefetch,
        keys=", ".join(f"key{slot}" for slot in used_slots(plan, side)),
        bounds=", ".join(f"{end}{j}" for j in range(len(plan.tests)) for end in ("low", "high")),
        test=test_source(plan, side, "key{}[w]", "low{}[p]", "high{}[p]"))
