"""Aggregates over whole tables by ranges of sorted keys: counts, exact sums and extremes in O(n log n), without pairs.

Where a condition without a window is one inequality or band, with or without equalities, the partners of a tuple of R
are one range of S sorted by its keys. A count is the length of the range, a sum a difference of two prefix sums, and an
extreme the extreme of two overlapping runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.aggregate_functions import Term
from splitjoin.lang.eval.vector import Vector, evaluate, joined_halves
from splitjoin.lang.query import Query

from ..arrival import Arrivals
from ..device import TableFolds
from ..slices import Slices
from .condition import Condition
from .hash_join import KeyGroups, groups_of, terms_of
from .key_groups import least
from .key_ranges import ranges_by_row
from .table_job import TableAlgorithm
from .table_work import Work, aligned

__all__ = ["RangeFold"]

Ints = npt.NDArray[np.int64]



#: How rows are found, in words, the tuples of R that they are of, (n,), and the values of each term.
_Folded = tuple[str, Ints, Mapping[Term, "_Fold | _GroupFold"]]


class RangeFold(TableAlgorithm):
    """The terms of aggregates by a total for each key, or by ranges of sorted keys."""

    name = "range aggregation"
    shapes = ("aggregates",)

    @cached_property
    def _folded(self) -> _Folded | None:
        """None where the condition, the window or an aggregate needs pairs."""
        job, query = self.job, self.job.query
        if not all(a.reads_ranges for a in query.aggregates) or not job.visible.hold_all:
            return None
        # Floats and numbers beyond 64 bits are left to pairs: a sum of floats is rounded once, at its end.
        terms = [term for a in query.aggregates for term in a.terms]
        columns = {term.of: evaluate(term.of, job.incoming.s) for term in terms if term.of is not None}
        whole = {term.of for term in terms if term.of is not None and term.kind != "count"}
        if any(columns[e].values.dtype != np.int64 for e in whole):
            return None
        asked = {term: None if term.of is None else columns[term.of] for term in terms}
        return _by_groups(query, job.incoming, asked, job.work) or _by_order(query, job.incoming, asked, job.work)

    @property
    def suits(self) -> bool:
        return self._folded is not None

    @property
    def explain(self) -> str:
        assert self._folded is not None
        return self._folded[0]

    def run(self) -> TableFolds:
        assert self._folded is not None
        plan, bases, folds = self._folded
        job = self.job
        job.work.begin(plan)
        counters = job.counters(len(bases), 0)
        del counters["matches"]
        return TableFolds(bases, lambda term, mine: folds[term].of(mine, bases), plan=plan, work=job.work,
                          counters=counters)


def _by_groups(query: Query, incoming: Arrivals, asked: Mapping[Term, Vector | None], work: Work) -> _Folded | None:
    """By a total for each key, if the condition is equalities of numbers alone."""
    terms = terms_of(query.predicate)
    groups = None if terms is None or terms[1] is not None else groups_of(terms[0], incoming, None, work)
    if groups is None:
        return None
    rows = _GroupFold("count", None, groups, work)
    bases = np.arange(len(incoming.r))
    if query.kind.is_inner:  # those without partners are no rows
        bases = work.where(len(bases), lambda mine: rows.counts(mine) > 0)
    folds = {term: rows if vector is None else _GroupFold(term.kind, vector, groups, work)
             for term, vector in asked.items()}
    return "rows without pairs, by totals of equal keys", bases, folds


def _by_order(query: Query, incoming: Arrivals, asked: Mapping[Term, Vector | None], work: Work) -> _Folded | None:
    """By ranges of sorted keys."""
    condition, rows = Condition(query, incoming, work), len(incoming.r)
    bounds = condition.bounds("s")
    if not condition.decided or len(bounds) > 1:
        return None
    groups = condition.groups()
    every = np.zeros(len(incoming.s), np.uint64), *2 * [np.zeros(rows, np.uint64)]
    keys, low, high = (bounds[0].keys, bounds[0].low, bounds[0].high) if bounds else every
    ranges = ranges_by_row(groups, "s", keys, low, high, work)
    order, start, end = ranges.order, ranges.start, ranges.end
    del condition, bounds, groups, every, ranges, keys, low, high  # before the terms take as much memory
    # Base tuples are decided in their order; those without partners are no rows of an inner join.
    bases = work.where(rows, lambda mine: end[mine] > start[mine]) if query.kind.is_inner else np.arange(rows)
    if len(bases) < rows:
        start, end = work.taken(start, bases), work.taken(end, bases)
    return "rows without pairs, by ranges of sorted keys", bases, {
        term: _Fold(term, vector, order, start, end, work) for term, vector in asked.items()}


class _Fold:
    """``term`` over the positions of ``order`` from each ``start`` to before each ``end``; ``vector``: its values for
    S, None of a count of rows.
    """

    def __init__(self, term: Term, vector: Vector | None, order: Ints, start: Ints, end: Ints, work: Slices):
        self._kind, self._denominator = term.kind if vector is not None else "count", 1
        if vector is not None:
            self._denominator, values, valid = vector.denominator, vector.values, vector.valid
            if not work.every(len(valid), lambda mine: bool(valid[mine].all())):  # NULL is passed over
                before = _sums(len(order), lambda mine: valid[order[mine]], work)
                start, end, order = work.taken(before, start), work.taken(before, end), order[valid[order]]
            if term.kind == "sum":
                self._low = _sums(len(order), lambda mine: values[order[mine]] & 0xFFFF_FFFF, work)
                self._high = _sums(len(order), lambda mine: values[order[mine]] >> 32, work)
            elif term.kind != "count":
                sign = 0 if term.kind == "least" else -1  # the greatest is the least of all complements
                ordered = work.made(len(order), np.int64, lambda mine: values[order[mine]] ^ sign)
                self._found = least(ordered, start, end, work) ^ sign
        self._start, self._end = start, end

    def of(self, mine: slice, _bases: Ints) -> Vector:
        """The values of some of the ranges."""
        start, end = self._start[mine], self._end[mine]
        counts = end - start
        if self._kind == "count":
            return Vector(counts, np.ones(len(counts), np.bool_))
        found = self._found[mine] if self._kind != "sum" else joined_halves(
            self._low[end] - self._low[start], self._high[end] - self._high[start])
        return Vector(found, counts > 0, self._denominator)


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


def _sums(rows: int, values: Callable[[slice], npt.NDArray[Any]], work: Slices) -> Ints:
    """Prefix sums, int64 (rows + 1,): the sum of the values before each row, and last the sum of all. ``values`` gives
    those of a slice of the rows.
    """
    found = np.zeros(rows + 1, np.int64)
    slices = work.slices(rows)
    totals = work.map(lambda mine: int(np.cumsum(values(mine), out=found[mine.start + 1:mine.stop + 1])[-1:].sum()),
                      slices)
    before = np.cumsum([0, *totals])

    def move(n: int) -> None:
        found[slices[n].start + 1:slices[n].stop + 1] += before[n]

    work.map(move, range(1, len(slices)))
    return found
