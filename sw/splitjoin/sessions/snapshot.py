"""Snapshots: the state of a streaming session as bytes, readable by any device's session of the same query.

Layout: 8 bytes magic, version (uint32, little endian), SHA-256 of all that follows, length of the header (uint64), the
header (JSON), and the blobs whose lengths it lists: Arrow IPC streams and arrays of integers. The header has a digest
of its own, so that one that was edited is refused even under a fitting checksum. Nothing in a snapshot is code. Neither
sum is a signature: whoever may write a snapshot decides what a session continues from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, SchemaError, SnapshotError, first_line
from splitjoin.base.ipc import read_ipc_stream
from splitjoin.engines.arrival import Arrivals, event_ticks
from splitjoin.engines.device import ITEM, Items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import Extent
from splitjoin.rows.changes import Changes

from .envelope import Envelope, damaged, ipc_bytes
from .gate import GateState
from .results import ResultQueue
from .retained import RetainedState, RetainedWindows
from .schemas import SessionSchemas

MAGIC = b"SPLJSNAP"
#: Version of the layout and its contents; a reader accepts its own version only.
VERSION = 9
ENVELOPE = Envelope(MAGIC, VERSION, "a streaming session")
#: Blobs that every snapshot has, beside those of its sources and of its `KindOperator`.
_BLOBS = {"seen", "stored", "inbox", "rows", "items",
          *(f"{name}_{side}" for name in ("retained", "late", "shed", "inbox") for side in SIDES)}


@dataclass(frozen=True)
class DeviceProgress:
    """How far a session's device is.

    Attributes:
        settled: Row ids (R's, S's) before which the results of all probes have been given out.
        ended: True if the device's input was ended.
        restarts: The number of moves to a fresh device session.
    """

    settled: tuple[int, int] = (0, 0)
    ended: bool = False
    restarts: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A session's state. ``header``: plain values; ``blobs``: tables and arrays by name."""

    header: Mapping[str, Any]
    blobs: Mapping[str, bytes]

    @classmethod
    def of(cls, identity: Mapping[str, str], query: Query, gate: GateState, windows: RetainedWindows,
           results: ResultQueue, ready: Iterable[Arrivals] = (), progress: DeviceProgress | None = None,
           kind: Mapping[str, Ints] | None = None, changes: Changes | None = None) -> Snapshot:
        """The state of a session.

        Args:
            identity: The properties that two sessions must have in common, from `identity`.
            query: The query with the windows that it has now.
            gate: The state of its gate, which has given out all that is ready.
            windows: The rows that are retained.
            results: The rows that were not polled.
            ready: Slices of arrival order that the device did not get.
            progress: How far its device is.
            kind: The state of its `KindOperator`; None for an inner join.
            changes: Its masks and precisions; None for those that were never changed.
        """
        arrivals, progress = list(ready), progress or DeviceProgress()
        # The layout calls what is ready "inbox", how many S precede each R "seen", and the row ids of S "stored" where
        # they are not adjacent.
        blobs = {name: ipc_bytes(table) for name, table in gate.tables.items()}
        for side in SIDES:
            table = windows.streams[side].table()
            blobs[f"retained_{side}"] = ipc_bytes(table)
            blobs[f"inbox_{side}"] = ipc_bytes(pa.concat_tables([table.slice(0, 0),
                                                                 *(a.table(side) for a in arrivals)]))
        blobs["seen"] = windows.streams["r"].s_before.values.astype("<i8").tobytes()
        stored = windows.stored_s
        blobs["stored"] = b"" if stored is None else stored.astype("<i8").tobytes()
        blobs["inbox"] = np.concatenate([np.empty(0, np.uint8), *(a.stream for a in arrivals)]).tobytes()
        blobs |= {f"kind_{name}": values.astype("<i8").tobytes() for name, values in (kind or {}).items()}
        batches, items = results.peek()
        blobs["rows"] = ipc_bytes(pa.Table.from_batches(batches, results.schema))
        blobs["items"] = items.tobytes()
        return cls({
            "about": identity, **gate.values, "now": windows.now, "ended": progress.ended,
            "restarts": progress.restarts, "total": results.total, "settled": progress.settled,
            "first": {side: windows.streams[side].first for side in SIDES}, "live": windows.first_live,
            "windows": [[query.window(side).rows, query.window(side).length] for side in SIDES],
            "changes": (changes or Changes()).state(),
        }, blobs)

    def to_bytes(self) -> bytes:
        """The snapshot in its layout."""
        lengths = {name: len(blob) for name, blob in self.blobs.items()}
        fields = {**self.header, "blobs": lengths}
        return ENVELOPE.sealed({**fields, "digest": _digest(fields)}, self.blobs.values())

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """The snapshot in ``data``. Raises `SnapshotError` unless it is whole and of this version."""
        header, rest = ENVELOPE.opened(data)
        if not isinstance(header, dict) or header.pop("digest", None) != _digest(header):
            raise damaged("the digest of its header is wrong; the header may have been edited")
        _check_header(header, len(rest))
        blobs, at = {}, 0
        for name, size in header.pop("blobs").items():
            blobs[name] = rest[at:at + size]
            at += size
        return cls(header, blobs)

    def check(self, identity: Mapping[str, str]) -> None:
        """Raise `SnapshotError` unless it is of a session of this ``identity``."""
        theirs = self.header["about"]
        for name in {**identity, **theirs}:
            its, ours = theirs.get(name, "(none)"), identity.get(name, "(none)")
            if its != ours:
                raise SnapshotError(f"the snapshot is of another query: its {name} is {its}, and this "
                                    f"session's is {ours}; open the session as the other one was")

    def check_tables(self, schemas: SessionSchemas) -> None:
        """Raise `SnapshotError` unless its tables have the columns that sessions of ``schemas`` write."""
        for name in self.blobs:
            kind, _, rest = name.partition("_")
            if kind in ("retained", "waiting", "late", "shed", "inbox") and rest:
                side: Side = "r" if rest[0] == "r" else "s"
                want = schemas.streams[side] if kind in ("late", "shed") else schemas.kept_schema(side)
            elif name == "rows":
                want = schemas.gathered
            else:
                continue
            found = self._table(name).schema
            if (found.names, found.types) != (want.names, want.types):
                raise damaged(f"its table {name} has other columns than its session")

    def check_ends(self, r: int, s: int) -> None:
        """Raise `SnapshotError` unless the results that were given out are of probes before row ids ``r`` and ``s``."""
        before_r, before_s = self.header["settled"]
        if before_r > r or before_s > s:
            raise damaged(f"results of {before_r} and {before_s} probes cannot be there, as {r} and {s} tuples arrived")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within the block, in which a session takes the state over, `SnapshotError` is raised for values that no
        session can have written.
        """
        try:
            yield
        except (InputError, SchemaError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError,
                pa.ArrowException) as error:
            raise damaged(f"no session has such a state ({type(error).__name__}: {first_line(error)})") from error

    @property
    def now(self) -> dict[Side, int | None]:
        """The event times in ticks of the windows."""
        return dict(self.header["now"])

    @property
    def live(self) -> tuple[int, int]:
        """The row ids (R's, S's) before which all tuples had expired when windows changed."""
        r, s = self.header["live"]
        return r, s

    @property
    def progress(self) -> DeviceProgress:
        """How far the session's device was."""
        r, s = self.header["settled"]
        return DeviceProgress((r, s), bool(self.header["ended"]), int(self.header["restarts"]))

    @property
    def changes(self) -> Mapping[str, Any]:
        """The state of the masks and precisions."""
        found: Mapping[str, Any] = self.header["changes"]
        return found

    @property
    def windows(self) -> tuple[Extent, Extent]:
        """The windows of R and of S."""
        r, s = (Extent(rows, length) for rows, length in self.header["windows"])
        return r, s

    def gate(self) -> GateState:
        """The gate's state."""
        return GateState(dict(self.header), {name: self._table(name) for name in self.blobs
                                             if name.startswith(("waiting_", "late_", "shed_"))})

    def retained(self, query: Query) -> dict[Side, RetainedState]:
        """The retained rows of both streams."""
        found: dict[Side, RetainedState] = {}
        for side in SIDES:
            table = self._table(f"retained_{side}")
            ts = None if query.time is None else event_ticks(query.time, side, table)
            s_before = np.frombuffer(self.blobs["seen"], "<i8").astype(np.int64) if side == "r" else None
            if s_before is not None and (len(s_before) != len(table) or (np.diff(s_before, prepend=0) < 0).any()):
                raise damaged("the order of its retained rows is none")
            first, ids = self.header["first"][side], None
            if side == "s" and query.is_unbounded:
                ids = np.frombuffer(self.blobs["stored"], "<i8").astype(np.int64)
                if len(ids) != len(table) or (np.diff(ids, prepend=-1, append=first + len(table)) <= 0).any():
                    raise damaged("the row ids of its retained rows are none")
            found[side] = RetainedState(first, table, ts, s_before, ids)
        return found

    def ready(self, query: Query) -> Arrivals:
        """The slices of arrival order that the device did not get, as one."""
        tables = {side: self._table(f"inbox_{side}") for side in SIDES}
        stream = np.frombuffer(self.blobs["inbox"], np.uint8)
        if [int(np.count_nonzero(stream == n)) for n in (0, 1)] != [len(tables[side]) for side in SIDES] or (
                stream > 1).any():
            raise damaged("the order of its ready rows is none")
        times = None
        if query.time is not None:
            times = np.empty(len(stream), np.int64)
            for n, side in enumerate(SIDES):
                times[stream == n] = event_ticks(query.time, side, tables[side])
        return Arrivals(stream, times, tables["r"], tables["s"])

    def kind_state(self) -> dict[str, Ints]:
        """The state of the `KindOperator`."""
        return {name.removeprefix("kind_"): np.frombuffer(blob, "<i8").astype(np.int64)
                for name, blob in self.blobs.items() if name.startswith("kind_")}

    def results(self) -> tuple[list[pa.RecordBatch], Items, int]:
        """The rows that were not polled, in batches, their items, and how many rows there ever were."""
        return (self._table("rows").combine_chunks().to_batches(), np.frombuffer(self.blobs["items"], ITEM).copy(),
                self.header["total"])

    def _table(self, name: str) -> pa.Table:
        try:
            return read_ipc_stream(self.blobs[name])
        except (pa.ArrowException, OSError) as error:
            raise damaged(f"its table {name} cannot be read ({first_line(error)})") from None


