"""The speed of a circuit and the latency of its answers, in cycles: SplitJoin's model with this circuit's constants."""

from __future__ import annotations

from ..circuit.geometry import levels
from ..circuit.wire import Configuration
from .core_kinds import CORE_SPEEDS
from .workload import Workload

__all__ = ["CONSTANT", "cycles_a_tuple", "input_cycles", "latency_cycles"]

#: Cycles of a probe besides both trees and the scan or the candidates, on an idle circuit (`latency_constant_cycles` of
#: bench/circuits.py), with a datapath of so many stages.
CONSTANT, _STAGES = 24, 3
#: Cycles from a tuple that has become too old to the next one that can be seen to be (`splitjoin.hw.core.storage`).
_EXPIRY = 4


def input_cycles(config: Configuration, load: Workload) -> float:
    """Cycles a tuple that no number of comparators shortens: its way into the cores, expiry, and its results' way out.

    Results and a probe's star leave one in a cycle.
    """
    expiry = _EXPIRY / (2 * config.cores) if config.time_bits else 0.0
    return max(CORE_SPEEDS[config.core].input_cycles(expiry), load.matches + 1)


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles from tuple to tuple, input of both streams in turn and never lacking.

    Half of the tuples probe one region, half the other, at once.
    """
    return max(input_cycles(config, load), CORE_SPEEDS[config.core].comparing_cycles(config, load))


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    With an index w·P are the candidates of the core that has most of them, and the buckets that are looked up. Where
    windows go by time, a tuple that expires comes before. Of windows of different lengths it is the longer one.
    ``busy``: the probe comes when a pass has just begun, and waits for its end.
    """
    work, wait = CORE_SPEEDS[config.core].latency(config, load)
    way = levels(config.cores, config.fanout) + levels(config.cores, config.fanin) + CONSTANT
    way += config.stages - _STAGES + (_EXPIRY if config.time_bits else 0)
    return way + load.matches / config.cores + work + (wait if busy else 0)
