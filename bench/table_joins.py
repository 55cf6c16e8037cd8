"""The joins of bench/whole_tables.py on one engine, in a process of its own, by one thread or as many as are given:
python bench/table_joins.py ENGINE JOIN ROWS RUNS [THREADS]

Prints a line of JSON before the first run, and one after each: CPU and clock seconds, rows, and a sum over all row
numbers of both tables in the result, by which results are compared. A run after the first repeats a short join, and
gives the mean. Nothing of the project but splitjoin and the joins is imported, as some rivals have an environment
without it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.table_cases import JOINS, Join

SPLITJOIN = "splitjoin"
#: Seconds of CPU time that a process may take, and bytes that it may have.
LIMIT, MEMORY = 60, 8 << 30
#: The CPU seconds that a run takes at least, but for the first: it repeats the join until then.
SHORT = 0.1
#: The number of threads of each engine. pandas always has one; Polars reads `POLARS_MAX_THREADS`.
_threads = 1


def splitjoin(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """The default device."""
    import splitjoin

    call = splitjoin.join  # which imports what it needs, as the rivals' modules do when they are imported
    return lambda: call(r, s, **join.call, threads=_threads).table


def duckdb(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """DuckDB with its own tables."""
    import duckdb

    db = duckdb.connect()
    db.execute(f"SET threads = {_threads}")
    for name, table in (("r", r), ("s", s)):
        db.register("incoming", table)
        db.execute(f"CREATE TABLE {name} AS FROM incoming")
    return lambda: db.sql(join.duckdb).to_arrow_table()


def polars(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """Polars."""
    import polars as pl

    left, right = pl.from_arrow(r), pl.from_arrow(s)
    assert join.polars is not None
    write = join.polars
    return lambda: write(pl, left, right).to_arrow()


def pandas(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """The library pandas."""
    import pandas as pd

    left, right = r.to_pandas(), s.to_pandas()
    assert join.pandas is not None
    write = join.pandas
    return lambda: pa.Table.from_pandas(write(pd, left, right), preserve_index=False)


def polars_bio(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """polars-bio, whose chromosomes are texts, with coordinates from 0 and ends excluded."""
    import polars as pl
    import polars_bio as pb

    pb.set_option("datafusion.execution.target_partitions", str(_threads))
    left, right = (pl.DataFrame(t).with_columns(pl.col(c).cast(pl.String))
                   for t, c in ((r, "c"), (s, "d")))
    for frame in (left, right):
        frame.config_meta.set(coordinate_system_zero_based=True)
    assert join.polars_bio is not None
    write = join.polars_bio
    return lambda: write(pb, left, right).to_arrow()


def chdb(r: pa.Table, s: pa.Table, join: Join) -> Callable[[], Any]:
    """chdb, ClickHouse in the process, over its own tables in memory."""
    from chdb import session

    db = session.Session()
    globals().update(r_in=r, s_in=s)
    db.query("CREATE DATABASE t ENGINE = Atomic")
    for name in "rs":
        db.query(f"CREATE TABLE t.{name} ENGINE = Memory AS SELECT * FROM Python({name}_in)")
    text = f"{join.chdb} SETTINGS max_threads = {_threads}".replace(" r ", " t.r r ").replace(" s ", " t.s s ")
    return lambda: pa.ipc.open_file(db.query(text, "Arrow").bytes()).read_all()


#: Engine → makes a call that joins two tables.
ENGINES: dict[str, Callable[[pa.Table, pa.Table, Join], Callable[[], Any]]] = {
    SPLITJOIN: splitjoin, "duckdb": duckdb, "polars": polars, "pandas": pandas, "polars_bio": polars_bio, "chdb": chdb}


def has(engine: str, join: str) -> bool:
    """True if ``engine`` has an entry for ``join``."""
    return engine == SPLITJOIN or bool(getattr(JOINS[join], engine))


def checksum(table: pa.Table) -> int:
    """A sum over the row numbers of both tables, by pairs, and over the aggregate."""
    total = 0
    columns = {name.removesuffix("_1").removesuffix("_2"): table.column(name) for name in table.column_names}
    numbers = {name: np.nan_to_num(columns[name].to_numpy().astype(np.float64), nan=-1).astype(np.int64)
               for name in ("i", "j", "n") if name in columns}
    if "i" in numbers:
        total = int((numbers["i"] * 7919 % 1000003 * (numbers.get("j", numbers.get("n", numbers["i"])) % 999983 + 1)
                     ).astype(np.uint64).sum())
    return total % 2**53


def peak() -> float:
    """The most memory of this process so far in MiB; by `getrusage` it would be at least that of the one before it."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def spent() -> float:
    """CPU seconds of this process. Under a limit of them, `time.process_time` advances with the system's ticks only."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main(engine: str, join: str, rows: str, runs: str, threads: str = "1") -> None:
    """Join ``runs`` times."""
    global _threads
    _threads = int(threads)
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    if engine != "chdb":  # which reserves more than it takes
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    call = ENGINES[engine](*JOINS[join].tables(int(rows)), JOINS[join])
    Path("/proc/self/clear_refs").write_text("5")  # the peak of what made the tables does not count
    print(json.dumps({"before": peak()}), flush=True)
    for number in range(int(runs)):
        repeats, cpu, clock = 0, 0.0, 0.0
        while repeats == 0 or (number and cpu < SHORT):
            before, start = spent(), time.perf_counter()
            table = call()
            cpu, clock, repeats = cpu + spent() - before, clock + time.perf_counter() - start, repeats + 1
            told = {"cpu": cpu / repeats, "clock": clock / repeats, "rows": len(table), "peak": peak()}
            if number == 0:
                told["sum"] = checksum(table)
            del table
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
