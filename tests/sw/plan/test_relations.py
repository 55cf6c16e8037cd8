"""Monotone bounds are right to the last bit: an interval's ends satisfy the comparison as NumPy and DuckDB compute it,
and the floats just outside do not.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.plan.keys import FloatKey, Texts, float_values
from splitjoin.plan.passes.compiler import make_plan
from splitjoin.plan.relations import interval
from tests.support.sampling import examples

#: The difference or sum that is compared, in NumPy, and in DuckDB with the type of its literals said.
SHAPES: dict[str, Any] = {
    "r.y - s.b": lambda y, b: y - b, "s.b - r.y": lambda y, b: b - y, "r.y + s.b": lambda y, b: y + b,
    "r.y - s.b + 0.1": lambda y, b: y - b + y.dtype.type(0.1), "3 * r.y - s.b": lambda y, b: y.dtype.type(3) * y - b,
}
OPS: dict[str, Any] = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}


@pytest.fixture(scope="module")
def db() -> Any:
    with duckdb.connect() as connection:
        connection.sql("SET threads = 1")
        yield connection


@settings(max_examples=examples(60))
@given(st.sampled_from([32, 64]), st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(OPS)), st.sampled_from("rs"),
       st.data())
def test_a_last_bit_either_side(db: Any, bits: int, shape: str, op: str, probe: str, data: st.DataObject) -> None:
    dtype: Any = np.float32 if bits == 32 else np.float64
    arrow = pa.float32() if bits == 32 else pa.float64()
    constant = data.draw(st.floats(-1e6, 1e6, width=32).map(lambda v: float(f"{v:.6f}")))
    some = st.floats(width=bits, allow_nan=False)  # type: ignore[arg-type]  # 32 or 64
    probes = np.array(data.draw(st.lists(some, min_size=1, max_size=4)), dtype)
    schemas = [Schema.from_arrow(side, pa.schema([(name, arrow)])) for side, name in (("r", "y"), ("s", "b"))]
    # In a comparison, a float32 meets a literal as float64.
    plan = make_plan(Query.make(*schemas, on=f"{shape} {op} {constant!r}", window="ROWS 1").predicate)
    (test,), mine, theirs = plan.tests, plan.slots(probe)[0].key, plan.slots("s" if probe == "r" else "r")[0].key
    assert isinstance(mine, FloatKey) and isinstance(theirs, FloatKey)
    table = pa.table({"y" if probe == "r" else "b": pa.array(probes, arrow)})
    lows, highs = interval(test.relations[0], probe, mine.values(table, Texts()), mine, theirs)
    rows: list[tuple[float, float, bool]] = []
    for value, low, high in zip(probes, lows.tolist(), highs.tolist(), strict=True):
        empty = low > high
        around = [theirs.low_code, theirs.high_code] if empty else [low - 1, low, low + 1, high - 1, high, high + 1]
        codes = np.array([c for c in around if theirs.low_code <= c <= theirs.high_code], np.uint64)
        for code, key in zip(codes.tolist(), float_values(codes, theirs.bits, theirs.nan_low), strict=True):
            # The literal's factor, if any, is in the key itself: the column's value is asked for.
            expr = str(theirs.expr)
            if expr.startswith("("):
                continue
            rows.append((*((value, key) if probe == "r" else (key, value)), not empty and low <= code <= high))
    if not rows:
        return
    y, b = (np.array([row[i] for row in rows], dtype) for i in (0, 1))
    inside = [row[2] for row in rows]
    with np.errstate(all="ignore"):
        result = SHAPES[shape](y, b).astype(np.float64)
        met = np.where(np.isnan(result), op in (">", ">="), OPS[op](result, constant))  # NaN is greater than everything
    assert met.tolist() == inside
    type_ = "FLOAT" if bits == 32 else "DOUBLE"
    typed = shape.replace("0.1", f"CAST(0.1 AS {type_})").replace("3 *", f"CAST(3 AS {type_}) *")
    db.register("pairs", pa.table({"k": range(len(rows)), "y": pa.array(y, arrow), "b": pa.array(b, arrow)}))
    typed = typed.replace("r.y", "y").replace("s.b", "b")
    asked = f"CAST({typed} AS DOUBLE) {op} CAST({constant!r} AS DOUBLE)"
    answer = db.sql(f"SELECT {asked} FROM pairs ORDER BY k").fetchall()
    assert [row[0] for row in answer] == inside


@settings(max_examples=examples(60))
@given(st.sampled_from(["<=", "<", "=", ">=", ">"]), st.integers(-3, 3).filter(bool), st.integers(-3, 3).filter(bool),
       st.integers(-(2**40), 2**40), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=4))
def test_whole_numbers_either_side(db: Any, op: str, g: int, h: int, c: int, probes: list[int]) -> None:
    schemas = [Schema.from_arrow(side, pa.schema([pa.field(name, pa.int64(), False)]))
               for side, name in (("r", "x"), ("s", "a"))]
    plan = make_plan(Query.make(*schemas, on=f"{g} * r.x + {h} * s.a {op} {c}", window="ROWS 1").predicate)
    key = plan.slots_s[0].key
    low, high = interval(plan.tests[0].relations[0], "r", plan.slots_r[0].key.values(pa.table({"x": probes}), Texts()),
                         plan.slots_r[0].key, key)
    offset = getattr(key, "low") - int(key.nullable)  # noqa: B009  # the code of a whole number, from that of the least
    rows = []
    for x, first, last in zip(probes, low.tolist(), high.tolist(), strict=True):
        near = {first - 1, first, first + 1, last - 1, last, last + 1} if first <= last else {1, 2**63}
        rows += [(x, code + offset, first <= code <= last) for code in near
                 if int(key.nullable) <= code <= getattr(key, "high") - offset]  # noqa: B009
    db.register("whole", pa.table({"k": range(len(rows)), "x": [row[0] for row in rows],
                                   "a": pa.array([row[1] for row in rows], pa.int64())}))
    answer = db.sql(f"SELECT {g}::HUGEINT * x + {h}::HUGEINT * a {op} {c} FROM whole ORDER BY k").fetchall()
    assert [row[0] for row in answer] == [row[2] for row in rows]
    assert [{"<=": v <= c, "<": v < c, "=": v == c, ">=": v >= c, ">": v > c}[op]
            for v in (g * x + h * a for x, a, _ in rows)] == [row[2] for row in rows]


_TEXTS = st.one_of(st.text("ab\0", max_size=9), st.sampled_from(["\U0010ffff" * 2, "zzzzzzz", "zzzzzzz\0", "zzzzzzzz"]))


@settings(max_examples=examples(100))
@given(st.sampled_from(["<", "<=", ">", ">="]), st.lists(_TEXTS, min_size=1, max_size=9), st.sampled_from("rs"))
def test_texts_that_keys_hold_are_decided(op: str, some: list[str], probe: str) -> None:
    """Candidates that are no match have more than seven bytes, and begin alike."""
    schemas = [Schema.from_arrow(side, pa.schema([(name, pa.string())])) for side, name in (("r", "t"), ("s", "w"))]
    plan = make_plan(Query.make(*schemas, on=f"r.t {op} s.w", window="ROWS 1").predicate)
    (test,), mine, theirs = plan.tests, plan.slots(probe)[0].key, plan.slots("s" if probe == "r" else "r")[0].key
    own, stored = (pa.table({name: pa.array(some, pa.string())}) for name in ("tw" if probe == "r" else "wt"))
    lows, highs = interval(test.relations[0], probe, mine.values(own, Texts()), mine, theirs)
    codes = theirs.encode(theirs.values(stored, Texts()))
    for text, low, high in zip((t.encode() for t in some), lows.tolist(), highs.tolist(), strict=True):
        for other, code in zip((t.encode() for t in some), codes.tolist(), strict=True):
            r, s = (text, other) if probe == "r" else (other, text)
            met = {"<": r < s, "<=": r <= s, ">": r > s, ">=": r >= s}[op]
            assert (low <= code <= high) == met or (
                not met and min(len(text), len(other)) > 7 and text[:7] == other[:7])
