"""date_trunc, date_diff and intervals: as DuckDB computes them, in SQL and Python, on all kinds of engines."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import splitjoin
from splitjoin import PredicateError, Schema
from splitjoin.lang.calendar import UNITS, unit_number, unit_start
from splitjoin.lang.eval.scalar import compile_condition
from splitjoin.lang.eval.vector import evaluate
from splitjoin.lang.properties import value_range
from splitjoin.lang.query import predicate
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.types import FLOAT64
from splitjoin.plan.passes.compiler import make_plan
from tests.support.databases import database
from tests.support.sampling import examples

#: Around the epoch, leap days, ends of years, and the first and last years that Python and DuckDB share.
MOMENTS = [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 4, 23, 59, 59),
           dt.datetime(1970, 1, 5), dt.datetime(2000, 2, 29, 12), dt.datetime(1900, 3, 1),
           dt.datetime(2024, 12, 31, 23), dt.datetime(1, 1, 1),
           dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(2020, 1, 31, 10, 59, 0, 1500)]
TYPES = [pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s"), pa.date32(), pa.timestamp("us", "UTC")]


def table(type_: pa.DataType, column: str, moments: list[dt.datetime | None]) -> pa.Table:
    cut: Callable[[dt.datetime], Any] = dt.datetime.date if pa.types.is_date(type_) else {
        "us": lambda m: m, "ms": lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000),
        "s": lambda m: m.replace(microsecond=0)}[getattr(type_, "unit", "us")]
    return pa.table({column: pa.array([None if m is None else cut(m) for m in moments], type_)})


def ours(text: str, r: pa.Table, s: pa.Table) -> list[Any]:
    """The values of an expression for each pair of rows, by the golden model's evaluation and by NumPy's."""
    e = parse_sql(text, Schema.from_table("r", r), Schema.from_table("s", s), value=True)
    low, high = (-math.inf, math.inf) if e.type == FLOAT64 else value_range(e)
    one = compile_condition(e)
    rows = [{f: pa.compute.cast(t[f], pa.int32() if pa.types.is_date32(t[f].type) else pa.int64()).to_pylist()
             for f in t.column_names} for t in (r, s)]
    found = [one(*({f: v[n] for f, v in row.items()} for row in rows)) for n in range(len(r))]
    assert all(v is None or low <= v <= high for v in found)
    both = pa.table([*r.columns, *s.columns], names=[*r.column_names, *s.column_names])
    if not s.column_names:
        vector = evaluate(e, both)
        assert [v.item() if ok else None for v, ok in zip(vector.values, vector.valid, strict=True)] == found
    return found


def oracle(text: str, r: pa.Table, s: pa.Table) -> list[Any]:
    # Without zones, which DuckDB needs an extension for.
    columns = [c.cast(pa.timestamp(c.type.unit)) if getattr(c.type, "tz", None) else c
               for c in (*r.columns, *s.columns)]
    both = pa.table([*columns, pa.array(range(len(r)))], names=[*r.column_names, *s.column_names, "n"])
    with database() as db:
        db.register("t", both)
        return [v[0] for v in db.execute(f"SELECT {text} FROM t ORDER BY n").fetchall()]


moments = st.none() | st.sampled_from(MOMENTS) | st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=examples(2))
@given(pairs=st.lists(st.tuples(moments, moments), min_size=1, max_size=20))
def test_as_duckdb(unit: str, type_: pa.DataType, pairs: list[tuple[dt.datetime | None, dt.datetime | None]]) -> None:
    r, s = table(type_, "t", [a for a, _ in pairs] + MOMENTS), table(type_, "u", [b for _, b in pairs] + MOMENTS[::-1])
    assert ours(f"date_diff('{unit}', t, u)", r, s) == oracle(f"date_diff('{unit}', t, u)", r, s)
    scale = {"us": 1, "ms": 1000, "s": 10**6}[getattr(type_, "unit", "s")]
    if unit not in ("month", "quarter", "year"):
        assert ours(f"date_sub('{unit}', t, u)", r, s) == oracle(f"date_sub('{unit}', t, u)", r, s)
    epochs = ["epoch(t)", "extract(epoch FROM t)", "date_part('epoch', t)", "epoch_ms(t)", "epoch_us(t)"]
    # DuckDB 2.0.1 takes epochs of seconds and milliseconds by way of nanoseconds, which have no year 1 or 9999.
    asked = pa.table({"t": r["t"].cast(pa.timestamp("us"))}) if pa.types.is_timestamp(type_) else r
    for text in epochs if unit == "second" else []:
        assert ours(text, r, pa.table({})) == oracle(text, asked, s), text
    found = ours(f"date_trunc('{unit}s', t)", r, pa.table({}))
    want = oracle(f"epoch_us(date_trunc('{unit}', t))", r, s)
    assert [None if v is None else v * scale for v in found] == want


@settings(max_examples=examples(100))
@given(unit=st.sampled_from(UNITS), tick=st.sampled_from([1, 10**3, 10**6, 10**9, 86400 * 10**9]),
       value=st.integers(-2**63, 2**63 - 1))
def test_a_unit_is_from_its_beginning_to_the_next(unit: Any, tick: int, value: int) -> None:
    number = unit_number(value, unit, tick)
    assert unit_start(number, unit, 1) <= value * tick < unit_start(number + 1, unit, 1) or unit_start(
        number, unit, 1) == value * tick
    assert isinstance(number, int)
    array = np.array([value, 0])
    vector = pa.table({"t": pa.array(array, pa.timestamp("us"))})
    e = parse_sql(f"date_diff('{unit}', TIMESTAMP '1970-01-01', r.t)", Schema.from_table("r", vector),
                  Schema("s", []), value=True)
    if unit != "week":  # which counts whole periods of seven days
        assert evaluate(e, vector).values.tolist() == [unit_number(value, unit, 1000), 0]


CONDITIONS = [
    "date_diff('hour', r.t, s.u) BETWEEN -1 AND 2", "date_trunc('day', r.t) = date_trunc('day', s.u)",
    "date_diff('month', r.t, s.u) = 1", "date_diff('week', r.t, s.u) = 0 AND r.x < s.a",
    "date_trunc('hour', r.t) < date_trunc('hour', s.w)",
    "date_trunc('hour', r.t + s.v) > TIMESTAMP '2020-01-01 05:30:00'",
    "date_trunc('week', r.t + s.v) <= TIMESTAMP '2020-01-01 05:30:00'",
    "date_diff('quarter', TIMESTAMP '2020-01-01 05:30:00', r.t + s.v) = 0", "date_trunc('second', r.t - s.v) = r.t",
    "r.t + r.x * INTERVAL '1 hour' < s.u AND s.u - r.t < INTERVAL '1 day 2 hours'", "r.t IS NOT DISTINCT FROM s.u",
    "CASE WHEN r.x > 3 THEN date_trunc('month', r.t) ELSE s.u END <= s.u",
    "epoch(r.t) - epoch(s.u) BETWEEN 0 AND 5", "epoch(r.t - s.u) BETWEEN -3.3 AND 5.7 OR epoch(s.u - r.t) = 60",
    "abs(epoch(r.t - s.u)) < 86400 AND epoch_ms(r.t - s.u) > -3.5", "date_sub('minute', r.t, s.u) = 0",
    "CAST(r.x + s.a AS DOUBLE) = 3 OR CAST(r.x / 2 - s.a AS DOUBLE) > 4.25 OR CAST(r.x - s.a AS DOUBLE) <> 1",
]


@settings(max_examples=examples(1))
@given(seed=st.integers(0, 2**31))
@pytest.mark.parametrize("on", CONDITIONS)
def test_every_engine_agrees(on: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    around = np.datetime64("2020-01-01T05:00", "us")
    tables = []
    for time, x, length in (("t", "x", "y"), ("u", "a", "v")):
        off = np.where(random.random(40) < 0.5, random.integers(-99, 99, 40), random.integers(-10**5, 10**5, 40) * 60)
        times = pa.array(around + (off * 10**6).astype("timedelta64[us]"), mask=random.random(40) < 0.1)
        tables.append(pa.table({time: times, x: random.integers(-9, 9, 40),
                                "w": times.cast(pa.timestamp("s"), safe=False),
                                length: pa.array(random.integers(-9999, 9999, 40), pa.duration("s"))}))
    first, *others = (splitjoin.join(*tables, on=on, window="ROWS 30", device=device).items.tolist()
                      for device in ("golden", "cpu"))
    assert all(other == first for other in others)


@pytest.mark.parametrize("on", CONDITIONS[:8])
def test_devices_decide_by_interval_tests(on: str) -> None:
    r = pa.schema([("t", pa.timestamp("us")), ("x", pa.int64())])
    s = pa.schema([("u", pa.timestamp("us")), ("w", pa.timestamp("s")), ("a", pa.int64()),
                   ("v", pa.duration("s"))])
    assert make_plan(predicate(on, Schema.from_arrow("r", r), Schema.from_arrow("s", s))).residual is None


def test_a_circuit_truncates() -> None:
    r = {"t": pa.array([dt.datetime(2020, 1, d, 23, 30) for d in (30, 31)] * 3, pa.timestamp("us"))}
    s = {"u": pa.array([dt.datetime(2020, 2, d, 1, 30) for d in (1, 2)] * 3, pa.timestamp("us")),
         "v": pa.array(range(6), pa.duration("s"))}
    on = "date_diff('day', r.t, s.u) <= 2 AND date_trunc('month', r.t + s.v) = TIMESTAMP '2020-01-01'"
    devices: list[dict[str, Any]] = [{"device": "pysim", "cores": 1, "capacity": 8}, {"device": "golden"}]
    found, want = (splitjoin.join(r, s, on=on, window="ROWS 4", **device) for device in devices)
    assert found.items.tolist() == want.items.tolist()
    assert len(found) > 0


@pytest.mark.parametrize(("make", "sql"), [
    (lambda r, s: splitjoin.date_diff("hour", r.t, s.u) == 3, "date_diff('hour', r.t, s.u) = 3"),
    (lambda r, s: splitjoin.date_trunc("Month", r.t) == s.u, "datetrunc('MONTHS', r.t) = s.u"),
    (lambda r, s: splitjoin.date_diff("day", r.t, "2020-01-01") > 1, "datediff('day', r.t, '2020-01-01') > 1"),
    (lambda r, s: r.x.round(-1) == s.a.round(), "round(r.x, -1) = round(s.a)"),
    (lambda r, s: r.x.is_distinct_from(s.a), "r.x IS DISTINCT FROM s.a"),
    (lambda r, s: r.t + r.x * dt.timedelta(hours=1) < s.u, "r.t + INTERVAL '1' HOUR * r.x < s.u"),
])
def test_front_ends_agree(make: Any, sql: str) -> None:
    fields = [("t", pa.timestamp("us")), ("x", pa.int64())], [("u", pa.timestamp("us")), ("a", pa.int64())]
    r, s = (Schema.from_arrow(side, pa.schema(f)) for side, f in zip(("r", "s"), fields, strict=True))  # type: ignore[arg-type]
    assert predicate(make, r, s) == predicate(sql, r, s)


@pytest.mark.parametrize(("text", "shown"), [
    ("INTERVAL '1 day 2 hours'", "duration[us]:93600000000"), ("INTERVAL '-1 day 2hours'", "duration[us]:-79200000000"),
    ("interval '1.5 days'", "duration[us]:129600000000"), ("INTERVAL 90 MINUTES * 2", "duration[us]:10800000000"),
    ("date_trunc('day', TIMESTAMP '1970-01-02 10:00:00') - TIMESTAMP '1970-01-01'", "duration[s]:86400"),
    ("date_trunc('day', NULL)", "NULL"), ("date_diff('day', NULL, DATE '2020-01-01')", "NULL"),
    ("round(NULL, 2)", "NULL"),
])
def test_constants(text: str, shown: str) -> None:
    assert str(parse_sql(text, Schema("r", []), Schema("s", []), value=True)) == shown


@pytest.mark.parametrize(("on", "said"), [
    ("date_diff(day, r.t, r.t) = 1", r"takes a unit in quotes and 2 times, such as date_diff\('day', r.at, s.due\)"),
    ("date_diff(r.day, r.day) = 1", "takes a unit in quotes and 2 times"),
    ("date_trunc('day', r.t, 'UTC') = r.t", r"takes a unit in quotes and 1 time, such as date_trunc\('day', r.at\)"),
    ("date_sub('month', r.t, r.t) = 1", "takes units of a fixed length, from microseconds to weeks"),
    ("epoch(r.x) = 1", "the seconds since 1970 are those of dates, timestamps to the microsecond"),
    ("date_part('year', r.t) = 1", "function DATE_PART is not supported"),
    ("extract(year FROM r.t) = 1", "function EXTRACT is not supported"),
    ("date_trunc('decade', r.t) = r.t", "must be a constant text, one of microsecond, .*, not 'decade'"),
    ("date_trunc('day', r.x) = r.t", r"date_trunc\(\) needs dates or timestamps, not int64"),
    ("date_trunc('day', 'x') = r.t", "needs dates or timestamps, not string"),
    ("date_diff('day', r.t, 'x') = 1", r"cannot be read as a timestamp\[us\]"),
    ("date_diff('day', r.t, r.utc) = 1", "a timestamp with a time zone cannot be combined with one without"),
    ("date_diff('day', r.z, r.z) = 1", "needs a timestamp in UTC or without a zone, not timestamp.us, Europe/Berlin."),
    ("timestampdiff(day, r.t, r.t) = 1", "a difference in whole units .* is not supported"),
    ("r.t < r.t + INTERVAL '1' MONTH", "not MONTH; a month has no fixed length, so compare date_trunc"),
    ("r.t < r.t + INTERVAL '1 day 2'", "a constant number and a unit, .* such as INTERVAL '1 day 2 hours'"),
    ("r.t < r.t + INTERVAL '1:30' HOUR TO MINUTE", "a constant number and a unit"),
    ("r.t < r.t + INTERVAL (r.x) DAY", "a constant number and a unit"),
    ("r.day + INTERVAL '1' DAY < r.day", "whole days are added to a date as a number, such as r.day [+] 1"),
    ("r.t < r.t + 1.5 * INTERVAL '1' DAY", "'[*]' needs numbers"),
])
def test_refused_with_the_reason(on: str, said: str) -> None:
    r = pa.table({"x": [1], "day": pa.array([1], pa.date32()), "t": pa.array([1], pa.timestamp("us")),
                  "utc": pa.array([1], pa.timestamp("us", "UTC")),
                  "z": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})
    with pytest.raises(PredicateError, match=said):  # of the language: DuckDB may compute it before a join
        parse_sql(on, Schema.from_table("r", r), Schema.from_table("s", pa.table({"a": [1]})))


@pytest.mark.parametrize("on", [
    "epoch(r.t - s.t) BETWEEN 0 AND 5", "epoch(r.t) - epoch(s.t) BETWEEN 0 AND 5", "abs(epoch(s.t - r.t)) <= 5",
    "date_sub('second', s.t, r.t) BETWEEN 0 AND 5", "epoch_ms(r.t) - epoch_ms(s.t) BETWEEN 0 AND 5000"])
def test_differences_in_seconds_are_bands_of_time(on: str) -> None:
    at = np.datetime64("2026-01-01", "us") + np.arange(0, 2_000_000_000, 2_000_000)
    found = splitjoin.sql(f"SELECT r.t FROM r JOIN s ON {on}", r={"t": at}, s={"t": at})
    assert found.counters["candidates"] < 8 * len(at)
