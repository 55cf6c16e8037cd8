"""`stream_sql` gives exactly the answer of `splitjoin.sql`, wherever the partitions are cut."""

import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import splitjoin
from splitjoin import InputError, SchemaError, StatementError, WindowError
from splitjoin.spark import explain, stream_join, stream_sql, task_error

from ...support.spark_streams import rows

Frames = tuple[DataFrame, DataFrame]
Tables = tuple[pa.Table, pa.Table]

TEXT = """SELECT t.ts, t.x - q.x AS gap, q.*, CASE WHEN t.x > 0 THEN t.price ELSE q.price END AS p,
                 t.price * 2 AS twice, t.y + q.y, t.name = q.name AS same, q.day - t.day AS days
          FROM trades t JOIN quotes q ON abs(t.x - q.x) <= 6
          WHERE t.n > 20 AND q.name IS NOT NULL AND (t.x - q.x) * (t.x - q.x) * q.x < 90"""


@pytest.mark.parametrize(("window", "order"), [("RANGE 4", "none"), ("ROWS 13", "total")])
def test_equals_the_answer_of_whole_tables(frames: Frames, tables: Tables, window: str, order: str) -> None:
    got = stream_sql(TEXT, trades=frames[0], quotes=frames[1], window=window, time="ts", order=order,
                     partitions=[30, 31, 60]).toArrow()
    want = splitjoin.sql(TEXT, trades=tables[0], quotes=tables[1], window=window, time="ts", device="golden").table
    assert len(want) > 5
    assert got.column_names == want.column_names
    if order == "total":
        assert list(map(repr, got.to_pylist())) == list(map(repr, want.to_pylist()))
    assert rows(got) == rows(want)


def test_only_the_columns_needed_are_read(frames: Frames) -> None:
    how: dict[str, Any] = {"r": frames[0], "s": frames[1], "window": "RANGE 4", "time": "ts", "partitions": 1}
    made = stream_sql("SELECT r.x, s.y FROM r, s WHERE r.n = s.n", **how)
    plan = made.select("x")._jdf.queryExecution().analyzed().toString()
    read = [line for line in plan.splitlines() if "Project [" in line and " AS c0#" in line]
    assert sorted(re.findall(r"(\w+)#\w+ AS c\d", " ".join(read))) == ["n", "n", "ts", "ts", "x", "y"]


def test_a_value_that_does_not_fit_fails_the_action(spark: SparkSession) -> None:
    data = spark.createDataFrame([(1, 2**62)], "ts int, x bigint")
    made = stream_sql("SELECT 4 * a.x AS big FROM t a JOIN t b ON a.x = b.x", t=data, window="RANGE 4", time="ts")
    with pytest.raises(PySparkException) as caught:
        made.collect()
    found = task_error(caught.value)
    assert isinstance(found, InputError)
    assert "the values of '4 * a.x' in the result must fit int64, but one is 18446744073709551616" in str(found)


def test_refused(frames: Frames) -> None:
    how: dict[str, Any] = {"r": frames[0], "s": frames[1], "window": "RANGE 4", "time": "ts"}
    with pytest.raises(StatementError, match=r"LIMIT needs all rows of the result, .*; leave it out, and use"):
        stream_sql("SELECT r.x FROM r, s LIMIT 3", **how)
    with pytest.raises(SchemaError, match=r"a window needs time=…"):
        stream_sql("SELECT r.x FROM r, s", **how | {"time": None})
    with pytest.raises(InputError, match="left must be a Spark DataFrame, not int"):
        stream_sql("SELECT r.x FROM r, s", **how | {"r": 3})
    with pytest.raises(InputError, match=r"under their names, r=…, s=…, .* but 2 arguments without a name came after "
                                         "the text: DataFrame, DataFrame"):
        stream_sql("SELECT r.x FROM r, s", *frames, window="RANGE 4", time="ts")
    with pytest.raises(InputError, match="a statement must be a text, not DataFrame"):
        stream_sql(frames[0], frames[1])  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(WindowError, match=r"needs window=….* does not say how long after a row of left one of right "
                                          r"may come; give window=…, or add s\.ts <= r\.ts \+ … to the condition"):
        stream_sql("SELECT r.x FROM r JOIN s ON r.x = s.x AND r.ts <= s.ts", r=frames[0], s=frames[1], time="ts")


def test_windows_as_the_condition_needs_them(frames: Frames, tables: Tables) -> None:
    """Without ``window=``; a window that is shorter loses pairs, with a warning."""
    text = "SELECT r.n, s.n AS other FROM r JOIN s ON r.x = s.x AND s.ts BETWEEN r.ts - 3 AND r.ts + 9"
    how: dict[str, Any] = {"r": frames[0], "s": frames[1], "time": "ts", "device": "golden", "partitions": [40]}
    want = rows(splitjoin.sql(text, r=tables[0], s=tables[1], window="RANGE 200", time="ts", device="golden").table)
    assert rows(stream_sql(text, **how).toArrow()) == want
    assert stream_sql(text, **how, window=("RANGE 9", "RANGE 3"))  # no warning
    with pytest.warns(UserWarning, match="lets a row of right come up to 9 after a row of left, but the window of left "
                                         "is only 8 long") as warned:
        short = stream_sql(text, **how, window="RANGE 8")
    assert warned[0].filename == __file__
    assert rows(short.toArrow()) < want
    on = "s.ts BETWEEN r.ts - 3 AND r.ts + 9"
    said = explain(*frames, on=on, time="ts", partitions=1)
    assert "windows    r: the last 9; s: the last 3" in said
    with pytest.warns(UserWarning, match="left come up to 3 after a row of right, but the window of right") as warned:
        stream_join(*frames, on=on, window=("ROWS 5", "RANGE 2"), time="ts", partitions=[40])
    assert warned[0].filename == __file__
