"""Moves of cells among sites, each kept if it lowers a cost, or at random if it raises it by little: annealing.

The cost of an arc is exp((its delay - what it may take) / ``tau``), straight from e^3 on, so that it is high where
paths are late, and next to nothing where there is time; and ``weight`` of its net for each column and row crossed.
A cell costs the sum over its arcs.

All here are compiled: arrays come in named tuples, whose fields `refine.refine` explains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from .packed import Bools, Floats
from .sites import LANES, Fabric, Ints

__all__ = ["Cells", "Cost", "Plan", "move_chains", "move_rams", "move_tiles", "move_units"]

compiled = numba.njit(cache=True, nogil=True)
#: From where on the exponential goes on as a straight line, and below which it counts as nothing.
_STEEP, _FLAT = 3.0, -8.0
_AT_STEEP = math.exp(_STEEP)
#: A carry chain has at most this many halves of cells: a row of the device has fewer.
_LONGEST = 1024


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


class Cost(NamedTuple):
    """What an arc is weighed by, as said above: ``allowed`` is the delay of each that would leave it no slack."""

    arcs_first: Ints
    arcs: Ints
    source: Ints
    net: Ints
    sink: Ints
    table: Floats
    added: Floats
    allowed: Floats
    weight: Floats
    tau: float


@compiled
def _excess(arc: int, cells: Cells, cost: Cost) -> float:
    a, b = cost.source[cost.net[arc]], cost.sink[arc]
    return float(cost.table[abs(cells.x[a] - cells.x[b]), abs(cells.y[a] - cells.y[b])] + cost.added[arc]
                 - cost.allowed[arc])


@compiled
def _of_cell(cell: int, cells: Cells, cost: Cost) -> float:
    total = 0.0
    if cell < 0:
        return total
    for at in range(cost.arcs_first[cell], cost.arcs_first[cell + 1]):
        arc = cost.arcs[at]
        a, b = cost.source[cost.net[arc]], cost.sink[arc]
        columns, rows = abs(cells.x[a] - cells.x[b]), abs(cells.y[a] - cells.y[b])
        total += cost.weight[cost.net[arc]] * (columns + rows)
        z = (cost.table[columns, rows] + cost.added[arc] - cost.allowed[arc]) / cost.tau
        if z > _STEEP:
            total += _AT_STEEP * (1.0 + z - _STEEP)
        elif z > _FLAT:
            total += math.exp(z)
    return total


@compiled
def _accepted(rise: float, temperature: float) -> bool:
    return rise < 0 or (temperature > 0 and np.random.random() < math.exp(-rise / temperature))


@compiled
def _ff_fits(ff: int, slot: int, plan: Plan, cells: Cells) -> bool:
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
def _lut_fits(slot: int, plan: Plan, cells: Cells) -> bool:
    """Whether a LUT may be in this slot: no carry cell beside it, nor is the slice a write port's."""
    mate = plan.comb[slot ^ 1]
    return not (mate >= 0 and cells.carry[mate]) and not (plan.ramw[slot // LANES] >= 0 and slot % LANES // 2 == 2)


@compiled
def _put(cell: int, slot: int, cells: Cells, fabric: Fabric) -> None:
    if cell >= 0:
        tile = slot // LANES
        cells.x[cell], cells.y[cell], cells.slot[cell] = fabric.x[tile], fabric.y[tile], slot


@compiled
def _swap(a: Ints, b: Ints, combs: Bools, ffs: Bools, plan: Plan, cells: Cells, fabric: Fabric) -> None:
    """Exchange what is in slots ``a`` and ``b``, LUTs and flip-flops each where the array says so."""
    for n in range(len(a)):
        if combs[n]:
            one, other = plan.comb[a[n]], plan.comb[b[n]]
            plan.comb[a[n]], plan.comb[b[n]] = other, one
            _put(one, b[n], cells, fabric)
            _put(other, a[n], cells, fabric)
        if ffs[n]:
            one, other = plan.ff[a[n]], plan.ff[b[n]]
            plan.ff[a[n]], plan.ff[b[n]] = other, one
            _put(one, b[n], cells, fabric)
            _put(other, a[n], cells, fabric)


@compiled
def _of_slots(a: Ints, b: Ints, combs: Bools, ffs: Bools, plan: Plan, cells: Cells, cost: Cost) -> float:
    total = 0.0
    for n in range(len(a)):
        if combs[n]:
            total += _of_cell(plan.comb[a[n]], cells, cost) + _of_cell(plan.comb[b[n]], cells, cost)
        if ffs[n]:
            total += _of_cell(plan.ff[a[n]], cells, cost) + _of_cell(plan.ff[b[n]], cells, cost)
    return total


@compiled
def _ffs_fit(a: Ints, b: Ints, ffs: Bools, plan: Plan, cells: Cells) -> bool:
    for n in range(len(a)):
        if ffs[n]:
            one, other = plan.ff[a[n]], plan.ff[b[n]]
            if one >= 0 and not _ff_fits(one, a[n], plan, cells):
                return False
            if other >= 0 and not _ff_fits(other, b[n], plan, cells):
                return False
    return True


@compiled
def _tile_at(x: int, y: int, fabric: Fabric) -> int:
    if x < 0 or y < 0 or x >= fabric.tile.shape[0] or y >= fabric.tile.shape[1]:
        return -1
    return int(fabric.tile[x, y])


@compiled
def _toward(cell: int, cells: Cells, cost: Cost, fabric: Fabric) -> int:
    """A tile on the way to, or beside, one of two cells that it is wired to: that with the later arc."""
    first, n = cost.arcs_first[cell], cost.arcs_first[cell + 1] - cost.arcs_first[cell]
    if n == 0:
        return -1
    arc, other = cost.arcs[first + np.random.randint(n)], cost.arcs[first + np.random.randint(n)]
    if _excess(other, cells, cost) > _excess(arc, cells, cost):
        arc = other
    end = cost.source[cost.net[arc]]
    if end == cell:
        end = cost.sink[arc]
    along = np.random.random()
    return _tile_at(int(cells.x[cell] + along * (cells.x[end] - cells.x[cell]) + .5) + np.random.randint(-2, 3),
                    int(cells.y[cell] + along * (cells.y[end] - cells.y[cell]) + .5) + np.random.randint(-2, 3), fabric)


@compiled
def move_units(tries: int, temperature: float, radius: int, seed: int, units: Ints, late: Ints, share: float,
               fabric: Fabric, plan: Plan, cells: Cells, cost: Cost) -> int:
    """Moves of single LUTs and flip-flops, and of LUTs with flip-flops that they feed, each for what is where it goes.

    ``units`` are tried, and for ``share`` of the tries ``late`` ones. Half the places lie within ``radius`` tiles, half
    on the way to a cell it is wired to. The number of moves that were kept.
    """
    np.random.seed(seed)
    kept = 0
    a, b = np.empty(1, np.int32), np.empty(1, np.int32)
    combs, ffs = np.empty(1, np.bool_), np.empty(1, np.bool_)
    for _ in range(tries):
        of = late if len(late) and np.random.random() < share else units
        unit = of[np.random.randint(len(of))]
        a[0] = cells.slot[unit]
        here = a[0] // LANES
        if np.random.random() < .5:
            there = _tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
                             fabric.y[here] + np.random.randint(-radius, radius + 1), fabric)
        else:
            with_ff = cells.partner[unit] >= 0 and np.random.random() < .5
            there = _toward(cells.partner[unit] if with_ff else unit, cells, cost, fabric)
        if there < 0 or there == here:
            continue
        b[0] = there * LANES + np.random.randint(LANES)
        comb_a, comb_b, ff_a, ff_b = plan.comb[a[0]], plan.comb[b[0]], plan.ff[a[0]], plan.ff[b[0]]
        paired_a = ff_a >= 0 and cells.partner[ff_a] >= 0
        paired_b = ff_b >= 0 and cells.partner[ff_b] >= 0
        combs[0] = not cells.is_ff[unit] or paired_b
        ffs[0] = cells.is_ff[unit] or cells.partner[unit] >= 0 or paired_b
        # A pair goes together or stays.
        if (paired_a and not (combs[0] and ffs[0])) or (paired_b and not (combs[0] and ffs[0])):
            continue
        if combs[0] and ((comb_a >= 0 and not (cells.movable[comb_a] and _lut_fits(b[0], plan, cells))) or (
                comb_b >= 0 and not (cells.movable[comb_b] and _lut_fits(a[0], plan, cells)))):
            continue
        if ffs[0] and ((ff_a >= 0 and not cells.movable[ff_a]) or (ff_b >= 0 and not cells.movable[ff_b])):
            continue
        before = _of_slots(a, b, combs, ffs, plan, cells, cost)
        _swap(a, b, combs, ffs, plan, cells, fabric)
        if _ffs_fit(a, b, ffs, plan, cells) and _accepted(
                _of_slots(a, b, combs, ffs, plan, cells, cost) - before, temperature):
            kept += 1
        else:
            _swap(a, b, combs, ffs, plan, cells, fabric)
    return kept


@compiled
def move_chains(tries: int, temperature: float, radius: int, seed: int, which: Ints, heads: Ints, lengths: Ints,
                chain: Ints, fabric: Fabric, plan: Plan, cells: Cells, cost: Cost) -> int:
    """Moves of whole carry chains, with their flip-flops, to where LUTs are that can be moved, or for chains as long.

    ``which`` chains are tried; ``heads``: their first cells; ``lengths``: in halves of carry cells; ``chain``: of each
    cell, or -1. The number of moves that were kept.
    """
    np.random.seed(seed)
    kept = 0
    slots_a, slots_b = np.empty(_LONGEST, np.int32), np.empty(_LONGEST, np.int32)
    all_combs, all_ffs = np.ones(_LONGEST, np.bool_), np.empty(_LONGEST, np.bool_)
    for _ in range(tries):
        one = which[np.random.randint(len(which))]
        length = lengths[one]
        a, b, combs, ffs = slots_a[:length], slots_b[:length], all_combs[:length], all_ffs[:length]
        first = cells.slot[heads[one]] // LANES
        other = -1
        if np.random.random() < .5:
            other = np.random.randint(len(heads))
            goal = cells.slot[heads[other]] // LANES
            dx, dy = fabric.x[goal] - fabric.x[first], fabric.y[goal] - fabric.y[first]
            if other == one or lengths[other] != length or max(abs(dx), abs(dy)) > 3 * radius:
                continue
        else:
            dx, dy = np.random.randint(-radius, radius + 1), np.random.randint(-radius, radius + 1)
        if dy == 0 and abs(dx) < (length + LANES - 1) // LANES:
            continue
        fits = True
        for n in range(length):
            step = n // LANES
            tile_a = _tile_at(fabric.x[first] + step, fabric.y[first], fabric)
            tile_b = _tile_at(fabric.x[first] + step + dx, fabric.y[first] + dy, fabric)
            if tile_b < 0 or plan.ramw[tile_b] >= 0:
                fits = False
                break
            a[n], b[n] = tile_a * LANES + n % LANES, tile_b * LANES + n % LANES
            comb_a, comb_b, ff_a, ff_b = plan.comb[a[n]], plan.comb[b[n]], plan.ff[a[n]], plan.ff[b[n]]
            if comb_b >= 0 and not cells.movable[comb_b] and (other < 0 or chain[comb_b] != other):
                fits = False
                break
            own_a = cells.partner[comb_a]
            own_b = cells.partner[comb_b] if comb_b >= 0 else -1
            ffs[n] = own_a >= 0 or own_b >= 0
            if ffs[n] and ((ff_a >= 0 and ff_a != own_a and (not cells.movable[ff_a] or cells.partner[ff_a] >= 0)) or (
                    ff_b >= 0 and ff_b != own_b and (not cells.movable[ff_b] or cells.partner[ff_b] >= 0))):
                fits = False
                break
        if not fits:
            continue
        before = _of_slots(a, b, combs, ffs, plan, cells, cost)
        _swap(a, b, combs, ffs, plan, cells, fabric)
        if _ffs_fit(a, b, ffs, plan, cells) and _accepted(
                _of_slots(a, b, combs, ffs, plan, cells, cost) - before, temperature):
            kept += 1
        else:
            _swap(a, b, combs, ffs, plan, cells, fabric)
    return kept


@compiled
def move_tiles(tries: int, temperature: float, radius: int, seed: int, homes: Ints, fabric: Fabric, plan: Plan,
               cells: Cells, cost: Cost) -> int:
    """Moves of tiles that hold LUT RAM, ``homes``, for tiles whose cells can all be moved; how many were kept."""
    np.random.seed(seed)
    kept = 0
    a, b = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    every = np.ones(LANES, np.bool_)
    for _ in range(tries):
        which = np.random.randint(len(homes))
        here = homes[which]
        there = _tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
                         fabric.y[here] + np.random.randint(-radius, radius + 1), fabric)
        if there < 0 or there == here or plan.ramw[there] >= 0:
            continue
        fits = True
        for n in range(LANES):
            a[n], b[n] = here * LANES + n, there * LANES + n
            comb_a, comb, ff = plan.comb[a[n]], plan.comb[b[n]], plan.ff[b[n]]
            if (comb_a >= 0 and cells.carry[comb_a]) or (comb >= 0 and not cells.movable[comb]) or (
                    ff >= 0 and not cells.movable[ff]):
                fits = False
                break
        if not fits:
            continue
        port = plan.ramw[here]
        before = _of_slots(a, b, every, every, plan, cells, cost) + _of_cell(port, cells, cost)
        _swap(a, b, every, every, plan, cells, fabric)
        _put(port, there * LANES + 4, cells, fabric)
        if _accepted(_of_slots(a, b, every, every, plan, cells, cost) + _of_cell(port, cells, cost) - before,
                     temperature):
            kept += 1
            homes[which] = there
            plan.ramw[there], plan.ramw[here] = port, -1
        else:
            _swap(a, b, every, every, plan, cells, fabric)
            _put(port, here * LANES + 4, cells, fabric)
    return kept


