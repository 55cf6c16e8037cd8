"""Cost of one region of a join core: storage, scanner and emitter around the datapath (`splitjoin.hw.core`).

Each function names the part's arithmetic, its multiplexers and its registers, with their widths. What remains, the
control of a part, depends on no parameter; it is one number a part, as Yosys maps it, in LUT4.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..device.wire import ROW_BITS, Configuration
from .cells import Cells, Family, inputs
from .datapath import datapath
from .elements import adder, counter, equal, fifo, gate, memory, mux

__all__ = ["region"]

#: Tuples that may be stored before their slots are read for the last time (`splitjoin.hw.core.layouts.STORES`).
_STORES = 16
#: Items between the list of results and the output.
_ITEMS = 16
#: LUT4 of control.
_CONTROL = {"storage": 30, "timed storage": 40, "scanner": 20, "emitter": 60}


@dataclass(frozen=True)
class _Widths:
    """Widths of what a region counts with, as in `splitjoin.hw.core.layouts`."""

    position: int
    live: int
    group: int
    lane: int
    rows: int
    index: int
    row: int
    pointer: int
    probe: int

    @classmethod
    def of(cls, config: Configuration) -> _Widths:
        lane = config.lanes.bit_length() - 1
        position = max(config.capacity, _STORES, 2 * config.lanes).bit_length() + 1
        depth = 64
        while depth < 2 * (config.capacity // config.lanes):
            depth *= 2
        index = max(1, (config.cores - 1).bit_length())
        # Row ids of a core's tuples are a multiple of the cores, apart; of a power of two the low bits are constant.
        whole = config.cores & (config.cores - 1) == 0
        return cls(position, config.capacity.bit_length(), position - lane, lane,
                   (config.capacity + _STORES - 1).bit_length() - lane, index,
                   ROW_BITS - (config.cores.bit_length() - 1 if whole else 0), depth.bit_length(),
                   max(1, (config.probes - 1).bit_length()))


def region(config: Configuration, side: str, family: Family) -> dict[str, Cells]:
    """Part → cells, of the region that stores stream ``side``."""
    w = _Widths.of(config)
    return {"datapath": datapath(config, side, family).total, "storage": _storage(config, side, family, w),
            "scanner": _scanner(config, family, w), "emitter": _emitter(config, family, w)}


def _control(family: Family, part: str) -> int:
    return _CONTROL[part] * 3 // (inputs(family) - 1)


def _storage(config: Configuration, side: str, family: Family, w: _Widths) -> Cells:
    count = (config.cores * (config.capacity + 2)).bit_length()  # what is left of a ROWS window
    width = config.keys(side).width
    # tail, head, head's row, turn, probes; live, row of an overflow, window, what is left of it, and who has still to
    # read the slot at the tail.
    sums = (counter(family, w.position, w.position, w.row, w.index, ROW_BITS)
            + adder(family, w.live, w.live, max(1, w.row - w.live + 1), count + 2, count + 2, w.position, w.position,
                    w.position))
    logic = (gate(family, ROW_BITS - count) + mux(family, 2, 2 * count + 2 + w.live + w.index)
             + equal(family, w.index, w.index, w.live, w.live) + _control(family, "storage"))
    ff = 17 + w.live + 2 * w.position + w.row + w.index + 2 * ROW_BITS + 2 * (count + 2) + count
    rings = memory(family, width, 1 << w.rows) * config.lanes
    if not config.time_bits:
        return Cells(lut=sums + logic, ff=ff) + rings
    ages = adder(family, config.time_bits, config.time_bits) + _control(family, "timed storage")
    return (Cells(lut=sums + logic + ages, ff=ff + config.time_bits + 4) + rings
            + memory(family, config.time_bits, config.capacity))


def _scanner(config: Configuration, family: Family, w: _Widths) -> Cells:
    lanes, probes = config.lanes, config.probes
    number = probes.bit_length()
    # A window's start and end, whether what is left is the last read; position, what is left, the ring's row, the
    # read's number.
    sums = adder(family, *[w.position] * 4) + counter(family, w.group, w.group, w.rows, w.group)
    logic = mux(family, 2, 2 * w.position + w.live) + _control(family, "scanner")
    # A probe takes part from where its start equals the read's number up to where its end does, and of these reads
    # in the lanes behind either edge.
    logic += probes * (2 * (equal(family, w.group) + 2) + 2 * gate(family, number + 2) + 4)
    logic += probes * lanes * (2 if lanes == 1 else 3 + 2 * gate(family, 2 * w.lane + 1))
    # The task that waits, the batch that is collected, the pass under way, and what the emitter hears of it.
    base = (2 * w.position + w.live + w.row + 3 + 2 * number + w.row + w.position + 4
            + 3 * w.position + 2 * w.rows + 3 + w.row + max(1, w.lane) + w.probe + 1 + w.live
            + 2 + 2 * (config.stages + 3) + 1 + 2 * w.position + w.group)
    held = probes * (4 * w.group + 9) + probes * lanes * (config.stages + 4)
    return Cells(lut=sums + logic, ff=base + held)


def _emitter(config: Configuration, family: Family, w: _Widths) -> Cells:
    lanes, probes = config.lanes, config.probes
    offset = w.group + w.lane + 1
    # The list's end, the place before it, the way through it, reads, probes, probes since a star; the list's level and
    # whether it has room, the probe's number on a star, the stored tuple's row; inner stars.
    sums = (counter(family, *[w.pointer] * 3, w.group, ROW_BITS, ROW_BITS)
            + adder(family, w.pointer, w.pointer, ROW_BITS, ROW_BITS, offset, offset, offset))
    if w.row == ROW_BITS:  # the tuple's place times the number of cores
        sums += adder(family, *[offset + w.index] * (config.cores.bit_count() - 1))
    logic = (mux(family, 2, 2 * w.pointer + 2 * offset) + equal(family, ROW_BITS, *[w.pointer] * 4)
             + gate(family, ROW_BITS) + gate(family, w.live) + _control(family, "emitter"))
    # What was found for which probe; of a read the lanes of one probe, turned so that the oldest comes first.
    logic += gate(family, probes) + probes * (gate(family, lanes) + 1) + mux(family, probes, lanes)
    logic += mux(family, lanes, lanes) + 2 * lanes
    batch = w.row + max(1, w.lane) + w.probe + 1 + w.live
    walk = 10 * w.pointer + w.group + probes * (4 + lanes) + 3 * w.probe + 27 + w.group + lanes
    express = 4 * ROW_BITS + 3 + 10 + w.group + lanes + 2 * (offset + 1) + 4 + offset
    list_ = memory(family, w.group + probes * lanes, 1 << w.pointer - 1)
    return Cells(lut=sums + logic, ff=batch + walk + express) + list_ + fifo(family, 2 + w.group + lanes, _ITEMS)
