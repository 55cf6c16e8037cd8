"""`RandomStreams`: two random streams and a query over them, run by Spark's own join and by splitjoin's."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.spark import stream_join

from .files import Outcome, run

_KINDS = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI")
_SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int32()), ("x", pa.int32()), ("one", pa.int32()),
                     ("id", pa.int64())])
_SIDES = "lr"


class RandomStreams:
    """The streams and the query of a seed; files are below ``folder``, an empty one.

    Some files lack one side, rows come late, times and keys are NULL now and then, and the query starts again between
    files. Times are near 1970 in some, where Spark's first watermark is.
    """

    def __init__(self, spark: SparkSession, seed: int, folder: Path):
        self.spark, self.folder = spark, folder
        rng = random.Random(seed)
        self.kind = _KINDS[seed % len(_KINDS)]
        begin = rng.choice([-20.0, 0.0, 1.7e9])
        files = rng.randint(3, 5)
        self._late = rng.choice([0.0, 6.0, 14.0])
        for side in _SIDES:
            for n in range(files):
                self._write(rng, side, n, begin + 5 * n, rng.random() < 0.2)
        #: The files at each start of the query.
        self.starts = sorted({*rng.sample(range(1, files), rng.randint(0, min(2, files - 1))), files})
        self.delays = [f"{rng.choice([0, 1500, 4000, 6000])} milliseconds" for _ in _SIDES]
        self.settings = {"spark.sql.streaming.multipleWatermarkPolicy": rng.choice(["min", "max"]),
                         "spark.sql.streaming.statefulOperator.allowMultiple": str(rng.random() < 0.85).lower(),
                         "spark.sql.shuffle.partitions": rng.choice(["1", "2"]),
                         "spark.sql.session.timeZone": "UTC"}
        self.trigger = rng.choice(["all that is there", "as fast as it can"])
        self.equality = rng.random() < 0.7
        back, forth = rng.choice([(5, 5), (2, 9), (20, 0), (-2, 6), (0, 0.0015)])
        lower, upper = rng.choice([(">=", "<="), (">", "<")])
        terms = [f"l.ts {lower} r.due - INTERVAL {forth} SECONDS", f"l.ts {upper} r.due + INTERVAL {back} SECONDS"]
        # Not r.y > 1, which Spark takes for a bound of times, and then keeps the rows of outer joins for ever.
        terms += rng.sample(["l.x <= r.y", "l.x % 3 <> 0", "r.y <> 2"], rng.choice([0, 0, 1, 2]))
        self._terms = terms
        self._where = {"l": rng.choice(["", "", " WHERE ts >= timestamp_millis(3000)", " WHERE x > 0"]), "r": ""}
        self.windows = self.kind in ("INNER", "LEFT") and self._allows_multiple and rng.random() < 0.25
        self.settings["spark.sql.streaming.noDataMicroBatches.enabled"] = str(rng.random() < 0.85).lower()

    @property
    def _allows_multiple(self) -> bool:
        return self.settings["spark.sql.streaming.statefulOperator.allowMultiple"] == "true"

    def _write(self, rng: random.Random, side: str, number: int, begin: float, lacks_rows: bool) -> None:
        rows = []
        for n in range(0 if lacks_rows else rng.randint(1, 9)):
            seconds = begin + rng.uniform(-self._late, 5) * (rng.random() < 0.9)
            ts = None if rng.random() < 0.04 else dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(
                seconds=round(seconds, rng.choice([0, 3, 6])))
            # Spark's full join of streams pairs rows whose keys are NULL.
            key = None if self.kind != "FULL" and rng.random() < 0.1 else rng.randrange(3)
            rows.append({"ts": ts, "k": key, "x": rng.choice([None, *range(5)]), "one": 1, "id": 100 * number + n})
        path = self.folder / "waiting" / side / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), path)
        os.utime(path, (1.6e9 + number, 1.6e9 + number))  # Spark reads files by their age

    def _text(self, hint: bool, kind: str) -> str:
        """The query; Spark's own form of one without an equality has one of constants."""
        equality = ["l.k = r.k2"] if self.equality else [] if hint else ["l.one = r.one2"]
        wanted = "ts, k, x, id" if kind == "LEFT SEMI" else "ts, k, x, id, due, k2, y, id2"
        taken = "/*+ SPLITJOIN */ " if hint and self.equality else ""
        return f"SELECT {taken}{wanted} FROM l {kind} JOIN r ON {' AND '.join([*equality, *self._terms])}"

    def _frame(self, name: str, hint: bool, kind: str) -> DataFrame:
        names = {"l": {}, "r": {"ts": "due", "k": "k2", "x": "y", "one": "one2", "id": "id2"}}
        for side in _SIDES:
            stream = self.spark.readStream.schema("ts timestamp, k int, x int, one int, id bigint").option(
                "maxFilesPerTrigger", 1).parquet(str(self.folder / name / side))
            stream.withWatermark("ts", self.delays[side == "r"]).createOrReplaceTempView(f"marked_{side}")
            chosen = self.spark.sql(f"SELECT * FROM marked_{side}{self._where[side]}")
            chosen.withColumnsRenamed(names[side]).createOrReplaceTempView(side)
        frame = self.spark.sql(self._text(hint, kind))
        return frame.groupBy(F.window("ts", "4 seconds")).count() if self.windows else frame

    def _called(self, name: str) -> DataFrame:
        """The pairs by a call of `stream_join`, whose window is longer than the condition's."""
        self._frame(name, False, "INNER")  # makes the views
        equality = "r.k = s.k2" if self.equality else "r.one = s.one2"
        joined = stream_join(self.spark.table("l"), self.spark.table("r"), on=equality, window="RANGE 30 SECONDS",
                             time=("ts", "due"), watermark="spark", null_time="late")
        terms = " AND ".join(self._terms).replace("l.", "").replace("r.", "")
        return joined.where(terms).select("ts", "k", "x", "id", "due", "k2", "y", "id2")

    def check_call(self) -> None:
        """Assert that a call of `stream_join` gives Spark's pairs, micro-batch by micro-batch.

        It has no micro-batches without data, so Spark has none either; and its watermark is that of the rows it gets.
        Spark's is that of the rows that meet the condition's terms of one side, as its optimizer puts these before the
        watermark: so no query here has other rows.
        """
        self.settings["spark.sql.streaming.noDataMicroBatches.enabled"] = "false"
        self.windows = False
        for side, term in (("l", "l.x % 3 <> 0"), ("r", "r.y <> 2")):
            own = [term.replace("l.", "").replace("r.y", "x")] if term in self._terms else []
            self._where[side] = " WHERE " + " AND ".join(["k IS NOT NULL", "x IS NOT NULL", *own])
        ours, theirs = self.run(hint=False, kind="call"), self.run(hint=False, kind="INNER")
        assert ours.rows == theirs.rows, f"{self}\n{_difference(ours.rows, theirs.rows)}"

    def run(self, *, hint: bool, kind: str = "") -> Outcome:
        """The outcome of the query, by splitjoin with the ``hint``, else by Spark; of another ``kind`` if given, or by
        a "call".
        """
        name = f"{kind or self.kind} {'here' if hint else 'spark'}".replace(" ", "-")
        outcome = run(
            self.spark, self.folder, name, self.starts, _SIDES, self.settings, hint,
            lambda: self._called(name) if kind == "call" else self._frame(name, hint, kind or self.kind),
            at_once=self.trigger == "as fast as it can")
        assert outcome.here or not hint, "Spark has run the join itself"
        return outcome

    def check(self) -> None:
        """Assert that splitjoin gives Spark's rows, micro-batch by micro-batch, and reports as many late ones."""
        ours, theirs = self.run(hint=True), self.run(hint=False)
        assert ours.reported == theirs.reported, self
        if ours.rows == theirs.rows:
            return
        # Spark 4.3 loses rows of a semi join that its inner join finds.
        assert self.kind == "LEFT SEMI", f"{self}\n{_difference(ours.rows, theirs.rows)}"
        assert all(set(theirs.rows[n]) <= set(ours.rows[n]) for n in theirs.rows), self
        expected, given = {}, set[str]()
        for number, rows in sorted(self.run(hint=False, kind="INNER").rows.items()):
            left = {row[:row.index(", due=")] + ")" for row in rows}
            expected[number] = sorted(left - given)
            given |= left
        assert ours.rows == expected, f"{self}\n{_difference(ours.rows, expected)}"

    def __str__(self) -> str:
        return (f"{self._text(True, self.kind)}, {self._where}, {self.delays}, {self.settings}, {self.starts}, "
                f"{self.trigger}")


def _difference(ours: dict[int, list[str]], theirs: dict[int, list[str]]) -> str:
    lines = []
    for number in sorted({*ours, *theirs}):
        a, b = Counter(ours.get(number, [])), Counter(theirs.get(number, []))
        lines += [f"{number}: here alone {list((a - b).elements())}, Spark alone {list((b - a).elements())}"] * (a != b)
    return "\n".join(lines)
