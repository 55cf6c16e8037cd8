"""The top of a board: the pins of its UART, and the circuit behind them."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, Elaboratable, Module
from amaranth.lib import io, wiring

from .catalog import Board
from .pll import Pll

__all__ = ["BoardTop"]


class BoardTop(Elaboratable):
    """``linked`` between the pins of ``board``'s UART, on the board's clock.

    ``linked`` has the ports ``rx: In(1)`` and ``tx: Out(1)`` in domain ``sync``, and synchronizes ``rx`` itself. The
    platform makes the domain: it takes the default clock, and holds reset after configuration as the family needs it.
    With ``board.clock``, a PLL makes it.
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
        return m
