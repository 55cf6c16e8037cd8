"""The joins of bench/whole_tables.py on one engine, in a process of its own, by one thread or as many as are given:
python bench/table_joins.py ENGINE JOIN ROWS RUNS [THREADS]

Prints a line of JSON before the first run, and one after each: CPU and clock seconds, rows, and a sum over all row
numbers of both tables in the result, by which results are compared. It imports nothing of the project but splitjoin
itself, as some rivals have an environment without it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SPLITJOIN = "splitjoin"
#: Seconds of CPU time that a process may take, and bytes that it may have.
LIMIT, MEMORY = 60, 8 << 30
#: The number of threads of each engine. pandas always has one; Polars reads `POLARS_MAX_THREADS`.
_threads = 1

Tables = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Join:
    """A join: its tables for so many rows, splitjoin's arguments, and how rivals write it.

    ``duckdb``, ``chdb``: the statement behind ``FROM``, with what it selects. ``polars``, ``pandas``, ``polars_bio``:
    functions of the rival's module and both frames. An engine without an entry has no such join, or does not end.
    ``ties``: the engines that choose otherwise among partners that are equally near.
    """

    tables: Callable[[int], Tables]
    call: dict[str, Any]
    duckdb: str = ""
    chdb: str = ""
    polars: Callable[[Any, Any, Any], Any] | None = None
    pandas: Callable[[Any, Any, Any], Any] | None = None
    polars_bio: Callable[[Any, Any, Any], Any] | None = None
    ties: tuple[str, ...] = ()


def _ids(n: int, name: str) -> dict[str, Any]:
    return {name: np.arange(n)}


def _both(make: Callable[..., pa.Table], r: str, s: str) -> Tables:
    """Both tables, made by their columns' names, a letter each."""
    return make(*r), make(*s)


def timed(n: int) -> Tables:
    """Sorted and distinct times on average 10 apart, 1,000 keys, and values."""
    rng = np.random.default_rng(n)
    return _both(lambda i, t, k, x: pa.table({
        **_ids(n, i), t: np.sort(rng.permutation(10 * n)[:n]), k: rng.integers(0, 1000, n),
        x: rng.integers(0, 1000, n)}), "itkx", "jula")


def valued(n: int) -> Tables:
    """Values of which each has on average two partners within 1."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: rng.integers(0, 3 * n // 2, n)}), "ix", "ja")


def dense(n: int) -> Tables:
    """Values of which each has on average 20 partners within 10."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: rng.integers(0, n, n)}), "ix", "ja")


