"""Plain `spark.sql` with and without `splitjoin.SplitJoinExtensions`: the same rows, and CPU seconds of all processes.

Run: python -m bench.spark_sql; with ``--first`` each run has new workers and an empty cache, as a user's first one.
"""

from __future__ import annotations

import math
import os
import re
import statistics
import tempfile
from collections import defaultdict
from contextlib import suppress
from itertools import product
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession

from bench.record import Recorder, options_of
from bench.spark_sql_queries import QUERIES, TABLES
from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

CORES = 2
#: So often all run, with the extension and without; the least counts. Those that stay with Spark run more often in each
#: turn, so many times for one figure: they are short, and the clock of CPU time is coarse.
TURNS, MORE, TIMES = 3, 10, 5
#: So often the first join runs before all others: a session that has only begun compiles most of Spark's own code.
WARMING = 60
#: Student's t of a 95 % confidence interval of 30 pairs.
STUDENT = 2.045
#: Pairs of rows for each that the rule may estimate, where it is to take joins of a quick run.
PACKED = 32


class CpuTime:
    """CPU seconds of this process and of all that it started, those that ended at their last look."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], float] = {}

    def seconds(self) -> float:
        """All so far."""
        own = psutil.Process(os.getpid())
        for process in (own, *own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                self._seen[process.pid, process.create_time()] = sum(process.cpu_times()[:2])
        return sum(self._seen.values())


def workers() -> list[psutil.Process]:
    """The Python workers of this process's Spark."""
    found = []
    for process in psutil.Process(os.getpid()).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            if parent is not None and all("pyspark.daemon" in p.cmdline() for p in (process, parent)):
                found.append(process)
    return found


def end_workers(cpu: CpuTime) -> None:
    """End the Python workers, which wait for tasks, so that the next join starts others."""
    cpu.seconds()
    for process in workers():
        with suppress(psutil.NoSuchProcess):
            process.kill()
            process.wait()


def plan_of(spark: SparkSession, text: str) -> str:
    """The plan that Spark's optimizer gives, with notes on joins that stay."""
    return str(spark.sql(text)._jdf.queryExecution().optimizedPlan().toString())


