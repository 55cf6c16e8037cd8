"""The partners that decide the rows of as-of, semi and anti joins of whole tables, found without the other pairs.

The windows of both streams and the kind of join leave each tuple of R one range of S's row ids, of which it wants the
first or the last partner. Where nothing but equal keys is asked, both streams are passed once, in the order of time,
and for each key its last row is kept (a merge join; Graefe, Query evaluation techniques for large databases, 1993,
section 4.2); threads have a part of the time each, and begin with the last rows of the parts before. Otherwise S is
sorted by the codes of its equal keys, then by row id, so that the range is one there too, and a search goes from its
end inwards, past runs of tuples whose keys rule them out. The first partner within one key's interval, in windows that
hold everything, is the least row id of a run of S sorted by that key. Memory is that of the tuples and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import available_memory
from splitjoin.lang.kind import Kind
from splitjoin.lang.schema import SIDES

from ..arrival import Arrivals
from ..device import TableNeighbours, TablePairs
from ..merging import aligned
from ..range_terms import extremes
from ..sorting import float_of_bits
from ..whole_times import decided_by_times, distances
from .condition import Bounds, Condition
from .key_groups import Groups, PartnerSearch, Pyramid
from .key_ranges import ranges_by_row
from .pair_order import PairOrder, place
from .table_job import TableAlgorithm
from .table_windows import Spans
from .table_work import Work

Rows = npt.NDArray[np.int64]
#: Finds the last or the first partner of each tuple of R among S's row ids from a start to before an end.
Find = Callable[[Rows, Rows, bool], Rows]
#: Candidates of the sample that tells how many of them are partners.
_SAMPLE = 4096
#: Nanoseconds: a candidate of the search; a pair that is made and gathered, and a candidate of it, by compiled loops,
#: and a session of these, until it is there.
_TRIED, _MADE, _COMPARED, _STARTED = 60.0, 100.0, 0.2, 3e6
#: Rows of a run up to which, on average, all are looked at for the least.
_FEW = 32
#: How much earlier and later a partner may be, where windows limit rows.
_NO_LIMITS = np.uint64(2**64 - 1), np.uint64(2**64 - 1)
#: Bytes of a pair until its rows are decided, about.
_PAIR_BYTES = 60
_EVERY = np.empty(0, np.int64)


@dataclass(frozen=True)
class Partners:
    """The partner of each tuple of R that decides its row: row ids (r,), −1 for none. ``how``: how they were found.
    ``tried``: the number of candidates.
    """

    partner: Rows
    how: str
    tried: int


class NearestJoin(TableAlgorithm):
    """The ``kind.k`` nearest partners of each tuple of R, in each direction in which an as-of join looks."""

    name = "nearest partners"
    shapes = ("nearest",)
    suits = True

    @property
    def explain(self) -> str:
        return "rows without pairs, by the nearest partners"

    def run(self) -> TableNeighbours:
        job = self.job
        job.work.begin(self.explain)
        query, incoming = job.query, job.incoming
        kind, floats = query.kind, query.time is not None and not query.time.has_ticks
        search = _search(job.condition, job.groups)
        find = _finder(job.groups, search)
        none = np.empty((len(incoming.r), 0), np.int64)
        found = {"back": none, "fore": none}
        for name, start, end in _looked(kind, incoming, job.visible, job.work):
            columns = list[Rows]()
            behind = None if name == "back" or kind.ties != "last" else (
                _last_of_equally_near(incoming, find, start, end, floats=floats))
            while len(columns) < kind.k:
                one = find(start, end, name == "back") if behind is None else next(behind)
                there = one >= 0
                if not there.any():
                    break
                columns.append(one)
                if name == "back":
                    end = np.where(there, one, start)
                else:
                    start = np.where(there, one + 1, end)
            found[name] = np.stack(columns, axis=1) if columns else none
        tried = search.tried or sum(int((f >= 0).sum()) for f in found.values())
        back, fore = (job.reach.within(incoming, found[name]) for name in ("back", "fore"))
        matches = sum(int((f >= 0).sum()) for f in (back, fore))
        return TableNeighbours(back, fore, plan=self.explain, counters=job.counters(tried, matches), work=job.work)


def _last_of_equally_near(incoming: Arrivals, find: Find, start: Rows, end: Rows, *, floats: bool) -> Iterator[Rows]:
    """The partners of each tuple of R from row id ``start`` of S to before ``end``, the nearest first, and of equally
    near ones the last first: row ids (r,) for as long as they are asked for, −1 once there are no more.
    """
    low = high = start  # what is left of those that are equally near
    while True:
        one = find(low, high, True)
        first = find(start, end, False)
        anew = (one < 0) & (first >= 0)
        upto = _behind_equally_near(incoming, np.maximum(first, 0), end, floats=floats) if anew.any() else end
        low, start = np.where(anew, first, low), np.where(anew, upto, start)
        high = np.where(anew, upto, np.where(one < 0, low, one))
        one = np.where(anew, find(low, high, True), one)
        high = np.where(one < 0, low, one)
        yield one


def _behind_equally_near(incoming: Arrivals, first: Rows, end: Rows, *, floats: bool) -> Rows:
    """The row id of S behind those from ``first`` to before ``end`` that are as far from each tuple of R as ``first``,
    which is not before it.
    """
    times = incoming.times("s") if incoming.is_timed else incoming.positions("s")
    if not floats:
        return np.minimum(end, np.searchsorted(times, times[first], side="right"))
    mine, others = float_of_bits(incoming.times("r")), float_of_bits(times)  # of different times, when rounded, too
    apart, low, high = distances(mine, others[first]), first, end
    while (low < high).any():
        middle = (low + high) // 2
        near = distances(mine, others[np.minimum(middle, len(others) - 1)]) <= apart
        low, high = np.where((low < high) & near, middle + 1, low), np.where((low < high) & ~near, middle, high)
    return low


class PartnerJoin(TableAlgorithm):
    """The partner that decides the row of each tuple of R, in as-of, semi and anti joins."""

    name = "merge join"
    shapes = ("as-of", "exists")

    @cached_property
    def _one_key(self) -> Bounds | None:
        """The bounds, if whether there is a partner follows from the interval of one key."""
        job, bounds = self.job, self.job.condition.bounds("s")
        one = job.shape == "exists" and job.visible.hold_all and job.condition.decided and len(bounds) == 1
        return bounds[0] if one else None

    @property
    def suits(self) -> bool:
        return self._one_key is not None or suits_search(self.job.condition, self.job.groups, self.job.visible)

    @property
    def explain(self) -> str:
        return f"rows without pairs, {self._found.how}{self.job.work.text}"

    @cached_property
    def _found(self) -> Partners:
        job, kind = self.job, self.job.query.kind
        if self._one_key is not None:
            return _within_one(kind, job.incoming, self._one_key, job.groups, job.work)
        search = _search(job.condition, job.groups)
        partner = _chosen(kind, job.incoming, job.visible, job.groups, search, job.work)
        how = "by equal keys and time" if search.is_direct else "from the nearest partner on" if kind.is_asof else (
            "until the first partner")
        return Partners(partner, how, search.tried or int(np.count_nonzero(partner >= 0)))

    def run(self) -> TablePairs:
        job, found, plan = self.job, self._found, self.explain
        query, incoming, work = job.query, job.incoming, job.work
        work.begin(plan)
        if query.kind.how != "asof" or (query.kind.direction == "nearest" and not decided_by_times(query, incoming)):
            place(incoming, work)  # the order of rows depends on it
        partner = job.reach.within(incoming, found.partner)
        mine = work.where(len(partner), lambda some: partner[some] >= 0)
        if len(mine) and int(mine[-1]) - int(mine[0]) == len(mine) - 1:  # they follow each other
            partner = partner[mine[0]:mine[-1] + 1]
        else:
            partner = work.taken(partner, mine)
        counters = job.counters(found.tried, len(mine))
        if query.kind.is_asof or query.kind.how == "anti":
            return TablePairs(mine, partner, None, plan=plan, counters=counters, work=work)
        rows = PairOrder(query, incoming, work, partners=True).of_partners(mine, partner)
        return TablePairs(*rows, plan=plan, counters=counters, work=work)


def _within_one(kind: Kind, incoming: Arrivals, bounds: Bounds, groups: Groups, work: Work) -> Partners:
    """The first partner of each tuple of R within one key's interval; 0 for any that arrives before the tuple, as rows
    do not depend on which it is, and of an anti join for any.
    """
    low = bounds.low
    ranges = ranges_by_row((groups.numbers("r"), groups.numbers("s")), groups.count, bounds.keys, low, bounds.high,
                           work)
    some, tried = ranges.end > ranges.start, ranges.pairs
    how = "by the first partner of each run of sorted keys"
    if kind.how != "semi":
        return Partners(np.where(some, 0, -1), how, int(np.count_nonzero(some)))
    if tried <= _FEW * len(low):
        loops, first = work.loops, np.empty(len(low), np.int64)
        work.map(lambda mine: loops["least_rows"](ranges.order, ranges.start[mine], ranges.end[mine], first[mine]),
                 work.slices(len(low)))
    else:
        first = extremes(ranges.order, ranges.start, ranges.end, work)
    return Partners(np.where(some, first, -1), how, int(np.count_nonzero(some)))


def _search(condition: Condition, groups: Groups) -> PartnerSearch:
    """The search of S in the order of ``groups``."""
    pyramids = [(Pyramid(b.keys[groups.order]), b.low, b.high) for b in condition.bounds("s")]
    return PartnerSearch(pyramids, None if condition.decided else lambda r, at: condition.true(r, groups.order[at]))


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


def _chosen(kind: Kind, incoming: Arrivals, visible: Spans, groups: Groups, search: PartnerSearch, work: Work) -> Rows:
    """The partner of each tuple of R that decides its row: row ids (r,), −1 for none."""
    find = _finder(groups, search)
    if not kind.is_asof:
        if search.is_direct and visible.hold_all:
            return groups.firsts
        if search.is_direct:
            return nearest_partners(visible.start, visible.end, groups, work, last=False)
        return find(visible.start, visible.end, False)
    limits = _NO_LIMITS
    if search.is_direct:
        found, limits = _passed(kind, incoming, visible, groups, work)
    else:
        found = {name: find(start, end, name == "back") for name, start, end in _looked(kind, incoming, visible, work)}
    if kind.direction != "nearest":
        return found["back" if kind.direction == "backward" else "fore"]
    back, fore = found["back"], found["fore"]
    times, times_s = (aligned(incoming.times(of) if incoming.is_timed else incoming.positions(of)) for of in SIDES)
    work.map(lambda mine: work.loops["nearer"](times[mine], times_s, back[mine], fore[mine], *limits, fore[mine]),
             work.slices(len(times)))
    return fore


def _passed(kind: Kind, incoming: Arrivals, visible: Spans, groups: Groups,
            work: Work) -> tuple[dict[str, Rows], tuple[np.uint64, np.uint64]]:
    """The last partners before each tuple of R, "back", and the first ones behind it, "fore", by equal keys alone; and
    how much earlier and later than it those of a join in both directions may be. As the loop `nearer` takes them.
    """
    lengths, found = visible.lengths if visible.limits else None, dict[str, Rows]()
    if lengths is None and not visible.hold_all:
        for name, start, end in _looked(kind, incoming, visible, work):
            at, limit = (end, start) if name == "back" else (start, end)
            found[name] = nearest_partners(at, limit, groups, work, last=name == "back")
        return found, _NO_LIMITS
    # Only times limit the windows, if anything does: the nearest is looked at alone.
    earlier, later = (np.uint64(min(length, 2**64 - 1)) for length in lengths) if lengths is not None else _NO_LIMITS
    behind, ahead = _split(kind, incoming, work)
    if behind is not None and behind is ahead and groups.is_one:
        return {"back": _EVERY, "fore": behind}, (earlier, later)
    if behind is not None:
        found["back"] = nearest_partners(behind, None, groups, work, last=True)
    if ahead is not None:
        found["fore"] = nearest_partners(ahead, None, groups, work, last=False)
    if kind.direction == "nearest":
        return found, (earlier, later)
    if lengths is not None:
        loops, (partner,) = work.loops, found.values()
        times, times_s = (aligned(incoming.times(of)) for of in SIDES)
        work.map(lambda mine: loops["drop_far"](times[mine], times_s, earlier, later, partner[mine]),
                 work.slices(len(partner)))
    return found, _NO_LIMITS


def _finder(groups: Groups, search: PartnerSearch) -> Find:
    """Finds the last or the first partner of each tuple of R among S's row ids from a start to before an end; −1."""

    def find(start: Rows, end: Rows, last: bool) -> Rows:
        if search.is_direct:
            return groups.nearest(start, end, last=last)
        at = search.find(groups.positions(start), groups.positions(end), last)
        found = np.full(len(at), -1, np.int64)
        found[at >= 0] = groups.order[at[at >= 0]]
        return found

    return find


