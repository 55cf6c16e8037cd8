"""`FeedingSession`: the half of a session that takes tuples, of a session of its own and of shared streams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Condition
from typing import Any, ClassVar, Literal

import pyarrow as pa

from splitjoin.base.errors import BackPressure
from splitjoin.lang.schema import SIDES, Side

from .epochs import DeliveredCounts, EpochsOfResults
from .gate import Shed, Source, SourceGate, check_side
from .limit import Limit
from .schemas import SessionSchemas
from .work_lock import WorkLock


class FeedingSession(EpochsOfResults):
    """Takes tuples by pushes, and from sources that are added and closed at any time. `ReadingSession` is the other
    half.
    """

    #: The beginning of the error of a push for which there is no room.
    _full_text: ClassVar[str]
    _lock: WorkLock | Condition
    _closed: bool

    def _begin_feeding(self, schemas: SessionSchemas, limit: Limit, *, blocks: bool) -> None:
        """Note by which ``schemas`` tuples are checked, how many may wait, and whether a push ``blocks`` then."""
        self._given, self._limit, self._blocks = schemas, limit, blocks
        self._blocked = 0  # pushes that wait for room on the lock, or are about to
        self._delivered = DeliveredCounts()

    def push_r(self, data: Any) -> None:
        """Deliver tuples of R: an Arrow table or batch, or anything with ``__arrow_c_stream__``.

        They belong to R's default source, which the first push adds. Raises `SchemaError` or `InputError` for data that
        does not fit, and `BackPressure` if there is no room and ``when_full="raise"``; then no tuple was taken.
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
            index = self._gate.add(stream).index
            self._delivered.add(stream, index, 0)
            return Source(self, stream, index)

    def source_at(self, stream: Side, index: int) -> Source:
        """The source ``index`` of ``stream``, in the order in which they were added, for example after `restore`."""
        check_side(stream)
        with self._lock:
            self._gate.is_closed(stream, index)
            return Source(self, stream, index)

    def sources(self, stream: Side) -> int:
        """The number of sources that a stream has had."""
        return self._gate.count(stream)

    def heartbeat(self, time: Any, stream: Side | None = None) -> None:
        """Promise that no source of ``stream`` (None: of both) delivers any more tuples below ``time``.

        ``time`` is an integer, a date or a datetime as the time column has it, or an Arrow scalar of its type. Raises
        `InputError` without a time column.
        """
        for side in SIDES if stream is None else (stream,):
            check_side(side)
            self._gate.ticks(side, time)
        self._each_source(stream, lambda side, index: self._gate.promise(side, index, time))

    def idle(self, stream: Side) -> None:
        """Declare the sources of ``stream`` ("r" or "s") silent: no other waits for one until it pushes or promises.

        What they then deliver is late if it precedes what the others have got to.
        """
        check_side(stream)
        self._each_source(stream, lambda side, index: self._gate.silence(side, index))

    def close_r(self) -> None:
        """Close R: it delivers no more tuples, so S does not wait for it."""
        with self._advancing():
            self._gate.finish("r")

    def close_s(self) -> None:
        """Close S; see `close_r`."""
        with self._advancing():
            self._gate.finish("s")

    def late_r(self) -> pa.Table:
        """R's late tuples since the last call, with all columns, in the order in which they were delivered."""
        return self.set_apart("late", "r")[0]

    def late_s(self) -> pa.Table:
        """S's late tuples since the last call; see `late_r`."""
        return self.set_apart("late", "s")[0]

    def set_apart(self, what: Literal["late", "shed"], side: Side) -> tuple[pa.Table, Callable[[], None]]:
        """Take the late or the dropped tuples of stream ``side``. Returns them and the function that puts them back;
        `AsyncStreamJoin` calls this.
        """
        gate = self._gate
        found = gate.late(side) if what == "late" else gate.shed(side)
        return self._given.without_computed(side, found), lambda: gate.put_back(what, side, found)

    @property
    def delivered(self) -> dict[str, tuple[int, ...]]:
        """For each stream, how many tuples each of its sources has delivered, since the first epoch if there are
        epochs.
        """
        with self._lock:
            return {side: tuple(counts) for side, counts in self._delivered.state().items()}

    def deliver(self, side: Side, index: int, data: Any) -> None:
        """Deliver tuples of one source; `Source.push` calls this."""
        self._push(side, index, data)

    def promise(self, side: Side, index: int, time: Any) -> None:
        """Record the promise of one source; `Source.heartbeat` calls this."""
        with self._advancing():
            self._gate.promise(side, index, time)

    def silence(self, side: Side, index: int) -> None:
        """Declare one source silent; `Source.idle` calls this."""
        with self._advancing():
            self._gate.silence(side, index)

    def remove(self, side: Side, index: int) -> None:
        """Close one source; `Source.close` calls this."""
        with self._lock:
            if not self._closed:
                self._gate.remove(side, index)
                self._work()

    @property
    @abstractmethod
    def _gate(self) -> SourceGate:
        """The gate that takes the tuples."""

    @abstractmethod
    def _usable(self) -> AbstractContextManager[None]:
        """Hold the lock, if `_check_usable`."""

    @abstractmethod
    def _check_usable(self) -> None:
        """Raise `DeviceError` if no tuples are taken any more."""

    @abstractmethod
    def _work(self) -> None:
        """Go on with what has become ready. The caller holds the lock."""

    @abstractmethod
    def _unread(self) -> str | None:
        """The reason why all pushes must wait until somebody polls, or None."""

    def _shed(self, side: Side) -> Shed | None:
        """Chooses the next tuples of ``side`` that are dropped under load; None if none are."""
        return None

    def _look_again(self) -> float | None:
        """Seconds after which there may be room although nobody has told; None if there will be none."""
        return self._gate.next_idle()

    def _push(self, side: Side, index: int | None, data: Any, *, sheds: bool = True) -> None:
        table = self._given.batch(side, data)
        with self._room(side, index):
            index = self._gate.default_source(side) if index is None else index
            self._gate.deliver(side, index, table, self._shed(side) if sheds else None)
            self._delivered.add(side, index, len(table))
            self._work()

    def _each_source(self, stream: Side | None, act: Callable[[Side, int], None]) -> None:
        """Do ``act`` for every open source of ``stream`` (None: of both), to which a default source is added first."""
        if stream is not None:
            check_side(stream)
        with self._advancing():
            for side in SIDES if stream is None else (stream,):
                for index in self._gate.open_sources(side):
                    act(side, index)

    @contextmanager
    def _advancing(self) -> Iterator[None]:
        """`_usable`, and go on with what becomes ready in the block."""
        with self._usable():
            yield
            self._work()

    @contextmanager
    def _room(self, side: Side, index: int | None) -> Iterator[None]:
        """`_usable`, once there is room for a batch of source ``index`` (None: the default source).

        Raises `BackPressure` if there is no room and pushes do not block.
        """
        with self._lock:
            self._blocked += 1  # before looking, so that whoever makes room afterwards sees that a thread may wait
            try:
                while True:
                    self._check_usable()
                    reason = self._full(side, index)
                    if reason is None:
                        break
                    if not self._blocks:
                        raise BackPressure(f"{self._full_text}: {reason}; the batch was not taken")
                    if not self._lock.wait(self._look_again()):
                        self._work()  # a source that was waited for has become idle, or a query has read
            finally:
                self._blocked -= 1
            yield

    def _full(self, side: Side, index: int | None) -> str | None:
        """The reason why a batch of source ``index`` (None: the default source) must wait now, or None."""
        gate = self._gate
        if (reason := self._unread()) is not None:
            return reason
        if self._limit.held(gate.waiting) and gate.held_up(side, gate.default.get(side) if index is None else index):
            return self._limit.waits(gate.waiting, gate.behind())
        return None
