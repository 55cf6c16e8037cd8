"""Cost of a region's index and of what follows it (`splitjoin.hw.core.index`, ``prober``)."""

from __future__ import annotations

from ..circuit.wire import Configuration
from .cells import Cells, Family
from .elements import adder, control, counter, equal, fifo, gate, memory, mux
from .widths import PASSES, STORES, Widths

__all__ = ["index", "prober"]

#: LUT4 of control.
_CONTROL = {"index": 10, "prober": 90}


def index(config: Configuration, side: str, family: Family, w: Widths) -> Cells:
    """The memories of buckets and chains, and a store's way into them."""
    bits, distance = config.buckets.bit_length() - 1, (config.capacity + STORES).bit_length()
    # How old a bucket's youngest tuple is; what is in the index, and the bucket that is looked at in turn.
    sums = adder(family, w.position) + counter(family, w.position, bits)
    logic = (mux(family, 3, bits) + mux(family, 2, bits + distance) + equal(family, bits) + gate(family, w.position)
             + _address(config, side, family) + control(family, _CONTROL["index"]))
    ff = 14 + 3 * w.position + sum(_stored(config, side)) + 2 * bits + distance
    return (Cells(lut=sums + logic, ff=ff) + memory(family, 1 + w.position, config.buckets)
            + memory(family, distance, 1 << w.rows))


def prober(config: Configuration, side: str, family: Family, w: Widths) -> Cells:
    """What looks a probe's buckets up and follows their chains."""
    p, widths = w.position, _stored(config, side)
    ways = 1 if config.core == "hash" else 1 << len(config.index)
    cursor = 1 + 2 * p
    # Whether all is in the index, where a scan begins, the offset of a bucket's youngest tuple, and which of those
    # found before are older; the next older tuple and its offset, of a chain and of a scan, and whether it is in the
    # window; by how much other chains are older, and whether more than that.
    sums = adder(family, *[p] * (4 + ways), *[p] * 5, *[p] * (2 * ways - 2))
    # Each first tuple moves on for a younger one, each other chain too, or goes on with the probe that waits.
    logic = (mux(family, 2, (ways - 1) * cursor) + mux(family, 4, (ways - 1) * cursor) + mux(family, 3, 4 * p)
             + control(family, _CONTROL["prober"]))
    # The tests of the index: what a probe's bounds reach.
    if config.core == "hash":
        sums += adder(family, *widths)
        logic += equal(family, *widths) + _address(config, side, family)
        ff = 2 * sum(widths)
    else:
        sums += adder(family, *widths)
        logic += mux(family, 2, sum(widths)) + 4 * len(widths)
        ff = sum(widths) + 2 * len(widths)
    batch = w.row + w.live + 1
    ff += (4 * p + batch + 22 + 2 * ways  # the probe that waits
           + (2 * ways + 2) * cursor + 2 * p + (ways - 1) * p  # chains, of that probe and of the one under way
           + w.live + p + 11 + (config.stages + 3) * (2 + p))
    return Cells(lut=sums + logic, ff=ff) + fifo(family, batch, PASSES)


def _stored(config: Configuration, side: str) -> tuple[int, ...]:
    """Widths of what tuples are indexed by."""
    if config.core == "bucket":
        return config.cell_bits
    widths = config.keys_r if side == "r" else config.keys_s
    return tuple(widths[config.tests[j]["rs".index(side)]] for j in config.index)


def _address(config: Configuration, side: str, family: Family) -> int:
    """LUTs of a bucket's number: of core hash each bit is the XOR of half of the keys' bits; cells are the number."""
    if config.core == "bucket":
        return 0
    bits = config.buckets.bit_length() - 1
    return bits * gate(family, sum(_stored(config, side)) // 2)
