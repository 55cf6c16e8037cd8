"""Routing by nextpnr-ecp5 of a placement that is given to it, with some routes given too."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tools import NEXTPNR
from .annealer import Annealer
from .arrays import Bools, Floats
from .netlist import PlacedNetlist
from .routes import Routes, keep_arcs, read_routed_delays, read_routes, routing_attributes, with_shared_inputs

__all__ = ["TOP", "Router", "RoutingResult"]

#: Nextpnr's name of the top module in JSON that it writes.
TOP = "top"
#: Settings in JSON of nextpnr's that it must read again. Others would override its options.
_KEPT_SETTINGS = ("arch.type", "arch.name", "arch.speed", "arch.package", "synth", "pack")
#: Routing has a seed of its own, which does not follow that of placement.
_SEED = ("--seed", "1")
#: Strength with which cells are fixed to their bels, as JSON of nextpnr's has it.
_FIXED_BEL = format(5, "032b")
_PLACE_SCRIPT = """\
import json
bels = json.load(open("bels.json"))
for cell in ctx.cells:
    if cell.first in bels:
        cell.second.setAttr("BEL", bels[cell.first])
"""
_ROUTE_SCRIPT = """\
import json
strengths = {"1": STRENGTH_WEAK, "4": STRENGTH_FIXED}
for name, attribute in json.load(open("routes.json")).items():
    net, fields = ctx.nets[name], attribute.split(";")
    for wire, pip, strength in zip(fields[0::3], fields[1::3], fields[2::3]):
        if pip:
            ctx.bindPip(pip, net, strengths[strength])
        else:
            ctx.bindWire(wire, net, strengths[strength])
"""


@dataclass(frozen=True)
class RoutingResult:
    """``report``: nextpnr's. ``arc_delays``: routed delay of each arc, in ns, NaN if not routed. ``routes``: by net."""

    report: Any
    arc_delays: Floats
    routes: Routes


class Router:
    """Routes a netlist with the placement of an `Annealer`.

    ``placed``: nextpnr's JSON of the placed netlist. ``options``: nextpnr's. ``folder``: for its files; netlist.json in
    it is the netlist that was placed.
    """

    def __init__(self, placed: Mapping[str, Any], options: list[str], folder: Path):
        self._placed, self._options, self._folder = placed, options, folder

    def route_all(self, annealer: Annealer, routes: Routes, fixed: Collection[str]) -> RoutingResult:
        """Route all arcs, starting from ``routes``. The router may rip these up, except those of the nets ``fixed``."""
        attributes = routing_attributes(routes, fixed)
        if not NEXTPNR.scripted:
            return self._route_packed(annealer, self._placed["modules"][TOP], attributes)
        for name, text in (("bels.json", json.dumps(annealer.bels())), ("routes.json", json.dumps(attributes)),
                           ("place.py", _PLACE_SCRIPT), ("route.py", _ROUTE_SCRIPT)):
            (self._folder / name).write_text(text)
        source = ["--json", "netlist.json", "--pre-place", "place.py", "--pre-route", "route.py"]
        return self._run(annealer.netlist, source)

    def route_arcs(self, annealer: Annealer, arcs: Bools, routes: Routes) -> RoutingResult:
        """Route only ``arcs``, and those to shared inputs that they imply, with ``routes`` fixed."""
        netlist = annealer.netlist
        module = keep_arcs(self._placed["modules"][TOP], netlist, with_shared_inputs(netlist, arcs))
        return self._route_packed(annealer, module, routing_attributes(routes, routes))

    def _route_packed(self, annealer: Annealer, module: Mapping[str, Any],
                      attributes: Mapping[str, str]) -> RoutingResult:
        """Route a packed netlist, whose bels and routes are attributes in its JSON."""
        cells, nets = dict(module["cells"]), dict(module["netnames"])
        for name, bel in annealer.bels().items():
            cells[name] = {**cells[name], "attributes": {
                **cells[name]["attributes"], "NEXTPNR_BEL": bel, "BEL_STRENGTH": _FIXED_BEL}}
        for name in attributes.keys() & nets.keys():
            nets[name] = {**nets[name], "attributes": {**nets[name]["attributes"], "ROUTING": attributes[name]}}
        module = {**module, "cells": cells, "netnames": nets,
                  "settings": {name: module["settings"][name] for name in _KEPT_SETTINGS if name in module["settings"]}}
        (self._folder / "packed.json").write_text(json.dumps({**self._placed, "modules": {TOP: module}}))
        return self._run(annealer.netlist, ["--no-pack", "--json", "packed.json"])

    def _run(self, netlist: PlacedNetlist, source: list[str]) -> RoutingResult:
        NEXTPNR.run([*self._options, *source, *_SEED, "--report", "report.json", "--sdf", "delays.sdf", "--write",
                     "routed.json"], self._folder)
        return RoutingResult(json.loads((self._folder / "report.json").read_text()),
                             read_routed_delays((self._folder / "delays.sdf").read_text(), netlist),
                             read_routes(json.loads((self._folder / "routed.json").read_text())["modules"][TOP]))