def intervals(n: int) -> Tables:
    """Intervals of 1 to 200 on 24 chromosomes, each with about two partners, and the key folded into the position."""
    rng = np.random.default_rng(n)
    length = max(1000, 100 * n // 24)
    made = []
    for i, c, a, b in (("i", "c", "st", "en"), ("j", "d", "lo", "hi")):
        chromosome, start = rng.integers(0, 24, n), rng.integers(0, length, n)
        end = start + rng.integers(1, 200, n)
        offset = chromosome * (length + 1000)
        made.append(pa.table({**_ids(n, i), c: chromosome, a: start, b: end, f"{a}_at": start + offset,
                              f"{b}_at": end + offset}))
    return made[0], made[1]


def stamps(n: int) -> Tables:
    """Three times as many points as rows, and 13 intervals that hold about one in ten of them."""
    rng = np.random.default_rng(n)
    low = np.arange(13) * (30 * n // 13)
    return (pa.table({**_ids(3 * n, "i"), "x": rng.integers(0, 30 * n, 3 * n)}),
            pa.table({**_ids(13, "j"), "lo": low, "hi": low + 3 * n // 13}))


def texts(n: int) -> Tables:
    """Times as ISO texts of 19 bytes, and intervals of them with about two points."""
    rng = np.random.default_rng(n)
    at, low = rng.integers(0, 20 * n, n), rng.integers(0, 20 * n, n)
    high = low + rng.integers(1, 80, n)

    def iso(seconds: Any) -> pa.Array:
        return pa.array(np.datetime_as_string(np.datetime64("2020-01-01") + seconds.astype("timedelta64[s]")))

    return (pa.table({**_ids(n, "i"), "x": iso(at)}), pa.table({**_ids(n, "j"), "lo": iso(low), "hi": iso(high)}))


def named(n: int) -> Tables:
    """Names of 7 to 11 bytes, each of which has on average one partner."""
    rng = np.random.default_rng(n)
    return _both(lambda i, x: pa.table({**_ids(n, i), x: np.char.add("name-", rng.integers(0, n, n).astype(str))}),
                 "ix", "ja")


def planes(n: int) -> Tables:
    """Points of which each has on average two within a distance of 5."""
    rng = np.random.default_rng(n)
    side = int((78 * n / 2) ** 0.5)
    return _both(lambda i, x, y: pa.table({**_ids(n, i), x: rng.integers(0, side, n), y: rng.integers(0, side, n)}),
                 "ixy", "jab")


def pairs_of(n: int) -> Tables:
    """Two values of which one rises nearly as the other: two inequalities hold for few pairs."""
    rng = np.random.default_rng(n)
    made = []
    for i, x, y, shift in (("i", "x", "y", 0), ("j", "a", "b", 3)):
        first = rng.integers(0, 2 * n, n)
        made.append(pa.table({**_ids(n, i), x: first, y: first + rng.integers(0, 3, n) + shift}))
    return made[0], made[1]


def taxed(n: int) -> Tables:
    """Pay, and a tax of three times as much and a little more: who earns more and is taxed less than one other."""
    rng = np.random.default_rng(n)
    made = []
    for i, x, y in (("i", "x", "y"), ("j", "a", "b")):
        pay = rng.integers(0, 100 * n, n)
        made.append(pa.table({**_ids(n, i), x: pay, y: 3 * pay + rng.integers(0, 1800, n)}))
    return made[0], made[1]


def _band(pl: Any, r: Any, s: Any, width: int) -> Any:
    return r.join_where(s, pl.col("a") >= pl.col("x") - width, pl.col("a") <= pl.col("x") + width)


def _asof(pl: Any, r: Any, s: Any, **how: Any) -> Any:
    return r.join_asof(s, left_on="t", right_on="u", **how).drop_nulls("j")


def _merge_asof(pd: Any, r: Any, s: Any, **how: Any) -> Any:
    return pd.merge_asof(r, s, left_on="t", right_on="u", **how).dropna(subset="j")


def _overlap(pb: Any, r: Any, s: Any) -> Any:
    return pb.overlap(r, s, cols1=["c", "st", "en"], cols2=["d", "lo", "hi"], output_type="polars.DataFrame")


_KEY = {"left_by": "k", "right_by": "l"}
_ROWS = "SELECT * FROM r JOIN s ON "
_OVERLAP = "r.st < s.hi AND s.lo < r.en"
JOINS: dict[str, Join] = {
    "as-of": Join(timed, {"on": "TRUE", "time": ("t", "u"), "how": "asof"},
                  duckdb="SELECT * FROM r ASOF JOIN s ON r.t >= s.u", polars=_asof, pandas=_merge_asof),
    "as-of by key": Join(timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof"},
                         duckdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t >= s.u",
                         chdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t >= s.u",
                         polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l"),
                         pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY)),
    "as-of by key, forward": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "direction": "forward"},
        duckdb="SELECT * FROM r ASOF JOIN s ON r.k = s.l AND r.t <= s.u",
        polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l", strategy="forward"),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY, direction="forward")),
    "as-of by key, nearest within 5,000": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "how": "asof", "direction": "nearest", "window": "RANGE 5000"},
        polars=lambda pl, r, s: _asof(pl, r, s, by_left="k", by_right="l", strategy="nearest", tolerance=5000),
        pandas=lambda pd, r, s: _merge_asof(pd, r, s, **_KEY, direction="nearest", tolerance=5000), ties=("polars",)),
    "as-of by key, a further inequality": Join(
        timed, {"on": "r.k = s.l AND r.x >= s.a", "time": ("t", "u"), "how": "asof"},
        duckdb="SELECT r.*, s.* FROM r JOIN (SELECT r.i, max(s.j) AS j FROM r JOIN s ON r.k = s.l AND r.x >= s.a "
               "AND r.t >= s.u GROUP BY r.i) m ON r.i = m.i JOIN s ON s.j = m.j"),
    "semi, one inequality": Join(
        valued, {"on": "r.x < s.a", "how": "semi"},
        duckdb="SELECT * FROM r WHERE r.x < (SELECT max(a) FROM s)",
        polars=lambda pl, r, s: r.filter(pl.col("x") < s["a"].max())),
    "anti, one inequality": Join(
        valued, {"on": "r.x < s.a", "how": "anti"},
        duckdb="SELECT * FROM r WHERE NOT coalesce(r.x < (SELECT max(a) FROM s), false)",
        polars=lambda pl, r, s: r.filter(pl.col("x") >= s["a"].max())),
    "semi, equal keys and one inequality": Join(
        timed, {"on": "r.k = s.l AND r.x < s.a", "how": "semi"},
        duckdb="SELECT r.* FROM r JOIN (SELECT l, max(a) AS most FROM s GROUP BY l) m ON r.k = m.l WHERE r.x < most",
        polars=lambda pl, r, s: r.join(s.group_by("l").agg(pl.col("a").max()), left_on="k", right_on="l").filter(
            pl.col("x") < pl.col("a")).drop("a")),
    "anti, equal keys and one inequality": Join(
        timed, {"on": "r.k = s.l AND r.x < s.a", "how": "anti"},
        duckdb="SELECT r.* FROM r LEFT JOIN (SELECT l, max(a) AS most FROM s GROUP BY l) m ON r.k = m.l "
               "WHERE most IS NULL OR r.x >= most",
        polars=lambda pl, r, s: r.join(s.group_by("l").agg(pl.col("a").max()), left_on="k", right_on="l",
                                       how="left").filter((pl.col("x") < pl.col("a")).fill_null(False).not_())),
    "left, equal keys": Join(valued, {"on": "r.x = s.a", "how": "left"},
                             duckdb="SELECT * FROM r LEFT JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="left")),
    "inner, equal texts": Join(named, {"on": "r.x = s.a"}, duckdb=_ROWS + "r.x = s.a",
                               polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a")),
    "full, equal keys": Join(valued, {"on": "r.x = s.a", "how": "full"},
                             duckdb="SELECT * FROM r FULL JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="full")),
    "sum by equal keys": Join(
        valued, {"on": "r.x = s.a", "aggregate": {"n": "sum(s.j)"}, "by": "r"},
        duckdb="SELECT r.*, n FROM r JOIN (SELECT a, sum(j) AS n FROM s GROUP BY a) m ON r.x = m.a",
        polars=lambda pl, r, s: r.join(s.group_by("a").agg(n=pl.col("j").sum()), left_on="x", right_on="a")),
    "semi, equal keys": Join(valued, {"on": "r.x = s.a", "how": "semi"},
                             duckdb="SELECT * FROM r SEMI JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="semi")),
    "anti, equal keys": Join(valued, {"on": "r.x = s.a", "how": "anti"},
                             duckdb="SELECT * FROM r ANTI JOIN s ON r.x = s.a",
                             polars=lambda pl, r, s: r.join(s, left_on="x", right_on="a", how="anti")),
    "semi, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "semi"},
                         duckdb="SELECT * FROM r SEMI JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1",
                         polars=lambda pl, r, s: r.join(_band(pl, r, s, 1).select("i").unique(), on="i", how="semi")),
    "anti, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "anti"},
                         duckdb="SELECT * FROM r ANTI JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1",
                         polars=lambda pl, r, s: r.join(_band(pl, r, s, 1).select("i").unique(), on="i", how="anti")),
    "left, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "left"},
                         duckdb="SELECT * FROM r LEFT JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1"),
    "full, a band": Join(valued, {"on": "abs(r.x - s.a) <= 1", "how": "full"},
                         duckdb="SELECT * FROM r FULL JOIN s ON s.a BETWEEN r.x - 1 AND r.x + 1"),
    "inner, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000"},
        duckdb=_ROWS + "r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000",
        polars=lambda pl, r, s: r.lazy().join(s.lazy(), left_on="k", right_on="l").filter(
            pl.col("u").is_between(pl.col("t") - 1000, pl.col("t") + 1000)).collect(engine="streaming")),
    "left, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000", "how": "left"},
        duckdb="SELECT * FROM r LEFT JOIN s ON r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000"),
    "anti, equal keys within 1,000 of time": Join(
        timed, {"on": "r.k = s.l", "time": ("t", "u"), "window": "RANGE 1000", "how": "anti"},
        duckdb="SELECT * FROM r ANTI JOIN s ON r.k = s.l AND s.u BETWEEN r.t - 1000 AND r.t + 1000"),
    "rank: count(*) where s.a <= r.x": Join(
        valued, {"on": "s.a <= r.x", "aggregate": {"n": "count(*)"}, "by": "r"},
        duckdb="SELECT r.*, n FROM r ASOF JOIN (SELECT a, count(*) OVER (ORDER BY a) AS n FROM s) c ON r.x >= c.a",
        polars=lambda pl, r, s: r.with_columns(n=s["a"].sort().search_sorted(r["x"], side="right")).filter(
            pl.col("n") > 0)),
    "sum over a band of 20 partners": Join(
        dense, {"on": "abs(r.x - s.a) <= 10", "aggregate": {"n": "sum(s.j)"}, "by": "r"},
        duckdb="SELECT r.i, any_value(r.x) AS x, sum(s.j) AS n FROM r JOIN s ON s.a BETWEEN r.x - 10 AND r.x + 10 "
               "GROUP BY r.i"),
    "inner, one band": Join(valued, {"on": "abs(r.x - s.a) <= 1"}, duckdb=_ROWS + "s.a BETWEEN r.x - 1 AND r.x + 1",
                            polars=lambda pl, r, s: _band(pl, r, s, 1)),
    "two inequalities": Join(
        pairs_of, {"on": "r.x >= s.a AND r.y <= s.b"}, duckdb=_ROWS + "r.x >= s.a AND r.y <= s.b",
        polars=lambda pl, r, s: r.join_where(s, pl.col("x") >= pl.col("a"), pl.col("y") <= pl.col("b"))),
    "two inequalities, unrelated": Join(
        taxed, {"on": "r.x > s.a AND r.y < s.b"}, duckdb=_ROWS + "r.x > s.a AND r.y < s.b",
        polars=lambda pl, r, s: r.join_where(s, pl.col("x") > pl.col("a"), pl.col("y") < pl.col("b"))),
    "overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}"}, duckdb=_ROWS + "r.st_at < s.hi_at AND s.lo_at < r.en_at",
        polars=lambda pl, r, s: r.join_where(s, pl.col("st_at") < pl.col("hi_at"), pl.col("lo_at") < pl.col("en_at")),
        polars_bio=_overlap),
    "overlap, the key folded by hand": Join(
        intervals, {"on": "r.st_at < s.hi_at AND s.lo_at < r.en_at"},
        duckdb=_ROWS + "r.st_at < s.hi_at AND s.lo_at < r.en_at", polars_bio=_overlap),
    "semi, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "semi"},
        duckdb="SELECT * FROM r SEMI JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "left, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "left"},
        duckdb="SELECT * FROM r LEFT JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "anti, overlap by key": Join(
        intervals, {"on": f"r.c = s.d AND {_OVERLAP}", "how": "anti"},
        duckdb="SELECT * FROM r ANTI JOIN s ON r.st_at < s.hi_at AND s.lo_at < r.en_at"),
    "containment by key": Join(
        intervals, {"on": "r.c = s.d AND r.st >= s.lo AND r.en <= s.hi"},
        duckdb=_ROWS + "r.st_at >= s.lo_at AND r.en_at <= s.hi_at"),
    "point in interval by key": Join(
        intervals, {"on": "r.c = s.d AND r.st BETWEEN s.lo AND s.hi"},
        duckdb=_ROWS + "r.st_at BETWEEN s.lo_at AND s.hi_at"),
    "3 points a row in 13 intervals": Join(
        stamps, {"on": "r.x BETWEEN s.lo AND s.hi"}, duckdb=_ROWS + "r.x BETWEEN s.lo AND s.hi"),
    "text in interval of texts": Join(
        texts, {"on": "r.x BETWEEN s.lo AND s.hi"}, duckdb=_ROWS + "r.x BETWEEN s.lo AND s.hi"),
    "distance by sqrt": Join(
        planes, {"on": "sqrt((r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b)) <= 5"},
        duckdb=_ROWS + "s.a BETWEEN r.x - 5 AND r.x + 5 AND sqrt((r.x - s.a) * (r.x - s.a) "
                       "+ (r.y - s.b) * (r.y - s.b)) <= 5"),
}


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
        cpu, clock = time.process_time(), time.perf_counter()
        table = call()
        cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
        told = {"cpu": cpu, "clock": clock, "rows": len(table), "peak": peak()}
        if number == 0:
            told["sum"] = checksum(table)
        del table
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
