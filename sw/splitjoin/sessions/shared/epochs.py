"""`StreamsEpochs`: what the epochs of shared streams are written of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Condition

import pyarrow as pa

from splitjoin.base.errors import SplitJoinError

from ..epochs import Cut, DeliveredCounts
from .query import SharedQuery

__all__ = ["StreamsEpochs"]


@dataclass(frozen=True)
class StreamsEpochs:
    """Cuts the results of all queries at the same place of the streams. A query whose device has failed gives no rows
    until it is restarted; its state stays with the others'.

    Attributes:
        lock: The lock of the streams; while it is held, nothing is delivered.
        queries: Gives the queries by name.
        counts: For each stream, the tuples that each source has delivered.
        frontier: Gives the event time in ticks below which nothing becomes ready.
        closed: Gives whether the streams have ended.
        state: Gives the snapshot of streams and queries; it is called with the lock held.
        restore: Goes on from such a snapshot.
        reserve: Refuses polls of all queries with a reason, or lets all poll again.
    """

    lock: Condition
    queries: Callable[[], Mapping[str, SharedQuery]]
    counts: DeliveredCounts
    frontier: Callable[[], int | None]
    closed: Callable[[], bool]
    state: Callable[[], bytes]
    restore: Callable[[bytes], None]
    reserve: Callable[[str | None], None]

    def ready_rows(self) -> int:
        rows = [0]
        for query in self.queries().values():
            try:
                rows.append(query.found_rows())
            except SplitJoinError:  # its own polls raise it; the other queries go on
                continue
        return max(rows)

    def reached(self) -> int | None:
        with self.lock:
            return self.frontier()

    def delivered(self) -> dict[str, list[int]]:
        with self.lock:
            return self.counts.state()

    def cut(self) -> Cut:
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
        if state is not None:
            self.restore(state)
        self.counts.restore(delivered)

    def input_ended(self) -> bool:
        return self.closed() and all(query.drained for query in self.queries().values())

    def wait_for_work(self, seconds: float) -> None:
        with self.lock:
            if not self.closed():
                self.lock.wait(seconds)
