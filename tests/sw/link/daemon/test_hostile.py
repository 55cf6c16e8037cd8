"""Hostile clients of the daemon: what is no message, what announces too much, requests that none may make."""

from __future__ import annotations

import os
import socket as sockets
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from splitjoin.engines.golden import GoldenDevice
from splitjoin.link.daemon import client, protocol
from splitjoin.link.daemon.protocol import receive
from splitjoin.link.daemon.server import Server

from ....support.patience import SOON, until
from ....support.scenarios import SCENARIOS
from .conftest import serving, states

BAND = next(scenario for scenario in SCENARIOS if scenario.name == "band-rows-17")


@pytest.fixture
def raw(shared: Server) -> Iterator[sockets.socket]:
    with sockets.socket(sockets.AF_UNIX) as socket:
        socket.settimeout(SOON)
        socket.connect(str(shared.path))
        yield socket


def refused(socket: sockets.socket) -> str:
    """The text of the error that came, after which the connection must be closed."""
    reply = receive(socket)
    assert reply is not None
    with suppress(ConnectionResetError):  # where the daemon had not read all
        assert receive(socket) is None
    return str(reply.header["error"]["text"])


@pytest.mark.parametrize(("data", "message"), [
    (b"GET / HTTP/1.1\r\n\r\n", "a message must begin with"),
    (b"SJD\x01\xff\xff\xff\xff", "the header of a message must have at most"),
    (b"SJD\x01\x02\0\0\0[]", "the header of a message must be an object"),
])
def test_what_is_no_message_ends_the_connection(raw: sockets.socket, shared: Server, data: bytes, message: str,
                                                ) -> None:
    raw.sendall(data)
    assert message in refused(raw)
    assert shared.status()["health"] == "ok"


def test_announced_bytes_take_no_memory(shared: Server) -> None:
    """Of 40 bytes each, six connections announce 1.5 GiB."""
    message = b'{"op": "push", "payloads": [268435456]}'
    with ExitStack() as opened:
        before = resident()
        for _ in range(6):
            socket = opened.enter_context(sockets.socket(sockets.AF_UNIX))
            socket.connect(str(shared.path))
            socket.sendall(b"SJD\x01" + len(message).to_bytes(4, "little") + message)
        until(lambda: shared.budget.free < 256 << 20)
        assert resident() - before < 64 << 20
    until(lambda: shared.budget.free == shared.budget.total)


def resident() -> int:
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_client_that_stops_within_a_message_is_let_go(tmp_path: Path) -> None:
    """It neither sends the rest, nor takes replies; one that is idle between messages stays."""
    lines: list[str] = []
    with (serving(tmp_path, [GoldenDevice()], log=lines.append, message_seconds=0.2) as server,
          ExitStack() as opened):
        idle, half, deaf = (opened.enter_context(sockets.socket(sockets.AF_UNIX)) for _ in range(3))
        for socket in (idle, half, deaf):
            socket.connect(str(server.path))
        half.sendall(b"SJD\x01\x05")
        half.settimeout(SOON)
        assert "each MiB of a message must arrive within 0.2 s, but only 5 of 8 bytes did" in refused(half)
        deaf.setblocking(False)
        status = b'{"op": "status", "payloads": []}'
        with suppress(BlockingIOError, ConnectionError):  # its buffer is full, or the daemon has let it go
            while True:
                deaf.sendall(b"SJD\x01" + len(status).to_bytes(4, "little") + status)
        until(lambda: server.status()["connections"] == 1)
        idle.settimeout(SOON)
        protocol.send(idle, {"op": "status"})
        assert receive(idle) is not None
    assert any("a connection failed: TimeoutError" in line for line in lines)


QUERY = client.encode_query(BAND.query())


@pytest.mark.parametrize(("header", "message"), [
    ({}, "op in a request must be str"),
    ({"op": 3}, "op in a request must be str"),
    ({"op": "exec"}, "a request must be one that the daemon knows, not 'exec'"),
    ({"op": "push"}, "the connection must have a session for this request"),
    ({"op": "close"}, "the connection must have a session for this request"),
    ({"op": "open"}, "a query that comes from another process must have an object"),
    ({"op": "open", "query": QUERY}, "wait in a request must be float or int"),
    ({"op": "open", "query": QUERY, "wait": -1}, "wait must be from 0 to 86400 seconds"),
    ({"op": "open", "query": QUERY, "wait": 1e9}, "wait must be from 0 to 86400 seconds"),
    ({"op": "open", "query": QUERY, "wait": 0, "device": 3}, "device in a request must be str or null"),
    ({"op": "open", "query": QUERY, "wait": 0, "key": "k" * 1001}, "key must have at most 1000 characters"),
    ({"op": "open", "query": QUERY | {"condition": [["Col"]]}, "wait": 0}, "must have Col with 5 fields there"),
    ({"op": "attach", "query": QUERY}, "a request to attach must have a key and a token"),
])
def test_hostile_requests_end_the_connection(raw: sockets.socket, shared: Server, header: dict[str, Any],
                                             message: str) -> None:
    protocol.send(raw, header)
    assert message in refused(raw)
    assert set(states(shared).values()) == {"free"}


def test_a_condition_that_no_front_end_makes_fails_for_its_client_alone(raw: sockets.socket, shared: Server) -> None:
    nodes = [*QUERY["condition"], ["Call", ["Exact"], "eval", ["Int", 32, True], [0]]]
    nodes.append(["IsNull", ["Bool"], len(nodes) - 1])
    for query, refuses in ((QUERY | {"condition": nodes}, True), (QUERY, False)):
        protocol.send(raw, {"op": "open", "query": query, "wait": SOON})
        reply = receive(raw)
        assert reply is not None
        assert ("error" in reply.header) == refuses, reply.header
    protocol.send(raw, {"op": "close"})
    assert receive(raw) is not None
    assert set(states(shared).values()) == {"free"}
    assert shared.status()["health"] == "ok"


@pytest.mark.parametrize(("header", "message"), [
    ({"op": "open", "query": QUERY, "wait": 0}, "a connection must have one session at a time"),
    ({"op": "push"}, "arrivals must have 3 payloads"),
    ({"op": "detach"}, "a request to detach must have a token"),
    ({"op": "mask", "cores": "all"}, "cores in a request must be list"),
])
def test_hostile_requests_end_the_session(raw: sockets.socket, shared: Server, header: dict[str, Any], message: str,
                                          ) -> None:
    protocol.send(raw, {"op": "open", "query": QUERY, "wait": SOON})
    assert receive(raw) is not None
    protocol.send(raw, header)
    assert message in refused(raw)
    until(lambda: set(states(shared).values()) == {"free"})
