"""The speed of a circuit and the latency of its answers, in cycles: SplitJoin's model with this circuit's constants."""

from __future__ import annotations

from ..geometry import levels
from ..wire import Configuration
from .core_kinds import CORE_SPEEDS
from .workload import Workload

__all__ = ["CONSTANT", "cycles_a_tuple", "input_cycles", "items_a_tuple", "latency_cycles", "root_cycles"]

#: Cycles of a probe on an idle circuit beside both trees and the scan or the candidates (`latency_constant_cycles` of
#: bench/circuits.py), and the stages of the datapath for which they were measured.
CONSTANT, _STAGES = 24, 3
#: Further cycles with queues ahead of regions and of the combiner.
_QUEUED = 7
#: Further cycles with a root of so many results a cycle; and those of `_QUEUED` that its queues stand for.
_ROOT, _RESULTS = {1: 0, 2: 5, 4: 9}, 4
#: Cycles from the expiry of one tuple to that of the next (`splitjoin_hw.core.storage`).
_EXPIRY = 4
#: Of a small circuit, by simulation: cycles of a tuple beside the datapath's stages; those in which one tuple leaves
#: the window and the next ones are found to stay; and those of a result.
_SMALL_STEPS, _SMALL_EXPIRY, _SMALL_PAIR = 10, 12, 4


def input_cycles(config: Configuration, load: Workload) -> float:
    """Cycles per tuple that do not depend on the number of comparators: input to the cores, expiry, and output of its
    results.

    One result or star leaves the circuit per cycle, or with a wide root a record of up to ``root_width`` of one probe;
    the last one is full only by chance. With one core, each of its two regions must emit half of them, a
    result in a cycle, or two with inner stars, and the end of a probe in two.
    """
    expiry = _EXPIRY / (2 * config.cores) if config.time_bits else 0.0
    leaving = 0.0 if config.whole_states else load.matches / config.cores
    region = (leaving * (2 if load.single else 1) + 2) / 2
    return max(CORE_SPEEDS[config.core].input_cycles(expiry), root_cycles(config, load), region)


def items_a_tuple(config: Configuration, matches: float, stars: float) -> float:
    """Items that leave the circuit for a tuple, on average over both streams, which have equally many. ``matches``,
    ``stars``: results and stars of a probe.

    A circuit that folds gives the state of a tuple of R in `Configuration.beats` items and a star. Where states do not
    leave whole, S's probes also give pairs; of these, at most one for each tuple of R if only first hits leave.
    """
    if not config.folds:
        return matches + stars
    state = (config.beats + 1) / 2
    if config.whole_states:
        return state
    return state + (min(matches, 1.0) if config.first_hits else matches) / 2 + stars / 2


def root_cycles(config: Configuration, load: Workload) -> float:
    """Cycles in which the results and stars of a tuple leave the circuit.

    A record of W items holds those of one probe, as far as each has a star. So ⌈(n + 1) / W⌉ records leave for n
    results, which is (W − 1) / 2W more than (n + 1) / W on average.
    """
    width, items = config.root_width, items_a_tuple(config, load.matches, load.stars)
    return items if width == 1 else max(load.stars, items / width + min(load.stars, 1) * (width - 1) / (2 * width))


def cycles_a_tuple(config: Configuration, load: Workload) -> float:
    """Cycles per tuple under full load, with as many tuples of one stream as of the other, arriving as ``load`` says.

    Half of the tuples probe one region and half the other, in parallel. A small circuit processes one at a time.
    """
    if config.small:
        return _small_cycles(config, load)
    return max(input_cycles(config, load), CORE_SPEEDS[config.core].comparing_cycles(config, load))


def _small_cycles(config: Configuration, load: Workload) -> float:
    """Cycles in which `splitjoin_hw.small.join.SmallJoin` processes a tuple: it scans, then it sends items."""
    expiry = _SMALL_EXPIRY if config.time_bits else 0
    return (load.tuples + _SMALL_STEPS + config.stages + expiry + _SMALL_PAIR * load.matches + load.stars)


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    With an index, w·P stands for the candidates of the core with the most, and the lookups of buckets. With RANGE
    windows, an expiry precedes the probe. If the windows differ in length, the longer one counts. ``busy``: the probe
    arrives when a pass has just begun, and waits for its end. A small circuit takes as long as it does for a tuple.
    """
    if config.small:
        return _small_cycles(config, load) * (2 if busy else 1)
    work, wait = CORE_SPEEDS[config.core].latency(config, load)
    way = levels(config.cores, config.fanout) + levels(config.cores, config.fanin) + CONSTANT
    way += _ROOT[config.root_width] - (_RESULTS if config.queue and config.root_width > 1 else 0)
    way += config.stages - _STAGES + (_EXPIRY if config.time_bits else 0) + (_QUEUED if config.queue else 0)
    return way + load.matches / config.cores + work + (wait if busy else 0)
