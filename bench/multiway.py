"""Three streams joined within windows, beside DuckDB and Polars, which join whole tables in two steps.

Run: python -m bench.multiway [--quick]. Needs duckdb and polars.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of

RANGE, STEP = 200, 2_000
#: Case → the conditions of b and of c in terms of a, in SQL that all take.
CASES = {"equality": ("b.k = a.k", "c.k = a.k"),
         "band": ("b.x >= a.x - 20 AND b.x <= a.x + 20", "c.x >= a.x - 20 AND c.x <= a.x + 20")}
Tables = dict[str, pa.Table]


def tables(n: int) -> Tables:
    """A tuple a tick in each stream, in random order of keys."""
    rng = np.random.default_rng(3)
    return {name: pa.table({"t": np.arange(n), "k": rng.integers(0, 500, n).astype(np.int32),
                            "x": rng.integers(0, 10**4, n).astype(np.int32)}) for name in "abc"}


def text(case: str) -> str:
    """The statement, without windows."""
    b, c = CASES[case]
    return f"SELECT a.t AS at, b.t AS bt, c.t AS ct FROM a JOIN b ON {b} JOIN c ON {c}"


def whole(case: str, given: Tables) -> int:
    """splitjoin, whole tables."""
    return len(splitjoin.sql(text(case), tables=given, window=f"RANGE {RANGE}", time="t", threads=1))


def streams(case: str, given: Tables) -> int:
    """splitjoin, sessions that get batches of each stream in turn."""
    select = splitjoin.sql(text(case), tables={name: table.schema for name, table in given.items()},
                           window=f"RANGE {RANGE}", time="t")
    found = 0
    with splitjoin.open_multiway(select, threads=1) as session:
        for at in range(0, len(given["a"]), STEP):
            for name, table in given.items():
                session.push(name, table.slice(at, STEP))
            while batch := len(session.poll()):
                found += batch
        return found + len(session.flush())


def in_duckdb(case: str, given: Tables) -> int:
    """DuckDB on one thread: the first two tables, and their rows with the third."""
    b, c = CASES[case]
    near = f"BETWEEN a.t - {RANGE} AND a.t + {RANGE}"
    with duckdb.connect(config={"threads": 1}) as db:
        for name, table in given.items():
            db.register(name, table)
        first = db.sql(f"SELECT a.t, a.k, a.x, b.t AS bt FROM a JOIN b ON {b} AND b.t {near}").to_arrow_table()
        db.register("ab", first)
        return db.sql(f"SELECT a.t AS at, bt, c.t AS ct FROM ab a JOIN c ON {c} AND c.t {near} "
                      f"AND c.t BETWEEN bt - {RANGE} AND bt + {RANGE}").to_arrow_table().num_rows


def in_polars(case: str, given: Tables) -> int:
    """Polars, the same two steps."""
    a, b, c = (pl.from_arrow(given[name]).rename(lambda column, name=name: f"{name}{column}") for name in "abc")

    def joined(left: pl.DataFrame, right: pl.DataFrame, name: str) -> pl.DataFrame:
        times = [pl.col(f"{name}t").is_between(pl.col(f"{of}t") - RANGE, pl.col(f"{of}t") + RANGE)
                 for of in "ab" if f"{of}t" in left.columns]
        if case == "equality":
            return left.join(right, left_on="ak", right_on=f"{name}k").filter(times)
        bounds = [(pl.col(f"{name}t") >= pl.col("at") - RANGE), (pl.col(f"{name}t") <= pl.col("at") + RANGE),
                  (pl.col(f"{name}x") >= pl.col("ax") - 20), (pl.col(f"{name}x") <= pl.col("ax") + 20)]
        return left.join_where(right, *bounds).filter(times)

    return len(joined(joined(a, b, "b"), c, "c").select("at", "bt", "ct"))


WAYS: dict[str, Callable[[str, Tables], int]] = {
    "splitjoin, whole tables": whole, "splitjoin, streams": streams, "DuckDB, two steps": in_duckdb,
    "Polars, two steps": in_polars}


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    out = Recorder("multiway", quick=options.quick)
    n, times = (4_000, 1) if options.quick else (50_000, 3)
    given = tables(n)
    small = tables(1_000)
    for case in CASES:
        rows = {name: way(case, small) for name, way in WAYS.items()}  # compiles too
        assert len(set(rows.values())) == 1, rows
        taken: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(times):
            for name, way in WAYS.items():
                begin = time.process_time()
                rows[name] = way(case, given)
                taken[name].append(time.process_time() - begin)
        assert len(set(rows.values())) == 1, rows
        for name, seconds in taken.items():
            out.add("multiway_seconds", median(seconds), "s",
                    {"condition": case, "system": name, "tuples": 3 * n, "range": RANGE, "rows": rows[name]},
                    f"CPU time; one thread, but for Polars, which chooses; median of {times} runs, in turn")
    print(out.write())


if __name__ == "__main__":
    main()
