"""The sites of the LFE5U-85F that a refinement moves cells among."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..floorplan import RAM_COLUMNS, RAM_ROWS

__all__ = ["LANES", "Fabric", "Site", "fabric", "ram_sites", "site", "site_name"]

#: Places for a LUT and a flip-flop in a tile: two in each of its four slices.
LANES = 8
_COLUMNS, _ROWS = range(2, 125), range(2, 94)
#: Rows of multipliers; those of block RAM have no slices either.
_DSP_ROWS = (10, 34, 58)
_SLICE = re.compile(r"X(\d+)/Y(\d+)/SLICE([ABCD])\.(K|FF|RAMW)([01]?)$")
_OTHER = re.compile(r"X(\d+)/Y(\d+)/")
_SLICES = "ABCD"

Ints = npt.NDArray[np.int32]


class Site(NamedTuple):
    """Where a cell is: ``kind`` is K (LUT or half a carry cell), FF, RAMW (write port of LUT RAM) or nothing of these.

    ``lane``: of the tile's eight, -1 outside slices.
    """

    x: int
    y: int
    kind: str
    lane: int


class Fabric(NamedTuple):
    """Tiles of slices. ``tile``: number by (column, row), -1 where there is none. ``x``, ``y``: by number."""

    tile: Ints
    x: Ints
    y: Ints


def fabric() -> Fabric:
    """That of the device."""
    rows = [y for y in _ROWS if y not in (*_DSP_ROWS, *RAM_ROWS)]
    places = np.array([(x, y) for x in _COLUMNS for y in rows], np.int32)
    tile = np.full((_COLUMNS.stop + 2, _ROWS.stop + 2), -1, np.int32)
    tile[places[:, 0], places[:, 1]] = np.arange(len(places), dtype=np.int32)
    return Fabric(tile, places[:, 0].copy(), places[:, 1].copy())


def ram_sites() -> list[tuple[int, int, int]]:
    """Column, row and number in its group of each block RAM."""
    return [(x, y, n) for x, n in RAM_COLUMNS for y in RAM_ROWS]


def site(name: str) -> Site:
    """What nextpnr's name of a site says. Raises `ValueError` if it names none."""
    if found := _SLICE.match(name):
        lane = 2 * _SLICES.index(found[3]) + int(found[5] or 0)
        return Site(int(found[1]), int(found[2]), found[4], lane)
    if found := _OTHER.match(name):
        return Site(int(found[1]), int(found[2]), "", -1)
    raise ValueError(f"A site must be named X../Y../.., not {name!r}")


def site_name(x: int, y: int, kind: str, lane: int) -> str:
    """Nextpnr's name of a site in a slice."""
    return f"X{x}/Y{y}/SLICE{_SLICES[lane >> 1]}.{kind}{'' if kind == 'RAMW' else lane & 1}"
