"""Band joins of whole tables: pairs by equal keys and ranges of a sorted key, which is searched once for each tuple of
one stream.

The tuples that may be partners of a tuple are a range of the other stream sorted by its equal keys, then by one key;
or, within windows, by its equal keys, then by arrival. Either stream may be the one that is sorted. Two inequalities of
opposite directions, as in overlapping intervals, ``r.start < s.end AND s.start < r.end``, would each select half of all
tuples. They are divided by a third comparison, of ``s.start`` with ``r.start``: where it lies above, s.start is in an
interval (r.start, r.end); where not, r.start is in an interval [s.start, s.end). So each pair is in exactly one of two
ranges, and in few others, if the intervals are no longer than they are many. Two inequalities on keys that cannot be
compared with each other, as in ``r.salary > s.salary AND r.tax < s.tax`` (an IEJoin; Khayyat et al., Lightning fast and
space efficient inequality joins, VLDB 2015), are a range by the first, in which a tree skips what the second rules out
(`SecondKey`). What the ranges do not decide is verified. The search with the fewest candidates, by a sample, is taken.

Some joins divide tables or conditions first, and join the parts: slices of the longer table, buckets of a key, the
alternatives of an OR.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, combinations, groupby
from typing import TypeVar

import numpy as np

from splitjoin.base import threads
from splitjoin.base.arrays import Mask, Rows
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.plan.keys import Codes, ExactKey

from ..arrival import MergedTables
from ..device import TablePairs
from ..merging import aligned
from ..slices import Slices
from .condition import Bounds, Condition
from .key_groups import Groups
from .key_ranges import SecondKey, partitioned_ranges, ranges_by_row
from .pair_order import NO_PAIR, PairOrder
from .table_job import TableAlgorithm, TableJob
from .table_windows import Spans
from .table_work import Work, plain_work

T = TypeVar("T")
#: Probes and stored tuples of the samples that tell how many candidates a way has.
_PROBES, _STORED = 4096, 1 << 14
#: Times as many rows as a sample has from which on one of a sample tells how many have a group.
_MANY = 8
_MOST = 2**64 - 1
#: Nanoseconds: a candidate that is made and verified; a candidate of compiled loops, and its row.
_CANDIDATE, _PAIR = 30.0, 60.0
#: Candidates that are verified for each pair that there is room for.
_VERIFIED = 16
#: Times as many candidates as a sample has told, from which on another way is looked for.
WRONG = 4
#: Candidates of another way that take as long as a pair that a second key finds, with what it rules out.
_RULED_OUT = 2.0
#: Times that a table is longer than the other one from which on it is joined slice by slice, and slices of the usual
#: size in each of these.
_UNEVEN, _SLICES = 16, 2
#: The fewest buckets that are worth to read and sort the keys once more.
_FEWEST = 16
#: The most alternatives: each sorts the keys anew.
_ALTERNATIVES = 6
#: Times fewer candidates of all alternatives than of what these have in common, from which on they are joined apart.
_FEWER = 1.5


class TooMany(Exception):
    """A way has more candidates than were allowed."""


@dataclass(frozen=True)
class _Search:
    """One search of stream ``stored``, sorted by the key of a slot, with an interval for each tuple of the other.

    ``decides``: the slots of S whose bounds it decides. ``second``: bounds on another key that it decides as well, by
    skipping what they rule out.
    """

    stored: Side
    keys: Codes
    low: Codes
    high: Codes
    decides: frozenset[int]
    second: Bounds | None = None


@dataclass(frozen=True)
class WayKind:
    """A way by its ``name``, and the stored stream and the slots that are decided of each of its ``searches``."""

    name: str
    searches: tuple[tuple[Side, frozenset[int]], ...]


@dataclass(frozen=True)
class Way:
    """Searches that together hold each pair once.

    ``searches``: none for the ranges of equal keys within the windows. ``candidates``: about how many they have.
    ``weight``: how many candidates of other ways one takes as long as.
    """

    searches: tuple[_Search, ...]
    name: str
    candidates: float = 0.0
    weight: float = 1.0

    @property
    def kind(self) -> WayKind:
        """The name, the stored streams and the slots of this way, by which `way_of_kind` finds it over other tuples."""
        return WayKind(self.name, tuple((search.stored, search.decides) for search in self.searches))

    def left(self, condition: Condition) -> list[list[Bounds]]:
        """For each search, or the only range without one, the bounds that it does not decide."""
        every = condition.bounds("s")
        return [[b for b in every if not b.slots_s <= s.decides] for s in self.searches] or [every]


def ways(condition: Condition, groups: Groups, visible: Spans, work: Work) -> list[Way]:
    """The ways to find all pairs, with the fewest candidates first."""
    found = [Way((), "equal keys" if condition.points else "all pairs")]
    sides: tuple[Side, ...] = ("s", "r")
    if condition.decided and len(condition.bounds("s")) == 1:
        sides = ("s",)  # both ranges hold the pairs alone
    for side in sides:
        found += _ranges(condition, side)
    found += _divided(condition, work)
    asked = [(side, most) for side in SIDES for most in (_PROBES, _STORED)]
    samples = dict(zip(asked, work.map_short(lambda of: _sample(groups, *of), asked), strict=True))

    def counted(way: Way) -> Way:
        return replace(way, candidates=_count(way, groups, visible, samples, work))

    # The first has no searches but the windows, which threads share themselves.
    known = [counted(found[0]), *work.map_short(counted, found[1:])]
    if min(way.candidates for way in known) > sum(groups.sizes):
        known += work.map_short(counted, list(_two_keys(condition, work)))
    return sorted(known, key=lambda way: way.weight * way.candidates)


def ways_of(job: TableJob) -> list[Way]:
    """The `ways` of the whole condition of ``job``, found once."""
    if job.ways is None:
        job.ways = ways(job.condition, job.groups, job.visible, job.work)
    found: list[Way] = job.ways
    return found


def way_of_kind(kind: WayKind, condition: Condition, work: Work) -> Way | None:
    """The way of this ``kind``, which one of the same plan over other tuples has; None where bounds of these tuples
    rule out nothing, so that they have no such way.
    """
    if not kind.searches:
        return Way((), kind.name)
    found = chain(_ranges(condition, kind.searches[0][0]), _divided(condition, work), _two_keys(condition, work))
    return next((way for way in found if way.kind == kind), None)


def _ranges(condition: Condition, side: Side) -> Iterator[Way]:
    """The ranges of stream ``side`` by one of its keys."""
    for b in condition.bounds(side):
        yield Way((_Search(side, b.keys, b.low, b.high, b.slots_s),), f"a range of {side}")


def _two_keys(condition: Condition, work: Slices) -> Iterator[Way]:
    """Two inequalities as a range by one and a tree that skips what the other rules out."""
    single = [b for b in condition.bounds("s") if len(b.ends(work)) == 1]
    for first, second in combinations(single, 2):
        yield Way((_Search("s", first.keys, first.low, first.high, first.slots_s | second.slots_s, second),),
                  "a range of s and a second key", weight=_RULED_OUT)


def _divided(condition: Condition, work: Slices) -> Iterator[Way]:
    """Two inequalities of opposite directions as two searches."""
    plan = condition.plan
    bounds = [(b, b.ends(work)) for b in condition.bounds("s")] if len(condition.bounds("s")) > 1 else []
    for above, below in ((a, b) for a, end in bounds for b, other in bounds if end == {"high"} and other == {"low"}):
        first = above.tests[0]
        for second in below.tests:
            # S's key ``above`` is compared with R's key of the other inequality, moved to the codes of the former.
            slot = plan.tests[second].r
            shift = _shift(plan.slots_r[slot].key, plan.slots_s[plan.tests[first].s].key)
            mine = condition.keys("r", slot)
            higher = _Search("s", above.keys, *_above(above, mine, shift, condition.possible_r, work), above.slots_s)
            (back,) = [b for b in condition.bounds("r") if second in b.tests]
            not_higher = _Search("r", mine, *_at_most(back, above.keys, shift, work), back.slots_s)
            yield Way((higher, not_higher), "two ranges")


def _above(bounds: Bounds, codes: Codes, shift: int, possible: Mask, work: Slices) -> tuple[Codes, Codes]:
    """The intervals of ``bounds`` for the tuples of R that are ``possible``, as far as they lie above R's ``codes``,
    which are moved by ``shift``.
    """
    low, high = np.empty(len(codes), np.uint64), np.empty(len(codes), np.uint64)

    def some(mine: slice) -> None:
        moved = _moved(codes[mine], shift)
        # A code of R's that is below all of S's has moved to S's least one, which is above it.
        least = np.where(codes[mine] < np.uint64(min(max(-shift, 0), _MOST)), np.uint64(0), moved + np.uint64(1))
        none = (moved == np.uint64(_MOST)) | ~possible[mine]
        low[mine] = np.where(none, np.uint64(1), np.maximum(bounds.low[mine], least))
        high[mine] = np.where(none, np.uint64(0), bounds.high[mine])

    work.each(len(codes), some)
    return low, high


def _at_most(bounds: Bounds, keys: Codes, shift: int, work: Slices) -> tuple[Codes, Codes]:
    """The intervals of ``bounds`` for the tuples of S with ``keys``, as far as R's codes in them, which are moved by
    ``shift``, are not below these.
    """
    low, high = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint64)

    def some(mine: slice) -> None:
        least = _moved(keys[mine], -shift)
        beyond = _moved(least, shift) < keys[mine]  # no code of R's reaches so high
        low[mine] = np.maximum(bounds.low[mine], least)
        high[mine] = np.where(beyond, np.uint64(0), bounds.high[mine])

    work.each(len(keys), some)
    return low, high


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


def _count(way: Way, groups: Groups, visible: Spans, samples: Mapping[tuple[Side, int], tuple[Rows, int]],
           work: Work) -> float:
    """About how many candidates ``way`` has, by ``samples`` of both streams (`_sample`)."""
    if not way.searches and groups.is_one:
        return float(visible.pairs)
    total = 0.0
    for search in way.searches or (_by_row(visible, groups.sizes[1]),):
        probing = other_side(search.stored)
        (some, probes), (kept, tuples) = samples[probing, _PROBES], samples[search.stored, _STORED]
        numbers = groups.numbers(probing), groups.numbers(search.stored)
        if not groups.is_one:
            numbers = numbers[0][some], numbers[1][kept]
        ranges = ranges_by_row(numbers, groups.count, search.keys[kept], search.low[some], search.high[some],
                               plain_work())
        pairs = float(ranges.pairs)
        if (second := search.second) is not None:
            within = SecondKey(work.loops, second.keys[kept][ranges.order], second.low[some], second.high[some])
            pairs = within.count(np.arange(len(some)), ranges.start, ranges.end)
        total += pairs * (probes / max(len(some), 1)) * (tuples / max(len(kept), 1))
    return total


def _sample(groups: Groups, side: Side, most: int) -> tuple[Rows, int]:
    """At most so many rows of stream ``side`` that have a group, and about how many have one."""
    n = groups.sizes[side == "s"]
    if n > (1 if groups.is_one else _MANY) * most:
        some = np.random.default_rng(1).integers(0, n, 2 * most)
        mine = some if groups.is_one else some[groups.of(side)[some] >= 0]
        if len(mine) >= most // 4:  # enough of them to tell how many there are
            return np.sort(mine[:most]), n * len(mine) // len(some)
    rows = np.flatnonzero(groups.of(side) >= 0)
    if len(rows) <= most:
        return rows, len(rows)
    return rows[np.sort(np.random.default_rng(1).integers(0, len(rows), most))], len(rows)


def pairs_of(way: Way, condition: Condition, groups: Groups, visible: Spans, take: Callable[[Rows, Rows], T],
             work: Work, most: float = math.inf) -> tuple[list[T], int]:
    """The results of ``take`` for the row ids (r, s) of all pairs, part by part, by ``way``; and how many candidates.

    Threads call ``take`` at the same time. Raises `TooMany` once there are more candidates than ``most``.
    """
    tried, taken, made_ever, lock = 0, list[T](), [0], threads.lock()
    every = visible.hold_all
    for search, left in zip(way.searches or (None,), way.left(condition), strict=True):
        probing: Side = "r" if search is None else other_side(search.stored)
        inside = search is None or every
        tasks = _tasks(search, condition, groups, visible, work)

        def run(task: Callable[[], Iterator[tuple[Rows, Rows]]], probing: str = probing, inside: bool = inside,
                left: Sequence[Bounds] = left) -> tuple[int, list[T]]:
            seen, made = 0, list[T]()
            for probe, stored in task():
                r, s = (probe, stored) if probing == "r" else (stored, probe)
                seen += len(r)
                with lock:
                    made_ever[0] += len(r)
                if made_ever[0] > most:
                    raise TooMany
                r, s = _verified(left, None if inside else visible, r, s, work)
                if not condition.decided and len(r):
                    true = condition.true(r, s)
                    r, s = r[true], s[true]
                made.append(take(r, s))
            return seen, made

        for seen, made in work.map(run, tasks):
            tried += seen
            taken += made
    return taken, tried


def _tasks(search: _Search | None, condition: Condition, groups: Groups, visible: Spans,
           work: Work) -> list[Callable[[], Iterator[tuple[Rows, Rows]]]]:
    """Functions that give the probes and the stored tuples in the ranges of ``search``, some at a time: one for each
    partition.
    """
    if search is None:
        _ = visible.pairs  # which is known from here on
        search = _by_row(visible, len(condition.possible_s))
        visible.forget()
    numbers = groups.numbers(other_side(search.stored)), groups.numbers(search.stored)
    found = partitioned_ranges(numbers, groups.count, search.keys, search.low, search.high, work)
    if search.second is not None:
        second = SecondKey(work.loops, search.second.keys[found.order], search.second.low, search.second.high)
        return [partial(found.pairs_within, part, work.tuning.table_pairs, second) for part in found.parts]
    return [partial(found.pairs, part, work.tuning.table_pairs) for part in found.parts]


def _by_row(visible: Spans, rows: int) -> _Search:
    """The ranges of S's rows that are ``visible`` as a search whose key is the row id."""
    return _Search("s", np.arange(rows, dtype=np.uint64), *visible.intervals, frozenset())


