"""Joins of whole tables by threads: time by the clock and CPU seconds, beside DuckDB and Polars with as many threads.
Run: python -m bench.table_threads

Beside the numbers of threads stands "auto", as splitjoin chooses without being told. ``--quick`` takes 200,000 rows a
side. DuckDB and Polars are left out where they are not installed. A minute and a half on 16 cores.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of
from bench.table_cases import JOINS
from splitjoin.base.processors import processors

#: Join → rows a side.
CASES = {"inner, one band": (1_000_000, 5_000_000, 10_000_000), "as-of by key": (1_000_000, 5_000_000, 10_000_000),
         "overlap by key": (1_000_000,), "left, a band": (1_000_000,), "sum over a band of 20 partners": (1_000_000,)}
#: The number of threads where none is asked for.
AUTO = "auto"
#: Rows up to which there are more runs, and rivals with one thread too.
FEW = 1_000_000
#: DuckDB, beyond these seconds for one run, is not measured again.
PATIENCE = 4.0
CLOCK = "time by the clock, from tables in memory to the result in memory, the least of the runs after the first"
CPU = "CPU seconds of all threads in the same run"


def least(call: Callable[[], Any], runs: int) -> tuple[float, float, Any]:
    """Time by the clock, CPU seconds of the same run, and the result."""
    best, found = (float("inf"), 0.0), call()
    for _ in range(runs):
        began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        found = call()
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        best = min(best, (took, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime))
        if took > PATIENCE:
            break
    return *best, found


def note(out: Recorder, engine: str, join: str, rows: int, threads: int | str, clock: float, cpu: float,
         found: int) -> None:
    """One engine's figures."""
    config = {"join": join, "rows": rows, "engine": engine, "threads": threads, "processors": processors(),
              "result": found}
    out.add("table_clock_seconds", clock, "s", config, CLOCK)
    out.add("table_thread_cpu_seconds", cpu, "s", config, CPU)


def rivals(out: Recorder, join: str, rows: int, tables: tuple[pa.Table, pa.Table], most: int) -> int | None:
    """DuckDB and Polars, with one thread and with ``most``. Returns the number of rows, if one of them is there."""
    found = None
    of = JOINS[join]
    if importlib.util.find_spec("duckdb"):
        import duckdb

        db = duckdb.connect()
        for name, table in zip("rs", tables, strict=True):
            db.register("incoming", table)
            db.execute(f"CREATE TABLE {name} AS FROM incoming")
        for threads in sorted({1, most} if rows <= FEW else {most}):
            db.execute(f"SET threads = {threads}")
            clock, cpu, result = least(lambda: db.sql(of.duckdb).to_arrow_table(), 1)
            found = len(result)
            note(out, "duckdb", join, rows, threads, clock, cpu, found)
        db.close()
    if importlib.util.find_spec("polars") and of.polars is not None and rows <= FEW:
        import polars as pl

        write = of.polars
        left, right = (pl.from_arrow(t) for t in tables)
        clock, cpu, result = least(lambda: write(pl, left, right).to_arrow(), 1)
        found = len(result)
        note(out, "polars", join, rows, pl.thread_pool_size(), clock, cpu, found)
    return found


def joined(join: str, tables: tuple[pa.Table, pa.Table], threads: int | str) -> pa.Table:
    """The rows of splitjoin."""
    asked = {} if threads == AUTO else {"threads": threads}
    return splitjoin.join(*tables, **JOINS[join].call, **asked).table


def measure(out: Recorder, join: str, rows: int, threads: list[int]) -> None:
    """One join of tables with so many rows. Asserts that the results are equal, as all threads' are in order too."""
    tables = JOINS[join].tables(rows)
    first: pa.Table | None = None
    for n in (*threads, AUTO):
        clock, cpu, table = least(partial(joined, join, tables, n), 3 if rows <= FEW else 1)
        if first is None:
            first = table
        assert table.equals(first), (join, rows, n)
        note(out, "splitjoin", join, rows, n, clock, cpu, len(table))
    found = rivals(out, join, rows, tables, threads[-1])
    assert first is not None and found in (None, len(first)), (join, rows, found)


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "")
    options.add_argument("--only", metavar="TEXT", default="", help="measure the joins with this in their names")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="numbers of threads")
    chosen = options.parse_args()
    threads = sorted(chosen.threads)
    os.environ["POLARS_MAX_THREADS"] = str(threads[-1])
    for rows in (200_000,) if chosen.quick else sorted({n for sizes in CASES.values() for n in sizes}):
        for join, sizes in CASES.items():
            if chosen.only in join and (chosen.quick or rows in sizes):
                out = Recorder("table_threads", quick=chosen.quick, part=f"{join}, {rows:,} rows")
                measure(out, join, rows, threads)
                out.write()


if __name__ == "__main__":
    main()
