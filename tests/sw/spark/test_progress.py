"""The progress bar: seen on a terminal, silent elsewhere."""

import io
import sys

import pytest
from examples.flights.progress import progress
from pyspark.sql import SparkSession


class Terminal(io.StringIO):
    """Takes text, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_counts_tasks_on_a_terminal(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with progress(spark, "count"):
        assert spark.range(100, numPartitions=7).count() == 100
    last = terminal.getvalue().rstrip("\n").split("\r")[-1]
    assert last.startswith("count: 100%|")
    assert "/8 " in last  # seven tasks that count, and one that adds up


def test_silent_elsewhere(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(spark, "silent"):
        assert spark.range(100).count() == 100
    assert capsys.readouterr() == ("", "")


def test_ends_with_the_body_failing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError), progress(spark, "failing"):
        raise ZeroDivisionError
