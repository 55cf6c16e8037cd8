"""INT96 times of Parquet, as Spark writes them by default: exact at every place that opens a file, or refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import splitjoin
from splitjoin import InputError
from splitjoin.base.parquet import ParquetSource, parquet_batches
from splitjoin.lang.field import parquet_schema
from splitjoin.spark.replay_files import event_times, opened
from splitjoin.tables import TableFiles, read_schema

TIMES = [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2020, 1, 1, 0, 0, 0, 1),
         dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
US = pa.timestamp("us")


def written(folder: Path, columns: dict[str, Any], name: str = "old.parquet") -> Path:
    path = folder / name
    pyarrow.parquet.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=True, row_group_size=2)
    return path


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    """A file with INT96 times, also within lists and structs."""
    return written(tmp_path, {
        "n": range(4), "to": pa.array(TIMES, US),
        "many": pa.array([[TIMES[0], None], None, [], [TIMES[3]]], pa.list_(US)),
        "of": pa.array([{"a": TIMES[3]}, None, {"a": TIMES[0]}, {"a": None}], pa.struct({"a": US}))})


def test_every_place_that_opens_parquet_reads_them(spark: Path) -> None:
    now = {"at": pa.array([dt.datetime(2019, 1, 1)], US)}
    found = splitjoin.join(now, spark, on="r.at < s.to", select=["n", "to"])
    assert found.to_pydict() == {"n": [2, 3], "to": TIMES[2:]}
    found = splitjoin.sql("SELECT n, many, of FROM a JOIN b ON a.at > b.to", a=now, b=str(spark))
    assert found.to_pydict() == {"n": [0, 1], "many": [[TIMES[0], None], None], "of": [{"a": TIMES[3]}, None]}
    assert read_schema(spark).field("to").type == parquet_schema(spark).field("to").type == US
    batches = list(parquet_batches(spark, 3))
    assert pa.Table.from_batches(batches).column("to").to_pylist() == TIMES
    parts = list(TableFiles.find(spark).batches(["to"], 3))
    assert pa.concat_tables(parts).column("to").to_pylist() == TIMES
    assert event_times(opened(str(spark)).row_group(1), "to").tolist() == [
        (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for time in TIMES[2:]]
    assert ParquetSource(spark).int96 == {"to", "many", "of"}


def test_parts_of_a_microsecond_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": [1, 2, 3], "t": pa.array([10**18, None, 10**18 + 1], pa.timestamp("ns"))})
    reads: list[Any] = [lambda: splitjoin.join(path, {"x": [1]}, on="TRUE"), lambda: list(parquet_batches(path, 2)),
                        lambda: opened(str(path)).row_group(1)]
    for read in reads:
        with pytest.raises(InputError, match=r"read as microseconds, but column 't' of .*old\.parquet holds parts of "
                                             r"one; .*, give pyarrow\.parquet\.read_table\(FILE\), else"):
            read()
    assert TableFiles.find(path).read(["n"]).to_pydict() == {"n": [1, 2, 3]}  # without the column


def test_datasets_that_wrap_are_refused(spark: Path, tmp_path: Path) -> None:
    plain = tmp_path / "new.parquet"
    pyarrow.parquet.write_table(pa.table({"to": pa.array([1], pa.timestamp("ns"))}), plain)
    assert splitjoin.join(pyarrow.dataset.dataset(plain), {"x": [1]}, on="TRUE").num_rows == 1
    options = pyarrow.dataset.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    exact = pyarrow.dataset.dataset(spark, format=pyarrow.dataset.ParquetFileFormat(read_options=options))
    assert splitjoin.join(exact, {"x": [1]}, on="TRUE", select=["to"]).to_pydict() == {"to": TIMES}
    wrong = pyarrow.dataset.dataset(spark)
    both = pyarrow.dataset.dataset([pyarrow.dataset.dataset(plain), wrong])
    for one in (wrong, wrong.filter(pyarrow.dataset.field("n") > 1), both):
        with pytest.raises(InputError, match=r"INT96 wrap in nanoseconds, as the dataset of stream r reads 'many' of"):
            splitjoin.join(one, {"x": [1]}, on="TRUE")
