"""Cost of a region's output side, which emits the results of a pass (`splitjoin_hw.core.emitter`, ``stack``)."""

from __future__ import annotations

from ..geometry import EMITTER_ITEMS, PASSES, bitmap_bits, sort_quota
from ..wire import ROW_BITS, Configuration
from .elements import adder, control, counter, equal, fifo, gate, memory, mux
from .region_widths import RegionWidths
from .resources import Family, Resources

#: LUT4 of control.
_CONTROL = {"list": 70, "sorting": 80, "groups": 40, "stack": 55, "bitmap": 130, "express": 30}
#: Probes whose hits in a read the sorting emitter looks at together (`splitjoin_hw.core.sorter`).
_GROUP = 4


def emitter(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    """The cost of the emitter of a region that scans: with one probe a batch, a list; with more, also sorting."""
    lanes, probes = config.lanes, config.probes
    # Counters: the list's end, the read pointer, reads. Adders: the list's level and the test for room.
    sums = counter(family, w.pointer, w.pointer, w.group) + adder(family, w.pointer, w.pointer)
    logic = mux(family, 2, w.pointer) + equal(family, w.pointer) + control(family, _CONTROL["list"])
    # Reads that hit: their hits, the probes that have any.
    logic += gate(family, probes) + probes * gate(family, lanes)
    ff = 4 * w.pointer + 2 * w.group + probes * (1 + lanes) + 16
    depth = 1 << w.pointer - 1
    if probes == 1:
        list_ = memory(family, w.group + lanes + 1, depth)
        return Resources(lut=sums + logic, ff=ff) + list_ + _express(config, family, w)
    groups, quota = -(-probes // _GROUP), sort_quota(config)
    count, item = quota.bit_length(), w.pointer + w.group + (lanes if lanes > 1 else 0)
    list_ = memory(family, probes + 1, depth) + memory(family, w.group + (lanes * probes if lanes > 1 else 0), depth)
    # The second read pointer, its place among the two; the end of each of two batches; which items are under way.
    logic += 4 * mux(family, 2, w.pointer) + control(family, _CONTROL["sorting"])
    # The probes of a group one after the other, and the groups; the lanes of a probe.
    logic += 16 + (groups * 6 + 8 + control(family, _CONTROL["groups"]) if groups > 1 else 0)
    logic += mux(family, probes, lanes) if lanes > 1 else 0
    # The places' counts in two memories of LUT RAM, and the rows read of a place.
    counts = memory(family, count, min(16, 1 << w.probe)).lut * 2
    logic += counts + mux(family, 2, 2 * count + 2 * w.probe) + 2 * count + equal(family, count)
    sums += counter(family, count, count, w.probe)
    logic += mux(family, 2, w.group + lanes)  # an item comes from a place, or from the list
    steps = 5 + (groups > 1)
    ff += (5 + steps) * w.pointer + steps * (3 + w.probe) + 8 * groups + 2 * count + 3 * w.probe + 2 * w.group + 24
    ff += 2 * lanes + (probes if groups > 1 else 0)
    places = memory(family, item, 2 * quota << (probes - 1).bit_length())
    return Resources(lut=sums + logic, ff=ff) + list_ + places + _express(config, family, w)


def stack_emitter(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    """The cost of the emitter of a region with an index, which emits the matches of a probe in reverse order."""
    # The list's end, its level and the test for room, the read pointer; the ends of passes.
    sums = counter(family, w.pointer) + adder(family, w.pointer, w.pointer, w.pointer)
    logic = mux(family, 2, w.pointer) + equal(family, w.pointer) + control(family, _CONTROL["stack"])
    return (Resources(lut=sums + logic, ff=6 * w.pointer + 18) + memory(family, w.group, 1 << w.pointer - 1)
            + fifo(family, w.pointer + 1, 2 * PASSES) + _express(config, family, w))


def bitmap_emitter(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    """The cost of the emitter of a region with an ordered index, which sorts the matches of a probe in a bitmap."""
    low, high = bitmap_bits(config)
    words, width = 1 << high, 1 << low
    # The lowest bit of a word, and the word without it; the first word with bits; a word with one more bit, in which
    # those of the last two cycles are; flags of words, set and cleared.
    sums = adder(family, width, width, words)
    logic = (2 * width + words + low * gate(family, width // 2) + high * gate(family, words // 2)
             + mux(family, 6, width) + 2 * equal(family, high + 1) + 5 * words + mux(family, 3, words)
             + control(family, _CONTROL["bitmap"]))
    ff = 3 * width + 2 * words + 5 * (low + high) + 2 * (high + 2) + 18
    return (Resources(lut=sums + logic, ff=ff) + memory(family, width, 2 * words) + _express(config, family, w))


def _express(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    """The cost of the part that turns list entries into results and stars."""
    lanes, offset = config.lanes, w.group + w.lane + 1
    # Counters: probes, probes since a star. Adders: the stored tuple's row; inner stars.
    sums = counter(family, ROW_BITS, ROW_BITS) + adder(family, ROW_BITS, offset, offset, offset)
    multiplied = w.row == ROW_BITS  # the tuple's position times the number of cores
    if multiplied:
        sums += adder(family, ROW_BITS, *[offset + w.index] * (config.turns.bit_count() - 1))
    # A buffer of two results; the comparisons that decide when a star is due.
    logic = (mux(family, 2, 2 * ROW_BITS + 2) + equal(family, ROW_BITS)
             + gate(family, ROW_BITS) + gate(family, w.live) + mux(family, lanes, lanes) + 2 * lanes
             + control(family, _CONTROL["express"]))
    batch = 3 * (w.row + max(1, w.lane) + w.probe + 1 + w.live)  # one leaves, two wait
    # Probes; the buffer; the current item, the next step, the boundary; control flags.
    ff = 2 * ROW_BITS + 2 * (2 * ROW_BITS + 2) + 6 + w.group + lanes + 4 + 2 * offset + 4 + 18
    if multiplied:
        ff += 2 * ROW_BITS + w.lane + w.index + 1
    return Resources(lut=sums + logic, ff=batch + ff) + fifo(family, 2 + w.group + lanes, EMITTER_ITEMS)
