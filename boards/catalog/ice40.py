"""Boards with an iCE40."""

from __future__ import annotations

from amaranth_boards.ice40_hx8k_b_evn import ICE40HX8KBEVNPlatform
from amaranth_boards.icebreaker import ICEBreakerPlatform

from .board import Board

__all__ = ["ICE40_BOARDS"]

ICE40_BOARDS = (
    Board("icebreaker", "1BitSquared iCEBreaker (UP5K)", "ice40", ICEBreakerPlatform, "bin"),
    Board("ice40_hx8k_b_evn", "Lattice iCE40-HX8K breakout board", "ice40", ICE40HX8KBEVNPlatform, "bin"),
)
