"""Pairs of whole tables by equal keys alone, by one thread, where a tuple has few partners: a symmetric hash join
(Wilschut and Apers, Dataflow query execution in a parallel main-memory environment, 1991).

Each tuple, when it arrives, meets the earlier tuples of the other stream with its key, and waits for later ones. So
pairs come in order, and nothing is sorted. The tuples with a key are a linked list, from the last to the first, with
its length. Partitions take as long, but more memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..device import TablePairs
from .matches import groups_of, terms_of
from .table_work import Work, aligned

__all__ = ["equal_pairs"]

Rows = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
#: Rows of both tables up to which the lists lie in caches about, so that partitions take longer.
_MOST_ROWS = 1 << 22
#: Partners of a tuple, on average, from which on partitions take less time.
_FEW = 2
#: Threads from which on partitions, which they share, take less time.
_THREADS = 4


def equal_pairs(query: Query, incoming: Arrivals, room: int, work: Work) -> TablePairs | None:
    """All pairs of ``query`` over tables that lie within the windows as a whole, in order of arrival. None if the
    condition is more than equalities, if another way takes less time, or if there are more pairs than ``room``.
    """
    terms = terms_of(query.predicate)
    if terms is None or terms[1] is not None or query.order.kind == "left" or work.loops is None:
        return None
    if work.team.size >= _THREADS or len(incoming) > _MOST_ROWS:
        return None
    groups = groups_of(terms[0], incoming, None, work)
    if groups is None or groups.count * _FEW < len(incoming.s):
        return None
    sizes = len(incoming.r), len(incoming.s)
    times = [aligned(incoming.times(side)) if incoming.is_timed else _NONE for side in SIDES]
    heads = np.zeros(2 * groups.count + 2, np.int64)
    met, before = ([np.empty(n, np.int64) for n in sizes] for _ in range(2))
    n = work.loops["count_in_order"](groups.r, groups.s, groups.least, groups.count, *times, heads, *met, *before)
    del heads, groups
    if n > min(room, _FEW * len(incoming)):
        return None
    r, s = np.empty(n, np.int64), np.empty(n, np.int64)
    work.loops["pairs_in_order"](*times, *met, *before, r, s)
    counters = {"tuples_r": sizes[0], "tuples_s": sizes[1], "comparisons": sizes[0] * sizes[1], "candidates": n,
                "matches": n}
    return TablePairs(r, s, None, f"rows of whole tables, by lists of equal keys{work.text}", counters, work)
