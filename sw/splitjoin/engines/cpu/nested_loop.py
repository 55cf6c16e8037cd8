"""The nested-loop join: every probe is compared with its whole window, in vector code that is written for the plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from ..compiled import intrinsics
from ..compiled.handover import entry_address
from ..compiled.jit import digest, load
from ..compiled.store import Store, aligned
from ..loops import address_of
from ..tuning import DEFAULTS, Tuning
from . import block, tickets
from .block import BLOCK_READERS, Block, Field, unpacking
from .finder import Batch, Finder, Found, in_task_order
from .levels import Levels, learn
from .selectivity import Choice, SessionAlgorithm, ThreadWork
from .tests_source import TestSource, is_conjunction, test_source, used_slots
from .tickets import STOP, make_control, resume

__all__ = ["CHUNK", "PROBES", "NestedFinder", "NestedLoop", "nested_fields", "nested_source"]

#: Stored tuples per chunk: two 32-bit keys of them fill half a first-level cache.
CHUNK = 2048
#: Probes that share each chunk of the window.
PROBES = 256
#: Stored tuples that are looked at one by one once one of them is known to match.
STEP = 128
#: Keys that the compiler compares in one turn of its loop (four vectors), by their type.
_GRAIN = {"uint8": 256, "uint16": 128, "uint32": 64}
_TEMPLATE = '''import numba
import numpy as np
from splitjoin.engines.compiled.jit import compiled
{readers}, interval_mask, lowest_bit, pointer_to
from splitjoin.engines.cpu.tickets import claim, complete, stop

# Made for functions of digest {digest}.


@numba.njit(nogil=True)
def hits({keys}, {bounds}):
    n = np.int32(0)
    for i in range(len({first})):
{in_hits}        n = np.int32(n + np.int32({test}))
    return n

{suspects}
@compiled
def find(p, start, end, base, counts, rows, flags, {keys}, {arrays}{narrow}):
    """Matches of probes p and later; returns the first probe for which ``rows`` had no room, and how many are in it."""
    at = np.int64(0)
    n, stored = len(start), len({first})
    while p < n:
        until = min(p + {probes}, n)
        least, most = start[p], end[until - 1]
        # Chunks begin where llvm_intrinsic loads are aligned.
        least = base + (least - base) // {grain} * {grain}
        chunks = (most - least + {chunk} - 1) // {chunk}
        for c in range(chunks):
            origin = least + c * {chunk}
            for j in range(p, until):
                # Whole vectors: what lies beside the window is found out in the second pass.
                lo = (max(start[j], origin) - base) // {grain} * {grain}
                hi = min((min(end[j], origin + {chunk}) - base + {grain} - 1) // {grain} * {grain}, stored)
                flags[j - p, c] = {survey}
        for j in range(p, until):
            if len(rows) - at < end[j] - start[j]:
                return j, at
            before = at
            {load}
            for c in range(chunks):
                if flags[j - p, c]:
                    origin = least + c * {chunk}
                    last = min(end[j], origin + {chunk}) - base
                    lo = max(start[j], origin) - base
{visit}
            counts[j] = at - before
        p = until
    return p, at


@compiled
def work(thread, block):
    """Do tasks as long as there are any: thread number ``thread`` of those that do.

    ``tasks`` (n, 6): the first probe of each, the one behind its last, the one that is next; the thread that looked,
    and where its matches begin and end. A thread whose room is full stops all. ``rooms`` (threads, 3): the addresses of
    the rows that each has found, (room,), of flags, ({probes}, chunks), and of the number of rows.
    """
    {unpack}
    out = numba.carray(pointer_to(rooms[thread, 0]), (room,), np.int64)
    flags = numba.carray(pointer_to(rooms[thread, 1]), ({probes}, chunks), np.bool_)
    fill = numba.carray(pointer_to(rooms[thread, 2]), (1,), np.int64)
    while True:
        task = claim(control, limits, thread)
        if task < 0:
            return 1
        mine = tasks[task]
        until = mine[1]
        mine[3], mine[4] = thread, fill[0]
        mine[2], found = find(mine[2], start[:until], end[:until], base, counts, out[fill[0]:], flags, {given})
        fill[0] += found
        mine[5] = fill[0]
        if mine[2] < until:
            stop(control)
            return 1
        complete(control, limits)
'''
#: The visit of a chunk in which something was found: by masks of 64 slots where they can be made, or in pieces.
_BY_MASKS = '''
                    while lo + 64 <= last:
                        mask = {mask}
                        while mask:
                            i = lo + lowest_bit(mask)
                            mask &= mask - np.uint64(1)
{in_mask}                            if {check}:
                                rows[at] = base + i
                                at += 1
                        lo += 64
                    for i in range(lo, last):
{in_rest}                        if {test}:
                            rows[at] = base + i
                            at += 1
'''
_IN_PIECES = '''
                    for first in range(lo, last, {step}):
                        hi = min(first + {step}, last)
                        if {piece}:
                            for i in range(first, hi):
{in_piece}                                if {test}:
                                    rows[at] = base + i
                                    at += 1
'''
_SUSPECTS = '''
@numba.njit(nogil=True)
def suspects({keys}, {bounds}):
    any = False
    for i in range(len({first})):
        any = any | ({test})
    return any

'''
Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
#: Parts of the probes for each thread, so that all end at about the same time. The least number of probes in
#: one if there are few.
_PARTS, _FEWEST = 4, 16
#: Nanoseconds of a pair, exact and with narrow keys.
_EXACT, _NARROW = 0.07, 0.03
#: Largest share of chunks in which narrow keys may find candidates.
_SUSPECTED = 0.3


def nested_fields(plan: Plan, side: str, narrow: tuple[int, ...], kind: str) -> list[Field]:
    """The arguments of the loops over stored tuples of stream ``side``, as of `nested_source`."""
    def lane(slot: int) -> str:
        return f"uint{32 if plan.slots(side)[slot].key.width <= 32 else 64}"

    fields = [Field("control"), Field("limits"), Field("tasks", dimensions=2), Field("rooms", dimensions=2),
              Field("room", dimensions=0), Field("chunks", dimensions=0), Field("start"), Field("end"),
              Field("base", dimensions=0), Field("counts")]
    fields += [Field(f"k{slot}", lane(slot)) for slot in used_slots(plan, side)]
    fields += [Field(f"{bound}{j}s", lane(test.r if side == "r" else test.s))
               for bound in ("lo", "hi") for j, test in enumerate(plan.tests)]
    return fields + [Field(f"{name}{d}{of}", kind) for d in range(len(narrow))
                     for name, of in (("n", ""), ("a", "s"), ("w", "s"))]


def nested_source(plan: Plan, side: str, narrow: tuple[int, ...], kind: str) -> str:
    """The module with the entry ``work``, which finds matches among stored tuples of stream ``side``; its block is of
    `nested_fields`.

    ``narrow``: the tests (that every match meets) of which there are narrow copies of keys and bounds, of NumPy's
    type ``kind``.
    """
    numbers = range(len(plan.tests))
    names = [f"k{slot}" for slot in used_slots(plan, side)]
    straight = is_conjunction(plan)
    # With one unsigned compare a test (key − low ≤ width) an empty interval cannot be said: such probes are left out.
    bounds = [f"lo{j}" for j in numbers] + [f"{'w' if straight else 'hi'}{j}" for j in numbers]
    arrays = [f"lo{j}s" for j in numbers] + [f"hi{j}s" for j in numbers]
    condition = test_source(plan, side, "k{}[i]", "lo{}", "hi{}")
    items = [f"lo{j}s[j]" for j in numbers] + [f"hi{j}s[j]" for j in numbers]
    load = [f"lo{j} = lo{j}s[j]" for j in numbers] + [f"hi{j} = hi{j}s[j]" for j in numbers]
    possible = ""
    if straight:
        kinds = {j: _kind(plan, side, j) for j in numbers}
        slots = {j: plan.tests[j].r if side == "r" else plan.tests[j].s for j in numbers}
        condition = TestSource((), " & ".join(f"({kinds[j]}(k{slots[j]}[i] - lo{j}) <= w{j})" for j in numbers))
        widths = {j: f"{kinds[j]}(hi{j}s[j] - lo{j}s[j])" for j in numbers}
        items = [f"lo{j}s[j]" for j in numbers] + [widths[j] for j in numbers]
        load = [f"lo{j} = lo{j}s[j]" for j in numbers] + [f"w{j} = {widths[j]}" for j in numbers]
        possible = " and " + " and ".join(f"lo{j}s[j] <= hi{j}s[j]" for j in numbers)
    survey = f"hits({', '.join(f'{k}[lo:hi]' for k in names)}, {', '.join(items)}) != 0"
    suspects = extra = ""
    if narrow:
        ks = [f"n{d}" for d in range(len(narrow))]
        suspects = _SUSPECTS.format(
            keys=", ".join(ks), bounds=", ".join(f"a{d}, w{d}" for d in range(len(narrow))), first=ks[0],
            test=" & ".join(f"(np.{kind}(n{d}[i] - a{d}) <= w{d})" for d in range(len(narrow))))
        survey = (f"suspects({', '.join(f'{k}[lo:hi]' for k in ks)}, "
                  f"{', '.join(f'a{d}s[j], w{d}s[j]' for d in range(len(narrow)))})")
        extra = ", " + ", ".join(f"n{d}, a{d}s, w{d}s" for d in range(len(narrow)))
        possible = " and " + " and ".join(f"lo{j}s[j] <= hi{j}s[j]" for j in (numbers if straight else narrow))
        masks = " & ".join(f"interval_mask(n{d}, lo, a{d}s[j], w{d}s[j])" for d in range(len(narrow)))
        visit = _BY_MASKS.format(mask=masks, check=condition.truth, test=condition.truth,
                                 in_mask=condition.before(28), in_rest=condition.before(24))
    elif straight:
        masks = " & ".join(f"interval_mask(k{slots[j]}, lo, lo{j}, w{j})" for j in numbers)
        visit = _BY_MASKS.format(mask=masks, check="True", test=condition.truth, in_mask="", in_rest="")
    else:
        pieces = ", ".join(f"{k}[first:hi]" for k in names)
        visit = _IN_PIECES.format(step=STEP, piece=f"hits({pieces}, {', '.join(bounds)})",
                                  test=condition.truth, in_piece=condition.before(32))
    made = partial(
        _TEMPLATE.format, readers=BLOCK_READERS, digest=digest(block, intrinsics, tickets),
        given=", ".join([*names, *arrays]) + extra, keys=", ".join(names), bounds=", ".join(bounds), first=names[0],
        test=condition.truth, in_hits=condition.before(8), suspects=suspects, arrays=", ".join(arrays), narrow=extra,
        probes=PROBES, chunk=CHUNK, visit=visit.strip("\n"), grain=_GRAIN[kind if narrow else "uint32"],
        survey=f"{survey} if hi > lo{possible} else False", load="\n            ".join(load))
    return made(unpack=unpacking(nested_fields(plan, side, narrow, kind), made(unpack="")))


def _kind(plan: Plan, side: str, test: int) -> str:
    slot = plan.slots(side)[plan.tests[test].r if side == "r" else plan.tests[test].s]
    return "np.uint32" if slot.key.width <= 32 else "np.uint64"


class NestedFinder(Finder):
    """Compares probes with all that they see; ``choice`` says by which tests narrow copies of the keys are kept.
    ``work`` counts by threads.
    """

    def __init__(self, plan: Plan, choice: Choice, samples: Mapping[str, list[Array]], work: ThreadWork,
                 tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._work = work
        self._plan, self._tests = plan, choice.tests
        self._kind = np.uint8 if choice.levels[:1] == (256,) else np.uint16
        self._levels: dict[str, list[Levels]] = {side: [] for side in SIDES}
        self._entries: dict[str, int] = {}  # by the stream in which probes look
        self._blocks: dict[str, Block] = {}
        self._rooms: dict[str, list[Rows]] = {side: [] for side in SIDES}
        for side in SIDES:
            for j, count in zip(choice.tests, choice.levels, strict=True):
                sample = samples[side][self._slot(side, j)]
                self._levels[side].append(learn(sample, count))
            made = plan, side, choice.tests, self._kind.__name__
            self._entries[side] = entry_address(load(nested_source(*made)).work)
            self._blocks[side] = Block(nested_fields(*made))

    def _slot(self, side: str, test: int) -> int:
        return self._plan.tests[test].r if side == "r" else self._plan.tests[test].s

    def extend(self, side: str, arrays: list[Array]) -> list[Array]:
        """The keys, then their narrow copies."""
        return arrays + [levels.of(arrays[self._slot(side, j)], self._kind)
                         for j, levels in zip(self._tests, self._levels[side], strict=True)]

    def find(self, batch: Batch) -> dict[str, Found]:
        self.candidates += batch.extent[0]
        return {side: self._find(batch, side) for side in SIDES}

    def _find(self, batch: Batch, side: str) -> Found:
        """The matches of the probes of stream ``side``."""
        other = other_side(side)
        store, (start, end) = self.stores[other], batch.windows[side]
        counts = np.zeros(len(start), np.int64)
        if not store.end or not len(start):
            return Found.of(counts, [])
        tasks, block = self._tasks_of(batch, side), self._blocks[other]
        limits = np.array([len(tasks)])
        control = make_control(limits, patient=batch.team.is_patient)
        self._describe(batch, side, counts)
        block.put_all((("control", control), ("limits", limits), ("tasks", tasks)))
        # A thread has room for the matches of a probe with all that it sees, and what it has found before.
        room = batch.extent[1] + self.tuning.room
        chunks = max(int(end[last - 1] - start[first]) for first, last in tasks[:, :2]) // CHUNK + 2
        flags = [np.empty((PROBES, chunks), np.bool_) for _ in range(batch.team.size)]
        fills = [aligned(8, np.int64) for _ in range(batch.team.size)]
        pieces, memory, found = [], [], 0
        seen = np.concatenate([[0], np.cumsum(end - start)])  # pairs before each probe
        while True:
            rooms = [self._room(side, n, room) for n in range(batch.team.size)]
            for fill in fills:
                fill[0] = 0
            block.put_all((("room", min(map(len, rooms))), ("chunks", chunks), ("rooms", np.array(
                [[address_of(a) for a in of] for of in zip(rooms, flags, fills, strict=True)]))))
            before = tasks[:, 2].copy()
            batch.team.share(self._entries[other], block.address)
            sizes = tasks[:, 5] - tasks[:, 4]
            self._work.add(SIDES.index(other), tasks[:, 3], seen[tasks[:, 2]] - seen[before], sizes)
            some = np.flatnonzero(sizes > 0)
            addresses = np.array([address_of(rows) for rows in rooms])[tasks[some, 3]] + 8 * tasks[some, 4]
            pieces.append(np.stack([before[some], tasks[some, 2], addresses, sizes[some], some], axis=1))
            memory += rooms
            batch.memory.add(int(sizes.sum()))
            found += int(sizes.sum())
            tasks[:, 4:] = 0
            if not control[STOP]:
                break
            self._rooms[side] = []  # what is in them is read later
            resume(control, limits)
        return Found(counts, in_task_order(pieces), memory, found)

    def _tasks_of(self, batch: Batch, side: str) -> Rows:
        """The tasks (n, 6) of the probes of stream ``side`` (`nested_source`)."""
        n, least = len(batch.windows[side][0]), self.tuning.part_probes
        least = least if n >= least * batch.team.size else _FEWEST
        parts = max(1, min(_PARTS * batch.team.size, n // least)) if batch.team.size > 1 else 1
        cuts = n * np.arange(parts + 1) // parts
        tasks = np.zeros((parts, 6), np.int64)
        tasks[:, 0], tasks[:, 1], tasks[:, 2] = cuts[:-1], cuts[1:], cuts[:-1]
        return tasks

    def _describe(self, batch: Batch, side: str, counts: Rows) -> None:
        """Write to the block what the compiled loops take for the probes of stream ``side``."""
        other = other_side(side)
        store, tests, probes, put = self.stores[other], len(self._plan.tests), batch.probes[side], (
            self._blocks[other].put)
        arrays = store.arrays
        for name, value in (("start", batch.windows[side][0]), ("end", batch.windows[side][1]), ("base", store.base),
                            ("counts", counts)):
            put(name, value)
        for slot in used_slots(self._plan, other):
            put(f"k{slot}", arrays[slot])
        for j in range(tests):
            put(f"lo{j}s", probes[j])
            put(f"hi{j}s", probes[tests + j])
        slots = len(self._plan.slots(other))
        for d, (j, levels) in enumerate(zip(self._tests, self._levels[other], strict=True)):
            low, high = levels.of(probes[j], self._kind), levels.of(probes[tests + j], self._kind)
            put(f"n{d}", arrays[slots + d])
            put(f"a{d}s", low)
            put(f"w{d}s", high - low)

    def _room(self, side: str, thread: int, n: int) -> Rows:
        """Room for ``n`` matches that a thread finds for probes of stream ``side``."""
        rooms = self._rooms[side]
        if thread >= len(rooms) or len(rooms[thread]) < n:
            rooms[thread:] = [np.empty(n, np.int64)]
        return rooms[thread]

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine has stored."""
        for side, store in stores.items():
            slots = len(self._plan.slots(side))
            if store.arrays:
                store.replace(self.extend(side, store.arrays[:slots]))
        self.stores = stores


class NestedLoop(SessionAlgorithm):
    """Compares every pair of a window, in vector code."""

    name, engine, suits = "nested loop join", "nested", True

    @cached_property
    def choice(self) -> Choice:
        live, best = self.job.live, self.job.known[:2]
        for levels in (256, 65536) if self.job.prefilter and best else ():
            suspected = 2048.0 * math.prod(f + 1 / levels for f, _ in best)
            if suspected < _SUSPECTED:
                cost = live * (_NARROW * levels.bit_length() / 9 + suspected * _EXACT)
                tests = tuple(j for _, j in best)
                return Choice(tests, (levels,) * len(tests),
                              f"nested loops over {levels.bit_length() - 1}-bit copies of the keys, verified", cost)
        return Choice((), (), "nested loops over the keys", live * _EXACT)

    def run(self) -> NestedFinder:
        return NestedFinder(self.job.plan, self.choice, self.job.samples, self.job.work, self.job.tuning)
