"""Leases: the table of devices with the clients that use them, the queue of waiting clients, and detached sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from splitjoin.base import threads
from splitjoin.base.errors import DeviceError
from splitjoin.engines.device import Device, Items, Session

#: Seconds between two checks that a waiting client is still connected.
_LOOK_SECONDS = 0.2


class ClientDisconnected(Exception):
    """Raised when a client disconnects while it waits for a device."""


@dataclass(frozen=True)
class Wanted:
    """A client's requirements of a device: a name ("sim"), an ``address`` ("sim:0"), both, or None for any."""

    device: str | None = None
    address: str | None = None

    def __str__(self) -> str:
        return self.address or self.device or "device"

    def suits(self, unit: LeasedDevice) -> bool:
        """True if the client can use ``unit``."""
        return self.device in (None, unit.device.name) and self.address in (None, unit.address)


@dataclass(frozen=True)
class Holder:
    """A client: its process, and the name that it gave itself ("")."""

    pid: int
    name: str = ""

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.name})" if self.name else "")


@dataclass
class LeaseCounts:
    """Counters of a device since the daemon started.

    Attributes:
        leases: Leases of the device.
        waits: Leases for which the client had to wait.
        wait_seconds: The total seconds of these waits.
        sessions: Sessions that clients opened.
        attached: Detached sessions that clients attached to.
        taken: Detached sessions that ended because another client needed the device.
        expired: Detached sessions that ended by the idle time-out.
        discarded: Sessions that ended because their client disconnected, or continued without them.
        pushes: Push requests.
        tuples: The tuples in them.
        items: Result items sent to clients.
        seconds: Seconds in calls of the device.
        failures: Calls that ended with an error.
    """

    leases: int = 0
    waits: int = 0
    wait_seconds: float = 0.0
    sessions: int = 0
    attached: int = 0
    taken: int = 0
    expired: int = 0
    discarded: int = 0
    pushes: int = 0
    tuples: int = 0
    items: int = 0
    seconds: float = 0.0
    failures: int = 0


@dataclass
class LeasedDevice:
    """One device of the daemon.

    Attributes:
        address: Its name in the daemon, such as "sim:0".
        device: The device itself.
        counts: Its counters.
        lease: Its lease; None if it is free.
        failure: The error by which the device failed in its last call; empty if it did not fail.
    """

    address: str
    device: Device
    counts: LeaseCounts = field(default_factory=LeaseCounts)
    lease: Lease | None = None
    failure: str = ""


@dataclass
class Lease:
    """The exclusive use of a unit by one client, with its session.

    Attributes:
        unit: The device.
        holder: The client.
        since: The time at which the lease, or the last attachment, began, by the leases' clock.
        session: The session of the device; None until it is open.
        query: The query in JSON, as the client sent it; a client that attaches must send the same.
        pending: Result items that the device returned and the client has not fetched.
        key, token: The client's names for the session, and for its state when it was detached.
        detached: The time at which the client detached the session, by the leases' clock; None while a client uses it.
    """

    unit: LeasedDevice
    holder: Holder
    since: float
    session: Session | None = None
    query: object = None
    pending: list[Items] = field(default_factory=list)
    key: str | None = None
    token: str | None = None
    detached: float | None = None


@dataclass(eq=False)
class _Ticket:
    """A waiting client's entry in the queue; ``lease`` is set when it gets a unit."""

    wanted: Wanted
    holder: Holder
    key: str | None
    lease: Lease | None = None


