"""Cost of one region of a join core: the parts around the datapath (`splitjoin_hw.core`).

Each function lists the part's arithmetic, multiplexers and registers, with their widths. The remaining control logic of
a part depends on no parameter; it is one number of LUT4 per part, as Yosys maps it.
"""

from __future__ import annotations

from ..geometry import window_count_bits
from ..wire import ROW_BITS, Configuration
from .core_kinds import CORE_COSTS
from .datapath import datapath_cost
from .elements import adder, control, counter, equal, gate, memory, mux
from .region_widths import RegionWidths
from .resources import Family, Resources

#: LUT4 of control.
_CONTROL = {"storage": 30, "timed storage": 40}


def region_cost(config: Configuration, side: str, family: Family) -> dict[str, Resources]:
    """Part → its cost, for the region that stores stream ``side``."""
    w = RegionWidths.of(config)
    return {"datapath": datapath_cost(config, side, family).total, "storage": _storage(config, side, family, w),
            **CORE_COSTS[config.core].parts(config, side, family, w)}


def _storage(config: Configuration, side: str, family: Family, w: RegionWidths) -> Resources:
    count = window_count_bits(config)  # remaining length of a ROWS window
    width = config.keys(side).width + config.stored_values(side).width
    # Counters: tail, head, head's row, turn, probes. Adders: live tuples, row of an overflow, window, its remaining
    # length, and the pending readers of the slot at the tail.
    sums = (counter(family, w.position, w.position, w.row, w.index, ROW_BITS)
            + adder(family, w.live, w.live, max(1, w.row - w.live + 1), count + 2, count + 2, w.position, w.position,
                    w.position))
    logic = (gate(family, ROW_BITS - count) + mux(family, 2, 2 * count + 2 + w.live + w.index)
             + equal(family, w.index, w.index, w.live, w.live) + control(family, _CONTROL["storage"]))
    # The registers of the write port, which delay a write by a cycle.
    ff = width + w.rows + config.lanes
    ff += 17 + w.live + 2 * w.position + w.row + w.index + 2 * ROW_BITS + 2 * (count + 2) + count
    rings = memory(family, width, 1 << w.rows) * config.lanes if config.memory == "bram" else Resources()
    if not config.time_bits:
        return Resources(lut=sums + logic, ff=ff) + rings
    ages = adder(family, config.time_bits, config.time_bits) + control(family, _CONTROL["timed storage"])
    return (Resources(lut=sums + logic + ages, ff=ff + config.time_bits + 4) + rings
            + memory(family, config.time_bits, config.capacity))
