"""Aggregates over whole tables by ranges of rows in an order, in O(n log n), without pairs.

Where a condition is equalities, and one inequality or band or a window, the partners of a tuple of R are one range of S
in the order of its groups of equal keys, and within them of one key or of arrival. `RangeTerms` folds such ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import too_many
from splitjoin.lang.aggregate_functions import Term
from splitjoin.lang.eval.vector import Vector, evaluate, joined_halves
from splitjoin.plan.keys import Codes

from ..device import TableFolds, TablePairs
from ..range_terms import RangeTerms
from .condition import Bounds
from .hash_join import KeyGroups, groups_of, terms_of
from .key_groups import Groups
from .key_ranges import Ranges, ranges_by_row
from .pair_order import PairOrder
from .table_job import TableAlgorithm, TableJob
from .table_work import Work, aligned

__all__ = ["PrevailingJoin", "RangeFold"]

Ints = npt.NDArray[np.int64]
#: Bytes of a pair while pairs are put in order.
_PAIR_BYTES = 64
_SIGN = np.uint64(1 << 63)
#: Kinds of terms of whole numbers of which one pass makes the total of each key.
_TOTALS = {"rows", "count", "sum", "least", "greatest"}


@dataclass(frozen=True)
class _Partners:
    """Ranges of S for tuples of R, or for ``groups`` of them, and how they were found in words. ``by_arrival``: True
    if the row ids of each range rise.
    """

    how: str
    ranges: Ranges
    by_arrival: bool


class RangeFold(TableAlgorithm):
    """The terms of aggregates by ranges of sorted rows, or by a total for each key."""

    name = "range aggregation"
    shapes = ("aggregates",)
    has_prevailing = True

    @cached_property
    def _totals(self) -> tuple[KeyGroups, Mapping[Term, Vector | None]] | None:
        """Groups of equal keys, and the values of each term, where a total of each group decides."""
        job, terms = self.job, [term for a in self.job.query.aggregates for term in a.terms]
        if not job.visible.hold_all or not all(a.reads_ranges for a in job.query.aggregates) or not all(
                term.kind in _TOTALS and term.value in (None, term.of) for term in terms):
            return None
        equal = terms_of(job.query.predicate)
        if equal is None or equal[1] is not None:
            return None
        values = {term: None if term.of is None else evaluate(term.of, job.incoming.s) for term in terms}
        if any(v is not None and v.values.dtype != np.int64 and term.kind != "count" for term, v in values.items()):
            return None
        groups = groups_of(equal[0], job.incoming, None, job.work)
        return None if groups is None else (groups, values)

    @cached_property
    def _found(self) -> _Partners | None:
        return _partners(self.job)

    @property
    def suits(self) -> bool:
        return self._totals is not None or self._found is not None

    @property
    def explain(self) -> str:
        how = "totals of equal keys" if self._totals is not None else self._found.how if self._found else ""
        return f"rows without pairs, by {how}"

    def run(self) -> TableFolds:
        job, rows, plan = self.job, len(self.job.incoming.r), self.explain
        job.work.begin(plan)
        is_inner, work, every = job.query.kind.is_inner, job.work, np.arange(rows)
        if self._totals is not None:
            groups, values = self._totals
            counts = _GroupFold("count", None, groups, work)
            bases = work.where(rows, lambda mine: counts.counts(mine) > 0) if is_inner else every
            folds = {term: counts if v is None else _GroupFold(term.kind, v, groups, work)
                     for term, v in values.items()}
            return self._answer(plan, bases, lambda: counts.counts(bases),
                                lambda term, mine: folds[term].of(mine, bases), lambda mine: np.empty(0, np.int64))
        assert self._found is not None
        found, order = self._found, self._found.ranges.order
        start, end = found.ranges.start, found.ranges.end
        # Base tuples are decided in their order; those without partners are no rows of an inner join.
        bases = work.where(rows, lambda mine: end[mine] > start[mine]) if is_inner else every
        if len(bases) < rows:
            start, end = work.taken(start, bases), work.taken(end, bases)
        end = np.maximum(start, end)
        del self.__dict__["_found"], job.__dict__["condition"]  # before the terms take as much memory
        table = job.incoming.s
        terms = RangeTerms(order, start, end, lambda e: evaluate(e, table), by_arrival=found.by_arrival, work=work)
        folded = {term: terms.fold(term) for a in job.query.aggregates if a.reads_ranges for term in a.terms}

        def partners(mine: slice) -> Ints:
            rows = _rows_in(Ranges(order, start, end), mine)
            if not found.by_arrival:
                lengths = end[mine] - start[mine]
                rows = rows[np.lexsort((rows, np.repeat(np.arange(len(lengths)), lengths)))]
            return rows

        return self._answer(plan, bases, lambda: end - start, lambda term, mine: _part(folded[term], mine), partners)

    def _answer(self, plan: str, bases: Ints, lengths: Callable[[], Ints], term: Callable[[Term, slice], Vector],
                partners: Callable[[slice], Ints]) -> TableFolds:
        counters = self.job.counters(len(bases), 0)
        del counters["matches"]
        return TableFolds(bases, lengths, term, partners, plan=plan, work=self.job.work, counters=counters)


class PrevailingJoin(TableAlgorithm):
    """All pairs of a window join with prevailing rows, by ranges of rows of equal keys."""

    name = "window join with prevailing rows"
    shapes = ("pairs",)
    has_prevailing = True

    @cached_property
    def _found(self) -> _Partners | None:
        return _partners(self.job) if self.job.query.prevailing else None

    @property
    def suits(self) -> bool:
        return self._found is not None

    @property
    def explain(self) -> str:
        return f"rows of whole tables, by a {self.name}{self.job.work.text}"

    def run(self) -> TablePairs:
        assert self._found is not None
        job, ranges = self.job, self._found.ranges
        n, query = ranges.pairs, job.query
        job.work.begin(self.explain, n)
        if n > job.room:
            raise too_many(n, n * _PAIR_BYTES, is_rows=query.is_pairs)
        order = PairOrder(query, job.incoming, job.work)
        r, s, at = order.unpacked([order.packed(np.repeat(np.arange(len(ranges.start)), ranges.end - ranges.start),
                                                _rows_in(ranges, slice(None)))])
        return TablePairs(r, s, None if query.is_pairs else at, plan=self.explain, counters=job.counters(n, n),
                          work=job.work)


def _partners(job: TableJob) -> _Partners | None:
    """None where the partners of a tuple of R are not one range."""
    condition, visible, work = job.condition, job.visible, job.work
    bounds = condition.bounds("s")
    if not condition.decided or len(bounds) > 1:
        return None
    start, end = (None, None) if visible.hold_all else (visible.start, visible.end)
    if bounds and job.query.prevailing:
        return None
    if bounds and (arrival := _in_order_of_arrival(bounds[0], work)) is not None:
        start = arrival[0] if start is None else np.maximum(start, arrival[0])
        end = arrival[1] if end is None else np.minimum(end, arrival[1])
    elif bounds:
        if start is not None:
            return None
        ranges = ranges_by_row(condition.groups(), "s", bounds[0].keys, bounds[0].low, bounds[0].high, work)
        return _Partners("ranges of sorted keys", ranges, by_arrival=False)
    how = "ranges of rows by arrival" if start is not None else "equal keys"
    return _Partners(how, _by_group(condition.groups(), start, end, job), by_arrival=True)


def _rows_in(ranges: Ranges, mine: slice) -> Ints:
    """The row ids in some of the ``ranges``, one behind the other."""
    lengths = ranges.end[mine] - ranges.start[mine]
    before = np.cumsum(lengths) - lengths
    rows: Ints = ranges.order[np.arange(int(lengths.sum())) + np.repeat(ranges.start[mine] - before, lengths)]
    return rows


def _in_order_of_arrival(bounds: Bounds, work: Work) -> tuple[Ints, Ints] | None:
    """The row ids of S from which on, and before which, each tuple of R has its partners, where the keys of S rise, and
    those of R's bounds too, as those of times do.
    """
    def rise(codes: Codes) -> bool:
        return work.every(len(codes), lambda mine: bool(
            (codes[mine.start + 1:mine.stop + 1] >= codes[mine][:len(codes) - mine.start - 1]).all()))

    keys, low, high = bounds.keys, bounds.low, bounds.high
    if len(keys) and keys[0] and not keys[-1]:  # the last ones have a key that no tuple of R can meet, or none
        last = int(np.argmax(keys == 0))
        if keys[last:].any() or (len(low) and not low[0]):
            return None
        keys = keys[:last]
    empty = low > high
    if empty.any():
        before = np.maximum.accumulate(np.where(empty, int(np.argmin(empty)), np.arange(len(low))))
        low, high = low[before], high[before]
    if not (rise(keys) and rise(low) and rise(high)):
        return None
    codes, start, end = ((of ^ _SIGN).view(np.int64) for of in (keys, low, high))
    start, end = work.counts_below(codes, start), work.counts_below(codes, end, equal=True)
    return start, np.where(empty, start, end) if empty.any() else end


def _by_group(groups: Groups, start: Ints | None, end: Ints | None, job: TableJob) -> Ranges:
    """For each tuple of R the range of its group from row id ``start`` of S to before ``end``, which both rise; None
    for all rows. Where the query asks for prevailing rows, the row of the group before ``start`` is in it, too.
    """
    rows, stored, work = len(job.incoming.r), len(job.incoming.s), job.work
    if groups.is_one:
        first = np.zeros(rows, np.int64) if start is None else start
        return _prevailing(Ranges(np.arange(stored), first, np.full(rows, stored) if end is None else end), 0, job)
    of_r, of_s = groups.of("r"), groups.of("s")
    begins = np.zeros(groups.count + 1, np.int64)
    np.cumsum(np.bincount(of_s + 1, minlength=groups.count + 1)[1:], out=begins[1:])
    order, ends = np.empty(int(begins[-1]), np.int64), begins[:-1].copy()
    work.loops["order_groups"](of_s, ends, order)

    def places(upto: Ints | None, every: Ints) -> Ints:
        if upto is None:
            return work.made(rows, np.int64, lambda mine: np.where(of_r[mine] >= 0, every[of_r[mine]], 0))
        found = np.empty(rows, np.int64)
        work.loops["places_in_groups"](upto, of_r, of_s, begins[:-1].copy(), found)
        return found

    return _prevailing(Ranges(order, places(start, begins), places(end, ends)), places(None, begins), job)


def _prevailing(ranges: Ranges, first: Ints | int, job: TableJob) -> Ranges:
    """``ranges`` that begin a position earlier, but not before ``first``, where the query asks for prevailing rows."""
    if not job.query.prevailing:
        return ranges
    return Ranges(ranges.order, np.maximum(ranges.start - 1, first), np.maximum(ranges.start, ranges.end))


def _part(v: Vector, mine: slice) -> Vector:
    return Vector(v.values[mine], v.valid[mine], v.denominator)


class _GroupFold:
    """An aggregate's term of a ``kind`` over the tuples of S of each group; ``vector``: its values for S, None of a
    count of rows.
    """

    def __init__(self, kind: str, vector: Vector | None, groups: KeyGroups, work: Work):
        self._kind, self._denominator = kind if vector is not None else "count", 1
        self._groups, keys, n, nothing = groups, groups.s, groups.count, np.empty(0, np.int64)
        if vector is not None:
            self._denominator = vector.denominator
            if not vector.valid.all():  # NULL is passed over
                none = groups.least - 1 if groups.least > -(2**63) else groups.least + n  # which 64 bits hold
                keys = np.where(vector.valid, keys, none)
        scale = groups.least, n
        # The last one is that of no group.
        self._counts = np.zeros(n + 1, np.int64)
        self._found = np.zeros((0 if self._kind == "count" else 2 if self._kind == "sum" else 1, n + 1), np.int64)
        if self._kind == "count":
            work.loops["group_sums"](keys, *scale, nothing, self._counts, nothing, nothing)
            return
        assert vector is not None
        values = aligned(vector.values)
        if self._kind == "sum":
            work.loops["group_sums"](keys, *scale, values, self._counts, *self._found)
            return
        seen, flip = np.zeros(n + 1, np.uint8), -1 if self._kind == "least" else 0
        work.loops["fold_greatest"](keys, *scale, values, flip, self._found[0], seen)
        self._counts, self._found[0] = seen.astype(np.int64), self._found[0] ^ flip

    def _numbers(self, mine: slice | Ints) -> Ints:
        """The numbers of the groups of some tuples of R."""
        numbers = self._groups.r[mine] - self._groups.least
        return np.where((numbers >= 0) & (numbers < self._groups.count), numbers, -1)

    def counts(self, mine: slice | Ints) -> Ints:
        """The number of tuples of S with the same keys as each of the tuples ``mine`` of R."""
        return self._counts[self._numbers(mine)]

    def of(self, mine: slice, bases: Ints) -> Vector:
        """The values of some of R's tuples ``bases``."""
        numbers = self._numbers(bases[mine])
        counts = self._counts[numbers]
        if self._kind == "count":
            return Vector(counts, np.ones(len(counts), np.bool_))
        found = joined_halves(self._found[0][numbers], self._found[1][numbers]) if self._kind == "sum" else (
            self._found[0][numbers])
        return Vector(found, counts > 0, self._denominator)
