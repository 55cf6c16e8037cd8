"""The circuit's end of the link: it checks and executes the host's requests, and sends replies."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from splitjoin.link.frames import (
    ABOUT_BYTES,
    CRC_BYTES,
    PACKED_VERSION,
    REPLY_HEADER,
    REQUEST_HEADER,
    RING,
    SLOT_BYTES,
    SLOTS,
    VERSION,
    About,
    ReplyKind,
    RequestKind,
)

from .buffers import RecordRing, ReplySlots
from .framing import Deframer, Framer
from .packing import ItemPacker
from .sequencer import Sequencer

#: Cycles that a read of a register takes, and that the join is reset.
_WAIT = 8


class LinkEndpoint(wiring.Component):
    """Implements `splitjoin.link.frames` for records of ``record_bytes`` and items of ``item_bytes`` bytes.

    Ports: ``data``, ``stb``: received bytes, at least 12 cycles apart, or 2 if ``wide``. ``o``: bytes to send.
    ``records``, ``items``: the join's streams, in whole bytes. ``addr``, ``w_stb``, ``w_data``, ``r_data``: its
    register bus of ``addr_bits``. ``reset``: resets the join. ``abi``: the ABI hash of the join, 64 bits. ``ring``,
    ``slots``, ``slot_bytes``: sizes of the buffers, powers of two. A frame's records stay in the ring, unseen by the
    join, until the frame's CRC is right; replies stay in their slots until the host has acknowledged them. ``packer``:
    packs the items, if given. ``wide``: the CRC takes a byte a cycle.
    """

    def __init__(self, record_bytes: int, item_bytes: int, addr_bits: int, *, abi: int = 0, ring: int = RING,
                 slots: int = SLOTS, slot_bytes: int = SLOT_BYTES, packer: ItemPacker | None = None,
                 wide: bool = False):
        self._packer, self._wide = packer, wide
        self._ring = RecordRing(record_bytes, ring)
        self._slots = ReplySlots(item_bytes if packer is None else 1, slots, slot_bytes)
        self._sequencer = Sequencer(slots)
        self._about = About(record_bytes, abi, 0, version=VERSION if packer is None else PACKED_VERSION, slots=slots,
                            ring=ring).payload()
        super().__init__({
            "data": In(8), "stb": In(1), "o": Out(stream.Signature(8)),
            "records": Out(stream.Signature(8 * record_bytes)), "items": In(stream.Signature(8 * item_bytes)),
            "addr": Out(addr_bits), "w_stb": Out(1), "w_data": Out(32), "r_data": In(32), "reset": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.deframer = deframer = Deframer(wide=self._wide)
        m.submodules.sequencer = sequencer = self._sequencer
        ring, slots = self._ring, self._slots
        m.submodules.ring = ResetInserter(sequencer.fresh)(ring)
        m.submodules.slots = ResetInserter(sequencer.fresh)(slots)
        wiring.connect(m, wiring.flipped(self.records), ring.o)
        if self._packer is None:
            wiring.connect(m, wiring.flipped(self.items), slots.i)
        else:
            # The old session's items must not change what the new one's are differences to.
            m.submodules.packer = packer = ResetInserter(sequencer.fresh | self.reset)(self._packer)
            wiring.connect(m, wiring.flipped(self.items), packer.i)
            wiring.connect(m, packer.o, slots.i)

        # Requests.
        kind = Signal(8)
        args = Signal(40)  # the first five bytes of the payload; of fewer, also of the CRC
        m.d.comb += [deframer.data.eq(self.data), deframer.stb.eq(self.stb), ring.byte.eq(deframer.byte)]
        with m.If(deframer.write):
            with m.Switch(deframer.index):
                for at, field in enumerate((kind, sequencer.seq, sequencer.ack, sequencer.limit)):
                    with m.Case(at):
                        m.d.sync += field.eq(deframer.byte)
                with m.Case(*range(REQUEST_HEADER, REQUEST_HEADER + 5)):
                    m.d.sync += args.eq(Cat(args[8:], deframer.byte))
            with m.If((deframer.index >= REQUEST_HEADER) & (kind == RequestKind.DATA)):
                m.d.comb += ring.write.eq(1)
        good = Signal()
        m.d.comb += [good.eq(deframer.good & (deframer.index >= REQUEST_HEADER + CRC_BYTES) & (kind < len(RequestKind))
                             & ~ring.overflow),
                     sequencer.good.eq(good), sequencer.bad.eq(deframer.end & ~good),
                     sequencer.kind.eq(kind), sequencer.session.eq(args),
                     ring.commit.eq(sequencer.accept & (kind == RequestKind.DATA)), ring.rollback.eq(deframer.end)]

        # Registers, and the reset of the join.
        wait, reading = Signal(range(_WAIT)), Signal()
        held = Signal.like(self.addr, name="addr_held")
        m.d.comb += [self.addr.eq(Mux(sequencer.accept, args, held)), self.w_data.eq(args[8:]),
                     self.w_stb.eq(sequencer.accept & (kind == RequestKind.WRITE)), sequencer.busy.eq(reading),
                     slots.word.eq(self.r_data), slots.word_valid.eq(reading & (wait == 0))]
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.Else():
            m.d.sync += self.reset.eq(0)
        with m.If(slots.word_ready):
            m.d.sync += reading.eq(0)
        with m.If(sequencer.accept):
            m.d.sync += [held.eq(args), wait.eq(_WAIT - 1), reading.eq(kind == RequestKind.READ)]
        with m.If(sequencer.fresh):
            m.d.sync += [self.reset.eq(1), wait.eq(_WAIT - 1), reading.eq(0)]

        # Replies.
        m.d.comb += [slots.top.eq(sequencer.top), slots.room.eq(sequencer.room), sequencer.filled.eq(slots.filled)]
        self._send(m, sequencer, slots, ring)
        return m

    def _send(self, m: Module, sequencer: Sequencer, slots: ReplySlots, ring: RecordRing) -> None:
        """The bytes of the replies that ``sequencer`` offers, framed."""
        m.submodules.framer = framer = Framer(wide=self._wide)
        wiring.connect(m, wiring.flipped(self.o), framer.o)
        session = Signal(32)
        about = Array([*self._about])
        is_about, is_slot, nak = Signal(), Signal(), Signal()
        number, ack, credit = Signal(8), Signal(8), Signal(16)
        kind = Signal(2)
        at, last = Signal(range(128 + REPLY_HEADER)), Signal(range(128 + REPLY_HEADER))
        offset = Signal(7)
        byte = framer.i.payload.byte
        m.d.comb += [slots.slot.eq(number), slots.offset.eq(offset), framer.i.payload.last.eq(at == last)]
        with m.Switch(at):
            for n, value in enumerate((Cat(kind, Const(0, 5), nak), number, ack, credit[:8], credit[8:])):
                with m.Case(n):
                    m.d.comb += byte.eq(value)
            with m.Default():
                m.d.comb += byte.eq(slots.data)
                with m.If(is_about):
                    m.d.comb += byte.eq(about[at - REPLY_HEADER])
                    for n in range(4):
                        with m.If(at == REPLY_HEADER + 5 + n):
                            m.d.comb += byte.eq(session[8 * n:8 * n + 8])
        with m.FSM():
            with m.State("IDLE"):
                # Short replies take as many numbers as full ones, which a long round trip needs.
                m.d.comb += [sequencer.taken.eq(sequencer.send), slots.flush.eq(~sequencer.send & sequencer.few)]
                m.d.sync += [is_about.eq(sequencer.about), is_slot.eq(sequencer.slot), nak.eq(sequencer.nak),
                             number.eq(sequencer.number), ack.eq(sequencer.expected), credit.eq(ring.credit),
                             session.eq(sequencer.current), at.eq(0), offset.eq(0)]
                with m.If(sequencer.send):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.next = "LENGTH"
            with m.State("LENGTH"):
                m.d.sync += [offset.eq(1), last.eq(REPLY_HEADER - 1), kind.eq(ReplyKind.ACK)]
                with m.If(is_about):
                    m.d.sync += [last.eq(REPLY_HEADER - 1 + ABOUT_BYTES), kind.eq(ReplyKind.ABOUT)]
                with m.Elif(is_slot):
                    m.d.sync += [last.eq(slots.data[:7] + (REPLY_HEADER - 1)),
                                 kind.eq(Mux(slots.data[7], ReplyKind.WORD, ReplyKind.ITEMS))]
                m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += framer.i.valid.eq(1)
                with m.If(framer.i.ready):
                    m.d.sync += at.eq(at + 1)
                    with m.If(at >= REPLY_HEADER):
                        m.d.sync += offset.eq(offset + 1)
                    with m.If(at == last):
                        m.next = "IDLE"
