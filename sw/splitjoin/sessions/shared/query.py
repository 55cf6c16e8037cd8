"""`SharedQuery`: one of many queries over a pair of streams."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from splitjoin.base.errors import SplitJoinError
from splitjoin.engines.device import Device, Items

from ..gate import Reader, ReadySequence
from ..limit import Limit
from ..pipeline import Pipeline
from ..reading import ReadingSession
from ..schemas import SessionSchemas
from ..snapshot import Snapshot, identity

__all__ = ["SharedQuery", "opened_pipeline"]


class SharedQuery(ReadingSession[Reader]):
    """One query over shared streams: the reading half of a session; `SharedStreams.query` and `sql` add it.

    Use as a context manager. A poll reads the tuples that became ready since the last one, joins them in the calling
    thread, and gives the rows; so queries that are polled in several threads run in parallel, and none waits for
    another. Iteration waits for rows until both streams are closed.

    Attributes:
        name: The name by which snapshots know it.
        query: The checked query.
    """

    def __init__(self, forget: Callable[[SharedQuery], None], name: str, schemas: SessionSchemas,
                 pipeline: Pipeline[Reader], limit: Limit, punctuation: bool):
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

    def state(self) -> bytes:
        """The query's part of a snapshot, at the place that the streams have reached; `SharedStreams` asks for it."""
        with self._opened():
            self._pipeline.gate.paused = False
            return self._pipeline.snapshot()

    def opened_again(self, sequence: ReadySequence, state: Snapshot) -> Pipeline[Reader]:
        """A pipeline for the same device that reads ``sequence`` from now on, from ``state``; see `replace`."""
        with self._opened():
            state.check(identity(self.query, self._schemas.gathered, Reader.rule, self._punctuation))
            return opened_pipeline(sequence, self._schemas, self._pipeline.device, self._limit, self._punctuation,
                                   state)

    def reads_last(self, sequence: ReadySequence) -> bool:
        """True if no other query has more of ``sequence`` to read."""
        return sequence.slowest is self._pipeline.gate

    def replace(self, pipeline: Pipeline[Reader]) -> None:
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


def opened_pipeline(sequence: ReadySequence, schemas: SessionSchemas, device: Device, limit: Limit, punctuation: bool,
                    snapshot: Snapshot | None) -> Pipeline[Reader]:
    """A pipeline that reads ``sequence`` from now on."""
    reader = sequence.reader(schemas.kept)
    try:
        return Pipeline(schemas, device, gate=lambda: reader, limit=limit, punctuation=punctuation, snapshot=snapshot)
    except BaseException:
        reader.close()
        raise
