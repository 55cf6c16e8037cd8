"""Boards with an FPGA of Xilinx: they get a project for Vivado, which this project has never run."""

from __future__ import annotations

from typing import Any

from amaranth.build import Attrs
from amaranth_boards.arty_a7 import ArtyA7_35Platform, ArtyA7_100Platform
from amaranth_boards.kcu105 import KCU105Platform
from amaranth_boards.resources import UARTResource

from .board import FT2232H, Board, Bridge, Capacity

__all__ = ["XILINX_BOARDS"]

#: Source: Xilinx, 7 Series FPGAs Overview (DS180), Table 5, and UltraScale Architecture Overview (DS890), Table 4.
_A35 = Capacity("XC7A35T", 20800, 41600, 100, 18, 90)
_A100 = Capacity("XC7A100T", 63400, 126800, 270, 18, 240)
_KU040 = Capacity("XCKU040", 242400, 484800, 1200, 18, 1920)
#: The KCU105's bridge. Source: Silicon Labs, CP2105 data sheet.
_CP2105 = Bridge("CP2105", 2_000_000)


def _kcu105() -> Any:
    """The platform of a KCU105 with its UART, which amaranth-boards lacks. Source: Xilinx, KCU105 User Guide (UG917),
    Table 1-16: the bridge's TXD is G25, its RXD K26.
    """
    platform = KCU105Platform()
    platform.add_resources([UARTResource(0, rx="G25", tx="K26", attrs=Attrs(IOSTANDARD="LVCMOS18"))])
    return platform


XILINX_BOARDS = (
    Board("arty_a7_35", "Digilent Arty A7-35T", "xilinx", ArtyA7_35Platform, "bit", _A35, FT2232H,
          ("-b", "arty_a7_35t")),
    Board("arty_a7_100", "Digilent Arty A7-100T", "xilinx", ArtyA7_100Platform, "bit", _A100, FT2232H,
          ("-b", "arty_a7_100t")),
    Board("kcu105", "Xilinx KCU105", "xilinx", _kcu105, "bit", _KU040, _CP2105, ("-b", "kcu105")),
)
