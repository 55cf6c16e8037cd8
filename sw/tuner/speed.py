"""How fast a circuit joins and how late its answers are, in cycles: SplitJoin's model with this circuit's constants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..circuit.wire import Configuration
from .candidates import candidates, most

__all__ = ["CONSTANT", "Load", "cycles_a_tuple", "input_cycles", "latency_cycles"]

#: Cycles of a probe besides both trees and the scan or the candidates, on an idle circuit (`latency_constant_cycles` of
#: bench/circuits.py), with a datapath of so many stages.
CONSTANT, _STAGES = 24, 3
#: Cycles in which a core takes a tuple: two, and a share of those in which its regions change from batch to batch.
_TAKEN = 2.5
#: Cycles of a pass at least, however little it reads: batches follow each other through the emitter.
_TURN = 18
#: With tables, cycles that a probe which meets no pass waits for them to be written; and how many reads before the end
#: of a pass the next batch takes no more, of which a probe comes in so many cycles.
_WRITTEN, _CLOSED, _COLLECTED = 7, 6, 5
#: Cycles from a tuple that has become too old to the next one that can be seen to be (`splitjoin.hw.core.storage`).
_EXPIRY = 4
#: Cycles of an index from candidate to candidate; besides, of a probe; and of one with few candidates at least, which
#: its way through the emitter takes (`splitjoin.hw.core.prober`, ``stack``).
_CANDIDATE, _BEGIN = 4, 1
_PROBE = 9


@dataclass(frozen=True)
class Load:
    """What a circuit has to do. ``r``, ``s``: tuples in each stream's window. ``matches``: results of a probe, on
    average. ``single``: batches are of one probe, as in order ``inner``. ``selectivity``: the share of pairs that meet
    the tests of an index; ``points``: the tests that are equalities.
    """

    r: int
    s: int
    matches: float = 0.0
    single: bool = False
    selectivity: float = 0.0
    points: Collection[int] = field(default=frozenset())

    @property
    def tuples(self) -> int:
        """Of the longer window: what a core must have room for, and what the busier region does."""
        return max(self.r, self.s)

    def candidates(self, config: Configuration) -> tuple[float, float]:
        """Of a probe in each core that stores R, and in each that stores S."""
        of_r, of_s = (candidates(config, tuples / config.cores, self.selectivity, self.points)
                      for tuples in (self.r, self.s))
        return of_r, of_s


def input_cycles(config: Configuration, load: Load) -> float:
    """Cycles a tuple that no number of comparators shortens: its way into the cores, expiry, and its results' way out.

    Results and a probe's star leave one in a cycle.
    """
    expiry = _EXPIRY / (2 * config.cores) if config.time_bits else 0.0
    taken = _TAKEN + expiry if config.core == "scan" else max(_TAKEN + expiry, _PROBE / 2)
    return max(taken, load.matches + 1)


def cycles_a_tuple(config: Configuration, load: Load) -> float:
    """Cycles from tuple to tuple, input of both streams in turn and never lacking.

    Half of the tuples probe one region, half the other, at once. A pass reads the union of its probes' windows, L
    tuples a cycle, for B probes; with tables for those that came so early in the pass before that they could be written
    meanwhile. With an index it is the candidates' number that counts; as there is room for few
    records between the regions of a core, they keep step, and the one with more candidates decides.
    """
    if config.core != "scan":
        return max(input_cycles(config, load), _probe_cycles(most(load.candidates(config))) / 2)
    probes = 1 if load.single else config.probes
    work = max((load.tuples + probes) / config.cores / config.lanes, _TURN)
    came = min(probes, (work - _CLOSED) / _COLLECTED) if config.tables else probes
    return max(input_cycles(config, load), work / came / 2)


def latency_cycles(config: Configuration, load: Load, *, busy: bool = False) -> float:
    """Cycles from a probe to its star: PL = d·T + w·P + g·T (SplitJoin, section 6), T a cycle and P 1 / L of one.

    With an index w·P are the candidates of the core that has most of them, and the buckets that are looked up. Where
    windows go by time, a tuple that expires comes before. Of windows of different lengths it is the longer one.
    ``busy``: it comes when a pass has just begun, and waits for its end.
    """
    if config.core == "scan":
        work = -(-load.tuples // config.cores) / config.lanes
        wait = work
        if config.tables:
            work, wait = work + _WRITTEN, max(0.0, wait - _WRITTEN)
    else:
        chances = most((max(load.candidates(config)),), config.cores)
        work = _CANDIDATE * sum(n * chance for n, chance in enumerate(chances))
        if config.core == "bucket":
            work += 2 ** len(config.index) - 1
        wait = _probe_cycles(chances)
    way = _levels(config.cores, config.fanout) + _levels(config.cores, config.fanin) + CONSTANT
    way += config.stages - _STAGES + (_EXPIRY if config.time_bits else 0)
    return way + load.matches / config.cores + work + (wait if busy else 0)


def _probe_cycles(chances: list[float]) -> float:
    """Cycles of a probe with an index, by the chance of each number of candidates."""
    return sum(chance * max(_PROBE, _CANDIDATE * n + _BEGIN) for n, chance in enumerate(chances))


def _levels(leaves: int, fan: int) -> int:
    depth = 0
    while fan**depth < leaves:
        depth += 1
    return depth
