"""The sorted engine: stored tuples in sorted runs, for conditions whose intervals are wide but seldom overlap.

``r.x BETWEEN s.low AND s.high`` is two inequalities, each of which half of all tuples meet. In a grid of cells a probe
would visit a quarter of the cells. In runs sorted by ``low``, with the greatest ``high`` of each block, it finds its
matches in time that grows with their number and the logarithm of the window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan, bounded_end, is_inequality, leading_tests, slot_tests, suits_runs

from ..compiled.handover import entry_address
from ..compiled.intrinsics import BLOCK
from ..compiled.jit import load
from ..compiled.store import ReusedArrays, Store
from ..tuning import DEFAULTS, Tuning
from .block import Block, Field, Job, run_jobs
from .finder import Batch, Finder, Found
from .runs import Runs, by_probe, by_probes, in_arrival_order, sort_keys
from .selectivity import Choice, SessionAlgorithm
from .sorted_source import find_fields, sorted_source, walk_fields
from .tests_source import used_slots

__all__ = ["SortedFinder", "SortedRuns"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Stored tuples per probe up to which many probes are better found by going past all stored tuples.
_PASSED = 64
#: Parts of the probes for each of several threads; matches for which all of them have room at most.
_PARTS, _MOST = 2, 1 << 25
#: Nanoseconds: a probe and storing a tuple, a block of 64 tuples, a tuple found in it; the part of the time of other
#: algorithms from which on these are taken.
_SORTED, _BLOCK, _ROW, _CLEARLY = 130.0, 8.0, 6.0, 0.7


@dataclass(frozen=True)
class _Walk:
    """Probes that go past the tuples of stream ``stored``: those in ``chosen`` (n,), in the order of the ``ends`` of
    their intervals, (n,) each. ``counts`` gets how many matches each probe of the batch has.
    """

    stored: str
    chosen: Rows
    ends: list[Array]
    counts: Rows


class _Parts:
    """Parts of the probes that look into one stream's runs, as jobs: their matches, and how many each has found.

    A part that had no room for its matches is searched again by the interpreter, and the next batch has more room.
    """

    def __init__(self, fields: list[Field], entry: int):
        self._fields, self._entry, self.block = {field.name for field in fields}, entry, Block(fields)
        self._reused, self._room = ReusedArrays(), 0
        self.rows, self.told = np.empty((0, 0), np.int64), np.empty((0, 2), np.int64)
        self.others: Array = self.rows  # the matches in the order of probes, or the probe of each

    def jobs(self, parts: int, room: int, values: dict[str, Array | int]) -> list[Job]:
        """The job of so many parts, with room for so many matches each at first, of what ``values`` say; none where
        that is too much.
        """
        self._room = max(self._room, room)
        if self._room * parts > _MOST:
            self.told = np.tile(np.array([-1, 0]), (parts, 1))
            self.rows = self.others = np.empty((parts, 0), np.int64)
            return []
        other, kind = ("out", np.int64) if "out" in self._fields else ("probe_of", np.uint32)
        self.rows = self._reused.array("rows", parts * self._room, np.int64).reshape(parts, -1)
        self.others = self._reused.array(other, parts * self._room, kind).reshape(parts, -1)
        self.told = self._reused.array("told", 2 * parts, np.int64).reshape(parts, 2)
        for name, value in {**values, "parts": parts, "rows": self.rows, other: self.others, "told": self.told}.items():
            if name in self._fields:
                self.block.put(name, value if isinstance(value, int) else np.ascontiguousarray(value))
        return [Job(self._entry, self.block, len(self.told))]

    def missing(self) -> list[int]:
        """The parts that had no room; the next ones have more."""
        found = np.flatnonzero(self.told[:, 0] < 0)
        if len(found) and 2 * self._room * len(self.told) <= _MOST:
            self._room *= 2
        return [int(i) for i in found]


class SortedFinder(Finder):
    """Keeps tuples in `Runs`, sorted by the slots that ``choice.levels`` names for R and for S."""

    def __init__(self, plan: Plan, choice: Choice, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._plan = plan
        self._by: dict[str, int] = dict(zip(SIDES, choice.levels, strict=True))
        self._modules = {side: load(sorted_source(plan, side, by)) for side, by in self._by.items()}
        self._runs = self._empty()
        self._found: dict[str, _Parts] = {}
        self._walked: dict[str, _Parts] = {}
        self._reused = ReusedArrays()

    def _empty(self) -> dict[str, Runs]:
        return {side: Runs(used_slots(self._plan, side), by,
                           [slot for slot in sorted(slot_tests(self._plan, side)) if slot != by],
                           self.tuning.run_tuples)
                for side, by in self._by.items()}

    def find(self, batch: Batch) -> dict[str, Found]:
        prepare = [(of, side) for of in (self._walk_of, self._update) for side in SIDES]
        walks: dict[str, _Walk | None] = dict(zip(
            SIDES, batch.team.map(lambda task: task[0](batch, task[1]), prepare, stay=True), strict=False))
        jobs, found = list[Job](), dict[str, Found]()
        for side, walk in walks.items():
            if walk is not None:
                jobs += self._walk_parts(batch, side, walk)
            elif len(batch.windows[side][0]) and self.stores[other_side(side)].end > self.stores[other_side(side)].base:
                jobs += self._find_parts(batch, side)
            else:
                found[side] = Found.of(np.zeros(len(batch.windows[side][0]), np.int64), [])
        run_jobs(batch.team, jobs)
        for side, walk in walks.items():
            if walk is not None:
                found[side] = self._walked_past(batch, side, walk)
            elif side not in found:
                found[side] = self._searched(batch, side)
        return found

    def _number_of_parts(self, batch: Batch, probes: int) -> int:
        size = batch.team.size
        return max(1, min(_PARTS * size if size > 1 else 1, probes // self.tuning.sorted_probes))

    def _values(self, batch: Batch, side: str, counts: Rows) -> dict[str, Array | int]:
        """What parts of the probes of stream ``side`` take."""
        runs, probes, tests = self._runs[other_side(side)], batch.probes[side], len(self._plan.tests)
        start, end = batch.windows[side]
        return {"least": self.tuning.sorted_probes, "origin": runs.origin, "tail": runs.tail, "used": runs.used,
                "start": start, "end": end, "counts": counts, "runs": runs.bounds, "order": runs.order,
                "firsts": runs.firsts, **{f"k{slot}": keys for slot, keys in runs.keys.items()},
                **{f"{end}{slot}_{n}": array for slot, levels in runs.extremes.items()
                   for n, pair in enumerate(levels, 1) for end, array in zip(("least", "most"), pair, strict=True)},
                **{f"lo{j}s": probes[j] for j in range(tests)},
                **{f"hi{j}s": probes[tests + j] for j in range(tests)}}

    def _find_parts(self, batch: Batch, side: str) -> list[Job]:
        """The job of a search of the probes of stream ``side``."""
        other, (start, end) = other_side(side), batch.windows[side]
        if side not in self._found:
            self._found[side] = _Parts(find_fields(self._plan, other, self._by[other]),
                                       entry_address(self._modules[other].find_part))
        parts, n = self._number_of_parts(batch, len(start)), len(start)
        counts = self._reused.array(f"counts_{side}", n, np.int64)
        room = int((end - start).max()) + min(self.tuning.room, 4 * -(-n // parts)) + 1
        return self._found[side].jobs(parts, room, self._values(batch, side, counts))

    def _searched(self, batch: Batch, side: str) -> Found:
        """What the parts of a search have found."""
        of, n = self._found[side], len(batch.windows[side][0])
        counts = self._reused.array(f"counts_{side}", n, np.int64)
        parts, cuts = len(of.told), [n * i // len(of.told) for i in range(len(of.told) + 1)]
        rows = [of.others[i, :max(int(of.told[i, 0]), 0)] for i in range(parts)]
        batch.memory.add(sum(map(len, rows)))
        missing = of.missing()
        self.count_candidates(int(of.told[:, 1].sum()) - sum(int(of.told[i, 1]) for i in missing))
        for i, (own, more) in zip(missing, batch.team.map(lambda i: self._find(batch, side, *cuts[i:i + 2]), missing),
                                  strict=True):
            counts[cuts[i]:cuts[i + 1]], rows[i] = own, more
        return Found.of(counts, [(a, b, mine) for (a, b), mine in zip(pairwise(cuts), rows, strict=True)])

    def _walk_parts(self, batch: Batch, side: str, walk: _Walk) -> list[Job]:
        """The job of ``walk``, divided by the bounds of probes, and so are the tuples."""
        other, n = walk.stored, len(walk.chosen)
        if side not in self._walked:
            self._walked[side] = _Parts(walk_fields(self._plan, other, self._by[other]),
                                        entry_address(self._modules[other].walk_part))
        parts, slots = self._number_of_parts(batch, n), sorted([self._by[other], *self._runs[other].others])
        ends = dict(zip((f"{end}{slot}" for slot in slots for end in ("low", "high")), walk.ends, strict=True))
        room = -(-n // parts) + min(self.tuning.room, 4 * -(-n // parts)) + 1
        return self._walked[side].jobs(parts, room, {
            **self._values(batch, side, walk.counts), **ends, "chosen": walk.chosen,
            "met": self._reused.array(f"met_{side}", n, np.int64)})

    def _walked_past(self, batch: Batch, side: str, walk: _Walk) -> Found:
        """The matches of ``walk``, each probe's by row."""
        of, n = self._walked[side], len(walk.chosen)
        parts = len(of.told)
        missing = of.missing()
        spans = [slice(n * i // parts, n * (i + 1) // parts) for i in missing]
        self.count_candidates(int(of.told[:, 1].sum()) - sum(int(of.told[i, 1]) for i in missing))
        batch.memory.add(int(np.maximum(of.told[:, 0], 0).sum()))
        walk.counts[walk.chosen] = self._reused.array(f"met_{side}", n, np.int64)
        met = batch.team.map(lambda span: self._walk(batch, side, walk, span), spans)
        place = np.cumsum(walk.counts)
        rows = np.empty(int(place[-1]), np.int64)
        place -= walk.counts
        for span, some in zip(spans, met, strict=True):
            by_probe(walk.chosen[span], *some, place, walk.counts, rows)
        if (of.told[:, 0] > 0).any():
            by_probes(walk.chosen, of.told[:, 0], of.others, of.rows, place, walk.counts, rows)
        return Found.of(walk.counts, [(0, len(walk.counts), rows)])

    def _update(self, batch: Batch, side: str) -> None:
        """Store what is new in the runs in which probes of stream ``side`` look."""
        store, start = self.stores[other_side(side)], batch.windows[side][0]
        if len(start) and store.end > store.base:
            self._runs[other_side(side)].update(store, int(start[0]))

    def _walk_of(self, batch: Batch, side: str) -> _Walk | None:
        """The walk of the probes of stream ``side`` if they go past stored tuples: if they are many, and their
        intervals rise in the order of one end. It does not read the runs.
        """
        other = other_side(side)
        store, runs, probes, n = self.stores[other], self._runs[other], batch.probes[side], len(batch.windows[side][0])
        stored = store.end - store.base
        if not stored or n < self.tuning.sorted_probes or not runs.others or stored > _PASSED * n:
            return None
        chosen = np.empty(n, np.int64)
        ends = [np.empty(n, store.arrays[slot].dtype) for slot in sorted([self._by[other], *runs.others])
                for _ in ("low", "high")]
        # In one call, as another thread has the interpreter meanwhile.
        met = int(self._modules[other].intervals(chosen, *ends, *probes))
        return None if met < 0 else _Walk(other, chosen[:met], [end[:met] for end in ends], np.zeros(n, np.int64))

    def _walk(self, batch: Batch, side: str, walk: _Walk, span: slice) -> tuple[Array, Rows]:
        """The matches of the probes ``span`` of ``walk``: the probe of each, and the row."""
        runs, module, probes = self._runs[walk.stored], self._modules[walk.stored], batch.probes[side]
        chosen, ends = walk.chosen[span], [end[span] for end in walk.ends]
        blocks, counts = [array for levels in runs.extremes.values() for array in levels[0]], np.zeros_like(chosen)
        room, state, parts, done = len(chosen) + self.tuning.room, np.zeros(4, np.int64), [], False
        while not done:
            rows, probe_of = np.empty(room, np.int64), np.empty(room, np.uint32)
            done, found = module.walk(state, chosen, len(chosen), runs.origin, *batch.windows[side], runs.bounds,
                                      runs.tail, runs.used, counts, rows, probe_of, runs.order, runs.firsts,
                                      *runs.keys.values(), *blocks, *ends, *probes)
            batch.memory.add(int(found))
            parts.append((probe_of[:found], rows[:found]))
        self.count_candidates(int(state[3]))
        walk.counts[chosen] = counts
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


class SortedRuns(SessionAlgorithm):
    """Keeps tuples in sorted runs, for two inequalities such as the ends of a BETWEEN. It is taken if it needs clearly
    less time than others.
    """

    name, engine = "sorted runs join", "sorted"

    @property
    def suits(self) -> bool:
        return super().suits and (self.job.forced or suits_runs(self.job.plan))

    @property
    def cost(self) -> float:
        return self.choice.cost / _CLEARLY

    @cached_property
    def choice(self) -> Choice:
        plan, selectivity, live = self.job.plan, self.job.selectivity, self.job.live
        by, costs = {}, []
        for side in ("r", "s"):
            fractions, joint = selectivity.slots.get(side, {}), selectivity.joint.get(side, float("nan"))
            slots = slot_tests(plan, side)
            least = min(fractions.values(), default=1.0)
            # Of those that are about equal the first that probes bound above, which are met in the order of the keys,
            # or the first: chance changes nothing.
            equal = [slot for slot in slots if fractions.get(slot, 1.0) <= 2 * least]
            above = [slot for slot in equal if all(
                bounded_end(plan, j, other_side(side)) == "high" for j in slots[slot])]
            by[side] = next(iter(above or equal), min(slots))
            wide = fractions.get(by[side], float("nan")) * live / 64
            others = [tests for slot, tests in slots.items() if slot != by[side]]
            if wide == wide and joint == joint:
                # An extreme of one end tells exactly which blocks hold a match.
                exact = len(others) == 1 and len(others[0]) == 1 and is_inequality(plan, others[0][0])
                blocks = 0.0 if not others else min(wide, joint * live) if exact else wide
                costs.append(blocks * _BLOCK + joint * live * _ROW)
        named = "; ".join(f"{side.upper()} by key {slot}" for side, slot in by.items())
        return Choice(tuple(leading_tests(plan)), (by["r"], by["s"]), f"sorted runs, {named}",
                      _SORTED + float(np.mean(costs)) if costs else math.inf)

    def run(self) -> SortedFinder:
        return SortedFinder(self.job.plan, self.choice, self.job.tuning)
