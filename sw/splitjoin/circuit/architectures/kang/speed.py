"""The speed of Kang's circuit, which scans, sends results and stores, and then takes the next tuple."""

from __future__ import annotations

from ...tuner.workload import Workload
from ...wire import Configuration

__all__ = ["cycles_a_tuple", "latency_cycles"]

#: By simulation: cycles of a tuple beside the datapath's stages, and those in which tuples leave both windows.
_STEPS, _EXPIRY = 16, 8


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load. A result leaves a cycle, while the scan goes on."""
    expiry = _EXPIRY if config.time_bits else 0
    return max(load.tuples, load.matches) + _STEPS + config.stages + expiry


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star, which are about those of a tuple. ``busy``: another one has just begun."""
    return cycles_a_tuple(config, load) * (2 if busy else 1)
