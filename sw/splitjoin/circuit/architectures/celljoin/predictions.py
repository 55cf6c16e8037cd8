"""Cost and speed of CellJoin: segments that hand keys on, the windows, and SplitJoin's gathering. A probe waits until
tuples have moved, and then all cores compare it.
"""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.resources import Family
from ...geometry import levels
from ...tuner.workload import Workload
from ...wire import Configuration
from ..moving import ends_cost, gathering, segments


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    return {**segments(config, family, probes=False), "ends": PartCost(1, ends_cost(config, family)),
            **gathering(config, family)}


#: By simulation: cycles of a tuple's move to the next core; of the ends for a tuple and its expiry, in which tuples of
#: the one before move; between the last move and the next expiry; and of the stages behind.
_MOVE, _ENDS, _BETWEEN, _CONSTANT = 3, 12, 9, 30


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: the place of the oldest one moves through all cores, before the next scan."""
    settling = _MOVE * (config.cores - 1) + _BETWEEN
    return max(load.tuples / config.cores / 2, settling, _ENDS, load.matches)


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star."""
    return (_MOVE * (config.cores - 1) + load.tuples / config.cores * (2 if busy else 1) + _ENDS + _CONSTANT
            + levels(config.cores, config.fanin))
