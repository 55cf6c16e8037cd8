"""Source of the index engine's loops: a batch is stored in both streams' grids and joined, by all threads at once.

The arrivals of a batch go through the grids a step after the other: first a step's tuples are stored, then its probes
look. One thread stores the tuples of a stream as they come. Several first sort a batch's tuples by ranges of cells
(a radix partition: each counts a part, then moves it), so that storing a range is a task; so is a part of the step's
probes. All threads share both grids.
"""

from __future__ import annotations

from functools import lru_cache

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..compiled import intrinsics
from ..compiled.jit import digest
from . import block, grid_cells, levels, tickets
from .block import BLOCK_READERS, Field, unpacking
from .tests_source import test_source, used_slots

__all__ = ["FILL_R", "FILL_S", "PROBE", "ROOM", "STORE_R", "STORE_S", "region_fields", "region_source"]

#: Kinds of tasks: one that stores tuples of a stream as they come, and of a range of its cells; and one that probes.
STORE_R, STORE_S, FILL_R, FILL_S, PROBE = range(5)
#: The arrays of a thread, whose addresses are a row of ``rooms``: levels; candidates and their probes; the matches of
#: R's and S's probes; how many these are; counters; and cells of tuples, or places of ranges.
ROOM = ("scratch", "found", "probe_of", "out_r", "out_s", "fill", "looked", "cells")
#: Candidates between a prefetch and the use of its data.
_AHEAD = 16

_HEAD = '''import numba
import numpy as np
from splitjoin.engines.compiled.jit import compiled
from splitjoin.engines.cpu.grid_cells import (bound_levels, count_ranges, find_candidates, insert, note_cells, prefetch,
                                         scatter)
{readers}, cycles, pointer_to
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
def note_{side}(row, n, scratch, at, noted, base, begin, numbers, reals, table, levels, other_numbers, other_reals,
                other_table, other_levels, stride, {own}):
    """Note the cells of ``n`` tuples from ``row`` on of the batch's of {Side}, as those of rows from ``at`` on."""
    i = begin - base + row
    write_levels({own_first}[i:i + n], numbers, reals, table, levels, scratch[0])
    write_levels({own_second}[i:i + n], other_numbers, other_reals, other_table, other_levels, scratch[1])
    note_cells(scratch, 0, n, at, stride, noted)


@numba.njit(nogil=True)
def probe_{side}(p, until, scratch, found, probe_of, out, n, looked, shared, base, first, begin, numbers, reals, table,
                 levels, other_numbers, other_reals, other_table, other_levels, stride, head, rows, pool, used, start,
                 end, count, {keys}, {bounds}):
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
            p, m, compared = find_candidates(scratch, p, j, i, shared, stride, head, rows, pool, found, probe_of)
            n = verify_{side}(base, first, start, end, found, probe_of, m, count, out, n, {keys}, {bounds})
            looked[0] += compared
    return p, n

'''

_PREPARE = '''
@numba.njit(nogil=True)
def place(spread, part, parts, places, begins, ends):
    """Write to ``places`` where ``part`` puts its first tuple of each range; the first part tells where ranges lie."""
    total, ranges = np.int64(0), len(places)
    for k in range(ranges):
        before = mine = np.int64(0)
        for other in range(parts):
            mine += spread[other * ranges + k]
            before += spread[other * ranges + k] if other < part else 0
        places[k] = total + before
        total += mine
        if part == 0:
            begins[k], ends[k] = places[k], total


@compiled
def prepare(thread, block):
    """Sort the tuples of both streams by ranges of cells, those from row ``from_r`` and ``from_s`` of the batch on.

    There are two phases of a task for each of ``parts`` of R's and of S's tuples: the first notes cells and counts, the
    second moves what is noted to ``entries``. ``spread``: how many tuples of each part are in each range.
    ``places`` and ``ends`` get where each range begins and ends.
    """
    {unpack}
    scratch = numba.carray(pointer_to(rooms[thread, 0]), (4, at_once), np.int32)
    places = numba.carray(pointer_to(rooms[thread, 7]), (ranges,), np.int64)
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            return 0
        moving, part = task >= 2 * parts, task % parts
        if task // parts % 2 == 0:
            a, b = from_r + (n_r - from_r) * part // parts, from_r + (n_r - from_r) * (part + 1) // parts
            if from_r >= n_r:
                pass  # nothing is left to store
            elif moving:
                place(spread_r, part, parts, places, places_r, ends_r)
                scatter(noted_r, a, b, scale_r, places, entries_r)
            else:
                for row in range(a, b, at_once):
                    note_r(row, min(b - row, at_once), scratch, row, noted_r, {notes_r})
                count_ranges(noted_r, a, b, scale_r, spread_r[part * ranges:(part + 1) * ranges])
        else:
            a, b = from_s + (n_s - from_s) * part // parts, from_s + (n_s - from_s) * (part + 1) // parts
            if from_s >= n_s:
                pass  # nothing is left to store
            elif moving:
                place(spread_s, part, parts, places, places_s, ends_s)
                scatter(noted_s, a, b, scale_s, places, entries_s)
            else:
                for row in range(a, b, at_once):
                    note_s(row, min(b - row, at_once), scratch, row, noted_s, {notes_s})
                count_ranges(noted_s, a, b, scale_s, spread_s[part * ranges:(part + 1) * ranges])
        complete(control, limits)

'''

