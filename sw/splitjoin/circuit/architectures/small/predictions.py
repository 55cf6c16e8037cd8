"""Cost and speed of a small circuit (`splitjoin_hw.small`): its datapaths, the join around them, and its registers. It
scans, and then sends items.
"""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.datapath import datapath_cost
from ...cost.elements import adder, control, counter, equal, memory, mux
from ...cost.resources import Family, Resources
from ...geometry import outcome_latency
from ...tuner.workload import Workload
from ...wire import WORD_BITS, Configuration

#: LUT4 of control: the state machine, and selects between both streams that share no width.
_CONTROL = 80


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    found = {}
    for side in config.structure.datapaths(config):
        of = datapath_cost(config, side, family)
        found[f"datapath of {side.upper()}"] = of.pair + of.lane + of.region
    found |= {"join": _join(config, family), "registers": _registers(config, family)}
    return {name: PartCost(1, resources) for name, resources in found.items()}


def _join(config: Configuration, family: Family) -> Resources:
    place, count, row, time = ((config.capacity - 1).bit_length(), config.capacity.bit_length(), config.row_bits,
                               config.time_bits)
    # Counters: both streams' tuples, places and windows; the scan's and the list's. Sums: addresses, row ids, border.
    sums = (counter(family, WORD_BITS, WORD_BITS, place, place, count, count, count, count, count, row)
            + adder(family, place, place, row, row, row, row, count + 1, count + 1))
    selects = mux(family, 2, 4 * place + 10 * count + 8 * row)
    whole = Resources(lut=sums + selects + equal(family, row, count, count, count, count, count)
                      + control(family, _CONTROL),
                      ff=2 * WORD_BITS + 2 * (place + count + row) + 5 * count + outcome_latency(config) + 50)
    whole += memory(family, max(config.keys(side).width for side in "rs"), 2 * config.capacity)
    whole += memory(family, place, config.capacity)
    if time:
        whole += Resources(lut=adder(family, time, time) + mux(family, 2, time))
        whole += memory(family, time, 2 * config.capacity)
    return whole


def _registers(config: Configuration, family: Family) -> Resources:
    count = config.capacity.bit_length()
    settings = config.row_bits + 3 * count + 2 + (2 * config.time_bits + 4 if config.time_bits else 0)
    # The words are in memory; the counts and the report of a tuple without room are selected beside them.
    return (memory(family, WORD_BITS, 64)
            + Resources(lut=5 * mux(family, 2, WORD_BITS) + 40, ff=settings + 2 * WORD_BITS + 20))


#: By simulation: cycles of a tuple beside the datapath's stages; those in which one tuple leaves the window and the
#: next ones are found to stay; and those of a result.
_STEPS, _EXPIRY, _PAIR = 10, 12, 4


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load."""
    expiry = _EXPIRY if config.time_bits else 0
    return load.tuples + _STEPS + config.stages + expiry + _PAIR * load.matches + load.stars


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star, which are those of a tuple. ``busy``: another one has just begun."""
    return cycles_a_tuple(config, load) * (2 if busy else 1)
