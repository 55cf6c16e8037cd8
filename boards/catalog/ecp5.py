"""Boards with an ECP5."""

from __future__ import annotations

from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform
from amaranth_boards.ulx3s import ULX3S_12F_Platform, ULX3S_25F_Platform, ULX3S_45F_Platform, ULX3S_85F_Platform

from .board import Board

__all__ = ["ECP5_BOARDS"]

_ULX3S = {"12f": ULX3S_12F_Platform, "25f": ULX3S_25F_Platform, "45f": ULX3S_45F_Platform, "85f": ULX3S_85F_Platform}
_ECPIX5 = {"45f": ECPIX545Platform, "85f": ECPIX585Platform}

ECP5_BOARDS = (
    *(Board(f"ulx3s_{size}", f"Radiona ULX3S ({size.upper()})", "ecp5", platform, "bit")
      for size, platform in _ULX3S.items()),
    *(Board(f"ecpix5_{size}", f"LambdaConcept ECPIX-5 ({size.upper()})", "ecp5", platform, "bit")
      for size, platform in _ECPIX5.items()),
)
