"""How fast a circuit joins and how late its answers are, in cycles: SplitJoin's model with this circuit's constants."""

from __future__ import annotations

from dataclasses import dataclass

from ..device.wire import Configuration

__all__ = ["CONSTANT", "Load", "cycles_a_tuple", "input_cycles", "latency_cycles"]

#: Cycles of a probe besides both trees and the scan, on an idle circuit (`latency_constant_cycles` of
#: bench/circuits.py).
CONSTANT = 24
#: Cycles in which a core takes a tuple: two, and a share of those in which its regions change from batch to batch.
_TAKEN = 2.5
#: Cycles of a pass at least, however little it reads: batches follow each other through the emitter.
_TURN = 18
#: Cycles from a tuple that has become too old to the next one that can be seen to be (`splitjoin.hw.core.storage`).
_EXPIRY = 4


@dataclass(frozen=True)
class Load:
    """What a circuit has to do. ``tuples``: in each stream's window. ``matches``: results of a probe, on average.
    ``single``: batches are of one probe, as in order ``inner``.
    """

    tuples: int
    matches: float = 0.0
    single: bool = False


def input_cycles(config: Configuration, load: Load) -> float:
    """Cycles a tuple that no number of comparators shortens: its way into the cores, expiry, and its results' way out.

    Results and a probe's star leave one in a cycle.
    """
    expiry = _EXPIRY / (2 * config.cores) if config.time_bits else 0.0
    return max(_TAKEN + expiry, load.matches + 1)


def cycles_a_tuple(config: Configuration, load: Load) -> float:
    """Cycles from tuple to tuple, input of both streams in turn and never lacking.

    A pass reads the union of its probes' windows, L tuples a cycle, for B probes: half of the tuples probe one region,
    half the other, at once.
    """
    probes = 1 if load.single else config.probes
    union = (load.tuples + probes) / config.cores
    return max(input_cycles(config, load), max(union / config.lanes, _TURN) / probes / 2)


def latency_cycles(config: Configuration, load: Load, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    ``busy``: it comes when a pass has just begun, and waits for its end.
    """
    scan = -(-load.tuples // config.cores) / config.lanes
    return (_levels(config.cores, config.fanout) + _levels(config.cores, config.fanin) + CONSTANT
            + load.matches / config.cores + scan * (2 if busy else 1))


def _levels(leaves: int, fan: int) -> int:
    depth = 0
    while fan**depth < leaves:
        depth += 1
    return depth
