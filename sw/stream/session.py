"""`StreamJoin`: a join of two streams that is fed in batches and read while it runs, on any device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa

from ..device.api import Device, Items
from ..device.registry import device as find_device
from ..errors import InputError, SplitJoinError
from ..gate import Source
from ..lang.query import Query
from ..lang.schema import SIDES, Side
from ..statement import Select
from .flow import Flow
from .layout import Layout
from .limit import Limit
from .shared import SharedFlow

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
        self._block, self._punctuation = when_full == "block", punctuation
        self._flow = Flow(query.query if isinstance(query, Select) else query, self._layout, device, lateness, limit,
                          punctuation)
        self._shared = SharedFlow(self._flow)

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
        with self._shared.usable():
            return Source(self, stream, self._flow.gate.add(stream).index)

    def heartbeat(self, time: Any, stream: Side | None = None) -> None:
        """Promise that no source of ``stream`` (None: of both) delivers anything below ``time`` any more.

        ``time`` is an integer, a date or a datetime as the time column has it, or an Arrow scalar of its type. Raises
        `InputError` without a time column.
        """
        if stream is not None:
            _check_stream(stream)
        with self._shared.usable():
            self._flow.heartbeat(time, SIDES if stream is None else (stream,))
            self._shared.work()

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
        with self._shared.usable():
            self._flow.gate.promise(side, index, time)
            self._shared.work()

    def remove(self, side: Side, index: int) -> None:
        """Close one source; `Source.close` calls this."""
        with self._shared.lock:
            if not self._shared.closed:
                self._flow.gate.remove(side, index)
                self._shared.work()

    def poll(self) -> pa.RecordBatch:
        """The result rows that are complete and were not given out, in order: at most about 1 GiB of them.

        An empty batch of the result's schema when there are none. What a limit held up goes on from here.
        """
        return self._rows(*self._shared.take())

    def poll_items(self) -> tuple[Items, pa.RecordBatch]:
        """As `poll`, with the items (pairs of row ids, and stars) that the rows belong to, in order.

        Row ids count each stream's tuples from 0 over the whole session, restarts and restored snapshots included.
        """
        if not self._punctuation:
            raise InputError("poll_items needs a session opened with punctuation=True")
        batch, items = self._shared.take()
        return items, self._rows(batch, items)

    def flush(self) -> pa.RecordBatch:
        """End both streams, and return all remaining rows, whatever the limits say.

        Raises `InputError` when they do not fit one batch of 1 GiB; nothing is lost then, and `poll` gives them.
        """
        with self._shared.usable():
            self._finish(SIDES)
            self._shared.work(everything=True)
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
        with self._shared.lock:
            return self._flow.counters()

    def snapshot(self) -> bytes:
        """All that is needed to go on from here, on any device: see `restore`.

        The live windows, what is not ready or not polled, late tuples, watermarks and counts. In the project's own
        format, versioned and with a checksum; nothing in it is code.
        """
        with self._shared.opened():
            return self._flow.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of a session of the same query, taken on any device, instead of what this one knew.

        The windows are replayed into a fresh device session. Sources keep their numbers: `source_at` finds them. Raises
        `SnapshotError` when the bytes are no snapshot, damaged, of another version, or of another query, and then
        changes nothing.
        """
        with self._shared.opened():
            self._flow.restore(snapshot)
            self._shared.lock.notify_all()

    def source_at(self, stream: Side, index: int) -> Source:
        """The source ``index`` of ``stream``, in the order in which they were added, for example after `restore`."""
        _check_stream(stream)
        with self._shared.lock:
            self._flow.gate.is_closed(stream, index)
            return Source(self, stream, index)

    def restart(self, device: str | Device | None = None, **options: object) -> None:
        """Go on in a fresh device session, of another device if one is given: after a device failed, or to move.

        The live windows are replayed into it; no result is lost or given twice.
        """
        with self._shared.opened():
            self._flow.restart(self._flow.core.device if device is None else find_device(device, **options))
            self._shared.work()

    def close(self) -> None:
        """Release the device. Pushes that block are woken, and raise. What was not polled is lost."""
        self._shared.close()

    def __enter__(self) -> StreamJoin:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _push(self, side: Side, index: int | None, data: Any) -> None:
        table = self._layout.batch(side, data)
        with self._shared.room(side, index, block=self._block):
            self._flow.gate.deliver(side, self._flow.default_source(side) if index is None else index, table)
            self._shared.work()

    def _rows(self, found: pa.RecordBatch, items: Items) -> pa.RecordBatch:
        """The result rows for what was taken from the outbox. When they cannot be computed, it goes back there."""
        try:
            return self._layout.rows(found)
        except SplitJoinError:
            self._flow.outbox.put_back(found, items)
            raise

    def _close_stream(self, side: Side) -> None:
        with self._shared.usable():
            self._finish((side,))
            self._shared.work()

    def _finish(self, sides: Sequence[Side]) -> None:
        for side in sides:
            self._flow.gate.finish(side)


def _check_stream(stream: str) -> None:
    if stream not in ("r", "s"):
        raise InputError(f"a stream must be 'r' or 's', not {stream!r}")
