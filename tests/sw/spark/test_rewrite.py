"""``engine="rewrite"``: SQL of Spark's own that gives the rows of the Python operator, or is refused."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin.base.errors import InputError, SplitJoinError, UnsupportedError
from splitjoin.rows.output import ResultNames
from splitjoin.spark import explain, joined_with, stream_join
from splitjoin.spark.inputs import Inputs
from splitjoin.spark.join import made_query
from splitjoin.spark.rewrite import RewrittenJoin

from ...support.sampling import at_length, examples
from ...support.spark_streams import rows

_EDGE = 2**63 - 1


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Rows with NULL, NaN, −0.0, negative numbers, ends of types, and names that need quotes."""
    made = []
    for side in range(2):
        texts = ["'it''s'", "'{a}'", "'é'", "NULL"]
        values = ", ".join(
            f"({n % 9 - 4}, {'NULL' if n % 11 == 5 else (n * 7 + side) % 23 - 11}, "
            f"{[_EDGE, -_EDGE - 1, 5 * n, None][n % 4] if n % 4 < 3 else 'NULL'}, "
            f"CAST('{['NaN', '-0.0', '0.0', '1.5', '-Infinity'][(n + side) % 5]}' AS DOUBLE), {texts[(n + side) % 4]}, "
            f"timestamp'2024-03-31 00:59:50Z' + make_dt_interval(0, 0, 0, {(n * 5 + side) % 31}.{n % 7}), "
            f"date'1969-12-30' + {n % 5}, {n % 3 == 0})" for n in range(26 + 5 * side))
        made.append(spark.sql(f"SELECT * FROM VALUES {values} AS t(t, x, big, f, `na``me`, at, day, ok)").cache())
    return made[0], made[1]


def _same(frames: tuple[DataFrame, DataFrame], **query: Any) -> int:
    """The number of rows, which are those of the golden model."""
    found = stream_join(*frames, engine="rewrite", **query).toArrow()
    tables = [frame.toArrow() for frame in frames]
    if "time" not in query:
        query |= {"window": "ROWS 1000"}
    else:
        tables = [table.sort_by(query["time"]) for table in tables]
    want = splitjoin.join(*tables, device="golden", **query).to_arrow()
    assert rows(found.cast(want.schema)) == rows(want)
    assert found.schema.names == want.schema.names
    return len(want)


#: Conditions, and the windows and times with which they run.
_CASES = [
    ("abs(r.x - s.x) <= 2", "RANGE 3", "t"), ("r.x = s.x AND r.ok", ("RANGE 0", "RANGE 5"), "t"),
    ("r.`na``me` < s.`na``me` OR r.f >= s.f", "RANGE 2 SECONDS", "at"),
    ("r.at BETWEEN s.at - INTERVAL '3 SECONDS' AND s.at + INTERVAL '1 SECOND' AND NOT (r.x > s.x)", None, "at"),
    ("r.day BETWEEN s.day - 1 AND s.day + 1 AND r.f = s.f", None, None),
    ("r.big - s.big BETWEEN -9 AND 9", None, None), ("abs(r.big - s.x) <= 20 AND 2 * r.x < s.x + 7", None, None),
    ("r.x BETWEEN s.x - 3 AND s.x AND r.`na``me` = 'it''s' AND r.x < 2.5", None, None),
    ("r.x < s.x", "RANGE 9223372036854775807", "t"), ("abs(r.x - s.x) <= 4 AND r.x > s.f", "RANGE 3", "t"),
    ("r.x * s.x * r.big > 7 AND r.x = s.x", None, None),
]


@pytest.mark.parametrize(("on", "window", "time"), [
    at_length(*case) if n % 3 == 2 else case for n, case in enumerate(_CASES)])
def test_rows_are_those_of_the_golden_model(edges: tuple[DataFrame, DataFrame], on: str, window: Any,
                                            time: str | None) -> None:
    query = {name: value for name, value in (("window", window), ("time", time)) if value is not None}
    assert _same(edges, on=on, **query) > 0


@pytest.mark.parametrize("how", ["left", "right", "semi", "anti"])
def test_kinds_keep_rows_without_a_partner(edges: tuple[DataFrame, DataFrame], how: str) -> None:
    """NULL keys meet nothing; the larger side is copied where the other one's rows are kept."""
    assert _same(edges, on="r.x - s.x BETWEEN 1 AND 2 AND r.f < s.f", window="RANGE 3", time="t", how=how) > 0


@given(st.data())
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
def test_random_bands(spark: SparkSession, data: st.DataObject) -> None:
    """Random rows, kinds, bands of both signs, equalities, and windows. Right is smaller; above, left is."""
    ints = st.integers(-40, 40)
    times = [sorted(data.draw(st.lists(ints, min_size=size, max_size=size + 9))) for size in (11, 1)]
    tables = [pa.table({"ts": pa.array(ts, pa.int64())}) for ts in times]
    tables = [t.append_column("x", pa.array([data.draw(st.none() | ints) for _ in range(len(t))], pa.int32()))
              for t in tables]
    low, high, more = data.draw(ints), data.draw(ints), data.draw(st.integers(0, 9))
    on = data.draw(st.sampled_from(["r.x = s.x AND r.ts <> s.ts", f"r.x - s.x BETWEEN {min(low, high)} AND "
                                    f"{max(low, high)} AND r.x <> s.x - {more}"]))
    how = data.draw(st.sampled_from(["inner", "left", "right", "semi", "anti"]))
    frames = spark.createDataFrame(tables[0]), spark.createDataFrame(tables[1])
    _same(frames, on=on, window=(f"RANGE {data.draw(st.integers(0, 60))}", f"RANGE {more}"), time="ts",
          how=how)


