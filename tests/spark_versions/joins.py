"""A batch join, a stream that is restarted, kinds, aggregates and conditions of Columns on the Spark that is imported.

Each answer is compared with the golden model's.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

import splitjoin
from splitjoin.catalyst.jar import spark_jar
from splitjoin.lang.query import predicate
from splitjoin.spark import local_session, replay, stream_join
from splitjoin.spark.columns import condition
from splitjoin.spark.versions import VERSION

from ..sw.spark.test_columns import CONDITIONS, R, S

_ON, _WINDOW = "abs(r.x - s.a) <= 3", "RANGE 50"
_FILES = 4
#: Statements, and how many of their joins splitjoin runs.
PLAIN_SQL = [
    ("SELECT * FROM r JOIN s ON x BETWEEN a - 3 AND a + 3", 1),
    ("SELECT n_x, n_a FROM r LEFT JOIN s ON abs(x - a) <= 1 AND n_x < n_a", 1),
    ("SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM s WHERE x > a AND r.ts > s.ts)", 1),
    ("SELECT /*+ SPLITJOIN */ n_x, n_a FROM r FULL JOIN s ON x = a AND r.ts < s.ts", 1),
    ("SELECT /*+ NO_SPLITJOIN(s) */ count(*) FROM r JOIN s ON x < a", 0),
    ("SELECT count(*) FROM r JOIN s ON concat(n_x, n_a) LIKE '%1row%'", 0),
    ("SELECT count(*) FROM r a JOIN r b ON a.x < b.x JOIN s ON b.x / 2 < s.a", 2),
]


def _stream(seed: int, rows: int, column: str) -> pa.Table:
    rng = random.Random(seed)
    return pa.table({"ts": sorted(rng.randrange(1000) for _ in range(rows)),
                     column: [rng.randrange(100) for _ in range(rows)],
                     f"n_{column}": [f"row {i}" for i in range(rows)]})
#: Streams, each as tables too.
PLAIN_STREAMS = [
    "SELECT n_x, n_a, r.at FROM r JOIN s ON abs(x - a) <= 3 AND r.at BETWEEN s.at - INTERVAL 50 SECONDS AND s.at",
    "SELECT n_x, n_a, r.at FROM r, s WHERE x BETWEEN a - 1 AND a + 1",
]


def _sorted(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


class Joins:
    """The joins of two streams, in ``spark``, with files in ``folder``."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder = spark, folder
        self.r, self.s = _stream(1, 300, "x"), _stream(2, 250, "a")
        self.frames = [self._frame(table, name) for table, name in ((self.r, "r"), (self.s, "s"))]

    def _frame(self, table: pa.Table, name: str) -> DataFrame:
        path = self.folder / f"{name}.parquet"
        pq.write_table(table, path)
        return self.spark.read.parquet(str(path)).repartition(3)

    def golden(self, window: str = _WINDOW, **arguments: Any) -> list[tuple[Any, ...]]:
        """The rows of the golden model, sorted."""
        result = splitjoin.join(self.r, self.s, on=_ON, window=window, time="ts", device="golden", **arguments)
        return sorted((tuple(row.values()) for row in result.table.to_pylist()), key=repr)

    def batch(self, window: str = _WINDOW, on: Any = _ON, partitions: int | None = None, **arguments: Any) -> None:
        """Compare a batch join with the golden model."""
        ties = {"r": "n_x", "s": "n_a"} if "ROWS" in window else ()
        found = stream_join(*self.frames, on=on, window=window, time="ts", partitions=partitions, ties=ties,
                            **arguments).collect()
        assert sorted(map(tuple, found), key=repr) == self.golden(window, **arguments)

    def streaming(self, how: str) -> None:
        """Compare a streaming join that is started three times with the golden model."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        joined = stream_join(*self._streams(root), on=_ON, window=_WINDOW, time="ts", late=0, how=how, groups=2)
        rows = [row for row in self._restarted(joined, root) if "end" not in tuple(row)]
        assert rows == self.golden(how=how), f"{len(rows)} rows for {len(self.golden(how=how))}"

    def _streams(self, root: Path) -> list[DataFrame]:
        """The streams of the files that are below ``root``, or will be."""
        for name in "rs":
            (root / name).mkdir(exist_ok=True)
        return [self.spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(root / name))
                for frame, name in zip(self.frames, "rs", strict=True)]

    def _restarted(self, joined: DataFrame, root: Path) -> list[tuple[Any, ...]]:
        """The rows of a query that is started three times, while files are added below ``root``."""
        cuts = [self.r["ts"][len(self.r) * n // _FILES].as_py() for n in range(1, _FILES)]
        for number in range(_FILES + 1):
            for table, name in ((self.r, "r"), (self.s, "s")):
                path = root / name / f"{number}.parquet"
                if number == _FILES:  # a row that decides all others
                    far = pa.table([[10**6], [10**6 if name == "r" else -10**6], ["end"]], names=table.schema.names)
                    pq.write_table(far, path)
                else:
                    begin, end = [-1, *cuts][number], [*cuts, 1000][number]
                    mine = [begin <= ts < end for ts in table["ts"].to_pylist()]
                    pq.write_table(table.filter(pa.array(mine)), path)
                os.utime(path, (1.7e9 + number, 1.7e9 + number))  # Spark reads files by their age
            if number % 2 or number == _FILES:
                query = joined.writeStream.format("parquet").option("path", str(root / "rows")).option(
                    "checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True).start()
                assert query.awaitTermination(300), "the query does not end"
                assert query.exception() is None, str(query.exception())
        return _sorted(self.spark.read.parquet(str(root / "rows")))

    def plain_streams(self) -> None:
        """Compare streams in plain SQL, and Spark's operators on joined rows, with Spark's rows of whole tables."""
        self.spark.conf.set("spark.splitjoin.sql.enabled", "false")
        for frame, name in zip(self.frames, "rs", strict=True):
            frame.selectExpr("*", "timestamp_seconds(ts) at").createOrReplaceTempView(name)
        for pairs in PLAIN_STREAMS:
            text = (f"SELECT window.start begin, count(*) n, sum(hash(n_x, n_a)) hashes FROM ({pairs}) "
                    f"GROUP BY window(at, '50 seconds')")
            root = Path(tempfile.mkdtemp(dir=self.folder))
            for stream, name in zip(self._streams(root), "rs", strict=True):
                stream.selectExpr("*", "timestamp_seconds(ts) at").withWatermark(
                    "at", "10 seconds").createOrReplaceTempView(f"{name}_stream")
            self.spark.conf.set("spark.splitjoin.sql.enabled", "true")
            streamed = self.spark.sql(text.replace("FROM r JOIN s", "FROM r_stream r JOIN s_stream s").replace(
                "FROM r,", "FROM r_stream r,"))
            plan = self.spark._jsparkSession.sessionState().optimizer().execute(
                streamed._jdf.queryExecution().analyzed()).toString()
            assert plan.count("splitjoin[") == 1, f"{pairs}: {plan}"
            found = self._restarted(streamed, root)
            self.spark.conf.set("spark.splitjoin.sql.enabled", "false")
            own = _sorted(self.spark.sql(text))
            assert found == own, f"{pairs}: {len(found)} windows for {len(own)}, {found[:2]}, {own[:2]}"
            assert own, pairs
        self.spark.conf.set("spark.splitjoin.sql.enabled", "true")

    def conditions(self) -> None:
        """Read conditions of Columns."""
        for make, text in CONDITIONS:
            if VERSION < (4, 0) and ("nullif" in text or "date_diff('day'" in text):
                continue  # Spark 3.5's own function takes no column by name, and its parser no unit in quotes
            assert condition(make(F, F.col), R, S) == predicate(text, R, S), text

    def plain_sql(self) -> None:
        """Compare what `splitjoin.SplitJoinExtensions` does with Spark itself."""
        for frame, name in zip(self.frames, "rs", strict=True):
            frame.createOrReplaceTempView(name)
        for text, joins in PLAIN_SQL:
            rows = []
            for enabled in (True, False):
                self.spark.conf.set("spark.splitjoin.sql.enabled", str(enabled).lower())
                frame = self.spark.sql(text)
                plan = str(frame._jdf.queryExecution().optimizedPlan().toString())
                assert plan.count("splitjoin[") == joins * enabled, f"{text}: {plan}"
                rows.append(_sorted(frame))
            assert rows[0] == rows[1], f"{text}: {len(rows[0])} rows for {len(rows[1])}"
            assert rows[0], text

    def refused(self) -> None:
        """Look that what a version lacks is refused by its name."""
        if VERSION >= (4, 2):
            return
        try:
            replay(self.spark, self.folder / "r.parquet", time="ts")
        except splitjoin.UnsupportedError as error:
            assert "needs Spark 4.2" in str(error)
        else:
            raise AssertionError("replay must be refused")


def main(version: str, only: Sequence[str] = ()) -> int:
    assert pyspark.__version__ == version, f"PySpark {pyspark.__version__} is imported"
    folder = Path(tempfile.mkdtemp())
    spark = local_session("splitjoin on each Spark", cores=2, log=folder / "log",
                          config={"spark.sql.shuffle.partitions": "2", "spark.jars": str(spark_jar()),
                                  "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
                                  "spark.splitjoin.sql.minComparisons": "0",
                                  "spark.splitjoin.sql.rowsPerTask": "1"})
    joins = Joins(spark, folder)
    fold = {"n": "count(*)", "most": "max(s.a)"}
    steps: dict[str, Callable[[], None]] = {
        "plain streams": joins.plain_streams,  # first, as `stream_join` would tell its tasks the checkpoint
        "plain SQL": joins.plain_sql,
        "batch": joins.batch, "7 partitions": lambda: joins.batch(partitions=7),
        "rows": lambda: joins.batch("ROWS 20", partitions=5),
        **{how: (lambda how=how: joins.batch(how=how)) for how in ("left", "full", "anti")},  # type: ignore[misc]
        "aggregates": lambda: joins.batch(by="r", aggregate=fold),
        "columns": lambda: joins.batch(on=F.abs(F.col("r.x") - F.col("s.a")) <= 3), "conditions": joins.conditions,
        **{f"streaming {how}": (lambda how=how: joins.streaming(how)) for how in ("inner", "left")},  # type: ignore[misc]
        "refused": joins.refused,
    }
    failed = 0
    for name, step in steps.items():
        if only and name not in only:
            continue
        try:
            step()
        except Exception as error:  # the other steps are to run too
            failed += 1
            print(f"Spark {version}  FAILED  {name}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
        else:
            print(f"Spark {version}  passed  {name}", flush=True)
    spark.stop()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
