"""Device sessions that live on between the micro-batches of a streaming join.

A session that is kept has the tuples of the windows already, so a micro-batch pushes its new tuples only. It is a
cache: it is used if its token is that of the version from which the micro-batch goes on, and filled anew from the state
otherwise. A session in this process belongs to the Python worker; a session of a daemon is detached between the
micro-batches, so that another client can have the device meanwhile.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from splitjoin.base.errors import CapacityError, SplitJoinError
from splitjoin.circuit.lowering import longest_range, time_bits_for
from splitjoin.engines.arrival import Arrivals, interleave
from splitjoin.engines.device import Device, Session, pairs
from splitjoin.engines.gpu import GpuDevice
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.link.daemon.client import DaemonDevice, DaemonSession
from splitjoin.rows.device_times import widened, within_windows

from .rows import Rows

Numbers = npt.NDArray[np.int64]
Pairs = tuple[Numbers, Numbers]

#: Arrivals that are given to the device at once, so that their results are in memory at the same time.
_SLICE = 1 << 17
#: Sessions that a Python worker keeps, and the most micro-batches for which one that was lost is not opened again.
_MOST_KEPT, _LONGEST_PAUSE = 8, 64


def in_slices(arrivals: Arrivals) -> Iterator[tuple[Arrivals, bool]]:
    """``arrivals`` (one at least) in slices, with True for the last one."""
    rest: Arrivals | None = arrivals
    while rest is not None:
        part, rest = rest.split(_SLICE)
        yield part, rest is None


class KeptSession:
    """A session of ``device`` with the tuples that it may still pair, in the order in which they were pushed.

    A device needs event times that do not decrease. A tuple that comes after younger ones gets the time of the youngest
    one instead. ``slack`` is the most by which that may change a time: the windows of the session are longer by so
    much, and its results are checked by the true times.

    Attributes:
        token: The version of the state whose tuples the session has.
        pushed: The number of tuples that were pushed by `fill` and `join`.
    """

    def __init__(self, query: Query, device: Device, key: str, slack: int, session: Session):
        self._query, self._device, self._key, self.slack = query, device, key, slack
        self._session: Session | None = session
        self._rows: dict[Side, Rows] = {}
        self._times: dict[Side, Numbers] = {}  # as the device has them
        self._first = dict.fromkeys(SIDES, 0)  # session's row ids of the first of `_rows`
        self._last: int | None = None
        self.token = ""
        self.pushed = 0
        self._counted: dict[str, int] = {}

    @classmethod
    def opened(cls, query: Query, device: Device, key: str, slack: int) -> KeptSession:
        """A session without tuples."""
        wide = widened(query, slack)
        return cls(query, device, key, slack,
                   device.open(wide, key=key) if isinstance(device, DaemonDevice) else device.open(wide))

    @classmethod
    def resumed(cls, query: Query, device: Device, key: str, token: str,
                stored: Mapping[Side, Rows]) -> KeptSession | None:
        """The session that another process has detached with ``token``, a version's; None if there is none.

        ``stored``: the live tuples of the version, in the order in which they were pushed.
        """
        if not isinstance(device, DaemonDevice):
            return None
        session = device.attach(widened(query, 0), key, token)
        if session is None:
            return None
        resumed = cls(query, device, key, 0, session)
        counters = session.counters()
        for side in SIDES:
            resumed._rows[side], resumed._times[side] = stored[side], stored[side].ts
            resumed._first[side] = counters[f"tuples_{side}"] - len(stored[side])
        resumed._last = max((int(stored[side].ts[-1]) for side in SIDES if len(stored[side])), default=None)
        resumed._counted = counters
        return resumed

    def attached(self, device: Device) -> bool:
        """Attach to the session again, if it was detached. False if it is lost, or its device is not ``device``."""
        if isinstance(device, DaemonDevice | GpuDevice) and device != self._device:  # Spark has given another address
            return False
        if isinstance(device, DaemonDevice):
            self._session = device.attach(widened(self._query, self.slack), self._key, self.token)
        return self._session is not None

    def displaced(self, new: Mapping[Side, Rows]) -> int:
        """The ticks by which the earliest of the tuples ``new``, by time, is before the last tuple of the session."""
        first = min((int(rows.ts[0]) for rows in new.values() if len(rows)), default=None)
        return 0 if first is None or self._last is None else max(self._last - first, 0)

    def has_room(self, new: Mapping[Side, Rows]) -> bool:
        """True if the session can number the tuples ``new`` too."""
        limit = None if self._session is None else self._session.row_limit
        return limit is None or all(
            self._first[side] + len(self._rows.get(side, ())) + len(new[side]) <= limit for side in SIDES)

    def fill(self, stored: Mapping[Side, Rows]) -> None:
        """Push tuples that have met each other before."""
        for _ in self.join(stored):
            continue
        self.counted()

    def join(self, new: Mapping[Side, Rows]) -> Iterator[tuple[Rows, Rows, Numbers, Numbers]]:
        """Push the tuples ``new``, by time, and yield the pairs that they complete: tuples of R, of S, and positions.

        The pairs are those of the longer windows, without those that are too far apart by their true times.
        """
        assert self._session is not None
        times = {side: new[side].ts if self._last is None else np.maximum(new[side].ts, self._last) for side in SIDES}
        rows = {}
        for side in SIDES:
            both = Rows.concat([*([self._rows[side]] if side in self._rows else []), new[side]])
            rows[side] = self._rows[side] = Rows(both.table.combine_chunks(), both.ts, both.ids)
            self._times[side] = np.concatenate([self._times.get(side, np.empty(0, np.int64)), times[side]])
        n = sum(map(len, times.values()))
        self.pushed += n
        if not n:
            return
        r, s = times["r"], times["s"]
        arrivals = interleave(new["r"].table, new["s"].table, (r, s), np.searchsorted(s, r, side="left"))
        assert arrivals.ts is not None
        self._last = int(arrivals.ts[-1])
        for part, last in in_slices(arrivals):
            self._session.push(part)
            r_at, s_at = pairs(self._session.settle() if last else self._session.poll())
            r_at, s_at = r_at - self._first["r"], s_at - self._first["s"]
            if self.slack:
                near = within_windows(self._query, rows["r"].ts[r_at], rows["s"].ts[s_at])
                r_at, s_at = r_at[near], s_at[near]
            yield rows["r"], rows["s"], r_at, s_at
        self._trim()

    def counted(self) -> dict[str, int]:
        """What the device's counters have counted since the last call."""
        assert self._session is not None
        before, self._counted = self._counted, self._session.counters()
        return {name: n - before.get(name, 0) for name, n in self._counted.items()}

    def detach(self, token: str, *, resumable: bool) -> None:
        """Leave the session, which has the tuples of the version ``token``, until `attached`.

        ``resumable``: the stored tuples of the version are in the order in which they were pushed.
        """
        # A process that did not push the tuples knows their order only if it can read it from the state.
        self.token = token if resumable and not self.slack else f"{token} {uuid.uuid4().hex}"
        if isinstance(self._session, DaemonSession):
            self._session.detach(self.token)
            self._session = None

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            with suppress(SplitJoinError):  # a daemon that has gone has closed it
                self._session.close()
            self._session = None

    def _trim(self) -> None:
        """Forget the tuples that no later one can meet."""
        for side in SIDES:
            window, rows, times = self._query.window(side), self._rows[side], self._times[side]
            first = 0 if window.rows is None else len(rows) - window.rows
            if window.length is not None and self._last is not None:
                least = self._last - window.length - self.slack
                first = max(first, int(np.searchsorted(times, least)) if least >= -(2**63) else 0)
            if first > 0:
                self._rows[side], self._times[side] = rows.slice(first, len(rows)), times[first:]
                self._first[side] += first


