"""Joins of streaming DataFrames: the pairs of the batch join, across micro-batches, restarts and other settings."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812
from pyspark.sql.streaming.listener import QueryProgressEvent

from splitjoin.base.errors import (
    CapacityError,
    InputError,
    OrderError,
    SchemaError,
    SnapshotError,
    UnsupportedError,
    WindowError,
)
from splitjoin.spark import JoinMetrics, ProgressLog, explain, stream_join, stream_sql, task_error

from ...support.patience import until
from ...support.sampling import at_length
from ...support.spark_files import Files, counts
from ...support.spark_streams import ON, answer, rows

#: Rows that bring the watermark past all others, and meet none.
END = 10**6


def parts(table: pa.Table, at: list[int]) -> list[pa.Table]:
    """``table`` cut at the times ``at``, and a last part that ends it."""
    last = pa.table({f.name: pa.array([END if f.name == "ts" else None], f.type) for f in table.schema})
    low = [-1, *at]
    return [*(table.filter((pc.field("ts") > a) & (pc.field("ts") <= b))
              for a, b in zip(low, [*at, 10**9], strict=True)), last.cast(table.schema)]


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    (folder := tmp_path / "two words").mkdir()
    return Files(spark, folder)


@pytest.fixture
def filled(files: Files, tables: tuple[pa.Table, pa.Table]) -> Files:
    """Two micro-batches, the first of which has more of R, and one that ends the streams."""
    for r, s in zip(parts(tables[0], [50]), parts(tables[1], [30]), strict=True):
        files.add(r, s)
    return files


@pytest.mark.parametrize(("window", "order"), [
    at_length("RANGE 9", "none"), ({"r": "ROWS 12", "s": "RANGE 6"}, "none"), at_length("ROWS 20 RANGE 15", "total")])
def test_pairs_across_restarts(files: Files, tables: tuple[pa.Table, pa.Table], window: Any, order: str) -> None:
    """Between the micro-batches the query is stopped, and started with other settings."""
    query: dict[str, Any] = {"on": ON, "window": window, "time": "ts", "order": order, "late": 0}
    if kept := window != "RANGE 9":
        query["state"] = files.state
    runs = []
    shuffles = files.spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for n, (r, s) in enumerate(zip(parts(tables[0], [30, 70]), parts(tables[1], [40, 70]), strict=True)):
            files.add(r, s)
            files.spark.conf.set("spark.sql.shuffle.partitions", str(2 + n))
            groups = 1 if order == "total" else 1 + n % 3
            joined = stream_join(files.frame("r"), files.frame("s"), **query, groups=groups,
                                 device="golden" if n == 1 else "cpu")
            runs.append(files.run(joined))
    finally:
        files.spark.conf.set("spark.sql.shuffle.partitions", shuffles)
    expected = answer(*tables, on=ON, window=window, time="ts")
    assert rows(files.found()) == rows(expected)
    assert counts(runs)["pairs"] == len(expected) > 5
    of_query = f"{runs[0].id}/splitjoin/{runs[-1].lastProgress['batchId']:09d}"  # type: ignore[index]  # one has run
    states = Path(files.state) if kept else files.root / "out-checkpoint" / "splitjoin"
    assert list((states / of_query).glob("*.state"))


def test_as_of_joins_without_a_window_across_restarts(files: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    """By a call and by a statement, which have one state; the partner may be in a file of long ago."""
    query: dict[str, Any] = {"time": "ts", "late": 0, "groups": 2, "state": files.state}
    for n, (r, s) in enumerate(zip(parts(tables[0], [30]), parts(tables[1], [30]), strict=True)):
        files.add(r, s)
        left, right = files.frame("r"), files.frame("s")
        joined = (stream_join(left, right, on="r.name = s.name", how="asof_left", select=["r.n", "s.n"], **query)
                  if n != 1 else
                  stream_sql("SELECT r.n AS n_r, s.n AS n_s FROM r ASOF LEFT JOIN s ON r.name = s.name AND r.ts >= "
                             "s.ts", r=left, s=right, **query))
        run = files.run(joined)
    want = answer(*tables, on="r.name = s.name", time="ts", how="asof_left", select=["r.n", "s.n"])
    assert rows(files.found().filter(pc.field("n_r").is_valid())) == rows(want)
    assert counts([run])["stored_rows"] == len(tables[1]["name"].drop_null().unique())
    said = explain(left, right, on="r.name = s.name", how="asof", time="ts", late=0)
    assert "s: the last row of each key\n" in said


def test_total_order_within_and_across_micro_batches(filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    joined = stream_join(filled.frame("r"), filled.frame("s"), on=ON, window="RANGE 9", time="ts", order="total",
                         late=0, state=filled.state)
    found: list[str] = []
    filled.batches(joined, lambda frame, _: found.extend(map(repr, frame.toArrow().to_pylist())))
    assert found == list(map(repr, answer(*tables, on=ON, window="RANGE 9", time="ts").to_pylist()))


def test_select_of_streams(filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    left, right = filled.frame("r"), filled.frame("s")
    expected = answer(*tables, on="abs(r.x - s.x) <= 2", window="RANGE 9", time="ts", select=["r.n", "s.n"])
    chosen = stream_sql("SELECT r.n, s.n AS other, r.x - s.x AS gap FROM r JOIN s ON abs(r.x - s.x) <= 2", r=left,
                        s=right, window="RANGE 9", time="ts", late=0, state=filled.state, groups=2, device="golden")
    filled.run(chosen, "sql")
    found = filled.found("sql")
    assert found.column_names == ["n", "other", "gap"]
    assert rows(found.select(["n", "other"]).rename_columns(["n_r", "n_s"])) == rows(expected)


def test_a_watermark_says_how_late_rows_may_come(spark: SparkSession, files: Files) -> None:
    def table(seconds: list[int]) -> pa.Table:
        return pa.table({"ts": pa.array([s * 10**6 for s in seconds], pa.timestamp("us", "UTC")), "x": seconds})

    files.add(table([1, 20]), table([2, 30]))
    files.add(table([12, 9, 40]), table([11, 40]))
    left, right = (files.frame(side).withWatermark("ts", "10 seconds") for side in "rs")
    late = files.root / "late"
    joined = stream_join(left, right, on="abs(r.x - s.x) <= 1", window="RANGE 1 MINUTE", time="ts", state=files.state,
                         late_to=str(late), groups=2, device="golden")
    run = files.run(joined)
    # After the first micro-batch the watermark is 20 - 10 s: 9 is late.
    assert sorted(zip(*(files.found()[c].to_pylist() for c in ("x_r", "x_s")), strict=True)) == [
        (1, 2), (12, 11), (40, 40)]
    assert (counts([run])["late_r"], counts([run])["late_s"]) == (1, 0)
    assert [r.x for r in spark.read.parquet(str(late / "left")).collect()] == [9]
    assert not (late / "right").exists()


def test_a_silent_stream_holds_nothing_back(spark: SparkSession, files: Files) -> None:
    """After the idle time, or with Spark's policy "max", which asks for the greater watermark."""
    none = pa.table({"ts": pa.array([], pa.int64())})
    for r, s in (([1, 2], [2]), ([50], None), ([100], None)):
        files.add(pa.table({"ts": r}), none if s is None else pa.table({"ts": s}))
    query: dict[str, Any] = {"on": "r.ts = s.ts", "window": "RANGE 9", "time": "ts", "how": "left", "late": 0,
                             "device": "golden", "groups": 1}

    def found(name: str, **more: Any) -> set[tuple[int, int | None]]:
        joined = stream_join(files.frame("r"), files.frame("s"), **query, **more, state=f"{files.state}-{name}")
        files.run(joined, name)
        return {tuple(row.values()) for row in files.found(name).to_pylist()}  # type: ignore[misc]  # of two values

    assert found("greatest", watermark="max") == {(2, 2), (1, None), (50, None)}
    described = explain(files.frame("r"), files.frame("s"), **query, watermark="spark", state=files.state)
    assert "rows below or at the watermark: the lesser of left's" in described
    # Two micro-batches are silent; each takes more than a millisecond.
    assert found("idle", idle="1 MILLISECOND") == {(2, 2), (1, None), (50, None)}
    spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", "max")
    try:
        assert "the greater of left's" in explain(files.frame("r"), files.frame("s"), **query, state=files.state)
    finally:
        spark.conf.unset("spark.sql.streaming.multipleWatermarkPolicy")


