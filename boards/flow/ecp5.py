"""ECP5 by Yosys and nextpnr: netlist, placement, routing, and what their reports say."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType

from splitjoin.errors import ToolError

from . import refine
from .design import Design
from .floorplan import PLANNED_FROM, floorplan
from .refine.flow import Outcome, route_refined
from .store import cached
from .tools import NEXTPNR, YOSYS

__all__ = ["CELLS", "PLACERS", "Cells", "Routed", "cells", "clock_source", "mapped_verilog", "netlist", "refined",
           "route"]

#: Device and package; speed grade 6 is the slowest.
_DEVICE = ("--85k", "--package", "CABGA756", "--speed", "6")
#: The clock that placement aims for, in MHz: beyond what any circuit here reaches, so that all of it is tried for.
_AIM = 300
#: nextpnr's placers, and their options. `heap` solves for wires and timing and then spreads: with twice and a half the
#: weight of timing that is usual, for 8 % more clock of a core over some seeds; and as many tries for each cell as it
#: takes, since nextpnr's own limit overflows beyond 46,340 cells. `static` spreads cells as charges.
PLACERS = {"heap": ("--placer-heap-timingweight", "25", "--placer-heap-cell-placement-timeout", "0"),
           "static": ("--placer", "static")}
#: A core's clock is half again as high with it as with nextpnr's other router, which does not come to an end on large
#: designs.
_ROUTER = "router1"
#: One of the orders of steps that Yosys knows to optimize logic by: 2 % fewer cells here, and fewer in a row.
_STEPS = "abc9.script.flow"
#: The delay of a wire, in ps, that logic is mapped for. Yosys's own 300 is a third of what placed wires take here: it
#: would pack logic into fewer cells, more of them in a row.
_WIRE = 800
#: What some cells do, where Yosys has no model or a longer one.
CELLS = Path(__file__).with_name("ecp5_cells.v")
#: LUT4 that a cell takes: a carry cell is two; 16 × 4 bits of RAM are four, and their write port takes two more.
_LUT4 = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}


@dataclass(frozen=True)
class Cells:
    """Cells after mapping."""

    lut4: int
    ff: int
    block_ram: int
    dsp: int = 0


@dataclass(frozen=True)
class Routed:
    """What placement and routing say of the whole device, the harness included.

    ``lut4`` = ``logic`` + ``carry`` + ``ram`` (LUT RAM and its write ports). ``mhz``: the clock of the slowest path,
    which goes from cell ``source`` to cell ``sink``. ``seconds``: of placing, refining and routing, by
    the clock on the wall.
    """

    lut4: int
    logic: int
    carry: int
    ram: int
    ff: int
    block_ram: int
    mhz: float
    source: str
    sink: str
    seconds: float


def netlist(design: Design, *, wide: bool = True) -> Path:
    """The mapped netlist, flat, as JSON for nextpnr; beside it, in ``cells.json``, Yosys's count of cells a module.

    ``wide``: functions of up to seven inputs may take several LUTs with multiplexers between them (PFUMX, L6MUX21),
    which lie in fixed places to each other.
    """
    lut = "" if wide else " -maxlut 4"
    kept = " ".join(design.kept)
    script = f"""
        read_rtlil design.il
        setattr -mod -set keep_hierarchy 1 {kept}
        synth_lattice -family ecp5 -top {design.top} -run begin:map_luts
        check -latchonly -assert
        scratchpad -copy {_STEPS} abc9.script
        abc9 -W {_WIRE}{lut}
        clean
        synth_lattice -family ecp5 -top {design.top} -run map_cells:
        tee -q -o cells.json stat -json
        setattr -mod -unset keep_hierarchy {kept}
        flatten
        opt_clean
        write_json netlist.json
    """

    def make(folder: Path) -> None:
        (folder / "design.il").write_text(design.text)
        (folder / "script.ys").write_text(script)
        YOSYS.run(["-q", "script.ys"], folder)

    return cached("ecp5", (design.text, script, YOSYS.version), make) / "netlist.json"


def mapped_verilog(design: Design) -> str:
    """The mapped netlist as plain Verilog, cells replaced by what they do, for simulation."""
    source = netlist(design)
    script = f"""
        read_json netlist.json
        hierarchy -top {design.top}
        write_verilog -noattr netlist.v
        design -reset
        read_verilog netlist.v
        read_verilog -D NO_INCLUDES +/lattice/cells_sim_ecp5.v
        read_verilog -overwrite cells.v
        hierarchy -check -top {design.top}
        proc
        flatten
        opt_clean -purge
        write_verilog -noattr mapped.v
    """

    def make(folder: Path) -> None:
        (folder / "netlist.json").write_bytes(source.read_bytes())
        (folder / "cells.v").write_text(CELLS.read_text())
        (folder / "script.ys").write_text(script)
        YOSYS.run(["-q", "script.ys"], folder)

    key = (source.read_text(), CELLS.read_text(), script, YOSYS.version)
    return (cached("ecp5-mapped", key, make) / "mapped.v").read_text()


def cells(design: Design) -> dict[str, Cells]:
    """Module → its cells, those of the modules in it included."""
    found = json.loads(netlist(design).with_name("cells.json").read_text())["modules"]
    modules = {name.removeprefix("\\"): module["num_cells_by_type"] for name, module in found.items()}

    def total(name: str, kinds: tuple[str, ...]) -> dict[str, int]:
        sums = dict.fromkeys(kinds, 0)
        for kind, n in modules[name].items():
            if kind in modules:
                sums = {k: v + n * total(kind, kinds)[k] for k, v in sums.items()}
            elif kind in sums:
                sums[kind] += n
        return sums

    out = {}
    for name in modules:
        of = total(name, (*_LUT4, "TRELLIS_FF", "DP16KD", "MULT18X18D"))
        out[name] = Cells(sum(_LUT4[k] * of[k] for k in _LUT4), of["TRELLIS_FF"], of["DP16KD"],
                          of["MULT18X18D"])
    return out


def route(design: Design, *, seed: int = 1, placer: str = "heap", wide: bool = True,
          refined_for: float | None = None, settled_for: float | None = None) -> Routed:
    """Place and route on the largest ECP5; minutes to hours. Raises `ToolError` when it does not fit or route.

    ``placer``: one of `PLACERS`. Wires are shorter by a seventh with ``static``, which decides whether large comparator
    arrays can be routed; only its refinement looks at timing, so that the clock of anything else is lower with it.
    ``wide``: as `netlist` has it. ``refined_for``: a clock in MHz that the placement is refined for before it is
    routed (`refine.flow`); without ``wide`` each LUT can be moved by itself. ``settled_for``: a clock in MHz that a
    refined placement is settled for, with wires on late paths routed by themselves first.
    """
    if placer not in PLACERS:
        raise ValueError(f"Placer must be one of {', '.join(PLACERS)}, not {placer!r}")
    # Checked here, as it is needed only after minutes of placing.
    for what, mhz in (("refine", refined_for), ("settle", settled_for)):
        if mhz is not None and not (isinstance(mhz, int | float) and 0 < mhz < math.inf):
            raise ValueError(f"A clock to {what} for must be a positive number of MHz, or None, not {mhz!r}")
    if settled_for is not None and refined_for is None:
        raise ValueError("Only a refined placement can be settled: give a clock to refine for as well")
    source, options = _routing(design, placer, wide=wide)

    def make(folder: Path) -> None:
        start = time.monotonic()
        if refined_for is None:
            (folder / "netlist.json").write_text(source)
            log = NEXTPNR.run([*options, "--seed", str(seed), "--json", "netlist.json", "--report", "report.json"],
                              folder)
            found = parse(log, json.loads((folder / "report.json").read_text()), time.monotonic() - start)
        else:
            outcome = route_refined(source, options, refined_for, settled_for, seed, folder)
            found = replace(parse(outcome.log, outcome.report, time.monotonic() - start), mhz=outcome.mhz)
        for large in (*folder.glob("*.json"), *folder.glob("*.sdf")):
            if large.name != "report.json":
                large.unlink()
        (folder / "routed.json").write_text(json.dumps(asdict(found)))

    how = () if refined_for is None else (f"refined for {refined_for}, {settled_for}", *_source_of(refine))
    folder = cached("ecp5-routed", (source, *options, str(seed), NEXTPNR.version, *how), make)
    return Routed(**json.loads((folder / "routed.json").read_text()))


def clock_source() -> str:
    """Where the clock of a refined placement comes from (`refine.flow.route_refined`)."""
    return ("nextpnr packed it again and was told the sites" if NEXTPNR.scripted
            else "clock from its wires' delays (SDF)")


def refined(design: Design, mhz: float, folder: Path, *, settled: float | None = None, seed: int = 1) -> Outcome:
    """What `route` does for a clock of ``mhz``, in ``folder``: all that nextpnr says of it is left there."""
    return route_refined(*_routing(design, "heap", wide=False), mhz, settled, seed, folder)


def _routing(design: Design, placer: str, *, wide: bool) -> tuple[str, list[str]]:
    """The netlist that nextpnr is given, and its options but for the seed."""
    source = _planned(design, wide) if placer == "heap" else netlist(design, wide=wide).read_text()
    # The clock to aim for is none that a netlist says, so it is told wherever a placement is read from a file.
    return source, [*_DEVICE, *PLACERS[placer], "--lpf-allow-unconstrained", "--timing-allow-fail", "--freq", str(_AIM),
                    "--router", _ROUTER]


def _source_of(package: ModuleType) -> list[str]:
    """What is kept by content is kept by that of a package too."""
    return [path.read_text() for folder in package.__path__ for path in sorted(Path(folder).glob("*.[pj]*"))]


def _planned(design: Design, wide: bool) -> str:
    """The mapped netlist; if it is large, with the sites of its block RAMs."""
    text, size = netlist(design, wide=wide).read_text(), cells(design)[design.top]
    if max(size.lut4, size.ff) < PLANNED_FROM:
        return text
    mapped = json.loads(text)
    for name, site in floorplan(mapped, design.top).items():
        mapped["modules"][design.top]["cells"][name]["attributes"]["BEL"] = site
    return json.dumps(mapped)


def parse(log: str, report: dict[str, object], seconds: float) -> Routed:
    """What nextpnr's log and JSON report say. Raises `ToolError` if something is not in them."""
    def number(label: str) -> int:
        found = re.search(rf"{label}:\s+(\d+)/", log)
        if found is None:
            raise ToolError(f"nextpnr's log must have a line {label!r}, but has none; is its version another one?")
        return int(found[1])

    fmax = report["fmax"]
    assert isinstance(fmax, dict)
    clocks = [clock["achieved"] for clock in fmax.values()]
    paths = report["critical_paths"]
    assert isinstance(paths, list)
    inner = next(path["path"] for path in paths if path["from"] == path["to"])
    return Routed(
        lut4=number("Total LUT4s"), logic=number("logic LUTs"), carry=number("carry LUTs"),
        ram=number("RAM LUTs") + number("RAMW LUTs"), ff=number("Total DFFs"), block_ram=number("DP16KD"),
        mhz=min(clocks), source=inner[0]["from"]["cell"], sink=inner[-1]["to"]["cell"], seconds=seconds)
