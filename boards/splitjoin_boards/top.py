"""The top of a board: the pins of its UART and SDRAM, and the circuit behind them."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module
from amaranth.lib import io, wiring

from .catalog import Board
from .pll import Pll


class BoardTop(Elaboratable):
    """``linked`` between the pins of ``board``'s UART, on the board's clock.

    ``linked`` has the ports ``rx: In(1)`` and ``tx: Out(1)`` in domain ``sync``, and synchronizes ``rx`` itself. The
    platform makes the domain: it takes the default clock, and holds reset after configuration as the family needs it.
    With ``board.clock``, a PLL makes it. If ``linked`` has the port ``sdram``, as of `LinkedJoin`, it gets the board's
    SDRAM, whose clock rises in the middle of a cycle, and whose words are taken a cycle later.
    """

    def __init__(self, board: Board, linked: wiring.Component):
        self._board, self._linked = board, linked

    def elaborate(self, platform) -> Module:
        m = Module()
        if self._board.clock is not None:
            m.domains.sync = ClockDomain()
            m.submodules.pll = Pll(self._board)
        m.submodules.linked = linked = self._linked
        uart = platform.request(*self._board.link, dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [linked.rx.eq(rx.i), tx.o.eq(linked.tx)]
        if hasattr(linked, "sdram"):
            self._connect_sdram(m, platform, linked.sdram)
        return m

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
