"""Times of a pair in conditions of plain SQL, as people write them: joined here with Spark's rows, in batches and in
streams, or left to Spark by name.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin import PredicateError, Schema, SchemaError
from splitjoin.joins.sql import read_condition as read_on
from splitjoin.joins.sql.statement import parse
from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import columns
from splitjoin.lang.local_times import session_zone
from splitjoin.lang.query import Query
from splitjoin.plan.time_band import time_band
from splitjoin.spark import stream_join, stream_sql
from splitjoin.spark.columns import read_condition
from splitjoin.spark.sql import SparkStatementReader

from ...support.sampling import at_length
from .test_extension import plan_of, settings
from .test_streamed_sql import optimized

_NEAR = "l.ts BETWEEN r.ts - INTERVAL 20 SECONDS AND r.ts"
#: Conditions that are joined here, of tables and of streams.
TAKEN = [
    "l.ts BETWEEN r.ts - INTERVAL 20 SECONDS AND r.ts + INTERVAL 5 SECONDS",
    "l.ts < r.ts + INTERVAL 20 SECONDS AND r.ts < l.ts + INTERVAL 5 SECONDS",
    "l.ts - r.ts BETWEEN INTERVAL '-20' SECOND AND INTERVAL '5' SECOND",
    "l.ts - r.ts < INTERVAL 20 SECONDS AND r.ts - l.ts < INTERVAL 5 SECONDS",
    "abs(l.ts - r.ts) <= INTERVAL '20' SECOND",
    "INTERVAL '20' SECOND > abs(r.ts - l.ts)",
    "(l.ts - r.ts) <= INTERVAL '0 00:00:20' DAY TO SECOND AND l.ts >= r.ts",
    "cast(l.ts - r.ts AS INTERVAL SECOND) <= INTERVAL '20' SECOND AND l.ts >= r.ts",
    "timestampdiff(SECOND, r.ts, l.ts) BETWEEN -20 AND 5",
    "abs(timestampdiff(MINUTE, r.ts, l.ts)) < 1",
    "datediff(MINUTE, r.ts, l.ts) BETWEEN 0 AND 1",
    "date_diff(HOUR, r.ts, l.ts) = 0 AND l.ts >= r.ts",
    "timestampdiff(WEEK, r.ts, l.ts) = 0",
    "datediff(l.ts, r.ts) = 0",
    "unix_timestamp(l.ts) - unix_timestamp(r.ts) BETWEEN -20 AND 5",
    "abs(unix_timestamp(l.ts) - unix_timestamp(r.ts)) <= 20",
    "(unix_timestamp(l.ts) - unix_timestamp(r.ts)) / 60 BETWEEN 0 AND 1",
    "(unix_timestamp(l.ts) - unix_timestamp(r.ts)) div 60 = 0",
    "floor(unix_timestamp(l.ts) / 60) = floor(unix_timestamp(r.ts) / 60)",
    "to_unix_timestamp(l.ts) BETWEEN to_unix_timestamp(r.ts) - 20 AND to_unix_timestamp(r.ts) + 5",
    "unix_seconds(l.ts) - unix_seconds(r.ts) <= 20 AND l.ts >= r.ts",
    "abs(unix_millis(l.ts) - unix_millis(r.ts)) < 20000",
    "unix_micros(l.ts) BETWEEN unix_micros(r.ts) - 20000000 AND unix_micros(r.ts)",
    "cast(l.ts AS long) - cast(r.ts AS long) BETWEEN -20 AND 5",
    "abs(bigint(l.ts) - bigint(r.ts)) <= 20",
    "abs(cast(l.ts AS double) - cast(r.ts AS double)) <= 20.5",
    "l.ts >= r.ts AND extract(DAY FROM l.ts - r.ts) = 0 AND extract(HOUR FROM l.ts - r.ts) = 0 "
    "AND extract(MINUTE FROM l.ts - r.ts) < 2 AND extract(SECOND FROM l.ts - r.ts) <= 30.5",
    "l.ts BETWEEN timestampadd(SECOND, -20, r.ts) AND timestampadd(SECOND, 5, r.ts)",
    "l.ts BETWEEN dateadd(MINUTE, -1, r.ts) AND dateadd(MINUTE, 1, r.ts)",
    "l.ts >= r.ts AND l.ts < date_add(r.ts, 1)",
    "l.day BETWEEN date_sub(r.day, 1) AND date_add(r.day, 1)",
    "l.day BETWEEN r.day - 1 AND r.day",
    "add_months(l.day, 1) >= r.day AND l.ts <= r.ts",
    "date_trunc('MINUTE', l.ts) = date_trunc('MINUTE', r.ts)",
    "trunc(l.ts, 'WEEK') = trunc(r.ts, 'WEEK')",
    "cast(l.ts AS date) = cast(r.ts AS date)",
    "hour(l.ts) = hour(r.ts) AND l.day = r.day",
    "l.second BETWEEN r.second - 20 AND r.second",
    "l.local - r.local BETWEEN INTERVAL '-20' SECOND AND INTERVAL '5' SECOND",
    "l.local BETWEEN r.local - INTERVAL 1 MINUTE AND r.local",
    "l.ts BETWEEN r.ts AND r.ts + make_interval(0, 0, 0, 0, 0, 0, 20)",
    "l.ts BETWEEN r.ts - make_dt_interval(0, 0, 0, 20) AND r.ts + make_dt_interval(0, 0, 0, 5)",
    "l.ts BETWEEN r.ts - INTERVAL '1 hour 20 seconds' AND r.ts",
    "l.ts BETWEEN r.ts - INTERVAL 1 DAY AND r.ts",
    "l.ts BETWEEN r.ts - INTERVAL 1 MONTH AND r.ts",
    "l.ts = r.ts + INTERVAL 5 SECONDS OR abs(l.ts - r.ts) < INTERVAL 10 SECONDS",
    "NOT (l.ts < r.ts OR l.ts > r.ts + INTERVAL 10 SECONDS)",
    f"pmod(l.x - r.x, 7) = 0 AND (l.x + r.x) % 3 <> 1 AND {_NEAR}",
    f"(l.x & r.x) = 0 AND {_NEAR}",
    f"l.name LIKE 'k1%' AND r.name RLIKE '^k[0-4]' AND {_NEAR}",
    f"l.pair.a < r.pair.a AND {_NEAR}",
    f"l.name COLLATE UTF8_LCASE < upper(r.name) COLLATE UTF8_LCASE AND {_NEAR}",
    f"cast(l.ts AS time) <= cast(r.ts AS time) AND {_NEAR}",
]
#: Those that are joined here in batches, and why streams do not.
OF_TABLES = {
    "l.ts BETWEEN r.ts AND r.ts + r.x * INTERVAL '1' SECOND": "does not bound the time by which a row of the right",
    "l.minute = r.minute": "the condition does not bound ts",
    }
#: Those that Spark keeps, and why.
LEFT = {
    "timestampdiff(MONTH, r.ts, l.ts) = 0": "the function TimestampDiff of both sides",
    "months_between(l.ts, r.ts) BETWEEN 0 AND 1": "the function MonthsBetween of both sides",
    "l.ts >= r.ts AND try_subtract(l.ts, r.ts) <= INTERVAL '20' SECOND": "the function TryEval of both sides",
    f"array_contains(r.items, l.x) AND {_NEAR}": "the function ArrayContains of both sides",
    f"extract(MINUTE FROM abs(l.ts - r.ts)) = 0 AND {_NEAR}": "a part of an interval that is no difference of two t",
    "(l.ts - r.ts) / 2 < INTERVAL '20' SECOND": "the function DivideDTInterval of both sides",
}
#: Those that a text or a Column of `stream_join` has no words for, and what it says.
NO_WORDS = {
    "add_months(l.day, 1) >= r.day AND l.ts <= r.ts": "function ADD_MONTHS is not supported in a condition",
    "l.ts BETWEEN r.ts - INTERVAL 1 MONTH AND r.ts": "a month has no fixed length",
    f"l.name LIKE 'k1%' AND r.name RLIKE '^k[0-4]' AND {_NEAR}": "a regular expression is not supported",
    f"l.pair.a < r.pair.a AND {_NEAR}": "a name of more than two parts is not supported",
    f"l.name COLLATE UTF8_LCASE < upper(r.name) COLLATE UTF8_LCASE AND {_NEAR}": "function COLLATE is not supported",
    f"cast(l.ts AS time) <= cast(r.ts AS time) AND {_NEAR}": "cannot be cast to time",
}
#: Those that bound times of other columns, which Spark alone knows to come from the event times.
OF_OTHERS = ("l.day", "l.second", "l.local", "hour(", "l.minute", "* INTERVAL")
_COMPUTED = ["*", "cast(ts AS date) day", "cast(ts AS timestamp_ntz) local", "unix_timestamp(ts) second",
             "window(ts, '1 minute').start minute"]
_BACK = re.compile(r"splitjoin\[stream, inner, left ([\d.E]+) s and right ([\d.E]+) s back")
#: Before and behind an hour in which clocks in Berlin are put forward.
_BEGIN = dt.datetime(2024, 3, 31, 0, 59, 30, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tables l and r, and streams of the same files as s_l and s_r, in a session whose clock is put forward."""
    folder, rng = tmp_path_factory.mktemp("bands"), random.Random(7)
    with settings(spark, spark__sql__session__timeZone="Europe/Berlin",
                  spark__sql__timeType__enabled=True):
        for name in "lr":
            rows = []
            for n in range(70):
                ts = _BEGIN + dt.timedelta(days=rng.choice([0, 0, 0, -1, -30]), seconds=rng.uniform(0, 90))
                rows.append({"ts": None if n % 13 == 0 else ts.replace(microsecond=rng.choice([0, 1, 999_999])),
                             "x": rng.choice([None, *range(9)]), "name": f"k{n % 20}", "items": [n % 3, n % 5],
                             "pair": {"a": n % 9}, "id": n})
            schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("x", pa.int32()), ("name", pa.string()),
                                ("items", pa.list_(pa.int32())), ("pair", pa.struct([("a", pa.int32())])),
                                ("id", pa.int64())])
            (folder / name).mkdir()
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / name / "0.parquet")
            table = spark.read.parquet(str(folder / name))
            table.selectExpr(*_COMPUTED).cache().createOrReplaceTempView(name)
            stream = spark.readStream.schema(table.schema).parquet(str(folder / name)).withWatermark("ts", "9 weeks")
            stream.selectExpr(*_COMPUTED).createOrReplaceTempView(f"s_{name}")
        yield folder


