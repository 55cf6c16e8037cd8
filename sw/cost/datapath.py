"""Cost of a predicate's datapath: the comparators of a region with their codes and held bounds (`splitjoin.hw.hls`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..device.wire import SUM_STAGES, Configuration, Sum, Tree
from .cells import Cells, Family, check_family, combine, comparator, key_code
from .sums import sum_pair

__all__ = ["Datapath", "datapath"]


@dataclass(frozen=True)
class Datapath:
    """What the datapath of one region is made of; its parts occur as often as they are named by.

    ``pair``: per lane and probe, the comparators and the Boolean tree. ``lane``: the codes of a stored tuple's keys,
    once a lane. ``probe``: the bounds that are held for a probe, those of the next batch included. ``region``: the
    codes of a probe's bounds, made once when it is loaded. ``stages``: cycles.
    """

    pair: Cells
    lane: Cells
    probe: Cells
    region: Cells
    lanes: int
    probes: int
    stages: int

    @property
    def comparisons(self) -> int:
        """Comparisons a cycle."""
        return self.lanes * self.probes

    @property
    def total(self) -> Cells:
        """The whole datapath of the region."""
        return self.pair * self.comparisons + self.lane * self.lanes + self.probe * self.probes + self.region

    @property
    def lut_per_comparison(self) -> float:
        """LUTs for each comparison in a cycle, what is made once for several included."""
        return self.total.lut / self.comparisons


def datapath(config: Configuration, side: str, family: str = "ecp5") -> Datapath:
    """The datapath of a region that stores stream ``side``. Raises `UnsupportedError` for an unknown family."""
    parts = _parts(check_family(family), config.keys_r if side == "r" else config.keys_s, "rs".index(side),
                   config.tests, config.sums, config.tree, config.stages)
    # Of what a later stage takes, the batch's places are delayed as well.
    later = Cells(ff=max([SUM_STAGES - 1] * any(sum_.limited for sum_ in config.sums), default=0) * (config.probes + 1))
    return Datapath(*parts[:-1], parts[-1] + later, config.lanes, config.probes, config.stages)


@lru_cache(maxsize=1024)
def _parts(family: Family, widths: tuple[int, ...], n: int, tests: tuple[tuple[int, int], ...], sums: tuple[Sum, ...],
           tree: Tree, stages: int) -> tuple[Cells, Cells, Cells, Cells]:
    """`Datapath.pair`, ``lane``, ``probe`` and ``region``; ``n``: 0 where R is stored, 1 where S is."""
    slots = [test[n] for test in tests]  # of each test, the key that it is about
    compared = [widths[slot] for slot in slots]
    keys = [key_code(family, widths[slot]) for slot in dict.fromkeys(slots)]
    bounds = [key_code(family, width) for width in compared for _ in ("lo", "hi")]
    bits, luts = sum(bits for bits, _ in bounds), sum(luts for _, luts in bounds)
    # Outcomes that wait for those of sums are one bit each.
    waiting = stages - 3
    pair = Cells(lut=sum(_test(family, width) for width in compared) + (len(compared) if waiting else 0)
                 + combine(family, tree, inputs=1 if waiting else 2),
                 ff=(2 + waiting) * len(compared) + 1)
    ages: dict[int, int] = {}  # of keys that sums take: for how many cycles they are delayed
    placed = limits = 0
    for sum_ in sums:
        rest = sum_.rest[n]
        pair += sum_pair(family, sum_, None if rest is None else widths[rest])
        for slot in [(axis.r, axis.s)[n] for axis in sum_.axes]:
            ages[slot] = max(1, ages.get(slot, 0))
        if rest is not None:
            ages[rest] = SUM_STAGES
        placed += sum(axis.bits for axis in sum_.axes)
        limits += sum_.limit_bits if sum_.limited else 0
    lane = Cells(lut=sum(luts for _, luts in keys),
                 ff=sum(bits for bits, _ in keys) + sum(widths[slot] * age for slot, age in ages.items()))
    # Of each bound one that is collected and one that is compared with.
    return (pair, lane, Cells(ff=2 * (bits + placed + limits)),
            Cells(lut=luts, ff=bits + placed + SUM_STAGES * limits + 1))


def _test(family: Family, width: int) -> int:
    # Where a chain answers >, an inverter makes it ≤.
    return 2 * comparator(family, width) + (family == "ultrascale")
