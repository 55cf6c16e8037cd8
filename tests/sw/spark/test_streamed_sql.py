"""Streams in plain SQL: the extension runs joins without an equality, and their rows are those of whole tables."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession  # the name all Spark code uses

from splitjoin.spark import stream_join

from ...support.sampling import at_length
from .test_extension import rows_of, settings

_BEGIN = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
#: Seconds in a file; no row is later than the watermark's ten seconds.
_SPAN, _FILES = 60, 3
_BAND = "abs(l.x - r.x) <= 3 AND l.ts BETWEEN r.ts - INTERVAL 20 SECONDS AND r.ts + INTERVAL 5 SECONDS"


class Streams:
    """Streams l, r and t of files, as views, and the same rows as the tables all_l, all_r and all_t."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder, self.rng = spark, folder, random.Random(5)
        self.feed(0)
        for side in "lrt":
            stream = spark.readStream.schema("ts timestamp, x int, id bigint").option("maxFilesPerTrigger", 1).parquet(
                str(folder / side))
            stream.createOrReplaceTempView(f"unmarked_{side}")
            stream.withWatermark("ts", "10 seconds").createOrReplaceTempView(side)

    def feed(self, *numbers: int) -> None:
        """Add the files of these numbers. The times of a file reach nine seconds into those of the one before."""
        for number in numbers:
            for side in "lrt":
                path = self.folder / side / f"{number}.parquet"
                path.parent.mkdir(exist_ok=True)
                seconds = [self.rng.uniform(number * _SPAN - 9 * (number > 0), (number + 1) * _SPAN) for _ in range(50)]
                times = [_BEGIN + dt.timedelta(seconds=s) for s in [*seconds, (number + 1) * _SPAN]]
                xs = [None if self.rng.random() < 0.1 else self.rng.randrange(60) for _ in times]
                pq.write_table(pa.table({"ts": pa.array([None, *times[1:]], pa.timestamp("us", "UTC")),
                                         "x": pa.array(xs, pa.int32()),
                                         "id": [100 * number + n for n in range(len(times))]}), path)
                os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark reads files by their age

    def whole(self, text: str) -> DataFrame:
        """The rows of ``text`` over the whole tables, by Spark itself."""
        for side in "lrt":
            self.spark.read.parquet(str(self.folder / side)).createOrReplaceTempView(f"all_{side}")
        for side in "lrt":
            text = text.replace(f"FROM {side} ", f"FROM all_{side} {side} ").replace(
                f"JOIN {side} ", f"JOIN all_{side} {side} ")
        return self.spark.sql(text)

    def run(self, stream: DataFrame, name: str) -> list[str]:
        """All rows of the query ``name`` so far, after all files that are there."""
        with settings(self.spark, spark__splitjoin__sql__enabled=True):
            query = stream.writeStream.format("parquet").option("path", str(self.folder / name)).option(
                "checkpointLocation", str(self.folder / f"{name} checkpoint")).trigger(availableNow=True).start()
            assert query.awaitTermination(300), "the query does not end"
        assert query.exception() is None
        self.progress = query.recentProgress[-1]
        return rows_of(self.spark.read.parquet(str(self.folder / name)))


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    with settings(spark, spark__sql__session__timeZone="UTC"):
        yield Streams(spark, tmp_path)


def test_rows_are_those_of_the_tables_from_the_checkpoint_alone(spark: SparkSession, streams: Streams) -> None:
    """Times that are NULL, computed keys, and a query that starts again, in other groups, with no call of splitjoin."""
    text = f"SELECT l.id, r.id other, l.x + r.x total, r.ts FROM l JOIN r ON {_BAND} AND l.x % 7 <> r.x"
    first = streams.run(spark.sql(text), "out")
    assert 0 < len(first) == streams.whole(text).count()
    streams.feed(1, 2)
    with settings(spark, spark__splitjoin__sql__groups=3):
        rows = streams.run(spark.sql(text), "out")
    assert rows == rows_of(streams.whole(text))
    assert len(rows) > 2 * len(first)
    assert (streams.folder / "out checkpoint" / "splitjoin").is_dir()


_ELSE = "l.x % 7 <> r.x"
#: Kinds of join, with columns of the result that are not NULL in all rows.
_KINDS = [
    (f"SELECT l.id, r.id other, l.ts, r.ts due FROM l {kind} JOIN r ON {_BAND} AND {_ELSE}", "coalesce(ts, due)")
    for kind in ("LEFT", "FULL")] + [
    (f"SELECT l.id, l.ts FROM l LEFT {kind} JOIN r ON {_BAND} AND {_ELSE}", "ts")
    for kind in ("SEMI", "ANTI")]


