"""A packed and placed netlist of nextpnr's, as arrays of cells, nets and arcs (an arc joins a net to one input)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import delays
from .arrays import Bools, Floats, Ints
from .fabric import parse_bel

__all__ = ["FF", "LUT", "OTHER", "RAM_PORT", "PlacedNetlist", "read_netlist"]

#: Kinds of cells: any outside slices, a LUT or half a carry cell, a flip-flop, the write port of LUT RAM.
OTHER, LUT, FF, RAM_PORT = range(4)
_KINDS = {"": OTHER, "K": LUT, "FF": FF, "RAMW": RAM_PORT}
#: Clock inputs. Nets that reach one are not timed.
_CLOCK_PORTS = {"CLK", "WCK", "CLKA", "CLKB", "CLKI", "CLKO"}
#: Parameters (name, default) that the eight flip-flops of a tile share, and those that the two of a slice share.
_TILE_PARAMETERS = (("CLKMUX", "CLK"), ("LSRMUX", "LSR"), ("SRMODE", "LSR_OVER_CE"))
_SLICE_PARAMETERS = (("CEMUX", "CE"), ("GSR", "ENABLED"))


@dataclass
class PlacedNetlist:
    """Cells, nets and arcs of a placed netlist. Delays are in ns. Clock nets are left out.

    Cells: ``cell_names``; ``cell_types``; ``kind``; ``x`` and ``y``, column and row; ``lane``, 0 to 7 or -1;
    ``movable`` by themselves or with their partner; ``reads_m``, uses its slice's input M; ``carry``, half of a carry
    cell; ``lut_ram``; ``tile_key`` and ``slice_key``, equal for flip-flops that may share a tile or a slice;
    ``partner``, the flip-flop of a LUT or the LUT of a flip-flop at the other end of a wire inside the slice, or -1.

    Nets: ``net_names``; ``driver``, a cell, and ``driver_port``; ``launch``, the clock-to-output delay of a register
    that drives it, or -1; ``net_order``, nets in topological order.

    Arcs: ``net``; ``sink``, a cell, and ``sink_port``; ``in_slice``, a fixed wire inside a slice; ``setup``, the setup
    time of a register at its end, or -1.

    Ranges: arcs ``net_start[n]`` to ``net_start[n + 1]`` belong to net n. The same range of ``fanin_start`` gives the
    arcs ``fanin_arc`` into the cell that drives net n, with the delays ``fanin_delay`` through that cell. The range of
    ``cell_start`` gives ``cell_arc``, the arcs of a cell that leave its slice.
    """

    cell_names: list[str]
    cell_types: list[str]
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
    net_names: list[str]
    driver: Ints
    driver_port: list[str]
    launch: Floats
    net_start: Ints
    net_order: Ints
    net: Ints
    sink: Ints
    sink_port: list[str]
    in_slice: Bools
    setup: Floats
    fanin_start: Ints
    fanin_arc: Ints
    fanin_delay: Floats
    cell_start: Ints
    cell_arc: Ints


def read_netlist(module: Mapping[str, Any]) -> PlacedNetlist:
    """Read the top module of nextpnr's JSON of a placed netlist.

    Raises `ValueError` if a cell has no bel, or if there is a combinational loop.
    """
    cells = module["cells"]
    names, types = list(cells), [cell["type"] for cell in cells.values()]
    n_cells = len(names)
    kind = np.zeros(n_cells, np.int8)
    x, y, lane, partner = (np.full(n_cells, start, np.int32) for start in (0, 0, -1, -1))
    movable, reads_m, carry, lut_ram = (np.zeros(n_cells, np.bool_) for _ in range(4))
    tile_key, slice_key = np.zeros(n_cells, np.int32), np.zeros(n_cells, np.int32)
    tile_keys: dict[Any, int] = {}
    slice_keys: dict[Any, int] = {}
    drivers: dict[int, tuple[int, str]] = {}
    sinks: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for i, (name, cell) in enumerate(cells.items()):
        if "NEXTPNR_BEL" not in cell["attributes"]:
            raise ValueError(f"Every cell must have a bel, but {name} has none; nextpnr is to place the netlist first")
        x[i], y[i], bel_kind, lane[i] = parse_bel(cell["attributes"]["NEXTPNR_BEL"])
        kind[i] = _KINDS[bel_kind]
        nets = {port: bits[0] for port, bits in cell["connections"].items() if bits and isinstance(bits[0], int)}
        for port, bit in nets.items():
            if cell["port_directions"][port] == "output":
                drivers[bit] = i, port
            else:
                sinks[bit].append((i, port))
        parameters = {name: value.strip() for name, value in cell["parameters"].items()}
        if kind[i] == LUT:
            mode = parameters.get("MODE", "LOGIC")
            carry[i], lut_ram[i] = mode == "CCU2", mode == "DPRAM"
            reads_m[i] = not nets.keys().isdisjoint(("F1", "FXA", "FXB"))
            movable[i] = mode == "LOGIC" and not reads_m[i] and "OFX" not in nets
        elif kind[i] == FF:
            reads_m[i] = "M" in nets
            movable[i] = True
            shared = [nets.get("CLK"), nets.get("LSR"), *(parameters.get(*which) for which in _TILE_PARAMETERS)]
            tile_key[i] = tile_keys.setdefault(tuple(shared), len(tile_keys))
            shared = [nets.get("CE"), *(parameters.get(*which) for which in _SLICE_PARAMETERS)]
            slice_key[i] = slice_keys.setdefault(tuple(shared), len(slice_keys))
    bits = [bit for bit in drivers if sinks[bit] and not any(port in _CLOCK_PORTS for _, port in sinks[bit])]
    name_of_bit = {net["bits"][0]: name for name, net in module["netnames"].items()}
    driver = np.array([drivers[bit][0] for bit in bits], np.int32)
    driver_port = [drivers[bit][1] for bit in bits]
    net = np.repeat(np.arange(len(bits), dtype=np.int32), [len(sinks[bit]) for bit in bits])
    sink = np.array([cell for bit in bits for cell, _ in sinks[bit]], np.int32)
    sink_port = [port for bit in bits for _, port in sinks[bit]]
    in_slice = np.array([(driver_port[n], port) in delays.IN_SLICE for n, port in zip(net, sink_port, strict=True)])
    for arc in np.flatnonzero(in_slice):
        a, b = driver[net[arc]], sink[arc]
        if sink_port[arc] == "DI":
            partner[a], partner[b] = b, a
            movable[b] = movable[a]
        elif sink_port[arc] != "FCI":
            movable[[a, b]] = False  # parts of one multiplexer
    arcs_into: defaultdict[int, list[int]] = defaultdict(list)
    for n_arc, reached in enumerate(map(int, sink)):
        arcs_into[reached].append(n_arc)
    setup = np.array([-1. if (time := delays.setup_time(types[cell], port)) is None else time
                      for cell, port in zip(sink, sink_port, strict=True)])
    launch = np.full(len(bits), -1.)
    fanin: list[list[tuple[int, float]]] = []
    for n, port in enumerate(driver_port):
        cell = int(driver[n])
        clock_to_output = delays.clock_to_output(types[cell])
        if clock_to_output is not None:
            launch[n] = clock_to_output
            fanin.append([])
            continue
        half = int(lane[cell] & 1) if carry[cell] else None
        fanin.append([(arc, delay) for arc in arcs_into[cell] if setup[arc] < 0
                      and (delay := delays.through(types[cell], half, sink_port[arc], port)) is not None])
    arcs_of = [[arc for arc in arcs_into[cell] if not in_slice[arc]] for cell in range(n_cells)]
    for arc in np.flatnonzero(~in_slice & (driver[net] != sink)):
        arcs_of[driver[net[arc]]].append(int(arc))
    return PlacedNetlist(
        names, types, kind, x, y, lane, movable, reads_m, carry, lut_ram, tile_key, slice_key, partner,
        [name_of_bit[bit] for bit in bits], driver, driver_port, launch, _starts([len(sinks[bit]) for bit in bits]),
        _topological_order(fanin, net), net, sink, sink_port, in_slice, setup, _starts([len(arcs) for arcs in fanin]),
        np.array([arc for arcs in fanin for arc, _ in arcs], np.int32),
        np.array([delay for arcs in fanin for _, delay in arcs]), _starts([len(arcs) for arcs in arcs_of]),
        np.array([arc for arcs in arcs_of for arc in arcs], np.int32))


def _starts(lengths: list[int]) -> Ints:
    """The start of each of consecutive ranges of these lengths, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _topological_order(fanin: list[list[tuple[int, float]]], net: Ints) -> Ints:
    """The nets, each behind all that drive its driver."""
    fanout: defaultdict[int, list[int]] = defaultdict(list)
    missing = [len(arcs) for arcs in fanin]
    for n, arcs in enumerate(fanin):
        for arc, _ in arcs:
            fanout[net[arc]].append(n)
    order = [n for n, count in enumerate(missing) if not count]
    for n in order:
        for reached in fanout[n]:
            missing[reached] -= 1
            if not missing[reached]:
                order.append(reached)
    if len(order) < len(fanin):
        raise ValueError(f"Logic must not run in loops, but {len(fanin) - len(order)} nets do")
    return np.array(order, np.int32)
