"""The endpoints of the link without input and output: the host's, and a model of the circuit's for tests."""

from __future__ import annotations

from collections.abc import Callable

from .frames import Decoder, Kind, Reply, Request, encode

__all__ = ["DeviceEndpoint", "HostEndpoint"]


class HostEndpoint:
    """One request at a time. The caller sends what `request` and `repeat` return, and feeds what it receives.

    Attributes:
        retransmissions: Requests that were sent again.
        free: The credit of the last reply, in bytes.
    """

    def __init__(self, seq: int = 0) -> None:
        self.retransmissions = 0
        self.free = 0
        self._decoder = Decoder()
        self._last = Request((seq - 1) % 256, Kind.OPEN)
        self._waiting = False

    @property
    def rejected(self) -> int:
        """Received frames that were damaged."""
        return self._decoder.rejected

    def request(self, kind: Kind, payload: bytes = b"") -> bytes:
        """The bytes of a new request; the one before must have its reply."""
        if self._waiting and kind != Kind.OPEN:
            raise ValueError("a request may begin when the one before has its reply")
        self._last, self._waiting = Request((self._last.seq + 1) % 256, kind, payload), True
        return encode(self._last.content())

    def repeat(self) -> bytes:
        """The bytes of the request that has no reply yet, to be sent again."""
        self.retransmissions += 1
        return encode(self._last.content())

    def feed(self, received: bytes) -> Reply | None:
        """The reply to the request, if it is among the ``received`` bytes. Repetitions of old replies are dropped."""
        for content in self._decoder.feed(received):
            reply = Reply.parse(content)
            if self._waiting and (reply.seq, reply.kind) == (self._last.seq, self._last.kind):
                self._waiting, self.free = False, reply.free
                return reply
        return None


class DeviceEndpoint:
    """A model of `splitjoin.hw.link.endpoint.LinkEndpoint`: it calls ``execute`` once for each request, in order."""

    def __init__(self, execute: Callable[[Request], tuple[int, bytes]]):
        self._execute = execute  # → credit and payload of the reply
        self._decoder = Decoder()
        self._last: Reply | None = None

    def feed(self, received: bytes) -> bytes:
        """The bytes that answer ``received``."""
        out = b""
        for content in self._decoder.feed(received):
            if len(content) < 2 or content[1] not in tuple(Kind):
                continue
            request = Request(content[0], Kind(content[1]), content[2:])
            if request.kind == Kind.OPEN or (self._last and request.seq == (self._last.seq + 1) % 256):
                self._last = Reply(request.seq, request.kind, *self._execute(request))
            elif self._last is None or request.seq != self._last.seq:
                continue
            out += encode(self._last.content())
        return out
