"""Plain `spark.sql` with and without `splitjoin.SplitJoinExtensions`: the same rows, and CPU seconds of all processes.

Run: python -m bench.spark_sql
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from bench.record import Recorder, options_of
from splitjoin.catalyst.jar import spark_jar
from splitjoin.spark import local_session

CORES = 2
#: Each runs so often with and without the extension, in turn; the least counts.
TURNS = 2

#: Tables by name, over ``range({n})`` for a scale of n.
TABLES = {
    "events": "SELECT id, pmod(xxhash64(id), 4294967296) ip, id * 7 at, pmod(hash(id), 500) usr FROM range({n})",
    "blocks": "SELECT id, id * (4294967296 div {m}) low, id * (4294967296 div {m}) + 60000 high FROM range({m})",
    "items": "SELECT id, cast(pmod(hash(id), 1000000) / 100 AS decimal(9, 2)) price, "
             "cast(pmod(hash(id, 1), 1000) AS int) qty, "
             "date_add(date'2024-01-01', cast(pmod(hash(id, 2), 700) AS int)) sold, pmod(hash(id, 3), 60) kind "
             "FROM range({n})",
    "bands": "SELECT id, cast(pmod(hash(id, 4), 1000000) / 100 AS decimal(9, 2)) lo, cast(pmod(hash(id, 4), 1000000) "
             "/ 100 + 3 AS decimal(9, 2)) hi, cast(pmod(hash(id, 5), 1000) AS int) least FROM range({m})",
    "rates": "SELECT id, pmod(id, 60) kind, date_add(date'2024-01-01', cast(id * 700 div {m} AS int)) valid_from, "
             "date_add(date'2024-01-01', cast((id + 1) * 700 div {m} AS int)) valid_to, id / 7 rate FROM range({m})",
    "genes": "SELECT id, pmod(xxhash64(id, 6), 100000000) a, pmod(xxhash64(id, 6), 100000000) + 900 b FROM range({n})",
    "reads": "SELECT id, pmod(xxhash64(id, 7), 100000000) a, pmod(xxhash64(id, 7), 100000000) + 150 b FROM range({m})",
    "points": "SELECT id, pmod(hash(id, 8), 100000) / 100D x, pmod(hash(id, 9), 100000) / 100D y FROM range({n})",
    "shops": "SELECT id, pmod(hash(id, 10), 100000) / 100D x, pmod(hash(id, 11), 100000) / 100D y FROM range({m})",
    "words": "SELECT id, hex(xxhash64(id, 12)) word FROM range({n})",
    "spans": "SELECT id, hex(xxhash64(id, 13)) first, concat(substring(hex(xxhash64(id, 13)), 1, 4), 'G') last "
             "FROM range({m})",
    "visits": "SELECT id, id * 7 * {n} div {m} begin, id * 7 * {n} div {m} + 40 ending, pmod(hash(id), 500) usr "
              "FROM range({m})",
    "few": "SELECT id, id * 100 low, id * 100 + 50 high FROM range(100)",
}
#: Name, statement, and whether splitjoin is to run its join.
QUERIES = [
    ("IP ranges", "SELECT count(*), sum(b.id) FROM events e JOIN blocks b ON e.ip BETWEEN b.low AND b.high", True),
    ("IP ranges, left", "SELECT count(*), count(b.id) FROM events e LEFT JOIN blocks b ON e.ip BETWEEN b.low "
                        "AND b.high", True),
    ("price bands", "SELECT count(*), sum(i.qty) FROM items i JOIN bands b ON i.price >= b.lo AND i.price < b.hi",
     True),
    ("price bands, quantity", "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON i.price BETWEEN b.lo AND b.hi "
                              "AND i.qty >= b.least", True),
    ("SCD", "SELECT count(*), sum(r.id) FROM items i JOIN rates r ON i.sold >= r.valid_from AND i.sold < r.valid_to",
     True),
    ("SCD, left", "SELECT i.kind, count(r.id) FROM items i LEFT JOIN rates r ON i.sold >= r.valid_from "
                  "AND i.sold < r.valid_to GROUP BY i.kind", True),
    ("SCD with a key", "SELECT count(*), sum(r.id) FROM items i JOIN rates r ON i.kind = r.kind "
                       "AND i.sold >= r.valid_from AND i.sold < r.valid_to", False),
    ("overlap", "SELECT count(*), sum(g.id * r.id) FROM genes g JOIN reads r ON g.a <= r.b AND r.a <= g.b", True),
    ("overlap, exists", "SELECT count(*), sum(id) FROM reads r WHERE EXISTS (SELECT 1 FROM genes g WHERE g.a <= r.b "
                        "AND r.a <= g.b)", True),
    ("overlap, not exists", "SELECT count(*), sum(id) FROM genes g WHERE NOT EXISTS (SELECT 1 FROM reads r "
                            "WHERE g.a <= r.b AND r.a <= g.b)", True),
    ("overlap by greatest and least", "SELECT count(*), sum(g.id) FROM genes g JOIN reads r ON greatest(g.a, r.a) <= "
                                      "least(g.b, r.b)", True),
    ("nearby shops", "SELECT count(*), sum(s.id) FROM points p JOIN shops s ON abs(p.x - s.x) <= 2 "
                     "AND abs(p.y - s.y) <= 2", True),
    ("text ranges", "SELECT count(*), sum(s.id) FROM words w JOIN spans s ON w.word BETWEEN s.first AND s.last", True),
    ("visits", "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.at BETWEEN v.begin AND v.ending", True),
    ("visits of a user", "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.usr = v.usr "
                         "AND e.at BETWEEN v.begin AND v.ending", False),
    ("times nearby", "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON abs(e.at - v.begin) <= 15", True),
    ("times nearby, other users", "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.at >= v.begin - 15 "
                                  "AND e.at <= v.begin + 15 AND e.usr <> v.usr", True),
    ("equality or range", "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON i.id = b.id OR (i.price >= b.lo "
                          "AND i.price < b.hi)", True),
    ("two joins", "SELECT i.kind, count(*) FROM items i JOIN bands b ON i.price >= b.lo AND i.price < b.hi "
                  "JOIN rates r ON i.sold >= r.valid_from AND i.sold < r.valid_to GROUP BY i.kind", True),
    ("full", "SELECT count(*), count(g.id), count(r.id) FROM genes g FULL JOIN reads r ON g.a <= r.a AND r.a <= g.b",
     True),
    ("equality alone", "SELECT count(*), sum(i.qty) FROM items i JOIN bands b ON i.qty = b.least", False),
    ("few rows", "SELECT count(*), sum(f.id) FROM few f JOIN bands b ON b.lo BETWEEN f.low AND f.high", False),
]


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it started, ended ones too."""
    own = psutil.Process(os.getpid())
    return sum(sum(process.cpu_times()[:4]) for process in (own, *own.children(recursive=True)))


