"""The placer's flow: nextpnr places, the annealer improves the placement, critical nets are routed, then all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tools import NEXTPNR
from .annealer import Annealer
from .arrays import Floats
from .netlist import PlacedNetlist
from .preroute import PreRoutes, preroute
from .router import TOP, Router

__all__ = ["PlacerResult", "place_and_route"]


@dataclass(frozen=True)
class PlacerResult:
    """A placed and routed netlist.

    ``log``: nextpnr's of packing and placing. ``report``: nextpnr's of routing. ``analysed_mhz``: the highest clock by
    `timing.TimingAnalysis` of the routed delays; the report has nextpnr's.
    ``netlist``: the netlist with its final placement. ``arc_delays``: the routed delay of each of its arcs, in ns.
    """

    log: str
    report: Any
    analysed_mhz: float
    netlist: PlacedNetlist
    arc_delays: Floats


def place_and_route(netlist: str, options: list[str], folder: Path, *, anneal_mhz: float,
                    preroute_mhz: float | None = None, seed: int = 1) -> PlacerResult:
    """Place ``netlist``, improve the placement, and route it. The package's docstring explains the arguments.

    A nextpnr that runs Python scripts packs the netlist again and is given bels and routes. PyPI's runs none and reads
    the packed netlist instead. It then takes the upper half of every carry cell for a lower one, 0.07 ns slower, so
    that its report has a lower clock than `timing.TimingAnalysis` computes from the routed delays; where nextpnr can
    tell the halves apart, both have the same figure.
    """
    (folder / "netlist.json").write_text(netlist)
    log = NEXTPNR.run([*options, "--seed", str(seed), "--no-route", "--json", "netlist.json", "--write", "placed.json"],
                      folder)
    placed = json.loads((folder / "placed.json").read_text())
    annealer = Annealer(placed["modules"][TOP], 1e3 / anneal_mhz)
    annealer.anneal()
    router, known = Router(placed, options, folder), PreRoutes({}, {})
    if preroute_mhz is not None:
        annealer.timing.period = 1e3 / preroute_mhz
        known = preroute(annealer, router)
    routed = router.route_all(annealer, known.routes, known.fixed_routes)
    return PlacerResult(log, routed.report, annealer.timing.analyse(routed.arc_delays), annealer.netlist,
                        routed.arc_delays)
