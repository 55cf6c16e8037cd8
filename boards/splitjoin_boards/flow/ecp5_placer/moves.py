"""The moves of simulated annealing: each exchanges cells between legal places and is kept or undone by its cost.

A move is kept by `cost.accept`. All functions draw from numba's generator, seeded with ``seed``.
"""

from __future__ import annotations

import numpy as np

from .arrays import Ints, compiled
from .cost import CostModel, accept, budget_excess, cell_cost, slot_cost
from .fabric import LANES, Fabric
from .occupancy import Occupancy, Placement, flip_flops_are_legal, lut_is_legal, place_cell, swap_slots, tile_at

__all__ = ["move_block_rams", "move_carry_chains", "move_cells", "move_lut_rams"]

#: More slots than a row of the device has.
_MAX_SLOTS = 1024
#: Lane of the write port of LUT RAM.
_RAM_PORT_LANE = 4


@compiled
def _tile_toward_neighbour(cell: int, placement: Placement, cost: CostModel, fabric: Fabric) -> int:
    """A random tile between ``cell`` and a cell wired to it, or beside the latter; -1 if there is none.

    Of two random arcs the one with the larger excess over its budget is taken.
    """
    first, n = cost.cell_start[cell], cost.cell_start[cell + 1] - cost.cell_start[cell]
    if n == 0:
        return -1
    arc, other = cost.cell_arc[first + np.random.randint(n)], cost.cell_arc[first + np.random.randint(n)]
    if budget_excess(other, placement, cost) > budget_excess(arc, placement, cost):
        arc = other
    end = cost.driver[cost.net[arc]]
    if end == cell:
        end = cost.sink[arc]
    along = np.random.random()
    return tile_at(
        int(placement.x[cell] + along * (placement.x[end] - placement.x[cell]) + .5) + np.random.randint(-2, 3),
        int(placement.y[cell] + along * (placement.y[end] - placement.y[cell]) + .5) + np.random.randint(-2, 3), fabric)


@compiled
def move_cells(tries: int, temperature: float, radius: int, seed: int, units: Ints, late: Ints, late_share: float,
               fabric: Fabric, occupancy: Occupancy, placement: Placement, cost: CostModel) -> None:
    """Try to swap single LUTs, single flip-flops, and LUTs together with their partners, with the cells of a slot.

    A share ``late_share`` of the tries is for the cells ``late``, the others are for ``units``. Half of the
    destinations lie within ``radius`` tiles, half toward a cell that the moved one is wired to.
    """
    np.random.seed(seed)
    a, b = np.empty(1, np.int32), np.empty(1, np.int32)
    swap_lut, swap_ff = np.empty(1, np.bool_), np.empty(1, np.bool_)
    for _ in range(tries):
        candidates = late if len(late) and np.random.random() < late_share else units
        unit = candidates[np.random.randint(len(candidates))]
        a[0] = placement.slot[unit]
        here = a[0] // LANES
        if np.random.random() < .5:
            there = tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
                            fabric.y[here] + np.random.randint(-radius, radius + 1), fabric)
        else:
            from_partner = placement.partner[unit] >= 0 and np.random.random() < .5
            there = _tile_toward_neighbour(placement.partner[unit] if from_partner else unit, placement, cost, fabric)
        if there < 0 or there == here:
            continue
        b[0] = there * LANES + np.random.randint(LANES)
        lut_a, lut_b, ff_a, ff_b = occupancy.lut[a[0]], occupancy.lut[b[0]], occupancy.ff[a[0]], occupancy.ff[b[0]]
        paired_a = ff_a >= 0 and placement.partner[ff_a] >= 0
        paired_b = ff_b >= 0 and placement.partner[ff_b] >= 0
        swap_lut[0] = not placement.is_ff[unit] or paired_b
        swap_ff[0] = placement.is_ff[unit] or placement.partner[unit] >= 0 or paired_b
        # Partners move together or not at all.
        if (paired_a and not (swap_lut[0] and swap_ff[0])) or (paired_b and not (swap_lut[0] and swap_ff[0])):
            continue
        if swap_lut[0] and (
                (lut_a >= 0 and not (placement.movable[lut_a] and lut_is_legal(b[0], occupancy, placement)))
                or (lut_b >= 0 and not (placement.movable[lut_b] and lut_is_legal(a[0], occupancy, placement)))):
            continue
        if swap_ff[0] and ((ff_a >= 0 and not placement.movable[ff_a]) or (ff_b >= 0 and not placement.movable[ff_b])):
            continue
        before = slot_cost(a, b, swap_lut, swap_ff, occupancy, placement, cost)
        swap_slots(a, b, swap_lut, swap_ff, occupancy, placement, fabric)
        if not (flip_flops_are_legal(a, b, swap_ff, occupancy, placement) and accept(
                slot_cost(a, b, swap_lut, swap_ff, occupancy, placement, cost) - before + cost.move_penalty,
                temperature)):
            swap_slots(a, b, swap_lut, swap_ff, occupancy, placement, fabric)


