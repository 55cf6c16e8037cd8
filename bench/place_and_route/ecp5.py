"""ECP5 by Yosys and nextpnr: mapping, placement and routing, and the figures in their reports."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from splitjoin.base.errors import ToolError
from splitjoin_boards.flow.tools import NEXTPNR, YOSYS, cached

from .design import Design
from .floorplan import PLANNED_FROM, floorplan

#: Device → nextpnr's options for it and its package; speed grade 6 is the slowest.
DEVICES = {"LFE5U-25F": ("--25k", "--package", "CABGA381", "--speed", "6"),
           "LFE5U-85F": ("--85k", "--package", "CABGA756", "--speed", "6")}
#: The target clock of nextpnr, in MHz: beyond what any circuit here reaches, so that no path has slack to give away.
_TARGET_MHZ = 300
#: nextpnr's placers and their options. `heap` solves for wire length and timing, and then spreads the cells. Timing has
#: two and a half times its default weight, which gives a core 8 % more clock over some seeds. The number of tries to
#: legalize a cell has no limit, since nextpnr's own overflows beyond 46,340 cells. `static` spreads cells like electric
#: charges.
PLACERS = {"heap": ("--placer-heap-timingweight", "25", "--placer-heap-cell-placement-timeout", "0"),
           "static": ("--placer", "static")}
#: nextpnr's router: a core's clock is half again as high as with its other one, which does not end on large designs.
_ROUTER = "router1"
#: One of Yosys's scripts of optimization steps: 2 % fewer cells here than by default, and fewer levels of logic.
_ABC_SCRIPT = "abc9.script.flow"
#: The wire delay, in ps, that logic is mapped for. Yosys's default of 300 is a third of what placed wires take here: it
#: would give fewer cells, but more levels of logic.
_WIRE_DELAY = 800
#: LUT4s by type of cell. A carry cell is two; 16 × 4 bits of RAM are four, and their write port takes two more.
_LUT4 = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}


@dataclass(frozen=True)
class Ecp5Utilization:
    """Resources that a module takes after mapping. ``block_ram``: DP16KD, of 18 Kbit. ``dsp``: MULT18X18D."""

    lut4: int
    ff: int
    block_ram: int
    dsp: int = 0


@dataclass(frozen=True)
class RoutingReport:
    """Utilization and clock of a placed and routed design, the harness included.

    ``lut4`` = ``logic`` + ``carry`` + ``ram`` (LUT RAM and its write ports). ``mhz``: the highest clock by nextpnr's
    report. ``source``, ``sink``: cells in which its critical path begins and ends. ``seconds``: wall clock of placing
    and routing.
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
    """Map ``design``: the path of the flat netlist, as JSON for nextpnr. Beside it ``cells.json`` counts the cells of
    each module.

    ``wide``: functions of up to seven inputs may take several LUTs with multiplexers (PFUMX, L6MUX21), which have fixed
    places relative to each other.
    """
    lut = "" if wide else " -maxlut 4"
    kept = " ".join(design.kept)
    script = f"""
        read_rtlil design.il
        setattr -mod -set keep_hierarchy 1 {kept}
        synth_lattice -family ecp5 -top {design.top} -run begin:map_luts
        check -latchonly -assert
        scratchpad -copy {_ABC_SCRIPT} abc9.script
        abc9 -W {_WIRE_DELAY}{lut}
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


def utilization(design: Design) -> dict[str, Ecp5Utilization]:
    """Module → its utilization after mapping, the modules in it included."""
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
        out[name] = Ecp5Utilization(sum(_LUT4[k] * of[k] for k in _LUT4), of["TRELLIS_FF"], of["DP16KD"],
                                    of["MULT18X18D"])
    return out


def route(design: Design, *, seed: int = 1, placer: str = "heap", device: str = "LFE5U-85F",
          target: int = _TARGET_MHZ) -> RoutingReport:
    """Place and route on an ECP5; minutes to hours. Raises `ToolError` if it does not fit or route.

    ``device``: one of `DEVICES`; the largest by default. ``target``: the clock to aim at, in MHz; the router tries the
    longer the further it is from it.
    ``placer``: one of `PLACERS`. Wires are shorter by a seventh with ``static``, which decides whether large comparator
    arrays can be routed. It considers timing only at the end, so that the clock of other designs is lower with it.
    ``seed``: of that placer.
    """
    if placer not in PLACERS:
        raise ValueError(f"Placer must be one of {', '.join(PLACERS)}, not {placer!r}")
    if device not in DEVICES:
        raise ValueError(f"Device must be one of {', '.join(DEVICES)}, not {device!r}")
    source = _planned(design) if placer == "heap" else netlist(design).read_text()
    options = [*DEVICES[device], *PLACERS[placer], "--lpf-allow-unconstrained", "--timing-allow-fail", "--freq",
               str(target), "--router", _ROUTER]

    def make(folder: Path) -> None:
        start = time.monotonic()
        (folder / "netlist.json").write_text(source)
        log = NEXTPNR.run([*options, "--seed", str(seed), "--json", "netlist.json", "--report", "report.json"], folder)
        found = parse(log, json.loads((folder / "report.json").read_text()), time.monotonic() - start)
        (folder / "netlist.json").unlink()
        (folder / "routed.json").write_text(json.dumps(asdict(found)))

    folder = cached("ecp5-routed", (source, *options, str(seed), NEXTPNR.version), make)
    return RoutingReport(**json.loads((folder / "routed.json").read_text()))


def versions() -> str:
    """Yosys and nextpnr as they run here: names, versions and installation, in words."""
    return f"{YOSYS.described}; {NEXTPNR.described}"


def _planned(design: Design) -> str:
    """The mapped netlist; if it is large, with the floorplan of its block RAMs."""
    text, size = netlist(design).read_text(), utilization(design)[design.top]
    if max(size.lut4, size.ff) < PLANNED_FROM:
        return text
    mapped = json.loads(text)
    for name, bel in floorplan(mapped, design.top).items():
        mapped["modules"][design.top]["cells"][name]["attributes"]["BEL"] = bel
    return json.dumps(mapped)


def parse(log: str, report: dict[str, object], seconds: float) -> RoutingReport:
    """Parse nextpnr's log and JSON report. Raises `ToolError` if a figure is missing in them."""
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
    return RoutingReport(
        lut4=number("Total LUT4s"), logic=number("logic LUTs"), carry=number("carry LUTs"),
        ram=number("RAM LUTs") + number("RAMW LUTs"), ff=number("Total DFFs"), block_ram=number("DP16KD"),
        mhz=min(clocks), source=inner[0]["from"]["cell"], sink=inner[-1]["to"]["cell"], seconds=seconds)
