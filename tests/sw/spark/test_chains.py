"""Joins of three streams and more, by one statement and by joins of joined rows, beside DuckDB."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import InputError, OrderError, SchemaError, StatementError, UnsupportedError, WindowError
from splitjoin.spark import explain, stream_join, stream_sql

from ...support.sampling import at_length

#: Rows that bring the watermark past all others, and meet none.
_END = 10**6
#: The windows of the streams.
_LENGTHS = {"a": 9, "b": 5, "c": 12, "d": 7, "e": 4}
_ON = {"b": "abs(b.v - a.v) <= 3", "c": "c.v <= b.v AND c.v > a.v - 4", "d": "d.v = a.v", "e": "e.v < d.v + b.v"}


def tables(names: str, n: int, seed: int = 1, last: int = 60) -> dict[str, pa.Table]:
    """Streams in order of time."""
    chance = np.random.default_rng(seed)
    return {name: pa.table({"ts": np.sort(chance.integers(0, last, n)), "v": pa.array(
        chance.integers(0, 9, n), pa.int32(), mask=chance.random(n) < 0.1), f"n{name}": np.arange(n)})
        for name in names}


def text(names: str, last: str = "JOIN", columns: str = "") -> str:
    """The statement of a join of the tables ``names``."""
    joins = "".join(f" {last if name == names[-1] else 'JOIN'} {name} ON {_ON[name]}" for name in names[1:])
    return f"SELECT {columns or ', '.join(f'{name}.n{name}' for name in names)} FROM {names[0]}{joins}"


def wanted(given: dict[str, pa.Table], last: str = "JOIN") -> Counter[tuple[Any, ...]]:
    """The rows by DuckDB, with the windows as conditions on times: each tuple lies in its own stream's window as the
    latest one sees it, which by equal times is any of the latest.
    """
    names = "".join(given)
    latest = "greatest(" + ", ".join(f"{name}.ts" for name in names) + ")"
    within = [f"{latest} - {name}.ts <= {_LENGTHS[name]}" for name in names]
    inner = text(names[:-1], columns="*") if last != "JOIN" else ""
    with duckdb.connect() as db:
        for name, table in given.items():
            db.register(name, table)
        if not inner:
            return Counter(db.sql(f"{text(names)} WHERE {' AND '.join(within)}").fetchall())
        early = f"greatest({', '.join(f'{name}.ts' for name in names[:-1])})"
        alone = [f"{early} - {name}.ts <= {_LENGTHS[name]}" for name in names[:-1]]
        on = _ON[names[-1]]
        rows = ", ".join(f"{name}.ts AS ts{name}, {name}.v AS v{name}, n{name}" for name in names[:-1])
        for name in names[:-1]:
            on = on.replace(f"{name}.v", f"v{name}")
        outer = "greatest(" + ", ".join([*(f"ts{name}" for name in names[:-1]), f"{names[-1]}.ts"]) + ")"
        within = [f"{outer} - ts{name} <= {_LENGTHS[name]}" for name in names[:-1]]
        within.append(f"{outer} - {names[-1]}.ts <= {_LENGTHS[names[-1]]}")
        source = text(names[:-1], columns=rows)
        return Counter(db.sql(
            f"SELECT {', '.join(f'n{name}' for name in names)} FROM ({source} WHERE {' AND '.join(alone)}) "
            f"LEFT JOIN {names[-1]} ON {on} AND {' AND '.join(within)}").fetchall())


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows as a multiset."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Streams:
    """Streams of files, a file of each in a micro-batch, and queries over them that can be started again."""

    def __init__(self, spark: SparkSession, root: Path, given: dict[str, pa.Table], cuts: list[int], late: int = 0):
        self.spark, self.root, self.given = spark, root, given
        self._parts = {}
        chance = np.random.default_rng(9)
        for name, table in given.items():
            of = table["ts"].to_numpy() + chance.integers(0, late + 1, len(table))  # when a row comes
            at = np.searchsorted(cuts, of, side="right")
            end = {f.name: [_END if f.name == "ts" else None] for f in table.schema}
            parts = [table.filter(pa.array(at == n)) for n in range(len(cuts) + 1)]
            self._parts[name] = [*parts, pa.table(end, schema=table.schema), pa.table(end, schema=table.schema)]
        self.files = 0

    def feed(self, n: int = 1, names: str = "") -> None:
        """Add the next ``n`` files of each stream, or of those in ``names``."""
        for number in range(self.files, self.files + n):
            for name, parts in self._parts.items():
                if names and name not in names:
                    continue
                (folder := self.root / name).mkdir(exist_ok=True)
                pq.write_table(parts[number], path := folder / f"{number:03}.parquet")
                os.utime(path, (10**9 + number, 10**9 + number))
        self.files += n

    @property
    def left(self) -> int:
        """The number of files to come."""
        return len(next(iter(self._parts.values()))) - self.files

    def frames(self) -> dict[str, DataFrame]:
        """The streaming DataFrames."""
        return {name: self.spark.readStream.schema(f"ts bigint, v int, n{name} bigint").option(
            "maxFilesPerTrigger", 1).parquet(str(self.root / name)) for name in self.given}

    def run(self, joined: DataFrame) -> Any:
        """Run a query over all files that are new to it."""
        query = joined.writeStream.format("parquet").option("path", str(self.root / "out")).option(
            "checkpointLocation", str(self.root / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(300), "the query does not end"
        return query

    def found(self) -> Counter[tuple[Any, ...]]:
        """All rows so far."""
        return counted(self.spark.read.parquet(str(self.root / "out")).toArrow())


@pytest.mark.parametrize(("names", "last"), [("abc", "JOIN"), at_length("abcd", "LEFT JOIN")])
def test_a_statement_over_streams_across_restarts(spark: SparkSession, tmp_path: Path, names: str, last: str) -> None:
    """Rows come late, and between micro-batches the query starts again with other groups."""
    given = tables(names, 60)
    streams = Streams(spark, tmp_path, given, [30], late=6)
    groups = 1
    while streams.left:
        streams.feed(min(3, streams.left))
        joined = stream_sql(text(names, last), tables=streams.frames(), time="ts", late=6, device="golden",
                            window={name: f"RANGE {_LENGTHS[name]}" for name in names},
                            groups=groups)
        query = streams.run(joined)
        groups = 3 - groups
    found = streams.found()
    assert found == wanted(given, last)
    assert found.total() > 100
    step = query.lastProgress["observedMetrics"]
    assert sorted(step) == [f"splitjoin_{n}" for n in range(1, len(names))]
    assert step[f"splitjoin_{len(names) - 1}"]["late_r"] == 0


def test_a_join_of_joined_rows_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """With columns computed and rows chosen between the joins; the watermark goes on though the first join is silent,
    so that rows of a last LEFT JOIN come.
    """
    given = tables("abc", 60, seed=2)
    streams = Streams(spark, tmp_path, given, [30], late=4)
    window = {"r": None, "s": f"RANGE {_LENGTHS['c']}"}
    runs = []
    while streams.left:
        streams.feed(min(3, streams.left))
        a, b, c = streams.frames().values()
        first = stream_join(a, b, on="abs(r.v - s.v) <= 3", time="ts", late=4, name="ab", device="golden",
                            window=(f"RANGE {_LENGTHS['a']}", f"RANGE {_LENGTHS['b']}"), groups=2)
        between = first.where("na % 7 <> 3").withColumn("low", F.col("v_r") - 4).withColumnRenamed("ts_r", "ts of a")
        joined = stream_join(between, c, on="s.v <= r.v_s AND s.v > r.low", window=window, time="ts", late=4,
                             how="left", device="golden", select=["na", "nb", "nc"], groups=2)
        runs.append(streams.run(joined))
    rows = [row for row in given["a"].to_pylist() if row["na"] % 7 != 3]
    given["a"] = pa.Table.from_pylist(rows, schema=given["a"].schema)
    assert streams.found() == wanted(given, "LEFT JOIN")
    said = explain(between, c, on="r.v_r = s.v", window=(None, "RANGE 3"), time="ts", late=4, device="golden")
    assert "the lesser of the watermark of left's join and right's greatest time less 4" in said
    assert "windows    r: the last 5; s: the last 3" in said


@pytest.mark.parametrize(("names", "last", "partitions"), [
    ("abc", "LEFT JOIN", 3), at_length("abc", "JOIN", [20, 40]), at_length("abcde", "JOIN", 2)])
def test_statements_over_batch_tables(spark: SparkSession, names: str, last: str, partitions: Any) -> None:
    """With windows and without, over three to five tables, whatever the cuts."""
    given = tables(names, 24, seed=len(names), last=25)
    frames = {name: spark.createDataFrame(table).repartition(2) for name, table in given.items()}
    made = stream_sql(text(names, last), tables=frames, time="ts", partitions=partitions, device="golden",
                      window={name: f"RANGE {_LENGTHS[name]}" for name in names})
    assert counted(made.toArrow()) == wanted(given, last)
    whole = stream_sql(text(names, last), tables=frames, device="golden", partitions=2)
    with duckdb.connect() as db:
        for name, table in given.items():
            db.register(name, table)
        assert counted(whole.toArrow()) == Counter(db.sql(text(names, last)).fetchall())


def test_batch_joins_of_joined_rows_on_both_sides(spark: SparkSession) -> None:
    """Times are timestamps; a window in the later join also bounds the age of joined rows."""
    given = tables("abcd", 40, seed=5, last=40)
    begin = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    frames = []
    for name, table in given.items():
        times = pa.array([begin + dt.timedelta(seconds=t) for t in table["ts"].to_pylist()], pa.timestamp("us", "UTC"))
        frames.append(spark.createDataFrame(table.set_column(0, "ts", times).rename_columns(
            ["ts", "v", f"n{name}"])))
    pairs = [stream_join(*two, on="abs(r.v - s.v) <= 3", time="ts", device="golden", partitions=2,
                         window=tuple(f"RANGE {_LENGTHS[name]} SECONDS" for name in names))
             for two, names in ((frames[:2], "ab"), (frames[2:], "cd"))]
    made = stream_join(*pairs, on="r.v_r = s.v_s", time=(None, None), window=(None, "RANGE 3 SECONDS"),
                       device="golden", select=["na", "nb", "nc", "nd"], partitions=3)
    with duckdb.connect() as db:
        for name, table in given.items():
            db.register(name, table)
        latest = "greatest(a.ts, b.ts, c.ts, d.ts)"
        within = " AND ".join(f"{latest} - {name}.ts <= {_LENGTHS[name]}" for name in "abcd")
        rows = Counter(db.sql(f"SELECT na, nb, nc, nd FROM a, b, c, d WHERE abs(a.v - b.v) <= 3 AND "
                              f"abs(c.v - d.v) <= 3 AND a.v = d.v AND {within} AND "
                              f"{latest} - greatest(c.ts, d.ts) <= 3").fetchall())
    assert counted(made.toArrow()) == rows
    assert rows.total() > 20


def test_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = Streams(spark, tmp_path, tables("abc", 4), [])
    streams.feed()
    frames = streams.frames()
    a, b, c = frames.values()
    how: dict[str, Any] = {"on": "r.v_r = s.v", "time": "ts", "window": (None, "RANGE 3"), "late": 0, "name": "second"}
    first: dict[str, Any] = {"on": "r.v = s.v", "time": "ts", "window": "RANGE 9", "late": 0}
    ab = stream_join(a, b, **first)
    for left, options, error, said in [
        (ab.drop("ts_r"), {}, SchemaError, r"made of 2 streams, but has the event times of 1 of them \(ts_s\); keep"),
        (ab.groupBy("ts_r", "ts_s", "v_r").count(), {}, UnsupportedError, "between that and this one Spark has a Aggr"),
        (ab.coalesce(1), {}, UnsupportedError, "Spark has a Repartition, behind which rows may be older"),
        (stream_join(a, b, **first | {"how": "left"}), {}, UnsupportedError, "of kind 'left', which come with older"),
        (stream_join(a, b, **first | {"window": "ROWS 3"}), {}, WindowError, "an earlier join of them has a window th"),
        (ab, {"late": ("5", "5")}, WindowError, "late must be"),
        (ab, {"late": (5, 5)}, WindowError, "late must be 0 for them, or None to leave them out .*, not 5"),
        (ab, {"idle": ("1 SECOND", None)}, WindowError, "idle must be None for them, not '1 SECOND'"),
        (ab, {"window": "ROWS 3"}, WindowError, "takes windows of RANGE, without ROWS, not 'ROWS 3'"),
        (ab, {"window": None}, WindowError, r"needs window=…, such as \(None, 'RANGE 15 MINUTES'\)"),
        (ab, {"state": str(tmp_path / "state")}, SchemaError, "keeps its state elsewhere; give both joins the same"),
        (ab, {"name": "splitjoin"}, InputError, "has a join with the name 'splitjoin' in it already"),
        (a, {"time": (None, "ts"), "on": "r.v = s.v"}, SchemaError, "but the left DataFrame is none, or has lost them"),
    ]:
        with pytest.raises(error, match=said):
            stream_join(left, c, **how | options)
    sql: dict[str, Any] = {"tables": frames, "time": "ts", "window": "RANGE 3", "late": 0}
    for change, error, said in [
        ({"order": "total"}, OrderError, "takes order 'none', not 'total'"),
        ({"ties": "v"}, InputError, "has no ties"),
        ({"window": None}, WindowError, "by event time needs window=…"),
        ({"late": {"a": 1}}, SchemaError, "a mapping of late must have the keys 'a', 'b', 'c'"),
        ({"tables": frames | {"b": spark.range(3)}}, UnsupportedError, "a is a streaming DataFrame and b is a batch"),
        ({"tables": frames | {"b": 3}}, InputError, "b must be a Spark DataFrame, not int"),
    ]:
        with pytest.raises(error, match=said):
            stream_sql(text("abc"), **sql | change)
    with pytest.raises(StatementError, match="USING is not supported"):
        stream_sql("SELECT na FROM a JOIN b USING (v) JOIN c ON a.v = c.v", **sql)
