"""Cost of a whole circuit: cores, trees, combiner, registers and counters (`splitjoin.hw.top`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

from ..circuit.registers import COUNTER_BITS, REGION_COUNTERS, REGISTERS
from ..circuit.wire import ROW_BITS, Configuration, item_record
from .cells import Cells, Family, check_family
from .datapath import Datapath, datapath
from .elements import adder, counter, equal, fifo, gate, mux
from .region import region

__all__ = ["Circuit", "Part", "circuit", "core", "trees"]

#: Tuples in the circuit whose order ``total`` keeps.
_SEQUENCE = 256


@dataclass(frozen=True)
class Part:
    """``count`` equal parts of ``each`` cells."""

    count: int
    each: Cells

    @property
    def total(self) -> Cells:
        """All of them."""
        return self.each * self.count


@dataclass(frozen=True)
class Circuit:
    """What a circuit costs, part by part, and what its comparators do.

    ``datapaths``: of the regions that store R and S. ``parts``: kind of part → how many, and cells of each; a region's
    parts are ``datapath``, ``storage``, ``emitter``, and ``scanner``, or ``index`` and ``prober``.
    """

    config: Configuration
    family: Family
    datapaths: dict[str, Datapath]
    parts: dict[str, Part]

    @cached_property
    def total(self) -> Cells:
        """The whole circuit."""
        return sum((part.total for part in self.parts.values()), Cells())

    @property
    def comparisons(self) -> int:
        """Comparisons a cycle, at most: both regions of every core, each lane with each probe. With an index it is
        candidates that are compared, one in four cycles, and whole sub-windows only by probes that reach too far.
        """
        return 2 * self.config.cores * self.config.lanes * self.config.probes

    @property
    def stages(self) -> int:
        """Cycles from a stored key at the datapath to whether it matches."""
        return self.datapaths["r"].stages


def circuit(config: Configuration, family: str = "ecp5") -> Circuit:
    """What the circuit for ``config`` costs. Raises `UnsupportedError` for an unknown family."""
    known = check_family(family)
    parts: dict[str, Part] = {}
    for side in "rs":
        for name, cells in region(config, side, known).items():
            parts[f"{name} of {side.upper()}"] = Part(config.cores, cells)
    parts["core's input"] = Part(config.cores, _input(config, known))
    if config.region_counters:
        parts["region counters"] = Part(2 * config.cores, _region_counters(config, known))
    parts |= trees(config, known)
    return Circuit(config, known, {side: datapath(config, side, known) for side in "rs"}, parts)


def core(config: Configuration, family: Family) -> Cells:
    """One core: two regions and their input."""
    whole = _input(config, family) + _region_counters(config, family) * (2 if config.region_counters else 0)
    return sum((cells for side in "rs" for cells in region(config, side, family).values()), whole)


def trees(config: Configuration, family: Family) -> dict[str, Part]:
    """What is not in a core; it depends on neither lanes nor probes."""
    return _trees(replace(config, lanes=1, probes=1), family)


@lru_cache(maxsize=4096)
def _trees(config: Configuration, family: Family) -> dict[str, Part]:
    parts = {}
    broadcasts, fifos = _links(config.cores, config.fanout)
    width = config.input_record.width
    for children, count in sorted(broadcasts.items()):
        # What comes, that it comes, and that all children have room.
        parts[f"broadcast register to {children}"] = Part(count, Cells(lut=gate(family, children), ff=width + 2))
    for stages, count in sorted(fifos.items()):
        parts[f"credit FIFO {stages} registers away"] = Part(
            count, fifo(family, width, _credit_fifo_depth(stages)) + Cells(lut=2, ff=1))
    if far := _register_tree(config.cores):
        # Settings on their way, and what each core says of tuples that did not fit.
        parts["settings on their way"] = Part(far, Cells(ff=_settings(config)))
        parts["reports on their way"] = Part(config.cores, Cells(ff=2 + 3 * ROW_BITS))
    for children, count in sorted(_nodes(config.cores, config.fanin).items()):
        parts[f"merger of {children}"] = Part(2 * count, _merger(config, children, family))
    parts["combiner"] = Part(1, _lookahead(0, family) * 2 + Cells(
        lut=mux(family, 2, item_record().width) + 20, ff=2) + fifo(family, 1, _SEQUENCE) + _buffer(1, family))
    parts["registers"] = Part(1, _registers(family))
    parts["counters"] = Part(1, _counters(config, family))
    return parts


@cache
def _nodes(leaves: int, fan: int) -> dict[int, int]:
    """Children → nodes with so many, of a tree as `splitjoin.hw.network.tree.split` makes it."""
    nodes: dict[int, int] = {}
    if leaves > 1:
        groups = min(fan, leaves)
        nodes[groups] = 1
        for n in range(groups):
            for children, count in _nodes(leaves // groups + (n < leaves % groups), fan).items():
                nodes[children] = nodes.get(children, 0) + count
    return nodes


@cache
def _links(leaves: int, fanout: int) -> tuple[dict[int, int], dict[int, int]]:
    """Counts for a `splitjoin.hw.network.tree.DistributionTree`: of broadcast registers by number of children, and
    of credit FIFOs by the number of registers before them.
    """
    broadcasts: dict[int, int] = {}
    fifos: dict[int, int] = {}

    def grow(count: int, stages: int) -> None:
        groups = min(fanout, count)
        if stages >= 0 and count > 1:
            broadcasts[groups] = broadcasts.get(groups, 0) + 1
        elif stages >= 0:
            fifos[stages] = fifos.get(stages, 0) + 1
            return
        for n in range(groups):
            grow(count // groups + (n < count % groups), stages + 1)

    if leaves > 1:
        grow(leaves, -1)
    return broadcasts, fifos


def _credit_fifo_depth(stages: int) -> int:
    """`splitjoin.hw.network.link.credit_fifo_depth`."""
    return max(16, 1 << (3 * stages + 3).bit_length())


@cache
def _register_tree(places: int) -> int:
    """Registers of `splitjoin.hw.network.pipeline.register_tree`."""
    return 0 if places <= 4 else sum(1 + _register_tree(places // 4 + (n < places % 4)) for n in range(4))


def _settings(config: Configuration) -> int:
    # How often stars come is the same for both sides.
    return 2 * (ROW_BITS + config.time_bits + 1) + 32 + config.capacity.bit_length()


def _input(config: Configuration, family: Family) -> Cells:
    # Settings are held in every core.
    return _distributor(config, 2, family) + Cells(ff=_settings(config))


def _buffer(width: int, family: Family) -> Cells:
    # Two words, of which one is shown; whether there is one, and both; which is shown, once for each 64 bits.
    return Cells(lut=mux(family, 2, width) + 8, ff=2 * width + 2 + -(-width // 64))


def _distributor(config: Configuration, children: int, family: Family) -> Cells:
    return (_buffer(config.input_record.width, family)
            + Cells(lut=16 + 4 * children + gate(family, 2 * children), ff=children))


def _merger(config: Configuration, inputs: int, family: Family) -> Cells:
    # `splitjoin.hw.layouts.order_bits`
    bits = min(ROW_BITS, (config.cores * (config.capacity + 1)).bit_length() + 1)
    # The first two of each input are compared with the first two of each other.
    pairs = inputs * (inputs - 1) // 2
    ages = adder(family, *[bits] * (4 * pairs))
    # With more than two inputs Yosys takes some LUT4 a bit beyond those of the multiplexer.
    choice = mux(family, inputs, 2 * ROW_BITS) * (2 if inputs > 2 else 1)
    return _lookahead(bits, family) * inputs + Cells(lut=ages + choice + 36 * pairs, ff=5 * pairs + 1)


def _lookahead(bits: int, family: Family) -> Cells:
    """Four results in LUT RAM, of which two are shown: one whole, of the other its kind and ``bits`` bits."""
    width, cells = (4, 6) if family == "ecp5" else (14, 8)
    ram = sum(cells * -(-shown // width) for shown in (ROW_BITS, ROW_BITS, bits, 2))
    return Cells(lut=ram + 40, ff=16)


def _registers(family: Family) -> Cells:
    words = sum(reg.bits // 32 for reg in REGISTERS)
    written = sum(reg.bits for reg in REGISTERS if reg.access == "rw")
    high = sum(reg.bits == 64 for reg in REGISTERS)
    return Cells(lut=mux(family, words, 32) + mux(family, high, 32) + 2 * words, ff=written + 64)


def _counters(config: Configuration, family: Family) -> Cells:
    k = config.cores
    cells = Cells()
    for reg in REGISTERS:
        if reg.access == "r" and reg.unit in ("cycles", "tuples", "pairs"):
            # In two halves: what the low one carries is held, and it waits for the high one.
            cells += Cells(lut=counter(family, reg.bits), ff=reg.bits + 33)
    cells += _sum(2 * k, config.capacity.bit_length(), family) + _sum(2 * k, 1, family)
    # Cores are visited for the first tuple that did not fit, in groups of four.
    visit, report = max(1, (k - 1).bit_length()), 3 * ROW_BITS + 2
    return cells + Cells(
        lut=mux(family, k, report) + adder(family, visit, ROW_BITS, ROW_BITS, ROW_BITS)
        + equal(family, visit) + 12, ff=2 * visit + 6 * ROW_BITS + 7 + report * -(-k // 4))


def _sum(values: int, bits: int, family: Family) -> Cells:
    """A tree of adders with a register behind each, and before the first."""
    cells = Cells(ff=values * bits)
    while values > 1:
        bits += 1
        cells += Cells(lut=adder(family, *[bits] * (values // 2)), ff=bits * -(-values // 2))
        values = -(-values // 2)
    return cells


def _region_counters(config: Configuration, family: Family) -> Cells:
    counts, marks = (sum(c.high is high for c in REGION_COUNTERS) for high in (False, True))
    amount = max(config.capacity, 2 * 64).bit_length() + 1
    return Cells(lut=adder(family, *[COUNTER_BITS] * counts, *[amount] * marks) + mux(family, 2, amount * marks)
                 + mux(family, len(REGION_COUNTERS), COUNTER_BITS),
                 ff=COUNTER_BITS * (counts + 1) + amount * marks)
