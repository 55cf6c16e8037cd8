"""Runs of tuples in sorted order: by equal keys and arrival, or by a key within them; and searches in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.plan.keys import Codes

__all__ = ["Groups", "Pyramid", "Search", "least", "least_in_runs", "sorted_runs"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Times as many numbers as there are keys that are counted without sorting these.
_SPREAD = 4
#: A number of R's keys that no tuple of S has.
_NEVER = 2**63 - 1


class Groups:
    """The tuples of R and S by equal keys.

    ``points``: pairs of codes (r,), (s,), all of which must be equal. ``possible_r``, ``possible_s``: the tuples that
    take part.

    Attributes:
        order: The row ids of S's tuples that take part, by group, then by row id.
        of_s: The numbers of their groups.
        numbers: For each tuple of R the number of its group, −1 for none: int64 (r,).
    """

    def __init__(self, points: Sequence[tuple[Codes, Codes]], possible_r: Mask, possible_s: Mask):
        rows = np.flatnonzero(possible_s)
        self._rows = len(possible_s)
        r, s, count = np.where(possible_r, 0, -1), np.zeros(len(rows), np.int64), 1
        for keys_r, keys_s in points:
            more_r, more_s, more = _numbered(keys_r, keys_s[rows])
            r, s = np.where((r < 0) | (more_r < 0), -1, r * more + more_r), s * more + more_s
            count *= more
            if count > _SPREAD * len(rows) + 1:  # so that the product of the next fits 64 bits
                r, s, count = _numbered(np.where(r < 0, _NEVER, r).astype(np.uint64), s.astype(np.uint64))
        self.numbers = r
        by_group = _sorted(s, count)
        self.order, self.of_s = rows[by_group], s[by_group]
        # Probes in sorted order find their places much faster, as these are near each other in memory.
        self._probes = _sorted(r + 1, count + 1) if count > 1 else None
        self._places = self.of_s * (self._rows + 1) + self.order

    def positions(self, row: Rows) -> Rows:
        """For each tuple of R the position in `order` of the first tuple of its group from row id ``row`` on; 0 for
        tuples that have no group.
        """
        wanted = self.numbers * (self._rows + 1) + row
        if self._probes is None:
            found = np.searchsorted(self._places, wanted)
        else:
            found = np.empty(len(wanted), np.int64)
            found[self._probes] = np.searchsorted(self._places, wanted[self._probes])
        return np.where(self.numbers < 0, 0, found)

    def one_ended(self, bounds: tuple[Codes, Codes, Codes]) -> bool:
        """True if no interval of ``bounds`` (keys of S; lowest and highest for each of R) has keys on both sides."""
        keys, low, high = bounds
        mine = self.numbers >= 0
        if not len(self.order) or not mine.any():
            return True
        return bool((low[mine] <= keys[self.order].min()).all() or (high[mine] >= keys[self.order].max()).all())


def _sorted(numbers: Rows, count: int) -> Rows:
    """The order of ``numbers`` from 0 to before ``count``, equal ones as they come."""
    # NumPy sorts numbers of 16 bits by their digits.
    return np.argsort(numbers.astype(np.uint16) if count <= 1 << 16 else numbers, kind="stable")


def _numbered(keys_r: Codes, keys_s: Codes) -> tuple[Rows, Rows, int]:
    """Numbers of equal keys from 0, −1 where S has no such key, and how many numbers there may be."""
    if not len(keys_s):
        return np.full(len(keys_r), -1, np.int64), np.empty(0, np.int64), 1
    least, most = keys_s.min(), keys_s.max()
    span = int(most) - int(least) + 1
    if span <= _SPREAD * len(keys_s) + 1024:
        known = (keys_r >= least) & (keys_r <= most)
        return np.where(known, (keys_r - least).astype(np.int64), -1), (keys_s - least).astype(np.int64), span
    distinct, s = np.unique(keys_s, return_inverse=True)
    at = np.minimum(np.searchsorted(distinct, keys_r), len(distinct) - 1)
    return np.where(distinct[at] == keys_r, at, -1), s.astype(np.int64), len(distinct)


def least_in_runs(groups: Groups, keys: Codes, low: Codes, high: Codes) -> Rows:
    """For each tuple of R the least row id of its group in S whose key is from ``low`` to ``high`` (r,); −1 for none.

    ``keys``: of all tuples of S (s,).
    """
    order, start, end = sorted_runs(groups, keys, low, high)
    return np.where(end > start, least(order, start, end), -1)


def sorted_runs(groups: Groups, keys: Codes, low: Codes, high: Codes) -> tuple[Rows, Rows, Rows]:
    """The row ids of S by group and key, and for each tuple of R the range there of its group's keys from ``low`` to
    ``high``: the first position and the one behind the last, int64 (r,).
    """
    mine = keys[groups.order]
    distinct, ranks = np.unique(mine, return_inverse=True)
    width = len(distinct) + 1
    places = groups.of_s * width + ranks
    by_key = np.argsort(places, kind="stable")
    places = places[by_key]
    start, end = (np.where(groups.numbers < 0, 0, np.searchsorted(
        places, groups.numbers * width + np.searchsorted(distinct, ends, side=side)))  # type: ignore[call-overload]
        for ends, side in ((low, "left"), (high, "right")))
    return groups.order[by_key], start, np.maximum(start, end)


def least(values: npt.NDArray[Any], start: Rows, end: Rows) -> npt.NDArray[Any]:
    """The least of ``values`` from each ``start`` to before each ``end``; 0 where that is none.

    Two runs of a power of two of values cover a range; these are made power by power, so memory stays that of values.
    """
    found = np.zeros(len(start), values.dtype)
    powers = _exponents(end - start)
    runs, power = values, 0
    by_power = np.argsort(powers, kind="stable")
    cuts = np.searchsorted(powers[by_power], np.arange(powers.max(initial=0) + 2))
    for power in range(powers.max(initial=0) + 1):
        of = by_power[cuts[power]:cuts[power + 1]]
        of = of[end[of] > start[of]]
        found[of] = np.minimum(runs[start[of]], runs[end[of] - (1 << power)])
        runs = np.minimum(runs[:-(1 << power)], runs[1 << power:]) if len(runs) > 1 << power else runs
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


class Search:
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
        if self.is_direct:
            return np.where(end > start, end - 1 if last else start, -1)
        found = np.full(len(start), -1, np.int64)
        who = np.flatnonzero(end > start)
        start, end, most = start[who], end[who], np.zeros(len(who), np.int64)
        while len(who):
            near = end if last else start  # runs are aligned to their length
            level = np.minimum(most, _exponents(end - start))
            level = np.where(near == 0, level, np.minimum(level, _exponents(near & -near)))
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


def _exponents(numbers: Rows) -> Rows:
    """The exponent of the greatest power of two that is not above each number, 0 for numbers below 1."""
    return np.maximum(np.frexp(numbers.astype(np.float64))[1].astype(np.int64) - 1, 0)
