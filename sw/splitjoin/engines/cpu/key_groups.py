"""Runs of tuples by equal keys and arrival, and searches in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from splitjoin.base.arrays import Mask, Rows
from splitjoin.plan.keys import Codes

from ..range_terms import exponents
from ..slices import Slices
from ..sorting import counts_below, stable_order
from .table_work import Work, plain_work

#: Times as many numbers as there are keys that are counted without sorting these; and rows as there are different keys,
#: so that these are few.
_SPREAD = 4
#: Slots of a hash table up to which it grows without a look at how many keys will be different.
_SMALL = 1 << 16


class Groups:
    """The tuples of R and S by equal keys.

    ``points``: pairs of codes (r,), (s,), all of which must be equal. ``possible_r``, ``possible_s``: the tuples that
    take part.

    Attributes:
        sizes: How many tuples R and S have.
        count: One more than the greatest number of a group.
        is_one: True if there is one group, of all tuples.
    """

    def __init__(self, points: Sequence[tuple[Codes, Codes]], possible_r: Mask, possible_s: Mask,
                 work: Work | None = None):
        self.sizes, self._work = (len(possible_r), len(possible_s)), work or plain_work()
        self._numbers: dict[str, Rows] = {}
        every = [not any(possible.strides) or bool(possible.all()) for possible in (possible_r, possible_s)]
        self.is_one, self.count = not points and all(every), 1
        if self.is_one:
            return
        # 0, or −1; where all are 0, memory is first written to by the threads that number its tuples.
        r, s = (np.zeros(len(possible), np.int64) if all_ else np.subtract(possible, 1, dtype=np.int64)
                for possible, all_ in zip((possible_r, possible_s), every, strict=True))
        for codes in points:
            self.count *= self._add(codes, (r, s))
            if self.count > _SPREAD * len(s) + 1:  # so that the product of the next fits 64 bits
                known = r.view(np.uint64), s.view(np.uint64)
                r, s = (np.minimum(numbers, 0) for numbers in (r, s))
                self.count = self._add(known, (r, s))
        self._numbers = {"r": r, "s": s}

    def _add(self, codes: tuple[Codes, Codes], numbers: tuple[Rows, Rows]) -> int:
        """Combine the ``numbers`` of R and S, in place, with those of their ``codes``; returns how many there are."""
        loops, map_, (r, s) = self._work.loops, self._work.map, (self._work.slices(n) for n in self.sizes)
        ends = np.array([(2**64 - 1, 0)] * len(s), np.uint64)
        map_(lambda n: loops["extremes"](codes[1][s[n]], numbers[1][s[n]], ends[n]), range(len(s)))
        least, most = int(ends[:, 0].min()), int(ends[:, 1].max())
        each = [(side, mine) for side, slices in enumerate((r, s)) for mine in slices]
        if least > most or most - least < _SPREAD * self.sizes[1] + 1024:
            count = max(most - least + 1, 1)
            scale = np.uint64(least), np.uint64(most), count
            map_(lambda of: loops["add_dense"](codes[of[0]][of[1]], *scale, numbers[of[0]][of[1]]), each)
            return count
        *table, count = self._hash_table(codes[1], numbers[1])
        map_(lambda of: loops["add_hashed"](codes[of[0]][of[1]], *table, count, numbers[of[0]][of[1]]), each)
        return count

    def _hash_table(self, keys: Codes, numbers: Rows) -> tuple[Codes, Rows, int]:
        """A `_hash_table` of S. Where few keys are different, threads make one of each slice, and then one is made of
        their keys, which has the same numbers, as these count the keys in the order of their first tuples.
        """
        make, slices = partial(_hash_table, self._work.loops), self._work.slices(len(keys))
        if len(slices) > 1 and self._work.team.size > 1:
            first = make(keys[slices[0]], numbers[slices[0]])
            if first[2] * _SPREAD <= slices[0].stop:
                tables = [first, *self._work.map(lambda mine: make(keys[mine], numbers[mine]), slices[1:])]
                keys = np.concatenate([_by_number(*table) for table in tables])
                numbers = np.zeros(len(keys), np.int64)
        return make(keys, numbers)

    @cached_property
    def order(self) -> Rows:
        """The row ids of S's tuples that take part, by group, then by row id."""
        if self.is_one:
            return np.arange(self.sizes[1])
        rows = np.flatnonzero(self.of("s") >= 0)
        return rows[stable_order(self.of("s")[rows])]

    @cached_property
    def _starts(self) -> Rows:
        return counts_below(self.of("s")[self.order], np.arange(self.count + 1))

    @cached_property
    def _probes(self) -> Rows | None:
        # Probes in sorted order find their places much faster, as these are near each other in memory.
        return stable_order(self.of("r") + 1) if self.count > 1 else None

    @cached_property
    def _places(self) -> Rows:
        return self.of("s")[self.order] * (self.sizes[1] + 1) + self.order

    def of(self, side: str) -> Rows:
        """For each tuple of stream ``side`` the number of its group, −1 for none: int64 (n,)."""
        if side not in self._numbers:
            self._numbers[side] = np.zeros(self.sizes[side == "s"], np.int64)
        return self._numbers[side]

    def numbers(self, side: str) -> Rows:
        """As `of`, but empty if all tuples of both streams are in one group."""
        return np.empty(0, np.int64) if self.is_one else self.of(side)

    def positions(self, row: Rows) -> Rows:
        """For each tuple of R the position in `order` of the first tuple of its group from row id ``row`` on; 0 for
        tuples that have no group.
        """
        numbers = self.of("r")
        wanted = numbers * (self.sizes[1] + 1) + row
        if not row.any():
            found = self._starts[numbers]
        elif int(row.min()) == self.sizes[1]:
            found = self._starts[numbers + 1]
        elif self._probes is None:
            found = np.searchsorted(self._places, wanted)
        else:
            found = np.empty(len(wanted), np.int64)
            found[self._probes] = np.searchsorted(self._places, wanted[self._probes])
        return np.where(numbers < 0, 0, found)

    def nearest(self, start: Rows, end: Rows, *, last: bool) -> Rows:
        """For each tuple of R the first row id of its group from ``start`` to before ``end``, or the ``last`` one; −1
        for none.
        """
        if self.is_one:
            return np.where(end > start, end - 1 if last else start, -1)
        numbers = self.of("r")
        at = self.positions(end) - 1 if last else self.positions(start)
        # The row ids at positions without a row are meaningless.
        found = self.order[np.clip(at, 0, len(self.order) - 1)] if len(self.order) else at
        some = at >= self._starts[numbers] if last else at < self._starts[numbers + 1]
        return np.where((numbers >= 0) & some & (found >= start if last else found < end), found, -1)

    @cached_property
    def firsts(self) -> Rows:
        """For each tuple of R the first row id of its group; −1 for none."""
        numbers, first = self.of("s"), np.full(self.count + 1, -1)  # the last one is that of no group
        self._work.loops["note_rows"](numbers, 0, -1, first)
        return first[self.of("r")]

    def one_ended(self, keys: Codes, low: Codes, high: Codes) -> bool:
        """True if no interval from ``low`` to ``high`` (r,) has ``keys`` of S (s,) on both sides."""
        return not len(self.order) or self.one_end(keys[self.order], low, high) != ""

    def one_end(self, keys: Codes, low: Codes, high: Codes) -> str:
        """The only end of the intervals, "low" or "high", beyond which there are ``keys``; empty if they are beyond
        both.
        """
        def every(test: Callable[[slice], Mask]) -> bool:
            return self._work.every(len(low), lambda of: bool(test(of).all(where=(low[of] <= high[of]) & (
                self.is_one or self.of("r")[of] >= 0))))

        most = max(self._work.each(len(keys), lambda of: keys[of].max()))
        if every(lambda of: high[of] >= most):
            return "low"
        code = least_code(low, high, self._work)
        least_key = min(self._work.each(len(keys), lambda of: keys[of].min(initial=2**64 - 1, where=keys[of] >= code)))
        return "high" if every(lambda of: low[of] <= least_key) else ""


