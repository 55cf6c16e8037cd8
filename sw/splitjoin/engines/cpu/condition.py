"""A condition over two whole tables: codes of equal keys, bounds on others, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.field import measured
from splitjoin.lang.ir import Col, Expr, columns, distinct, rebuilt
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side, other_side
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Codes, ExactKey, FloatKey, UnitKey, WideKey
from splitjoin.plan.linear import ExactRelation
from splitjoin.plan.passes.pipeline import make_plan
from splitjoin.plan.plan import Plan, Test

from ..arrival import Arrivals
from ..slices import Slices
from .extremes import with_sums_inside
from .pairs import PairTest, column_arrays
from .runs_of_keys import Groups, least_code
from .table_work import Work, plain_work
from .text_ranks import with_ranked_texts

__all__ = ["Bounds", "Condition", "Planned"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: The greatest code.
_MOST = 2**64 - 1
_NO_CODES = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Bounds:
    """Bounds on one key of a stream: its ``keys`` (n,), and the lowest and highest for each tuple of the other (m,).

    ``tests``: the tests of the plan that they are of. ``slots_s``: the slots of S that are thereby compared.
    """

    keys: Codes
    low: Codes
    high: Codes
    tests: tuple[int, ...]
    slots_s: frozenset[int]

    def ends(self, work: Slices) -> frozenset[str]:
        """The ends, "low" and "high", of intervals that leave any key out."""
        def intervals(mine: slice) -> tuple[int, int]:
            low, high = self.low[mine], self.high[mine]
            some = low <= high
            return int(low.max(initial=0, where=some)), int(high.min(initial=_MOST, where=some))

        def keys(mine: slice) -> tuple[int, int]:
            of = self.keys[mine]
            return int(of.min(initial=_MOST, where=of >= code)), int(of.max())

        if not len(self.keys) or work.every(len(self.low), lambda mine: bool(
                (self.low[mine] > self.high[mine]).all())):
            return frozenset()
        code = least_code(self.low, self.high, work)
        lows, highs = zip(*work.each(len(self.low), intervals), strict=True)
        least, most = zip(*work.each(len(self.keys), keys), strict=True)
        return frozenset(end for end, excludes in (("low", max(lows) > min(least)), ("high", min(highs) < max(most)))
                         if excludes)


@dataclass(frozen=True)
class Planned:
    """A ``predicate`` over ``tables``, with columns for the ranks of texts, and its plan by ranges of all values."""

    predicate: Expr
    tables: Mapping[Side, pa.Table]
    plan: Plan

    @classmethod
    def of(cls, predicate: Expr, incoming: Arrivals, work: Work) -> Planned:
        """The plan of ``predicate`` over all ``incoming`` tuples."""
        compared, tables = with_ranked_texts(predicate, {side: incoming.table(side) for side in SIDES})
        return cls(compared, tables, make_plan(with_sums_inside(_measured(compared, tables, work))))

    def slice(self, side: Side, at: int, rows: int) -> Planned:
        """The same over so many rows of table ``side`` from row ``at`` on."""
        return replace(self, tables={**self.tables, side: self.tables[side].slice(at, rows)})


class Condition:
    """The condition of ``query`` over two whole tables: codes of equal keys, bounds on others, and the rest.
    ``planned``: the same as it has been planned; by default it is planned here.

    Attributes:
        possible_r, possible_s: Tuples that may have a partner: bool (r,), (s,).
        points: Pairs of codes (r,), (s,) that must be equal; empty arrays once `groups` has them.
        decided: False if pairs that meet all of this must be verified.
    """

    def __init__(self, query: Query, incoming: Arrivals, work: Work | None = None, planned: Planned | None = None):
        self._work = work or plain_work()
        planned = planned or Planned.of(query.predicate, incoming, self._work)
        compared, self._tables, self.plan = planned.predicate, planned.tables, planned.plan
        plan = self.plan
        self._coder = Coder(plan)
        self._bounds: dict[str, list[Bounds]] = {}
        self._values: dict[str, list[Vector]] = {}
        self._keys: dict[str, list[Codes]] = {}
        self._ends: dict[str, tuple[list[Codes], list[Codes]]] = {}
        self.possible_r, self.possible_s = np.ones(len(incoming.r), np.bool_), np.ones(len(incoming.s), np.bool_)
        self.points: list[tuple[Codes, Codes]] = []
        self._groups: Groups | None = None
        ranged: dict[tuple[int, int], list[int]] = {}
        self._has_units = False
        for j in plan.required:
            test = plan.tests[j]
            if _always(plan, test):
                continue
            if (codes := self._plain(test)) is not None:
                self.points.append(codes)
                continue
            lows, highs = self._ends_of("r")
            self._work.each(len(incoming.r), partial(_narrow, self.possible_r, lows[j], highs[j]))
            if plan.slots_s[test.s].null_code:
                self._work.each(len(incoming.s), partial(_leave_null, self.possible_s, self.keys("s", test.s)))
            if test.is_point:
                self.points.append((lows[j], self.keys("s", test.s)))
            elif isinstance(plan.slots_s[test.s].key, UnitKey):
                self._has_units = True
            else:
                ranged.setdefault((test.r, test.s), []).append(j)
        self._ranged = [j for (_, s), tests in ranged.items() if not self._is_point(tests, s) for j in tests]
        self.decided = plan.residual is None and len(plan.required) == len(plan.tests) and _only_tests(plan.tree)
        self._test = PairTest(compared)
        self._columns = None if self.decided else {
            side: column_arrays(compared, side, self._tables[side]) for side in SIDES}

    def _plain(self, test: Test) -> tuple[Codes, Codes] | None:
        """Codes of both streams that are equal where ``test`` is true, if it is an equality of two columns of whole
        numbers without NULL: the columns themselves, so that no ends are computed.
        """
        slots = self.plan.slots_r[test.r], self.plan.slots_s[test.s]
        if len(test.relations) > 1 or any(slot.guards or not isinstance(slot.key, ExactKey) or slot.key.nullable
                                          or len(slot.key.terms) > 1 for slot in slots):
            return None
        relation, found = test.relations[0], list[Codes]()
        if not isinstance(relation, ExactRelation) or relation.op != "=" or relation.c or (
                relation.g != -relation.h):
            return None
        for side, slot in zip(SIDES, slots, strict=True):
            assert isinstance(slot.key, ExactKey)
            (term,) = slot.key.terms
            if not isinstance(term.expr, Col) or not term.factor == term.scale == 1:
                return None
            least = slots[1].key.low % 2**64  # type: ignore[union-attr]  # S's, so that its codes are near 0
            table = self._tables[side].select([term.expr.name])
            codes: Codes = np.empty(len(table), np.uint64)
            if not self._work.every(len(table), partial(_moved_back, term.expr, table, np.uint64(least), codes)):
                return None
            found.append(codes)
        return found[0], found[1]

    def _is_point(self, tests: list[int], slot: int) -> bool:
        """True if ``tests`` together, such as <= and >= of one key, are an equality, which is noted."""
        if sum(len(self.plan.tests[j].relations) for j in tests) < 2:
            return False
        low, high = (self._work.combined(take, [ends[j] for j in tests])
                     for take, ends in zip((np.maximum, np.minimum), self._ends_of("r"), strict=True))
        if not self._work.every(len(low), lambda mine: bool(
                (~self.possible_r[mine] | (low[mine] >= high[mine])).all())):
            return False
        self._work.each(len(low), partial(_narrow, self.possible_r, low, high))
        self.points.append((low, self.keys("s", slot)))
        return True

    def keys(self, side: str, slot: int) -> Codes:
        """The keys of a slot of stream ``side`` (n,)."""
        if side not in self._keys:
            found = self._each(side, len(self.plan.slots(side)), self._coder.keys)
            self._keys[side] = found
        return self._keys[side][slot]

    def _ends_of(self, side: str) -> tuple[list[Codes], list[Codes]]:
        """Per test the ends of the intervals of the tuples of stream ``side`` (n,)."""
        if side not in self._ends:
            n = len(self.plan.tests)

            def both(of: str, values: list[Vector]) -> list[Codes]:
                lows, highs = self._coder.bounds(of, values)
                return [*lows, *highs]

            found = self._each(side, 2 * n, both)
            self._ends[side] = found[:n], found[n:]
        return self._ends[side]

    def _each(self, side: str, n: int, code: Callable[[str, list[Vector]], list[Codes]]) -> list[Codes]:
        """The ``n`` arrays that ``code`` makes of the values of stream ``side``, slice by slice where each value has a
        code of its own.
        """
        table = self._tables["r" if side == "r" else "s"]
        if not all(isinstance(slot.key, (ExactKey, FloatKey, WideKey)) for slot in self.plan.slots(side)):
            if side not in self._values:
                self._values[side] = self._coder.values(side, table)
            return code(side, self._values[side])
        slices = self._work.slices(len(table))
        if len(slices) == 1:
            return code(side, self._coder.values(side, table))
        found = [np.empty(len(table), np.uint64) for _ in range(n)]

        def some(mine: slice) -> None:
            values = self._coder.values(side, table.slice(mine.start, mine.stop - mine.start))
            for whole, part in zip(found, code(side, values), strict=True):
                whole[mine] = part

        self._work.map_short(some, slices)
        return found

    def bounds(self, stored: Side) -> list[Bounds]:
        """The bounds of all required comparisons but equalities, by slot of the stream ``stored``."""
        if stored not in self._bounds:
            probing = other_side(stored)
            found: dict[int, list[int]] = {}
            for j in self._ranged:
                test = self.plan.tests[j]
                found.setdefault(test.s if stored == "s" else test.r, []).append(j)
            lows, highs = self._ends_of(probing) if found else ([], [])
            self._bounds[stored] = [
                Bounds(self.keys(stored, slot), self._work.combined(np.maximum, [lows[j] for j in tests]),
                       self._work.combined(np.minimum, [highs[j] for j in tests]), tuple(tests),
                       self._whole(tests)) for slot, tests in found.items()]
        return self._bounds[stored]

    def _whole(self, tests: list[int]) -> frozenset[int]:
        """The slots of S of which ``tests`` are all comparisons."""
        slots = {self.plan.tests[j].s for j in tests}
        others = {self.plan.tests[j].s for j in self._ranged if j not in tests}
        return frozenset(slots - others)

    def true(self, r: Rows, s: Rows) -> Mask:
        """True for each pair of row ids of which the condition is true."""
        if self._columns is None:
            found = np.ones(len(r), np.bool_)
            for j in self.plan.required:
                keys, (lows, highs) = self.keys("s", self.plan.tests[j].s)[s], self._ends_of("r")
                found &= (keys >= lows[j][r]) & (keys <= highs[j][r])
            return found
        return self._test.true("r", self._columns["r"], r, self._columns["s"], s)

    def groups(self) -> Groups:
        """The tuples of both streams by their equal keys, whose codes are not kept."""
        if self._groups is None:
            self._groups = self._grouped()
            self.points = [(_NO_CODES, _NO_CODES) for _ in self.points]
        return self._groups

    def forget_groups(self) -> None:
        """Have `groups` made anew, of `points` that have changed."""
        self._groups = None

    def _grouped(self) -> Groups:
        if self._ranged and not self.points and not self._has_units and bool(self.possible_s.all()):
            # The intervals of tuples that can have no partner hold no key; but the ends of one that is empty, as S has
            # no such key, may each be another key.
            return Groups(self.points, np.ones_like(self.possible_r), self.possible_s, self._work)
        return Groups(self.points, self.possible_r, self.possible_s, self._work)


def _always(plan: Plan, test: Test) -> bool:
    """True if ``test`` is true of each pair, as in the condition TRUE."""
    slots = plan.slots_r[test.r], plan.slots_s[test.s]
    return not any(slot.guards or not isinstance(slot.key, UnitKey) for slot in slots)


def _moved_back(column: Col, table: pa.Table, least: np.uint64, codes: Codes, mine: slice) -> bool:
    """Write to ``codes`` how much some values of ``column`` are above ``least``. Returns False, and writes none, if
    they are not all whole numbers of 64 bits without NULL.
    """
    found = evaluate(column, table.slice(mine.start, mine.stop - mine.start))
    if found.denominator != 1 or found.values.dtype != np.int64 or not found.valid.all():
        return False
    np.subtract(found.values.view(np.uint64), least, out=codes[mine])
    return True


def _leave_null(possible: Mask, keys: Codes, mine: slice) -> None:
    """Leave of those that are ``possible`` the tuples whose keys are not NULL."""
    possible[mine] &= keys[mine] != 0


def _narrow(possible: Mask, low: Codes, high: Codes, mine: slice) -> None:
    """Leave of those that are ``possible`` the tuples whose intervals hold something."""
    possible[mine] &= low[mine] <= high[mine]


def _measured(e: Expr, tables: Mapping[Side, pa.Table], work: Work) -> Expr:
    """``e`` whose columns have the ranges of their values, so that keys are as narrow as these allow, and no wider than
    they can be compared.
    """
    def known(c: Col) -> Col:
        (found,) = Schema.from_table(c.side, measured(tables[c.side].select([c.name])))
        return replace(c, range=found.range, nullable=found.nullable)

    every = list(columns(e))
    found: dict[Expr, Expr] = dict(zip(every, work.map(known, every), strict=True))
    made: list[Expr] = []
    for node, children in distinct(e):
        made.append(found.get(node) or rebuilt(node, [made[i] for i in children]))
    return made[-1]


def _only_tests(tree: Any) -> bool:
    return isinstance(tree, int) or (tree[0] == "and" and all(isinstance(arg, int) for arg in tree[1:]))