def test_operators_of_spark_on_joined_rows(spark: SparkSession, filled: Files,
                                           tables: tuple[pa.Table, pa.Table]) -> None:
    """A static table, duplicates and windows of time behind the join, by a watermark of the joined rows."""
    def counted(pairs: DataFrame) -> DataFrame:
        kinds = spark.range(-20, 20).selectExpr("cast(id AS int) x_r", "id % 3 kind")
        timed = pairs.selectExpr("timestamp_seconds(ts_r) at", "x_r", "x_s")
        timed = timed.withWatermark("at", "30 seconds") if pairs.isStreaming else timed
        once = timed.join(kinds, "x_r").dropDuplicates(["at", "x_r", "kind"])
        return once.groupBy(F.window("at", "10 seconds"), "kind").count().selectExpr(
            "unix_seconds(window.start) begin", "kind", "count")

    query: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts"}
    filled.run(counted(stream_join(filled.frame("r"), filled.frame("s"), **query, late=0)), "counted")
    found = rows(filled.found("counted"))
    whole = counted(spark.createDataFrame(answer(*tables, **query))).toArrow()
    closed = whole.filter(pc.field("begin") < 60)  # the last pairs, at 110 and later, close what is 30 seconds before
    assert rows(closed) <= found <= rows(whole)
    assert len(closed) > 9


