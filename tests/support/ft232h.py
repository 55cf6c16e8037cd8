# amaranth: UnusedElaboratable=no
"""An FT232H in its synchronous FIFO mode at the pins of a board, which checks them, with flags that fall at random.

Source: FTDI, FT232H Data Sheet (DS_FT232H), section 4.4.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Elaboratable
from amaranth.lib import io

from splitjoin_boards.top import BoardTop

from .linked import _PERIOD, PinChannel

_INPUTS, _OUTPUTS = ("rxf", "txe", "clkout"), ("rd", "wr", "oe", "siwu")


class ChipPads:
    """Pads for simulation of the chip's pins, and of nothing else: a platform."""

    def __init__(self) -> None:
        self.d = io.SimulationPort("io", 8)
        for name in (*_INPUTS, *_OUTPUTS):
            setattr(self, name, io.SimulationPort("i" if name in _INPUTS else "o", 1, invert=name != "clkout"))

    def request(self, *_: Any, **__: Any) -> ChipPads:
        return self


class ChipTop(Elaboratable):
    """The top of ``board`` with ``linked`` behind ``pads``."""

    def __init__(self, board, linked):
        self.pads, self._top = ChipPads(), BoardTop(board, linked)

    def elaborate(self, platform):
        return self._top.elaborate(self.pads)


class Chip(PinChannel):
    """The chip at the pins of ``circuit``, a `ChipTop`, on a clock as fast as the circuit's, of another phase.

    ``stalls``: the share of cycles in which each flag is inactive. ``cycles`` counts those of CLKOUT, ``moved`` the
    bytes to the board and from it; ``strobes`` has the cycles of each one of SIWU#, and ``longest`` the most that the
    bus was one side's. A broken rule is an `AssertionError`.
    """

    def __init__(self, circuit, stalls=0.0, seed=0):
        self.stalls, self.cycles, self.moved = stalls, 0, [0, 0]
        self.strobes, self.longest = list[int](), 0
        super().__init__(circuit, seed=seed)

    async def _receive(self, ctx) -> None:
        pass

    async def _send(self, ctx) -> None:
        pads, chance = self._circuit.pads, self._chance
        rxf = txe = drove = drives_next = siwu_before = False
        taken = 0
        await ctx.delay(0.3 * _PERIOD)
        while True:
            # What the chip samples at the edge.
            rd, wr, oe, siwu = (not ctx.get(getattr(pads, name).o) for name in _OUTPUTS)
            driven, byte = ctx.get(pads.d.oe) == 0xFF, ctx.get(pads.d.o)
            assert not (rd and not oe), "RD# must not be low with OE# high"
            assert not (rd and not drives_next), "OE# must be low for a cycle before RD#"
            assert not (driven and (oe or drove)), "the bus must be idle for a cycle between chip and board"
            assert not (wr and not driven), "WR# must not be low without data on the bus"
            assert not (wr and rd), "RD# and WR# must not be low at once"
            if rd and rxf:
                self._sending.popleft()
                self.moved[0] += 1
            if wr and txe:
                self._received.append(byte)
                self.moved[1] += 1
            self.cycles += 1
            self.strobes += [0] * (siwu and not siwu_before)
            if siwu:
                self.strobes[-1] += 1
            taken = taken + 1 if oe or driven else 0
            self.longest = max(self.longest, taken)
            drove, drives_next, siwu_before = oe, oe, siwu
            ctx.set(pads.clkout.i, 1)
            await ctx.delay(_PERIOD / 2)
            rxf = bool(self._sending) and chance.random() >= self.stalls
            txe = chance.random() >= self.stalls
            ctx.set(pads.rxf.i, not rxf)
            ctx.set(pads.txe.i, not txe)
            # Data is on the bus a cycle after OE#, and only while there is some.
            ctx.set(pads.d.i, self._sending[0] if drives_next and rxf else chance.randrange(256))
            ctx.set(pads.clkout.i, 0)
            await ctx.delay(_PERIOD / 2)
