"""Source of the index engine's loops: a batch is stored in both streams' grids and joined, by all threads at once.

The arrivals of a batch go through the grids a step after the other: first a step's tuples are stored, then its probes
look. Storing one stream's tuples is a task; so is a part of the step's probes. All threads share both grids.
"""

from __future__ import annotations

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from . import cells, intrinsics, levels, tickets
from .jit import digest
from .tests_source import test_source, used_slots

__all__ = ["PROBE", "STORE_R", "STORE_S", "region_source"]

#: Kinds of tasks.
STORE_R, STORE_S, PROBE = 0, 1, 2
#: Candidates between a prefetch and the use of its data.
_AHEAD = 16

_HEAD = '''import numba
import numpy as np
from splitjoin.engines.cpu.jit import compiled
from splitjoin.engines.cpu.cells import bound_levels, find_candidates, insert, prefetch
from splitjoin.engines.cpu.intrinsics import cycles
from splitjoin.engines.cpu.levels import write_levels
from splitjoin.engines.cpu.tickets import claim, complete, stop

# Made for functions of digest {digest}.

'''

_STREAM = '''
@numba.njit(nogil=True)
def verify_{side}(base, first, start, end, found, probe_of, m, count, out, n, {keys}, {bounds}):
    begun = n
    probe = np.int64(-1)
    for at in range(m):
        if at + {ahead} < m:
            soon = max(found[at + {ahead}] + first - base, 0)
            {prefetch}
        p = np.int64(probe_of[at])
        begun = begun if p == probe else n
        probe = p
        # No branches, so that no candidate waits for the memory of the one before.
        row = np.int64(found[at]) + first
        seen = (row >= start[p]) & (row < end[p])
        w = row - base if seen else 0
{lines}        holds = seen & ({test})
        out[n] = row
        if holds and n > begun and out[n - 1] > row:
            i = n
            while i > begun and out[i - 1] > row:
                out[i] = out[i - 1]
                i -= 1
            out[i] = row
        n += np.int64(holds)
        count[p] += np.int64(holds)
    return n


@numba.njit(nogil=True)
def store_{side}(row, until, live, scratch, base, first, begin, numbers, reals, table, levels, other_numbers,
                 other_reals, other_table, other_levels, stride, head, rows, pool, used, {own}):
    """Store tuples ``row`` to ``until`` of the batch's of {Side} in their grid. Returns the first that had no room."""
    while row < until:
        n = min(until - row, scratch.shape[1])
        i = begin - base + row
        write_levels({own_first}[i:i + n], numbers, reals, table, levels, scratch[0])
        write_levels({own_second}[i:i + n], other_numbers, other_reals, other_table, other_levels, scratch[1])
        done = insert(scratch, 0, n, stride, begin - first + row, live - first, head, rows, pool, used)
        row += done
        if done < n:
            break
    return row


@numba.njit(nogil=True)
def probe_{side}(p, until, scratch, found, probe_of, out, n, looked, base, first, begin, numbers, reals, table, levels,
                 other_numbers, other_reals, other_table, other_levels, stride, head, rows, pool, used, start, end,
                 count, {keys}, {bounds}):
    """The matches of probes ``p`` to ``until`` of {Side}, from ``out[n]`` on. Returns the first probe for which there
    was no room, and where the matches end.
    """
    while p < until:
        i, j = p, min(p + scratch.shape[1], until)
        write_levels(low{first}_{side}[i:j], numbers, reals, table, levels, scratch[0])
        write_levels(high{first}_{side}[i:j], numbers, reals, table, levels, scratch[1])
        write_levels(low{second}_{side}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[2])
        write_levels(high{second}_{side}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[3])
        bound_levels(scratch[0], scratch[1], low{first}_{side}[i:j], high{first}_{side}[i:j],
                     levels if numbers[0] == {cycle} else 0, numbers[3], numbers[4])
        bound_levels(scratch[2], scratch[3], low{second}_{side}[i:j], high{second}_{side}[i:j],
                     other_levels if other_numbers[0] == {cycle} else 0, other_numbers[3], other_numbers[4])
        while p < j:
            if len(out) - n < len(found):
                return p, n
            p, m, compared = find_candidates(scratch, p, j, i, stride, head, rows, pool, found, probe_of)
            n = verify_{side}(base, first, start, end, found, probe_of, m, count, out, n, {keys}, {bounds})
            looked[0] += compared
    return p, n

'''

