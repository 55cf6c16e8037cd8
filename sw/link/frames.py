"""Frames of the link, defined once for the circuit, the host and docs/link.md.

The host asks and the device replies: one frame each way, then the next (stop and wait). A frame on the wire is
``END, stuffed bytes, END``, where the bytes are a header, a payload and a CRC. Stuffing is that of SLIP (RFC 1055):
`END` becomes ``ESC ESC_END`` and `ESC` becomes ``ESC ESC_ESC``, so `END` only ever delimits frames and a receiver finds
the next frame after any garbage. The CRC is the CRC-32 of IEEE 802.3 over header and payload, least significant byte
first: it detects every burst of up to 32 bits, and other errors but for a share of 2^-32.

All numbers are unsigned, least significant byte first. A request is ``seq, kind, payload``, a reply ``seq, kind, free
(2 bytes), payload``; ``free`` is the credit: the bytes of records that the device has room for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from ..errors import DeviceError

__all__ = ["CRC_BYTES", "CRC_POLYNOMIAL", "CRC_RESIDUE", "END", "ESC", "ESC_END", "ESC_ESC", "ITEMS", "RING", "VERSION",
           "Decoder", "Kind", "Reply", "Request", "encode"]

END, ESC, ESC_END, ESC_ESC = 0xC0, 0xDB, 0xDC, 0xDD
CRC_BYTES = 4
#: The polynomial of the CRC-32, reflected.
CRC_POLYNOMIAL = 0xEDB88320
#: The register of the CRC after a frame with its own CRC, before the final complement.
CRC_RESIDUE = 0xDEBB20E3
#: Version of the protocol, in the reply to OPEN.
VERSION = 1
#: Bytes of the circuit's buffer of records, of which five stay free.
RING = 512
#: Most items in one reply.
ITEMS = 27
#: Longest content of a frame that a receiver keeps, in bytes.
_LONGEST = 1024


class Kind(IntEnum):
    """What a request asks for; the reply repeats it."""

    #: Reset the join and begin a session at this sequence number. Reply: version, bytes of a record, RING (2 bytes).
    OPEN = 0
    #: Payload: a word address. Reply: the register word (4 bytes).
    READ = 1
    #: Payload: a word address and a register word (4 bytes).
    WRITE = 2
    #: Payload: whole records, or nothing to poll. Reply: the items that are ready, up to `ITEMS`.
    DATA = 3


@dataclass(frozen=True)
class Request:
    """A frame from the host. ``seq``: 0 to 255, one more (modulo 256) for each new request; a repetition keeps it."""

    seq: int
    kind: Kind
    payload: bytes = b""

    def content(self) -> bytes:
        """Header and payload."""
        return bytes((self.seq, self.kind)) + self.payload


@dataclass(frozen=True)
class Reply:
    """A frame from the device: its answer to the request with the same ``seq`` and ``kind``."""

    seq: int
    kind: Kind
    free: int
    payload: bytes = b""

    def content(self) -> bytes:
        """Header and payload."""
        return bytes((self.seq, self.kind)) + self.free.to_bytes(2, "little") + self.payload

    @classmethod
    def parse(cls, content: bytes) -> Reply:
        """The reply with ``content``. Raises `DeviceError` for a header that no reply has."""
        if len(content) < 4 or content[1] not in tuple(Kind):
            raise DeviceError(f"a reply must begin with a sequence number, a kind from 0 to {max(Kind)} and a credit "
                              f"of two bytes, but {content[:8].hex(' ')} came; is this a splitjoin circuit?")
        return cls(content[0], Kind(content[1]), int.from_bytes(content[2:4], "little"), content[4:])


def encode(content: bytes) -> bytes:
    """The bytes on the wire of a frame with ``content``."""
    whole = content + zlib.crc32(content).to_bytes(CRC_BYTES, "little")
    stuffed = whole.replace(bytes((ESC,)), bytes((ESC, ESC_ESC))).replace(bytes((END,)), bytes((ESC, ESC_END)))
    return bytes((END,)) + stuffed + bytes((END,))


class Decoder:
    """Finds frames in received bytes. ``rejected`` counts frames with a wrong CRC, wrong stuffing or too many bytes."""

    def __init__(self) -> None:
        self.rejected = 0
        self._content = bytearray()
        self._escape = self._bad = False

    def feed(self, received: Iterable[int]) -> list[bytes]:
        """The contents of the frames that end in ``received``."""
        found = []
        for byte in received:
            if byte == END:
                if self._content or self._bad or self._escape:
                    content, crc = bytes(self._content[:-CRC_BYTES]), bytes(self._content[-CRC_BYTES:])
                    good = not (self._bad or self._escape) and len(self._content) > CRC_BYTES
                    if good and zlib.crc32(content).to_bytes(CRC_BYTES, "little") == crc:
                        found.append(content)
                    else:
                        self.rejected += 1
                self._content.clear()
                self._escape = self._bad = False
            elif byte == ESC and not self._escape:
                self._escape = True
            else:
                if self._escape:
                    self._bad |= byte not in (ESC_END, ESC_ESC)
                    byte = END if byte == ESC_END else ESC
                    self._escape = False
                if len(self._content) < _LONGEST:
                    self._content.append(byte)
                else:
                    self._bad = True
        return found
