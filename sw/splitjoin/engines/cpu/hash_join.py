"""Joins of whole tables by equal keys, whose values are numbered densely or hashed, without sorting either table.

`HashJoin` gives pairs by one thread, where a tuple has few partners: a symmetric hash join (Wilschut and Apers,
Dataflow query execution in a parallel main-memory environment, 1991). Each tuple, when it arrives, meets the earlier
tuples of the other stream with its key, and waits for later ones. So pairs come in order. The tuples with a key are a
linked list, from the last to the first, with its length. Partitions take as long, but more memory. Within windows of
time, a tuple reads the list up to the first tuple that is too old.

`HashSemiJoin` tells which tuples of R have a partner, by equal keys, by one inequality, or by both. For ``r.x < s.a`` a
tuple of R has one if its value is less than the greatest one of S with the same key, so each table is read once or
twice. For the order of rows, a semi join also asks which tuples have an earlier partner, and when the first partner of
each other tuple arrives. That partner is one of the rows of S whose value exceeded all earlier ones with the same key;
these are few, unless values rise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.arrays import Mask, Rows
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.ir import MIRRORED, And, Cmp, Expr, columns, sides
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import BOOL, Bool, is_text
from splitjoin.plan.encoding import guard_holds
from splitjoin.plan.keys import FloatKey, Key, UnitKey
from splitjoin.plan.linear import ExactRelation, Total
from splitjoin.plan.relations import FloatOrder, Relation

from ..arrival import Arrivals
from ..device import TableMatches, TablePairs
from ..merging import aligned
from ..sorting import ordered_bits, stable_order
from .condition import only_tests
from .key_groups import Groups, least_code
from .pair_order import place
from .table_job import TableAlgorithm, TableJob
from .table_windows import Spans
from .table_work import Work

_NONE = np.empty(0, np.int64)
#: Rows of both tables, and within windows groups, up to which the lists lie in caches about, so that partitions take
#: longer.
_MOST_ROWS, _MOST_GROUPS = 1 << 22, 1 << 16
#: Partners of a tuple, on average, from which on partitions take less time; and within windows, up to which lists have
#: been measured to take less.
_FEW, _FEW_IN_TIME = 2, 8
#: Threads from which on partitions, which they share, take less time.
_THREADS = 4
#: Times as many groups as S has rows, up to which a key is the number of its group.
_SPREAD = 4
#: Rows of S after which few others exceed what one of them has, in most orders.
_REACHED = 1024
#: How values of R compare with the greatest one of S, by ``flip`` and ``equal``.
_COMPARED = {(0, False): np.less, (0, True): np.less_equal, (-1, False): np.greater, (-1, True): np.greater_equal}
_BY = {(False, True): "on the first key beyond each bound", (True, False): "on equal keys and time",
       (True, True): "on the first key beyond each bound, of equal keys"}


class HashJoin(TableAlgorithm):
    """All pairs by equal keys alone, within windows that have a length of time or hold all, in order of arrival."""

    name = "symmetric hash join"
    shapes = ("pairs",)

    @cached_property
    def _groups(self) -> KeyGroups | None:
        job = self.job
        limits, rows = job.visible.limits, len(job.incoming)
        if job.query.order.kind == "left" or job.work.team.size >= _THREADS or (limits and job.visible.lengths is None):
            return None
        terms = Comparisons.of(job)
        groups = None if terms is None or terms.bound is not None else groups_of(terms, None, job.work)
        few = rows <= _MOST_ROWS or (groups is not None and limits and groups.count <= _MOST_GROUPS)
        return groups if few else None

    @property
    def suits(self) -> bool:
        return self._groups is not None

    @property
    def explain(self) -> str:
        return f"rows of whole tables, by a {self.name} on equal keys{self.job.work.text}"

    def run(self) -> TablePairs | None:
        job, groups = self.job, self._groups
        assert groups is not None
        incoming, visible, work = job.incoming, job.visible, job.work
        most = min(job.room, (_FEW_IN_TIME if visible.limits else _FEW) * len(incoming))
        pairs = _in_time(incoming, groups, visible, most, work) if visible.limits else (
            _all(incoming, groups, most, work))
        if pairs is None:
            return None
        if visible.limits and not job.query.is_pairs:
            place(incoming, work)  # tuples without a pair come between pairs
        n = len(pairs[0])
        work.begin(self.explain, n)
        return TablePairs(*pairs, None, plan=self.explain, counters=job.counters(n, n), work=work)


def _all(incoming: Arrivals, groups: KeyGroups, most: int, work: Work) -> tuple[Rows, Rows] | None:
    """The rows of R and S of all pairs; None if they are more than ``most``, or many for each tuple."""
    if groups.count * _FEW < len(incoming.s):
        return None
    times = [aligned(incoming.times(side)) if incoming.is_timed else _NONE for side in SIDES]
    heads = np.zeros(2 * groups.count + 2, np.int64)
    met, before = ([np.empty(n, np.int64) for n in (len(incoming.r), len(incoming.s))] for _ in range(2))
    n = work.loops["count_in_order"](groups.r, groups.s, groups.least, groups.count, *times, heads, *met, *before)
    del heads, groups
    if n > most:
        return None
    r, s = np.empty(n, np.int64), np.empty(n, np.int64)
    work.loops["pairs_in_order"](*times, *met, *before, r, s)
    return r, s


def _in_time(incoming: Arrivals, groups: KeyGroups, visible: Spans, most: int, work: Work) -> tuple[Rows, Rows] | None:
    """The same of the pairs within the lengths of ``visible``."""
    assert visible.lengths is not None
    if visible.pairs > most * groups.count:  # if all keys are as many
        return None
    lengths = [np.uint64(min(length, 2**64 - 1)) for length in visible.lengths]
    before = [np.empty(n, np.int64) for n in (len(incoming.r), len(incoming.s))]
    r, s = (np.empty(most + 1, np.int64) for _ in SIDES)  # the system gives memory for what is written
    n = work.loops["pairs_in_time"](groups.r, groups.s, groups.least, groups.count,
                                    *(aligned(incoming.times(side)) for side in SIDES), *lengths,
                                    np.zeros(2 * groups.count, np.int64), *before, r, s)
    return (r[:n], s[:n]) if n <= most else None


class HashSemiJoin(TableAlgorithm):
    """The tuples of R that have a partner, for a semi or anti join all of whose pairs are within the windows."""

    name = "hash semi join"
    shapes = ("exists",)

    @cached_property
    def _found(self) -> tuple[KeyGroups | None, _Values | None] | None:
        """The groups of equal keys, None for one of all tuples, and the values that an inequality compares, if there is
        one; None for other conditions.
        """
        job = self.job
        if job.visible.limits:
            return None
        if (terms := Comparisons.of(job)) is None:
            return _of_codes(job)
        values = None if terms.bound is None else _values(terms, terms.bound)
        if terms.bound is not None and values is None:
            return _of_codes(job)
        groups = groups_of(terms, values, job.work) if terms.equalities else None
        return None if terms.equalities and groups is None else (groups, values)

    @property
    def suits(self) -> bool:
        return self._found is not None

    @property
    def explain(self) -> str:
        assert self._found is not None
        how = _BY[self._found[0] is not None, self._found[1] is not None]
        return f"rows without pairs, by a {self.name} {how}{self.job.work.text}"

    def run(self) -> TableMatches:
        job = self.job
        assert self._found is not None
        groups, values = self._found
        job.work.begin(self.explain)
        if values is None:
            assert groups is not None
            found = _by_keys(job.query, job.incoming, groups, job.work)
        elif groups is None:
            found = _by_extreme(job.query, job.incoming, values, job.work)
        else:
            found = _by_values(job.query, job.incoming, values, groups, job.work)
        late = (_NONE, _NONE, _NONE) if not len(found.late) else _in_order(job.incoming, found)
        return TableMatches(found.met, *late, plan=self.explain, counters=job.counters(found.tried, found.count),
                            work=job.work)


@dataclass
class _Values:
    """Values of R and S (r,), (s,) that a pair compares by < or, if ``equal``, by <=, or turned around: ``flip`` −1.
    ``valid``: the tuples of R and S whose value is not NULL; None for all.
    """

    r: Rows
    s: Rows
    flip: int
    equal: bool
    valid: tuple[Mask | None, Mask | None]


@dataclass
class KeyGroups:
    """The keys of R and S. A key less ``least`` is the number of its group, if that is from 0 to ``count`` − 1."""

    r: Rows
    s: Rows
    least: int
    count: int


@dataclass(frozen=True)
class Comparisons:
    """A condition as the conjunction of ``equalities`` and of the inequality ``bound``, one of them at least, each with
    R's operand before S's, over ``tables``. ``possible``: the tuples of R and S that may have a partner; None for all.
    """

    equalities: list[Cmp]
    bound: Cmp | None
    tables: Mapping[Side, pa.Table]
    possible: tuple[Mask | None, ...] = (None, None)

    @classmethod
    def of(cls, job: TableJob) -> Comparisons | None:
        """The comparisons that the condition of ``job`` is, as it is written or by its plan; None if it has others."""
        predicate = job.query.predicate
        found = _sided(predicate.args if isinstance(predicate, And) else (predicate,))
        if found is not None and not (found[1] is not None and any(
                {*columns(found[1])} <= {*columns(equal)} for equal in found[0])):  # which may imply it
            return cls(*found, job.incoming.tables)
        plan, tables = job.planned.plan, job.planned.tables
        if plan.residual is not None or len(plan.required) < len(plan.tests) or not only_tests(plan.tree):
            return None
        terms = [_comparison(test.relations, plan.slots_r[test.r].key, plan.slots_s[test.s].key) for test in plan.tests
                 if not isinstance(plan.slots_s[test.s].key, UnitKey)]
        found = None if None in terms else _sided([term for term in terms if term is not None])
        guards = [tuple(guard for slot in plan.slots(side) for guard in slot.guards) for side in SIDES]
        return None if found is None else cls(*found, tables, tuple(
            guard_holds(mine, tables[side]) if mine else None for side, mine in zip(SIDES, guards, strict=True)))

    def operands(self, term: Cmp) -> tuple[Vector, Vector] | None:
        """The operands of ``term``, NULL for tuples that are not possible."""
        found = operands(term, self.tables)
        if found is None:
            return None
        r, s = (v if mask is None else Vector(v.values, v.valid & mask, v.denominator) for v, mask in zip(
            found, self.possible, strict=True))
        return r, s


def _comparison(relations: Sequence[Relation], r: Key, s: Key) -> Cmp | None:
    """All ``relations`` of the keys ``r`` and ``s`` as one comparison; None if they are none."""
    first = relations[0]
    if not isinstance(first, (ExactRelation, FloatOrder)):
        return None
    ops = {of.op for of in relations if isinstance(of, type(first)) and replace(of, op=first.op) == first}
    if len(ops) < len(relations) or ops not in ({first.op}, {"<=", ">="}):
        return None
    op = first.op if len(ops) == 1 else "="
    if isinstance(first, FloatOrder):
        if isinstance(r, FloatKey) and isinstance(s, FloatKey) and not r.nan_low:
            return Cmp(BOOL, op, r.expr, s.expr)
        return None
    by = math.gcd(first.g, first.h)
    if op == "=" and first.c % by:
        return None
    end = -(first.c // by) if op == ">=" else -first.c // by
    sums = [Total({of.expr: Fraction(of.factor * of.scale * factor // by) for of in terms}, Fraction(constant))
            for terms, factor, constant in ((first.r, first.g, 0), (first.s, -first.h, end))]
    return Cmp(BOOL, op, sums[0].expr(), sums[1].expr())


def _sided(terms: Sequence[Expr]) -> tuple[list[Cmp], Cmp | None] | None:
    """The equalities and the inequality of ``terms`` as they are; None if there are others."""
    equalities, bound = list[Cmp](), None
    for term in terms:
        if not isinstance(term, Cmp) or term.op == "<>" or is_text(term.a.type) or isinstance(term.a.type, Bool):
            return None
        read = sides(term.a), sides(term.b)
        if read == (frozenset("s"), frozenset("r")):
            term = Cmp(term.type, MIRRORED[term.op], term.b, term.a)
        elif read != (frozenset("r"), frozenset("s")):
            return None
        if term.op == "=":
            equalities.append(term)
        elif bound is None:
            bound = term
        else:
            return None
    return (equalities, bound) if equalities or bound is not None else None


def operands(term: Cmp, tables: Mapping[Side, pa.Table]) -> tuple[Vector, Vector] | None:
    """Both operands of a comparison as integers of 64 bits in their order; None if they have none that are alike."""
    found = []
    for side, operand in zip(SIDES, (term.a, term.b), strict=True):
        v = evaluate(operand, tables[side])
        if v.values.dtype.kind == "f":
            v = Vector(ordered_bits(v.values.astype(np.float64)), v.valid)
        if v.values.dtype != np.int64:
            return None
        found.append(v)
    return (found[0], found[1]) if found[0].denominator == found[1].denominator else None


def _values(terms: Comparisons, bound: Cmp) -> _Values | None:
    found = terms.operands(bound)
    if found is None:
        return None
    r, s = found
    every = tuple(None if v.valid.all() else v.valid for v in found)
    return _Values(aligned(r.values), aligned(s.values), -1 if bound.op in (">", ">=") else 0,
                   bound.op in ("<=", ">="), (every[0], every[1]))


def _of_codes(job: TableJob) -> tuple[KeyGroups | None, _Values] | None:
    """As `HashSemiJoin._found`, by the codes of any types: one key of S is compared, and lies beyond one end of the
    intervals of R's tuples only.
    """
    condition, groups = job.condition, job.groups
    if not condition.decided or len(bounds := condition.bounds("s")) != 1:
        return None
    (of,) = bounds
    keys, low, high = of.keys, of.low, of.high
    if not len(keys) or not len(low) or not (end := groups.one_end(keys, low, high)):
        return None
    rises, some = end == "low", low <= high
    there = keys >= least_code(low, high, job.work)
    valid = None if some.all() else some, None if there.all() else there
    compared = (low if rises else high, keys)
    r, s = (codes.view(np.int64) ^ np.int64(-2**63) for codes in compared)  # in the order of the codes
    values = _Values(r, s, 0 if rises else -1, True, valid)
    if groups.is_one:
        return None, values
    of_r, of_s = (groups.of(side) if mask is None else np.where(mask, groups.of(side), -1)
                  for side, mask in zip(SIDES, valid, strict=True))
    return KeyGroups(of_r, of_s, 0, groups.count), values


def groups_of(terms: Comparisons, values: _Values | None, work: Work) -> KeyGroups | None:
    """The groups of the equalities of ``terms``, without the tuples whose value is NULL."""
    valids = (None, None) if values is None else values.valid
    points, possible = [], [np.ones(n, np.bool_) if valid is None else valid.copy() for n, valid in zip(
        (len(terms.tables[side]) for side in SIDES), valids, strict=True)]
    for term in terms.equalities:
        found = terms.operands(term)
        if found is None:
            return None
        for part, v in zip(possible, found, strict=True):
            part &= v.valid
        points.append((found[0].values, found[1].values))
    points = _folded(points, possible)
    if len(points) == 1 and all(part.all() for part in possible) and (places := _places(*points[0])) is not None:
        return KeyGroups(aligned(points[0][0]), aligned(points[0][1]), *places)
    lowest = [int(of_s.min(initial=2**63 - 1)) for _, of_s in points]
    groups = Groups([(of_r.view(np.uint64) - np.uint64(low % 2**64), of_s.view(np.uint64) - np.uint64(low % 2**64))
                     for low, (of_r, of_s) in zip(lowest, points, strict=True)], possible[0], possible[1], work)
    return KeyGroups(groups.of("r"), groups.of("s"), 0, groups.count)


def _places(keys_r: Rows, keys_s: Rows) -> tuple[int, int] | None:
    """The least key of S and how many there may be up to the greatest, or of those that R may have as well; None if
    these are too many for a place for each of them, or so few that groups are large.
    """
    (least, greatest), (least_r, greatest_r) = ((int(keys.min(initial=2**63 - 1)), int(keys.max(initial=-2**63)))
                                                for keys in (keys_s, keys_r))
    most = _SPREAD * len(keys_s) + 1024
    if (count := max(greatest - least + 1, 1)) <= most:
        return least, count
    least, count = max(least, least_r), min(greatest, greatest_r) - max(least, least_r) + 1
    return (least, count) if len(keys_s) // _FEW < count <= most else None


def _folded(points: list[tuple[Rows, Rows]], possible: list[Mask]) -> list[tuple[Rows, Rows]]:
    """One key in place of all of ``points``, if the keys of S that are ``possible`` lie in so narrow ranges. A tuple of
    R with a key outside of these is not possible any more.
    """
    if len(points) == 1 or not possible[1].any():
        return points
    ends = [(int(of_s.min(where=possible[1], initial=2**63 - 1)), int(of_s.max(where=possible[1], initial=-2**63)))
            for _, of_s in points]
    if math.prod(high - low + 1 for low, high in ends) >= 2**62:
        return points
    made = [np.zeros(len(keys), np.int64) for keys in points[0]]
    for (of_r, of_s), (low, high) in zip(points, ends, strict=True):
        possible[0] &= (of_r >= low) & (of_r <= high)
        for folded, keys in zip(made, (of_r, of_s), strict=True):
            folded *= high - low + 1  # what leaves 64 bits is of tuples that are not possible
            folded += keys
            folded -= low
    return [(made[0], made[1])]


@dataclass
class _Found:
    """As of `TableMatches`: ``met``, how many are not 0, and the ``late`` ones with their ``partner``, by row.
    ``tried``: the number of candidates.
    """

    met: npt.NDArray[np.uint8]
    count: int
    late: Rows
    partner: Rows
    tried: int


def _by_keys(query: Query, incoming: Arrivals, groups: KeyGroups, work: Work) -> _Found:
    """By equal keys alone: by the first row of each group."""
    loops, rows_s = work.loops, len(incoming.s)
    first, met = np.full(groups.count + 1, rows_s), np.empty(len(incoming.r), np.uint8)
    loops["first_rows"](groups.s, groups.least, groups.count, first)
    upto = _NONE  # as many tuples of S come before one of R as of R
    if incoming.is_timed:
        upto = work.counts_below(incoming.times("s"), incoming.times("r"))
    count = sum(work.each(len(met), lambda mine: int(loops["mark_equal"](
        groups.r[mine], groups.least, groups.count, first, rows_s, mine.start, upto[mine], met[mine]))))
    late = np.flatnonzero(met == 1) if _asks_for_late(query) else _NONE
    return _Found(met, count, late, first[groups.r[late] - groups.least], count)


def _by_values(query: Query, incoming: Arrivals, values: _Values, groups: KeyGroups, work: Work) -> _Found:
    """By the greatest value of each group."""
    loops = work.loops
    best, seen = np.zeros(groups.count, np.int64), np.zeros(groups.count, np.uint8)
    met, risen = np.zeros(len(incoming.r), np.uint8), _NONE
    keys, way = (groups.least, groups.count), (values.flip, values.equal)
    if query.kind.how == "semi":
        times = [aligned(incoming.times(side)) if incoming.is_timed else _NONE for side in SIDES]
        room = np.empty(len(values.s), np.int64)  # of which the system gives what is written to
        n = loops["mark_met"](groups.r, groups.s, *keys, values.r, values.s, *way, *times, best, seen, met, room)
        risen = room[:n]
    else:
        loops["fold_greatest"](groups.s, *keys, values.s, values.flip, best, seen)
    count = sum(work.each(len(met), lambda mine: int(loops["mark_late"](
        groups.r[mine], *keys, values.r[mine], *way, best, seen, met[mine]))))
    late = np.flatnonzero(met == 1) if _asks_for_late(query) else _NONE
    partner = np.empty(len(late), np.int64)
    if len(late):
        numbers = groups.s[risen] - groups.least
        begins = np.zeros(groups.count + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=groups.count), out=begins[1:])
        if groups.count > 1:
            risen = risen[stable_order(numbers)]
        loops["first_beyond"](late, groups.r, groups.least, values.r, *way, begins, risen, values.s, partner)
    return _Found(met, count, late, partner, len(late))


def _by_extreme(query: Query, incoming: Arrivals, values: _Values, work: Work) -> _Found:
    """By the greatest value of all."""
    flip, rows, valid = values.flip, len(values.r), values.valid[0]
    compare, met = _COMPARED[flip, values.equal], np.zeros(rows, np.uint8)
    semi = query.kind.how == "semi"
    risen = _risen(values, work) if semi else _extreme(values)  # when a tuple has met one matters to semi joins alone
    if not len(risen):
        return _Found(met, 0, _NONE, _NONE, 0)
    reached, first = values.s[risen], _NONE
    if semi:  # the first tuple of R behind each of them
        first = np.minimum(risen + 1, rows) if not incoming.is_timed else np.searchsorted(
            incoming.times("r"), incoming.times("s")[risen], side="right")

    def some(mine: slice) -> int:
        of, found = values.r[mine], met[mine]
        compare(of, reached[-1], out=found.view(np.bool_))
        if valid is not None:
            found &= valid[mine]
        count = int(np.count_nonzero(found))
        low, high = np.searchsorted(first, mine.start, side="right"), np.searchsorted(first, mine.stop)
        cuts = np.maximum(first[max(low - 1, 0):high] - mine.start, 0)
        if len(cuts):
            upto = np.repeat(reached[max(low - 1, 0):high], np.diff(cuts, append=len(of)))
            found[cuts[0]:] <<= compare(of[cuts[0]:], upto).view(np.uint8)
        return count

    count = sum(work.each(rows, some))
    late = np.flatnonzero(met == 1) if _asks_for_late(query) else _NONE
    at = np.searchsorted(reached ^ flip, values.r[late] ^ flip, side="left" if values.equal else "right")
    return _Found(met, count, late, risen[at], len(late))


def _extreme(values: _Values) -> Rows:
    """A row of S with the greatest value of all: int64 (1,); (0,) if there is none."""
    of, valid = values.s, values.valid[1]
    rows = None if valid is None else np.flatnonzero(valid)
    some = of if rows is None else of[rows]
    if not len(some):
        return _NONE
    at = np.array([some.argmin() if values.flip else some.argmax()])
    return at if rows is None else rows[at]


def _risen(values: _Values, work: Work) -> Rows:
    """The rows of S whose value exceeds those of all rows before: int64 (n,)."""
    found, (compare, extreme) = [_NONE], (np.less, np.minimum) if values.flip else (np.greater, np.maximum)
    first, *others = work.slices(len(values.s))
    # What is behind the first rows is only compared, but for few.
    for mine in (slice(0, min(_REACHED, first.stop)), slice(_REACHED, first.stop), *others):
        of = values.s[mine]
        some = np.ones(len(of), np.bool_) if len(found) == 1 else compare(of, values.s[found[-1][-1]])
        if values.valid[1] is not None:
            some &= values.valid[1][mine]
        if len(rows := np.flatnonzero(some)):
            reached = extreme.accumulate(of[rows])
            found.append(rows[np.diff(reached, prepend=~reached[:1]) != 0] + mine.start)
    return np.concatenate(found)


def _asks_for_late(query: Query) -> bool:
    """True if the order of rows depends on when the partners of those arrive that have a later one alone."""
    return query.kind.how == "semi" and query.order.kind != "left"


def _in_order(incoming: Arrivals, found: _Found) -> tuple[Rows, Rows, Rows]:
    """The ``late``, ``partners`` and ``before`` of `TableMatches`."""
    order = stable_order(found.partner)
    rows, partner = found.late[order], found.partner[order]
    if incoming.is_timed:
        before = np.searchsorted(incoming.times("r"), incoming.times("s")[partner], side="right")
    else:
        before = np.minimum(partner + 1, len(incoming.r))
    return rows, partner, before
