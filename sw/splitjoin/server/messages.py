"""Messages of Arrow Flight as bytes of protobuf, and the sizes that the messages of Arrow IPC within state.

A put is measured here before Arrow reads it: a few bytes may state buffers of any size, which Arrow would allocate.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from splitjoin.base.errors import InputError
from splitjoin.base.flatbuffers import FlatTable, number_at

#: The most bytes of the header of a message of Arrow IPC: room for some ten thousand columns.
_MOST_HEADER = 1 << 20
#: Fields of FlightData, by their number in Flight.proto.
_DESCRIPTOR, _HEADER, _METADATA, _BODY = 1, 2, 3, 1000
#: Kinds of Arrow's messages, by their number in Message.fbs.
_KINDS: dict[int, Literal["schema", "dictionary", "batch"]] = {1: "schema", 2: "dictionary", 3: "batch"}
_CONTINUATION = b"\xff\xff\xff\xff"
#: Says that the bytes of a message end too early.
_SHORT = "must be a message of Arrow Flight, but it is damaged"


@dataclass(frozen=True)
class FlightData:
    """One message of a put: the put's descriptor (first message alone), and header and body of a message of IPC."""

    descriptor: bytes
    header: memoryview
    body: memoryview


@dataclass(frozen=True)
class StatedMessage:
    """A message of Arrow IPC as it states itself: kind, rows, the bytes of its buffers once they are unpacked,
    its dictionary, and whether it adds to that.
    """

    kind: Literal["schema", "dictionary", "batch"]
    rows: int = 0
    size: int = 0
    dictionary: int = 0
    is_delta: bool = False


def parse_data(message: bytes) -> FlightData:
    """The message ``message`` of a put. Raises `InputError`."""
    view, at, found = memoryview(message), 0, dict[int, memoryview]()
    try:
        while at < len(view):
            key, at = _varint(view, at)
            number, wire = key >> 3, key & 7
            if wire == 2:
                size, at = _varint(view, at)
                if size > len(view) - at:
                    raise IndexError
                found[number] = view[at:at + size]
                at += size
            elif wire == 0:
                _, at = _varint(view, at)
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
            else:
                raise IndexError
    except IndexError:
        raise InputError(f"what is put {_SHORT}") from None
    nothing = memoryview(b"")
    return FlightData(bytes(found.get(_DESCRIPTOR, nothing)), found.get(_HEADER, nothing), found.get(_BODY, nothing))


def data_message(header: bytes | memoryview, body: bytes | memoryview, metadata: bytes = b"") -> bytes:
    """A message of FlightData with these parts."""
    parts: list[bytes | memoryview] = []
    for number, part in ((_HEADER, header), (_METADATA, metadata), (_BODY, body)):
        if len(part):
            parts += [_encoded(number << 3 | 2), _encoded(len(part)), part]
    return b"".join(parts)


def put_result(metadata: bytes) -> bytes:
    """A message of PutResult."""
    return _encoded(1 << 3 | 2) + _encoded(len(metadata)) + metadata


def action_type(name: str, description: str) -> bytes:
    """A message of ActionType."""
    found = b""
    for number, text in ((1, name), (2, description)):
        data = text.encode()
        found += _encoded(number << 3 | 2) + _encoded(len(data)) + data
    return found


def stated(data: FlightData) -> StatedMessage:
    """The message of Arrow IPC in ``data``, as stated. Raises `InputError` for a damaged one, and for other kinds."""
    header = data.header
    if len(header) > _MOST_HEADER:
        raise InputError(f"the header of a batch must have at most {_MOST_HEADER:,} bytes, but it has "
                         f"{len(header):,}; put fewer columns")
    try:
        message = FlatTable.root(header)
        kind = _KINDS[message.number("<B", 1)]
        if message.number("<q", 3) != len(data.body):
            raise ValueError
        if kind == "schema":
            return StatedMessage(kind)
        table = message.table(2)
        if kind == "batch":
            return StatedMessage(kind, *_batch(table, data.body))
        return StatedMessage(kind, *_batch(table.table(1), data.body), table.number("<q", 0),
                             bool(table.number("<B", 2)))
    except (struct.error, ValueError, KeyError):
        raise InputError(f"what is put {_SHORT}") from None


def encapsulated(data: FlightData) -> bytes:
    """The message of Arrow IPC in ``data``, as a stream has it."""
    padding = -len(data.header) % 8
    return b"".join((_CONTINUATION, struct.pack("<i", len(data.header) + padding), data.header, bytes(padding),
                     data.body, bytes(-len(data.body) % 8)))


def split(stream: bytes) -> Iterator[tuple[memoryview, memoryview]]:
    """Header and body of each message of ``stream``, which Arrow wrote, up to its end."""
    view, at = memoryview(stream), 0
    while at + 8 <= len(view) and (size := number_at("<i", view, at + 4)) > 0:
        header = view[at + 8:at + 8 + size]
        body = FlatTable.root(header).number("<q", 3)
        at += 8 + size
        if not 0 <= body <= len(view) - at:
            return
        yield header, view[at:at + body]
        at += body


def _batch(batch: FlatTable, body: memoryview) -> tuple[int, int]:
    """Rows of a record batch, and the bytes of its buffers once they are unpacked."""
    rows, size = batch.number("<q", 0), 0
    first, count = batch.vector(2, 16)
    is_packed = batch.has(3)
    for at in range(first, first + 16 * count, 16):
        offset, length = number_at("<q", batch.data, at), number_at("<q", batch.data, at + 8)
        if length < 0 or not 0 <= offset <= len(body) - length:
            raise ValueError
        if is_packed and length:  # its first bytes state its size; −1: it is not packed
            unpacked = number_at("<q", body, offset)
            length = length - 8 if unpacked == -1 else unpacked
            if length < 0:
                raise ValueError
        size += length
    if rows < 0:
        raise ValueError
    return rows, size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at ``at``, and the place behind it. Raises IndexError."""
    found = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    raise IndexError


def _encoded(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
