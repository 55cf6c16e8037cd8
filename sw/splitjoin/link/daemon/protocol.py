"""The wire protocol between the daemon and its clients: framing, Arrow payloads and errors.

A message consists of 4 bytes magic with the version, the length of the header (uint32, little endian), the header (a
JSON object), and payloads. The header lists the lengths of the payloads as ``payloads``. Payloads are Arrow IPC
streams. A client sends a request, whose header has ``op``, and waits for the reply; the header of the reply has
``error`` if the request failed. Messages hold no code, their sizes are bounded, and anything else raises
`ProtocolError`.
"""

from __future__ import annotations

import json
import socket as sockets
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base import errors, threads
from splitjoin.base.errors import CoreLost, DeviceError, InputError, SplitJoinError, WindowOverflow
from splitjoin.base.flatbuffers import FlatTable
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, Items
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.types import from_arrow

from .budget import Budget

#: The last byte is the version. Both ends come from one release of splitjoin, so there is no negotiation.
MAGIC = b"SJD\x01"
_HEAD = struct.Struct("<4sI")
#: The most bytes of a header.
MAX_HEADER = 1 << 20
#: Bytes of Python's objects for a byte of JSON, at most: a list of empty lists takes that.
HEADER_FACTOR = 48
#: The most payloads of a message, and the most bytes of all of them.
MAX_PAYLOADS = 8
MAX_PAYLOAD_BYTES = 256 << 20

#: Bytes that are read before memory for more is taken.
_PIECE = 1 << 20
#: The types of messages of Arrow's IPC that have a body, in their metadata (Schema.fbs, Message.fbs of Arrow 1.0).
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3

_ITEM_SCHEMA = pa.schema([("kind", pa.uint8()), ("side", pa.uint8()), ("r", pa.int64()), ("s", pa.int64())])
_LATENCY_SCHEMA = pa.schema([("cycles", pa.int64())])

#: The classes of errors that messages may name: those that are made of a text, and `WindowOverflow`.
_ERRORS = {cls.__name__: cls for cls in vars(errors).values()
           if isinstance(cls, type) and issubclass(cls, SplitJoinError) and cls is not CoreLost}

T = TypeVar("T")


class ProtocolError(DeviceError):
    """Raised if the other end sends anything but a message of this protocol, or no reply."""


@dataclass(frozen=True)
class Message:
    """A request or a reply."""

    header: Mapping[str, Any]
    payloads: Sequence[pa.Buffer] = field(default=())


def send(socket: sockets.socket, header: Mapping[str, Any], payloads: Sequence[pa.Buffer] = ()) -> None:
    """Send a message. Raises `ProtocolError` if it is too large, and `OSError` if the connection has ended."""
    text = json.dumps({**header, "payloads": [p.size for p in payloads]}, allow_nan=False).encode()
    _check_sizes(len(text), [p.size for p in payloads])
    socket.sendall(_HEAD.pack(MAGIC, len(text)) + text)
    for payload in payloads:
        socket.sendall(payload)


@contextmanager
def receiving(socket: sockets.socket, *, within: float | None = None, budget: Budget | None = None,
              waits: Callable[[], bool] = lambda: True) -> Iterator[Message | None]:
    """Within the block, the next message has its memory; None if the other end has closed the connection.

    Memory is taken as bytes arrive, whatever the message says of its length. ``within``: seconds after the first byte
    in which the header, and then each MiB, must have arrived; None sets no limit, and leaves the time-out of the socket
    as it is. ``budget``: what the message takes its bytes from, as long as ``waits`` holds.

    Raises `ProtocolError` for anything but a complete message in time, `DeviceError` if the budget has no bytes, and
    `OSError` if the connection fails.
    """
    with ExitStack() as held:
        def reserve(nbytes: int) -> None:
            if budget is not None:
                held.enter_context(budget.reserved(nbytes, waits))

        if within is not None:
            held.callback(socket.settimeout, None)
        yield _received(socket, within, reserve)


def receive(socket: sockets.socket) -> Message | None:
    """The next message; None if the other end has closed the connection. Raises as `receiving`."""
    with receiving(socket) as message:
        return message


