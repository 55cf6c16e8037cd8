"""The top of a board: the pins of its link and SDRAM, and the circuit behind them."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module
from amaranth.lib import io, wiring

from .catalog import Board
from .pll import Pll


class BoardTop(Elaboratable):
    """``linked`` between the pins of ``board``'s UART or FT232H, on the board's clock.

    ``linked`` has the ports ``rx: In(1)`` and ``tx: Out(1)`` in domain ``sync``, and synchronizes ``rx`` itself; or
    the port ``ft232h``, in domain ``fifo``, which has the chip's clock. The platform makes ``sync``: it takes the
    default clock, and holds reset after configuration as the family needs it. With ``board.clock``, a PLL makes it.
    If ``linked`` has the port ``sdram``, as of `LinkedJoin`, it gets the board's SDRAM, whose clock rises in the middle
    of a cycle, and whose words are taken a cycle later.
    """

    def __init__(self, board: Board, linked: wiring.Component):
        self._board, self._linked = board, linked

    def elaborate(self, platform) -> Module:
        m = Module()
        if self._board.clock is not None:
            m.domains.sync = ClockDomain()
            m.submodules.pll = Pll(self._board)
        m.submodules.linked = linked = self._linked
        link = platform.request(*self._board.link, dir="-")
        if hasattr(linked, "ft232h"):
            self._connect_ft232h(m, link, linked.ft232h)
        else:
            m.submodules.rx = rx = io.Buffer("i", link.rx)
            m.submodules.tx = tx = io.Buffer("o", link.tx)
            m.d.comb += [linked.rx.eq(rx.i), tx.o.eq(linked.tx)]
        if hasattr(linked, "sdram"):
            self._connect_sdram(m, platform, linked.sdram)
        return m

    def _connect_ft232h(self, m: Module, chip, pins) -> None:
        m.submodules.ft232h_clkout = clock = io.Buffer("i", chip.clkout)
        m.domains.fifo = ClockDomain("fifo", reset_less=True)
        m.submodules.ft232h_d = d = io.Buffer("io", chip.d)
        m.d.comb += [ClockSignal("fifo").eq(clock.i), d.o.eq(pins.d_o), d.oe.eq(pins.d_oe), pins.d_i.eq(d.i)]
        for name in ("rxf", "txe"):
            m.submodules[f"ft232h_{name}"] = buffer = io.Buffer("i", getattr(chip, name))
            m.d.comb += getattr(pins, name).eq(buffer.i)
        for name in ("rd", "wr", "oe", "siwu"):
            m.submodules[f"ft232h_{name}"] = buffer = io.Buffer("o", getattr(chip, name))
            m.d.comb += buffer.o.eq(getattr(pins, name))

    def _connect_sdram(self, m: Module, platform, pins) -> None:
        chip = platform.request("sdram", 0, dir="-")
        high = {name: 1 for name in ("clk_en", "cs") if hasattr(chip, name)}
        outputs = {name: getattr(pins, name) for name in ("ras", "cas", "we", "ba", "a")} | high
        if hasattr(chip, "dqm"):
            outputs["dqm"] = pins.dqm.replicate(len(chip.dqm))
        for name, value in outputs.items():
            m.submodules[f"sdram_{name}"] = buffer = io.Buffer("o", getattr(chip, name))
            m.d.comb += buffer.o.eq(value)
        if hasattr(platform, "get_io_buffer"):
            m.submodules.sdram_clk = clock = io.DDRBuffer("o", chip.clk)
            m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        else:  # the generic pads have no registers
            m.submodules.sdram_clk = clock = io.Buffer("o", chip.clk)
            m.d.comb += clock.o.eq(~ClockSignal())
        m.submodules.sdram_dq = dq = io.Buffer("io", chip.dq)
        m.domains.falling = ClockDomain("falling", clk_edge="neg", reset_less=True, local=True)
        m.d.comb += [ClockSignal("falling").eq(ClockSignal()), dq.o.eq(pins.dq_o), dq.oe.eq(pins.dq_oe)]
        m.d.falling += pins.dq_i.eq(dq.i)
