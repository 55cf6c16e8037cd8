"""Band joins that divide tables or conditions first, and join the parts: slices of the longer table, buckets of a key,
the alternatives of an OR.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from splitjoin.lang.ir import And, Case, Expr, IsNull, Lit, Not, Or, sides
from splitjoin.lang.schema import SIDES, other_side
from splitjoin.lang.types import BOOL

from ..arrival import MergedTables
from ..device import TablePairs
from .band_join import WRONG, Branch, SearchJoin, TooMany, WayKind, cost_of, fits, pairs_of, plan_of, way_of_kind, ways
from .condition import Bounds, Condition, Planned
from .pair_order import PairOrder
from .spans import Spans
from .table_job import TableAlgorithm

__all__ = ["BucketJoin", "DisjunctionJoin", "SlicedJoin", "disjuncts"]

Rows = npt.NDArray[np.int64]

#: Times that a table is longer than the other one from which on it is joined slice by slice, and slices of the usual
#: size in each of these.
_UNEVEN, _SLICES = 16, 2
#: The fewest buckets that are worth to read and sort the keys once more.
_FEWEST = 16
#: The most alternatives: each reads and sorts the keys anew.
_MOST = 6


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
        every, order, most = Planned.of(query.predicate, incoming, work), PairOrder(query, incoming, work), 0.0
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
    """A condition with OR as several joins: each pair is of the first alternative that is true of it.

    The alternatives of ``a = b OR lo <= x AND x < hi`` are the equality and the range, each of which has a range of
    sorted keys, whereas the whole condition has none, and would have all pairs compared.
    """

    name = "union of disjuncts"

    @cached_property
    def branches(self) -> list[Branch]:
        job, query = self.job, self.job.reach.query
        terms = [term for term in disjuncts(query.predicate) if not (isinstance(term, Lit) and not term.value)]
        if not 1 < len(terms) <= _MOST:
            return []
        found, earlier = list[Branch](), list[Condition]()
        for term in terms:
            condition = Condition(replace(query, predicate=term), job.incoming, job.work)
            groups = condition.groups()
            found.append(Branch(ways(condition, groups, job.visible, job.work)[0], condition, groups, tuple(earlier)))
            earlier.append(condition)
        return found

    @property
    def limit(self) -> float:
        """A session would compare all pairs."""
        return self.job.nested_cost


def disjuncts(e: Expr) -> list[Expr]:
    """Conditions of which at least one is true exactly where ``e`` is true. A condition of one stream stays whole."""
    if len(sides(e)) < 2:
        return [e]
    match e:
        case Or():
            return [term for arg in e.args for term in disjuncts(arg)]
        case And():
            split = [disjuncts(arg) for arg in e.args]
            at = next((n for n, terms in enumerate(split) if len(terms) > 1), None)
            if at is None:
                return [e]
            return [_all([*e.args[:at], term, *e.args[at + 1:]]) for term in split[at]]
        case Case():
            before, found = list[Expr](), list[Expr]()
            for when, then in zip(e.when, e.then, strict=True):
                found += disjuncts(_all([*before, when, then]))
                before.append(Or(BOOL, (Not(BOOL, when), IsNull(BOOL, when))))
            return found + disjuncts(_all([*before, e.otherwise]))
    return [e]


def _all(terms: Sequence[Expr]) -> Expr:
    """The conjunction of ``terms``; FALSE if one of them is never true."""
    parts = reduce(lambda made, e: (*made, *(e.args if isinstance(e, And) else (e,))), terms, tuple[Expr, ...]())
    if any(isinstance(part, Lit) and not part.value for part in parts):
        return Lit(BOOL, False)
    parts = tuple(part for part in parts if not isinstance(part, Lit))
    return Lit(BOOL, True) if not parts else parts[0] if len(parts) == 1 else And(BOOL, parts)
