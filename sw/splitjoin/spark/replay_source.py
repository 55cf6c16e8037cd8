"""`ReplaySource`: Spark's streaming source of `splitjoin.spark.replay`, which needs Spark 4.2 or later."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from splitjoin.base.errors import InputError

from .replay_files import Files, Options, event_times, opened

#: The name of the source for ``spark.readStream.format``.
FORMAT = "splitjoin-replay"

#: Tasks that read a micro-batch at most, and rows that are worth a task.
_TASKS, _TASK_ROWS = 4, 100_000
#: Rows of a batch that is handed to Spark.
_ROWS = 10_000


class _Rows(InputPartition):
    """Rows ``first`` to ``last`` (excluded); ``before``: if the row before them is to be compared, too."""

    def __init__(self, first: int, last: int, before: bool):
        super().__init__((first, last, before))
        self.first, self.last, self.before = first, last, before


class ReplaySource(DataSource):
    """The source `FORMAT`; `replay` sets its options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def _files(self) -> Files:
        return Files(Options(**json.loads(self.options["splitjoin"])))

    def schema(self) -> StructType:
        return from_arrow_schema(self._files().schema, prefer_timestamp_ntz=True)

    def streamReader(self, schema: StructType) -> ReplayReader:  # noqa: N802  # Spark's name
        return ReplayReader(self._files(), to_arrow_schema(schema, timezone="UTC"))


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the rows between two offsets, which are ``{"row": …, "files": digest}``."""

    def __init__(self, files: Files, schema: pa.Schema):
        self._files, self._schema = files, schema
        self._everything = False
        self._began: tuple[float, int, int] | None = None  # the clock, the row and the event time of the first call

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        return {"row": 0, "files": self._files.digest}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        most = self._files.options.rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        self._everything = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        self._check(start)
        row = start["row"]
        due = self._files.rows if self._everything else self._due(row)
        if isinstance(limit, ReadMaxRows):
            due = min(due, row + limit.max_rows)
        return {"row": max(row, due), "files": self._files.digest}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._check(start)
        self._check(end)
        first, last = start["row"], end["row"]
        tasks = max(1, min(_TASKS, (last - first) // _TASK_ROWS))
        cuts = [first + (last - first) * n // tasks for n in range(tasks + 1)]
        return [_Rows(a, b, a > 0) for a, b in pairwise(cuts) if b > a]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        last = self._files.time_of(partition.first - 1) if partition.before else None
        for group in self._files.index:
            first, end = max(partition.first, group.first), min(partition.last, group.last)
            if first >= end:
                continue
            table = opened(group.file).row_group(group.number).slice(first - group.first, end - first)
            times = event_times(table, self._files.options.time)
            falls = np.flatnonzero(np.diff(times, prepend=times[0] if last is None else last) < 0)
            if len(falls):
                raise InputError(f"the rows must be in order of {self._files.options.time!r}, but row "
                                 f"{first + int(falls[0])} of {self._files.options.path!r} is before the row in front "
                                 f"of it; sort the files")
            last = int(times[-1])
            yield from table.cast(self._schema).to_batches(max_chunksize=_ROWS)

    def _due(self, row: int) -> int:
        """The number of rows that have come by now."""
        options, now = self._files.options, clock.monotonic()
        if self._began is None:
            begins = 0
            if options.speed is not None and row < self._files.rows:
                first = options.start is not None and row == 0
                begins = options.start if first and options.start is not None else self._files.time_of(row)
            self._began = now, row, begins
        began, first_row, begins = self._began
        if options.rows_per_second is not None:
            return min(self._files.rows, first_row + int((now - began) * options.rows_per_second))
        if options.speed is not None:
            per_second = options.speed * (1 if _counts(self._files.schema, options.time) else 10**6)
            return self._files.rows_until(begins + (now - began) * per_second, row)
        return self._files.rows

    def _check(self, offset: dict[str, Any]) -> None:
        if offset["files"] != self._files.digest:
            raise InputError(f"the files at {self._files.options.path!r} have changed since the query began, so row "
                             f"numbers do not mean the same rows any more; start with a new checkpoint")


def _counts(schema: pa.Schema, name: str) -> bool:
    """True if the time column is an integer, whose unit is the user's own."""
    return bool(pa.types.is_integer(schema.field(name).type))
