"""Functions of `foreachBatch` compute a micro-batch of a join in threads that Spark tells nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import UnsupportedError
from splitjoin.spark import stream_join
from splitjoin.spark.streaming.micro_batch import MicroBatch

from ...support.sampling import at_length
from ...support.spark_files import Files
from ...support.spark_streams import rows, stream
from .test_extension import settings

#: The most frequent name is a hot key.
_KEYED = "r.name = s.name AND abs(r.x - s.x) <= 6"
_SQL = "SELECT /*+ SPLITJOIN */ r.n a, s.n b FROM r JOIN s ON {} AND r.at BETWEEN s.at - {} AND s.at + {}"


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    """Two micro-batches; a third one is added when the query starts again."""
    made = Files(spark, tmp_path)
    for n in range(2):
        add(made, n)
    return made


def add(files: Files, n: int) -> None:
    """The files of micro-batch ``n``."""
    tables = []
    for side in range(2):
        table = stream(10 * n + side, 60)
        times = pc.add(table["ts"], 200 * n)
        seconds = times.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC"))
        tables.append(table.set_column(0, "ts", times).append_column("at", seconds))
    files.add(*tables)


def keyed(files: Files, read: Callable[[str], DataFrame]) -> DataFrame:
    given: dict[str, Any] = {"late": 0, "groups": 2} if read == files.frame else {}
    return stream_join(read("r"), read("s"), on=_KEYED, window="RANGE 9", time="ts", select=["n_r", "n_s"], **given)


def joined_again(files: Files, read: Callable[[str], DataFrame]) -> DataFrame:
    """Two joins in one query, the second one of the first one's rows."""
    given: dict[str, Any] = {"late": 0, "groups": 2} if read == files.frame else {}
    named: dict[str, Any] = {"name": "first"} if given else {}
    first = stream_join(read("r"), read("s").withColumnRenamed("n", "m"), on="r.x = s.x", window="RANGE 9", time="ts",
                        **given, **named)
    again: dict[str, Any] = given | {"window": (None, "RANGE 5"), "time": (None, "ts")}
    return stream_join(first.where("n > 5"), read("s").withColumnRenamed("n", "o"), on="r.x_r = s.x",
                       select=["n", "m", "o"], **again)


def plain(files: Files, read: Callable[[str], DataFrame]) -> DataFrame:
    for side in "rs":
        view = read(side)
        (view.withWatermark("at", "1 second") if view.isStreaming else view).createOrReplaceTempView(side)
    enabled = str(read == files.frame).lower()
    with settings(files.spark, spark__splitjoin__sql__enabled=enabled):
        return files.spark.sql(_SQL.format("r.x = s.x", "INTERVAL 9 SECONDS", "INTERVAL 9 SECONDS"))


@pytest.mark.parametrize("join", [at_length(keyed), at_length(joined_again), plain])  # `test_kept_rows` has calls
def test_two_sinks_at_once_in_threads(spark: SparkSession, files: Files, join: Any) -> None:
    """Each gets all rows, also after a restart."""
    with settings(spark, spark__splitjoin__sql__enabled=True):
        for n in (1, 2):
            joined = join(files, files.frame)

            def write(frame: DataFrame, batch: int) -> None:
                with ThreadPoolExecutor(2) as pool:
                    for done in [pool.submit(frame.write.mode("overwrite").parquet, f"{files.root}/{sink}/{batch}")
                                 for sink in "ab"]:
                        done.result()

            with settings(spark, spark__splitjoin__sql__enabled=True):
                files.batches(joined, write)
            if n == 1:
                add(files, 2)
    wanted = rows(join(files, lambda side: spark.read.parquet(str(files.root / side))).toArrow())
    assert len(wanted) > 20
    for sink in "ab":
        # Spark runs micro-batches without data for the joins of plain SQL, too.
        found = [spark.read.parquet(str(batch)).toArrow() for batch in (files.root / sink).iterdir()]
        assert rows(pa.concat_tables(found)) == wanted


def test_kept_rows(spark: SparkSession, files: Files) -> None:
    found = list[pa.Table]()

    def collect(frame: DataFrame, _: int) -> None:
        kept = frame.persist()
        with ThreadPoolExecutor(2) as pool:
            tables = list(pool.map(lambda _: kept.toArrow(), range(2)))
        assert rows(tables[0]) == rows(tables[1])
        found.append(tables[0])
        kept.unpersist()

    files.batches(keyed(files, files.frame), collect)
    wanted = keyed(files, lambda side: spark.read.parquet(str(files.root / side))).toArrow()
    assert rows(pa.concat_tables(found)) == rows(wanted)


def test_a_task_of_no_streaming_query_says_what_to_do() -> None:
    """As of a micro-batch in which no input of the join has a part, whose plan reaches no row of it."""
    with pytest.raises(UnsupportedError, match="start the thread with pyspark.inheritable_thread_target, or let the "
                                               r"function call persist\(\)"):
        MicroBatch.of({"number": None, "query": None, "checkpoint": None})
