"""Cost of cores with an index (`splitjoin_hw.core.index`, ``prober``)."""

from __future__ import annotations

from abc import abstractmethod

from ...geometry import PASSES, distance_bits
from ...wire import Configuration
from ..elements import adder, control, counter, equal, fifo, gate, memory, mux
from ..emitter import stack_emitter
from ..resources import Family, Resources
from ..widths import Widths
from .kind import CoreCost

__all__ = ["IndexCost"]

#: LUT4 of control.
_CONTROL = {"index": 10, "prober": 90}


class IndexCost(CoreCost):
    """The cost of cores that look candidates up."""

    @abstractmethod
    def address(self, config: Configuration, side: str, family: Family) -> int:
        """LUTs that compute a bucket's number from the index fields of tuples of stream ``side``."""

    @abstractmethod
    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        """The cost of the logic that determines which buckets a probe reaches."""

    def parts(self, config: Configuration, side: str, family: Family, w: Widths) -> dict[str, Resources]:
        return {"index": _index(config, side, family, w, self.address(config, side, family)),
                "prober": _prober(config, family, w, self.reach(config, side, family)),
                "emitter": stack_emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        return (f"a candidate in four cycles in each of {2 * config.cores} regions, and a tuple a cycle with a probe "
                f"that reaches too far; {lut / config.cores:,.0f} {lut_name} a core, everything counted")


def _index(config: Configuration, side: str, family: Family, w: Widths, address: int) -> Resources:
    """The cost of the memories of buckets and chains, and of insertion; ``address``: LUTs of a bucket's number."""
    bits, distance = config.buckets.bit_length() - 1, distance_bits(config)
    # Adders: the age of a bucket's youngest tuple. Counters: the indexed tuples, and the bucket that the sweep checks
    # next.
    sums = adder(family, w.position) + counter(family, w.position, bits)
    logic = (mux(family, 3, bits) + mux(family, 2, bits + distance) + equal(family, bits) + gate(family, w.position)
             + address + control(family, _CONTROL["index"]))
    ff = 14 + 3 * w.position + sum(config.kind.index_widths(config, side)) + 2 * bits + distance
    return (Resources(lut=sums + logic, ff=ff) + memory(family, 1 + w.position, config.buckets)
            + memory(family, distance, 1 << w.rows))


def _prober(config: Configuration, family: Family, w: Widths, reach: Resources) -> Resources:
    """The cost of the prober, which looks up a probe's buckets and follows their chains; ``reach``: the cost of their
    numbers.
    """
    p = w.position
    ways = config.kind.ways(config)
    cursor = 1 + 2 * p
    # Adders: whether all tuples are in the index, the start of a scan, the offset of a bucket's youngest tuple, and its
    # comparison with the tuples found before; the next older tuple and its offset, of a chain and of a scan, and the
    # test whether it is in the window; the age differences to other chains, and their comparison.
    sums = adder(family, *[p] * (4 + ways), *[p] * 5, *[p] * (2 * ways - 2))
    # Multiplexers: each chain head advances or makes room for a younger one, or takes over the head of the waiting
    # probe.
    logic = (mux(family, 2, (ways - 1) * cursor) + mux(family, 4, (ways - 1) * cursor) + mux(family, 3, 4 * p)
             + control(family, _CONTROL["prober"]))
    batch = w.row + w.live + 1
    ff = (4 * p + batch + 22 + 2 * ways  # the waiting probe
           + (2 * ways + 2) * cursor + 2 * p + (ways - 1) * p  # chains of that probe and of the current one
           + w.live + p + 11 + (config.stages + 3) * (2 + p))
    return Resources(lut=sums + logic, ff=ff) + reach + fifo(family, batch, PASSES)
