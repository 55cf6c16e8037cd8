"""Sorted runs of stored tuples: a log-structured list of sorted slices of a window, with the extremes of their blocks.

New tuples form a tail in arrival order. A tail that is long enough is sorted by one key and becomes a run; runs of
similar size are merged, so that there are few of them, each about half as long as the one before or less (O'Neil et
al., The log-structured merge-tree, 1996). Runs cover the window in arrival order and are not mixed: they expire whole,
and the matches of one run precede those of the next.

A probe finds the tuples within its interval of the sorted key by binary search. For the other keys there are the least
and the greatest of every 64 tuples, of every 64 such blocks, and of every 64 of those: of a wide interval only the
blocks are visited that may hold a match. This is an augmented interval tree (Cormen et al., Introduction to Algorithms,
14.3) with 64 children a node, kept in arrays without pointers. All functions compiled here are in this file, as numba's
cache does not see changes in other files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..compiled.intrinsics import BLOCK, interval_mask, lowest_bit, popcount
from ..compiled.jit import compiled
from ..compiled.store import Store, aligned
from ..tuning import DEFAULTS

__all__ = ["Runs", "by_probe", "by_probes", "first_above", "first_not_below", "first_reaching", "in_arrival_order",
           "sort_keys", "sort_rows", "span"]

Array = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]

#: Runs of a window whose tuples expire have at most this part of it each, as expired tuples of a run are still looked
#: at.
_PART = 4
#: A run is merged with the one before if that is at most so many times as long.
_RATIO = 2
#: Levels of blocks above the tuples.
_LEVELS = 3
#: Rows up to this number are sorted by insertion. Rows that are at least one in so many of their run are sorted by a
#: bitmap of the run.
_FEW, _DENSE = 32, 512
#: A search from a near place looks at blocks at growing distances first, up to this number.
_NEAR = 64


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
            self._sort(begin, end)
            while bounds and bounds[-1][1] - bounds[-1][0] <= _RATIO * (end - begin) and end - bounds[-1][0] <= most:
                middle, (begin, _) = begin, bounds.pop()
                self._merge(begin, middle, end)
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
        sizes = [(room >> 6 * level) + 2 * BLOCK for level in range(1, _LEVELS + 1)]
        self.firsts = aligned(sizes[0], self.keys[self._by].dtype)
        self.extremes = {slot: [(aligned(size, self.keys[slot].dtype), aligned(size, self.keys[slot].dtype))
                                for size in sizes] for slot in self.others}
        self._empty_extremes()

    def _empty_extremes(self) -> None:
        self.firsts[:] = np.iinfo(self.firsts.dtype).max
        for levels in self.extremes.values():
            for least, most in levels:
                least[:], most[:] = np.iinfo(least.dtype).max, 0

    def _sort(self, begin: int, end: int) -> None:
        source = np.empty(end - begin, np.uint32)
        sort_keys(self.keys[self._by][begin:end], source)
        self._permute(begin, end, source)

    def _merge(self, begin: int, middle: int, end: int) -> None:
        source = np.empty(end - begin, np.uint32)
        merge_keys(self.keys[self._by][begin:end], middle - begin, source)
        self._permute(begin, end, source)

    def _permute(self, begin: int, end: int, source: Array) -> None:
        for array in (*self.keys.values(), self.order):
            permute(array[begin:end], source)

    def _summarize(self, begin: int, end: int) -> None:
        """Compute the extremes of all blocks that have places from ``begin`` to ``end``."""
        if begin == end:
            return
        self.firsts[begin // BLOCK:end // BLOCK] = self.keys[self._by][begin:end:BLOCK]
        for slot, levels in self.extremes.items():
            low = high = self.keys[slot]
            a, b = begin, end
            for least, most in levels:
                a, b = a // BLOCK, -(-b // BLOCK)
                find_extremes(low, high, a, b, least, most)
                low, high = least, most


def _moved(array: Array, n: int, room: int) -> Array:
    """A copy of the first ``n`` of ``array``, with ``room``."""
    out = aligned(room, array.dtype)
    out[:n] = array[:n]
    out[n:] = 0
    return out


@compiled
def sort_keys(keys: Any, source: Any) -> None:
    """Write the stable order of ``keys`` (n,), unsigned, to ``source`` (n,): radix sort by 11 bits at once."""
    n = len(keys)
    differ = keys[0] ^ keys[0]
    for i in range(n):
        differ |= keys[i] ^ keys[0]
        source[i] = i
    other, counts = np.empty(n, np.uint32), np.empty(2049, np.int64)
    at, to = keys.copy(), np.empty_like(keys)
    from_order, to_order = source, other
    for step in range((8 * keys.itemsize + 10) // 11):
        shift = keys.dtype.type(11 * step)
        if (differ >> shift) & keys.dtype.type(2047) == 0:
            continue
        counts[:] = 0
        for i in range(n):
            counts[np.int64((at[i] >> shift) & keys.dtype.type(2047)) + 1] += 1
        for digit in range(2048):
            counts[digit + 1] += counts[digit]
        for i in range(n):
            d = np.int64((at[i] >> shift) & keys.dtype.type(2047))
            place = counts[d]
            counts[d] = place + 1
            to[place] = at[i]
            to_order[place] = from_order[i]
        at, to = to, at
        from_order, to_order = to_order, from_order
    if differ:
        source[:] = from_order


@compiled
def merge_keys(keys: Any, middle: Any, source: Any) -> None:
    """Write the stable order of ``keys`` (n,) to ``source`` (n,): both parts, up to ``middle`` and from it, are
    sorted.
    """
    i, j, n = np.int64(0), np.int64(middle), len(keys)
    at = np.int64(0)
    while i < middle and j < n:
        later = np.int64(keys[np.uint64(j)] < keys[np.uint64(i)])
        source[np.uint64(at)] = j * later + i * (1 - later)
        i += 1 - later
        j += later
        at += 1
    while i < middle:
        source[at] = i
        i += 1
        at += 1
    while j < n:
        source[at] = j
        j += 1
        at += 1


@compiled
def permute(array: Any, source: Any) -> None:
    """Move ``array[source[i]]`` to ``array[i]``, for all of ``array`` (n,) and ``source`` (n,)."""
    moved = np.empty_like(array)
    for i in range(len(array)):
        moved[i] = array[np.uint64(source[i])]
    array[:] = moved


@compiled
def in_arrival_order(turns: Any, counts: Any, rows: Any) -> Any:
    """``rows``, the matches of one probe after the other in the order ``turns``, in the order of the probes; ``counts``
    are numbered by probes.
    """
    out, begin = np.empty_like(rows), np.empty(len(turns), np.int64)
    at = np.int64(0)
    for t in range(len(turns)):
        begin[turns[t]] = at
        at += counts[turns[t]]
    at = np.int64(0)
    for p in range(len(counts)):
        for i in range(begin[p], begin[p] + counts[p]):
            out[at] = rows[i]
            at += 1
    return out


@compiled
def by_probe(probes: Any, probe_of: Any, rows: Any, place: Any, counts: Any, out: Any) -> None:
    """Write ``rows`` (n,), matches of the probes ``probe_of`` (n,), to ``out``, where each of ``probes`` has its
    ``place``, and each one's by row.

    ``counts``: how many each probe has. ``place`` moves behind the last one.
    """
    for m in range(len(rows)):
        out[place[probe_of[m]]] = rows[m]
        place[probe_of[m]] += 1
    for n in range(len(probes)):
        end = place[probes[n]]
        begin = end - counts[probes[n]]
        if end - begin > _FEW:
            out[begin:end].sort()
            continue
        for i in range(begin + 1, end):
            row, j = out[i], i
            while j > begin and out[j - 1] > row:
                out[j] = out[j - 1]
                j -= 1
            out[j] = row


@compiled
def by_probes(chosen: Any, found: Any, probe_of: Any, rows: Any, place: Any, counts: Any, out: Any) -> None:
    """Write the ``rows`` (parts, …) of all parts of ``chosen`` by probe, as `by_probe` does: ``found`` (parts,) of
    each, none where it is negative.

    One thread does, as those of several would write to the same cache lines.
    """
    parts = len(found)
    for part in range(parts):
        n = found[part]
        if n > 0:
            a, b = len(chosen) * part // parts, len(chosen) * (part + 1) // parts
            by_probe(chosen[a:b], probe_of[part, :n], rows[part, :n], place, counts, out)


@compiled
def find_extremes(low: Any, high: Any, begin: Any, end: Any, least: Any, most: Any) -> None:
    """``least`` of every 64 of ``low`` and ``most`` of every 64 of ``high``, for the blocks ``begin`` to ``end``."""
    for block in range(begin, end):
        a, b = low[block * 64], high[block * 64]
        for i in range(block * 64, block * 64 + 64):
            a, b = min(a, low[i]), max(b, high[i])
        least[block], most[block] = a, b


@compiled
def first_not_below(keys: Any, firsts: Any, begin: Any, end: Any, near: Any, low: Any) -> Any:
    """The first place from ``begin`` to ``end``, a run, whose key is ``low`` or more; ``end`` if there is none.

    ``near``: a place of the run that is probably not far before it.
    """
    block, n = begin >> 6, (end - begin) >> 6
    if low <= firsts[block]:
        return begin
    if firsts[near >> 6] < low:
        n -= (near >> 6) - block
        block = near >> 6
        step = 1
        while step < min(n, _NEAR):
            if firsts[block + step] >= low:
                n = step
                break
            block += step
            n -= step
            step *= 2
    while n > 1:
        half = n >> 1
        block = block + half if firsts[block + half] < low else block
        n -= half
    below = low - keys.dtype.type(1)
    return block * 64 + np.int64(popcount(interval_mask(keys, block * 64, keys.dtype.type(0), below)))


@compiled
def first_above(keys: Any, firsts: Any, begin: Any, end: Any, near: Any, high: Any) -> Any:
    """The first place from ``begin`` to ``end``, a run, whose key is above ``high``; ``end`` if there is none.

    ``near``: as for `first_not_below`.
    """
    block, n = begin >> 6, (end - begin) >> 6
    if high < firsts[block]:
        return begin
    if firsts[near >> 6] <= high:
        n -= (near >> 6) - block
        block = near >> 6
        step = 1
        while step < min(n, _NEAR):
            if firsts[block + step] > high:
                n = step
                break
            block += step
            n -= step
            step *= 2
    while n > 1:
        half = n >> 1
        block = block + half if firsts[block + half] <= high else block
        n -= half
    return block * 64 + np.int64(popcount(interval_mask(keys, block * 64, keys.dtype.type(0), high)))


@compiled
def first_reaching(keys: Any, begin: Any, end: Any, least: Any) -> Any:
    """The first place from ``begin`` to ``end`` of ``keys``, which rise, that is ``least`` or more; ``end`` if there is
    none.
    """
    while begin < end:
        middle = (begin + end) >> 1
        if keys[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled
def span(first: Any, last: Any) -> Any:
    """A mask of the bits ``first`` to ``last`` of 64, both included; 0 ≤ first ≤ last ≤ 63."""
    return (~np.uint64(0) << np.uint64(first)) & (~np.uint64(0) >> np.uint64(63 - last))


@compiled
def sort_rows(rows: Any, begin: Any, end: Any, first: Any, last: Any, words: Any, other: Any) -> None:
    """Sort ``rows[begin:end]``, distinct places of the run from ``first`` to ``last``.

    ``words``: a bit for each place, all 0 before and after. ``other``: room for one in `_DENSE` of the run.
    """
    n = end - begin
    if n <= _FEW:
        for i in range(begin + 1, end):
            row, j = rows[i], i
            while j > begin and rows[j - 1] > row:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = row
        return
    if n * _DENSE >= last - first:
        for i in range(begin, end):
            words[rows[i] >> 6] |= np.uint64(1) << np.uint64(rows[i] & 63)
        at = begin
        for w in range(first >> 6, last >> 6):
            bits = words[w]
            words[w] = 0
            place = w * 64
            while bits:
                rows[at] = place + lowest_bit(bits)
                at += 1
                bits &= bits - np.uint64(1)
        return
    counts = np.empty(257, np.int64)
    shift = 0
    while (last - first - 1) >> shift:
        counts[:] = 0
        for i in range(begin, end):
            counts[(((rows[i] - first) >> shift) & 255) + 1] += 1
        for d in range(256):
            counts[d + 1] += counts[d]
        for i in range(begin, end):
            d = ((rows[i] - first) >> shift) & 255
            other[counts[d]] = rows[i]
            counts[d] += 1
        for i in range(n):
            rows[begin + i] = other[i]
        shift += 8
