"""The speed of a SplitJoin circuit: the paper's model with this circuit's constants."""

from __future__ import annotations

from ...geometry import levels
from ...tuner.core_kinds import CORE_SPEEDS
from ...tuner.speed import EXPIRY, input_cycles
from ...tuner.workload import Workload
from ...wire import Configuration

__all__ = ["CONSTANT", "cycles_a_tuple", "latency_cycles"]

#: Cycles of a probe on an idle circuit beside both trees and the scan or the candidates (`latency_constant_cycles` of
#: bench/circuits.py), and the stages of the datapath for which they were measured.
CONSTANT, _STAGES = 24, 3
#: Further cycles with queues ahead of regions and of the combiner.
_QUEUED = 7
#: Further cycles with a root of so many results a cycle; and those of `_QUEUED` that its queues stand for.
_ROOT, _RESULTS = {1: 0, 2: 5, 4: 9}, 4


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: half of the tuples probe one region and half the other, in parallel."""
    return max(input_cycles(config, load), CORE_SPEEDS[config.core].comparing_cycles(config, load))


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    With an index, w·P stands for the candidates of the core with the most, and the lookups of buckets. With RANGE
    windows, an expiry precedes the probe. If the windows differ in length, the longer one counts. ``busy``: the probe
    arrives when a pass has just begun, and waits for its end.
    """
    work, wait = CORE_SPEEDS[config.core].latency(config, load)
    way = levels(config.cores, config.fanout) + levels(config.cores, config.fanin) + CONSTANT
    way += _ROOT[config.root_width] - (_RESULTS if config.queue and config.root_width > 1 else 0)
    way += config.stages - _STAGES + (EXPIRY if config.time_bits else 0) + (_QUEUED if config.queue else 0)
    return way + load.matches / config.cores + work + (wait if busy else 0)
