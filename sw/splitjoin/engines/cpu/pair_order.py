"""Pairs of whole tables in the order that a query asks for (semantics, section 3): each is one 64-bit number, so that
sorting plain integers puts pairs in order.

In order of arrival it is the position of the later tuple and the row id of the other, in order ``left`` the row ids of
R and S.
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Rows
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals, MergedTables
from ..merging import aligned
from .key_ranges import ordered_pairs
from .table_work import Work

#: A number that is above that of each pair.
NO_PAIR = 2**62
#: Partners that come behind their tuples of R up to which these are moved, and the others stay as they are.
_FEW = 1024
_NONE = np.empty(0, np.int64)


def place(incoming: Arrivals, work: Work) -> None:
    """Have ``incoming`` know the positions of all tuples, by loops if it is two tables with times."""
    if not isinstance(incoming, MergedTables) or not incoming.is_timed:
        return
    loops, sizes = work.loops, (len(incoming.r), len(incoming.s))
    of, stream = [np.empty(n, np.int64) for n in sizes], np.empty(len(incoming), np.uint8)
    times = [aligned(incoming.times(side)) for side in SIDES]

    def merge(task: tuple[int, slice]) -> None:
        side, mine = task
        loops["merge_positions"](times[side][mine], times[1 - side], side, mine.start, side, of[side][mine], stream)

    work.map(merge, [(side, mine) for side in range(2) for mine in work.slices(sizes[side])])
    incoming.place(of[0], of[1], stream)


class PairOrder:
    """Packs and orders pairs of the ``incoming`` arrivals, by ``work``. ``partners``: True for `of_partners` alone,
    which seldom needs the positions of all tuples.
    """

    def __init__(self, query: Query, incoming: Arrivals, work: Work, *, partners: bool = False):
        self._incoming, self._work = incoming, work
        self._sizes = len(incoming.r), len(incoming.s)
        self._bits = max(1, max(self._sizes).bit_length())
        self._by_rows = query.order.kind == "left" or (query.is_pairs and query.order.kind == "none")
        self._is_sorted = query.order.kind != "none" or not query.is_pairs
        # Without times, the streams arrive by turns: loops compute positions.
        self._by_turns = not incoming.is_timed and not self._by_rows
        self._has_places = not (self._by_rows and query.is_pairs)
        if self._has_places:
            if not self._by_turns:
                place(incoming, work)
            if not partners:
                self._know_places()

    def _know_places(self) -> None:
        """Have `_places`, before threads ask for it."""
        assert self._places

    @cached_property
    def _places(self) -> tuple[Rows, Rows, Rows, npt.NDArray[np.uint8]]:
        """The positions of R's and of S's tuples, and for each position its row and its stream; empty where loops
        compute them.
        """
        incoming, work = self._incoming, self._work
        if self._by_turns:
            return _NONE, _NONE, _NONE, np.empty(0, np.uint8)
        of, number = (incoming.positions("r"), incoming.positions("s")), np.empty(len(incoming), np.int64)
        parts = [(positions, mine) for positions, n in zip(of, self._sizes, strict=True) for mine in work.slices(n)]
        work.map(lambda of: number.__setitem__(of[0][of[1]], np.arange(of[1].start, of[1].stop)), parts)
        return *of, number, incoming.stream

    def packed(self, r: Rows, s: Rows) -> Rows:
        """The pairs of the rows ``r`` and ``s`` (n,) as numbers (n,)."""
        if self._by_rows:
            return r << self._bits | s
        found = np.empty(len(r), np.int64)
        self._work.loops["pack"](r, s, *self._places[:2], min(self._sizes), self._bits, found)
        return found

    def of_partners(self, r: Rows, s: Rows) -> tuple[Rows, Rows, Rows | None]:
        """As `unpacked`, of pairs of the rows ``r``, which rise, with one partner ``s`` each (n,). No positions, where
        these were not needed.
        """
        if self._by_rows:
            return r, s, None
        late = np.concatenate([_NONE, *self._work.map(lambda mine: mine.start + np.flatnonzero(
            r[mine] < self._before(s[mine])), self._work.slices(len(r)))])  # whose partners come later
        if len(late) > _FEW:
            self._know_places()
            return self.unpacked(self._work.map(lambda mine: self.packed(r[mine], s[mine]), self._work.slices(len(r))))
        if not len(late):
            return r, s, None
        # The others are in order; these come before the first of them behind their partners.
        waited = late[np.lexsort((r[late], s[late]))]
        before = self._before(s[waited])
        places = np.searchsorted(r, before) - np.searchsorted(r[late], before)

        def moved(rows: Rows) -> Rows:
            others = np.concatenate([part[at > 0:] for at, part in enumerate(np.split(rows, late))])
            parts = zip(np.split(others, places), [*np.split(rows[waited], len(waited)), _NONE], strict=True)
            return np.concatenate([part for both in parts for part in both])

        return moved(r), moved(s), None

    def _before(self, s: Rows) -> Rows:
        """The number of tuples of R that arrive before each row in ``s``: (n,)."""
        return np.minimum(s + 1, self._sizes[0]) if self._by_turns else self._incoming.positions("s")[s] - s

    def unpacked(self, packed: list[Rows]) -> tuple[Rows, Rows, Rows]:
        """The rows ``r`` and ``s`` of all pairs in order, and the position of the later one, which is meaningless where
        the rows are all that is asked for, and tell the order: (n,) each.

        Empties ``packed``.
        """
        total = sum(map(len, packed))
        r, s = np.empty(total, np.int64), np.empty(total, np.int64)

        def unpack(ordered: Rows, mine: slice) -> None:
            self._unpack(ordered[mine], r[mine], s[mine], ordered[mine])

        if self._is_sorted:
            ordered = ordered_pairs(self._work, packed, max(1, len(self._incoming)) << self._bits, unpack)
        else:
            ordered = np.concatenate([_NONE, *packed])
            packed.clear()
            self._work.each(total, partial(unpack, ordered))
        return r, s, ordered

    def _unpack(self, packed: Rows, r: Rows, s: Rows, at: Rows) -> None:
        """Write the rows of the pairs ``packed`` (n,) and the position of the later one: (n,) each. ``at`` may be
        ``packed``.
        """
        if not self._by_rows:
            _, _, numbers, stream = self._places
            self._work.loops["unpack"](packed, self._bits, stream, numbers, min(self._sizes),
                                       int(self._sizes[1] > self._sizes[0]), r, s, at)
            return
        high, low = packed >> self._bits, packed & ((1 << self._bits) - 1)
        if not self._has_places:
            r[:], s[:] = high, low
            return
        of_r, of_s, _, _ = self._places
        r[:], s[:], at[:] = high, low, np.maximum(of_r[high], of_s[low])
