"""Clocks that boards do not have: the FPGA's PLL makes them of the board's default clock.

Sources: Lattice FPGA-TN-02200, ECP5 and ECP5-5G sysCLOCK PLL/DLL Design and Usage Guide; FPGA-TN-02052, iCE40 sysCLOCK
PLL Design and User Guide; Gowin UG286, Clock User Guide. Frequencies are in Hz.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from splitjoin.base.errors import UnsupportedError

from .catalog import Board

#: Parameters of a PLL: names and values.
Parameters = dict[str, int]
#: Nearest frequencies that a refusal names.
_NAMED = 4


def _ecp5(source: int) -> Iterator[tuple[Fraction, Parameters]]:
    """Frequencies and parameters of EHXPLLL with the feedback from its output, low dividers first."""
    for divider in range(1, 129):
        phase = Fraction(source, divider)
        if not 3_125_000 <= phase <= 400_000_000:
            continue
        for factor in range(1, 129):
            made = phase * factor
            if not 10_000_000 <= made <= 400_000_000:
                continue
            # The output divider puts the oscillator, 400 to 800 MHz, near the middle of its range.
            output = max(1, min(128, round(Fraction(600_000_000) / made)))
            if 400_000_000 <= made * output <= 800_000_000:
                yield made, {"CLKI_DIV": divider, "CLKFB_DIV": factor, "CLKOP_DIV": output}


def _ice40(source: int) -> Iterator[tuple[Fraction, Parameters]]:
    """Frequencies and parameters of SB_PLL40 in its simple mode, low dividers first."""
    for divider in range(16):
        phase = Fraction(source, divider + 1)
        if not 10_000_000 <= phase <= 133_000_000:
            continue
        filters = next(n for n, most in enumerate((17, 26, 44, 66, 101, 133), 1) if phase <= most * 1_000_000)
        for factor in range(128):
            oscillator = phase * (factor + 1)
            if not 533_000_000 <= oscillator <= 1_066_000_000:
                continue
            for shift in range(1, 7):
                if oscillator / 2**shift >= 16_000_000:
                    yield oscillator / 2**shift, {"DIVR": divider, "DIVF": factor, "DIVQ": shift,
                                                  "FILTER_RANGE": filters}


def _gowin(source: int) -> Iterator[tuple[Fraction, Parameters]]:
    """Frequencies and parameters of rPLL, low dividers first, within the limits of both GW1N and GW2A."""
    for divider in range(64):
        phase = Fraction(source, divider + 1)
        if not 3_000_000 <= phase <= 400_000_000:
            continue
        for factor in range(64):
            made = phase * (factor + 1)
            for output in (2, 4, *range(8, 129, 8)):
                if output in _GOWIN_OUTPUTS and 500_000_000 <= made * output <= 1_200_000_000 and made <= 500_000_000:
                    yield made, {"IDIV_SEL": divider, "FBDIV_SEL": factor, "ODIV_SEL": output}
                    break


#: Output dividers of rPLL.
_GOWIN_OUTPUTS = {2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128}
#: Family → what its PLL makes of a clock.
PLLS: dict[str, Callable[[int], Iterator[tuple[Fraction, Parameters]]]] = {
    "ecp5": _ecp5, "ice40": _ice40, "gowin": _gowin}


def clocked(board: Board, hertz: int) -> Board:
    """``board`` with a circuit that runs at ``hertz``, by its PLL unless that is its default clock.

    Raises `UnsupportedError` for a family whose PLL is not supported here, and for a frequency that the PLL cannot
    make, with the nearest ones that it can.
    """
    if hertz == board.default_hz:
        return replace(board, clock=None)
    parameters_for(board, hertz)
    return replace(board, clock=hertz)


def parameters_for(board: Board, wanted: int) -> Parameters:
    """The parameters with which the PLL of ``board`` makes ``wanted`` of the default clock. Raises as `clocked`."""
    if board.family not in PLLS:
        raise UnsupportedError(f"a clock other than the board's needs a PLL of one of {', '.join(PLLS)}, but board "
                               f"{board.name} is of {board.family}; leave --pll out")
    source = board.default_hz
    found: dict[Fraction, Parameters] = {}
    for made, parameters in PLLS[board.family](source):
        found.setdefault(made, parameters)
    if wanted not in found:
        whole = sorted(made for made in found if made.denominator == 1)
        near = sorted(sorted(whole, key=lambda made: abs(made - wanted))[:_NAMED])
        raise UnsupportedError(f"the clock of board {board.name} must be one that its PLL makes of {source} Hz, which "
                               f"{wanted} Hz is not; near it are {', '.join(f'{int(made)}' for made in near)}")
    return found[Fraction(wanted)]


class Pll(Elaboratable):
    """The PLL of ``board``: drives the clock domain ``sync``, of ``board.clock`` Hz, from the platform's default clock.

    The design's top must define the domain, so that the platform does not. It is in reset until the PLL has locked, and
    while the board's reset is held.
    """

    def __init__(self, board: Board):
        assert board.clock is not None
        self._board = board
        self._family, self._hertz, self._parameters = board.family, board.clock, parameters_for(board, board.clock)

    def elaborate(self, platform) -> Module:
        m = Module()
        clock, locked, held = Signal(name="pll_clock"), Signal(name="pll_locked"), Signal(name="held")
        m.d.comb += ClockSignal().eq(clock)
        if platform.default_rst is not None:
            m.submodules.rst = button = io.Buffer("i", platform.request(platform.default_rst, dir="-"))
            m.d.comb += held.eq(button.i)
        pin = platform.request(platform.default_clk, dir="-")
        if self._family != "ice40":
            m.submodules.clk = buffer = io.Buffer("i", pin)
            made = self._ehxplll if self._family == "ecp5" else self._rpll
            m.submodules.pll = made(buffer.i, clock, locked)
            m.submodules.reset = ResetSynchronizer(~locked | held)
            return m
        if "35" in platform.lookup(platform.default_clk).ios[0].names:  # the pad of the only PLL of an UltraPlus
            kind, source = "PAD", {"i_PACKAGEPIN": pin.io}
        else:
            m.submodules.clk = buffer = io.Buffer("i", pin)
            kind, source = "CORE", {"i_REFERENCECLK": buffer.i}
        m.submodules.pll = self._sb_pll40(kind, source, clock, locked)
        # Block RAMs of an iCE40 read zeros for some microseconds after configuration (as Amaranth's platform knows).
        wait = Signal(range(self._hertz * 15 // 1_000_000 + 1), init=self._hertz * 15 // 1_000_000)
        m.domains.wait = ClockDomain("wait", local=True)
        m.d.comb += ClockSignal("wait").eq(clock)
        m.submodules.wait = ResetSynchronizer(~locked | held, domain="wait")
        with m.If(wait != 0):
            m.d.wait += wait.eq(wait - 1)
        m.submodules.reset = ResetSynchronizer(wait != 0)
        return m

    def _ehxplll(self, source: Signal, clock: Signal, locked: Signal) -> Instance:
        low = {f"i_{name}": Const(0) for name in (
            "RST", "STDBY", "PHASESEL0", "PHASESEL1", "PHASEDIR", "PHASESTEP", "PHASELOADREG", "PLLWAKESYNC",
            "ENCLKOP")}
        return Instance(
            "EHXPLLL", a_FREQUENCY_PIN_CLKOP=f"{self._hertz / 1e6:g}", a_ICP_CURRENT="12", a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1", a_MFG_GMCREF_SEL="2", p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED", p_OUTDIVIDER_MUXA="DIVA", p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=self._parameters["CLKOP_DIV"] - 1, p_CLKOP_FPHASE=0, p_FEEDBK_PATH="CLKOP",
            **{f"p_{name}": value for name, value in self._parameters.items()}, **low,
            i_CLKI=source, i_CLKFB=clock, o_CLKOP=clock, o_LOCK=locked)

    def _rpll(self, source: Signal, clock: Signal, locked: Signal) -> Instance:
        off = {f"p_{name}": "false" for name in (
            "DYN_IDIV_SEL", "DYN_FBDIV_SEL", "DYN_ODIV_SEL", "DYN_DA_EN", "CLKOUT_BYPASS", "CLKOUTP_BYPASS",
            "CLKOUTD_BYPASS")}
        low = {f"i_{name}": Const(0, width) for name, width in (
            ("RESET", 1), ("RESET_P", 1), ("CLKFB", 1), ("FBDSEL", 6), ("IDSEL", 6), ("ODSEL", 6), ("PSDA", 4),
            ("DUTYDA", 4), ("FDLY", 4))}
        return Instance(
            "rPLL", p_FCLKIN=f"{self._board.default_hz / 1e6:g}", p_DEVICE=self._board.platform().family,
            p_CLKFB_SEL="internal", p_PSDA_SEL="0000", p_DUTYDA_SEL="1000", p_CLKOUT_FT_DIR=Const(1, 1),
            p_CLKOUTP_FT_DIR=Const(1, 1), p_CLKOUT_DLY_STEP=0, p_CLKOUTP_DLY_STEP=0, p_DYN_SDIV_SEL=2,
            p_CLKOUTD_SRC="CLKOUT", p_CLKOUTD3_SRC="CLKOUT",
            **{f"p_{name}": value for name, value in self._parameters.items()}, **off, **low,
            i_CLKIN=source, o_CLKOUT=clock, o_LOCK=locked)

    def _sb_pll40(self, kind: str, source: Any, clock: Signal, locked: Signal) -> Instance:
        widths = {"DIVR": 4, "DIVF": 7, "DIVQ": 3, "FILTER_RANGE": 3}
        return Instance(
            f"SB_PLL40_{kind}", p_FEEDBACK_PATH="SIMPLE", p_PLLOUT_SELECT="GENCLK",
            **{f"p_{name}": Const(value, widths[name]) for name, value in self._parameters.items()}, **source,
            i_RESETB=Const(1), i_BYPASS=Const(0), o_PLLOUTGLOBAL=clock, o_LOCK=locked)
