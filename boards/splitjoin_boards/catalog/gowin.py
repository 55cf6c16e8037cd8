"""Boards with an FPGA of Gowin."""

from __future__ import annotations

from amaranth_boards.tang_nano_9k import TangNano9kPlatform
from amaranth_boards.tang_primer_20k import TangPrimer20kPlatform

from .board import FIRMWARE, Board, Capacity

__all__ = ["GOWIN_BOARDS"]

#: Source: Gowin, GW1NR and GW2A series of FPGA Products Data Sheets (DS117, DS102), Table 1-1.
_GW1NR_9 = Capacity("GW1NR-9C", 8640, 6480, 26, 18, 20)
_GW2A_18 = Capacity("GW2A-18C", 20736, 15552, 46, 18, 48)

GOWIN_BOARDS = (
    Board("tang_nano_9k", "Sipeed Tang Nano 9K", "gowin", TangNano9kPlatform, "fs", _GW1NR_9, FIRMWARE,
          ("-b", "tangnano9k")),
    Board("tang_primer_20k", "Sipeed Tang Primer 20K", "gowin", TangPrimer20kPlatform, "fs", _GW2A_18, FIRMWARE,
          ("-b", "tangprimer20k")),
)
