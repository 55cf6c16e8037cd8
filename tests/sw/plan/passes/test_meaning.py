"""Each pass keeps a condition's meaning: random conditions over all pairs of random rows, NULL and NaN among them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings

from splitjoin.lang.eval.vector import Vector, column, evaluate_columns
from splitjoin.lang.ir import And, Expr, columns
from splitjoin.lang.query import predicate
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import BOOL
from splitjoin.plan.forms import Both, Compared, Form, Junction, OneSided, positive
from splitjoin.plan.keys import Texts
from splitjoin.plan.passes.bounds import bounded
from splitjoin.plan.passes.conditions import TooManyCases, fold, lift, narrow
from splitjoin.plan.passes.strength import reduced
from splitjoin.plan.passes.tree import _combined, split
from splitjoin.plan.relations import interval

from ....support.sampling import examples
from ....support.strategies import Scenario, scenario

Mask = npt.NDArray[np.bool_]


class Pairs:
    """All pairs of rows of a scenario's tables."""

    def __init__(self, case: Scenario):
        self.tables = {"r": case.r, "s": case.s}
        rows = np.meshgrid(np.arange(len(case.r)), np.arange(len(case.s)), indexing="ij")
        self.rows = {"r": rows[0].ravel(), "s": rows[1].ravel()}
        self.condition = predicate(case.on.sql, Schema.from_table("r", case.r), Schema.from_table("s", case.s))
        self.texts = Texts()
        self.differ = False

    def values(self, e: Expr) -> Vector:
        """``e`` for each pair."""
        found = {}
        for c in columns(e):
            v, at = column(self.tables[c.side].column(c.name)), self.rows[c.side]
            found[c] = Vector(v.values[at], v.valid[at])
        return evaluate_columns(e, found, len(self.rows["r"]))

    def true(self, e: Expr) -> Mask:
        """True for each pair for which condition ``e`` is true."""
        v = self.values(e)
        return v.valid & v.values.astype(np.bool_)

    def holds(self, form: Form) -> Mask:
        """True for each pair for which ``form`` is true."""
        match form:
            case OneSided():
                v = self.values(form.condition)
                by = {"true": v.valid & v.values, "false": v.valid & ~v.values, "null": ~v.valid}
                return np.logical_or.reduce([by[x] for x in form.values] or [np.zeros(len(v.valid), np.bool_)])
            case Both():
                return self.true(form.cmp)
            case Compared():
                found = [self._test(form, probe, stored) for probe, stored in (("r", "s"), ("s", "r"))]
                # Tests that decide are the same from both sides; implied ones may let through others.
                self.differ = self.differ or bool((found[0] != found[1]).any())
                return found[0] & found[1]
            case Junction():
                all_ = np.full(len(self.rows["r"]), form.op == "and")
                for a in form.args:
                    all_ = all_ & self.holds(a) if form.op == "and" else all_ | self.holds(a)
                return all_
        raise AssertionError(form)

    def _test(self, test: Compared, probe: str, stored: str) -> Mask:
        mine, theirs = (test.r, test.s) if probe == "r" else (test.s, test.r)
        p, q = mine.values(self.tables[probe], self.texts), theirs.values(self.tables[stored], self.texts)
        code, at = theirs.encode(q)[self.rows[stored]], self.rows[probe]
        inside = p.valid[at] & q.valid[self.rows[stored]]
        for relation in test.relations:
            low, high = interval(relation, probe, p, mine, theirs)
            inside &= (low[at] <= code) & (code <= high[at])
        return inside


def same(a: Vector, b: Vector) -> bool:
    return bool((a.valid == b.valid).all() and (a.values[a.valid] == b.values[b.valid]).all())


@settings(max_examples=examples(60))
@given(scenario(max_rows=6))
def test_fold_and_lift_keep_three_valued_logic(case: Scenario) -> None:
    pairs = Pairs(case)
    wanted = pairs.values(pairs.condition)
    assert same(pairs.values(fold(pairs.condition)), wanted)
    with contextlib.suppress(TooManyCases):
        assert same(pairs.values(lift(pairs.condition)), wanted)


