"""`stream_join` on the simulated circuit, in Spark's own worker processes."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import CapacityError, SplitJoinError
from splitjoin.spark import JoinMetrics, stream_join, task_error

from ...support.spark_streams import answer

#: One circuit for all tests here: building it takes a while.
SIM: dict[str, Any] = {"device": "sim", "device_options": {"cores": 2, "capacity": 64}}
ON = "abs(r.x - s.x) <= 6"

Frames = tuple[DataFrame, DataFrame]


def test_exact_and_counted(spark: SparkSession, frames: Frames, tables: tuple[pa.Table, pa.Table]) -> None:
    metrics = JoinMetrics(spark)
    query: dict[str, Any] = {"on": ON, "window": ("ROWS 20", "RANGE 9"), "time": "ts"}
    joined = stream_join(*frames, **query, order="total", partitions=[30, 31, 90], metrics=metrics, **SIM)
    got = joined.toArrow()
    assert list(map(repr, got.to_pylist())) == list(map(repr, answer(*tables, **query).to_pylist()))
    assert len(got) > 5
    assert metrics.tuples == len(metrics.latencies) == 430
    assert metrics.counters["tuples_r"] + metrics.counters["tuples_s"] == metrics.tuples + metrics.warm
    assert 0 < metrics.counters["comparisons"] <= 4 * metrics.counters["cycles"]
    assert metrics.latencies.percentile(0) > 1


def test_a_window_too_large_is_refused_before_any_job(frames: Frames) -> None:
    with pytest.raises(CapacityError, match=r"more than 2 cores of 64 tuples.*the largest that fits is ROWS 128"):
        stream_join(*frames, on=ON, window=("ROWS 129", "RANGE 9"), time="ts", **SIM)


def test_a_window_that_outgrows_the_device_fails_the_action(frames: Frames) -> None:
    joined = stream_join(*frames, on=ON, window=("ROWS 20", "RANGE 1000"), time="ts", partitions=[5], **SIM)
    with pytest.raises(PySparkException) as failure:
        joined.collect()
    reason = task_error(failure.value)
    assert type(reason) is SplitJoinError
    assert "the window of stream s must hold at most 128 tuples on this device, but row s#128" in str(reason)
    assert "This was in time partition 1; rows count from its first warm one." in str(reason)
