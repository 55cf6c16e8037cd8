"""Cost of one region of a join core: the parts around the datapath (`splitjoin.hw.core`).

Each function names the part's arithmetic, its multiplexers and its registers, with their widths. What remains, the
control of a part, depends on no parameter; it is one number a part, as Yosys maps it, in LUT4.
"""

from __future__ import annotations

from ..circuit.wire import ROW_BITS, Configuration
from .cells import Cells, Family
from .datapath import datapath
from .elements import adder, control, counter, equal, gate, memory, mux
from .emitter import emitter, stack_emitter
from .index import index, prober
from .widths import Widths

__all__ = ["region"]

#: LUT4 of control.
_CONTROL = {"storage": 30, "timed storage": 40, "scanner": 20, "tables": 8}


def region(config: Configuration, side: str, family: Family) -> dict[str, Cells]:
    """Part → cells, of the region that stores stream ``side``."""
    w = Widths.of(config)
    parts = {"datapath": datapath(config, side, family).total, "storage": _storage(config, side, family, w)}
    if config.core == "scan":
        return {**parts, "scanner": _scanner(config, family, w), "emitter": emitter(config, family, w)}
    return {**parts, "index": index(config, side, family, w), "prober": prober(config, side, family, w),
            "emitter": stack_emitter(config, family, w)}


def _storage(config: Configuration, side: str, family: Family, w: Widths) -> Cells:
    count = (config.cores * (config.capacity + 2)).bit_length()  # what is left of a ROWS window
    width = config.keys(side).width
    # tail, head, head's row, turn, probes; live, row of an overflow, window, what is left of it, and who has still to
    # read the slot at the tail.
    sums = (counter(family, w.position, w.position, w.row, w.index, ROW_BITS)
            + adder(family, w.live, w.live, max(1, w.row - w.live + 1), count + 2, count + 2, w.position, w.position,
                    w.position))
    logic = (gate(family, ROW_BITS - count) + mux(family, 2, 2 * count + 2 + w.live + w.index)
             + equal(family, w.index, w.index, w.live, w.live) + control(family, _CONTROL["storage"]))
    # And what is written, a cycle later.
    ff = width + w.rows + config.lanes
    ff += 17 + w.live + 2 * w.position + w.row + w.index + 2 * ROW_BITS + 2 * (count + 2) + count
    rings = memory(family, width, 1 << w.rows) * config.lanes
    if not config.time_bits:
        return Cells(lut=sums + logic, ff=ff) + rings
    ages = adder(family, config.time_bits, config.time_bits) + control(family, _CONTROL["timed storage"])
    return (Cells(lut=sums + logic + ages, ff=ff + config.time_bits + 4) + rings
            + memory(family, config.time_bits, config.capacity))


def _scanner(config: Configuration, family: Family, w: Widths) -> Cells:
    lanes, probes = config.lanes, config.probes
    number = probes.bit_length()
    # A window's start and end, whether what is left is the last read; position, what is left, the ring's row, the
    # read's number.
    sums = adder(family, *[w.position] * 4) + counter(family, w.group, w.group, w.rows, w.group)
    logic = mux(family, 2, 2 * w.position + w.live) + control(family, _CONTROL["scanner"])
    # A probe takes part from where its start equals the read's number up to where its end does, and of these reads
    # in the lanes behind either edge.
    logic += probes * (2 * (equal(family, w.group) + 2) + 2 * gate(family, number + 2) + 4)
    logic += probes * lanes * (2 if lanes == 1 else 3 + 2 * gate(family, 2 * w.lane + 1))
    # The task that waits, the batch that is collected, the pass under way, and what the emitter hears of it.
    base = (2 * w.position + w.live + w.row + 3 + 2 * number + w.row + w.position + 4
            + 3 * w.position + 2 * w.rows + 3 + w.row + max(1, w.lane) + w.probe + 1 + w.live
            + 2 + 2 * (config.stages + 3) + 1 + 2 * w.position + w.group)
    if config.tables:  # when a batch is complete, and when it is written
        logic, base = logic + control(family, _CONTROL["tables"]), base + 11 + -(-probes // 4)
    held = probes * (4 * w.group + 9) + probes * lanes * (config.stages + 4)
    return Cells(lut=sums + logic, ff=base + held)
