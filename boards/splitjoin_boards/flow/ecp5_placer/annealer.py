"""Simulated annealing of a legal placement, driven by the slack of each arc under the delays of routed wires."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from .arrays import Bools, Floats, Ints
from .cost import CostModel
from .fabric import LANES, bel_name, fabric, ram_bels
from .moves import move_block_rams, move_carry_chains, move_cells, move_lut_rams
from .netlist import FF, LUT, RAM_PORT, PlacedNetlist, read_netlist
from .occupancy import Occupancy, Placement
from .timing import TimingAnalysis

__all__ = ["Annealer"]

#: Rounds of annealing, and the schedules from the first round to the last: ``tau`` of the cost, in ns; temperature,
#: which ends at 0; radius of moves, in tiles.
_ROUNDS = 300
_TAU, _TEMPERATURE, _RADIUS = (.5, .12), .02, (16, 2)
#: Tries a round for each movable LUT and flip-flop, and how many of these there are to one try of a carry chain, of a
#: block RAM, and of a tile of LUT RAM.
_TRIES = 10
_TRIES_PER_CHAIN, _TRIES_PER_BLOCK_RAM, _TRIES_PER_LUT_RAM = 10, 100, 200
#: Smallest radius for carry chains and LUT RAM, in tiles.
_MIN_TILE_RADIUS = 4
#: Cost of a column or row crossed; an arc without slack costs 1.
_WIRE_WEIGHT = .004
#: Share of tries for cells of late arcs. An arc is late below a slack of three ``tau``, but .4 ns at least.
_LATE_SHARE, _LATE_SLACK = .5, .4
#: Reach of moves of block RAMs, in tiles.
_BLOCK_RAM_REACH = 60
#: Repair: largest slack of arcs whose cells move, in ns; radius in tiles; ``tau`` in ns; tries for each such cell; and
#: the penalty of a move, which costs a wire its known delay.
_REPAIR_SLACK, _REPAIR_RADIUS, _REPAIR_TAU, _REPAIR_TRIES, _REPAIR_PENALTY = .02, 5, .06, 3000, .05


class Annealer:
    """A placement that is improved in place, for a clock of ``period`` ns. It is legal before and after every call.

    ``module``: the top module of nextpnr's JSON of a placed netlist. LUTs, flip-flops, tiles with carry chains, tiles
    of LUT RAM and block RAMs move. Multiplexers of several LUTs (PFUMX, L6MUX21) and all else outside slices stay.
    """

    def __init__(self, module: Mapping[str, Any], period: float):
        self.netlist = c = read_netlist(module)
        self.timing = TimingAnalysis(c, period)
        self._fabric = fabric()
        n_cells, tiles = len(c.cell_names), len(self._fabric.x)
        self._occupancy = Occupancy(*(np.full(size, -1, np.int32) for size in (tiles * LANES, tiles * LANES, tiles)))
        in_slices = np.isin(c.kind, (LUT, FF, RAM_PORT))
        self._slot = np.where(in_slices, self._fabric.tile[c.x, c.y] * LANES + c.lane, -1).astype(np.int32)
        self._ram_bels = bels = ram_bels()
        self._ram_x, self._ram_y = (np.array([bel[n] for bel in bels], np.int32) for n in (0, 1))
        self._block_rams = np.array([n for n, kind in enumerate(c.cell_types) if kind == "DP16KD"], np.int32)
        self._ram_occupant, self._ram_bel = np.full(len(bels), -1, np.int32), np.full(n_cells, -1, np.int32)
        number = {(x, y): n for n, (x, y, _) in enumerate(bels)}
        for ram in self._block_rams:
            self._ram_bel[ram] = number[c.x[ram], c.y[ram]]
        self._fill_occupancy()
        # The LUTs of a LUT RAM move with its tile, in which it takes three slices.
        in_lut_ram = (c.kind == LUT) & (self._occupancy.ram_port[self._slot // LANES] >= 0) & (c.lane < 6)
        c.movable[in_lut_ram] = False
        paired = (c.kind == FF) & (c.partner >= 0)
        c.movable[paired] = c.movable[c.partner[paired]]
        #: Movable cells, of a LUT and its flip-flop only the LUT.
        self._units = np.flatnonzero(c.movable & ((c.kind == LUT) | (c.partner < 0))).astype(np.int32)
        self._chain_head, self._chain_length, self._chain_of = _carry_chains(c)
        fanout = np.diff(c.net_start)
        self._wire_weight = _WIRE_WEIGHT / np.sqrt(np.maximum(fanout, 1))
        self._placement = Placement(c.x, c.y, self._slot, c.kind == FF, c.movable, c.reads_m, c.carry, c.tile_key,
                                    c.slice_key, c.partner)

    def anneal(self, *, rounds: int = _ROUNDS, tries: float = _TRIES, seed: int = 1) -> float:
        """Anneal, and keep the best placement found. Returns its estimated clock in MHz.

        ``tries``: in each round, for each movable LUT and flip-flop.
        """
        clock = self.timing.analyse()
        best, snapshot = (clock, *self.timing.violations()), self.snapshot()
        for n in tqdm(range(rounds), desc="annealing", disable=not sys.stderr.isatty(), leave=False):
            along = n / max(1, rounds - 1)
            self._anneal_round(
                int(tries * len(self._units)), _TAU[0] * (_TAU[1] / _TAU[0])**along, _TEMPERATURE * (1 - along)**2,
                max(_RADIUS[1], round(_RADIUS[0] * (_RADIUS[1] / _RADIUS[0])**along)), seed * 1000 + n)
            clock = self.timing.analyse()
            # Of placements with the same clock, the one with the least total negative slack is the best.
            found = (clock, *self.timing.violations())
            if (found[0], -found[2]) > (best[0], -best[2]):
                best, snapshot = found, self.snapshot()
        self.restore(snapshot)
        return best[0]

    def repair(self, *, margin: float = 0., rounds: int = 3, seed: int = 1) -> None:
        """Move cells of late paths over short distances, as long as that lowers the cost (temperature 0).

        Arcs that keep their offset keep their back-annotated delays. For others ``margin`` ns are added to the
        estimate.
        """
        timing = self.timing
        for n in range(rounds):
            timing.analyse()
            late = self._cells_of_arcs_below(_REPAIR_SLACK)
            if not len(late):
                return
            self._try_moves(len(late) * _REPAIR_TRIES, _REPAIR_TAU, 0., _REPAIR_RADIUS, seed * 1000 + n, late, late,
                            margin, _REPAIR_PENALTY)
        timing.analyse()

    def bels(self) -> dict[str, str]:
        """Nextpnr's name of the bel of each cell in a slice and of each block RAM."""
        c, found = self.netlist, {}
        kinds = {LUT: "K", FF: "FF", RAM_PORT: "RAMW"}
        for n, name in enumerate(c.cell_names):
            if c.kind[n] in kinds:
                found[name] = bel_name(c.x[n], c.y[n], kinds[c.kind[n]], self._slot[n] % LANES)
            elif self._ram_bel[n] >= 0:
                x, y, in_group = self._ram_bels[self._ram_bel[n]]
                found[name] = f"X{x}/Y{y}/EBR{in_group}"
        return found

    def net_slack(self) -> Floats:
        """The least slack of each net, in ns."""
        found: Floats = np.minimum.reduceat(self.timing.slack, self.netlist.net_start[:-1])
        return found

    def snapshot(self) -> tuple[Ints, ...]:
        """A copy of all locations, for `restore` and `moved_since`."""
        return tuple(location.copy() for location in self._locations())

    def restore(self, snapshot: tuple[Ints, ...]) -> None:
        """Move all cells back to where they were at `snapshot`."""
        for now, then in zip(self._locations(), snapshot, strict=True):
            now[:] = then
        self._fill_occupancy()
        self.timing.analyse()

    def moved_since(self, snapshot: tuple[Ints, ...]) -> Bools:
        """For each cell, True if it is not where it was at `snapshot`."""
        found: Bools = np.any([now != then for now, then in zip(self._locations(), snapshot, strict=True)], axis=0)
        return found

    def _locations(self) -> tuple[Ints, ...]:
        return self.netlist.x, self.netlist.y, self._slot, self._ram_bel

    def _fill_occupancy(self) -> None:
        """Derive the occupancy from the locations of all cells."""
        kind, slot, occupancy = self.netlist.kind, self._slot, self._occupancy
        for of_kind, occupant, slots in ((LUT, occupancy.lut, 1), (FF, occupancy.ff, 1),
                                         (RAM_PORT, occupancy.ram_port, LANES)):
            cells = np.flatnonzero(kind == of_kind)
            occupant[:] = -1
            occupant[slot[cells] // slots] = cells
        self._ram_occupant[:] = -1
        self._ram_occupant[self._ram_bel[self._block_rams]] = self._block_rams

    def _anneal_round(self, tries: int, tau: float, temperature: float, radius: int, seed: int) -> None:
        every = np.arange(len(self.netlist.cell_names), dtype=np.int32)
        self._try_moves(tries, tau, temperature, radius, seed, every,
                        self._cells_of_arcs_below(max(_LATE_SLACK, 3 * tau)))

    def _cells_of_arcs_below(self, slack: float) -> Ints:
        """The cells at both ends of all arcs with less slack than that, in ns."""
        c = self.netlist
        late = np.flatnonzero((self.timing.slack < slack) & ~c.in_slice)
        return np.unique(np.concatenate([c.sink[late], c.driver[c.net[late]]])).astype(np.int32)

    def _try_moves(self, tries: int, tau: float, temperature: float, radius: int, seed: int, cells: Ints, late: Ints,
                   margin: float = 0., move_penalty: float = 0.) -> None:
        """Try moves of ``cells``, half of them of those that are ``late``."""
        c, timing = self.netlist, self.timing
        cost = CostModel(
            c.cell_start, c.cell_arc, c.driver, c.net, c.sink, timing.wire_table, timing.pin_delay + margin,
            timing.annotated, timing.annotated_dx, timing.annotated_dy, timing.arc_delay + timing.slack,
            self._wire_weight, tau, move_penalty)
        shared = (self._fabric, self._occupancy, self._placement, cost)
        units, block_rams = (group[np.isin(group, cells)] for group in (self._units, self._block_rams))
        tiles = np.unique(self._slot[cells][self._slot[cells] >= 0] // LANES)
        ram_tiles = tiles[self._occupancy.ram_port[tiles] >= 0].astype(np.int32)
        if len(units):
            move_cells(tries, temperature, radius, seed, units, late[c.movable[late]], _LATE_SHARE, *shared)
        for group in (cells, late):
            chains = np.unique(self._chain_of[group])
            if len(chains := chains[chains >= 0].astype(np.int32)):
                move_carry_chains(tries // _TRIES_PER_CHAIN, temperature, max(radius, _MIN_TILE_RADIUS), seed, chains,
                                  self._chain_head, self._chain_length, self._chain_of, *shared)
        if len(ram_tiles):
            move_lut_rams(tries // _TRIES_PER_LUT_RAM, temperature, max(radius, _MIN_TILE_RADIUS), seed, ram_tiles,
                          *shared)
        if len(block_rams):
            move_block_rams(tries // _TRIES_PER_BLOCK_RAM, temperature, _BLOCK_RAM_REACH, seed, block_rams, self._ram_x,
                            self._ram_y, self._ram_occupant, self._ram_bel, self._placement, cost)


def _carry_chains(c: PlacedNetlist) -> tuple[Ints, Ints, Ints]:
    """The first cell of each carry chain, its number of cells (halves of carry cells), and each cell's chain or -1."""
    successor = {int(c.driver[net]): int(sink) for net, sink, port in zip(c.net, c.sink, c.sink_port, strict=True)
                 if port == "FCI" and c.driver_port[net] == "FCO"}
    not_first = set(successor.values())
    chain_of = np.full(len(c.cell_names), -1, np.int32)
    heads, lengths = [], []
    for head in map(int, np.flatnonzero(c.carry)):
        if head in not_first:
            continue
        heads.append(head)
        lengths.append(0)
        cell: int | None = head
        while cell is not None:
            chain_of[cell] = len(heads) - 1
            lengths[-1] += 1
            cell = successor.get(cell)
    return np.array(heads, np.int32), np.array(lengths, np.int32), chain_of
