"""A decoder of the link: rows in time for its frames and their contents, repeats, gaps and damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from splitjoin.base.errors import DeviceError
from splitjoin.circuit.registers import REGISTERS
from splitjoin.circuit.wire import ItemKind, Op, Record, item_record

from .frames import NUMBERED, PACKED_VERSION, About, Decoder, Reply, ReplyKind, Request, RequestKind
from .items import ItemReader, PackedItems

#: Ways of a row: on the link, and at the join behind it.
TO, FROM = "to circuit", "from circuit"
TO_JOIN, FROM_JOIN = "to join", "from join"
_DAMAGED = ("damaged", "a frame with a wrong CRC, wrong stuffing or too many bytes")
_NAMES = {reg.address + word: reg.name for reg in REGISTERS for word in range(-(-reg.bits // 32))}


class Transaction(NamedTuple):
    """A frame, record or item.

    Attributes:
        time: When it was complete, in seconds; in captured bytes without times, how many bytes of its way came before.
        way: `TO`, `FROM`, `TO_JOIN` or `FROM_JOIN`.
        what: Its kind.
        detail: Its numbers, in words.
    """

    time: float
    way: str
    what: str
    detail: str


def record_told(value: int) -> tuple[str, str]:
    """The kind of an input record, and its other fields: the stream, and the bits behind it."""
    return Op(value & 3).name, f"{'RS'[value >> 2 & 1]}, {value >> 3:#x}"


def item_told(value: int, items: Record) -> tuple[str, str]:
    """The kind of an item of the layout ``items``, and its other fields."""
    kind, side, r, s = (value >> first & (1 << bits) - 1 for first, bits in items.offsets().values())
    name = ItemKind(kind).name
    if name == "STAR":
        return name, f"{'RS'[side]} row {s if side else r}"
    return name, f"R row {r}, S row {s}, found by {'RS'[side]}" if name == "PAIR" else ""


class LinkRows:
    """Rows of a link, from the bytes of both ways in the order in which they came.

    ``items``: the layout of an item; ``record_bytes``: bytes of a record, once ABOUT or somebody has told them, else 0.
    Of frames that come again, what they carry is told once.
    """

    def __init__(self, items: Record | None = None, record_bytes: int = 0):
        self._item = items or item_record()
        self._decoders = {TO: Decoder(), FROM: Decoder()}
        self.record_bytes = record_bytes
        self._begin(None, None)

    def _begin(self, session: int | None, first: int | None) -> None:
        """Begin a session, with its ``first`` number, or in its midst."""
        self._session = session
        self._requests = self._replies = first  # numbers of the next ones
        self._early = dict[int, bytes]()  # items of replies behind one that is missing
        self._packed: ItemReader | None = None

    def feed(self, way: str, data: Iterable[int], time: float) -> Iterator[Transaction]:
        """The rows that ``data`` completes at ``time``."""
        decoder = self._decoders[way]
        before = decoder.rejected
        contents = decoder.feed(data)
        for _ in range(decoder.rejected - before):
            yield Transaction(time, way, *_DAMAGED)
        for content in contents:
            for what, detail in self._request(content) if way == TO else self._reply(content):
                yield Transaction(time, way, what, detail)

    def _request(self, content: bytes) -> Iterator[tuple[str, str]]:
        request = Request.parse(content)
        if request is None:
            yield "damaged", f"a request with the header {content[:4].hex(' ')}"
            return
        payload, note = request.payload, ""
        if request.kind == RequestKind.OPEN:
            session = int.from_bytes(payload, "little")
            note = f", session {session:#x}"
            if session != self._session:
                self._begin(session, 0)
        self._replies = _after(self._replies, request.ack)
        ahead = 0
        if request.kind >= NUMBERED:
            self._requests = request.seq if self._requests is None else self._requests
            ahead = (request.seq - self._requests) & 0xFF
            note = _place(ahead)
            self._requests = (self._requests + (ahead == 0)) & 0xFF
        if request.kind in (RequestKind.READ, RequestKind.WRITE) and payload:
            note += f", {_NAMES.get(payload[0], f'word {payload[0]}')}"
            note += f" = {int.from_bytes(payload[1:], 'little'):#x}" if payload[1:] else ""
        yield request.kind.name, f"seq {request.seq}, ack {request.ack}, limit {request.limit}{note}"
        if request.kind == RequestKind.DATA and ahead == 0:
            size = self.record_bytes or len(payload) or 1
            for at in range(0, len(payload), size):
                yield record_told(int.from_bytes(payload[at:at + size], "little"))

    def _reply(self, content: bytes) -> Iterator[tuple[str, str]]:
        try:
            reply = Reply.parse(content)
            about = About.parse(reply.payload) if reply.kind == ReplyKind.ABOUT else None
        except DeviceError as error:
            yield "damaged", str(error)
            return
        note, carried = "", list[bytes]()
        self._requests = _after(self._requests, reply.ack)
        if about is not None:
            note = f", session {about.session:#x}, ABI {about.abi:016x}, records of {about.record_bytes} bytes"
            self.record_bytes = about.record_bytes
            if about.session not in (0, self._session):
                self._begin(about.session, 0)
            if about.version == PACKED_VERSION and self._packed is None:
                self._packed = PackedItems(self._item, whole_stars=False)
        elif reply.kind >= ReplyKind.WORD:
            self._replies = reply.seq if self._replies is None else self._replies
            ahead = (reply.seq - self._replies) & 0xFF
            note = _place(ahead if reply.seq not in self._early else -1)
            if reply.kind == ReplyKind.WORD:
                note += f", {int.from_bytes(reply.payload, 'little'):#x}"
            if ahead < 0x80:
                self._early[reply.seq] = reply.payload if reply.kind == ReplyKind.ITEMS else b""
            while self._replies in self._early:
                carried.append(self._early.pop(self._replies))
                self._replies = (self._replies + 1) & 0xFF
        nak = ", NAK: a request was damaged or out of order" if reply.nak else ""
        yield f"reply {reply.kind.name}", f"seq {reply.seq}, ack {reply.ack}, credit {reply.credit}{note}{nak}"
        for items in carried:
            yield from self._items(items)

    def _items(self, payload: bytes) -> Iterator[tuple[str, str]]:
        if self._packed is None:
            size = -(-self._item.width // 8)
            values = [int.from_bytes(payload[at:at + size], "little") for at in range(0, len(payload), size)]
        else:
            self._packed.feed(payload)
            values = [sum(int(item[name]) << first for name, (first, _) in self._item.offsets().items())
                      for item in self._packed.take()]
        yield from (item_told(value, self._item) for value in values)


def _after(expected: int | None, acknowledged: int) -> int | None:
    """The number of the next frame, after one with the acknowledgement of what comes before it, or the ``expected``
    one: a frame that is damaged here may have reached the other end whole.
    """
    return acknowledged if expected is not None and 0 < (acknowledged - expected) & 0xFF < 0x80 else expected


def _place(ahead: int) -> str:
    """The remark on a numbered frame that is ``ahead`` of the next one, modulo 256."""
    return "" if ahead == 0 else ", a gap before it" if 0 < ahead < 0x80 else ", again"
