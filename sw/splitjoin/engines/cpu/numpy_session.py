"""The CPU engine without compiled loops: NumPy alone, which needs no compiler and is ready at once.

It gives the first results of a query while the query's own loops are compiled (`splitjoin.engines.cpu.tiered`). A probe
looks up its candidates among the stored tuples by one key that tests which every match must pass compare: they are
sorted by it, once for each batch. Where that leaves many, such as for the ends of a BETWEEN, blocks of tuples that the
other keys or the windows rule out are left out (`Zones`). Other tests, and the condition itself where tests do not
decide it, are evaluated for these candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import MatchMemory
from splitjoin.lang.eval.pairs import PairTest, column_arrays
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Codes
from splitjoin.plan.passes.pipeline import make_plan
from splitjoin.plan.plan import leading_tests, slot_tests

from ..arrival import Arrivals
from ..compiled.store import Store
from ..device import ITEM, PAIR, STAR, Items
from ..tuning import DEFAULTS, Tuning
from .session import BatchSession, Joined

__all__ = ["NumpySession", "Zones", "blocks_of", "ranges"]

Rows = npt.NDArray[np.int64]
#: Probes of the sample that tells which key has the fewest candidates.
_SAMPLE = 256
#: Probes of the sample that tells how many candidates zone maps leave.
_ZONE_SAMPLE = 32
Column = npt.NDArray[Any]
#: Tuples of the smallest blocks, and blocks of each larger one: a power of two, and its exponent.
_FAN, _BITS = 16, 4


class NumpySession(BatchSession):
    """A query by NumPy. Takes every predicate and window, and the orders ``none``, ``outer(N)`` and ``total``.

    ``needed``: per stream the first row that a later probe may see.
    """

    def __init__(self, query: Query, tuning: Tuning = DEFAULTS) -> None:
        super().__init__(query, tuning)
        order = query.order
        assert order.kind != "inner", "its stars lie between slices of the windows"
        self._every = {"none": 0, "outer": order.n, "total": 1}[order.kind]
        self._plan = make_plan(query.predicate)
        self._coder = Coder(self._plan)
        tests = leading_tests(self._plan)
        self._slots = {side: slot_tests(self._plan, side) for side in SIDES}  # those tests, by stored key
        # Tests that every match must pass decide the condition if there are no others and no rest.
        self._decided = self._plan.residual is None and len(tests) == len(self._plan.tests)
        self._condition = PairTest(query.predicate)
        self._extents = {side: query.window(side) for side in SIDES}
        self._keys, self._columns, self._times = (self._stores() for _ in range(3))
        self._ends = {"r": 0, "s": 0}
        self.needed = {"r": 0, "s": 0}
        self._candidates = 0

    @property
    def ends(self) -> dict[str, int]:
        return self._ends

    @property
    def candidates(self) -> int:
        return self._candidates

    def plan(self) -> str:
        """The engine, in words."""
        return "NumPy, by sorted keys" if self._slots["r"] else "NumPy, all pairs"

    def _stores(self) -> dict[str, Store]:
        return {side: Store(self._tuning.slack) for side in SIDES}

    def forget(self) -> None:
        """Release the stored tuples; only results that were not polled yet, and counters, are left."""
        for stores in (self._keys, self._columns, self._times):
            stores.update(self._stores())

    def join_batch(self, part: Arrivals) -> Joined:
        first = dict(self._ends)
        codes = {side: self._coder.codes(side, part.table(side)) for side in SIDES}
        columns = {side: column_arrays(self._query.predicate, side, part.table(side)) for side in SIDES}
        for number, side in enumerate(SIDES):
            n = len(part.table(side))
            self._keys[side].append([codes[side].keys[slot] for slot in self._slots[side]], n)
            self._columns[side].append(columns[side], n)
            if part.ts is not None:
                self._times[side].append([part.ts[part.stream == number]], n)
            self._ends[side] += n
        memory, pairs = MatchMemory(self._matches), 0
        found: dict[str, tuple[Rows, Rows]] = {}
        for side in SIDES:
            start, end = self._windows(part, side, first)
            pairs += int((end - start).sum())
            bounds = [(reduce(np.maximum, (codes[side].lows[j] for j in tests)),
                       reduce(np.minimum, (codes[side].highs[j] for j in tests)))
                      for tests in self._slots[other_side(side)].values()]
            found[side] = self._matches_of(side, start, end, bounds, columns[side], memory)
        joined = self._gathered(part, first, found)
        self._expire(part)
        return Joined(joined, sum(len(rows) for _, rows in found.values()), pairs)

    def _windows(self, part: Arrivals, side: str, first: dict[str, int]) -> tuple[Rows, Rows]:
        """The windows of the probes of stream ``side``: the first row id of the other stream, and the one behind the
        last.
        """
        other, mine = other_side(side), part.stream == SIDES.index(side)
        before = np.cumsum(~mine)[mine] + first[other]
        start = np.zeros(len(before), np.int64)
        extent = self._extents[other]
        if extent.rows is not None:
            start = np.maximum(before - min(extent.rows, 2**62), 0)
        if extent.length is not None and part.ts is not None:
            times = self._times[other]
            start = np.maximum(start, times.base + np.searchsorted(times.arrays[0], _earliest(part.ts[mine],
                                                                                             extent.length)))
        return np.minimum(start, before), before

    def _expire(self, part: Arrivals) -> None:
        """Drop what is in no window of a later probe."""
        for side in SIDES:
            extent, keep = self._extents[side], 0
            if extent.rows is not None:
                keep = self._ends[side] - min(extent.rows, self._ends[side])
            if extent.length is not None and part.ts is not None and len(part.ts):
                times = self._times[side]
                keep = max(keep, times.base + int(np.searchsorted(times.arrays[0], _earliest(part.ts[-1:],
                                                                                            extent.length))[0]))
            self.needed[side] = max(self.needed[side], keep)
            for stores in (self._keys, self._columns, self._times):
                stores[side].trim(min(keep, stores[side].end))

    def _matches_of(self, side: str, start: Rows, end: Rows, bounds: Sequence[tuple[Codes, Codes]],
                    probes: Sequence[npt.NDArray[Any]], memory: MatchMemory) -> tuple[Rows, Rows]:
        """Number of matches of each probe of stream ``side`` (n,), and their row ids, probe by probe."""
        other = other_side(side)
        counts, found = np.zeros(len(start), np.int64), [np.empty(0, np.int64)]
        if not len(start) or int(end[-1]) == int(start.min()):
            return counts, found[0]
        low = int(start.min())
        keys = [array[low - self._keys[other].base:] for array in self._keys[other].arrays]
        stored = [array[low - self._columns[other].base:] for array in self._columns[other].arrays]
        for probe, at in self._candidate_pairs(start - low, end - low, keys, bounds):
            self._candidates += len(at)
            passed = reduce(np.logical_and, ((key[at] >= lows[probe]) & (key[at] <= highs[probe])
                                             for key, (lows, highs) in zip(keys, bounds, strict=True)),
                            np.ones(len(at), np.bool_))
            probe, at = probe[passed], at[passed]
            if not self._decided:
                true = self._condition.true(side, probes, probe, stored, at)
                probe, at = probe[true], at[true]
            order = np.lexsort((at, probe))
            memory.add(len(at))
            counts += np.bincount(probe, minlength=len(counts))
            found.append(at[order] + low)
        return counts, np.concatenate(found)

    def _candidate_pairs(self, start: Rows, end: Rows, keys: Sequence[Codes],
                         bounds: Sequence[tuple[Codes, Codes]]) -> Iterator[tuple[Rows, Rows]]:
        """The pairs of probe and stored tuple within the windows ``start`` to ``end``, or those of them that the bounds
        of a key, or `Zones`, let through, whichever are fewest; in blocks of whole probes, in their order.
        """
        lengths, most = end - start, self._tuning.numpy_pairs
        order, left, count = _by_key(keys, bounds) if keys else (start, start, lengths)
        fewest = min(int(count.sum()), int(lengths.sum()))
        found = None
        if keys and fewest >= self._tuning.zone_candidates * len(count):
            zones, within = Zones([*(key[order] for key in keys), order]), [*bounds, (start, end - 1)]
            some = slice(None, None, max(1, len(count) // _ZONE_SAMPLE))
            looked = sum(len(at) for _, at in zones.pairs(left[some], count[some], [
                (low[some], high[some]) for low, high in within], most))
            if 2 * looked * len(count) < fewest * len(count[some]):
                found = zones.pairs(left, count, within, most)
        if found is None and (not keys or count.sum() >= lengths.sum()):
            for first, last in blocks_of(lengths, most):
                yield ranges(first, start[first:last], lengths[first:last])
            return
        for probe, at in found or (ranges(first, left[first:last], count[first:last])
                                   for first, last in blocks_of(count, most)):
            at = order[at]
            inside = (at >= start[probe]) & (at < end[probe])
            yield probe[inside], at[inside]

    def _gathered(self, part: Arrivals, first: dict[str, int], found: dict[str, tuple[Rows, Rows]]) -> Items:
        """The items of a batch: each arrival's pairs, and a star behind them where one is due."""
        sizes, stars, at = np.empty(len(part), np.int64), np.zeros(len(part), np.bool_), {}
        for number, side in enumerate(SIDES):
            at[side] = np.flatnonzero(part.stream == number)
            sizes[at[side]] = found[side][0]
            if self._every:
                probes = self.open_probes[number] + np.arange(1, len(at[side]) + 1)
                stars[at[side]] = probes % self._every == 0
                self.open_probes[number] = (self.open_probes[number] + len(at[side])) % self._every
        ends = np.cumsum(sizes + stars)
        items = np.empty(int(ends[-1]) if len(ends) else 0, ITEM)
        for number, side in enumerate(SIDES):
            (counts, rows), places, other = found[side], at[side], other_side(side)
            begins = ends[places] - counts - stars[places]
            _, where = ranges(0, begins, counts)
            probe = np.arange(len(places)) + first[side]
            for places_, kind, own, theirs in ((where, PAIR, np.repeat(probe, counts), rows),
                                               (ends[places][stars[places]] - 1, STAR, probe[stars[places]], -1)):
                items["kind"][places_], items["side"][places_] = kind, number
                items[side][places_], items[other][places_] = own, theirs
        return items


