"""The layout of a snapshot of shared streams: the snapshots of the streams and of their queries, by name.

8 bytes magic, version (uint32, little endian), SHA-256 of all that follows, length of the header (uint64), the header
(JSON: the length of each part by its name) and the parts. Nothing in it is code.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping

from splitjoin.base.errors import SnapshotError

__all__ = ["STREAMS", "packed", "unpacked"]

MAGIC = b"SPLJSHAR"
VERSION = 1
#: The name of the part that holds the streams; the others are called by their queries.
STREAMS = "streams"
_HEAD = struct.Struct("<8sI32sQ")


def packed(parts: Mapping[str, bytes]) -> bytes:
    """The parts as one."""
    header = json.dumps({name: len(part) for name, part in parts.items()}).encode()
    rest = b"".join([header, *parts.values()])
    return _HEAD.pack(MAGIC, VERSION, _checksum(len(header), rest), len(header)) + rest


def unpacked(data: bytes) -> dict[str, bytes]:
    """The parts of ``data``. Raises `SnapshotError` unless it is whole and of this version."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a snapshot must be bytes, not {type(data).__name__}")
    data = bytes(data)
    if len(data) < _HEAD.size or not data.startswith(MAGIC):
        raise SnapshotError("these bytes are no snapshot of shared streams: they do not begin as one")
    _, version, checksum, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the snapshot must be of version {VERSION}, but is of version {version}; restore it with "
                            f"the release of splitjoin that took it")
    rest = data[_HEAD.size:]
    if _checksum(length, rest) != checksum:
        raise SnapshotError("the snapshot is damaged: its checksum is wrong; it may have been cut off")
    try:
        lengths = json.loads(rest[:length])
    except (ValueError, RecursionError):
        lengths = None
    if (not isinstance(lengths, dict) or STREAMS not in lengths
            or not all(type(n) is int and n >= 0 for n in lengths.values())
            or sum(lengths.values()) != len(rest) - length):
        raise SnapshotError("the snapshot is damaged: its header is none that shared streams write; take another one")
    parts, at = {}, length
    for name, n in lengths.items():
        parts[name] = rest[at:at + n]
        at += n
    return parts


def _checksum(length: int, rest: bytes) -> bytes:
    return hashlib.sha256(struct.pack("<Q", length) + rest).digest()
