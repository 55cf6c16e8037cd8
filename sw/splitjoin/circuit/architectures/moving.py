"""Cost of what baselines share in which tuples move from core to core (`splitjoin_hw.baseline`)."""

from __future__ import annotations

from splitjoin.lang.schema import SIDES

from ..cost.circuit import PartCost
from ..cost.elements import adder, control, counter, equal, fifo, gate, memory
from ..cost.region import region_cost
from ..cost.region_widths import RegionWidths
from ..cost.resources import Family, Resources
from ..geometry import ring_rows
from ..wire import ROW_BITS, Configuration
from .splitjoin import predictions as splitjoin

#: LUT4 of control: the choice of a message and what it does; the ends' state machine.
_CORE, _ENDS = 60, 60


def segments(config: Configuration, family: Family, *, moves: bool = True, probes: bool = True) -> dict[str, PartCost]:
    """The cores' regions, each with a segment in place of SplitJoin's storage, and the choice of messages. ``moves``:
    segments send tuples on, and with ``probes`` their bounds too.
    """
    w, found = RegionWidths.of(config), {}
    for side in SIDES:
        for name, resources in region_cost(config, side, family).items():
            if name != "storage":
                found[f"{name} of {side.upper()}"] = PartCost(config.cores, resources)
        keys, body = config.keys(side).width, (config.body(side) if probes else config.keys(side)).width
        # Start, end, sent and the row id; both lengths; the readers of the slot at the end.
        found[f"segment of {side.upper()}"] = PartCost(config.cores, Resources(
            lut=counter(family, w.position, w.position, w.position, w.position, ROW_BITS) + adder(
                family, w.live, w.live, w.position, w.position, w.position) + 12,
            ff=4 * w.position + 2 * w.live + ROW_BITS + 8)
            + memory(family, keys, ring_rows(config)) * config.lanes
            + (memory(family, body, ring_rows(config) * config.lanes) if moves else Resources()))
    found["messages of a core"] = PartCost(config.cores, Resources(
        lut=counter(family, w.position, w.position) + adder(family, *[w.position] * 6) + control(family, _CORE),
        ff=2 * w.position + 4))
    return found


def chain_links(config: Configuration, family: Family, further: int = 0) -> dict[str, PartCost]:
    """The links between cores: a queue of four messages of each way. ``further``: bits beside kind and body."""
    return {f"link of {side.upper()}": PartCost(config.cores - 1, fifo(
        family, config.body(side).width + 2 + further, 4)) for side in SIDES if config.cores > 1}


def ends_cost(config: Configuration, family: Family) -> Resources:
    """Both windows, by count and by time, and the messages into the chain."""
    live = config.window_capacity.bit_length()
    found = Resources(lut=2 * (counter(family, ROW_BITS, live) + equal(family, ROW_BITS) + gate(family, live))
                      + control(family, _ENDS), ff=2 * (ROW_BITS + live) + 12)
    if config.time_bits:
        found += (memory(family, config.time_bits, config.window_capacity) + Resources(
            lut=adder(family, config.time_bits, config.time_bits) + counter(family, live, live),
            ff=2 * live + 1)) * 2
    return found


def gathering(config: Configuration, family: Family) -> dict[str, PartCost]:
    """The cost of the parts behind the cores, which are SplitJoin's: mergers, the combiner, registers and counters."""
    names = ("merger", "combiner", "registers", "counters")
    return {name: cost for name, cost in splitjoin.trees(config, family).items() if name.startswith(names)}
