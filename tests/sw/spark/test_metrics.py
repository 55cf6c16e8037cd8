"""Counters and latencies of the tasks, as the driver sees them."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import UnsupportedError
from splitjoin.engines.golden import GoldenDevice, GoldenSession
from splitjoin.lang.query import Query
from splitjoin.spark import JoinMetrics, Latencies, stream_join

from ...support.spark_streams import ON, answer


class TimedSession(GoldenSession):
    """Says that probe i took 10 + i cycles."""

    def latencies(self) -> npt.NDArray[np.int64]:
        counted = self.counters()
        return np.arange(10, 10 + counted["tuples_r"] + counted["tuples_s"])


class TimedDevice(GoldenDevice):
    """The golden model with made-up latencies."""

    name: ClassVar[str] = "timed"

    def open(self, query: Query) -> TimedSession:
        return TimedSession(query, self.cores)


def test_counters_and_rows(spark: SparkSession, frames: tuple[DataFrame, DataFrame],
                           tables: tuple[pa.Table, pa.Table]) -> None:
    metrics = JoinMetrics(spark)
    query: dict[str, Any] = {"on": ON, "window": "ROWS 10", "time": "ts"}
    joined = stream_join(*frames, **query, partitions=[50, 500], metrics=metrics)
    assert (metrics.partitions, metrics.tuples, metrics.pairs, metrics.counters) == (0, 0, 0, {})
    joined.collect()
    # Two partitions with rows; ten rows of each stream are warm in the second, and none run in the third, empty one.
    assert (metrics.partitions, metrics.tuples, metrics.warm) == (2, 430, 20)
    assert metrics.pairs == len(answer(*tables, **query))
    assert metrics.counters["tuples_r"] + metrics.counters["tuples_s"] == 450
    assert len(metrics.latencies) == 0
    joined.collect()
    assert metrics.tuples == 860
    metrics.reset()
    assert (metrics.tuples, metrics.counters) == (0, {})


def test_latencies_leave_out_warm_probes(spark: SparkSession) -> None:
    metrics = JoinMetrics(spark)
    frame = spark.range(4).selectExpr("id ts")
    stream_join(frame, frame, on="r.ts = s.ts", window="RANGE 1", time="ts", partitions=[2], device=TimedDevice(),
                metrics=metrics).collect()
    # Four rows in partition 0; two warm ones (of the two streams) and then four in partition 1.
    assert dict(zip(metrics.latencies.cycles.tolist(), metrics.latencies.counts.tolist(), strict=True)) == {
        10: 1, 11: 1, 12: 2, 13: 2, 14: 1, 15: 1}


def test_percentiles() -> None:
    latencies = Latencies({7: 90, 5: 9, 400: 1})
    assert len(latencies) == 100
    assert [latencies.percentile(q) for q in (0, 9, 9.5, 50, 99, 99.5, 100)] == [5, 5, 7, 7, 7, 400, 400]
    with pytest.raises(ValueError, match="q must be 0 to 100"):
        latencies.percentile(101)
    with pytest.raises(ValueError, match="0 measurements"):
        Latencies({}).percentile(50)


def test_spark_connect_has_no_accumulators() -> None:
    class Connect:
        @property
        def sparkContext(self) -> None:  # noqa: N802  # Spark's name
            raise RuntimeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")

    with pytest.raises(UnsupportedError, match="leave metrics out, or use a classic session"):
        JoinMetrics(Connect())  # type: ignore[arg-type]  # a stand-in