def _verified(left: Sequence[Bounds], visible: Spans | None, r: Rows, s: Rows, work: Work) -> tuple[Rows, Rows]:
    """Those of the pairs, in arrays that are overwritten, that are within all bounds of ``left``, and ``visible``."""
    if not left and visible is None:
        return r, s
    # Few steps, as threads wait for the interpreter's lock between them.
    met = np.ones(len(r), np.uint8)
    for b in left:
        work.loops["within"](r, s, b.keys, b.low, b.high, met)
    if visible is not None:
        work.loops["in_windows"](r, s, aligned(visible.start), aligned(visible.end), met)
    n = work.loops["keep_met"](met, r, s)
    return r[:n], s[:n]


@dataclass(frozen=True)
class Branch:
    """A join whose pairs are some of those of a query: by ``way``, but those of ``earlier`` ones."""

    way: Way
    condition: Condition
    groups: Groups
    earlier: Sequence[Condition] = ()

    def own(self, r: Rows, s: Rows) -> tuple[Rows, Rows]:
        """Those of the pairs (n,), all of which are of this branch, that are of no earlier one."""
        for condition in self.earlier:
            mine = ~condition.holds(r, s)
            r, s = r[mine], s[mine]
        return r, s


def fits(way: Way, condition: Condition, visible: Spans, room: int) -> bool:
    """True if memory with ``room`` for so many pairs seems to hold those of ``way``, which are some of its candidates
    if these are verified.
    """
    return way.candidates <= (room if _is_exact(way, condition, visible) else _VERIFIED * room)


