"""Cycles a tuple of whole circuits under results, measured and predicted: matches, order of arrival and windows.

Part ``sustained`` of bench/circuits.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import splitjoin
from bench.record import RESULTS, Recorder
from splitjoin.circuit.tuner.speed import cycles_a_tuple
from splitjoin.circuit.tuner.workload import BURST, Workload
from splitjoin.engines.arrival import Arrivals, arrivals
from splitjoin_sim.device import SimDevice

ON = "abs(r.x - s.a) <= 10"
#: Values of the key that a band is wide.
_WIDE = 21
MATCHES = (0, 2, 8, 20, 64)
ARRIVALS = ("alternating", "random", "bursts")
BY = ("simulation: cycles / tuples, input saturated, windows full throughout, order total, condition " + ON
      + "; predicted: by the tuner's model")


@dataclass(frozen=True)
class Simulated:
    """A circuit that is simulated; ``window``: tuples of each stream in the window that it is built for."""

    cores: int
    lanes: int
    probes: int
    window: int
    core: str = "scan"
    tables: bool = False
    root_width: int = 1


#: From one comparator to 512 in each cycle.
DESIGNS = (Simulated(2, 2, 4, 1024), Simulated(2, 8, 16, 4096), Simulated(1, 1, 1, 512), Simulated(8, 1, 4, 4096),
           Simulated(1, 4, 8, 512), Simulated(4, 1, 1, 4096, "bucket"))


def _streams(arrival: str, count: int) -> np.ndarray:
    """The stream of each of ``count`` tuples, 0 for R."""
    at = np.arange(count)
    if arrival == "random":
        return np.random.default_rng(3).integers(0, 2, count)
    return at // BURST % 2 if arrival == "bursts" else at % 2


def simulate(design: Simulated, matches: int, arrival: str, window: int) -> tuple[float, float, Any]:
    """Cycles of a tuple with ``matches`` expected results, and windows of ``window`` tuples; its results; and the
    configuration.
    """
    # So many tuples that some dozens of batches leave.
    count = max(600, min(4000, 60 * design.cores * design.lanes * design.probes) // (1 + matches // 8))
    stream = np.concatenate([np.arange(2 * window) % 2, _streams(arrival, count)])
    random = np.random.default_rng(1)
    values = _WIDE * window // matches if matches else 100
    tables = []
    for side, key in enumerate(("x", "a")):
        mine = np.flatnonzero(stream == side)
        apart = 0 if matches else 10**9 * side
        tables.append(pa.table({key: (random.integers(0, values, len(mine)) + apart).astype(np.int32), "ts": mine}))
    r, s = (splitjoin.Schema.from_table(side, table) for side, table in zip("rs", tables, strict=True))
    query = splitjoin.Query.make(r, s, on=ON, window=f"ROWS {window}", time="ts", order="total")
    whole = arrivals(query, *tables)
    assert whole.ts is not None
    parts = []
    for low, high in ((0, 2 * window), (2 * window, 2 * window + count)):
        first, size = ([int((whole.stream[a:b] == side).sum()) for side in (0, 1)] for a, b in ((0, low), (low, high)))
        parts.append(Arrivals(whole.stream[low:high], whole.ts[low:high], whole.r.slice(first[0], size[0]),
                              whole.s.slice(first[1], size[1])))
    device = SimDevice(cores=design.cores, capacity=design.window // design.cores, lanes=design.lanes,
                       probes=design.probes, core=design.core, tables=design.tables, root_width=design.root_width)
    with device.open(query) as session:
        session.push(parts[0])
        before = session.counters()
        session.push(parts[1])
        after = session.counters()
        session.flush()
        config = session.config  # type: ignore[attr-defined]  # a CircuitSession
    tuples, cycles, found = (sum(after[name] - before[name] for name in names)
                             for names in (("tuples_r", "tuples_s"), ("cycles",), ("matches",)))
    return cycles / tuples, found / tuples, config


def measure(out: Recorder, design: Simulated, matches: int, arrival: str, window: int, *, wide: bool = False) -> None:
    """One row: the cycles of a tuple, measured and predicted; ``wide``: among those by the width of the root."""
    cycles, found, config = simulate(design, matches, arrival, window)
    load = Workload(window, window, found, selectivity=matches / window, arrival=arrival)
    shape: dict[str, Any] = {"cores": design.cores, "lanes": design.lanes, "probes": design.probes,
                             "sub_window": design.window // design.cores, "window": window, "input": arrival,
                             "matches": round(found, 2),
                             "predicted": round(cycles_a_tuple(config, load), 2)}
    if design.core != "scan":
        shape["core"] = design.core
    if design.root_width != 1:
        shape["root_width"] = design.root_width
    out.add("root_cycles_per_tuple" if wide else "cycles_per_tuple", cycles, "cycles", shape, BY)


def sustained(out: Recorder) -> None:
    """The whole grid; windows shorter than built for with one number of matches."""
    for design in DESIGNS:
        for arrival in ARRIVALS:
            for matches in MATCHES:
                measure(out, design, matches, arrival, design.window)
        for window in (256, design.window // 2):
            measure(out, design, 8, "alternating", window)


def by_root_width(out: Recorder) -> None:
    """A wide circuit under many results, by the results that can leave in a cycle."""
    for width in (1, 2, 4):
        for arrival in ARRIVALS:
            for matches in (20, 64):
                measure(out, Simulated(2, 8, 16, 4096, root_width=width), matches, arrival, 4096, wide=True)


#: The circuits that were placed and routed (bench/synthesis.py).
ROUTED = (Simulated(8, 1, 4, 4096), Simulated(2, 8, 16, 4096, tables=True))


def sustained_rates(out: Recorder) -> None:
    """Comparisons and tuples a second that the routed circuits sustain, by matches and arrival."""
    rows = json.loads((RESULTS / "circuits.json").read_text())["rows"]
    for design in ROUTED:
        (mhz, how), = ((row["value"], row["how"]) for row in rows if row["metric"] == "ecp5_mhz"
                       and row["config"]["part"] == "whole circuit" and row["config"]["cores"] == design.cores)
        for arrival in ("alternating", "random"):
            for matches in (0, 2, 8, 20):
                cycles, found, _ = simulate(design, matches, arrival, design.window)
                shape = {"cores": design.cores, "lanes": design.lanes, "probes": design.probes,
                         "sub_window": design.window // design.cores, "tables": design.tables, "input": arrival,
                         "matches": round(found, 2), "cycles": round(cycles, 2), "mhz": round(mhz, 1)}
                by = f"cycles by simulation, one band, order total, input saturated; clock of the routed circuit: {how}"
                out.add("sustained_gcmps", design.window * mhz / cycles / 1000, "Gcmp/s", shape, by)
                out.add("sustained_mtuples", mhz / cycles, "Mtuples/s", shape, by)
