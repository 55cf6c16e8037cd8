"""The CPU engine beside what a user would write instead, in one run. Run: python -m bench.cpu"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import splitjoin
from bench.band import ON, streams
from bench.expressions import expressions
from bench.record import Recorder, arguments
from bench.rivals import BATCH, duckdb_seconds, numpy_gcmps, polars_seconds
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import Session
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

#: Arrivals that the engine gets at once: nested loops, and the index; the rivals get micro-batches of `BATCH`.
MIDDLE, LARGE = 4 * BATCH, 8 * BATCH
PROCESS = "CPU seconds of one thread, from full windows on, ordered output included"

#: Figures of others, as published or as measured by others, on their machines.
PUBLISHED = [
    ("nested_gcmps_per_core", 4 / 48, "Gcmp/s", {"engine": "ScaleJoin", "threads": 48},
     "published: 4 billion comparisons a second on 48 threads (ScaleJoin, section VI)"),
    ("nested_gcmps_per_core", (4 - 2.5) / 48, "Gcmp/s", {"engine": "handshake join", "threads": 48},
     "published: 2.5 billion a second fewer than ScaleJoin on the same machine (ScaleJoin, section VI)"),
    ("nested_gcmps_per_core", 5200 * 2**21 / 28 / 1e9, "Gcmp/s", {"engine": "SplitJoin", "window": 2**21, "cores": 28},
     "published: 5200 tuples a second on 28 join cores (SplitJoin, section 7)"),
]


def query(window: str | tuple[str, str]) -> Query:
    """The band benchmark."""
    r, s = streams(1)
    return Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=ON, window=window)


def behind(q: Query, device: CpuDevice, window: int, tuples: int, clock: Any,
           batch: int = BATCH) -> tuple[float, dict[str, int], str]:
    """Seconds and counters for ``tuples`` of each stream in batches, behind full windows; and what ran."""
    r, s = streams(window + tuples)
    with device.open(q) as session:
        push(session, arrivals(q, r[:window], s[:window]), 1 << 16)
        before, incoming = session.counters(), arrivals(q, r[window:], s[window:])
        start = clock()
        push(session, incoming, batch)
        took = clock() - start
        return took, {k: v - before[k] for k, v in session.counters().items()}, session.plan()


def push(session: Session, incoming: Arrivals, size: int) -> None:
    """Push and poll in batches of ``size`` arrivals."""
    for at in range(0, len(incoming), size):
        part = slice(at // 2, (at + size) // 2)
        session.push(Arrivals(incoming.stream[at:at + size], None, incoming.r[part], incoming.s[part]))
        session.poll()


def nested(out: Recorder, bits: int, tuples: int) -> None:
    """Pairs a second of the nested loops: exact, and with the verified prefilter."""
    window = 2**bits
    # Filling the largest windows pair by pair takes minutes: there R's window is one tuple, and S's is filled alone.
    one_sided = bits > 18
    q = query(("ROWS 1", f"ROWS {window}") if one_sided else f"ROWS {window}")
    for prefilter in (False, True):
        device = CpuDevice(engine="nested", threads=1, prefilter=prefilter)
        config = {"engine": f"cpu, nested, {'prefilter' if prefilter else 'exact'}", "window": window,
                  "batch": MIDDLE, "order": "total"}
        if one_sided:
            r, s = streams(window + tuples)
            with device.open(q) as session:
                push_one_sided(session, s[:window])
                before = session.counters()["comparisons"]
                incoming = arrivals(q, r[:tuples], s[window:])
                start = time.process_time()
                push(session, incoming, BATCH)
                took, compared = time.process_time() - start, session.counters()["comparisons"] - before
            config["window of R"] = 1
        else:
            took, counters, _ = behind(q, device, window, tuples, time.process_time, MIDDLE)
            compared = counters["comparisons"]
        out.add("nested_gcmps_per_core", compared / took / 1e9, "Gcmp/s", config, PROCESS)
    out.add("nested_gcmps_per_core", numpy_gcmps(*streams(window), window), "Gcmp/s",
            {"engine": "numpy", "window": window},
            "CPU seconds; 64 probes broadcast against the window, pairs found, nothing ordered")


def push_one_sided(session: Session, s: Any) -> None:
    """Fill S's window while R is silent."""
    import numpy as np

    empty = streams(0)[0]
    for at in range(0, len(s), 1 << 16):
        part = s[at:at + (1 << 16)]
        session.push(Arrivals(np.ones(len(part), np.uint8), None, empty, part))
        session.poll()


