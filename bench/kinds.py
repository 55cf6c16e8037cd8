"""Every kind of join on splitjoin, DuckDB and Polars, with equal keys within an interval. Run: python -m bench.kinds

Each join runs in a process of its own, on one thread, from Arrow tables to an Arrow table. All engines must find as
many rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.record import Recorder, options_of

#: ``how`` and, for as-of joins, ``direction``.
KINDS = {"inner": ("inner", None), "left": ("left", None), "right": ("right", None), "full": ("full", None),
         "semi": ("semi", None), "anti": ("anti", None), "asof backward": ("asof", "backward"),
         "asof forward": ("asof", "forward"), "asof nearest": ("asof", "nearest"),
         "asof left backward": ("asof_left", "backward")}
ENGINES = ("splitjoin", "duckdb", "polars")


def tables(rows: int) -> tuple[pa.Table, pa.Table, int]:
    """Both streams, with ten tuples a key, and the length of the interval: a fifth of the time that they last."""
    random = np.random.default_rng(5)
    keys = max(rows // 10, 1)
    r = pa.table({"ts": np.sort(random.integers(0, rows, rows)), "k": random.integers(0, keys, rows),
                  "x": random.random(rows)})
    s = pa.table({"ts": np.sort(random.integers(0, rows, rows)), "k": random.integers(0, keys, rows),
                  "v": random.random(rows)})
    return r, s, rows // 5


def by_splitjoin(r: pa.Table, s: pa.Table, width: int, kind: str) -> Callable[[], int]:
    """On one thread."""
    import splitjoin
    from splitjoin.engines.cpu import CpuDevice

    how, direction = KINDS[kind]
    return lambda: len(splitjoin.join(r, s, on="r.k = s.k", window=f"RANGE {width}", time="ts", how=how,
                                      direction=direction, device=CpuDevice(threads=1)))


def by_duckdb(r: pa.Table, s: pa.Table, width: int, kind: str) -> Callable[[], int] | None:
    """Its own kinds; an as-of join takes the nearest partner, and the interval is a condition on it."""
    import duckdb

    db = duckdb.connect()
    db.execute("SET threads = 1")
    db.register("r", r)
    db.register("s", s)
    how, direction = KINDS[kind]
    within = f"s.ts BETWEEN r.ts - {width} AND r.ts + {width}"
    text = f"FROM r {how} JOIN s ON r.k = s.k AND {within}"
    if direction == "nearest":
        return None  # it has no such join
    if direction is not None:
        test = ">=" if direction == "backward" else "<="
        joined = f"FROM r ASOF {'LEFT' * (how == 'asof_left')} JOIN s ON r.k = s.k AND r.ts {test} s.ts"
        text = f"{joined} WHERE {within}" if how == "asof" else (
            f"SELECT r.*, CASE WHEN {within} THEN s.ts END AS ts_s, CASE WHEN {within} THEN s.v END AS v {joined}")
    columns = "" if text.startswith("SELECT") else "SELECT r.* " if kind in ("semi", "anti") else "SELECT r.*, s.* "
    return lambda: len(db.sql(columns + text).to_arrow_table())


def by_polars(r: pa.Table, s: pa.Table, width: int, kind: str) -> Callable[[], int]:
    """``join_asof`` with a tolerance; other kinds from the pairs of ``join`` that a filter leaves."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    left: Any = pl.from_arrow(r)
    right: Any = pl.from_arrow(s)
    how, direction = KINDS[kind]
    if direction is not None:
        def asof() -> int:
            found = left.join_asof(right.rename({"ts": "ts_s"}), left_on="ts", right_on="ts_s", by="k",
                                   strategy=direction, tolerance=width, check_sortedness=False)
            return len((found if how == "asof_left" else found.filter(pl.col("v").is_not_null())).to_arrow())
        return asof

    def others() -> int:
        one, two = left.with_row_index("r"), right.rename({"ts": "ts_s"}).with_row_index("s")
        pairs = one.lazy().join(two.lazy(), on="k").filter((pl.col("ts") - pl.col("ts_s")).abs() <= width).collect()
        lone_r = one.join(pairs.select("r"), on="r", how="anti") if how in ("left", "full", "anti") else one[:0]
        lone_s = two.join(pairs.select("s"), on="s", how="anti") if how in ("right", "full") else two[:0]
        if how in ("semi", "anti"):
            return len((lone_r if how == "anti" else one.join(pairs.select("r"), on="r", how="semi")).to_arrow())
        return len(pl.concat([pairs, lone_r, lone_s], how="diagonal_relaxed").to_arrow())
    return others


def child(engine: str, kind: str, rows: int) -> None:
    """Join three times, print the least CPU seconds of the last two, rows, and memory of the first."""
    call = {"splitjoin": by_splitjoin, "duckdb": by_duckdb, "polars": by_polars}[engine](*tables(rows), kind)
    if call is None:
        print(json.dumps({}))
        return
    Path("/proc/self/clear_refs").write_text("5")  # the peak of what made the tables does not count
    before = _peak()
    found = call()  # loads kernels
    memory, took = _peak() - before, []
    for _ in range(2):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    print(json.dumps({"seconds": min(took), "rows": found, "memory": memory}))


def _peak() -> float:
    """The greatest resident memory so far, in MiB; by `getrusage` it would be at least that of the process before."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def main() -> None:
    """All figures."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        child(options.one[0], options.one[1], int(options.one[2]))
        return
    rows = 100_000 if options.quick else 1_000_000
    out = Recorder("kinds", quick=options.quick)
    for kind in KINDS:
        counts = {}
        for engine in ENGINES:
            if engine == "splitjoin":  # compiles
                _measured(engine, kind, 10_000)
            if not (found := _measured(engine, kind, rows)):
                continue
            counts[engine] = found["rows"]
            config = {"kind": kind, "engine": engine, "rows": rows, "result": found["rows"]}
            out.add("kind_cpu_seconds", found["seconds"], "s", config,
                    "CPU seconds of the call on one thread, Arrow tables to an Arrow table, the least of two runs "
                    "after the first")
            out.add("kind_memory", found["memory"], "MiB", config,
                    "peak resident memory of the process in the first run, less what it had with the tables")
        assert len(set(counts.values())) == 1, (kind, counts)
    print(out.write())


def _measured(engine: str, kind: str, rows: int) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "bench.kinds", "--one", engine, kind, str(rows)], check=True,
                          capture_output=True, text=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
