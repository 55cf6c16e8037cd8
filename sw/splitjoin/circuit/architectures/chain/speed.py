"""The speed of a chain of SplitJoin's cores: that of SplitJoin, with a way of k − 1 cores in place of two trees."""

from __future__ import annotations

from ...geometry import levels
from ...tuner.workload import Workload
from ...wire import Configuration
from ..splitjoin import speed as splitjoin

__all__ = ["cycles_a_tuple", "latency_cycles"]

cycles_a_tuple = splitjoin.cycles_a_tuple


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: for each core a node and a merger more, which are passed together."""
    trees = levels(config.cores, config.fanout) + levels(config.cores, config.fanin)
    return splitjoin.latency_cycles(config, load, busy=busy) - trees + config.cores - 1