_WORK = '''
@compiled
def work(thread, block):
    """Do tasks as long as there are any: thread number ``thread`` of those that do.

    ``tasks`` (n, 14): the kind of each, the first of its tuples of R, the one behind the last, those of S, and R's and
    S's next one. Of tuples to store also whether their grid is full, and the range of cells. Of probes the thread, and
    for R and for S the first probe, and where its matches begin and end in ``out_r`` and ``out_s``. A
    thread stops all when a grid is full, or its room. ``fill`` (2,): the matches in ``out_r`` and ``out_s``. ``looked``
    (4,): candidates, and cycles of probing, of storing, and of all tasks. ``scratch``, ``found``, ``probe_of``: room
    for levels and candidates. ``live_r``, ``live_s``: rows below which all are expired after the batch. Then of each
    stream its grid (`cells`): positions of the first tuple in the store, of number 0 in the grid, of the batch's first
    one, …
    """
    {unpack}
    scratch = numba.carray(pointer_to(rooms[thread, 0]), (4, at_once), np.int32)
    cells = numba.carray(pointer_to(rooms[thread, 7]), (at_once,), np.int64)
    found = numba.carray(pointer_to(rooms[thread, 1]), (room,), np.int32)
    probe_of = numba.carray(pointer_to(rooms[thread, 2]), (room,), np.int32)
    out_r = numba.carray(pointer_to(rooms[thread, 3]), (2 * room,), np.int64)
    out_s = numba.carray(pointer_to(rooms[thread, 4]), (2 * room,), np.int64)
    fill = numba.carray(pointer_to(rooms[thread, 5]), (8,), np.int64)
    looked = numba.carray(pointer_to(rooms[thread, 6]), (8,), np.int64)
    entered, shared = cycles(), ranges > 1
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            looked[3] += cycles() - entered
            return 0
        mine, began = tasks[task], cycles()
        # What is expired for the step's first probe is so for all later ones.
        if mine[0] == {store_r}:
            live = (start_s[mine[3]] if mine[3] < n_s else live_r) - first_r
            done = n = np.int64(0)
            while mine[5] < mine[2] and done == n:
                n = min(mine[2] - mine[5], at_once)
                note_r(mine[5], n, scratch, 0, cells, {notes_r})
                done = insert(cells, 0, n, n, begin_r - first_r + mine[5], live, False, head_r, rows_r, pool_r,
                              used_r)
                mine[5] += done
            mine[7] = full = mine[5] < mine[2]
        elif mine[0] == {store_s}:
            live = (start_r[mine[1]] if mine[1] < n_r else live_s) - first_s
            done = n = np.int64(0)
            while mine[6] < mine[4] and done == n:
                n = min(mine[4] - mine[6], at_once)
                note_s(mine[6], n, scratch, 0, cells, {notes_s})
                done = insert(cells, 0, n, n, begin_s - first_s + mine[6], live, False, head_s, rows_s, pool_s,
                              used_s)
                mine[6] += done
            mine[7] = full = mine[6] < mine[4]
        elif mine[0] == {fill_r}:
            live = (start_s[mine[3]] if mine[3] < n_s else live_r) - first_r
            n = insert(entries_r, places_r[mine[8]], ends_r[mine[8]], mine[2], begin_r - first_r, live,
                       True, head_r, rows_r, pool_r, used_r)
            places_r[mine[8]] = n
            mine[7] = full = n < ends_r[mine[8]] and (entries_r[n] >> 16 & 0xFFFFF) < mine[2]
        elif mine[0] == {fill_s}:
            live = (start_r[mine[1]] if mine[1] < n_r else live_s) - first_s
            n = insert(entries_s, places_s[mine[8]], ends_s[mine[8]], mine[4], begin_s - first_s, live,
                       True, head_s, rows_s, pool_s, used_s)
            places_s[mine[8]] = n
            mine[7] = full = n < ends_s[mine[8]] and (entries_s[n] >> 16 & 0xFFFFF) < mine[4]
        else:
            mine[7] = thread
            mine[8], mine[9], mine[11], mine[12] = mine[5], fill[0], mine[6], fill[1]
            if mine[5] < mine[2]:
                if mine[5] == mine[1]:
                    count_r[mine[1]:mine[2]] = 0
                mine[5], fill[0] = probe_r(mine[5], mine[2], scratch, found, probe_of, out_r, fill[0], looked,
                                           shared, {grid_s}, {probes_r})
            if mine[6] < mine[4]:
                if mine[6] == mine[3]:
                    count_s[mine[3]:mine[4]] = 0
                mine[6], fill[1] = probe_s(mine[6], mine[4], scratch, found, probe_of, out_s, fill[1], looked,
                                           shared, {grid_r}, {probes_s})
            mine[10], mine[13] = fill[0], fill[1]
            full = mine[5] < mine[2] or mine[6] < mine[4]
        looked[1 if mine[0] == {probe} else 2] += cycles() - began
        if full:
            stop(control)
            looked[3] += cycles() - entered
            return 0
        complete(control, limits)
'''

