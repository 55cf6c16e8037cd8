"""Queries as JSON and back: every condition keeps its meaning, and nothing but a query is taken for one."""

from __future__ import annotations

import copy
import json
import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from splitjoin.base.errors import PredicateError
from splitjoin.lang import ir
from splitjoin.lang.field import field
from splitjoin.lang.ir import MAX_DEPTH, And, Arith, Cmp, Col, IsNull, Isqrt, Lit, Not
from splitjoin.lang.python.choices import coalesce, greatest, where
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.serial import decode_condition, decode_query, encode_condition, encode_query
from splitjoin.lang.types import BINARY, BOOL, EXACT, FLOAT32, FLOAT64, STRING, Int

from ...support import strategies as sj
from ...support.predicates import conditions
from ...support.sampling import examples

R = Schema.from_arrow("r", pa.schema([("ts", pa.int64()), field("x", "int32", min=0, max=99), ("name", pa.string()),
                                      ("f", pa.float32()), ("raw", pa.binary()), ("tags", pa.list_(pa.string())),
                                      ("at", pa.timestamp("ms", "UTC")), ("day", pa.date32())]))
S = Schema.from_arrow("s", pa.schema([("ts", pa.int64()), pa.field("a", pa.int32(), nullable=False),
                                      ("b", pa.decimal128(9, 2)), ("g", pa.float64())]))


def again(query: Query) -> Query:
    """The query after its way through JSON text."""
    return decode_query(json.loads(json.dumps(encode_query(query), allow_nan=False)))


def assert_same(found: Query, query: Query) -> None:
    # The text of data classes has everything in it, and tells zeros of either sign and NaN.
    assert repr(found.predicate) == repr(query.predicate)
    for side in ("r", "s"):
        ours, theirs = query.schema(side), found.schema(side)
        assert (theirs.side, theirs.columns) == (ours.side, ours.columns)
        assert (theirs.arrow is None) == (ours.arrow is None)
        assert ours.arrow is None or theirs.arrow.equals(ours.arrow, check_metadata=True)
        assert found.window(side) == query.window(side)
    assert (found.time, found.order) == (query.time, query.order)


@settings(max_examples=examples(150))
@given(st.data())
def test_random_conditions_return(data: st.DataObject) -> None:
    r, s = data.draw(sj.schemas("x")), data.draw(sj.schemas("a"))
    on = data.draw(conditions(r, s))
    query = Query.make(*(Schema.from_arrow(side, pa.schema(list(c.items()))) for side, c in (("r", r), ("s", s))),
                       on=on.sql, window="ROWS 3")
    assert_same(again(query), query)