def _select(number: int, on: str, prefix: str = "", kind: str = "") -> str:
    return (f"SELECT /*+ SPLITJOIN */ {number} number, l.id, r.id other FROM {prefix}l l {kind} JOIN {prefix}r r "
            f"ON {on}")


def _found(frame: DataFrame) -> set[tuple[int, int, int]]:
    rows = [tuple(row) for row in frame.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def _expected(spark: SparkSession, conditions: list[str]) -> set[tuple[int, int, int]]:
    """The number of each condition with its pairs, as Spark itself decides all conditions for all pairs."""
    chosen = ", ".join(f"{on} c{n}" for n, on in enumerate(conditions))
    return {(n, row[0], row[1]) for row in spark.sql(f"SELECT l.id, r.id, {chosen} FROM l CROSS JOIN r").collect()
            for n in range(len(conditions)) if row[n + 2]}


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("ansi", "chosen"), [(False, slice(3, None, 7)), at_length(False, slice(None)),
                                              at_length(True, slice(None))])
def test_rows_of_tables_are_those_of_spark(spark: SparkSession, ansi: bool, chosen: slice) -> None:
    conditions = [*TAKEN, *OF_TABLES][chosen]
    with settings(spark, spark__sql__ansi__enabled=ansi):
        expected = _expected(spark, conditions)
        with settings(spark, spark__splitjoin__sql__enabled=True):
            frame = spark.sql(" UNION ALL ".join(_select(n, on) for n, on in enumerate(conditions)))
            assert plan_of(frame).count("MapInArrow splitjoin[") == len(conditions)
            found = _found(frame)
    assert not (wrong := {conditions[row[0]] for row in found ^ expected}), wrong
    assert {number for number, *_ in expected} == set(range(len(conditions)))


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("zone", ["Europe/Berlin", at_length("UTC")])
def test_streams_are_joined_within_bounds_in_which_all_pairs_are(spark: SparkSession, zone: str) -> None:
    with settings(spark, spark__sql__session__timeZone=zone):
        apart = "unix_micros(l.ts) - unix_micros(r.ts)"
        ends = ", ".join(f"min({apart}) FILTER (WHERE {on}), max({apart}) FILTER (WHERE {on})" for on in TAKEN)
        row = spark.sql(f"SELECT {ends} FROM l CROSS JOIN r").first()
        assert row is not None
        for on, least, most in zip(TAKEN, row[::2], row[1::2], strict=True):
            found = _BACK.search(optimized(spark, _select(0, on, "s_")))
            assert found is not None, on
            behind, ahead = (float(text) for text in found.groups())
            assert -behind * 1e6 <= least <= most <= ahead * 1e6, on


