"""Cycles a tuple of circuits whose windows lie in external memory, simulated, beside the formula that predicts them.

Circuits are simulated cycle by cycle. The memory is an SDRAM with its own controller, or for each core one of so many
cycles of latency, and so many for each line; each row says whether these were measured in LiteDRAM's simulation, or are
assumed. Run: python -m bench.memory [--sdram | --channels], with an option only the SDRAM and its own controller, or
only several cores, and else all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.record import Recorder, options_of
from splitjoin.circuit.memory import heads_have_records
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
#: Of several cores each has such a memory, whose times are assumed.
HBM = "assumed: a channel of HBM2"
MEMORIES[HBM] = (65, 2)
#: The SDRAM of 16 bits at 100 MHz, whose controller and chip are simulated.
OWN = "own controller: SDR"
#: Half of the band; keys are spread so that a tuple has two partners in the window.
_REACH = 63
BY = ("simulation by Verilator (bench/memory.py): full windows by rows, both streams alternating, all pairs equal to "
      "the CPU engine's")
#: Of several cores: keys of the tuples, order, cores, and probes at once.
_CHANNELS = [("band", "none", 1, 64), ("band", "none", 8, 32), ("band", "total", 8, 32), ("equality", "none", 1, 64),
             ("equality", "none", 8, 32), ("zipf 0.5", "none", 1, 64), ("zipf 0.5", "none", 8, 32),
             ("band", "none", 32, 16)]


def keys(rng: Any, kind: str, window: int, rows: int) -> npt.NDArray[np.int32]:
    """Keys of which a tuple has two partners in a window, with an equality or a band; or, with ``zipf a`` and for an
    equality, as many ranks as the window has tuples, of which the n-th comes in proportion to n^-a.
    """
    if not kind.startswith("zipf"):
        return np.asarray(rng.integers(0, window // 2 if kind == "equality" else 64 * window, rows, np.int32))
    share = np.arange(1, window + 1) ** -float(kind.split()[1])
    return np.asarray(rng.choice(window, rows, p=share / share.sum()), np.int32)


def measure(out: Recorder, log: int, contexts: int, name: str, kind: str = "band", order: str = "total",
            cores: int = 1) -> None:
    """One circuit: windows of 2^log tuples, behind the memory of this name."""
    latency, interval = TIMES["sdram"] if name == OWN else MEMORIES[name]
    window, more = 2**log, max(2**11, 2**log // 32)
    rng = np.random.default_rng(log)
    r, s = (pa.table({column: keys(rng, kind, window, window + more)}) for column in "xa")
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), window=f"ROWS {window}",
                       order=order, on=f"r.x - s.a between -{_REACH} and {_REACH}" if kind == "band" else "r.x = s.a")
    whole = arrivals(query, r, s)
    circuit = SimDevice(memory="sdram", contexts=contexts) if name == OWN else SimDevice(
        memory="axi", contexts=contexts, cores=cores,
        external=SimulatedMemory(latency=int(latency), interval=int(interval)))
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
    pairs, others = (np.sort(items[items["kind"] == PAIR], order=["r", "s"])[["r", "s"]]
                     for items in (np.concatenate(found), wanted))
    assert np.array_equal(pairs, others)
    cycles, candidates = ((after[key] - before[key]) / (2 * more) for key in ("cycles", "comparisons"))
    predicted = memory_cycles(circuit.configuration(query), candidates, latency, interval)
    several = {"keys": kind, "order": order, "cores": cores} if name == HBM else {"keys": kind}
    heads = "with records" if heads_have_records(circuit.configuration(query)) else "several a line"
    out.add("memory_channels" if name == HBM else "memory_cycles", cycles, "cycles a tuple", {
        "memory": name, "latency": latency, "interval": interval, "window": window, "contexts": contexts,
        "candidates": round(candidates, 2), "predicted": round(predicted, 2), "heads": heads, **several}, BY)


def main() -> None:
    """All windows and memories."""
    parser = options_of(__doc__ or "")
    parser.add_argument("--sdram", action="store_true", help="only the SDRAM and its own controller")
    parser.add_argument("--channels", action="store_true", help="only several cores with a memory each")
    args = parser.parse_args()
    part = "sdram" if args.sdram else "channels" if args.channels else "ports"
    out = Recorder("memory", quick=args.quick, part=part)
    zynq, ports, port, sdr, _ = MEMORIES
    cases: list[tuple[Any, ...]] = [
        *((log, 64, zynq) for log in (11, 17, 20)), *((log, 64, ports) for log in (11, 17)),
        (11, 64, ports, "equality"), (17, 16, port), (17, 8, sdr)]
    if args.sdram:
        cases = [(log, contexts, OWN) for log, contexts in ((11, 8), (17, 2), (17, 8), (17, 16), (19, 8))]
    if args.channels:
        cases = [(14, contexts, HBM, kind, order, cores) for kind, order, cores, contexts in _CHANNELS]
    for case in cases[:1] if args.quick else cases:
        measure(out, *case)
        out.write()  # so that a run that is ended keeps what it has measured


if __name__ == "__main__":
    main()
