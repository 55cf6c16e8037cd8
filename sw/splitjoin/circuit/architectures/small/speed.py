"""The speed of a small circuit (`splitjoin_hw.small.join.SmallJoin`), which scans, and then sends items."""

from __future__ import annotations

from ...tuner.workload import Workload
from ...wire import Configuration

__all__ = ["cycles_a_tuple", "latency_cycles"]

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
