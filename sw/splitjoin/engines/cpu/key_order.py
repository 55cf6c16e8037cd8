"""The tuples of a stream sorted by their group of equal keys, then by a key; and ranges of that order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.plan.keys import Codes

from .sorting import counts_below, dense_ranks, stable_order

__all__ = ["KeyOrder", "Ranges"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """For each tuple of one stream a range of positions in ``order``, row ids of the other: ``start`` to before
    ``end``, int64 (n,).
    """

    order: Rows
    start: Rows
    end: Rows

    @property
    def pairs(self) -> int:
        """The number of pairs in the ranges."""
        return int((self.end - self.start).sum())


class KeyOrder:
    """The tuples with group ``numbers`` from 0 to before ``count`` (n,), −1 for none, by group, then by ``keys`` (n,).

    Attributes:
        order: The row ids of the tuples that have a group.
    """

    def __init__(self, numbers: Rows, count: int, keys: Codes):
        rows = np.flatnonzero(numbers >= 0)
        every = len(rows) == len(numbers)
        groups, keys = (numbers, keys) if every else (numbers[rows], keys[rows])
        self._distinct: Codes | None = None
        self._least, self._most = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
        if (self._most - self._least + 1).bit_length() + count.bit_length() > 63:
            ranks, different = dense_ranks(keys)
            self._distinct = np.empty(different, np.uint64)
            self._distinct[ranks] = keys
            keys, self._least, self._most = ranks.view(np.uint64), 0, max(0, different - 1)
        self._width = (self._most - self._least + 1).bit_length()
        places = groups << self._width
        places |= (keys - np.uint64(self._least)).view(np.int64)
        by_key = stable_order(places)
        self.order, self._places = by_key if every else rows[by_key], places[by_key]
        self._starts = np.searchsorted(self._places, np.arange(count + 1) << self._width)

    def ranges(self, numbers: Rows, low: Codes, high: Codes) -> Ranges:
        """For each tuple of the other stream the range of its group whose keys are from ``low`` to ``high``."""
        if self._distinct is not None:
            last = len(self._distinct)
            first = np.minimum(counts_below(self._distinct, low), last)
            behind = counts_below(self._distinct, high, equal=True)
        else:
            least, top = np.uint64(self._least), np.uint64(self._most)
            past = self._most - self._least + 1
            first = np.where(low > top, past, (np.maximum(low, least) - least).view(np.int64))
            behind = np.where(high < least, 0, (np.minimum(high, top) - least).view(np.int64) + 1)
        if not len(numbers):
            return Ranges(self.order, first, behind)
        from_start, to_end = not first.any(), int(behind.min()) > self._most - self._least
        if from_start and to_end:
            start, end = self._starts[numbers], self._starts[numbers + 1]
        else:
            # Both ends in the order of one of them: the other end is not far, which makes searching fast as well.
            places = numbers << self._width
            first, behind = places | first, places | behind
            order = stable_order((behind if from_start else first) + (1 << self._width))
            start = self._starts[numbers] if from_start else self._found(first, order)
            end = self._starts[numbers + 1] if to_end else self._found(behind, order)
        start = np.where(numbers < 0, 0, start)
        return Ranges(self.order, start, np.where(numbers < 0, 0, np.maximum(start, end)))

    def _found(self, wanted: Rows, order: Rows) -> Rows:
        """The position of the first place that is not below each of ``wanted``, searched in ``order``."""
        found = np.empty(len(wanted), np.int64)
        found[order] = np.searchsorted(self._places, wanted[order])
        return found
