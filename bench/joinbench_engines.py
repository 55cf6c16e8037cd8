"""The engines of joinbench, and one query on one of them, in a process of its own:
python -m bench.joinbench_engines ENGINE QUERY ROWS SEED RUNS SECONDS GIB

An engine is a function of r, s and the query, which gives a call for the answer and the plan that it runs, or raises
`CannotSay` with the reason. To add one, write such a function and a line in `ENGINES`. Prints a line of JSON. The
process may take so many CPU seconds and so much memory.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa

from bench.joinbench_queries import QUERIES, STEPS, WINDOW, Query, checksum, tables

#: What an engine makes of a query: the answer and the plan.
Call = Callable[[], tuple[pa.Table, str]]
#: The CPU seconds that a run takes at least, but for the first: it repeats the query until then, and gives the mean.
SHORT = 0.1


class CannotSay(Exception):
    """The engine has no words for the query."""


def splitjoin(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """The default device, on one thread."""
    import splitjoin

    def told() -> tuple[pa.Table, str]:
        if query.kind == "horizon":
            made = splitjoin.horizon(r, s, on="r.k = s.k", offsets=STEPS, time="t", select=["n", "offset", "m"])
            return made.filter(made.column("m").is_valid()), "as-of joins by equal keys"
        if query.direction == "nearest":
            found = splitjoin.join(r, s, on="r.k = s.k", how="asof", direction="nearest", time="t", threads=1,
                                   select=["n", "m"])
        else:
            found = splitjoin.sql(query.sql, r=r, s=s, threads=1)
        return found.table, found.plan

    return told


def duckdb(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """DuckDB over its own tables, on one thread."""
    import duckdb

    if not query.sql:
        raise CannotSay("its ASOF JOIN looks one way")
    db = duckdb.connect(config={"threads": 1})
    for name, table in (("r", r), ("s", s)):
        db.register("incoming", table)
        db.execute(f"CREATE TABLE {name} AS FROM incoming")
    explained = db.execute(f"EXPLAIN (FORMAT JSON) {query.sql}").fetchall()[0][1]
    plan = ", ".join(dict.fromkeys(re.findall(r'"name": "([A-Z_]*(?:JOIN|CROSS_PRODUCT))', explained)))
    return lambda: (db.sql(query.sql).to_arrow_table(), plan)


def polars(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """Polars: join_asof, join_where, and a join by the key."""
    import polars as pl

    left, right = pl.DataFrame(r).lazy(), pl.DataFrame(s).lazy().rename(lambda c: c if c in "mk" else f"s_{c}")
    if query.kind in ("asof", "horizon", "snapshot"):
        strategy: Any = query.direction
        steps = pl.concat([left.with_columns(h=pl.lit(h), t=pl.col("t") + h) for h in STEPS]).sort("t")
        found = (steps if query.kind == "horizon" else left).join_asof(
            right, left_on="t", right_on="s_t", by=query.by, strategy=strategy, check_sortedness=False)
        found = found.filter(pl.col("m").is_not_null())
        found = found.filter(pl.col("s_live") == 1) if query.kind == "snapshot" else found
        return lambda: (found.select("n", *("h" for _ in "h" if query.kind == "horizon"), "m").collect().to_arrow(),
                        "join_asof")
    on = re.sub(r"\bs\.(\w)", r"s_\1", re.sub(r"\br\.", "", query.on))
    if query.kind == "anti":
        met = left.join(right, on="k").filter(pl.sql_expr(on)).select("n").unique()
        return lambda: (left.join(met, on="n", how="anti").select("n").collect().to_arrow(), "join, filter, anti join")
    pairs = left.join(right, on="k").filter(pl.sql_expr(on)) if query.by else left.join_where(right, pl.sql_expr(on))
    sums = [pl.len().alias("c"), pl.col("s_v").sum().alias("v"), pl.col("s_v").max().alias("high")]
    made = pairs.select("n", "m") if query.kind == "where" else pairs.group_by("n").agg(
        sums if query.kind == "window" else sums[:1])
    return lambda: (made.collect().to_arrow(), "join, filter" if query.by else "join_where")


def pandas(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """The library pandas: merge_asof, and a merge by the key."""
    import pandas as pd

    left, right = r.to_pandas(), s.to_pandas().rename(columns=lambda c: c if c in "mk" else f"s_{c}")
    if query.kind in ("asof", "horizon", "snapshot"):
        frames = [left.assign(h=h, t=left.t + h) for h in STEPS] if query.kind == "horizon" else [left.assign(h=0)]
        direction: Any = query.direction

        def found() -> tuple[pa.Table, str]:
            at = pd.concat(frames).sort_values("t")
            made = pd.merge_asof(at, right, left_on="t", right_on="s_t", by=query.by, direction=direction)
            made = made[made.s_live == 1 if query.kind == "snapshot" else made.m.notna()]
            columns = ["n", "h", "m"] if query.kind == "horizon" else ["n", "m"]
            return pa.Table.from_pandas(made[columns].astype("int64"), preserve_index=False), "merge_asof"
        return found
    if query.kind != "where" or not query.by:
        raise CannotSay("merge knows equal keys alone; all pairs are no plan" if not query.by else "no such join")
    on = f"s_t >= t - {re.findall('[0-9]+', query.on)[0]} and s_t <= t + {re.findall('[0-9]+', query.on)[0]}"
    return lambda: (pa.Table.from_pandas(left[["n", "t", "k"]].merge(right[["m", "s_t", "k"]], on="k").query(on)[
        ["n", "m"]], preserve_index=False), "merge, query")


def polars_bio(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """polars-bio, whose intervals are of texts, from 0 and with ends excluded."""
    import polars as pl

    pb: Any = import_module("polars_bio")
    if query is not QUERIES["overlap"]:
        raise CannotSay("it joins overlapping intervals alone")
    pb.set_option("datafusion.execution.target_partitions", "1")
    frames: list[Any] = [pl.DataFrame(t.select([number, "x", "w"])).select(
        pl.col(number), chrom=pl.lit("1"), start=pl.col("x"), end=pl.col("x") + pl.col("w"))
        for number, t in (("n", r), ("m", s))]
    for frame in frames:
        frame.config_meta.set(coordinate_system_zero_based=True)
    return lambda: (pb.overlap(*frames, suffixes=("", "_s"), output_type="polars.DataFrame").select(
        pl.col("n"), pl.col("^m(_s)?$")).to_arrow(), "overlap")


def datafusion(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """DataFusion, with one partition."""
    if query.kind in ("asof", "horizon", "snapshot"):
        raise CannotSay("no ASOF JOIN")
    df: Any = import_module("datafusion")
    context = df.SessionContext(df.SessionConfig().with_target_partitions(1))
    for name, table in (("r", r), ("s", s)):
        context.register_record_batches(name, [table.to_batches()])
    explained = str(context.sql(f"EXPLAIN {query.sql}").collect()[-1].to_pydict())
    plan = ", ".join(dict.fromkeys(re.findall(r"\b\w+JoinExec\b", explained)))
    return lambda: (context.sql(query.sql).to_arrow_table(), plan)


def chdb(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """chdb, ClickHouse in the process, over its own tables in memory, on one thread."""
    if query.kind in ("asof", "horizon", "snapshot") and (not query.by or query.direction == "nearest"):
        raise CannotSay("its ASOF JOIN needs a key, and looks one way")
    session: Any = import_module("chdb.session")
    db = session.Session()
    globals().update(r_in=r, s_in=s)
    for name in "rs":
        db.query(f"CREATE TABLE {name} ENGINE = Memory AS SELECT * FROM Python({name}_in)")
    text = re.sub(r"\(VALUES (.*?)\) AS u\(h\)", r"(SELECT arrayJoin([\1]) AS h) AS u", query.sql)
    explained = str(db.query(f"EXPLAIN actions = 1 {text}"))
    plan = ", ".join(dict.fromkeys(re.findall(r"Algorithm: (\w+)", explained))) or ", ".join(
        dict.fromkeys(re.findall(r"\w*Join\w*", explained)))
    return lambda: (pa.ipc.open_file(db.query(f"{text} SETTINGS max_threads = 1", "Arrow").bytes()).read_all(), plan)


def rayforce(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """rayforce-py: an as-of and a window join by the key, of which rows without partners have NULL and 0."""
    if query.kind not in ("asof", "snapshot", "window") or not query.by or query.direction != "backward":
        raise CannotSay("its ASOF JOIN needs a key, and looks one way" if query.kind == "asof" else "no such join")
    rf: Any = import_module("rayforce")
    left, right = (rf.Table({name: rf.Vector.from_numpy(t.column(name).to_numpy()) for name in names})
                   for t, names in ((r, ["t", "k", "n"]), (s, ["t", "k", "m", "v", "live"])))
    at, v = rf.TableColumnInterval(-WINDOW, WINDOW, left, "t"), rf.Column("v")
    is_window = query.kind == "window"
    names = ["n", "c", "v", "high"] if is_window else ["n", "m"]

    def found() -> tuple[pa.Table, str]:
        made = (left.window_join1(on=["k", "t"], join_with=[right], interval=at, c=v.count(), v=v.sum(), high=v.max())
                if is_window else left.asof_join(right, on=["k", "t"])).execute()
        there = made["live"].to_numpy() == 1 if query.kind == "snapshot" else made[names[1]].to_numpy() >= is_window
        return (pa.table({name: made[name].to_numpy()[there] for name in names}),
                "window_join1" if is_window else "asof_join")
    return found


def daft(r: pa.Table, s: pa.Table, query: Query) -> Call:
    """Daft, on one thread: as-of joins, and joins by the key."""
    if not query.by and query.kind != "asof":
        raise CannotSay("equal keys alone; all pairs are no plan")
    df: Any = import_module("daft")
    df.set_runner_native(num_threads=1)
    left, right = df.from_arrow(r), df.from_arrow(s)
    right = right.select(*(df.col(c).alias(c if c in "mk" else f"s_{c}") for c in right.column_names))
    on = re.sub(r"\bs\.(\w)", r"s_\1", re.sub(r"\br\.", "", query.on))

    def found() -> tuple[pa.Table, str]:
        if query.kind in ("asof", "horizon", "snapshot"):
            at = [left.with_columns({"h": df.lit(h), "t": df.col("t") + h}) for h in STEPS]
            made = (at[0].concat(at[1]).concat(at[2]) if query.kind == "horizon" else left).join_asof(
                right, left_on="t", right_on="s_t", by=query.by, strategy=query.direction)
            made = made.where(df.sql_expr("s_live = 1" if query.kind == "snapshot" else "m IS NOT NULL"))
            return made.select("n", *("h" for _ in "h" if query.kind == "horizon"), "m").to_arrow(), "join_asof"
        pairs = left.join(right, on="k").where(df.sql_expr(on))
        if query.kind == "anti":
            return left.join(pairs.select("n").distinct(), on="n", how="anti").select("n").to_arrow(), "join, anti join"
        sums = [df.col("m").count().alias("c"), df.col("s_v").sum().alias("v"), df.col("s_v").max().alias("high")]
        made = pairs.select("n", "m") if query.kind == "where" else pairs.groupby("n").agg(
            *sums[:3 if query.kind == "window" else 1])
        return made.to_arrow(), "join, where"
    return found


#: Engine → makes the call for a query.
ENGINES: dict[str, Callable[[pa.Table, pa.Table, Query], Call]] = {
    "splitjoin": splitjoin, "duckdb": duckdb, "polars": polars, "pandas": pandas,
    "polars_bio": polars_bio, "datafusion": datafusion, "chdb": chdb, "rayforce": rayforce,
    "daft": daft}


def run(engine: str, name: str, rows: int, seed: int, runs: int, short: float = SHORT) -> dict[str, Any]:
    """The least CPU seconds of so many runs of ``short`` seconds at least, behind one that is not counted, the answer's
    rows and checksum, and the plan; or why there is none.
    """
    r, s = tables(rows, seed)
    try:
        call = ENGINES[engine](r, s, QUERIES[name])
        took = list[float]()
        for n in range(1 + runs):
            begin, times = time.process_time(), 0
            while not times or (n and time.process_time() - begin < short):
                answer, plan = call()
                times += 1
            took.append((time.process_time() - begin) / times)
        return {"cpu": min(took[1:]), "rows": len(answer), "sum": checksum(answer), "plan": plan}
    except CannotSay as error:
        return {"why": str(error)}
    except MemoryError:
        return {"why": "memory"}
    except Exception as error:  # of any engine; its first words are the cell
        return {"why": f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"}


def main() -> None:
    """One query on one engine, within the limits of the process."""
    seconds, gib = map(int, sys.argv[6:])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
    print(json.dumps(run(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))))


if __name__ == "__main__":
    main()
