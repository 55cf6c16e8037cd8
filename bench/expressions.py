"""Conditions that are evaluated pair by pair, compiled and with NumPy: what bench/cpu.py records of them."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from bench.record import Recorder
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.cpu.search import ExpressionSearch
from splitjoin.engines.cpu.session import CpuSession
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema

#: Tuples of the smallest window.
LEAST = 4096
#: Name → condition, over int32 columns.
CONDITIONS = {
    "manhattan": "abs(r.x - s.a) + abs(r.y - s.b) <= 10",
    "euclid": "(r.x - s.a) * (r.x - s.a) + (r.y - s.b) * (r.y - s.b) <= 100",
}


def _streams(n: int) -> tuple[pa.Table, pa.Table]:
    random = np.random.default_rng(5)
    columns = [random.integers(1, 10_001, n).astype(np.int32) for _ in range(4)]
    return pa.table({"x": columns[0], "y": columns[1]}), pa.table({"a": columns[2], "b": columns[3]})


def expressions(out: Recorder, window: int, tuples: int) -> None:
    """Pairs a second on one thread, ordered output included, for ``tuples`` of each stream behind full windows.

    ``window``: from 4096, so that the pairs of filling it have all compiled before the clock starts. NumPy gets 64
    tuples and the smallest window, as it would be at filling a larger one for an hour.
    """
    for name, on in CONDITIONS.items():
        for engine, rows, n in (("compiled", window, tuples), ("numpy", LEAST, 64)):
            r, s = _streams(rows + n)
            query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=on, window=f"ROWS {rows}")
            with CpuSession(query, ExpressionSearch(query.predicate, compiling=engine == "compiled")) as session:
                session.push(arrivals(query, r[:rows], s[:rows]))
                session.poll()
                before, start = session.counters()["comparisons"], time.process_time()
                session.push(arrivals(query, r[rows:], s[rows:]))
                session.poll()
                took = time.process_time() - start
                pairs = session.counters()["comparisons"] - before
            out.add("expression_gpairs_per_core", pairs / took / 1e9, "Gpairs/s",
                    {"engine": engine, "condition": name, "on": on, "window": rows},
                    "CPU seconds of one thread from full windows on, the whole condition for every pair")
