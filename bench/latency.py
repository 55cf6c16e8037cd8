"""Time from a tuple's arrival to its results, by the load, through a streaming session. Run: python -m bench.latency

Tuples fall due at a steady rate. Whatever is due is pushed as one batch and its results are polled; a tuple's latency
is from when it fell due until the poll that gives its results has returned, waiting included.
"""

from __future__ import annotations

import time

import numpy as np

import splitjoin
from bench.band import ON, streams
from bench.record import Recorder, arguments
from splitjoin.engines.cpu import CpuDevice

WINDOW = 1 << 15
LOADS = (0.1, 0.5, 0.9)
PERCENTILES = (50.0, 99.0, 99.9)
#: The least a batch waits for company, in seconds: pushing single tuples costs more than they do.
TICK = 0.001


def session() -> splitjoin.StreamJoin:
    """The band benchmark, one thread, windows full."""
    r, s = streams(WINDOW)
    query = splitjoin.query(r.schema, s.schema, on=ON, window=f"ROWS {WINDOW}")
    opened = splitjoin.open(query, CpuDevice(threads=1))
    for at in range(0, WINDOW, 4096):
        opened.push_r(r[at:at + 4096])
        opened.push_s(s[at:at + 4096])
        opened.poll()
    return opened


def sustainable(tuples: int) -> float:
    """Tuples of both streams a second when each batch is pushed as soon as the one before is done."""
    r, s = streams(tuples, 2)
    with session() as opened:
        start = time.perf_counter()
        for at in range(0, tuples, 4096):
            opened.push_r(r[at:at + 4096])
            opened.push_s(s[at:at + 4096])
            opened.poll()
        return 2 * tuples / (time.perf_counter() - start)


def latencies(rate: float, seconds: float) -> np.ndarray:
    """Per tuple of R and S that fall due at ``rate`` (both together) its latency in seconds, the first second aside."""
    n = int(rate / 2 * seconds)
    r, s = streams(n, 3)
    due = np.arange(n) / (rate / 2)
    found = np.zeros(n)
    with session() as opened:
        start, at = time.perf_counter(), 0
        while at < n:
            now = time.perf_counter() - start
            until = int(np.searchsorted(due, now, side="right"))
            if until == at:
                time.sleep(TICK / 4)
                continue
            until = min(until, at + 65_536)
            opened.push_r(r[at:until])
            opened.push_s(s[at:until])
            opened.poll()
            found[at:until] = time.perf_counter() - start - due[at:until]
            at = until
            time.sleep(max(0.0, TICK - (time.perf_counter() - start - now)))
    return found[due > 1]


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("latency", quick=options.quick)
    sustainable(8192)  # compiles
    most = sustainable(200_000 if options.quick else 2_000_000)
    config = {"engine": "cpu", "window": WINDOW, "threads": 1}
    out.add("sustainable_rate", most / 1e6, "M tuples/s", config,
            "wall time of a streaming session, batches of 4096 a stream pushed one after the other, full windows")
    for load in LOADS:
        found = latencies(load * most, 3 if options.quick else 12) * 1e3
        for percentile in PERCENTILES:
            out.add("push_to_result_ms", float(np.percentile(found, percentile)), "ms",
                    {"load": f"{load:.0%}", "percentile": percentile} | config,
                    "wall time from when a tuple falls due to when the poll with its results returns; batches of what "
                    "is due, a millisecond apart or more")
    print(out.write())


if __name__ == "__main__":
    main()
