"""The first join of a Spark session beside plain Spark's own: CPU time by part, and by the clock.

Each case has a session, and so a JVM and Python workers, of its own; all come in turns. Plain Spark joins 20,000 rows
with 20,000 by a band, splitjoin the same.
Run: python -m bench.spark_first
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.record import Recorder, arguments

#: Cases: how the join is written.
CASES = ("plain Spark", "extension", "stream_join without time", "stream_join in windows")
ROWS, CORES = 20_000, 2
PARTS = ("JVM", "driver", "workers")
_SQL = "SELECT count(*) FROM l JOIN r ON l.x BETWEEN r.a - 2 AND r.a + 2"


def spent() -> dict[str, float]:
    """CPU seconds so far of this process, of the JVM, and of the workers with those that have ended."""
    tick, found = os.sysconf("SC_CLK_TCK"), dict.fromkeys(PARTS, 0.0)
    children: dict[int, list[int]] = {}
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            fields = rest.split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            stats[int(entry.name)] = name, [int(field) / tick for field in fields[11:15]]
    family = [os.getpid()]
    for pid in family:
        family += children.get(pid, [])
        name, (user, system, ended_user, ended_system) = stats.get(pid, ("", [0.0] * 4))
        own = user + system
        if pid == os.getpid():
            found["driver"] += own
        elif name.startswith("java"):
            found["JVM"] += own
        else:
            found["workers"] += own + ended_user + ended_system
    return found


def child(case: str) -> None:
    """Join three times in a new session, and print seconds by the clock and by part."""
    from splitjoin.catalyst.jar import spark_jar
    from splitjoin.spark import local_session

    extension = {"spark.jars": str(spark_jar()), "spark.sql.extensions": "splitjoin.SplitJoinExtensions"}
    with tempfile.TemporaryDirectory() as name:
        spark = local_session("bench", cores=CORES, log=Path(name) / "log",
                              config=extension if case == "extension" else {})
        times = "timestamp_seconds(id div 100) ts"
        left = spark.sql(f"SELECT cast(pmod(hash(id), 1000000) AS int) x, {times} FROM range({ROWS})")
        right = spark.sql(f"SELECT cast(pmod(hash(id, 1), 1000000) AS int) a, {times} FROM range({ROWS})")
        left.createOrReplaceTempView("l")
        right.createOrReplaceTempView("r")
        spark.range(1000).selectExpr("sum(hash(id))").collect()  # which any session has done before
        for number in range(3):
            before, began = spent(), time.perf_counter()
            if case.startswith("stream_join"):
                from splitjoin.spark import stream_join

                windows: dict[str, Any] = {"window": "RANGE 1 MINUTE", "time": "ts"} if "windows" in case else {}
                stream_join(left, right, on="r.x BETWEEN s.a - 2 AND s.a + 2", **windows).count()
            else:
                spark.sql(_SQL).collect()
            seconds = time.perf_counter() - began
            after = spent()
            print(json.dumps([number, seconds, {part: after[part] - before[part] for part in PARTS}]), flush=True)
        spark.stop()


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("spark_first", quick=options.quick)
    found: dict[tuple[str, int], list[tuple[float, dict[str, float]]]] = {}
    for _ in range(1 if options.quick else 3):
        for case in CASES:
            lines = subprocess.run([sys.executable, "-m", "bench.spark_first", "--child", case], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout
            for line in lines.splitlines():
                if line.startswith("["):
                    number, seconds, parts = json.loads(line)
                    found.setdefault((case, number), []).append((seconds, parts))
    how = f"median of {1 if options.quick else 3} new sessions; {ROWS} x {ROWS} rows, a band"
    for (case, number), runs in sorted(found.items(), key=lambda item: (CASES.index(item[0][0]), item[0][1])):
        config = {"case": case, "query": ("first", "second", "third")[number], "cores": CORES}
        out.add("first_seconds", statistics.median(seconds for seconds, _ in runs), "s by the clock", config, how)
        out.add("first_cpu", statistics.median(sum(parts.values()) for _, parts in runs), "CPU s", config, how)
        for part in PARTS:
            out.add("first_cpu_of_part", statistics.median(parts[part] for _, parts in runs), "CPU s",
                    config | {"part": part}, how)
    out.write()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        main()
