"""`SharedScan`: one running join whose pairs several queries choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.arrays import Ints, Mask
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

#: Seconds after which a query that waits looks again, as another one may have read what it waits for.
_PATIENCE = 0.02


class FoundPairs:
    """Pairs that a scan has found, with the columns of both streams. What several queries read of them is made once.

    Attributes:
        items: The pairs, and stars among them.
        pairs: The pairs alone.
    """

    def __init__(self, items: Items, batch: pa.RecordBatch, places: Mapping[tuple[Side, str], int]):
        self.items, self._batch, self._places = items, batch, places
        self.is_pair: Mask = items["kind"] == PAIR
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


class PairReader(Protocol):
    """A query of a common join, which chooses from the pairs of its scan."""

    def take(self, found: FoundPairs) -> None:
        """Choose from ``found``. The caller holds the scan's lock."""


class SharedScan:
    """Runs the query of a common join over ``sequence``, and gives what it finds to all readers.

    Attributes:
        lock: Held while the join works, and while readers choose from what it found.
        pipeline: The join.
        readers: Who chooses from its pairs.
    """

    def __init__(self, sequence: ReadySequence, schemas: SessionSchemas, device: Device, options: PipelineOptions,
                 snapshot: Snapshot | None):
        self.lock = threads.rlock()
        self.pipeline = opened_pipeline(sequence, schemas, device, options, snapshot)
        self._sequence = sequence
        self._places: dict[tuple[Side, str], int] = {(c.side, c.source): n for n, c in enumerate(schemas.columns)}
        self.readers: list[PairReader] = []
        #: The row ids of the first tuples that the device had when the windows were last changed, or at first.
        self.begin = self.pipeline.windows.first
        place = self.pipeline.place()
        self._before = self.pipeline.gate.position - sum(place)  # tuples of the sequence that have no row ids here

    @property
    def closed(self) -> bool:
        """True if no query reads it; when the last one has left, its device is released."""
        return not self.readers

    def add(self, reader: PairReader, *, restored: bool) -> None:
        """Let ``reader`` choose from what is found from now on; one that is ``restored``, also from what the scan has
        found since it was restored.
        """
        with self.lock:
            if not restored:
                self.collect()
            self.readers.append(reader)

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
                return self.pipeline.window(window)()
            finally:
                self.begin = self.pipeline.windows.first
                self.collect()

    def settle(self) -> None:
        """Find all pairs of the tuples that the device got."""
        with self.lock:
            self.pipeline.settle()
            self.collect()

    def collect(self) -> None:
        """Give what the join has found to the readers. The caller holds the lock."""
        while True:
            batch, items = self.pipeline.results.take()
            if not len(items):
                return
            found = FoundPairs(items, batch, self._places)
            for reader in self.readers:
                reader.take(found)

    def unread(self, reached: int) -> int:
        """The number of ready tuples behind the first ``reached`` ones of the scan. It waits for no lock."""
        return max(0, self._sequence.end - self._before - reached)

    def wait(self, seconds: float | None, ends: Callable[[], bool]) -> None:
        """Wait until there may be something to find, ``ends`` is true, or ``seconds`` have passed."""
        if self.pipeline.failure is None:
            self._sequence.wait(self.pipeline.gate, _PATIENCE if seconds is None else min(seconds, _PATIENCE), ends)

    def remove(self, reader: PairReader) -> None:
        """Give nothing more to ``reader``; with the last one the device is released."""
        with self.lock:
            if reader in self.readers:
                self.readers.remove(reader)
                if not self.readers:
                    self.close()

    def close(self) -> None:
        """Release the device."""
        self.pipeline.close()
        self.pipeline.gate.close()


def opened_pipeline(sequence: ReadySequence, schemas: SessionSchemas, device: Device, options: PipelineOptions,
                    snapshot: Snapshot | None) -> Pipeline[GateReader]:
    """A pipeline that reads ``sequence`` from now on."""
    reader = sequence.reader(schemas.kept_of, schemas.streams)
    try:
        return Pipeline(schemas, device, options, gate=lambda: reader, snapshot=snapshot)
    except BaseException:
        reader.close()
        raise
