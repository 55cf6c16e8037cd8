"""ESJ's blocks: what a cascade saves in messages, and costs in balance, against the block's size ς.

Run: python -m bench.blocks. The circuit itself counts messages and loads while full windows go on. ESJ's target is
J = α · TC + (1 − α) · IF for a window of φ tuples: TC = (C_tr + C_ser / ς) · φ are messages, here of a hop, and IF is
the imbalance (ω_max − ω_avg) / ω_avg of m cores, by ESJ ς / ω_avg with ω_avg = φ / m. So J is least at
ς* = φ · √(α / (1 − α) · C_ser / m). C_ser is fitted to the counts, and for some ς* the α that demands it gives J.

The bound supposes that a block passes at once. Here it goes down the chain a tuple at a time, and where the next block
is due before it has arrived, a core has more than one above its share: so the largest block comes at slower paces too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from amaranth.hdl import Module, Mux, Signal, Value

from bench.record import Recorder, arguments
from splitjoin.circuit.architectures import ARCHITECTURES
from splitjoin.circuit.architectures.cascade import Cascade
from splitjoin.circuit.driver import CircuitDevice
from splitjoin.engines.arrival import arrivals
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema
from splitjoin_hw.baseline.ends import CoreMessage
from splitjoin_hw.baseline.handshake import Handshake
from splitjoin_hw.layouts import STREAM_R
from splitjoin_hw.link.registers import RegisterBlock
from splitjoin_sim.device import SimDevice
from splitjoin_sim.pysim import PysimDevice

#: Cores, tuples of R in the window, and sizes of blocks.
SIZES = ((8, 128, (1, 2, 4, 8, 16)),)
#: Values of ς* that are asked for.
WANTED = (2, 4, 8)
#: Cycles a tuple of both streams; those of the largest block alone.
CYCLES, SLOWER = 20, (40, 80, 160)
HOW = ("counted in the simulated circuit while windows full of R's tuples go on, R and S by turns, no pair matches; "
       "threshold as large as the block")


class Counted(Handshake):
    """A cascade whose counters have other meanings, and count while R's tuples after the first two windows come.

    ``comparisons``: R's tuples in all cores, a cycle. ``matches``: those in the fullest core. ``input_stalls``: tuples
    sent from core to core. ``output_stalls``: other messages. ``tuples_r``: cycles. ``tuples_s``: the most tuples of R
    that one core had.
    """

    def _count(self, m: Module, registers: RegisterBlock, record: Any, compared: list[Value],
               matched: list[Value]) -> None:
        rows, came = registers.settings.r.rows, Signal(32)
        with m.If(self.i.valid & self.i.ready & (record.stream == STREAM_R)):
            m.d.sync += came.eq(came + 1)
        full = (came >= 2 * rows) & (came < 3 * rows)
        loads = [core.load[0] for core in self.cores]
        most: Value = loads[0]
        for load in loads[1:]:
            most = Mux(load > most, load, most)
        links = [*(core.o_r for core in self.cores[:-1]), *(core.o_s for core in self.cores[1:])]
        sent = [(port.valid & port.ready, port.payload.kind == CoreMessage.TUPLE) for port in links]
        counters = {
            "cycles": Value.cast(1), "tuples_r": full, "comparisons": Mux(full, sum(loads), 0),
            "matches": Mux(full, most, 0), "input_stalls": Mux(full, sum(one & is_tuple for one, is_tuple in sent), 0),
            "output_stalls": Mux(full, sum(one & ~is_tuple for one, is_tuple in sent), 0)}
        for name, step in counters.items():
            value = Signal(len(getattr(registers, name)), name=f"{name}_value")
            m.d.sync += value.eq(value + step)
            m.d.comb += getattr(registers, name).eq(value)
        peak = Signal(len(registers.tuples_s))
        m.d.sync += peak.eq(Mux(full & (most > peak), most, peak))
        m.d.comb += registers.tuples_s.eq(peak)


class CountedCascade(Cascade):
    """The cascade with these counters, under its name in this process."""

    component = __name__, "Counted"


@dataclass(frozen=True)
class Counts:
    """``tuples``, ``others``: tuples and other messages over a link, a tuple that came, of both streams. ``imbalance``:
    ESJ's, on average over time, and ``peak`` at its highest.
    """

    tuples: float
    others: float
    imbalance: float
    peak: float


def counts(cores: int, window: int, block: int, make: Any = SimDevice, cycles: int = CYCLES) -> Counts:
    """Run three windows of ``window`` tuples of each stream, one in ``cycles``, and count in the last."""
    n = 3 * window
    r, s = (pa.table({name: pa.array(np.full(n, value), pa.int32())}) for name, value in (("x", 0), ("a", 1)))
    query = Query.make(Schema.from_table("r", r), Schema.from_table("s", s), on="r.x = s.a", window=f"ROWS {window}",
                       order="none")
    device: CircuitDevice = make(architecture="cascade", cores=cores, capacity=4 * window // cores, block=block,
                                 threshold=block, pace=1 / cycles)
    with device.open(query) as session:
        session.push(arrivals(query, r, s))
        found = session.counters()
    hops = 2 * window * (cores - 1)
    average = found["comparisons"] / found["tuples_r"] / cores
    return Counts(found["input_stalls"] / hops, found["output_stalls"] / hops,
                  found["matches"] / found["tuples_r"] / average - 1, found["tuples_s"] / average - 1)


def target(found: Counts, window: int, ratio: float) -> float:
    """J / (1 − α) with ``ratio`` = α / (1 − α)."""
    return ratio * (found.tuples + found.others) * window + found.imbalance


def add_imbalance(out: Recorder, found: Counts, config: dict[str, Any]) -> None:
    """The figures of imbalance of one run."""
    out.add("imbalance", found.imbalance, "share", config, f"{HOW}; (ω_max − ω_avg) / ω_avg, on average")
    out.add("imbalance_peak", found.peak, "share", config, f"{HOW}; (ω_max − ω_avg) / ω_avg, at its highest")


def main() -> None:
    """All sizes."""
    quick = arguments((__doc__ or "").partition("\n")[0]).quick
    out = Recorder("evaluation", quick=quick, part="blocks")
    ARCHITECTURES[CountedCascade.name] = CountedCascade()
    for cores, window, blocks in ((2, 8, (1, 2)),) if quick else SIZES:
        common = {"architecture": "cascade", "cores": cores, "window": window, "kind": "ROWS"}
        found = {}
        make: Any = PysimDevice if quick else SimDevice
        for block in blocks:
            config = common | {"block": block, "threshold": block}
            each = found[block] = counts(cores, window, block, make)
            out.add("hop_messages", each.tuples + each.others, "messages/tuple", config, HOW)
            add_imbalance(out, each, config)
        for cycles in SLOWER[:1] if quick else SLOWER:
            config = common | {"block": blocks[-1], "threshold": blocks[-1], "cycles": cycles}
            add_imbalance(out, counts(cores, window, blocks[-1], make, cycles), config)
        slope = np.polyfit([1 / block for block in blocks], [each.others for each in found.values()], 1)[0]
        for wanted in WANTED:
            ratio = (wanted / window) ** 2 * cores / slope
            best = min(blocks, key=lambda block: target(found[block], window, ratio))
            out.add("best_block", best, "tuples", common | {"wanted": wanted},
                    "the block of those above with the least J, for the α that makes ς* so large; C_ser is fitted")
    print(out.write())


if __name__ == "__main__":
    main()
