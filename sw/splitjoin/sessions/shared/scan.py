"""`SharedScan`: one running join whose pairs several queries choose from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.device import PAIR, Device, Items
from splitjoin.lang.eval.vector import Vector, column
from splitjoin.lang.ir import Col
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import WindowSpec

from ..gate import GateReader, ReadySequence
from ..limit import PipelineOptions
from ..pipeline import Pipeline
from ..schemas import SessionSchemas
from ..snapshot import Snapshot

__all__ = ["Cursor", "FoundPairs", "SharedScan", "opened_pipeline"]

Ints = npt.NDArray[np.int64]
#: Seconds after which a query that waits looks again, as another one may have read what it waits for.
_PATIENCE = 0.02


class FoundPairs:
    """Pairs that a scan has found, with the columns of both streams. What several queries read of them is made once.

    Attributes:
        items: The pairs, and stars among them.
        pairs: The pairs alone.
        reached: The number of tuples of both streams that the device had got.
    """

    def __init__(self, items: Items, batch: pa.RecordBatch, places: Mapping[tuple[Side, str], int], reached: int):
        self.items, self._batch, self._places, self.reached = items, batch, places, reached
        self.is_pair: npt.NDArray[np.bool_] = items["kind"] == PAIR
        self.pairs: Items = items[self.is_pair]
        self._vectors: dict[tuple[Side, str], Vector] = {}
        self._ages: Ints | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    def column(self, side: Side, name: str) -> pa.Array:
        """A column of the pairs."""
        return self._batch.column(self._places[side, name])

    def vector(self, col: Col) -> Vector:
        """The values of a column of the pairs."""
        key = col.side, col.name
        if key not in self._vectors:
            self._vectors[key] = column(pa.chunked_array([self.column(*key)]))
        return self._vectors[key]

    def ages(self, query: Query) -> npt.NDArray[np.uint64]:
        """By how many ticks each pair's stored tuple is older than its probe."""
        if self._ages is None:
            time = query.time
            assert time is not None
            r, s = (event_ticks(time, side, pa.table({time.name(side): self.column(side, time.name(side))}))
                    for side in SIDES)
            self._ages = np.where(self.pairs["side"] == 0, r - s, s - r)  # modulo 2**64, as it is never negative
        return self._ages.view(np.uint64)


