"""Files that Spark writes, read here: INT96 times, which are its default, and all other types, twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from splitjoin.tables.inputs import as_table

QUERY = """SELECT * FROM VALUES
    (0, TIMESTAMP '9999-12-31 23:59:59.999999Z', DATE '9999-12-31', double('NaN'), 9223372036854775807, X'00ff',
     CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)), TIMESTAMP_NTZ '0001-01-01 00:00:00', ''),
    (1, TIMESTAMP '0001-01-01 00:00:00Z', DATE '0001-01-01', double('-Infinity'), -9223372036854775808, X'', -1,
     TIMESTAMP_NTZ '9999-12-31 00:00:00', '007'), (2, NULL, NULL, -0.0D, NULL, NULL, NULL, NULL, NULL)
    AS t(n, at, day, x, big, bytes, price, local, code)"""


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_edge_values(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    frame = spark.sql(QUERY)
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    try:
        frame.coalesce(1).write.parquet(str(tmp_path / "out"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    schema = pq.ParquetFile(next((tmp_path / "out").glob("*.parquet"))).schema
    assert (schema.column(1).physical_type == "INT96") == (kind == "INT96")
    want = frame.toArrow()
    for _ in range(2):
        found = as_table(f"{tmp_path}/out/*.parquet", "r")
        for name in want.column_names:
            a, b = (table.column(name) for table in (found, want))
            if pa.types.is_timestamp(b.type):
                a, b = a.cast(pa.int64()), b.cast(pa.int64())
            assert repr(a.to_pylist()) == repr(b.to_pylist()), name
