"""Source of an index region's loop: stores one stream's tuples in their grid, and joins the other stream's probes."""

from __future__ import annotations

from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan

from . import cells, intrinsics, levels
from .jit import digest
from .tests_source import test_source, used_slots

__all__ = ["DONE", "FULL", "GROW", "STATE", "region_source"]

#: Reasons for which a region returns: all is done, there is no room for matches, or the grid is full.
DONE, FULL, GROW = 0, 1, 2
#: Entries of a region's state.
STATE = 7
#: Candidates between a prefetch and the use of its data.
_AHEAD = 16

_TEMPLATE = '''import numba
import numpy as np
from splitjoin.engines.cpu.jit import compiled
from splitjoin.engines.cpu.cells import bound_levels, find_candidates, insert, prefetch
from splitjoin.engines.cpu.levels import write_levels

# Made for functions of digest {digest}.


@numba.njit(nogil=True)
def verify(workers, worker, base, first, start, end, found, probe_of, m, count, out, n, {keys}, {bounds}):
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
        w = np.int64(found[at]) + first - base
        row = (w + base) * workers + worker
        seen = (row >= start[p]) & (row < end[p])
        w = w if seen else 0
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


@compiled
def region(stream, size, row, state, workers, worker, base, first, begin, start, end, numbers, reals, table, levels,
           other_numbers, other_reals, other_table, other_levels, stride, head, rows, pool, used, scratch,
           found, probe_of, count, out, {keys}, {bounds}):
    """Join a part of ``size`` arrivals after the other: those to store are stored first, then all probes look.

    ``stream`` (n,): the streams of the arrivals. ``row``: the row id of the first tuple to store, if it is this
    worker's. ``state`` (7,): arrivals before the part, and those of the stored stream; tuples stored, probes done, and
    matches in ``out``; candidates that were looked at; the row below which all are expired.
    ``base``, ``first``, ``begin``: positions of the first tuple in the store, of number 0 in the grid, of the first one
    to store. ``start``, ``end``: the probes' windows. Then levels and grid (`cells`), room for levels and
    candidates, the probes' counts, the matches' rows, keys that are stored, and bounds. Returns the reason; call it
    again after removing it.
    """
    add = workers - 1 - worker
    while state[0] < len(stream):
        stop, arrived = min(state[0] + size, len(stream)), np.int64(0)
        for i in range(state[0], stop):
            arrived += stream[i]
        arrived = state[1] + (arrived if {stored} else stop - state[0] - arrived)
        # Tuples expired for the first probe of a part are expired for all later ones.
        if state[3] < len(start):
            state[6] = max(state[6], start[state[3]])
        until = (row + arrived + add) // workers - (row + add) // workers
        if state[2] < until:
            i, j = begin - base + state[2], begin - base + until
            write_levels({own}[i:j], numbers, reals, table, levels, scratch[0])
            write_levels({other_own}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[1])
            state[2] += insert(scratch, 0, until - state[2], stride, begin - first + state[2],
                               (state[6] + add) // workers - first, head, rows, pool, used)
            if state[2] < until:
                return {grow}
        until = stop - arrived
        if state[3] < until:
            i, j = state[3], until
            write_levels(low{first}[i:j], numbers, reals, table, levels, scratch[0])
            write_levels(high{first}[i:j], numbers, reals, table, levels, scratch[1])
            write_levels(low{second}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[2])
            write_levels(high{second}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[3])
            bound_levels(scratch[0], scratch[1], low{first}[i:j], high{first}[i:j],
                         levels if numbers[0] == {cycle} else 0, numbers[3], numbers[4])
            bound_levels(scratch[2], scratch[3], low{second}[i:j], high{second}[i:j],
                         other_levels if other_numbers[0] == {cycle} else 0, other_numbers[3], other_numbers[4])
            while state[3] < until:
                if len(out) - state[4] < len(found):
                    return {full}
                state[3], m, compared = find_candidates(scratch, state[3], until, i, stride, head, rows, pool,
                                                        found, probe_of)
                state[4] = verify(workers, worker, base, first, start, end, found, probe_of, m, count, out, state[4],
                                  {keys}, {bounds})
                state[5] += compared
        state[0], state[1] = stop, arrived
    return {done}
'''


def region_source(plan: Plan, side: str, tests: tuple[int, ...]) -> str:
    """The module with function ``region`` for probes of stream ``side``, whose grid goes by one or two ``tests``."""
    def slot(test: int) -> int:
        return plan.tests[test].s if side == "r" else plan.tests[test].r

    first, second = tests[0], tests[-1]
    condition = test_source(plan, other_side(side), "key{}[w]", "low{}[p]", "high{}[p]")
    return _TEMPLATE.format(
        digest=digest(cells, intrinsics, levels), cycle=levels.CYCLE, ahead=_AHEAD, done=DONE, full=FULL, grow=GROW,
        prefetch="; ".join(f"prefetch(key{slot}, soon)" for slot in used_slots(plan, other_side(side))),
        keys=", ".join(f"key{slot}" for slot in used_slots(plan, other_side(side))),
        bounds=", ".join(f"{end}{j}" for end in ("low", "high") for j in range(len(plan.tests))),
        own=f"key{slot(first)}", other_own=f"key{slot(second)}", first=first, second=second,
        stored=side == "r", test=condition.truth, lines=condition.before(8))
