"""Python workers that have no splitjoin, or another one, are refused by name."""

import gc
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from splitjoin import ToolError, __version__
from splitjoin.base.errors import DeviceError, InputError, PredicateError
from splitjoin.spark import joined_with, stream_join, task_error, workers
from splitjoin.spark.workers import check_workers, in_a_task

from ...support.spark_workers import python_without_splitjoin

QUERY: dict[str, Any] = {"on": "r.x = s.x", "window": "RANGE 9", "time": "ts", "partitions": 1}
PYTHON = "spark.sql.execution.pyspark.python"


@pytest.fixture
def use(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[str | None], None]]:
    """A function that gives Spark a Python: one without splitjoin (None), or with a module of the given text."""
    def given(text: str | None) -> None:
        other = None
        if text is not None:
            other = tmp_path / "other"
            (other / "splitjoin").mkdir(parents=True)
            (other / "splitjoin" / "__init__.py").write_text(text)
        spark.conf.set(PYTHON, str(python_without_splitjoin(tmp_path, other)))

    yield given
    spark.conf.unset(PYTHON)


def _must_be_safe() -> None:
    if not sys.flags.safe_path:
        raise ToolError("this Python looks for modules in the current folder first")


def test_workers_import_nothing_from_the_current_folder(spark: SparkSession) -> None:
    """Spark starts them by -m, which puts that folder first."""
    in_a_task(spark, _must_be_safe)


def test_the_extension_asks_a_python_of_any_version_without_the_current_folder(spark: SparkSession,
                                                                               tmp_path: Path) -> None:
    """Python before 3.11 knows neither ``-P`` nor the variable for it. The workers' splitjoin may be in that folder."""
    for name in ("importlib", "contextlib", "warnings"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")
    (tmp_path / "splitjoin.py").touch()
    program = tmp_path / "older-python"
    program.write_text(f'#!/bin/sh\ncd "{tmp_path}"\nunset PYTHONSAFEPATH PYTHONPATH\n'
                       f'exec {shlex.quote(sys.executable)} -S "$@"\n')
    program.chmod(0o755)
    spark.conf.set(PYTHON, str(program))
    spark.conf.set("spark.splitjoin.sql.enabled", "true")
    try:
        joined = spark.sql("SELECT a.id FROM range(9) a JOIN range(9) b ON a.id < b.id - 5")
        assert "MapInArrow splitjoin[" in joined._jdf.queryExecution().optimizedPlan().toString()
    finally:
        spark.conf.set("spark.splitjoin.sql.enabled", "false")
        spark.conf.unset(PYTHON)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("text", "said"), [
    (None, "but this one has none \\(Python "),
    ("__version__ = '9.9'", r"but this one has 9\.9 at .*other/splitjoin/__init__\.py"),
    ("", "but this one has another version at "),
    ("import surely_missing", "but this one cannot import it: No module named 'surely_missing'"),
    (f"__version__ = {__version__!r}", "but this one cannot import all of it: No module named 'splitjoin.catalyst'"),
])
def test_the_first_join_is_refused(frames: tuple[DataFrame, DataFrame], use: Callable[[str | None], None],
                                   spark_log: Path, text: str | None, said: str) -> None:
    """Spark prints no trace before the error, which is the first thing that the user sees."""
    use(text)
    before = spark_log.stat().st_size
    with pytest.raises(ToolError, match=said) as refused:
        stream_join(*frames, **QUERY)
    assert b"Exception" not in spark_log.read_bytes()[before:]
    assert refused.value.__context__ is None
    assert f"must have splitjoin {__version__}, as the driver has" in str(refused.value)
    for cure in ("PYSPARK_PYTHON", "venv-pack", "--archives", "spark.submit.pyFiles"):
        assert cure in str(refused.value)


def test_a_task_is_refused_too(frames: tuple[DataFrame, DataFrame], use: Callable[[str | None], None]) -> None:
    """An executor may come later than the check."""
    joined = frames[0].transform(joined_with(frames[1], **QUERY))
    use(None)
    with pytest.raises(PySparkException) as failure:
        joined.collect()
    assert isinstance(task_error(failure.value), ToolError)


def test_a_session_is_checked_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    monkeypatch.setattr(workers, "in_a_task", lambda session, work: runs.append(work))
    check_workers(spark)
    assert not runs  # the workers' Python is this one
    try:
        for python in ("python-a", "python-a", "python-b"):
            spark.conf.set(PYTHON, python)
            check_workers(spark)
    finally:
        spark.conf.unset(PYTHON)
    assert len(runs) == 2


def test_errors_of_a_task(spark: SparkSession, spark_log: Path) -> None:
    def fails() -> None:
        raise InputError("no good\n  at all")

    before = spark_log.stat().st_size
    with pytest.raises(InputError, match=r"^no good\n  at all$"):
        in_a_task(spark, fails)
    assert b"Exception" not in spark_log.read_bytes()[before:]
    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        in_a_task(spark, lambda: 1 // 0)


def test_a_join_as_a_step_knows_its_arguments(frames: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(DeviceError, match="the device 'cpu' has no option 'windows'"):
        joined_with(frames[1], on="r.x = s.x", window="RANGE 9", windows="RANGE 9")
    with pytest.raises(PredicateError, match=r"a join needs a condition, such as on='r\.k = s\.k'"):
        frames[0].transform(joined_with(frames[1], window="ROWS 9", time="ts"))


def test_a_worker_that_has_joined_collects_little(spark: SparkSession, frames: tuple[DataFrame, DataFrame]) -> None:
    def exempted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"n": [gc.get_freeze_count()] * len(batch)})

    stream_join(*frames, on="r.x = s.x", window="ROWS 3", time="ts", device="golden").collect()
    found = [row.n for row in spark.range(0, 8, 1, 8).mapInArrow(exempted, "n bigint").collect()]
    assert max(found) > 50_000
