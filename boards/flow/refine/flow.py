"""Placing, refining and routing with nextpnr-ecp5."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..tools import NEXTPNR
from .packed import Floats, Packed
from .refine import Refinement

__all__ = ["Outcome", "route_refined", "routed_wires"]

#: What nextpnr calls the top of what it writes.
_TOP = "top"
#: Of what nextpnr writes of itself, all that it must read again: other settings would override its options.
_KEPT = ("arch.type", "arch.name", "arch.speed", "arch.package", "synth", "pack")
#: Whatever the seed of a placement, routing has this one.
_ROUTING = ("--seed", "1")
#: Held where it is, whatever comes.
_FIXED = format(5, "032b")
_SCRIPT = """\
import json
sites = json.load(open("sites.json"))
for cell in ctx.cells:
    if cell.first in sites:
        cell.second.setAttr("BEL", sites[cell.first])
"""
_WIRE = re.compile(r"\(INTERCONNECT \S+ (\S+)/(\w+) \(\d+:\d+:(\d+)\) \(\d+:\d+:(\d+)\)\)")


@dataclass(frozen=True)
class Outcome:
    """``log``: of packing; ``report``: of routing, both nextpnr's. ``mhz``: the clock. ``cells``: where they are;
    ``wires``: the routed delay of each arc, in ns.
    """

    log: str
    report: Any
    mhz: float
    cells: Packed
    wires: Floats


def route_refined(netlist: str, options: list[str], mhz: float, seed: int, folder: Path) -> Outcome:
    """Place a netlist, refine that for a clock of ``mhz``, and route it, in ``folder``.

    A nextpnr that runs Python scripts packs the netlist again, is told the sites, and its report's clock counts. PyPI's
    runs none and reads the packed netlist; it then takes the upper half of every carry cell for a lower one, 0.07 ns
    more, so that the clock is found by `Timing` from the delays of its wires: the same figure, where nextpnr knows
    which half is which.
    """
    (folder / "netlist.json").write_text(netlist)
    log = NEXTPNR.run([*options, "--seed", str(seed), "--no-route", "--json", "netlist.json", "--write", "placed.json"],
                      folder)
    placed = json.loads((folder / "placed.json").read_text())
    module = placed["modules"][_TOP]
    refinement = Refinement(module, 1e3 / mhz)
    refinement.run()
    sites, scripted = refinement.sites(), NEXTPNR.scripted
    if scripted:
        (folder / "sites.json").write_text(json.dumps(sites))
        (folder / "place.py").write_text(_SCRIPT)
        source = ["--json", "netlist.json", "--pre-place", "place.py"]
    else:
        for name, site in sites.items():
            module["cells"][name]["attributes"] |= {"NEXTPNR_BEL": site, "BEL_STRENGTH": _FIXED}
        module["settings"] = {name: module["settings"][name] for name in _KEPT if name in module["settings"]}
        (folder / "packed.json").write_text(json.dumps(placed))
        source = ["--no-pack", "--json", "packed.json"]
    NEXTPNR.run([*options, *source, *_ROUTING, "--report", "report.json", "--sdf", "wires.sdf"], folder)
    report = json.loads((folder / "report.json").read_text())
    wires = routed_wires((folder / "wires.sdf").read_text(), refinement.cells)
    clock = (min(clock["achieved"] for clock in report["fmax"].values()) if scripted
             else refinement.timing.analyse(wires))
    return Outcome(log, report, clock, refinement.cells, wires)


def routed_wires(sdf: str, cells: Packed) -> Floats:
    """The delay of each arc, in ns, by nextpnr's SDF of a routed design: the slowest corner, rising or falling."""
    found = {(re.sub(r"\\(.)", r"\1", cell), port): max(int(rises), int(falls)) / 1e3
             for cell, port, rises, falls in _WIRE.findall(sdf)}
    return np.array([found[cells.names[sink], port] for sink, port in zip(cells.sink, cells.sink_port, strict=True)])
