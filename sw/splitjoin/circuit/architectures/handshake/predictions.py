"""Cost and speed of handshake join: tuples go with keys and bounds, so segments and links are wider than SplitJoin's
regions.
"""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.region_widths import RegionWidths
from ...cost.resources import Family
from ...tuner.workload import Workload
from ...wire import Configuration
from ..moving import chain_links, ends_cost, gathering, segments


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    number = RegionWidths.of(config).position
    return {**segments(config, family), **chain_links(config, family, number + 2),
            "ends": PartCost(1, ends_cost(config, family)), **gathering(config, family)}


#: By simulation: cycles of a message, and of the ends for a tuple and its expiry.
_MESSAGE, _ENDS = 3, 12


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: a core compares a tuple of each stream at a time with its segment, and takes
    messages for tuples, their ACKs and their going on.
    """
    return max(load.tuples / config.cores / 2, 2.5 * _MESSAGE, _ENDS, load.matches)


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its last result: half of a window comes meanwhile, as tuples meet when they move."""
    return cycles_a_tuple(config, load) * load.tuples / 2
