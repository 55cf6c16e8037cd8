"""The daemon's server: accepts connections, and serves each of them in a thread of its own.

A connection has at most one lease. The lease ends with the connection, unless the client has detached its session.
"""

from __future__ import annotations

import os
import socket as sockets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError, SplitJoinError, first_line
from splitjoin.engines.device import ITEM, Device, Items, Session
from splitjoin.lang.query import Query
from splitjoin.lang.serial import decode_query

from .budget import Budget
from .leases import ClientDisconnected, Holder, Lease, LeasedDevice, Leases, Wanted
from .place import check_peer, listen, lock_socket
from .protocol import (
    Message,
    ProtocolError,
    error_header,
    items_payload,
    latencies_payload,
    option,
    read_arrivals,
    receiving,
    send,
)

#: The most connections at a time.
MAX_CONNECTIONS = 256
#: The most characters of a key, a token or a holder's name.
MAX_NAME = 1000
#: The most seconds that a client may wait for a device.
MAX_WAIT = 86_400.0
#: Seconds between two checks for expired sessions and for a request to stop.
_LOOK_SECONDS = 0.2
#: Seconds in which an error that ends a connection must have gone to its client.
_REFUSE_SECONDS = 5.0
#: The most bytes of all messages together that are being read or answered.
_BUDGET = 1 << 30


class Server:
    """Owns ``devices``, and leases them over ``socket`` until `stop`.

    Each device runs one session at a time. Devices of the same name get addresses with numbers from 0: "sim:0",
    "sim:1". ``idle_timeout``: for how many seconds a detached session is kept. ``log`` is called with a line of text
    for each event. ``clock`` returns the time in seconds. ``max_connections``: that are open together. ``max_items``:
    result items in a reply; a client asks again for more. ``message_seconds``: in which each MiB of a message must have
    come from a client or gone to it. ``stop_seconds``: for which a stopping daemon waits for running calls of devices.

    The constructor locks the socket and listens; it raises `DeviceError` if another daemon has the socket, or the
    socket cannot be made. `serve` must be called, even after `stop`, as it removes the socket and releases the lock.
    """

    def __init__(self, devices: Sequence[Device], socket: Path, *, idle_timeout: float = 60.0,
                 log: Callable[[str], None] = lambda line: None, clock: Callable[[], float] = threads.monotonic,
                 max_connections: int = MAX_CONNECTIONS, max_items: int = 1 << 20, message_seconds: float = 60.0,
                 stop_seconds: float = 5.0):
        names = [device.name for device in devices]
        units = [LeasedDevice(f"{name}:{names[:n].count(name)}", device)
                 for n, (name, device) in enumerate(zip(names, devices, strict=True))]
        self.path = socket = socket.absolute()
        self.leases = Leases(units, idle_timeout=idle_timeout, clock=clock)
        self._log, self._began = log, threads.monotonic()
        self.max_items, self.message_seconds = max_items, message_seconds
        self._max_connections, self._stop_seconds = max_connections, stop_seconds
        self.budget = Budget(_BUDGET)
        self._stopping, self._stopped = threads.event(), threads.event()
        self._connections: dict[sockets.socket, Thread] = {}
        self._guard = threads.lock()
        self._lock = lock_socket(socket)
        try:
            self._listener = listen(socket)
        except BaseException:
            self._lock.close()
            raise
        self._listener.settimeout(_LOOK_SECONDS)
        log(f"serves {', '.join(unit.address for unit in units)} at {socket}")

    def serve(self) -> bool:
        """Serve clients until `stop`. Returns False if a call of a device still runs; its thread is left behind."""
        try:
            while not self._stopping.is_set():
                self._accept()
                self.leases.expire()
        finally:
            clean = self._end()
        return clean

    @property
    def stopping(self) -> bool:
        """True from `stop` on."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Make `serve` return soon; may be called from any thread or signal handler."""
        self._stopping.set()

    def status(self) -> dict[str, Any]:
        """The daemon's process, age in seconds, health, connections and devices, as plain values."""
        found = self.leases.status()
        failed = [device["address"] for device in found["devices"] if device["health"] != "ok"]
        with self._guard:
            connections = len(self._connections)
        return {"pid": os.getpid(), "socket": str(self.path), "seconds": round(threads.monotonic() - self._began, 3),
                "health": f"failed: {', '.join(failed)}" if failed else "ok", "connections": connections, **found}

    def _accept(self) -> None:
        try:
            socket, _ = self._listener.accept()
        except TimeoutError:
            return
        except OSError as error:  # no more file descriptors, for example: others may become free
            self._log(f"no connection can be accepted: {error.strerror or error}")
            self._stopping.wait(_LOOK_SECONDS)
            return
        thread = threads.thread(self._serve, (socket,), name="splitjoin daemon connection")
        with self._guard:
            full = len(self._connections) >= self._max_connections
            if not full:
                self._connections[socket] = thread
        if full:
            _refuse(socket, DeviceError(f"the daemon must have at most {self._max_connections} connections; close "
                                        f"some"))
            socket.close()
        else:
            thread.start()

    def _serve(self, socket: sockets.socket) -> None:
        with socket:
            try:
                connection = Connection(self, socket, check_peer(socket), self._log)
                try:
                    connection.run()
                finally:
                    connection.end()
                if connection.asked_to_stop:
                    self._stopped.wait()  # the client sees the end of the connection when the socket is free
            except ProtocolError as error:
                self._log(f"a client sent no message: {error}")
                _refuse(socket, error)
            except Exception as error:  # of one client: the others go on
                self._log(f"a connection failed: {type(error).__name__}: {error}")
                _refuse(socket, error)
            finally:
                with self._guard:
                    del self._connections[socket]

    def _end(self) -> bool:
        """Remove the socket, release its lock, and end all connections. Returns False if a thread still runs."""
        self._stopping.set()
        self._listener.close()
        self.path.unlink(missing_ok=True)
        self.leases.stop()
        with self._guard:
            connections = dict(self._connections)
        for socket in connections:
            with suppress(OSError):
                socket.shutdown(sockets.SHUT_RD)  # its thread sees the end when it reads next
        deadline = threads.monotonic() + self._stop_seconds
        self._lock.close()
        self._stopped.set()
        for thread in connections.values():
            thread.join(max(deadline - threads.monotonic(), 0))
        self._log("ended")
        return not any(thread.is_alive() for thread in connections.values())


