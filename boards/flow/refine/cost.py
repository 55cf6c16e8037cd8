"""What moves are judged by.

The cost of an arc is exp((its delay - what it may take) / ``tau``), straight from e^3 on, so that it is high where
paths are late, and next to nothing where there is time; and ``weight`` of its net for each column and row crossed.
A cell costs the sum over its arcs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .compiled import compiled
from .packed import Bools, Floats
from .plan import Cells, Plan
from .sites import Ints

__all__ = ["Cost", "accepted", "excess", "of_cell", "of_slots"]

#: From where on the exponential goes on as a straight line, and below which it counts as nothing.
_STEEP, _FLAT = 3.0, -8.0
_AT_STEEP = math.exp(_STEEP)


class Cost(NamedTuple):
    """What an arc is weighed by, as said above: ``allowed`` is the delay of each that would leave it no slack.

    ``held``: the delay of each while its sink is ``held_x`` columns and ``held_y`` rows from its source. ``price``:
    what a move must lower the cost by for each slot whose cells change places.
    """

    arcs_first: Ints
    arcs: Ints
    source: Ints
    net: Ints
    sink: Ints
    table: Floats
    added: Floats
    held: Floats
    held_x: Ints
    held_y: Ints
    allowed: Floats
    weight: Floats
    tau: float
    price: float


@compiled
def excess(arc: int, cells: Cells, cost: Cost) -> float:
    a, b = cost.source[cost.net[arc]], cost.sink[arc]
    columns, rows = cells.x[b] - cells.x[a], cells.y[b] - cells.y[a]
    if cost.held_x[arc] == columns and cost.held_y[arc] == rows:
        return float(cost.held[arc] - cost.allowed[arc])
    return float(cost.table[abs(columns), abs(rows)] + cost.added[arc] - cost.allowed[arc])


@compiled
def of_cell(cell: int, cells: Cells, cost: Cost) -> float:
    total = 0.0
    if cell < 0:
        return total
    for at in range(cost.arcs_first[cell], cost.arcs_first[cell + 1]):
        arc = cost.arcs[at]
        a, b = cost.source[cost.net[arc]], cost.sink[arc]
        total += cost.weight[cost.net[arc]] * (abs(cells.x[b] - cells.x[a]) + abs(cells.y[b] - cells.y[a]))
        z = excess(arc, cells, cost) / cost.tau
        if z > _STEEP:
            total += _AT_STEEP * (1.0 + z - _STEEP)
        elif z > _FLAT:
            total += math.exp(z)
    return total


@compiled
def accepted(rise: float, temperature: float) -> bool:
    return rise < 0 or (temperature > 0 and np.random.random() < math.exp(-rise / temperature))


@compiled
def of_slots(a: Ints, b: Ints, combs: Bools, ffs: Bools, plan: Plan, cells: Cells, cost: Cost) -> float:
    total = 0.0
    for n in range(len(a)):
        if combs[n]:
            total += of_cell(plan.comb[a[n]], cells, cost) + of_cell(plan.comb[b[n]], cells, cost)
        if ffs[n]:
            total += of_cell(plan.ff[a[n]], cells, cost) + of_cell(plan.ff[b[n]], cells, cost)
    return total
