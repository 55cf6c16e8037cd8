"""Where the memories of each region of a large ECP5 design go, so that its cores lie side by side over the device.

nextpnr begins with everything in one point and spreads cells only until they fit, so that cores lie through one another
at the densest that there is, and routing does not come to an end. Memories that stand still, as few as they are, hold
the logic around them: eight cores came to a fifth less length of wire, in a quarter of the time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

__all__ = ["PLANNED_FROM", "RAM_COLUMNS", "RAM_ROWS", "floorplan"]

#: Columns and rows of the LFE5U-85F.
_WIDE, _HIGH = 126, 95
#: The rows with block RAM, and its columns: groups of four, with the device's middle between the seventh and eighth.
RAM_ROWS = (22, 46, 70, 82)
RAM_COLUMNS = tuple((first + 2 * n, n) for first in (*range(4, 67, 9), *range(69, 123, 9)) for n in range(4))
#: LUT4s or flip-flops from which on a design needs a plan, a third of the device. Smaller ones stay together.
PLANNED_FROM = 28_000
#: A block RAM's name in the flat netlist says which region it is of.
_REGION = re.compile(r"(?:^|\.)core(\d+)\.(left|right)\.")


def floorplan(netlist: dict[str, Any], top: str) -> dict[str, str]:
    """Site by name of block RAM: those of a region side by side, in the middle of the region's part of the device.

    ``netlist``: Yosys's JSON, flat. Block RAMs that are of no region are left out.
    """
    regions = defaultdict(list)
    for name, cell in netlist["modules"][top]["cells"].items():
        if cell["type"] == "DP16KD" and (of := _REGION.search(name)):
            regions[int(of[1]), ("left", "right").index(of[2])].append(name)
    free = [(x, y, n) for y in RAM_ROWS for x, n in RAM_COLUMNS]
    cores = len({core for core, _ in regions})
    placed = {}
    for (core, side), names in sorted(regions.items()):
        x, y = _middle(core, side, cores)
        free.sort(key=lambda site: abs(site[0] - x) + abs(site[1] - y))
        near, free = free[:len(names)], free[len(names):]
        # Parts of one memory follow each other, by name, in a row.
        for name, (column, row, n) in zip(sorted(names), sorted(near, key=lambda site: (site[1], site[0])),
                                          strict=False):
            placed[name] = f"X{column}/Y{row}/EBR{n}"
    return placed


def _middle(core: int, side: int, cores: int) -> tuple[float, float]:
    """Of a region's part of the device. Up to three cores stand in one row, more in two."""
    rows = 1 if cores < 4 else 2
    columns = -(-cores // rows)
    row, column = divmod(core, columns)
    along, across = .25 + .5 * side, .5
    # Memories lie in rows, so that a core's two regions lie beside each other where there is the width.
    x, y = (across, along) if 1 < cores < 4 else (along, across)
    return (column + x) * _WIDE / columns, (row + y) * _HIGH / rows
