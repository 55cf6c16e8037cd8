"""Parquet files as streams: every row once, in order, by row numbers, at the rate that was asked for."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from splitjoin.base.errors import InputError, SchemaError
from splitjoin.spark import replay
from splitjoin.spark.replay_files import Files, Options
from splitjoin.spark.replay_source import ReplayReader, _Rows

from ...support.spark_files import patiently


def write(folder: Path, n: int = 50, unit: str = "us") -> Path:
    """Two files with three row groups each: a row every two seconds, and some at equal times."""
    folder.mkdir(exist_ok=True)
    ts = [(2 * i - i % 3 // 2 * 2) * 10**6 for i in range(n)]
    table = pa.table({"ts": pa.array(sorted(ts), pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC")),
                      "x": pa.array(range(n), pa.int32()), "name": [f"row {i}" for i in range(n)]})
    pq.write_table(table.slice(0, n // 2), folder / "a.parquet", row_group_size=n // 5)
    pq.write_table(table.slice(n // 2), folder / "b.parquet", row_group_size=n // 5)
    return folder


def reader(path: Path, **options: Any) -> ReplayReader:
    given = {"rows_per_second": None, "speed": None, "rows_per_batch": None, "start": None, "time": "ts"} | options
    files = Files(Options.checked(str(path), **given))
    return ReplayReader(files, files.schema)


def run(spark: SparkSession, frame: DataFrame, folder: Path) -> list[list[int]]:
    """The numbers of the rows in each micro-batch of a run."""
    found: list[list[int]] = []
    def go_on() -> None:
        frame.writeStream.foreachBatch(lambda rows, _: found.append([row.x for row in rows.collect()])).option(
            "checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()

    patiently(go_on)
    return [rows for rows in found if rows]


def test_all_rows_in_bounded_micro_batches_and_none_again(spark: SparkSession, tmp_path: Path) -> None:
    folder = write(tmp_path / "in", unit="ns")
    frame = patiently(lambda: replay(spark, folder, time="ts", rows_per_batch=20, speed=3600))
    assert [f.simpleString() for f in frame.schema] == ["ts:timestamp", "x:int", "name:string"]
    assert run(spark, frame, tmp_path / "checkpoint") == [[*range(20)], [*range(20, 40)], [*range(40, 50)]]
    assert run(spark, frame, tmp_path / "checkpoint") == []


def test_times_of_int96_are_points_in_time_as_spark_reads_them(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([0, 10**6], pa.timestamp("us")), "other": pa.array([5, None], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    of_spark = reader(tmp_path)
    assert of_spark._schema.types == [pa.timestamp("us", "UTC")] * 2
    batch, = of_spark.read(_Rows(0, 2, False))
    assert batch.column("ts").cast(pa.int64()).to_pylist() == [0, 10**6]
    pq.write_table(table, tmp_path / "a.parquet")
    assert reader(tmp_path)._schema.types == [pa.timestamp("us")] * 2  # TIMESTAMP_NTZ


def test_rows_come_at_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("splitjoin.spark.replay_source.clock.monotonic", lambda: now)
    rated = reader(write(tmp_path), rows_per_second=10, rows_per_batch=7)
    assert isinstance(rated.getDefaultReadLimit(), ReadMaxRows)
    offset = rated.latestOffset(rated.initialOffset(), ReadAllAvailable())
    assert offset["row"] == 0
    now += 1.25
    assert rated.latestOffset(offset, ReadAllAvailable())["row"] == 12
    assert rated.latestOffset(offset, ReadMaxRows(7))["row"] == 7
    now += 60
    assert rated.latestOffset(offset, ReadAllAvailable())["row"] == 50


def test_event_time_passes_at_the_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr("splitjoin.spark.replay_source.clock.monotonic", lambda: now)
    fast = reader(write(tmp_path), speed=10)
    times = [t for group in fast._files.index for t in fast._files.times(group).tolist()]
    offset = fast.latestOffset(fast.initialOffset(), ReadAllAvailable())
    assert offset["row"] == sum(t <= 0 for t in times)
    now += 2  # twenty seconds of event time
    assert fast.latestOffset(offset, ReadAllAvailable())["row"] == sum(t <= 20 * 10**6 for t in times)
    again = reader(tmp_path, speed=10)  # after a restart it plays on from where it was
    middle = {"row": 30, "files": offset["files"]}
    assert again.latestOffset(middle, ReadAllAvailable())["row"] >= 30
    now += 1
    assert again.latestOffset(middle, ReadAllAvailable())["row"] == sum(t <= times[30] + 10**7 for t in times)
    later = reader(tmp_path, speed=10, start=dt.datetime(1970, 1, 1, 0, 0, 30, tzinfo=dt.UTC))
    assert later.latestOffset(later.initialOffset(), ReadAllAvailable())["row"] == sum(t <= 30 * 10**6 for t in times)


def test_only_the_row_groups_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = pq.ParquetFile.read_row_group
    monkeypatch.setattr(pq.ParquetFile, "read_row_group",
                        lambda self, n, columns=None: (read.append(n), whole(self, n, columns))[1])
    rows = pa.Table.from_batches(reader(write(tmp_path)).read(_Rows(21, 24, False)))
    assert rows.column("x").to_pylist() == [21, 22, 23]
    assert read == [2]


@pytest.mark.parametrize(("change", "kind", "reason"), [
    ({"rows_per_second": 0}, InputError, "rows_per_second must be a number more than 0, not 0"),
    ({"speed": "fast"}, InputError, "speed must be a number more than 0, not 'fast'"),
    ({"rows_per_second": 1, "speed": 1}, InputError, "give one of them"),
    ({"rows_per_batch": 0}, InputError, "rows_per_batch must be a whole number from 1, not 0"),
    ({"start": 3}, InputError, "needs speed="), ({"start": "now", "speed": 1}, InputError, "start must be an integer"),
    ({"time": "at"}, SchemaError, "has no column 'at'; its columns are ts, x, name"),
    ({"time": "name"}, SchemaError, "must be an integer, a date or a timestamp, not string"),
])
def test_refused_at_once(spark: SparkSession, tmp_path: Path, change: dict[str, Any], kind: type[Exception],
                         reason: str) -> None:
    with pytest.raises(kind, match=reason):
        replay(spark, write(tmp_path), **({"time": "ts"} | change))


def test_no_files_other_files_and_other_columns(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Parquet file at"):
        replay(spark, tmp_path / "nothing", time="ts")
    (tmp_path / "c.parquet").write_bytes(b"no Parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        replay(spark, tmp_path, time="ts")
    pq.write_table(pa.table({"ts": [1]}), tmp_path / "c.parquet")
    with pytest.raises(SchemaError, match="all files must have the columns of"):
        replay(spark, write(tmp_path), time="ts")


@pytest.mark.parametrize(("times", "reason"), [([1, 3, 2], "row 2 of .* is before the row in front of it"),
                                               ([1, None, 2], "must not hold NULL")])
def test_rows_that_are_not_in_order_are_refused(tmp_path: Path, times: list[int | None], reason: str) -> None:
    pq.write_table(pa.table({"ts": pa.array(times, pa.int64()), "x": [1, 2, 3]}), tmp_path / "a.parquet")
    playing = reader(tmp_path)
    whole = {"row": 3, "files": playing._files.digest}
    (partition,) = playing.partitions(playing.initialOffset(), whole)
    with pytest.raises(InputError, match=reason):
        list(playing.read(partition))


def test_files_that_changed_are_noticed(tmp_path: Path) -> None:
    begun = reader(write(tmp_path)).initialOffset()
    write(tmp_path, 60)
    with pytest.raises(InputError, match="have changed since the query began"):
        reader(tmp_path).latestOffset(begun, ReadAllAvailable())