def _hash_table(loops: Mapping[str, Any], keys: Codes, numbers: Rows) -> tuple[Codes, Rows, int]:
    """A hash table of the different ``keys`` whose number is not negative: them, and numbers from 0 for them, −1 for a
    free slot; and how many there are.
    """
    known, taken, count = np.empty(1024, np.uint64), np.full(1024, -1), np.zeros(1, np.int64)
    at = loops["fill_table"](keys, numbers, 0, known, taken, count)
    while at < len(keys):
        size = 4 * len(known)
        if size > _SMALL:  # as large as all keys ask for, if as many of the others are different
            size = max(2 * len(known), 1 << (2 * int(count[0]) * len(keys) // at).bit_length())
        larger = np.empty(size, np.uint64), np.full(size, -1)
        loops["move_table"](known, taken, *larger)
        known, taken = larger
        at = loops["fill_table"](keys, numbers, at, known, taken, count)
    return known, taken, int(count[0])


def least_code(low: Codes, high: Codes, work: Slices) -> np.uint64:
    """The least code that an interval may hold: 0, unless that is NULL's or below all of them, and 1 otherwise."""
    return np.uint64(work.every(len(low), lambda mine: bool((low[mine] > 0).all(where=low[mine] <= high[mine]))))


def _by_number(known: Codes, taken: Rows, count: int) -> Codes:
    """The keys of a `_hash_table`, in the order of their numbers."""
    found, used = np.empty(count, np.uint64), taken >= 0
    found[taken[used]] = known[used]
    return found


class Pyramid:
    """The least and the greatest key of every aligned run of 1, 2, 4, … ``keys`` (n,): level after level."""

    def __init__(self, keys: Codes):
        lows, highs, self.starts = [keys], [keys], [0]
        while len(lows[-1]) > 1:
            self.starts.append(self.starts[-1] + len(lows[-1]))
            for ends, smaller in ((lows, np.minimum), (highs, np.maximum)):
                whole = ends[-1][:len(ends[-1]) // 2 * 2]
                ends.append(smaller(whole[::2], whole[1::2]))
        self.low, self.high = np.concatenate(lows), np.concatenate(highs)


class PartnerSearch:
    """Finds for each tuple of R the first or last partner in a range of positions of S.

    ``bounds``: a pyramid of S's keys, and the lowest and highest for each tuple of R. ``verify``: the truth of pairs of
    R's row ids and positions; None if the keys decide. ``tried``: the number of runs and tuples that were looked at.
    """

    def __init__(self, bounds: Sequence[tuple[Pyramid, Codes, Codes]], verify: Callable[[Rows, Rows], Mask] | None):
        self._bounds, self._verify = bounds, verify
        self._starts = np.array(bounds[0][0].starts, np.int64) if bounds else np.zeros(1, np.int64)
        self.tried = 0

    @property
    def is_direct(self) -> bool:
        """True if every tuple of a range is a partner."""
        return not self._bounds and self._verify is None

    def find(self, start: Rows, end: Rows, last: bool) -> Rows:
        """The position of the last partner from each ``start`` to before each ``end``, or of the first; −1 for none.

        A range is searched run by run from its near end. A run that the keys rule out is passed at once, and the next
        may be twice as long; of one that they do not, the near half comes next.
        """
        found = np.full(len(start), -1, np.int64)
        who = np.flatnonzero(end > start)
        start, end, most = start[who], end[who], np.zeros(len(who), np.int64)
        while len(who):
            near = end if last else start  # runs are aligned to their length
            level = np.minimum(most, exponents(end - start))
            level = np.where(near == 0, level, np.minimum(level, exponents(near & -near)))
            run = (near >> level) - int(last)
            passes = np.ones(len(who), np.bool_)
            if self._bounds:
                node = self._starts[level] + run
                for pyramid, low, high in self._bounds:
                    passes &= (pyramid.high[node] >= low[who]) & (pyramid.low[node] <= high[who])
            self.tried += len(who)
            hits = np.flatnonzero(passes & (level == 0))
            if self._verify is not None and len(hits):
                true = self._verify(who[hits], run[hits])
                passes[hits[~true]] = False
                hits = hits[true]
            found[who[hits]] = run[hits]
            step = np.where(passes, 0, 1 << level)
            start, end = (start, end - step) if last else (start + step, end)
            most = np.where(passes, level - 1, level + 1 if self._bounds else 0)
            left = end > start
            left[hits] = False
            who, start, end, most = who[left], start[left], end[left], most[left]
        return found
