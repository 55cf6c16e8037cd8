"""The joins of bench/first_hour.py on one engine, in a process of its own: python bench/hour_joins.py ENGINE JOIN LIMIT

Reads r.parquet and s.parquet in the working folder, joins twice, and prints seconds, pairs and memory as JSON. It
imports nothing of the project but splitjoin itself, as Pathway has an environment without it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPLITJOIN = "splitjoin"
#: Seconds of CPU time that a process may take.
LIMIT = 40
#: Bytes that a process may have.
MEMORY = 10 << 30
#: Join → its condition and window for splitjoin.
JOINS: dict[str, dict[str, str]] = {
    "key and time: equal k, within 1,000 of time": {"on": "r.k = s.k", "window": "RANGE 1000", "time": "ts"},
    "two bands within 50,000 of time": {"on": "abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", "window": "RANGE 50000",
                                        "time": "ts"},
    "one BETWEEN, no window": {"on": "r.at BETWEEN s.low AND s.high", "window": ""},
}
KEY, BANDS, BETWEEN = JOINS

#: Only one range as two inequalities, for the IEJoin of DuckDB and of Polars, and the others as filters: with all of
#: them as inequalities, both take many times as long.
_DUCKDB = {
    KEY: "r.k = s.k AND s.ts BETWEEN r.ts - 1000 AND r.ts + 1000",
    BANDS: "s.a BETWEEN r.x - 10 AND r.x + 10 AND abs(r.y - s.b) <= 10 AND abs(r.ts - s.ts) <= 50000",
    BETWEEN: "r.at BETWEEN s.low AND s.high",
}


def splitjoin(r: Any, s: Any, join: str) -> Callable[[], int]:
    """The default device."""
    import splitjoin

    call = {**JOINS[join], "window": JOINS[join]["window"] or f"ROWS {len(r)}"}
    return lambda: len(splitjoin.join(r, s, **call))  # type: ignore[arg-type]  # of plain texts


def duckdb(r: Any, s: Any, join: str) -> Callable[[], int]:
    """DuckDB, over Arrow tables."""
    import duckdb

    db = duckdb.connect()
    db.execute("SET threads = 2")
    db.register("r_in", r)
    db.register("s_in", s)
    db.execute("CREATE TABLE r AS FROM r_in")
    db.execute("CREATE TABLE s AS FROM s_in")
    text = f"SELECT r.*, s.* FROM r JOIN s ON {_DUCKDB[join]}"
    return lambda: len(db.sql(text).to_arrow_table())


def polars(r: Any, s: Any, join: str) -> Callable[[], int]:
    """Polars' ``join_where`` by one range and filters; with an equality its ``join`` and a filter."""
    import polars as pl

    left: Any = pl.from_arrow(r)
    right: Any = pl.from_arrow(s)
    right = right.rename({"ts": "ts_s", "k": "k_s"})
    a, b, x, y, ts = (pl.col(name) for name in ("a", "b", "x", "y", "ts"))
    near = pl.col("ts_s").is_between(ts - 1000, ts + 1000)
    bands = [a >= x - 10, a <= x + 10, (b - y).abs() <= 10, (pl.col("ts_s") - ts).abs() <= 50_000]
    if join == KEY:
        return lambda: len(left.lazy().join(right.lazy(), left_on="k", right_on="k_s").filter(near).collect(
            engine="streaming"))
    if join == BETWEEN:
        return lambda: len(left.join_where(right, pl.col("at") >= pl.col("low"), pl.col("at") <= pl.col("high")))
    return lambda: len(left.lazy().join_where(right.lazy(), *bands).collect(engine="streaming"))


def pathway(r: Any, s: Any, join: str) -> Callable[[], int] | None:
    """Pathway's ``interval_join``, its equalities as keys and its other conditions as a filter behind it."""
    if join == BETWEEN:
        return None  # an interval has constant ends
    import pathway as pw

    left, right = (pw.debug.table_from_pandas(table.to_pandas()) for table in (r, s))

    def once() -> int:
        if join == KEY:
            found = left.interval_join(right, left.ts, right.ts, pw.temporal.interval(-1000, 1000),
                                       left.k == right.k).select(x=left.x)
        else:
            found = left.interval_join(right, left.ts, right.ts, pw.temporal.interval(-50_000, 50_000)).select(
                x=left.x, y=left.y, a=right.a, b=right.b)
            found = found.filter((pw.this.x - pw.this.a <= 10) & (pw.this.a - pw.this.x <= 10)
                                 & (pw.this.y - pw.this.b <= 10) & (pw.this.b - pw.this.y <= 10))
        return int(pw.debug.table_to_pandas(found.reduce(n=pw.reducers.count())).n.iloc[0])

    return once


def spent() -> float:
    """CPU seconds of this process. Under a limit of them, `time.process_time` advances with the system's ticks only."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak() -> float:
    """The most memory of this process so far in MiB; by `getrusage` it would be at least that of the one before it."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def main(engine: str, join: str, limit: str) -> None:
    """Join twice, and print a line before the first run and one after each; ``limit``: the most seconds of CPU time."""
    import pyarrow.parquet as pq

    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 10))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    r, s = (pq.read_table(f"{name}.parquet") for name in "rs")
    call = {"splitjoin": splitjoin, "duckdb": duckdb, "polars": polars, "pathway": pathway}[engine](r, s, join)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of what made the tables does not count
    print(json.dumps({"before": peak()}), flush=True)
    for _ in range(2 if call is not None else 0):
        assert call is not None
        wall, cpu = time.perf_counter(), spent()
        pairs = call()
        print(json.dumps({"wall": time.perf_counter() - wall, "cpu": spent() - cpu, "pairs": pairs,
                          "peak": peak()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
