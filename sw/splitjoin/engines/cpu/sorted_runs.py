"""The sorted engine: a worker's share in sorted runs, for conditions whose intervals are wide but seldom overlap.

``r.x BETWEEN s.low AND s.high`` is two inequalities, each of which half of all tuples meet. In a grid of cells a probe
would visit a quarter of the cells. In runs sorted by ``low``, with the greatest ``high`` of each block, it finds its
matches in time that grows with their number and the logarithm of the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import other_side
from splitjoin.plan.plan import Plan

from .choice import Choice
from .engines import slot_tests
from .intrinsics import BLOCK
from .jit import load
from .runs import Runs, by_probe, in_arrival_order, sort_keys
from .sorted_source import sorted_source
from .store import Store
from .tests_source import used_slots
from .worker import Batch, Found, Worker

__all__ = ["SortedWorker"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Room for matches beside those of one probe.
_ROOM = 1 << 16
#: The least number of probes that look in the order of their bounds.
_MANY = 1024
#: Stored tuples per probe up to which many probes are better found by going past all stored tuples.
_PASSED = 64


class SortedWorker(Worker):
    """Keeps its share in `Runs`, sorted by the slots that ``choice.levels`` names for R and for S."""

    def __init__(self, number: int, workers: int, plan: Plan, choice: Choice):
        super().__init__(number, workers)
        self._plan = plan
        self._by = dict(zip(("r", "s"), choice.levels, strict=True))
        self._modules = {side: load(sorted_source(plan, side, by)) for side, by in self._by.items()}
        self._runs = self._empty()

    def _empty(self) -> dict[str, Runs]:
        return {side: Runs(used_slots(self._plan, side), by,
                           [slot for slot in sorted(slot_tests(self._plan, side)) if slot != by])
                for side, by in self._by.items()}

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        return batch.both(lambda side: self._find(batch, side))

    def _find(self, batch: Batch, side: str) -> Found:
        other = other_side(side)
        store, runs, probes = self.stores[other], self._runs[other], batch.probes[side]
        start, end = self.seen(batch, side)
        counts = np.zeros(len(start), np.int64)
        if not len(start) or store.end == store.base:
            return counts, np.empty(0, np.int64)
        runs.update(store, int(start[0]))
        turns = self._turns(other, probes)
        if len(turns) >= _MANY and runs.others and runs.used <= _PASSED * len(turns):
            walked = self._walk(batch, side, runs, start, end, turns, counts)
            if walked is not None:
                return counts, walked
        rows = np.empty(int((end - start).max()) + _ROOM, np.int64)
        words, room = np.zeros(runs.used // BLOCK + 1, np.uint64), np.empty(runs.used // BLOCK + BLOCK, np.int64)
        arrays = [*runs.keys.values(), *(a for levels in runs.extremes.values() for pair in levels for a in pair)]
        parts, t, compared = [], 0, 0
        while t < len(start):
            t, at, looked = self._modules[other].find(turns, t, runs.origin, start, end, runs.bounds, runs.tail, counts,
                                                      rows, words, room, runs.order, runs.firsts, *arrays, *probes)
            compared += int(looked)
            batch.memory.add(int(at))
            parts.append((rows[:at] + runs.origin) * self.workers + self.number)
        self.count_candidates(compared)
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return counts, found if len(turns) < _MANY else in_arrival_order(turns, counts, found)

    def _walk(self, batch: Batch, side: str, runs: Runs, start: Rows, end: Rows, turns: Array,
              counts: Rows) -> Rows | None:
        """The matches of all probes, if their intervals rise in the order ``turns``; ``counts`` gets their numbers."""
        stored, probes = other_side(side), batch.probes[side]
        module, chosen = self._modules[stored], np.empty(len(turns), np.int64)
        ends = [np.empty(len(turns), runs.keys[slot].dtype) for slot in sorted([self._by[stored], *runs.others])
                for _ in ("low", "high")]
        n = module.intervals(turns, chosen, *ends, *probes)
        if n < 0:
            return None
        room, state, parts, done = len(turns) + _ROOM, np.zeros(4, np.int64), [], False
        while not done:
            rows, probe_of = np.empty(room, np.int64), np.empty(room, np.uint32)
            done, found = module.walk(state, chosen, n, runs.origin, start, end, runs.bounds, runs.tail, runs.used,
                                      counts, rows, probe_of, runs.order, *runs.keys.values(), *ends, *probes)
            batch.memory.add(int(found))
            parts.append((probe_of[:found], rows[:found]))
        self.count_candidates(int(state[3]))
        probe_of, rows = (np.concatenate(of) if len(of) > 1 else of[0] for of in zip(*parts, strict=True))
        ordered: Rows = by_probe(probe_of, rows, counts) * self.workers + self.number
        return ordered

    def _turns(self, stored: str, probes: list[Array]) -> npt.NDArray[np.uint32]:
        """The order in which probes look: that of their bounds on the key by which runs are sorted, if they are many,
        so that neighbours find the same blocks in the caches.
        """
        tests, turns = len(self._plan.tests), np.arange(len(probes[0]), dtype=np.uint32)
        if len(turns) >= _MANY:
            own = slot_tests(self._plan, stored)[self._by[stored]]
            lows, highs = probes[own[0]], probes[tests + own[0]]
            sort_keys(lows if lows.min() < lows.max() else highs, turns)
        return turns

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine's worker of the same number has stored."""
        for side, store in stores.items():
            if store.arrays:
                store.replace(store.arrays[: len(self._plan.slots(side))])
        self.stores = stores
        self._runs = self._empty()
