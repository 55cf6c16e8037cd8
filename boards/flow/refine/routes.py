"""Routes of nets as nextpnr writes them, and what nextpnr is to route with only some wires of a netlist in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .packed import Bools, Floats, Packed

__all__ = ["Routes", "partial", "routed_wires", "routes", "shared_with", "written"]

#: Of each net, its wires, and which switch drives each; none drives the first.
Routes = dict[str, dict[str, str]]
#: How strongly nextpnr holds a wire: others may take it away, or not; and what it says of global networks.
_WEAK, _HELD, _GLOBAL = 1, 4, "5"
#: All in a slice or a tile must have these, or none, so that they are kept or left out by net.
_SHARED = {"CE", "LSR", "WRE"}
#: Inputs of a tile that slices share: there are fewer of them than slices.
_FEW = re.compile(r"X\d+/Y\d+/(CE|LSR|WRE|WCK|CLK)\w*_SLICE$")
#: Where nets begin.
_FIRST = re.compile(r"X\d+/Y\d+/\w+_(SLICE|EBR)$")
#: A switch: its tile, and its two wires, by columns and rows from there.
_PIP = re.compile(r"X(\d+)/Y(\d+)/(-?\d+)_(-?\d+)_(.+)->.+$")
_WIRE = re.compile(r"\(INTERCONNECT \S+ (\S+)/(\w+) \(\d+:\d+:(\d+)\) \(\d+:\d+:(\d+)\)\)")


def routes(module: Mapping[str, Any]) -> Routes:
    """Those in nextpnr's JSON of a routed netlist, of what slices and block RAMs drive; no global networks."""
    found = {}
    for name, net in module["netnames"].items():
        said = net["attributes"].get("ROUTING", "").split(";")
        wires = dict(zip(said[0::3], said[1::3], strict=False))
        if _GLOBAL not in said[2::3] and any(_FIRST.match(wire) for wire, pip in wires.items() if not pip):
            found[name] = wires
    return found


def written(which: Routes, held: Collection[str]) -> dict[str, str]:
    """What nextpnr writes of routes. No other net may take away wires of those ``held``, but for inputs of tiles that
    are few: with these taken, others could not reach their slices at all.
    """
    said = {}
    for name, wires in which.items():
        kept = _reaching(wires) if name in held else set()
        said[name] = ";".join(f"{wire};{pip};{_HELD if wire in kept else _WEAK}" for wire, pip in wires.items())
    return said


def _reaching(wires: Mapping[str, str]) -> set[str]:
    """The wires of a net from its source to inputs that are not few."""
    before = {wire: _source(pip) for wire, pip in wires.items() if pip}
    found: set[str] = set()
    for leaf in wires.keys() - set(before.values()):
        at = None if _FEW.match(leaf) else leaf
        while at is not None and at not in found:
            found.add(at)
            at = before.get(at)
    return found


def _source(pip: str) -> str:
    """The wire that a switch leads from."""
    found = _PIP.match(pip)
    assert found is not None, pip
    x, y, columns, rows, name = found.groups()
    return f"X{int(x) + int(columns)}/Y{int(y) + int(rows)}/{name}"


def shared_with(cells: Packed, close: Bools) -> Bools:
    """Some arcs, and those that nextpnr must have with them: enables and resets of the same nets."""
    few = np.isin(cells.sink_port, list(_SHARED))
    nets = np.zeros(len(cells.source), np.bool_)
    nets[cells.net[close & few]] = True
    return close | (few & nets[cells.net])


def partial(placed: Mapping[str, Any], cells: Packed, kept: Bools) -> dict[str, Any]:
    """The module with only some arcs, beside those inside slices and of clocks."""
    left_out = {(cells.names[cells.sink[arc]], cells.sink_port[arc]) for arc in np.flatnonzero(~kept & ~cells.inside)}
    needed: set[int] = set()
    for name, cell in placed["cells"].items():
        for port, bits in cell["connections"].items():
            if bits and cell["port_directions"][port] == "input" and (name, port) not in left_out:
                needed.add(bits[0])

    def connection(name: str, port: str, bits: list[Any]) -> list[Any]:
        return [] if (name, port) in left_out or (bits and bits[0] not in needed) else bits

    return {**placed, "cells": {
        name: {**cell, "connections": {at: connection(name, at, bits) for at, bits in cell["connections"].items()}}
        for name, cell in placed["cells"].items()
    }, "netnames": {name: net for name, net in placed["netnames"].items() if net["bits"][0] in needed}}


def routed_wires(sdf: str, cells: Packed) -> Floats:
    """The delay of each arc, in ns, by nextpnr's SDF of a routed design: the slowest corner, rising or falling.

    NaN where it has none.
    """
    found = {(re.sub(r"\\(.)", r"\1", cell), port): max(int(rises), int(falls)) / 1e3
             for cell, port, rises, falls in _WIRE.findall(sdf)}
    return np.array([found.get((cells.names[sink], port), np.nan)
                     for sink, port in zip(cells.sink, cells.sink_port, strict=True)])
