"""`SharedQuery`: one of many queries over a pair of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa

from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.engines.device import Device, Items

from ..change_checks import Change
from ..gate import GateReader, ReadySequence
from ..limit import PipelineOptions
from ..pipeline import Pipeline
from ..reading import ReadingSession
from ..schemas import SessionSchemas
from ..snapshot import Snapshot, identity
from .chosen_pairs import ChosenPairs
from .scan import SharedScan, opened_pipeline

#: What a query reads: a pipeline of its own, or what it chooses of a common join's pairs.
SharedPipeline = Pipeline[GateReader] | ChosenPairs


class SharedQuery(ReadingSession[SharedPipeline]):
    """One query over shared streams: the reading half of a session; `SharedStreams.query` and `sql` add it.

    Use as a context manager. A poll reads the tuples that became ready since the last one, joins them in the calling
    thread, and gives the rows; so queries that are polled in several threads run in parallel, and none waits for
    another. Iteration waits for rows until both streams are closed.

    What changes, changes from the next tuple that becomes ready, and for this query alone.

    Attributes:
        name: The name by which snapshots know it.
        query: The checked query, with the windows that it began with.
    """

    #: True if it has a device of its own.
    has_device = True

    def __init__(self, forget: Callable[[SharedQuery], None], name: str, schemas: SessionSchemas,
                 pipeline: SharedPipeline, options: PipelineOptions):
        super().__init__(punctuation=options.punctuation)
        self._forget, self._schemas, self._pipeline, self._options = forget, schemas, pipeline, options
        self.name, self.query = name, schemas.query

    def close(self) -> None:
        """Remove the query from the streams and release its device. Rows that were not polled are lost."""
        self._forget(self)  # first, so that no snapshot and no epoch meets one that is closed
        super().close()
        self._pipeline.gate.close()

    @property
    def unread(self) -> int:
        """The number of ready tuples that the query has not read."""
        return self._pipeline.gate.waiting

    @property
    def ended(self) -> bool:
        """True if no more tuples are for it; see `flush`."""
        return self._closed or self._pipeline.ended  # another thread may be closing it, and it is not forgotten yet

    def check(self, change: Callable[[SharedPipeline], Change]) -> None:
        """Raise what is against a ``change``; `SharedStreams` does so ahead of changes of all queries."""
        with self._changing():
            change(self._pipeline)

    def check_move(self, device: Device) -> None:
        """Raise `UnsupportedError` unless the query can `move` to ``device``."""
        self.check(lambda of_query: of_query.move(device))

    def held(self) -> AbstractContextManager[object]:
        """Within the context nobody reads the query's rows; `SharedStreams` takes snapshots so."""
        return self._lock

    def state(self) -> bytes:
        """The query's part of a snapshot, at the place that the streams have reached; `SharedStreams` asks for it."""
        with self._opened(), self._waking():
            self._pipeline.gate.paused = False
            return self._pipeline.snapshot()

    def opened_again(self, sequence: ReadySequence, state: Snapshot, scans: Mapping[str, SharedScan]) -> SharedPipeline:
        """A pipeline for the same device that reads ``sequence`` from now on, or of one of the ``scans`` by the name of
        a common join, from ``state``; see `replace`.
        """
        with self._opened():
            state.check(identity(self.query, self._schemas.gathered, GateReader.rule, self._punctuation))
            return opened_pipeline(sequence, self._schemas, self._pipeline.device, self._options, state)

    def replace(self, pipeline: SharedPipeline) -> None:
        """Go on with ``pipeline``."""
        with self._lock:
            old, self._pipeline = self._pipeline, pipeline
            old.close()
            old.gate.close()

    def _take(self) -> tuple[pa.RecordBatch, Items]:
        with self._lock:
            self._check_open()
            pipeline, results = self._pipeline, self._pipeline.results
            # What a limit has held up needs the room of what is taken. Otherwise the work comes first, so that a poll
            # gives all complete rows, also where a snapshot or a change has left some in the queue.
            failure = pipeline.failure
            first = failure is not None or pipeline.ended or self._options.limit.full(results)
            taken = results.take() if first else None
            if failure is not None:
                if taken is None or not len(taken[0]):
                    raise pipeline.failed()
            elif not pipeline.ended:
                try:
                    self._work()
                except SplitJoinError:
                    if not (results.rows if taken is None else len(taken[0])):
                        raise
            return taken if taken is not None and (len(taken[0]) or len(taken[1])) else results.take()

    def _work(self, *, unlimited: bool = False) -> None:
        gate = self._pipeline.gate
        with self._waking():
            # What a bound on the results holds up counts as not read, so that it is kept once.
            gate.paused = not unlimited and self._pipeline.holds_back
            super()._work(unlimited=unlimited)
            if gate.paused and not self._pipeline.holds_back:  # as behind a snapshot: there is room for more
                gate.paused = False
                super()._work(unlimited=unlimited)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._usable(), self._waking():
            self._pipeline.gate.paused = False  # what is ready is from before the change
            yield

    @contextmanager
    def _waking(self) -> Iterator[None]:
        """Wake the threads that iterate, if there is something for them after the block, as they wait for tuples."""
        try:
            yield
        finally:
            if self._has_news(self._pipeline):
                self._pipeline.gate.wake()

    @staticmethod
    def _has_news(pipeline: SharedPipeline) -> bool:
        """True if a poll may give rows without a further tuple."""
        return pipeline.results.has_news or pipeline.is_behind

    def _end_input(self) -> None:
        self._pipeline.gate.finish()

    def _wait(self, seconds: float | None) -> None:
        pipeline = self._pipeline
        pipeline.gate.wait(seconds, lambda: self._has_news(pipeline) or pipeline is not self._pipeline)


def new_name(letter: str, what: str, name: str | None, taken: Mapping[str, object]) -> str:
    """``name``, or the first of its letter and a number that is free. Raises `InputError` unless it is a new text."""
    if name is None:
        return next(f"{letter}{n}" for n in range(1, len(taken) + 2) if f"{letter}{n}" not in taken)
    if not isinstance(name, str) or not name:  # "" is a session of one query in folders of epochs
        raise InputError(f"the name of a {what} must be a text that is not empty, not {name!r}")
    if name in taken:
        raise InputError(f"the name of a {what} must be new, but {name!r} is there; close that {what} first, or give "
                         f"another name")
    return name
