"""Placing, refining, settling and routing with nextpnr-ecp5."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tools import NEXTPNR
from .packed import Floats, Packed
from .refine import Refinement
from .router import TOP, Router
from .settle import Settled, settle

__all__ = ["Outcome", "route_refined"]


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


def route_refined(netlist: str, options: list[str], mhz: float, settled: float | None, seed: int,
                  folder: Path) -> Outcome:
    """Place a netlist, refine that for a clock of ``mhz``, and route it, in ``folder``.

    ``settled``: the clock that it is settled for before it is routed, if not None.

    A nextpnr that runs Python scripts packs the netlist again, is told sites and routes, and its report's clock counts.
    PyPI's runs none and reads the packed netlist; it then takes the upper half of every carry cell for a lower one,
    0.07 ns more, so that the clock is found by `Timing` from the delays of its wires: the same figure, where nextpnr
    knows which half is which.
    """
    (folder / "netlist.json").write_text(netlist)
    log = NEXTPNR.run([*options, "--seed", str(seed), "--no-route", "--json", "netlist.json", "--write", "placed.json"],
                      folder)
    placed = json.loads((folder / "placed.json").read_text())
    refinement = Refinement(placed["modules"][TOP], 1e3 / mhz)
    refinement.run()
    router, known = Router(placed, options, folder), Settled({}, {})
    if settled is not None:
        refinement.timing.period = 1e3 / settled
        known = settle(refinement, router)
    routed = router.whole(refinement, known.routes, known.urgent)
    clock = (min(clock["achieved"] for clock in routed.report["fmax"].values()) if NEXTPNR.scripted
             else refinement.timing.analyse(routed.wires))
    return Outcome(log, routed.report, clock, refinement.cells, routed.wires)
