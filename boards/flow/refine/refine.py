"""A placement of nextpnr's refined: late paths first, by annealing with the delays that wires have when routed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from tqdm import tqdm

from .moves import Cells, Cost, Plan, move_chains, move_rams, move_tiles, move_units
from .packed import COMB, FF, RAMW, Packed, packed
from .sites import LANES, Ints, fabric, ram_sites, site_name
from .timing import Timing

__all__ = ["Refinement"]

#: Rounds, and what falls from the first to the last: ``tau`` of the cost, in ns; temperature; radius, in tiles.
_ROUNDS = 300
_TAU, _TEMPERATURE, _RADIUS = (.5, .12), .02, (16, 2)
#: Tries a round, for each LUT and flip-flop that can be moved; and for each that many of chains, memories and tiles.
_TRIES = 10
_EACH_CHAIN, _EACH_TILE = 100, 200
#: What a column or row crossed costs, beside 1 for an arc that has just the time it needs.
_WIRELENGTH = .004
#: Of the tries, those of cells on late paths: whose slack is below three ``tau``, and .4 ns at least.
_LATE_SHARE, _LATE = .5, .4
#: Block RAMs are moved as far as this, in tiles.
_REACH = 60


class Refinement:
    """A placed netlist under refinement, for a clock of ``period`` ns.

    ``module``: the top module of nextpnr's JSON of a placed netlist. LUTs, flip-flops, carry chains with theirs, tiles
    of LUT RAM and block RAMs are moved; multiplexers of several LUTs (PFUMX, L6MUX21) and all outside slices stay. What
    the sites of a slice and of a tile must share, they share afterwards too.
    """

    def __init__(self, module: Mapping[str, Any], period: float):
        self.cells = c = packed(module)
        self.timing = Timing(c, period)
        self._fabric = fabric()
        n, tiles = len(c.names), len(self._fabric.x)
        self._plan = Plan(*(np.full(size, -1, np.int32) for size in (tiles * LANES, tiles * LANES, tiles)))
        self._slot = np.full(n, -1, np.int32)
        for of, held in ((COMB, self._plan.comb), (FF, self._plan.ff)):
            which = np.flatnonzero(c.kind == of)
            self._slot[which] = self._fabric.tile[c.x[which], c.y[which]] * LANES + c.lane[which]
            held[self._slot[which]] = which
        ports = np.flatnonzero(c.kind == RAMW)
        self._slot[ports] = self._fabric.tile[c.x[ports], c.y[ports]] * LANES + c.lane[ports]
        self._plan.ramw[self._slot[ports] // LANES] = ports
        self._homes = np.unique(self._slot[ports] // LANES).astype(np.int32)
        # The LUTs of a LUT RAM go with its tile, in the three slices that it takes.
        of_ram = (c.kind == COMB) & np.isin(self._slot // LANES, self._homes) & (c.lane < 6)
        c.movable[of_ram] = False
        paired = (c.kind == FF) & (c.partner >= 0)
        c.movable[paired] = c.movable[c.partner[paired]]
        self._units = np.flatnonzero(c.movable & ((c.kind == COMB) | (c.partner < 0))).astype(np.int32)
        self._heads, self._lengths, self._chain = _chains(c)
        sites = ram_sites()
        self._ram_sites = sites
        self._columns, self._rows = (np.array([at[n] for at in sites], np.int32) for n in (0, 1))
        self._rams = np.array([n for n, kind in enumerate(c.types) if kind == "DP16KD"], np.int32)
        self._held, self._site = np.full(len(sites), -1, np.int32), np.full(n, -1, np.int32)
        number = {(x, y): at for at, (x, y, _) in enumerate(sites)}
        for ram in self._rams:
            self._site[ram] = number[c.x[ram], c.y[ram]]
            self._held[self._site[ram]] = ram
        fanout = np.diff(c.net_first)
        self._weight = _WIRELENGTH / np.sqrt(np.maximum(fanout, 1))
        self._moving = Cells(c.x, c.y, self._slot, c.kind == FF, c.movable, c.reads_m, c.carry, c.tile_key, c.slice_key,
                             c.partner)

    def run(self, *, rounds: int = _ROUNDS, tries: float = _TRIES, seed: int = 1) -> float:
        """Anneal; the clock of the best placement found, in MHz, as far as delays can be told before routing.

        ``tries``: for each LUT and flip-flop that can be moved, a round.
        """
        clock = self.timing.analyse()
        best, kept = (clock, *self.timing.late()), self._state()
        for n in tqdm(range(rounds), desc="refining", disable=not sys.stderr.isatty(), leave=False):
            along = n / max(1, rounds - 1)
            self._round(int(tries * len(self._units)), _TAU[0] * (_TAU[1] / _TAU[0])**along,
                        _TEMPERATURE * (1 - along)**2, max(_RADIUS[1], round(
                            _RADIUS[0] * (_RADIUS[1] / _RADIUS[0])**along)), seed * 1000 + n)
            clock = self.timing.analyse()
            # While the clock is the same, the less that is late the better.
            found = (clock, *self.timing.late())
            if (found[0], -found[2]) > (best[0], -best[2]):
                best, kept = found, self._state()
        for now, then in zip(self._places(), kept, strict=True):
            now[:] = then
        self.timing.analyse()
        return best[0]

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

    def _state(self) -> tuple[Ints, ...]:
        return tuple(place.copy() for place in self._places())

    def _round(self, tries: int, tau: float, temperature: float, radius: int, seed: int) -> None:
        c, timing = self.cells, self.timing
        cost = Cost(c.arcs_first, c.arcs, c.source, c.net, c.sink, timing.table, timing.added,
                    timing.wire + timing.slack, self._weight, tau)
        late = np.flatnonzero((timing.slack < max(_LATE, 3 * tau)) & ~c.inside)
        touched = np.unique(np.concatenate([c.sink[late], c.source[c.net[late]]]))
        of_chains = np.unique(self._chain[touched])
        shared = (self._fabric, self._plan, self._moving, cost)
        if len(self._units):
            move_units(tries, temperature, radius, seed, self._units, touched[c.movable[touched]].astype(np.int32),
                       _LATE_SHARE, *shared)
        for which in (np.arange(len(self._heads), dtype=np.int32), of_chains[of_chains >= 0].astype(np.int32)):
            if len(which):
                move_chains(tries // _EACH_CHAIN, temperature, max(radius, 4), seed, which, self._heads, self._lengths,
                            self._chain, *shared)
        if len(self._homes):
            move_tiles(tries // _EACH_TILE, temperature, max(radius, 4), seed, self._homes, *shared)
        if len(self._rams):
            move_rams(tries // _EACH_CHAIN, temperature, _REACH, seed, self._rams, self._columns, self._rows,
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
