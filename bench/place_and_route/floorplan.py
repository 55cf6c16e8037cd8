"""A floorplan for large ECP5 designs: bels for the block RAMs of each region, so that cores lie side by side.

nextpnr's placer starts with all cells in one point and spreads them only until they fit. Cores then overlap at the
highest density, and routing does not end. Block RAMs in fixed places, few as they are, hold the logic around them: with
eight cores, wires were shorter by a fifth, in a quarter of the time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

#: Numbers of columns and rows of the LFE5U-85F.
_COLUMNS, _ROWS = 126, 95
#: The rows with block RAM. The column and number in its group of each block RAM of a row: groups of four, seven of
#: them left of the device's middle and six right of it.
RAM_ROWS = (22, 46, 70, 82)
RAM_COLUMNS = tuple((first + 2 * n, n) for first in (*range(4, 67, 9), *range(69, 123, 9)) for n in range(4))
#: LUT4s or flip-flops from which on a design needs a floorplan: a third of the device.
PLANNED_FROM = 28_000
#: Core and side of the region, in the name of a block RAM in the flat netlist.
_REGION = re.compile(r"(?:^|\.)core(\d+)\.(left|right)\.")


def floorplan(netlist: dict[str, Any], top: str) -> dict[str, str]:
    """Name of block RAM → bel: those of a region side by side, in the middle of the region's part of the device.

    ``netlist``: Yosys's JSON, flat. Block RAMs outside regions are left out.
    """
    regions = defaultdict(list)
    for name, cell in netlist["modules"][top]["cells"].items():
        if cell["type"] == "DP16KD" and (of := _REGION.search(name)):
            regions[int(of[1]), ("left", "right").index(of[2])].append(name)
    free = [(x, y, n) for y in RAM_ROWS for x, n in RAM_COLUMNS]
    cores = len({core for core, _ in regions})
    placed = {}
    for (core, side), names in sorted(regions.items()):
        x, y = _center(core, side, cores)
        free.sort(key=lambda bel: abs(bel[0] - x) + abs(bel[1] - y))
        near, free = free[:len(names)], free[len(names):]
        # The blocks of one memory follow each other, by name, in a row.
        for name, (column, row, n) in zip(sorted(names), sorted(near, key=lambda bel: (bel[1], bel[0])),
                                          strict=False):
            placed[name] = f"X{column}/Y{row}/EBR{n}"
    return placed


def _center(core: int, side: int, cores: int) -> tuple[float, float]:
    """Column and row of the center of a region's part of the device. Up to three cores are in one row, more in two."""
    rows = 1 if cores < 4 else 2
    columns = -(-cores // rows)
    row, column = divmod(core, columns)
    along, across = .25 + .5 * side, .5
    # Block RAMs lie in rows, so that a core's two regions lie beside each other where the core is wide enough.
    x, y = (across, along) if 1 < cores < 4 else (along, across)
    return (column + x) * _COLUMNS / columns, (row + y) * _ROWS / rows
