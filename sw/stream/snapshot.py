"""Snapshots: the state of a streaming session as bytes, readable by any device's session of the same query.

Layout: 8 bytes magic, version (uint32, little endian), SHA-256 of all that follows, length of the header (uint64), the
header (JSON), and the blobs whose lengths it lists: Arrow IPC streams and arrays of integers. Nothing in it is code.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrival import Arrivals, event_ticks
from ..device.api import ITEM
from ..errors import SnapshotError
from ..gate import GateState, SourceState
from ..lang.query import Query
from ..lang.schema import SIDES, Side
from .core import Core, Resumed
from .outbox import Outbox

__all__ = ["VERSION", "Snapshot"]

MAGIC = b"SPLJSNAP"
#: Of the layout and of all that it holds; a reader takes its own version only.
VERSION = 1
_HEAD = struct.Struct("<8sI32sQ")


@dataclass(frozen=True)
class Snapshot:
    """``header``: plain values; ``blobs``: by name."""

    header: Mapping[str, Any]
    blobs: Mapping[str, bytes]

    @classmethod
    def of(cls, query: Query, result: pa.Schema, lateness: int | None, punctuation: bool, gate: GateState,
           default: Mapping[Side, int], core: Core, outbox: Outbox) -> Snapshot:
        """The state of a session, whose gate has given out all that is ready."""
        about = describe(query, result, lateness, punctuation)
        blobs: dict[str, bytes] = {}
        header: dict[str, Any] = {
            "about": about, "digest": _digest(about), "default": dict(default), "frontier": gate.frontier,
            "finished": gate.finished, "now": core.now, "ended": core.ended, "restarts": core.restarts,
            "total": outbox.total, "settled": core.runner.settled, "first": {}, "sources": {}, "late": {},
        }
        for side in SIDES:
            kept = core.retained[side]
            header["first"][side] = kept.base
            blobs[f"retained_{side}"] = _ipc(kept.table())
            header["sources"][side] = [[s.top, s.promise, s.closed] for s in gate.sources[side]]
            for index, source in enumerate(gate.sources[side]):
                blobs[f"waiting_{side}_{index}"] = _ipc(source.waiting)
            count, forgotten, late = gate.late[side]
            header["late"][side] = [count, forgotten]
            blobs[f"late_{side}"] = _ipc(late)
            blobs[f"inbox_{side}"] = _ipc(pa.concat_tables([kept.table().slice(0, 0),
                                                            *(a.table(side) for a in core.inbox)]))
        blobs["seen"] = core.retained["r"].seen.values.astype("<i8").tobytes()
        blobs["inbox"] = np.concatenate([np.empty(0, np.uint8), *(a.stream for a in core.inbox)]).tobytes()
        batches, items = outbox.peek()
        blobs["rows"] = _ipc(pa.Table.from_batches(batches, result))
        blobs["items"] = items.tobytes()
        return cls(header, blobs)

    def to_bytes(self) -> bytes:
        """The snapshot in its layout."""
        lengths = {name: len(blob) for name, blob in self.blobs.items()}
        header = json.dumps({**self.header, "blobs": lengths}).encode()
        rest = b"".join([header, *self.blobs.values()])
        return _HEAD.pack(MAGIC, VERSION, _checksum(len(header), rest), len(header)) + rest

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Read one. Raises `SnapshotError` unless it is whole and of this version."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SnapshotError(f"a snapshot must be bytes, not {type(data).__name__}")
        data = bytes(data)
        if len(data) < _HEAD.size or not data.startswith(MAGIC):
            raise SnapshotError("these bytes are no snapshot of a streaming session: they do not begin as one")
        _, version, checksum, length = _HEAD.unpack_from(data)
        if version != VERSION:
            raise SnapshotError(f"the snapshot must be of version {VERSION}, but is of version {version}; restore it "
                                f"with the release of splitjoin that took it")
        rest = data[_HEAD.size:]
        if _checksum(length, rest) != checksum:
            raise SnapshotError("the snapshot is damaged: its checksum is wrong; it may have been cut off")
        header = json.loads(rest[:length])
        blobs, at = {}, length
        for name, size in header.pop("blobs").items():
            blobs[name] = rest[at:at + size]
            at += size
        return cls(header, blobs)

    def check(self, query: Query, result: pa.Schema, lateness: int | None, punctuation: bool) -> None:
        """Raise `SnapshotError` unless it is of this query."""
        mine = describe(query, result, lateness, punctuation)
        if self.header["digest"] == _digest(mine):
            return
        theirs = self.header["about"]
        for name, value in mine.items():
            if theirs[name] != value:
                raise SnapshotError(f"the snapshot is of another query: its {name} is {theirs[name]}, and this "
                                    f"session's is {value}; open the session as the other one was")
        raise SnapshotError("the snapshot is of another query, as its digest differs")

    @property
    def default(self) -> dict[Side, int]:
        """The index of each stream's default source, where there is one."""
        return dict(self.header["default"])

    def gate(self) -> GateState:
        """The gate's state."""
        frontier = self.header["frontier"]
        return GateState(
            None if frontier is None else (frontier[0], (frontier[1][0], frontier[1][1])), self.header["finished"],
            {side: [SourceState(top, promise, closed, self._table(f"waiting_{side}_{index}"))
                    for index, (top, promise, closed) in enumerate(self.header["sources"][side])] for side in SIDES},
            {side: (*self.header["late"][side], self._table(f"late_{side}")) for side in SIDES})

    def fill(self, query: Query, core: Core, outbox: Outbox) -> None:
        """Put the rest into a new core, which replays the windows, and into its empty outbox."""
        rows = self._table("rows")
        outbox.restore(rows.combine_chunks().to_batches(), np.frombuffer(self.blobs["items"], ITEM).copy(),
                       self.header["total"])
        streams, inbox = {}, {}
        for n, side in enumerate(SIDES):
            table, inbox[side] = self._table(f"retained_{side}"), self._table(f"inbox_{side}")
            ts = None if query.time is None else event_ticks(query.time, side, table)
            seen = np.frombuffer(self.blobs["seen"], "<i8").astype(np.int64) if side == "r" else None
            streams[side] = Resumed(self.header["first"][side], table, ts, seen, self.header["settled"][n])
        stream = np.frombuffer(self.blobs["inbox"], np.uint8)
        times = None
        if query.time is not None:
            times = np.empty(len(stream), np.int64)
            for n, side in enumerate(SIDES):
                times[stream == n] = event_ticks(query.time, side, inbox[side])
        core.resume(streams, Arrivals(stream, times, inbox["r"], inbox["s"]), self.header["now"], self.header["ended"],
                    self.header["restarts"])
        if core.ended:
            outbox.end()

    def _table(self, name: str) -> pa.Table:
        with pa.ipc.open_stream(self.blobs[name]) as reader:
            return reader.read_all()


def describe(query: Query, result: pa.Schema, lateness: int | None, punctuation: bool) -> dict[str, str]:
    """What two sessions must have in common for one to go on where the other was."""
    about = {"condition": str(query.predicate), "order": str(query.order), "results": _columns(result)}
    for side in SIDES:
        schema = query.schema(side)
        assert schema.arrow is not None
        window = query.window(side)
        about[f"schema of {side}"] = _columns(schema.arrow)
        about[f"columns of {side} without NULL"] = ", ".join(c.name for c in schema if not c.nullable) or "(none)"
        about[f"window of {side}"] = " ".join(
            f"{word} {n}" for word, n in (("ROWS", window.rows), ("RANGE", window.length)) if n is not None)
    about["time"] = "(none)" if query.time is None else f"{query.time.r}, {query.time.s}"
    about["lateness"] = "(none)" if lateness is None else f"{lateness}"
    about["punctuation"] = f"{punctuation}"
    return about


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _digest(about: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode()).hexdigest()


def _checksum(length: int, rest: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<Q", length) + rest).digest()


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    return bytes(sink.getvalue())