def cost_of(branches: Sequence[Branch], visible: Spans) -> float:
    """Nanoseconds for the candidates of all ``branches`` that are verified; others are pairs."""
    if any(one.groups.is_one and not one.way.searches for one in branches):
        return math.inf  # every pair, which compiled loops compare far faster
    return _CANDIDATE * sum(one.way.candidates for one in branches if not _is_exact(one.way, one.condition, visible))


def _is_exact(way: Way, condition: Condition, visible: Spans) -> bool:
    """True if all candidates of ``way`` are pairs."""
    return condition.decided and (not way.searches or visible.hold_all) and not any(way.left(condition))


def plan_of(names: Sequence[str], work: Work) -> str:
    """A plan by the ways with these ``names``, in words."""
    return f"rows of whole tables, by a band join, {' or '.join(names)}{work.text}"


class SearchJoin(TableAlgorithm):
    """All pairs, or those that decide whether there is one, by ranges of sorted keys, in one or several branches."""

    shapes = ("pairs", "exists")

    @property
    @abstractmethod
    def branches(self) -> list[Branch]:
        """Joins that together hold each pair once; none if it does not suit."""

    @property
    def suits(self) -> bool:
        job = self.job
        return bool(self.branches) and all(fits(one.way, one.condition, job.visible, job.room) for one in self.branches)

    @property
    def cost(self) -> float:
        return cost_of(self.branches, self.job.visible)

    @property
    def explain(self) -> str:
        return plan_of([name for name, _ in groupby(one.way.name for one in self.branches)], self.job.work)

    def run(self) -> TablePairs | None:
        candidates = sum(one.way.candidates for one in self.branches)
        with suppress(TooMany):  # the sample told too little
            return self._pairs(max(len(self.job.incoming), WRONG * candidates))
        return None

    def _pairs(self, most: float) -> TablePairs:
        """The pairs of all branches. Raises `TooMany` once one of them has more candidates than ``most``, or there are
        more pairs than there is room for.
        """
        job, branches = self.job, self.branches
        query, incoming, work = job.query, job.incoming, job.work
        candidates = sum(one.way.candidates for one in branches)
        job.share(candidates * _PAIR)
        plan = self.explain
        work.begin(plan, candidates)
        order, lock, made, tried = PairOrder(query, incoming, work), threads.lock(), 0, 0

        def pack(one: Branch, r: Rows, s: Rows) -> Rows:
            nonlocal made
            r, s = one.own(r, s)
            with lock:
                made += len(r)
            if made > job.room and first is None:
                raise TooMany
            packed = order.packed(r, s)
            if first is None:
                return packed
            with lock:
                np.minimum.at(first, r, packed)
            return packed[:0]

        # The first pair of each tuple of R, where no others decide.
        first = np.full(len(incoming.r), NO_PAIR) if query.kind.needs_few_pairs else None
        packed = list[Rows]()
        for one in branches:
            some, seen = pairs_of(one.way, one.condition, one.groups, job.visible, partial(pack, one), work, most)
            packed += some
            tried += seen
        r, s, at = order.unpacked(packed if first is None else [first[first < NO_PAIR]])
        # Of rows that are the pairs, positions are asked for with items only.
        return TablePairs(r, s, None if query.is_pairs else at, plan=plan, counters=job.counters(tried, len(r)),
                          work=work)


