"""The joins of bench/spark_rivals.py in Flink SQL, in its own environment: python bench/flink_join.py FOLDER"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

#: The condition, within ten seconds.
CONDITION = """ABS(r.x - s.a) <= 10 AND ABS(r.y - s.b) <= 10
    AND r.ts BETWEEN s.ts - INTERVAL '10' SECOND AND s.ts + INTERVAL '10' SECOND"""
#: Its ways: the interval join alone, and with bins of 200 of both bands; a row of R is in all that it touches.
QUERIES = {
    "Flink, interval join": f"SELECT r.x, s.a FROM r, s WHERE {CONDITION}",
    "Flink, bins of both bands": f"""SELECT r.x, s.a FROM (
        SELECT x, y, ts, i, j FROM r
        CROSS JOIN UNNEST(ARRAY_DISTINCT(ARRAY[FLOOR((x - 10) / 200), FLOOR((x + 10) / 200)])) AS u (i)
        CROSS JOIN UNNEST(ARRAY_DISTINCT(ARRAY[FLOOR((y - 10) / 200), FLOOR((y + 10) / 200)])) AS v (j)) r
        JOIN (SELECT a, b, ts, FLOOR(a / 200) i, FLOOR(b / 200) j FROM s) s
        ON r.i = s.i AND r.j = s.j AND {CONDITION}"""}


def main(folder: Path) -> None:
    """Join the CSV files of r/ and s/, and print for each way the pairs, CPU seconds and seconds of its second run."""
    import psutil

    # Flink has an environment of its own, which the checker of types does not see.
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found,unused-ignore]

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    for name, columns in (("r", "x DOUBLE, y DOUBLE"), ("s", "a DOUBLE, b DOUBLE")):
        env.execute_sql(f"CREATE TABLE {name} (us BIGINT, {columns}, ts AS TO_TIMESTAMP_LTZ(us / 1000, 3), WATERMARK "
                        f"FOR ts AS ts) WITH ('connector'='filesystem', 'path'='{folder}/{name}', 'format'='csv')")
    jvm = next(p for p in psutil.Process().children(recursive=True) if "java" in p.name())
    for n, (way, query) in enumerate(QUERIES.items()):
        assert "IntervalJoin(" in env.explain_sql(query), "Flink plans another join, which keeps all rows"
        for again in range(2):
            out = f"{folder}/{n}-{again}"
            env.execute_sql(f"CREATE TABLE out{n}{again} (x DOUBLE, a DOUBLE) WITH ('connector'='filesystem', "
                            f"'path'='{out}', 'format'='csv')")
            began, used = time.perf_counter(), sum(jvm.cpu_times()[:2])
            env.execute_sql(f"INSERT INTO out{n}{again} {query}").wait()
            took, cpu = time.perf_counter() - began, sum(jvm.cpu_times()[:2]) - used
        pairs = sum(len(path.read_text().splitlines()) for path in Path(out).rglob("*") if path.is_file())
        print(json.dumps({"way": way, "pairs": pairs, "cpu": cpu, "seconds": took}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
