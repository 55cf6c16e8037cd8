"""Cost of a region's output side, which emits the results of a pass (`splitjoin.hw.core.emitter`, ``stack``)."""

from __future__ import annotations

from ..circuit.geometry import EMITTER_ITEMS, PASSES
from ..circuit.wire import ROW_BITS, Configuration
from .elements import adder, control, counter, equal, fifo, gate, memory, mux
from .resources import Family, Resources
from .widths import Widths

__all__ = ["emitter", "stack_emitter"]

#: LUT4 of control.
_CONTROL = {"list": 30, "stack": 55, "express": 30}


def emitter(config: Configuration, family: Family, w: Widths) -> Resources:
    """The cost of the emitter of a region that scans, which traverses the list of reads once for each probe."""
    lanes, probes = config.lanes, config.probes
    # Counters: the list's end, its previous entry, the read pointer, reads. Adders: the list's level and the test for
    # room.
    sums = counter(family, *[w.pointer] * 3, w.group) + adder(family, w.pointer, w.pointer)
    logic = mux(family, 2, 2 * w.pointer) + equal(family, *[w.pointer] * 4) + control(family, _CONTROL["list"])
    # Flags of the probes with matches; the lanes of a read that match one probe, rotated so that the oldest is first.
    logic += gate(family, probes) + probes * (gate(family, lanes) + 1) + mux(family, probes, lanes)
    ff = 10 * w.pointer + w.group + probes * (4 + lanes) + 3 * w.probe + 27 + w.group + lanes
    list_ = memory(family, w.group + probes * lanes, 1 << w.pointer - 1)
    return Resources(lut=sums + logic, ff=ff) + list_ + _express(config, family, w)


def stack_emitter(config: Configuration, family: Family, w: Widths) -> Resources:
    """The cost of the emitter of a region with an index, which emits the matches of a probe in reverse order."""
    # The list's end, its level and the test for room, the read pointer; the ends of passes.
    sums = counter(family, w.pointer) + adder(family, w.pointer, w.pointer, w.pointer)
    logic = mux(family, 2, w.pointer) + equal(family, w.pointer) + control(family, _CONTROL["stack"])
    return (Resources(lut=sums + logic, ff=6 * w.pointer + 18) + memory(family, w.group, 1 << w.pointer - 1)
            + fifo(family, w.pointer + 1, PASSES) + _express(config, family, w))


def _express(config: Configuration, family: Family, w: Widths) -> Resources:
    """The cost of the part that turns list entries into results and stars."""
    lanes, offset = config.lanes, w.group + w.lane + 1
    # Counters: probes, probes since a star. Adders: the stored tuple's row; inner stars.
    sums = counter(family, ROW_BITS, ROW_BITS) + adder(family, ROW_BITS, offset, offset, offset)
    multiplied = w.row == ROW_BITS  # the tuple's position times the number of cores
    if multiplied:
        sums += adder(family, ROW_BITS, *[offset + w.index] * (config.cores.bit_count() - 1))
    # A buffer of two results; the previous probe, for the last star; the comparisons that decide when a star is due.
    logic = (mux(family, 2, 2 * ROW_BITS + 2) + mux(family, 2, ROW_BITS) + equal(family, ROW_BITS, ROW_BITS)
             + gate(family, ROW_BITS) + gate(family, w.live) + mux(family, lanes, lanes) + 2 * lanes
             + control(family, _CONTROL["express"]))
    batch = w.row + max(1, w.lane) + w.probe + 1 + w.live
    # Probes; the buffer; the current item, the next step, the boundary; control flags.
    ff = 4 * ROW_BITS + 2 * (2 * ROW_BITS + 2) + 6 + w.group + lanes + 4 + 2 * offset + 4 + 18
    if multiplied:
        ff += 2 * ROW_BITS + w.lane + w.index + 1
    return Resources(lut=sums + logic, ff=batch + ff) + fifo(family, 2 + w.group + lanes, EMITTER_ITEMS)
