"""`stream_join` on the simulated circuit, in Spark's own worker processes."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import CapacityError, SplitJoinError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin.link.daemon.client import DaemonDevice
from splitjoin.spark import JoinMetrics, stream_join, task_error
from splitjoin_sim.device import SimDevice

from ...support.sessions import in_thread, joined
from ...support.spark_files import Files, wait_until
from ...support.spark_streams import answer, rows
from ..link.daemon.conftest import serving

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


@pytest.mark.long  # test_leases.py has the queue of the daemon
def test_tasks_wait_for_the_only_circuit(spark: SparkSession, tmp_path: Path,
                                         tables: tuple[pa.Table, pa.Table]) -> None:
    """Two groups, one device, and at first another client has it."""
    folder = tmp_path / "daemon"
    folder.mkdir(mode=0o700)
    files = Files(spark, tmp_path)
    for n in range(2):
        files.add(*(table.slice(n * 100, 100) for table in tables))
    query: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts"}
    with serving(folder, [SimDevice(**SIM["device_options"])]) as server:
        holder = DaemonDevice(socket=server.path).open(Query.make(*(Schema.from_table(side, table) for side, table in
                                                                    zip("rs", tables, strict=True)), **query))
        made = stream_join(files.frame("r"), files.frame("s"), **query, late=200, groups=2, state=files.state,
                           device="daemon", device_options={"socket": str(server.path), "wait": 600})
        thread, _, result = in_thread(lambda: files.run(made))
        wait_until(lambda: server.status()["waiting"] > 0)
        assert not result
        holder.close()
        joined(thread)
        status = server.status()
    assert status["devices"][0]["counters"]["waits"] > 0
    assert rows(files.found()) == rows(answer(*(table.slice(0, 200) for table in tables), **query))