@compiled
def _row_is_movable(x: int, y: int, tiles: int, chain_head: Ints, chain_length: Ints, chain_of: Ints, fabric: Fabric,
                    occupancy: Occupancy, placement: Placement, slots: Ints) -> bool:
    """True if ``tiles`` tiles of a row from (x, y) can move with all their cells; sets ``slots`` to their slots.

    All chains in them must begin and end in them.
    """
    for n in range(tiles):
        tile = tile_at(x + n, y, fabric)
        if tile < 0 or occupancy.ram_port[tile] >= 0:
            return False
        for lane in range(LANES):
            slots[n * LANES + lane] = tile * LANES + lane
            lut = occupancy.lut[tile * LANES + lane]
            if lut < 0 or placement.movable[lut]:
                continue
            chain = chain_of[lut]
            if chain < 0:
                return False
            begins = fabric.x[placement.slot[chain_head[chain]] // LANES]
            if begins < x or begins + (chain_length[chain] + LANES - 1) // LANES > x + tiles:
                return False
    return True


@compiled
def move_carry_chains(tries: int, temperature: float, radius: int, seed: int, chains: Ints, chain_head: Ints,
                      chain_length: Ints, chain_of: Ints, fabric: Fabric, occupancy: Occupancy, placement: Placement,
                      cost: CostModel) -> None:
    """Try to swap the tiles of a carry chain, with up to two tiles on either side, with as many tiles of a row.

    Half of the destinations are other chains within 3 × ``radius`` tiles, half lie within ``radius``. ``chains``: those
    to try. ``chain_head``, ``chain_length``: first cell and number of cells of each chain. ``chain_of``: the chain of
    each cell, or -1.
    """
    np.random.seed(seed)
    slots_a, slots_b = np.empty(_MAX_SLOTS, np.int32), np.empty(_MAX_SLOTS, np.int32)
    every = np.ones(_MAX_SLOTS, np.bool_)
    for _ in range(tries):
        chain = chains[np.random.randint(len(chains))]
        left, right = max(0, np.random.randint(-2, 3)), max(0, np.random.randint(-2, 3))
        here, length = placement.slot[chain_head[chain]] // LANES, chain_length[chain]
        if np.random.random() < .5:
            other = np.random.randint(len(chain_head))
            there = placement.slot[chain_head[other]] // LANES
            dx, dy = fabric.x[there] - fabric.x[here], fabric.y[there] - fabric.y[here]
            length = max(length, chain_length[other])
            if max(abs(dx), abs(dy)) > 3 * radius:
                continue
        else:
            dx, dy = np.random.randint(-radius, radius + 1), np.random.randint(-radius, radius + 1)
        tiles = left + (length + LANES - 1) // LANES + right
        x, y = fabric.x[here] - left, fabric.y[here]
        if (dy == 0 and abs(dx) < tiles) or not (
                _row_is_movable(x, y, tiles, chain_head, chain_length, chain_of, fabric, occupancy, placement, slots_a)
                and _row_is_movable(x + dx, y + dy, tiles, chain_head, chain_length, chain_of, fabric, occupancy,
                                    placement, slots_b)):
            continue
        a, b, both = slots_a[:tiles * LANES], slots_b[:tiles * LANES], every[:tiles * LANES]
        before = slot_cost(a, b, both, both, occupancy, placement, cost)
        swap_slots(a, b, both, both, occupancy, placement, fabric)
        if not accept(slot_cost(a, b, both, both, occupancy, placement, cost) - before + len(a) * cost.move_penalty,
                      temperature):
            swap_slots(a, b, both, both, occupancy, placement, fabric)


@compiled
def move_lut_rams(tries: int, temperature: float, radius: int, seed: int, ram_tiles: Ints, fabric: Fabric,
                  occupancy: Occupancy, placement: Placement, cost: CostModel) -> None:
    """Try to swap tiles with LUT RAM with tiles whose cells are all movable. Updates ``ram_tiles``, their numbers."""
    np.random.seed(seed)
    a, b = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    every = np.ones(LANES, np.bool_)
    for _ in range(tries):
        which = np.random.randint(len(ram_tiles))
        here = ram_tiles[which]
        there = tile_at(fabric.x[here] + np.random.randint(-radius, radius + 1),
                        fabric.y[here] + np.random.randint(-radius, radius + 1), fabric)
        if there < 0 or there == here or occupancy.ram_port[there] >= 0:
            continue
        legal = True
        for n in range(LANES):
            a[n], b[n] = here * LANES + n, there * LANES + n
            lut_a, lut_b, ff_b = occupancy.lut[a[n]], occupancy.lut[b[n]], occupancy.ff[b[n]]
            if (lut_a >= 0 and placement.carry[lut_a]) or (lut_b >= 0 and not placement.movable[lut_b]) or (
                    ff_b >= 0 and not placement.movable[ff_b]):
                legal = False
                break
        if not legal:
            continue
        port = occupancy.ram_port[here]
        before = slot_cost(a, b, every, every, occupancy, placement, cost) + cell_cost(port, placement, cost)
        swap_slots(a, b, every, every, occupancy, placement, fabric)
        place_cell(port, there * LANES + _RAM_PORT_LANE, placement, fabric)
        if accept(slot_cost(a, b, every, every, occupancy, placement, cost) + cell_cost(port, placement, cost) - before
                  + LANES * cost.move_penalty, temperature):
            ram_tiles[which] = there
            occupancy.ram_port[there], occupancy.ram_port[here] = port, -1
        else:
            swap_slots(a, b, every, every, occupancy, placement, fabric)
            place_cell(port, here * LANES + _RAM_PORT_LANE, placement, fabric)


@compiled
def move_block_rams(tries: int, temperature: float, reach: int, seed: int, block_rams: Ints, bel_x: Ints, bel_y: Ints,
                    occupant: Ints, ram_bel: Ints, placement: Placement, cost: CostModel) -> None:
    """Try to move block RAMs to free bels, or to swap two, over at most ``reach`` columns and rows.

    ``bel_x``, ``bel_y``, ``occupant``: column, row and cell (or -1) of each bel. ``ram_bel``: the bel of each cell, or
    -1.
    """
    np.random.seed(seed)
    for _ in range(tries):
        ram = block_rams[np.random.randint(len(block_rams))]
        here, there = ram_bel[ram], np.random.randint(len(bel_x))
        if here == there or max(abs(bel_x[here] - bel_x[there]), abs(bel_y[here] - bel_y[there])) > reach:
            continue
        other = occupant[there]
        before = cell_cost(ram, placement, cost) + cell_cost(other, placement, cost)
        _place_block_ram(ram, there, bel_x, bel_y, occupant, ram_bel, placement)
        _place_block_ram(other, here, bel_x, bel_y, occupant, ram_bel, placement)
        if not accept(cell_cost(ram, placement, cost) + cell_cost(other, placement, cost) - before, temperature):
            _place_block_ram(ram, here, bel_x, bel_y, occupant, ram_bel, placement)
            _place_block_ram(other, there, bel_x, bel_y, occupant, ram_bel, placement)


@compiled
def _place_block_ram(cell: int, bel: int, bel_x: Ints, bel_y: Ints, occupant: Ints, ram_bel: Ints,
                     placement: Placement) -> None:
    occupant[bel] = cell
    if cell >= 0:
        placement.x[cell], placement.y[cell], ram_bel[cell] = bel_x[bel], bel_y[bel], bel