class Leases:
    """Leases ``units`` to clients, each unit to one client at a time, first come, first served. Thread-safe.

    ``idle_timeout``: for how many seconds a detached session is kept. ``clock``: returns the time in seconds.
    """

    def __init__(self, units: Sequence[LeasedDevice], *, idle_timeout: float,
                 clock: Callable[[], float] = threads.monotonic):
        self.units = tuple(units)
        self._idle_timeout, self._clock = idle_timeout, clock
        self._changed = threads.condition()
        self._waiting: list[_Ticket] = []
        self._stopped = False

    def acquire(self, wanted: Wanted, holder: Holder, *, wait: float, key: str | None = None,
                alive: Callable[[], bool] = lambda: True) -> Lease:
        """Lease a unit that suits ``wanted``; wait for one for at most ``wait`` seconds (of real time).

        Ends a detached session with the same ``key``. Raises `DeviceError` if no unit suits, if none becomes free in
        time, or if the daemon stops; `ClientDisconnected` if ``alive`` returns False meanwhile.
        """
        began = threads.monotonic()
        with self._changed:
            if not any(map(wanted.suits, self.units)):
                raise DeviceError(f"the daemon has no {wanted}; its devices are "
                                  f"{', '.join(unit.address for unit in self.units)}")
            self._end_detached(key)
            ticket = _Ticket(wanted, holder, key)
            self._waiting.append(ticket)
            try:
                self._dispatch()
                waited = ticket.lease is None
                while ticket.lease is None:
                    left = began + wait - threads.monotonic()
                    if self._stopped:
                        raise DeviceError("the daemon is about to end; start it again, and open a new session")
                    if not alive():
                        raise ClientDisconnected
                    if left <= 0:
                        raise DeviceError(self._busy(wanted, wait))
                    self._changed.wait(min(left, _LOOK_SECONDS))
            finally:
                if ticket.lease is None:
                    self._waiting.remove(ticket)
            if waited:
                ticket.lease.unit.counts.waits += 1
                ticket.lease.unit.counts.wait_seconds += threads.monotonic() - began
            return ticket.lease

    def release(self, lease: Lease, *, discarded: bool = False) -> None:
        """End ``lease``: close its session, and free its unit. ``discarded``: True if the client did not ask for it."""
        with self._changed:
            lease.unit.counts.discarded += discarded
            self._end(lease)
            self._dispatch()

    def detach(self, lease: Lease, token: str) -> None:
        """Keep the session of ``lease`` for a client that attaches with its key and ``token``.

        Ends an older detached session of the same key. Raises `DeviceError` if the session was opened without a key.
        """
        if lease.key is None:
            raise DeviceError("a session must have a key to be detached; open it with key=…")
        with self._changed:
            self._end_detached(lease.key)
            lease.token, lease.detached = token, self._clock()
            self._dispatch()

    def attach(self, wanted: Wanted, holder: Holder, *, key: str, token: str, query: object) -> Lease | None:
        """Give ``holder`` the lease of the session detached under ``key``, and return it.

        Returns None if no unit that suits ``wanted`` has such a session. Ends the session, and returns None, if its
        token or its query differs: the client has continued without it.
        """
        with self._changed:
            lease = next((one for one in self._detached() if one.key == key and wanted.suits(one.unit)), None)
            if lease is None:
                return None
            counts = lease.unit.counts
            if (lease.token, lease.query) != (token, query):
                counts.discarded += 1
                self._end(lease)
                self._dispatch()
                return None
            lease.holder, lease.since, lease.detached, lease.token = holder, self._clock(), None, None
            counts.leases += 1
            counts.attached += 1
            return lease

    def expire(self) -> None:
        """End the sessions that were detached for longer than the idle time-out."""
        with self._changed:
            now = self._clock()
            for lease in self._detached():
                if now - (lease.detached or 0) >= self._idle_timeout:
                    lease.unit.counts.expired += 1
                    self._end(lease)
            self._dispatch()

    def stop(self) -> None:
        """End detached sessions, and wake waiting clients, which get an error."""
        with self._changed:
            self._stopped = True
            for lease in self._detached():
                self._end(lease)
            self._changed.notify_all()

    def status(self) -> dict[str, Any]:
        """The state and the counters of each unit, and how many clients wait, as plain values."""
        with self._changed:
            now = self._clock()
            return {"devices": [self._unit_status(unit, now) for unit in self.units], "waiting": len(self._waiting)}

    def _unit_status(self, unit: LeasedDevice, now: float) -> dict[str, Any]:
        lease = unit.lease
        found: dict[str, Any] = {
            "address": unit.address, "device": unit.device.name,
            "state": "free" if lease is None else "leased" if lease.detached is None else "detached",
            "health": f"failed: {unit.failure}" if unit.failure else "ok", "session": None}
        if lease is not None:
            since = lease.since if lease.detached is None else lease.detached
            found["session"] = {"holder": str(lease.holder), "key": lease.key, "token": lease.token,
                                "seconds": round(now - since, 3)}
        return found | {"counters": {name: round(n, 6) for name, n in asdict(unit.counts).items()}}

    def _dispatch(self) -> None:
        """Lease units to waiting clients, in the order in which they asked."""
        for ticket in list(self._waiting):
            unit = None if self._stopped else self._choose(ticket.wanted)
            if unit is not None:
                if unit.lease is not None:
                    unit.counts.taken += 1
                    self._end(unit.lease)
                unit.counts.leases += 1
                unit.lease = ticket.lease = Lease(unit, ticket.holder, self._clock(), key=ticket.key)
                self._waiting.remove(ticket)
        self._changed.notify_all()

    def _choose(self, wanted: Wanted) -> LeasedDevice | None:
        """A free unit that suits; else the one whose session was detached first; None if clients use all of them."""
        free = next((unit for unit in self.units if wanted.suits(unit) and unit.lease is None), None)
        detached = [lease for lease in self._detached() if wanted.suits(lease.unit)]
        return free or (min(detached, key=lambda lease: lease.detached or 0).unit if detached else None)

    def _detached(self) -> list[Lease]:
        return [unit.lease for unit in self.units if unit.lease is not None and unit.lease.detached is not None]

    def _end_detached(self, key: str | None) -> None:
        """End the detached session of ``key``: its client has continued without it."""
        for lease in self._detached():
            if key is not None and lease.key == key:
                lease.unit.counts.discarded += 1
                self._end(lease)

    def _end(self, lease: Lease) -> None:
        """Close the session of ``lease``, and free its unit."""
        unit = lease.unit
        try:
            if lease.session is not None:
                lease.session.close()
        except Exception as error:  # a device that cannot even close must not stop the others
            unit.counts.failures += 1
            unit.failure = f"{type(error).__name__}: {error}"
        lease.session = None
        if unit.lease is lease:
            unit.lease = None

    def _busy(self, wanted: Wanted, wait: float) -> str:
        now = self._clock()
        holders = [f"{unit.address} by {unit.lease.holder} for {now - unit.lease.since:.0f} s"
                   for unit in self.units if unit.lease is not None and wanted.suits(unit)]
        return (f"a {wanted} of the daemon must become free within {wait:g} s, but all are leased: "
                f"{', '.join(holders)}; close sessions, wait longer (wait=…), or start the daemon with more devices")
