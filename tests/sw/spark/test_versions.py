"""What differs between versions of Spark; `tests.spark_versions` runs joins on each of them."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions as F  # noqa: N812

from splitjoin import ToolError, UnsupportedError
from splitjoin.spark import explain, stream_join, stream_sql, versions


def test_hashes_are_computed_backwards(spark: SparkSession) -> None:
    hashes = np.r_[np.arange(40, dtype=np.uint32), np.uint32([2**31, 2**32 - 1, 99_999])]
    values = pa.table({"v": versions.hashed_to(hashes)})
    found = [row[0] for row in spark.createDataFrame(values).select(F.hash("v")).collect()]
    assert np.array(found, np.int32).view(np.uint32).tolist() == hashes.tolist()


@pytest.mark.parametrize("version", [(4, 0), (4, 3)], ids=str)
@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_rows_come_to_the_partition_of_their_number(spark: SparkSession, version: tuple[int, int],
                                                    partitions: int) -> None:
    frame = spark.range(0, 500, 1, 3).select((F.col("id") % partitions).cast("int").alias("n"))
    found = versions.by_number(frame, partitions, "n", version).select("n", F.spark_partition_id()).distinct().collect()
    assert sorted(map(tuple, found)) == [(n, n) for n in range(partitions)]


def test_what_a_version_lacks_is_refused() -> None:
    versions.check_version((3, 5))
    assert versions.type_named("NoSuchType") == ()
    with pytest.raises(UnsupportedError, match=r"^replay needs Spark 4\.2 or later, and this is .*; read the files$"):
        versions.demand((4, 2), "replay", "read the files", (4, 1))
    with pytest.raises(ToolError, match=r"needs Spark 3\.5 or later"):
        versions.check_version((3, 4))


def test_the_client_of_spark_connect_alone_has_what_joins_import() -> None:
    assert explain and stream_join and stream_sql  # which imports their modules
    modules = {name: vars(module) for name, module in sys.modules.items() if name.startswith("splitjoin.spark.")}
    assert len(modules) > 30
    lacking = {"SparkContext", "SparkConf", "launch_gateway"}
    assert [name for name, names in modules.items() if lacking & names.keys()] in ([], ["splitjoin.spark.session"])