def plan_of(spark: SparkSession, text: str) -> str:
    """The plan that Spark's optimizer gives, with notes on joins that stay."""
    return str(spark.sql(text)._jdf.queryExecution().optimizedPlan().toString())


def ran(spark: SparkSession, text: str, enabled: bool) -> tuple[float, list[str], bool]:
    """CPU seconds, the rows sorted, and whether splitjoin ran a join of it."""
    spark.conf.set("spark.splitjoin.sql.enabled", str(enabled))
    frame = spark.sql(text)
    taken = "MapInArrow splitjoin[" in plan_of(spark, text)
    began = cpu_seconds()
    rows = sorted(map(repr, frame.collect()))
    return cpu_seconds() - began, rows, taken


def main() -> None:
    """All figures. Raises `AssertionError` where rows differ, or another join is replaced than is to be."""
    parser = options_of(__doc__ or "")
    parser.add_argument("queries", nargs="*", metavar="NAME", help="only these (all)")
    parser.add_argument("--both", action="store_true", help="also without adaptive execution")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"how often each runs ({TURNS})")
    options = parser.parse_args()
    out = Recorder("spark_sql", quick=options.quick or bool(options.queries))
    n, m, turns = (8_000, 4_000, 1) if options.quick else (30_000, 10_000, options.turns)
    config = {"spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions",
              "spark.sql.shuffle.partitions": "4",
              # The files are smaller than the rows in them, which Spark estimates by their size.
              "spark.splitjoin.sql.minComparisons": "1000000" if options.quick else "10000000"}
    with tempfile.TemporaryDirectory() as name:
        spark = local_session("bench", cores=CORES, log=Path(name) / "spark.log", config=config)
        for table, text in TABLES.items():
            path = str(Path(name) / table)
            spark.sql(text.format(n=n, m=m)).repartition(CORES).write.parquet(path)
            spark.read.parquet(path).createOrReplaceTempView(table)
        for query, text, expected in QUERIES:
            if options.queries and query not in options.queries:
                continue
            for adaptive in (True, False) if options.both else (True,):
                spark.conf.set("spark.sql.adaptive.enabled", str(adaptive))
                seconds: dict[bool, list[float]] = {True: [], False: []}
                answers = set()
                for _ in range(turns):
                    for enabled in (True, False):
                        used, rows, taken = ran(spark, text, enabled)
                        if taken != (enabled and expected):
                            raise AssertionError(f"{query}: replaced is {taken}: {plan_of(spark, text)}")
                        seconds[enabled].append(used)
                        answers.add(str(rows))
                assert len(answers) == 1, f"{query}: different rows: {answers}"
                where = {"query": query, "rows": n, "other_rows": m, "adaptive": adaptive, "replaced": expected}
                how = f"the least of {turns}, in turn with and without the extension; two cores, from Parquet"
                for enabled, metric in ((True, "with_extension"), (False, "without_extension")):
                    out.add(metric, min(seconds[enabled]), "CPU s", where, how)
            out.write()  # after each, as all take an hour on a machine that has much else to do
        spark.stop()


if __name__ == "__main__":
    main()
