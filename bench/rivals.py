"""The band benchmark over ROWS windows as users would write it with DuckDB, Polars and NumPy.

Each is ordered and exact in the same sense: every arrival of a micro-batch meets the tuples of the other stream that
precede it and are in its window, and the pairs come out by the probe's, then the stored tuple's arrival.
"""

from __future__ import annotations

import time
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

#: Arrivals (of both streams) in a micro-batch.
BATCH = 8192

_PLAIN = """
SELECT r.k AS r, s.k AS s FROM
  (SELECT * FROM r WHERE k >= {new}) r JOIN (SELECT * FROM s WHERE k >= {old} AND k < {end}) s
  ON abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND s.k < r.k AND s.k >= r.k - {window}
UNION ALL
SELECT r.k AS r, s.k AS s FROM
  (SELECT * FROM s WHERE k >= {new} AND k < {end}) s JOIN (SELECT * FROM r WHERE k >= {old} AND k < {end}) r
  ON abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND r.k <= s.k AND r.k > s.k - {window}
"""

# The rewrite by hand: bins as wide as the band, the smaller side three times, an equality on the bin.
_GRID = """
SELECT r.k AS r, s.k AS s FROM
  (SELECT * FROM r WHERE k >= {new} AND k < {end}) r JOIN (SELECT * FROM s3 WHERE k >= {old} AND k < {end}) s
  ON r.bin = s.bin AND abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND s.k < r.k AND s.k >= r.k - {window}
UNION ALL
SELECT r.k AS r, s.k AS s FROM
  (SELECT * FROM s WHERE k >= {new} AND k < {end}) s JOIN (SELECT * FROM r3 WHERE k >= {old} AND k < {end}) r
  ON r.bin = s.bin AND abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10 AND r.k <= s.k AND r.k > s.k - {window}
"""


def duckdb_seconds(r: pa.Table, s: pa.Table, window: int, batches: int, *, grid: bool) -> tuple[float, int]:
    """CPU seconds of one thread for micro-batches behind full windows, and the pairs found."""
    with duckdb.connect() as db:
        db.execute("SET threads = 1")
        n = len(r)
        for name, table, key in (("r", r, "x"), ("s", s, "a")):
            numbered = table.append_column("k", pa.array(np.arange(n)))
            db.register("incoming", numbered)
            db.execute(f"CREATE TABLE {name} AS SELECT *, {key} // 11 AS bin FROM incoming")
            db.execute(f"CREATE TABLE {name}3 AS SELECT * REPLACE (bin + shift AS bin) FROM {name}, "
                       f"(VALUES (-1), (0), (1)) AS shifts(shift) ORDER BY k")
        half, pairs, start = BATCH // 2, 0, time.process_time()
        for first in range(n - half * batches, n, half):
            text = (_GRID if grid else _PLAIN).format(new=first, end=first + half, old=max(0, first - window),
                                                      window=window)
            pairs += len(db.sql(f"SELECT r, s FROM ({text}) ORDER BY greatest(2 * r, 2 * s + 1), "
                                f"CASE WHEN r > s THEN s ELSE r END").to_arrow_table())
        return time.process_time() - start, pairs


def polars_seconds(r: pa.Table, s: pa.Table, window: int, batches: int) -> tuple[float, int]:
    """The same benchmark by ``join_where``."""
    tables: list[Any] = [pl.from_arrow(t.append_column("k", pa.array(np.arange(len(t))))) for t in (r, s)]
    left, right = tables
    right = right.rename({"k": "j"})
    half, n, pairs, start = BATCH // 2, len(r), 0, time.process_time()
    near = [pl.col("x") - pl.col("a") <= 10, pl.col("x") - pl.col("a") >= -10, pl.col("y") - pl.col("b") <= 10,
            pl.col("y") - pl.col("b") >= -10]
    for first in range(n - half * batches, n, half):
        old = max(0, first - window)
        new_r, new_s = left.slice(first, half), right.slice(first, half)
        all_r, all_s = left.slice(old, first + half - old), right.slice(old, first + half - old)
        by_r = new_r.join_where(all_s, *near, pl.col("j") < pl.col("k"), pl.col("j") >= pl.col("k") - window)
        by_s = all_r.join_where(new_s, *near, pl.col("k") <= pl.col("j"), pl.col("k") > pl.col("j") - window)
        both = pl.concat([by_r.select("k", "j"), by_s.select("k", "j")])
        pairs += len(both.sort(pl.max_horizontal(2 * pl.col("k"), 2 * pl.col("j") + 1),
                               pl.min_horizontal("k", "j")))
    return time.process_time() - start, pairs


def numpy_gcmps(r: pa.Table, s: pa.Table, window: int) -> float:
    """A nested loop by broadcasting 64 probes against the window: billion pairs a CPU second, nothing ordered."""
    x, y = (r[name].to_numpy()[:64, None] for name in "xy")
    a, b = (s[name].to_numpy()[None, :window] for name in "ab")
    start, rounds = time.process_time(), max(1, 2**24 // (64 * window))
    for _ in range(rounds):
        np.nonzero((np.abs(x - a) <= 10) & (np.abs(y - b) <= 10))
    return rounds * 64 * window / (time.process_time() - start) / 1e9
