"""Speed of cores with an index, from the number of candidates expected by selectivity and buckets."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist

from ...wire import Configuration
from ..arrival import stretch
from ..workload import Workload
from .kind import CORE_INPUT, CoreSpeed, Shape

__all__ = ["IndexSpeed", "maximum_distribution"]

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
        of_r, of_s = (self.expected(config, tuples / config.cores, load) for tuples in (load.r, load.s))
        return of_r, of_s

    def input_cycles(self, expiry: float) -> float:
        return max(CORE_INPUT + expiry, _PROBE / 2)

    def comparing_cycles(self, config: Configuration, load: Workload) -> float:
        # The regions of a core keep in step to within some probes, so the one with more candidates for that many
        # decides. The mean of that many numbers is taken as normally distributed.
        # Lookups of buckets beyond the second take a cycle each.
        further = max(0, config.kind.ways(config) - 2)
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
        return work + (config.kind.ways(config) - 1), _probe_cycles(chances)

    def shapes(self, least: int, lanes: int | None, probes: int | None) -> Iterator[Shape]:
        for room in _ROOM:
            yield Shape(room * least, 1, 1)


def _probe_cycles(chances: list[float]) -> float:
    """Expected cycles of a probe; ``chances``: the probability of each number of candidates."""
    return _moments(chances)[0]


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