class BandJoin(SearchJoin):
    """By the way with the fewest candidates; where it has many more than a sample told, by the next one."""

    name = "band join"

    def __init__(self, job: TableJob):
        super().__init__(job)
        self._at = 0

    @cached_property
    def _ways(self) -> list[Way]:
        job = self.job
        return [way for way in ways_of(job) if fits(way, job.condition, job.visible, job.room)]

    @property
    def branches(self) -> list[Branch]:
        job = self.job
        return [Branch(way, job.condition, job.groups) for way in self._ways[self._at:self._at + 1]]

    def run(self) -> TablePairs | None:
        while self.branches and self.cost <= self.limit:
            with suppress(TooMany):  # the next way, from the beginning
                return self._pairs(self._allowed())
            self._at += 1
        return None

    def _allowed(self) -> float:
        """The candidates up to which the way goes on: what is little work, or not many times what was expected, or less
        than what the next way or a session is expected to take.
        """
        way, *others = self._ways[self._at:]
        better = others[0].candidates if others else math.inf
        if not _is_exact(way, self.job.condition, self.job.visible):
            better = min(better, self.limit / _CANDIDATE)
        return max(len(self.job.incoming), WRONG * way.candidates, better)


class SlicedJoin(TableAlgorithm):
    """The pairs of the shorter table with each slice of a much longer one, so that codes and partitions are those of a
    slice. All are found in the way that suits the first one.
    """

    name = "band join of slices"
    shapes = ("pairs",)

    @property
    def suits(self) -> bool:
        """True if to join the shorter table with each slice costs little."""
        few, many = sorted((len(self.job.incoming.r), len(self.job.incoming.s)))
        return not self.job.visible.limits and many >= 2 * _SLICES * self.job.work.size and many >= _UNEVEN * few

    @property
    def explain(self) -> str:
        return plan_of([] if self._way is None else [self._way.name], self.job.work)

    _way: WayKind | None = None

    def run(self) -> TablePairs | None:
        query, incoming, work, room = self.job.query, self.job.incoming, self.job.work, self.job.room
        side = SIDES[len(incoming.s) > len(incoming.r)]
        rows, few, least = len(incoming.table(side)), len(incoming.table(other_side(side))), _SLICES * work.size
        size = max(least * min(work.threads, max(1, rows // (2 * least))), _UNEVEN // 4 * few)
        every, order, most = self.job.planned, PairOrder(query, incoming, work), 0.0
        packed, tried = list[Rows](), 0

        def find(at: int) -> bool:
            """Find the pairs of a slice. Returns False if they are better found otherwise."""
            nonlocal most, tried
            planned = every.slice(side, at, size)
            part = MergedTables(None, *(planned.tables[of] for of in SIDES))
            shown, condition = Spans(query, part, work), Condition(query, part, work, planned)
            groups = condition.groups()
            if self._way is None:
                mine = ways(condition, groups, shown, work)[0]
                self._way, most = mine.kind, max(len(part), WRONG * mine.candidates)
                if not fits(mine, condition, shown, room) or not (
                        cost_of([Branch(mine, condition, groups)], shown) <= self.limit * len(part) / len(incoming)):
                    return False
                work.begin(self.explain, mine.candidates * rows / min(size, rows))
            else:
                mine = way_of_kind(self._way, condition, work) or ways(condition, groups, shown, work)[0]
            with suppress(TooMany):
                made, seen = pairs_of(mine, condition, groups, shown, lambda r, s: order.packed(
                    r + at if side == "r" else r, s + at if side == "s" else s), work, most)
                packed.extend(made)
                tried += seen
                return sum(map(len, packed)) <= room
            return False

        if not all(find(at) for at in range(0, rows, size)):
            return None
        r, s, at = order.unpacked(packed)
        return TablePairs(r, s, None if query.is_pairs else at, plan=self.explain, counters=self.job.counters(
            tried, len(r)), work=work)


class BucketJoin(SearchJoin):
    """Two bands as two joins: by equal buckets of one key, and ranges of another one within them.

    A sorted range decides one band alone, so where each band lets many pairs through, it has too many candidates. In
    buckets as wide as the widest interval of a key, each interval meets one bucket, or that and the next; so a pair is
    of the first bucket of its interval, or of the second. In either case buckets are equal keys (the cells of Böhm et
    al., Epsilon grid order, SIGMOD 2001). The key that has most buckets is taken.
    """

    name = "epsilon grid join"

    @cached_property
    def branches(self) -> list[Branch]:
        job, condition = self.job, self.job.condition
        bounds = condition.bounds("s")
        if condition.points or len(bounds) < 2 or not len(condition.possible_r) or not len(condition.possible_s):
            return []
        widths = [_width(b, condition) for b in bounds]
        counts = [_buckets(b, condition, width) for b, width in zip(bounds, widths, strict=True)]
        at = int(np.argmax(counts))
        if counts[at] < _FEWEST:
            return []
        chosen, width = bounds[at], np.uint64(widths[at])
        first, last, of_s = chosen.low // width, chosen.high // width, chosen.keys // width
        found, crosses = list[Branch](), condition.possible_r & (last > first)
        for mine, possible in ((first, condition.possible_r), (first + np.uint64(1), crosses)):
            part = copy(condition)
            part.possible_r, part.points = possible, [(mine, of_s)]
            part.forget_groups()
            groups = part.groups()
            way = ways(part, groups, job.visible, job.work)[0]
            found.append(Branch(replace(way, name=f"{way.name} in buckets of another key"), part, groups))
        return found


def _width(bounds: Bounds, condition: Condition) -> int:
    """The number of keys in the widest interval of a tuple that may have a partner; 0 if there is none."""
    some = condition.possible_r & (bounds.low <= bounds.high)
    return int((bounds.high - bounds.low).max(initial=0, where=some)) + 1 if some.any() else 0


def _buckets(bounds: Bounds, condition: Condition, width: int) -> int:
    """The number of buckets of this ``width`` between the least and the greatest key of S; 0 without a width."""
    if width < 1 or width >= 2**63 or not condition.possible_s.any():
        return 0
    least = int(bounds.keys.min(initial=2**64 - 1, where=condition.possible_s))
    return (int(bounds.keys.max(initial=0, where=condition.possible_s)) - least) // width


class DisjunctionJoin(SearchJoin):
    """A condition with OR as several joins: each pair is of the first alternative that holds of it.

    The alternatives of ``a = b OR lo <= x AND x < hi`` are the equality and the range, each of which has a range of
    sorted keys, whereas the whole condition has none, and would have all pairs compared.
    """

    name = "union of disjuncts"

    @cached_property
    def branches(self) -> list[Branch]:
        job, found = self.job, list[Branch]()
        conditions = job.condition.alternatives(_ALTERNATIVES)
        for at, condition in enumerate(conditions if len(conditions) > 1 else ()):
            groups = condition.groups()
            found.append(Branch(ways(condition, groups, job.visible, job.work)[0], condition, groups, conditions[:at]))
        return found

    @property
    def suits(self) -> bool:
        """True if it has far fewer candidates than what all alternatives have in common, which are not few."""
        common = ways_of(self.job)[0].candidates
        return common > len(self.job.incoming) and super().suits and (
            _FEWER * sum(one.way.candidates for one in self.branches) <= common)

    @property
    def limit(self) -> float:
        """A session would compare all pairs."""
        return self.job.nested_cost
