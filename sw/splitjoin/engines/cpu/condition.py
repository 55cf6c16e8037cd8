"""A condition over two whole tables: codes of equal keys, bounds on others, and the rest.

Before it is planned, texts are compared by rank: as columns of whole numbers in their order. And least and greatest
over both streams are taken out of sums, where comparisons take them apart: ``least(r.b, s.b) - greatest(r.a, s.a) >=
75``, intervals that overlap by 75, becomes ``least(r.b - r.a, r.b - s.a, s.b - r.a, s.b - s.a) >= 75``, four
comparisons, all of which must be true. As CASE, which any other condition becomes, it would be cases that each need a
join of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.arrays import Array, Mask, Rows
from splitjoin.base.recent import keep
from splitjoin.lang import build, ir
from splitjoin.lang.eval.pairs import PairTest, column_arrays
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.field import measured
from splitjoin.lang.ir import NEGATED, Cmp, Col, Expr, Lit, columns, distinct, rebuilt, sides
from splitjoin.lang.kind import Kind
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Schema, Side, other_side
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import BOOL, EXACT, Exact, Float, Int, is_exact, is_text
from splitjoin.plan.implication import implies
from splitjoin.plan.keys import Codes, ExactKey, FloatKey, UnitKey, WideKey, texts_of
from splitjoin.plan.linear import ExactRelation, Total
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.plan import Plan, Test, Tree

from ..arrival import Arrivals
from ..loops import loops
from ..slices import Slices
from ..sorting import stable_order
from .float_bisection import BisectingCoder
from .key_groups import Groups, least_code
from .table_work import Work, plain_work

#: The greatest code.
_MOST = 2**64 - 1
_NO_CODES = np.empty(0, np.uint64)
#: Operands of least and greatest that a sum or difference of such may expand to.
_MOST_OPERANDS = 16
_OTHER: Mapping[Literal["least", "greatest"], Literal["least", "greatest"]] = {"least": "greatest", "greatest": "least"}
#: Texts of more bytes keep their prefixes as keys.
_MOST_BYTES = 256
#: The attribute of a condition that holds its plans.
_PLANS = "_plans"
#: Texts of more bytes seldom differ in so few that these fit one number.
_PACKED_BYTES = 16
Numbers = npt.NDArray[np.unsignedinteger[Any]]


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

        if not len(self.keys) or work.every(len(self.low), lambda mine: bool((self.low[mine] > self.high[mine]).all())):
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
        return cls(compared, tables, _planned(compared, tables, work))

    def slice(self, side: Side, at: int, rows: int) -> Planned:
        """The same over so many rows of table ``side`` from row ``at`` on."""
        return replace(self, tables={**self.tables, side: self.tables[side].slice(at, rows)})


class Condition:
    """The condition of ``query`` over two whole tables: codes of equal keys, bounds on others, and the rest.
    ``planned``: the same as it has been planned; by default it is planned here.

    Attributes:
        possible_r, possible_s: Tuples that may have a partner: bool (r,), (s,).
        points: Pairs of codes (r,), (s,) that must be equal; empty arrays once `groups` has them.
        tests: The tests of the plan that are required.
        decided: False if pairs that meet all of this must be verified.
    """

    def __init__(self, query: Query, incoming: Arrivals, work: Work | None = None, planned: Planned | None = None):
        self._work = work or plain_work()
        planned = planned or Planned.of(query.predicate, incoming, self._work)
        self._compared, self._tables, self.plan = planned.predicate, planned.tables, planned.plan
        self._coder = BisectingCoder(self.plan)
        self._rows = len(incoming.r), len(incoming.s)
        self._values: dict[str, list[Vector]] = {}
        self._keys: dict[str, list[Codes]] = {}
        self._ends: dict[str, tuple[list[Codes], list[Codes]]] = {}
        self._columns = dict[Expr, list[list[Array]]]()
        self._take(self.plan.required, len(self.plan.required) == len(self.plan.tests) and only_tests(self.plan.tree))

    def only(self, tests: Collection[int], *, decide: bool) -> Condition:
        """The condition that all ``tests`` hold, and, unless these ``decide``, this condition."""
        found = copy(self)  # with the same codes
        found._take(sorted(tests), decide)
        return found

    def alternatives(self, most: int) -> list[Condition]:
        """At most so many conditions (or one) of which at least one is true exactly where this one is."""
        return [self.only(tests, decide=decide) for tests, decide in alternatives(self.plan, most)]

    def _take(self, tests: Sequence[int], decide: bool) -> None:
        """Have the condition that all ``tests`` hold, and, unless these ``decide``, the whole one."""
        plan, self.tests = self.plan, tests
        self._bounds: dict[str, list[Bounds]] = {}
        self.possible_r: Mask
        self.possible_s: Mask
        self.possible_r, self.possible_s = (np.broadcast_to(np.True_, n) for n in self._rows)
        self.points: list[tuple[Codes, Codes]] = []
        self._groups: Groups | None = None
        ranged: dict[tuple[int, int], list[int]] = {}
        self._has_units = False
        for j in tests:
            test = plan.tests[j]
            if _always(plan, test):
                continue
            if (codes := self._plain(test)) is not None:
                self.points.append(codes)
                continue
            lows, highs = self._ends_of("r")
            if not self.possible_r.flags.writeable:
                self.possible_r, self.possible_s = (np.ones(n, np.bool_) for n in self._rows)
            self._work.each(self._rows[0], partial(_narrow, self.possible_r, lows[j], highs[j]))
            if plan.slots_s[test.s].null_code:
                self._work.each(self._rows[1], partial(_leave_null, self.possible_s, self.keys("s", test.s)))
            if test.is_point:
                self.points.append((lows[j], self.keys("s", test.s)))
            elif isinstance(plan.slots_s[test.s].key, UnitKey):
                self._has_units = True
            else:
                ranged.setdefault((test.r, test.s), []).append(j)
        self._ranged = [j for (_, s), tests in ranged.items() if not self._is_point(tests, s) for j in tests]
        self._decide, self.decided = decide, plan.residual is None and decide

    def _plain(self, test: Test) -> tuple[Codes, Codes] | None:
        """Codes of both streams that are equal where ``test`` is true, if it is an equality of two columns of whole
        numbers without NULL: the columns themselves, so that no ends are computed.
        """
        slots = self.plan.slots_r[test.r], self.plan.slots_s[test.s]
        if len(test.relations) > 1 or any(slot.guards or not isinstance(slot.key, ExactKey) or slot.key.nullable
                                          or len(slot.key.terms) > 1 for slot in slots):
            return None
        relation, found = test.relations[0], list[Codes]()
        if not isinstance(relation, ExactRelation) or relation.op != "=" or relation.c or (relation.g != -relation.h):
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
                found.setdefault(self.plan.tests[j].slot(stored), []).append(j)
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

    def holds(self, r: Rows, s: Rows) -> Mask:
        """True for each pair of row ids of which all tests hold."""
        found = self.possible_r[r] & self.possible_s[s]
        for j in self.tests:
            keys, (lows, highs) = self.keys("s", self.plan.tests[j].s)[s], self._ends_of("r")
            found &= (keys >= lows[j][r]) & (keys <= highs[j][r])
        return found

    def true(self, r: Rows, s: Rows) -> Mask:
        """True for each pair of row ids of which the whole condition is true."""
        if self.decided:
            return self.holds(r, s)
        if self.plan.residual is None or not (self._decide and "r" in self._ends):
            return self._true(self._compared, r, s)
        found = self._true(self.plan.residual, r, s)  # and the tests, which take less time than what they say
        at = np.flatnonzero(found)
        found[at] = self.holds(r[at], s[at])
        return found

    def _true(self, of: Expr, r: Rows, s: Rows) -> Mask:
        if of not in self._columns:
            self._columns[of] = [column_arrays(of, side, self._tables[side]) for side in SIDES]
        mine, others = self._columns[of]
        return PairTest(of).true("r", mine, r, others, s)

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
        slots = {(self.plan.tests[j].r, self.plan.tests[j].s) for j in self._ranged}
        if len(slots) == 1 and not self.points and not self._has_units and bool(self.possible_s.all()):
            # The intervals of tuples that can have no partner hold no key; but the ends of one that is empty, as S has
            # no such key, may each be another key. Of several keys, one may have an interval where another has none.
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


def _planned(e: Expr, tables: Mapping[Side, pa.Table], work: Work) -> Plan:
    """The plan of ``e`` whose columns have the ranges of their values, so that keys are as narrow as these allow, and
    no wider than they can be compared. A condition carries the last plans by these ranges.
    """
    def known(c: Col) -> Col:
        (found,) = Schema.from_table(c.side, measured(tables[c.side].select([c.name])))
        return replace(c, range=found.range, nullable=found.nullable)

    every = list(columns(e))
    found = tuple(work.map(known, every))
    plans: dict[tuple[Col, ...], Plan] = vars(e).setdefault(_PLANS, {})
    if (plan := plans.get(found)) is None:
        plan = keep(plans, found, make_plan(with_sums_inside(_with_columns(e, dict(zip(every, found, strict=True))))))
    return plan


def _with_columns(e: Expr, found: Mapping[Expr, Expr]) -> Expr:
    made: list[Expr] = []
    for node, children in distinct(e):
        made.append(found.get(node) or rebuilt(node, [made[i] for i in children]))
    return made[-1]


def only_tests(tree: Tree) -> bool:
    """True if ``tree`` is a conjunction of tests."""
    return isinstance(tree, int) or (tree[0] == "and" and all(isinstance(arg, int) for arg in tree[1:]))


def alternatives(plan: Plan, most: int) -> list[tuple[frozenset[int], bool]]:
    """At most so many sets of tests (or one) of which at least one holds wherever the tree of ``plan`` does; with True
    for a set of which it also holds wherever this does.

    OR of equalities is taken apart before others, if there is no room for all.
    """
    def of(tree: Tree) -> list[tuple[frozenset[int], bool]]:
        if isinstance(tree, int):
            return [(frozenset([tree]), True)]
        op, *args = tree
        each = [of(arg) for arg in args]
        if op == "or":
            found = list(dict.fromkeys(one for some in each for one in some))
            if len(found) > most:
                found = [some[0] if len(some) == 1 else (frozenset(_required(arg)), False)
                         for arg, some in zip(args, each, strict=True)]
            return found if len(found) <= most else [(frozenset(), False)]
        found = [(frozenset[int](), True)]
        for some in sorted(each, key=lambda some: (len(some) > 1, not all(map(has_point, some)))):
            if len(found) * len(some) <= most:
                found = [(a | b, x and y) for a, x in found for b, y in some]
            else:
                found = [(a, False) for a, _ in found]
        return found

    def has_point(one: tuple[frozenset[int], bool]) -> bool:
        return any(plan.tests[j].is_point for j in one[0])

    return of(plan.tree)


def _required(tree: Tree) -> Iterator[int]:
    """The tests that must hold for ``tree`` to hold."""
    if isinstance(tree, int):
        yield tree
    elif tree[0] == "and":
        yield from (arg for arg in tree[1:] if isinstance(arg, int))


def with_sums_inside(e: Expr) -> Expr:
    """Condition ``e``, the same in three-valued logic, with sums and differences of whole numbers inside of least and
    greatest over both streams.
    """
    if len(sides(e)) < 2:
        return e
    if isinstance(e, (ir.And, ir.Or, ir.Not, ir.Case)):
        return rebuilt(e, [with_sums_inside(c) for c in e.children])
    return rebuilt(e, [_distributed(c) for c in e.children]) if isinstance(e, Cmp) else e


def _distributed(e: Expr) -> Expr:
    """A value with its outermost sums inside; an operand that is NULL makes its sums NULL, which are left out too."""
    if not (isinstance(e, ir.Arith) and e.op in ("+", "-") and isinstance(e.type, Exact) and len(sides(e)) == 2):
        return e
    a, b = _distributed(e.a), _distributed(e.b)
    if isinstance(a, ir.Extreme) and _is_mixed(a):
        kind, parts = a.kind, [(x, b) for x in a.args]
    elif isinstance(b, ir.Extreme) and _is_mixed(b):
        kind, parts = b.kind if e.op == "+" else _OTHER[b.kind], [(a, x) for x in b.args]
    else:
        return e
    made = [_distributed(replace(e, a=x, b=y)) for x, y in parts]
    flat = tuple(y for x in made for y in (x.args if isinstance(x, ir.Extreme) and x.kind == kind else (x,)))
    return ir.Extreme(EXACT, kind, flat) if len(flat) <= _MOST_OPERANDS else e


def _is_mixed(e: Expr) -> bool:
    return len(sides(e)) == 2 and is_exact(e.type)


def with_ranked_texts(predicate: Expr, tables: Mapping[Side, pa.Table]) -> tuple[Expr, Mapping[Side, pa.Table]]:
    """``predicate`` with comparisons of whole numbers in place of comparisons between texts of both streams, and the
    ``tables`` with the columns of these numbers, NULL for NULL.

    The number of a text is its rank among all that are compared by ``<`` and the like; if it is compared by ``=`` and
    ``<>`` alone, any number that equal texts share. Comparisons by rank stay as they are if a text is very long.
    """
    found = dict(tables)
    compared = [node for node, _ in distinct(predicate) if isinstance(node, Cmp) and _is_of_both(node)]
    ordered = dict.fromkeys(e for node in compared if node.op not in ("=", "<>") for e in (node.a, node.b))
    ranks = _columns(list(ordered), found, "rank", _ranks)
    others = dict.fromkeys(e for node in compared if node.op in ("=", "<>") and not {node.a, node.b} <= ordered.keys()
                           for e in (node.a, node.b))
    numbers = _columns(list(others), found, "number", _numbers)
    return (_compared_by(predicate, ranks, numbers), found) if ranks or numbers else (predicate, tables)


def _columns(texts: Sequence[Expr], tables: dict[Side, pa.Table], what: str,
             code: Callable[[Sequence[pa.ChunkedArray]], Numbers | None]) -> dict[Expr, Expr]:
    """Columns of the ``tables``, to which they are added, for each of ``texts``, by what ``code`` makes of all values,
    one behind the other; none if it makes nothing.
    """
    values = [texts_of(e, tables[next(iter(sides(e)))]) for e in texts]
    codes = code(values) if values else None
    made, begin = dict[Expr, Expr](), 0
    for n, (e, data) in enumerate(zip(texts, values, strict=True) if codes is not None else ()):
        (side,) = sides(e)
        mine, begin = codes[begin:begin + len(data)], begin + len(data)  # type: ignore[index]  # there are some
        lacking = data.is_null().to_numpy() if data.null_count else None
        name = next(name for k in count(n) if (name := f"splitjoin {what} {k}") not in tables[side].column_names)
        column = pa.array(mine, mask=lacking)
        tables[side] = tables[side].append_column(pa.field(name, column.type), column)
        made[e] = Col(Int(column.type.bit_width, signed=False), side, name, data.null_count > 0)
    return made


def _is_of_both(node: Cmp) -> bool:
    """True if ``node`` compares a text of one stream with one of the other."""
    of = sides(node.a), sides(node.b)
    return is_text(node.a.type) and is_text(node.b.type) and len(of[0]) == len(of[1]) == 1 and of[0] != of[1]


def _compared_by(predicate: Expr, ranks: dict[Expr, Expr], numbers: dict[Expr, Expr]) -> Expr:
    """``predicate`` with columns in place of texts wherever two of these are compared that have ``ranks``, or for ``=``
    and ``<>`` ``numbers``.
    """
    made: list[Expr] = []
    for node, children in distinct(predicate):
        of = ranks if isinstance(node, Cmp) and {node.a, node.b} <= ranks.keys() else numbers
        if isinstance(node, Cmp) and {node.a, node.b} <= of.keys() and (of is ranks or node.op in ("=", "<>")):
            made.append(replace(node, a=of[node.a], b=of[node.b]))
        else:
            made.append(rebuilt(node, [made[i] for i in children]))
    return made[-1]


def _numbers(texts: Sequence[pa.ChunkedArray]) -> Numbers | None:
    """A number for each of ``texts``, one behind the other, equal for equal ones; None if they are too many."""
    if (packed := _packed(texts)) is not None:
        return packed
    chunks = [chunk.cast(pa.large_binary()) for data in texts for chunk in data.chunks]
    if not chunks:
        return np.empty(0, np.uint32)
    try:
        found = pa.concat_arrays(chunks).dictionary_encode().indices
    except pa.ArrowException:  # more values than a dictionary has numbers
        return None
    numbers: npt.NDArray[np.uint32] = pc.fill_null(found, 0).to_numpy().astype(np.uint32)
    return numbers


def _parts(texts: Sequence[pa.ChunkedArray], most: int) -> list[npt.NDArray[np.uint64]] | None:
    """All values of ``texts`` as columns of uint64: eight bytes in each, with zeros behind the end, and last their
    lengths, which alone tell a text from one with further zeros. None if one has more than ``most`` bytes.
    """
    chunks = [(np.frombuffer(ends, np.int64, chunk.offset + len(chunk) + 1)[chunk.offset:],
               np.frombuffer(content or b"", np.uint8)) for data in texts for chunk in data.chunks if len(chunk)
              for _, ends, content in [chunk.buffers()]]
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(ends) for ends, _ in chunks)]).view(np.uint64)
    longest = int(sizes.max(initial=0))
    if longest > most:
        return None
    parts = [np.empty(len(sizes), np.uint64) for _ in range(0, longest, 8)]
    for n, part in enumerate(parts):
        begin = 0
        for ends, content in chunks:
            mine = part[begin:(begin := begin + len(ends) - 1)]
            loops()["text_words"](np.require(ends, np.int64, ["A"]), content, 8 * n, mine)
    return [*parts, sizes]


def _packed(texts: Sequence[pa.ChunkedArray]) -> Numbers | None:
    """The bytes of each of ``texts`` that differ at all, and its length, in one number; None if they do not fit."""
    parts = _parts(texts, _PACKED_BYTES)
    if parts is None:
        return None
    found, bits = np.zeros(len(parts[-1]), np.uint64), 0
    for part in parts:
        part -= part.min(initial=2**64 - 1)  # in its place
        used = int(np.bitwise_or.reduce(part))
        if not used:
            continue
        end = (used & -used).bit_length() - 1  # bits that are 0 in all
        width = (used >> end).bit_length()
        bits += width
        if bits > 62:
            return None
        part >>= np.uint64(end)
        found <<= np.uint64(width)
        found |= part
    return found


def _ranks(texts: Sequence[pa.ChunkedArray]) -> Numbers | None:
    """The rank of each of ``texts``, one behind the other, by the order of bytes, from 0; None if one is too long."""
    every = _parts(texts, _MOST_BYTES)
    if every is None:
        return None
    parts = [part for part in every if len(part) and part.min() < part.max()]
    order: Rows | None = None
    for part in reversed(parts):
        order = stable_order(part) if order is None else order[stable_order(part[order])]
    ranks = np.zeros(len(every[-1]), np.uint32)
    if order is None:
        return ranks
    rises = np.zeros(len(order), np.bool_)
    for part in parts:
        sorted_part = part[order]
        rises[1:] |= sorted_part[1:] != sorted_part[:-1]
    ranks[order] = np.cumsum(rises, dtype=np.uint32)
    return ranks


@dataclass(frozen=True)
class Reach:
    """The terms of an as-of join's condition that hold of a partner if they hold of one farther away in time: bounds on
    S's time, beyond which a partner is too far away, and ``<=`` of a number and the difference of both times, which are
    floats. Subtraction of floats does not fall.

    Attributes:
        query: The query without them, and without what follows from the direction in which the join looks.
        terms: Their conjunction; None if there are none.
    """

    query: Query
    terms: Expr | None

    @classmethod
    def of(cls, query: Query) -> Reach:
        """The reach of ``query``."""
        times, predicate, kind = query.time, query.predicate, query.kind
        if not kind.is_asof or times is None or not (times.has_ticks or isinstance(times.type, Float)):
            return cls(query, None)
        conjuncts = tuple(replace(term.a, op=NEGATED[term.a.op]) if isinstance(term, ir.Not) and isinstance(
            term.a, Cmp) else term for term in (predicate.args if isinstance(predicate, ir.And) else (predicate,)))
        if times.has_ticks and kind.direction != "nearest":
            op: Any = {"backward": ">", "forward": "<"}[kind.direction] + "=" * kind.allow_exact
            looks = build.compare(op, build.column(query.r, times.r), build.column(query.s, times.s), "")
            conjuncts = tuple(term for term in conjuncts if {*columns(term)} != {*columns(looks)} or not implies(
                looks, term))
        mine = [term for term in conjuncts if _is_reach(term, times, kind)]
        others = tuple(term for term in conjuncts if term not in mine)
        rest = Lit(BOOL, True) if not others else others[0] if len(others) == 1 else ir.And(BOOL, others)
        return cls(replace(query, predicate=rest), ir.And(BOOL, tuple(mine)) if mine else None)

    def within(self, incoming: Arrivals, partners: Rows) -> Rows:
        """``partners`` of each tuple of R, (r,), or several (r, k), where −1 takes the place of those too far away."""
        if self.terms is None:
            return partners
        columns = {side: column_arrays(self.terms, side, incoming.table(side)) for side in SIDES}
        places = np.nonzero(partners >= 0)
        found = partners.copy()
        near = PairTest(self.terms).true("r", columns["r"], places[0], columns["s"], partners[places])
        found[places] = np.where(near, partners[places], -1)
        return found


def _is_reach(term: Expr, times: TimeColumns, kind: Kind) -> bool:
    if times.has_ticks:
        if not isinstance(term, Cmp) or term.op in ("=", "<>") or not (is_exact(term.a.type) and is_exact(
                term.b.type)) or any(isinstance(e, Lit) and e.value is None for e, _ in distinct(term)):
            return False
        of_s = [(e, "backward" if factor < 0 else "forward") for e, factor in Total.compared(term)[0].terms.items()
                if "s" in sides(e)]
        return len(of_s) == 1 and isinstance(of_s[0][0], Col) and of_s[0][0].name == times.s and (
            of_s[0][1] == kind.direction)
    if not (isinstance(term, Cmp) and term.op == "<=" and isinstance(term.b, Lit)):
        return False
    apart, limit = term.a, term.b.value
    while isinstance(apart, ir.Cast):
        apart = apart.a
    if not isinstance(apart, ir.Arith) or apart.op != "-" or isinstance(limit, (str, bytes)) or limit is None or not (
            limit >= 0):
        return False
    ends = [e.a if isinstance(e, ir.Cast) else e for e in (apart.a, apart.b)]
    return {(e.side, e.name) for e in ends if isinstance(e, Col)} == {("r", times.r), ("s", times.s)}
