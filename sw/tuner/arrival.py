"""The order in which tuples of both streams arrive, and how long the regions of a core wait for each other by it."""

from __future__ import annotations

from functools import lru_cache
from math import log2
from random import Random

__all__ = ["ARRIVALS", "ARRIVING", "BURST", "stretch"]

#: Orders of arrival: one tuple of each stream after the other; either with the same chance; `BURST` of one stream, then
#: as many of the other.
ARRIVALS = ("alternating", "random", "bursts")
#: The same in words.
ARRIVING = {"alternating": "both streams alternating", "random": "both streams at random", "bursts": "in bursts of 32"}
#: Tuples of a burst.
BURST = 32
#: Cycles that a region takes for a record (`splitjoin.hw.core.storage`).
_RECORD = 2
#: Tuples that are followed through the model.
_FOLLOWED = 3000


def stretch(cycles: float, probes: int, arrival: str) -> float:
    """Cycles of a tuple under full load over those with alternating input, at least 1, in a core that scans ``cycles``
    for a batch of up to ``probes``.

    Both regions take records in the same order, and neither can be a record ahead of the other. A region collects one
    batch while it scans for another, and holds one probe more.
    """
    if arrival == "alternating":
        return 1.0
    # Passes differ little in this respect, so few lengths are computed: to a quarter of a factor of two.
    quarter = round(log2(max(1.0, cycles)) * 4)
    return max(1.0, _stretch(quarter, probes, arrival))


@lru_cache(maxsize=1024)
def _stretch(quarter: int, probes: int, arrival: str) -> float:
    cycles, random = 2 ** (quarter / 4), Random(1)
    ends, collected, held_until, at = [0.0, 0.0], [0, 0], [0.0, 0.0], [0.0, 0.0]
    for n in range(_FOLLOWED):
        side = random.randrange(2) if arrival == "random" else n // BURST % 2
        offered = max(at)  # both regions took the record before
        for region in (0, 1):
            now = max(at[region] + _RECORD, offered)
            if region == side:
                now = max(now, held_until[region])
                if ends[region] <= now and collected[region]:
                    ends[region], collected[region] = ends[region] + cycles, 0
                held_until[region] = now
                if ends[region] <= now:
                    ends[region] = now + cycles
                elif collected[region] < probes:
                    collected[region] += 1
                else:
                    held_until[region] = ends[region]
                    ends[region], collected[region] = ends[region] + cycles, 1
            at[region] = now
    return max(ends) / _FOLLOWED / max(cycles / probes / 2, _RECORD)
