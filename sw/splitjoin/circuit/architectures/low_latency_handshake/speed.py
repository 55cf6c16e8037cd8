"""The speed of low-latency handshake join: a scan of a core's share for each tuple, and a chain to pass."""

from __future__ import annotations

from ...tuner.workload import Workload
from ...wire import Configuration

__all__ = ["cycles_a_tuple", "latency_cycles"]

#: By simulation: cycles of a hop, of the ends for a tuple and its expiry, and of the stages behind.
_HOP, _ENDS, _CONSTANT = 5, 12, 40


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load: half of the tuples probe each region."""
    return max(load.tuples / config.cores / 2, _ENDS, load.matches)


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its last result: PL = T_CL + (k − 1)·(T_CL + T_ML) + w·T_P + T_Col."""
    return (config.cores - 1) * _HOP + load.tuples / config.cores * (2 if busy else 1) + _CONSTANT
