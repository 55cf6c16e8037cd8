"""`StreamJoin`: a join of two streams that is fed in batches and read while it runs, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Condition, RLock
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from ..device.api import Device, Items
from ..device.registry import device as find_device
from ..errors import BackPressure, DeviceError, InputError, SplitJoinError
from ..gate import Source
from ..lang.query import Query
from ..lang.schema import Side
from ..statement import Select
from .core import SIDES
from .flow import Flow
from .layout import Layout
from .limit import Limit

__all__ = ["LOOK", "StreamJoin"]

#: Seconds between two looks at a device whose results come by themselves.
LOOK = 0.01


class StreamJoin:
    """One running query; `splitjoin.open` makes it. Its methods may be called from several threads.

    Use as a context manager. Iterating gives batches as they become complete, waiting for them, until both streams are
    closed and all is given out: with the pushes in another thread, or after `close_r` and `close_s`.

    Args:
        query: The query, from Arrow schemas (`splitjoin.query`), or a `Select` (`splitjoin.sql`).
        device: Where it runs.
        select: Result columns, as in `splitjoin.join`.
        lateness: How far out of order each source may be, ``"5 SECONDS"`` or a whole number for integer times; later
            tuples are refused, counted, and kept for `late_r` and `late_s`. None: input out of order raises.
        limit: Bounds on what is held; a whole number stands for ``Limit(rows=…)``.
        when_full: Whether a push beyond them raises `BackPressure`, or blocks until another thread makes room.
        punctuation: Whether `poll_items` is to give row ids and stars too.
    """

    def __init__(self, query: Query | Select, device: Device, *, select: Sequence[str] | None = None,
                 lateness: int | str | None = None, limit: Limit | int | None = None,
                 when_full: Literal["raise", "block"] = "raise", punctuation: bool = False):
        self._layout = Layout(query, select)
        if when_full not in ("raise", "block"):
            raise InputError(f"when_full must be 'raise' or 'block', not {when_full!r}")
        limit = limit if isinstance(limit, Limit) else Limit() if limit is None else Limit(rows=limit)
        self._when_full, self._punctuation = when_full, punctuation
        self._lock = Condition(RLock())
        self._blocked = 0
        self._closed = False
        self._flow = Flow(query.query if isinstance(query, Select) else query, self._layout, device, lateness, limit,
                          punctuation)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the results."""
        return self._layout.result

    def push_r(self, data: Any) -> None:
        """Deliver tuples of R: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        They belong to R's default source, which its first use adds. Raises `SchemaError` or `InputError` for what does
        not fit, and `BackPressure` when the session is full and ``when_full="raise"``; then nothing was taken.
        """
        self._push("r", None, data)

    def push_s(self, data: Any) -> None:
        """As `push_r`, for S."""
        self._push("s", None, data)

    def source(self, stream: Side) -> Source:
        """A further source of stream ``stream`` ("r" or "s"), with ``push``, ``heartbeat`` and ``close`` of its own.

        Each source by itself is in order of time. Sources may be added and closed at any time; at equal times, those
        added earlier come first.
        """
        _check_stream(stream)
        with self._lock:
            self._check_usable()
            return Source(self, stream, self._flow.gate.add(stream).index)

    def heartbeat(self, time: Any, stream: Side | None = None) -> None:
        """Promise that no source of ``stream`` (None: of both) delivers anything below ``time`` any more.

        ``time`` is an integer, a date or a datetime as the time column has it, or an Arrow scalar of its type. Raises
        `InputError` without a time column.
        """
        if stream is not None:
            _check_stream(stream)
        with self._lock:
            self._check_usable()
            self._flow.heartbeat(time, SIDES if stream is None else (stream,))
            self._work()

    def close_r(self) -> None:
        """R delivers nothing any more: S waits for it no longer."""
        self._close_stream("r")

    def close_s(self) -> None:
        """As `close_r`, for S."""
        self._close_stream("s")

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Deliver tuples of one source; `Source.push` calls this."""
        self._push(side, index, data)

    def promise(self, side: Side, index: int, time: Any) -> None:
        """The promise of one source; `Source.heartbeat` calls this."""
        with self._lock:
            self._check_usable()
            self._flow.gate.promise(side, index, time)
            self._work()

    def remove(self, side: Side, index: int) -> None:
        """Close one source; `Source.close` calls this."""
        with self._lock:
            if not self._closed:
                self._flow.gate.remove(side, index)
                self._work()

    def poll(self) -> pa.RecordBatch:
        """The result rows that are complete and were not given out, in order: at most about 1 GiB of them.

        An empty batch of the result's schema when there are none. What a limit held up goes on from here.
        """
        return self._rows(*self._poll())

    def poll_items(self) -> tuple[Items, pa.RecordBatch]:
        """As `poll`, with the items (pairs of row ids, and stars) that the rows belong to, in order.

        Row ids count each stream's tuples from 0 over the whole session, restarts and restored snapshots included.
        """
        if not self._punctuation:
            raise InputError("poll_items needs a session opened with punctuation=True")
        batch, items = self._poll()
        return items, self._rows(batch, items)

    def flush(self) -> pa.RecordBatch:
        """End both streams, and return all remaining rows, whatever the limits say.

        Raises `InputError` when they do not fit one batch of 1 GiB; nothing is lost then, and `poll` gives them.
        """
        with self._lock:
            self._check_usable()
            self._finish(SIDES)
            self._work(everything=True)
        batch, items = self._flow.outbox.take()
        if self._flow.outbox.rows:
            self._flow.outbox.put_back(batch, items)
            raise InputError("the remaining rows do not fit one batch of 1 GiB; call close_r() and close_s() instead "
                             "of flush(), and iterate")
        return self._rows(batch, items)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches as they become complete, each with at least one row, until all is given out."""
        while True:
            batch = self.poll()
            if len(batch):
                yield batch
            elif self._flow.outbox.over:
                return
            else:
                self._flow.outbox.wait(LOOK if self.lags else None)

    @property
    def lags(self) -> bool:
        """Whether the device may find results by itself, after the push that they belong to."""
        return self._flow.core.runner.lags

    @property
    def finished(self) -> bool:
        """Whether both streams are closed and all rows have been given out."""
        return self._flow.outbox.over

    def late_r(self) -> pa.Table:
        """R's tuples that came too late since the last call, whole, in the order in which they came."""
        return self._flow.gate.late("r")

    def late_s(self) -> pa.Table:
        """As `late_r`, for S."""
        return self._flow.gate.late("s")

    def counters(self) -> dict[str, int]:
        """What the session counts, all of it since its beginning:

        ``tuples_r``, ``tuples_s`` (joined), ``rows`` (found), ``unread_rows``, ``unread_bytes``, ``retained_r``,
        ``retained_s``, ``retained_bytes`` (rows kept for later pairs), ``waiting`` (input that is not ready),
        ``late_…`` and ``forgotten_…`` (of both streams), ``restarts``; and as ``device_…`` what the device counts since
        its session began.
        """
        with self._lock:
            return self._flow.counters()

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, on any device: see `restore`.

        The live windows, what is not ready or not polled, late tuples, watermarks and counts. In the project's own
        format, versioned and with a checksum; nothing in it is code.
        """
        with self._lock:
            if self._closed:
                raise DeviceError("the session is closed")
            return self._flow.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a session of the same query, taken on any device, instead of what this one knew.

        The windows are replayed into a fresh device session. Sources keep their numbers: `source_at` finds them. Raises
        `SnapshotError` when the bytes are no snapshot, damaged, of another version, or of another query, and then
        changes nothing.
        """
        with self._lock:
            if self._closed:
                raise DeviceError("the session is closed")
            self._flow.restore(snapshot)
            self._lock.notify_all()

    def source_at(self, stream: Side, index: int) -> Source:
        """The source ``index`` of ``stream``, in the order in which they were added, for example after `restore`."""
        _check_stream(stream)
        with self._lock:
            self._flow.gate.is_closed(stream, index)
            return Source(self, stream, index)

    def restart(self, device: str | Device | None = None, **options: object) -> None:
        """Go on in a fresh device session, of another device if one is given: after a device failed, or to move.

        The live windows are replayed into it; no result is lost or given twice.
        """
        with self._lock:
            if self._closed:
                raise DeviceError("the session is closed")
            self._flow.restart(self._flow.core.device if device is None else find_device(device, **options))
            self._work()

    def close(self) -> None:
        """Release the device. Pushes that block are woken, and raise. What was not polled is lost."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._flow.core.close()
                self._flow.outbox.end()
                self._lock.notify_all()

    def __enter__(self) -> StreamJoin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _push(self, side: Side, index: int | None, data: Any) -> None:
        table = self._layout.batch(side, data)
        with self._lock:
            self._make_room(side, index)
            self._flow.gate.deliver(side, self._flow.default_source(side) if index is None else index, table)
            self._work()

    def _make_room(self, side: Side, index: int | None) -> None:
        """Return when a batch may be taken; raise `BackPressure` where pushes are not to block."""
        self._blocked += 1  # before looking, so that whoever makes room afterwards sees that someone may wait
        try:
            while True:
                self._check_usable()
                reason = self._flow.full(side, index)
                if reason is None:
                    return
                if self._when_full == "raise":
                    raise BackPressure(f"the session is full: {reason}; the batch was not taken")
                self._lock.wait()
        finally:
            self._blocked -= 1

    def _work(self, everything: bool = False) -> None:
        """Do what can be done now, and let those who wait see."""
        try:
            self._flow.work(everything)
        finally:
            self._lock.notify_all()

    def _poll(self) -> tuple[pa.RecordBatch, Items]:
        if self._closed:
            raise DeviceError("the session is closed")
        taken = self._flow.outbox.take()
        # Whoever holds the lock now works already, and wakes the others when done; but who waits in a push needs us.
        if self._lock.acquire(blocking=self._blocked > 0):
            try:
                if self._flow.failure is not None:
                    if not len(taken[0]):
                        raise self._flow.failed()
                elif not self._closed and not self._flow.core.ended:
                    self._work()
            except SplitJoinError:
                if not len(taken[0]):
                    raise
            finally:
                self._lock.notify_all()
                self._lock.release()
        return taken if len(taken[0]) or len(taken[1]) else self._flow.outbox.take()

    def _rows(self, found: pa.RecordBatch, items: Items) -> pa.RecordBatch:
        """The result rows for what was taken from the outbox. When they cannot be computed, it goes back there."""
        try:
            return self._layout.rows(found)
        except SplitJoinError:
            self._flow.outbox.put_back(found, items)
            raise

    def _close_stream(self, side: Side) -> None:
        with self._lock:
            self._check_usable()
            self._finish((side,))
            self._work()

    def _finish(self, sides: Sequence[Side]) -> None:
        for side in sides:
            self._flow.gate.finish(side)

    def _check_usable(self) -> None:
        if self._closed:
            raise DeviceError("the session is closed")
        if self._flow.failure is not None:
            raise self._flow.failed()


def _check_stream(stream: str) -> None:
    if stream not in ("r", "s"):
        raise InputError(f"a stream must be 'r' or 's', not {stream!r}")
