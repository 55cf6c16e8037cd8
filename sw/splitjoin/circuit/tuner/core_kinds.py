"""The speed of each kind of core, and the shapes that the tuner tries: a class and a line of the table a kind, as in
`splitjoin.circuit.core_kinds`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from ..core_kinds import WIDEST
from ..geometry import bitmap_bits, stores, waiting_tasks
from ..wire import Configuration
from .memory import TIMES, memory_cycles
from .workload import Workload, stretch

#: Cycles per input tuple of a core: two, and a share of the cycles in which its regions switch batches.
CORE_INPUT = 2.5


class Shape(NamedTuple):
    """The parameters of a core that the tuner chooses: capacity in tuples, lanes and probes."""

    capacity: int
    lanes: int
    probes: int


class CoreSpeed(ABC):
    """The speed of a kind of core in cycles, and its shapes."""

    @abstractmethod
    def input_cycles(self, config: Configuration, expiry: float) -> float:
        """Cycles per input tuple of a core, including ``expiry`` cycles for tuples that expire."""

    @abstractmethod
    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        """Cycles per tuple that comparing needs, with as many tuples of one stream as of the other."""

    @abstractmethod
    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Cycles of a probe's comparisons, and of its wait for a pass that has just begun."""

    @abstractmethod
    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        """Shapes of cores that hold at least ``least`` tuples; ``lanes``, ``probes``: as requested, or None."""

    def candidates(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Tuples of R and of S that a probe is compared with in each core: without an index all stored tuples."""
        return load.r / config.cores, load.s / config.cores


#: Least cycles of a pass, however few tuples it reads: the emitter handles one batch after the other.
_TURN = 18
#: With tables: cycles that a probe on an idle core waits for its table to be written; reads before the end of a pass
#: after which the next batch takes no more probes; and cycles per probe of that batch.
_WRITTEN, _CLOSED, _COLLECTED = 7, 6, 5
#: Cycles of latency in which the hits of several probes are sorted, if there are no more than four of them.
_SORTING = 6
#: Numbers of lanes and probes to try: all lanes, some probes.
_LANES = (1, 2, 4, 8)
_PROBES = (1, 2, 3, 4, 6, 8, 12, 16)


class ScanSpeed(CoreSpeed):
    """The speed of cores whose passes read the union of their probes' windows."""

    def input_cycles(self, config: Configuration, expiry: float) -> float:
        return CORE_INPUT + expiry

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        # A pass reads L tuples a cycle for B probes. With tables it serves only the probes that came early enough in
        # the previous pass for their tables to be written.
        probes = 1 if load.single else config.probes
        work = max((load.tuples + probes) / config.cores / config.lanes, _TURN)
        came = min(probes, (work - _CLOSED) / _COLLECTED) if config.tables else probes
        return work / came / 2 * stretch(
            work, max(1, round(came)), load.arrival, config.queue, waiting_tasks(config), stores(config))

    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        work = -(-load.tuples // config.cores) / config.lanes
        sorting = 0 if config.probes == 1 else _SORTING + (config.probes > 4)
        return (work + _WRITTEN + sorting, max(0.0, work - _WRITTEN)) if config.tables else (work + sorting, work)

    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        for some in sorted({*_LANES, lanes or 1}):
            for many in sorted({*_PROBES, probes or 1}):
                yield Shape(max(least, 2 * some), some, many)


#: Cycles from candidate to candidate; further cycles of a probe; and the least cycles of a probe with few candidates,
#: which the emitter needs (`splitjoin_hw.core.prober`, ``stack``).
_CANDIDATE, _BEGIN = 4, 1
_PROBE = 9
#: Probes that one region of a core can be ahead of the other, by simulation.
_APART = 8
#: Factors of over-provisioning that are tried: capacity, and buckets, per tuple held.
_ROOM = (1, 2, 4)
#: From this mean on a Poisson distribution is treated as normal.
_LARGE = 200


class IndexSpeed(CoreSpeed):
    """The speed of cores that compare a probe with candidates."""

    @abstractmethod
    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        """Candidates of a probe in a core that stores ``tuples`` of the other stream.

        With two bands in the index each has the square root of the selectivity. Keys are assumed to be spread evenly
        over the buckets.
        """

    def candidates(self, config: Configuration, load: Workload) -> tuple[float, float]:
        """Expected candidates of a probe, in each core that stores R, and in each that stores S."""
        of_r, of_s = (self.expected(config, tuples / config.turns, load) for tuples in (load.r, load.s))
        return of_r, of_s

    def input_cycles(self, config: Configuration, expiry: float) -> float:
        return max(CORE_INPUT + expiry, _PROBE / 2 if config.memory == "bram" else 0)

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        if config.memory != "bram":
            return memory_cycles(config, sum(self.candidates(config, load)) / 2, *TIMES[config.memory])
        # The regions of a core keep in step to within some probes, so the one with more candidates for that many
        # decides. The mean of that many numbers is taken as normally distributed.
        # Lookups of buckets beyond the second take a cycle each.
        further = max(0, config.kind.lookups(config) - 2)
        (r, spread_r), (s, spread_s) = (_moments(maximum_distribution((mean,))) for mean in
                                        self.candidates(config, load))
        apart = math.sqrt((spread_r + spread_s) / _APART)
        by = NormalDist() if apart == 0 else NormalDist(0, apart)
        first = by.cdf(r - s) if apart else float(r >= s)
        cycles = r * first + s * (1 - first) + (apart**2 * by.pdf(r - s) if apart else 0.0)
        return (cycles + further) / 2 * stretch(cycles + further, 1, load.arrival, config.queue)

    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        # The candidates of the core with the most, and the lookups of buckets after the first.
        chances = maximum_distribution((max(self.candidates(config, load)),), config.cores)
        work: float = _CANDIDATE * sum(n * chance for n, chance in enumerate(chances))
        return work + (config.kind.lookups(config) - 1), _moments(chances)[0]

    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        for room in _ROOM:
            yield Shape(room * least, 1, 1)


def _moments(chances: list[float]) -> tuple[float, float]:
    """Mean and variance of the cycles of a probe; ``chances``: the probability of each number of candidates."""
    cycles = [max(_PROBE, _CANDIDATE * n + _BEGIN) for n in range(len(chances))]
    mean = sum(chance * each for chance, each in zip(chances, cycles, strict=True))
    return mean, sum(chance * (each - mean) ** 2 for chance, each in zip(chances, cycles, strict=True))


@lru_cache(maxsize=4096)
def maximum_distribution(means: tuple[float, ...], times: int = 1) -> list[float]:
    """Distribution of the largest of several numbers of candidates, each Poisson-distributed, ``times`` of each mean:
    the probabilities of 0, 1, 2, ….

    For large means, where the distribution hardly matters, the expected number has probability 1 (Blom, Statistical
    Estimates and Transformed Beta-Variables, 1958, for normal distributions).
    """
    mean, n = max(means), len(means) * times
    if mean > _LARGE:
        further = NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 0.0
        return [0.0] * round(mean + further * math.sqrt(mean)) + [1.0]
    chances = [math.exp(-m) for m in means]
    below, before, out = [0.0] * len(means), 0.0, list[float]()
    while len(out) <= mean or before < 1 - 1e-9:
        below = [min(b + c, 1.0) for b, c in zip(below, chances, strict=True)]
        now = math.prod(below) ** times
        out.append(now - before)
        before = now
        chances = [c * m / len(out) for c, m in zip(chances, means, strict=True)]
        if len(out) > 2 * _LARGE:
            break
    return out


class HashSpeed(IndexSpeed):
    """The speed of cores that look up equal keys."""

    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        # Candidates with the probe's key, and those that share its bucket by chance.
        return tuples * (load.selectivity + (1 - load.selectivity) / config.buckets)


class BucketSpeed(IndexSpeed):
    """The speed of cores that look up cells of neighbouring keys."""

    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        share = 1.0
        each = load.selectivity ** (1 / len(config.index))
        for test, bits in zip(config.index, config.kind.index_widths(config, "s"), strict=True):
            # A cell is as wide as an interval, or up to four times as wide. A probe reaches the cell of its low end,
            # and the narrower cells are, the more often a second one.
            intervals, buckets = min(1 / each, 2.0**64) if each else 2.0**64, 2**bits
            width = min(max(intervals / buckets, 1.0), WIDEST)
            share *= (1.0 if test in load.points else 1 + 1 / width) * max(width / intervals, 1 / buckets)
        return tuples * min(share, 1.0)


#: Of ordered cores: cycles of a probe beside those for cells or candidates (`splitjoin_hw.core.range_prober`); of a
#: probe, and of a word of its bitmap, beside one for each of its bits (``bitmap``); and those of a result where there
#: are many, as words are read in cycles without a hit of the next probe, and results of both regions leave in turn.
_RANGE, _BITMAP, _WORD, _RESULT = 13, 5, 4, 1.3


class OrderedSpeed(IndexSpeed):
    """The speed of cores that look up the cells of an interval."""

    def expected(self, config: Configuration, tuples: float, load: Workload) -> float:
        # All cells that the interval meets, each as wide as holds one tuple.
        return min(tuples, tuples * load.selectivity + tuples / config.buckets)

    def input_cycles(self, config: Configuration, expiry: float) -> float:
        return max(CORE_INPUT + expiry, _RANGE / 2)

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        cycles, _ = self.latency(config, load)
        leaving = _RESULT * load.tuples / config.cores * load.selectivity
        return max(cycles / 2 * stretch(cycles, 1, load.arrival, config.queue), leaving)

    def latency(self, config: Configuration, load: Workload) -> tuple[float, float]:
        cycles = max(self._probe(config, tuples / config.cores, load) for tuples in (load.r, load.s))
        return cycles, cycles

    def _probe(self, config: Configuration, tuples: float, load: Workload) -> float:
        """Cycles of a probe: of its cells and candidates, or of its hits in the bitmap, whichever are more."""
        candidates = self.expected(config, tuples, load)
        hits, words = tuples * load.selectivity, 1 << bitmap_bits(config)[1]
        filled = words * (1 - math.exp(-hits / words))
        cells = config.buckets * load.selectivity
        return max(_RANGE + max(candidates, cells), _BITMAP + hits + _WORD * filled)


#: Name of the kind → its speed.
CORE_SPEEDS: dict[str, CoreSpeed] = {"scan": ScanSpeed(), "hash": HashSpeed(), "bucket": BucketSpeed(),
                                     "ordered": OrderedSpeed()}
