"""Moves of cells among sites, each kept if it lowers `cost`, or at random if it raises it by little: annealing."""

from __future__ import annotations

import numpy as np

from .compiled import compiled
from .cost import Cost, accepted, excess, of_cell, of_slots
from .plan import Cells, Plan, ffs_fit, lut_fits, put, swap, tile_at
from .sites import LANES, Fabric, Ints

__all__ = ["move_chains", "move_rams", "move_tiles", "move_units"]

#: Slots of a row of the device: it has fewer.
_LONGEST = 1024


@compiled
def _toward(cell: int, cells: Cells, cost: Cost, fabric: Fabric) -> int:
    """A tile on the way to, or beside, one of two cells that it is wired to: that with the later arc."""
    first, n = cost.arcs_first[cell], cost.arcs_first[cell + 1] - cost.arcs_first[cell]
    if n == 0:
        return -1
    arc, other = cost.arcs[first + np.random.randint(n)], cost.arcs[first + np.random.randint(n)]
    if excess(other, cells, cost) > excess(arc, cells, cost):
        arc = other
    end = cost.source[cost.net[arc]]
    if end == cell:
        end = cost.sink[arc]
    along = np.random.random()
    return tile_at(int(cells.x[cell] + along * (cells.x[end] - cells.x[cell]) + .5) + np.random.randint(-2, 3),
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
            there = tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
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
        if combs[0] and ((comb_a >= 0 and not (cells.movable[comb_a] and lut_fits(b[0], plan, cells))) or (
                comb_b >= 0 and not (cells.movable[comb_b] and lut_fits(a[0], plan, cells)))):
            continue
        if ffs[0] and ((ff_a >= 0 and not cells.movable[ff_a]) or (ff_b >= 0 and not cells.movable[ff_b])):
            continue
        before = of_slots(a, b, combs, ffs, plan, cells, cost)
        swap(a, b, combs, ffs, plan, cells, fabric)
        if ffs_fit(a, b, ffs, plan, cells) and accepted(
                of_slots(a, b, combs, ffs, plan, cells, cost) - before + cost.price, temperature):
            kept += 1
        else:
            swap(a, b, combs, ffs, plan, cells, fabric)
    return kept


@compiled
def _row_fits(x: int, y: int, tiles: int, heads: Ints, lengths: Ints, chain: Ints, fabric: Fabric, plan: Plan,
              cells: Cells, slots: Ints) -> bool:
    """Whether tiles of a row can be moved with all that they hold: chains must begin and end there. Sets ``slots``."""
    for n in range(tiles):
        tile = tile_at(x + n, y, fabric)
        if tile < 0 or plan.ramw[tile] >= 0:
            return False
        for lane in range(LANES):
            slots[n * LANES + lane] = tile * LANES + lane
            comb = plan.comb[tile * LANES + lane]
            if comb < 0 or cells.movable[comb]:
                continue
            of = chain[comb]
            if of < 0:
                return False
            begins = fabric.x[cells.slot[heads[of]] // LANES]
            if begins < x or begins + (lengths[of] + LANES - 1) // LANES > x + tiles:
                return False
    return True


@compiled
def move_chains(tries: int, temperature: float, radius: int, seed: int, which: Ints, heads: Ints, lengths: Ints,
                chain: Ints, fabric: Fabric, plan: Plan, cells: Cells, cost: Cost) -> int:
    """Moves of whole carry chains: tiles of a row, and up to two on either side, change places with as many others.

    Half of the places are where other chains are. ``which`` chains are tried; ``heads``: their first cells;
    ``lengths``: in halves of carry cells; ``chain``: of each cell, or -1. The number of moves that were kept.
    """
    np.random.seed(seed)
    kept = 0
    slots_a, slots_b = np.empty(_LONGEST, np.int32), np.empty(_LONGEST, np.int32)
    every = np.ones(_LONGEST, np.bool_)
    for _ in range(tries):
        one = which[np.random.randint(len(which))]
        left, right = max(0, np.random.randint(-2, 3)), max(0, np.random.randint(-2, 3))
        here, length = cells.slot[heads[one]] // LANES, lengths[one]
        if np.random.random() < .5:
            other = np.random.randint(len(heads))
            there = cells.slot[heads[other]] // LANES
            dx, dy = fabric.x[there] - fabric.x[here], fabric.y[there] - fabric.y[here]
            length = max(length, lengths[other])
            if max(abs(dx), abs(dy)) > 3 * radius:
                continue
        else:
            dx, dy = np.random.randint(-radius, radius + 1), np.random.randint(-radius, radius + 1)
        tiles = left + (length + LANES - 1) // LANES + right
        x, y = fabric.x[here] - left, fabric.y[here]
        if (dy == 0 and abs(dx) < tiles) or not (
                _row_fits(x, y, tiles, heads, lengths, chain, fabric, plan, cells, slots_a)
                and _row_fits(x + dx, y + dy, tiles, heads, lengths, chain, fabric, plan, cells, slots_b)):
            continue
        a, b, both = slots_a[:tiles * LANES], slots_b[:tiles * LANES], every[:tiles * LANES]
        before = of_slots(a, b, both, both, plan, cells, cost)
        swap(a, b, both, both, plan, cells, fabric)
        if accepted(of_slots(a, b, both, both, plan, cells, cost) - before + len(a) * cost.price, temperature):
            kept += 1
        else:
            swap(a, b, both, both, plan, cells, fabric)
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
        there = tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
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
        before = of_slots(a, b, every, every, plan, cells, cost) + of_cell(port, cells, cost)
        swap(a, b, every, every, plan, cells, fabric)
        put(port, there * LANES + 4, cells, fabric)
        if accepted(of_slots(a, b, every, every, plan, cells, cost) + of_cell(port, cells, cost) - before
                    + LANES * cost.price, temperature):
            kept += 1
            homes[which] = there
            plan.ramw[there], plan.ramw[here] = port, -1
        else:
            swap(a, b, every, every, plan, cells, fabric)
            put(port, here * LANES + 4, cells, fabric)
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
        before = of_cell(ram, cells, cost) + of_cell(other, cells, cost)
        _put_ram(ram, there, columns, rows, held, site, cells)
        _put_ram(other, here, columns, rows, held, site, cells)
        if accepted(of_cell(ram, cells, cost) + of_cell(other, cells, cost) - before, temperature):
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
