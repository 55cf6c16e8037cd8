"""The partners that decide the rows of semi, anti and as-of joins of whole tables, found without the other pairs.

The windows of both streams and the kind of join leave each tuple of R one range of S's row ids, of which it wants the
first or the last partner. S is sorted by the codes of its equal keys, then by row id, so that the range is one there
too. Where nothing but equalities is asked, its end is the partner. Otherwise `search` goes from that end inwards, past
runs of tuples whose keys rule them out. The first partner within one key's interval, in windows that hold everything,
is the least row id of a run of S sorted by that key. Memory is that of the tuples and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import available_memory
from splitjoin.lang.kind import Kind
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals, s_before_each_r
from .condition import Condition
from .key_order import KeyOrder
from .runs_of_keys import Groups, Pyramid, Search, least
from .sorting import counts_below
from .spans import Spans

__all__ = ["Neighbours", "Partners", "neighbours_of", "partners_of", "suits_search"]

Rows = npt.NDArray[np.int64]

#: Candidates of the sample that tells how many of them are partners.
_SAMPLE = 4096
#: Nanoseconds: a candidate of the search; a pair that is made and gathered, and a candidate of it, by compiled loops,
#: and a session of these, until it is there.
_TRIED, _MADE, _COMPARED, _STARTED = 60.0, 100.0, 0.2, 3e6
#: Bytes of a pair until its rows are decided, about.
_PAIR_BYTES = 60


@dataclass(frozen=True)
class Partners:
    """The partner of each tuple of R that decides its row: row ids (r,), −1 for none. ``how``: how they were found.
    ``tried``: the number of candidates.
    """

    partner: Rows
    how: str
    tried: int


@dataclass(frozen=True)
class Neighbours:
    """The nearest partners of each tuple of R among those before it in time, or at its time, and among those after it:
    row ids (r, k), the nearest first, −1 for none. ``tried``: the number of candidates.
    """

    back: Rows
    fore: Rows
    tried: int


def neighbours_of(kind: Kind, incoming: Arrivals, visible: Spans, condition: Condition, groups: Groups) -> Neighbours:
    """The ``kind.k`` nearest partners of an as-of join of ``kind``, in each direction in which it looks."""
    search = _search(condition, groups)
    find = _finder(groups, search)
    none = np.empty((len(incoming.r), 0), np.int64)
    found = {"back": none, "fore": none}
    # Those of a tuple's own time are before it, where it looks in both directions.
    for name, start, end in _looked(kind, incoming, visible, both=kind.direction == "nearest"):
        columns = list[Rows]()
        while len(columns) < kind.k:
            one = find(start, end, name == "back")
            there = one >= 0
            if not there.any():
                break
            columns.append(one)
            if name == "back":
                end = np.where(there, one, start)
            else:
                start = np.where(there, one + 1, end)
        found[name] = np.stack(columns, axis=1) if columns else none
    return Neighbours(found["back"], found["fore"], search.tried or sum(int((f >= 0).sum()) for f in found.values()))


def partners_of(kind: Kind, incoming: Arrivals, visible: Spans, condition: Condition,
                groups: Groups) -> Partners | None:
    """The partners of a ``kind`` semi, anti or as-of; None where making all pairs is expected to be cheaper, by a
    sample.
    """
    bounds = condition.bounds("s")
    if not kind.is_asof and visible.hold_all and condition.decided and len(bounds) == 1:
        ranges = KeyOrder(groups.of("s"), groups.count, bounds[0].keys).ranges(
            groups.of("r"), bounds[0].low, bounds[0].high)
        some = ranges.end > ranges.start
        # Any partner decides an anti join; a semi join's row comes with the first.
        first = least(ranges.order, ranges.start, ranges.end) if kind.how == "semi" else np.zeros(len(some), np.int64)
        return Partners(np.where(some, first, -1), "by the first partner of each run of sorted keys",
                        int(np.count_nonzero(some)))
    if not suits_search(condition, groups, visible):
        return None
    search = _search(condition, groups)
    partner = _chosen(kind, incoming, visible, groups, search)
    how = "by equal keys and time" if search.is_direct else "from the nearest partner on" if kind.is_asof else (
        "until the first partner")
    return Partners(partner, how, search.tried or int(np.count_nonzero(partner >= 0)))


def _search(condition: Condition, groups: Groups) -> Search:
    """The search of S in the order of ``groups``."""
    pyramids = [(Pyramid(b.keys[groups.order]), b.low, b.high) for b in condition.bounds("s")]
    return Search(pyramids, None if condition.decided else lambda r, at: condition.true(r, groups.order[at]))


def suits_search(condition: Condition, groups: Groups, visible: Spans) -> bool:
    """True if trying candidates until the first partner takes less than making all pairs, or these do not fit."""
    bounds = condition.bounds("s")
    if condition.decided and not bounds:
        return True
    first, last = groups.positions(visible.start), groups.positions(visible.end)
    lengths = np.maximum(last - first, 0)
    some = np.flatnonzero(lengths)
    if not len(some):
        return True
    chance = np.random.default_rng(1)
    r = chance.choice(some, _SAMPLE)
    at = first[r] + (chance.random(_SAMPLE) * lengths[r]).astype(np.int64)
    share = float(np.count_nonzero(condition.true(r, groups.order[at]))) / _SAMPLE
    candidates = float(lengths.sum())
    pairs = share * candidates
    if pairs * _PAIR_BYTES > available_memory() / 2:
        return True
    if condition.decided and len(bounds) == 1 and groups.one_ended(bounds[0].keys, bounds[0].low, bounds[0].high):
        return True  # runs are ruled out exactly
    tries = float(np.minimum(lengths, 1 / max(share, 1e-9)).sum())
    return tries * _TRIED <= pairs * _MADE + candidates * _COMPARED + _STARTED


def _chosen(kind: Kind, incoming: Arrivals, visible: Spans, groups: Groups, search: Search) -> Rows:
    """The partner of each tuple of R that decides its row: row ids (r,), −1 for none."""
    find = _finder(groups, search)
    if not kind.is_asof:
        return find(visible.start, visible.end, False)
    found = {name: find(start, end, name == "back") for name, start, end in _looked(kind, incoming, visible)}
    if kind.direction != "nearest":
        return found["back" if kind.direction == "backward" else "fore"]
    back, fore = found["back"], found["fore"]
    times, times_s = (incoming.times(of) if incoming.is_timed else incoming.positions(of) for of in SIDES)
    # As unsigned numbers, since the difference of two times may not fit 64 bits with a sign.
    if not len(times_s):
        return back
    to_back = times.view(np.uint64) - times_s[back].view(np.uint64)
    to_fore = times_s[fore].view(np.uint64) - times.view(np.uint64)
    return np.where((back >= 0) & ((fore < 0) | (to_back <= to_fore)), back, fore)


def _finder(groups: Groups, search: Search) -> Callable[[Rows, Rows, bool], Rows]:
    """Finds the last or the first partner of each tuple of R among S's row ids from a start to before an end; −1."""

    def find(start: Rows, end: Rows, last: bool) -> Rows:
        if search.is_direct:
            return groups.last(start, end) if last else groups.first(start, end)
        at = search.find(groups.positions(start), groups.positions(end), last)
        found = np.full(len(at), -1, np.int64)
        found[at >= 0] = groups.order[at[at >= 0]]
        return found

    return find


def _looked(kind: Kind, incoming: Arrivals, visible: Spans, *, both: bool = False) -> Iterator[tuple[str, Rows, Rows]]:
    """Where an as-of join looks: "back" and "fore", each from one of S's row ids to before another, for each tuple of
    R. ``both``: partners at its own time are before it only.
    """
    def below(equal: bool) -> Rows:
        if not incoming.is_timed:
            return s_before_each_r(incoming.stream, 0)
        return counts_below(incoming.times("s"), incoming.times("r"), equal=equal)

    if kind.direction != "forward":
        yield "back", visible.start, np.minimum(visible.end, below(kind.allow_exact))
    if kind.direction != "backward":
        yield "fore", np.maximum(visible.start, below(both or not kind.allow_exact)), visible.end
