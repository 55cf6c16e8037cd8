"""A model of the circuit's end of the link in Python, and a line in simulated time that damages bytes."""

from __future__ import annotations

import random
from collections import deque

from splitjoin.circuit.wire import ItemKind, Op
from splitjoin.link.frames import (
    NUMBERED,
    RING,
    SLOTS,
    VERSION,
    About,
    Decoder,
    Reply,
    ReplyKind,
    Request,
    RequestKind,
    encode,
)
from splitjoin.link.transport import ChannelLost

ITEM_BYTES = 9
#: Items in a reply.
_ITEMS = 14


class ModelDevice:
    """A device with the endpoint of `splitjoin_hw.link.endpoint`: for each record, it gives an item with its bytes.

    ``executed`` are the records and register writes that it executed, in order.
    """

    def __init__(self, record_bytes: int, abi: int, version: int = VERSION, ring: int = RING, slots: int = SLOTS):
        self._record_bytes, self._abi, self._version = record_bytes, abi, version
        self._ring, self._buffers = ring, slots
        self.executed: list[bytes] = []
        self.registers: dict[int, int] = {}
        self.power_up()

    def power_up(self) -> None:
        """Lose all state, as when power fails."""
        self._decoder, self._session = Decoder(), 0
        self._begin(0, 0)

    def _begin(self, session: int, limit: int) -> None:
        self._session, self._limit = session, limit
        self._expected = self._base = self._next = self._top = 0
        self._again = self._answer = self._nak = self._about = False
        self._slots: dict[int, tuple[ReplyKind, bytes]] = {}
        self._items: deque[bytes] = deque()
        self._taken = 0
        self._reading: int | None = None
        self.executed.clear()

    def feed(self, received: bytes) -> None:
        """Take bytes from the line."""
        for byte in received:
            before = self._decoder.rejected
            for content in self._decoder.feed((byte,)):
                request = Request.parse(content)
                if request is None:
                    self._damaged()
                else:
                    self._request(request)
            if self._decoder.rejected != before:
                self._damaged()

    def reply(self) -> bytes:
        """The bytes of the next frame to be sent; none if there is none."""
        self._collect()
        repeats = self._again and self._base != self._next
        sends = self._next != self._top and self._next != self._limit
        if not (self._about or repeats or sends or self._answer):
            return b""
        number, kind, payload = self._next, ReplyKind.ACK, b""
        if self._about:
            about = About(self._record_bytes, self._abi, self._session, self._version, self._buffers, self._ring)
            kind, payload = ReplyKind.ABOUT, about.payload()
            self._about = False
        elif repeats or sends:
            number = self._base if repeats else self._next
            kind, payload = self._slots[number % self._buffers]
            self._next = self._next if repeats else (self._next + 1) % 256
            self._again = False
        nak, self._answer, self._nak = self._nak, False, False
        credit = (self._taken + self._ring - 4) & 0xFFFF
        return encode(Reply(kind, number, self._expected, credit, payload, nak).content())

    def _collect(self) -> None:
        while self._items and (self._top - self._base) % 256 != self._buffers:
            some = [self._items.popleft() for _ in range(min(_ITEMS, len(self._items)))]
            self._fill(ReplyKind.ITEMS, b"".join(some))
        if self._reading is not None and (self._top - self._base) % 256 != self._buffers:
            self._fill(ReplyKind.WORD, self.registers.get(self._reading, 0).to_bytes(4, "little"))
            self._reading = None

    def _fill(self, kind: ReplyKind, payload: bytes) -> None:
        self._slots[self._top % self._buffers] = kind, payload
        self._top = (self._top + 1) % 256

    def _damaged(self) -> None:
        self._answer = self._nak = self._session != 0

    def _request(self, request: Request) -> None:
        if request.kind in (RequestKind.OPEN, RequestKind.STATUS):
            session = int.from_bytes(request.payload, "little")
            if request.kind == RequestKind.OPEN and session != self._session:
                self._begin(session, request.limit)
            self._about = True
            return
        if not self._session:
            return
        if (request.ack - self._base) % 256 <= (self._next - self._base) % 256:
            self._base, self._limit = request.ack, request.limit
            self._again |= request.kind == RequestKind.AGAIN
        self._answer |= request.kind != RequestKind.ACK
        if request.kind >= NUMBERED:
            if request.seq == self._expected and self._reading is None:
                self._expected = (self._expected + 1) % 256
                self._execute(request)
            else:
                self._nak |= (request.seq - self._expected) % 256 < 128

    def _execute(self, request: Request) -> None:
        if request.kind == RequestKind.READ:
            self._reading = request.payload[0]
        elif request.kind == RequestKind.WRITE:
            self.executed.append(request.payload)
            self.registers[request.payload[0]] = int.from_bytes(request.payload[1:], "little")
        else:
            self._taken += len(request.payload)
            n = self._record_bytes
            self._records([request.payload[at:at + n] for at in range(0, len(request.payload), n)])

    def _records(self, records: list[bytes]) -> None:
        """Execute ``records``, and give their items."""
        for record in records:
            self.executed.append(record)
            end = record[0] & 3 == Op.FLUSH
            kind = ItemKind.END if end else ItemKind.PAIR
            self._items.append(bytes((kind,)) + record[1:ITEM_BYTES].ljust(ITEM_BYTES - 1, b"\0"))


