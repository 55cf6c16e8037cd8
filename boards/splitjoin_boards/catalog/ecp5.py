"""Boards with an ECP5."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from amaranth.build import Attrs
from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform
from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform
from amaranth_boards.icepi_zero import IcepiZero1_3Platform
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform, OrangeCrabR0_2_85FPlatform
from amaranth_boards.resources import UARTResource
from amaranth_boards.ulx3s import ULX3S_12F_Platform, ULX3S_25F_Platform, ULX3S_45F_Platform, ULX3S_85F_Platform
from amaranth_boards.versa_ecp5 import VersaECP5Platform

from splitjoin.circuit.tuner.boards import BOARDS, FPGAS

from .board import FIRMWARE, FT231X, FT2232H, HEADER, Board, Bridge, Capacity

__all__ = ["ECP5_BOARDS"]

_ULX3S = {"12f": ULX3S_12F_Platform, "25f": ULX3S_25F_Platform, "45f": ULX3S_45F_Platform, "85f": ULX3S_85F_Platform}
_ECPIX5 = {"45f": ECPIX545Platform, "85f": ECPIX585Platform}
_ORANGECRAB = {"25f": OrangeCrabR0_2_25FPlatform, "85f": OrangeCrabR0_2_85FPlatform}


def _orangecrab(kind: Any) -> Any:
    """The platform ``kind`` of an OrangeCrab, with a UART at the pins that its connector calls 0 (RX) and 1 (TX)."""
    class OrangeCrab(kind):  # type: ignore[misc]  # amaranth has no types
        @property
        def command_templates(self) -> Any:
            return super().command_templates[:3]  # dfu-suffix, which is no tool from PyPI, only marks the file

    platform = OrangeCrab()
    platform.add_resources([UARTResource(0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(IO_TYPE="LVCMOS33"))])
    return platform


def _made(name: str, title: str, platform: Callable[[], Any], bridge: Bridge, *loader: str, program: str = "") -> Board:
    fpga = FPGAS[BOARDS[name]]
    return Board(name, title, "ecp5", platform, "bit", Capacity(fpga.name, fpga.lut, fpga.ff, fpga.block_ram, 18,
                                                               fpga.dsp), bridge, loader, program)


ECP5_BOARDS = (
    *(_made(f"ulx3s_{size}", f"Radiona ULX3S ({size.upper()})", platform, FT231X, "-b", "ulx3s")
      for size, platform in _ULX3S.items()),
    *(_made(f"ecpix5_{size}", f"LambdaConcept ECPIX-5 ({size.upper()})", platform, FT2232H, "-b", "ecpix5")
      for size, platform in _ECPIX5.items()),
    *(_made(f"orangecrab_{size}", f"OrangeCrab r0.2 ({size.upper()})", partial(_orangecrab, kind), HEADER, "-b",
            "orangeCrab") for size, kind in _ORANGECRAB.items()),
    _made("colorlight_5a75b_r7_0", "Colorlight 5A-75B r7.0", Colorlight_5A75B_R70Platform, HEADER,
          program="connect a JTAG adapter to J27 to J34, and name it with --cable"),
    _made("icepi_zero", "Icepi Zero", IcepiZero1_3Platform, FT231X, "-b", "icepi-zero"),
    _made("icesugar_pro", "MuseLab iCESugar-Pro", ICESugarProPlatform, FIRMWARE,
          program="copy the bitstream to the drive iCELink that the board shows at its USB port"),
    _made("versa_ecp5", "Lattice ECP5 Versa", VersaECP5Platform, FT2232H, "-b", "versa"),
)
