"""UltraScale+ by Yosys: mapping only, as no open tool places and routes these devices."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from splitjoin.base.errors import ToolError
from splitjoin_boards.flow.tools import YOSYS, cached

from .design import Design

#: LUT sites by type of cell (UltraScale Architecture Configurable Logic Block, UG574). Inverters that Yosys leaves
#: before carry cells count, though a placer would absorb them.
_LUT = {"INV": 1, **{f"LUT{n}": 1 for n in range(1, 7)}, "LUT6_2": 1, "SRL16E": 1, "SRLC32E": 1, "RAM32X1D": 2,
        "RAM64X1D": 2, "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8}
_FF = ("FDRE", "FDSE", "FDCE", "FDPE")
_DSP = "DSP48E2"
_BLOCK_RAM = {"RAMB18E2": 1, "RAMB36E2": 2}
#: Cells that take none of these.
_FREE = ("CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9", "$scopeinfo")


@dataclass(frozen=True)
class UltrascaleUtilization:
    """Resources that a module takes after mapping.

    ``lut``: LUT sites, those of LUT RAM and shift registers included. ``block_ram``: halves of 18 Kbit.
    """

    lut: int
    ff: int
    block_ram: int
    dsp: int = 0


def utilization(design: Design) -> UltrascaleUtilization:
    """The utilization of module ``part`` of ``design``, mapped by ``synth_xilinx -family xcup``."""
    script = f"""
        read_rtlil design.il
        setattr -mod -set keep_hierarchy 1 {' '.join(design.kept)}
        synth_xilinx -family xcup -top {design.top} -flatten -noiopad -noclkbuf
        tee -q -o cells.json stat -json
    """

    def make(folder: Path) -> None:
        (folder / "design.il").write_text(design.text)
        (folder / "script.ys").write_text(script)
        YOSYS.run(["-q", "script.ys"], folder)

    found = json.loads((cached("xcup", (design.text, script, YOSYS.version), make) / "cells.json").read_text())
    return count_cells(found["modules"]["\\part"]["num_cells_by_type"])


def count_cells(kinds: dict[str, int]) -> UltrascaleUtilization:
    """Sum up cells. ``kinds``: type → number. Raises `ToolError` for a type whose size is not known here."""
    unknown = set(kinds) - {*_LUT, *_FF, *_BLOCK_RAM, _DSP, *_FREE}
    if unknown:
        raise ToolError(f"every mapped cell's size must be known, but Yosys used {', '.join(sorted(unknown))}; is its "
                        f"version another one?")
    return UltrascaleUtilization(
        lut=sum(n * _LUT.get(kind, 0) for kind, n in kinds.items()), ff=sum(kinds.get(kind, 0) for kind in _FF),
        block_ram=sum(n * _BLOCK_RAM.get(kind, 0) for kind, n in kinds.items()), dsp=kinds.get(_DSP, 0))
