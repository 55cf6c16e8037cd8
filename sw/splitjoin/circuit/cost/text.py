"""The cost of a circuit in words."""

from __future__ import annotations

from collections.abc import Iterator

from splitjoin.base.errors import plural

from ..wire import Configuration
from .circuit import CircuitCost, circuit_cost
from .core_kinds import CORE_COSTS
from .datapath import DatapathCost
from .resources import Family, Resources, lut_name

__all__ = ["cost_lines", "family_name", "resources_text"]


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
