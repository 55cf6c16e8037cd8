"""The host's endpoint of the link, without input, output and clock: the caller brings bytes and the time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from splitjoin.base.errors import DeviceError

from .frames import (
    CRC_BYTES,
    DATA_BYTES,
    END,
    NUMBERED,
    REPLY_HEADER,
    RING,
    SLOT_BYTES,
    SLOTS,
    About,
    Decoder,
    Reply,
    ReplyKind,
    Request,
    RequestKind,
    encode,
)

#: Most requests in flight: fewer than half of the sequence numbers.
_WINDOW = 64
#: Most and fewest bytes of records in a request, and those of the first; damaged frames make them shorter.
_LONGEST, _SHORTEST, _FIRST = DATA_BYTES, 24, 60
#: Fewest bytes in flight. Damaged frames make them fewer, as all that follow must be sent again. The most are twice
#: those of the device's buffer, as stuffing doubles them at most.
_FEWEST = 64
#: Bounds of the time after which a frame is sent again, in seconds.
_SOONEST, _LATEST = 0.004, 0.25
#: Most bytes of replies that come before an acknowledgement is complete: one reply that had begun before the request
#: arrived, and the next one, whose header has it. Stuffing doubles the bytes of a reply at most.
_ANSWER = 2 * (2 * (REPLY_HEADER + SLOT_BYTES + CRC_BYTES) + 2)


class RoundTrip:
    """The time after which a reply is overdue, from measured round trips (RFC 6298)."""

    def __init__(self) -> None:
        self._mean, self._deviation = 0.05, 0.0125
        self._measured = False
        self._backoff = 1

    @property
    def mean(self) -> float:
        """The smoothed round trip, in seconds."""
        return self._mean

    @property
    def timeout(self) -> float:
        """Seconds after which a reply is overdue."""
        return min(_LATEST, max(_SOONEST, self._mean + 4 * self._deviation) * self._backoff)

    def measured(self, seconds: float) -> None:
        """A round trip took ``seconds``."""
        if not self._measured:
            self._mean, self._deviation, self._measured = seconds, seconds / 2, True
        else:
            self._deviation += (abs(seconds - self._mean) - self._deviation) / 4
            self._mean += (seconds - self._mean) / 8

    def expired(self) -> None:
        """Nothing came in time: wait twice as long the next time (RFC 6298, section 5.5)."""
        self._backoff = min(64, 2 * self._backoff)

    def progress(self) -> None:
        """The device has taken a request."""
        self._backoff = 1


@dataclass
class _Pending:
    """A numbered request without acknowledgement."""

    kind: RequestKind
    seq: int
    payload: bytes
    sent: float | None = None
    repeated: bool = False
    length: int = 0  # bytes on the line, when it was sent last


@dataclass(frozen=True)
class _Wait:
    """A wait for an answer, from time ``since`` on, when ``received`` bytes had come in all."""

    since: float
    received: int


class HostEndpoint:
    """Sends numbered requests in order, and collects numbered replies in order.

    The caller sends what `output` returns, feeds what it receives to `feed`, and calls both again at `deadline`. All
    times are in seconds of the caller's clock.

    Args:
        session: The number of the session, from 1 to 2^32 − 1, which no earlier one may have had.
        byte_seconds: The time of a byte on the line.

    Attributes:
        about: What the device said of itself when the session was opened, or None before.
        items: The bytes of the items that came; the caller takes them.
        words: The register words that came, likewise.
        retransmissions: Requests that were sent again, and replies that were asked for again.
        heard: When the last valid frame came.
    """

    def __init__(self, session: int, byte_seconds: float = 0.0):
        self.about: About | None = None
        self.items = bytearray()
        self.words: deque[int] = deque()
        self.retransmissions = 0
        self.heard = 0.0
        self._session, self._byte_seconds = session, byte_seconds
        self._decoder, self._trip = Decoder(), RoundTrip()
        self._opening, self._resuming = False, False
        self._asked_about: _Wait | None = None
        self._received = 0  # bytes
        self._pending: deque[_Pending] = deque()
        self._unsent = 0  # the position in `_pending` from which requests must be sent
        self._next = self._expected = 0  # numbers of the next new request, and of the next reply
        self._position = self._credit = 0  # bytes of records: sent, and allowed
        self._reads = 0  # requests for register words whose replies have not come
        self._early: dict[int, Reply] = {}  # replies after one that is missing
        self._gap = False  # a reply is missing
        self._asked_again: _Wait | None = None  # for that reply
        self._went_back: float = float("-inf")
        self._progress = _Wait(0.0, 0)  # since the device last took a request
        self._spoken = 0.0  # when the host last sent
        self._owed = 0  # replies that were not acknowledged
        self._longest, self._most, self._most_ever = _FIRST, 2 * RING, 2 * RING
        self._flying = 0  # bytes of requests that were sent, and are not acknowledged

    @property
    def rejected(self) -> int:
        """Received frames that were damaged."""
        return self._decoder.rejected

    @property
    def idle(self) -> bool:
        """True if the device has taken all requests."""
        return not self._pending

    @property
    def in_flight(self) -> int:
        """Requests without acknowledgement."""
        return len(self._pending)

    def room(self, record_bytes: int) -> int:
        """Records of ``record_bytes`` that a DATA may have now; 0 if there is no credit, or too much is in flight."""
        if self.about is None or len(self._pending) >= _WINDOW:
            return 0
        credit = (self._credit - self._position) & 0xFFFF
        return min(credit, max(self._longest, record_bytes)) // record_bytes

    def open(self) -> None:
        """Begin the session; `about` tells when it has begun."""
        self._opening, self._asked_about = True, None

    def resume(self) -> None:
        """The line was interrupted: ask whether the session is alive, and repeat what is not acknowledged.

        A session that has not begun is opened; one that has is never opened again, as a device without its state would
        take its number for that of a new session.
        """
        self._decoder.feed(bytes((END,)))  # what came last may be the beginning of a frame
        if self._opening:
            self._asked_about = None
            return
        self._resuming, self._asked_about, self.about = True, None, None
        self._trip = RoundTrip()

    def submit(self, kind: RequestKind, payload: bytes = b"") -> None:
        """Add a numbered request; of records, no more than there is `room` for."""
        assert kind >= NUMBERED
        if kind == RequestKind.DATA:
            self._position = (self._position + len(payload)) & 0xFFFF
        self._reads += kind == RequestKind.READ
        self._pending.append(_Pending(kind, self._next, payload))
        self._next = (self._next + 1) & 0xFF

    def feed(self, received: bytes, now: float) -> None:
        """Take ``received`` bytes. Raises `DeviceError` for replies that no device of this version sends."""
        self._received += len(received)
        for content in self._decoder.feed(received):
            reply = Reply.parse(content)
            if reply.kind == ReplyKind.ABOUT:
                self._introduced(About.parse(reply.payload), reply, now)
            if self.about is not None and self.about.session == self._session:
                self.heard = now
                self._take(reply, now)

    def output(self, now: float) -> bytes:
        """The bytes to be sent now."""
        out = bytearray()
        if self._opening or self._resuming:
            if self._asked_about is None or now >= self._due(self._asked_about):
                if self._asked_about is not None:
                    self._trip.expired()
                    self.retransmissions += 1
                self._asked_about = _Wait(now, self._received)
                kind = RequestKind.OPEN if self._opening else RequestKind.STATUS
                out += self._frame(kind, self._session.to_bytes(4, "little") if self._opening else b"")
            return bytes(out)
        if self.about is None:
            return b""
        if self._pending and self._unsent and now >= self._due(self._progress, self._flying):
            self._trip.expired()
            self._go_back(now)
        for request in list(self._pending)[self._unsent:]:
            if self._flying >= self._most:
                break
            self.retransmissions += request.repeated
            if request.sent is None:
                if self._unsent == 0:
                    self._progress = _Wait(now, self._received)
                request.sent = now
            frame = self._frame(request.kind, request.payload, request.seq)
            request.length = len(frame)
            self._flying += len(frame)
            out += frame
            self._unsent += 1
        if self._gap and (self._asked_again is None or now >= self._due(self._asked_again)):
            self._asked_again = _Wait(now, self._received)
            self.retransmissions += 1
            out += self._frame(RequestKind.AGAIN)
        if now - self._spoken >= _LATEST and not out:
            out += self._frame(RequestKind.POLL)
        if self._owed and not out:
            out += self._frame(RequestKind.ACK)
        if out:
            self._spoken, self._owed = now, 0
        return bytes(out)

    def deadline(self, now: float) -> float:
        """Time at which `output` must be called again even if nothing arrives."""
        times = [self._spoken + _LATEST]
        if self._opening or self._resuming:
            times = [now if self._asked_about is None else self._due(self._asked_about)]
        elif self._pending:
            times.append(self._due(self._progress, self._flying))
        if self._gap:
            times.append(now if self._asked_again is None else self._due(self._asked_again))
        return max(now, min(times))

    def _due(self, wait: _Wait, flying: int = 0) -> float:
        """Time from which the awaited answer is overdue, if ``flying`` bytes of requests are on their way.

        Measured round trips say nothing of the frames that share the line with an answer, so their time is added. A
        lone request behind many records would else be sent again for nothing: it waits for the replies to them.
        """
        ahead = min(self._received - wait.received, _ANSWER)
        return wait.since + self._trip.timeout + self._byte_seconds * (flying + ahead)

    def _frame(self, kind: RequestKind, payload: bytes = b"", seq: int | None = None) -> bytes:
        # Credit: as many replies as the device can keep; the host stores all that come.
        slots = SLOTS if self.about is None else self.about.slots
        return encode(Request(kind, self._next if seq is None else seq, self._expected,
                              (self._expected + slots) & 0xFF, payload).content())

    def _introduced(self, about: About, reply: Reply, now: float) -> None:
        """The device has introduced itself."""
        self._most_ever = 2 * max(RING, about.ring)
        if self._opening and about.session == self._session:
            self.about, self._opening = about, False
            self._credit, self._progress, self.heard = reply.credit, _Wait(now, self._received), now
        elif self._resuming:
            self.about, self._resuming, self.heard = about, False, now
            self._gap, self._asked_again = False, None
            self._go_back(now)

    def _take(self, reply: Reply, now: float) -> None:
        """A reply of this session."""
        done = (reply.ack - (self._pending[0].seq if self._pending else self._next)) & 0xFF
        if done <= sum(request.sent is not None for request in self._pending):
            for _ in range(done):
                request = self._pending.popleft()
                if self._unsent:  # else it was sent before going back
                    self._unsent -= 1
                    self._flying -= request.length
                if not request.repeated and request.sent is not None:
                    self._trip.measured(now - request.sent)
                self._longest = min(_LONGEST, self._longest + 8)
                self._most = min(self._most_ever, self._most + len(request.payload) // 4)
            if done:
                self._progress = _Wait(now, self._received)
                self._trip.progress()
            ahead = (reply.credit - self._credit) & 0xFFFF
            if ahead < 1 << 15:
                self._credit = reply.credit
            if reply.nak and self._unsent and now - self._went_back >= self._trip.mean:
                self._go_back(now)
        ahead = (reply.seq - self._expected) & 0xFF
        if reply.kind in (ReplyKind.WORD, ReplyKind.ITEMS):
            self._owed += 1
            if ahead < 0x80:
                self._early[reply.seq] = reply
            while self._expected in self._early:
                self._deliver(self._early.pop(self._expected))
                self._expected = (self._expected + 1) & 0xFF
                self._gap, self._asked_again = False, None
            ahead = (reply.seq + 1 - self._expected) & 0xFF
        # All replies before this one were sent before it, so those that did not come are lost.
        self._gap |= bool(self._early) or 0 < ahead < 0x80

    def _deliver(self, reply: Reply) -> None:
        if reply.kind == ReplyKind.ITEMS:
            self.items += reply.payload
        elif not self._reads:
            raise DeviceError("the device must send register words that were asked for, but sent another one; check "
                              "that it has a splitjoin circuit, and open a new session")
        else:
            self._reads -= 1
            self.words.append(int.from_bytes(reply.payload, "little"))

    def _go_back(self, now: float) -> None:
        """Send all requests again that are not acknowledged."""
        for request in list(self._pending)[:self._unsent]:
            request.repeated = True
        if self._unsent:
            self._longest, self._most = max(_SHORTEST, self._longest // 2), max(_FEWEST, self._most // 2)
        self._flying = 0
        self._unsent, self._went_back, self._progress = 0, now, _Wait(now, self._received)
