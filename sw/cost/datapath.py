"""Cost of a predicate's datapath: the comparators of a region with their codes and held bounds (`splitjoin.hw.hls`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..device.wire import Configuration, Tree
from .cells import Cells, Family, check_family, combine, comparator, key_code

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
    known = check_family(family)
    widths = config.keys_r if side == "r" else config.keys_s
    slots = tuple(r if side == "r" else s for r, s in config.tests)
    return Datapath(*_parts(known, widths, slots, config.tree), config.lanes, config.probes, config.stages)


@lru_cache(maxsize=1024)
def _parts(family: Family, widths: tuple[int, ...], slots: tuple[int, ...],
           tree: Tree) -> tuple[Cells, Cells, Cells, Cells]:
    """`Datapath.pair`, ``lane``, ``probe`` and ``region``; ``slots``: of each test, the key that it is about."""
    compared = [widths[slot] for slot in slots]
    keys = [key_code(family, widths[slot]) for slot in dict.fromkeys(slots)]
    bounds = [key_code(family, width) for width in compared for _ in ("lo", "hi")]
    bits, luts = sum(bits for bits, _ in bounds), sum(luts for _, luts in bounds)
    return (Cells(lut=sum(_test(family, width) for width in compared) + combine(family, tree),
                  ff=2 * len(compared) + 1),
            Cells(lut=sum(luts for _, luts in keys), ff=sum(bits for bits, _ in keys)),
            # Of each bound one that is collected and one that is compared with.
            Cells(ff=2 * bits), Cells(lut=luts, ff=bits + 1))


def _test(family: Family, width: int) -> int:
    # Where a chain answers >, an inverter makes it ≤.
    return 2 * comparator(family, width) + (family == "ultrascale")
