"""The CPU engine beside a NumPy broadcast, in one run. Run: python bench/cpu.py"""

from __future__ import annotations

import time

import numpy as np
import splitjoin
from band import ON, streams
from record import Recorder, arguments
from splitjoin.arrival import arrivals
from splitjoin.cpu.engine import CpuDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema


def engine(out: Recorder, window: int, tuples: int) -> None:
    """Comparisons and tuples a second of the whole engine, ordered output included, windows full."""
    r, s = streams(window + tuples)
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=ON, window=f"ROWS {window}")
    with CpuDevice().open(query) as session:
        session.push(arrivals(query, r[:window], s[:window]))
        session.poll()
        filled = session.counters()["comparisons"]
        start = time.process_time()
        session.push(arrivals(query, r[window:], s[window:]))
        session.poll()
        took = time.process_time() - start
        comparisons = session.counters()["comparisons"] - filled
    config = {"engine": "cpu", "window": window, "order": "total"}
    how = "CPU seconds of one thread from full windows on"
    out.add("nested_gcmps_per_core", comparisons / took / 1e9, "Gcmp/s", config, how)
    out.add("tuples_per_second", 2 * tuples / took, "tuples/s", config, how)


def broadcast(out: Recorder, window: int) -> None:
    """A NumPy user's nested loop: 64 probes against the window at once."""
    r, s = streams(window)
    x, y = (r[name].to_numpy()[:64, None] for name in "xy")
    a, b = (s[name].to_numpy()[None, :] for name in "ab")
    start, rounds = time.process_time(), max(1, 2**24 // (64 * window))
    for _ in range(rounds):
        np.nonzero((np.abs(x - a) <= 10) & (np.abs(y - b) <= 10))
    took = time.process_time() - start
    out.add("nested_gcmps_per_core", rounds * 64 * window / took / 1e9, "Gcmp/s", {"engine": "numpy", "window": window},
            "CPU seconds; 64 probes broadcast against the window, pairs found, nothing ordered")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("cpu", quick=options.quick)
    splitjoin.execute(*streams(10), on=ON, window="ROWS 9", device="cpu")  # compiles the kernel
    quick, full = ((12, 100_000), (15, 60_000)), ((12, 400_000), (15, 200_000), (18, 40_000))
    for bits, tuples in quick if options.quick else full:
        engine(out, 2**bits, tuples)
        broadcast(out, 2**bits)
    print(out.write())


if __name__ == "__main__":
    main()
