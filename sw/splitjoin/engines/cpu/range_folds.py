"""Aggregates over whole tables by ranges of rows in an order, in O(n log n), without pairs.

Where a condition is equalities, and one inequality or band or a window, the partners of a tuple of R are one range of S
in the order of its groups of equal keys, and within them of one key or of arrival. With bounds on a second key they are
ranges of a range tree. `RangeTerms` folds such ranges, of one tuple of R or of several that are one base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.memory import too_many
from splitjoin.lang.aggregate import Aggregate
from splitjoin.lang.aggregate_functions import Term
from splitjoin.lang.eval.vector import Vector, evaluate, joined_halves
from splitjoin.lang.ir import Col
from splitjoin.lang.properties import causes
from splitjoin.plan.keys import Codes

from ..device import TableFolds, TablePairs
from ..merging import aligned
from ..range_terms import RangeTerms
from .condition import Bounds
from .hash_join import Comparisons, KeyGroups, groups_of
from .key_groups import Groups
from .key_ranges import Ranges, ranges_by_row
from .pair_order import PairOrder
from .range_tree import levels_of, pieces
from .table_job import TableAlgorithm, TableJob
from .table_work import Work

#: Bytes of a pair while pairs are put in order.
_PAIR_BYTES = 64
_SIGN = np.uint64(1 << 63)
#: Pairs that take as long as a level of a range tree does for a tuple of R, and for a position.
_PAIRS_OF_TUPLE, _PAIRS_OF_POSITION = 4, 2
#: Tuples of R, and partners of each, in a sample.
_SAMPLED = 100
#: Kinds of terms of whole numbers of which one pass makes the total of each key.
_TOTALS = {"rows", "count", "sum", "least", "greatest"}


@dataclass(frozen=True)
class _Partners:
    """Ranges of S for tuples of R, and how they were found in words. ``by_arrival``: True if the row ids of each range
    rise. ``owner``: the tuple of R that each range is of; None where each has one.
    """

    how: str
    ranges: Ranges
    by_arrival: bool
    owner: Ints | None = None


class RangeFold(TableAlgorithm):
    """The terms of aggregates by ranges of sorted rows, or by a total for each key."""

    name = "range aggregation"
    shapes = ("aggregates",)
    has_prevailing = True

    @cached_property
    def _totals(self) -> tuple[KeyGroups, Mapping[Term, Vector | None]] | None:
        """Groups of equal keys, and the values of each term, where a total of each group decides."""
        job, terms = self.job, [term for a in self.job.query.aggregates for term in a.terms]
        if job.bases is not None or not job.visible.hold_all:
            return None
        if not all(a.reads_ranges for a in job.query.aggregates) or not all(
                term.kind in _TOTALS and term.value in (None, term.of) for term in terms):
            return None
        equal = Comparisons.of(job)
        if equal is None or equal.bound is not None:
            return None
        values = {term: None if term.of is None else evaluate(term.of, job.incoming.s) for term in terms}
        if any(v is not None and v.values.dtype != np.int64 and term.kind != "count" for term, v in values.items()):
            return None
        groups = groups_of(equal, None, job.work)
        return None if groups is None else (groups, values)

    @cached_property
    def _found(self) -> _Partners | None:
        return _partners(self.job)

    @property
    def suits(self) -> bool:
        query = self.job.query
        if self.job.bases is not None and not query.kind.is_inner and not all(map(_passes_over_lone, query.aggregates)):
            return False
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
                                lambda term, mine: folds[term].of(mine, bases), lambda mine: np.empty(0, np.int64),
                                frozenset(folds))
        assert self._found is not None
        found, order = self._found, self._found.ranges.order
        start, end, firsts, lone = found.ranges.start, found.ranges.end, None, None
        if found.owner is not None or job.bases is not None:
            bases, start, end, firsts, lone = _of_bases(found, job.bases, rows, is_inner=is_inner)
        else:
            # Base tuples are decided in their order; those without partners are no rows of an inner join.
            bases = work.where(rows, lambda mine: end[mine] > start[mine]) if is_inner else every
            if len(bases) < rows:
                start, end = work.taken(start, bases), work.taken(end, bases)
        end = np.maximum(start, end)
        lengths = end - start if firsts is None else np.add.reduceat(end - start, firsts) if len(firsts) else start[:0]
        del self.__dict__["_found"], job.__dict__["condition"]  # before the terms take as much memory
        table = job.incoming.s
        terms = RangeTerms(order, start, end, lambda e: evaluate(e, table), by_arrival=found.by_arrival, work=work,
                           firsts=firsts)
        of_terms = [a for a in job.query.aggregates if a.reads_ranges and (firsts is None or all(
            map(terms.has, a.terms)))]
        most = int(lengths.max(initial=0))
        if firsts is not None and most > job.room and len(of_terms) < len(job.query.aggregates):
            raise too_many(most, most * _PAIR_BYTES, is_rows=False)
        folded = {term: terms.fold(term) for a in of_terms for term in a.terms}
        if lone is not None:
            folded |= {term: Vector(v.values + lone, v.valid) for term, v in folded.items() if term.of is None}

        def partners(mine: slice) -> Ints:
            ranges = mine if firsts is None else slice(firsts[mine.start], firsts[mine.stop] if mine.stop < len(
                firsts) else len(start))
            rows = _rows_in(Ranges(order, start, end), ranges)
            if not found.by_arrival or firsts is not None:
                rows = rows[np.lexsort((rows, np.repeat(np.arange(mine.stop - mine.start), lengths[mine])))]
            return rows

        return self._answer(plan, bases, lambda: lengths, lambda term, mine: _part(folded[term], mine), partners,
                            frozenset(folded), len(start))

    def _answer(self, plan: str, bases: Ints, lengths: Callable[[], Ints], term: Callable[[Term, slice], Vector],
                partners: Callable[[slice], Ints], terms: frozenset[Term],
                ranges: int | None = None) -> TableFolds:
        counters = self.job.counters(len(bases) if ranges is None else ranges, 0)
        del counters["matches"]
        return TableFolds(bases, lengths, term, partners, terms, plan=plan, work=self.job.work, counters=counters)


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
    """None where the partners of a tuple of R are not ranges, or where pairs are expected to take less."""
    condition, visible, work = job.condition, job.visible, job.work
    bounds = condition.bounds("s")
    if not condition.decided or (bounds and job.query.prevailing):
        return None
    start, end = (None, None) if visible.hold_all else (visible.start, visible.end)
    for n, one in enumerate(bounds):
        if (arrival := _in_order_of_arrival(one, work)) is not None:
            start = arrival[0] if start is None else np.maximum(start, arrival[0])
            end = arrival[1] if end is None else np.minimum(end, arrival[1])
            bounds = bounds[:n] + bounds[n + 1:]
            break
    if len(bounds) > 1 + (start is None):
        return None
    if bounds and start is None:
        (first, *bounds), groups = bounds, condition.groups()
        numbers = groups.numbers("r"), groups.numbers("s")
        ranges = ranges_by_row(numbers, groups.count, first.keys, first.low, first.high, work)
        found = _Partners("ranges of sorted keys", ranges, by_arrival=False)
    else:
        how = "ranges of rows by arrival" if start is not None else "equal keys"
        found = _Partners(how, _by_group(condition.groups(), start, end, job), by_arrival=True)
    return found if not bounds else _within(found.ranges, bounds[0], job)


def _within(ranges: Ranges, bounds: Bounds, job: TableJob) -> _Partners | None:
    """The partners in ``ranges`` that are within ``bounds``, too, by a range tree."""
    keys = bounds.keys[ranges.order]
    levels = levels_of(len(keys))
    if len(keys) * levels > job.room or _expected(ranges, keys, bounds) < levels * (
            _PAIRS_OF_TUPLE * len(ranges.start) + _PAIRS_OF_POSITION * len(keys)):
        return None
    order, owner, start, end = pieces(keys, ranges.start, ranges.end, bounds.low, bounds.high)
    return _Partners("a range tree", Ranges(ranges.order[order], start, end), by_arrival=False, owner=owner)


def _expected(ranges: Ranges, keys: Codes, bounds: Bounds) -> float:
    """About how many pairs of ``ranges`` are within ``bounds``, by a sample."""
    chance, lengths = np.random.default_rng(0), np.maximum(ranges.end - ranges.start, 0)
    if not len(lengths) or not lengths.any():
        return 0.0
    of = chance.integers(0, len(lengths), _SAMPLED)
    at = ranges.start[of] + (chance.random((_SAMPLED, _SAMPLED)) * lengths[of]).astype(np.int64).T
    found = keys[np.minimum(at, len(keys) - 1)]
    within = ((found >= bounds.low[of]) & (found <= bounds.high[of])).mean(0)
    return float((within * lengths[of]).mean() * len(lengths))


def _of_bases(found: _Partners, bases: Ints | None, rows: int, *, is_inner: bool) -> tuple[
        Ints, Ints, Ints, Ints, Ints | None]:
    """The base tuples, the starts and ends of their ranges, the first range of each, and how many of its tuples have no
    partners, for SQL's rows of NULL; None of an inner join, where these are left out, and without ``bases``.
    """
    start, end, owner = found.ranges.start, np.maximum(found.ranges.start, found.ranges.end), found.owner
    owner, lone = np.arange(rows) if owner is None else owner, None
    if is_inner:
        some = end > start
        start, end, owner = start[some], end[some], owner[some]
    else:
        partners = np.zeros(rows, np.int64)
        np.add.at(partners, owner, end - start)
        none = np.flatnonzero(partners == 0)
        owner, start, end = (np.concatenate([a, b]) for a, b in ((owner, none), (start, none * 0), (end, none * 0)))
        by = np.argsort(owner, kind="stable")
        owner, start, end = owner[by], start[by], end[by]
        lone = np.bincount((none if bases is None else bases[none]), minlength=rows)
    base = owner
    if bases is not None:  # a base is the first of its tuples that has a range here
        _, first, group = np.unique(bases[owner], return_index=True, return_inverse=True)
        base = owner[first][group]
    by = np.argsort(base, kind="stable")
    base, start, end = base[by], start[by], end[by]
    firsts = np.flatnonzero(np.diff(base, prepend=-1))
    made = base[firsts]
    return made, start, end, firsts, None if bases is None or lone is None else lone[bases[made]]


def _passes_over_lone(aggregate: Aggregate) -> bool:
    """True if a row of NULL, of a tuple without partners, counts for nothing in ``aggregate``, or as one row."""
    if not aggregate.args:
        return True
    return not aggregate.definition.listed and all(RangeTerms.has(term) and term.of is not None and any(
        isinstance(c, Col) and c.side == "s" for e in term.arguments for c in causes(e)) for term in aggregate.terms)


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