_WORK = '''
@compiled
def work(thread, control, limits, tasks, fill, looked, scratch, found, probe_of, out_r, out_s, live_r,
         live_s, {arguments}):
    """Do tasks as long as there are any: thread number ``thread`` of those that do.

    ``tasks`` (n, 14): the kind of each, the first of its tuples of R, the one behind the last, those of S, and R's and
    S's next one. Of tuples to store also whether their grid is full. Of probes the thread, and for R and for S the
    first probe, and where its matches begin and end in ``out_r`` and ``out_s``. A
    thread stops all when a grid is full, or its room. ``fill`` (2,): the matches in ``out_r`` and ``out_s``. ``looked``
    (3,): candidates, and cycles of probing and of storing. ``scratch``, ``found``, ``probe_of``: room for levels and
    candidates. ``live_r``, ``live_s``: rows below which all are expired after the batch. Then of each stream its grid
    (`cells`): positions of the first tuple in the store, of number 0 in the grid, of the batch's first one, …
    """
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            return
        mine, began = tasks[task], cycles()
        if mine[0] == {store_r}:
            # What is expired for the step's first probe is so for all later ones.
            live = start_s[mine[3]] if mine[3] < len(start_s) else live_r
            mine[5] = store_r(mine[5], mine[2], live, scratch, {grid_r}, {own_r})
            mine[7] = full = mine[5] < mine[2]
        elif mine[0] == {store_s}:
            live = start_r[mine[1]] if mine[1] < len(start_r) else live_s
            mine[6] = store_s(mine[6], mine[4], live, scratch, {grid_s}, {own_s})
            mine[7] = full = mine[6] < mine[4]
        else:
            mine[7] = thread
            mine[8], mine[9], mine[11], mine[12] = mine[5], fill[0], mine[6], fill[1]
            if mine[5] < mine[2]:
                mine[5], fill[0] = probe_r(mine[5], mine[2], scratch, found, probe_of, out_r, fill[0], looked,
                                           {grid_s}, {probes_r})
            if mine[6] < mine[4]:
                mine[6], fill[1] = probe_s(mine[6], mine[4], scratch, found, probe_of, out_s, fill[1], looked,
                                           {grid_r}, {probes_s})
            mine[10], mine[13] = fill[0], fill[1]
            full = mine[5] < mine[2] or mine[6] < mine[4]
        looked[1 if mine[0] == {probe} else 2] += cycles() - began
        if full:
            stop(control)
            return
        complete(control, limits)
'''

#: What the loops take of a stream's grid.
_GRID = ("base", "first", "begin", "numbers", "reals", "table", "levels", "other_numbers", "other_reals", "other_table",
         "other_levels", "stride", "head", "rows", "pool", "used")


def region_source(plan: Plan, tests: tuple[int, ...]) -> str:
    """The module with function ``work``, for grids by one or two ``tests``."""
    def slot(side: str, test: int) -> int:
        return plan.tests[test].r if side == "r" else plan.tests[test].s

    def keys(side: str) -> list[str]:
        return [f"key{slot}_{side}" for slot in used_slots(plan, side)]

    first, second = tests[0], tests[-1]
    parts = [_HEAD.format(digest=digest(cells, intrinsics, levels, tickets))]
    lists: dict[str, str] = {}
    for side in SIDES:
        other = other_side(side)
        condition = test_source(plan, other, f"key{{}}_{other}[w]", f"low{{}}_{side}[p]", f"high{{}}_{side}[p]")
        bounds = [f"{end}{j}_{side}" for end in ("low", "high") for j in range(len(plan.tests))]
        parts.append(_STREAM.format(
            side=side, Side=side.upper(), ahead=_AHEAD, first=first, second=second, cycle=levels.CYCLE,
            prefetch="; ".join(f"prefetch({key}, soon)" for key in keys(other)), keys=", ".join(keys(other)),
            bounds=", ".join(bounds), own=", ".join(keys(side)), own_first=f"key{slot(side, first)}_{side}",
            own_second=f"key{slot(side, second)}_{side}", test=condition.truth, lines=condition.before(8)))
        lists[f"own_{side}"] = ", ".join(keys(side))
        lists[f"grid_{side}"] = ", ".join(f"{name}_{side}" for name in _GRID)
        lists[f"probes_{side}"] = ", ".join([f"start_{side}", f"end_{side}", f"count_{side}", *keys(other), *bounds])
    arguments = [name for side in SIDES for name in (
        lists[f"grid_{side}"], f"start_{side}, end_{side}, count_{side}", lists[f"own_{side}"],
        *(f"{end}{j}_{side}" for end in ("low", "high") for j in range(len(plan.tests))))]
    parts.append(_WORK.format(arguments=", ".join(arguments), store_r=STORE_R, store_s=STORE_S, probe=PROBE, **lists))
    return "".join(parts)