def identity(query: Query, gathered: pa.Schema, lateness: str, punctuation: bool) -> dict[str, str]:
    """The properties that two sessions must have in common for one to continue where the other was, by name.

    ``gathered``: the schema of the columns that results are made of; ``lateness``: the rule as text.
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
    about["lateness"] = lateness
    about["kind"] = str(query.kind)
    if query.aggregates:
        about["aggregates"] = ", ".join(a.digest_text for a in query.aggregates)
    about["punctuation"] = f"{punctuation}"
    return about


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _digest(header: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode()).hexdigest()


def _check_header(header: Mapping[str, Any], nbytes: int) -> None:
    """Raise `SnapshotError` unless ``header`` has the fields of a header, and its blobs have ``nbytes`` together."""
    wrong = [name for name, shape in _SHAPES.items() if not _has_shape(header.get(name, ...), shape)]
    if not wrong:
        blobs, sources = header["blobs"], header["sources"]
        waiting = {f"waiting_{side}_{n}" for side in SIDES for n in range(len(sources[side]))}
        if sum(blobs.values()) != nbytes or {name for name in blobs if not name.startswith("kind_")} != (
                _BLOBS | waiting):
            wrong = ["blobs"]
        elif any(index >= len(sources.get(side, ())) for side, index in header["default"].items()):
            wrong = ["default"]
    if wrong:
        raise damaged(f"the field {wrong[0]} of its header is none that a session writes")


def _has_shape(value: Any, shape: Any) -> bool:
    """True if ``value`` passes the function ``shape``, or is an object or a list of values that have the shapes in it,
    which stand by name or by place; one set of shapes is that of each value of an object, one list that of each item.
    """
    if callable(shape):
        return bool(shape(value))
    if isinstance(shape, dict):
        return isinstance(value, dict) and (... in shape or set(value) == set(shape)) and all(
            _has_shape(one, shape.get(name, shape.get(...))) for name, one in value.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_has_shape(one, shape[0]) for one in value)
    return isinstance(value, list) and len(value) == len(shape) and all(map(_has_shape, value, shape))


def _or_none(shape: Any) -> Callable[[Any], bool]:
    return lambda value: value is None or _has_shape(value, shape)


def _is_int(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < 2**63


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


#: How far something has got: lateness and heartbeats lead beyond the times that tuples can have.
_MARK = _or_none(_is(int))
_SHAPES: dict[str, Any] = {
    "about": {...: _is(str)},
    "sources": {side: [(_or_none(lambda value: _is_int(value, -(2**63))), _MARK, _is(bool), _is(bool), _is(bool),
                        _is(float))] for side in SIDES},
    "default": {...: _is_int},
    "frontier": _or_none((_is(int), (lambda value: _is_int(value) and value <= len(SIDES), _is_int))),
    "finished": dict.fromkeys(SIDES, _is(bool)), "now": dict.fromkeys(SIDES, _MARK),
    "passed": dict.fromkeys(SIDES, _or_none((_is(int), _is_int))), "silent": _is(float), "ended": _is(bool),
    "restarts": _is_int, "total": _is_int, "settled": (_is_int, _is_int), "live": (_is_int, _is_int),
    "first": dict.fromkeys(SIDES, _is_int), "late": dict.fromkeys(SIDES, (_is_int, _is_int)),
    "shed": dict.fromkeys(SIDES, (_is_int, _is_int)), "changes": lambda value: isinstance(value, dict),
    "blobs": {...: _is_int},
    "windows": ((_or_none(lambda value: _is(int)(value) and value >= 1),
                 _or_none(lambda value: _is(int)(value) and value >= 0)),) * len(SIDES),
}
