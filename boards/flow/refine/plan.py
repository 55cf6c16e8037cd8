"""What is where in a placement, and what the fabric allows there."""

from __future__ import annotations

from typing import NamedTuple

from .compiled import compiled
from .packed import Bools
from .sites import LANES, Fabric, Ints

__all__ = ["Cells", "Plan", "ffs_fit", "lut_fits", "put", "swap", "tile_at"]


class Cells(NamedTuple):
    """Of each cell what `packed.Packed` says, and where it is: column, row, and slot (8 × tile + lane) or -1."""

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


class Plan(NamedTuple):
    """What is where, -1 for nothing: LUT and flip-flop of each slot, write port of LUT RAM of each tile."""

    comb: Ints
    ff: Ints
    ramw: Ints


@compiled
def tile_at(x: int, y: int, fabric: Fabric) -> int:
    if x < 0 or y < 0 or x >= fabric.tile.shape[0] or y >= fabric.tile.shape[1]:
        return -1
    return int(fabric.tile[x, y])


@compiled
def ff_fits(ff: int, slot: int, plan: Plan, cells: Cells) -> bool:
    """Whether the flip-flop may be in this slot, beside those that are in the tile and the slice now."""
    first = slot - slot % LANES
    for other in range(first, first + LANES):
        o = plan.ff[other]
        if o >= 0 and o != ff and other != slot and cells.tile_key[o] != cells.tile_key[ff]:
            return False
    mate, comb = plan.ff[slot ^ 1], plan.comb[slot]
    if mate >= 0 and mate != ff and cells.slice_key[mate] != cells.slice_key[ff]:
        return False
    return not (comb >= 0 and cells.reads_m[comb] and cells.reads_m[ff])


@compiled
def lut_fits(slot: int, plan: Plan, cells: Cells) -> bool:
    """Whether a LUT may be in this slot: no carry cell beside it, nor is the slice a write port's."""
    mate = plan.comb[slot ^ 1]
    return not (mate >= 0 and cells.carry[mate]) and not (plan.ramw[slot // LANES] >= 0 and slot % LANES // 2 == 2)


@compiled
def ffs_fit(a: Ints, b: Ints, ffs: Bools, plan: Plan, cells: Cells) -> bool:
    for n in range(len(a)):
        if ffs[n]:
            one, other = plan.ff[a[n]], plan.ff[b[n]]
            if one >= 0 and not ff_fits(one, a[n], plan, cells):
                return False
            if other >= 0 and not ff_fits(other, b[n], plan, cells):
                return False
    return True


@compiled
def put(cell: int, slot: int, cells: Cells, fabric: Fabric) -> None:
    if cell >= 0:
        tile = slot // LANES
        cells.x[cell], cells.y[cell], cells.slot[cell] = fabric.x[tile], fabric.y[tile], slot


@compiled
def swap(a: Ints, b: Ints, combs: Bools, ffs: Bools, plan: Plan, cells: Cells, fabric: Fabric) -> None:
    """Exchange what is in slots ``a`` and ``b``, LUTs and flip-flops each where the array says so."""
    for n in range(len(a)):
        if combs[n]:
            one, other = plan.comb[a[n]], plan.comb[b[n]]
            plan.comb[a[n]], plan.comb[b[n]] = other, one
            put(one, b[n], cells, fabric)
            put(other, a[n], cells, fabric)
        if ffs[n]:
            one, other = plan.ff[a[n]], plan.ff[b[n]]
            plan.ff[a[n]], plan.ff[b[n]] = other, one
            put(one, b[n], cells, fabric)
            put(other, a[n], cells, fabric)
