"""Versions of a group's state as bytes.

Version n is the state after micro-batch n. It holds the tuples that micro-batch n added, and names the earlier versions
whose tuples are still live (its *chain*); from time to time a version holds all live tuples, and its chain is itself.

Layout: 8 bytes magic, format (uint32, little endian), CRC-32 of all that follows, length of the header (uint64), CRC-32
of the header, the header (JSON), and the blobs whose lengths it lists: Arrow IPC streams. Nothing in it is code. The
header has a CRC of its own, as it is also read alone.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import SnapshotError, first_line
from splitjoin.base.ipc import read_ipc_stream
from splitjoin.lang.canonical import canonical
from splitjoin.lang.schema import SIDES, Side

from ..named_conditions import NamedRows
from ..packing import ipc_bytes
from ..text import WHICH, extent
from .group import GroupJoin, GroupState
from .rows import Numbers, Rows
from .watermark import Progress

MAGIC = b"SPLJGRUP"
#: Format of the layout and its contents; a reader accepts its own only.
FORMAT = 6
_HEAD = struct.Struct("<8sIIQI")
#: The most bytes of a header.
_MAX_HEADER = 256 << 20
#: The most versions in a chain, as many files are read when a state is loaded; and the most where fewer versions are
#: kept than this number.
_LONGEST_CHAIN, _SHORT_CHAIN = 64, 8
#: A chain may have as many times the tuples of a version with all live ones, before a version holds them again; and the
#: number of tuples that take about as many bytes as the schemas of a version.
_MOST_TUPLES, _FRAME = 2, 64
#: Columns beside the stream's own ones, which are numbered: names may be anything.
_TS, _ID = "ts", "id"


@dataclass(frozen=True)
class Version:
    """A version of the state of one group.

    Attributes:
        batch: The number of the micro-batch, from 0.
        group: The number of the group, and of how many.
        groups: The number of groups.
        identity: What must be the same in all versions of a join, by name.
        state: The state; in a version that was read, without the tuples of the rest of its chain.
        chain: The versions that hold its stored tuples, with the number of these tuples and of their bytes in each.
        token: A text that differs for every version that was ever written, but for those that were carried on.
        waiting_bytes: The bytes of the tuples that wait, and of what is known of those whose rows wait.
    """

    batch: int
    group: int
    groups: int
    identity: Mapping[str, str]
    state: GroupState
    chain: Sequence[tuple[int, int, int]]
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    waiting_bytes: int = 0

    @classmethod
    def after(cls, before: Version | None, batch: int, group: int, join: GroupJoin, names: Mapping[str, str],
              state: GroupState, own: Mapping[Side, Rows], retained: int = _LONGEST_CHAIN) -> tuple[Version, bytes]:
        """The version after ``before`` (None: there is none, or it is of other groups), and its bytes.

        ``own``: the tuples that the micro-batch has added. ``retained``: the number of micro-batches whose state is
        kept; a chain of many more would keep as many old files.
        """
        chain = [] if before is None else list(before.chain)
        stored = [_encoded(own[side], join.numbered) for side in SIDES]
        link = batch, sum(len(own[side]) for side in SIDES), sum(map(len, stored))
        if not chain or len(chain) >= min(_LONGEST_CHAIN, max(retained, _SHORT_CHAIN)) or _is_wasteful(
                [*chain, link], sum(len(state.stored[side]) for side in SIDES)):
            chain = []
            stored = [_encoded(state.stored[side], join.numbered) for side in SIDES]
            link = batch, sum(len(state.stored[side]) for side in SIDES), sum(map(len, stored))
        rest = [*(_encoded(state.waiting[side], join.numbered) for side in SIDES), *_encoded_undecided(state)]
        version = cls(batch, group, join.groups, names, state, [*chain, link], waiting_bytes=sum(map(len, rest)))
        return version, version._bytes([*stored, *rest], join.numbered)

    def carried(self, batch: int, join: GroupJoin) -> bytes:
        """The bytes of the same state after micro-batch ``batch``, the next one, which had no tuples."""
        none = [Rows.empty(join.schemas[side]) for side in SIDES]
        blobs = [_encoded(rows, join.numbered) for rows in (*none, *(self.state.waiting[side] for side in SIDES))]
        return replace(self, batch=batch)._bytes([*blobs, *_encoded_undecided(self.state)], join.numbered)

    @property
    def nbytes(self) -> int:
        """The bytes of all stored tuples in its chain, of those that wait, and of what is known of rows that wait."""
        return sum(n for _, _, n in self.chain) + self.waiting_bytes

    def _bytes(self, blobs: Sequence[bytes], numbered: bool) -> bytes:
        header = json.dumps({
            "batch": self.batch, "group": self.group, "groups": self.groups, "identity": dict(self.identity),
            "chain": list(self.chain), "token": self.token, "numbered": numbered,
            "progress": asdict(self.state.progress), "tuples": dict(self.state.tuples),
            "hot": sorted(self.state.hot), "needed": self.state.needed and dict(self.state.needed),
            "blobs": [len(b) for b in blobs],
        }).encode()
        body = b"".join([struct.pack("<QI", len(header), zlib.crc32(header)), header, *blobs])
        return MAGIC + struct.pack("<II", FORMAT, zlib.crc32(body)) + body

    @classmethod
    def decode(cls, data: bytes | memoryview, where: str, schemas: Mapping[Side, pa.Schema] | None) -> Version:
        """The version whose bytes are ``data``. ``schemas`` None reads its header only, and leaves the state empty.

        Raises `SnapshotError`, naming ``where``, for bytes that are no version of this format, or are damaged.
        """
        header, at = _header(data, where, whole=schemas is not None)
        stored: dict[Side, Rows] = {}
        waiting: dict[Side, Rows] = {}
        undecided: dict[str, Numbers] = {}
        try:
            for n, size in enumerate(header["blobs"] if schemas is not None else []):
                assert schemas is not None
                if n == 4:
                    undecided = _decoded_numbers(data[at:at + size])
                    break
                side = SIDES[n % 2]
                rows = _decoded(data[at:at + size], schemas[side], header["numbered"])
                (stored if n < 2 else waiting)[side] = rows
                at += size
            state = GroupState(stored, waiting, Progress(**header["progress"]), header["tuples"],
                               frozenset(header["hot"]), undecided=undecided, needed=header.get("needed"))
            return cls(header["batch"], header["group"], header["groups"], header["identity"], state,
                       [(batch, rows, size) for batch, rows, size in header["chain"]], header["token"])
        except (ArithmeticError, LookupError, TypeError, ValueError, OSError, pa.ArrowException) as error:
            raise _damaged(where, f"its contents cannot be read ({first_line(error)})") from error


def _is_wasteful(chain: Sequence[tuple[int, int, int]], live: int) -> bool:
    """True if one version with all ``live`` tuples would take less than half of what ``chain`` takes.

    It counts tuples: bytes depend on the parts in which tuples came, but each run of a task must decide alike, as a
    later version may be made from the first run's file and read with the second one's.
    """
    return sum(n for _, n, _ in chain) + _FRAME * len(chain) > _MOST_TUPLES * (live + _FRAME)


def _header(data: bytes | memoryview, where: str, *, whole: bool) -> tuple[dict[str, Any], int]:
    """The header of the version whose bytes, or with ``whole`` False whose first bytes, are ``data``; and where it
    ends. Raises `SnapshotError`.
    """
    if len(data) < _HEAD.size or bytes(data[:8]) != MAGIC:
        raise SnapshotError(f"{where} is not a state of splitjoin; the folder of the state must hold nothing else")
    _, form, check, length, check_header = _HEAD.unpack(data[:_HEAD.size])
    if form != FORMAT:
        raise SnapshotError(f"{where} has the format {form}, and this version of splitjoin reads format {FORMAT}; "
                            f"go on with the version that wrote it, or start with a new checkpoint")
    if whole and zlib.crc32(data[16:]) != check:
        raise _damaged(where, "its checksum does not fit")
    end = _HEAD.size + length
    if len(data) < end:
        raise _damaged(where, "its header is cut off")
    text = bytes(data[_HEAD.size:end])
    if zlib.crc32(text) != check_header:
        raise _damaged(where, "the checksum of its header does not fit")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(where, "its header is no JSON") from None
    if not isinstance(header, dict):
        raise _damaged(where, "its header is no object")
    return header, end


def _damaged(where: str, why: str) -> SnapshotError:
    return SnapshotError(f"{where} is damaged: {why}; restore the file, or start with a new checkpoint")


def header_bytes(head: bytes) -> int:
    """The number of bytes from the beginning that `Version.decode` needs for a header, by the first 28 of them."""
    return int(_HEAD.size + min(_HEAD.unpack(head[:_HEAD.size])[3], _MAX_HEADER)) if len(head) >= _HEAD.size else 0


def identity(join: GroupJoin) -> dict[str, str]:
    """Values, by name, that must not change between versions: the meaning of the state depends on them."""
    query = join.query
    assert query.time is not None
    made = {
        "kind": "; ".join([str(query.kind), *(a.digest_text for a in query.aggregates)]),
        "condition": str(canonical(query.predicate)),
        "window of left": extent(query, "r"), "window of right": extent(query, "s"),
        "time columns": f"{query.time.r}, {query.time.s} in {query.time.tick or query.time.type}",
        "order": f"{query.order}{', rows come early' if join.early else ''}",
        "ties": "; ".join(f"{WHICH[side]} {', '.join(join.ties[side]) or 'none'}" for side in SIDES),
    }
    if isinstance(join.projection, NamedRows):
        made["named conditions"] = join.projection.identity
    return made | {f"columns of {WHICH[side]}":
                   ", ".join(f"{f.name} {f.type}" for f in join.schemas[side]) for side in SIDES}


def check_identity(version: Version, now: Mapping[str, str], where: str) -> None:
    """Raise `SnapshotError` unless ``version`` is of a join with the identity ``now``, naming what differs."""
    was = version.identity
    wrong = [f"{name}: was {was.get(name)!r}, is now {value!r}" for name, value in now.items()
             if was.get(name) != value]
    if wrong:
        raise SnapshotError(f"the state in {where} belongs to another join: {'; '.join(wrong)}; run the query as it "
                            f"was, or start it with a new checkpoint (the device, its options and groups may change)")


def _encoded_undecided(state: GroupState) -> list[bytes]:
    """One blob with the part of ``state`` on tuples whose rows wait: arrays of int64, which may differ in length."""
    arrays = state.undecided
    if not arrays:
        return []
    lists = [pa.ListArray.from_arrays(pa.array([0, len(a)], pa.int32()), pa.array(a, pa.int64()))
             for a in arrays.values()]
    return [ipc_bytes(pa.table(lists, names=list(arrays)), "zstd")]


def _decoded_numbers(data: bytes | memoryview) -> dict[str, Numbers]:
    table = read_ipc_stream(data)
    return {name: table.column(name)[0].values.to_numpy() for name in table.column_names}


def _encoded(rows: Rows, numbered: bool) -> bytes:
    columns: list[Any] = [*rows.table.columns, pa.array(rows.ts), *([pa.array(rows.ids)] if numbered else [])]
    names = [*(str(n) for n in range(rows.table.num_columns)), _TS, *([_ID] if numbered else [])]
    # Event times are there twice, and grow steadily: compressed, they take little.
    return ipc_bytes(pa.table(columns, names=names), "zstd")


def _decoded(data: bytes | memoryview, schema: pa.Schema, numbered: bool) -> Rows:
    table = read_ipc_stream(data)
    ts = table.column(_TS).to_numpy()
    ids = table.column(_ID).to_numpy() if numbered else np.full(len(ts), -1, np.int64)
    columns = [c.cast(f.type) for c, f in zip(table.columns, schema, strict=False)]
    return Rows(pa.table(columns, schema=schema) if columns else pa.table({}), ts, ids)
