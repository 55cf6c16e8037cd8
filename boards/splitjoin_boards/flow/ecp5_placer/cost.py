"""The cost that annealing lowers: delay beyond each arc's budget, and wire length.

The cost of an arc is exp((delay - delay budget) / ``tau``), continued as a straight line from e^3 on: high where slack
is negative, next to nothing where there is much slack (the criticality of the arc). To that each arc adds its net's
``wire_weight`` for each column and row that it crosses. The cost of a cell is the sum over its arcs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arrays import Bools, Floats, Ints, compiled
from .occupancy import Occupancy, Placement

__all__ = ["CostModel", "accept", "budget_excess", "cell_cost", "slot_cost"]

#: Exponent from which the exponential continues as a straight line, and below which it counts as nothing.
_LINEAR_FROM, _NEGLIGIBLE = 3.0, -8.0
_AT_LINEAR = math.exp(_LINEAR_FROM)


class CostModel(NamedTuple):
    """Inputs of `cell_cost`: arcs, delay estimates and weights. Delays are in ns.

    ``cell_start``, ``cell_arc``, ``driver``, ``net``, ``sink``: as in `netlist.PlacedNetlist`. ``wire_table``,
    ``pin_delay``, ``annotated``, ``annotated_dx``, ``annotated_dy``: as in `timing.TimingAnalysis`. ``budget``: for
    each arc, the delay that leaves it no slack. ``wire_weight``: for each net. ``tau``: delay over budget that
    multiplies the cost by e. ``move_penalty``: how much a move must lower the cost for each slot that it swaps.
    """

    cell_start: Ints
    cell_arc: Ints
    driver: Ints
    net: Ints
    sink: Ints
    wire_table: Floats
    pin_delay: Floats
    annotated: Floats
    annotated_dx: Ints
    annotated_dy: Ints
    budget: Floats
    wire_weight: Floats
    tau: float
    move_penalty: float


@compiled
def budget_excess(arc: int, placement: Placement, cost: CostModel) -> float:
    """The estimated delay of ``arc`` less its budget, in ns."""
    driver, sink = cost.driver[cost.net[arc]], cost.sink[arc]
    dx, dy = placement.x[sink] - placement.x[driver], placement.y[sink] - placement.y[driver]
    if cost.annotated_dx[arc] == dx and cost.annotated_dy[arc] == dy:
        return float(cost.annotated[arc] - cost.budget[arc])
    return float(cost.wire_table[abs(dx), abs(dy)] + cost.pin_delay[arc] - cost.budget[arc])


@compiled
def cell_cost(cell: int, placement: Placement, cost: CostModel) -> float:
    """The cost of all arcs of ``cell``; 0 for -1."""
    total = 0.0
    if cell < 0:
        return total
    for n in range(cost.cell_start[cell], cost.cell_start[cell + 1]):
        arc = cost.cell_arc[n]
        driver, sink = cost.driver[cost.net[arc]], cost.sink[arc]
        total += cost.wire_weight[cost.net[arc]] * (
            abs(placement.x[sink] - placement.x[driver]) + abs(placement.y[sink] - placement.y[driver]))
        exponent = budget_excess(arc, placement, cost) / cost.tau
        if exponent > _LINEAR_FROM:
            total += _AT_LINEAR * (1.0 + exponent - _LINEAR_FROM)
        elif exponent > _NEGLIGIBLE:
            total += math.exp(exponent)
    return total


@compiled
def slot_cost(a: Ints, b: Ints, swap_lut: Bools, swap_ff: Bools, occupancy: Occupancy, placement: Placement,
              cost: CostModel) -> float:
    """The cost of the cells that `occupancy.swap_slots` with the same arguments exchanges."""
    total = 0.0
    for n in range(len(a)):
        if swap_lut[n]:
            total += cell_cost(occupancy.lut[a[n]], placement, cost) + cell_cost(occupancy.lut[b[n]], placement, cost)
        if swap_ff[n]:
            total += cell_cost(occupancy.ff[a[n]], placement, cost) + cell_cost(occupancy.ff[b[n]], placement, cost)
    return total


@compiled
def accept(rise: float, temperature: float) -> bool:
    """The Metropolis criterion: True if cost falls, or at random if it rises by ``rise``; never at temperature 0."""
    return rise < 0 or (temperature > 0 and np.random.random() < math.exp(-rise / temperature))
