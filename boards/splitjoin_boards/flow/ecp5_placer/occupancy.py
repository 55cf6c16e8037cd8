"""Placement (cell → slot) and occupancy (slot → cell) of the fabric, and the legality checks of slices and tiles."""

from __future__ import annotations

from typing import NamedTuple

from .arrays import Bools, Ints, compiled
from .fabric import LANES, Fabric

__all__ = ["Occupancy", "Placement", "flip_flop_is_legal", "flip_flops_are_legal", "lut_is_legal", "place_cell",
           "swap_slots", "tile_at"]


class Placement(NamedTuple):
    """For each cell, its location and what its legality depends on.

    ``x``, ``y``: column and row. ``slot``: 8 × tile + lane, or -1 outside slices. The other fields are those of
    `netlist.PlacedNetlist`.
    """

    x: Ints
    y: Ints
    slot: Ints
    is_ff: Bools
    movable: Bools
    reads_m: Bools
    carry: Bools
    tile_key: Ints
    slice_key: Ints
    partner: Ints


class Occupancy(NamedTuple):
    """For each place, its cell or -1. ``lut``, ``ff``: by slot. ``ram_port``: the write port of LUT RAM, by tile."""

    lut: Ints
    ff: Ints
    ram_port: Ints


@compiled
def tile_at(x: int, y: int, fabric: Fabric) -> int:
    """The number of the tile at a column and row, or -1."""
    if x < 0 or y < 0 or x >= fabric.tile.shape[0] or y >= fabric.tile.shape[1]:
        return -1
    return int(fabric.tile[x, y])


@compiled
def flip_flop_is_legal(ff: int, slot: int, occupancy: Occupancy, placement: Placement) -> bool:
    """True if flip-flop ``ff`` may be in ``slot`` beside the present ones of its tile and slice."""
    first = slot - slot % LANES
    for other_slot in range(first, first + LANES):
        other = occupancy.ff[other_slot]
        if other >= 0 and other != ff and other_slot != slot and placement.tile_key[other] != placement.tile_key[ff]:
            return False
    neighbour, lut = occupancy.ff[slot ^ 1], occupancy.lut[slot]
    if neighbour >= 0 and neighbour != ff and placement.slice_key[neighbour] != placement.slice_key[ff]:
        return False
    return not (lut >= 0 and placement.reads_m[lut] and placement.reads_m[ff])


@compiled
def lut_is_legal(slot: int, occupancy: Occupancy, placement: Placement) -> bool:
    """True if a LUT may be in ``slot``: no carry cell is in its slice, nor does a write port use the slice."""
    neighbour = occupancy.lut[slot ^ 1]
    return not (neighbour >= 0 and placement.carry[neighbour]) and not (
        occupancy.ram_port[slot // LANES] >= 0 and slot % LANES // 2 == 2)


@compiled
def flip_flops_are_legal(a: Ints, b: Ints, swap_ff: Bools, occupancy: Occupancy, placement: Placement) -> bool:
    """True if all flip-flops that a swap of slots ``a`` and ``b`` has moved are legal."""
    for n in range(len(a)):
        if swap_ff[n]:
            at_a, at_b = occupancy.ff[a[n]], occupancy.ff[b[n]]
            if at_a >= 0 and not flip_flop_is_legal(at_a, a[n], occupancy, placement):
                return False
            if at_b >= 0 and not flip_flop_is_legal(at_b, b[n], occupancy, placement):
                return False
    return True


@compiled
def place_cell(cell: int, slot: int, placement: Placement, fabric: Fabric) -> None:
    """Set the location of ``cell``, if it is one (not -1)."""
    if cell >= 0:
        tile = slot // LANES
        placement.x[cell], placement.y[cell], placement.slot[cell] = fabric.x[tile], fabric.y[tile], slot


@compiled
def swap_slots(a: Ints, b: Ints, swap_lut: Bools, swap_ff: Bools, occupancy: Occupancy, placement: Placement,
               fabric: Fabric) -> None:
    """Exchange the cells of slots ``a[n]`` and ``b[n]``: LUTs where ``swap_lut[n]``, flip-flops where ``swap_ff[n]``.

    The same call again undoes it.
    """
    for n in range(len(a)):
        if swap_lut[n]:
            at_a, at_b = occupancy.lut[a[n]], occupancy.lut[b[n]]
            occupancy.lut[a[n]], occupancy.lut[b[n]] = at_b, at_a
            place_cell(at_a, b[n], placement, fabric)
            place_cell(at_b, a[n], placement, fabric)
        if swap_ff[n]:
            at_a, at_b = occupancy.ff[a[n]], occupancy.ff[b[n]]
            occupancy.ff[a[n]], occupancy.ff[b[n]] = at_b, at_a
            place_cell(at_a, b[n], placement, fabric)
            place_cell(at_b, a[n], placement, fabric)
