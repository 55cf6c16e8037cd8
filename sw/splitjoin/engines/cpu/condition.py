"""A condition over two whole tables: codes of equal keys, bounds on others, and the rest; and what windows show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.lang.eval.vector import Vector
from splitjoin.lang.field import measured
from splitjoin.lang.ir import Expr, columns, distinct, rebuilt
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side, other_side
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Codes, UnitKey
from splitjoin.plan.passes.pipeline import make_plan

from ..arrival import Arrivals, R, S, s_before_each_r
from .pairs import PairTest, column_arrays
from .runs_of_keys import Groups
from .text_ranks import with_ranked_texts

__all__ = ["Bounds", "Condition", "Spans", "visible_spans"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Spans:
    """For each tuple of R a range of S's row ids, from ``start`` to before ``end``: int64 (r,). Neither falls."""

    start: Rows
    end: Rows

    def hold_all(self, rows: int) -> bool:
        """True if every range is that of all ``rows``."""
        return not len(self.start) or (int(self.start.max()) == 0 and int(self.end.min()) == rows)

    @property
    def pairs(self) -> int:
        """The number of pairs in the ranges."""
        return int(np.maximum(self.end - self.start, 0).sum())


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

    def ends(self) -> frozenset[str]:
        """The ends, "low" and "high", of intervals that leave any key out."""
        some = self.low <= self.high
        if not len(self.keys) or not some.any():
            return frozenset()
        least = self.keys.min(initial=2**64 - 1, where=self.keys != 0)
        return frozenset(end for end, excludes in (("low", self.low[some].max() > least),
                                                   ("high", self.high[some].min() < self.keys.max())) if excludes)


