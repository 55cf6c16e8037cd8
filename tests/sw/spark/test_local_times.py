"""Conditions over timestamps mean what Spark means by them in the session's time zone, or are refused."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import PredicateError
from splitjoin.spark import stream_join, stream_sql

from ...support.sampling import at_length
from .test_extension import settings

#: Hours that are short and long, as New York's clock is put forward and back.
_CHANGES = (dt.datetime(2024, 3, 10, 7, tzinfo=dt.UTC), dt.datetime(2024, 11, 3, 6, tzinfo=dt.UTC))
_MINUTES = (-2880, -1500, -1440, -1380, -60, -1, 0, 1, 60, 900, 1380, 1440, 1500)
#: Spark counts these by local clocks where the zone has them put back and forward.
_LOCAL = ("s.ts - r.ts BETWEEN INTERVAL '0' SECOND AND INTERVAL '61' MINUTE",
          "abs(s.ts - r.ts) <= INTERVAL '90' MINUTE",
          "s.ts <= r.ts + INTERVAL '24' HOUR AND s.ts >= r.ts",
          "s.ts - INTERVAL '40' HOUR <= r.ts AND s.ts >= r.ts",
          "s.ts <= r.ts + INTERVAL '1' DAY AND s.ts >= r.ts")
#: Spark counts these by elapsed time.
_ELAPSED = ("s.ts BETWEEN r.ts - INTERVAL '1' MINUTE AND r.ts + INTERVAL '23' HOUR",
            "s.ts <= r.ts + INTERVAL '20' HOUR + INTERVAL '20' HOUR AND s.ts >= r.ts")


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    times = [c + dt.timedelta(minutes=m) for c in _CHANGES for m in _MINUTES]
    left, right = (spark.createDataFrame([(t, n) for n, t in enumerate(times)], f"ts timestamp, {name} int")
                   for name in ("a", "b"))
    return left, right


def found(frame: DataFrame) -> Counter[Any]:
    return Counter((row.a, row.b) for row in frame.select("a", "b").collect())


def own(spark: SparkSession, frames: tuple[DataFrame, DataFrame], on: str) -> Counter[Any]:
    """Spark's own pairs."""
    return found(spark.sql(f"SELECT a, b FROM {{r}} r JOIN {{s}} s ON {on}", r=frames[0], s=frames[1]))


def ways(frames: tuple[DataFrame, DataFrame], on: str) -> list[Any]:
    """The ways to join by a condition, as functions."""
    r, s = frames
    by_parts: Any = F.col("s.ts").isNotNull() & F.expr(on)
    return [lambda: stream_join(r, s, on=on, device="golden"),
            lambda: stream_join(r, s, on=by_parts, device="golden"),
            lambda: stream_join(r, s, on=on, time="ts", window="RANGE 90 HOURS", engine="rewrite"),
            lambda: stream_sql(f"SELECT r.a, s.b FROM r JOIN s ON {on}", r=r, s=s, device="golden")]


@pytest.mark.parametrize("on", [_LOCAL[0], at_length(_LOCAL[1]), _LOCAL[2], *map(at_length, _LOCAL[3:])])
def test_local_clocks_are_refused(spark: SparkSession, frames: tuple[DataFrame, DataFrame], on: str) -> None:
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        local = own(spark, frames, on)
        for way in ways(frames, on):
            with pytest.raises(PredicateError, match=r"by the clock of the session's time zone, America/New_York.*for "
                                                     r"elapsed time, write s.ts <= r.ts \+ INTERVAL"):
                way()
    elapsed = own(spark, frames, on)
    assert local != elapsed
    with settings(spark, spark__sql__session__timeZone="+05:30"):
        assert found(ways(frames, on)[0]()) == elapsed


@pytest.mark.parametrize("on", [_ELAPSED[0], at_length(_ELAPSED[1])])
def test_elapsed_time(spark: SparkSession, frames: tuple[DataFrame, DataFrame], on: str) -> None:
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        wanted = own(spark, frames, on)
        for way in ways(frames, on):
            assert found(way()) == wanted


def test_the_ways_that_the_error_names(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    day = 86_400 * 10**6
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        wanted = own(spark, frames, f"unix_micros(s.ts) - unix_micros(r.ts) BETWEEN 0 AND {day}")
        made = stream_join(*frames, on=f"date_diff('microsecond', r.ts, s.ts) BETWEEN 0 AND {day}", device="golden")
        assert found(made) == wanted
        assert found(stream_join(*frames, on="r.ts <= s.ts", time="ts", window="RANGE 24 HOURS",
                                 device="golden")) == wanted
        local = [frame.withColumn("ts", F.col("ts").cast("timestamp_ntz")) for frame in frames]
        assert found(stream_join(*local, on=_LOCAL[0], device="golden")) == own(spark, frames, _LOCAL[0])


@pytest.mark.parametrize(("on", "said"), [
    ("r.ts >= '2024-03-10 03:00:00' AND s.b = 1", "write the offset from UTC, such as '2024-03-10 03:00:00\\+00:00'"),
    ("date_trunc('day', r.ts) = date_trunc('day', s.ts)", "Spark (finds the day|truncates a timestamp) in"),
    ("date_diff('hour', r.ts, s.ts) = 1", "Spark finds the hour in which a timestamp lies"),
])
def test_local_times(spark: SparkSession, frames: tuple[DataFrame, DataFrame], on: str, said: str) -> None:
    """Fixed offsets from UTC count there, too."""
    for zone in ("America/New_York", "+05:30"):
        with (settings(spark, spark__sql__session__timeZone=zone), pytest.raises(PredicateError, match=said)):
            stream_join(*frames, on=on, device="golden")
    assert stream_join(*frames, on=on, device="golden").count()


def test_a_text_beside_a_column(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    on: Any = (F.col("r.ts") >= "2024-03-10T03:00:00-04:00") & (F.col("s.b") == 1)
    without: Any = (F.col("r.ts") >= "2024-03-10 03:00:00") & (F.col("s.b") == 1)
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        assert found(stream_join(*frames, on=on, device="golden")) == own(
            spark, frames, "r.ts >= '2024-03-10 03:00:00' AND s.b = 1")
        with pytest.raises(PredicateError, match="Spark reads '2024-03-10 03:00:00' in the session's time zone"):
            stream_join(*frames, on=without, device="golden")


def test_three_tables_by_time(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    """Windows of event time count elapsed time."""
    a, b = frames
    text = "SELECT a.a, b.b, c.c FROM a JOIN b ON a.a >= b.b JOIN c ON c.c = a.a"

    def counted() -> int:
        return stream_sql(text, a=a, b=b, c=a.withColumnRenamed("a", "c"), time="ts", window="RANGE 25 HOURS",
                          device="golden").count()

    wanted = counted()
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        assert counted() == wanted > 20