@pytest.mark.parametrize(("text", "time"), [
    kind if "ANTI" in kind[0] else at_length(*kind) for kind in _KINDS])  # random streams have the others
def test_kinds_of_join(spark: SparkSession, streams: Streams, text: str, time: str) -> None:
    """Each row comes once the watermark has decided it. One without a time meets nothing: as in Spark, it is a row of
    anti joins alone, which Spark has not.
    """
    streams.feed(1, 2, 3)
    # Spark refuses anti joins of streams in a check of its own.
    with settings(spark, spark__sql__streaming__unsupportedOperationCheck="ANTI" not in text):
        found = streams.run(spark.sql(text), "kind")
    whole = streams.whole(text)
    # What the last file leaves open: its end, less the watermark's delay and the window.
    decided = f"{time} < timestamp'{_BEGIN + dt.timedelta(seconds=4 * _SPAN - 31)}'"
    timeless = set(rows_of(whole.where(f"{time} IS NULL")))
    expected = set(rows_of(whole)) - (set() if "ANTI" in text else timeless)
    assert set(rows_of(whole.where(decided))) <= set(found) <= expected
    assert len(found) == len(set(found))
    assert bool(timeless) == ("SEMI" not in text)


def test_operators_of_spark_on_joined_rows(spark: SparkSession, streams: Streams) -> None:
    """Joins of three streams and of a static table: the watermark passes no pair."""
    streams.feed(*range(1, _FILES))
    spark.range(60).selectExpr("cast(id AS int) x", "id % 3 kind").createOrReplaceTempView("kinds")
    text = f"""SELECT l.id, r.id other, t.id third, kind, r.ts at FROM l JOIN r ON {_BAND}
        JOIN t ON t.x > l.x AND t.ts BETWEEN r.ts AND r.ts + INTERVAL 9 SECONDS JOIN kinds ON kinds.x = l.x"""
    assert streams.run(spark.sql(text), "three") == rows_of(streams.whole(text)) != []
    told = streams.progress.observedMetrics["splitjoin_sql"].asDict()
    assert told == {"in_splitjoin": 2, "in_spark": 1, "reasons": "it has an equality"}


@pytest.mark.parametrize(("text", "key"), [
    at_length(f"SELECT l.id, r.id other, t.id third, l.ts FROM l JOIN r ON {_BAND} LEFT JOIN t ON t.x > l.x "
     "AND t.ts BETWEEN r.ts AND r.ts + INTERVAL 9 SECONDS", "ts"),
    ("SELECT l.ts, l.x, r.id FROM (SELECT ts, count(*) x FROM l GROUP BY ts) l LEFT JOIN r ON r.x > l.x AND "
     "r.ts BETWEEN l.ts - INTERVAL 9 SECONDS AND l.ts", "ts"),
])
def test_rows_that_meet_nothing_behind_operators_with_state(spark: SparkSession, streams: Streams, text: str,
                                                            key: str) -> None:
    """Of joined rows and of counts: Spark tells the join how far these have got."""
    streams.feed(*range(1, _FILES))
    found, whole = streams.run(spark.sql(text), "behind"), streams.whole(text)
    decided = f"{key} < timestamp'{_BEGIN + dt.timedelta(seconds=_FILES * _SPAN - 60)}'"
    assert set(rows_of(whole.where(decided))) <= set(found) <= set(rows_of(whole))
    assert len(found) == len(set(found)) > 50


def test_rows_looked_up_in_static_tables(spark: SparkSession, streams: Streams) -> None:
    """A micro-batch is joined with a table as a batch is, in splitjoin."""
    spark.range(40).selectExpr("cast(id * 2 AS int) low", "cast(id * 2 + 4 AS int) high", "concat('b', id) band"
                               ).createOrReplaceTempView("bands")
    text = "SELECT l.id, band FROM l {} JOIN bands b ON l.x BETWEEN b.low AND b.high AND l.id % 3 <> b.low % 5"
    streams.feed(1)
    for kind in ("", "LEFT"):
        assert "splitjoin[" in optimized(spark, text.format(kind))
        assert streams.run(spark.sql(text.format(kind)), f"looked up {kind}") == rows_of(streams.whole(
            text.format(kind))) != []
    with settings(spark, spark__splitjoin__sql__minComparisons=10**6):  # some 40 rows and about 10,000
        assert "left to Spark by splitjoin: about 10000 x " in optimized(spark, text.format(""))