class Connection:
    """A connection of a client: handles its requests, one after another."""

    def __init__(self, server: Server, socket: sockets.socket, pid: int, log: Callable[[str], None]):
        self._server, self._leases, self._socket = server, server.leases, socket
        self._pid, self._log = pid, log
        self._lease: Lease | None = None
        self._query: Query | None = None
        self.asked_to_stop = False

    def run(self) -> None:
        """Answer requests until the client closes the connection, or sends anything but a request."""
        while not self.asked_to_stop:
            with receiving(self._socket, within=self._server.message_seconds, budget=self._server.budget,
                           waits=lambda: not self._server.stopping) as message:
                if message is None or not self._replied(message):
                    return

    def _replied(self, message: Message) -> bool:
        """Answer a request; False if the connection must end."""
        self._socket.settimeout(None)
        try:
            header, payloads = self._answer(message)
        except SplitJoinError as error:
            self._send(error_header(error))
            if isinstance(error, ProtocolError):
                self._log(f"process {self._pid} sent no request: {error}")
                return False
        except ClientDisconnected:
            return False
        else:
            self._send(header, payloads)
        return True

    def _send(self, header: Mapping[str, Any], payloads: Sequence[Any] = ()) -> None:
        """Send a reply. Raises TimeoutError if the client does not take it."""
        self._socket.settimeout(self._server.message_seconds)
        send(self._socket, header, payloads)
        self._socket.settimeout(None)

    def end(self) -> None:
        """End the session that the connection still has, as its state is unknown."""
        if self._lease is not None:
            self._log(f"{self._lease.unit.address}: {self._lease.holder} went away")
            self._leases.release(self._lease, discarded=True)
            self._lease = None

    def _answer(self, message: Message) -> tuple[dict[str, Any], list[Any]]:
        header = message.header
        match option(header, "op", str):
            case "status":
                return self._server.status(), []
            case "stop":
                self._server.stop()
                self.asked_to_stop = True
                return {}, []
            case "open":
                return self._open(header), []
            case "attach":
                return self._attach(header), []
            case "push":
                lease, session, query = self._session()
                arrivals = read_arrivals(message.payloads, query)
                lease.unit.counts.pushes += 1
                with self._device(lease):
                    session.push(arrivals)
                lease.unit.counts.tuples += len(arrivals)
                return {}, []
            case ("poll" | "settle" | "flush") as op:
                lease, session, _ = self._session()
                call = {"poll": session.poll, "settle": session.settle, "flush": session.flush}[op]
                with self._device(lease):
                    lease.pending.append(call())
                return self._items(lease)
            case "more":
                return self._items(self._session()[0])
            case "mask":
                lease, session, _ = self._session()
                cores = option(header, "cores", list)
                with self._device(lease):
                    session.mask(cores or [])
                return {}, []
            case ("counters" | "region_counters" | "latencies" | "plan") as op:
                return self._asked(op)
            case "detach":
                return self._detach(header), []
            case "close":
                lease, _, _ = self._session()
                self._lease = None
                self._log(f"{lease.unit.address}: {lease.holder} closed its session")
                self._leases.release(lease)
                return {}, []
            case op:
                raise ProtocolError(f"a request must be one that the daemon knows, not {str(op)[:80]!r}")

    def _open(self, header: Mapping[str, Any]) -> dict[str, Any]:
        query = self._new_query(header)
        wait = option(header, "wait", float, int)
        if wait is None or not 0 <= wait <= MAX_WAIT:
            raise ProtocolError(f"wait must be from 0 to {MAX_WAIT:g} seconds, not {wait}")
        lease = self._lease = self._leases.acquire(self._wanted(header), self._holder(header), wait=float(wait),
                                                   key=_name(header, "key"), alive=self._alive)
        try:
            with self._device(lease):
                lease.session = lease.unit.device.open(query)
        except BaseException:
            self._lease = None
            self._leases.release(lease)
            raise
        lease.unit.counts.sessions += 1
        lease.query, self._query = header["query"], query
        self._log(f"{lease.unit.address}: {lease.holder} opened a session")
        return _opened(lease)

    def _attach(self, header: Mapping[str, Any]) -> dict[str, Any]:
        query = self._new_query(header)
        key, token = _name(header, "key"), _name(header, "token")
        if key is None or token is None:
            raise ProtocolError("a request to attach must have a key and a token")
        lease = self._leases.attach(self._wanted(header), self._holder(header), key=key, token=token,
                                    query=header["query"])
        if lease is None:
            return {"found": False}
        self._lease, self._query = lease, query
        self._log(f"{lease.unit.address}: {lease.holder} came back to the session {key!r}")
        return {"found": True, **_opened(lease)}

    def _detach(self, header: Mapping[str, Any]) -> dict[str, Any]:
        token = _name(header, "token")
        if token is None:
            raise ProtocolError("a request to detach must have a token")
        lease, _, _ = self._session()
        self._leases.detach(lease, token)
        self._lease = None
        self._log(f"{lease.unit.address}: {lease.holder} detached the session {lease.key!r}")
        return {}

    def _asked(self, op: str) -> tuple[dict[str, Any], list[Any]]:
        lease, session, _ = self._session()
        with self._device(lease):
            match op:
                case "counters":
                    return {"value": {name: int(n) for name, n in session.counters().items()}}, []
                case "region_counters":
                    found = session.region_counters()
                    return {"value": found and {name: array.tolist() for name, array in found.items()}}, []
                case "latencies":
                    cycles = session.latencies()
                    return {}, [] if cycles is None else [latencies_payload(cycles)]
            return {"value": session.plan()}, []

    def _items(self, lease: Lease) -> tuple[dict[str, Any], list[Any]]:
        """A reply with the pending items of ``lease``, at most as many as a reply may hold."""
        pending: Items = np.concatenate([np.empty(0, ITEM), *lease.pending])
        items, rest = np.split(pending, [self._server.max_items])
        lease.pending = [rest] if len(rest) else []
        lease.unit.counts.items += len(items)
        faults = [list(astuple(fault)) for fault in lease.session.faults] if lease.session is not None else []
        return {"more": bool(lease.pending), **({"faults": faults} if faults else {})}, [items_payload(items)]

    def _new_query(self, header: Mapping[str, Any]) -> Query:
        if self._lease is not None:
            raise ProtocolError("a connection must have one session at a time; close or detach the other one first")
        try:
            return decode_query(header.get("query"))
        except SplitJoinError as error:
            raise ProtocolError(str(error)) from None

    def _session(self) -> tuple[Lease, Session, Query]:
        if self._lease is None or self._lease.session is None or self._query is None:
            raise ProtocolError("the connection must have a session for this request; open one first")
        return self._lease, self._lease.session, self._query

    @contextmanager
    def _device(self, lease: Lease) -> Iterator[None]:
        """Context of a call of the device: counts time and failures, and turns foreign errors into `DeviceError`."""
        began = threads.monotonic()
        unit = lease.unit
        try:
            yield
            unit.failure = ""
        except SplitJoinError as error:
            unit.counts.failures += 1
            # Errors of other classes are the client's fault, not the device's.
            unit.failure = first_line(error) if isinstance(error, DeviceError) else ""
            raise
        except Exception as error:
            unit.counts.failures += 1
            unit.failure = f"{type(error).__name__}: {first_line(error)}"
            self._log(f"{unit.address} failed: {unit.failure}")
            raise DeviceError(f"the device {unit.address} of the daemon failed: {unit.failure}; open a new "
                              f"session") from error
        finally:
            unit.counts.seconds += threads.monotonic() - began

    def _alive(self) -> bool:
        """True until the client, which waits for a reply, closes the connection."""
        try:
            return bool(self._socket.recv(1, sockets.MSG_PEEK | sockets.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _holder(self, header: Mapping[str, Any]) -> Holder:
        return Holder(self._pid, _name(header, "holder") or "")

    def _wanted(self, header: Mapping[str, Any]) -> Wanted:
        return Wanted(_name(header, "device"), _name(header, "address"))


def _opened(lease: Lease) -> dict[str, Any]:
    assert lease.session is not None
    return {"address": lease.unit.address, "row_limit": lease.session.row_limit,
            "rotation": lease.session.rotation}


def _name(header: Mapping[str, Any], name: str) -> str | None:
    found = option(header, name, str, None)
    if found is not None and len(found) > MAX_NAME:
        raise ProtocolError(f"{name} must have at most {MAX_NAME} characters, not {len(found)}")
    return found


def _refuse(socket: sockets.socket, error: Exception) -> None:
    """Send the client the error that ends its connection, if it is still connected."""
    reply = error if isinstance(error, SplitJoinError) else DeviceError(f"the daemon failed: {type(error).__name__}")
    with suppress(OSError):
        socket.settimeout(_REFUSE_SECONDS)
        send(socket, error_header(reply))