def _read(given: Any, r: Schema, s: Schema) -> Any:
    """A condition of `stream_join`, or that of a statement of `stream_sql`."""
    if not str(given).startswith("SELECT"):
        return read_condition(given, r, s, {})
    statement = parse(given, SparkStatementReader)
    assert statement.on[0] is not None
    return read_on(statement, list(zip(statement.tables, (r, s), strict=True)), statement.on[0], "ON")


@pytest.mark.usefixtures("tables")
def test_texts_and_columns_of_calls_mean_the_same(spark: SparkSession) -> None:
    """In a session in UTC; windows that follow from a condition hold all pairs."""
    with settings(spark, spark__sql__session__timeZone="UTC"):
        conditions = [*TAKEN, *OF_TABLES]
        expected = _expected(spark, conditions)
        frames = {side: spark.table(name).drop("items", "pair") for side, name in (("r", "l"), ("s", "r"))}
        tables = {side: frame.toArrow() for side, frame in frames.items()}
        r, s = (Schema.from_table(side, tables[side]) for side in ("r", "s"))
        at = {"r": np.repeat(np.arange(len(tables["r"])), len(tables["s"])),
              "s": np.tile(np.arange(len(tables["s"])), len(tables["r"]))}
        crossed = {side: tables[side].take(at[side]) for side in ("r", "s")}
        for n, on in enumerate(conditions):
            text = re.sub(r"\b[lr]\.", lambda found: {"l.": "r.", "r.": "s."}[found[0]], on)
            for given in (text, F.expr(text), f"SELECT 1 AS one FROM r JOIN s ON {text}"):
                if on in NO_WORDS:
                    said = NO_WORDS[on].replace("in a condition", "in (a condition|ON)")
                    with session_zone("UTC"), pytest.raises((PredicateError, SchemaError), match=said):
                        _read(given, r, s)
                    continue
                with session_zone("UTC"):
                    query = Query.make(r, s, on=_read(given, r, s), window="ROWS 1", time="ts")
                value = evaluate_columns(query.predicate, {c: column(crossed[c.side].column(c.name))
                                                           for c in columns(query.predicate)}, len(at["r"]))
                pairs = value.valid & value.values
                ids = zip(*(crossed[side].column("id").filter(pa.array(pairs)).to_pylist() for side in ("r", "s")),
                          strict=True)
                assert {(n, *pair) for pair in ids} == {row for row in expected if row[0] == n}, on
            if on not in NO_WORDS:
                assert query.time is not None
                band = time_band(query.predicate, query.time)
                assert (None in band.values()) == any(part in on for part in OF_OTHERS), on
                times = {side: crossed[side].column("ts").filter(pa.array(pairs)).cast(pa.int64()) for side in "rs"}
                apart = pc.drop_null(pc.subtract(times["s"], times["r"])).to_numpy()
                for length, gap in ((band["r"], apart), (band["s"], -apart)):
                    assert length is None or gap.max(initial=0) <= length, on


