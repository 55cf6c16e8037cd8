"""Delay estimates of cells and wires of an ECP5 of speed grade 6, in ns.

Cell delays are nextpnr's own, of the slowest corner: `timing.TimingAnalysis` of a routed design agrees with nextpnr's
report to the picosecond. Wire delays depend on the columns and rows that a wire crosses; `calibration` fits them to a
routed design.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .arrays import Floats

__all__ = ["IN_SLICE", "WIRE_DELAYS", "clock_to_output", "driver_class", "setup_time", "sink_class", "through",
           "wire_table"]

#: The file that `wire_table` reads and bench/wires.py writes.
WIRE_DELAYS = Path(__file__).with_name("wire_delays.json")
_LUT = .236
_LUT_INPUTS = ("A", "B", "C", "D")
#: Fixed wires inside a slice: ports that they join → delay.
IN_SLICE = {("FCO", "FCI"): 0., ("F", "F1"): 0., ("F", "FXA"): 0., ("F", "FXB"): 0., ("OFX", "FXA"): 0.,
            ("OFX", "FXB"): 0., ("F", "DI"): .13, ("OFX", "DI"): .13,
            **{(f"WDO{n}", "WD"): 0. for n in range(4)}, **{(f"WADO{n}", f"WAD{n}"): 0. for n in range(4)}}
#: Clock-to-output delay by type of cell.
_CLOCK_TO_OUTPUT = {"TRELLIS_FF": .525, "DP16KD": .973}
#: Setup times of flip-flops and of LUT RAM by input port.
_FF_SETUP = {"DI": 0., "M": 0., "CE": 0., "LSR": .424}
_LUT_RAM_SETUP = {"WRE": .392, "WD": 0., "WAD0": 0., "WAD1": 0., "WAD2": 0., "WAD3": 0.}
#: From carry in to result, and from carry in to carry out: of the lower and of the upper half of a carry cell.
_CARRY_TO_RESULT, _CARRY_TO_CARRY = (.443, .403), (.071, 0.)


def clock_to_output(kind: str) -> float | None:
    """Delay from the clock to the outputs of a cell of type ``kind``; None if these are not registers."""
    return _CLOCK_TO_OUTPUT.get(kind)


def setup_time(kind: str, port: str) -> float | None:
    """Setup time of input ``port`` of a cell of type ``kind``; None if no register samples it."""
    if kind == "TRELLIS_FF":
        return _FF_SETUP.get(port)
    if kind == "DP16KD":
        return .251 if port.startswith("AD") else .218
    return _LUT_RAM_SETUP.get(port) if kind == "TRELLIS_COMB" else None


def through(kind: str, half: int | None, i: str, o: str) -> float | None:
    """Delay from input port ``i`` to output port ``o`` of a cell of type ``kind``; None if there is no such path.

    ``half``: 0 (lower) or 1 (upper) half of a carry cell, None for other cells.
    """
    if kind == "TRELLIS_RAMW":
        return 0.
    if kind != "TRELLIS_COMB":
        return None
    if i in _LUT_INPUTS:
        return {"F": _LUT, "FCO": .447 if half is not None else None, "OFX": .44}.get(o)
    if half is not None and i == "FCI":
        return {"F": _CARRY_TO_RESULT[half], "FCO": _CARRY_TO_CARRY[half]}.get(o)
    return .24 if o == "OFX" and i in ("M", "F1", "FXA", "FXB") else None


def sink_class(port: str, carry: bool) -> str:
    """The class of an input port: wires to ports of one class take equally long.

    The inputs of a LUT are interchangeable, those of a carry cell are not.
    """
    if port in _LUT_INPUTS:
        return f"carry {port}" if carry else "LUT"
    return port if port in ("M", "CE", "LSR") else "other"


def driver_class(port: str) -> str:
    """The class of an output port: Q of flip-flops, F of LUTs and all others."""
    return "Q" if port == "Q" else "F"


def wire_table() -> tuple[Floats, Mapping[str, float], Mapping[str, float]]:
    """Wire delay by [columns, rows] crossed, and what to add to it by `sink_class` and by `driver_class`."""
    found = json.loads(WIRE_DELAYS.read_text())
    near, (slope, base) = np.array(found["near"]), found["far"]
    table = base + slope * np.add.outer(np.arange(130.), np.arange(100.))
    table[:near.shape[0], :near.shape[1]] = near
    return table, found["pins"], found["sources"]
