"""`ResultQueue`: a FIFO of result rows from the pipeline to polls; `RowGatherer` makes the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.arrays import Ints
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.aggregates import Gather
from splitjoin.rows.operator import RowBatch

from .schemas import SessionSchemas

#: Bytes that one polled batch may have, so that the offsets of its strings stay below 2 GiB.
_MAX_BYTES = 1 << 30
#: Result rows in one batch.
_BATCH_ROWS = 1 << 16


class ResultQueue:
    """A thread-safe FIFO of result batches, and with ``punctuated`` of the items they come from.

    Attributes:
        schema: The Arrow schema of the batches.
        rows, nbytes: Rows in the queue, and their bytes.
        total: Rows put since the beginning.
    """

    def __init__(self, schema: pa.Schema, punctuated: bool):
        self.schema, self._punctuated = schema, punctuated
        self._queue: deque[tuple[pa.RecordBatch, Items]] = deque()
        self._changed = threads.condition()
        self._ended = self._failed = False
        self.rows = self.nbytes = 0
        self.total = 0

    @property
    def finished(self) -> bool:
        """True if no more rows will be put and all are taken."""
        with self._changed:
            return self._ended and not self._queue

    @property
    def has_news(self) -> bool:
        """True if `wait` would not wait."""
        return bool(self._queue) or self._ended or self._failed

    def put(self, batch: pa.RecordBatch, items: Items) -> None:
        """Add a batch; ``items`` are its pairs, and stars among them."""
        with self._changed:
            if not len(batch) and not (self._punctuated and len(items)):
                return
            self._queue.append((batch, items if self._punctuated else np.empty(0, ITEM)))
            self.rows += len(batch)
            self.nbytes += batch.nbytes
            self.total += len(batch)
            self._changed.notify_all()

    def end(self) -> None:
        """Note that no more rows will be put."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def fail(self) -> None:
        """Make `wait` return at once, until `recover`; its callers must check for the failure."""
        with self._changed:
            self._failed = True
            self._changed.notify_all()

    def recover(self) -> None:
        """Make `wait` wait again, after `fail`."""
        with self._changed:
            self._failed = False

    def wait(self, seconds: float | None) -> None:
        """Wait until there are rows, no more rows will be put, the device has failed, or ``seconds`` have passed."""
        with self._changed:
            if not self.has_news:
                self._changed.wait(seconds)

    def take(self) -> tuple[pa.RecordBatch, Items]:
        """Remove the oldest rows, as one batch of at most about 1 GiB, which may be empty."""
        with self._changed:
            taken: list[tuple[pa.RecordBatch, Items]] = []
            nbytes = 0
            while self._queue and (not taken or nbytes + self._queue[0][0].nbytes <= _MAX_BYTES):
                taken.append(self._queue.popleft())
                nbytes += taken[-1][0].nbytes
            self.rows -= sum(len(batch) for batch, _ in taken)
            self.nbytes -= nbytes
        if not taken:
            return _empty(self.schema), np.empty(0, ITEM)
        if len(taken) == 1:
            return taken[0]
        batches = pa.Table.from_batches([b for b, _ in taken], self.schema).combine_chunks().to_batches()
        assert len(batches) <= 1, "batches of 1 GiB together fit one"
        return batches[0] if batches else _empty(self.schema), np.concatenate([i for _, i in taken])

    def put_back(self, batch: pa.RecordBatch, items: Items) -> None:
        """Undo a `take`."""
        with self._changed:
            self._queue.appendleft((batch, items))
            self.rows += len(batch)
            self.nbytes += batch.nbytes
            self._changed.notify_all()

    def restore(self, batches: list[pa.RecordBatch], items: Items, total: int) -> None:
        """Put the batches and items that `peek` of another queue returned, and take over its ``total``."""
        for n, batch in enumerate(batches or [_empty(self.schema)]):
            self.put(batch, items if n == 0 else items[:0])
        self.total = total

    def peek(self) -> tuple[list[pa.RecordBatch], Items]:
        """All batches and items, which stay in the queue."""
        with self._changed:
            return ([batch for batch, _ in self._queue],
                    np.concatenate([np.empty(0, ITEM), *(items for _, items in self._queue)]))


class RowGatherer:
    """Makes result rows of the items that decide them: it gathers their columns with ``gather``, and queues them in
    ``results``.
    """

    def __init__(self, schemas: SessionSchemas, gather: Gather, results: ResultQueue):
        self._schemas, self._gather, self._results = schemas, gather, results
        self._names = {side: list(dict.fromkeys(c.source for c in schemas.columns if c.side == side)) for side in SIDES}

    def put(self, batch: RowBatch) -> int:
        """Queue the rows of ``batch``, and return how many there are."""
        items, values = batch.items, batch.values
        if not len(items):
            return 0
        at = np.flatnonzero(items["kind"] == PAIR)
        if len(at) <= _BATCH_ROWS:
            self._results.put(self._gathered(items[at] if len(at) < len(items) else items, values), items)
            return len(at)
        done = 0
        for start in range(0, len(at), _BATCH_ROWS):
            end = len(items) if start + _BATCH_ROWS >= len(at) else int(at[start + _BATCH_ROWS])
            part = [column.slice(start, _BATCH_ROWS) for column in values]
            self._results.put(self._gathered(items[at[start:start + _BATCH_ROWS]], part), items[done:end])
            done = end
        return len(at)

    def _gathered(self, pairs: Items, values: Sequence[pa.ChunkedArray]) -> pa.RecordBatch:
        """The columns for ``pairs`` from which result rows are computed; the last ones are ``values``."""
        columns, arrays = self._schemas.columns, dict[tuple[Side, str], pa.Array]()
        for side in SIDES:
            rows: Ints = np.ascontiguousarray(pairs[side])
            names = self._names[side]
            found = self._gather(side, names, rows)
            arrays |= zip([(side, name) for name in names], found, strict=True)
        flat = [pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
                for column in values]
        return pa.RecordBatch.from_arrays([*(arrays[c.side, c.source] for c in columns), *flat],
                                          schema=self._schemas.gathered)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
