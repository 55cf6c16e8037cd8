"""What cells and wires of an ECP5 of speed grade 6 take, in ns.

Cells: nextpnr's own figures, the slowest corner; its report of a routed design and `timing.analyse` agree with them to
the picosecond. Wires: medians of routed ones by the columns and rows that they cross, as `bench/wires.py` found them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["DEDICATED", "WIRES", "launch", "pin_class", "setup", "source_class", "through", "wire_table"]

#: The table that `wire_table` reads.
WIRES = Path(__file__).with_name("wires.json")
_LUT = .236
_INPUTS = ("A", "B", "C", "D")
#: Wires inside a slice, by the ports that they join: they take nothing, but for those to a flip-flop.
DEDICATED = {("FCO", "FCI"): 0., ("F", "F1"): 0., ("F", "FXA"): 0., ("F", "FXB"): 0., ("OFX", "FXA"): 0.,
             ("OFX", "FXB"): 0., ("F", "DI"): .13, ("OFX", "DI"): .13,
             **{(f"WDO{n}", "WD"): 0. for n in range(4)}, **{(f"WADO{n}", f"WAD{n}"): 0. for n in range(4)}}
_FF = {"DI": 0., "M": 0., "CE": 0., "LSR": .424}
_LUT_RAM = {"WRE": .392, "WD": 0., "WAD0": 0., "WAD1": 0., "WAD2": 0., "WAD3": 0.}
#: From its carry in to its result, and to its carry out: of the lower and the upper half of a carry cell.
_CARRY_F, _CARRY_ON = (.443, .403), (.071, 0.)


def launch(kind: str, port: str) -> float | None:
    """From the clock to output ``port`` of a cell; None if that is no register's."""
    return {"TRELLIS_FF": .525, "DP16KD": .973}.get(kind)


def setup(kind: str, port: str) -> float | None:
    """Before the clock at input ``port`` of a cell; None if that is no register's."""
    if kind == "TRELLIS_FF":
        return _FF.get(port)
    if kind == "DP16KD":
        return .251 if port.startswith("AD") else .218
    return _LUT_RAM.get(port) if kind == "TRELLIS_COMB" else None


def through(kind: str, half: int | None, source: str, target: str) -> float | None:
    """From input ``source`` to output ``target``; ``half``: 0 or 1, of a carry cell. None if there is no such path."""
    if kind == "TRELLIS_RAMW":
        return 0.
    if kind != "TRELLIS_COMB":
        return None
    if source in _INPUTS:
        return {"F": _LUT, "FCO": .447 if half is not None else None, "OFX": .44}.get(target)
    if half is not None and source == "FCI":
        return {"F": _CARRY_F[half], "FCO": _CARRY_ON[half]}.get(target)
    return .24 if target == "OFX" and source in ("M", "F1", "FXA", "FXB") else None


def pin_class(port: str, carry: bool) -> str:
    """Pins that wires reach alike. Those of a LUT can be exchanged, those of a carry cell cannot."""
    if port in _INPUTS:
        return f"carry {port}" if carry else "LUT"
    return port if port in ("M", "CE", "LSR") else "other"


def source_class(port: str) -> str:
    """Outputs that wires leave alike: flip-flops', and others, as of a LUT."""
    return "Q" if port == "Q" else "F"


def wire_table() -> tuple[npt.NDArray[np.float64], Mapping[str, float], Mapping[str, float]]:
    """Delay by columns and rows crossed, and what is added to it by `pin_class` and by `source_class`."""
    found = json.loads(WIRES.read_text())
    near, (slope, base) = np.array(found["near"]), found["far"]
    table = base + slope * np.add.outer(np.arange(130.), np.arange(100.))
    table[:near.shape[0], :near.shape[1]] = near
    return table, found["pins"], found["sources"]
