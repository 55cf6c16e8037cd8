"""The speed of a circuit and the latency of its answers, in cycles, as its architecture predicts them."""

from __future__ import annotations

from ..wire import Configuration
from .core_kinds import CORE_SPEEDS
from .workload import Workload

#: Cycles from the expiry of one tuple to that of the next (`splitjoin_hw.core.storage`).
EXPIRY = 4
#: Cycles of the unit that folds in order (`splitjoin_hw.gather.ordered_folder`) for a tuple, and for a leaving state.
_OPERATION, _LEAVING = 4, 4


def input_cycles(config: Configuration, load: Workload) -> float:
    """Cycles per tuple that do not depend on the number of comparators: input to the cores, expiry, and output of its
    results.

    One result or star leaves the circuit per cycle, or with a wide root a record of up to ``root_width`` of one probe;
    the last one is full only by chance. With one core, each of its two regions must emit half of them, a
    result in a cycle, or two with inner stars, and the end of a probe in two.
    """
    expiry = EXPIRY / (2 * config.turns) if config.time_bits else 0.0
    leaving = 0.0 if config.whole_states and not config.in_order else load.matches / config.cores
    region = (leaving * (2 if load.single else 1) + 2) / 2
    root = _in_order(config, load) if config.in_order else root_cycles(config, load)
    return max(CORE_SPEEDS[config.core].input_cycles(config, expiry), root, region)


def _in_order(config: Configuration, load: Workload) -> float:
    """Cycles a tuple of the unit that folds in order: for each partner, until these have been added, for the tuple
    itself, and for the state of every second one.
    """
    last = max(part.add.ahead for part in config.folds if part.add is not None)
    return load.matches * (config.in_order or 1) + min(load.matches, 1.0) * (last + 2) + _OPERATION + _LEAVING / 2


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

    Half of the tuples probe one region and half the other, in parallel. A sequential circuit processes one at a time.
    """
    found: float = config.structure.predictions.cycles_a_tuple(config, load)
    return found


def latency_cycles(config: Configuration, load: Workload, *, busy: bool = False) -> float:
    """Cycles from a probe to its star. ``busy``: the probe arrives when a pass has just begun, and waits for its end. A
    sequential circuit takes as long as it does for a tuple.
    """
    found: float = config.structure.predictions.latency_cycles(config, load, busy=busy)
    return found
