"""The fabric of the LFE5U-85F: tiles of slices, block RAMs, and nextpnr's names of their bels."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ..floorplan import RAM_COLUMNS, RAM_ROWS
from .arrays import Ints

__all__ = ["LANES", "Bel", "Fabric", "bel_name", "fabric", "parse_bel", "ram_bels"]

#: Lanes of a tile, two in each of its four slices. A lane has a bel for a LUT and a bel for a flip-flop.
LANES = 8
_COLUMNS, _ROWS = range(2, 125), range(2, 94)
#: Rows of multipliers. They have no slices, nor have the rows of block RAM.
_DSP_ROWS = (10, 34, 58)
_SLICE_BEL = re.compile(r"X(\d+)/Y(\d+)/SLICE([ABCD])\.(K|FF|RAMW)([01]?)$")
_OTHER_BEL = re.compile(r"X(\d+)/Y(\d+)/")
_SLICES = "ABCD"


class Bel(NamedTuple):
    """A bel: the place of one cell.

    ``x``, ``y``: column and row of its tile. ``kind``: K (LUT or half a carry cell), FF (flip-flop), RAMW (write port
    of LUT RAM), or "" outside slices. ``lane``: 0 to 7, or -1 outside slices.
    """

    x: int
    y: int
    kind: str
    lane: int


class Fabric(NamedTuple):
    """The tiles of slices, numbered. ``tile``: number by [column, row], or -1. ``x``, ``y``: by number."""

    tile: Ints
    x: Ints
    y: Ints


def fabric() -> Fabric:
    """The fabric of the LFE5U-85F."""
    rows = [y for y in _ROWS if y not in (*_DSP_ROWS, *RAM_ROWS)]
    places = np.array([(x, y) for x in _COLUMNS for y in rows], np.int32)
    tile = np.full((_COLUMNS.stop + 2, _ROWS.stop + 2), -1, np.int32)
    tile[places[:, 0], places[:, 1]] = np.arange(len(places), dtype=np.int32)
    return Fabric(tile, places[:, 0].copy(), places[:, 1].copy())


def ram_bels() -> list[tuple[int, int, int]]:
    """Column, row and number in its group (0 to 3) of each block RAM."""
    return [(x, y, n) for x, n in RAM_COLUMNS for y in RAM_ROWS]


def parse_bel(name: str) -> Bel:
    """Parse nextpnr's name of a bel, as in ``X2/Y3/SLICEA.K0``. Raises `ValueError` if it has another form."""
    if found := _SLICE_BEL.match(name):
        lane = 2 * _SLICES.index(found[3]) + int(found[5] or 0)
        return Bel(int(found[1]), int(found[2]), found[4], lane)
    if found := _OTHER_BEL.match(name):
        return Bel(int(found[1]), int(found[2]), "", -1)
    raise ValueError(f"A bel must be named X../Y../.., not {name!r}")


def bel_name(x: int, y: int, kind: str, lane: int) -> str:
    """Nextpnr's name of a bel in a slice."""
    return f"X{x}/Y{y}/SLICE{_SLICES[lane >> 1]}.{kind}{'' if kind == 'RAMW' else lane & 1}"
