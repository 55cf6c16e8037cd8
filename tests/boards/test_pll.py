# amaranth: UnusedElaboratable=no
"""Clocks that PLLs make: their parameters against the formulas of the guides, and PLLs placed by nextpnr."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.base.errors import UnsupportedError
from splitjoin.cli import main
from splitjoin_boards.catalog import find
from splitjoin_boards.flow.bitstream import build
from splitjoin_boards.pll import PLLS, clocked, parameters_for
from splitjoin_boards.top import BoardTop


class Blink(wiring.Component):
    """Counts, so that a clock is needed."""

    def __init__(self):
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += [count.eq(count + self.rx), self.tx.eq(count[-1])]
        return m


@pytest.mark.parametrize("source", [12_000_000, 25_000_000, 48_000_000, 100_000_000])
@pytest.mark.parametrize("family", list(PLLS))
def test_parameters_make_what_they_say_within_the_limits_of_the_pll(family, source):
    found = list(PLLS[family](source))
    assert len(found) > 100
    for made, of in found:
        if family == "ecp5":
            phase = source / of["CLKI_DIV"]
            assert made == pytest.approx(phase * of["CLKFB_DIV"]) and 400e6 <= made * of["CLKOP_DIV"] <= 800e6
            assert phase >= 3.125e6 and 10e6 <= made <= 400e6 and max(of.values()) <= 128
        elif family == "gowin":
            phase = source / (of["IDIV_SEL"] + 1)
            assert made == pytest.approx(phase * (of["FBDIV_SEL"] + 1)) and made <= 500e6 and phase >= 3e6
            assert 500e6 <= made * of["ODIV_SEL"] <= 1200e6 and max(of["IDIV_SEL"], of["FBDIV_SEL"]) < 64
        else:
            phase = source / (of["DIVR"] + 1)
            oscillator = phase * (of["DIVF"] + 1)
            assert made == pytest.approx(oscillator / 2**of["DIVQ"]) and 533e6 <= oscillator <= 1066e6
            assert 10e6 <= phase <= 133e6 and made >= 16e6 and of["DIVF"] < 128 and 1 <= of["FILTER_RANGE"] <= 6


@pytest.mark.parametrize(("board", "hertz", "cell"), [
    ("icebreaker", 24_000_000, "SB_PLL40_PAD"), ("ice40_hx8k_b_evn", 48_000_000, "SB_PLL40_CORE"),
    ("ulx3s_12f", 40_000_000, "EHXPLLL"), ("ecpix5_45f", 50_000_000, "EHXPLLL"),
    ("tang_nano_9k", 54_000_000, "rPLL"), ("tang_primer_20k", 54_000_000, "rPLL")])
def test_the_top_has_the_pll_and_the_circuit_its_clock(board, hertz, cell):
    fast = clocked(find(board), hertz)
    assert (fast.clock_hz, fast.default_hz) == (hertz, find(board).clock_hz)
    text = fast.platform().prepare(BoardTop(fast, Blink()), "top").files["top.il"]
    text = text if isinstance(text, str) else text.decode()
    assert f"cell \\{cell} " in text
    for name in parameters_for(fast, hertz):
        assert f"parameter \\{name} " in text


def test_clocks_that_cannot_be_made_are_refused(capsys, tmp_path):
    assert clocked(find("ulx3s_12f"), 25_000_000).clock is None
    with pytest.raises(UnsupportedError, match=r"must be one that its PLL makes of 25000000 Hz, which 40000001 Hz is "
                                               r"not; near it are .*\b40000000\b"):
        clocked(find("ulx3s_12f"), 40_000_001)
    with pytest.raises(UnsupportedError, match="a PLL of one of ecp5, ice40, gowin, but board kcu105 is of xilinx"):
        clocked(find("kcu105"), 54_000_000)
    query = ["--schema-r", "x:int8", "--schema-s", "y:int8", "--on", "r.x = s.y", "--window", "ROWS 8"]
    assert main(["build", "--board", "arty_a7_35", "--pll", "1", *query, "--cores", "1", "--capacity", "16", "-o",
                 str(tmp_path)]) == 1
    assert "is of xilinx; leave --pll out" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(("board", "hertz"), [("icebreaker", 24_000_000), ("ice40_hx8k_b_evn", 48_000_000),
                                              ("ulx3s_12f", 40_000_000), ("ecpix5_45f", 50_000_000),
                                              ("tang_nano_9k", 54_000_000)])
def test_nextpnr_places_the_pll_and_knows_its_clock(board, hertz, tmp_path):
    report = build(clocked(find(board), hertz), Blink(), tmp_path)
    assert f"{hertz / 1e6:.1f} MHz demanded" in str(report)
