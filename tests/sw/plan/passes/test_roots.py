"""Comparisons of square roots of whole numbers become comparisons of the numbers, with the same truth."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import example, given, strategies as st

from splitjoin.lang.eval.vector import evaluate
from splitjoin.lang.ir import Cmp, FloatCall
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.passes.conditions import fold


def comparison(left: str, op: str, c: float) -> tuple[Cmp, pa.Table]:
    table = pa.table({"x": pa.array([0], pa.int64())})
    query = Query.make(Schema.from_table("r", table), Schema.from_table("s", table), window="ROWS 1",
                       on=f"{left} {op} CAST({c!r} AS DOUBLE)")
    found = fold(query.predicate)
    assert isinstance(query.predicate, Cmp) and isinstance(found, Cmp)
    return query.predicate, found


@given(st.integers(0, 3 * 2**31), st.sampled_from(["<", "<=", ">", ">="]), st.integers(-2, 2), st.integers(-2, 2))
@example(2**31 + 1, "<", 0, 1)
@example(0, "<", 0, 0)
def test_the_truth_is_that_of_the_root(x: int, op: str, steps: int, beside: int) -> None:
    """Near the root of x², to the last bit."""
    c = float(x)
    for _ in range(abs(steps)):
        c = math.nextafter(c, math.inf if steps > 0 else -math.inf)
    before, after = comparison("sqrt(r.x * r.x)", op, abs(c))
    table = pa.table({"x": pa.array([max(0, x + beside), -x, 0, x + 1], pa.int64())})
    assert after.a == before.a.a.a  # type: ignore[attr-defined]  # without root and cast
    assert evaluate(after, table).values.tolist() == evaluate(before, table).values.tolist()


@pytest.mark.parametrize("left", ["sqrt(r.x)", "sqrt(r.x * r.x / 3.0)"])
def test_roots_of_what_may_be_negative_or_broken_stay(left: str) -> None:
    _, after = comparison(left, "<=", 5.0)
    assert isinstance(after.a, FloatCall)


def test_a_distance_is_two_bands() -> None:
    table = pa.table({"x": [1], "y": [1]})
    schemas = Schema.from_table("r", table), Schema.from_table("s", table)
    square = "(r.x - s.x) * (r.x - s.x) + (r.y - s.y) * (r.y - s.y)"
    by_root, by_square = (make_plan(Query.make(*schemas, on=on, window="ROWS 9").predicate)
                          for on in (f"sqrt({square}) <= 5.5", f"{square} <= 30"))
    assert by_root.tests == by_square.tests
