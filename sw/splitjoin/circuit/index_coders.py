"""The coders of index fields: cells of keys, which never decrease as keys grow.

`splitjoin.circuit.core_kinds` says which kind of core has which coder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import Side, other_side
from splitjoin.plan.encoding import TupleCodes
from splitjoin.plan.keys import Codes, FloatKey, Key, float_values
from splitjoin.plan.plan import Plan, bounded_end, slot_tests

#: Number of tuples from which the width of cells is learnt.
SAMPLE = 1 << 13
#: Limit of the cell numbers of float keys: up to here, every whole number is a float too.
_FAR = 2.0**53
#: The width of cells is learnt anew from so many times the tuples, until there are `SAMPLE`, and is changed if it was
#: so much too wide, or too narrow, where live keys have more cells than there are.
_MORE, _WIDE, _NARROW = 8, 2.0, 1.25


class IndexCoder:
    """Computes the index fields of records. This one is for kinds that have no such fields.

    Attributes:
        most: Tuples of both streams that it takes note of at once.
    """

    most = 2**62

    def learn(self, codes: Mapping[str, TupleCodes]) -> None:
        """Take note of the next tuples of both streams, in the order of arrival, before `fields` of each stream."""

    def fields(self, side: str, codes: TupleCodes) -> dict[str, Codes | int]:
        """The values of the fields `CoreKind.stored_fields` and `CoreKind.probe_fields` of tuples of stream ``side``,
        each (n,).
        """
        return {}


def key_values(key: Key, codes: Codes) -> npt.NDArray[np.float64]:
    """Codes of ``key`` as numbers, rounded to floats."""
    values = float_values(codes, key.bits, key.nan_low) if isinstance(key, FloatKey) else codes
    with np.errstate(invalid="ignore"):  # codes of no float
        return values.astype(np.float64)


def key_cells(key: Key, width: float, codes: Codes) -> npt.NDArray[np.int64]:
    """Cells of ``key``'s codes, modulo 2^64; monotone in the codes. ``width``: of a cell, in keys, or for floats in
    units of their value.
    """
    if not isinstance(key, FloatKey):
        return (codes // np.uint64(min(width, 2.0**63))).astype(np.int64)
    values = key_values(key, codes)
    values = np.where(np.isnan(values), -np.inf if key.nan_low else np.inf, values)
    with np.errstate(over="ignore"):
        return np.floor(np.clip(values / width, -_FAR, _FAR)).astype(np.int64)


def range_tests(plan: Plan, main: int) -> tuple[Side, list[int]]:
    """The stream whose key most leading tests share with test ``main``, and these tests. In the other stream, a tuple
    has one interval of this key, such as s.a to s.b of ``r.x BETWEEN s.a AND s.b``.
    """
    sides: tuple[Side, Side] = ("r", "s")
    tests = {side: slot_tests(plan, side)[plan.tests[main].slot(side)] for side in sides}
    keyed = max(sides, key=lambda side: len(tests[side]))
    return keyed, tests[keyed]


class OrderedCells(IndexCoder):
    """The cells of a session's tuples on the line of one key, for core kind ``ordered``.

    The tuples of one stream are points on it, those of the other one intervals. A tuple is stored in the cell of its
    point, or of one end of its interval: of the low one, unless only high ones are bounded. A probe reaches all stored
    tuples that its interval meets: with low ends, from its own low end less the longest interval on. Both ends are
    clipped to the places of the tuples that may be live, the last ``window`` ones: an interval that is open at one end
    would else reach all cells, which are taken modulo their number.

    A cell is as wide as makes the first places fill all cells. It is learnt anew while only few tuples are known; a
    probe then reaches all cells until no tuple is live that was stored by the cells before. So width and clipping
    influence the cycles, never the answer.
    """

    def __init__(self, plan: Plan, main: int, bits: int, window: int):
        self._keyed, self._tests = range_tests(plan, main)
        self._slot, self._bits = plan.tests[main].slot(self._keyed), bits
        self.most = max(1024, window)  # all are taken for live while one of them is a probe
        slot = plan.slots(self._keyed)[self._slot]
        self._null_code = slot.null_code
        ends = {bounded_end(plan, j, other_side(self._keyed)) for j in self._tests}
        self._stored = {side: _Stored(slot.key, bits, window, by_low=side == self._keyed or ends != {"high"})
                        for side in ("r", "s")}
        self._intervals: dict[str, tuple[Codes, Codes]] = {}

    def learn(self, codes: Mapping[str, TupleCodes]) -> None:
        for side, stored in self._stored.items():
            self._intervals[side] = self._interval(side, codes[side])
            stored.add(*self._intervals[side])

    def fields(self, side: str, codes: TupleCodes) -> dict[str, Codes | int]:
        low, high = self._intervals[side]
        mask, stored, met = np.uint64(2**self._bits - 1), self._stored[side], self._stored[other_side(side)]
        first, last, empty = met.reach(low, high)
        cells = np.where(empty, np.uint64(0), np.minimum(last - first, mask) + np.uint64(1))
        if met.is_mixed:
            cells[~empty] = mask + np.uint64(1)
        return {"cell0": stored.cells(stored.place(low, high)) & mask, "first0": first & mask, "cells0": cells}

    def _interval(self, side: str, codes: TupleCodes) -> tuple[Codes, Codes]:
        """The intervals of tuples of stream ``side``, both ends included; empty for those that match nothing."""
        if side != self._keyed:
            return (reduce(np.maximum, (codes.lows[j] for j in self._tests)),
                    reduce(np.minimum, (codes.highs[j] for j in self._tests)))
        key = codes.keys[self._slot]
        return (np.where(key == 0, ~key, key) if self._null_code else key), key


class _Stored:
    """The stored tuples of one stream: their places, the ends ``by_low`` or the high ones, and the width of cells."""

    def __init__(self, key: Key, bits: int, window: int, *, by_low: bool):
        self._key, self._bits, self._window, self._by_low = key, bits, window, by_low
        self._width = 0.0  # not known before the first tuple that can match
        self._sample = np.empty(0, np.uint64)
        self._learnt = 0  # tuples of the sample that the width was learnt from
        self._count = self._since = 0  # tuples, and those before the width was changed
        #: Of batches that may have live tuples: number of tuples, least and greatest place, and longest interval.
        self._batches: deque[tuple[int, int, int, int]] = deque()
        #: Tuples may be live that were stored by other cells.
        self.is_mixed = False

    def add(self, low: Codes, high: Codes) -> None:
        """Take note of the intervals of the next tuples."""
        some = low <= high
        low, high, n = low[some], high[some], len(low)
        if len(low):
            place = self.place(low, high)
            self._learn(place)
            self._batches.append((n, int(place.min()), int(place.max()), int((high - low).max())))
        elif n:
            self._batches.append((n, 2**64 - 1, 0, 0))
        later = sum(batch[0] for batch in self._batches) - n
        while self._batches and later - self._batches[0][0] >= self._window:
            later -= self._batches.popleft()[0]
        self.is_mixed = self._since > 0 and self._count < self._since + self._window
        self._count += n

    def _learn(self, place: Codes) -> None:
        if self._learnt >= SAMPLE:
            return
        self._sample = np.concatenate([self._sample, place[:SAMPLE - len(self._sample)]])
        if len(self._sample) < min(_MORE * self._learnt, SAMPLE):
            return
        self._learnt = len(self._sample)
        values = key_values(self._key, self._sample)
        values = values[np.isfinite(values)]
        low, high = np.quantile(values, (0.05, 0.95)) if len(values) else (0.0, 0.0)
        width = float(high - low) / 0.9 / 2**self._bits or 1.0
        width = width if isinstance(self._key, FloatKey) else max(1.0, width)
        if not self._width or not 1 / _WIDE <= width / self._width <= _NARROW:
            self._since = self._count if self._width else 0
            self._width = width

    def place(self, low: Codes, high: Codes) -> Codes:
        """The ends of intervals that tuples are stored by."""
        return low if self._by_low else high

    def cells(self, codes: Codes) -> Codes:
        """The cells of ``codes``, modulo 2^64; 0 before any are known."""
        return key_cells(self._key, self._width, codes).astype(np.uint64) if self._width else np.zeros_like(codes)

    def reach(self, low: Codes, high: Codes) -> tuple[Codes, Codes, npt.NDArray[np.bool_]]:
        """The first and last cell that each probe's interval meets, modulo 2^64; and True for those that meet none."""
        least, greatest, longest = (np.uint64(pick(x)) for pick, x in zip(
            (min, max, max), zip(*[batch[1:] for batch in self._batches] or [(2**64 - 1, 0, 0)], strict=True),
            strict=True))
        empty = low > high
        if self._by_low:
            low = low - np.minimum(low, longest)
        else:
            high = high + np.minimum(~high, longest)
        low, high = np.maximum(low, least), np.minimum(high, greatest)
        return self.cells(low), self.cells(high), empty | (low > high)
