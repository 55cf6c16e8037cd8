"""`SharedQuery`: one of many queries over a pair of streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.device import Items

from ..gate import Reader, ReadySequence
from ..limit import Limit
from ..reading import ReadingSession, ResultSource, TupleSource
from ..schemas import SessionSchemas
from ..snapshot import Snapshot, identity
from .scan import Scan, opened_pipeline

__all__ = ["SharedPipeline", "SharedQuery"]


class _SharedTuples(TupleSource, Protocol):
    """The place of a query in the streams; a `Reader` is one."""

    paused: bool

    @property
    def waiting(self) -> int: ...
    def finish(self) -> None: ...
    def wait(self, seconds: float | None) -> None: ...
    def close(self) -> None: ...


class SharedPipeline(ResultSource, Protocol):
    """What a `SharedQuery` reads: a `Pipeline` of its own, or what it chooses of a common join's pairs."""

    @property
    def gate(self) -> _SharedTuples: ...
    @property
    def holds_back(self) -> bool: ...
    def snapshot(self) -> bytes: ...


class SharedQuery(ReadingSession[SharedPipeline]):
    """One query over shared streams: the reading half of a session; `SharedStreams.query` and `sql` add it.

    Use as a context manager. A poll reads the tuples that became ready since the last one, joins them in the calling
    thread, and gives the rows; so queries that are polled in several threads run in parallel, and none waits for
    another. Iteration waits for rows until both streams are closed.

    Attributes:
        name: The name by which snapshots know it.
        query: The checked query.
    """

    def __init__(self, forget: Callable[[SharedQuery], None], name: str, schemas: SessionSchemas,
                 pipeline: SharedPipeline, limit: Limit, punctuation: bool):
        super().__init__(punctuation=punctuation)
        self._forget, self._schemas, self._pipeline, self._limit = forget, schemas, pipeline, limit
        self.name, self.query = name, schemas.query

    def close(self) -> None:
        """Remove the query from the streams and release its device. Rows that were not polled are lost."""
        super().close()
        self._pipeline.gate.close()
        self._forget(self)

    @property
    def drained(self) -> bool:
        """True if the streams have ended, and all rows are found; they may wait for a poll."""
        return self._pipeline.ended or self._pipeline.failure is not None

    @property
    def unread(self) -> int:
        """The number of ready tuples that the query has not read."""
        return self._pipeline.gate.waiting

    def held(self) -> AbstractContextManager[object]:
        """Within the context nobody reads the query's rows; `SharedStreams` takes snapshots so."""
        return self._lock

    def state(self) -> bytes:
        """The query's part of a snapshot, at the place that the streams have reached; `SharedStreams` asks for it."""
        with self._opened():
            self._pipeline.gate.paused = False
            return self._pipeline.snapshot()

    def opened_again(self, sequence: ReadySequence, state: Snapshot, scans: Mapping[str, Scan]) -> SharedPipeline:
        """A pipeline for the same device that reads ``sequence`` from now on, or of one of the ``scans`` by the name of
        a common join, from ``state``; see `replace`.
        """
        with self._opened():
            state.check(identity(self.query, self._schemas.gathered, Reader.rule, self._punctuation))
            return opened_pipeline(sequence, self._schemas, self._pipeline.device, self._limit, self._punctuation,
                                   state)

    def replace(self, pipeline: SharedPipeline) -> None:
        """Go on with ``pipeline``."""
        with self._lock:
            old, self._pipeline = self._pipeline, pipeline
            old.close()
            old.gate.close()

    def _take(self) -> tuple[pa.RecordBatch, Items]:
        with self._lock:
            self._check_open()
            taken = self._pipeline.results.take()
            if self._pipeline.failure is not None:
                if not len(taken[0]):
                    raise self._pipeline.failed()
            elif not self._pipeline.ended:
                try:
                    self._work()
                except SplitJoinError:
                    if not len(taken[0]):
                        raise
            return taken if len(taken[0]) or len(taken[1]) else self._pipeline.results.take()

    def _work(self, *, unlimited: bool = False) -> None:
        # What a bound on the results holds up counts as not read, so that it is kept once.
        self._pipeline.gate.paused = not unlimited and self._pipeline.holds_back
        super()._work(unlimited=unlimited)

    def _end_input(self) -> None:
        self._pipeline.gate.finish()

    def _wait(self, seconds: float | None) -> None:
        self._pipeline.gate.wait(seconds)
