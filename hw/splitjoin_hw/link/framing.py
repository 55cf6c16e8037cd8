"""Frames as bytes: SLIP stuffing and the CRC-32, of `splitjoin.link.frames`."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.link.frames import CRC_BYTES, CRC_POLYNOMIAL, CRC_RESIDUE, END, ESC, ESC_END, ESC_ESC


def _crc(crc: Value, bits: Value) -> Value:
    """The CRC's register after ``bits``."""
    for bit in bits:
        crc = (crc >> 1)[:31] ^ Mux(crc[0] ^ bit, CRC_POLYNOMIAL, 0)
    return crc


class Deframer(wiring.Component):
    """Finds frames in received bytes.

    ``data``, ``stb``: received bytes, at least 12 cycles apart, as the CRC takes a bit a cycle; 2 if ``wide``, where it
    takes a byte. ``byte``, ``write``: a byte of a frame's content or CRC, and ``index``, its position, up to 15.
    ``end``: a frame ends; with ``good`` its stuffing and CRC are right. After every END the state is that after
    power-up, whatever came before.
    """

    def __init__(self, *, wide: bool = False) -> None:
        self._step = 8 if wide else 1
        super().__init__({"data": In(8), "stb": In(1), "byte": Out(8), "write": Out(1), "index": Out(4),
                          "end": Out(1), "good": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        crc = Signal(32, init=0xFFFFFFFF)
        shift = Signal(8)
        bits = Signal(range(9))
        escape = Signal()
        bad = Signal()
        with m.If(bits != 0):
            m.d.sync += [crc.eq(_crc(crc, shift[:self._step])), shift.eq(shift >> self._step),
                         bits.eq(bits - self._step)]
        is_end, is_escape = self.data == END, (self.data == ESC) & ~escape
        m.d.comb += [self.byte.eq(Mux(~escape, self.data, Mux(self.data == ESC_END, END, ESC))),
                     self.write.eq(self.stb & ~is_end & ~is_escape),
                     self.end.eq(self.stb & is_end & ((self.index != 0) | escape | bad)),
                     self.good.eq(self.end & ~escape & ~bad & (crc == CRC_RESIDUE))]
        with m.If(self.stb):
            with m.If(is_end):
                m.d.sync += [self.index.eq(0), escape.eq(0), bad.eq(0), crc.eq(0xFFFFFFFF), bits.eq(0)]
            with m.Elif(is_escape):
                m.d.sync += escape.eq(1)
            with m.Else():
                m.d.sync += [escape.eq(0), shift.eq(self.byte), bits.eq(8),
                             self.index.eq(Mux(self.index == 15, 15, self.index + 1))]
                with m.If(escape & (self.data != ESC_END) & (self.data != ESC_ESC)):
                    m.d.sync += bad.eq(1)
        return m


class Framer(wiring.Component):
    """Makes frames: ``i`` are the bytes of their contents, the ``last`` one marked; ``o`` are the bytes to send. A byte
    takes 10 cycles, or 3 if ``wide``.
    """

    def __init__(self, *, wide: bool = False) -> None:
        self._step = 8 if wide else 1
        super().__init__({"i": In(stream.Signature(data.StructLayout({"byte": 8, "last": 1}))),
                          "o": Out(stream.Signature(8))})

    def elaborate(self, platform) -> Module:
        m = Module()
        crc = Signal(32)
        bits = Signal(range(9))
        byte = Signal(8)
        shift = Signal(8)
        last = Signal()
        escaped = Signal()
        tail = Signal(range(CRC_BYTES + 1))  # bytes of the CRC that were sent, or are being sent
        special = (byte == END) | (byte == ESC)
        with m.FSM():
            with m.State("BEGIN"):
                m.d.comb += [self.o.valid.eq(self.i.valid), self.o.payload.eq(END)]
                m.d.sync += [crc.eq(0xFFFFFFFF), tail.eq(0)]
                with m.If(self.i.valid & self.o.ready):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [byte.eq(self.i.payload.byte), shift.eq(self.i.payload.byte),
                             last.eq(self.i.payload.last), bits.eq(8)]
                with m.If(self.i.valid):
                    m.next = "CRC"
            with m.State("CRC"):
                m.d.sync += [crc.eq(_crc(crc, shift[:self._step])), shift.eq(shift >> self._step),
                             bits.eq(bits - self._step)]
                with m.If(bits == self._step):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(
                    Mux(escaped, Mux(byte == END, ESC_END, ESC_ESC), Mux(special, ESC, byte)))]
                with m.If(self.o.ready):
                    m.d.sync += escaped.eq(special & ~escaped)
                    with m.If(~special | escaped):
                        m.next = "TAKE"
                        with m.If(last):
                            m.d.sync += [byte.eq(~crc[:8]), crc.eq(crc >> 8), tail.eq(tail + 1)]
                            m.next = "SEND"
                            with m.If(tail == CRC_BYTES):
                                m.next = "END"
            with m.State("END"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(END)]
                with m.If(self.o.ready):
                    m.next = "BEGIN"
        return m
