"""`EpochWriter`: writes the rows of an `EpochSource`, which is a session, the queries of shared streams, or a join of
several streams, to a folder of epochs.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

from splitjoin.base.errors import InputError, SnapshotError, SplitJoinError, WindowError
from splitjoin.lang.schema import SIDES
from splitjoin.lang.time_columns import TimeColumns

from ..envelope import DamagedSnapshot
from ..gate.times import Lateness, parse_lateness
from .folder import EpochFolder

#: Seconds between two polls of a device that finds results by itself.
POLL_SECONDS = 0.01
#: Bounds of an epoch if none is given.
_ROWS, _DELAY = 1_000_000, 10.0
#: Seconds after which `EpochWriter.run` looks again whether an epoch is due.
_PATIENCE = 0.05


class DeliveredCounts:
    """For each stream, how many tuples each of its sources has delivered."""

    def __init__(self, streams: Sequence[str] = SIDES) -> None:
        self._counts: dict[str, list[int]] = {stream: [] for stream in streams}

    def add(self, stream: str, index: int, n: int) -> None:
        """Count ``n`` more tuples of source ``index`` of ``stream``."""
        counts = self._counts[stream]
        counts += [0] * (index + 1 - len(counts))
        counts[index] += n

    def state(self) -> dict[str, list[int]]:
        """The counts, from which `restore` continues."""
        return {stream: list(counts) for stream, counts in self._counts.items()}

    def restore(self, state: Mapping[str, Sequence[int]]) -> None:
        """Take over the counts of others."""
        self._counts = {stream: list(state.get(stream, ())) for stream in self._counts}


@dataclass(frozen=True)
class Cut:
    """One place in the sequence of results: the rows before it, and the state behind it.

    Attributes:
        tables: The rows by the name of their query ("" if there is one).
        state: The snapshot behind them.
        delivered: For each stream, the tuples that each of its sources has delivered to that state.
        frontier: The event time in ticks below which no later row lies, or None.
        undo: Puts the rows back, if they could not be written.
    """

    tables: Mapping[str, pa.Table]
    state: bytes
    delivered: Mapping[str, Sequence[int]]
    frontier: int | None
    undo: Callable[[], None]


class _EpochRows(Protocol):
    """A query whose rows are written; a `ResultReader` is one."""

    @property
    def lags(self) -> bool: ...
    @property
    def drained(self) -> bool: ...
    def found_rows(self) -> int: ...
    def take_found(self) -> tuple[pa.Table, Callable[[], None]]: ...


class _Lock(AbstractContextManager[Any], Protocol):
    def wait(self, seconds: float | None, /) -> bool: ...


@dataclass(frozen=True)
class EpochSource:
    """Cuts the rows of all queries at one place of the streams. One of shared streams whose device has failed gives no
    rows until it is restarted; its state stays with the others'.

    Attributes:
        lock: The lock of the streams; while it is held, nothing is delivered.
        queries: Gives what has rows by name; "" is the name of a join that has the streams for itself.
        counts: For each stream, the tuples that each source has delivered.
        frontier: Gives the event time in ticks below which no later row lies, or None.
        closed: Gives whether the streams have ended.
        state: Gives the snapshot of all; it is called with the lock held.
        restore: Goes on from such a snapshot.
        reserve: Refuses polls of all queries with a reason, or lets all poll again.
        time: The time columns.
        clock: Gives seconds, by which epochs are due.
    """

    lock: _Lock
    queries: Callable[[], Mapping[str, _EpochRows]]
    counts: DeliveredCounts
    frontier: Callable[[], int | None]
    closed: Callable[[], bool]
    state: Callable[[], bytes]
    restore: Callable[[bytes], None]
    reserve: Callable[[str | None], None]
    time: TimeColumns | None
    clock: Callable[[], float]

    def ready_rows(self) -> int:
        """Let the joins work; the most rows that wait for any one query."""
        rows = [0]
        for name, query in self.queries().items():
            try:
                rows.append(query.found_rows())
            except SplitJoinError:
                if not name:
                    raise
                continue  # its own polls raise it; the other queries go on
        return max(rows)

    def reached(self) -> int | None:
        """The event time in ticks below which no later row lies, or None."""
        with self.lock:
            return self.frontier()

    def delivered(self) -> dict[str, list[int]]:
        """For each stream, the tuples that each of its sources has delivered."""
        with self.lock:
            return self.counts.state()

    def cut(self) -> Cut:
        """Take all rows that wait, and the state behind them."""
        with self.lock:
            self.ready_rows()  # what is ready by now
            tables: dict[str, pa.Table] = {}
            undone: list[Callable[[], None]] = []

            def undo() -> None:
                for one in undone:
                    one()

            try:
                for name, query in self.queries().items():
                    tables[name], one = query.take_found()
                    undone.append(one)
                return Cut(tables, self.state(), self.delivered(), self.frontier(), undo)
            except BaseException:
                undo()
                raise

    def resume(self, state: bytes | None, delivered: Mapping[str, Sequence[int]]) -> None:
        """Go on from the state behind an epoch; None: with empty windows, behind the tuples ``delivered``."""
        if state is not None:
            self.restore(state)
        self.counts.restore(delivered)

    def input_ended(self) -> bool:
        """True if there will be no more rows than those that wait."""
        return self.closed() and all(query.drained for query in self.queries().values())

    def wait_for_work(self, seconds: float) -> None:
        """Wait until there may be more rows, at most this long."""
        with self.lock:
            if not self.closed():
                lags = any(query.lags for query in self.queries().values())
                self.lock.wait(min(seconds, POLL_SECONDS) if lags else seconds)


class EpochWriter:
    """Writes rows to a folder as epochs: Parquet files that appear as a whole; `StreamJoin.write_to` makes it.

    Every row is in exactly one epoch, and the epochs one after the other are what polls would have given, also if the
    process is killed at any moment and another one goes on: the state behind each epoch is committed with it. So to go
    on, open a session of the same query, call `write_to` with the same folder, and push the input from `delivered` on.
    Use as a context manager, which ends the last epoch unless an exception is on its way.

    An epoch ends when one of these holds, and there is anything new: ``rows`` rows wait; event time has advanced by
    ``every``; ``delay`` seconds have passed.
    """

    def __init__(self, of: EpochSource, folder: str | os.PathLike[str], *, every: int | None, rows: int | None,
                 delay: float | None, set_aside: Callable[[str], object] | None = None):
        if rows is not None and (type(rows) is not int or rows < 1):
            raise InputError(f"rows of an epoch must be a whole number from 1, or None, not {rows!r}")
        if delay is not None and (isinstance(delay, bool) or not isinstance(delay, (int, float)) or not delay > 0):
            raise InputError(f"the delay of an epoch must be seconds above 0, or None, not {delay!r}")
        if every is None and rows is None and delay is None:
            rows, delay = _ROWS, _DELAY
        if any(n for counts in of.delivered().values() for n in counts):
            raise InputError("epochs must begin with the first tuple, but tuples were pushed already; call write_to "
                             "before the first push")
        self._of, self._every, self._rows, self._delay = of, every, rows, delay
        self._folder = EpochFolder(folder)
        self._closed = False
        self._began_at: int | None = None
        self._cut: tuple[int, Cut] | None = None  # that of a commit whose end is not known
        try:
            self._resume(set_aside)
            of.reserve(f"the rows go to {self._folder.path}")
        except BaseException:
            self._folder.close()
            raise
        self._new_epoch(of.delivered())

    def _resume(self, set_aside: Callable[[str], object] | None) -> None:
        """Go on from the last epoch. A state that cannot be read is set aside if somebody is there to be told."""
        folder, last = self._folder, self.epochs - 1
        try:
            state = folder.state()
            if state is not None:
                self._of.resume(state, folder.manifest.delivered)
        except DamagedSnapshot as error:
            if set_aside is None:
                raise SnapshotError(f"the state of epoch {last} in {folder.path} must be one that a session can go on "
                                    f"from, but {error}. Restore the whole folder from a copy, write to another folder "
                                    f"to begin anew, or lose the windows alone: set_aside= of write_to, --set-aside of "
                                    f"splitjoin serve") from None
            aside = folder.set_aside()
            self._of.resume(None, folder.manifest.delivered)
            counts = ", ".join(f"{sum(n)} of {stream}" for stream, n in folder.manifest.delivered.items())
            set_aside(f"the state of epoch {last} in {folder.path} cannot be read ({error}), and was set aside as "
                      f"{aside}. All rows of epochs 0 to {last} stay. Lost are the tuples that were in windows then, "
                      f"or waited: no later tuple meets them, and no row of theirs comes that was open. Push the "
                      f"tuples behind those delivered ({counts})")
            cut = self._of.cut()  # a state to go on from the next time
            folder.commit(cut.tables, cut.state, delivered=cut.delivered, frontier=cut.frontier)
        except SnapshotError as error:
            raise SnapshotError(f"the state of epoch {last} in {folder.path} must be one that this session can go on "
                                f"from, but {error}; write to another folder to begin anew") from None

    @property
    def delivered(self) -> dict[str, tuple[int, ...]]:
        """For each stream, how many tuples each of its sources has delivered to the last epoch's state: a process that
        goes on pushes from there. A stream without a source yet has none; the default source is a stream's first,
        unless others were added before.
        """
        return {side: tuple(counts) for side, counts in self._folder.manifest.delivered.items()}

    @property
    def epochs(self) -> int:
        """The number of epochs in the folder."""
        return self._folder.manifest.epochs

    @property
    def settled(self) -> bool:
        """False after an error of the disk that came when an epoch could be there already, until a call of `commit` or
        `write` has made sure.
        """
        return self._folder.settled

    def write(self) -> bool:
        """Write an epoch if one is due. Returns whether it did."""
        rows = self._of.ready_rows()
        due = self._rows is not None and rows >= self._rows
        if self._every is not None and not due:
            frontier = self._of.reached()
            if self._began_at is None:
                self._began_at = frontier
            due = frontier is not None and self._began_at is not None and frontier >= self._began_at + self._every
        if self._delay is not None and not due:
            due = self._of.clock() - self._began >= self._delay
        return (due or not self.settled) and self.commit()

    def commit(self) -> bool:
        """End the epoch now. Returns False, and writes nothing, if nothing has come since the last one.

        Raises `InputError` if the disk does not let it. The rows are not lost: they are written by the next call,
        or, if the error came too late for that, counted as written once the next call has made sure. `epochs` and
        `delivered` count what outlasts a power cut.
        """
        if self._closed:
            raise InputError("the writer of epochs is closed; call write_to of a new session to go on")
        before = self.epochs
        try:
            self._folder.settle()
        finally:
            self._end_cut()
        if not self._of.ready_rows() and self._of.delivered() == self._pushed:
            self._new_epoch(self._pushed)
            return self.epochs > before
        cut = self._of.cut()
        self._cut = self.epochs, cut
        try:
            self._folder.commit(cut.tables, cut.state, delivered=cut.delivered, frontier=cut.frontier)
        finally:
            self._end_cut()
        return True

    def _end_cut(self) -> None:
        """Put the rows of a cut back if it is sure that they are in no epoch."""
        if self._cut is None or not self._folder.settled:
            return
        (epoch, cut), self._cut = self._cut, None
        if self.epochs > epoch:
            self._new_epoch(cut.delivered)
        else:
            cut.undo()

    def wait(self, seconds: float) -> None:
        """Wait until there may be more rows, at most this long."""
        self._of.wait_for_work(seconds)

    def run(self) -> None:
        """Write epochs until both streams are closed, then the last one: with the pushes in other threads."""
        while not self._of.input_ended():
            self.write()
            self.wait(_PATIENCE)
        self.commit()

    def close(self) -> None:
        """Let other processes write the folder. Rows that are in no epoch for sure stay in the session."""
        if not self._closed:
            self._closed = True
            with suppress(SplitJoinError):
                self._folder.settle()
            self._end_cut()
            self._of.reserve(None)
            self._folder.close()

    def __enter__(self) -> EpochWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        try:
            if kind is None and not self._closed:
                self.commit()
        finally:
            self.close()

    def _new_epoch(self, pushed: Mapping[str, Sequence[int]]) -> None:
        """Begin an epoch behind the state to which so many tuples were delivered."""
        self._began, self._began_at, self._pushed = self._of.clock(), self._of.reached(), pushed


class EpochsOfResults(ABC):
    """Writes results as epochs; all kinds of sessions do."""

    def write_to(self, folder: str | os.PathLike[str], *, every: Lateness | None = None, rows: int | None = None,
                 delay: float | None = None, set_aside: Callable[[str], object] | None = None) -> EpochWriter:
        """Write the results to ``folder`` as Parquet files, an epoch each, instead of having them polled; those of each
        query of shared streams to a folder of its name.

        An epoch ends when event time has advanced by ``every`` (as in `lateness`), when ``rows`` rows wait, or after
        ``delay`` seconds, whichever comes first; by default at a million rows or after ten seconds. It ends for all
        queries at the same place of the streams. If the folder has epochs of the same query, the session continues from
        the last one: add queries of shared streams under the same names first. Call it before the first push. Queries
        may be added and closed later; rows of one that is closed before they are in an epoch are lost.

        ``set_aside``: called with a text if the state behind the last epoch cannot be read; then it is renamed, and the
        session goes on with empty windows. Without it that is an error.

        Raises `InputError` for a folder that cannot be written, that another process writes, or that lies in a folder
        of epochs or around one; `SnapshotError` for epochs of another query, rows that are in no file, and a state that
        cannot be read.
        """
        of = self._epochs()
        return EpochWriter(of, folder, every=_ticks(every, of.time), rows=rows, delay=delay, set_aside=set_aside)

    @abstractmethod
    def _epochs(self) -> EpochSource:
        """What the epochs are written of."""


def _ticks(every: Any, time: TimeColumns | None) -> int | None:
    """The ticks of ``every``, a length as of a RANGE window; None is None."""
    if every is None:
        return None
    if time is None:
        raise InputError("epochs by event time need a time column, but the query has none; give rows= or delay=")
    try:
        ticks = parse_lateness(every, time)
    except WindowError:
        raise InputError(f"every must be the length of an epoch in event time, such as '5 MINUTES', or 5 with an "
                         f"integer time column, not {every!r}") from None
    if not ticks:
        raise InputError(f"every must be a length above 0, not {every!r}")
    return ticks
