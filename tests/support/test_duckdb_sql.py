"""Conditions as text for DuckDB say there what they say here."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings

from splitjoin import UnsupportedError
from splitjoin.engines.device import PAIR
from splitjoin.engines.golden import GoldenDevice
from splitjoin.lang.ir import Isqrt, Lit
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import EXACT
from tests.support.conformance import run
from tests.support.duckdb_sql import duckdb_sql
from tests.support.oracle import oracle
from tests.support.sampling import examples
from tests.support.strategies import Scenario, scenario


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def query(r: pa.Table, s: pa.Table, on: str) -> Query:
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window="ROWS 64")


def check(db: duckdb.DuckDBPyConnection, r: pa.Table, s: pa.Table, on: str) -> None:
    made = query(r, s, on)
    items = run(GoldenDevice(), made, r, s)
    pairs = [(int(i["r"]), int(i["s"])) for i in items if i["kind"] == PAIR]
    found = oracle(db, r, s, on=duckdb_sql(made.predicate), window_r=(64, None), window_s=(64, None))
    assert [(i, j) for i, j, _ in found] == pairs, duckdb_sql(made.predicate)


@settings(max_examples=examples(150))
@given(case=scenario(max_rows=6))
def test_random_conditions(db: duckdb.DuckDBPyConnection, case: Scenario) -> None:
    try:
        check(db, case.r, case.s, case.on.sql)
    except UnsupportedError:
        assume(False)


R = pa.table({
    "i": pa.array([-(2**63), -7, 0, 7, 2**63 - 1, None], pa.int64()),
    "u": pa.array([0, 1, 2, 255, 7, None], pa.uint8()),
    "y": pa.array([float("nan"), 1e300, -1e300, 0.1, -0.0, None], pa.float64()),
    "p": pa.array([Decimal(v) for v in ("9" * 36 + ".99", "-0.05", "0", "1.50", "-12.34", "7")], pa.decimal128(38, 2)),
    "q": pa.array([Decimal(v) for v in ("99.999", "-0.005", "0", "1.5", "-12.34", "7")], pa.decimal128(5, 3)),
    "b": pa.array([b"", b"\xff\xffa", b"\xff", b"a\xffb", b"a\xff", None], pa.binary()),
    "at": pa.array([-1, 0, 1, 999, 1000, None], pa.timestamp("us")),
    "z": pa.array([-1, 0, 1, 2, 3, None], pa.timestamp("s", "Europe/Oslo")),
    "h": pa.array([-1, 0, 1, 2, 3, None], pa.duration("s")), "ok": pa.array([True, False, None, True, False, True]),
    "odd \"name": pa.array([1, 2, 3, 4, 5, 6], pa.int8()), "name": pa.array(["", "a", "a\0b", "ä", "it's", None])})
S = R.drop_columns(["y"]).rename_columns(["j", "v", "x", "o", "c", "e", "w", "g", "fine", "even", "m"])


@pytest.mark.parametrize("on", [
    "r.i - s.j > 9223372036854775807", "r.i * s.j = s.j * 7", "r.i // s.j = -1", "r.i DIV 3 = s.v - 2", "r.i % s.v = 1",
    "r.u - 3 < (s.v << 40)", "(r.i >> 3) = (s.j >> 2)",
    "(r.i >> (s.j & 63)) < (s.v << (r.u & 7))", "bit_count(r.i ^ s.j) > 3", "(r.u & s.v) | 1 = 1",
    "~r.i = s.j", "abs(r.q - s.o) <= 1.5", "r.q % s.o = 0.5", "r.q / s.v >= 1.5", "r.p <= s.x", "r.p = 1.5",
    "r.i / s.v > 2", "CAST(r.y AS FLOAT) > s.v", "r.y % s.v = 0.1", "r.y = s.o::double OR r.y <> r.y", "r.i < s.o",
    "starts_with(r.b, X'FF') OR starts_with(s.c, X'61FF') OR starts_with(r.b, X'')", "r.b < s.c", "r.name < s.m",
    "r.at - s.e <= INTERVAL 1 MILLISECOND", "r.z = s.w OR r.z > '1970-01-01 00:00:01'",
    "r.h + s.g < INTERVAL 3 SECONDS",
    "r.at > TIMESTAMP '1970-01-01 00:00:00.0005'", "CASE WHEN r.ok THEN r.q ELSE s.v END < 2",
    "CAST(r.ok AS INT) = s.v",
    "greatest(r.q, s.v, NULL) = 7", "least(r.y, s.v) < 0", "coalesce(r.i, s.v) = 7", "nullif(r.u, s.v) IS NULL",
    "r.i IN (7, s.j, NULL)", "r.i IS DISTINCT FROM s.j AND (r.ok OR s.fine) IS NOT TRUE", "r.\"odd \"\"name\" = s.even",
    "r.i::boolean = s.fine", "NULL", "r.i = NULL", "TRUE",
])
def test_conditions(db: duckdb.DuckDBPyConnection, on: str) -> None:
    check(db, R, S, on)


def test_a_third(db: duckdb.DuckDBPyConnection) -> None:
    r, s = (pa.table({name: [1, 2, 3, 9]}) for name in "xa")
    made = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window="ROWS 64",
                      on=lambda r, s: r.x * Fraction(1, 3) + s.a * Fraction(1, 2) == Fraction(5, 6))
    db.register("r", r)
    db.register("s", s)
    assert db.sql(f"SELECT x, a FROM r, s WHERE {duckdb_sql(made.predicate)}").fetchall() == [(1, 1)]


@pytest.mark.parametrize(("column", "on", "said"), [
    (pa.int64(), "r.x * s.a * r.x > 1", "'((r.x * s.a) * r.x)' must have at most 128 bits for DuckDB, but may have "
                                        "more; declare the ranges of its columns by splitjoin.field"),
    (pa.timestamp("ns", "UTC"), "r.x < s.a", "r.x must be of microseconds or more, of which DuckDB makes its own type, "
                                             "but is timestamp[ns, UTC]"),
    (pa.decimal128(20, 2), "CAST(r.x AS DOUBLE) < 1.5", "'r.x' must have at most 53 bits for DuckDB to make a float"),
])
def test_what_duckdb_cannot_compute(column: pa.DataType, on: str, said: str) -> None:
    r, s = (pa.schema([(name, column)]).empty_table() for name in "xa")
    with pytest.raises(UnsupportedError) as caught:
        duckdb_sql(query(r, s, on).predicate)
    assert said in str(caught.value)


def test_what_passes_make_is_no_condition_of_a_user() -> None:
    with pytest.raises(UnsupportedError, match=r"'isqrt\(4\)' must be a part of a condition as users write it"):
        duckdb_sql(Isqrt(EXACT, Lit(EXACT, 4)))
