"""`RowGatherer`: makes result rows of the items that decide them, from the columns that a session retains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.device import PAIR, Items
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.aggregates import Gather
from splitjoin.rows.operator import RowBatch

from .results import ResultQueue
from .schemas import SessionSchemas

__all__ = ["RowGatherer"]

#: Result rows in one batch.
_BATCH_ROWS = 1 << 16


class RowGatherer:
    """Gathers the columns of rows with ``gather``, and queues them in ``results``."""

    def __init__(self, schemas: SessionSchemas, gather: Gather, results: ResultQueue):
        self._schemas, self._gather, self._results = schemas, gather, results
        self._names = {side: list(dict.fromkeys(c.source for c in schemas.columns if c.side == side))
                       for side in SIDES}

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
            rows: npt.NDArray[np.int64] = np.ascontiguousarray(pairs[side])
            names = self._names[side]
            found = self._gather(side, names, rows)
            arrays |= zip([(side, name) for name in names], found, strict=True)
        flat = [pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
                for column in values]
        return pa.RecordBatch.from_arrays([*(arrays[c.side, c.source] for c in columns), *flat],
                                          schema=self._schemas.gathered)
