"""The circuit in cycles: how well the scan uses its memory ports, and how long a probe takes.

Run: python bench/circuits.py
"""

from __future__ import annotations

import time

import splitjoin
from band import ON, streams
from record import Recorder, arguments
from splitjoin.device.circuit import configure
from splitjoin.hw.network.tree import levels
from splitjoin.hw.verilog import to_verilog
from splitjoin.lang.plan import make_plan
from splitjoin.sim.device import SimDevice


def scan_efficiency(out: Recorder, cores: int, window: int, order: str) -> None:
    """Comparisons per cycle over its peak (one per region and cycle), both streams saturated and alternating."""
    r, s = streams(cores * window + 1500)
    device = SimDevice(cores=cores, capacity=window)
    # The window fills first; what counts is from there on.
    fill = splitjoin.execute(r[: cores * window], s[: cores * window], on=ON, window=f"ROWS {cores * window}",
                             order=order, device=device).counters
    full = splitjoin.execute(r, s, on=ON, window=f"ROWS {cores * window}", order=order, device=device).counters
    comparisons = full["comparisons"] - fill["comparisons"]
    cycles = full["cycles"] - fill["cycles"]
    out.add("scan_efficiency", comparisons / (cycles * 2 * cores), "of peak",
            {"cores": cores, "sub_window": window, "order": order, "lanes": 1, "probes": 1},
            "simulation: comparisons / (cycles × 2 × cores) after the windows are full, alternating input")


def latency(out: Recorder, cores: int, window: int) -> None:
    """Cycles from accepting a probe to its star, less the trees' levels and the scan, on an idle device."""
    r, s = streams(cores * window + 20)
    device = SimDevice(cores=cores, capacity=window, stall_in=1 - 1 / (8 * window + 400))
    result = splitjoin.execute(r, s, on=ON, window=f"ROWS {cores * window}", device=device)
    assert result.latencies is not None
    depth = levels(cores, 2)
    measured = sorted(result.latencies[-20:].tolist())[10]
    out.add("latency_constant_cycles", measured - window - 2 * depth, "cycles",
            {"cores": cores, "sub_window": window, "fanout": 2, "fanin": 2, "latency": measured},
            "simulation: median latency of 20 probes, input mostly idle, less sub-window and both trees' levels")


def build(out: Recorder, cores: int) -> None:
    """Seconds and lines of Verilog."""
    r, s = (splitjoin.Schema.from_table(side, t) for side, t in zip("rs", streams(1), strict=True))
    query = splitjoin.Query.make(r, s, on=ON, window="ROWS 1")
    config = configure(query, make_plan(query.predicate), cores=cores, capacity=512)
    to_verilog.cache_clear()
    start = time.perf_counter()
    text = to_verilog(config)
    out.add("verilog_seconds", time.perf_counter() - start, "s", {"cores": cores}, "wall clock of to_verilog, one run")
    out.add("verilog_lines", text.count("\n"), "lines", {"cores": cores}, "lines of Verilog")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("circuits", quick=options.quick)
    for cores in (1, 4) if options.quick else (1, 2, 4, 8, 16):
        for window in (128,) if options.quick else (128, 512):
            for order in ("total",) if options.quick else ("total", "outer(1)", "none"):
                scan_efficiency(out, cores, window, order)
    for cores in (1, 4) if options.quick else (1, 2, 4, 8, 16):
        latency(out, cores, 64)
    for cores in (1, 8) if options.quick else (1, 8, 64):
        build(out, cores)
    print(out.write())


if __name__ == "__main__":
    main()
