"""The envelope of all snapshots of sessions: what they begin with, a checksum, a header and blobs.

Layout: 8 bytes magic, version (uint32, little endian), SHA-256 of all that follows, length of the header (uint64), the
header (JSON), and the blobs. The checksum is no signature.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import SnapshotError

_HEAD = struct.Struct("<8sI32sQ")


class DamagedSnapshot(SnapshotError):
    """The bytes are a snapshot that is damaged: nothing can go on from it."""


@dataclass(frozen=True)
class Envelope:
    """The envelope of snapshots of one kind: ``what`` they are of, as errors say it."""

    magic: bytes
    version: int
    what: str

    def sealed(self, header: Mapping[str, Any], blobs: Iterable[bytes]) -> bytes:
        """``header``, which JSON can hold, and the blobs, as one."""
        text = json.dumps(header).encode()
        rest = b"".join([text, *blobs])
        return _HEAD.pack(self.magic, self.version, _checksum(len(text), rest), len(text)) + rest

    def opened(self, data: bytes) -> tuple[Any, bytes]:
        """The header and the blobs, one after the other. Raises `SnapshotError` unless ``data`` is whole and of this
        version.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SnapshotError(f"a snapshot must be bytes, not {type(data).__name__}")
        data = bytes(data)
        if len(data) < _HEAD.size or not data.startswith(self.magic):
            raise DamagedSnapshot(f"these bytes are no snapshot of {self.what}: they do not begin as one")
        _, version, checksum, length = _HEAD.unpack_from(data)
        if version != self.version:
            raise SnapshotError(f"the snapshot must be of version {self.version}, but is of version {version}; restore "
                                f"it with the release of splitjoin that took it")
        rest = data[_HEAD.size:]
        if _checksum(length, rest) != checksum:
            raise DamagedSnapshot("the snapshot is damaged: its checksum is wrong; it may have been cut off")
        try:
            return json.loads(rest[:length]), rest[length:]
        except (ValueError, RecursionError):
            raise damaged("its header is no JSON") from None

    def packed(self, parts: Mapping[str, bytes]) -> bytes:
        """The ``parts``, which are snapshots themselves, by name, as one."""
        return self.sealed({name: len(part) for name, part in parts.items()}, parts.values())

    def unpacked(self, data: bytes) -> dict[str, bytes]:
        """The parts of ``data``. Raises `SnapshotError` as `opened`, and for a header that is no list of parts."""
        lengths, rest = self.opened(data)
        if (not isinstance(lengths, dict) or not all(type(n) is int and n >= 0 for n in lengths.values())
                or sum(lengths.values()) != len(rest)):
            raise damaged("its header is no list of parts")
        parts, at = {}, 0
        for name, n in lengths.items():
            parts[name] = rest[at:at + n]
            at += n
        return parts


def damaged(why: str) -> DamagedSnapshot:
    """The error for a snapshot that no session has written."""
    return DamagedSnapshot(f"the snapshot is damaged: {why}; take another one")


def ipc_bytes(table: pa.Table) -> bytes:
    """``table`` as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    return bytes(sink.getvalue())


def _checksum(length: int, rest: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<Q", length) + rest).digest()
