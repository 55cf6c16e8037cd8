"""Routes of nets in nextpnr's JSON, routed delays in its SDF, and netlists reduced to some of their arcs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .arrays import Bools, Floats
from .netlist import PlacedNetlist

__all__ = ["Routes", "keep_arcs", "read_routed_delays", "read_routes", "routing_attributes", "with_shared_inputs"]

#: Net → its wires, each with the pip (switch) that drives it; "" for the first wire.
Routes = dict[str, dict[str, str]]
#: Strengths of a wire in nextpnr: its router may rip it up, or may not; and that of global networks.
_WEAK, _FIXED, _GLOBAL = 1, 4, "5"
#: Inputs that the cells of a slice or tile share. nextpnr needs all arcs of a net to them, or none.
_SHARED_PORTS = {"CE", "LSR", "WRE"}
#: Wires to shared inputs of a tile: there are fewer of them than slices.
_SHARED_WIRE = re.compile(r"X\d+/Y\d+/(CE|LSR|WRE|WCK|CLK)\w*_SLICE$")
#: First wires of nets that a slice or a block RAM drives.
_FIRST_WIRE = re.compile(r"X\d+/Y\d+/\w+_(SLICE|EBR)$")
#: A pip: its tile, and its two wires, by columns and rows from there.
_PIP = re.compile(r"X(\d+)/Y(\d+)/(-?\d+)_(-?\d+)_(.+)->.+$")
_INTERCONNECT = re.compile(r"\(INTERCONNECT \S+ (\S+)/(\w+) \(\d+:\d+:(\d+)\) \(\d+:\d+:(\d+)\)\)")


def read_routes(module: Mapping[str, Any]) -> Routes:
    """Read the routes of nets that slices and block RAMs drive, without global networks, from nextpnr's JSON."""
    found = {}
    for name, net in module["netnames"].items():
        fields = net["attributes"].get("ROUTING", "").split(";")
        wires = dict(zip(fields[0::3], fields[1::3], strict=False))
        if _GLOBAL not in fields[2::3] and any(_FIRST_WIRE.match(wire) for wire, pip in wires.items() if not pip):
            found[name] = wires
    return found


def routing_attributes(routes: Routes, fixed: Collection[str]) -> dict[str, str]:
    """Net → its attribute ROUTING in nextpnr's format: ``wire;pip;strength``, joined by ``;``.

    The wires of the nets ``fixed`` cannot be ripped up, except those to shared inputs of tiles: with these taken, other
    nets could not reach their slices at all.
    """
    attributes = {}
    for name, wires in routes.items():
        kept = _fixed_wires(wires) if name in fixed else set()
        attributes[name] = ";".join(f"{wire};{pip};{_FIXED if wire in kept else _WEAK}" for wire, pip in wires.items())
    return attributes


def _fixed_wires(wires: Mapping[str, str]) -> set[str]:
    """The wires of a net from its driver to all inputs that are not shared ones."""
    predecessor = {wire: _pip_source(pip) for wire, pip in wires.items() if pip}
    found: set[str] = set()
    for leaf in wires.keys() - set(predecessor.values()):
        wire = None if _SHARED_WIRE.match(leaf) else leaf
        while wire is not None and wire not in found:
            found.add(wire)
            wire = predecessor.get(wire)
    return found


def _pip_source(pip: str) -> str:
    """The wire that a pip leads from."""
    found = _PIP.match(pip)
    assert found is not None, pip
    x, y, columns, rows, name = found.groups()
    return f"X{int(x) + int(columns)}/Y{int(y) + int(rows)}/{name}"


def with_shared_inputs(netlist: PlacedNetlist, arcs: Bools) -> Bools:
    """Some arcs, and all arcs to shared inputs (enables, resets) of those nets of which one such arc is among them."""
    shared = np.isin(netlist.sink_port, list(_SHARED_PORTS))
    nets = np.zeros(len(netlist.driver), np.bool_)
    nets[netlist.net[arcs & shared]] = True
    return arcs | (shared & nets[netlist.net])


def keep_arcs(module: Mapping[str, Any], netlist: PlacedNetlist, arcs: Bools) -> dict[str, Any]:
    """A copy of nextpnr's ``module`` with only some arcs, those inside slices, and clocks."""
    removed = {(netlist.cell_names[netlist.sink[arc]], netlist.sink_port[arc])
               for arc in np.flatnonzero(~arcs & ~netlist.in_slice)}
    used: set[int] = set()
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if bits and cell["port_directions"][port] == "input" and (name, port) not in removed:
                used.add(bits[0])

    def connection(name: str, port: str, bits: list[Any]) -> list[Any]:
        return [] if (name, port) in removed or (bits and bits[0] not in used) else bits

    return {**module, "cells": {
        name: {**cell, "connections": {port: connection(name, port, bits)
                                       for port, bits in cell["connections"].items()}}
        for name, cell in module["cells"].items()
    }, "netnames": {name: net for name, net in module["netnames"].items() if net["bits"][0] in used}}


def read_routed_delays(sdf: str, netlist: PlacedNetlist) -> Floats:
    """The routed delay of each arc, in ns, from nextpnr's SDF: the slowest corner, rising or falling; NaN if absent."""
    found = {(re.sub(r"\\(.)", r"\1", cell), port): max(int(rise), int(fall)) / 1e3
             for cell, port, rise, fall in _INTERCONNECT.findall(sdf)}
    return np.array([found.get((netlist.cell_names[sink], port), np.nan)
                     for sink, port in zip(netlist.sink, netlist.sink_port, strict=True)])
