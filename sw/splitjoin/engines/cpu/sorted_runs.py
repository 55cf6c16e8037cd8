"""The sorted engine: stored tuples in sorted runs, for conditions whose intervals are wide but seldom overlap.

``r.x BETWEEN s.low AND s.high`` is two inequalities, each of which half of all tuples meet. In a grid of cells a probe
would visit a quarter of the cells. In runs sorted by ``low``, with the greatest ``high`` of each block, it finds its
matches in time that grows with their number and the logarithm of the window.

Sorted runs are a log-structured list of sorted slices of a window, with the extremes of their blocks. New tuples form a
tail in arrival order. A tail that is long enough is sorted by one key and becomes a run; runs of similar size are
merged, so that there are few of them, each about half as long as the one before or less (O'Neil et al., The
log-structured merge-tree, 1996). Runs cover the window in arrival order and are not mixed: they expire whole, and the
matches of one run precede those of the next.

A probe finds the tuples within its interval of the sorted key by binary search. For the other keys there are the least
and the greatest of every 64 tuples, of every 64 such blocks, and of every 64 of those: of a wide interval only the
blocks are visited that may hold a match. This is an augmented interval tree (Cormen et al., Introduction to Algorithms,
14.3) with 64 children a node, kept in arrays without pointers. The loops are in ``runs.hpp``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Array, Rows
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.plan import Plan, bounded_end, is_inequality, leading_tests, slot_tests, suits_runs

from ..compiled.store import ReusedArrays, Store, aligned
from ..loops import address_of, loops
from ..tuning import DEFAULTS, Tuning
from .finder import Batch, Finder, Found
from .pair_tests import conditions, lanes, test_words, used_slots
from .selectivity import Choice, SessionAlgorithm

#: Tuples that are compared at once.
BLOCK = 64
#: Runs of a window whose tuples expire have at most this part of it each, as expired tuples of a run are still looked
#: at.
_PART = 4
#: A run is merged with the one before if that is at most so many times as long.
_RATIO = 2
#: Levels of blocks above the tuples.
LEVELS = 3
#: Stored tuples per probe up to which many probes are better found by going past all stored tuples.
_PASSED = 64
#: Parts of the probes for each of several threads; matches for which all of them have room at first, at most.
_PARTS, _MOST = 2, 1 << 25
#: Nanoseconds: a probe and storing a tuple, a block of 64 tuples, a tuple found in it; the part of the time of other
#: algorithms from which on these are taken.
_SORTED, _BLOCK, _ROW, _CLEARLY = 130.0, 8.0, 6.0, 0.7
#: Which ends of a slot probes may bound, as compiled loops take it; the numbers of a slot (``runs.hpp``).
_ENDS, _SLOT = {"low": 1, "high": 2, "both": 3}, 5 + 2 * LEVELS
#: The numbers of a part: whether its matches have found room, how many there are, the tuples that were compared; the
#: address of the rows, of a second array of the same size, and that size.
_FITS, _COUNT, _COMPARED, _ROWS, _OTHERS, _SIZE = range(6)


class Runs:
    """One stream's stored tuples as sorted runs and a tail. Places count from ``origin`` on, a position in the store.

    ``slots``: the plan's slots that are kept; ``by``: the one by which runs are sorted;
    ``tail``: the least number of tuples that are sorted into one.

    Attributes:
        others: The slots with extremes.
        keys: Per slot the keys; a run's are in its order, the tail's in arrival order.
        order: The arrival place of each tuple, (capacity,) uint32.
        bounds: Where each run begins and ends, (runs, 2); both are multiples of 64.
        tail: Where the tail begins.
        used: Where it ends.
        firsts: The least key ``by`` of every 64 tuples.
        extremes: Per slot of ``others`` the least and the greatest key of each block, level by level.
    """

    def __init__(self, slots: list[int], by: int, others: list[int], tail: int = DEFAULTS.run_tuples):
        self._slots, self._by, self.others, self._least = slots, by, others, tail
        self.origin = self.tail = self.used = 0
        self.keys: dict[int, Array] = {}
        self.order = np.empty(0, np.uint32)
        self.bounds: Rows = np.empty((0, 2), np.int64)
        self.firsts: Array = np.empty(0, np.uint32)
        self.extremes: dict[int, list[tuple[Array, Array]]] = {}

    def update(self, store: Store, dead: int) -> None:
        """Add what is new in ``store``, and drop the runs that lie before position ``dead``, which no probe sees."""
        if not self.keys or store.base > self.origin + self.used:
            self._clear(max(dead, store.base), store)
        self._drop(dead - self.origin)
        first = self.origin + self.used
        n = store.end - first
        self._reserve(self.used + n)
        for slot in self._slots:
            self.keys[slot][self.used:self.used + n] = store.arrays[slot][first - store.base:]
        self.order[self.used:self.used + n] = np.arange(self.used, self.used + n, dtype=np.uint32)
        self.used += n
        if self.used - self.tail < self._least:
            return
        # Nothing has expired: the window may have no end, and few long runs are best.
        most = self.used if dead <= 0 else max(self._least, BLOCK, (store.end - dead) // _PART) // BLOCK * BLOCK
        bounds = [(int(a), int(b)) for a, b in self.bounds]
        while self.used - self.tail >= BLOCK:
            begin, end = self.tail, min(self.used // BLOCK * BLOCK, self.tail + most)
            self._sort(begin, begin, end)
            while bounds and bounds[-1][1] - bounds[-1][0] <= _RATIO * (end - begin) and end - bounds[-1][0] <= most:
                middle, (begin, _) = begin, bounds.pop()
                self._sort(begin, middle, end)
            bounds.append((begin, end))
            self.tail = end
            self._summarize(begin, end)
        self.bounds = np.array(bounds, np.int64).reshape(-1, 2)

    def _clear(self, origin: int, store: Store) -> None:
        self.origin, self.tail, self.used = origin, 0, 0
        self.keys = {slot: np.empty(0, store.arrays[slot].dtype) for slot in self._slots}
        self.order, self.bounds = np.empty(0, np.uint32), np.empty((0, 2), np.int64)

    def _drop(self, dead: int) -> None:
        """Drop the runs before place ``dead``, and move the others to the beginning, if what lies before is much."""
        self.bounds = self.bounds[self.bounds[:, 1] > dead]
        begin = int(self.bounds[0, 0]) if len(self.bounds) else self.tail
        if begin < max(self.used - begin, 8 * self._least):
            return
        kept = self.used - begin  # no more than what lies before, so the places do not overlap
        for array in (*self.keys.values(), self.order):
            array[:kept] = array[begin:begin + kept]
        self.order[:kept] -= np.uint32(begin)
        self.origin, self.tail, self.used = self.origin + begin, self.tail - begin, kept
        self.bounds = self.bounds - begin
        self._empty_extremes()
        self._summarize(0, self.tail)

    def _reserve(self, n: int) -> None:
        if n + BLOCK <= len(self.order):
            return
        room = (max(2 * n, 4 * self._least) // BLOCK + 2) * BLOCK
        self.keys = {slot: _moved(keys, self.used, room) for slot, keys in self.keys.items()}
        self.order = _moved(self.order, self.used, room)
        self._allocate_extremes(room)
        self._summarize(0, self.tail)

    def _allocate_extremes(self, room: int) -> None:
        """Extremes of blocks without a tuple; with room for whole vector loads behind the last one."""
        sizes = [(room >> 6 * level) + 2 * BLOCK for level in range(1, LEVELS + 1)]
        self.firsts = aligned(sizes[0], self.keys[self._by].dtype)
        self.extremes = {slot: [(aligned(size, self.keys[slot].dtype), aligned(size, self.keys[slot].dtype))
                                for size in sizes] for slot in self.others}
        self._empty_extremes()

    def _empty_extremes(self) -> None:
        self.firsts[:] = np.iinfo(self.firsts.dtype).max
        for levels in self.extremes.values():
            for least, most in levels:
                least[:], most[:] = np.iinfo(least.dtype).max, 0

    def _sort(self, begin: int, middle: int, end: int) -> None:
        """Make one run of the places from ``begin`` to ``end``: those before and from ``middle`` on are sorted, if it
        lies between.
        """
        others = [keys for slot, keys in self.keys.items() if slot != self._by]
        if not loops()["sort_run"](lanes([self.keys[self._by], *others, self.order]), begin, middle, end):
            raise MemoryError

    def _summarize(self, begin: int, end: int) -> None:
        """Compute the extremes of all blocks that have places from ``begin`` to ``end``."""
        if begin == end:
            return
        self.firsts[begin // BLOCK:end // BLOCK] = self.keys[self._by][begin:end:BLOCK]
        loops()["summarize"](np.array([(address_of(self.keys[slot]), self.keys[slot].itemsize, *map(address_of, (
            array for pair in levels for array in pair))) for slot, levels in self.extremes.items()],
            np.int64).reshape(-1), LEVELS, begin, end)


def _moved(array: Array, n: int, room: int) -> Array:
    """A copy of the first ``n`` of ``array``, with ``room``."""
    out = aligned(room, array.dtype)
    out[:n] = array[:n]
    out[n:] = 0
    return out


@dataclass(frozen=True)
class _Walk:
    """Probes that go past the tuples of stream ``stored``: those in ``chosen`` (n,), in the order of the ``ends`` of
    their intervals, (2 · slots, stride). ``counts`` gets how many matches each probe of the batch has.
    """

    stored: str
    chosen: Rows
    ends: npt.NDArray[np.uint64]
    counts: Rows


class _Parts:
    """Parts of the probes of a stream that look into the other's runs, or go past them, by the ``loop`` of that name.

    All matches of a part are counted. If there was no room for them, the part runs again, and the next batch has more.

    Attributes:
        others: Per part, of a search the rows in the order of the probes, of a walk the probe of each match.
        told: The numbers of each part, (parts, 6).
    """

    def __init__(self, loop: str, kind: Any):
        self._loop, self._kind = loop, kind
        self._reused, self._room = ReusedArrays(), 0
        self._rows: list[Rows] = []
        self._args: tuple[Any, ...] = ()
        self.others: list[Array] = []
        self.told = np.empty((0, 6), np.int64)

    def begin(self, parts: int, room: int, *args: Any) -> list[tuple[_Parts, int]]:
        """So many parts, with room for so many matches each at first, for which the loop takes ``args``."""
        self._room = max(self._room, room)
        rows = self._reused.array("rows", parts * self._room, np.int64).reshape(parts, -1)
        others = self._reused.array("others", parts * self._room, self._kind).reshape(parts, -1)
        self._rows, self.others, self.told = list(rows), list(others), np.zeros((parts, 6), np.int64)
        for part in range(parts):
            self._place(part)
        self._args = args
        return [(self, part) for part in range(parts)]

    def run(self, part: int) -> None:
        """Find the matches of a part."""
        if not loops()[self._loop](part, self.told.reshape(-1), *self._args):
            raise MemoryError

    def finish(self, batch: Batch) -> int:
        """Have parts that had no room run again. Returns how many tuples all have compared."""
        batch.memory.add(int(self.told[:, _COUNT].sum()))
        lacking = np.flatnonzero(self.told[:, _FITS] == 0).tolist()
        for part in lacking:
            n = int(self.told[part, _COUNT])
            self._rows[part], self.others[part] = np.empty(n, np.int64), np.empty(n, self._kind)
            self._place(part)
        if lacking:
            self._room = min(int(self.told[:, _COUNT].max()) * 3 // 2, _MOST // len(self.told))
            batch.team.map(self.run, lacking)
        return int(self.told[:, _COMPARED].sum())

    def _place(self, part: int) -> None:
        rows, others = self._rows[part], self.others[part]
        self.told[part, _ROWS:] = address_of(rows), address_of(others), len(rows)


class SortedFinder(Finder):
    """Keeps tuples in `Runs`, sorted by the slots that ``choice.levels`` names for R and for S."""

    def __init__(self, plan: Plan, choice: Choice, tuning: Tuning = DEFAULTS):
        super().__init__(tuning)
        self._plan = plan
        self._by: dict[str, int] = dict(zip(SIDES, choice.levels, strict=True))
        #: By stream its slots by which probes search, those by which runs are sorted first.
        self._slots = {side: [by, *(slot for slot in sorted(slot_tests(plan, side)) if slot != by)]
                       for side, by in self._by.items()}
        self._own = {side: np.array([j for slot in slots for j in slot_tests(plan, side)[slot]])
                     for side, slots in self._slots.items()}
        self._words = {side: self._slot_words(side) for side in SIDES}
        self._rest = conditions(plan, leading_tests(plan))  # which the slots do not decide
        self._runs = self._empty()
        self._found: dict[str, _Parts] = {side: _Parts("search_part", np.int64) for side in SIDES}
        self._walked: dict[str, _Parts] = {side: _Parts("walk_part", np.uint32) for side in SIDES}
        self._reused = ReusedArrays()

    def _empty(self) -> dict[str, Runs]:
        return {side: Runs(used_slots(self._plan, side), slots[0], slots[1:], self.tuning.run_tuples)
                for side, slots in self._slots.items()}

    def find(self, batch: Batch) -> dict[str, Found]:
        prepare = [(of, side) for of in (self._walk_of, self._update) for side in SIDES]
        walks: dict[str, _Walk | None] = dict(zip(
            SIDES, batch.team.map(lambda task: task[0](batch, task[1]), prepare, stay=True), strict=False))
        parts, found = list[tuple[_Parts, int]](), dict[str, Found]()
        for side, walk in walks.items():
            if walk is not None:
                parts += self._walk_parts(batch, side, walk)
            elif len(batch.windows[side][0]) and self.stores[other_side(side)].end > self.stores[other_side(side)].base:
                parts += self._search_parts(batch, side)
            else:
                found[side] = Found.of(np.zeros(len(batch.windows[side][0]), np.int64), [])
        batch.team.map(lambda of: of[0].run(of[1]), parts, stay=True)
        for side, walk in walks.items():
            if walk is not None:
                found[side] = self._walked_past(batch, side, walk)
            elif side not in found:
                found[side] = self._searched(batch, side)
        return found

    def _number_of_parts(self, batch: Batch, probes: int) -> int:
        size = batch.team.size
        return max(1, min(_PARTS * size if size > 1 else 1, probes // self.tuning.sorted_probes))

    def _slot_words(self, stored: str) -> Rows:
        """What compiled loops know of each slot by which probes search among tuples of stream ``stored``, without the
        arrays of its runs: (slots, `_SLOT`).
        """
        found = np.zeros((len(self._slots[stored]), _SLOT), np.int64)
        before = 0
        for words, slot in zip(found, self._slots[stored], strict=True):
            tests = slot_tests(self._plan, stored)[slot]
            ends = {bounded_end(self._plan, j, other_side(stored)) for j in tests}
            words[2:5] = before, before + len(tests), _ENDS[ends.pop()] if len(ends) == 1 else _ENDS["both"]
            before += len(tests)
        return found

    def _stored(self, batch: Batch, side: str) -> tuple[Any, ...]:
        """What parts of the probes of stream ``side`` take of the runs."""
        other, probes = other_side(side), batch.probes[side]
        runs, slots = self._runs[other], self._words[other].copy()
        for words, slot in zip(slots, self._slots[other], strict=True):
            words[:2] = address_of(runs.keys[slot]), runs.keys[slot].itemsize
            if slot in runs.extremes:
                words[5:] = [address_of(array) for pair in runs.extremes[slot] for array in pair]
        tests, rest = (test_words(self._plan, other, runs.keys, probes, of) for of in (
            range(len(self._plan.tests)), self._rest[0]))
        return (runs.origin, runs.tail, runs.used, *batch.windows[side], runs.bounds.reshape(-1), runs.order,
                address_of(runs.firsts), slots.reshape(-1), self._own[other], tests, rest, self._rest[1])

    def _search_parts(self, batch: Batch, side: str) -> list[tuple[_Parts, int]]:
        """The parts of a search of the probes of stream ``side``."""
        n = len(batch.windows[side][0])
        parts = self._number_of_parts(batch, n)
        return self._found[side].begin(parts, self._room(n, parts), parts, *self._stored(batch, side),
                                       self.tuning.sorted_probes, self._reused.array(f"counts_{side}", n, np.int64))

    def _room(self, probes: int, parts: int) -> int:
        return min(self.tuning.room, 4 * -(-probes // parts)) + 1

    def _searched(self, batch: Batch, side: str) -> Found:
        """What the parts of a search have found."""
        of, n = self._found[side], len(batch.windows[side][0])
        self.count_candidates(of.finish(batch))
        cuts = [n * i // len(of.told) for i in range(len(of.told) + 1)]
        rows = [others[:n] for others, n in zip(of.others, of.told[:, _COUNT], strict=True)]
        return Found.of(self._reused.array(f"counts_{side}", n, np.int64),
                        [(a, b, mine) for (a, b), mine in zip(pairwise(cuts), rows, strict=True)])

    def _walk_parts(self, batch: Batch, side: str, walk: _Walk) -> list[tuple[_Parts, int]]:
        """The parts of ``walk``, divided by the bounds of probes, and so are the tuples."""
        n = len(walk.chosen)
        parts = self._number_of_parts(batch, n)
        return self._walked[side].begin(
            parts, -(-n // parts) + self._room(n, parts), parts, *self._stored(batch, side), walk.chosen,
            walk.ends.reshape(-1), walk.ends.shape[1], self._reused.array(f"met_{side}", n, np.int64))

    def _walked_past(self, batch: Batch, side: str, walk: _Walk) -> Found:
        """The matches of ``walk``, each probe's by row."""
        of, (start, end) = self._walked[side], batch.windows[side]
        self.count_candidates(of.finish(batch))
        walk.counts[walk.chosen] = self._reused.array(f"met_{side}", len(walk.chosen), np.int64)
        place = np.cumsum(walk.counts)
        rows = np.empty(int(place[-1]), np.int64)
        place -= walk.counts
        # One thread does, as those of several would write to the same cache lines.
        if not loops()["by_probe"](walk.chosen, start, end, walk.counts, of.told.reshape(-1), place, rows):
            raise MemoryError
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
        other, n = other_side(side), len(batch.windows[side][0])
        store = self.stores[other]
        stored = store.end - store.base
        if not stored or n < self.tuning.sorted_probes or len(self._slots[other]) == 1 or stored > _PASSED * n:
            return None
        chosen, ends = np.empty(n, np.int64), np.empty((2 * len(self._slots[other]), n), np.uint64)
        # In one call, as another thread has the interpreter meanwhile.
        tests = test_words(self._plan, other, dict(enumerate(store.arrays)), batch.probes[side],
                           range(len(self._plan.tests)))
        met = loops()["walk_order"](self._words[other].reshape(-1), self._own[other], tests, chosen, ends.reshape(-1))
        if met == -2:
            raise MemoryError
        return None if met < 0 else _Walk(other, chosen[:met], ends, np.zeros(n, np.int64))

    def adopt(self, stores: dict[str, Store], plan: Plan) -> None:
        super().adopt(stores, plan)
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
