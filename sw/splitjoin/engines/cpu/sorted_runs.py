"""The sorted engine: stored tuples in sorted runs, for conditions whose intervals are wide but seldom overlap.

``r.x BETWEEN s.low AND s.high`` is two inequalities, each of which half of all tuples meet. In a grid of cells a probe
would visit a quarter of the cells. In runs sorted by ``low``, with the greatest ``high`` of each block, it finds its
matches in time that grows with their number and the logarithm of the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan

from .choice import Choice
from .finder import Batch, Finder, Found, assembled
from .intrinsics import BLOCK
from .jit import load
from .runs import Runs, by_probe, in_arrival_order, sort_keys
from .sorted_source import sorted_source
from .store import Store
from .suitable import slot_tests
from .tests_source import used_slots
from .tuning import DEFAULTS, Tuning

__all__ = ["SortedFinder"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Stored tuples per probe up to which many probes are better found by going past all stored tuples.
_PASSED = 64


@dataclass(frozen=True)
class _Walk:
    """Probes that go past the tuples of stream ``stored``: those in ``chosen`` (n,), in the order of the ``ends`` of
    their intervals, (n,) each. ``counts`` gets how many matches each probe of the batch has.
    """

    stored: str
    chosen: Rows
    ends: list[Array]
    counts: Rows


class SortedFinder(Finder):
    """Keeps tuples in `Runs`, sorted by the slots that ``choice.levels`` names for R and for S."""

    def __init__(self, plan: Plan, choice: Choice, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._plan = plan
        self._by: dict[str, int] = dict(zip(SIDES, choice.levels, strict=True))
        self._modules = {side: load(sorted_source(plan, side, by)) for side, by in self._by.items()}
        self._runs = self._empty()

    def _empty(self) -> dict[str, Runs]:
        return {side: Runs(used_slots(self._plan, side), by,
                           [slot for slot in sorted(slot_tests(self._plan, side)) if slot != by],
                           self.tuning.run_tuples)
                for side, by in self._by.items()}

    def find(self, batch: Batch) -> dict[str, Found]:
        """Per stream its probes' matches."""
        walks: dict[str, _Walk | None] = dict(zip(
            SIDES, batch.team.map(lambda side: self._prepare(batch, side), SIDES), strict=True))
        parts = [part for part in batch.parts(self.tuning.sorted_probes) if walks[part[0]] is None]
        found = assembled(parts, batch.team.map(lambda part: self._find(batch, *part), parts))
        for side, walk in walks.items():
            if walk is not None:
                found[side] = self._past(batch, side, walk)
        return found

    def _prepare(self, batch: Batch, side: str) -> _Walk | None:
        """Store what is new in the runs in which probes of stream ``side`` look. Returns the walk if they go past them:
        if they are many, and their intervals rise in the order of one end.
        """
        other = other_side(side)
        store, runs, probes, start = self.stores[other], self._runs[other], batch.probes[side], batch.windows[side][0]
        if not len(start) or store.end == store.base:
            return None
        runs.update(store, int(start[0]))
        if len(start) < self.tuning.sorted_probes or not runs.others or runs.used > _PASSED * len(start):
            return None
        turns, chosen = self._turns(other, probes), np.empty(len(start), np.int64)
        ends = [np.empty(len(turns), runs.keys[slot].dtype) for slot in sorted([self._by[other], *runs.others])
                for _ in ("low", "high")]
        n = int(self._modules[other].intervals(turns, chosen, *ends, *probes))
        if n < 0:
            return None
        return _Walk(other, chosen[:n], [end[:n] for end in ends], np.zeros(len(start), np.int64))

    def _past(self, batch: Batch, side: str, walk: _Walk) -> Found:
        """The matches of the probes of stream ``side``, divided by their bounds, and so are the tuples."""
        n, size = len(walk.chosen), batch.team.size
        cuts = [n * i // size for i in range(size + 1)] if n >= size * self.tuning.sorted_probes else [0, n]
        spans = [slice(a, b) for a, b in pairwise(cuts)]
        met = batch.team.map(lambda span: self._walk(batch, side, walk, span), spans)
        place = np.cumsum(walk.counts)
        rows = np.empty(int(place[-1]), np.int64)
        place -= walk.counts
        batch.team.map(lambda of: by_probe(*of, place, walk.counts, rows),
                       [(walk.chosen[span], *of) for span, of in zip(spans, met, strict=True)])
        return Found.of(walk.counts, [(0, len(walk.counts), rows)])

    def _walk(self, batch: Batch, side: str, walk: _Walk, span: slice) -> tuple[Array, Rows]:
        """The matches of the probes ``span`` of ``walk``: the probe of each, and the row."""
        runs, module, probes = self._runs[walk.stored], self._modules[walk.stored], batch.probes[side]
        chosen, ends = walk.chosen[span], [end[span] for end in walk.ends]
        room, state, parts, done = len(chosen) + self.tuning.room, np.zeros(4, np.int64), [], False
        while not done:
            rows, probe_of = np.empty(room, np.int64), np.empty(room, np.uint32)
            done, found = module.walk(state, chosen, len(chosen), runs.origin, *batch.windows[side], runs.bounds,
                                      runs.tail, runs.used, walk.counts, rows, probe_of, runs.order, runs.firsts,
                                      *runs.keys.values(), *ends, *probes)
            batch.memory.add(int(found))
            parts.append((probe_of[:found], rows[:found]))
        self.count_candidates(int(state[3]))
        probe_of, rows = (np.concatenate(of) if len(of) > 1 else of[0] for of in zip(*parts, strict=True))
        return probe_of, rows

    def _find(self, batch: Batch, side: str, first: int, last: int) -> tuple[Rows, Rows]:
        """The matches of the probes ``first`` to ``last`` of stream ``side``."""
        other, mine = other_side(side), slice(first, last)
        store, runs, probes = self.stores[other], self._runs[other], [a[mine] for a in batch.probes[side]]
        start, end = (a[mine] for a in batch.windows[side])
        counts = np.zeros(len(start), np.int64)
        if store.end == store.base:
            return counts, np.empty(0, np.int64)
        turns = self._turns(other, probes)
        rows = self.room(int((end - start).max()) + self.tuning.room)
        words, room = np.zeros(runs.used // BLOCK + 1, np.uint64), np.empty(runs.used // BLOCK + BLOCK, np.int64)
        arrays = [*runs.keys.values(), *(a for levels in runs.extremes.values() for pair in levels for a in pair)]
        parts, t, compared = [], 0, 0
        while t < len(start):
            t, at, looked = self._modules[other].find(turns, t, runs.origin, start, end, runs.bounds, runs.tail, counts,
                                                      rows, words, room, runs.order, runs.firsts, *arrays, *probes)
            compared += int(looked)
            batch.memory.add(int(at))
            parts.append(rows[:at] + runs.origin)
        self.count_candidates(compared)
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return counts, found if len(turns) < self.tuning.sorted_probes else in_arrival_order(turns, counts, found)

    def _turns(self, stored: str, probes: list[Array]) -> npt.NDArray[np.uint32]:
        """The order in which probes look: that of their bounds on the key by which runs are sorted, if they are many,
        so that neighbours find the same blocks in the caches.
        """
        tests, turns = len(self._plan.tests), np.arange(len(probes[0]), dtype=np.uint32)
        if len(turns) >= self.tuning.sorted_probes:
            own = slot_tests(self._plan, stored)[self._by[stored]]
            lows, highs = probes[own[0]], probes[tests + own[0]]
            sort_keys(lows if lows.min() < lows.max() else highs, turns)
        return turns

    def adopt(self, stores: dict[str, Store]) -> None:
        """Take over the keys that another engine has stored."""
        for side, store in stores.items():
            if store.arrays:
                store.replace(store.arrays[: len(self._plan.slots(side))])
        self.stores = stores
        self._runs = self._empty()
