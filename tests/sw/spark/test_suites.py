"""Cases of Spark's own suites of joins: the same rows with the extension; `make spark-suites` runs all of them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ...spark_suites import batch, streams
from ...support.sampling import at_length

_ALL: list[batch.Case | streams.Case] = [*batch.CASES, *streams.CASES]
CASES = {case.name: case for case in _ALL}


@pytest.mark.parametrize("name", [
    "full join by a band", "left anti join of PostgreSQL's tables by an order", "groups of a left outer join, by o",
    at_length("full outer join with a watermark and a time range")])
def test_rows_are_spark_s_and_splitjoin_runs_the_join(spark: SparkSession, tmp_path: Path, name: str) -> None:
    assert CASES[name].check(spark, tmp_path)


@pytest.mark.parametrize("name", [
    "NOT IN with NULL, TRUE", "as-of join, nearest", at_length("windowed full outer join")])
def test_what_is_left_to_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    assert not CASES[name].check(spark, tmp_path)


def test_names_are_distinct() -> None:
    assert len(CASES) == len(_ALL)
