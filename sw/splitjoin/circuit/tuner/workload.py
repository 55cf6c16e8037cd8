"""The workload of a circuit, and what the order of arrival costs."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from random import Random

from ..geometry import STORES

#: Orders of arrival: one tuple of each stream after the other; either with the same chance; `BURST` of one stream, then
#: as many of the other.
ARRIVALS = ("alternating", "random", "bursts")
#: The same in words.
ARRIVING = {"alternating": "both streams alternating", "random": "both streams at random",
            "bursts": "both streams in bursts of 32"}
#: Tuples of a burst.
BURST = 32
#: Cycles that a region takes for a record (`splitjoin_hw.core.storage`).
_RECORD = 2
#: Tuples that are followed through the model.
_FOLLOWED = 3000


def stretch(cycles: float, probes: int, arrival: str, queue: int = 0, waiting: int = 0, stores: int = STORES) -> float:
    """Cycles of a tuple under full load over those with alternating input, at least 1, in a core that scans ``cycles``
    for a batch of up to ``probes``.

    Both regions take records in the same order, and neither can be more than ``queue`` records ahead of the other. A
    region collects one batch while it scans for another, and holds one probe more; ``waiting`` further ones can wait.
    Until a probe that waits is scanned for, ``stores`` tuples can be stored.
    """
    if arrival == "alternating":
        return 1.0
    # Passes differ little in this respect, so few lengths are computed: to a quarter of a factor of two.
    quarter = round(log2(max(1.0, cycles)) * 4)
    return max(1.0, _stretch(quarter, probes, arrival, queue, waiting, stores))


@lru_cache(maxsize=1024)
def _stretch(quarter: int, probes: int, arrival: str, queue: int, waiting: int, most: int) -> float:
    cycles, random = 2 ** (quarter / 4), Random(1)
    regions = [_Region(cycles, probes, waiting, most) for _ in range(2)]
    taken = [0.0] * (queue + 1)  # when both regions had taken each of the last records
    for n in range(_FOLLOWED):
        side = random.randrange(2) if arrival == "random" else n // BURST % 2
        offered = taken[n % len(taken)]  # the first cycle in which the queues had room for it
        for number, region in enumerate(regions):
            region.take(offered, probes=number == side)
        taken[n % len(taken)] = max(region.at for region in regions)
    return max(region.end for region in regions) / _FOLLOWED / max(cycles / probes / 2, _RECORD)


class _Region:
    """A region under full load. ``at``: when it took its last record; ``end``: of the last pass that began."""

    def __init__(self, cycles: float, probes: int, waiting: int, most: int):
        self._cycles, self._probes, self._waiting, self._most = cycles, probes, waiting, most
        self._collected: deque[tuple[float, int]] = deque()  # per probe that waits, since when, and behind which store
        self._stored = 0
        self.at = self.end = 0.0

    def take(self, offered: float, *, probes: bool) -> None:
        """Take a record that is there from cycle ``offered`` on: one that probes the region, or is stored in it."""
        now = max(self.at + _RECORD, offered)
        self._begin_passes(now)
        while self._collected and (len(self._collected) > self._probes + self._waiting if probes
                                   else self._stored - self._collected[0][1] >= self._most):
            now = max(now, self.end)
            self._begin_passes(now)
        if probes:
            self._collected.append((now, self._stored))
        else:
            self._stored += 1
        self.at = now

    def _begin_passes(self, now: float) -> None:
        """Begin all passes that begin until ``now``, each for the probes that wait by then."""
        while self._collected and (start := max(self.end, self._collected[0][0])) <= now:
            self.end = start + self._cycles
            for _ in range(self._probes):
                if self._collected and self._collected[0][0] <= start:
                    self._collected.popleft()


@dataclass(frozen=True)
class Workload:
    """The window sizes, matches and selectivity that a circuit has to handle.

    Attributes:
        r, s: Tuples in each stream's window.
        matches: Results of a probe, on average.
        stars: Stars of a probe that leave the circuit, on average.
        arrival: The order in which tuples of both streams arrive, one of `splitjoin.circuit.tuner.workload.ARRIVALS`.
        single: True if batches are of one probe, as in order ``inner``.
        selectivity: The share of pairs that meet the tests of an index, 0 to 1.
        points: The tests that are equalities.
    """

    r: int
    s: int
    matches: float = 0.0
    single: bool = False
    selectivity: float = 0.0
    points: Collection[int] = field(default=frozenset())
    stars: float = 1.0
    arrival: str = "alternating"

    @property
    def tuples(self) -> int:
        """Tuples of the longer window: the cores must have room for them, and the busier region reads them."""
        return max(self.r, self.s)
