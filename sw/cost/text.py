"""The cost of a circuit in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..circuit.wire import Configuration
from .cells import Cells, Family, lut_name
from .circuit import Circuit, circuit
from .datapath import Datapath

__all__ = ["cells_text", "cost_lines", "family_name"]


def family_name(family: Family) -> str:
    """What the vendor calls it."""
    return {"ecp5": "ECP5", "ultrascale": "UltraScale+"}[family]


def cells_text(cells: Cells, family: Family) -> str:
    """All that is counted."""
    return (f"{cells.lut:,} {lut_name(family)}, {cells.ff:,} flip-flops, {cells.block_ram:,} block RAMs of 18 Kbit, "
            f"{cells.dsp:,} DSPs")


def cost_lines(config: Configuration, family: str) -> Iterator[str]:
    """What `explain` says of the circuit for ``config``."""
    yield from (f"{label:12}{said}" for label, said in _lines(circuit(config, family)))


def _lines(circuit: Circuit) -> Iterator[tuple[str, str]]:
    lut, config = lut_name(circuit.family), circuit.config
    for side, datapath in sorted(circuit.datapaths.items()):
        yield "datapath", f"where {side.upper()} is stored: {_datapath(datapath, lut, config.tables)}"
    total = circuit.total
    yield "cost", (f"on {family_name(circuit.family)} {cells_text(total, circuit.family)}; {total.ram_bits:,} bits of "
                   f"memory")
    if config.core != "scan":
        yield "comparing", (f"a candidate in four cycles in each of {2 * config.cores} regions, and a tuple a cycle "
                            f"with a probe that reaches too far; {total.lut / config.cores:,.0f} {lut} a core, "
                            f"everything counted")
        return
    yield "comparing", (f"{circuit.comparisons:,} comparisons a cycle (2 streams × {config.cores} cores × lanes "
                        f"{config.lanes} × probes {config.probes}), {total.lut / circuit.comparisons:,.0f} {lut} each, "
                        f"everything counted")


def _datapath(d: Datapath, lut: str, tables: bool) -> str:
    codes = ""
    if tables:
        codes = f", {d.lane.lut} a lane and {d.region.lut} a region for tables and codes"
    elif d.lane.lut or d.region.lut:
        codes = f", {d.lane.lut} a lane and {d.region.lut} a region for codes"
    return (f"{d.pair.lut} {lut} a comparison{codes}; {d.total.lut:,} {lut} and {d.total.ff:,} flip-flops in a region, "
            f"{d.stages} stages, {d.total.dsp} DSPs")
