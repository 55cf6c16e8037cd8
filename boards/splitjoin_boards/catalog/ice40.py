"""Boards with an iCE40."""

from __future__ import annotations

from amaranth_boards.ice40_hx8k_b_evn import ICE40HX8KBEVNPlatform
from amaranth_boards.icebreaker import ICEBreakerPlatform
from amaranth_boards.icesugar import ICESugarPlatform

from .board import FIRMWARE, FT2232H, Board, Capacity

__all__ = ["ICE40_BOARDS"]

#: Source: Lattice, iCE40 LP/HX and iCE40 UltraPlus Family Data Sheets (FPGA-DS-02029, FPGA-DS-02008), Table 1.1.
_UP5K = Capacity("iCE40UP5K", 5280, 5280, 30, 4, 8)
_HX8K = Capacity("iCE40HX8K", 7680, 7680, 32, 4, 0)

ICE40_BOARDS = (
    Board("icebreaker", "1BitSquared iCEBreaker (UP5K)", "ice40", ICEBreakerPlatform, "bin", _UP5K, FT2232H,
          ("-b", "ice40_generic")),
    Board("ice40_hx8k_b_evn", "Lattice iCE40-HX8K breakout board", "ice40", ICE40HX8KBEVNPlatform, "bin", _HX8K,
          FT2232H, ("-b", "ice40_generic")),
    Board("icesugar", "MuseLab iCESugar (UP5K)", "ice40", ICESugarPlatform, "bin", _UP5K, FIRMWARE,
          program="copy the bitstream to the drive iCELink that the board shows at its USB port"),
)
