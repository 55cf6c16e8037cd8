"""`stream_join` gives exactly the answer of `splitjoin.join`, wherever the partitions are cut."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812

import splitjoin
from splitjoin.spark import explain, stream_join

from ...support.sampling import at_length
from ...support.spark_streams import ON, answer, in_order, rows, stream

Frames = tuple[DataFrame, DataFrame]
Tables = tuple[pa.Table, pa.Table]

#: For conditions that only one test has: a kernel for each would take seconds to compile, twice, as two workers run.
GOLDEN: dict[str, Any] = {"device": "golden"}

# Cuts before, at, right behind and far beyond times that occur several times, so that some partitions are empty.
CUTS = [-7, 30, 31, 32, 60, 61, 119, 120, 500]

WINDOWS = [
    "RANGE 0", at_length("RANGE 4"), at_length("RANGE 1000"), "ROWS 1", at_length("ROWS 13"), at_length("ROWS 100000"),
    at_length("ROWS 5 RANGE 2"), "ROWS 40 RANGE 3", at_length(("RANGE 9", "RANGE 0")), ("ROWS 3", "RANGE 7"),
    at_length(("ROWS 90 RANGE 50", "ROWS 2")),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_total_order_row_for_row(frames: Frames, tables: Tables, window: Any) -> None:
    got = stream_join(*frames, on=ON, window=window, time="ts", order="total", partitions=CUTS).toArrow()
    expected = answer(*tables, on=ON, window=window, time="ts")
    assert len(expected) > 5
    assert list(map(repr, got.to_pylist())) == list(map(repr, expected.to_pylist()))


@pytest.mark.parametrize(("window", "partitions"), [
    at_length("RANGE 4", 1), ("ROWS 13", 2), ("ROWS 13", 11), ("RANGE 4", None),
    at_length("ROWS 13", 1), at_length("RANGE 4", 2), at_length("ROWS 13", 30), at_length("RANGE 4", 30),
    at_length("ROWS 13", None)])
def test_any_number_of_partitions(frames: Frames, tables: Tables, window: str, partitions: int | None) -> None:
    got = stream_join(*frames, on=ON, window=window, time="ts", partitions=partitions).toArrow()
    assert rows(got) == rows(answer(*tables, on=ON, window=window, time="ts"))


def test_views_by_name(frames: Frames, tables: Tables) -> None:
    for frame, name in zip(frames, ("orders", "offers"), strict=True):
        frame.createOrReplaceTempView(name)
    query = {"on": ON, "window": "RANGE 4", "time": "ts"}
    for left, right in (("orders", "offers"), (frames[0], "offers"), ("orders", frames[1])):
        got = stream_join(left, right, partitions=1, **query).toArrow()
        assert rows(got) == rows(answer(*tables, **query))
    assert explain("orders", "offers", partitions=1, **query).startswith("device     cpu")


@pytest.mark.parametrize("length", [0, 11])
def test_equals_sparks_nested_loop(frames: Frames, length: int) -> None:
    left, right = frames
    ours = stream_join(left, right, on="abs(r.x - s.x) <= 6 AND r.n <> s.n", window=f"RANGE {length}", time="ts",
                       partitions=8, **GOLDEN)
    r, s = (d.select(*(F.col(c).alias(f"{c}_{side}") for c in d.columns)) for d, side in ((left, "r"), (right, "s")))
    condition = (F.abs(F.col("x_r") - F.col("x_s")) <= 6) & (F.col("n_r") != F.col("n_s")) & \
        (F.abs(F.col("ts_r") - F.col("ts_s")) <= length)
    theirs = r.join(s, condition)
    assert theirs.count() > 5
    assert rows(ours.toArrow()) == rows(theirs.select(*ours.columns).toArrow())


def test_pairs_across_a_cut_and_ties_at_it(spark: SparkSession) -> None:
    left = spark.createDataFrame([(9, "a"), (10, "b"), (10, "c")], "ts int, k string")
    right = spark.createDataFrame([(9, "A"), (10, "B"), (11, "C")], "ts int, k string")
    joined = stream_join(left, right, on="r.ts <= s.ts OR r.ts > s.ts", window=("RANGE 1", "RANGE 0"), time="ts",
                         order="total", partitions=[10, 11], **GOLDEN)
    # R waits for one unit of time, S for none; at equal times R comes first, so it is always S that probes.
    assert [r.k_r + r.k_s for r in joined.collect()] == ["aA", "aB", "bB", "cB", "bC", "cC"]


def test_rows_window_reaches_over_several_partitions(spark: SparkSession) -> None:
    left = spark.createDataFrame([(t, t) for t in range(0, 100, 10)], "ts int, x int")
    right = spark.createDataFrame([(95, 0)], "ts int, x int")
    joined = stream_join(left, right, on="r.x >= s.x", window="ROWS 7", time="ts", partitions=[15, 35, 36, 37, 75, 94],
                         **GOLDEN)
    assert sorted(r.x_r for r in joined.collect()) == [30, 40, 50, 60, 70, 80, 90]


@pytest.mark.parametrize(("empty", "window"), [
    ("left", "RANGE 5"), ("right", "ROWS 5"), ("both", "ROWS 5"),
    at_length("left", "ROWS 5"), at_length("right", "RANGE 5"), at_length("both", "RANGE 5")])
def test_empty_streams(frames: Frames, window: str, empty: str) -> None:
    left, right = (d.where("false") if empty in (name, "both") else d
                   for d, name in zip(frames, ("left", "right"), strict=True))
    joined = stream_join(left, right, on=ON, window=window, time="ts")
    assert joined.count() == 0
    assert joined.columns[:2] == ["ts_r", "x_r"]


def test_zero_matches(frames: Frames) -> None:
    got = stream_join(*frames, on="r.x > s.x + 1000", window="ROWS 50", time="ts", partitions=4,
                      **GOLDEN).toArrow()
    assert got.num_rows == 0
    assert got.column_names == [f"{c}_{side}" for side in "rs" for c in frames[0].columns]


def test_repeated_and_narrowed_runs_give_the_same(spark: SparkSession, frames: Frames) -> None:
    joined = stream_join(*frames, on=ON, window="ROWS 20 RANGE 15", time="ts", order="total", partitions=6)
    first = joined.collect()
    assert joined.count() == len(first) > 5
    assert repr(joined.collect()) == repr(first)
    # One task that runs all partitions one after the other.
    assert repr(joined.coalesce(1).collect()) == repr(first)


def test_answer_does_not_depend_on_where_spark_keeps_the_rows(frames: Frames) -> None:
    left, right = frames
    query: dict[str, Any] = {"on": ON, "window": "ROWS 9", "time": "ts", "partitions": [40, 41, 80], "order": "total"}
    here = stream_join(left, right, **query).collect()
    there = stream_join(left.orderBy(F.desc("n")).repartition(4, "day"), right.coalesce(1), **query).collect()
    assert len(here) > 5
    assert repr(here) == repr(there)


def test_ties_decide_the_order_of_equal_times(spark: SparkSession) -> None:
    r, s = stream(3, 150, last=12), stream(4, 120, last=12)
    ties = {"r": ["n"], "s": ["day", "n"]}
    query: dict[str, Any] = {"on": ON, "window": "ROWS 6", "time": "ts"}
    joined = stream_join(spark.createDataFrame(r), spark.createDataFrame(s), **query, ties=ties, order="total",
                         partitions=4)
    expected = answer(in_order(r, "n"), in_order(s, "day", "n"), **query)
    assert repr(joined.toArrow().to_pylist()) == repr(expected.to_pylist())
    assert rows(expected) != rows(answer(r, s, **query))


@pytest.mark.parametrize(("kind", "window", "zone"), [
    at_length("timestamp", "RANGE 5 SECONDS", "UTC"), ("timestamp", "RANGE 5 SECONDS", "America/New_York"),
    ("timestamp_ntz", "RANGE 5 SECONDS", "America/New_York"), ("date", "RANGE 5 DAYS", "America/New_York"),
    ("smallint", "RANGE 5", "UTC"),
])
def test_types_of_time(spark: SparkSession, kind: str, window: str, zone: str) -> None:
    base = {"timestamp": "timestamp'2013-03-10 01:59:30 America/New_York' + make_dt_interval(0, 0, 0, {})",
            "timestamp_ntz": "timestamp_ntz'1969-12-31 23:59:30.000001' + make_dt_interval(0, 0, 0, {})",
            "date": "date'1969-12-01' + cast({} as int)"}.get(kind, "{} - 30")
    old = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        left = spark.range(60).selectExpr(f"cast({base.format('id')} as {kind}) at", "id k")
        right = spark.range(0, 60, 7).selectExpr(f"cast({base.format('id')} as {kind}) t", "id k")
        joined = stream_join(left, right, on="r.k >= 0", window=window, time=("at", "t"), partitions=5, **GOLDEN)
        got = sorted((r.k_r, r.k_s) for r in joined.collect())
        assert joined.schema["at"].dataType == left.schema["at"].dataType
        times = joined.where("k_r = k_s").join(left, "at").count()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(old))
    assert got == [(a, b) for a in range(60) for b in range(0, 60, 7) if abs(a - b) <= 5]
    assert times == 9


def test_starts_of_partitions_as_times(spark: SparkSession) -> None:
    frame = spark.sql("select timestamp'2013-01-01' + make_dt_interval(0, id) ts, "
                      "timestamp_ntz'2013-01-01' + make_dt_interval(0, id) wall, "
                      "cast(date'2013-01-01' + cast(id as int) as date) day, id from range(10)")
    cuts = [("ts", "RANGE 1 HOUR", dt.datetime(2013, 1, 1, 3, tzinfo=dt.UTC)),
            ("ts", "RANGE 1 HOUR", dt.datetime(2013, 1, 1, 3)), ("wall", "RANGE 1 HOUR", dt.datetime(2013, 1, 1, 3)),
            ("day", "RANGE 1 DAY", dt.date(2013, 1, 4))]
    for time, window, start in cuts:
        text = explain(frame, frame, on="r.id = s.id", window=window, time=time, partitions=[start])
        # Hours (or days) 0 to 2, and 3 to 9, of both streams; the row before the cut is warm.
        assert "2 as given, the largest of 14 rows" in text
        assert "20, and 2 warm ones (10.0%)" in text


def test_extreme_times(spark: SparkSession) -> None:
    times = [-2**63, -2**63 + 1, -5, 0, 2**63 - 2, 2**63 - 1]
    frame = spark.createDataFrame([(t,) for t in times], "ts bigint")
    for window in ("RANGE 1", f"RANGE {2**64}", "ROWS 2"):
        got = stream_join(frame, frame, on="r.ts = s.ts OR r.ts <> s.ts", window=window, time="ts", order="total",
                          partitions=[-2**63 + 1, 0, 2**63 - 1], **GOLDEN).toArrow()
        table = pa.table({"ts": times})
        assert got.to_pylist() == answer(table, table, on="r.ts = s.ts OR r.ts <> s.ts", window=window,
                                         time="ts").to_pylist()


def test_every_type_travels(spark: SparkSession) -> None:
    frame = spark.sql("""
        select cast(id as tinyint) k, timestamp'2013-03-10 07:00:00.000001' ts, timestamp_ntz'2013-03-10 02:30:00' wall,
          date'1582-10-15' day, cast(id as decimal(38,9)) price, cast('ab' as binary) raw, array(1, null) list,
          map('k', id) attributes, named_struct('a', id, 'b', array('x')) nested, interval '1 02' day to hour span,
          id > 1 flag, cast('nan' as double) nothing, cast(null as string) missing, void, parse_json('[1]') v
        from (select id, null void from range(3))""")
    joined = stream_join(frame, frame, on="r.k = s.k", window="RANGE 0", time="k", partitions=2, **GOLDEN)
    assert [f.dataType for f in joined.schema] == [f.dataType for f in frame.schema] * 2
    expected = sorted(repr(tuple(row) * 2) for row in frame.collect())
    assert sorted(repr(tuple(row)) for row in joined.collect()) == expected


def test_names_that_the_join_uses_itself_or_that_need_quotes(spark: SparkSession) -> None:
    names = ["ts", "r", "s", "partition", "home", "stream", "from_end", "a.b", "a`b", "reach"]
    left = spark.createDataFrame([tuple(range(10)), (*range(9), 10)], ", ".join(f"`{n.replace('`', '``')}` int"
                                                                                for n in names))
    joined = stream_join(left, left, on=lambda r, s: r.r == s.r, window="ROWS 3", time="ts", order="total",
                         ties="a.b", partitions=[-1, 3], select=["a.b_r", "s.a`b", "reach_s"], **GOLDEN)
    assert joined.columns == ["a.b_r", "a`b_s", "reach_s"]
    assert sorted(map(tuple, joined.collect())) == [(7, 8, 9), (7, 8, 9), (7, 8, 10), (7, 8, 10)]


def test_select_and_a_python_condition(frames: Frames, tables: Tables) -> None:
    query: dict[str, Any] = {"on": lambda r, s: abs(r.x - s.x) <= 2, "window": "RANGE 3", "time": "ts",
                             "select": ["s.n", "name_r"]}
    got = stream_join(*frames, **{**query, "select": iter(query["select"])}).toArrow()
    assert got.column_names == ["n_s", "name_r"]
    assert rows(got) == rows(answer(*tables, **query))


@pytest.mark.parametrize("options", [GOLDEN, {"engine": "rewrite"}], ids=["golden", "rewrite"])
def test_columns_that_get_other_names(frames: Frames, tables: Tables, options: dict[str, Any]) -> None:
    query: dict[str, Any] = {"on": "abs(r.x - s.x) <= 2", "window": "RANGE 3", "time": "ts"}
    for names in ({"suffixes": ("_x", None)}, {"select": {"s.n": "m", "name_r": "who", "ts_r": None}}):
        got = stream_join(*frames, **query, **names, **options).toArrow()
        want = answer(*tables, **query, **names)
        assert got.column_names == want.column_names
        assert rows(got) == rows(want)


def test_many_batches_and_many_results(spark: SparkSession) -> None:
    # 2 × 3,000 rows in Arrow batches of 1,000, and more than 10,000 results, so that both are in pieces.
    old = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    try:
        frame = spark.range(3000).selectExpr("id ts", "cast(id as string) name")
        got = stream_join(frame, frame, on="r.ts = s.ts OR r.ts <> s.ts", window="RANGE 3", time="ts", order="total",
                          partitions=2, **GOLDEN).toArrow()
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(old))
    assert got.num_rows == 3000 * 7 - 2 * (1 + 2 + 3)
    assert got["ts_r"].cast(pa.string()).equals(got["name_r"])
    later = np.maximum(got["ts_r"].to_numpy(), got["ts_s"].to_numpy())
    assert (np.diff(later) >= 0).all()


def test_a_device_object(frames: Frames, tables: Tables) -> None:
    from splitjoin.engines.golden import GoldenDevice

    got = stream_join(*frames, on=ON, window="RANGE 2", time="ts", device=GoldenDevice()).toArrow()
    assert rows(got) == rows(splitjoin.join(*tables, on=ON, window="RANGE 2", time="ts"))


def test_explain(frames: Frames) -> None:
    text = explain(*frames, on="abs(r.x - s.x) <= 6", window=("RANGE 4", "ROWS 10 RANGE 9"), time="ts",
                   device="golden", device_options={"cores": 2}, partitions=3)
    lines = dict(line.split(maxsplit=1) for line in text.splitlines())
    assert lines["device"].startswith("golden, cores=2;")
    assert lines["condition"] == "(abs((r.x - s.x)) <= 6)"
    assert lines["windows"] == "r: the last 4; s: the last 10 rows within the last 9"
    assert lines["time"] == "r.ts, s.ts (int64); equal times: R before S, then s: x, y, name, day, price, n"
    assert lines["partitions"].startswith("3 at quantiles of the event time, the largest of ")
    assert lines["rows"].startswith("430, and ")
