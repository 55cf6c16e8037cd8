"""Cost and speed of a chain of SplitJoin's cores: a node, a queue and two mergers for each core, in place of the trees,
and a way of k − 1 cores.
"""

from __future__ import annotations

from ...cost.circuit import PartCost
from ...cost.elements import fifo
from ...cost.resources import Family
from ...geometry import credit_fifo_depth, levels
from ...tuner.workload import Workload
from ...wire import Configuration
from ..splitjoin import predictions as splitjoin


def parts(config: Configuration, family: Family) -> dict[str, PartCost]:
    """Part → its cost."""
    trees = ("broadcast register", "credit FIFO", "merger")
    found = {name: cost for name, cost in splitjoin.parts(config, family).items() if not name.startswith(trees)}
    further = config.cores - 1
    found["node of the chain"] = PartCost(further, splitjoin.distributor_cost(config, 2, family))
    found["queue of a core"] = PartCost(config.cores, fifo(family, config.input_record.width, credit_fifo_depth(0)))
    found["merger of 2"] = PartCost(2 * further, splitjoin.merger_cost(config, 2, family))
    return {name: cost for name, cost in found.items() if cost.count}


cycles_a_tuple = splitjoin.cycles_a_tuple


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: for each core a node and a merger more, which are passed together."""
    trees = levels(config.cores, config.fanout) + levels(config.cores, config.fanin)
    return splitjoin.latency_cycles(config, load, busy=busy) - trees + config.cores - 1
