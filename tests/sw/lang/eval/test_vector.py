"""NumPy over all pairs gives what the golden model gives row by row; ranges, roots and nulls are what they claim."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.engines.golden import tuples_of
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.eval.vector import Vector, column, constant, evaluate, evaluate_columns
from splitjoin.lang.ir import Arith, Call, Expr, Isqrt, Lit, NextFloat, columns, walk
from splitjoin.lang.properties import causes, denominator, may_be_null, value_range
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import EXACT, FLOAT64, Bool, Date, Float, Int, Timestamp, is_exact, is_text
from tests.support.sampling import examples
from tests.support.strategies import Scenario, scenario


def query_of(case: Scenario) -> Query:
    return Query.make(Schema.from_table("r", case.r), Schema.from_table("s", case.s), on=case.on.sql, window="ROWS 1")


def pairs(case: Scenario, e: Expr) -> tuple[Vector, list[tuple[Any, Any]]]:
    """``e`` over every pair of rows by NumPy, and the pairs as the golden model sees them."""
    query = query_of(case)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(len(case.r)), np.arange(len(case.s)), indexing="ij"))
    vectors = {}
    for c in columns(e):
        v = column((case.r if c.side == "r" else case.s).column(c.name))
        index = i if c.side == "r" else j
        vectors[c] = Vector(v.values[index], v.valid[index])
    r, s = (tuples_of(case.r if side == "r" else case.s, side, columns(query.predicate)) for side in ("r", "s"))
    return evaluate_columns(e, vectors, len(i)), [(r[a], s[b]) for a, b in zip(i, j, strict=True)]


@settings(max_examples=examples(100))
@given(scenario(max_rows=6))
def test_every_part_of_a_condition(case: Scenario) -> None:
    condition = query_of(case).predicate
    for e in walk(condition):
        v, rows = pairs(case, e)
        golden = compile_condition(e)
        bounds = value_range(e) if is_exact(e.type) or isinstance(e.type, (Date, Timestamp)) else None
        for n, (r, s) in enumerate(rows):
            with np.errstate(all="ignore"):
                expected = golden(r, s)
            assert bool(v.valid[n]) == (expected is not None), (str(e), r, s)
            if expected is None:
                assert may_be_null(e), str(e)
                continue
            got = v.values[n]
            if isinstance(e.type, Float):
                assert np.array(got).tobytes() == np.array(expected, got.dtype).tobytes() or got != got, (str(e), r, s)
            elif is_text(e.type) or isinstance(e.type, Bool):
                assert got == expected, (str(e), r, s)
            else:
                assert Fraction(int(got), v.denominator) == expected, (str(e), r, s)
                assert denominator(e) % v.denominator == 0, str(e)
                assert bounds is None or bounds[0] <= expected <= bounds[1], (str(e), r, s)
            if not isinstance(e.type, Bool):
                with np.errstate(all="ignore"):
                    assert all(compile_condition(c)(r, s) is not None for c in causes(e)), str(e)


@given(st.fractions(-(10**6), 10**40, max_denominator=100))
def test_isqrt(value: Fraction) -> None:
    root = constant(Isqrt(EXACT, Lit(EXACT, value)))
    assert root == -1 if value < 0 else root**2 <= value < (root + 1) ** 2


@pytest.mark.parametrize(("op", "a", "b", "value"), [
    ("div", -7, 2, -3), ("//", -7, 2, -4), ("mod", -7, 2, -1), ("%", -7, 2, 1), ("div", 7, -2, -3), ("//", 7, -2, -4),
    ("mod", 7, -2, 1), ("%", 7, -2, -1), ("mod", 7, 0, None), ("//", 7, 0, None), ("div", -(2**63), -1, 2**63),
    ("mod", Fraction(-15, 2), 2, Fraction(-3, 2)), ("<<", 1, 63, 2**63), (">>", -9, 1, -5),
    ("*", 2**62, 4, 2**64), ("-", -(2**63), 1, -(2**63) - 1),
])
def test_whole_numbers_do_not_wrap(op: Any, a: Any, b: Any, value: Any) -> None:
    e = Arith(EXACT, op, Lit(EXACT, a), Lit(EXACT, b))
    assert constant(e) == value
    assert compile_condition(e)({}, {}) == value


@pytest.mark.parametrize(("op", "of", "args", "value"), [
    ("^", Int(64), (-1, 2**64), -1 - 2**64), ("&", Int(8), (-1, 6), 6), ("|", Int(8), (-8, 1), -7),
    ("bit_count", Int(8), (-1,), 8), ("bit_count", Int(64, False), (2**64 - 1,), 64),
])
def test_operations_on_integers(op: str, of: Int, args: tuple[int, ...], value: int) -> None:
    e = Call(EXACT, op, of, tuple(Lit(EXACT, a) for a in args))
    assert constant(e) == value
    assert compile_condition(e)({}, {}) == value


def test_columns_keep_their_dtype_whatever_is_in_them() -> None:
    wide = pa.chunked_array([pa.array([1, None], pa.uint64()), pa.array([2**64 - 1], pa.uint64())])
    assert column(wide).values.dtype == column(wide.slice(0, 1)).values.dtype == np.uint64
    condition = query("r.x + 1 > 0", pa.table({"x": wide}))
    v = evaluate(condition.children[0], pa.table({"x": wide}))
    assert [int(x) for x, ok in zip(v.values, v.valid, strict=True) if ok] == [2, 2**64]


def test_beyond_the_largest_float_is_infinity() -> None:
    largest = np.finfo(np.float64).max
    r = pa.table({"y": [largest, -largest, float("nan")]})
    condition = query("r.y < 0", r)
    for up, expected in ((True, [math.inf, np.nextafter(-largest, 0), math.inf]),
                         (False, [np.nextafter(largest, 0), -math.inf, -math.inf])):
        assert evaluate(NextFloat(FLOAT64, condition.children[0], up), r).values.tolist() == expected


def query(on: str, r: pa.Table) -> Expr:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", pa.table({"a": [1]})), on=on,
                      window="ROWS 1").predicate


def test_decimals_of_sliced_columns() -> None:
    data = pa.array([Decimal("1.50"), None, Decimal("-99999999999999999999.25"), Decimal("3.00")], pa.decimal128(38, 2))
    v = column(pa.chunked_array([data.slice(1, 2), data.slice(3)]))
    assert v.values.tolist() == [0, -9999999999999999999925, 300]
    assert v.valid.tolist() == [False, True, True]
