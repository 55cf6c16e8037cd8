# amaranth: UnusedElaboratable=no
"""Proofs of the link: sequence numbers over a line that loses, repeats and damages frames, and the ring of records.

The line and the host are free: any frame may be lost, repeated or damaged, any number of frames may be on their way,
and the host may send again whatever it likes of its window. Only three things are assumed: the line does not reorder
frames, the CRC detects damage (a damaged frame is ``bad``), and the host keeps its window. The true numbers of frames,
of which the wire carries 8 bits, are counted modulo 1024; they are never half as far apart.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Const, Mux, Signal, Value

from splitjoin.link.frames import CRC_BYTES, CRC_RESIDUE, END, ESC, NUMBERED, RequestKind
from splitjoin_hw.link.buffers import RecordRing
from splitjoin_hw.link.framing import Deframer
from splitjoin_hw.link.sequencer import Sequencer

from .harness import Harness
from .proofs import Fault, Proof

#: Bits of true numbers, and the host's window of requests.
_BITS, _WINDOW = 10, 64


def _minus(a: Any, b: Any) -> Value:
    """``a - b`` for true numbers, where ``a`` is not before ``b``."""
    return (a - b)[:_BITS]


def _between(low: Any, number: Any, high: Any) -> Value:
    """True if ``number`` is from ``low`` to ``high``, which is not before ``low``."""
    return _minus(number, low) <= _minus(high, low)


def sequencer(slots: int) -> Harness:
    dut = Sequencer(slots)
    h = Harness(dut)
    m = h.m
    h.output = SimpleNamespace(valid=dut.accept & (dut.expected == 1), ready=Const(1))
    base, next_, again = h.inner("base"), h.inner("next_"), h.inner("again")
    opened = dut.current != 0
    in_session = dut.good & opened & (dut.kind != RequestKind.OPEN) & (dut.kind != RequestKind.STATUS)
    numbered = in_session & (dut.kind >= NUMBERED)
    begins = dut.good & (dut.kind == RequestKind.OPEN) & (dut.session != dut.current)
    h.assume("a frame is not good and bad at once", ~(dut.good & dut.bad))
    h.assume("sessions have numbers from 1", ~dut.good | (dut.session != 0))

    def number(name: str) -> Signal:
        """A true number, 0 at the beginning of a session."""
        signal = Signal(_BITS, name=name)
        with m.If(begins):
            m.d.sync += signal.eq(0)
        return signal

    # Requests. `taken` counts those that the device took; the host knows of `known` of them. The frame that arrives has
    # the true number `n`, and was sent when the host knew of `then`, later than the one that arrived before (`before`).
    n, then, learns = h.free("n", _BITS), h.free("then", _BITS), h.free("learns", _BITS)
    taken, known, before = number("requests_taken"), number("requests_known"), number("known_before")
    with m.If(~begins):
        m.d.sync += [taken.eq(taken + dut.accept), known.eq(learns)]
        with m.If(in_session):
            m.d.sync += before.eq(then)
    h.assume("acknowledgements of requests arrive in the order in which they were sent", _between(known, learns, taken))
    h.assume("requests arrive in the order in which they were sent", ~in_session | _between(before, then, known))
    h.assume("the host keeps its window of requests", ~numbered | (
        (_minus(n, then) < _WINDOW) & (dut.seq == n[:8])))
    h.prove("a request is taken once and in its turn", ~dut.accept | (n == taken))
    h.prove("a request whose turn has come is taken", ~(numbered & (n == taken) & ~dut.busy) | dut.accept)
    h.prove("requests are executed in a session only", ~dut.accept | numbered)
    h.prove("only another number than the session's begins a session", dut.fresh == begins)
    h.prove("the acknowledgement counts the requests taken", (dut.expected == taken[:8])
            & _between(before, known, taken) & (_minus(taken, before) <= _WINDOW))

    # Replies. `filled`, `sent` and `acked` are the true numbers of the next slot, of the next reply that was never
    # sent, and of the first that is not acknowledged, as the device knows; the host has all before `has`, and none from
    # `highest` on. The reply that the host receives was sent when the device knew `acked_then`.
    gets, number_got = h.free("gets"), h.free("number_got", _BITS)
    acked_then, has_then, takes = h.free("acked_then", _BITS), h.free("has_then", _BITS), h.free("takes", _BITS)
    filled, sent, acked, has, highest, acked_before, has_before = (number(name) for name in (
        "replies_filled", "replies_sent", "replies_acked", "replies_had", "replies_highest", "acked_before",
        "has_before"))
    sends = dut.taken & dut.send & dut.slot
    is_new = dut.number == sent[:8]
    with m.If(~begins):
        m.d.sync += [filled.eq(filled + dut.filled), has.eq(takes)]
        with m.If(sends & is_new):
            m.d.sync += sent.eq(sent + 1)
        with m.If(in_session):
            m.d.sync += [acked.eq(has_then), has_before.eq(has_then)]
        with m.If(gets):
            m.d.sync += acked_before.eq(acked_then)
            with m.If(_minus(number_got, acked_before) >= _minus(highest, acked_before)):
                m.d.sync += highest.eq(number_got + 1)
    # The replies that were under way together, at most: a reply was sent when no more than these were.
    widest, under_way = number("widest"), Signal(_BITS, name="under_way")
    m.d.comb += under_way.eq(Mux(_minus(sent, acked) > widest, _minus(sent, acked), widest))
    with m.If(~begins):
        m.d.sync += widest.eq(under_way)
    h.assume("only rooms are filled", ~dut.filled | dut.room)
    h.assume("only offers are taken", ~dut.taken | dut.send)
    h.assume("replies arrive in the order in which they were sent", ~gets | (
        _between(acked_before, acked_then, acked) & (_minus(number_got, acked_then) < under_way)
        & (_minus(number_got, acked_then) < _minus(sent, acked_then))))
    h.assume("the host has the replies that it got", _between(has, takes, highest))
    h.assume("acknowledgements of replies arrive in the order in which they were sent", ~in_session | (
        _between(has_before, has_then, has) & (dut.ack == has_then[:8])))
    h.prove("the host can tell the numbers of replies apart", ~gets | (_minus(number_got + slots, has) < 2 * slots))
    h.prove("a reply is sent in its turn, or again while it is not acknowledged", ~sends | is_new
            | (dut.number == acked[:8]))
    h.prove("a reply that is sent is filled and not acknowledged", ~sends | (
        (dut.number - acked[:8])[:8] < _minus(filled, acked)))
    h.prove("no slot is filled while its reply may be asked for", ~dut.filled | (_minus(filled, acked) < slots))
    h.prove("the device's reply numbers are the true ones, modulo 256",
            (base == acked[:8]) & (next_ == sent[:8]) & (dut.top == filled[:8])
            & (_minus(filled, acked) <= slots) & _between(acked, sent, filled) & (has_before == acked)
            & _between(acked, has, sent) & _between(has, highest, sent) & _between(acked_before, acked, sent)
            & (widest <= slots) & (_minus(highest, acked_before) <= slots)
            & (_minus(sent, acked_before) < 1 << (_BITS - 1)))

    # Answers.
    asked, wanted = Signal(name="asked"), Signal(name="wanted")
    with m.If(dut.taken & ~dut.about):
        m.d.sync += asked.eq(0)
    with m.If(dut.taken):
        m.d.sync += wanted.eq(0)
    with m.If(in_session & (dut.kind == RequestKind.AGAIN)):
        m.d.sync += asked.eq(1)
    with m.If((in_session & (dut.kind != RequestKind.ACK)) | (opened & dut.bad)):
        m.d.sync += wanted.eq(1)
    with m.If(begins):
        m.d.sync += [asked.eq(0), wanted.eq(0)]
    h.prove("the reply that the host asks for is sent next", (again | ~asked) & (
        ~asked | dut.about | (acked == sent) | (dut.send & dut.slot & (dut.number == acked[:8]))))
    h.prove("damaged frames and requests are answered", (h.inner("answer") == wanted) & (~wanted | dut.send))
    return h


def ring() -> Harness:
    size = 8
    dut = RecordRing(1, size)
    h = Harness(dut)
    m = h.m
    h.output = dut.o
    written, committed, taken = h.inner("written"), h.inner("committed"), h.inner("taken")
    have, bits = h.inner("have"), len(written)
    frame, kept = Signal(range(size + 1), name="frame"), Signal(range(size + 1), name="kept")
    stored, leaves = dut.write & (frame + kept - have != size), dut.o.valid & dut.o.ready
    picked, ahead, token = Signal(name="picked"), Signal(range(size + 2), name="ahead"), Signal(8, name="token")
    mark = h.free("mark")
    h.assume("frames end between bytes", ~(dut.write & (dut.commit | dut.rollback)))
    h.assume("only whole frames are good", ~dut.commit | ((frame >= CRC_BYTES) & ~dut.overflow))
    m.d.sync += kept.eq(kept - leaves + Mux(dut.commit, frame - CRC_BYTES, 0))
    with m.If(dut.commit | dut.rollback):
        m.d.sync += frame.eq(0)
    with m.Else():
        m.d.sync += frame.eq(frame + stored)
    # The picked byte has `ahead` bytes before it. Those of a frame leave when it is committed.
    inside = picked & (ahead < kept)
    with m.If(picked):
        m.d.sync += ahead.eq(ahead - leaves)
        with m.If(inside):
            m.d.sync += picked.eq(~(leaves & (ahead == 0)))
        with m.Elif(dut.commit):
            m.d.sync += picked.eq(ahead < kept + frame - CRC_BYTES)
        with m.Elif(dut.rollback):
            m.d.sync += picked.eq(0)
    with m.Elif(stored & mark):
        m.d.sync += [picked.eq(1), ahead.eq(kept + frame - leaves), token.eq(dut.byte)]
    place = (taken + ahead - have)[:bits - 1]
    h.prove("only bytes of good frames leave", ~dut.o.valid | (kept != 0))
    h.prove("bytes leave unchanged and in order", ~(inside & (ahead == 0) & dut.o.valid) | (dut.o.payload == token))
    h.prove("the positions are those of the bytes inside", ((written - committed)[:bits] == frame)
            & ((committed - taken)[:bits] + have == kept) & (frame + kept - have <= size) & (have <= 1))
    h.prove("the picked byte is inside and in its place", ~picked | ((ahead < kept + frame) & (
        (have & (ahead == 0)) | (h.look("ring", place) == token))))
    h.prove("a byte without room spoils its frame", ~h.past(dut.write & ~stored, "lost") | dut.overflow)
    credit = h.past((taken + (size - CRC_BYTES))[:16], "credit_then")
    h.prove("the credit counts the bytes that left the ring", ~h.started() | (dut.credit == credit))
    return h


def deframer() -> Harness:
    dut = Deframer()
    h = Harness(dut)
    m = h.m
    h.output = SimpleNamespace(valid=dut.write & (dut.index == 1), ready=Const(1))
    escape, bad, crc, bits = h.inner("escape"), h.inner("bad"), h.inner("crc"), h.inner("bits")
    ends = dut.stb & (dut.data == END)
    h.prove("the state after END is that after power-up", ~h.past(ends, "ended") | (
        (dut.index == 0) & ~escape & ~bad & (crc == 0xFFFFFFFF) & (bits == 0)))
    wrong, escaped = Signal(name="wrong"), Signal(name="escaped")
    with m.If(dut.stb):
        m.d.sync += escaped.eq((dut.data == ESC) & ~escaped)
        with m.If(escaped & (dut.data != 0xDC) & (dut.data != 0xDD)):
            m.d.sync += wrong.eq(1)
        with m.If(ends):
            m.d.sync += [wrong.eq(0), escaped.eq(0)]
    h.prove("a frame with wrong stuffing or CRC is not good",
            ~dut.good | (~wrong & ~escaped & (crc == CRC_RESIDUE) & ends))
    h.prove("escapes are followed", (escape == escaped) & (bad == wrong))
    h.prove("the stuffing of a byte is undone", ~dut.write | (dut.byte == Mux(
        escaped, Mux(dut.data == 0xDC, END, ESC), dut.data)))
    return h


_SEQUENCER_FAULTS = (
    Fault("a request is taken once and in its turn", Sequencer, "(self.seq == self.expected)",
          "((self.seq - self.expected)[:8] < 2)"),
    Fault("a request whose turn has come is taken", Sequencer,
          "self.good & opened & numbered & (self.seq == self.expected) & ~self.busy",
          "self.good & opened & numbered & (self.seq == self.expected) & ~self.busy & ~again"),
    Fault("requests are executed in a session only", Sequencer, "self.good & opened & numbered",
          "self.good & numbered"),
    Fault("only another number than the session's begins a session", Sequencer,
          "self.good & opens & (self.session != self.current)", "self.good & opens"),
    Fault("the acknowledgement counts the requests taken", Sequencer, "m.If(self.accept)",
          "m.If(self.accept & ~self.taken)"),
    Fault("the host can tell the numbers of replies apart", Sequencer, "self._slots", "self._slots + 1"),
    Fault("a reply is sent in its turn, or again while it is not acknowledged", Sequencer, "next_.eq(next_ + 1)",
          "next_.eq(next_ + 2)"),
    Fault("a reply that is sent is filled and not acknowledged", Sequencer, "(next_ != self.top) & (next_ != granted)",
          "next_ != granted"),
    Fault("no slot is filled while its reply may be asked for", Sequencer, "self._slots", "self._slots + 1"),
    Fault("the device's reply numbers are the true ones, modulo 256", Sequencer, "base.eq(self.ack)",
          "base.eq(self.ack + 1)"),
    Fault("the reply that the host asks for is sent next", Sequencer, "repeats.eq(again & (base != next_))",
          "repeats.eq(again & (base + 1 != next_))"),
    Fault("damaged frames and requests are answered", Sequencer, "m.If(self.kind != RequestKind.ACK)",
          "m.If(self.kind > RequestKind.POLL)"),
)

_RING_FAULTS = (
    Fault("only bytes of good frames leave", RecordRing, "taken[:bits] != committed", "taken[:bits] != written"),
    Fault("bytes leave unchanged and in order", RecordRing, "read.addr.eq(taken)", "read.addr.eq(taken + self.write)"),
    Fault("the positions are those of the bytes inside", RecordRing, "written.eq(committed)", "written.eq(written)"),
    Fault("the picked byte is inside and in its place", RecordRing, "write.en.eq(self.write & ~full)",
          "write.en.eq(self.write)"),
    Fault("a byte without room spoils its frame", RecordRing, "m.d.sync += self.overflow.eq(1)",
          "m.d.sync += self.overflow.eq(self.o.valid)"),
    Fault("the credit counts the bytes that left the ring", RecordRing, "taken + (ring - CRC_BYTES)",
          "taken + ring"),
)

_DEFRAMER_FAULTS = (
    Fault("the state after END is that after power-up", Deframer,
          "[self.index.eq(0), escape.eq(0), bad.eq(0), crc.eq(4294967295), bits.eq(0)]",
          "[self.index.eq(0), bad.eq(0), crc.eq(4294967295), bits.eq(0)]"),
    Fault("a frame with wrong stuffing or CRC is not good", Deframer,
          "self.end & ~escape & ~bad & (crc == CRC_RESIDUE)", "self.end & ~escape & ~bad"),
    Fault("escapes are followed", Deframer, "(self.data == ESC) & ~escape", "(self.data == ESC)"),
    Fault("the stuffing of a byte is undone", Deframer, "Mux(self.data == ESC_END, END, ESC)",
          "Mux(self.data == ESC_END, ESC, END)"),
)

PROOFS = (
    Proof("link sequencer, 2 slots", lambda: sequencer(2), 2, faults=_SEQUENCER_FAULTS, search=14),
    Proof("link sequencer, 4 slots", lambda: sequencer(4), 2, quick=False),
    Proof("link sequencer, 16 slots", lambda: sequencer(16), 2, quick=False),
    Proof("ring of records", ring, 2, faults=_RING_FAULTS, search=16),
    Proof("deframer", deframer, 2, faults=_DEFRAMER_FAULTS, search=8),
)
