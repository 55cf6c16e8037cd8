"""The nested-loop engine: compiled interval tests over the whole windows of probes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from .block import Block
from .finder import Batch, Finder, Found, in_task_order
from .handover import address_of, entry_address
from .jit import load
from .levels import Levels, learn
from .nested_source import CHUNK, PROBES, nested_fields, nested_source
from .selectivity import Choice, SessionAlgorithm, ThreadWork
from .store import Store, aligned
from .tests_source import used_slots
from .tickets import STOP, make_control, resume
from .tuning import DEFAULTS, Tuning

__all__ = ["NestedFinder", "NestedLoop"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Parts of the probes for each thread, so that all end at about the same time. The least number of probes in
#: one if there are few.
_PARTS, _FEWEST = 4, 16
#: Nanoseconds of a pair, exact and with narrow keys.
_EXACT, _NARROW = 0.07, 0.03
#: Largest share of chunks in which narrow keys may find candidates.
_SUSPECTED = 0.3


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
        """Per stream its probes' matches."""
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
