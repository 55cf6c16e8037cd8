"""Errors are reported in one paragraph, and before any Spark job runs where that is possible."""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from splitjoin.base.errors import (
    DeviceError,
    InputError,
    OrderError,
    PredicateError,
    SchemaError,
    SplitJoinError,
    WindowError,
    WindowOverflow,
)
from splitjoin.lang.schema import Side
from splitjoin.spark import stream_join, task_error
from splitjoin.spark.views import has_few_rows

QUERY: dict[str, Any] = {"on": "r.x = s.x", "window": "RANGE 3", "time": "ts"}


@pytest.fixture(scope="module")
def left(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 2), (5, 6)], "ts int, x int")


@pytest.fixture
def no_jobs(spark: SparkSession) -> Iterator[None]:
    """Fails when a Spark job runs."""
    tracker, context = spark.sparkContext.statusTracker(), spark.sparkContext
    context.setJobGroup("no jobs", "none may run")
    before = tracker.getJobIdsForGroup("no jobs")
    yield
    assert tracker.getJobIdsForGroup("no jobs") == before


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize(("change", "error", "text"), [
    ({"on": "r.z = s.x"}, SchemaError, r"stream r has no column 'z'"),
    ({"on": "r.x + s.x"}, PredicateError, r"condition"),
    ({"on": "hash(r.x) = s.x"}, PredicateError, r"HASH is not .*; where it reads one DataFrame, make a column of it"),
    ({"window": "RANGE"}, WindowError, r"window 'RANGE'"),
    ({"window": "RANGE 3 MINUTES"}, WindowError, r"time column is an integer"),
    ({"time": None}, SchemaError, r"a window needs time=….*no order of their own.*row numbers will do"),
    ({"time": "when"}, SchemaError, r"stream r has no column 'when'"),
    ({"order": "sorted"}, OrderError, r"must be 'none'"),
    ({"order": "outer(3)"}, OrderError, r"order 'outer\(3\)' marks .* stars.*use 'none' or 'total'"),
    ({"order": "inner(1)"}, OrderError, r"order 'inner\(1\)' marks"),
    ({"select": ["y"]}, SchemaError, r"the result has no column 'y'"),
    ({"select": 5}, SchemaError, r"select must be a list of column names, or a mapping of them to new ones, not 5"),
    ({"select": []}, SchemaError, r"select must name at least one column"),
    ({"metrics": 3}, InputError, r"metrics must be a JoinMetrics\(spark\), which is read after an action, not 3"),
    ({"device": "fpga"}, DeviceError, r"there is no device 'fpga'"),
    ({"device_options": {"lanes": 3}}, DeviceError, r"device 'cpu' has no option 'lanes'.*; its options are engine"),
    ({"lanes": 3}, DeviceError, r"device 'cpu' has no option 'lanes'.*; its options are engine"),
    ({"device_options": {"threads": 1}, "threads": 1}, DeviceError, r"option 'threads' of the device is given twice"),
    ({"device_options": {"threads": 0}}, DeviceError, r"threads must be a number from 1 to 256"),
    ({"ties": "y"}, SchemaError, r"stream r has no column 'y'"),
    ({"ties": {"left": "x"}}, SchemaError, r"keys 'r' and 's', not \['left'\]"),
    ({"ties": 3}, SchemaError, r"ties must be column names.*not 3"),
    ({"partitions": 0}, InputError, r"partitions must be 1 to 100000, or a list of times, not 0"),
    ({"partitions": "day"}, InputError, r"a number or a list of times, not 'day'"),
    ({"partitions": [4, 4]}, InputError, r"must ascend, but 4 follows 4"),
    ({"partitions": [2**63]}, InputError, r"must fit 64 bits"),
    ({"partitions": [dt.date(2013, 1, 1)]}, InputError, r"must be a value of the time columns' type, int32, not "),
], ids=str)
def test_refused_before_any_job(left: DataFrame, change: dict[str, Any], error: type[SplitJoinError],
                                text: str) -> None:
    with pytest.raises(error, match=text):
        stream_join(left, left, **{**QUERY, **change})


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize(("rows", "change"), [
    ("SELECT id ts, id x FROM range(20000)", {"window": "ROWS 9"}), ("VALUES (1, 2), (3, 4) AS t(ts, x)", {}),
    ("SELECT id ts, id x FROM range(9) WHERE id > 3", {"window": None, "time": None})])
def test_few_rows_are_one_task_without_a_job(spark: SparkSession, rows: str, change: dict[str, Any]) -> None:
    frame = spark.sql(rows)
    plan = stream_join(frame, frame, **{**QUERY, **change})._jdf.queryExecution().optimizedPlan().toString()
    assert "RepartitionByExpression" in plan
    assert ", 1" in plan.split("RepartitionByExpression")[1].splitlines()[0]


def test_rows_that_spark_does_not_estimate_well_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    few: dict[Side, DataFrame] = {"r": spark.range(9), "s": spark.range(9)}
    assert has_few_rows(few)
    for rows in ("SELECT id FROM range(10000000)", "SELECT explode(sequence(1, 9)) FROM range(9)",
                 "SELECT a.id FROM range(9) a CROSS JOIN range(9) b"):
        assert not has_few_rows({**few, "s": spark.sql(rows)})
    file = tmp_path / "ones.parquet"
    pq.write_table(pa.table({"id": np.ones(10**6, np.int64)}), file)
    assert file.stat().st_size < 10**5
    assert not has_few_rows({**few, "s": spark.read.parquet(str(file))})