@dataclass
class _SessionRecord:
    """A Python worker's record of a group's session: how often it was lost, for how many micro-batches it does
    without one, and the slack that the tuples of late have asked for.
    """

    kept: KeptSession | None = None
    token: str = ""
    losses: int = 0
    pause: int = 0
    slack: int = 0


@dataclass
class SessionCache:
    """The kept sessions of a Python worker, by the group whose tuples they have."""

    _entries: OrderedDict[str, _SessionRecord] = field(default_factory=OrderedDict)

    def take(self, key: str, token: str, query: Query, device: Device, new: Mapping[Side, Rows],
             stored: Callable[[], Mapping[Side, Rows]], *, resumable: bool) -> KeptSession | None:
        """A session with the tuples of version ``token``, which joins the tuples ``new`` next.

        ``stored`` gives the tuples of the version, in arrival order; ``resumable``: they are in the order in which they
        were pushed. None if this micro-batch does better without a session that is kept: it was lost lately, since
        other clients need the device or the group's tasks move between workers, or the tuples are too far out of order.
        """
        entry = self._entries.setdefault(key, _SessionRecord())
        self._entries.move_to_end(key)
        session, entry.kept = entry.kept, None
        if session is not None and entry.token == token and session.attached(device):
            entry.losses = 0
            entry.slack = max(entry.slack, 2 * session.displaced(new))
            if session.displaced(new) <= session.slack and session.has_room(new):
                return session
        elif session is not None:
            entry.losses += 1
            entry.pause = min(2**entry.losses, _LONGEST_PAUSE)
        if session is not None:
            session.close()
        elif resumable and not entry.pause:
            session = KeptSession.resumed(query, device, key, token, stored())
            if session is not None and not session.displaced(new) and session.has_room(new):
                return session
            if session is not None:
                session.close()
        if entry.slack and not _affordable(query, entry.slack):
            entry.slack, entry.pause = 0, _LONGEST_PAUSE
        if entry.pause:
            entry.pause -= 1
            return None
        return self._filled(entry, key, query, device, new, stored())

    def _filled(self, entry: _SessionRecord, key: str, query: Query, device: Device, new: Mapping[Side, Rows],
                stored: Mapping[Side, Rows]) -> KeptSession | None:
        last = max((int(rows.ts[-1]) for rows in stored.values() if len(rows)), default=None)
        first = min((int(rows.ts[0]) for rows in new.values() if len(rows)), default=None)
        if first is not None and last is not None and last - first > entry.slack:
            entry.slack = 2 * (last - first)
            if not _affordable(query, entry.slack):
                entry.slack, entry.pause = 0, _LONGEST_PAUSE
                return None
        session = KeptSession.opened(query, device, key, entry.slack)
        try:
            session.fill(stored)
        except BaseException:
            session.close()
            raise
        return session

    def keep(self, key: str, session: KeptSession, token: str, *, resumable: bool) -> None:
        """Keep a session, which has the tuples of version ``token`` now."""
        try:
            session.detach(token, resumable=resumable)
        except SplitJoinError:  # a daemon that has gone; the results are there
            session.close()
            return
        entry = self._entries.setdefault(key, _SessionRecord())
        entry.kept, entry.token = session, token
        while len(self._entries) > _MOST_KEPT:
            self._closed(self._entries.popitem(last=False)[1])

    def discard(self, key: str) -> None:
        """End the session of ``key``, if there is one."""
        self._closed(self._entries.pop(key, _SessionRecord()))

    def clear(self) -> None:
        """Close all sessions that are in this process, and forget all."""
        for entry in self._entries.values():
            self._closed(entry)
        self._entries.clear()

    def _closed(self, entry: _SessionRecord) -> None:
        if entry.kept is not None:
            entry.kept.close()


def _affordable(query: Query, slack: int) -> bool:
    """True if windows that are longer by ``slack`` cost at most twice the comparisons, and need no other circuit."""
    longest = longest_range(query)
    if longest is None or slack > longest or query.window_r.length is None or query.window_s.length is None:
        return False
    try:
        return time_bits_for(longest + slack) == time_bits_for(longest)
    except CapacityError:
        return False
