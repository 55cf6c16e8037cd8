"""The buffers of the circuit's end of the link: records for the join, and replies that are not acknowledged."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from splitjoin.link.frames import CRC_BYTES


class RecordRing(wiring.Component):
    """A ring of ``ring`` bytes, a power of two: the bytes of a frame become records of ``record_bytes`` bytes at ``o``.

    ``byte``, ``write``: bytes of a frame, its CRC included. ``commit``: the frame is good, and its bytes but the CRC
    are kept; ``rollback``: its bytes are dropped. ``overflow``: since then a byte found no room. ``credit``: the bytes
    of records that the host may have sent since reset, modulo 2^16.
    """

    def __init__(self, record_bytes: int, ring: int):
        if not (isinstance(ring, int) and 8 <= ring <= 1 << 15 and ring & (ring - 1) == 0
                and 1 <= record_bytes <= min(255, ring - CRC_BYTES)):
            raise ValueError(f"The ring must have a power of two of bytes from 8 to 32768, {CRC_BYTES} more than a "
                             f"record of {record_bytes!r} bytes (at most 255), not {ring!r}")
        self._record_bytes, self._ring = record_bytes, ring
        super().__init__({
            "byte": In(8), "write": In(1), "commit": In(1), "rollback": In(1), "overflow": Out(1),
            "credit": Out(16, init=ring - CRC_BYTES), "o": Out(stream.Signature(8 * record_bytes)),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        ring = self._ring
        m.submodules.ring = memory = Memory(shape=8, depth=ring, init=[])
        write, read = memory.write_port(), memory.read_port()
        # Positions, of which the low bits are addresses.
        written, committed = (Signal(range(2 * ring), name=name) for name in ("written", "committed"))
        taken = Signal(16)
        have = Signal(range(self._record_bytes + 1))
        fetched = Signal()
        bits = len(written)
        full = (written - taken)[:bits] == ring
        m.d.comb += [write.addr.eq(written), write.data.eq(self.byte), write.en.eq(self.write & ~full),
                     read.addr.eq(taken), self.o.valid.eq(have == self._record_bytes)]
        m.d.sync += self.credit.eq(taken + (ring - CRC_BYTES))
        with m.If(self.write):
            with m.If(full):
                m.d.sync += self.overflow.eq(1)
            with m.Else():
                m.d.sync += written.eq(written + 1)
        end = (written - CRC_BYTES)[:bits]
        with m.If(self.commit):
            m.d.sync += [committed.eq(end), written.eq(end), self.overflow.eq(0)]
        with m.Elif(self.rollback):
            m.d.sync += [written.eq(committed), self.overflow.eq(0)]

        # Record by record, byte by byte.
        m.d.sync += fetched.eq(0)
        with m.If(self.o.valid), m.If(self.o.ready):
            m.d.sync += have.eq(0)
        with m.Elif(fetched):
            m.d.sync += [self.o.payload.eq(Cat(self.o.payload[8:], read.data)), have.eq(have + 1), taken.eq(taken + 1)]
        with m.Elif(taken[:bits] != committed):
            m.d.sync += fetched.eq(1)
        return m


class ReplySlots(wiring.Component):
    """Collects items, and register words, into ``slots`` slots of ``slot_bytes`` bytes: the payloads of replies.

    ``top``, ``room``, ``filled``: as of `Sequencer`. ``i``: items of ``item_bytes`` bytes. ``word``, ``word_valid``: a
    register word, which gets a slot of its own; ``word_ready`` takes it. ``flush``: a slot is closed before it is full,
    as nothing else is sent, and few replies are under way. ``slot``, ``offset``: the byte to read a cycle later at
    ``data``; the first of a slot is the length of the payload, with its top bit set for a word.
    """

    def __init__(self, item_bytes: int, slots: int, slot_bytes: int):
        if not (isinstance(slot_bytes, int) and max(8, item_bytes + 1) <= slot_bytes <= 128
                and slot_bytes & (slot_bytes - 1) == 0 and slots & (slots - 1) == 0):
            raise ValueError(f"Slots must have a power of two of bytes up to 128, one more than an item of "
                             f"{item_bytes!r} bytes, and their number must be a power of two, not {slots!r} of "
                             f"{slot_bytes!r} bytes")
        self._item_bytes, self._slots, self._slot_bytes = item_bytes, slots, slot_bytes
        super().__init__({
            "i": In(stream.Signature(8 * item_bytes)), "word": In(32), "word_valid": In(1), "word_ready": Out(1),
            "top": In(8), "room": In(1), "filled": Out(1), "flush": In(1),
            "slot": In(8), "offset": In(7), "data": Out(8),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = self._slots * self._slot_bytes
        m.submodules.slots = memory = Memory(shape=8, depth=depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        at_bits, slot_bits = (self._slot_bytes - 1).bit_length(), (self._slots - 1).bit_length()
        length = Signal(range(self._slot_bytes))  # of the payload so far
        shift, left = Signal(8 * max(4, self._item_bytes)), Signal(range(self._item_bytes + 5))
        is_word = Signal()
        full = length > self._slot_bytes - 1 - self._item_bytes
        m.d.comb += [read.addr.eq(Cat(self.offset[:at_bits], self.slot[:slot_bits])), self.data.eq(read.data),
                     write.addr.eq(Cat((length + 1)[:at_bits], self.top[:slot_bits])), write.data.eq(shift)]
        with m.FSM():
            with m.State("COLLECT"):
                wants = (length != 0) & (full | self.flush | self.word_valid)
                with m.If(self.word_valid & (length == 0)):
                    m.d.comb += self.word_ready.eq(self.room)
                with m.Elif(~full):
                    m.d.comb += self.i.ready.eq(self.room)
                m.d.sync += [shift.eq(Mux(self.word_ready, self.word, self.i.payload)), is_word.eq(self.word_ready),
                             left.eq(Mux(self.word_ready, 4, self._item_bytes))]
                with m.If(self.word_ready | (self.i.ready & self.i.valid)):
                    m.next = "WRITE"
                with m.Elif(wants):
                    m.next = "CLOSE"
            with m.State("WRITE"):
                m.d.comb += write.en.eq(1)
                m.d.sync += [shift.eq(shift >> 8), left.eq(left - 1), length.eq(length + 1)]
                with m.If(left == 1):
                    m.next = "COLLECT"
                    with m.If(is_word):
                        m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += [write.en.eq(1), write.addr.eq(Cat(Const(0, at_bits), self.top[:slot_bits])),
                             write.data.eq(Cat(length, Const(0, 7 - len(length)), is_word)), self.filled.eq(1)]
                m.d.sync += length.eq(0)
                m.next = "COLLECT"
        return m
