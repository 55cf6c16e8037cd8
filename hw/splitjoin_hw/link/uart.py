"""A UART: 8 data bits, no parity, one stop bit, at any ratio of clock and baud rate from 4 on."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

#: Bits of the accumulator whose carry marks a bit: the rate is exact to 2^-17 of the clock.
_BITS = 16


def bit_step(clock_hz: int, baud: int) -> int:
    """The increment of the bit accumulator in each cycle, for a clock and a serial rate in Hz.

    Raises `ValueError` unless a bit takes 4 to 1024 cycles.
    """
    if not (isinstance(clock_hz, int) and isinstance(baud, int) and baud > 0 and 4 * baud <= clock_hz <= 1024 * baud):
        raise ValueError(f"The clock must have 4 to 1024 cycles a bit, but clock_hz={clock_hz!r} and baud={baud!r}")
    return round((baud << _BITS) / clock_hz)


class UartTransmitter(wiring.Component):
    """Sends the bytes of ``i`` on ``tx``. ``tx`` is high when idle."""

    def __init__(self, clock_hz: int, baud: int):
        self._step = bit_step(clock_hz, baud)
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        phase = Signal(_BITS + 1)
        shift = Signal(9, init=0x1FF)
        left = Signal(range(11))
        m.d.comb += [self.i.ready.eq(left == 0)]
        m.d.sync += self.tx.eq(1)
        with m.If(left != 0):
            m.d.sync += [self.tx.eq(shift[0]), phase.eq(phase[:_BITS] + self._step)]
            with m.If(phase[_BITS]):
                m.d.sync += [shift.eq(Cat(shift[1:], Const(1, 1))), left.eq(left - 1), self.tx.eq(shift[1])]
        with m.Elif(self.i.valid):
            m.d.sync += [shift.eq(Cat(Const(0, 1), self.i.payload)), left.eq(10), phase.eq(0)]
        return m


class UartReceiver(wiring.Component):
    """Receives bytes from ``rx``: ``stb`` is high for a cycle with each ``data``. A byte without its stop bit is
    dropped; the CRC of its frame tells.
    """

    def __init__(self, clock_hz: int, baud: int):
        self._step = bit_step(clock_hz, baud)
        super().__init__({"rx": In(1, init=1), "data": Out(8), "stb": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        rx = Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.rx, rx, init=1)
        phase = Signal(_BITS + 1)
        left = Signal(range(11))  # bits to sample, start and stop bit included
        m.d.sync += self.stb.eq(0)
        with m.If(left == 0):
            m.d.sync += phase.eq(1 << (_BITS - 1))  # the first sample is half a bit after the edge
            with m.If(~rx):
                m.d.sync += left.eq(10)
        with m.Else():
            m.d.sync += phase.eq(phase[:_BITS] + self._step)
            with m.If(phase[_BITS]):
                m.d.sync += left.eq(left - 1)
                with m.If((left == 10) & rx):
                    m.d.sync += left.eq(0)  # no start bit: a glitch
                with m.Elif(left == 1):
                    m.d.sync += self.stb.eq(rx)
                with m.Else():
                    m.d.sync += self.data.eq(Cat(self.data[1:], rx))
        return m
