"""The first hour of an analyst, a Spark engineer and an FPGA engineer: time to the first result, cold and warm; and
three joins beside DuckDB, Polars and Pathway, each in a process of its own. Run: python -m bench.first_hour

``--quick`` takes all paths, but joins of 20,000 rows without Pathway, which is installed at its first use: ten minutes.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.hour_joins import JOINS, LIMIT, MEMORY, SPLITJOIN
from bench.record import Recorder, options_of
from bench.rivals_environment import rival

ROOT = Path(__file__).parent.parent
ENGINES = (SPLITJOIN, "duckdb", "polars", "pathway")

_ANALYST = """
import pyarrow.parquet as pq, splitjoin
r, s = (pq.read_table(f"{name}.parquet") for name in "rs")
print(len(splitjoin.join(r, s, on="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", window="RANGE 50000", time="ts")))
"""
_WHOLE = """
import pyarrow.parquet as pq, splitjoin
r, s = (pq.read_table(f"{name}.parquet") for name in "rs")
print(len(splitjoin.join(r, s, on="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10")))
"""
_SPARK = """
from splitjoin.spark import local_session, stream_join
spark = local_session("first hour", cores=2)
r, s = (spark.read.parquet(f"{name}.parquet") for name in "rs")
print(stream_join(r, s, on="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", window="RANGE 50000", time="ts").count())
"""
_CIRCUIT = """
import pyarrow.parquet as pq, splitjoin
from splitjoin_sim import SimDevice
r, s = (pq.read_table(f"{name}.parquet").slice(0, 1000) for name in "rs")
print(len(splitjoin.join(r, s, on="abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10", window="ROWS 1024",
                         device=SimDevice(cores=2, capacity=512))))
