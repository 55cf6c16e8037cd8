"""`StreamJoin`: a running join of two streams, with pushes of batches and polls of results, on any device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import BackPressure, InputError, SplitJoinError
from splitjoin.engines.device import Device, Items
from splitjoin.joins.sql import Select
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.output import Selected

from .epochs import Cut, DeliveredCounts, EpochWriter, epoch_length
from .faults import CoreFaults, OnFault
from .gate import Source, Watermark, check_side
from .gate.times import Idle, Lateness, time_value
from .gate_choice import make_gate
from .limit import Limit
from .push_pipeline import PushPipeline
from .reading import POLL_SECONDS, ReadingSession
from .schemas import SessionSchemas
from .shedding import Shedding

__all__ = ["StreamJoin"]


class StreamJoin(ReadingSession[PushPipeline]):
    """A running query that is fed in batches and polled for rows; `splitjoin.open` starts it.

    Use as a context manager. Several threads may call its methods. Iteration waits for batches and yields them as they
    become complete, until both streams are closed and drained: with the pushes in another thread, or after `close_r`
    and `close_s`.

    Args:
        query: The query, from Arrow schemas (`splitjoin.query`), or a `Select` (`splitjoin.sql`).
        device: The device that runs it.
        select: Result columns, as in `splitjoin.join`.
        lateness: The time by which tuples may be out of order, ``"5 SECONDS"`` or a whole number for integer times;
            later tuples are refused, counted, and kept for `late_r` and `late_s`. A pair (R's, S's) gives each stream
            its own, None for one that has no say in the watermark. None: input out of order raises.
        watermark: By what a tuple is late: ``"min"``, the least progress of all sources (the default), ``"max"``, the
            greatest, ``"source"``, that of its own source, or ``"spark"``, which is ``"min"`` but refuses a tuple at
            the watermark too (semantics, section 9).
        idle: The time of silence, ``"30 SECONDS"``, after which no other source waits for a source until it speaks; a
            pair gives each stream its own, None for never.
        early: True if rows come with what is known so far, in order ``"none"``: of tuples that have met nothing so far
            (`left`, `right`, `full`, `anti`), with the best partner (`asof`, `asof_left`), or with aggregates; they are
            taken back when that changes. All rows then have the column ``operation``: ``"+"``, or ``"-"`` for a row
            that is taken back.
        clock: A function that returns seconds, which never fall; silence is measured by it.
        limit: Bounds on the rows that the session holds; a whole number is short for ``Limit(rows=…)``.
        when_full: ``"raise"``: a push beyond them raises `BackPressure`; ``"block"``: it blocks until another thread
            makes room; ``"shed"``: it drops tuples, which `shed_r` and `shed_s` return (semantics, section 6).
        shedding: With ``"shed"``, which tuples are dropped; by default as `Shedding` says.
        punctuation: True if `poll_items` is to give row ids and stars too.
        on_fault: What the session does when a circuit with ``fault_timeout`` leaves out a core: ``"continue"``: it
            goes on, and the rows lack what `faults` says. ``"restart"``, or a device: it opens its device again, or the
            given one, and reloads the windows, so that no row is missing.
    """

    def __init__(self, query: Query | Select, device: Device, *, select: Selected | None = None,
                 lateness: Lateness | None = None, watermark: Watermark | None = None, idle: Idle | None = None,
                 early: bool = False, limit: Limit | int | None = None,
                 when_full: Literal["raise", "block", "shed"] = "raise", shedding: Shedding | None = None,
                 punctuation: bool = False, clock: Callable[[], float] = threads.monotonic,
                 on_fault: OnFault = "continue"):
        super().__init__(punctuation=punctuation)
        self._schemas = SessionSchemas(query, select, early=early)
        if when_full not in ("raise", "block", "shed"):
            raise InputError(f"when_full must be 'raise', 'block' or 'shed', not {when_full!r}")
        if shedding is not None and (when_full != "shed" or not isinstance(shedding, Shedding)):
            raise InputError(f"shedding must be a splitjoin.Shedding, with when_full='shed', not {shedding!r} with "
                             f"{when_full!r}")
        shedding = (shedding or Shedding()) if when_full == "shed" else None
        limit = limit if isinstance(limit, Limit) else Limit() if limit is None else Limit(rows=limit)
        self._blocks, self._clock = when_full == "block", clock
        self._pipeline = PushPipeline(
            self._schemas, device, limit=limit, punctuation=punctuation, shedding=shedding,
            faults=CoreFaults(on_fault), gate=lambda: make_gate(
                self._schemas, lateness=lateness, watermark=watermark, idle=idle, clock=clock, keep_late=limit.late))
        self._blocked = 0  # pushes that wait for room on the lock, or are about to
        #: What its sources have delivered; epochs are written with it.
        self.delivered = DeliveredCounts()

    def push_r(self, data: Any) -> None:
        """Deliver tuples of R: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        They belong to R's default source, which the first push adds. Raises `SchemaError` or `InputError` for data that
        does not fit, and `BackPressure` if the session is full and ``when_full="raise"``; then no tuple was taken.
        """
        self._push("r", None, data)

    def push_s(self, data: Any) -> None:
        """Deliver tuples of S; see `push_r`."""
        self._push("s", None, data)

    def source(self, stream: Side) -> Source:
        """Add a source of stream ``stream`` ("r" or "s"), with ``push``, ``heartbeat`` and ``close`` of its own.

        Each source delivers in order of time. Sources may be added and closed at any time; at equal times, tuples of
        sources added earlier are first.
        """
        check_side(stream)
        with self._usable():
            index = self._pipeline.gate.add(stream).index
            self.delivered.add(stream, index, 0)
            return Source(self, stream, index)

    def heartbeat(self, time: Any, stream: Side | None = None) -> None:
        """Promise that no source of ``stream`` (None: of both) delivers any more tuples below ``time``.

        ``time`` is an integer, a date or a datetime as the time column has it, or an Arrow scalar of its type. Raises
        `InputError` without a time column.
        """
        if stream is not None:
            check_side(stream)
        with self._usable():
            self._pipeline.heartbeat(time, SIDES if stream is None else (stream,))
            self._work()

    def idle(self, stream: Side) -> None:
        """Declare the sources of ``stream`` ("r" or "s") silent: no other waits for one until it pushes or promises.

        What they then deliver is late if it precedes what the others have got to.
        """
        check_side(stream)
        with self._usable():
            self._pipeline.silence(stream)
            self._work()

    def close_r(self) -> None:
        """Close R: it delivers no more tuples, so S does not wait for it."""
        self._close_stream("r")

    def close_s(self) -> None:
        """Close S; see `close_r`."""
        self._close_stream("s")

    def hand_over(self, rows: pa.Table) -> None:
        """Deliver rows of another join as tuples of R, none of which is dropped; `MultiwayJoin` calls this."""
        self._push("r", None, rows, sheds=False)

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Deliver tuples of one source; `Source.push` calls this."""
        self._push(side, index, data)

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Record the promise of one source; `Source.heartbeat` calls this."""
        with self._usable():
            self._pipeline.gate.promise(side, index, time)
            self._work()

    def silence(self, side: Side, index: int) -> None:
        """Declare one source silent; `Source.idle` calls this."""
        with self._usable():
            self._pipeline.gate.silence(side, index)
            self._work()

    def remove(self, side: Side, index: int) -> None:
        """Close one source; `Source.close` calls this."""
        with self._lock:
            if not self._closed:
                self._pipeline.gate.remove(side, index)
                self._work()

    @property
    def frontier(self) -> int | pa.Scalar | None:
        """The event time below which no later pair lies, by its later tuple; None if that is not known yet.

        It has the type of R's time column. Another session that joins the results takes it as a heartbeat.
        """
        ticks, time = self.frontier_ticks, self._schemas.query.time
        if ticks is None or time is None:
            return None
        return time_value(self._schemas.streams["r"].field(time.r).type, time, ticks)

    @property
    def frontier_ticks(self) -> int | None:
        """`frontier` as the number of ticks by which epochs end."""
        with self._lock:
            return self._pipeline.frontier

    def late_r(self) -> pa.Table:
        """R's late tuples since the last call, with all columns, in the order in which they were delivered."""
        return self._schemas.without_computed("r", self._pipeline.gate.late("r"))

    def late_s(self) -> pa.Table:
        """S's late tuples since the last call; see `late_r`."""
        return self._schemas.without_computed("s", self._pipeline.gate.late("s"))

    def shed_r(self) -> pa.Table:
        """R's tuples that were dropped under load since the last call, with all columns, as they were delivered."""
        return self._schemas.without_computed("r", self._pipeline.gate.shed("r"))

    def shed_s(self) -> pa.Table:
        """S's tuples that were dropped under load since the last call; see `shed_r`."""
        return self._schemas.without_computed("s", self._pipeline.gate.shed("s"))

    def snapshot(self) -> bytes:
        """The state of the session as bytes, from which `restore` continues on any device.

        It holds the live windows, tuples that are not ready, rows that were not polled, late tuples, watermarks and
        counts. The format is the project's own, versioned and with a checksum; it contains no code.
        """
        with self._opened():
            return self._pipeline.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a session of the same query, taken on any device, instead of this one's state.

        The windows are replayed into a fresh device session. Sources keep their numbers: `source_at` finds them. Raises
        `SnapshotError` when the bytes are no snapshot, damaged, of another version, or of another query, and then
        changes nothing.
        """
        with self._opened():
            self._check_unreserved()
            fresh, old = self._pipeline.restored(snapshot), self._pipeline
            self._pipeline = fresh
            old.close()
            self._lock.notify_all()

    def write_to(self, folder: str | os.PathLike[str], *, every: Lateness | None = None, rows: int | None = None,
                 delay: float | None = None, set_aside: Callable[[str], object] | None = None) -> EpochWriter:
        """Write the results to ``folder`` as Parquet files, an epoch each, instead of having them polled.

        An epoch ends when event time has advanced by ``every`` (as in `lateness`), when ``rows`` rows wait, or after
        ``delay`` seconds, whichever comes first; by default at a million rows or after ten seconds. If the folder has
        epochs of a session of the same query, this session continues from the last one. Call it before the first push.
        ``set_aside``: called with a text if the state behind the last epoch cannot be read; then it is renamed, and the
        session goes on with empty windows. Without it that is an error.

        Raises `InputError` for a folder that cannot be written, that another process writes, or that lies in a folder
        of epochs or around one; `SnapshotError` for epochs of another query, rows that are in no file, and a state that
        cannot be read.
        """
        time = self._schemas.query.time
        return EpochWriter(_SessionEpochs(self), folder, every=epoch_length(every, time), rows=rows, delay=delay,
                           clock=self._clock, set_aside=set_aside)

    def source_at(self, stream: Side, index: int) -> Source:
        """The source ``index`` of ``stream``, in the order in which they were added, for example after `restore`."""
        check_side(stream)
        with self._lock:
            self._pipeline.gate.is_closed(stream, index)
            return Source(self, stream, index)

    def _push(self, side: Side, index: int | None, data: Any, *, sheds: bool = True) -> None:
        table = self._schemas.batch(side, data)
        with self._room(side, index):
            index = self._pipeline.default_source(side) if index is None else index
            self._pipeline.deliver(side, index, table, sheds=sheds)
            self.delivered.add(side, index, len(table))
            self._work()

    def _end_input(self) -> None:
        for side in SIDES:
            self._pipeline.gate.finish(side)

    def _close_stream(self, side: Side) -> None:
        with self._usable():
            self._pipeline.gate.finish(side)
            self._work()

    def _take(self) -> tuple[pa.RecordBatch, Items]:
        """Take a batch from the queue, and continue with input that a limit had held up, unless another thread is at
        work.
        """
        self._check_open()
        taken = self._pipeline.results.take()
        # A thread that holds the lock is mostly working, and wakes the others when done; but a blocked push needs this
        # thread.
        if self._lock.try_acquire(wait=self._blocked > 0):
            try:
                if self._pipeline.failure is not None:
                    if not len(taken[0]):
                        raise self._pipeline.failed()
                elif not self._closed and not self._pipeline.ended:
                    self._work()
            except SplitJoinError:
                if not len(taken[0]):
                    raise
            finally:
                self._lock.notify_all()
                self._lock.release()
        return taken if len(taken[0]) or len(taken[1]) else self._pipeline.results.take()

    @contextmanager
    def _room(self, side: Side, index: int | None) -> Iterator[None]:
        """Hold the lock like `_usable`, once there is room for a batch of source ``index`` (None: the default source).

        Raises `BackPressure` if there is no room and the session does not block.
        """
        with self._lock:
            self._blocked += 1  # before looking, so that whoever makes room afterwards sees that a thread may wait
            try:
                while True:
                    self._check_usable()
                    reason = self._pipeline.full(side, index)
                    if reason is None:
                        break
                    if not self._blocks:
                        raise BackPressure(f"the session is full: {reason}; the batch was not taken")
                    if not self._lock.wait(self._pipeline.gate.next_idle()):
                        self._work()  # a source that was waited for has become idle
            finally:
                self._blocked -= 1
            yield


class _SessionEpochs:
    """What the epochs of a session are written of."""

    def __init__(self, of: StreamJoin):
        self._of = of
        self.reserve, self.ready_rows = of.reserve, of.found_rows

    def reached(self) -> int | None:
        return self._of.frontier_ticks

    def delivered(self) -> dict[str, list[int]]:
        with self._of._lock:
            return self._of.delivered.state()

    def cut(self) -> Cut:
        with self._of._usable():
            table, undo = self._of.take_found()
            try:
                return Cut({"": table}, self._of.snapshot(), self.delivered(), self.reached(), undo)
            except BaseException:
                undo()
                raise

    def resume(self, state: bytes | None, delivered: Mapping[str, Sequence[int]]) -> None:
        if state is not None:
            self._of.restore(state)
        self._of.delivered.restore(delivered)

    def input_ended(self) -> bool:
        with self._of._usable():
            return self._of._pipeline.ended

    def wait_for_work(self, seconds: float) -> None:
        with self._of._lock:
            if not self._of._pipeline.ended:
                self._of._lock.wait(POLL_SECONDS if self._of.lags else seconds)