def _looked(kind: Kind, incoming: Arrivals, visible: Spans, work: Work) -> Iterator[tuple[str, Rows, Rows]]:
    """Where an as-of join looks: "back" and "fore", each from one of S's row ids to before another, for each tuple of
    R.
    """
    every, (behind, ahead) = visible.hold_all, _split(kind, incoming, work)
    if behind is not None:
        yield "back", visible.start, behind if every else np.minimum(visible.end, behind)
    if ahead is not None:
        yield "fore", ahead if every else np.maximum(visible.start, ahead), visible.end


def _split(kind: Kind, incoming: Arrivals, work: Work) -> tuple[Rows | None, Rows | None]:
    """For each tuple of R the row id of S before which an as-of join looks back, and from which on it looks ahead; None
    where it does not. Partners at the time of a tuple are before it, if it looks in both directions.
    """
    def below(equal: bool) -> Rows:
        if not incoming.is_timed:
            return incoming.positions("r") - np.arange(len(incoming.r))  # tuples of S before each of R
        return work.counts_below(incoming.times("s"), incoming.times("r"), equal=equal)

    if kind.direction == "backward":
        return below(kind.allow_exact), None
    if kind.direction == "forward":
        return None, below(not kind.allow_exact)
    behind = below(kind.allow_exact)
    return behind, behind if kind.allow_exact else below(True)


