"""Source of an index region's loop: stores one stream's tuples in their grid, and joins the other stream's probes."""

from __future__ import annotations

from ..plan.plan import Plan
from . import cells, levels, masks
from .jit import digest
from .tests_source import test_source, used_slots

__all__ = ["DONE", "FULL", "GROW", "STATE", "region_source"]

#: Why a region came back: all is done, there is no room for matches, or the grid is full.
DONE, FULL, GROW = 0, 1, 2
#: How long its state is.
STATE = 5
#: How many candidates ahead memory is asked for.
_AHEAD = 16

_TEMPLATE = '''import numba
import numpy as np
from splitjoin.cpu.cells import insert, look, look_places, own_places, prefetch
from splitjoin.cpu.levels import spread

# Made for functions of digest {digest}.


@numba.njit(nogil=True)
def verify(workers, worker, base, first, start, end, found, whose, m, count, out, n, {keys}, {bounds}):
    begun = n
    probe = np.int64(-1)
    for at in range(m):
        if at + {ahead} < m:
            soon = max(found[at + {ahead}] + first - base, 0)
            {prefetch}
        p = np.int64(whose[at])
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


@numba.njit(nogil=True, cache=True)
def region(parts, state, dead, workers, worker, base, first, begin, start, end, numbers, reals, table, levels,
           other_numbers, other_reals, other_table, other_levels, stride, head, rows, pool, used, scratch, own, looked,
           found, whose, count, out, {keys}, {bounds}):
    """Join some arrivals after the other: those to store are stored first, then all probes look.

    ``parts`` (n, 2): tuples to store, and probes, up to the end of each part. ``state`` (5,): the part; tuples stored,
    probes done, matches in ``out``; pairs looked at. ``dead`` (n,): the position below which all are dead for the part.
    ``base``, ``first``, ``begin``: positions of the first tuple in the store, of number 0 in the grid, of the first one
    to store. ``start``, ``end``: the probes' windows. Then levels and grid (`cells`), room for levels, places and
    candidates, the probes' counts, the matches' rows, keys that are stored, and bounds. Returns why it came back; call
    it again when that is mended.
    """
    while state[0] < len(parts):
        b = state[0]
        until = parts[b, 0]
        if state[1] < until:
            i, j = begin - base + state[1], begin - base + until
            spread({own}[i:j], numbers, reals, table, levels, scratch[0])
            spread({other_own}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[1])
            own_places(scratch, j - i, stride, own)
            state[1] += insert(own, 0, until - state[1], begin - first + state[1], dead[b] - first, head, rows, pool,
                               used)
            if state[1] < until:
                return {grow}
        until = parts[b, 1]
        if state[2] < until:
            shift = state[2]
            i, j = shift, until
            spread(low{first}[i:j], numbers, reals, table, levels, scratch[0])
            spread(high{first}[i:j], numbers, reals, table, levels, scratch[1])
            spread(low{second}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[2])
            spread(high{second}[i:j], other_numbers, other_reals, other_table, other_levels, scratch[3])
            look_places(scratch, low{first}[i:j], high{first}[i:j], low{second}[i:j], high{second}[i:j],
                        levels if numbers[0] == {cycle} else 0, numbers[3], numbers[4],
                        other_levels if other_numbers[0] == {cycle} else 0, other_numbers[3], other_numbers[4],
                        stride, looked)
            while state[2] < until:
                if len(out) - state[3] < len(found):
                    return {full}
                state[2], m, seen = look(looked, state[2], until, shift, stride, head, rows, pool, found, whose)
                state[3] = verify(workers, worker, base, first, start, end, found, whose, m, count, out, state[3],
                                  {keys}, {bounds})
                state[4] += seen
        state[0] += 1
    return {done}
'''


def region_source(plan: Plan, side: str, tests: tuple[int, ...]) -> str:
    """The module with function ``region`` for probes of stream ``side``, whose grid goes by one or two ``tests``."""
    def slot(test: int) -> int:
        return plan.tests[test].s if side == "r" else plan.tests[test].r

    first, second = tests[0], tests[-1]
    condition = test_source(plan, _other(side), "key{}[w]", "low{}[p]", "high{}[p]")
    return _TEMPLATE.format(
        digest=digest(cells, levels, masks), cycle=levels.CYCLE, ahead=_AHEAD, done=DONE, full=FULL, grow=GROW,
        prefetch="; ".join(f"prefetch(key{slot}, soon)" for slot in used_slots(plan, _other(side))),
        keys=", ".join(f"key{slot}" for slot in used_slots(plan, _other(side))),
        bounds=", ".join(f"{end}{j}" for j in range(len(plan.tests)) for end in ("low", "high")),
        own=f"key{slot(first)}", other_own=f"key{slot(second)}", first=first, second=second,
        test=condition.truth, lines=condition.before(8))


def _other(side: str) -> str:
    return "s" if side == "r" else "r"
