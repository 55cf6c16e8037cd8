"""The cost of the parts of a region whose window lies in external memory (`splitjoin_hw.memory`)."""

from __future__ import annotations

from ..geometry import distance_bits
from ..memory import HIT_LIST, address_bits, heads_have_records, line_bits, step_latency
from ..wire import ROW_BITS, Configuration
from .elements import adder, control, counter, equal, fifo, gate, mux
from .region_widths import RegionWidths
from .resources import Family, Resources

#: LUT4 of control.
_CONTROL = {"chaser": 90, "store unit": 60}


def chaser(config: Configuration, side: str, family: Family, w: RegionWidths, reach: Resources) -> Resources:
    """The cost of the part that follows the chains of K probes; ``reach``: the cost of their buckets' numbers."""
    k, lookups, p = config.contexts, config.kind.lookups(config), w.position
    bits, buckets = (k - 1).bit_length(), config.buckets.bit_length() - 1
    fixed = ROW_BITS + p + w.live + 2 + lookups + 2 * buckets + config.bounds("s" if side == "r" else "r").width + (
        ROW_BITS + p if config.routed else 0)
    known = heads_have_records(config)
    state = lookups * (p + 2 + (known and distance_bits(config) + 2)) + 4
    # Two copies of what has two read ports.
    rams = [2 * fixed, state, 2 * HIT_LIST.bit_length()]
    held = Resources()
    for width in rams:
        held += fifo(family, width, max(16, k))
    if known:
        held += fifo(family, bits, max(16, k))
    held += fifo(family, p, k * HIT_LIST) + fifo(family, bits + 1 + buckets, max(16, k))
    sums = adder(family, *[ROW_BITS] * lookups, *[p] * (3 * lookups + 2)) + counter(family, bits, bits, bits)
    logic = mux(family, 4, lookups * (p + 1)) + mux(family, 4, ROW_BITS) + control(family, _CONTROL["chaser"]) + 3 * k
    stages = step_latency(config)
    ff = line_bits(config) + 3 * fixed + state + (stages + 1) * (state + 2 * p + bits) + 3 * k + address_bits(config)
    return Resources(lut=sums + logic, ff=ff) + held + reach


def store_unit(config: Configuration, side: str, family: Family, w: RegionWidths, address: int) -> Resources:
    """The cost of the part that stores K tuples at once; ``address``: LUTs of a bucket's number."""
    k, buckets, keys = config.contexts, config.buckets.bit_length() - 1, config.keys(side).width
    bits = (k - 1).bit_length()
    link = distance_bits(config) if config.routed else 0
    held = fifo(family, 2 * (keys + ROW_BITS + buckets + link), max(16, k)) + fifo(
        family, bits + distance_bits(config), max(16, k)) + fifo(family, bits, max(16, k))
    # Each entry's line is compared with that of a look-up, and with that of the next store.
    logic = (2 * k * equal(family, buckets - 2) + 2 * gate(family, k) + mux(family, k, buckets)
             + mux(family, 3, line_bits(config)) + adder(family, ROW_BITS, ROW_BITS)
             + counter(family, ROW_BITS, buckets) + control(family, _CONTROL["store unit"]) + address)
    ff = k * (buckets + 1) + line_bits(config) + 16 + 2 * address_bits(config) + 4 * ROW_BITS + keys + 2 * buckets
    return Resources(lut=logic, ff=ff) + held
