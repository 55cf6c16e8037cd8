"""Ranges of a stream sorted by its equal keys and one key, for each tuple of the other: by partitions that fit the
second-level cache, so that time is linear in rows, and threads share the work (`PartitionedRanges`: radix partitioning;
Manegold, Boncz and Kersten, Optimizing main-memory join on modern hardware, 2002). `SecondKey` skips, in such ranges,
what an inequality on another key rules out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from splitjoin.base.arrays import Rows
from splitjoin.plan.keys import Codes

from ..sorting import counts_below, dense_ranks
from .table_work import Work

#: Bits of the number of a fine bucket; tuples of both streams in a partition, about; the most partitions.
_FINE_BITS, _PARTITION, _PARTITIONS = 13, 1 << 15, 1024
#: The least rows of the slices that are counted by fine buckets, and how many slices a thread has at least.
_COUNTED, _EACH = 1 << 16, 2
#: Pairs of a part of arrival order, which is sorted at once; the most parts.
_SORTED, _PARTS = 1 << 15, 2048
#: Tuples of the smallest runs, and runs of each larger one, as the loop `expand_within` has them.
_RUN, _FAN = 16, 4


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


@dataclass(frozen=True)
class _Part:
    """Probes of one partition, row ids (n,), and their ranges of positions in ``order``: ``start`` to before ``end``.

    ``pairs``: how many positions there are in all.
    """

    rows: Rows
    start: Rows
    end: Rows
    pairs: int


class PartitionedRanges:
    """For each probe with a group the range of stored tuples of its group whose keys are in its interval.

    ``numbers``: the groups of the tuples of the probing and of the stored stream, from 0 to before ``count``, −1 for
    none; empty where all tuples have group 0. ``keys`` are those of the stored tuples, and ``low`` and ``high`` the
    intervals of the probes. The places must fit 64 bits, as `fits` tells.

    Attributes:
        order: The row ids of the stored tuples that have a group, by group and key.
    """

    def __init__(self, work: Work, numbers: tuple[Rows, Rows], count: int, keys: Codes, low: Codes, high: Codes):
        self._work, self._loops = work, work.loops
        (probing, stored), (least, most) = numbers, _extremes(work, keys)
        stride = most - least + 1
        top = count * stride - 1
        bits = _FINE_BITS if len(keys) + len(low) > _PARTITION else 1  # few tuples are one partition
        self._top, self._shift = np.uint64(top), np.uint64(max(0, top.bit_length() - bits))
        scale = np.uint64(least), np.uint64(stride % 2**64), self._shift
        probe_scale = np.uint64(least), np.uint64(most), np.uint64(stride % 2**64), self._shift
        fine = (top >> int(self._shift)) + 1

        def counted(name: str, arrays: tuple[Any, ...], of: tuple[np.uint64, ...]) -> tuple[list[slice], Rows]:
            slices = self._slices(len(arrays[-1]))
            counts = np.zeros((len(slices), fine), np.int64)
            work.map_short(lambda n: self._loops[name](*(a[slices[n]] for a in arrays), *of, counts[n]),
                           range(len(slices)))
            return slices, counts

        slices_s, counts_s = counted("stored_counts", (stored, keys), scale)
        slices_r, counts_r = counted("probe_counts", (probing, low, high), probe_scale)
        self._parts, firsts = _partitioned(counts_s.sum(0) + counts_r.sum(0))
        self._starts, offsets_s = _offsets(counts_s, firsts)
        self._begins_r, offsets_r = _offsets(counts_r, firsts)
        self._bases = firsts.astype(np.uint64) << self._shift
        stored_rows, probes = int(self._starts[-1]), int(self._begins_r[-1])
        self._places, self.order = np.empty(stored_rows, np.uint64), np.empty(stored_rows, np.int64)
        self._lows, self._highs = np.empty(probes, np.uint64), np.empty(probes, np.uint64)
        self._probes = np.empty(probes, np.int64)

        def scatter(task: tuple[bool, int]) -> None:
            is_stored, n = task
            if is_stored:
                at = slices_s[n]
                self._loops["stored_scatter"](stored[at], keys[at], *scale, self._parts, at.start, offsets_s[n],
                                              self._places, self.order)
            else:
                at = slices_r[n]
                self._loops["probe_scatter"](probing[at], low[at], high[at], *probe_scale, self._parts, at.start,
                                             offsets_r[n], self._lows, self._highs, self._probes)

        work.map(scatter, [*((True, n) for n in range(len(slices_s))), *((False, n) for n in range(len(slices_r)))])
        # Buckets of a directory are about as many as the tuples of its partition.
        ends = np.append(self._bases[1:].astype(object), top + 1)
        sizes = [int(end) - int(base) for base, end in zip(self._bases, ends, strict=True)]
        self._shifts = np.array([min(63, max(0, (size - 1).bit_length() + 1 - max(1, int(n)).bit_length()))
                                 for size, n in zip(sizes, np.diff(self._starts), strict=True)], np.uint64)
        lengths = np.array([((size - 1) >> int(by)) + 2 for size, by in zip(sizes, self._shifts, strict=True)])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        self._begins, self._directory = begins[:-1].copy(), np.empty(int(begins[-1]), np.int64)

        def sort(part: int) -> None:
            mine = slice(int(self._starts[part]), int(self._starts[part + 1]))
            n = mine.stop - mine.start
            self._loops["sort_partition"](
                self._places[mine], self.order[mine], np.empty(n, np.uint64), np.empty(n, np.int64),
                np.zeros(2048, np.int64), self._bases[part], self._shifts[part],
                self._directory[begins[part]:begins[part + 1]])

        work.map(sort, range(len(firsts)))

    @staticmethod
    def fits(count: int, keys: Codes) -> bool:
        """True if places of so many groups and of ``keys`` fit 64 bits."""
        return not len(keys) or count * (int(keys.max()) - int(keys.min()) + 1) <= 2**64

    def _slices(self, rows: int) -> list[slice]:
        """Slices of so many rows, a few for each thread."""
        n = max(1, min(self._work.team.size * _EACH, rows // _COUNTED))
        cuts = [rows * i // n for i in range(n + 1)]
        return [slice(a, b) for a, b in pairwise(cuts)]

    @property
    def parts(self) -> range:
        """The numbers of the partitions that have probes."""
        return range(len(self._bases))

    def find(self, part: int) -> _Part:
        """The ranges of the probes of partition number ``part``."""
        mine = slice(int(self._begins_r[part]), int(self._begins_r[part + 1]))
        rows = self._probes[mine]
        start, end = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        pairs = self._loops["probe_ranges"](
            self._lows[mine], self._highs[mine], self._top, self._shift, self._parts, self._bases, self._shifts,
            self._starts, self._begins, self._directory, self._places, start, end)
        return _Part(rows, start, end, pairs)

    def by_row(self, rows: int) -> tuple[Rows, Rows]:
        """The ranges of all probes, of which there are ``rows``, from `start` to before `end`: int64 (rows,) each."""
        starts, ends = np.zeros(rows, np.int64), np.zeros(rows, np.int64)

        def find(part: int) -> None:
            found = self.find(part)
            self._loops["by_row"](found.rows, found.start, found.end, starts, ends)

        self._work.map(find, self.parts)
        return starts, ends

    def pairs_within(self, part: int, most: int, second: SecondKey) -> Iterator[tuple[Rows, Rows]]:
        """As `pairs`, those that are within the intervals of ``second``, a key of the tuples in `order`."""
        found = self.find(part)
        return second.pairs(self.order, found.rows, found.start, found.end, most)

    def pairs(self, part: int, most: int) -> Iterator[tuple[Rows, Rows]]:
        """The row ids of probes and of the stored tuples in their ranges, in partition number ``part``, at most so many
        at once.
        """
        found = self.find(part)
        rows, start, end = found.rows, found.start, found.end

        def expanded(at: int, until: int, n: int) -> tuple[Rows, Rows]:
            probe, stored = np.empty(n, np.int64), np.empty(n, np.int64)
            self._loops["expand"](start[at:until], end[at:until], rows[at:until], self.order, probe, stored)
            return probe, stored

        if found.pairs <= most:
            if found.pairs:
                yield expanded(0, len(rows), found.pairs)
            return
        # Ranges in pieces, which are put together to no more than is asked for.
        pieces = np.maximum(-(-(end - start) // most), 1)
        turn = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        rows, end = np.repeat(rows, pieces), np.repeat(end, pieces)
        start = np.repeat(start, pieces) + turn * most
        end = np.minimum(end, start + most)
        ends = np.cumsum(end - start)
        at = done = 0
        while at < len(rows):
            until = int(np.searchsorted(ends, done + most, side="right"))
            n = int(ends[until - 1]) - done
            yield expanded(at, until, n)
            done, at = done + n, until


def _extremes(work: Work, keys: Codes) -> tuple[int, int]:
    """The least and the greatest of ``keys``; 0 for both if there are none."""
    if not len(keys):
        return 0, 0
    found = work.map_short(lambda part: (int(keys[part].min()), int(keys[part].max())), work.slices(len(keys)))
    return min(low for low, _ in found), max(high for _, high in found)


def _partitioned(counts: Rows) -> tuple[Rows, Rows]:
    """For each fine bucket its partition, and the first fine bucket of each partition."""
    total = int(counts.sum())
    target = max(_PARTITION, -(-total // _PARTITIONS))
    of = (np.cumsum(counts) - counts // 2) // target
    rises = np.concatenate([[0], (of[1:] != of[:-1]).astype(np.int64)])
    parts = np.cumsum(rises)
    return parts, np.concatenate([[0], np.flatnonzero(rises)])


def _offsets(counts: Rows, firsts: Rows) -> tuple[Rows, Rows]:
    """Offsets of the partitions, and their end; and offsets at which each slice, a row of ``counts`` (slices, buckets),
    writes into each partition.
    """
    mine = np.add.reduceat(counts, firsts, axis=1)
    starts = np.concatenate([[0], np.cumsum(mine.sum(0))])
    return starts, starts[:-1] + np.cumsum(mine, axis=0) - mine


def ordered_pairs(work: Work, packed: list[Rows], most: int, then: Callable[[Rows, slice], None]) -> Rows:
    """The numbers of all arrays ``packed``, from 0 to before ``most``, in rising order. ``then`` is called with them
    and each part of them that has been sorted, while it is in a cache, and may overwrite it. Empties ``packed``.
    """
    loops, total = work.loops, sum(map(len, packed))
    wanted = max(1, min(_PARTS, total // _SORTED))
    shift = max(0, (most - 1).bit_length() - (wanted - 1).bit_length())
    n = ((most - 1) >> shift) + 1
    groups = list(_joined(packed, max(_COUNTED, total // (_EACH * work.team.size * 8))))
    counts = np.zeros((max(1, len(groups)), n), np.int64)
    work.map_short(lambda i: [loops["packed_counts"](of, shift, counts[i]) for of in groups[i]], range(len(groups)))
    starts, offsets = _offsets(counts, np.arange(n))
    ordered = np.empty(total, np.int64)
    work.map(lambda i: [loops["packed_scatter"](of, shift, offsets[i], ordered) for of in groups[i]],
             range(len(groups)))
    groups.clear()
    packed.clear()  # before rows take as much memory again

    def order(part: int) -> None:
        mine = slice(int(starts[part]), int(starts[part + 1]))
        ordered[mine].sort()
        then(ordered, mine)

    work.map(order, range(n))
    return ordered


def _joined(arrays: list[Rows], least: int) -> Iterator[list[Rows]]:
    """Neighbouring arrays together that have at least so many numbers."""
    some: list[Rows] = []
    for of in arrays:
        some.append(of)
        if sum(map(len, some)) >= least:
            yield some
            some = []
    if some:
        yield some


class SecondKey:
    """The ``keys`` (n,) of tuples in the order of another key, and the interval ``low`` to ``high`` of each probe (m,).

    ``loops``: the compiled ones.
    """

    def __init__(self, loops: Mapping[str, Any], keys: Codes, low: Codes, high: Codes):
        self._loops, self._keys, self._low, self._high = loops, keys, low, high
        least, most, begins, n = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], list[int](), 0
        ends, size = (keys, keys), _RUN
        while len(ends[0]) > 1 or (not begins and len(keys)):
            at = np.arange(0, len(ends[0]), size)
            ends, size = (np.minimum.reduceat(ends[0], at), np.maximum.reduceat(ends[1], at)), _FAN
            least.append(ends[0])
            most.append(ends[1])
            begins.append(n)
            n += len(at)
        self._least, self._most = np.concatenate(least), np.concatenate(most)
        self._begins = np.array(begins, np.int64)

    def pairs(self, order: Rows, rows: Rows, first: Rows, behind: Rows, most: int) -> Iterator[tuple[Rows, Rows]]:
        """The pairs of the probes ``rows`` with tuples at positions from ``first`` to before ``behind``, which are the
        rows ``order`` (n,), whose keys are in the probe's interval: row ids, about ``most`` at once. ``rows``,
        ``first`` and ``behind``: (k,).
        """
        state = np.zeros(2, np.int64)
        while state[0] < len(rows):
            probe, stored = np.empty(max(most, _RUN), np.int64), np.empty(max(most, _RUN), np.int64)
            n = self._loops["expand_within"](first, behind, rows, self._low, self._high, self._keys, self._least,
                                             self._most, self._begins, order, state, probe, stored)
            if n:
                yield probe[:n], stored[:n]

    def count(self, rows: Rows, first: Rows, behind: Rows) -> int:
        """The number of pairs that `pairs` would give."""
        none = np.empty(0, np.int64)
        return int(self._loops["expand_within"](first, behind, rows, self._low, self._high, self._keys, self._least,
                                                self._most, self._begins, none, np.zeros(2, np.int64), none, none))


def ranges_by_row(numbers: tuple[Rows, Rows], count: int, keys: Codes, low: Codes, high: Codes, work: Work) -> Ranges:
    """For each probe the range of stored tuples of its group whose ``keys`` are from ``low`` to ``high``. ``numbers``
    and ``count``: as of `PartitionedRanges`.
    """
    found = partitioned_ranges(numbers, count, keys, low, high, work)
    return Ranges(found.order, *found.by_row(len(low)))


def partitioned_ranges(numbers: tuple[Rows, Rows], count: int, keys: Codes, low: Codes, high: Codes,
                       work: Work) -> PartitionedRanges:
    """The same by partitions."""
    if not PartitionedRanges.fits(count, keys):
        ranks, different = dense_ranks(keys)
        distinct = np.empty(different, np.uint64)
        distinct[ranks] = keys
        keys, behind = ranks.view(np.uint64), counts_below(distinct, high, equal=True)
        some = behind > 0  # not below the least key
        low = np.where(some, counts_below(distinct, low), 1).view(np.uint64)
        high = np.where(some, behind - 1, 0).view(np.uint64)
    return PartitionedRanges(work, numbers, count, keys, low, high)
