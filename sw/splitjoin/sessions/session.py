"""`StreamJoin`: a running join of two streams, with pushes of batches and polls of results, on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.engines.device import Device, Items
from splitjoin.joins.sql import Select
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.output import Selected

from .epochs import EpochSource
from .faults import CoreFaults, OnFault
from .feeding import FeedingSession
from .gate import ScaleGate, Shed, SourceGate, Watermark
from .gate.times import Idle, Lateness, time_value
from .limit import GateOptions, Limit, PipelineOptions
from .pipeline import Pipeline
from .precision import AdaptivePrecision
from .reading import ReadingSession
from .schemas import SessionSchemas
from .shedding import Shedding
from .work_lock import WorkLock


class StreamJoin(ReadingSession[Pipeline[SourceGate]], FeedingSession):
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
        clock: A function that returns seconds, which never fall; silence, and a push for ``precision``, are measured
            by it.
        limit: Bounds on the rows that the session holds; a whole number is short for ``Limit(rows=…)``.
        when_full: ``"raise"``: a push beyond them raises `BackPressure`; ``"block"``: it blocks until another thread
            makes room; ``"shed"``: it drops tuples, which `shed_r` and `shed_s` return (semantics, section 6).
        shedding: With ``"shed"``, which tuples are dropped; by default as `Shedding` says.
        punctuation: True if `poll_items` is to give row ids and stars too.
        precision: The bounds within which the session moves the n of order ``inner(n)`` by itself; None if it stays.
        on_fault: What the session does when a circuit with ``fault_timeout`` leaves out a core: ``"continue"``: it
            goes on, and the rows lack what `faults` says. ``"restart"``, or a device: it opens its device again, or the
            given one, and reloads the windows, so that no row is missing.
    """

    _full_text = "the session is full"
    _lock: WorkLock

    def __init__(self, query: Query | Select, device: Device, *, select: Selected | None = None,
                 lateness: Lateness | None = None, watermark: Watermark | None = None, idle: Idle | None = None,
                 early: bool = False, limit: Limit | int | None = None,
                 when_full: Literal["raise", "block", "shed"] = "raise", shedding: Shedding | None = None,
                 punctuation: bool = False, precision: AdaptivePrecision | None = None,
                 clock: Callable[[], float] = threads.monotonic, on_fault: OnFault = "continue"):
        super().__init__(punctuation=punctuation)
        if not isinstance(early, bool):
            raise InputError(f"early must be True or False, not {early!r}")
        self._schemas = SessionSchemas(query, select, early=early)
        if when_full not in ("raise", "block", "shed"):
            raise InputError(f"when_full must be 'raise', 'block' or 'shed', not {when_full!r}")
        if shedding is not None and (when_full != "shed" or not isinstance(shedding, Shedding)):
            raise InputError(f"shedding must be a splitjoin.Shedding, with when_full='shed', not {shedding!r} with "
                             f"{when_full!r}")
        shedding = (shedding or Shedding()) if when_full == "shed" else None
        if precision is not None and not isinstance(precision, AdaptivePrecision):
            raise InputError(f"precision must be a splitjoin.AdaptivePrecision, or None, not {precision!r}; the order "
                             f"of the query has the precision that stays")
        control = None if precision is None else precision.control(self._schemas.query.order, clock)
        limit = Limit.of(limit)
        self._begin_feeding(self._schemas, limit, blocks=when_full == "block")
        self._clock = clock
        gate = GateOptions(lateness, watermark, idle, clock, limit.late)
        self._pipeline = Pipeline[SourceGate](
            self._schemas, device, PipelineOptions(limit, punctuation, CoreFaults(on_fault), shedding, control),
            gate=lambda: gate.opened(self._schemas))

    def hand_over(self, rows: pa.Table) -> None:
        """Deliver rows of another join as tuples of R, none of which is dropped; `MultiwayJoin` calls this."""
        self._push("r", None, rows, sheds=False)

    @property
    def waiting(self) -> int:
        """The number of tuples that are not ready."""
        return self._gate.waiting

    def marks(self, side: Side) -> list[int | None]:
        """The marks of the sources of stream ``side``, as of `SourceGate.marks`."""
        return self._gate.marks(side)

    def advance_if_idle(self, others: Sequence[StreamJoin]) -> None:
        """If all open sources are idle, go on to the least mark of S of the ``others``; `MultiwayJoin` calls this."""
        gate = self._gate
        if isinstance(gate, ScaleGate) and not gate.done and not gate.marks("r") and not gate.marks("s"):
            known = [mark for other in others for mark in other.marks("s")]
            if known and None not in known:
                with self._advancing():
                    gate.advance_past(min(mark for mark in known if mark is not None))

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

    def shed_r(self) -> pa.Table:
        """R's tuples that were dropped under load since the last call, with all columns, as they were delivered."""
        return self.set_apart("shed", "r")[0]

    def shed_s(self) -> pa.Table:
        """S's tuples that were dropped under load since the last call; see `shed_r`."""
        return self.set_apart("shed", "s")[0]

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

    def _epochs(self) -> EpochSource:
        return EpochSource(self._lock, lambda: {"": self}, self._delivered, lambda: self._pipeline.frontier,
                           lambda: self._pipeline.ended, self.snapshot, self.restore, self.reserve,
                           self._schemas.query.time, self._clock)

    @property
    def _gate(self) -> SourceGate:
        return self._pipeline.gate

    def _unread(self) -> str | None:
        results = self._pipeline.results
        return self._limit.unread(results) if self._limit.full(results) else None

    def _full(self, side: Side, index: int | None) -> str | None:
        return super()._full(side, index) if self._pipeline.shedder is None else None  # else it drops tuples

    def _shed(self, side: Side) -> Shed | None:
        return self._pipeline.shed(side, self._gate.shed_count(side))

    def _end_input(self) -> None:
        for side in SIDES:
            self._gate.finish(side)

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