@settings(max_examples=examples(60))
@given(scenario(max_rows=6))
def test_narrow_keeps_what_is_true(case: Scenario) -> None:
    pairs = Pairs(case)
    parts = pairs.condition.args if isinstance(pairs.condition, And) else (pairs.condition,)
    made = narrow(parts)
    assert (pairs.true(And(BOOL, tuple(made))) == pairs.true(pairs.condition)).all()


@settings(max_examples=examples(60))
@given(scenario(max_rows=6))
def test_forms_are_true_where_the_condition_is(case: Scenario) -> None:
    pairs = Pairs(case)
    try:
        form = positive(lift(pairs.condition))
    except TooManyCases:
        return
    wanted = pairs.true(pairs.condition)
    with np.errstate(all="ignore"):
        assert (pairs.holds(form) == wanted).all()
        for step in (reduced, bounded):
            undecided: list[str] = []
            before, form = pairs.holds(form), step(form, undecided)
            after = pairs.holds(form)
            assert (before <= after).all() if undecided else (before == after).all(), undecided
            assert undecided or not pairs.differ
        terms = split(form)
        parts = [*terms.r, *terms.s, terms.mixed]
        assert (np.logical_and.reduce([pairs.holds(p) for p in parts]) == pairs.holds(form)).all()


NARROWED = [
    "r.x BETWEEN 0 AND 9 AND abs(r.x - s.a) <= 3", "r.x = 5 AND r.x <= s.a AND NOT (s.b = r.y)",
    "abs(r.x - s.a) <= 1 AND r.x - s.b >= 2", "r.x <= 4 AND s.b >= 2 AND (r.x = s.b OR r.y IS NULL)",
    "r.x > s.a AND s.a > 6 AND (r.y = s.b) IS NULL", "r.x >= 3 AND 2 * r.x + 3 * s.a = 12",
    "r.x > 5 AND r.x < 3 AND r.x = s.a",
    "s.b BETWEEN 1 AND 3 AND coalesce(r.x, 7) + s.b <= r.y AND r.x <> s.b", "r.x = 2 AND abs(r.y - s.b) - r.x <= 0",
]


@pytest.mark.parametrize("on", NARROWED)
def test_narrowed_ranges(on: str) -> None:
    some: list[Any] = [None, *range(-1, 11), 127, -128]
    r = pa.table({"x": pa.array(some, pa.int8()), "y": pa.array(some[::-1], pa.int8())})
    s = pa.table({"a": pa.array(some, pa.int8()), "b": pa.array(some[3:] + some[:3], pa.int8())})
    condition = type("On", (), {"sql": on})()
    case = Scenario(r, s, condition, None, None, "total")  # type: ignore[arg-type]  # has all of a condition it needs
    pairs = Pairs(case)
    assert isinstance(pairs.condition, And)
    made = narrow(pairs.condition.args)
    assert tuple(made) != pairs.condition.args
    assert (pairs.true(And(BOOL, tuple(made))) == pairs.true(pairs.condition)).all()


@pytest.mark.parametrize(("op", "args", "made"), [
    ("or", [("and", 0, 1), ("and", 1, 0)], ("and", 0, 1)),
    ("or", [("and", 0, 1), ("and", 0, 2), ("and", 3, 0)], ("and", 0, ("or", 1, 2, 3))),
    ("or", [("and", 0, 1, 4), ("and", 0, 4, 2)], ("and", 0, 4, ("or", 1, 2))),
    ("or", [0, ("and", 1, 2), ("and", 2, 0)], ("or", 0, ("and", 1, 2))),
    ("or", [("and", 1, 2), ("and", 1, 2, 3)], ("and", 1, 2)),
    ("and", [0, 0], 0), ("and", [0, ("and", 1, 2)], ("and", 0, 1, 2)), ("and", [0, ("or", 1, 0)], 0),
    ("and", [("or", 0, 1), 2], ("and", ("or", 0, 1), 2)), ("or", [5], 5),
])
def test_what_branches_have_in_common(op: str, args: Any, made: Any) -> None:
    assert _combined(op, args) == made