@pytest.mark.parametrize(("on", "more", "reason"), [
    ("abs(r.x - s.x) <= 1", "", r"in Spark: about 0.\d+ CPU s .* \([\d,]+ pairs share one, [\d,]+ are results\), 0."),
    at_length("abs(r.x - s.x) <= 20000 AND r.x + s.x < 20", "",
              "in Python workers: about [^ ]+ CPU s by Spark's own join in b"),
    ("r.x < s.x", "", "in Python workers, as .* has none that all pairs are in"),
    at_length("abs(r.x - s.x) <= 1", "threads", ""),
])
def test_auto_counts_the_pairs_in_bins(spark: SparkSession, on: str, more: str, reason: str) -> None:
    """Narrow bands are joined by Spark, wide ones in Python workers; both give the same rows."""
    frames = tuple(spark.range(6000).selectExpr(f"cast(pmod(hash(id, {n}), 9000) AS int) x") for n in range(2))
    options = {"engine": "auto", **({more: 1} if more else {})}
    said = explain(*frames, on=on, **options)
    assert re.search(f"chosen +{reason}" if reason else "^device +cpu", said), said
    assert ("chosen" in said) == bool(reason)
    joined = stream_join(*frames, on=on, **options)
    plan = str(joined._jdf.queryExecution().executedPlan().toString())
    assert ("Python" in plan or "InArrow" in plan) == ("engine     rewrite" not in said)
    if on == "abs(r.x - s.x) <= 1" and not more:
        assert rows(joined.toArrow()) == rows(stream_join(*frames, on=on).toArrow())


def test_pairs_in_bins_are_estimated_from_a_sample(spark: SparkSession) -> None:
    """Of 4,000 rows a side, 2,000 are sampled; also where both sides are the same rows."""
    frame = spark.range(4000).selectExpr("cast(id % 20 AS int) x").cache()
    query, *rows_of = made_query(Inputs.of(frame, frame, "r.x = s.x", None, None), order="none", names=ResultNames())
    join = RewrittenJoin.of(query, {"r": frame, "s": frame}, *rows_of)
    assert join.candidates() == join.pairs(1) == 20 * 200**2
    assert 0.8 < join.candidates(2000) / (20 * 200**2) < 1.2
    assert 0.5 < join.pairs(20 * 200**2, 2000) / (20 * 200**2) < 2


@pytest.mark.parametrize(("query", "error", "reason"), [
    ({"on": "r.x < s.x"}, UnsupportedError, "none that all pairs are in, and there is no window; leave engine out"),
    ({"on": "r.x = s.x", "how": "full"}, UnsupportedError, "writes inner, left, right, semi, anti joins with RANGE"),
    ({"on": "r.x = s.x", "window": "ROWS 4", "time": "t"}, UnsupportedError, "semi, anti joins with RANGE windows"),
    ({"on": "r.x = s.x", "order": "total", "window": "RANGE 4", "time": "t"}, UnsupportedError, "in order 'none'"),
    ({"on": "r.x = s.x AND greatest(r.x, s.x) > 4"}, UnsupportedError, "is not among them"),
    ({"on": "r.x = s.x AND r.x > s.x - 2.5"}, UnsupportedError, "is not among them"),
    ({"on": "r.x = s.x", "partitions": 4, "cores": 3}, SplitJoinError, "cores"),
    ({"on": "r.x = s.x", "partitions": 4}, InputError, "so it has no partitions; leave it out, or leave engine out"),
])
def test_what_is_refused(edges: tuple[DataFrame, DataFrame], query: dict[str, Any], error: type[Exception],
                         reason: str) -> None:
    with pytest.raises(error, match=reason):
        stream_join(*edges, engine="rewrite", **query)


def test_explain_prints_the_statement(spark: SparkSession, edges: tuple[DataFrame, DataFrame]) -> None:
    query = {"on": "abs(r.x - s.x) <= 2", "window": "RANGE 3", "time": "t", "engine": "rewrite"}
    text = explain(edges[0], edges[1].limit(9), **query)
    assert "copies     each of the 9 rows of right is in up to 4 bins; each of the 26 of left in one" in text
    statement = text[text.index("SELECT"):]
    taken = spark.sql(statement, left=edges[0], right=edges[1])
    assert sorted(map(repr, taken.collect())) == sorted(map(repr, stream_join(*edges, **query).collect()))
    assert sorted(map(repr, edges[0].transform(joined_with(edges[1], **query)).collect())) == sorted(
        map(repr, taken.collect()))
    assert "Python" not in str(taken._jdf.queryExecution().executedPlan().toString())
    with pytest.raises(PySparkException, match="splitjoin: an event time of left is NULL"):
        stream_join(edges[0].withColumnRenamed("t", "was").withColumnRenamed("x", "t"), edges[1], on="r.day = s.day",
                    window="RANGE 3", time="t", engine="rewrite").collect()