def index(out: Recorder, bits: int, tuples: int, batches: int) -> None:
    """Tuples a second of the index, and of the rivals in the same run."""
    window = 2**bits
    q, config = query(f"ROWS {window}"), {"window": window, "batch": BATCH, "order": "total"}
    for batch in (LARGE, BATCH):
        took, _, words = behind(q, CpuDevice(engine="index", threads=1), window, tuples, time.process_time, batch)
        rate = 2 * tuples / took / 1e6
        out.add("index_mtuples_per_s", rate, "M tuples/s", {"engine": f"cpu, {words}"} | config | {"batch": batch},
                PROCESS)
    r, s = streams(window + batches * BATCH // 2)
    expected = expected_pairs(q, r, s, batches)
    for name, grid in (("duckdb, grid equi-join", True), ("duckdb, plain", False)):
        if not grid and bits > 15:
            continue  # minutes a batch
        count = batches if grid else 2
        seconds, found = duckdb_seconds(r, s, window, count, grid=grid)
        assert not grid or found == expected, (name, found, expected)
        out.add("duckdb_mtuples_per_s", count * BATCH / seconds / 1e6, "M tuples/s", {"engine": name} | config,
                "CPU seconds of one thread for ordered micro-batches behind full windows, tables loaded before")
        if grid:
            out.add("index_to_duckdb", rate / (count * BATCH / seconds / 1e6), "times", config,
                    "the index over DuckDB's grid equi-join, both above")
    if bits <= 15:
        seconds, found = polars_seconds(r, s, window, 2)
        out.add("polars_mtuples_per_s", 2 * BATCH / seconds / 1e6, "M tuples/s",
                {"engine": "polars, join_where"} | config, "CPU seconds of all threads for ordered micro-batches")


def expected_pairs(q: Query, r: Any, s: Any, batches: int) -> int:
    """The number of pairs of the last batches."""
    n = len(r) - batches * BATCH // 2
    with CpuDevice(threads=1).open(q) as session:
        push(session, arrivals(q, r[:n], s[:n]), 1 << 16)
        before = session.counters()["matches"]
        push(session, arrivals(q, r[n:], s[n:]), 1 << 16)
        return session.counters()["matches"] - before


def scaling(out: Recorder, bits: int, engine: Any, tuples: int) -> None:
    """The speed-up of two workers over one."""
    q = query(f"ROWS {2**bits}")
    config = {"engine": f"cpu, {engine}", "window": 2**bits, "batch": LARGE, "threads": 2}
    seconds = [min(behind(q, CpuDevice(engine=engine, threads=n), 2**bits, tuples, time.perf_counter, LARGE)[0]
                   for _ in range(3)) for n in (1, 2)]
    out.add("thread_scaling", seconds[0] / seconds[1], "times", config,
            "wall time with one worker over that with two, the best of three runs each, in turn, full windows")


_FIRST = """
from bench.band import ON, streams
import splitjoin
assert splitjoin.join(*streams(20_000), on=ON, window="ROWS 4096").num_rows
"""


def first_result(out: Recorder) -> None:
    """Seconds from starting Python to the first result, with and without kernels in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "SPLITJOIN_CACHE": cache}
        for cached in ("no", "yes"):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", _FIRST], cwd=Path(__file__).parents[1], env=env, check=True)
            out.add("first_result_seconds", time.perf_counter() - start, "s",
                    {"engine": "cpu", "window": 4096, "kernels in cache": cached},
                    "wall time of a new Python process that joins 20,000 tuples of each stream")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("cpu", quick=options.quick)
    splitjoin.join(*streams(10), on=ON, window="ROWS 9")
    full = ((12, 400_000), (15, 100_000), (18, 20_000), (21, 2_000))
    for bits, tuples in ((12, 100_000), (15, 30_000)) if options.quick else full:
        nested(out, bits, tuples)
    indexes = ((12, 400_000), (15, 400_000)) if options.quick else tuple((b, 1_000_000) for b in (12, 15, 18, 21))
    for bits, tuples in indexes:
        index(out, bits, tuples, 4)
    for window, tuples in ((1 << 12, 4096),) if options.quick else ((1 << 12, 16_384), (1 << 15, 8192)):
        expressions(out, window, tuples)
    for bits, engine, tuples in ((12, "index", 400_000), (15, "index", 400_000), (15, "nested", 131_072)):
        scaling(out, bits, engine, tuples)
    if not options.quick:
        scaling(out, 18, "index", 400_000)
        scaling(out, 18, "nested", 32_768)
        first_result(out)
    for row in PUBLISHED:
        out.add(*row)
    print(out.write())


if __name__ == "__main__":
    main()
