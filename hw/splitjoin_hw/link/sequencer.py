"""Sequence numbers, acknowledgements and credit of the circuit's end of the link."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from splitjoin.link.frames import NUMBERED, RequestKind


class Sequencer(wiring.Component):
    """Decides which requests are taken, and which reply is sent next.

    *Requests.* ``good`` marks the end of a request with a right CRC, whose fields are ``kind``, ``seq``, ``ack``,
    ``limit``, and ``session`` of an OPEN; ``bad`` marks a damaged frame. In the cycle of ``good``, ``accept`` says that
    it is a numbered request in order, to be executed now: never while ``busy``. ``fresh``: a session begins.

    *Replies.* They are numbered as they are filled into ``slots`` slots: ``top`` is the number of the next one, which
    may be filled while ``room``, and ``filled`` says that it is complete; ``few``: at most half of the slots hold a
    reply that is not acknowledged. ``send`` offers a reply: with ``about`` an
    ABOUT, with ``slot`` the content of the slot, else an ACK; its header holds ``number``, ``expected`` and ``nak``.
    ``taken`` takes the offer; it is sent once, and again if the host asks.
    """

    def __init__(self, slots: int):
        if not (isinstance(slots, int) and 1 <= slots <= 64):
            raise ValueError(f"Slots must be an integer from 1 to 64, not {slots!r}")
        self._slots, self._half = slots, slots // 2
        super().__init__({
            "good": In(1), "bad": In(1), "kind": In(3), "seq": In(8), "ack": In(8), "limit": In(8), "session": In(32),
            "busy": In(1), "accept": Out(1), "fresh": Out(1), "expected": Out(8), "current": Out(32),
            "filled": In(1), "top": Out(8), "room": Out(1), "few": Out(1),
            "send": Out(1), "about": Out(1), "slot": Out(1), "number": Out(8), "nak": Out(1), "taken": In(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # Numbers of replies: the first that is not acknowledged, and the next to be sent for the first time.
        base, next_ = Signal(8, name="base"), Signal(8, name="next_")
        granted = Signal(8)  # the host's credit: the first number that may not be sent
        again, answer = Signal(name="again"), Signal(name="answer")
        held = (self.top - base)[:8]
        m.d.comb += [self.room.eq(held != self._slots), self.few.eq(held <= self._half)]
        with m.If(self.filled):
            m.d.sync += self.top.eq(self.top + 1)

        repeats, sends = Signal(name="repeats"), Signal(name="sends")
        m.d.comb += [repeats.eq(again & (base != next_)), sends.eq((next_ != self.top) & (next_ != granted)),
                     self.send.eq(self.about | repeats | sends | answer),
                     self.slot.eq(~self.about & (repeats | sends)),
                     self.number.eq(next_)]
        with m.If(repeats & ~self.about):
            m.d.comb += self.number.eq(base)
        with m.If(self.taken):
            m.d.sync += [answer.eq(0), self.nak.eq(0), self.about.eq(0)]
            with m.If(~self.about):
                m.d.sync += again.eq(0)
                with m.If(sends & ~repeats):
                    m.d.sync += next_.eq(next_ + 1)

        opened = self.current != 0
        opens = self.kind == RequestKind.OPEN
        about = opens | (self.kind == RequestKind.STATUS)
        numbered = self.kind >= NUMBERED
        m.d.comb += [self.fresh.eq(self.good & opens & (self.session != self.current)),
                     self.accept.eq(self.good & opened & numbered & (self.seq == self.expected) & ~self.busy)]
        with m.If(self.good & about):
            m.d.sync += self.about.eq(1)
        with m.If(self.good & ~about & opened):
            # An acknowledgement of what was not sent is of another session, or was sent before the last one.
            with m.If((self.ack - base)[:8] <= (next_ - base)[:8]):
                m.d.sync += [base.eq(self.ack), granted.eq(self.limit)]
                with m.If(self.kind == RequestKind.AGAIN):
                    m.d.sync += again.eq(1)
            with m.If(self.kind != RequestKind.ACK):
                m.d.sync += answer.eq(1)
            # A request that was taken already is acknowledged again, without complaint.
            with m.If(numbered & ~self.accept & ~(self.seq - self.expected)[7]):
                m.d.sync += self.nak.eq(1)
        with m.If(self.bad & opened):
            m.d.sync += [answer.eq(1), self.nak.eq(1)]
        with m.If(self.accept):
            m.d.sync += self.expected.eq(self.expected + 1)
        with m.If(self.fresh):
            m.d.sync += [self.current.eq(self.session), self.expected.eq(0), base.eq(0), next_.eq(0), self.top.eq(0),
                         granted.eq(self.limit), again.eq(0), answer.eq(0), self.nak.eq(0)]
        return m
