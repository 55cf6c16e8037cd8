"""A packed and placed netlist of nextpnr's, in arrays: cells, nets, and arcs, which are wires to one input each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import delays
from .sites import Ints, site

__all__ = ["COMB", "FF", "OTHER", "RAMW", "Packed", "packed"]

#: Kinds of cells: a LUT or half a carry cell, a flip-flop, the write port of LUT RAM, and anything outside slices.
OTHER, COMB, FF, RAMW = range(4)
_KINDS = {"": OTHER, "K": COMB, "FF": FF, "RAMW": RAMW}
#: What reads these is not on a timed path.
_CLOCKS = {"CLK", "WCK", "CLKA", "CLKB", "CLKI", "CLKO"}
#: Of flip-flops: the eight of a tile agree in what the first name says, the two of a slice in the second's as well.
_TILE = (("CLKMUX", "CLK"), ("LSRMUX", "LSR"), ("SRMODE", "LSR_OVER_CE"))
_SLICE = (("CEMUX", "CE"), ("GSR", "ENABLED"))

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass
class Packed:
    """Of each cell: its name, type, kind, column, row and lane; whether it may be moved by itself, reads its slice's M,
    is half of a carry cell, is LUT RAM; what a tile's and what a slice's flip-flops share, as numbers; and ``partner``,
    the flip-flop of a LUT or the LUT of a flip-flop that a wire inside the slice joins, or -1.

    Of each net: its name; the cell that drives it and from where; ``launch``, when a register does, or -1; and from
    ``net_first`` its arcs. ``order``: nets, each behind those that it depends on. Of each arc: its net, the cell that
    it reaches and where, whether it is inside a slice, and ``setup``, if it ends at a register, or -1. ``fed_first``,
    ``fed_by``, ``fed_in``: the arcs that a net depends on, and what their way through its cell takes. ``arcs_first``,
    ``arcs``: the arcs of each cell that are not inside its slice.
    """

    names: list[str]
    types: list[str]
    kind: npt.NDArray[np.int8]
    x: Ints
    y: Ints
    lane: Ints
    movable: Bools
    reads_m: Bools
    carry: Bools
    lut_ram: Bools
    tile_key: Ints
    slice_key: Ints
    partner: Ints
    nets: list[str]
    source: Ints
    source_port: list[str]
    launch: Floats
    net_first: Ints
    order: Ints
    net: Ints
    sink: Ints
    sink_port: list[str]
    inside: Bools
    setup: Floats
    fed_first: Ints
    fed_by: Ints
    fed_in: Floats
    arcs_first: Ints
    arcs: Ints


def packed(module: Mapping[str, Any]) -> Packed:
    """Read the top module of nextpnr's JSON. Raises `ValueError` where a cell has no site, or logic runs in a loop."""
    cells = module["cells"]
    names, types = list(cells), [cell["type"] for cell in cells.values()]
    n = len(names)
    kind = np.zeros(n, np.int8)
    x, y, lane, partner = (np.full(n, start, np.int32) for start in (0, 0, -1, -1))
    movable, reads_m, carry, lut_ram = (np.zeros(n, np.bool_) for _ in range(4))
    tile_key, slice_key = np.zeros(n, np.int32), np.zeros(n, np.int32)
    tile_keys: dict[Any, int] = {}
    slice_keys: dict[Any, int] = {}
    drivers: dict[int, tuple[int, str]] = {}
    sinks: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for i, (name, cell) in enumerate(cells.items()):
        if "NEXTPNR_BEL" not in cell["attributes"]:
            raise ValueError(f"Every cell must have a site, but {name} has none; nextpnr is to place the netlist first")
        x[i], y[i], part, lane[i] = site(cell["attributes"]["NEXTPNR_BEL"])
        kind[i] = _KINDS[part]
        nets = {port: bits[0] for port, bits in cell["connections"].items() if bits and isinstance(bits[0], int)}
        for port, bit in nets.items():
            if cell["port_directions"][port] == "output":
                drivers[bit] = i, port
            else:
                sinks[bit].append((i, port))
        said = {name: value.strip() for name, value in cell["parameters"].items()}
        if kind[i] == COMB:
            mode = said.get("MODE", "LOGIC")
            carry[i], lut_ram[i] = mode == "CCU2", mode == "DPRAM"
            reads_m[i] = not nets.keys().isdisjoint(("F1", "FXA", "FXB"))
            movable[i] = mode == "LOGIC" and not reads_m[i] and "OFX" not in nets
        elif kind[i] == FF:
            reads_m[i] = "M" in nets
            movable[i] = True
            shared = [nets.get("CLK"), nets.get("LSR"), *(said.get(*which) for which in _TILE)]
            tile_key[i] = tile_keys.setdefault(tuple(shared), len(tile_keys))
            shared = [nets.get("CE"), *(said.get(*which) for which in _SLICE)]
            slice_key[i] = slice_keys.setdefault(tuple(shared), len(slice_keys))
    bits = [bit for bit in drivers if sinks[bit] and not any(port in _CLOCKS for _, port in sinks[bit])]
    named = {net["bits"][0]: name for name, net in module["netnames"].items()}
    source = np.array([drivers[bit][0] for bit in bits], np.int32)
    source_port = [drivers[bit][1] for bit in bits]
    net = np.repeat(np.arange(len(bits), dtype=np.int32), [len(sinks[bit]) for bit in bits])
    sink = np.array([cell for bit in bits for cell, _ in sinks[bit]], np.int32)
    sink_port = [port for bit in bits for _, port in sinks[bit]]
    inside = np.array([(source_port[of], port) in delays.DEDICATED for of, port in zip(net, sink_port, strict=True)])
    for arc in np.flatnonzero(inside):
        one, other = source[net[arc]], sink[arc]
        if sink_port[arc] == "DI":
            partner[one], partner[other] = other, one
            movable[other] = movable[one]
        elif sink_port[arc] != "FCI":
            movable[[one, other]] = False  # parts of one multiplexer
    arcs_in: defaultdict[int, list[int]] = defaultdict(list)
    for n_arc, reached in enumerate(map(int, sink)):
        arcs_in[reached].append(n_arc)
    setup = np.array([-1. if (at := delays.setup(types[cell], port)) is None else at
                      for cell, port in zip(sink, sink_port, strict=True)])
    launch = np.full(len(bits), -1.)
    fed: list[list[tuple[int, float]]] = []
    for at, port in enumerate(source_port):
        driver = int(source[at])
        starts = delays.launch(types[driver], port)
        if starts is not None:
            launch[at] = starts
            fed.append([])
            continue
        half = int(lane[driver] & 1) if carry[driver] else None
        fed.append([(arc, taken) for arc in arcs_in[driver] if setup[arc] < 0
                    and (taken := delays.through(types[driver], half, sink_port[arc], port)) is not None])
    around = [[arc for arc in arcs_in[cell] if not inside[arc]] for cell in range(n)]
    for arc in np.flatnonzero(~inside & (source[net] != sink)):
        around[source[net[arc]]].append(int(arc))
    return Packed(
        names, types, kind, x, y, lane, movable, reads_m, carry, lut_ram, tile_key, slice_key, partner,
        [named[bit] for bit in bits], source, source_port, launch, _starts([len(sinks[bit]) for bit in bits]),
        _order(fed, net), net, sink, sink_port, inside, setup, _starts([len(arcs) for arcs in fed]),
        np.array([arc for arcs in fed for arc, _ in arcs], np.int32),
        np.array([taken for arcs in fed for _, taken in arcs]), _starts([len(arcs) for arcs in around]),
        np.array([arc for arcs in around for arc in arcs], np.int32))


def _starts(lengths: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _order(fed: list[list[tuple[int, float]]], net: Ints) -> Ints:
    users: defaultdict[int, list[int]] = defaultdict(list)
    left = [len(arcs) for arcs in fed]
    for of, arcs in enumerate(fed):
        for arc, _ in arcs:
            users[net[arc]].append(of)
    order = [of for of, n in enumerate(left) if not n]
    for of in order:
        for user in users[of]:
            left[user] -= 1
            if not left[user]:
                order.append(user)
    if len(order) < len(fed):
        raise ValueError(f"Logic must not run in loops, but {len(fed) - len(order)} nets do")
    return np.array(order, np.int32)
