"""The cost of each kind of core, a class and a line of the table a kind, as in `splitjoin.circuit.core_kinds`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from splitjoin.base.errors import plural

from ..geometry import PASSES, comparisons, distance_bits
from ..wire import Configuration
from .elements import adder, control, counter, equal, fifo, gate, memory, mux
from .emitter import bitmap_emitter, emitter, stack_emitter
from .folding import first_hits, folding_emitter, stored_states
from .memory import chaser, store_unit
from .region_widths import RegionWidths
from .resources import Family, Resources

#: LUT4 of control.
_CONTROL = {"scanner": 20, "tables": 8, "index": 10, "prober": 90, "range prober": 30}


class CoreCost(ABC):
    """The cost of a kind of core: that of the parts of a region that depend on the kind."""

    @abstractmethod
    def parts(self, config: Configuration, side: str, family: Family, w: RegionWidths) -> dict[str, Resources]:
        """Part → its cost, for the region that stores stream ``side``, without datapath and storage."""

    @abstractmethod
    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        """The comparison rate in words; ``lut``: LUTs of the whole circuit; ``lut_name``: their name."""


class ScanCost(CoreCost):
    """The cost of cores that compare every stored tuple."""

    def parts(self, config: Configuration, side: str, family: Family, w: RegionWidths) -> dict[str, Resources]:
        if config.folds and not config.in_order and side == "s":
            return {"scanner": _scanner(config, family, w), "folding": folding_emitter(config, family)}
        if config.whole_states and not config.in_order:
            return {"scanner": _scanner(config, family, w), "folding": stored_states(config, family)}
        first = {"first hits": first_hits(config, family)} if config.first_hits else {}
        return {"scanner": _scanner(config, family, w), **first, "emitter": emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        if config.structure.sequential:
            return f"a comparison a cycle, {lut:,} {lut_name}, everything counted"
        each = lut / comparisons(config)
        cores = f"{config.cores} {plural(config.cores, 'core')}"
        return (f"{comparisons(config):,} comparisons a cycle (2 streams × {cores} × lanes {config.lanes} "
                f"× probes {config.probes}), {each:,.0f} {lut_name} each, everything counted")


def _scanner(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    lanes, probes = config.lanes, config.probes
    number = probes.bit_length()
    # Adders: a window's start and end, and the test for the last read. Counters: position, remaining tuples, the ring's
    # row, the read's number.
    sums = adder(family, *[w.position] * 4) + counter(family, w.group, w.group, w.rows, w.group)
    logic = mux(family, 2, 2 * w.position + w.live) + control(family, _CONTROL["scanner"])
    # A probe takes part from the read whose number equals its start to the read whose number equals its end; in these
    # two reads only some lanes count.
    logic += probes * (2 * (equal(family, w.group) + 2) + 2 * gate(family, number + 2) + 4)
    logic += probes * lanes * (2 if lanes == 1 else 3 + 2 * gate(family, 2 * w.lane + 1))
    # The waiting task, the batch that is being collected, the current pass, and its report to the emitter.
    base = (2 * w.position + w.live + w.row + 3 + 2 * number + w.row + w.position + 4
            + 3 * w.position + 2 * w.rows + 3 + w.row + max(1, w.lane) + w.probe + 1 + w.live
            + 2 + 2 * (config.stages + 3) + 1 + 2 * w.position + w.group)
    if config.tables:  # flags: the batch is complete, and its tables are written
        logic, base = logic + control(family, _CONTROL["tables"]), base + 11 + -(-probes // 4)
    held = probes * (4 * w.group + 9) + probes * lanes * (config.stages + 4)
    return Resources(lut=sums + logic, ff=base + held)


class IndexCost(CoreCost):
    """The cost of cores that look candidates up."""

    @abstractmethod
    def address(self, config: Configuration, side: str, family: Family) -> int:
        """LUTs that compute a bucket's number from the index fields of tuples of stream ``side``."""

    @abstractmethod
    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        """The cost of the logic that determines which buckets a probe reaches."""

    def parts(self, config: Configuration, side: str, family: Family, w: RegionWidths) -> dict[str, Resources]:
        if config.memory != "bram":
            return {"store unit": store_unit(config, side, family, w, self.address(config, side, family)),
                    "chaser": chaser(config, side, family, w, self.reach(config, side, family)),
                    "emitter": stack_emitter(config, family, w)}
        return {"index": _index(config, side, family, w, self.address(config, side, family)),
                "prober": _prober(config, family, w, self.reach(config, side, family)),
                "emitter": stack_emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        if config.memory != "bram":
            return (f"{config.contexts} probes at once in each of {2 * config.cores} regions, a candidate a line of "
                    f"memory; {lut:,} {lut_name}, everything counted")
        return (f"a candidate in four cycles in each of {2 * config.cores} regions, and a tuple a cycle with a probe "
                f"that reaches too far; {lut / config.cores:,.0f} {lut_name} a core, everything counted")


def _index(config: Configuration, side: str, family: Family, w: RegionWidths, address: int) -> Resources:
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


def _prober(config: Configuration, family: Family, w: RegionWidths, reach: Resources) -> Resources:
    """The cost of looking up buckets and following their chains; ``reach``: the cost of the buckets' numbers."""
    p = w.position
    lookups = config.kind.lookups(config)
    cursor = 1 + 2 * p
    # Adders: whether all tuples are in the index, the start of a scan, the offset of a bucket's youngest tuple, and its
    # comparison with the tuples found before; the next older tuple and its offset, of a chain and of a scan, and the
    # test whether it is in the window; the age differences to other chains, and their comparison.
    sums = adder(family, *[p] * (4 + lookups), *[p] * 5, *[p] * (2 * lookups - 2))
    # Multiplexers: each chain head advances or makes room for a younger one, or takes over the head of the waiting
    # probe.
    logic = (mux(family, 2, (lookups - 1) * cursor) + mux(family, 4, (lookups - 1) * cursor) + mux(family, 3, 4 * p)
             + control(family, _CONTROL["prober"]))
    batch = w.row + w.live + 1
    ff = (4 * p + batch + 22 + 2 * lookups  # the waiting probe
           + (2 * lookups + 2) * cursor + 2 * p + (lookups - 1) * p  # chains of that probe and of the current one
           + w.live + p + 11 + (config.stages + 3) * (2 + p))
    return Resources(lut=sums + logic, ff=ff) + reach + fifo(family, batch, PASSES)


class HashCost(IndexCost):
    """The cost of cores that look up equal keys."""

    def address(self, config: Configuration, side: str, family: Family) -> int:
        bits, keys = config.buckets.bit_length() - 1, sum(config.kind.index_widths(config, side))
        return bits * gate(family, keys // 2)  # each bit is the XOR of half of the keys' bits

    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        widths = config.kind.index_widths(config, side)
        logic = adder(family, *widths) + equal(family, *widths) + self.address(config, side, family)
        return Resources(lut=logic, ff=2 * sum(widths))


class BucketCost(IndexCost):
    """The cost of cores that look up cells of neighbouring keys."""

    def address(self, config: Configuration, side: str, family: Family) -> int:
        return 0  # cells are the number

    def reach(self, config: Configuration, side: str, family: Family) -> Resources:
        widths = config.kind.index_widths(config, side)
        logic = adder(family, *widths) + mux(family, 2, sum(widths)) + 4 * len(widths)
        return Resources(lut=logic, ff=sum(widths) + 2 * len(widths))


class OrderedCost(BucketCost):
    """The cost of cores that look up all cells of an interval."""

    def parts(self, config: Configuration, side: str, family: Family, w: RegionWidths) -> dict[str, Resources]:
        return {"index": _index(config, side, family, w, self.address(config, side, family)),
                "range prober": _range_prober(config, family, w), "emitter": bitmap_emitter(config, family, w)}

    def comparing(self, config: Configuration, lut: int, lut_name: str) -> str:
        return (f"a cell and a candidate a cycle in each of {2 * config.cores} regions; {lut / config.cores:,.0f} "
                f"{lut_name} a core, everything counted")


def _range_prober(config: Configuration, family: Family, w: RegionWidths) -> Resources:
    p, cursor, bits = w.position, 1 + 2 * w.position, config.buckets.bit_length() - 1
    # Whether all tuples are in the index, the offset of a cell's youngest tuple, the next older tuple and its offset,
    # and whether a tuple is of the window.
    sums = adder(family, *[p] * 4, w.live) + counter(family, bits, bits + 1)
    logic = mux(family, 2, cursor + 2 * bits + 1) + gate(family, bits + 16) + control(family, _CONTROL["range prober"])
    ff = (2 * p + w.row + w.live + 2 + 2 * bits + 1 + 4 * p + 1 + 4 * cursor + 14
          + (config.stages + 3) * (2 + p))
    return Resources(lut=sums + logic, ff=ff) + fifo(family, cursor, 16)


#: Name of the kind → its cost.
CORE_COSTS: dict[str, CoreCost] = {"scan": ScanCost(), "hash": HashCost(), "bucket": BucketCost(),
                                   "ordered": OrderedCost()}
