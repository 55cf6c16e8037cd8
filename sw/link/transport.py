"""Registers and records over the link: the transport of the devices ``uart`` and ``emulator``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..circuit.driver import DeviceStalled, Transport
from ..circuit.encode import Words
from ..circuit.wire import Configuration, ItemKind, item_record
from ..errors import DeviceError
from .endpoint import HostEndpoint
from .frames import VERSION, Kind, Reply

__all__ = ["ByteChannel", "LinkTransport"]

#: Most bytes of records in one request: half of the circuit's ring, so that the next ones can come meanwhile.
_PAYLOAD = 240


class ByteChannel(Protocol):
    """A serial port, or what behaves like one."""

    def write(self, data: bytes) -> None:
        """Send ``data``."""

    def read(self, seconds: float) -> bytes:
        """What has been received, or arrives within ``seconds``; empty if nothing does. Raises `DeviceError` if the
        channel is gone.
        """

    def close(self) -> None:
        """Release the channel."""


class LinkTransport(Transport):
    """A freshly reset circuit of ``config`` behind ``channel``.

    Attributes:
        repeat_after: Seconds without a reply after which a request is sent again.
        answer_within: Seconds after which a device that sends no valid reply counts as hanging: `DeviceError`.
        stalled_after: Seconds in which neither a record nor an item moves, although the device replies, after which
            `DeviceStalled` is raised.
        clock: The clock of these times, in seconds; a simulated channel has its own.
    """

    def __init__(self, channel: ByteChannel, config: Configuration, *, repeat_after: float = 0.1,
                 answer_within: float = 2.0, stalled_after: float = 60.0,
                 clock: Callable[[], float] = time.monotonic):
        self._channel, self._endpoint = channel, HostEndpoint(time.monotonic_ns() >> 20 & 0xFF)
        self._clock = clock
        self._repeat_after, self._answer_within, self._stalled_after = repeat_after, answer_within, stalled_after
        self._record_bytes, self._item_bytes = (-(-r.width // 8) for r in (config.input_record, item_record()))
        self.received_bytes = self.sent_bytes = 0
        try:
            about = self._ask(Kind.OPEN).payload
            if len(about) != 4 or about[0] != VERSION:
                raise DeviceError(f"the device must speak version {VERSION} of the link, but answered "
                                  f"{about.hex(' ')}; build its circuit again with this release")
            if about[1] != self._record_bytes:
                raise DeviceError(f"the device holds another circuit: records of this query have {self._record_bytes} "
                                  f"bytes, those of the device {about[1]}; build the circuit for this query")
        except BaseException:
            channel.close()
            raise

    @property
    def retransmissions(self) -> int:
        """Requests that were sent more than once."""
        return self._endpoint.retransmissions

    @property
    def rejected(self) -> int:
        """Damaged frames that the host received."""
        return self._endpoint.rejected

    def read(self, address: int) -> int:
        return int.from_bytes(self._ask(Kind.READ, bytes((address,))).payload, "little")

    def write(self, address: int, word: int) -> None:
        self._ask(Kind.WRITE, bytes((address,)) + word.to_bytes(4, "little"))

    def transfer(self, records: Words, *, until_end: bool) -> Words:
        raw = np.ascontiguousarray(records, "<u4").view(np.uint8).reshape(len(records), -1)[:, :self._record_bytes]
        at, ended, moved = 0, False, self._clock()
        received = bytearray()
        while at < len(raw) or (until_end and not ended):
            n = min(len(raw) - at, min(self._endpoint.free, _PAYLOAD) // self._record_bytes)
            items = self._ask(Kind.DATA, raw[at:at + n].tobytes()).payload
            if len(items) % self._item_bytes:
                raise DeviceError(f"a reply must hold whole items of {self._item_bytes} bytes, but {len(items)} bytes "
                                  f"came; build the circuit again with this release")
            at += n
            received += items
            ended = bool(items) and items[-self._item_bytes] & 3 == ItemKind.END
            if n or items:
                moved = self._clock()
            elif self._clock() - moved > self._stalled_after:
                raise DeviceStalled(f"the device replies, but neither took a record nor gave a result for "
                                    f"{self._stalled_after:g} s ({at} of {len(raw)} records sent)")
        words = item_record().words
        out = np.zeros((len(received) // self._item_bytes, 4 * words), np.uint8)
        out[:, :self._item_bytes] = np.frombuffer(bytes(received), np.uint8).reshape(-1, self._item_bytes)
        return out.view("<u4").astype(np.uint32)

    def close(self) -> None:
        self._channel.close()

    def _ask(self, kind: Kind, payload: bytes = b"") -> Reply:
        """The reply to a request, which is repeated as long as none comes."""
        data = self._endpoint.request(kind, payload)
        start, heard = self._clock(), 0
        while True:
            self._channel.write(data)
            self.sent_bytes += len(data)
            until = self._clock() + self._repeat_after
            while (left := until - self._clock()) > 0:
                got = self._channel.read(left)
                heard += len(got)
                self.received_bytes += len(got)
                reply = self._endpoint.feed(got)
                if reply is not None:
                    return reply
            if self._clock() - start >= self._answer_within - self._repeat_after:
                what = f"sent {heard} bytes without a valid reply" if heard else "sent nothing"
                raise DeviceError(f"the device must reply within {self._answer_within:g} s, but {what}; check that it "
                                  f"is powered, runs a splitjoin circuit, and that the baud rates are equal")
            data = self._endpoint.repeat()
