"""Sorted runs of stored tuples: a log-structured list of sorted slices of a window, with the extremes of their blocks.

New tuples form a tail in arrival order. A tail that is long enough is sorted by one key and becomes a run; runs of
similar size are merged, so that there are few of them, each about half as long as the one before or less (O'Neil et
al., The log-structured merge-tree, 1996). Runs cover the window in arrival order and are not mixed: they expire whole,
and the matches of one run precede those of the next.

A probe finds the tuples within its interval of the sorted key by binary search. For the other keys there are the least
and the greatest of every 64 tuples, of every 64 such blocks, and of every 64 of those: of a wide interval only the
blocks are visited that may hold a match. This is an augmented interval tree (Cormen et al., Introduction to Algorithms,
14.3) with 64 children a node, kept in arrays without pointers. The loops are in ``runs.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiled.store import Store, aligned
from ..loops import address_of, loops
from ..tuning import DEFAULTS
from .pair_tests import lanes

__all__ = ["BLOCK", "LEVELS", "Runs"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Tuples that are compared at once.
BLOCK = 64
#: Runs of a window whose tuples expire have at most this part of it each, as expired tuples of a run are still looked
#: at.
_PART = 4
#: A run is merged with the one before if that is at most so many times as long.
_RATIO = 2
#: Levels of blocks above the tuples.
LEVELS = 3


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