def nearest_partners(at: Rows, limit: Rows | None, groups: Groups, work: Work, *, last: bool) -> Rows:
    """For each tuple of R the ``last`` row of S of its group before row ``at``, which does not fall, and from ``limit``
    on; or the first one from ``at`` on, and before ``limit``: int64 (r,), −1 for none. ``limit``: None for all rows;
    then ``at`` is overwritten if there is one group.
    """
    rows = groups.sizes[1]
    if groups.is_one and limit is not None:
        return np.where(at > limit, at - 1, -1) if last else np.where(at < limit, at, -1)
    if groups.is_one:
        at -= last
        if not last:
            at[np.searchsorted(at, rows):] = -1
        return at
    parts = _parts(len(at), groups.count, work)
    cuts = [int(at[part.start]) for part in parts[1:]]
    seen = [0, *cuts] if last else [*cuts, rows]
    spans = list(pairwise(seen))
    noted = _noted(spans, 1, groups, work) if last else _noted(spans[::-1], -1, groups, work)[::-1]
    loop, partner = work.loops["last_of_group" if last else "first_of_group"], np.empty(len(at), np.int64)
    limits, groups_r, groups_s = _EVERY if limit is None else limit, groups.of("r"), groups.of("s")
    work.map(lambda n: loop(at[parts[n]], limits[parts[n]], groups_r[parts[n]], groups_s, seen[n], noted[n],
                            partner[parts[n]]), range(len(parts)))
    return partner


def _parts(rows: int, groups: int, work: Work) -> list[slice]:
    """Parts of so many rows of R, no more than that noting a row for each of ``groups`` in each costs little."""
    n = max(1, min(work.team.size, rows // max(work.tuning.table_part, 4 * groups)))
    return [slice(*of) for of in pairwise([rows * i // n for i in range(n + 1)])]


def _noted(spans: list[tuple[int, int]], step: int, groups: Groups, work: Work) -> list[Rows]:
    """For each group the row that is nearest behind none, one, two, … of the ``spans`` of S's rows; −1 for none.

    ``step``: 1 for the last row of each, −1 for the first.
    """
    loops, of_s, found = work.loops, groups.of("s"), [np.full(groups.count, -1) for _ in range(len(spans) + 1)]
    work.map(lambda n: loops["note_rows"](of_s[slice(*spans[n])], spans[n][0], step, found[n + 1]), range(len(spans)))
    for before, after in pairwise(found):
        np.copyto(after, before, where=after < 0)
    return found
