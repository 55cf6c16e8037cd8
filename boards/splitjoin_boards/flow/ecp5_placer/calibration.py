"""Fits the wire delay table, which `delays.wire_table` reads, to the routed delays of a design."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from . import delays
from .flow import PlacerResult
from .timing import TimingAnalysis

__all__ = ["fit_wire_delays"]

#: Columns and rows with an entry each. Beyond them the delay follows a straight line, fitted from the second on.
_NEAR, _LINE_FROM = 25, 12
#: Quantile of the delays over one distance: wires of critical paths are slower than the median.
_QUANTILE = .6
#: Arcs with more slack than this, in ns, are left out: the router does not hurry with them.
_MAX_SLACK = 3.0
#: Weight, in samples, of the delay over a distance in all directions against the samples of an entry.
_PRIOR = 6
_ITERATIONS = 8


def fit_wire_delays(result: PlacerResult, mhz: float) -> Path:
    """Fit the table to a routed design whose slack is that for a clock of ``mhz``, write it, and return its path."""
    delays.WIRE_DELAYS.write_text(json.dumps(fitted(result, mhz)) + "\n")
    return delays.WIRE_DELAYS


def fitted(result: PlacerResult, mhz: float) -> dict[str, object]:
    """The table as JSON. In ns: ``near``, by [columns, rows]; ``far``, slope and base of the line; and what is added
    for classes of input ports (``pins``) and of output ports (``sources``).
    """
    netlist, wires = result.netlist, result.arc_delays
    timing = TimingAnalysis(netlist, 1e3 / mhz)
    timing.analyse(wires)
    driver = netlist.driver[netlist.net]
    columns, rows = (abs(at[driver] - at[netlist.sink]) for at in (netlist.x, netlist.y))
    pins = np.array([delays.sink_class(port, carry) for port, carry in
                     zip(netlist.sink_port, netlist.carry[netlist.sink], strict=True)])
    sources = np.array([delays.driver_class(netlist.driver_port[net]) for net in netlist.net])
    used = ~netlist.in_slice & (timing.slack < _MAX_SLACK)
    columns, rows, wires, pins, sources = columns[used], rows[used], wires[used], pins[used], sources[used]
    distance = columns + rows
    added = {name: dict.fromkeys(map(str, np.unique(of)), 0.) for name, of in (("pins", pins), ("sources", sources))}
    luts = pins == "LUT"
    for _ in range(_ITERATIONS):
        rest = wires - np.array([added["sources"][of] for of in sources])
        by_distance = np.array([np.quantile(rest[luts & (distance == d)], _QUANTILE)
                                if (luts & (distance == d)).sum() > _PRIOR else np.nan for d in range(2 * _NEAR)])
        known = np.flatnonzero(~np.isnan(by_distance))
        by_distance = np.interp(np.arange(2 * _NEAR), known, by_distance[known])
        far = known[known >= _LINE_FROM]
        slope, base = np.polyfit(far, by_distance[far], 1)
        near = by_distance[np.add.outer(np.arange(_NEAR), np.arange(_NEAR))]
        for x in range(_NEAR):
            for y in range(_NEAR):
                here = rest[luts & (columns == x) & (rows == y)]
                if len(here):
                    near[x, y] = (len(here) * np.quantile(here, _QUANTILE) + _PRIOR * near[x, y]) / (
                        len(here) + _PRIOR)
        table = base + slope * np.add.outer(np.arange(130.), np.arange(130.))
        table[:_NEAR, :_NEAR] = near
        for name, of in (("sources", sources), ("pins", pins)):
            left = wires - table[columns, rows]
            other, also = ("pins", pins) if name == "sources" else ("sources", sources)
            left = left - np.array([added[other][which] for which in also])
            added[name] = {which: float(np.median(left[of == which])) for which in added[name]}
        # The table itself is of wires from F of a LUT to an input of a LUT.
        for name, first in (("pins", "LUT"), ("sources", "F")):
            added[name] = {which: value - added[name][first] for which, value in added[name].items()}
    return {"near": [[round(float(value), 3) for value in row] for row in near],
            "far": [round(float(slope), 4), round(float(base), 3)],
            **{name: {which: round(value, 3) for which, value in of.items()} for name, of in added.items()}}
