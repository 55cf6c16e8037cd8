"""Python workers that Spark uses again exempt what they have loaded from the garbage collector."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitjoin.spark import stream_join
from splitjoin.spark.reused import Reused


def test_what_was_loaded_is_exempted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: done.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(Reused, "_loaded", 0)
    work = Reused(lambda batches: (2 * batch for batch in batches))
    running = work(iter([1, 2]))
    assert next(running) == 2
    assert done == []  # what a task still holds may be garbage when it ends
    assert list(running) == [4]
    assert done == ["collect", "freeze"]
    assert list(work(iter([3]))) == [6]
    assert done == ["collect", "freeze"]
    monkeypatch.setitem(sys.modules, "loaded_by_a_later_task", ModuleType("loaded_by_a_later_task"))
    assert list(work(iter([3]))) == [6]
    assert done == 2 * ["collect", "freeze"]


def test_a_worker_that_has_joined_collects_little(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    def exempted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"n": [gc.get_freeze_count()] * len(batch)})

    stream_join(*frames, on="r.x = s.x", window="ROWS 3", time="ts", device="golden").collect()
    found = [row.n for row in spark.range(0, 8, 1, 8).mapInArrow(exempted, "n bigint").collect()]
    assert max(found) > 50_000
