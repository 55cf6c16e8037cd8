"""`EpochSource`: what epochs are written of: a session, the queries of shared streams, or a join of several streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from splitjoin.base.errors import SplitJoinError
from splitjoin.lang.schema import SIDES
from splitjoin.lang.time_columns import TimeColumns

__all__ = ["POLL_SECONDS", "Cut", "DeliveredCounts", "EpochSource"]

#: Seconds between two polls of a device that finds results by itself.
POLL_SECONDS = 0.01


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
    """What gives rows; a `ResultReader` does."""

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
