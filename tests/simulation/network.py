"""Unix sockets of a schedule: bytes come late and in pieces, and connections break."""

from __future__ import annotations

import os
import socket as sockets
import struct
from pathlib import Path
from typing import Any

from ..support.scheduler import Scheduler


class Network(Scheduler):
    """A scheduler with Unix sockets, whose paths are those of files that they leave."""

    def __init__(self, seed: int, **options: Any):
        super().__init__(seed, **options)
        self.listeners: dict[str, _Socket] = {}

    def unix_socket(self) -> Any:
        """A socket."""
        return _Socket(self)


class _Way:
    """The bytes of one direction of a connection, in pieces, each with the time at which it comes."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, bytes]] = []
        self.is_ended = False


class _Socket:
    """A socket of `Network`, with what the daemon and its clients use of Python's."""

    def __init__(self, network: Network):
        self._network = network
        self._timeout: float | None = None
        self._in, self._out = _Way(), _Way()
        self._waiting: list[_Socket] = []
        self._path = ""
        self._is_closed = False

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def bind(self, path: str) -> None:
        Path(path).touch()
        self._path = path

    def listen(self, backlog: int) -> None:
        self._network.listeners[self._path] = self

    def accept(self) -> tuple[_Socket, str]:
        if not self._network.wait(lambda: bool(self._waiting), self._timeout):
            raise TimeoutError
        return self._waiting.pop(0), ""

    def connect(self, path: str) -> None:
        self._network.step()
        listener = self._network.listeners.get(path)
        if listener is None:
            raise ConnectionRefusedError("nobody listens")
        other = _Socket(self._network)
        other._in, other._out = self._out, self._in
        listener._waiting.append(other)

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return struct.pack("3i", os.getpid(), os.geteuid(), os.getegid())

    def sendall(self, data: Any) -> None:
        network = self._network
        network.step()
        if network.buggify("reset", 0.05):
            self._break()
            raise ConnectionResetError("the connection was reset")
        if self._is_closed or self._in.is_ended or self._out.is_ended:
            raise BrokenPipeError("the other end is closed")
        sent = bytes(memoryview(data).cast("B"))
        at = max([network.now, *(time for time, _ in self._out.pieces[-1:])])
        while sent:
            if network.buggify("late"):
                at += network.chance.uniform(0, 2)
            n = network.chance.randint(1, len(sent)) if network.buggify("pieces") else len(sent)
            self._out.pieces.append((at, sent[:n]))
            sent = sent[n:]
        network.step()

    def recv_into(self, view: memoryview) -> int:
        found = self._received(len(view), self._timeout)
        view[:len(found)] = found
        return len(found)

    def recv(self, n: int, flags: int = 0) -> bytes:
        assert flags == sockets.MSG_PEEK | sockets.MSG_DONTWAIT, "the daemon looks whether its client is there"
        self._network.step()
        if self._in.pieces:
            return self._in.pieces[0][1][:n]
        if self._in.is_ended:
            return b""
        raise BlockingIOError

    def shutdown(self, how: int) -> None:
        assert how == sockets.SHUT_RD
        self._in.is_ended = True

    def close(self) -> None:
        self._network.listeners.pop(self._path, None)
        self._is_closed = True
        self._out.is_ended = True
        for one in self._waiting:
            one.close()

    def __enter__(self) -> _Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _break(self) -> None:
        for way in self._in, self._out:
            way.is_ended = True
            way.pieces.clear()

    def _received(self, most: int, timeout: float | None) -> bytes:
        network, way = self._network, self._in
        until = None if timeout is None else network.now + timeout
        while True:
            if self._is_closed:
                raise OSError("the socket is closed")
            if way.pieces and way.pieces[0][0] <= network.now:
                _, piece = way.pieces.pop(0)
                n = min(most, len(piece), network.chance.randint(1, most) if network.buggify("short") else most)
                if rest := piece[n:]:
                    way.pieces.insert(0, (network.now, rest))
                return piece[:n]
            if not way.pieces and way.is_ended:
                return b""
            if until is not None and network.now >= until:
                raise TimeoutError
            times = [time - network.now for time, _ in way.pieces[:1]] + ([] if until is None else [
                until - network.now])
            network.wait(lambda: bool(way.pieces and way.pieces[0][0] <= network.now) or self._is_closed or (
                not way.pieces and way.is_ended), min(times, default=None))