"""
_COMMAND = ("join r.parquet s.parquet --window 'RANGE 50000' --time ts -o found.parquet "
            "--on 'abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10'")
_VERILOG = ("verilog --schema-r r.parquet --schema-s s.parquet --window 'ROWS 1024' --cores 2 -o circuit "
            "--on 'abs(r.x - s.a) <= 10 AND abs(r.y - s.b) <= 10'")
#: User → their first command: words for Python, and the number of rows of each table.
FIRST = {
    "analyst, join of 20,000 rows": (["-c", _ANALYST], 20_000),
    "analyst, `splitjoin join` of 20,000 rows": (["-m", "splitjoin", *shlex.split(_COMMAND)], 20_000),
    "analyst, 1,000,000 rows without a window": (["-c", _WHOLE], 1_000_000),
    "Spark engineer, stream_join of 20,000 rows": (["-c", _SPARK], 20_000),
    "FPGA engineer, Verilog of two cores": (["-m", "splitjoin", *shlex.split(_VERILOG)], 20_000),
    "FPGA engineer, 1,000 tuples on two simulated cores": (["-c", _CIRCUIT], 20_000),
}


def tables(rows: int) -> dict[str, pa.Table]:
    """Both streams: ``ts`` on average 10 apart, keys of 1,000 values, and the values of the band benchmark."""
    rng = np.random.default_rng(rows)
    found = {}
    for name, x, y, low in (("r", "x", "y", "at"), ("s", "a", "b", "low")):
        start = rng.integers(0, 10 * rows, rows)
        found[name] = pa.table({"ts": np.sort(rng.integers(0, 10 * rows, rows)), "k": rng.integers(0, 1000, rows),
                                x: rng.integers(1, 10_001, rows).astype(np.int32),
                                y: rng.integers(1, 10_001, rows).astype(np.int32), low: start,
                                **({"high": start + rng.integers(1, 20, rows)} if name == "s" else {})})
    return found


@dataclass(frozen=True)
class Run:
    """One command: CPU seconds of all its processes, and of those that it did not leave behind, wall seconds, peak MiB
    of the largest process, what it printed.
    """

    cpu: float
    own: float
    wall: float
    peak: float
    printed: str
    ended: str


def run(command: list[str], folder: Path, environment: Mapping[str, str], *, may_end: bool = False,
        orphans: bool = False) -> Run:
    """Run ``command``, with the processes that it leaves behind if these ``orphans`` come to this process.

    Raises `RuntimeError` if it fails, but for the limits of time and memory, and crashes, if it ``may_end`` so.
    """
    out, errors = folder / "out.txt", folder / "errors.txt"
    start = time.perf_counter()
    with out.open("w") as stdout, errors.open("w") as stderr:
        process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, stdout=stdout,
                                   stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    own = cpu
    while orphans:  # Spark's JVM and its workers outlive the driver for a moment
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        cpu, peak = cpu + usage.ru_utime + usage.ru_stime, max(peak, usage.ru_maxrss / 1024)
    ended = {-signal.SIGXCPU: "time", -signal.SIGSEGV: "crash"}.get(process.returncode, "")
    if process.returncode and not ended and re.search("memory|bad_alloc", errors.read_text(), re.IGNORECASE):
        ended = "memory"
    if process.returncode and not (ended and may_end):
        raise RuntimeError(f"{command} ended with {process.returncode}:\n{errors.read_text()[-2000:]}")
    return Run(cpu, own, wall, peak, out.read_text(), ended)


def adopt_orphans() -> None:
    """Let processes whose parents have ended become children of this one, so that `run` can wait for them."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def first_result(out: Recorder, user: str) -> None:
    """A user's first command from starting the process to its end: with an empty cache, and once more."""
    words, rows = FIRST[user]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, table in tables(rows).items():
            pq.write_table(table, folder / f"{side}.parquet")
        caches = {"SPLITJOIN_CACHE": f"{folder}/cache", "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
        (folder / "cache").mkdir(mode=0o700)
        for caching in ("cold", "warm"):
            found = run([sys.executable, *words], folder, caches, orphans=True)
            config = {"user": user, "cache": caching}
            how = "of a new process, its imports included; cold: an empty cache"
            out.add("first_result_cpu_seconds", found.cpu, "s", config,
                    f"CPU time of all processes, {how}")
            out.add("first_result_caller_cpu_seconds", found.own, "s", config,
                    f"CPU time without processes that go on when the command has ended, {how}")
            out.add("first_result_seconds", found.wall, "s", config, f"wall time on a machine in use, {how}")
            out.add("first_result_memory", found.peak, "MiB", config, "peak of the largest process")


def joins(out: Recorder, join: str, rows: int, engines: tuple[str, ...] = ENGINES) -> None:
    """Time and memory of a join on each engine, two runs in one process. Asserts that all find as many pairs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, table in tables(rows).items():
            pq.write_table(table, folder / f"{side}.parquet")
        pairs: dict[str, int] = {}
        for engine in engines:
            measure(out, folder, engine, join, rows, pairs)
        assert len(set(pairs.values())) == 1, (join, rows, pairs)


def measure(out: Recorder, folder: Path, engine: str, join: str, rows: int, pairs: dict[str, int]) -> None:
    """One join on one engine; ``pairs`` gets how many it found, if it ended in time."""
    python = str(rival("pathway")) if engine == "pathway" else sys.executable
    config = {"join": join, "rows": rows, "engine": engine}
    command, path = [python, str(ROOT / "bench" / "hour_joins.py"), engine, join, str(LIMIT)], {"PYTHONPATH": str(ROOT)}
    if engine == SPLITJOIN:  # kernels are compiled once in a user's life: first_result_seconds has that
        run(command, folder, path, may_end=True)
    done = run(command, folder, path, may_end=True)
    lines = [json.loads(line) for line in done.printed.splitlines() if line.startswith("{")]
    how = ("in a process of its own, from tables in memory to all pairs with all columns in memory (Pathway: to their "
           "number), two threads; first: the first join of the process, splitjoin's kernels are in its cache")
    for number, line in zip(("first", "second"), lines[1:], strict=False):
        pairs[engine] = line["pairs"]
        full = {**config, "run": number, "pairs": line["pairs"]}
        out.add("join_cpu_seconds", line["cpu"], "s", full, f"CPU time of the call {how}")
        out.add("join_seconds", line["wall"], "s", full, f"wall time of the call on a machine that is in use, {how}")
    if lines[1:]:
        out.add("join_memory", lines[-1]["peak"] - lines[0]["before"], "MiB", config,
                "peak resident memory of the process over both runs, less what it had with the tables before the first")
    elif done.ended:
        out.add("join_cpu_seconds", LIMIT, "s", {**config, "run": f"ended by its limit of {done.ended}"},
                f"the first run reached the limit of {LIMIT} s of CPU time or of {MEMORY >> 30} GiB of memory")


def parts(*, quick: bool) -> Iterator[tuple[str, Callable[[Recorder], None]]]:
    """The parts that can be measured by themselves, by name."""
    for user in FIRST:
        yield user, partial(first_result, user=user)
    for rows in (20_000,) if quick else (100_000, 1_000_000):
        for join in JOINS:
            engines = ENGINES[:3] if quick else ENGINES
            yield f"{join}, {rows:,} rows", partial(joins, join=join, rows=rows, engines=engines)


def main() -> None:
    """All figures, or those of the parts whose names hold ``--only``."""
    options = options_of(__doc__ or "")
    options.add_argument("--only", metavar="TEXT", default="", help="measure the parts with this in their names")
    chosen = options.parse_args()
    adopt_orphans()
    for name, measured in parts(quick=chosen.quick):
        if chosen.only in name:
            out = Recorder("first_hour", quick=chosen.quick, part=name)
            measured(out)
            print(out.write())


if __name__ == "__main__":
    main()
