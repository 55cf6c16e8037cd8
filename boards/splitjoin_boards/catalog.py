"""The boards that bitstreams are built for, by name, with what the flow needs and amaranth-boards does not declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.build import Attrs
from amaranth_boards.arty_a7 import ArtyA7_35Platform, ArtyA7_100Platform
from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform
from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform
from amaranth_boards.ice40_hx8k_b_evn import ICE40HX8KBEVNPlatform
from amaranth_boards.icebreaker import ICEBreakerPlatform
from amaranth_boards.icepi_zero import IcepiZero1_3Platform
from amaranth_boards.icesugar import ICESugarPlatform
from amaranth_boards.icesugar_pro import ICESugarProPlatform
from amaranth_boards.kcu105 import KCU105Platform
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_25FPlatform, OrangeCrabR0_2_85FPlatform
from amaranth_boards.resources import UARTResource
from amaranth_boards.tang_mega_138k_pro_dock import TangMega138kProDockPlatform
from amaranth_boards.tang_nano_9k import TangNano9kPlatform
from amaranth_boards.tang_primer_20k import TangPrimer20kPlatform
from amaranth_boards.ulx3s import ULX3S_12F_Platform, ULX3S_25F_Platform, ULX3S_45F_Platform, ULX3S_85F_Platform
from amaranth_boards.versa_ecp5 import VersaECP5Platform

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.tuner.boards import BOARDS, FPGAS
from splitjoin_hw.memory.sdram import Sdram

from .gatemate import GateMateA1EvbPlatform


@dataclass(frozen=True)
class Capacity:
    """An FPGA's part, LUTs of 4 (Xilinx: 6) inputs, flip-flops, block RAMs of ``ram_kbit`` Kbit, and multipliers."""

    part: str
    lut: int
    ff: int
    block_ram: int
    ram_kbit: int
    dsp: int


@dataclass(frozen=True)
class Bridge:
    """The bridge behind the UART's pins: ``name``, and its highest rate in Hz, None if the board's papers say none."""

    name: str
    baud: int | None = None


#: Bridges on several boards. Source of the rates: the FTDI data sheets DS_FT231X and DS_FT2232H.
FT231X = Bridge("FT231X", 3_000_000)
FT2232H = Bridge("FT2232H", 12_000_000)
#: A microcontroller on the board, whose firmware decides.
FIRMWARE = Bridge("microcontroller")
#: Pins of a connector, for a USB adapter.
HEADER = Bridge("adapter at pins")


@dataclass(frozen=True)
class Board:
    """A board that bitstreams are built for.

    ``platform`` makes its platform of amaranth-boards, which declares pins, the default clock and the FPGA; each build
    needs a new one. ``family``: ecp5, ice40, gowin, gw5a, gatemate, or xilinx, whose boards get a project for Vivado.
    ``bitstream``: suffix of the file that the tool chain makes, as Amaranth names it. ``link``: the platform's resource
    that carries the link, a UART, to ``bridge``. ``loader``: arguments of openFPGALoader that name the board; empty if
    it does not know it, and ``program`` then says how it is programmed. ``options``: overrides of Amaranth's build
    templates.
    ``sdram``: the SDRAM that the platform declares as resource ``sdram``, if circuits can use it.
    ``clock``: frequency in Hz of a clock that the FPGA's PLL makes for the circuit, as `clocked` checks it; None for
    the platform's default clock.
    """

    name: str
    title: str
    family: str
    platform: Callable[[], Any]
    bitstream: str
    fpga: Capacity
    bridge: Bridge
    loader: tuple[str, ...] = ()
    program: str = ""
    link: tuple[str, int] = ("uart", 0)
    options: tuple[tuple[str, str], ...] = ()
    clock: int | None = None
    sdram: Sdram | None = None

    @property
    def default_hz(self) -> int:
        """Frequency of the default clock in Hz."""
        return int(self.platform().default_clk_frequency)

    @property
    def clock_hz(self) -> int:
        """Frequency of the clock that the circuit runs on, in Hz."""
        return self.default_hz if self.clock is None else self.clock

    @property
    def highest_baud(self) -> int:
        """The highest rate of the link in Hz: that of the bridge, as far as the clock has four cycles a bit."""
        most = self.clock_hz // 4
        return most if self.bridge.baud is None else min(most, self.bridge.baud)


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


#: Source: data sheets of Winbond W9825G6KH, ISSI IS42S16160 and Alliance AS4C32M16SB, of which 32 MB are used, and for
#: the two chips of the Colorlight of ESMT M12L16161A.
_32_MB, _4_MB = Sdram(), Sdram(data_bits=32, bank_bits=1, row_bits=11, column_bits=8)


def _board(name: str, title: str, platform: Callable[[], Any], bridge: Bridge, *loader: str, program: str = "",
           sdram: Sdram | None = None) -> Board:
    fpga = FPGAS[BOARDS[name]]
    return Board(name, title, "ecp5", platform, "bit", Capacity(fpga.name, fpga.lut, fpga.ff, fpga.block_ram, 18,
                                                               fpga.dsp), bridge, loader, program, sdram=sdram)


