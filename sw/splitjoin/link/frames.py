"""Frames of the link, defined once for the circuit, the host and docs/link.md.

A frame on the wire is ``END, stuffed bytes, END``, where the bytes are a header, a payload and a CRC. Stuffing is that
of SLIP (RFC 1055): `END` becomes ``ESC ESC_END`` and `ESC` becomes ``ESC ESC_ESC``, so `END` only ever delimits frames
and a receiver finds the next frame after any garbage. The CRC is the CRC-32 of IEEE 802.3 over header and payload,
least significant byte first: it detects every burst of up to 32 bits, and other errors but for a share of 2^-32.

Both directions work at the same time. *Requests* with records or register accesses are numbered, and the device takes
them in order (Go-Back-N). *Replies* with items or register words are numbered too, and the device keeps them until the
host has acknowledged them; the host sorts them and asks for those that are missing (selective repeat). Every frame
carries the acknowledgement and the credit of the other direction. All numbers are unsigned, least significant byte
first; sequence numbers are modulo 256.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from splitjoin.base.errors import DeviceError

END, ESC, ESC_END, ESC_ESC = 0xC0, 0xDB, 0xDC, 0xDD
CRC_BYTES = 4
#: The polynomial of the CRC-32, reflected.
CRC_POLYNOMIAL = 0xEDB88320
#: The register of the CRC after a frame with its own CRC, before the final complement.
CRC_RESIDUE = 0xDEBB20E3
#: Version of the protocol, in the reply to OPEN.
VERSION = 2
#: The version of devices whose items are packed (`splitjoin.link.items`); all else is as in `VERSION`.
PACKED_VERSION = 3
#: Bytes of the circuit's buffer of records.
RING = 2048
#: Replies that the circuit keeps until they are acknowledged, and the bytes of each, of which one is its length.
SLOTS, SLOT_BYTES = 16, 128
#: Bytes of the buffer, and replies that are kept, of a circuit behind a FIFO chip: what moves in a round trip of USB.
FIFO_RING, FIFO_SLOTS = 16384, 64
REQUEST_HEADER, REPLY_HEADER = 4, 5
#: Most bytes of records that the host puts into a request.
DATA_BYTES = 240
#: The bit of a reply's kind that says that a request was damaged or out of order.
NAK = 0x80
#: Longest content of a frame that a receiver keeps with its CRC, in bytes.
_LONGEST = 1024
_STUFFED_END, _STUFFED_ESC = bytes((ESC, ESC_END)), bytes((ESC, ESC_ESC))
#: Stuffing that is wrong.
_MISSTUFFED = re.compile(b"\xdb(?![\xdc\xdd])")


class RequestKind(IntEnum):
    """The kind of a request."""

    #: Payload: a session number (4 bytes). Unless this session is running: reset the join and begin it. Reply: ABOUT.
    OPEN = 0
    #: Changes nothing. Reply: ABOUT.
    STATUS = 1
    #: Acknowledges and grants credit only.
    ACK = 2
    #: As ACK; the device must reply.
    POLL = 3
    #: As POLL; the device sends the first reply again that is not acknowledged.
    AGAIN = 4
    #: Numbered. Payload: a word address (1). Reply: WORD.
    READ = 5
    #: Numbered. Payload: a word address (1) and a register word (4).
    WRITE = 6
    #: Numbered. Payload: whole records.
    DATA = 7


#: The first numbered kind of requests.
NUMBERED = RequestKind.READ


class ReplyKind(IntEnum):
    """The kind of a reply."""

    #: Acknowledges and grants credit only.
    ACK = 0
    #: Payload: `About`.
    ABOUT = 1
    #: Numbered. Payload: a register word (4).
    WORD = 2
    #: Numbered. Payload: whole items.
    ITEMS = 3


@dataclass(frozen=True)
class Request:
    """A frame from the host.

    Attributes:
        seq: Its sequence number; of a request that is not numbered: the next one's.
        ack: The sequence number of the first reply that the host does not have.
        limit: Credit: the sequence number of the first reply that the device may not send yet.
    """

    kind: RequestKind
    seq: int
    ack: int
    limit: int
    payload: bytes = b""

    def content(self) -> bytes:
        """Header and payload."""
        return bytes((self.kind, self.seq, self.ack, self.limit)) + self.payload

    @classmethod
    def parse(cls, content: bytes) -> Request | None:
        """The request with ``content``, or None if no request has it."""
        if len(content) < REQUEST_HEADER or content[0] not in tuple(RequestKind):
            return None
        return cls(RequestKind(content[0]), content[1], content[2], content[3], content[REQUEST_HEADER:])


@dataclass(frozen=True)
class Reply:
    """A frame from the device.

    Attributes:
        seq: Its sequence number; of a reply that is not numbered: the next new one's.
        ack: The sequence number of the next request that the device takes.
        credit: The bytes of records that the host may have sent since the session began, modulo 2^16.
        nak: A request was damaged, out of order, or came too early since the last reply.
    """

    kind: ReplyKind
    seq: int
    ack: int
    credit: int
    payload: bytes = b""
    nak: bool = False

    def content(self) -> bytes:
        """Header and payload."""
        return (bytes((self.kind | (NAK if self.nak else 0), self.seq, self.ack)) + self.credit.to_bytes(2, "little")
                + self.payload)

    @classmethod
    def parse(cls, content: bytes) -> Reply:
        """The reply with ``content``. Raises `DeviceError` for a header that no reply has."""
        if len(content) < REPLY_HEADER or content[0] & ~NAK not in tuple(ReplyKind):
            raise DeviceError(f"a reply must begin with a kind from 0 to {max(ReplyKind)} and a header of "
                              f"{REPLY_HEADER} bytes, but {content[:8].hex(' ')} came; is this a splitjoin circuit?")
        return cls(ReplyKind(content[0] & ~NAK), content[1], content[2], int.from_bytes(content[3:5], "little"),
                   content[REPLY_HEADER:], bool(content[0] & NAK))


#: Bytes of the payload of ABOUT.
ABOUT_BYTES = 17


@dataclass(frozen=True)
class About:
    """The payload of an ABOUT reply: version of the protocol, bytes of a record, the slots and the bytes of the ring,
    the number of the session (0 if there is none), and the ABI hash of the circuit.
    """

    record_bytes: int
    abi: int
    session: int
    version: int = VERSION
    slots: int = SLOTS
    ring: int = RING

    def payload(self) -> bytes:
        """The bytes, which are `ABOUT_BYTES`."""
        return (bytes((self.version, self.record_bytes, self.slots)) + self.ring.to_bytes(2, "little")
                + self.session.to_bytes(4, "little") + self.abi.to_bytes(8, "little"))

    @classmethod
    def parse(cls, payload: bytes) -> About:
        """Its inverse. Raises `DeviceError` for another version of the protocol."""
        if len(payload) != ABOUT_BYTES or payload[0] not in (VERSION, PACKED_VERSION):
            raise DeviceError(f"the device must speak version {VERSION} or {PACKED_VERSION} of the link, but answered "
                              f"{payload.hex(' ')}; build its circuit again with this release")
        ring, session, abi = (int.from_bytes(payload[a:b], "little") for a, b in ((3, 5), (5, 9), (9, 17)))
        return cls(payload[1], abi, session, payload[0], payload[2], ring)


def encode(content: bytes) -> bytes:
    """The bytes on the wire of a frame with ``content``."""
    whole = content + zlib.crc32(content).to_bytes(CRC_BYTES, "little")
    stuffed = whole.replace(bytes((ESC,)), _STUFFED_ESC).replace(bytes((END,)), _STUFFED_END)
    return bytes((END,)) + stuffed + bytes((END,))


class Decoder:
    """Finds frames in received bytes. ``rejected`` counts frames with a wrong CRC, wrong stuffing or too many bytes."""

    def __init__(self) -> None:
        self.rejected = 0
        self._begun = b""  # the stuffed bytes of the frame that has not ended

    def feed(self, received: Iterable[int]) -> list[bytes]:
        """The contents of the frames that end in ``received``."""
        *ended, self._begun = (self._begun + bytes(received)).split(bytes((END,)))
        self._begun = self._begun[:2 * _LONGEST + 1]  # one more than any frame that is kept
        found = []
        for stuffed in filter(None, ended):
            whole = stuffed.replace(_STUFFED_END, bytes((END,))).replace(_STUFFED_ESC, bytes((ESC,)))
            content, crc = whole[:-CRC_BYTES], whole[-CRC_BYTES:]
            if (CRC_BYTES < len(whole) <= _LONGEST and not _MISSTUFFED.search(stuffed)
                    and zlib.crc32(content).to_bytes(CRC_BYTES, "little") == crc):
                found.append(content)
            else:
                self.rejected += 1
        return found
