"""Conditions that no interval or sum test decides, in the cores and on the host: pairs that leave the circuit, and
cycles a tuple.

Run: python -m bench.formulas, which writes bench/results/formulas.json
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import Recorder, arguments
from splitjoin.engines.arrival import Arrivals
from splitjoin_sim.device import SimDevice

#: Conditions over int16 columns of numbers from −30 to 29, each true for hardly any pair; the last one is a band, which
#: interval tests decide.
CONDITIONS = (
    "r.x * s.a + r.y * s.b > 1600",
    "r.x * s.b - r.y * s.a = 17",
    "abs(r.x - s.a) * abs(r.y - s.b) = 391",
    "(r.x + 30) % (abs(s.a) + 1) = 29",
    "r.x * s.b - r.y * s.a < 9 AND r.x * s.b - r.y * s.a > 0 AND abs(r.x - s.a) <= 2",
    "abs(r.x - s.a) <= 0 AND abs(r.y - s.b) <= 1",
)


def measure(out: Recorder, on: str, verify: str, window: int, count: int) -> None:
    """One condition, decided where ``verify`` says; figures are of the tuples from full windows on."""
    random = np.random.default_rng(3)
    r, s = (pa.table({name: random.integers(-30, 30, window + count).astype(np.int16) for name in names})
            for names in ("xy", "ab"))
    query = splitjoin.Query.make(splitjoin.Schema.from_table("r", r), splitjoin.Schema.from_table("s", s), on=on,
                                 window=f"ROWS {window}", order="total")
    device = SimDevice(cores=4, probes=4, capacity=window // 4, verify=verify)
    parts = [Arrivals(np.arange(2 * n, dtype=np.uint8) % 2, None, r.slice(at, n), s.slice(at, n))
             for at, n in ((0, window), (window, count))]
    with device.open(query) as session:
        session.push(parts[0])
        session.settle()
        start = session.counters()
        session.push(parts[1])
        session.flush()
        end = session.counters()
    left = end.get("unverified", end["matches"]) - start.get("unverified", start["matches"])
    found = end["matches"] - start["matches"]
    shape: dict[str, Any] = {"condition": on, "window": window, "cores": 4, "probes": 4, "answer": found}
    how = "simulation: both streams alternately without waiting, windows full; order total"
    out.add(f"{verify}_pairs", left, "pairs", shape, f"{how}; pairs that leave the circuit")
    out.add(f"{verify}_cycles", (end["cycles"] - start["cycles"]) / (2 * count), "cycles a tuple", shape, how)


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("formulas", quick=options.quick)
    for on in CONDITIONS[:1] if options.quick else CONDITIONS:
        for verify in ("host", "core"):
            measure(out, on, verify, 64, 50 if options.quick else 500)
    print(out.write())


if __name__ == "__main__":
    main()
