"""`StoredRows`: the S tuples that later base tuples may still meet, as numbers, in a ring."""

from __future__ import annotations

import numpy as np

from splitjoin.base.arrays import Array, Ints

from .encoding import EncodedRows

_MIN_CAPACITY = 1 << 12


class StoredRows:
    """The tuples with row ids ``first`` to before ``end``; tuple i is at place ``i & mask`` of every array.

    Attributes:
        keys: Codes of keys, −1 for a tuple that meets nothing.
        times: Event times in ticks, 0 without a time column.
        values, valid: The numbers that are folded: (feeds, capacity).
        mask: The capacity, a power of two, minus 1.
    """

    def __init__(self, feeds: int):
        self.first = self.end = 0
        self.keys = np.empty(_MIN_CAPACITY, np.int64)
        self.times = np.empty(_MIN_CAPACITY, np.int64)
        self.values = np.empty((feeds, _MIN_CAPACITY), np.int64)
        self.valid = np.empty((feeds, _MIN_CAPACITY), np.uint8)

    @property
    def mask(self) -> int:
        """The capacity minus 1."""
        return len(self.keys) - 1

    def append(self, times: Ints | None, rows: EncodedRows) -> None:
        """Add tuples at the end."""
        n = len(rows.keys)
        self._reserve(n)
        at = self.end & self.mask
        cut = min(n, len(self.keys) - at)
        for ours, theirs in ((self.keys, rows.keys), (self.times, times), (self.values, rows.values),
                             (self.valid, rows.valid)):
            ours[..., at:at + cut] = 0 if theirs is None else theirs[..., :cut]
            ours[..., :n - cut] = 0 if theirs is None else theirs[..., cut:]
        self.end += n

    def drop(self, first: int) -> None:
        """Forget the tuples before row id ``first``."""
        self.first = max(self.first, min(first, self.end))

    def skip(self, first: int) -> None:
        """Begin with row id ``first``; there must be no tuples yet."""
        assert self.first == self.end, "rows are there already"
        self.first = self.end = first

    def _reserve(self, n: int) -> None:
        capacity = len(self.keys)
        while capacity < self.end - self.first + n:
            capacity *= 2
        if capacity > len(self.keys):
            self.keys, self.times, self.values, self.valid = (
                moved_ring(a, self.first, self.end, capacity) for a in (self.keys, self.times, self.values, self.valid))


def moved_ring(array: Array, first: int, end: int, capacity: int) -> Array:
    """A ring of ``capacity`` places with the values of ``array`` from row id ``first`` to before ``end``."""
    moved = np.empty((*array.shape[:-1], capacity), array.dtype)
    old, new = array.shape[-1] - 1, capacity - 1
    at = first
    while at < end:  # piece by piece, none of which goes round either ring
        n = min(end - at, old + 1 - (at & old), new + 1 - (at & new))
        moved[..., at & new:(at & new) + n] = array[..., at & old:(at & old) + n]
        at += n
    return moved