def test_a_table_that_is_read_anew(spark: SparkSession, streams: Streams) -> None:
    """A function of ``foreachBatch`` joins each micro-batch with the table as it is then."""
    table, out = str(streams.folder / "bands"), str(streams.folder / "anew")

    def look_up(batch: DataFrame, _: int) -> None:
        stream_join(batch, spark.read.parquet(table), on="r.x BETWEEN s.low AND s.low + 9", how="left",
                    select=["r.id", "s.version"]).write.mode("append").parquet(out)

    for version in range(2):
        if version:
            streams.feed(version)
        spark.range(0, 40, 10).selectExpr("cast(id AS int) low", f"{version} version").write.mode("overwrite").parquet(
            table)
        query = spark.sql("SELECT x, id FROM l").writeStream.foreachBatch(look_up).option(
            "checkpointLocation", out + " checkpoint").trigger(availableNow=True).start()
        assert query.awaitTermination(300), "the query does not end"
    found = spark.read.parquet(out)
    assert rows_of(found) == rows_of(streams.whole("SELECT id, if(x < 40, id div 100, null) version FROM l "))
    assert found.where("version = 1").count() > 9


def optimized(spark: SparkSession, text: str) -> str:
    """The plan of a micro-batch."""
    with settings(spark, spark__splitjoin__sql__enabled=True):
        state = spark._jsparkSession.sessionState()
        return str(state.optimizer().execute(spark.sql(text)._jdf.queryExecution().analyzed()).toString())


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize(("text", "reason"), [
    ("SELECT 1 FROM l JOIN r ON l.x < r.x AND l.ts <= r.ts",
     r"does not bound the time by which a row of the left stream may be before its partner; add ts >= ts - INTERVAL …"),
    ("SELECT 1 FROM unmarked_l l JOIN r ON abs(l.x - r.x) < 3", "the left stream has no watermark; call withWatermark"),
    ("SELECT l.id FROM l JOIN r ON l.x < r.x",
     r"the condition does not bound \S*ts, the event time of the left stream"),
    ("SELECT 1 FROM l CROSS JOIN r", "but it is missing, and splitjoin cannot run it here: it has no condition"),
    (f"SELECT 1 FROM l JOIN r ON {_BAND} AND concat(l.x, r.x) LIKE '%1'", "the function EndsWith of both sides"),
    (f"SELECT 1 FROM l JOIN r ON {_BAND} JOIN t ON t.x > l.x AND t.ts BETWEEN r.ts AND r.ts + INTERVAL 9 SECONDS "
     "JOIN l u ON u.x < l.x AND u.ts BETWEEN l.ts AND l.ts + INTERVAL 9 SECONDS",
     "the left stream is joined rows, which were joined by another time than ts; bound that"),
])
def test_what_is_refused_is_said(spark: SparkSession, text: str, reason: str) -> None:
    with pytest.raises(PySparkException, match=f"(?s){reason}.*; or call splitjoin.spark.stream_join"):
        optimized(spark, text)


@pytest.mark.usefixtures("streams")
def test_hints_windows_and_days(spark: SparkSession) -> None:
    equal = "SELECT {} l.id FROM l JOIN r ON l.x = r.x AND l.ts BETWEEN r.ts - INTERVAL 1 DAY AND r.ts"
    assert "splitjoin" not in optimized(spark, equal.format(""))
    assert "left 86400.001 s and right 0.001 s back" in optimized(spark, equal.format("/*+ SPLITJOIN */"))
    with settings(spark, spark__sql__session__timeZone="Europe/Berlin"):  # a day of 23 or 25 hours
        assert "left 90000.0 s and right 0.001 s back" in optimized(spark, equal.format("/*+ SPLITJOIN */"))
    any_pair = f"SELECT 1 FROM l JOIN r ON {_BAND}"
    with settings(spark, spark__splitjoin__sql__explainOnly=True):
        assert "splitjoin" not in optimized(spark, any_pair)
    assert " back, 2 groups, " in optimized(spark, any_pair)
    with settings(spark, spark__splitjoin__sql__groups=5):
        assert " back, 5 groups, " in optimized(spark, any_pair)
    for value, said in (("0", "a number of at least 1"), ("2.5", "a whole number from 1 to 32768"),
                        ("32769", "a whole number from 1 to 32768")):
        with (settings(spark, spark__splitjoin__sql__groups=value),
              pytest.raises(IllegalArgumentException, match=f"spark.splitjoin.sql.groups must be {said}, not {value}")):
            optimized(spark, any_pair.replace("JOIN", "FULL JOIN"))
    assert "splitjoin" not in optimized(spark, f"SELECT /*+ NO_SPLITJOIN */ 1 FROM l JOIN r ON {_BAND}")
