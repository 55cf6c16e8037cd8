"""Many queries over shared streams, beside a session for each: CPU time of pushes and polls by the number of queries.

Run: python -m bench.shared [--quick]
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of

QUERIES = (1, 4, 16)
WINDOW, STEP = 2_000, 1_000


def tables(n: int) -> tuple[pa.Table, pa.Table]:
    """Both streams: a tuple a tick, with a text that results have."""
    rng = np.random.default_rng(1)

    def stream(column: str) -> pa.Table:
        return pa.table({"ts": np.arange(n), column: rng.integers(0, 10**6, n).astype(np.int32),
                         "k": rng.integers(0, 1000, n), "text": [f"{column}{k % 97}" for k in range(n)]})

    return stream("x"), stream("y")


def condition(number: int) -> str:
    """A condition of its own for each query."""
    return f"abs(r.x - s.y) <= {20 + number}"


def shared(q: int, r: pa.Table, s: pa.Table) -> tuple[float, float]:
    """CPU seconds of the pushes and of the polls."""
    pushing = polling = 0.0
    with splitjoin.share(r.schema, s.schema, time="ts") as streams:
        queries = [streams.query(on=condition(n), window=f"RANGE {WINDOW}", threads=1, compiling="first")
                   for n in range(q)]
        for at in range(0, len(r), STEP):
            begin = time.process_time()
            streams.push_r(r.slice(at, STEP))
            streams.push_s(s.slice(at, STEP))
            between = time.process_time()
            for query in queries:
                query.poll()
            polling += time.process_time() - between
            pushing += between - begin
    return pushing, polling


def single(q: int, r: pa.Table, s: pa.Table) -> float:
    """CPU seconds of as many sessions, pushes and polls together: a push joins."""
    total = 0.0
    for n in range(q):
        query = splitjoin.query(r.schema, s.schema, on=condition(n), window=f"RANGE {WINDOW}", time="ts")
        with splitjoin.open(query, threads=1, compiling="first") as session:
            begin = time.process_time()
            for at in range(0, len(r), STEP):
                session.push_r(r.slice(at, STEP))
                session.push_s(s.slice(at, STEP))
                session.poll()
            total += time.process_time() - begin
    return total


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    out = Recorder("shared", quick=options.quick)
    n, times = (20_000, 2) if options.quick else (100_000, 3)
    r, s = tables(n)
    shared(1, r, s)  # compiles
    for q in QUERIES:
        runs = [(*shared(q, r, s), single(q, r, s)) for _ in range(times)]
        config = {"queries": q, "tuples": 2 * n, "range": WINDOW, "step": STEP}
        how = f"on the device cpu, one thread; least of {times} runs, shared streams and sessions in turn"
        for name, at in (("push_seconds", 0), ("poll_seconds", 1), ("sessions_seconds", 2)):
            out.add(name, min(run[at] for run in runs), "s", config, how)
    print(out.write())


if __name__ == "__main__":
    main()