def _earliest(now: Rows, length: int) -> Rows:
    """The earliest times that probes at ``now`` still see: ``now - length``, or the least int64 where that is less."""
    least = np.iinfo(np.int64).min
    if length >= 2**64 - 1:
        return np.full(len(now), least)
    for step in (length // 2, length - length // 2):  # in two steps, as a length may have 64 bits
        now = np.where(now < least + step, least, now - np.int64(step))
    return now


def _by_key(keys: Sequence[Codes], bounds: Sequence[tuple[Codes, Codes]]) -> tuple[Rows, Rows, Rows]:
    """For the key with the fewest candidates, by a sample of probes: the stored tuples in its order, and per probe
    where its candidates begin in it and how many they are.
    """
    sample, best, fewest = slice(None, None, max(1, len(bounds[0][0]) // _SAMPLE)), 0, np.inf
    orders = [np.argsort(key, kind="stable") for key in keys]
    for n, (key, order, (lows, highs)) in enumerate(zip(keys, orders, bounds, strict=True)):
        found = float(_between(key[order], lows[sample], highs[sample])[1].sum())
        if found < fewest:
            best, fewest = n, found
    return orders[best], *_between(keys[best][orders[best]], *bounds[best])


def _between(values: Codes, lows: Codes, highs: Codes) -> tuple[Rows, Rows]:
    """Per probe where the sorted ``values`` from ``lows`` to ``highs`` begin, and how many they are."""
    left = np.searchsorted(values, lows, side="left")
    return left, np.where(lows <= highs, np.maximum(np.searchsorted(values, highs, side="right") - left, 0), 0)


class Zones:
    """The least and the greatest of ``keys``, arrays (n,) each, in blocks of 16, 256, 4,096, … tuples; n ≥ 1."""

    def __init__(self, keys: Sequence[Column]):
        self._levels: list[list[tuple[Column, Column]]] = []
        ends = [(key, key) for key in keys]
        while not self._levels or len(ends[0][0]) > 1:
            at = np.arange(0, len(ends[0][0]), _FAN)
            ends = [(np.minimum.reduceat(least, at), np.maximum.reduceat(most, at)) for least, most in ends]
            self._levels.append(ends)

    def pairs(self, first: Rows, count: Rows, bounds: Sequence[tuple[Column, Column]],
              most: int) -> Iterator[tuple[Rows, Rows]]:
        """Pairs of probe and tuple, in blocks of whole probes, in their order: of the ``count`` tuples from ``first``
        on, those whose blocks of 16 have keys within the probe's ``bounds``, low and high for each key, (probes,) each.

        A block has up to ``most`` pairs, or is one probe's.
        """
        last = first + count - 1
        level = min(len(self._levels), max(1, -(-int(count.max(initial=0)).bit_length() // _BITS))) - 1
        shift = _BITS * (level + 1)
        nodes = np.where(count > 0, (last >> shift) - (first >> shift) + 1, 0)
        for a, b in blocks_of(nodes, most):
            probe, node = ranges(a, first[a:b] >> shift, nodes[a:b])
            yield from self._down(level, probe, node, first, last, bounds, most)

    def _down(self, level: int, probe: Rows, node: Rows, first: Rows, last: Rows,
              bounds: Sequence[tuple[Column, Column]], most: int) -> Iterator[tuple[Rows, Rows]]:
        """The pairs in blocks ``node`` of ``level``, for each the ``probe`` that looks, in the order of probes."""
        for (least, greatest), (low, high) in zip(self._levels[level], bounds, strict=True):
            met = (greatest[node] >= low[probe]) & (least[node] <= high[probe])
            probe, node = probe[met], node[met]
        if not len(probe):
            return
        shift = _BITS * level
        begin = np.maximum(node << _BITS, first[probe] >> shift)
        sizes = np.minimum((node << _BITS) + _FAN - 1, last[probe] >> shift) + 1 - begin
        starts = np.flatnonzero(np.diff(probe, prepend=-1))
        for a, b in blocks_of(np.add.reduceat(sizes, starts), most):
            begun, ended = int(starts[a]), int(starts[b]) if b < len(starts) else len(probe)
            of, child = ranges(begun, begin[begun:ended], sizes[begun:ended])
            if level:
                yield from self._down(level - 1, probe[of], child, first, last, bounds, most)
            else:
                yield probe[of], child


def blocks_of(counts: Rows, most: int) -> Iterator[tuple[int, int]]:
    """Slices of probes that have ``most`` pairs together, or one probe each."""
    sums, first = np.cumsum(counts), 0
    while first < len(counts):
        before = int(sums[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(sums, before + most, side="right")))
        yield first, last
        first = last


def ranges(first: int, begins: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """``counts`` numbers from each of ``begins`` on; and the number of the one that each is of, from ``first`` on."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of + first, np.arange(len(of)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
