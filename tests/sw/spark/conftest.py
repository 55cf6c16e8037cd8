"""One quiet Spark session for all tests here, and streams for them."""

from collections.abc import Iterator
from itertools import compress
from operator import not_
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

from ...support.spark_settings import SETTINGS
from ...support.spark_streams import ON, stream

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one worker runs all of these, so that only one starts a JVM; and they come first, as
    the other worker would wait for what takes minutes and comes last.
    """
    here = [item.path.parent == HERE for item in items]
    for item in compress(items, here):
        item.add_marker(pytest.mark.xdist_group("spark"))
    items[:] = [*compress(items, here), *compress(items, map(not_, here))]


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which Spark's JVM and Python workers write what users see on standard error."""
    return tmp_path_factory.mktemp("spark") / "spark.log"


@pytest.fixture(scope="session")
def spark(spark_log: Path) -> Iterator[SparkSession]:
    # Joins of Spark's own stay with Spark but where a test says otherwise.
    extension = {"spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
                 "spark.splitjoin.sql.enabled": "false", "spark.splitjoin.sql.minComparisons": "0",
                 "spark.splitjoin.sql.rowsPerTask": "1",
                 # Some tests have workers that lack splitjoin.
                 "spark.python.daemon.module": "pyspark.daemon",
                 # Of the Connect server that test_connect.py starts: any free port.
                 "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0"}
    session = local_session("splitjoin tests", cores=2, log=spark_log, config={**SETTINGS, **extension})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def tables() -> tuple[pa.Table, pa.Table]:
    """Two streams with many equal times, NULLs in the columns of conditions, and columns that only travel."""
    made = stream(1, 240), stream(2, 190)
    # Compile kernels for the condition of most tests here, which both of Spark's workers would do at the same time.
    splitjoin.join(*made, on=ON, window="ROWS 9", time="ts", device="cpu")
    return made


@pytest.fixture(scope="session")
def frames(spark: SparkSession, tables: tuple[pa.Table, pa.Table]) -> tuple[DataFrame, DataFrame]:
    """The streams of `tables` as DataFrames, their rows dealt to several Spark partitions out of order."""
    left, right = (spark.createDataFrame(table) for table in tables)
    return left.repartition(5, "x").cache(), right.repartition(3, "name").cache()