#: What the loops take of a stream's grid.
_GRID = (Field("base", dimensions=0), Field("first", dimensions=0), Field("begin", dimensions=0),
         Field("numbers", "uint64"), Field("reals", "float64"), Field("table", "int32"), Field("levels", dimensions=0),
         Field("other_numbers", "uint64"), Field("other_reals", "float64"), Field("other_table", "int32"),
         Field("other_levels", dimensions=0), Field("stride", dimensions=0), Field("head", "int32", 2),
         Field("rows", "int32"), Field("pool", "uint8"), Field("used"))
#: What they take of a stream's batch, and of its tuples in the order of cells.
_BATCH = (Field("n", dimensions=0), Field("live", dimensions=0), Field("start"), Field("end"), Field("count"),
          Field("from", dimensions=0), Field("scale", dimensions=0), Field("noted"), Field("entries"), Field("places"),
          Field("ends"), Field("spread"))


@lru_cache(maxsize=64)
def region_fields(plan: Plan) -> tuple[Field, ...]:
    """The arguments of the loops. Plans that are equal have the same: they read keys, whatever literals made them."""
    fields = [Field("control"), Field("limits"), Field("tasks", dimensions=2), Field("rooms", dimensions=2),
              Field("room", dimensions=0), Field("at_once", dimensions=0), Field("parts", dimensions=0),
              Field("ranges", dimensions=0)]
    for side in SIDES:
        fields += [Field(f"{field.name}_{side}", field.kind, field.dimensions) for field in (*_GRID, *_BATCH)]
        fields += [Field(f"key{slot}_{side}", _lane(plan, side, slot)) for slot in used_slots(plan, side)]
        other = other_side(side)
        fields += [Field(f"{end}{j}_{side}", _lane(plan, other, test.r if other == "r" else test.s))
                   for end in ("low", "high") for j, test in enumerate(plan.tests)]
    return tuple(fields)


def _lane(plan: Plan, side: str, slot: int) -> str:
    return f"uint{32 if plan.slots(side)[slot].key.width <= 32 else 64}"


@lru_cache(maxsize=64)  # micro-batches open sessions of one plan again and again
def region_source(plan: Plan, tests: tuple[int, ...]) -> str:
    """The module with the entries ``prepare`` and ``work``, for grids by one or two ``tests``. Their blocks are of
    `region_fields`.
    """
    def slot(side: str, test: int) -> int:
        return plan.tests[test].r if side == "r" else plan.tests[test].s

    def keys(side: str) -> list[str]:
        return [f"key{slot}_{side}" for slot in used_slots(plan, side)]

    first, second = tests[0], tests[-1]
    parts = [_HEAD.format(readers=BLOCK_READERS, digest=digest(block, grid_cells, intrinsics, levels, tickets))]
    lists: dict[str, str | int] = {}
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
        lists[f"notes_{side}"] = ", ".join([*(f"{field.name}_{side}" for field in _GRID[:12] if field.name != "first"),
                                            *keys(side)])
        lists[f"grid_{side}"] = ", ".join(f"{field.name}_{side}" for field in _GRID)
        lists[f"probes_{side}"] = ", ".join([f"start_{side}", f"end_{side}", f"count_{side}", *keys(other), *bounds])
    lists |= {"store_r": STORE_R, "store_s": STORE_S, "fill_r": FILL_R, "fill_s": FILL_S, "probe": PROBE}
    for entry in (_PREPARE, _WORK):
        body = entry.format(unpack="", **lists)
        parts.append(entry.format(unpack=unpacking(region_fields(plan), body), **lists))
    return "".join(parts)