@pytest.mark.usefixtures("no_jobs")
def test_options_beside_a_device_object(left: DataFrame) -> None:
    from splitjoin.engines.golden import GoldenDevice

    with pytest.raises(DeviceError, match="options are for a device given by name, but came with a GoldenDevice"):
        stream_join(left, left, **QUERY, device=GoldenDevice(), device_options={"cores": 2})


@pytest.mark.usefixtures("no_jobs")
def test_what_is_not_a_dataframe(left: DataFrame) -> None:
    with pytest.raises(PySparkException, match=r"TABLE_OR_VIEW_NOT_FOUND.*no_such_view"):
        stream_join("no_such_view", left, **QUERY)
    with pytest.raises(InputError, match="left must be a Spark DataFrame, not list; splitjoin"):
        stream_join([(1, 2)], left, **QUERY)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.usefixtures("no_jobs")
def test_types_that_cannot_take_part(spark: SparkSession) -> None:
    frame = spark.sql("select 1 ts, 2 x, interval '3' year span")
    with pytest.raises(SchemaError, match="column 'span' of the left DataFrame has type interval year, which Spark"):
        stream_join(frame, frame, **QUERY)
    frame = spark.sql("select 1 ts, 2 x, map('a', 1) tags")
    with pytest.raises(SchemaError, match=r"column 'tags' has a type without one \(map<string,int>\).*ties=…"):
        stream_join(frame, frame, on="r.x = s.x", window="ROWS 3", time="ts")
    with pytest.raises(SchemaError, match=r"column r.tags cannot break ties"):
        stream_join(frame, frame, **QUERY, ties=["x", "tags"])
    with pytest.raises(SchemaError, match=r"^ties must be column .* \(\['x'\], \['x'\]\); .* ties={'r': …, 's': …}"):
        stream_join(frame, frame, **QUERY, ties=(["x"], ["x"]))  # type: ignore[arg-type]  # which it is
    frame = spark.sql("select timestamp_ntz'2013-01-01' ts, 2 x")
    with pytest.raises(InputError, match="the time columns have no time zone"):
        stream_join(frame, frame, on="r.x = s.x", window="RANGE 1 DAY", time="ts",
                    partitions=[dt.datetime(2013, 1, 1, tzinfo=dt.UTC)])


@pytest.mark.parametrize(("change", "eager"), [
    ({}, True), ({"window": "ROWS 2", "partitions": [3]}, True), ({"partitions": 1}, False),
    ({"partitions": [3]}, False),
], ids=str)
def test_null_time(spark: SparkSession, left: DataFrame, change: dict[str, Any], eager: bool) -> None:
    right = spark.createDataFrame([(1, 2), (None, 6)], "at int, x int")
    text = (r"the time column s\.at \(of the right DataFrame\) must not hold NULL, but it does; filter such rows out "
            r'with right\.where\("at IS NOT NULL"\)')
    query = {**QUERY, "time": ("ts", "at"), **change}
    if eager:
        with pytest.raises(InputError, match=text):
            stream_join(left, right, **query)
        return
    with pytest.raises(PySparkException, match=text) as failure:
        stream_join(left, right, **query).collect()
    assert re.match(r"[^\n]* from the Python worker:\s+splitjoin\.base\.errors\.InputError: ", str(failure.value))
    reason = task_error(failure.value)
    assert isinstance(reason, InputError)
    assert str(reason).endswith('IS NOT NULL")')


def test_input_that_changes_between_counting_and_running(spark: SparkSession, tmp_path: Any) -> None:
    path = str(tmp_path / "changing")
    spark.range(6).selectExpr("id ts", "id x").write.parquet(path)
    frame = spark.read.parquet(path)
    joined = stream_join(frame, frame, on="r.x = s.x", window="ROWS 3", time="ts", partitions=[3])
    for file in (tmp_path / "changing").iterdir():
        if "part-00000" in file.name:
            file.unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(PySparkException) as failure:
            joined.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    reason = task_error(failure.value)
    assert isinstance(reason, InputError)
    # Partition 0 has no rows at all any more; it shows in the three warm rows that partition 1 misses.
    assert "time partition 1 needs 3 rows of the left DataFrame before it" in str(reason)
    assert "but reads 0; a ROWS window needs unchanged inputs" in str(reason)


def test_task_error_finds_only_our_own_errors() -> None:
    overflow = WindowOverflow("r", 7, 64)
    note = "This was in time partition 3; rows count from its first warm one."
    said = f"An exception was thrown\nTraceback\nsplitjoin.base.errors.WindowOverflow: {overflow}\n{note}\n"
    found = task_error(RuntimeError(f"{said}\n\tat org.apache.spark\nDriver stacktrace:\n\tat x"))
    assert type(found) is SplitJoinError
    assert str(found) == f"{overflow}\n{note}"
    assert task_error(overflow) is overflow
    streamed = task_error(RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: Task 0 failed: org."
                                       "PythonException: splitjoin.base.errors.InputError: do this\n\tat org.apache"))
    assert isinstance(streamed, InputError) and str(streamed) == "do this"
    assert task_error(ValueError("something else, such as splitjoin.base.errors.InputError: quoted")) is None