@compiled
def move_rams(tries: int, temperature: float, reach: int, seed: int, rams: Ints, columns: Ints, rows: Ints, held: Ints,
              site: Ints, cells: Cells, cost: Cost) -> int:
    """Moves of block RAMs, ``rams``, to free sites or for each other; the number that were kept.

    ``columns``, ``rows``: of each site; ``held``: which cell is there, or -1; ``site``: of each cell, or -1.
    """
    np.random.seed(seed)
    kept = 0
    for _ in range(tries):
        ram = rams[np.random.randint(len(rams))]
        here, there = site[ram], np.random.randint(len(columns))
        if here == there or max(abs(columns[here] - columns[there]), abs(rows[here] - rows[there])) > reach:
            continue
        other = held[there]
        before = _of_cell(ram, cells, cost) + _of_cell(other, cells, cost)
        _put_ram(ram, there, columns, rows, held, site, cells)
        _put_ram(other, here, columns, rows, held, site, cells)
        if _accepted(_of_cell(ram, cells, cost) + _of_cell(other, cells, cost) - before, temperature):
            kept += 1
        else:
            _put_ram(ram, here, columns, rows, held, site, cells)
            _put_ram(other, there, columns, rows, held, site, cells)
    return kept


@compiled
def _put_ram(cell: int, at: int, columns: Ints, rows: Ints, held: Ints, site: Ints, cells: Cells) -> None:
    held[at] = cell
    if cell >= 0:
        cells.x[cell], cells.y[cell], site[cell] = columns[at], rows[at], at
