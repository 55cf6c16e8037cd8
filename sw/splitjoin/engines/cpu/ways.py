"""Pairs of whole tables by equal keys and ranges of a sorted key, which is searched once for each tuple of one stream.

The tuples that may be partners of a tuple are a range of the other stream sorted by its equal keys, then by one key;
or, within windows, by its equal keys, then by arrival. Either stream may be the one that is sorted. Two inequalities of
opposite directions, as in overlapping intervals, ``r.start < s.end AND s.start < r.end``, would each select half of
all tuples. They are divided by a third comparison, of ``s.start`` with ``r.start``: where it lies above, s.start is in
an interval (r.start, r.end); where not, r.start is in an interval [s.start, s.end). So each pair is in exactly one of
two ranges, and in few others, if the intervals are no longer than they are many. What the ranges do not decide is
verified. The way with the fewest candidates, by a sample, is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.lang.schema import Side, other_side
from splitjoin.plan.keys import Codes, ExactKey

from .condition import Bounds, Condition, Spans
from .key_order import KeyOrder, Ranges
from .runs_of_keys import Groups

__all__ = ["Way", "pairs_of", "ways"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Probes and stored tuples of the samples that tell how many candidates a way has.
_PROBES, _STORED = 4096, 1 << 14
#: Candidates that are made at once.
_CHUNK = 1 << 21


@dataclass(frozen=True)
class _Search:
    """One search of stream ``stored``, sorted by the key of a slot, with an interval for each tuple of the other.

    ``decides``: the slots of S whose bounds it decides.
    """

    stored: Side
    keys: Codes
    low: Codes
    high: Codes
    decides: frozenset[int]


@dataclass(frozen=True)
class Way:
    """Searches that together hold each pair once.

    ``searches``: none for the ranges of equal keys within the windows. ``candidates``: about how many they have.
    """

    searches: tuple[_Search, ...]
    name: str
    candidates: float = 0.0

    def left(self, condition: Condition) -> list[list[Bounds]]:
        """For each search, or the only range without one, the bounds that it does not decide."""
        every = condition.bounds("s")
        return [[b for b in every if not b.slots_s <= s.decides] for s in self.searches] or [every]


def ways(condition: Condition, groups: Groups, visible: Spans) -> list[Way]:
    """The ways to find all pairs, with the fewest candidates first."""
    found = [Way((), "equal keys" if condition.points else "all pairs")]
    for side in ("s", "r"):
        found += [Way((_Search(side, b.keys, b.low, b.high, b.slots_s),), f"a range of {side}")
                  for b in condition.bounds(side)]
    found += _divided(condition)
    counted = [Way(w.searches, w.name, _count(w, groups, visible)) for w in found]
    return sorted(counted, key=lambda way: way.candidates)


def _divided(condition: Condition) -> Iterator[Way]:
    """Two inequalities of opposite directions as two searches."""
    plan = condition.plan
    bounds = [(b, b.ends()) for b in condition.bounds("s")] if len(condition.bounds("s")) > 1 else []
    for above, below in ((a, b) for a, end in bounds for b, other in bounds if end == {"high"} and other == {"low"}):
        first = above.tests[0]
        for second in below.tests:
            # S's key ``above`` is compared with R's key of the other inequality, moved to the codes of the former.
            slot = plan.tests[second].r
            shift = _shift(plan.slots_r[slot].key, plan.slots_s[plan.tests[first].s].key)
            mine = condition.keys("r", slot)
            moved = _moved(mine, shift)
            none = moved == np.uint64(2**64 - 1)
            higher = _Search("s", above.keys, np.maximum(above.low, np.where(none, moved, moved + np.uint64(1))),
                             np.where(none, np.uint64(0), above.high), above.slots_s)
            (back,) = [b for b in condition.bounds("r") if second in b.tests]
            least = _moved(above.keys, -shift)
            beyond = (_moved(least, shift) < above.keys)  # no code of R's reaches so high
            not_higher = _Search("r", mine, np.maximum(back.low, least), np.where(beyond, np.uint64(0), back.high),
                                 back.slots_s)
            yield Way((higher, not_higher), "two ranges")


def _shift(r: object, s: object) -> int:
    """The code of a number as key ``s`` less its code as key ``r``."""
    if isinstance(r, ExactKey) and isinstance(s, ExactKey):
        return (r.low - r.nullable) - (s.low - s.nullable)
    return 0


def _moved(codes: Codes, shift: int) -> Codes:
    """``codes`` plus ``shift``, within 64 bits."""
    if shift == 0:
        return codes
    by = np.uint64(min(abs(shift), 2**64 - 1))
    if shift > 0:
        return np.where(codes > np.uint64(2**64 - 1) - by, np.uint64(2**64 - 1), codes + by)
    return np.where(codes < by, np.uint64(0), codes - by)


def _count(way: Way, groups: Groups, visible: Spans) -> float:
    """About how many candidates ``way`` has."""
    if not way.searches:
        return float(_by_arrival(groups, visible).pairs)
    total = 0.0
    for search in way.searches:
        numbers, stored = groups.of(other_side(search.stored)), groups.of(search.stored)
        (some, probes), (kept, tuples) = _sample(numbers, _PROBES), _sample(stored, _STORED)
        ranges = KeyOrder(stored[kept], groups.count, search.keys[kept]).ranges(
            numbers[some], search.low[some], search.high[some])
        total += ranges.pairs * (probes / max(len(some), 1)) * (tuples / max(len(kept), 1))
    return total


def _sample(numbers: Rows, most: int) -> tuple[Rows, int]:
    """At most so many rows that have a group, and how many have one."""
    rows = np.flatnonzero(numbers >= 0)
    if len(rows) <= most:
        return rows, len(rows)
    return rows[np.sort(np.random.default_rng(1).integers(0, len(rows), most))], len(rows)


def _by_arrival(groups: Groups, visible: Spans) -> Ranges:
    start, end = groups.positions(visible.start), groups.positions(visible.end)
    return Ranges(groups.order, start, np.maximum(start, end))


def pairs_of(way: Way, condition: Condition, groups: Groups, visible: Spans,
             take: Callable[[Rows, Rows], None]) -> int:
    """Give ``take`` the row ids (r, s) of all pairs, part by part, by ``way``; returns the number of candidates."""
    tried = 0
    every = visible.hold_all(len(groups.of("s")))
    for search, left in zip(way.searches or (None,), way.left(condition), strict=True):
        if search is None:
            probing, ranges, inside = "r", _by_arrival(groups, visible), True
        else:
            probing, inside = other_side(search.stored), every
            ranges = KeyOrder(groups.of(search.stored), groups.count, search.keys).ranges(
                groups.of(probing), search.low, search.high)
        for probe, stored in _candidates(ranges):
            r, s = (probe, stored) if probing == "r" else (stored, probe)
            tried += len(r)
            true = _verified(condition, left, r, s)
            if not inside:
                within = (s >= visible.start[r]) & (s < visible.end[r])
                true = within if true is None else true & within
            if true is not None:
                r, s = r[true], s[true]
            if not condition.decided and len(r):
                true = condition.true(r, s)
                r, s = r[true], s[true]
            take(r, s)
    return tried


def _verified(condition: Condition, left: Sequence[Bounds], r: Rows, s: Rows) -> Mask | None:
    """True for the pairs within all bounds of ``left``; None if there are none."""
    true: Mask | None = None
    for b in left:
        key = b.keys[s]
        met = (key >= b.low[r]) & (key <= b.high[r])
        true = met if true is None else true & met
    return true


def _candidates(ranges: Ranges) -> Iterator[tuple[Rows, Rows]]:
    """The probes and the stored tuples of ``ranges``, some at a time."""
    lengths = ranges.end - ranges.start
    some = np.flatnonzero(lengths > 0)
    start, lengths = ranges.start[some], lengths[some]
    ends = np.cumsum(lengths)
    done, at = 0, 0
    while at < len(some):
        until = max(at + 1, int(np.searchsorted(ends, done + _CHUNK, side="right")))
        count = lengths[at:until]
        first = np.cumsum(count) - count
        total = int(ends[until - 1]) - done
        if until == at + 1 and total > _CHUNK:  # a single tuple with very many
            for begin in range(0, total, _CHUNK):
                n = min(_CHUNK, total - begin)
                place = int(start[at]) + begin
                yield np.full(n, some[at]), ranges.order[place:place + n]
        else:
            place = np.arange(total) + np.repeat(start[at:until] - first, count)
            yield np.repeat(some[at:until], count), ranges.order[place]
        done, at = int(ends[until - 1]), until
