"""Cost and speed of Kang's circuit: the regions of one core of SplitJoin, in turn, without trees and combiner. It
scans, sends results and stores, and then takes the next tuple.
"""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.elements import control, counter, equal, mux
from ...cost.region import region_cost
from ...cost.resources import Family, Resources
from ...tuner.workload import Workload
from ...wire import ROW_BITS, Configuration
from ..splitjoin.predictions import counters_cost, registers_cost

#: LUT4 of control: the state machine, and the handshakes of both regions.
_CONTROL = 40


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    found = {f"{name} of {side.upper()}": resources for side in "rs"
             for name, resources in region_cost(config, side, family).items()}
    # Probes since the last star of each stream, whether a star is due, and both regions' settings and results.
    settings = 2 * (ROW_BITS + config.time_bits + 1 + config.capacity.bit_length())
    found["sequence"] = Resources(
        lut=counter(family, ROW_BITS, ROW_BITS) + equal(family, ROW_BITS, ROW_BITS)
        + mux(family, 2, 3 * config.item_record.width) + control(family, _CONTROL), ff=2 * ROW_BITS + settings + 12)
    found |= {"registers": registers_cost(family), "counters": counters_cost(config, family)}
    return {name: PartCost(1, resources) for name, resources in found.items()}


#: By simulation: cycles of a tuple beside the datapath's stages, and those in which tuples leave both windows.
_STEPS, _EXPIRY = 16, 8


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load. A result leaves a cycle, while the scan goes on."""
    expiry = _EXPIRY if config.time_bits else 0
    return max(load.tuples, load.matches) + _STEPS + config.stages + expiry


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star, which are about those of a tuple. ``busy``: another one has just begun."""
    return cycles_a_tuple(config, load) * (2 if busy else 1)
