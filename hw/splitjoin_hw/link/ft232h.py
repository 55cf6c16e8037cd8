"""The synchronous FIFO of an FT232H (FT245 synchronous mode): up to a byte of the link in each cycle of 60 MHz."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

#: Bytes of the queues between the clocks, room in them at which reading ends (a byte under way takes up to four cycles
#: to be counted), and cycles after which the other direction has its turn.
_DEPTH, _ROOM, _BURST = 64, 8, 64
#: Cycles without a byte sent after which the chip is asked to send what it holds, and cycles of the strobe.
_QUIET, _STROBE = 128, 16


class Ft232hSignature(wiring.Signature):
    """The chip's pins, all active high: the bus ``d``, the flags ``rxf`` and ``txe``, the strobes ``rd``, ``wr``,
    ``oe`` and ``siwu``.
    """

    def __init__(self) -> None:
        super().__init__({"d_i": In(8), "d_o": Out(8), "d_oe": Out(1), "rxf": In(1), "txe": In(1), "rd": Out(1),
                          "wr": Out(1), "oe": Out(1), "siwu": Out(1)})


class Ft232hFifo(wiring.Component):
    """Sends the bytes of ``i``, and receives bytes: ``stb`` is high for a cycle with each ``data``, at most in every
    second cycle, and not in the cycles after ``stall``.

    ``pins`` are in domain ``fifo``, on the chip's clock CLKOUT, and registered. A byte is transferred at an edge where
    its strobe and its flag are both active; one that was not is offered again. Between reading and writing the bus is
    idle for a cycle. Source: FTDI, FT232H Data Sheet (DS_FT232H), section 4.4.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "data": Out(8), "stb": Out(1), "stall": In(1),
                          "pins": Out(Ft232hSignature())})

    def elaborate(self, platform) -> Module:
        m = Module()
        pins = self.pins
        m.submodules.received = received = AsyncFIFOBuffered(width=8, depth=_DEPTH, w_domain="fifo", r_domain="sync")
        m.submodules.sending = sending = AsyncFIFOBuffered(width=8, depth=_DEPTH, w_domain="sync", r_domain="fifo")
        m.d.comb += [sending.w_data.eq(self.i.payload), sending.w_en.eq(self.i.valid), self.i.ready.eq(sending.w_rdy),
                     received.r_en.eq(received.r_rdy & ~self.stb & ~self.stall)]
        m.d.sync += [self.stb.eq(received.r_en), self.data.eq(received.r_data)]

        room, writes_next, held = Signal(), Signal(), Signal()  # held: d_o has a byte that is not sent
        sent, stays, load = Signal(), Signal(), Signal()
        left, quiet = Signal(range(_BURST)), Signal(range(_QUIET + _STROBE))
        m.d.fifo += [room.eq(received.w_level < _DEPTH - _ROOM), pins.siwu.eq((quiet != 0) & (quiet <= _STROBE))]
        m.d.comb += [received.w_data.eq(pins.d_i), received.w_en.eq(pins.rd & pins.rxf), sent.eq(pins.wr & pins.txe),
                     sending.r_en.eq(load)]
        with m.If(sent):
            m.d.fifo += quiet.eq(_QUIET + _STROBE - 1)
        with m.Elif(quiet != 0):
            m.d.fifo += quiet.eq(quiet - 1)
        with m.If(left != 0):
            m.d.fifo += left.eq(left - 1)

        has_read, has_write = pins.rxf & room, pins.txe & (held | sending.r_rdy)
        with m.FSM(domain="fifo"):
            with m.State("IDLE"):
                m.d.fifo += left.eq(_BURST - 1)
                with m.If(has_read & ~(writes_next & has_write)):
                    m.d.fifo += pins.oe.eq(1)
                    m.next = "READ"
                with m.Elif(has_write):
                    m.d.fifo += pins.d_oe.eq(1)
                    m.next = "WRITE"
            with m.State("READ"):  # from its second cycle on the chip drives the bus, and rd may be active
                m.d.comb += stays.eq(has_read & (left != 0))
                m.d.fifo += [pins.rd.eq(stays), pins.oe.eq(stays), writes_next.eq(1)]
                with m.If(~stays):
                    m.next = "TURN"
            with m.State("WRITE"):
                m.d.comb += [stays.eq(has_write & (left != 0)),
                             load.eq(stays & sending.r_rdy & (sent | ~held))]
                with m.If(load):
                    m.d.fifo += pins.d_o.eq(sending.r_data)
                m.d.fifo += [held.eq(load | (held & ~sent)), pins.wr.eq(stays & (load | (held & ~sent))),
                             pins.d_oe.eq(stays), writes_next.eq(0)]
                with m.If(~stays):
                    m.next = "TURN"
            with m.State("TURN"):
                m.next = "IDLE"
        return m