class Line:
    """A line to ``device`` in simulated time: ``byte_seconds`` a byte, ``latency`` seconds each way.

    Bytes of either direction are lost, flipped, doubled, inserted or delayed with a chance of ``share``; ``events`` are
    done at their times: ``unplug``, ``plug``, ``power`` (the device loses its state). `open` is the ``connect`` of a
    `LinkTransport`; the line itself is the channel.
    """

    def __init__(self, device: ModelDevice, *, share: float = 0.0, seed: int = 0, byte_seconds: float = 10 / 3e6,
                 latency: float = 0.001, events: tuple[tuple[float, str], ...] = ()):
        self.device, self.share = device, share
        self.sent = self.replied = 0  # bytes
        self._chance = random.Random(seed)
        self._byte, self._latency = byte_seconds, latency
        self._events = deque(sorted(events))
        self._now = 0.0
        self._plugged = True
        self.busy = 0.0  # seconds in which bytes were on the way down
        self._down: deque[tuple[float, int]] = deque()  # when each byte arrives
        self._up: deque[tuple[float, int]] = deque()
        self._down_free = self._up_free = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._pass(self._now + seconds)

    def open(self) -> Line:
        if not self._plugged:
            raise ChannelLost("there is no port")
        return self

    def write(self, data: bytes) -> None:
        self._check()
        self.sent += len(data)
        for byte in self._damaged(data):
            self._down_free = max(self._now, self._down_free) + self._byte
            self.busy += self._byte
            self._down.append((self._down_free + self._latency, byte))

    def read(self, seconds: float) -> bytes:
        self._check()
        until = self._now + max(seconds, self._byte)
        while not (self._up and self._up[0][0] <= self._now) and self._now < until:
            self._pass(min([until, *(queue[0][0] for queue in (self._down, self._up) if queue)]))
            self._check()
        got = bytearray()
        while self._up and self._up[0][0] <= self._now:
            got.append(self._up.popleft()[1])
        return bytes(got)

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if not self._plugged:
            raise ChannelLost("the plug was pulled")

    def _pass(self, until: float) -> None:
        """Let time pass."""
        self._now = max(self._now + 1e-9, until)
        while self._events and self._events[0][0] <= self._now:
            what = self._events.popleft()[1]
            if what == "power":
                self.device.power_up()
            else:
                self._plugged = what == "plug"
                self._down.clear()
                self._up.clear()
        while self._down and self._down[0][0] <= self._now:
            self.device.feed(bytes((self._down.popleft()[1],)))
        while self._plugged and self._up_free <= self._now and (data := self.device.reply()):
            self.replied += len(data)
            for byte in self._damaged(data):
                self._up_free = max(self._now, self._up_free) + self._byte
                self._up.append((self._up_free + self._latency, byte))

    def _damaged(self, data: bytes) -> bytes:
        if not self.share:
            return data
        out = bytearray()
        for byte in data:
            if self._chance.random() >= self.share:
                out.append(byte)
                continue
            fault = self._chance.randrange(5)
            if fault == 4:  # the line pauses
                self._up_free += 200 * self._byte
                self._down_free += 200 * self._byte
            out += (b"", bytes((byte, byte)), bytes((byte ^ 1 << self._chance.randrange(8),)),
                    bytes((self._chance.randrange(256), byte)), bytes((byte,)))[fault]
        return bytes(out)