def test_early_rows_are_taken_back(filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    """In append mode, for a sink that takes updates: what is not taken back are the rows of the batch join."""
    joined = stream_sql("SELECT r.n, s.n AS other FROM r FULL JOIN s ON r.name = s.name", r=filled.frame("r"),
                        s=filled.frame("s"), window="RANGE 9", time="ts", late=0, state=filled.state, device="golden",
                        groups=2, early=True)
    filled.run(joined)
    found = filled.found()
    assert found.column_names == ["n", "other", "operation"]
    given, back = (rows(found.filter(pc.equal(found["operation"], sign)).drop_columns(["operation"])) for sign in "+-")
    assert back.total() > 0
    assert given >= back
    expected = answer(*tables, on="r.name = s.name", window="RANGE 9", time="ts", how="full", select=["r.n", "s.n"])
    left = given - back
    del left[repr({"n": None, "other": None})]  # of the rows that end the input
    assert left == rows(expected.rename_columns(["n", "other"]))


def test_counts_and_metrics(spark: SparkSession, filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    metrics = JoinMetrics(spark)
    joined = stream_join(filled.frame("r"), filled.frame("s"), on=ON, window="RANGE 9", time="ts", late=0,
                         state=filled.state, metrics=metrics, groups=2, name="pairs-of-both")
    assert "groups=2; device=cpu" in joined._jdf.queryExecution().analyzed().toString()
    run = filled.run(joined)
    total = counts([run], "pairs-of-both")
    pairs = len(answer(*tables, on=ON, window="RANGE 9", time="ts"))
    assert total["pairs"] == metrics.pairs == pairs
    assert total["tuples_r"] + total["tuples_s"] == metrics.tuples == len(tables[0]) + len(tables[1]) + 2
    assert total["comparisons"] > pairs
    assert total["comparisons"] >= total["compared"] >= total["matches"] >= pairs
    assert metrics.effectiveness == total["matches"] / total["compared"]
    last = run.recentProgress[-1].observedMetrics["pairs-of-both"]
    assert last["stored_rows"] == 2
    assert last["state_bytes"] > 0


def test_another_join_on_the_same_checkpoint_is_refused_by_name(filled: Files) -> None:
    left, right = filled.frame("r"), filled.frame("s")
    query: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts", "late": 0, "state": filled.state}
    filled.run(stream_join(left, right, **query, select=["n_r", "n_s"]))
    filled.add(*(filled.spark.read.parquet(str(filled.root / side)).limit(1).toArrow() for side in "rs"))
    with pytest.raises(StreamingQueryException) as failure:
        filled.run(stream_join(left, right, **(query | {"window": "RANGE 8"}), select=["n_r", "n_s"]))
    error = task_error(failure.value)
    assert isinstance(error, SnapshotError)
    assert "window of left: was 'the last 9', is now 'the last 8'" in str(error)
    with pytest.raises(StreamingQueryException) as failure:
        filled.run(stream_join(left, right, **(query | {"state": str(filled.root / "other")}), select=["n_r", "n_s"]))
    assert "there is no state of it at" in str(task_error(failure.value))
    filled.run(stream_join(left, right, **query, select=["n_r", "n_s"], device="golden", groups=1))


def test_names_that_spark_would_take_apart(files: Files) -> None:
    """Dots, spaces and backquotes in names, and those of our own columns; in batch joins too."""
    left = pa.table({"a b.c`d": [1, 2, 3, END], "group": [1, 5, 9, 0], "__splitjoin": ["x", "y", "z", ""]})
    right = pa.table({"a b.c`d": [1, 2, 9, END], "tuples": [4, 8, 8, 0], "rows": [1, 2, 3, 4]})
    for first, last in ((0, 3), (3, 4)):
        files.add(left.slice(first, last - first), right.slice(first, last - first))
    query: dict[str, Any] = {"on": "r.\"group\" > s.tuples", "window": "RANGE 3", "time": "a b.c`d",
                             "device": "golden"}
    wanted = [("y", 1), ("z", 1), ("z", 2)]
    batch = stream_join(*(files.spark.read.parquet(str(files.root / side)) for side in "rs"), **query)
    assert sorted((row["__splitjoin"], row["rows"]) for row in batch.collect()) == wanted
    files.run(stream_join(files.frame("r"), files.frame("s"), late=0, state=files.state, **query))
    assert sorted((row["__splitjoin"], row["rows"]) for row in files.found().to_pylist()) == wanted


def test_two_joins_in_one_query_need_two_names(filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    left, right = filled.frame("r"), filled.frame("s")
    query: dict[str, Any] = {"window": "RANGE 9", "time": "ts", "late": 0, "state": filled.state,
                             "select": ["n_r", "n_s"], "groups": 1, "device": "golden"}
    narrow, wide = ({"on": f"abs(r.x - s.x) <= {n}", **query} for n in (1, 5))
    one, other = stream_join(left, right, **narrow), stream_join(left, right, **wide)
    with pytest.raises(AnalysisException) as refused:
        one.union(other)
    assert str(task_error(refused.value)).startswith("two joins of the query have the name 'splitjoin', but ")
    assert str(task_error(refused.value)).endswith("give each call its own, such as name='orders'")
    again = {"on": "r.n_r = s.n", "window": "RANGE 9", "late": 0}
    stamped = one.selectExpr("n_r", "cast(n_s AS bigint) AS ts")
    with pytest.raises(InputError, match=r"left DataFrame has a join with the name 'splitjoin' in it already.* give "
                                         r"name='…' to this one or to that one"):
        stream_join(stamped, right, **again, time="ts")
    assert stream_join(stamped, right, **again, time="ts", name="second").isStreaming
    both = stream_join(left, right, **narrow, name="narrow").union(stream_join(left, right, **wide, name="wide"))
    filled.run(both, "both")
    expected = sum((rows(answer(*tables, **{k: q[k] for k in ("on", "window", "time", "select")}))
                    for q in (narrow, wide)), start=rows(tables[0].slice(0, 0)))
    assert rows(filled.found("both")) == expected


@pytest.mark.parametrize(("change", "kind", "reason"), [
    ({"late": None}, WindowError, r"no watermark; give late=…, how far a row's 'ts' .* late=10 \(late=0 if"),
    ({"late": "3 SECONDS"}, WindowError, "lateness must be like the length of a RANGE"),
    ({"late": (1, 2, 3)}, WindowError, "a pair"),
    ({"late": {"r": 1}}, WindowError, "must have the keys 'r' and 's'"),
    ({"late": (None, None)}, WindowError, "leaves the join without a watermark"),
    ({"idle": 30}, WindowError, "idle must be a number and a unit, such as '30 SECONDS', but 30 is not"),
    ({"idle": "ROWS 5"}, WindowError, "idle must be a number and a unit, such as '30 SECONDS', but 'ROWS 5' is not"),
    ({"idle": {"left": "5 SECONDS"}}, WindowError, "a mapping of idle must have the keys 'r' and 's'"),
    ({"watermark": "least"}, InputError, "watermark must be 'source', 'min', 'max' or 'spark', not 'least'"),
    ({"watermark": "source", "late": (1, None)}, WindowError, "by 'source' each stream has a lateness of its own"),
    ({"partitions": 3}, InputError, "give groups=… instead"),
    ({"groups": 0}, InputError, "groups must be a number from 1 to 32768, not 0"),
    ({"groups": True}, InputError, "not True"),
    ({"groups": 2, "order": "total"}, InputError, "groups must be 1, not 2"),
    ({"order": "outer(3)"}, OrderError, "marks groups of results with stars"),
    ({"name": "a/b"}, InputError, "name must be letters, digits"),
    ({"null_time": "drop"}, InputError, "null_time must be 'error' or 'late', not 'drop'"),
    ({"state": "nothing://x"}, InputError, "a file system that Arrow reaches"),
    ({"state": "dbfs:/mnt/x"}, InputError, "write '/dbfs/mnt/x'"),
    ({"state": "s3a://bucket/x"}, InputError, "write 's3://bucket/x'"),
    ({"state": "/proc/nothing"}, InputError, "nothing can be written to '/proc/nothing'"),
    ({"time": None}, SchemaError, "streaming DataFrames need time="),
    ({"early": True}, InputError, "early=True needs how='left', 'right', 'full' or 'anti' without aggregates"),
    ({"early": True, "how": "asof"}, InputError, r"but the join is of kind 'asof backward' in order 'none'; leave"),
    ({"early": True, "how": "left", "order": "total"}, InputError, "in order 'total'; leave early out"),
    ({"window": None, "how": "asof"}, WindowError, "must consist of equalities between r and s and of conditions on"),
    ({"window": None, "how": "asof", "direction": "nearest"}, WindowError, "needs window=…, such as 'RANGE 15 MIN"),
    ({"window": None, "how": "asof", "on": "r.x = s.x", "device": "sim"}, UnsupportedError, "or use device='cpu'"),
    ({"window": None, "how": "asof", "on": "r.x = s.x", "device": "daemon"}, UnsupportedError, "of bounded size"),
])
def test_refused_before_the_query_starts(filled: Files, change: dict[str, Any], kind: type[Exception],
                                         reason: str) -> None:
    query: dict[str, Any] = {"on": ON, "window": "RANGE 9", "time": "ts", "late": 0, "state": filled.state} | change
    with pytest.raises(kind, match=reason):
        stream_join(filled.frame("r"), filled.frame("s"), **query)


def test_streaming_and_batch_do_not_mix(filled: Files, frames: tuple[DataFrame, DataFrame]) -> None:
    with pytest.raises(UnsupportedError, match=r"right is a batch one.*read right with spark\.readStream"):
        stream_join(filled.frame("r"), frames[1], on=ON, window="RANGE 9", time="ts", late=0)
    with pytest.raises(InputError, match="late, null_time, groups: for streaming DataFrames only"):
        stream_join(*frames, on=ON, window="RANGE 9", time="ts", late=0, null_time="late", groups=3)


def test_null_times_and_watermarks_on_other_columns(spark: SparkSession, files: Files) -> None:
    table = pa.table({"ts": pa.array([1, None], pa.int64()), "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    files.add(table, table)
    query: dict[str, Any] = {"on": "r.ts = s.ts", "window": "RANGE 9", "time": "ts", "state": files.state}
    with pytest.raises(StreamingQueryException) as failure:
        files.run(stream_join(files.frame("r"), files.frame("s"), **query, late=0))
    assert "must not hold NULL, but it does; give null_time='late' to leave such" in str(task_error(failure.value))
    late = files.root / "late"
    runs = [files.run(stream_join(files.frame("r"), files.frame("s"), **query, late=0, null_time="late", groups=2,
                                  late_to=str(late), device="golden"))]
    assert files.found()["ts_r"].to_pylist() == [1]
    total = counts(runs)
    assert (total["null_r"], total["null_s"], total["late_r"], total["tuples_s"]) == (1, 1, 0, 1)
    assert [row.ts for row in spark.read.parquet(str(late / "right")).collect()] == [None]
    marked = files.frame("r").withWatermark("at", "1 second")
    with pytest.raises(SchemaError, match="its watermark on 'at', but the event time of the join is 'ts'"):
        stream_join(marked, files.frame("s"), **query)
    with pytest.raises(WindowError, match=r"left\.withWatermark\('at', '10 seconds'\), or give late=…, how far"):
        stream_join(files.frame("r"), files.frame("s"), **(query | {"time": "at", "window": "RANGE 9 SECONDS"}))


def test_result_columns_that_differ_in_case_only(spark: SparkSession) -> None:
    """Spark would write them to a file that it refuses to read."""
    left, right = (spark.createDataFrame(pa.table({"ts": [1], name: [2]})) for name in ("x", "X"))
    query = {"window": "RANGE 9", "time": "ts", "device": "golden"}
    with pytest.raises(SchemaError, match=r"result columns 'x' and 'X' apart, as their names differ in case only"):
        stream_join(left, right, on="r.x = s.X", **query)
    with pytest.raises(SchemaError, match="result columns 'x' and 'X' apart"):
        stream_sql("SELECT r.x, s.X FROM r JOIN s ON r.x = s.X", r=left, s=right, **query)
    assert stream_join(left, right, on="r.x = s.X", select=["ts_r", "x"], **query).collect() == [(1, 2)]


def test_a_listener_collects_the_counts(spark: SparkSession, filled: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    # by which PySpark asks for each field by itself, more slowly than micro-batches come
    monkeypatch.setattr(QueryProgressEvent, "fromJObject", None)
    said: list[str] = []
    log = ProgressLog("counted", say=said.append)
    spark.streams.addListener(log)
    try:
        joined = stream_join(filled.frame("r"), filled.frame("s"), on=ON, window="RANGE 9", time="ts", late=0,
                             state=filled.state, name="counted")
        run = filled.run(joined)
        until(lambda: len(log.rows) == len(run.recentProgress))
    finally:
        spark.streams.removeListener(log)
    assert log.totals["pairs"] == counts([run], "counted")["pairs"] > 5
    assert [row["batch"] for row in log.rows] == list(range(len(log.rows)))
    assert said[0].startswith("micro-batch 0: ")


def test_explain_of_streams(filled: Files) -> None:
    query: dict[str, Any] = {"window": {"r": "ROWS 9", "s": "RANGE 5"}, "time": "ts", "late": (3, 4),
                             "state": filled.state}
    said = explain(filled.frame("r"), filled.frame("s"), on="abs(r.x - s.x) <= 6", **query, groups=3)
    assert "groups     3; a row goes to all groups, and one of them stores it" in said
    assert "pairs come out when the watermark has passed their later row" in said
    assert ("late       rows below the watermark: the lesser of left's greatest time less 3 and right's greatest time "
            "less 4") in said
    said = explain(filled.frame("r"), filled.frame("s"), on="r.name = s.name",
                   **(query | {"window": "RANGE 5", "how": "left", "idle": ("90 SECONDS", None)}))
    assert "right's greatest time less 4; of the other one alone while left has had no row for 90 s" in said
    assert "no later row can find their row in its window, but those of pairs in the micro-batch that brings" in said
    said = explain(filled.frame("r"), filled.frame("s"), on="r.name = s.name", **(query | {"window": "RANGE 5"}),
                   groups=3)
    assert "groups     3; a row goes to the group of its key (r.name = s.name)" in said
    assert "pairs come out in the micro-batch that brings their second row" in said
    with pytest.raises(InputError, match="mode must be one of 'PLAN', 'NOT_ON_DEVICE', 'ALL', not 'SOME'"):
        explain(filled.frame("r"), filled.frame("s"), on="r.name = s.name", **query, mode="SOME")


def test_parts_that_are_not_on_the_device_and_the_fallback(filled: Files, tables: tuple[pa.Table, pa.Table]) -> None:
    query: dict[str, Any] = {"on": "abs(r.x - s.x) <= 6 AND r.x * s.n > s.x * r.n", "window": "ROWS 65", "time": "ts",
                             "late": 0, "state": filled.state, "device": "sim",
                             "device_options": {"cores": 2, "capacity": 32}}
    left, right = filled.frame("r"), filled.frame("s")
    with pytest.raises(CapacityError, match="the largest that fits is ROWS 64"):
        stream_join(left, right, **query)
    with pytest.warns(UserWarning, match="the join runs on the device 'cpu', since 'sim' refuses it: the window"):
        joined = stream_join(left, right, **query, fail_on_fallback=False)
    filled.run(joined)
    assert rows(filled.found()) == rows(answer(*tables, on=query["on"], window="ROWS 65", time="ts"))
    with pytest.warns(UserWarning, match="the join runs on the device 'cpu'"):
        said = explain(left, right, **query, fail_on_fallback=False, mode="NOT_ON_DEVICE")
    assert said.startswith("! device     cpu in place of the one asked for: the window")
    said = explain(left, right, **(query | {"window": "ROWS 64"}), mode="NOT_ON_DEVICE")
    assert [line.split()[1] for line in said.splitlines()] == ["keys", "columns"]