@pytest.mark.usefixtures("tables")
def test_calls_in_a_zone_whose_clock_is_put_forward(spark: SparkSession) -> None:
    """What Spark counts by its clock is refused there; seconds since 1970 are not."""
    left, right = spark.table("l"), spark.table("r")
    with pytest.raises(PredicateError, match="Spark counts the difference of two timestamps by the clock of the sess"):
        stream_join(left, right, on="timestampdiff(HOUR, r.ts, s.ts) = 0", device="golden")
    with pytest.raises(PredicateError, match="Spark finds the day in which a timestamp lies by the clock of the sess"):
        stream_join(left, right, on=F.datediff("s.ts", "r.ts") == 0, device="golden")
    on = F.unix_timestamp("r.ts") - F.unix_timestamp("s.ts")
    found = stream_join(left.drop("items", "pair"), right.drop("items", "pair"), on=on.between(-20, 5),
                        select=["id_r", "id_s"], device="golden").collect()
    expected = _expected(spark, ["unix_timestamp(l.ts) - unix_timestamp(r.ts) BETWEEN -20 AND 5"])
    assert {(0, *row) for row in found} == expected
    apart = "unix_timestamp(r.ts) - unix_timestamp(s.ts)"
    found = stream_sql(f"SELECT r.id, s.id AS other, {apart} AS apart FROM r, s WHERE {apart} BETWEEN -20 AND 5",
                       r=left, s=right, device="golden").collect()
    assert {(0, row[0], row[1]) for row in found} == expected
    assert all(-20 <= row["apart"] <= 5 for row in found)


