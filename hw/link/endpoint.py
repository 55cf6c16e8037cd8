"""The circuit's end of the link: it checks and executes the host's requests, and keeps its reply for repetition."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from splitjoin.link.frames import (
    CRC_BYTES,
    CRC_POLYNOMIAL,
    CRC_RESIDUE,
    END,
    ESC,
    ESC_END,
    ESC_ESC,
    ITEMS,
    RING,
    VERSION,
    Kind,
)

__all__ = ["LinkEndpoint"]

#: Cycles from a request until its reply is made: a register is read, or the join is reset.
_WAIT = 8
#: Bytes of a reply before the items, and with a word.
_HEADER, _WITH_WORD = 4, 8


def _crc(crc: Value, bit: Value) -> Value:
    """The CRC's register after one more bit."""
    return (crc >> 1)[:31] ^ Mux(crc[0] ^ bit, CRC_POLYNOMIAL, 0)


class LinkEndpoint(wiring.Component):
    """Implements `splitjoin.link.frames` for records of ``record_bytes`` and items of ``item_bytes`` bytes.

    Ports: ``data``, ``stb``: received bytes, at least 12 cycles apart. ``o``: bytes to send. ``records``, ``items``:
    the join's streams, in whole bytes. ``addr``, ``w_stb``, ``w_data``, ``r_data``: its register bus of ``addr_bits``.
    ``reset``: resets the join. A frame's records stay in the ring, unseen by the join, until the frame's CRC is right.
    The reply stays in its memory until the next request, and is sent again when the request is repeated. Requests that
    come while a reply is made or sent are dropped: the host repeats them.
    """

    def __init__(self, record_bytes: int, item_bytes: int, addr_bits: int, *, ring: int = RING, items: int = ITEMS):
        if not 5 < ring <= 1 << 15 or ring & (ring - 1) or record_bytes > min(255, ring - 5):
            raise ValueError(f"The ring must have a power of two of bytes up to 32768, five more than a record of "
                             f"{record_bytes} bytes (at most 255), not {ring!r}")
        self._record_bytes, self._item_bytes, self._ring, self._items = record_bytes, item_bytes, ring, items
        super().__init__({
            "data": In(8), "stb": In(1), "o": Out(stream.Signature(8)),
            "records": Out(stream.Signature(8 * record_bytes)), "items": In(stream.Signature(8 * item_bytes)),
            "addr": Out(addr_bits), "w_stb": Out(1), "w_data": Out(32), "r_data": In(32), "reset": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        start, again = Signal(), Signal()  # a new request; a repeated one
        idle = Signal()
        seq, last = Signal(8), Signal(8)
        kind_in, kind = Signal(8), Signal(2)
        free = Signal(16)
        self._receive(m, start, again, idle, seq, last, kind_in, kind, free)
        self._reply(m, start, again, idle, last, kind, free)
        return m

    def _receive(self, m: Module, start: Signal, again: Signal, idle: Signal, seq: Signal, last: Signal,
                 kind_in: Signal, kind: Signal, free: Signal) -> None:
        """Bytes become frames; good frames become requests; the records of requests go to the join."""
        ring = self._ring
        m.submodules.ring = memory = Memory(shape=8, depth=ring, init=[])
        write, read = memory.write_port(), memory.read_port()
        written, committed, taken = Signal(range(ring)), Signal(range(ring)), Signal(range(ring))
        count = Signal(3)  # bytes of the frame, up to 7
        args = Signal(40)
        crc, shift, bits = Signal(32, init=0xFFFFFFFF), Signal(8), Signal(range(9))
        escape, bad, opened = Signal(), Signal(), Signal()

        with m.If(bits != 0):
            m.d.sync += [crc.eq(_crc(crc, shift[0])), shift.eq(shift >> 1), bits.eq(bits - 1)]
        byte = Signal(8)
        m.d.comb += [byte.eq(Mux(~escape, self.data, Mux(self.data == ESC_END, END, ESC))),
                     write.addr.eq(written), write.data.eq(byte), self.w_stb.eq(0)]
        good = Signal()
        m.d.comb += [good.eq(self.stb & (self.data == END) & ~escape & ~bad & (count >= 2 + CRC_BYTES)
                             & (crc == CRC_RESIDUE) & idle)]
        is_open = kind_in == Kind.OPEN
        fits = kind_in < len(Kind)
        m.d.comb += [start.eq(good & fits & (is_open | (opened & (seq == (last + 1)[:8])))),
                     again.eq(good & fits & ~start & opened & (seq == last))]
        with m.If(self.stb):
            with m.If(self.data == END):
                m.d.sync += [count.eq(0), escape.eq(0), bad.eq(0), crc.eq(0xFFFFFFFF), written.eq(committed)]
            with m.Elif((self.data == ESC) & ~escape):
                m.d.sync += escape.eq(1)
            with m.Else():
                m.d.sync += [escape.eq(0), shift.eq(byte), bits.eq(8), count.eq(Mux(count == 7, 7, count + 1))]
                with m.If(escape & (self.data != ESC_END) & (self.data != ESC_ESC)):
                    m.d.sync += bad.eq(1)
                with m.If(count == 0):
                    m.d.sync += seq.eq(byte)
                with m.Elif(count == 1):
                    m.d.sync += kind_in.eq(byte)
                with m.Else():
                    with m.If(count < 7):
                        m.d.sync += args.eq(Cat(args[8:], byte))
                    with m.If((written + 1)[:len(taken)] == taken):
                        m.d.sync += bad.eq(1)
                    with m.Else():
                        m.d.comb += write.en.eq(1)
                        m.d.sync += written.eq(written + 1)
        m.d.comb += [self.w_stb.eq(start & (kind_in == Kind.WRITE)), self.w_data.eq(args[8:])]
        held = Signal.like(self.addr, name="addr_held")
        m.d.comb += self.addr.eq(Mux(start, args[:len(self.addr)], held))

        # The ring's records, byte by byte.
        have, fetched = Signal(range(self._record_bytes + 1)), Signal()
        m.d.comb += [read.addr.eq(taken), self.records.valid.eq(have == self._record_bytes)]
        m.d.sync += [fetched.eq(0),
                     free.eq(ring - 1 - CRC_BYTES - (committed - taken)[:len(taken)])]
        with m.If(self.records.valid), m.If(self.records.ready):
            m.d.sync += have.eq(0)
        with m.Elif(fetched):
            m.d.sync += [self.records.payload.eq(Cat(self.records.payload[8:], read.data)), have.eq(have + 1),
                         taken.eq(taken + 1)]
        with m.Elif(taken != committed):
            m.d.sync += fetched.eq(1)
        with m.If(start):
            m.d.sync += [last.eq(seq), kind.eq(kind_in), held.eq(args[:len(held)])]
            with m.If(kind_in == Kind.DATA):
                end = (written - CRC_BYTES)[:len(committed)]
                m.d.sync += [committed.eq(end), written.eq(end)]
            with m.If(is_open):
                m.d.sync += [opened.eq(1), written.eq(0), committed.eq(0), taken.eq(0), have.eq(0), fetched.eq(0)]

    def _reply(self, m: Module, start: Signal, again: Signal, idle: Signal, last: Signal, kind: Signal,
               free: Signal) -> None:
        """Makes the reply in its memory, and sends it with its CRC and stuffing."""
        size = _WITH_WORD + self._items * self._item_bytes
        m.submodules.reply = memory = Memory(shape=8, depth=size, init=[])
        write, read = memory.write_port(), memory.read_port()
        length, at = Signal(range(size + 1)), Signal(range(size + 1))
        wide = 8 * max(self._item_bytes, _WITH_WORD)
        word, left = Signal(wide), Signal(range(wide // 8 + 1))
        wait, items = Signal(range(_WAIT)), Signal(range(self._items + 1))
        crc, bits, tail = Signal(32), Signal(range(9)), Signal(range(CRC_BYTES + 1))
        byte, shift, escaped = Signal(8), Signal(8), Signal()
        about = Cat(Const(VERSION, 8), Const(self._record_bytes, 8), Const(self._ring, 16))
        m.d.comb += [write.addr.eq(length), write.data.eq(word), read.addr.eq(at)]
        special = (byte == END) | (byte == ESC)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += idle.eq(1)
                m.d.sync += [wait.eq(_WAIT - 1), at.eq(0), items.eq(0), crc.eq(0xFFFFFFFF), tail.eq(0)]
                with m.If(start):
                    m.d.sync += length.eq(0)
                    m.next = "WAIT"
                with m.Elif(again):
                    m.next = "BEGIN"
            with m.State("WAIT"):
                m.d.comb += self.reset.eq(kind == Kind.OPEN)
                m.d.sync += [wait.eq(wait - 1), left.eq(Mux((kind == Kind.OPEN) | (kind == Kind.READ), _WITH_WORD,
                                                            _HEADER)),
                             word.eq(Cat(last, kind, Const(0, 6), free, Mux(kind == Kind.OPEN, about, self.r_data)))]
                with m.If(wait == 0):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += write.en.eq(1)
                m.d.sync += [word.eq(word >> 8), left.eq(left - 1), length.eq(length + 1)]
                with m.If(left == 1):
                    m.next = "ITEMS"
            with m.State("ITEMS"):
                m.d.comb += self.items.ready.eq((kind == Kind.DATA) & (items != self._items))
                m.d.sync += [word.eq(self.items.payload), left.eq(self._item_bytes)]
                with m.If(self.items.valid & self.items.ready):
                    m.d.sync += items.eq(items + 1)
                    m.next = "WRITE"
                with m.Else():
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(END)]
                with m.If(self.o.ready):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += bits.eq(8)
                with m.If(at == length):
                    m.d.sync += [byte.eq(~crc[:8]), crc.eq(crc >> 8), tail.eq(tail + 1)]
                    m.next = "SEND"
                with m.Else():
                    m.d.sync += at.eq(at + 1)
                    m.next = "LOAD"
            with m.State("LOAD"):  # the memory was read at the address before `at` was increased
                m.d.sync += [byte.eq(read.data), shift.eq(read.data)]
                m.next = "CRC"
            with m.State("CRC"):
                m.d.sync += [crc.eq(_crc(crc, shift[0])), shift.eq(shift >> 1), bits.eq(bits - 1)]
                with m.If(bits == 1):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(
                    Mux(escaped, Mux(byte == END, ESC_END, ESC_ESC), Mux(special, ESC, byte)))]
                with m.If(self.o.ready):
                    m.d.sync += escaped.eq(special & ~escaped)
                    with m.If(~special | escaped):
                        m.next = "FETCH"
                        with m.If(tail == CRC_BYTES):
                            m.next = "END"
            with m.State("END"):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(END)]
                with m.If(self.o.ready):
                    m.next = "IDLE"
