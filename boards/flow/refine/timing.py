"""Static timing analysis of one clock domain: when nets arrive, and how much later each arc might be."""

from __future__ import annotations

import numpy as np

from . import delays
from .compiled import compiled
from .packed import Bools, Floats, Packed
from .sites import Ints

__all__ = ["Timing", "slowest"]

#: Earlier or later than anything.
_NEVER = 1e3
#: Columns and rows that no wire crosses.
_NOWHERE = 1000


@compiled
def _arrivals(order: Ints, launch: Floats, fed_first: Ints, fed_by: Ints, fed_in: Floats, net: Ints, wire: Floats,
              arrival: Floats) -> None:
    for of in order:
        if launch[of] >= 0:
            arrival[of] = launch[of]
            continue
        latest = -_NEVER
        for at in range(fed_first[of], fed_first[of + 1]):
            arc = fed_by[at]
            latest = max(latest, arrival[net[arc]] + wire[arc] + fed_in[at])
        arrival[of] = latest


@compiled
def _slacks(order: Ints, launch: Floats, fed_first: Ints, fed_by: Ints, fed_in: Floats, net: Ints, net_first: Ints,
            setup: Floats, wire: Floats, arrival: Floats, period: float, slack: Floats) -> None:
    # At first, when an arc has to arrive.
    for arc in range(len(slack)):
        slack[arc] = period - setup[arc] if setup[arc] >= 0 else _NEVER
    for of in order[::-1]:
        if launch[of] >= 0:
            continue
        due = _NEVER
        for arc in range(net_first[of], net_first[of + 1]):
            due = min(due, slack[arc] - wire[arc])
        for at in range(fed_first[of], fed_first[of + 1]):
            slack[fed_by[at]] = min(slack[fed_by[at]], due - fed_in[at])
    for arc in range(len(slack)):
        slack[arc] -= arrival[net[arc]] + wire[arc]


class Timing:
    """What a placement takes, by `delays`. ``slack``: of each arc, in ns, to a clock of ``period`` ns."""

    def __init__(self, cells: Packed, period: float):
        self._cells, self.period = cells, period
        self.table, pins, sources = delays.wire_table()
        #: What is added to the table for each arc.
        self.added = np.array([
            pins.get(delays.pin_class(port, cells.carry[sink]), 0.)
            + sources.get(delays.source_class(cells.source_port[of]), 0.)
            for port, sink, of in zip(cells.sink_port, cells.sink, cells.net, strict=True)])
        self._within = np.array([delays.DEDICATED.get((cells.source_port[of], port), 0.)
                                 for of, port in zip(cells.net, cells.sink_port, strict=True)])
        self.wire, self.slack = np.zeros(len(cells.net)), np.zeros(len(cells.net))
        #: Delays that were routed, and the columns and rows between the two cells then.
        self.held = np.zeros(len(cells.net))
        self.held_x, self.held_y = (np.full(len(cells.net), _NOWHERE, np.int32) for _ in range(2))
        self._arrival = np.zeros(len(cells.source))
        self._ends = cells.setup >= 0

    def analyse(self, wire: Floats | None = None) -> float:
        """Set ``wire`` and ``slack`` by where cells are, or by the delays of wires given; the clock in MHz."""
        c = self._cells
        if wire is None:
            columns, rows = self._crossed()
            told = self.table[abs(columns), abs(rows)] + self.added
            told = np.where((columns == self.held_x) & (rows == self.held_y), self.held, told)
            wire = np.where(c.inside, self._within, told)
        self.wire[:] = wire
        _arrivals(c.order, c.launch, c.fed_first, c.fed_by, c.fed_in, c.net, self.wire, self._arrival)
        _slacks(c.order, c.launch, c.fed_first, c.fed_by, c.fed_in, c.net, c.net_first, c.setup, self.wire,
                self._arrival, self.period, self.slack)
        return float(1e3 / (self.period - self.slack[self._ends].min()))

    def learn(self, which: Bools, wire: Floats) -> None:
        """Hold the delays of some arcs, as long as their two cells stay where they are, or move together."""
        columns, rows = self._crossed()
        self.held[which], self.held_x[which], self.held_y[which] = wire[which], columns[which], rows[which]

    @property
    def learnt(self) -> tuple[Floats, Ints, Ints]:
        """All that it was told to hold, to be set again."""
        return self.held.copy(), self.held_x.copy(), self.held_y.copy()

    @learnt.setter
    def learnt(self, then: tuple[Floats, Ints, Ints]) -> None:
        self.held[:], self.held_x[:], self.held_y[:] = then

    def _crossed(self) -> tuple[Ints, Ints]:
        """Columns and rows from the source of each arc to its sink."""
        c = self._cells
        of = c.source[c.net]
        return c.x[c.sink] - c.x[of], c.y[c.sink] - c.y[of]

    def late(self) -> tuple[int, float]:
        """How many ends are late, and by how many ns together."""
        slack = self.slack[self._ends]
        return int((slack < 0).sum()), float(-slack[slack < 0].sum())


def slowest(cells: Packed, timing: Timing) -> tuple[str, str]:
    """The cells where the slowest path begins and ends."""
    ends: Bools = cells.setup >= 0
    arc = int(np.flatnonzero(ends)[timing.slack[ends].argmin()])
    sink = cells.names[cells.sink[arc]]
    while cells.launch[of := cells.net[arc]] < 0:
        arc = min(cells.fed_by[cells.fed_first[of]:cells.fed_first[of + 1]], key=lambda arc: timing.slack[arc])
    return cells.names[cells.source[of]], sink