class SharedScan:
    """Runs the query of a common join over ``sequence``, and keeps what it finds until all cursors have read it.

    Attributes:
        lock: Held while the join works, and while what it found is read.
        pipeline: The join.
    """

    def __init__(self, sequence: ReadySequence, schemas: SessionSchemas, device: Device, options: PipelineOptions,
                 snapshot: Snapshot | None):
        self.lock = threads.rlock()
        self.pipeline = opened_pipeline(sequence, schemas, device, options, snapshot)
        self._sequence = sequence
        self._places: dict[tuple[Side, str], int] = {(c.side, c.source): n for n, c in enumerate(schemas.columns)}
        self._found: deque[FoundPairs] = deque()
        self._cursors: list[Cursor] = []
        self._end = 0  # the number of the next found batch
        #: The row ids of the first tuples that the device had when the windows were last changed, or at first.
        self.begin = self.pipeline.windows.first
        place = self.pipeline.place()
        self._before = self.pipeline.gate.position - sum(place)  # tuples of the sequence that have no row ids here

    @property
    def closed(self) -> bool:
        """True if no query reads it; when the last one has left, its device is released."""
        return not self._cursors

    def cursor(self, *, ended: bool = False, restored: bool = False) -> Cursor:
        """A reader of what is found from now on, or of nothing if it has ``ended``; of a ``restored`` query, also of
        what the scan has found since it was restored.
        """
        with self.lock:
            self.collect()
            position = self._end - (len(self._found) if restored else 0)
            made = Cursor(self, position, sum(self.pipeline.place()))
            made.closed = ended
            if not ended:
                self._cursors.append(made)
            return made

    def work(self, *, unlimited: bool = False) -> None:
        """Let the join go on with what is ready."""
        with self.lock:
            try:
                if self.pipeline.failure is None and not self.pipeline.ended:
                    self.pipeline.work(unlimited=unlimited)
            finally:
                self.collect()

    def window(self, window: WindowSpec) -> tuple[int, int]:
        """Change the windows of the join (`Pipeline.window`)."""
        with self.lock:
            try:
                return self.pipeline.window(window)
            finally:
                self.begin = self.pipeline.windows.first
                self.collect()

    def settle(self) -> None:
        """Find all pairs of the tuples that the device got."""
        with self.lock:
            self.pipeline.settle()
            self.collect()

    def collect(self) -> None:
        """Take what the join has found. The caller holds the lock."""
        while True:
            batch, items = self.pipeline.results.take()
            if not len(items):
                return
            self._found.append(FoundPairs(items, batch, self._places, sum(self.pipeline.pushed)))
            self._end += 1

    def after(self, cursor: Cursor) -> Iterator[FoundPairs]:
        """What ``cursor`` has not read. The caller holds the lock."""
        while cursor.position < self._end:
            found = self._found[len(self._found) - (self._end - cursor.position)]
            cursor.position, cursor.reached = cursor.position + 1, found.reached
            yield found
        cursor.reached = max(cursor.reached, sum(self.pipeline.pushed))
        self._free()

    def unread(self, cursor: Cursor) -> int:
        """The number of ready tuples whose pairs ``cursor`` has not read. It waits for no lock."""
        return 0 if cursor.closed else max(0, self._sequence.end - self._before - cursor.reached)

    def has_more(self, cursor: Cursor) -> bool:
        """True if pairs are found that ``cursor`` has not read."""
        return not cursor.closed and cursor.position < self._end

    def wait(self, cursor: Cursor, seconds: float | None, ends: Callable[[], bool]) -> None:
        """Wait until ``cursor`` may have something to read, ``ends`` is true, or ``seconds`` have passed."""
        if not self.has_more(cursor) and self.pipeline.failure is None:
            self._sequence.wait(self.pipeline.gate, _PATIENCE if seconds is None else min(seconds, _PATIENCE), ends)

    def remove(self, cursor: Cursor) -> None:
        """Forget ``cursor``; with the last one the device is released."""
        with self.lock:
            if cursor in self._cursors:
                cursor.closed = True
                self._cursors.remove(cursor)
                self._free()
                if not self._cursors:
                    self.close()

    def close(self) -> None:
        """Release the device."""
        self.pipeline.close()
        self.pipeline.gate.close()

    def _free(self) -> None:
        """Drop what all cursors have read."""
        first = min((cursor.position for cursor in self._cursors), default=self._end)
        while len(self._found) > self._end - first:
            self._found.popleft()


class Cursor:
    """One query's place in what a `SharedScan` finds: the tuples of its `ResultSource`.

    Attributes:
        position: The number of the first found batch that it has not read.
        reached: The number of tuples of both streams whose pairs it has read.
        end: The row ids of the first tuples that are no longer the query's, once its input is ended.
        paused: True if it is to read nothing.
        closed: True if its place is given up.
    """

    def __init__(self, scan: SharedScan, position: int, reached: int):
        self.scan, self.position, self.reached = scan, position, reached
        self.end: tuple[int, int] | None = None
        self.paused = self.closed = False

    @property
    def waiting(self) -> int:
        """The number of ready tuples whose pairs the query has not read."""
        return self.scan.unread(self)

    def take(self) -> Iterator[FoundPairs]:
        """What was found and not read. The caller holds the scan's lock."""
        return iter(()) if self.paused or self.closed else self.scan.after(self)

    def finish(self) -> None:
        """Let the tuples that are ready now be the query's last ones."""
        with self.scan.lock:
            self.end = self.end or self.scan.pipeline.place()

    def wait(self, seconds: float | None, ends: Callable[[], bool]) -> None:
        """Wait until there may be something to read, ``ends`` is true, or ``seconds`` have passed."""
        self.scan.wait(self, seconds, ends)

    def wake(self) -> None:
        """Let threads that `wait` look again."""
        self.scan.pipeline.gate.wake()

    def next_idle(self) -> float | None:
        """Seconds until a silent source no longer holds tuples back; None if none will."""
        return self.scan.pipeline.gate.next_idle()

    def close(self) -> None:
        """Give up the place."""
        self.scan.remove(self)


def opened_pipeline(sequence: ReadySequence, schemas: SessionSchemas, device: Device, options: PipelineOptions,
                    snapshot: Snapshot | None) -> Pipeline[GateReader]:
    """A pipeline that reads ``sequence`` from now on."""
    reader = sequence.reader(schemas.kept_of, schemas.streams)
    try:
        return Pipeline(schemas, device, options, gate=lambda: reader, snapshot=snapshot)
    except BaseException:
        reader.close()
        raise
