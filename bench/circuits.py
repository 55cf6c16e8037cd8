"""The circuit in cycles: how well the scan uses its comparators, how long a probe takes, and seconds to build it.

Prints all figures of the circuit as tables, those of bench/index.py and bench/synthesis.py too, and draws each against
the number of cores.

Run: python -m bench.circuits; with SPLITJOIN_BENCH_CORES=16 latency is measured for up to so many cores only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.against import draw, tables
from bench.band import ON, streams
from bench.record import Recorder, options_of
from bench.sustained import Simulated, by_root_width, measure, sustained, sustained_rates
from splitjoin.circuit.geometry import levels
from splitjoin.circuit.lowering import configure, unlowered
from splitjoin.circuit.parameters import CircuitParameters
from splitjoin.circuit.tuner.search import QUEUED
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin.plan.passes.compiler import make_plan
from splitjoin_hw.verilog import to_verilog
from splitjoin_sim.build import library
from splitjoin_sim.device import SimDevice

#: Numbers of cores against which latency is measured.
CORES = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= int(os.environ.get("SPLITJOIN_BENCH_CORES", "64"))]
_RANDOM = np.random.default_rng(5).integers(0, 2, 1 << 16)
#: Shapes of input: stream of the n-th arrival, once the windows are full.
PATTERNS: dict[str, Callable[[int], int]] = {
    "alternating": lambda n: n % 2,
    "random": lambda n: int(_RANDOM[n % len(_RANDOM)]),
    "bursts of 32": lambda n: n // 32 % 2,
    "R only": lambda n: 0,
}


CPU = "{}, one run: CPU seconds, which do not count other work on the machine; on one idle core about the wall clock"


def _cpu_seconds() -> float:
    """CPU seconds of this process and of the child processes that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def scan_efficiency(out: Recorder, cores: int, window: int, order: str, lanes: int = 1, probes: int = 1,
                    pattern: str = "alternating", *, looked_up: bool = False) -> None:
    """Comparisons per cycle over their peak, input saturated, in one session from full windows on; ``looked_up``: of a
    circuit with tables.
    """
    device = SimDevice(cores=cores, capacity=window, lanes=lanes, probes=probes, core="scan", tables=looked_up)
    # So long that the first and the last pass do not count: they are not saturated.
    full, count = cores * window, max(600, 20_000 * lanes * probes // window)
    query, before, after = _input(full, count, order, pattern)
    with device.open(query) as session:
        session.push(before)
        start = session.counters()
        session.push(after)
        end = session.counters()
        session.flush()
    comparisons, cycles = (end[name] - start[name] for name in ("comparisons", "cycles"))
    # With one stream alone only the regions that store the other one have work.
    sides = 1 if pattern == "R only" else 2
    out.add("scan_efficiency", comparisons / (cycles * sides * cores * lanes * probes), "of peak",
            {"cores": cores, "sub_window": window, "order": order, "lanes": lanes, "probes": probes, "input": pattern,
             **_tables(looked_up)},
            "simulation: comparisons / (cycles × streams that probe × cores × lanes × probes), windows full throughout")


def arrival_cycles(out: Recorder, cores: int, window: int, lanes: int, probes: int) -> None:
    """Cycles of a tuple by the order of arrival, without queues ahead of the regions and with them."""
    full, count = cores * window, max(1500, 20_000 * lanes * probes // window)
    for queue in (0, QUEUED):
        for pattern in ("alternating", "random", "bursts of 32"):
            device = SimDevice(cores=cores, capacity=window, lanes=lanes, probes=probes, core="scan", queue=queue)
            query, before, after = _input(full, count, "total", pattern)
            with device.open(query) as session:
                session.push(before)
                start = session.counters()["cycles"]
                session.push(after)
                cycles = session.counters()["cycles"] - start
                session.flush()
            out.add("arrival_cycles_per_tuple", cycles / (2 * count), "cycles",
                    {"cores": cores, "lanes": lanes, "probes": probes, "sub_window": window, "queue": queue,
                     "input": pattern},
                    "simulation: cycles / tuples, input saturated, windows full throughout, order total, no matches")


def _input(full: int, count: int, order: str, pattern: str) -> tuple[splitjoin.Query, Arrivals, Arrivals]:
    """A query with windows of ``full`` tuples, the arrivals that fill them, and twice ``count`` more."""
    stream = np.concatenate([np.arange(2 * full) % 2, [PATTERNS[pattern](n) for n in range(2 * count)]])
    tables = streams(full + 2 * count)
    timed = [t.slice(0, int((stream == side).sum())).append_column("ts", pa.array(np.flatnonzero(stream == side)))
             for side, t in enumerate(tables)]
    r, s = (splitjoin.Schema.from_table(side, t) for side, t in zip("rs", timed, strict=True))
    query = splitjoin.Query.make(r, s, on=ON, window=f"ROWS {full}", time="ts", order=order)
    whole = arrivals(query, *timed)
    at = 2 * full

    def part(a: int, b: int) -> Arrivals:
        first, size = ([int((whole.stream[low:high] == side).sum()) for side in (0, 1)]
                       for low, high in ((0, a), (a, b)))
        assert whole.ts is not None
        return Arrivals(whole.stream[a:b], whole.ts[a:b], whole.r.slice(first[0], size[0]),
                        whole.s.slice(first[1], size[1]))

    return query, part(0, at), part(at, at + 2 * count)


def _tables(looked_up: bool) -> dict[str, bool]:
    """The field of a row for circuits with tables; empty without tables."""
    return {"tables": True} if looked_up else {}


def measured_latency(cores: int, window: int, lanes: int, probes: int, *, looked_up: bool = False) -> int:
    """Cycles from accepting a probe to its star on an idle device: the median of 20 probes that find nothing."""
    device = SimDevice(cores=cores, capacity=window, lanes=lanes, probes=probes, core="scan", tables=looked_up,
                       stall_in=1 - 1 / (8 * window + 200))
    query, before, after = _input(cores * window, 20, "total", "alternating")
    with device.open(query) as session:
        session.push(before)
        session.push(after)
        session.flush()
        latencies = session.latencies()
    assert latencies is not None
    return int(sorted(latencies[-20:].tolist())[10])


def latency(out: Recorder, cores: int, window: int, lanes: int = 1, probes: int = 1, *,
            looked_up: bool = False) -> None:
    """Record the constant part of the latency: the measured one less the trees' levels and the scan."""
    measured = measured_latency(cores, window, lanes, probes, looked_up=looked_up)
    depth = levels(cores, 2)
    out.add("latency_constant_cycles", measured - window // lanes - 2 * depth, "cycles",
            {"cores": cores, "sub_window": window, "lanes": lanes, "probes": probes, "fanout": 2, "fanin": 2,
             "latency": measured, **_tables(looked_up)},
            "simulation: median latency of 20 probes, input mostly idle, less sub-window / lanes and both trees' depth")


def _configuration(**options: Any) -> Any:
    r, s = (splitjoin.Schema.from_table(side, t) for side, t in zip("rs", streams(1), strict=True))
    query = splitjoin.Query.make(r, s, on=ON, window="ROWS 1")
    parameters = CircuitParameters(capacity=512, core="scan", **options)
    return configure(query, unlowered(make_plan(query.predicate), parameters), parameters)


def verilog(out: Recorder, cores: int, lanes: int = 1, probes: int = 1) -> None:
    """Seconds and lines of Verilog."""
    config = _configuration(cores=cores, lanes=lanes, probes=probes)
    to_verilog.cache_clear()
    start = _cpu_seconds()
    text = to_verilog(config)
    shape = {"cores": cores, "lanes": lanes, "probes": probes}
    out.add("verilog_seconds", _cpu_seconds() - start, "s", shape, CPU.format("to_verilog"))
    out.add("verilog_lines", text.count("\n"), "lines", shape, "lines of Verilog")


def build(out: Recorder, cores: int, lanes: int = 1, probes: int = 1) -> None:
    """Seconds from Verilog to a compiled model."""
    other, measured = (_configuration(cores=k, lanes=lanes, probes=probes) for k in (3 - min(cores, 2), cores))
    with tempfile.TemporaryDirectory() as folder:
        cache, os.environ["SPLITJOIN_CACHE"] = os.environ.get("SPLITJOIN_CACHE"), folder
        try:
            library(other)  # for Verilator's own library
            to_verilog(measured)
            start = _cpu_seconds()
            library(measured)
            seconds = _cpu_seconds() - start
        finally:
            del os.environ["SPLITJOIN_CACHE"]
            if cache is not None:
                os.environ["SPLITJOIN_CACHE"] = cache
    out.add("verilator_build_seconds", seconds, "s", {"cores": cores, "lanes": lanes, "probes": probes},
            CPU.format("Verilator and the C++ compiler, an empty cache but for Verilator's own library"))


def scans(out: Recorder) -> None:
    """Scan efficiency by shape, order of results, and input."""
    for window in (512, 128):
        for lanes, probes in ((1, 1), (1, 8), (2, 4), (4, 4), (4, 8)):
            for order in ("total", "outer(1)", "none"):
                scan_efficiency(out, 4, window, order, lanes, probes)
            for pattern in ("bursts of 32", "R only"):
                scan_efficiency(out, 4, window, "total", lanes, probes, pattern)
    for cores in (1, 2, 8, 16):
        scan_efficiency(out, cores, 512, "total", 2, 4)
    for lanes, probes, windows in ((8, 16, (512, 2048)), (4, 8, (128, 512))):
        for window in windows:
            for looked_up in (False, True):
                scan_efficiency(out, 1, window, "total", lanes, probes, looked_up=looked_up)


def arriving(out: Recorder) -> None:
    """Orders of arrival, with queues and without."""
    for window in (128, 512, 2048):
        for cores, lanes, probes in ((2, 2, 4), (1, 1, 8), (1, 4, 8), (2, 8, 16)):
            arrival_cycles(out, cores, window, lanes, probes)


def latencies(out: Recorder) -> None:
    """Latency against the number of cores."""
    for cores in CORES:
        latency(out, cores, 16)
    for lanes, probes in ((1, 1), (4, 8)):
        latency(out, 4, 64, lanes, probes)
    latency(out, 4, 64, 4, 8, looked_up=True)


def texts(out: Recorder) -> None:
    """Verilog of few and of many cores."""
    for cores in (1, 8, 64, 256):
        verilog(out, cores)
    verilog(out, 256, 2, 4)


def builds(out: Recorder) -> None:
    """Models of few and of many cores."""
    for cores in CORES:
        build(out, cores)
    build(out, 16, 2, 4)


PARTS = {"sustained": sustained, "rates": sustained_rates, "root": by_root_width, "arrival": arriving, "scan": scans,
         "latency": latencies, "verilog": texts, "build": builds}
#: A little of everything.
QUICK: dict[str, Callable[[Recorder], None]] = {
    "sustained": lambda out: measure(out, Simulated(4, 2, 4, 512), 8, "random", 512),
    "rates": lambda out: measure(out, Simulated(4, 2, 4, 512), 2, "alternating", 512),
    "root": lambda out: measure(out, Simulated(2, 1, 1, 64, root_width=2), 8, "alternating", 64, wide=True),
    "arrival": lambda out: arrival_cycles(out, 2, 128, 2, 4),
    "scan": lambda out: scan_efficiency(out, 4, 128, "total", 2, 4), "latency": lambda out: latency(out, 4, 64),
    "verilog": lambda out: verilog(out, 8), "build": lambda out: build(out, 8)}


def main() -> None:
    """All figures, or those of one part."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--part", choices=PARTS, help="these figures only; the others in the file stay")
    parser.add_argument("--tables", action="store_true", help="measure nothing: the tables and the picture only")
    options = parser.parse_args()
    for part in [] if options.tables else [options.part] if options.part else PARTS:
        out = Recorder("circuits", quick=options.quick, part=part)
        (QUICK if options.quick else PARTS)[part](out)
        print(out.write())
    if not options.quick:
        print(tables())
        print(draw())


if __name__ == "__main__":
    main()
