"""Routing with nextpnr-ecp5: of cells where they are told to be, and with some routes given."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tools import NEXTPNR
from .packed import Bools, Floats, Packed
from .refine import Refinement
from .routes import Routes, partial, routed_wires, routes, shared_with, written

__all__ = ["TOP", "Routed", "Router"]

#: What nextpnr calls the top of what it writes.
TOP = "top"
#: Of what nextpnr writes of itself, all that it must read again: other settings would override its options.
_KEPT = ("arch.type", "arch.name", "arch.speed", "arch.package", "synth", "pack")
#: Whatever the seed of a placement, routing has this one.
_ROUTING = ("--seed", "1")
#: Held where it is, whatever comes.
_FIXED = format(5, "032b")
_PLACE = """\
import json
sites = json.load(open("sites.json"))
for cell in ctx.cells:
    if cell.first in sites:
        cell.second.setAttr("BEL", sites[cell.first])
"""
_BIND = """\
import json
strengths = {"1": STRENGTH_WEAK, "4": STRENGTH_FIXED}
for name, said in json.load(open("routes.json")).items():
    net, said = ctx.nets[name], said.split(";")
    for wire, pip, strength in zip(said[0::3], said[1::3], said[2::3]):
        if pip:
            ctx.bindPip(pip, net, strengths[strength])
        else:
            ctx.bindWire(wire, net, strengths[strength])
"""


@dataclass(frozen=True)
class Routed:
    """``report``: nextpnr's; ``wires``: the routed delay of each arc, in ns, NaN where there is none; ``routes``: of
    each net.
    """

    report: Any
    wires: Floats
    routes: Routes


class Router:
    """Routes a packed netlist, ``placed``, with cells where `Refinement` has them, in ``folder``.

    ``options``: nextpnr's.
    """

    def __init__(self, placed: Mapping[str, Any], options: list[str], folder: Path):
        self._placed, self._options, self._folder = placed, options, folder

    def whole(self, refinement: Refinement, known: Routes, held: Collection[str]) -> Routed:
        """All wires. Those of ``known`` routes are there from the beginning; those of nets ``held`` stay."""
        said = written(known, held)
        if not NEXTPNR.scripted:
            return self._packed(refinement, self._placed["modules"][TOP], said)
        for name, text in (("sites.json", json.dumps(refinement.sites())), ("routes.json", json.dumps(said)),
                           ("place.py", _PLACE), ("bind.py", _BIND)):
            (self._folder / name).write_text(text)
        source = ["--json", "netlist.json", "--pre-place", "place.py", "--pre-route", "bind.py"]
        return self._run(refinement.cells, source)

    def alone(self, refinement: Refinement, arcs: Bools, known: Routes) -> Routed:
        """Only some arcs, and those that must be with them; what is ``known`` stays."""
        cells = refinement.cells
        module = partial(self._placed["modules"][TOP], cells, shared_with(cells, arcs))
        return self._packed(refinement, module, written(known, known))

    def _packed(self, refinement: Refinement, module: Mapping[str, Any], said: Mapping[str, str]) -> Routed:
        cells, nets = dict(module["cells"]), dict(module["netnames"])
        for name, site in refinement.sites().items():
            cells[name] = {**cells[name], "attributes": {
                **cells[name]["attributes"], "NEXTPNR_BEL": site, "BEL_STRENGTH": _FIXED}}
        for name in said.keys() & nets.keys():
            text = said[name]
            nets[name] = {**nets[name], "attributes": {**nets[name]["attributes"], "ROUTING": text}}
        module = {**module, "cells": cells, "netnames": nets,
                  "settings": {name: module["settings"][name] for name in _KEPT if name in module["settings"]}}
        (self._folder / "packed.json").write_text(json.dumps({**self._placed, "modules": {TOP: module}}))
        return self._run(refinement.cells, ["--no-pack", "--json", "packed.json"])

    def _run(self, cells: Packed, source: list[str]) -> Routed:
        NEXTPNR.run([*self._options, *source, *_ROUTING, "--report", "report.json", "--sdf", "wires.sdf", "--write",
                     "routed.json"], self._folder)
        return Routed(json.loads((self._folder / "report.json").read_text()),
                      routed_wires((self._folder / "wires.sdf").read_text(), cells),
                      routes(json.loads((self._folder / "routed.json").read_text())["modules"][TOP]))