def executed(spark: SparkSession, text: str, enabled: bool) -> str:
    """The physical plan, without the numbers that each query has anew."""
    spark.conf.set("spark.splitjoin.sql.enabled", str(enabled))
    plan = str(spark.sql(text)._jdf.queryExecution().executedPlan().toString())
    return re.sub(r"(#|plan_id=)\d+", r"\1", plan)


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the mean ratio of pairs of runs."""
    logs = list(map(math.log, ratios))
    middle, width = statistics.mean(logs), STUDENT * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - width), math.exp(middle + width)


def ran(spark: SparkSession, cpu: CpuTime, text: str, enabled: bool, times: int = 1) -> tuple[float, list[str], bool]:
    """The mean CPU seconds of so many runs, the rows sorted, and whether splitjoin ran a join of it."""
    spark.conf.set("spark.splitjoin.sql.enabled", str(enabled))
    frames = [spark.sql(text) for _ in range(times)]
    taken = "MapInArrow splitjoin[" in plan_of(spark, text)
    began = cpu.seconds()
    rows = [frame.collect() for frame in frames]
    return (cpu.seconds() - began) / times, sorted(map(repr, rows[0])), taken


def read_rows(spark: SparkSession, in_python: bool) -> DataFrame:
    """A query that reads and counts the rows of the first join, and joins nothing; ``in_python``: a task there gets
    them all, and gives them back.
    """
    rows = spark.sql("SELECT id, ip, cast(NULL AS bigint) high FROM events UNION ALL SELECT id, low, high FROM blocks")
    if in_python:
        rows = rows.repartition(1).mapInArrow(lambda batches: batches, rows.schema)
    return rows.selectExpr("count(*)", "sum(id)")


def main() -> None:
    """All figures. Raises `AssertionError` at the end if rows differ, or another join is replaced than is to be."""
    parser = options_of(__doc__ or "")
    parser.add_argument("queries", nargs="*", metavar="NAME", help="only these; the figures of others, and of "
                        "other numbers of rows, stay (all)")
    parser.add_argument("--both", action="store_true", help="also without adaptive execution")
    parser.add_argument("--first", action="store_true", help="with new workers and an empty cache for each run")
    parser.add_argument("--rows", type=int, metavar="N", help="rows of the greater tables, twice those of the others")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"how often each runs ({TURNS})")
    options = parser.parse_args()
    out = Recorder("spark_sql", quick=options.quick, part="first" if options.first else "queries")
    cpu, wrong = CpuTime(), list[str]()
    n, m, turns = (8_000, 4_000, 1) if options.quick else (40_000, 24_000, options.turns)
    turns = 1 if options.first else turns
    if options.rows:
        n, m = options.rows, options.rows // 2
    if options.queries:
        out.keep(lambda row: row["config"]["query"] not in options.queries or row["config"]["rows"] != n
                 or row["metric"].startswith("rows_"))
    config = {"spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
              "spark.sql.shuffle.partitions": "4"}
    if options.quick or options.rows:
        config["spark.splitjoin.sql.minComparisons"] = str(n * m // (12 if options.quick else PACKED))
    with tempfile.TemporaryDirectory() as name:
        if options.first:
            (Path(name) / "cache").mkdir()
            config["spark.executorEnv.SPLITJOIN_CACHE"] = str(Path(name) / "cache")
        spark = local_session("bench", cores=CORES, log=Path(name) / "spark.log", config=config)
        for table, text in TABLES.items():
            path = str(Path(name) / table)
            spark.sql(text.format(n=n, m=m)).repartition(CORES).write.parquet(path)
            spark.read.parquet(path).createOrReplaceTempView(table)
        if not options.first:
            for _ in range(1 if options.quick else WARMING):
                ran(spark, cpu, QUERIES[0][1], True)  # starts workers, too
        chosen = [query for query in QUERIES if not options.queries or query[0] in options.queries]
        modes = (True, False) if options.both else (True,)
        seconds = defaultdict[tuple[str, bool, bool], list[float]](list)
        answers = defaultdict[str, set[str]](set)
        # All in each turn, as the JVM gets faster; in one before the first, it compiles each plan once.
        for turn in range(-(turns > 1), turns):
            for (query, text, expected), adaptive in product(chosen, modes):
                spark.conf.set("spark.sql.adaptive.enabled", str(adaptive))
                pairs, times = (1, 1) if expected or turns == 1 or turn < 0 else (MORE, TIMES)
                if options.first:
                    end_workers(cpu)
                if turn == 0 and not expected and executed(spark, text, True) != executed(spark, text, False):
                    wrong.append(f"{query}: another physical plan: {executed(spark, text, True)}")
                for pair in range(pairs):
                    for enabled in ((turn + pair) % 2 == 0, (turn + pair) % 2 == 1):
                        used, rows, taken = ran(spark, cpu, text, enabled, times)
                        if taken != (enabled and expected):
                            wrong.append(f"{query}: replaced is {taken}: {plan_of(spark, text)}")
                        answers[query].add(str(rows))
                        if turn >= 0:
                            seconds[query, adaptive, enabled].append(used)
                if turn < turns - 1:
                    continue
                where = {"query": query, "rows": n, "other_rows": m, "adaptive": adaptive, "replaced": expected}
                how = (f"the least of {turns * pairs}{f' means of {times}' * (times > 1)}, in turns; two cores, from "
                       f"Parquet{'; new workers and no compiled loops' if options.first else ''}")
                for enabled, metric in ((True, "with_extension"), (False, "without_extension")):
                    out.add(metric, min(seconds[query, adaptive, enabled]), "CPU s", where, how)
                if times > 1:
                    ends = interval([a / b for a, b in zip(seconds[query, adaptive, True],
                                                           seconds[query, adaptive, False], strict=True)])
                    for metric, end in zip(("least_ratio", "greatest_ratio"), ends, strict=True):
                        out.add(metric, end, "with / without", where,
                                f"95 % confidence, {turns * pairs} pairs of {times} runs")
                out.write()  # after each, as all take an hour on a machine that has much else to do
        wrong += [f"{query}: different rows: {found}" for query, found in answers.items() if len(found) > 1]
        if not options.first and not options.queries:
            for adaptive in modes:
                spark.conf.set("spark.sql.adaptive.enabled", str(adaptive))
                for metric, in_python, how in (
                        ("rows_counted", False, "the rows that this join reads, counted, no join"),
                        ("rows_through_python", True, "those, shuffled and handed to a task in Python, no join")):
                    alone = []
                    for _ in range(turns * MORE):
                        began = cpu.seconds()
                        read_rows(spark, in_python).collect()
                        alone.append(cpu.seconds() - began)
                    out.add(metric, min(alone), "CPU s", {"query": QUERIES[0][0], "rows": n, "other_rows": m,
                                                          "adaptive": adaptive}, how)
            out.write()
        spark.stop()
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main()
