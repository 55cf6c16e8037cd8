"""Static timing analysis of one clock domain: arrival time of each net, slack of each arc."""

from __future__ import annotations

import numpy as np

from . import delays
from .arrays import Bools, Floats, Ints, compiled
from .netlist import PlacedNetlist

__all__ = ["TimingAnalysis", "critical_path_ends"]

#: A time beyond any arrival or required time, in ns.
_NEVER = 1e3
#: An offset, in columns or rows, that no arc has.
_NO_OFFSET = 1000


@compiled
def _propagate_arrivals(net_order: Ints, launch: Floats, fanin_start: Ints, fanin_arc: Ints, fanin_delay: Floats,
                        net: Ints, arc_delay: Floats, arrival: Floats) -> None:
    for driven in net_order:
        if launch[driven] >= 0:
            arrival[driven] = launch[driven]
            continue
        latest = -_NEVER
        for n in range(fanin_start[driven], fanin_start[driven + 1]):
            arc = fanin_arc[n]
            latest = max(latest, arrival[net[arc]] + arc_delay[arc] + fanin_delay[n])
        arrival[driven] = latest


@compiled
def _propagate_slacks(net_order: Ints, launch: Floats, fanin_start: Ints, fanin_arc: Ints, fanin_delay: Floats,
                      net: Ints, net_start: Ints, setup: Floats, arc_delay: Floats, arrival: Floats, period: float,
                      slack: Floats) -> None:
    # Until the last loop, slack holds required times at the end of each arc.
    for arc in range(len(slack)):
        slack[arc] = period - setup[arc] if setup[arc] >= 0 else _NEVER
    for driven in net_order[::-1]:
        if launch[driven] >= 0:
            continue
        required = _NEVER
        for arc in range(net_start[driven], net_start[driven + 1]):
            required = min(required, slack[arc] - arc_delay[arc])
        for n in range(fanin_start[driven], fanin_start[driven + 1]):
            slack[fanin_arc[n]] = min(slack[fanin_arc[n]], required - fanin_delay[n])
    for arc in range(len(slack)):
        slack[arc] -= arrival[net[arc]] + arc_delay[arc]


class TimingAnalysis:
    """Delay and slack of each arc of a placed netlist, in ns, for a clock of ``period`` ns.

    Delays of wires are estimates (`delays`), or back-annotated ones of wires that were routed.

    ``arc_delay``, ``slack``: of each arc, as of the last `analyse`. ``wire_table``, ``pin_delay``: the estimate by
    offset, and what is added to it for each arc's ports. ``annotated``: back-annotated delay of each arc, valid as long
    as its sink is ``annotated_dx`` columns and ``annotated_dy`` rows from its driver.
    """

    def __init__(self, netlist: PlacedNetlist, period: float):
        self._netlist, self.period = netlist, period
        self.wire_table, by_sink, by_driver = delays.wire_table()
        self.pin_delay = np.array([
            by_sink.get(delays.sink_class(port, netlist.carry[sink]), 0.)
            + by_driver.get(delays.driver_class(netlist.driver_port[net]), 0.)
            for port, sink, net in zip(netlist.sink_port, netlist.sink, netlist.net, strict=True)])
        self._in_slice_delay = np.array([delays.IN_SLICE.get((netlist.driver_port[net], port), 0.)
                                         for net, port in zip(netlist.net, netlist.sink_port, strict=True)])
        n_arcs = len(netlist.net)
        self.arc_delay, self.slack = np.zeros(n_arcs), np.zeros(n_arcs)
        self.annotated = np.zeros(n_arcs)
        self.annotated_dx, self.annotated_dy = (np.full(n_arcs, _NO_OFFSET, np.int32) for _ in range(2))
        self._arrival = np.zeros(len(netlist.driver))
        self._is_endpoint = netlist.setup >= 0

    def analyse(self, arc_delay: Floats | None = None) -> float:
        """Set ``arc_delay``, as given or by the cells' locations, and ``slack``. Returns the highest clock in MHz."""
        c = self._netlist
        if arc_delay is None:
            dx, dy = self._offsets()
            estimate = self.wire_table[abs(dx), abs(dy)] + self.pin_delay
            estimate = np.where((dx == self.annotated_dx) & (dy == self.annotated_dy), self.annotated, estimate)
            arc_delay = np.where(c.in_slice, self._in_slice_delay, estimate)
        self.arc_delay[:] = arc_delay
        _propagate_arrivals(c.net_order, c.launch, c.fanin_start, c.fanin_arc, c.fanin_delay, c.net, self.arc_delay,
                            self._arrival)
        _propagate_slacks(c.net_order, c.launch, c.fanin_start, c.fanin_arc, c.fanin_delay, c.net, c.net_start,
                          c.setup, self.arc_delay, self._arrival, self.period, self.slack)
        return float(1e3 / (self.period - self.slack[self._is_endpoint].min()))

    def annotate(self, arcs: Bools, arc_delay: Floats) -> None:
        """Back-annotate the delays of some arcs, as long as driver and sink keep their offset to each other."""
        dx, dy = self._offsets()
        self.annotated[arcs], self.annotated_dx[arcs], self.annotated_dy[arcs] = arc_delay[arcs], dx[arcs], dy[arcs]

    @property
    def annotation(self) -> tuple[Floats, Ints, Ints]:
        """A copy of all back-annotated delays, which can be assigned to restore them."""
        return self.annotated.copy(), self.annotated_dx.copy(), self.annotated_dy.copy()

    @annotation.setter
    def annotation(self, saved: tuple[Floats, Ints, Ints]) -> None:
        self.annotated[:], self.annotated_dx[:], self.annotated_dy[:] = saved

    def violations(self) -> tuple[int, float]:
        """The number of endpoints with negative slack, and the total negative slack as a positive number of ns."""
        slack = self.slack[self._is_endpoint]
        return int((slack < 0).sum()), float(-slack[slack < 0].sum())

    def _offsets(self) -> tuple[Ints, Ints]:
        """Columns and rows from the driver of each arc to its sink."""
        c = self._netlist
        driver = c.driver[c.net]
        return c.x[c.sink] - c.x[driver], c.y[c.sink] - c.y[driver]


def critical_path_ends(netlist: PlacedNetlist, timing: TimingAnalysis) -> tuple[str, str]:
    """The names of the cells in which the critical path begins and ends."""
    is_endpoint: Bools = netlist.setup >= 0
    arc = int(np.flatnonzero(is_endpoint)[timing.slack[is_endpoint].argmin()])
    sink = netlist.cell_names[netlist.sink[arc]]
    while netlist.launch[net := netlist.net[arc]] < 0:
        fanin = netlist.fanin_arc[netlist.fanin_start[net]:netlist.fanin_start[net + 1]]
        arc = min(fanin, key=lambda arc: timing.slack[arc])
    return netlist.cell_names[netlist.driver[net]], sink
