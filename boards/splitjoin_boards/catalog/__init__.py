"""The boards that bitstreams are built for, by name."""

from __future__ import annotations

from splitjoin.base.errors import DeviceError

from .board import Board
from .ecp5 import ECP5_BOARDS
from .gowin import GOWIN_BOARDS
from .ice40 import ICE40_BOARDS
from .xilinx import XILINX_BOARDS

__all__ = ["CATALOG", "Board", "find"]

#: Name → board. A new file of boards is one more name in this tuple.
CATALOG = {board.name: board for board in (*ICE40_BOARDS, *ECP5_BOARDS, *GOWIN_BOARDS, *XILINX_BOARDS)}


def find(name: str) -> Board:
    """The board ``name``. Raises `DeviceError`, which lists the known names, for another name."""
    if name not in CATALOG:
        raise DeviceError(f"no bitstream can be built for a board {name!r}; the boards are {', '.join(CATALOG)}")
    return CATALOG[name]
