"""Pairs of whole tables by equal keys alone, by one thread, where a tuple has few partners: a symmetric hash join
(Wilschut and Apers, Dataflow query execution in a parallel main-memory environment, 1991).

Each tuple, when it arrives, meets the earlier tuples of the other stream with its key, and waits for later ones. So
pairs come in order, and nothing is sorted. The tuples with a key are a linked list, from the last to the first, with
its length. Partitions take as long, but more memory. Within windows of time, a tuple reads the list up to the first
tuple that is too old.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..device import TablePairs
from .matches import KeyGroups, groups_of, terms_of
from .pair_order import place
from .spans import Spans
from .table_work import Work, aligned

__all__ = ["equal_pairs"]

Rows = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)
#: Rows of both tables, and within windows groups, up to which the lists lie in caches about, so that partitions take
#: longer.
_MOST_ROWS, _MOST_GROUPS = 1 << 22, 1 << 16
#: Partners of a tuple, on average, from which on partitions take less time; and within windows, up to which lists have
#: been measured to take less.
_FEW, _FEW_IN_TIME = 2, 8
#: Threads from which on partitions, which they share, take less time.
_THREADS = 4


def equal_pairs(query: Query, incoming: Arrivals, visible: Spans, room: int, work: Work) -> TablePairs | None:
    """All pairs of ``query`` over whole tables within windows that have a length of time or hold all, in order of
    arrival. None if the condition is more than equalities, if another way takes less time, or if there are more pairs
    than ``room``.
    """
    terms = terms_of(query.predicate)
    if terms is None or terms[1] is not None or query.order.kind == "left":
        return None
    if work.team.size >= _THREADS or (visible.limits and visible.lengths is None):
        return None
    groups = groups_of(terms[0], incoming, None, work)
    if groups is None or (len(incoming) > _MOST_ROWS and not (visible.limits and groups.count <= _MOST_GROUPS)):
        return None
    most = min(room, (_FEW_IN_TIME if visible.limits else _FEW) * len(incoming))
    pairs = _in_time(incoming, groups, visible, most, work) if visible.limits else _all(incoming, groups, most, work)
    if pairs is None:
        return None
    if visible.limits and not query.is_pairs:
        place(incoming, work)  # tuples without a pair come between pairs
    sizes = len(incoming.r), len(incoming.s)
    plan = f"rows of whole tables, by lists of equal keys{work.text}"
    work.begin(plan, len(pairs[0]))
    counters = {"tuples_r": sizes[0], "tuples_s": sizes[1], "comparisons": visible.pairs, "candidates": len(pairs[0]),
                "matches": len(pairs[0])}
    return TablePairs(*pairs, None, plan=plan, counters=counters, work=work)


def _all(incoming: Arrivals, groups: KeyGroups, most: int, work: Work) -> tuple[Rows, Rows] | None:
    """The rows of R and S of all pairs; None if they are more than ``most``, or many for each tuple."""
    if groups.count * _FEW < len(incoming.s):
        return None
    times = [aligned(incoming.times(side)) if incoming.is_timed else _NONE for side in SIDES]
    heads = np.zeros(2 * groups.count + 2, np.int64)
    met, before = ([np.empty(n, np.int64) for n in (len(incoming.r), len(incoming.s))] for _ in range(2))
    n = work.loops["count_in_order"](groups.r, groups.s, groups.least, groups.count, *times, heads, *met, *before)
    del heads, groups
    if n > most:
        return None
    r, s = np.empty(n, np.int64), np.empty(n, np.int64)
    work.loops["pairs_in_order"](*times, *met, *before, r, s)
    return r, s


def _in_time(incoming: Arrivals, groups: KeyGroups, visible: Spans, most: int,
             work: Work) -> tuple[Rows, Rows] | None:
    """The same of the pairs within the lengths of ``visible``."""
    assert visible.lengths is not None
    if visible.pairs > most * groups.count:  # if all keys are as many
        return None
    lengths = [np.uint64(min(length, 2**64 - 1)) for length in visible.lengths]
    before = [np.empty(n, np.int64) for n in (len(incoming.r), len(incoming.s))]
    r, s = (np.empty(most + 1, np.int64) for _ in SIDES)  # the system gives memory for what is written
    n = work.loops["pairs_in_time"](groups.r, groups.s, groups.least, groups.count,
                                    *(aligned(incoming.times(side)) for side in SIDES), *lengths,
                                    np.zeros(2 * groups.count, np.int64), *before, r, s)
    return (r[:n], s[:n]) if n <= most else None
