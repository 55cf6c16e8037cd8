"""Properties of a board that the flow needs and amaranth-boards does not declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Board", "Bridge", "Capacity"]


@dataclass(frozen=True)
class Capacity:
    """An FPGA's part name and resources: 4-input (Xilinx: 6-input) LUTs, flip-flops, block RAMs of ``ram_kbit`` Kbit,
    and multipliers.
    """

    part: str
    lut: int
    ff: int
    block_ram: int
    ram_kbit: int
    dsp: int


@dataclass(frozen=True)
class Bridge:
    """The bridge at the other end of the UART's pins: ``name``, and its highest rate in Hz, or None if no data sheet of
    the board says one.
    """

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
    needs a new one. ``family``: ecp5, ice40, gowin, or xilinx, whose boards get a project for Vivado. ``bitstream``:
    suffix of the file that the tool chain makes, as Amaranth names it. ``link``: the platform's resource that carries
    the link, a UART, to ``bridge``. ``loader``: arguments of openFPGALoader that name the board; empty if it does not
    know it, and ``program`` then says how it is programmed. ``options``: overrides of Amaranth's build templates.
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
