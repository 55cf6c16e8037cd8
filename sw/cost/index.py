"""Cost of a region's index and of what follows it (`splitjoin.hw.core.index`, ``prober``)."""

from __future__ import annotations

from ..device.wire import Configuration
from .cells import Cells, Family
from .elements import adder, control, counter, equal, gate, memory, mux
from .widths import STORES, Widths

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
    ff = 9 + 2 * w.position + sum(_stored(config, side)) + 2 * bits + distance
    return (Cells(lut=sums + logic, ff=ff) + memory(family, 1 + w.position, config.buckets)
            + memory(family, distance, 1 << w.rows))


def prober(config: Configuration, side: str, family: Family, w: Widths) -> Cells:
    """What looks a probe's buckets up and follows their chains."""
    p, widths = w.position, _stored(config, side)
    ways = 1 if config.core == "hash" else 1 << len(config.index)
    cursor = 1 + 2 * p
    # Whether all is in the index, the offset of a bucket's youngest tuple; the next older tuple and its offset, whether
    # it is in the window, and where a scan begins; which chain has come less far.
    sums = adder(family, *[p] * (7 + ways - 1))
    # Each chain goes on from where it was, or with the probe that waits; the youngest of them is at hand, or a scan.
    logic = mux(family, 2, ways * cursor + (ways - 1) * cursor) + mux(family, 3, 2 * p) + control(family,
                                                                                                  _CONTROL["prober"])
    if ways > 1 and family == "ecp5":  # for a choice of so many Yosys takes eight LUT4 a bit more
        logic += mux(family, 16, 2 * p)
    # The tests of the index: what a probe's bounds reach.
    if config.core == "hash":
        sums += adder(family, *widths)
        logic += equal(family, *widths) + _address(config, side, family)
        ff = 2 * sum(widths)
    else:
        sums += adder(family, *widths)
        logic += mux(family, 2, sum(widths)) + 4 * len(widths)
        ff = sum(widths) + 2 * len(widths)
    number = (ways - 1).bit_length()
    ff += (2 * (p + w.row + w.live) + 22 + 3 * number + ways  # the probe that waits, and what of it is under way
           + (2 * ways + 1) * cursor + w.live + p + (config.stages + 3) * (2 + p))
    return Cells(lut=sums + logic, ff=ff)


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
