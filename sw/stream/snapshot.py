"""Snapshots: the state of a streaming session as bytes, readable by any device's session of the same query.

Layout: 8 bytes magic, version (uint32, little endian), SHA-256 of all that follows, length of the header (uint64), the
header (JSON), and the blobs whose lengths it lists: Arrow IPC streams and arrays of integers. Nothing in it is code.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..arrival import Arrivals, event_ticks
from ..device.api import ITEM, Items
from ..errors import SnapshotError
from ..gate import GateState, SourceState
from ..lang.query import Query
from ..lang.schema import SIDES, Side
from .results import ResultQueue
from .retained import RetainedState, RetainedWindows

__all__ = ["VERSION", "Snapshot", "identity"]

MAGIC = b"SPLJSNAP"
#: Version of the layout and its contents; a reader accepts its own version only.
VERSION = 1
_HEAD = struct.Struct("<8sI32sQ")


@dataclass(frozen=True)
class Snapshot:
    """A session's state. ``header``: plain values; ``blobs``: tables and arrays by name."""

    header: Mapping[str, Any]
    blobs: Mapping[str, bytes]

    @classmethod
    def of(cls, identity: Mapping[str, str], gate: GateState, default: Mapping[Side, int], windows: RetainedWindows,
           ready: Iterable[Arrivals], results: ResultQueue, *, settled: tuple[int, int], ended: bool,
           restarts: int, kind: Mapping[str, npt.NDArray[np.int64]]) -> Snapshot:
        """The state of a session.

        Args:
            identity: The properties that two sessions must have in common, from `identity`.
            gate: The state of its gate, which has given out all that is ready.
            default: The index of each stream's default source, if there is one.
            windows: The rows that are retained.
            ready: Slices of arrival order that the device did not get.
            results: The rows that were not polled.
            settled: Row ids (R's, S's) before which the results of all probes have been given out.
            ended: True if the device's input was ended.
            restarts: The number of moves to a fresh device session.
            kind: The state of its `KindOperator`, empty for an inner join.
        """
        arrivals = list(ready)
        # Version 1 of the layout calls what is ready "inbox", and how many S precede each R "seen".
        blobs: dict[str, bytes] = {}
        header: dict[str, Any] = {
            "about": identity, "digest": _digest(identity), "default": dict(default), "frontier": gate.frontier,
            "finished": gate.finished, "now": windows.now, "ended": ended, "restarts": restarts,
            "total": results.total, "settled": settled, "first": {}, "sources": {}, "late": {},
        }
        for side in SIDES:
            table = windows.streams[side].table()
            header["first"][side] = windows.streams[side].first
            blobs[f"retained_{side}"] = _ipc(table)
            header["sources"][side] = [[s.highest, s.promise, s.closed] for s in gate.sources[side]]
            for index, source in enumerate(gate.sources[side]):
                blobs[f"waiting_{side}_{index}"] = _ipc(source.waiting)
            count, forgotten, late = gate.late[side]
            header["late"][side] = [count, forgotten]
            blobs[f"late_{side}"] = _ipc(late)
            blobs[f"inbox_{side}"] = _ipc(pa.concat_tables([table.slice(0, 0), *(a.table(side) for a in arrivals)]))
        blobs["seen"] = windows.streams["r"].s_before.values.astype("<i8").tobytes()
        blobs["inbox"] = np.concatenate([np.empty(0, np.uint8), *(a.stream for a in arrivals)]).tobytes()
        blobs |= {f"kind_{name}": values.astype("<i8").tobytes() for name, values in kind.items()}
        batches, items = results.peek()
        blobs["rows"] = _ipc(pa.Table.from_batches(batches, results.schema))
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
        """The snapshot in ``data``. Raises `SnapshotError` unless it is whole and of this version."""
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

    def check(self, identity: Mapping[str, str]) -> None:
        """Raise `SnapshotError` unless it is of a session of this ``identity``."""
        if self.header["digest"] == _digest(identity):
            return
        theirs = self.header["about"]
        for name in {**identity, **theirs}:
            its, ours = theirs.get(name, "inner"), identity.get(name, "inner")
            if its != ours:
                raise SnapshotError(f"the snapshot is of another query: its {name} is {its}, and this "
                                    f"session's is {ours}; open the session as the other one was")
        raise SnapshotError("the snapshot is of another query, as its digest differs")

    @property
    def default(self) -> dict[Side, int]:
        """The index of each stream's default source, if there is one."""
        return dict(self.header["default"])

    @property
    def now(self) -> int | None:
        """The event time in ticks of the windows."""
        now: int | None = self.header["now"]
        return now

    @property
    def settled(self) -> tuple[int, int]:
        """Row ids (R's, S's) before which the results of all probes have been given out."""
        r, s = self.header["settled"]
        return r, s

    @property
    def ended(self) -> bool:
        """True if the device's input was ended."""
        return bool(self.header["ended"])

    @property
    def restarts(self) -> int:
        """The number of moves to a fresh device session."""
        return int(self.header["restarts"])

    def gate(self) -> GateState:
        """The gate's state."""
        frontier = self.header["frontier"]
        return GateState(
            None if frontier is None else (frontier[0], (frontier[1][0], frontier[1][1])), self.header["finished"],
            {side: [SourceState(source[0], source[1], source[2], self._table(f"waiting_{side}_{index}"))
                    for index, source in enumerate(self.header["sources"][side])] for side in SIDES},
            {side: (*self.header["late"][side], self._table(f"late_{side}")) for side in SIDES})

    def retained(self, query: Query) -> dict[Side, RetainedState]:
        """The retained rows of both streams."""
        found: dict[Side, RetainedState] = {}
        for side in SIDES:
            table = self._table(f"retained_{side}")
            ts = None if query.time is None else event_ticks(query.time, side, table)
            s_before = np.frombuffer(self.blobs["seen"], "<i8").astype(np.int64) if side == "r" else None
            found[side] = RetainedState(self.header["first"][side], table, ts, s_before)
        return found

    def ready(self, query: Query) -> Arrivals:
        """The slices of arrival order that the device did not get, as one."""
        tables = {side: self._table(f"inbox_{side}") for side in SIDES}
        stream = np.frombuffer(self.blobs["inbox"], np.uint8)
        times = None
        if query.time is not None:
            times = np.empty(len(stream), np.int64)
            for n, side in enumerate(SIDES):
                times[stream == n] = event_ticks(query.time, side, tables[side])
        return Arrivals(stream, times, tables["r"], tables["s"])

    def kind_state(self) -> dict[str, npt.NDArray[np.int64]]:
        """The state of the `KindOperator`."""
        return {name.removeprefix("kind_"): np.frombuffer(blob, "<i8").astype(np.int64)
                for name, blob in self.blobs.items() if name.startswith("kind_")}

    def results(self) -> tuple[list[pa.RecordBatch], Items, int]:
        """The rows that were not polled, in batches, their items, and how many rows there ever were."""
        return (self._table("rows").combine_chunks().to_batches(), np.frombuffer(self.blobs["items"], ITEM).copy(),
                self.header["total"])

    def _table(self, name: str) -> pa.Table:
        with pa.ipc.open_stream(self.blobs[name]) as reader:
            return reader.read_all()


def identity(query: Query, gathered: pa.Schema, lateness: int | None, punctuation: bool) -> dict[str, str]:
    """The properties that two sessions must have in common for one to continue where the other was, by name.

    ``gathered``: the schema of the columns that results are made of; ``lateness``: in ticks.
    """
    about = {"condition": str(query.predicate), "order": str(query.order), "results": _columns(gathered)}
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
    if not query.kind.is_inner:  # version 1 of the layout knows inner joins without a kind
        about["kind"] = str(query.kind)
    if query.aggregates:
        about["aggregates"] = ", ".join(a.digest_text for a in query.aggregates)
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
