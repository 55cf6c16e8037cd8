"""How long wires of a routed ECP5 design take, by the columns and rows that they cross: what placements are refined by.

Run: python bench/wires.py, which places and routes the 16 regions of bench/synthesis.py, refined by the table there is,
and writes boards/flow/refine/wires.json anew (an hour). A design's wires differ with its router and speed grade, not
much with the design.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
from splitjoin.boards.flow import ecp5
from splitjoin.boards.flow.design import whole_design
from splitjoin.boards.flow.refine import delays
from splitjoin.boards.flow.refine.packed import Packed
from splitjoin.boards.flow.refine.timing import Timing
from splitjoin.boards.flow.tools import NEXTPNR
from synthesis import REFINED_FOR, WHOLE, WIDTHS, band

#: Columns and rows that have an entry each; beyond them delay grows along a straight line, from there on.
NEAR, FAR_FROM = 25, 12
#: Of the delays over a distance, the one that as many are below: wires on late paths are rather slower than most.
QUANTILE = .6
#: Arcs with more slack than this, in ns, are routed with no haste.
HASTE = 3.0
#: Entries with fewer samples than this lean on what holds for their distance, all directions together.
FEW = 6

Floats = npt.NDArray[np.float64]


def fit(cells: Packed, wires: Floats, period: float) -> dict[str, object]:
    """The table, from the delays of a routed design's arcs."""
    timing = Timing(cells, period)
    timing.analyse(wires)
    at = cells.source[cells.net]
    columns, rows = abs(cells.x[at] - cells.x[cells.sink]), abs(cells.y[at] - cells.y[cells.sink])
    pins = np.array([delays.pin_class(port, carry) for port, carry in
                     zip(cells.sink_port, cells.carry[cells.sink], strict=True)])
    sources = np.array([delays.source_class(cells.source_port[of]) for of in cells.net])
    used = ~cells.inside & (timing.slack < HASTE)
    columns, rows, pins, sources, wires = (of[used] for of in (columns, rows, pins, sources, wires))
    distance = columns + rows
    added = {name: dict.fromkeys(map(str, np.unique(of)), 0.) for name, of in (("pins", pins), ("sources", sources))}
    luts = pins == "LUT"
    for _ in range(8):
        rest = wires - np.array([added["sources"][of] for of in sources])
        by_distance = np.array([np.quantile(rest[luts & (distance == d)], QUANTILE)
                                if (luts & (distance == d)).sum() > FEW else np.nan for d in range(2 * NEAR)])
        known = np.flatnonzero(~np.isnan(by_distance))
        by_distance = np.interp(np.arange(2 * NEAR), known, by_distance[known])
        slope, base = np.polyfit(known[known >= FAR_FROM], by_distance[known[known >= FAR_FROM]], 1)
        near = by_distance[np.add.outer(np.arange(NEAR), np.arange(NEAR))]
        for x in range(NEAR):
            for y in range(NEAR):
                here = rest[luts & (columns == x) & (rows == y)]
                if len(here):
                    near[x, y] = (len(here) * np.quantile(here, QUANTILE) + FEW * near[x, y]) / (len(here) + FEW)
        table = base + slope * np.add.outer(np.arange(130.), np.arange(130.))
        table[:NEAR, :NEAR] = near
        for name, of in (("sources", sources), ("pins", pins)):
            left = wires - table[columns, rows]
            other, also = ("pins", pins) if name == "sources" else ("sources", sources)
            left = left - np.array([added[other][which] for which in also])
            added[name] = {which: float(np.median(left[of == which])) for which in added[name]}
        for name, first in (("pins", "LUT"), ("sources", "F")):
            added[name] = {which: value - added[name][first] for which, value in added[name].items()}
    return {"near": [[round(float(value), 3) for value in row] for row in near],
            "far": [round(float(slope), 4), round(float(base), 3)],
            **{name: {which: round(value, 3) for which, value in of.items()} for name, of in added.items()}}


def main() -> None:
    """Route, fit, write."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    circuit = WHOLE[0]
    config = replace(band(cores=circuit.cores, lanes=circuit.lanes, probes=circuit.probes), widths=WIDTHS)
    with TemporaryDirectory() as folder:
        routed = ecp5.refined(whole_design(config, "ecp5"), REFINED_FOR, Path(folder))
    found = fit(routed.cells, routed.wires, 1e3 / REFINED_FOR)
    delays.WIRES.write_text(json.dumps(found) + "\n")
    print(f"{delays.WIRES}: by {NEXTPNR.version}")


if __name__ == "__main__":
    main()
