"""Cost of cores with an index (`splitjoin.hw.core.index`, ``prober``)."""

from __future__ import annotations

from abc import abstractmethod

from ...circuit.geometry import PASSES, distance_bits
from ...circuit.wire import Configuration
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
        """LUTs that make a bucket's number of what tuples of stream ``side`` are indexed by."""

    @abstractmethod
    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        """The part that tells which buckets a probe's bounds reach."""

    def parts(self, config: Configuration, side: str, family: Family, w: Widths) -> dict[str, Resources]:
        return {"index": _index(config, side, family, w, self.address(config, side, family)),
                "prober": _prober(config, family, w, self.reach(config, side, family)),
                "emitter": stack_emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        return (f"a candidate in four cycles in each of {2 * config.cores} regions, and a tuple a cycle with a probe "
                f"that reaches too far; {lut / config.cores:,.0f} {lut_name} a core, everything counted")


def _index(config: Configuration, side: str, family: Family, w: Widths, address: int) -> Resources:
    """The memories of buckets and chains, and a store's way into them; ``address``: LUTs of a bucket's number."""
    bits, distance = config.buckets.bit_length() - 1, distance_bits(config)
    # How old a bucket's youngest tuple is; what is in the index, and the bucket that is looked at in turn.
    sums = adder(family, w.position) + counter(family, w.position, bits)
    logic = (mux(family, 3, bits) + mux(family, 2, bits + distance) + equal(family, bits) + gate(family, w.position)
             + address + control(family, _CONTROL["index"]))
    ff = 14 + 3 * w.position + sum(config.kind.index_widths(config, side)) + 2 * bits + distance
    return (Resources(lut=sums + logic, ff=ff) + memory(family, 1 + w.position, config.buckets)
            + memory(family, distance, 1 << w.rows))


def _prober(config: Configuration, family: Family, w: Widths, reach: Resources) -> Resources:
    """The part that looks a probe's buckets up and follows their chains; ``reach``: of the buckets that it looks up."""
    p = w.position
    ways = config.kind.ways(config)
    cursor = 1 + 2 * p
    # Whether all is in the index, where a scan begins, the offset of a bucket's youngest tuple, and which of those
    # found before are older; the next older tuple and its offset, of a chain and of a scan, and whether it is in the
    # window; by how much other chains are older, and whether more than that.
    sums = adder(family, *[p] * (4 + ways), *[p] * 5, *[p] * (2 * ways - 2))
    # Each first tuple moves on for a younger one, each other chain too, or goes on with the probe that waits.
    logic = (mux(family, 2, (ways - 1) * cursor) + mux(family, 4, (ways - 1) * cursor) + mux(family, 3, 4 * p)
             + control(family, _CONTROL["prober"]))
    batch = w.row + w.live + 1
    ff = (4 * p + batch + 22 + 2 * ways  # the probe that waits
           + (2 * ways + 2) * cursor + 2 * p + (ways - 1) * p  # chains, of that probe and of the one under way
           + w.live + p + 11 + (config.stages + 3) * (2 + p))
    return Resources(lut=sums + logic, ff=ff) + reach + fifo(family, batch, PASSES)