#: Conditions whose bounds Spark does not find, so that it refuses outer joins by them.
_STREAMED = ["abs(l.ts - r.ts) <= INTERVAL '20' SECOND", "timestampdiff(SECOND, r.ts, l.ts) BETWEEN -20 AND 5",
             "cast(l.ts AS long) - cast(r.ts AS long) BETWEEN -20 AND 5", "l.second BETWEEN r.second - 20 AND r.second"]


def test_rows_of_streams_are_those_of_tables(spark: SparkSession, tables: Path) -> None:
    """Several joins in one query; and left joins, whose rows without a partner wait for the watermark."""
    expected = _expected(spark, _STREAMED)
    texts = [_select(n, on, "s_") for n, on in enumerate(_STREAMED)]
    assert "splitjoin[stream, left, left 3620.001 s" in optimized(spark, _select(0, _STREAMED[0], "s_", "LEFT"))
    with settings(spark, spark__splitjoin__sql__enabled=True):
        query = spark.sql(" UNION ALL ".join([*texts, _select(9, _STREAMED[1], "s_", "LEFT")])).writeStream.format(
            "memory").queryName("banded").option("checkpointLocation", str(tables / "checkpoint")).trigger(
            availableNow=True).start()
        assert query.awaitTermination(300), "the query does not end"
    assert query.exception() is None
    pairs = {(9, *pair) for number, *pair in expected if number == 1}
    assert _found(spark.table("banded")) == expected | pairs


@pytest.mark.usefixtures("tables")
def test_what_spark_keeps_is_said(spark: SparkSession) -> None:
    for on, reason in {**OF_TABLES, **LEFT}.items():
        if on in LEFT:
            with settings(spark, spark__splitjoin__sql__enabled=True):
                assert f"left to Spark by splitjoin: {reason}" in plan_of(spark.sql(_select(0, on)))
        if on.startswith("l.minute ="):  # which Spark can join
            assert f"left to Spark by splitjoin: {reason}" in optimized(spark, _select(0, on, "s_")), on
        else:
            with pytest.raises(PySparkException, match=f"(?s)splitjoin cannot run it here: .*{re.escape(reason)}"):
                optimized(spark, _select(0, on, "s_"))


def test_rows_stay_as_long_as_they_may_meet_one(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes a cast to seconds for the time itself, and evicts a row 5.9 s back, which has a partner here."""
    begin = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    for number, second in enumerate((100.1, 100.2, 100.9)):
        for name in "lr":
            (tmp_path / name).mkdir(exist_ok=True)
            seconds = [95, second] if (name, number) == ("r", 0) else [second]
            times = [begin + dt.timedelta(seconds=s) for s in seconds]
            path = tmp_path / name / f"{number}.parquet"
            pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))}), path)
            os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark reads files by their age
    for name in "lr":
        stream = spark.readStream.schema("ts timestamp").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        stream.withWatermark("ts", "0 seconds").createOrReplaceTempView(f"s_{name}")
    with settings(spark, spark__splitjoin__sql__enabled=True):
        query = spark.sql("SELECT 1 FROM s_l l JOIN s_r r ON cast(l.ts AS long) - cast(r.ts AS long) BETWEEN 5 AND 5"
                          ).writeStream.format("memory").queryName("kept").option(
            "checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(300), "the query does not end"
    assert query.exception() is None
    assert spark.table("kept").count() == 3
