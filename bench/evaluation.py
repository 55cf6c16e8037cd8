"""All architectures on one footing, in simulated cycles: throughput, latency of pairs and cells, against the cores.

Run: python -m bench.evaluation. SplitJoin, section 7, Figures 12, 13, 16 and 17: the same condition, windows, lanes and
probes for each architecture. Cycles a tuple are those of full windows and input at full speed; the latency of a pair is
from accepting its later tuple until the pair leaves, with input at half that speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.record import Recorder, arguments
from splitjoin.circuit.cost import circuit_cost
from splitjoin.circuit.driver import CircuitDevice, CircuitSession
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

#: Architecture → parameters beside the number of cores.
SYSTEMS: dict[str, dict[str, Any]] = {
    "splitjoin": {}, "chain": {}, "kang": {}, "celljoin": {}, "handshake": {}, "low-latency-handshake": {},
    "cascade": {"block": 4, "threshold": 4}}
HOW = "simulated; |x - a| <= w, values uniform in 1 to 10,000, R and S by turns, order none, one lane, one probe"


@dataclass(frozen=True)
class Case:
    """One run: the number of cores, tuples of a window, its kind, and the share of pairs that match."""

    cores: int
    window: int
    kind: str = "ROWS"
    share: float = 1 / 500


def query_of(case: Case, tuples: int) -> tuple[Query, pa.Table, pa.Table]:
    """The query and both streams: a tuple of each at each time."""
    rng = np.random.default_rng(1)
    ts = pa.array(np.arange(tuples), pa.int64())
    r, s = (pa.table({"ts": ts, name: pa.array(rng.integers(1, 10_001, tuples), pa.int32())}) for name in "xa")
    width = round((case.share * 10_000 - 1) / 2)
    window, time = (f"ROWS {case.window}", None) if case.kind == "ROWS" else (f"RANGE {case.window - 1}", "ts")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on=f"abs(r.x - s.a) <= {width}",
                       window=window, time=time, order="none")
    return query, r, s


def measured(device: CircuitDevice, case: Case) -> tuple[float, np.ndarray]:
    """Cycles a tuple of the second window of input, and the latencies of the pairs that it completes."""
    query, r, s = query_of(case, 3 * case.window)
    with device.open(query) as session:
        assert isinstance(session, CircuitSession)
        marks = []
        for part in range(3):
            at = part * case.window
            session.push(arrivals(query, r.slice(at, case.window), s.slice(at, case.window)))
            marks.append(session.counters()["cycles"])
        session.flush()
        found = session.pair_latencies()
    assert found is not None
    pairs, cycles = found
    later = pairs.max(axis=1)
    return (marks[1] - marks[0]) / (2 * case.window), cycles[(later >= case.window) & (later < 2 * case.window)]


def run(out: Recorder, make: type[SimDevice] | type[PysimDevice], name: str, case: Case) -> None:
    """One architecture's figures for ``case``."""
    options = SYSTEMS[name] | ({"cores": case.cores} if name != "kang" else {})
    share = -(-case.window // options.get("cores", 1))
    capacity = 2 << (share - 1).bit_length()  # twice the share: a full segment would hold up what comes
    device = make(architecture=name, capacity=capacity, **options)
    config = {"architecture": name, "cores": device.cores, "window": case.window, "kind": case.kind,
              "share": case.share, "simulator": device.name, **SYSTEMS[name]}
    cycles, _ = measured(device, case)
    out.add("cycles_a_tuple", cycles, "cycles", config, HOW)
    _, latencies = measured(make(architecture=name, capacity=capacity, stall_in=1 - 1 / (2 * cycles), **options), case)
    for metric, value in (("pair_latency", np.mean(latencies)), ("pair_latency_99", np.percentile(latencies, 99))):
        out.add(metric, float(value), "cycles", config, HOW)
    cost = circuit_cost(device.configuration(query_of(case, 3)[0])).total
    for metric, cells, unit in (("lut4", cost.lut, "LUT4"), ("ff", cost.ff, "FF"), ("memory", cost.ram_bits, "bits")):
        out.add(metric, cells, unit, config, "predicted for ECP5")


def main() -> None:
    """All figures."""
    options = arguments(__doc__ or "")
    out = Recorder("evaluation", quick=options.quick)
    cases = [Case(4, 256), Case(8, 256)]
    if options.quick:  # small cases without a compiler
        cases = [Case(2, 16, share=1 / 20)]
    for case in cases:
        for name in SYSTEMS:
            if name != "kang" or case.cores == cases[0].cores or case.kind == "RANGE":  # it has one core
                run(out, PysimDevice if options.quick else SimDevice, name, case)
    print(out.write())


if __name__ == "__main__":
    main()
