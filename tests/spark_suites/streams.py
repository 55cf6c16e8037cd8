"""The cases of Spark's suites of streaming joins: StreamingInnerJoinSuite, StreamingOuterJoinSuite,
StreamingFullOuterJoinSuite, StreamingLeftSemiJoinSuite and StreamingAsOfJoinSuite of Spark 4.3.

Each is a query and the rows of its micro-batches. Spark's join says what the answer is. Left out are cases that look at
plans and state stores, or read checkpoints of other versions. A step is what a case adds before it looks at the answer,
and here a micro-batch; halfway the query starts anew, as many of the cases demand.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ..spark_streams.files import Outcome, run

_HINT = "/*+ SPLITJOIN */"
_TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}


@dataclass(frozen=True)
class Input:
    """A stream: its columns, what is made of them, the column and delay of its watermark, and what is made of that.

    ``of``: the number of the input whose rows it has, if not its own.
    """

    columns: str
    first: Sequence[str]
    mark: tuple[str, str] | None = None
    then: Sequence[str] = ("*",)
    of: str = ""


@dataclass(frozen=True)
class Case:
    """A case of a suite: the streams by name, a query with a place for a hint, and rows of each stream by steps."""

    name: str
    inputs: Mapping[str, Input]
    query: str
    steps: Sequence[Mapping[str, Sequence[Any]]]
    settings: Mapping[str, str] = field(default_factory=dict)
    setup: Sequence[str] = ()

    def check(self, spark: SparkSession, folder: Path) -> bool:
        """Assert that both joins give the same rows in each micro-batch; returns whether splitjoin ran its own."""
        for name, source in self.inputs.items():
            if not source.of:
                for number, step in enumerate(self.steps):
                    self._write(folder / "waiting" / name / f"{number}.parquet", source, step.get(name, ()), number)
        ours, theirs = self._outcome(spark, folder, True), self._outcome(spark, folder, False)
        if isinstance(theirs, Outcome):
            assert isinstance(ours, Outcome), f"{self.name}: Spark runs it, and the extension does not: {ours}"
            assert ours.rows == theirs.rows, f"{self.name}: {ours.rows} here, {theirs.rows} by Spark"
            return ours.here
        assert not isinstance(ours, Outcome), f"{self.name}: Spark refuses it: {theirs}"
        return False

    def _outcome(self, spark: SparkSession, folder: Path, enabled: bool) -> Outcome | str:
        """The rows, or why the query is refused, which both say in words of their own."""
        name = "here" if enabled else "spark"
        sides = [name for name, source in self.inputs.items() if not source.of]
        config = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2", **self.settings}
        try:
            return run(spark, folder, name, sorted({-(-len(self.steps) // 2), len(self.steps)}), sides, config,
                       enabled, lambda: self._frame(spark, folder / name, enabled))
        except PySparkException as error:
            return str(error)

    def _frame(self, spark: SparkSession, folder: Path, enabled: bool) -> DataFrame:
        for statement in self.setup:
            spark.sql(statement)
        for name, source in self.inputs.items():
            stream = spark.readStream.schema(source.columns).option("maxFilesPerTrigger", 1).parquet(
                str(folder / (source.of or name)))
            stream = stream.selectExpr(*source.first)
            if source.mark is not None:
                stream = stream.withWatermark(*source.mark)
            stream.selectExpr(*source.then).createOrReplaceTempView(name)
        return spark.sql(self.query.replace("{hint}", _HINT if enabled else ""))

    @staticmethod
    def _write(path: Path, source: Input, rows: Sequence[Any], number: int) -> None:
        """A file of ``rows``, an empty one if there are none: so both streams of a step come in one micro-batch."""
        path.parent.mkdir(parents=True, exist_ok=True)
        names = [column.split() for column in source.columns.split(", ")]
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in names])
        values = [row if isinstance(row, tuple) else (row,) for row in rows]
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema)
        pq.write_table(table, path)
        os.utime(path, (1.6e9 + number, 1.6e9 + number))  # Spark reads files by their age


def _numbers(side: str, factor: int, *, delay: str = "10 seconds", then: Sequence[str] = ("*",)) -> Input:
    """A stream of numbers that are keys and seconds."""
    return Input("value int", [f"value {side}Key", f"timestamp_seconds(value) {side}Time",
                               f"value * {factor} {side}Value"],
                 (f"{side}Time", delay) if delay else None, then)


def _windowed(side: str, factor: int, *, delay: str = "10 seconds", value: str = "{0}Value") -> Input:
    """Such a stream with the windows of ten seconds in which its rows are."""
    return _numbers(side, factor, delay=delay, then=[
        f"{side}Key", f"window({side}Time, '10 second') {side}Window", f"{value.format(side)} {side}Value"])


def _keyed(side: str, factor: int, delay: str = "10 seconds") -> Input:
    """A stream of keys and seconds."""
    return Input("k int, t bigint", [f"k {side}Key", f"timestamp_seconds(t) {side}Time", f"k * {factor} {side}Value"],
                 (f"{side}Time", delay))


_EACH = {"LEFT SEMI": "lKey, CAST(lWindow.end AS long), lValue",
         "": "lKey, rKey, CAST(coalesce(lWindow, rWindow).end AS long), lValue, rValue"}
_WINDOWS = "SELECT {{hint}} {columns} FROM l {kind} JOIN r ON lKey = rKey AND lWindow = rWindow {more}"


def _by_windows(kind: str, more: str = "") -> str:
    return _WINDOWS.format(columns=_EACH.get(kind, _EACH[""]), kind=kind, more=more)


def _by_times(kind: str, times: str) -> str:
    columns = "lKey, CAST(lTime AS int)" if kind == "LEFT SEMI" else (
        "lKey, rKey, CAST(lTime AS int), CAST(rTime AS int)")
    return f"SELECT {{hint}} {columns} FROM l {kind} JOIN r ON lKey = rKey AND {times}"


def _both(left: Sequence[Any], right: Sequence[Any]) -> dict[str, Sequence[Any]]:
    return {"l": left, "r": right}


_KINDS = {"left outer": "LEFT", "right outer": "RIGHT", "full outer": "FULL", "left semi": "LEFT SEMI"}
_PAIR = {"l": _windowed("l", 2), "r": _windowed("r", 3)}
_WITH_TEXT = {"l": _windowed("l", 2), "r": _windowed("r", 3, value="CAST({0}Value AS string)")}
_TIMES = {"l": _keyed("l", 2), "r": _keyed("r", 3)}
_SELF = {
    "l": Input("k int, t bigint", ["k lKey", "timestamp_seconds(t) lTime"], ("lTime", "5 seconds")),
    "r": Input("k int, t bigint", ["k rKey", "timestamp_seconds(t) rTime"], ("rTime", "5 seconds"),
               ["*"], of="l")}
_EVEN = {"l": _SELF["l"], "r": Input("k int, t bigint", [
    "CASE WHEN k % 2 = 0 THEN k END rKey", "timestamp_seconds(t) rTime"], ("rTime", "5 seconds"), ["*"], of="l")}
_FIFTEEN = [{"l": [(n, n) for n in range(first, first + 5)]} for first in (1, 6, 11)]
_SELF_TIMES = "rTime >= lTime AND rTime <= lTime + INTERVAL 5 SECONDS"


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def _commented(side: str, delay: str) -> Input:
    return Input("ts timestamp, id string, note string", [f"ts {side}Time", f"id {side}Key", f"note {side}Note"],
                 (f"{side}Time", delay))


_COMMENTS = ("SELECT {hint} * FROM l LEFT JOIN r ON lKey = rKey "
             "AND lTime BETWEEN rTime - INTERVAL 30 SECONDS AND rTime + INTERVAL 30 SECONDS")


def _nullable(side: str, factor: int) -> Input:
    return Input("k int, t int", [f"k {side}Key1", f"t {side}Key2", f"timestamp_seconds(t) {side}Time",
                                  f"t * {factor} {side}Value"], (f"{side}Time", "10 seconds"),
                 [f"{side}Key1", f"{side}Key2", f"window({side}Time, '10 second') {side}Window", f"{side}Value"])


_NULLABLE = ("SELECT {hint} lKey1, rKey1, lKey2, rKey2, CAST(lWindow.end AS long), lValue, rValue FROM l LEFT JOIN r "
             "ON lKey1 <=> rKey1 AND lKey2 = rKey2 AND lWindow = rWindow")
_BETWEEN = "lTime BETWEEN rTime - {0} AND rTime + {0}"
_QUOTES = ("CREATE OR REPLACE TEMP VIEW quotes(quote_time, symbol, bid_price) AS VALUES "
           "(TIMESTAMP '2026-06-29 10:00:00Z', 'AAPL', 18010), (TIMESTAMP '2026-06-29 10:00:07Z', 'AAPL', 18015), "
           "(TIMESTAMP '2026-06-29 10:00:08Z', 'MSFT', 42050)")
_TRADES = {"t": Input("trade_time timestamp, symbol string, quantity int", ["*"])}
_ASOF = ("SELECT {{hint}} t.trade_time, t.symbol, t.quantity, q.bid_price FROM t {kind} ASOF JOIN quotes q "
         "MATCH_CONDITION (t.trade_time >= q.quote_time) ON t.symbol = q.symbol")

CASES = (
    Case("inner join on a column without time", {
        side: _numbers(side, factor, delay="") for side, factor in (("l", 2), ("r", 3))},
        "SELECT {hint} lKey, lValue, rValue FROM l JOIN r ON lKey = rKey",
        [{"l": [1]}, {"r": [1, 10]}, {"l": [10]}, {"r": [1]}, {"l": [1]}, _both([100], [100])]),
    Case("inner join on windows without watermark", {
        "l": _windowed("l", 2, delay=""), "r": _windowed("r", 3, delay="")}, _by_windows(""),
        [{"l": [1]}, {"r": [1]}, {"l": [25]}, {"r": [25]}, {"l": [1]}, {"l": [5]}, {"r": [5]}]),
    Case("inner join on windows with watermark", {"l": _windowed("l", 2), "r": _windowed("r", 3, delay="")},
         _by_windows(""), [{"l": [1]}, {"r": [1]}, {"l": [25]}, {"r": [25]}, {"r": [1]}, {"l": [5]}]),
    Case("inner join with a time range on one side", _TIMES, _by_times("", "lTime < rTime - INTERVAL 5 SECONDS"), [
        {"l": [(1, 5)]}, {"r": [(1, 11)]}, {"r": [(1, 10)]}, {"l": [(1, 3), (1, 30)]}, {"r": [(0, 30)]},
        {"r": [(1, 20), (1, 21), (1, 28)]}, {"l": [(1, 20), (1, 21)]}]),
    Case("inner join with a time range on both sides", {"l": _keyed("l", 2, "20 seconds"),
                                                       "r": _keyed("r", 3, "30 seconds")},
         _by_times("", "lTime BETWEEN rTime - INTERVAL 10 SECONDS AND rTime + INTERVAL 5 SECONDS"), [
             {"l": [(1, 20)]}, {"r": [(1, t) for t in (14, 15, 25, 26, 30, 31)]}, {"r": [(1, 60)]},
             {"l": [(1, t) for t in (49, 50, 65, 66)]}, {"l": [(1, 30), (1, 31)]}, {"r": [(1, 80)]},
             {"r": [(1, 46), (1, 50)]}]),
    Case("inner join without an equality", {"l": _numbers("l", 2, delay=""), "r": _numbers("r", 3, delay="")},
         "SELECT {hint} * FROM l JOIN r ON lKey < rKey", [_both([1], [2])]),
    Case("self join", {"l": Input("value int", ["value % 5 lKey", "value lValue"]),
                       "r": Input("value int", ["value % 5 rKey", "value rValue"], of="l")},
         "SELECT {hint} lKey, lValue, rValue FROM l JOIN r ON lKey = rKey", [{"l": [1, 2]}, {"l": [3, 6]}]),
    Case("join of three streams", {side: _numbers(side, factor, delay="") for side, factor in (
        ("l", 2), ("m", 3), ("r", 5))},
        "SELECT {hint} lKey, lValue, mKey, mValue, rKey, rValue FROM l JOIN m ON lKey = mKey JOIN r ON rKey = mKey",
        [{"l": [1, 5], "m": [1, 5, 10], "r": [5, 10]}]),
    Case("join on two columns of a stream that is dealt anew", {
        "l": _numbers("l", 2, delay=""), "r": _numbers("r", 2, delay="")},
        "SELECT {hint} lKey FROM l JOIN (SELECT /*+ REPARTITION(3, rValue) */ * FROM r) r "
        "ON lKey = rKey AND lValue = rValue", [_both(range(1, 1001), range(1, 1001))]),
    Case("left outer early state exclusion on left", _WITH_TEXT, _by_windows("LEFT", "AND lValue > 4"),
         [_both([1, 2, 3], [3, 4, 5]), _both([20], [21]), {"r": [20]}]),
    Case("left outer early state exclusion on right", _WITH_TEXT, _by_windows("LEFT", "AND CAST(rValue AS int) > 7"),
         [_both([3, 4, 5], [1, 2, 3]), _both([20], [21]), {"r": [20]}]),
    Case("right outer early state exclusion on left", _WITH_TEXT, _by_windows("RIGHT", "AND lValue > 4"),
         [_both([1, 2, 3], [3, 4, 5]), _both([20], [21]), {"r": [20]}]),
    Case("right outer early state exclusion on right", _WITH_TEXT, _by_windows("RIGHT", "AND CAST(rValue AS int) > 7"),
         [_both([3, 4, 5], [1, 2, 3]), _both([20], [21]), {"r": [20]}]),
    *(Case(f"windowed {name} join", _PAIR, _by_windows(kind), [
        _both(range(1, 6), range(3, 8)), _both([21], [22]), {"l": [22]}, {"l": [1]}, {"r": [5]}])
      for name, kind in _KINDS.items()),
    *(Case(f"{name} join with a watermark and a time range", _TIMES, _by_times(
        kind, _BETWEEN.format("INTERVAL 5 SECONDS")), [
            {"l": [(1, 5), (3, 5)]}, {"r": [(1, 10), (2, 5)]}, {"r": [(1, 11)]}, {"r": [(1, 9)]},
            {"l": [(1, 7), (1, 30)]}, {"r": [(0, 30)]}]) for name, kind in _KINDS.items()),
    *(Case(f"{name} join with a time range of {bound}", {
        "l": _keyed("l", 2, "10 minutes"), "r": _keyed("r", 3, "10 minutes")},
        _by_times(kind, _BETWEEN.format(bound)), [
            {"l": [(1, 210), (3, 5)]}, {"r": [(1, 300), (2, 5)]}, {"r": [(1, 450)]}, {"l": [(1, 260), (1, 1800)]},
            {"r": [(0, 1800)]}])
      for name, kind in (("left outer", "LEFT"), ("right outer", "RIGHT"))
      for bound in ("INTERVAL 3 MINUTES 30 SECONDS", "INTERVAL '3:30' MINUTE TO SECOND")),
    Case("left outer join with a condition violated that is no key", _PAIR, _by_windows(
        "LEFT", "AND lValue > 10 AND (rValue < 300 OR rValue > 1000)"), [
            _both([1, 2, 3], [1, 2, 3]), _both([20], [21]), {"r": [20]}, _both([40, 41], [40, 41]), _both([70], [71]),
            {"r": [70]}, _both([101, 102, 103], [101, 102, 103]), _both([1000], [1001])]),
    *(Case(f"self {name} join, of every other row", _EVEN, _by_times(kind, _SELF_TIMES), _FIFTEEN)
      for name, kind in {"inner": "", **_KINDS}.items()),
    Case("union with a join", {"l": _numbers("l", 2), "r": _numbers("r", 3), "u": Input("value int", ["value"])},
         "SELECT {hint} value, value, value FROM u UNION ALL "
         "SELECT {hint} lKey, lValue, rValue FROM l JOIN r ON lKey = rKey AND lTime = rTime", [
             {"u": [11, 12, 13], "l": range(11, 16), "r": range(13, 18)},
             {"u": [21, 22, 23], "l": range(21, 26), "r": range(23, 28)}]),
    Case("outer join of rows that are evicted in the batch in which they come", {
        "l": _commented("l", "2 minutes"), "r": _commented("r", "4 minutes")}, _COMMENTS, [_both(
            [(_instant(t), "abc", note) for t, note in (
                ("2020-01-01 00:00:00", "none"), ("2020-01-02 00:00:00", "with A"), ("2020-01-02 01:00:00", "with B"))],
            [(_instant(t), "abc", note) for t, note in (
                ("2020-01-02 00:00:10", "A"), ("2020-01-02 00:59:59", "B"), ("2020-01-02 02:00:00", "C"))])]),
    Case("left outer join of a key that is never NULL with one that may be", {
        "l": _nullable("l", 2), "r": _nullable("r", 3)}, _NULLABLE,
        [_both([(1, n) for n in range(1, 6)], [(1, n) for n in range(3, 7)]), _both([(1, 21)], [(1, 22)])]),
    Case("left outer join of a key that may be NULL with one that never is", {
        "l": _nullable("l", 2), "r": _nullable("r", 3)}, _NULLABLE,
        [_both([(None if n == 2 else 1, n) for n in range(1, 6)], [(1, n) for n in range(3, 7)]),
         _both([(1, 21)], [(1, 22)])]),
    Case("left outer join of keys that may be NULL", {"l": _nullable("l", 2), "r": _nullable("r", 3)}, _NULLABLE,
         [_both([(None if n % 2 == 0 else 1, n) for n in range(1, 5)] + [(1, 5)],
                [(1, 3), (None, 4), (1, 5), (1, 6)]), _both([(1, 21)], [(1, 22)])]),
    Case("outer join where rows come and go in one micro-batch", {
        "l": _commented("l", "0 seconds"), "r": _commented("r", "0 seconds")}, _COMMENTS, [
            *(_both([(_instant(f"2020-01-02 0{n}:00:00"), "abc", f"left {n}")],
                    [(_instant(f"2020-01-02 0{n}:01:00"), "abc", f"right {n}")]) for n in (0, 1)),
            {"l": [(_instant("2020-01-02 01:30:00"), "abc", "left 2")]},
            {"r": [(_instant("2020-01-02 01:30:10"), "abc", "with left 2")]}],
        {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}),
    *(Case(f"{name} early state exclusion on {side}", _WITH_TEXT, _by_windows(kind, more), [
        rows, _both([20], [21]), {"r": [20]}]) for name, kind in (("full outer", "FULL"), ("left semi", "LEFT SEMI"))
      for side, more, rows in (("left", "AND lValue > 4", _both([1, 2, 3], [3, 4, 5])),
                               ("right", "AND CAST(rValue AS int) > 7", _both([3, 4, 5], [1, 2, 3])))),
    *(Case(f"as-of join of a stream and a table{name}", _TRADES, _ASOF.format(kind=kind), [
        {"t": [(_instant("2026-06-29 10:00:05"), "AAPL", 100), (_instant("2026-06-29 10:00:09"), "MSFT", 50)]},
        {"t": [(_instant("2026-06-29 10:00:11"), "AAPL", 200), (_instant("2026-06-29 09:59:59"), "GOOG", 30)]}],
        {"spark.sql.join.asofJoin.enabled": "true"}, (_QUOTES,))
      for name, kind in (("", ""), (", rows without partner", "LEFT"))),
)
