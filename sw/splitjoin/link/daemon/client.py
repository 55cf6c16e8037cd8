"""The device ``daemon``: leases a device from a daemon on the same machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import CapacityError, DeviceError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Device, Fault, Items, Session, check_inner
from splitjoin.lang.query import Query
from splitjoin.lang.serial import encode_query

from .place import check_peer, default_socket
from .protocol import (
    MAX_PAYLOAD_BYTES,
    Message,
    ProtocolError,
    arrivals_payloads,
    needed_columns,
    raised_error,
    read_items,
    read_latencies,
    receive,
    send,
)

#: Seconds to wait for the reply to a request for status or to stop, and for the daemon to end.
_PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True)
class DaemonDevice(Device):
    """A device that a daemon of the same user owns (``splitjoin daemon``), with the options given to the daemon.

    Attributes:
        socket: The daemon's socket; None for the default one.
        device: The name of the device to lease, such as ``"sim"``; None for any.
        address: The address of the device to lease, such as ``"sim:0"``; None for any.
        wait: Seconds, 0 to 86400, to wait while all suitable devices are leased.
        holder: A name for this client, up to 1000 characters, for the daemon's status and for error messages.
    """

    name: ClassVar[str] = "daemon"
    settles: ClassVar[bool] = True

    socket: str | os.PathLike[str] | None = None
    device: str | None = None
    address: str | None = None
    wait: float = 60.0
    holder: str = ""

    def __post_init__(self) -> None:
        if self.socket is not None and not isinstance(self.socket, (str, os.PathLike)):
            raise DeviceError(f"socket must be a path, or None for the default one, not {self.socket!r}")
        for name in ("device", "address"):
            if not isinstance(value := getattr(self, name), (str, type(None))):
                raise DeviceError(f"{name} must be a text, or None for any, not {value!r}")
        if type(self.wait) not in (int, float) or not 0 <= self.wait <= 86_400:
            raise DeviceError(f"wait must be from 0 to 86400 seconds, not {self.wait!r}")
        if not isinstance(self.holder, str):
            raise DeviceError(f"holder must be a text, not {self.holder!r}")

    def open(self, query: Query, *, key: str | None = None) -> DaemonSession:
        """Lease a device and open a session of ``query`` on it. A session with a ``key`` can be detached.

        The daemon first ends a detached session of the same key. Raises what the device's own `open` raises, and
        `DeviceError` if no daemon listens, or no device becomes free within ``wait`` seconds.
        """
        check_inner(query)
        header = {"op": "open", "query": encode_query(query), "key": key, "wait": self.wait}
        session = self._begun(query, header)
        assert session is not None
        return session

    def attach(self, query: Query, key: str, token: str) -> DaemonSession | None:
        """Attach to the session that was detached under ``key`` with ``token``; None if there is no such session, or no
        daemon.

        If the session of the key has another token or another query, the daemon ends it.
        """
        try:
            return self._begun(query, {"op": "attach", "query": encode_query(query), "key": key, "token": token})
        except NoDaemon:
            return None

    def _begun(self, query: Query, header: Mapping[str, Any]) -> DaemonSession | None:
        connection = ClientConnection(self.socket)
        try:
            reply = connection.ask({**header, "device": self.device, "address": self.address,
                                    "holder": self.holder}).header
            if reply.get("found") is not False:
                return DaemonSession(query, connection, reply, header["key"])
        except BaseException:
            connection.close()
            raise
        connection.close()
        return None


class DaemonSession(Session):
    """A session of a query on a device of the daemon. If its connection fails, it can only be closed.

    Attributes:
        address: The address of its device, such as ``"sim:0"``.
        key: The key under which it was opened, or None.
        max_tuples: The most tuples of a push request.
        max_bytes: The bytes above which tuples are split into two requests.
    """

    max_tuples = 1 << 20
    max_bytes = 64 << 20

    def __init__(self, query: Query, connection: ClientConnection, reply: Mapping[str, Any], key: str | None):
        self.row_limit = reply.get("row_limit")
        self.rotation = reply.get("rotation", 1)
        self._faults: tuple[Fault, ...] = ()
        self.address: str = str(reply.get("address"))
        self.key = key
        self._connection, self._needed = connection, needed_columns(query)

    @property
    def faults(self) -> tuple[Fault, ...]:
        return self._faults

    def push(self, arrivals: Arrivals) -> None:
        rest: Arrivals | None = arrivals
        while rest is not None:
            head, rest = rest.split(self.max_tuples)
            self._push(head)

    def poll(self) -> Items:
        return self._items("poll")

    def flush(self) -> Items:
        return self._items("flush")

    def settle(self) -> Items:
        return self._items("settle")

    def mask(self, cores: Collection[int]) -> None:
        numbers = list(cores)
        for core in numbers:
            if not isinstance(core, int):
                raise DeviceError(f"masked cores must be numbers, not {core!r}")
        self._connection.ask({"op": "mask", "cores": numbers})

    def counters(self) -> dict[str, int]:
        found: dict[str, int] = self._connection.ask({"op": "counters"}).header["value"]
        return found

    def region_counters(self) -> dict[str, npt.NDArray[np.int64]] | None:
        found = self._connection.ask({"op": "region_counters"}).header["value"]
        return None if found is None else {name: np.array(rows, np.int64) for name, rows in found.items()}

    def latencies(self) -> npt.NDArray[np.int64] | None:
        payloads = self._connection.ask({"op": "latencies"}).payloads
        return read_latencies(payloads[0]) if payloads else None

    def plan(self) -> str:
        return str(self._connection.ask({"op": "plan"}).header["value"])

    def detach(self, token: str) -> None:
        """Leave the session in the daemon, and name its state ``token``. This object cannot be used afterwards.

        `DaemonDevice.attach` continues the session, in this process or another process of the same user. The daemon
        closes it after the idle time-out, or when another client needs the device.
        """
        self._connection.ask({"op": "detach", "token": token})
        self._connection.close()

    def close(self) -> None:
        """Close the session; its device is free when this returns. Does nothing after `detach` or a failure."""
        if not self._connection.closed:
            try:
                self._connection.ask({"op": "close"})
            except ProtocolError:
                pass  # the daemon has ended, and the session with it
            finally:
                self._connection.close()

    def _push(self, arrivals: Arrivals) -> None:
        payloads = arrivals_payloads(arrivals, self._needed)
        size = sum(p.size for p in payloads)
        if size > self.max_bytes and len(arrivals) > 1:
            first, second = arrivals.split(len(arrivals) // 2)
            self._push(first)
            assert second is not None
            self._push(second)
            return
        if size > MAX_PAYLOAD_BYTES:
            raise CapacityError(f"a tuple must have at most {MAX_PAYLOAD_BYTES} bytes in the columns of the condition "
                                f"to go to the daemon, but one has {size}; use the device in this process")
        self._connection.ask({"op": "push"}, payloads)

    def _items(self, op: str) -> Items:
        reply = self._connection.ask({"op": op})
        found = [read_items(reply.payloads[0])]
        while reply.header["more"]:
            reply = self._connection.ask({"op": "more"})
            found.append(read_items(reply.payloads[0]))
        self._faults = tuple(Fault(*numbers) for numbers in reply.header.get("faults", ()))
        return found[0] if len(found) == 1 else np.concatenate(found)


class NoDaemon(DeviceError):
    """Nothing listens at the socket."""


class ClientConnection:
    """A connection to the daemon at ``socket`` (None: the default one). Thread-safe.

    Raises `NoDaemon` if nothing listens there, and `DeviceError` if the daemon is another user's.
    """

    def __init__(self, socket: str | os.PathLike[str] | None = None, *, patience: float | None = None):
        self.path = default_socket() if socket is None else Path(socket)
        self._guard = threads.lock()
        self._broken = ""
        self.closed = False
        self._socket = threads.unix_socket()
        self._socket.settimeout(patience)
        try:
            self._socket.connect(os.fspath(self.path))
            check_peer(self._socket)
        except OSError as error:
            self._socket.close()
            raise NoDaemon(f"a daemon must serve {self.path}, but none does ({error.strerror or error}); start one "
                           f"with splitjoin daemon --socket {self.path}") from None
        except BaseException:
            self._socket.close()
            raise

    def ask(self, header: Mapping[str, Any], payloads: Sequence[pa.Buffer] = ()) -> Message:
        """Send a request, and return the reply. Raises the error in the reply, and `DeviceError` if no reply comes."""
        with self._guard:
            if self.closed:
                raise DeviceError(self._broken or "the session of the daemon is closed or detached; open a new one")
            reply = self._exchange(header, payloads)
        if "error" in reply.header:
            raise raised_error(reply.header)
        return reply

    def wait_for_end(self) -> None:
        """Wait until the daemon closes the connection. Raises `DeviceError` if it does not in time."""
        try:
            if receive(self._socket) is None:
                return
        except TimeoutError:
            pass
        except OSError:
            return
        raise DeviceError(f"the daemon at {self.path} must end within {_PATIENCE:g} s, but has not; end its process")

    def close(self) -> None:
        """Close the connection; the daemon then ends its session, unless that is detached."""
        self.closed = True
        self._socket.close()

    def _exchange(self, header: Mapping[str, Any], payloads: Sequence[pa.Buffer]) -> Message:
        try:
            with suppress(ConnectionError):  # the daemon may have said why before it closed the connection
                send(self._socket, header, payloads)
            reply = receive(self._socket)
            if reply is None:
                raise ProtocolError("the connection ended")
            return reply
        except (OSError, ProtocolError) as error:
            self._broken = (f"the daemon at {self.path} must answer, but did not ({error}), and may have ended; open a "
                            f"new session, which needs the tuples of the windows again")
            self.close()
            raise ProtocolError(self._broken) from error
        except BaseException:  # an interrupt: the position in the stream of messages is unknown
            self._broken = "the session of the daemon was interrupted within a request; open a new one"
            self.close()
            raise


def daemon_status(socket: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """The result of `splitjoin.link.daemon.server.Server.status` of the daemon at ``socket`` (None: the default one).

    Raises `DeviceError` if no daemon listens there.
    """
    with closing(ClientConnection(socket, patience=_PATIENCE)) as connection:
        return dict(connection.ask({"op": "status"}).header)


def daemon_addresses(socket: str | os.PathLike[str] | None = None, device: str | None = None) -> list[str]:
    """The addresses of the daemon's devices: all, or those named ``device``. Raises `DeviceError` without a daemon."""
    return [unit["address"] for unit in daemon_status(socket)["devices"] if device in (None, unit["device"])]


def stop_daemon(socket: str | os.PathLike[str] | None = None) -> None:
    """End the daemon at ``socket``, and wait until another one can start. Raises `DeviceError` without a daemon."""
    with closing(ClientConnection(socket, patience=_PATIENCE)) as connection:
        connection.ask({"op": "stop"})
        connection.wait_for_end()
