"""Cycles a tuple of circuits whose windows lie in external memory, simulated, beside the formula that predicts them.

Circuits are simulated cycle by cycle. The memory is an SDRAM with its own controller, or one of so many cycles of
latency, and so many for each line; each row says whether these were measured in LiteDRAM's simulation, or are assumed.
Run: python -m bench.memory [--sdram], with the option only the SDRAM and its own controller, and else all others.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.record import Recorder, options_of
from splitjoin.circuit.tuner.memory import TIMES, memory_cycles
from splitjoin.engines.arrival import arrivals
from splitjoin.engines.device import PAIR
from splitjoin.engines.registry import device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_sim.device import SimDevice
from splitjoin_sim.memory import SimulatedMemory

#: Name, latency and interval in cycles: where these are from.
MEMORIES = {
    "assumed: DDR4 behind an AXI port of a Zynq": (45, 1),
    "LiteDRAM's simulation: DDR3, four ports": (24, 4),
    "LiteDRAM's simulation: DDR3, one port": (20, 10),
    "LiteDRAM's simulation: SDR": (22, 15),
}
#: The SDRAM of 16 bits at 100 MHz, whose controller and chip are simulated.
OWN = "own controller: SDR"
#: Half of the band; keys are spread so that a tuple has two partners in the window.
_REACH = 63
BY = ("simulation by Verilator (bench/memory.py): a band with two partners a tuple, full windows by rows, both streams "
      "alternating, all pairs equal to the CPU engine's")


def measure(out: Recorder, log: int, contexts: int, name: str) -> None:
    """One circuit: windows of 2^log tuples, behind the memory of this name."""
    latency, interval = TIMES["sdram"] if name == OWN else MEMORIES[name]
    window, more = 2**log, max(2**11, 2**log // 32)
    rng = np.random.default_rng(log)
    r, s = (pa.table({column: rng.integers(0, 64 * window, window + more, np.int32)}) for column in "xa")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window=f"ROWS {window}",
                       on=f"r.x - s.a between -{_REACH} and {_REACH}")
    whole = arrivals(query, r, s)
    circuit = SimDevice(memory="sdram", contexts=contexts) if name == OWN else SimDevice(
        memory="axi", contexts=contexts, external=SimulatedMemory(latency=int(latency), interval=int(interval)))
    with circuit.open(query) as session, device("cpu").open(query) as engine:
        found = []
        for begin, end in ((0, window), (window, window + more)):
            part = arrivals(query, r[begin:end], s[begin:end])
            before = session.counters()
            session.push(part)
            found.append(session.poll())
        found.append(session.flush())
        after = session.counters()
        engine.push(whole)
        wanted = np.concatenate([engine.poll(), engine.flush()])
    assert np.array_equal(*(np.sort(items[items["kind"] == PAIR], order=["r", "s"])[["r", "s"]]
                            for items in (np.concatenate(found), wanted)))
    cycles, candidates = ((after[key] - before[key]) / (2 * more) for key in ("cycles", "comparisons"))
    predicted = memory_cycles(circuit.configuration(query), candidates, latency, interval)
    out.add("memory_cycles", cycles, "cycles a tuple", {
        "memory": name, "latency": latency, "interval": interval, "window": window, "contexts": contexts,
        "candidates": round(candidates, 2), "predicted": round(predicted, 2)}, BY)


def main() -> None:
    """All windows and memories."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--sdram", action="store_true", help="only the SDRAM and its own controller")
    args = parser.parse_args()
    out = Recorder("memory", quick=args.quick, part="sdram" if args.sdram else "ports")
    zynq, ports, port, sdr = MEMORIES
    cases = [*((log, 64, zynq) for log in (11, 17, 20)), *((log, 64, ports) for log in (11, 17)), (17, 16, port),
             (17, 8, sdr)]
    if args.sdram:
        cases = [(log, contexts, OWN) for log, contexts in ((11, 8), (17, 2), (17, 8), (17, 16), (19, 8))]
    for log, contexts, name in cases[:1] if args.quick else cases:
        measure(out, log, contexts, name)
    print(out.write())


if __name__ == "__main__":
    main()