def _received(socket: sockets.socket, within: float | None, reserve: Callable[[int], None]) -> Message | None:
    head = _read(socket, 1, None, may_end=True)
    if head is None:
        return None
    head += _read(socket, _HEAD.size - 1, within, before=1) or b""
    magic, length = _HEAD.unpack(head)
    if magic != MAGIC:
        raise ProtocolError(f"a message must begin with {MAGIC!r}, not with {bytes(magic)!r}; daemon and client must "
                            f"be of one release of splitjoin")
    _check_sizes(length, ())
    reserve(HEADER_FACTOR * length)
    text = _read(socket, length, within)
    try:
        header = json.loads(bytes(text or b""), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header of a message must be JSON: {str(error)[:200]}") from None
    sizes = header.pop("payloads", None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise ProtocolError("the header of a message must be an object with the lengths of its payloads")
    _check_sizes(length, sizes)
    reserve(sum(sizes))
    return Message(header, [pa.py_buffer(_read(socket, n, within) or b"") for n in sizes])


def option(header: Mapping[str, Any], name: str, *kinds: type[T] | None) -> T | None:
    """The value ``name`` of a header. Its type must be exactly one of ``kinds`` (None: it may be null or absent).

    Raises `ProtocolError` otherwise.
    """
    value = header.get(name)
    if (value is None and None in kinds) or type(value) in kinds:
        return value
    must = " or ".join("null" if kind is None else kind.__name__ for kind in kinds)
    raise ProtocolError(f"{name} in a request must be {must}, not {type(value).__name__}")


def needed_columns(query: Query) -> dict[Side, list[str]]:
    """The names of the columns of each stream that a device needs: those of the condition."""
    return {side: [c.name for c in columns(query.predicate) if c.side == side] for side in SIDES}


def arrivals_payloads(arrivals: Arrivals, needed: Mapping[Side, Sequence[str]]) -> list[pa.Buffer]:
    """``arrivals`` as three payloads: stream and event time of each, and the ``needed`` columns of R and of S."""
    order = {"stream": pa.array(arrivals.stream, pa.uint8())}
    if arrivals.ts is not None:
        order["ts"] = pa.array(arrivals.ts, pa.int64())
    return [_written(pa.table(order)), *(_written(_selected(arrivals.table(side), side, needed[side]))
                                         for side in SIDES)]


def read_arrivals(payloads: Sequence[pa.Buffer], query: Query) -> Arrivals:
    """The arrivals in ``payloads``. Raises `ProtocolError` for payloads that `arrivals_payloads` cannot have made.

    Raises `InputError` unless they have the columns that ``query`` needs, with the types of its schemas.
    """
    if len(payloads) != 3:
        raise ProtocolError(f"arrivals must have 3 payloads, not {len(payloads)}")
    order, *tables = map(_read_table, payloads)
    names = ["stream"] if query.time is None else ["stream", "ts"]
    types = [pa.uint8(), pa.int64()][:len(order.schema)]
    if order.schema.names not in (names, names[:1]) or order.schema.types != types:
        raise ProtocolError(f"arrivals must have the columns stream (uint8) and ts (int64), not {_shown(order.schema)}")
    if any(column.null_count for column in order.columns):
        raise ProtocolError("stream and ts of arrivals must not hold NULL")
    if order.num_columns < len(names):
        raise InputError("arrivals of a query with a time column must have event times; give ts")
    stream: npt.NDArray[np.uint8] = order.column(0).to_numpy().astype(np.uint8, copy=False)
    if len(stream) and stream.max() > 1:
        raise ProtocolError(f"stream of arrivals must be 0 or 1, not {stream.max()}")
    for side, table in zip(SIDES, tables, strict=True):
        n = int(np.count_nonzero(stream == SIDES.index(side)))
        if len(table) != n:
            raise ProtocolError(f"arrivals with {n} tuples of stream {side} must have as many rows of it, not "
                                f"{len(table)}")
        schema = query.schema(side)
        for name in needed_columns(query)[side]:
            found = [from_arrow(f.type) for f in table.schema if f.name == name]
            if found != [schema[name].type]:
                raise InputError(f"arrivals must have one column {side}.{name} of type {schema[name].type}, but the "
                                 f"columns are {_shown(table.schema)}; push tables of the query's schema")
    ts = order.column(1).to_numpy().astype(np.int64, copy=False) if len(names) == 2 else None
    return Arrivals(stream, ts, *tables)


def items_payload(items: Items) -> pa.Buffer:
    """``items`` as a payload, with a column for each field."""
    return _written(pa.table([np.ascontiguousarray(items[name]) for name in _ITEM_SCHEMA.names], schema=_ITEM_SCHEMA))


def read_items(payload: pa.Buffer) -> Items:
    """The items in ``payload``. Raises `ProtocolError` if its columns are not those of items."""
    table = _read_table(payload)
    if table.schema != _ITEM_SCHEMA or any(column.null_count for column in table.columns):
        raise ProtocolError(f"items must have the columns {_shown(_ITEM_SCHEMA)} without NULL")
    items = np.empty(len(table), ITEM)
    for name in _ITEM_SCHEMA.names:
        items[name] = table.column(name).to_numpy()
    return items


def latencies_payload(cycles: npt.NDArray[np.int64]) -> pa.Buffer:
    """Latencies, int64 (n,), as a payload."""
    return _written(pa.table([cycles], schema=_LATENCY_SCHEMA))


def read_latencies(payload: pa.Buffer) -> npt.NDArray[np.int64]:
    """The latencies in ``payload``: int64 (n,). Raises `ProtocolError` if its column is not that of latencies."""
    table = _read_table(payload)
    if table.schema != _LATENCY_SCHEMA or table.column(0).null_count:
        raise ProtocolError(f"latencies must have the column {_shown(_LATENCY_SCHEMA)} without NULL")
    found: npt.NDArray[np.int64] = table.column(0).to_numpy().astype(np.int64)
    return found


def error_header(error: SplitJoinError) -> dict[str, Any]:
    """``error`` as the header of a reply: its class, or the nearest public base class, its text and its notes."""
    name = next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in _ERRORS)
    found: dict[str, Any] = {"error": {"class": name, "text": str(error), "notes": getattr(error, "__notes__", [])}}
    if isinstance(error, WindowOverflow):
        found["error"]["overflow"] = [error.stream, int(error.row), int(error.capacity)]
    return found


def raised_error(header: Mapping[str, Any]) -> SplitJoinError:
    """The error in a reply's ``header``, with its class, text and notes. Raises `ProtocolError` if it is malformed."""
    error: SplitJoinError
    match header.get("error"):
        case {"class": "WindowOverflow", "overflow": [("r" | "s") as stream, int(row), int(capacity)],
              "notes": list() as notes}:
            error = WindowOverflow(stream, row, capacity)
        case {"class": str() as name, "text": str() as text, "notes": list() as notes}:
            cls = _ERRORS.get(name)
            if cls is None or cls is WindowOverflow:
                raise ProtocolError(f"the class of an error must be one of splitjoin, not {name[:80]!r}")
            error = cls(text)
        case _:
            raise ProtocolError("an error in a reply must have a class, a text and notes")
    for note in notes:
        error.add_note(str(note))
    return error


def _selected(table: pa.Table, side: str, names: Sequence[str]) -> pa.Table:
    """The columns ``names`` of ``table``. Without any column, the table still has its number of rows."""
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise InputError(f"arrivals must have the columns of the condition, but stream {side} lacks "
                         f"{', '.join(map(repr, missing))}; push tables of the query's schema")
    return table.select(names)


def _written(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        if table.num_columns:
            writer.write_table(table)
        else:  # tables without columns have no batches, but batches have rows
            writer.write_batch(pa.RecordBatch.from_struct_array(pa.array([{}] * len(table), pa.struct([]))))
    return sink.getvalue()


def _read_table(payload: pa.Buffer) -> pa.Table:
    """The Arrow table in ``payload``, after a check of all its offsets, lengths and texts. Raises `ProtocolError`, also
    for compressed batches, which may be of any size when they are read.
    """
    try:
        if any(_is_compressed(message) for message in pa.ipc.MessageReader.open_stream(payload)):
            raise ProtocolError("the batches of a payload must not be compressed; daemon and client must be of one "
                                "release of splitjoin")
        with pa.ipc.open_stream(payload) as reader:
            batches = list(reader)
            schema = reader.schema
        _shown(schema)  # raises for names that are no UTF-8
        for batch in batches:
            batch.validate(full=True)
        if len(schema):
            return pa.Table.from_batches(batches, schema)
        return pa.table({"": pa.nulls(sum(len(batch) for batch in batches))}).select([])
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError, struct.error,
            IndexError) as error:
        raise ProtocolError(f"a payload must be an Arrow IPC stream: {str(error)[:200]}") from None


def _is_compressed(message: pa.ipc.Message) -> bool:
    """True for a batch whose buffers are compressed, by the field ``compression`` of its RecordBatch: PyArrow tells it
    nowhere. Raises ValueError and `struct.error` for what is no metadata.
    """
    root = FlatTable.root(memoryview(message.metadata.to_pybytes()))
    kind = root.number("<B", 1)
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    batch = root.table(2)
    return (batch.table(1) if kind == _DICTIONARY_BATCH else batch).has(3)


def _read(socket: sockets.socket, n: int, within: float | None, *, may_end: bool = False,
          before: int = 0) -> bytearray | None:
    """The next ``n`` bytes; with ``may_end``, None if the connection ended before the first one.

    ``within``: seconds for each `_PIECE`. ``before``: how many bytes of what is read have come, for messages.
    """
    found = bytearray()
    while (begin := len(found)) < n:
        found += bytes(min(n - begin, _PIECE))
        end = None if within is None else threads.monotonic() + within
        with memoryview(found) as view:
            at = begin
            while at < len(view):
                if end is not None and within is not None:
                    socket.settimeout(max(end - threads.monotonic(), 1e-3))
                try:
                    got = socket.recv_into(view[at:])
                except TimeoutError:
                    if within is None:
                        raise
                    raise ProtocolError(f"each MiB of a message must arrive within {within:g} s, but only "
                                        f"{before + at} of {before + n} bytes did") from None
                if not got:
                    if may_end and not at:
                        return None
                    raise ProtocolError(f"the connection ended within a message, after {before + at} of {before + n} "
                                        f"bytes")
                at += got
    return found


def _check_sizes(header: int, payloads: Sequence[int]) -> None:
    if header > MAX_HEADER:
        raise ProtocolError(f"the header of a message must have at most {MAX_HEADER} bytes, not {header}; write a "
                            f"shorter condition")
    if len(payloads) > MAX_PAYLOADS or sum(payloads) > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"a message must have at most {MAX_PAYLOADS} payloads of {MAX_PAYLOAD_BYTES} bytes in all, "
                            f"not {len(payloads)} of {sum(payloads)}")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} ({f.type})" for f in schema)[:200] or "(none)"