class Condition:
    """The condition of ``query`` over two whole tables: codes of equal keys, bounds on others, and the rest.

    Attributes:
        possible_r, possible_s: Tuples that may have a partner: bool (r,), (s,).
        points: Pairs of codes (r,), (s,) that must be equal.
        decided: False if pairs that meet all of this must be verified.
    """

    def __init__(self, query: Query, incoming: Arrivals):
        self.plan = plan = with_ranked_texts(make_plan(_measured(query.predicate, incoming)), incoming)
        self._incoming, self._coder = incoming, Coder(plan)
        self._bounds: dict[str, list[Bounds]] = {}
        self._values: dict[str, list[Vector]] = {
            side: self._coder.values(side, incoming.table(side)) for side in SIDES}
        self._keys: dict[str, list[Codes]] = {}
        self._ends: dict[str, tuple[list[Codes], list[Codes]]] = {"r": self._coder.bounds("r", self._values["r"])}
        lows, highs = self._ends["r"]
        self.possible_r, self.possible_s = np.ones(len(incoming.r), np.bool_), np.ones(len(incoming.s), np.bool_)
        self.points: list[tuple[Codes, Codes]] = []
        ranged: dict[tuple[int, int], list[int]] = {}
        for j in plan.required:
            test = plan.tests[j]
            self.possible_r &= lows[j] <= highs[j]
            if plan.slots_s[test.s].null_code:
                self.possible_s &= self.keys("s", test.s) != 0
            if test.is_point:
                self.points.append((lows[j], self.keys("s", test.s)))
            elif not isinstance(plan.slots_s[test.s].key, UnitKey):
                ranged.setdefault((test.r, test.s), []).append(j)
        self._ranged = [j for (_, s), tests in ranged.items() if not self._is_point(tests, s) for j in tests]
        self.decided = plan.residual is None and len(plan.required) == len(plan.tests) and _only_tests(plan.tree)
        self._test = PairTest(query.predicate)
        self._columns = None if self.decided else {
            side: column_arrays(query.predicate, side, incoming.table(side)) for side in SIDES}

    def _is_point(self, tests: list[int], slot: int) -> bool:
        """True if ``tests`` together, such as <= and >= of one key, are an equality, which is noted."""
        if sum(len(self.plan.tests[j].relations) for j in tests) < 2:
            return False
        low, high = (reduce(take, (ends[j] for j in tests))
                     for take, ends in zip((np.maximum, np.minimum), self._ends["r"], strict=True))
        possible = self.possible_r & (low <= high)
        if not bool((low == high)[possible].all()):
            return False
        self.possible_r = possible
        self.points.append((low, self.keys("s", slot)))
        return True

    def keys(self, side: str, slot: int) -> Codes:
        """The keys of a slot of stream ``side`` (n,)."""
        if side not in self._keys:
            self._keys[side] = self._coder.keys(side, self._values[side])
        return self._keys[side][slot]

    def bounds(self, stored: Side) -> list[Bounds]:
        """The bounds of all required comparisons but equalities, by slot of the stream ``stored``."""
        if stored not in self._bounds:
            probing = other_side(stored)
            if self._ranged and probing not in self._ends:
                self._ends[probing] = self._coder.bounds(probing, self._values[probing])
            found: dict[int, list[int]] = {}
            for j in self._ranged:
                test = self.plan.tests[j]
                found.setdefault(test.s if stored == "s" else test.r, []).append(j)
            self._bounds[stored] = [
                Bounds(self.keys(stored, slot), reduce(np.maximum, (self._ends[probing][0][j] for j in tests)),
                       reduce(np.minimum, (self._ends[probing][1][j] for j in tests)), tuple(tests),
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
                keys, (lows, highs) = self.keys("s", self.plan.tests[j].s)[s], self._ends["r"]
                found &= (keys >= lows[j][r]) & (keys <= highs[j][r])
            return found
        return self._test.true("r", self._columns["r"], r, self._columns["s"], s)

    def groups(self) -> Groups:
        """The tuples of both streams by their equal keys."""
        return Groups(self.points, self.possible_r, self.possible_s)


def _measured(e: Expr, incoming: Arrivals) -> Expr:
    """``e`` whose columns have the ranges of their values, so that keys are as narrow as these allow, and no wider than
    they can be compared.
    """
    found: dict[Expr, Expr] = {}
    for side in SIDES:
        mine = [c for c in columns(e) if c.side == side]
        known = {c.name: c for c in Schema.from_table(side, measured(incoming.table(side).select(
            list(dict.fromkeys(c.name for c in mine)))))}
        found |= {c: replace(c, range=known[c.name].range, nullable=known[c.name].nullable) for c in mine}
    made: list[Expr] = []
    for node, children in distinct(e):
        made.append(found.get(node) or rebuilt(node, [made[i] for i in children]))
    return made[-1]


def _only_tests(tree: Any) -> bool:
    return isinstance(tree, int) or (tree[0] == "and" and all(isinstance(arg, int) for arg in tree[1:]))


def visible_spans(query: Query, incoming: Arrivals) -> Spans:
    """The tuples of S that each tuple of R meets within the windows, before it or after it (semantics, section 2)."""
    before_r = s_before_each_r(incoming.stream, 0)
    at = np.flatnonzero(incoming.stream == S)
    before_s = at - np.arange(len(at))  # tuples of R before each of S
    start, end = np.zeros(len(before_r), np.int64), np.full(len(before_r), len(at), np.int64)
    if query.window_s.rows is not None and query.window_s.rows < len(at):
        start = np.maximum(before_r - query.window_s.rows, 0)
    if query.window_r.rows is not None and query.window_r.rows < len(before_r):
        end = np.searchsorted(before_s, np.arange(len(before_r)) + query.window_r.rows, side="right")
    if incoming.ts is not None:
        times_r, times_s = incoming.ts[incoming.stream == R], incoming.ts[at]
        if query.window_s.length is not None:
            start = np.maximum(start, np.searchsorted(times_s, _moved(times_r, -query.window_s.length), side="left"))
        if query.window_r.length is not None:
            end = np.minimum(end, np.searchsorted(times_s, _moved(times_r, query.window_r.length), side="right"))
    return Spans(start, end)


def _moved(times: npt.NDArray[np.int64], by: int) -> npt.NDArray[np.int64]:
    """``times`` moved by ``by`` ticks, as far as 64 bits go."""
    length = np.uint64(min(abs(by), 2**64 - 1))  # more than a signed number holds
    above = times.view(np.uint64) ^ np.uint64(1 << 63)  # above the least time
    room = above if by < 0 else ~above
    moved = np.where(room < length, room, length)
    return ((above - moved if by < 0 else above + moved) ^ np.uint64(1 << 63)).view(np.int64)
