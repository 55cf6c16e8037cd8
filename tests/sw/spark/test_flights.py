"""The main job, on the golden model."""

import argparse
import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from examples.flights import batch
from examples.flights.data import departures
from examples.flights.report import counter_lines, draw_latencies, table_lines
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812

from splitjoin.base.errors import InputError, ToolError
from splitjoin.spark import Latencies

from ...support.sampling import at_length
from ...support.spark_settings import JAVA

ROOT = Path(__file__).parents[3]
QUICK = ["--device", "golden", "--quick"]


@pytest.mark.long  # starts a JVM; the test below has the job itself
def test_the_job_in_its_own_process(tmp_path: Path) -> None:
    job = subprocess.run([sys.executable, "-m", "examples.flights.batch", *QUICK, "--output", str(tmp_path / "out")],
                         cwd=ROOT, env=os.environ | {"JAVA_TOOL_OPTIONS": JAVA}, capture_output=True, text=True,
                         check=False)
    assert (job.returncode, job.stderr) == (0, "")
    assert job.stdout.splitlines()[-1] == "equal: 165 pairs, the same as Spark's nested-loop join"


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (["--device", "tpu"], 2, "invalid choice: 'tpu'"), (["--days", "0"], 2, "a whole number from 1 is needed, not '0'"),
    (["--start", "1 May"], 2, "a date must be written like 2013-01-31, not '1 May'"),
    (["--carrier", "ZZ"], 1, "error: no flight in the data is of carrier 'ZZ'"),
    (["--start", "2014-01-01"], 1, "error: the days must be 1 or more and lie from 2013-01-01 to 2013-12-31"),
])
def test_wrong_usage(arguments: list[str], code: int, text: str, tmp_path: Path,
                     capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = batch.main(["--output", str(tmp_path), *arguments])
    except SystemExit as usage:  # argparse ends the program by itself
        ended = int(str(usage.code))
    out, err = capsys.readouterr()
    assert (ended, out) == (code, "")
    assert text in err


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("splitjoin.spark.session._java_homes", list)
    assert batch.main([*QUICK, "--output", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: Spark needs Java 17 or later, and none was found. ")
    assert err.count("\n") == 1


@pytest.fixture
def options(tmp_path: Path) -> argparse.Namespace:
    return argparse.Namespace(carrier="UA", start=dt.date(2013, 1, 1), days=2, device="golden", cores=8, quick=True,
                              output=tmp_path)


@pytest.mark.parametrize("device", ["golden", at_length("cpu")])
def test_the_job(spark: SparkSession, options: argparse.Namespace, device: str,
                 capsys: pytest.CaptureFixture[str]) -> None:
    options.device = device
    data = departures("UA", options.start, options.days)
    batch._introduce(data, options, options.days)
    assert batch.work(spark, data, options, options.days) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ("flights from New York, 2013-01-01 to 2013-01-02: 334 departures of UA, 1,439 of 13 other "
                        "carriers; 12 cancelled flights left out")
    assert lines[-1] == "equal: 165 pairs, the same as Spark's nested-loop join"
    assert "the first 10 of 165 results:" in lines
    assert "2013-01-01 06:07  UA 1077  EWR   MIA  06:00  B6 371   LGA   FLL  7 min" in lines
    assert "picture: none, since this device does not measure latencies" in lines
    assert not (options.output / "latency.png").exists()
    results = parquet.read_table(options.output / "pairs.parquet")
    assert results.column_names[:3] == ["departed_r", "carrier_r", "flight_r"]
    assert len(results) == 165
    apart = abs(results["departed_r"].cast("int64").to_numpy() - results["departed_s"].cast("int64").to_numpy())
    assert apart.max() == 15 * 60 * 1_000_000
    assert not (results["origin_r"].to_pandas() == results["origin_s"].to_pandas()).any()


def test_a_wrong_result_is_found(spark: SparkSession, options: argparse.Namespace, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    honest = batch.nested_loop

    def tampered(left: DataFrame, right: DataFrame) -> DataFrame:
        # One row less, another one twice: the number of rows stays the same.
        rows = honest(left, right).orderBy("departed_r", "flight_r", "departed_s", "flight_s")
        return rows.offset(1).union(rows.offset(1).limit(1))

    monkeypatch.setattr(batch, "nested_loop", tampered)
    data = departures("UA", options.start, options.days)
    assert batch.work(spark, data, options, options.days) == 1
    text = capsys.readouterr().err
    assert text.startswith("NOT equal: 165 pairs, but Spark's nested-loop join has 165; 2 rows are in one of them")


def test_spark_plans_a_nested_loop(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    data = departures("UA", dt.date(2013, 1, 1), 1)
    batch.nested_loop(spark.createDataFrame(data.r), spark.createDataFrame(data.s)).explain()
    assert "BroadcastNestedLoopJoin" in capsys.readouterr().out


def test_compare_counts_repeated_rows(spark: SparkSession) -> None:
    a = spark.createDataFrame([(1, "x"), (1, "x"), (2, "y")], "k int, v string")
    b = spark.createDataFrame([(1, "x"), (2, "y"), (2, "y"), (3, None)], "k int, v string")
    assert batch.compare(a, a.orderBy(F.desc("k"))) == (3, 3, 0)
    assert batch.compare(a, b) == (3, 4, 3)
    assert batch.compare(b, b) == (4, 4, 0)
    assert batch.compare(a.where("false"), a.where("false")) == (0, 0, 0)


def test_errors_of_the_job_become_one_paragraph(monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise InputError("the text")

    monkeypatch.setattr(batch, "run", fail)
    assert batch.main([]) == 1
    assert capsys.readouterr() == ("", "error: the text\n")


def test_counter_lines() -> None:
    assert counter_lines(1000, 20, {"cycles": 4000, "comparisons": 10_000}) == [
        "departures              1,000", "of them read twice         20", "cycles                  4,000",
        "comparisons            10,000", "comparisons per cycle   2.500",
    ]
    assert counter_lines(1, 0, {}) == ["departures          1", "of them read twice  0"]


def test_table_of_no_results() -> None:
    assert len(table_lines(pa.table({"departed_r": pa.array([], pa.timestamp("us", "UTC"))}))) == 2


@pytest.mark.parametrize("counts", [{17: 5}, {14: 900, 15: 40, 80: 3, 5000: 1}], ids=["one bar", "long tail"])
def test_picture(counts: dict[int, int], tmp_path: Path) -> None:
    path = tmp_path / "latency.png"
    draw_latencies(Latencies(counts), "a title", path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(path.read_bytes()[at:at + 4], "big") for at in (16, 20))
    assert (width, height) == (1200, 720)


def test_picture_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ToolError, match=r"which is not installed; pip install 'splitjoin\[flights\]'"):
        draw_latencies(Latencies({1: 1}), "a title", tmp_path / "latency.png")
