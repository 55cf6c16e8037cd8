"""Conditions of Spark Connect's Columns: the same as those of a classic session. They need no server."""

from __future__ import annotations

import datetime as dt
import sys
from functools import reduce
from operator import and_, or_
from typing import Any

import pytest
from pyspark.sql import SparkSession

from splitjoin import PredicateError
from splitjoin.lang.query import predicate

from .test_columns import CONDITIONS, REFUSED, R, S

pytest.importorskip("grpc")
connect: Any = pytest.importorskip("pyspark.sql.connect.functions")
Window: Any = pytest.importorskip("pyspark.sql.connect.window").Window

#: Made or named another way here.
_OTHER = ("PythonUDF", "a window function")


@pytest.mark.parametrize(("make", "sql"), CONDITIONS)
def test_columns_are_conditions(spark: SparkSession, make: Any, sql: str) -> None:
    assert predicate(make(connect, connect.col), R, S) == predicate(sql, R, S)


@pytest.mark.parametrize(("make", "error", "said"), [
    *(case for case in REFUSED if not any(word in case[2] for word in _OTHER)),
    (lambda f, c: f.rank().over(Window.orderBy("r.x")) == 1, PredicateError, "a window function is not supported"),
    (lambda f, c: f.udf(lambda v: v, "int")(c("r.x")) == 1, PredicateError, "a user-defined function is not supported"),
    (lambda f, c: f.call_function("abs", c("r.x")) == 1, PredicateError, "CallFunction is not supported"),
    (lambda f, c: c("r.x") == f.lit(dt.time(1)), PredicateError, "a literal of Spark's type time(6) is not supported"),
])
def test_columns_that_are_refused(spark: SparkSession, make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        predicate(make(connect, connect.col), R, S)
    assert said in str(caught.value)


def test_depth_and_chains() -> None:
    deep: Any = connect.col("r.x")
    for _ in range(150):
        deep = deep + 1
    with pytest.raises(PredicateError, match="must not be nested more than 100 levels deep"):
        predicate(deep > connect.col("s.a"), R, S)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(450)  # which the longer chain is beyond
    try:
        for combine, word, n in ((and_, " AND ", 500), (or_, " OR ", 105)):
            chain: Any = reduce(combine, [connect.col("r.x") < i for i in range(n)])
            assert predicate(chain, R, S) == predicate(word.join(f"r.x < {i}" for i in range(n)), R, S)
    finally:
        sys.setrecursionlimit(limit)
