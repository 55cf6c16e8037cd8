"""Casts: which there are, that DuckDB gives the same, and why the others are refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from splitjoin import PredicateError, SplitJoinError, field
from splitjoin.engines.device import pairs
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.ir import text
from splitjoin.lang.query import Query, predicate
from splitjoin.lang.schema import Schema

from ...support.conformance import run
from ..circuit.test_encode import check

SCHEMA = {
    "r": pa.schema([("x", pa.int32()), ("i8", pa.int8()), ("u", pa.uint64()), ("f", pa.float32()), ("z", pa.float64()),
                    ("p", pa.decimal128(9, 2)), ("ok", pa.bool_()), ("t", pa.string()), ("d", pa.date32()),
                    ("s", pa.timestamp("s")), ("us", pa.timestamp("us")), field("small", pa.int32(), min=0, max=100)]),
    "s": pa.schema([("a", pa.int64()), ("b", pa.float64()), ("utc", pa.timestamp("us", "UTC")),
                    ("gap", pa.duration("ms"))]),
}
R, S = (Schema.from_arrow(side, schema) for side, schema in SCHEMA.items())


@pytest.mark.parametrize(("on", "made"), [
    ("CAST(r.x AS INT) = s.a", "(r.x = s.a)"),
    ("CAST(r.x AS BIGINT) = s.a", "(cast(r.x as int64) = s.a)"),
    ("r.x::bigint = s.a", "(cast(r.x as int64) = s.a)"),
    ("bit_count(CAST(r.x AS BIGINT)) = s.a", "(bit_count(cast(r.x as int64)) = s.a)"),
    ("CAST(r.small AS TINYINT) = s.a", "(cast(r.small as int8) = s.a)"),
    ("CAST(r.x - s.a AS DECIMAL(38, 2)) < 3", "((r.x - s.a) < 3)"),
    ("CAST(r.p AS DECIMAL(12, 3)) = s.a", "(r.p = s.a)"),
    ("CAST(r.x AS DOUBLE) < s.b", "(cast(r.x as float64) < s.b)"),
    ("CAST(r.x AS FLOAT) < s.b", "(cast(cast(r.x as float32) as float64) < s.b)"),
    ("CAST(r.z AS REAL) < s.b", "(cast(cast(r.z as float32) as float64) < s.b)"),
    ("CAST(r.f - s.b AS DOUBLE) < 1", "((cast(r.f as float64) - s.b) < float64:1.0)"),
    ("CAST(0.1 AS FLOAT) * r.f < s.b", "(cast((float32:0.10000000149011612 * r.f) as float64) < s.b)"),
    ("CAST(r.ok AS INT) = s.a", "(cast((CASE WHEN r.ok THEN 1 WHEN (NOT r.ok) THEN 0 ELSE NULL END) as int32) = s.a)"),
    ("CAST(r.x - s.a AS BOOLEAN)", "((r.x - s.a) <> 0)"),
    ("CAST(r.s AS TIMESTAMP) < r.us AND s.a = 1", "((cast(r.s as timestamp[us]) < r.us) AND (s.a = 1))"),
    ("CAST(r.t AS VARCHAR) = 'a'", "(r.t = 'a')"),
    ("CAST(NULL AS BIGINT) = s.a", "(s.a = NULL)"),
    ("CAST(r.d AS DATE) = DATE '1970-01-02'", "(r.d = date:1)"),
    ("CAST(r.d AS TIMESTAMP) < r.us AND s.a = 1",
     "(((timestamp[us]:0 + (duration[us]:86400000000 * (r.d - date:0))) < r.us) AND (s.a = 1))"),
    ("CAST(5 AS SMALLINT) = s.a", "(s.a = 5)"),
])
def test_what_casts_become(on: str, made: str) -> None:
    assert text(predicate(on, R, S)) == made


@pytest.mark.parametrize(("on", "said"), [
    ("CAST(r.z AS BIGINT) = s.a", "'CAST(r.z AS BIGINT)': float64 cannot be cast to int64 in a condition, as engines "
                                  "differ in how; cast the column before the join"),
    ("CAST(r.x AS SMALLINT) = s.a", "'CAST(r.x AS SMALLINT)': every value must fit the type of a cast, but int16 takes "
                                    "-32768 to 32767, and 'r.x' may be -2147483648 to 2147483647; declare the range of "
                                    "its columns by splitjoin.field, or cast the column before the join"),
    ("CAST(r.x AS DECIMAL(5, 2)) = s.a", "but decimal(5, 2) takes -99999 / 100 to 99999 / 100, and"),
    ("CAST(r.u AS BIGINT) = s.a", "'r.u' may be 0 to 18446744073709551615"),
    ("CAST(r.x - s.a AS BIGINT) = 1", "'(r.x - s.a)' may be -9223372039002259455 to 9223372039002259455"),
    ("CAST(r.p AS INT) = s.a", "'CAST(r.p AS INT)': a cast to int32 would round decimal(9, 2), and engines differ in "
                               "how; cast the column before the join"),
    ("CAST(r.p AS DECIMAL(9, 1)) = s.a", "a cast to decimal(9, 1) would round decimal(9, 2)"),
    ("CAST(r.t AS INT) = s.a", "string cannot be cast to int32 in a condition"),
    ("CAST('5' AS INT) = s.a", "string cannot be cast to int32 in a condition"),
    ("CAST(r.x AS VARCHAR) = 'a'", "int32 cannot be cast to string in a condition"),
    ("CAST(r.us AS DATE) = r.d AND s.a = 1", "timestamp[us] cannot be cast to date in a condition"),
    ("CAST(s.utc AS TIMESTAMP) = r.us", "timestamp[us, UTC] cannot be cast to timestamp[us] in a condition"),
    ("CAST(s.a AS REAL) = r.f", "int64 cannot be cast to float32 in a condition"),
    ("CAST(r.p AS FLOAT) = r.f AND s.a = 1", "decimal(9, 2) cannot be cast to float32 in a condition"),
    ("CAST(r.z - s.b AS REAL) < 1", "float64 cannot be cast to float32 in a condition"),
    ("CAST(r.z AS BOOLEAN) AND s.a = 1", "float64 cannot be cast to bool in a condition"),
    ("CAST(r.x AS INTERVAL) = s.gap", "a cast to this type (cast the column before the join) is not supported"),
    ("CAST(r.x AS DECIMAL(50, 2)) = s.a", "a cast to this type (cast the column before the join) is not supported"),
    ("CAST(r.t AS VARCHAR(3)) = 'a' AND s.a = 1", "a cast to this type (cast the column before the join) is not "
                                                  "supported"),
    ("CAST(r.nope AS INT) = 1", "stream r has no column 'nope'"),
    ("TRY_CAST(r.x AS INT) = s.a", "TRY_CAST is not supported in a condition"),
])
def test_refused_casts(on: str, said: str) -> None:
    with pytest.raises(SplitJoinError) as caught:
        predicate(on, R, S)
    assert said in str(caught.value)
    assert "\n" in str(caught.value)  # and marks the place


def test_casts_in_python() -> None:
    assert predicate(lambda r, s: r.x.cast("bigint") == s.a, R, S) == predicate("CAST(r.x AS BIGINT) = s.a", R, S)
    assert predicate(lambda r, s: r.p.cast("decimal(12, 3)") == s.a, R, S) == predicate("r.p = s.a", R, S)
    for name in ("geometry", "", "int;", "decimal(99)", 8):
        with pytest.raises(PredicateError, match="a cast must be to tinyint, smallint, int, bigint, float, double, "):
            predicate(lambda r, s, name=name: r.x.cast(name) == s.a, R, S)
    with pytest.raises(PredicateError, match=r"r\.z\.cast\('int'\)\": float64 cannot be cast to int32 in a condition"):
        predicate(lambda r, s: r.z.cast("int") == s.a, R, S)
    for function in (int, float):  # Python makes numbers of its own of these
        with pytest.raises(PredicateError, match=rf"'{function.__name__}\(r.x\)' is not supported .* \.cast\(type\)"):
            predicate(lambda r, s, function=function: function(r.x) == s.a, R, S)


INTS: list[Any] = [None, 0, 1, -1, 3, 2**24 + 1, -(2**31), 2**31 - 1]
FLOATS: list[Any] = [None, 0.0, 0.1, -0.1, 1.5, 16777217.0, 1e30, float("inf"), float("nan"), float(np.float32(0.1))]


@pytest.mark.parametrize("on", [
    "CAST(r.x AS BIGINT) = s.a", "CAST(r.x AS BIGINT) * 2 - s.a <= 1", "CAST(r.x AS DOUBLE) = s.b",
    "CAST(r.x AS REAL) <= s.b", "CAST(r.z AS REAL) = s.b", "CAST(r.z AS REAL) > CAST(s.b AS REAL)",
    "CAST(r.ok AS INT) = s.a", "CAST(r.ok AS INT) + s.a >= 1", "CAST(s.a AS BOOLEAN) = r.ok",
    "CAST(r.x AS BOOLEAN) AND s.a > 0",
    "CAST(r.p AS DECIMAL(12, 3)) <= s.a", "CAST(r.p AS DOUBLE) = s.b", "CAST(s.a AS DOUBLE) - r.z < 0.5",
    "bit_count(CAST(r.x AS BIGINT)) = s.a", "CAST(0.1 AS REAL) = r.z OR s.a IS NULL", "r.x::bigint = s.a::bigint",
    "CAST(r.s AS TIMESTAMP) <= s.us",
])
def test_duckdb_casts_alike(on: str) -> None:
    n = len(FLOATS)
    moments = [None if i == 4 else dt.datetime(1970, 1, 1, 0, 0, i) for i in range(n)]
    cents = pa.array([None if v is None else v % 1000 for v in (INTS * 2)[:n]]).cast(pa.decimal128(21, 2))
    r = pa.table({"k": range(n), "x": pa.array((INTS * 2)[:n], pa.int32()), "z": pa.array(FLOATS, pa.float64()),
                  "ok": pa.array(([None, True, False] * 4)[:n]), "s": pa.array(moments, pa.timestamp("s")),
                  "p": cents.cast(pa.decimal128(9, 2))})
    s = pa.table({"k": range(n), "a": pa.array((INTS[::-1] * 2)[:n], pa.int64()),
                  "b": pa.array(FLOATS[::-1], pa.float64()), "us": pa.array(moments[::-1], pa.timestamp("us"))})
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 64")
    found = set(zip(*(x.tolist() for x in pairs(run(GoldenDevice(), query, r, s))), strict=True))
    with duckdb.connect() as db:
        db.register("r", r)
        db.register("s", s)
        assert found == set(db.sql(f"SELECT r.k, s.k FROM r, s WHERE {on}").fetchall())
    check(r, s, on)