ECP5_BOARDS = (
    *(_board(f"ulx3s_{size}", f"Radiona ULX3S ({size.upper()})", platform, FT231X, "-b", "ulx3s", sdram=_32_MB)
      for size, platform in _ULX3S.items()),
    *(_board(f"ecpix5_{size}", f"LambdaConcept ECPIX-5 ({size.upper()})", platform, FT2232H, "-b", "ecpix5")
      for size, platform in _ECPIX5.items()),
    *(_board(f"orangecrab_{size}", f"OrangeCrab r0.2 ({size.upper()})", partial(_orangecrab, kind), HEADER, "-b",
            "orangeCrab") for size, kind in _ORANGECRAB.items()),
    _board("colorlight_5a75b_r7_0", "Colorlight 5A-75B r7.0", Colorlight_5A75B_R70Platform, HEADER,
          program="connect a JTAG adapter to J27 to J34, and name it with --cable", sdram=_4_MB),
    _board("icepi_zero", "Icepi Zero", IcepiZero1_3Platform, FT231X, "-b", "icepi-zero", sdram=_32_MB),
    _board("icesugar_pro", "MuseLab iCESugar-Pro", ICESugarProPlatform, FIRMWARE,
          program="copy the bitstream to the drive iCELink that the board shows at its USB port", sdram=_32_MB),
    _board("versa_ecp5", "Lattice ECP5 Versa", VersaECP5Platform, FT2232H, "-b", "versa"),
)


#: Source: Gowin, GW1NR and GW2A series of FPGA Products Data Sheets (DS117, DS102), Table 1-1.
_GW1NR_9 = Capacity("GW1NR-9C", 8640, 6480, 26, 18, 20)
_GW2A_18 = Capacity("GW2A-18C", 20736, 15552, 46, 18, 48)

GOWIN_BOARDS = (
    Board("tang_nano_9k", "Sipeed Tang Nano 9K", "gowin", TangNano9kPlatform, "fs", _GW1NR_9, FIRMWARE,
          ("-b", "tangnano9k")),
    Board("tang_primer_20k", "Sipeed Tang Primer 20K", "gowin", TangPrimer20kPlatform, "fs", _GW2A_18, FIRMWARE,
          ("-b", "tangprimer20k")),
)


class _TangMega138k(TangMega138kProDockPlatform):  # type: ignore[misc]  # amaranth_boards has no types
    """The platform with Apicula's names for a GW5A, which Amaranth 0.5 refuses or gives Gowin's tools as they are."""

    family = _chipdb_device = "GW5AST-138C"

    def parse_part(self) -> None:
        self.series = "GW5AST"


#: Source: Gowin, GW5AT series of FPGA Products Data Sheet (DS981), Table 1-1. The UART's pin N16 is one of the CPU port
#: that may configure the FPGA.
GW5A_BOARDS = (
    Board("tang_mega_138k_pro_dock", "Sipeed Tang Mega 138K Pro Dock", "gw5a", _TangMega138k, "fs",
          Capacity("GW5AST-138C", 138240, 138240, 340, 18, 298), FIRMWARE, ("-b", "tangmega138k"),
          options=(("synth_opts", "-family gw5a"), ("gowin_pack_opts", "--cpu_as_gpio"))),
)

#: Source: Cologne Chip, GateMate CCGM1A1 Data Sheet (DS1001): 20,480 elements of two LUT trees and two flip-flops, and
#: 64 halves of block RAMs.
GATEMATE_BOARDS = (
    Board("gatemate_a1_evb", "Olimex GateMateA1-EVB", "gatemate", GateMateA1EvbPlatform, "bit",
          Capacity("CCGM1A1", 40960, 40960, 64, 20, 0), FIRMWARE, ("-b", "olimex_gatemateevb")),
)


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


#: They get a project for Vivado, which this project has never run.
XILINX_BOARDS = (
    Board("arty_a7_35", "Digilent Arty A7-35T", "xilinx", ArtyA7_35Platform, "bit", _A35, FT2232H,
          ("-b", "arty_a7_35t")),
    Board("arty_a7_100", "Digilent Arty A7-100T", "xilinx", ArtyA7_100Platform, "bit", _A100, FT2232H,
          ("-b", "arty_a7_100t")),
    Board("kcu105", "Xilinx KCU105", "xilinx", _kcu105, "bit", _KU040, _CP2105, ("-b", "kcu105")),
)


#: Name → board.
CATALOG = {board.name: board for board in (*ICE40_BOARDS, *ECP5_BOARDS, *GOWIN_BOARDS, *GW5A_BOARDS, *GATEMATE_BOARDS,
                                           *XILINX_BOARDS)}


def find(name: str) -> Board:
    """The board ``name``. Raises `DeviceError`, which lists the known names, for another name."""
    if name not in CATALOG:
        raise DeviceError(f"no bitstream can be built for a board {name!r}; the boards are {', '.join(CATALOG)}")
    return CATALOG[name]
