"""A placement of nextpnr's refined: late paths first, by annealing with the delays that wires have when routed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from .cost import Cost
from .moves import move_chains, move_rams, move_tiles, move_units
from .packed import COMB, FF, RAMW, Bools, Floats, Packed, packed
from .plan import Cells, Plan
from .sites import LANES, Ints, fabric, ram_sites, site_name
from .timing import Timing

__all__ = ["Refinement"]

#: Rounds, and what falls from the first to the last: ``tau`` of the cost, in ns; temperature; radius, in tiles.
_ROUNDS = 300
_TAU, _TEMPERATURE, _RADIUS = (.5, .12), .02, (16, 2)
#: Tries a round, for each LUT and flip-flop that can be moved; and to how many of these there is one of a carry chain,
#: of a block RAM, and of a tile of LUT RAM.
_TRIES = 10
_EACH_CHAIN, _EACH_RAM, _EACH_TILE = 10, 100, 200
#: What a column or row crossed costs, beside 1 for an arc that has just the time it needs.
_WIRELENGTH = .004
#: Of the tries, those of cells on late paths: whose slack is below three ``tau``, and .4 ns at least.
_LATE_SHARE, _LATE = .5, .4
#: Block RAMs are moved as far as this, in tiles.
_REACH = 60
#: Mending: moves are for what has less slack than the first, in ns, within a radius, in tiles; ``tau`` of the cost, in
#: ns; moves a late cell; and the price of a move, as whatever is moved gets other wires.
_URGENT, _NEAR, _TAU_MENDING, _MOVES, _PRICE = .02, 5, .06, 3000, .05


class Refinement:
    """A placed netlist under refinement, for a clock of ``period`` ns.

    ``module``: the top module of nextpnr's JSON of a placed netlist. LUTs, flip-flops, tiles with carry chains, tiles
    of LUT RAM and block RAMs are moved; multiplexers of several LUTs (PFUMX, L6MUX21) and all outside slices stay. What
    the sites of a slice and of a tile must share, they share afterwards too.
    """

    def __init__(self, module: Mapping[str, Any], period: float):
        self.cells = c = packed(module)
        self.timing = Timing(c, period)
        self._fabric = fabric()
        n, tiles = len(c.names), len(self._fabric.x)
        self._plan = Plan(*(np.full(size, -1, np.int32) for size in (tiles * LANES, tiles * LANES, tiles)))
        inside = np.isin(c.kind, (COMB, FF, RAMW))
        self._slot = np.where(inside, self._fabric.tile[c.x, c.y] * LANES + c.lane, -1).astype(np.int32)
        sites = ram_sites()
        self._ram_sites = sites
        self._columns, self._rows = (np.array([at[n] for at in sites], np.int32) for n in (0, 1))
        self._rams = np.array([n for n, kind in enumerate(c.types) if kind == "DP16KD"], np.int32)
        self._held, self._site = np.full(len(sites), -1, np.int32), np.full(n, -1, np.int32)
        number = {(x, y): at for at, (x, y, _) in enumerate(sites)}
        for ram in self._rams:
            self._site[ram] = number[c.x[ram], c.y[ram]]
        self._fill()
        # The LUTs of a LUT RAM go with its tile, in the three slices that it takes.
        of_ram = (c.kind == COMB) & (self._plan.ramw[self._slot // LANES] >= 0) & (c.lane < 6)
        c.movable[of_ram] = False
        paired = (c.kind == FF) & (c.partner >= 0)
        c.movable[paired] = c.movable[c.partner[paired]]
        self._units = np.flatnonzero(c.movable & ((c.kind == COMB) | (c.partner < 0))).astype(np.int32)
        self._heads, self._lengths, self._chain = _chains(c)
        fanout = np.diff(c.net_first)
        self._weight = _WIRELENGTH / np.sqrt(np.maximum(fanout, 1))
        self._moving = Cells(c.x, c.y, self._slot, c.kind == FF, c.movable, c.reads_m, c.carry, c.tile_key, c.slice_key,
                             c.partner)

    def run(self, *, rounds: int = _ROUNDS, tries: float = _TRIES, seed: int = 1) -> float:
        """Anneal; the clock of the best placement found, in MHz, as far as delays can be told before routing.

        ``tries``: for each LUT and flip-flop that can be moved, a round.
        """
        clock = self.timing.analyse()
        best, kept = (clock, *self.timing.late()), self.state()
        for n in tqdm(range(rounds), desc="refining", disable=not sys.stderr.isatty(), leave=False):
            along = n / max(1, rounds - 1)
            self._round(int(tries * len(self._units)), _TAU[0] * (_TAU[1] / _TAU[0])**along,
                        _TEMPERATURE * (1 - along)**2, max(_RADIUS[1], round(
                            _RADIUS[0] * (_RADIUS[1] / _RADIUS[0])**along)), seed * 1000 + n)
            clock = self.timing.analyse()
            # While the clock is the same, the less that is late the better.
            found = (clock, *self.timing.late())
            if (found[0], -found[2]) > (best[0], -best[2]):
                best, kept = found, self.state()
        self.restore(kept)
        return best[0]

    def mend(self, *, ahead: float = 0., rounds: int = 3, seed: int = 1) -> None:
        """Move cells of late paths a little, as long as that lowers the cost.

        What `Timing.learn` was told holds for arcs that do not change; others are foreseen to take ``ahead`` ns more
        than such arcs take in general.
        """
        timing = self.timing
        for n in range(rounds):
            timing.analyse()
            touched = self._touched(_URGENT)
            if not len(touched):
                return
            self._moves(len(touched) * _MOVES, _TAU_MENDING, 0., _NEAR, seed * 1000 + n, touched, touched, ahead,
                        _PRICE)
        timing.analyse()

    def sites(self) -> dict[str, str]:
        """Nextpnr's name of the site of each cell in a slice and each block RAM."""
        c, found = self.cells, {}
        names = {COMB: "K", FF: "FF", RAMW: "RAMW"}
        for n, name in enumerate(c.names):
            if c.kind[n] in names:
                found[name] = site_name(c.x[n], c.y[n], names[c.kind[n]], self._slot[n] % LANES)
            elif self._site[n] >= 0:
                x, y, at = self._ram_sites[self._site[n]]
                found[name] = f"X{x}/Y{y}/EBR{at}"
        return found

    def _places(self) -> tuple[Ints, ...]:
        return self.cells.x, self.cells.y, self._slot, self._site

    def state(self) -> tuple[Ints, ...]:
        """Where all cells are, to `restore` it."""
        return tuple(place.copy() for place in self._places())

    def net_slack(self) -> Floats:
        """The least slack of each net, in ns."""
        found: Floats = np.minimum.reduceat(self.timing.slack, self.cells.net_first[:-1])
        return found

    def moved(self, since: tuple[Ints, ...]) -> Bools:
        """Which cells are not where they were in that `state`."""
        found: Bools = np.any([now != then for now, then in zip(self._places(), since, strict=True)], axis=0)
        return found

    def restore(self, state: tuple[Ints, ...]) -> None:
        """Put all cells where they were."""
        for now, then in zip(self._places(), state, strict=True):
            now[:] = then
        self._fill()
        self.timing.analyse()

    def _fill(self) -> None:
        """What is where, from where cells are."""
        kind, slot, plan = self.cells.kind, self._slot, self._plan
        for of, there, size in ((COMB, plan.comb, 1), (FF, plan.ff, 1), (RAMW, plan.ramw, LANES)):
            which = np.flatnonzero(kind == of)
            there[:] = -1
            there[slot[which] // size] = which
        self._held[:] = -1
        self._held[self._site[self._rams]] = self._rams

    def _round(self, tries: int, tau: float, temperature: float, radius: int, seed: int) -> None:
        every = np.arange(len(self.cells.names), dtype=np.int32)
        self._moves(tries, tau, temperature, radius, seed, every, self._touched(max(_LATE, 3 * tau)))

    def _touched(self, slack: float) -> Ints:
        """The cells at both ends of arcs with less slack than that, in ns."""
        c = self.cells
        late = np.flatnonzero((self.timing.slack < slack) & ~c.inside)
        return np.unique(np.concatenate([c.sink[late], c.source[c.net[late]]])).astype(np.int32)

    def _moves(self, tries: int, tau: float, temperature: float, radius: int, seed: int, of: Ints, late: Ints,
               ahead: float = 0., price: float = 0.) -> None:
        """Moves of the cells ``of``, half of them of those that are ``late``."""
        c, timing = self.cells, self.timing
        cost = Cost(c.arcs_first, c.arcs, c.source, c.net, c.sink, timing.table, timing.added + ahead, timing.held,
                    timing.held_x, timing.held_y, timing.wire + timing.slack, self._weight, tau, price)
        shared = (self._fabric, self._plan, self._moving, cost)
        units, rams = (which[np.isin(which, of)] for which in (self._units, self._rams))
        tiles = np.unique(self._slot[of][self._slot[of] >= 0] // LANES)
        homes = tiles[self._plan.ramw[tiles] >= 0].astype(np.int32)
        if len(units):
            move_units(tries, temperature, radius, seed, units, late[c.movable[late]], _LATE_SHARE, *shared)
        for cells in (of, late):
            chains = np.unique(self._chain[cells])
            if len(chains := chains[chains >= 0].astype(np.int32)):
                move_chains(tries // _EACH_CHAIN, temperature, max(radius, 4), seed, chains, self._heads, self._lengths,
                            self._chain, *shared)
        if len(homes):
            move_tiles(tries // _EACH_TILE, temperature, max(radius, 4), seed, homes, *shared)
        if len(rams):
            move_rams(tries // _EACH_RAM, temperature, _REACH, seed, rams, self._columns, self._rows,
                      self._held, self._site, self._moving, cost)


def _chains(c: Packed) -> tuple[Ints, Ints, Ints]:
    """The first cell of each carry chain, its length in halves of carry cells, and the chain of each cell or -1."""
    follows = {int(c.source[of]): int(sink) for of, sink, port in zip(c.net, c.sink, c.sink_port, strict=True)
               if port == "FCI" and c.source_port[of] == "FCO"}
    behind = set(follows.values())
    chain = np.full(len(c.names), -1, np.int32)
    heads, lengths = [], []
    for cell in map(int, np.flatnonzero(c.carry)):
        if cell in behind:
            continue
        heads.append(cell)
        lengths.append(0)
        at: int | None = cell
        while at is not None:
            chain[at] = len(heads) - 1
            lengths[-1] += 1
            at = follows.get(at)
    return np.array(heads, np.int32), np.array(lengths, np.int32), chain
