"""Cost and speed of low-latency handshake join: three regions in each core, that of tuples in flight among them; a scan
of a core's share for each tuple, and a chain to pass.
"""

from __future__ import annotations

from dataclasses import replace

from ...cost.circuit import PartCost
from ...cost.elements import fifo
from ...cost.region_widths import RegionWidths
from ...cost.resources import Family, Resources
from ...tuner.workload import Workload
from ...wire import ROW_BITS, Configuration
from ..moving import chain_links, ends_cost, gathering, segments
from ..splitjoin.predictions import merger_cost

#: As in `splitjoin_hw.baseline.low_latency`.
_IN_FLIGHT, _WAITING = 16, 8


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    found = segments(config, family, moves=False)
    in_flight = segments(replace(config, cores=1, capacity=_IN_FLIGHT), family, moves=False)
    found |= {f"{name} in flight": PartCost(config.cores, cost.each) for name, cost in in_flight.items()
              if name.endswith("of S") or name == "datapath of S"}
    w = RegionWidths.of(config)
    for side, other in (("r", "s"), ("s", "r")):
        width = 2 * w.position + w.live + ROW_BITS + 2 + config.bounds(other).width
        found[f"probes of {other.upper()} that wait"] = PartCost(
            config.cores * (2 if side == "s" else 1), fifo(family, width, _WAITING))
    found["places in the order of tuples"] = PartCost(config.cores, Resources(lut=5 * ROW_BITS, ff=4 * ROW_BITS))
    others = {name: cost for name, cost in gathering(config, family).items() if not name.startswith("merger")}
    return {**found, **chain_links(config, family, w.position), "ends": PartCost(1, ends_cost(config, family)),
            "merger of 2": PartCost(3 * config.cores - 2, merger_cost(config, 2, family)), **others}


#: By simulation: cycles of a hop, of the ends for a tuple and its expiry, and of the stages behind.
_HOP, _ENDS, _CONSTANT = 5, 12, 40


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: half of the tuples probe each region."""
    return max(load.tuples / config.cores / 2, _ENDS, load.matches)


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its last result: PL = T_CL + (k − 1)·(T_CL + T_ML) + w·T_P + T_Col."""
    return (config.cores - 1) * _HOP + load.tuples / config.cores * (2 if busy else 1) + _CONSTANT
