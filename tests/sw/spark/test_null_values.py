"""`with_null_values`: the rows of `splitjoin.join` with null_values=, in joins of DataFrames and in Spark's SQL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import splitjoin
from splitjoin import InputError, SchemaError
from splitjoin.spark import stream_join, with_null_values

TABLE = pa.table({
    "n": pa.array([0, 1, 2], pa.int64()), "ts": pa.array([2**63 - 1, 5, -1], pa.int64()),
    "px": [math.nan, 1.0, None], "name": ["", "a", "b"],
    "at": pa.array([dt.datetime(9999, 12, 31), dt.datetime(1, 1, 1), None], pa.timestamp("us", "UTC")),
    "day": pa.array([dt.date(1900, 1, 1), dt.date(2020, 1, 1), None]),
    "price": pa.array([Decimal("-1.00"), Decimal("1.00"), None], pa.decimal128(9, 2)), "a.b": [1, 2, 3]})
NULLS: dict[str, Any] = {"ts": [2**63 - 1, -1], "px": math.nan, "name": "", "at": dt.datetime(
    9999, 12, 31, tzinfo=dt.UTC), "day": "1900-01-01", "price": Decimal(-1), "a.b": 1}


def test_the_rows_of_join(spark: SparkSession) -> None:
    frame = with_null_values(spark.createDataFrame(TABLE), NULLS)
    want = splitjoin.join(TABLE, {"m": [0, 1, 2]}, on="r.n = s.m", null_values=NULLS, order="left",
                          select=[name for name in TABLE.column_names if name != "n"])
    found = frame.orderBy("n").drop("n").toArrow()
    assert found.to_pydict() == want.to_pydict()
    assert all(column.null_count for column in found.columns)
    pairs = stream_join(frame, frame, on="r.ts = s.ts", device="golden", partitions=1, select=["r.n"])
    assert pairs.toArrow().to_pydict() == {"n_r": [1]}
    assert frame.agg({"px": "avg"}).collect()[0][0] == 1.0


@pytest.mark.parametrize(("nulls", "error", "message"), [
    ({"prize": 1}, SchemaError, r"null_values names the column 'prize', but no table has it \(did you mean 'pri"),
    ({"ts": "x"}, SchemaError, "the values that stand for NULL in ts must be of the type int64, not 'x'"),
    ({"px": None}, SchemaError, "px has None among them"), (["ts"], InputError, "null_values must be a mapping"),
])
def test_refused(spark: SparkSession, nulls: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        with_null_values(spark.createDataFrame(TABLE), nulls)


def test_a_watermark_belongs_behind(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    assert with_null_values(stream, {"value": 7}).isStreaming
    with pytest.raises(InputError, match="'timestamp' has a watermark; call with_null_values first"):
        with_null_values(stream.withWatermark("timestamp", "1 second"), {"timestamp": 0})
