"""Pairs at once (order "none") beside pairs in order: their delay, and the CPU time that they cost.

Run: python -m bench.pairs_at_once [--quick]
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, options_of

WINDOW = 2_000
CONDITIONS = ("r.k = s.k", "abs(r.x - s.x) <= 500")
#: How late tuples may come, and how many tuples of a stream are pushed at once.
CASES = ((0, 100), (0, 2_000), (500, 100), (500, 2_000))


def tables(n: int, late: int) -> tuple[pa.Table, pa.Table]:
    """Both streams: a tuple a tick, each up to ``late`` ticks too late."""
    rng = np.random.default_rng(1)

    def stream() -> pa.Table:
        return pa.table({"ts": np.arange(n) - rng.integers(0, late + 1, n), "k": rng.integers(0, 1000, n),
                         "x": rng.integers(0, 10**6, n).astype(np.int32)})

    return stream(), stream()


def run(condition: str, order: str, late: int, step: int, n: int) -> tuple[float, np.ndarray, int]:
    """CPU seconds, the delay of each pair in ticks, and the number of pairs before the end of input."""
    r, s = tables(n, late)
    query = splitjoin.query(r.schema, s.schema, on=condition, window=f"RANGE {WINDOW}", time="ts", order=order)
    lateness: dict[str, Any] = {"lateness": late} if late else {}
    delays = [np.empty(0)]
    with splitjoin.open(query, "cpu", select=["ts_r", "ts_s"], threads=1, **lateness) as session:
        begin = time.process_time()
        for at in range(0, n, step):
            session.push_r(r.slice(at, step))
            session.push_s(s.slice(at, step))
            rows = session.poll()
            delays.append(at + step - 1 - np.maximum(rows["ts_r"].to_numpy(), rows["ts_s"].to_numpy()))
        spent = time.process_time() - begin
    found = np.concatenate(delays)
    return spent, found, len(found)


def main() -> None:
    """All figures."""
    options = options_of(__doc__ or "").parse_args()
    out = Recorder("pairs_at_once", quick=options.quick)
    n, times = (20_000, 2) if options.quick else (60_000, 3)
    for condition in CONDITIONS:
        for late, step in CASES:
            found: dict[str, list[tuple[float, np.ndarray, int]]] = {"total": [], "none": []}
            for _ in range(times):
                for order, runs in found.items():
                    runs.append(run(condition, order, late, step, n))
            for order, runs in found.items():
                config = {"condition": condition, "order": order, "lateness": late, "step": step, "tuples": 2 * n,
                          "range": WINDOW}
                how = "a session on the device cpu, one thread, `step` tuples of each stream pushed in turn"
                out.add("cpu_seconds", min(spent for spent, _, _ in runs), "s", config,
                        f"{how}; least of {times} runs, in turn with the other order")
                out.add("pair_delay", float(np.percentile(runs[0][1], 50)), "ticks", {**config, "percentile": 50},
                        f"{how}; from the time of a pair's later tuple to the last time pushed when it comes")
    print(out.write())


if __name__ == "__main__":
    main()
