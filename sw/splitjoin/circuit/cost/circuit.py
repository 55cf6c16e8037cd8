"""Cost of a whole circuit, part by part, as its architecture gives it, and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from splitjoin.base.errors import plural

from ..geometry import comparisons
from ..wire import Configuration
from .core_kinds import CORE_COSTS
from .datapath import DatapathCost, datapath_cost
from .resources import Family, Resources, check_family, lut_name


@dataclass(frozen=True)
class PartCost:
    """The cost of ``count`` equal parts, each of cost ``each``."""

    count: int
    each: Resources

    @property
    def total(self) -> Resources:
        """The cost of all parts together."""
        return self.each * self.count


@dataclass(frozen=True)
class CircuitCost:
    """The cost of a circuit, part by part, and the rate of its comparators.

    Attributes:
        config, family: The circuit's configuration, and the FPGA family.
        datapaths: The costs of the datapaths in the regions that store R and S.
        parts: Name → number of parts, and the cost of each. A region's parts are ``datapath``, ``storage``, and those
            of its core kind (`splitjoin.circuit.cost.core_kinds`).
    """

    config: Configuration
    family: Family
    datapaths: dict[str, DatapathCost]
    parts: dict[str, PartCost]

    @cached_property
    def total(self) -> Resources:
        """The cost of the whole circuit."""
        return sum((part.total for part in self.parts.values()), Resources())

    @property
    def comparisons(self) -> int:
        """Peak comparisons per cycle. A circuit with an index reaches the peak only for probes that meet too many
        buckets and read whole sub-windows; otherwise it compares one candidate in four cycles.
        """
        return comparisons(self.config)

    @property
    def stages(self) -> int:
        """Latency in cycles of the datapath, from a stored key to the outcome."""
        return self.datapaths["r"].stages


def circuit_cost(config: Configuration, family: str = "ecp5") -> CircuitCost:
    """The cost of the circuit for ``config``. Raises `UnsupportedError` for an unknown family."""
    known = check_family(family)
    datapaths = {side: datapath_cost(config, side, known) for side in "rs"}
    return CircuitCost(config, known, datapaths, config.structure.predictions.parts(config, known))


def family_name(family: Family) -> str:
    """The vendor's name for ``family``."""
    return {"ecp5": "ECP5", "ultrascale": "UltraScale+"}[family]


def resources_text(resources: Resources, family: Family) -> str:
    """``resources`` in words: LUTs, flip-flops, block RAMs and DSPs."""
    return (f"{resources.lut:,} {lut_name(family)}, {resources.ff:,} flip-flops, "
            f"{resources.block_ram:,} {plural(resources.block_ram, 'block RAM')} of 18 Kbit, {resources.dsp:,} "
            f"{plural(resources.dsp, 'DSP')}")


def cost_lines(config: Configuration, family: str) -> Iterator[str]:
    """The lines of `explain` about the cost of the circuit for ``config``."""
    yield from (f"{label:12}{said}" for label, said in _lines(circuit_cost(config, family)))


def _lines(circuit: CircuitCost) -> Iterator[tuple[str, str]]:
    lut, config = lut_name(circuit.family), circuit.config
    sides = config.structure.datapaths(config)
    for side in sides:
        where = f"where {side.upper()} is stored" if len(sides) == 2 else "for both streams"
        yield "datapath", f"{where}: {_datapath(circuit.datapaths[side], lut, config.tables)}"
    total = circuit.total
    said = resources_text(total, circuit.family)
    yield "cost", f"on {family_name(circuit.family)} {said}; {total.ram_bits:,} bits of memory"
    yield "comparing", CORE_COSTS[config.core].comparing(config, total.lut, lut)


def _datapath(d: DatapathCost, lut: str, tables: bool) -> str:
    codes = ""
    if tables:
        codes = f", {d.lane.lut} a lane and {d.region.lut} a region for tables and codes"
    elif d.lane.lut or d.region.lut:
        codes = f", {d.lane.lut} a lane and {d.region.lut} a region for codes"
    return (f"{d.pair.lut} {lut} a comparison{codes}; {d.total.lut:,} {lut} and {d.total.ff:,} flip-flops in a region, "
            f"{d.stages} {plural(d.stages, 'stage')}, {d.total.dsp} {plural(d.total.dsp, 'DSP')}")