@pytest.mark.parametrize("on", [
    lambda r, s: where(r.x > 3, s.a, -s.a) == greatest(r.x, 2, s.a),
    lambda r, s: coalesce(r.x, s.a, 7) != 7,
    lambda r, s: r.name.starts_with("Ün") | r.raw.starts_with(b"\0"),
    lambda r, s: (r.x & 12) ^ s.a == (r.x | 3).bit_count(),
    lambda r, s: abs(r.f - s.g) <= 0.1,
    lambda r, s: (r.x // 7 + r.x % 7 == s.a) & (r.x >> 2 < s.a << 1),
    lambda r, s: (r.at - datetime(2026, 1, 1, tzinfo=UTC) < timedelta(days=2)) | (r.day == date(2026, 1, 1)),
    lambda r, s: r.x + 10**900 < s.b * Fraction(1, 3) - 10**30,
    lambda r, s: r.x.is_null() | ~(s.b > 1),
    lambda r, s: r.name.like("Ü_n%x") & ((r.x - s.a).sqrt() < math.floor(r.f)) | (math.ceil(s.g) == 1),
], ids=range(10))
def test_other_nodes_return(on: Any) -> None:
    query = Query.make(R, S, on=on, window={"r": "ROWS 1 RANGE 9", "s": "RANGE 0"}, time="ts", order="inner(4)")
    assert_same(again(query), query)


@pytest.mark.parametrize("value", [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 0.1])
def test_floats_return_bit_by_bit(value: float) -> None:
    e = Not(BOOL, And(BOOL, (Lit(BOOL, None), *(IsNull(BOOL, Lit(t, value)) for t in (FLOAT32, FLOAT64)))))
    assert repr(decode_condition(encode_condition(e), {"r": R, "s": S})) == repr(e)


@pytest.mark.parametrize("literal", [
    Lit(EXACT, -(10**2000)), Lit(EXACT, Fraction(-1, 3)), Lit(EXACT, 2**63), Lit(STRING, "\ud800 '\0"),
    Lit(BINARY, b"\xff\0"), Lit(STRING, None), Lit(BOOL, True),
], ids=range(7))
def test_literals_return(literal: Lit) -> None:
    e = IsNull(BOOL, literal)
    found = decode_condition(json.loads(json.dumps(encode_condition(e))), {"r": R, "s": S})
    assert found == e
    assert type(found.children[0].value) is type(literal.value)  # type: ignore[attr-defined]  # it is a literal


def test_schemas_without_an_arrow_schema_return() -> None:
    query = Query.make(Schema("r", R.columns), Schema("s", S.columns), on="r.x = s.a", window="ROWS 1")
    assert_same(again(query), query)


def test_a_shared_node_is_sent_once() -> None:
    x: Any = Col(Int(32), "r", "x", True, (0, 99))
    for _ in range(15):
        x = Arith(EXACT, "+", x, x)
    data = encode_condition(Cmp(BOOL, "<", x, Lit(EXACT, 3)))
    assert len(data) == 18
    found = decode_condition(data, {"r": R, "s": S})
    assert found.children[0].children[0] is found.children[0].children[1]


def test_every_node_is_sent_or_of_passes_only() -> None:
    nodes = {name for name, cls in vars(ir).items() if isinstance(cls, type) and issubclass(cls, ir.Expr)}
    sent = {"Abs", "And", "Arith", "Call", "Case", "Cast", "Cmp", "Col", "Extreme", "IsNull", "Lit", "Neg", "Not", "Or",
            "StartsWith", "Like", "FloatCall", "UnitNumber", "UnitStart"}
    assert nodes - {"Expr", "Unary", "Isqrt", "NextFloat", "Within"} == sent


def test_nodes_of_passes_are_refused() -> None:
    with pytest.raises(PredicateError, match="must consist of nodes that front ends make, not of Isqrt"):
        encode_condition(Isqrt(EXACT, Lit(EXACT, 4)))


COLUMN = ["Col", ["Int", 32, True], "r", "x", True, [0, 99]]
NULL = ["Lit", ["Bool"], None]


@pytest.mark.parametrize(("nodes", "message"), [
    ("x", "must have a list of nodes, of which the last one is a truth value there, not 'x'"),
    ([], "must have a list of nodes"),
    ([["__import__", ["Bool"], []]], "a list of nodes, each a list of its name and its fields"),
    ([["Isqrt", ["Exact"], 0]], "a list of nodes, each a list of its name and its fields"),
    ([["Not", ["Bool"], 0]], "must have Expr there, not 0"),
    ([NULL, ["Not", ["Bool"], -1]], "must have Expr there, not -1"),
    ([NULL, ["Not", ["Bool"], True]], "must have Expr there, not True"),
    ([NULL, ["Not", ["Bool"], 0, 1]], "must have Not with 2 fields there, not list"),
    ([NULL, ["And", ["Bool"], 0]], "must have .* there, not 0"),
    ([COLUMN, ["Cmp", ["Bool"], "==", 0, 0]], "must have .* there, not '=='"),
    ([COLUMN, ["Arith", ["Exact"], "); import os", 0, 0]], "must have .* there, not '[)]; import os'"),
    ([COLUMN, ["Call", ["Exact"], "eval", ["Int", 32, True], [0]]], "of which the last one is a truth value there"),
    ([COLUMN], "of which the last one is a truth value there"),
    ([[*COLUMN[:3], "y", True, None], NULL, ["IsNull", ["Bool"], 0]], "the column r.y of the condition must be one of"),
    ([[*COLUMN[:5], [0, 9]], NULL, ["IsNull", ["Bool"], 0]], "the column r.x of the condition must be one of the sch"),
    ([["Lit", ["Bool"], {"float": "zz"}]], "there, not dict"),
    ([["Lit", ["Bool"], {"ratio": [1, 0]}]], "there, not dict"),
    ([["Lit", ["Bool"], {"code": "1"}]], "there, not dict"),
    ([["Lit", ["Bool"], {"bytes": "00", "more": 1}]], "there, not dict"),
    ([["Lit", ["Timestamp", "h", None], 1]], "there, not 'h'"),
    ([["Lit", "Bool", None]], "must have Type there, not 'Bool'"),
    ([["Lit", ["Type"], None]], "must have Type there, not list"),
    ([NULL, *(["Not", ["Bool"], n] for n in range(MAX_DEPTH))], "must not be nested more than 100 levels"),
    ([NULL, *(["And", ["Bool"], [n, n]] for n in range(30))], "must not have more than 100,000 operations"),
])
def test_hostile_conditions_are_refused(nodes: Any, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        decode_condition(nodes, {"r": R, "s": S})


@pytest.mark.parametrize(("path", "value", "message"), [
    ((), None, "a query that comes from another process must have an object with condition, r, s, window_r"),
    (("more",), 1, "an object with condition, r, s, window_r"),
    (("order",), ["most", 1], "there, not 'most'"),
    (("order",), ["outer", 0], "the precision of order 'outer' must be 1 to"),
    (("order",), "total", "must have Order there"),
    (("window_r",), [None, None], "a window with a number of rows from 1"),
    (("window_r",), [0, None], "a window with a number of rows from 1"),
    (("window_r",), [True, None], "there, not True"),
    (("window_s",), [1, -1], "a window with a number of rows from 1"),
    (("window_s",), [1, 1, 1], "must have Extent with 2 fields there"),
    (("time",), ["ts", "no", ["Int", 64, True], None], "columns of both streams as time"),
    (("time",), ["ts", "ts", ["Int", 64, True], "ms"], "columns of both streams as time"),
    (("time",), ["ts", "ts", ["Float", 64], None], "columns of both streams as time"),
    (("r",), [], "must have Schema with 3 fields there"),
    (("r", 0), "s", "columns of both streams as time"),
    (("r", 1), [["x", ["Int", 32, True], 1, None]], "must have bool there, not 1"),
    (("r", 1), [["x", ["Bool"], True, None]] * 2, "column names of stream r must be unique"),
    (("r", 2), {"bytes": "00"}, "the schema of stream r must be in Arrow's IPC format"),
    (("r", 2), "%", "there, not '%'"),
])
def test_hostile_queries_are_refused(path: tuple[Any, ...], value: Any, message: str) -> None:
    data: Any = copy.deepcopy(encode_query(Query.make(R, S, on="r.x = s.a", window="ROWS 4", time="ts")))
    at = data
    for name in path[:-1]:
        at = at[name]
    if path:
        at[path[-1]] = value
    else:
        data = value
    with pytest.raises(PredicateError, match=message):
        decode_query(data)


@settings(max_examples=examples(200))
@given(st.data())
def test_damaged_queries_are_refused_or_are_queries(data: st.DataObject) -> None:
    """Replace a random part by something else: there is an error of ours, or a query."""
    whole: Any = encode_query(Query.make(R, S, on="abs(r.x - s.a) <= 2 AND r.name = 'ab'", window="ROWS 4", time="ts"))
    anything = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                            lambda inner: st.lists(inner, max_size=4)
                            | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5)
    at, keys = whole, list(whole)
    while True:
        key = data.draw(st.sampled_from(keys))
        inner = at[key]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
        if not keys or data.draw(st.integers(0, 3)) == 0:
            break
        at = inner
    at[key] = data.draw(anything)
    try:
        found = decode_query(whole)
    except PredicateError:
        return
    assert isinstance(found, Query)
    assert found.predicate.type == BOOL
