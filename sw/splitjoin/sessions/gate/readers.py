"""`ReadyGate`: what a pipeline needs of the gate that gives it the tuples of arrival order; and readers of a gate, each
of which reads the one sequence of ready tuples at its own pace.

ScaleGate gives the ready tuples of one gate to many processing threads, each with a position of its own, and frees a
tuple when all have read it (Gulisano et al.: "ScaleJoin", section IV.A: `getNextReadyTuple`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from splitjoin.base import threads
from splitjoin.engines.arrival import Arrivals
from splitjoin.lang.schema import SIDES, Side

#: Tuples of a slice to which further ones are added while no reader has read it.
_SMALL_SLICE = 1 << 14


#: What a gate gives at once: tuples that became ready, the frontier behind them, and whether both streams are finished.
Taken = tuple[Arrivals, "int | None", bool]
#: Makes the columns that a reader wants of the tuples of a stream.
Columns = Callable[[Side, pa.Table], pa.Table]


@dataclass(frozen=True)
class GateState:
    """The state of a gate in a snapshot.

    Attributes:
        values: Plain values by name. ``default``: the index of each stream's default source, if there is one;
            ``frontier``: the place up to which arrival order is known, event time in ticks and the source's rank;
            ``finished``: whether a stream takes no more tuples; ``passed``: for each stream how far an `UnorderedGate`
            has got, event time in ticks and source, None at first; ``silent``: for how many seconds a stream that has
            had no source has been silent; ``sources``: `SourceQueue.state` of each stream's; ``late`` and ``shed``: how
            many tuples of each stream were late, or dropped under load, and how many of these are forgotten.
        tables: By name, the tuples of a source that are not ready, ``waiting_r_0``, and those of a stream that were
            late or dropped and are kept, ``late_r`` and ``shed_r``.
    """

    values: dict[str, Any]
    tables: dict[str, pa.Table]

    @classmethod
    def of(cls, schemas: Mapping[Side, pa.Schema], frontier: int | None = None, *, done: bool = False) -> GateState:
        """The state of a reader of tuples of ``schemas``, which has no sources, at ``frontier``."""
        return cls({
            "default": {}, "frontier": None if frontier is None else (frontier, (0, 0)),
            "finished": dict.fromkeys(SIDES, done), "passed": dict.fromkeys(SIDES), "silent": 0.0,
            "sources": {side: [] for side in SIDES}, "late": dict.fromkeys(SIDES, (0, 0)),
            "shed": dict.fromkeys(SIDES, (0, 0)),
        }, {f"{kind}_{side}": schemas[side].empty_table() for side in SIDES for kind in ("late", "shed")})


class ReadyGate(ABC):
    """The source of a pipeline's tuples, in arrival order.

    Attributes:
        rule: The rule by which tuples are late; its text is part of a session's identity.
        in_order: True if tuples become ready in arrival order.
        longest_delay: The most ticks by which a tuple may come late.
    """

    rule: object
    in_order = True
    longest_delay = 0

    @property
    @abstractmethod
    def passed(self) -> dict[Side, int | None]:
        """For each stream the event time in ticks below which none of its tuples will become ready any more; None if
        unknown.
        """

    @property
    @abstractmethod
    def done(self) -> bool:
        """True if both streams are finished."""

    @abstractmethod
    def ready(self) -> Arrivals:
        """The tuples that became ready since the last call: the next slice of arrival order, which may be empty."""

    @abstractmethod
    def next_idle(self) -> float | None:
        """Seconds until a silent source no longer holds tuples back; None if none will."""

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Counters by name."""

    @abstractmethod
    def state(self) -> GateState:
        """The state from which `restore` continues."""

    @abstractmethod
    def restore(self, state: GateState) -> None:
        """Continue from ``state``."""


class ReadySequence:
    """The ready tuples of a gate, for any number of readers. Thread-safe.

    A reader reads from the place in arrival order at which it was made. Tuples are kept until the slowest has read
    them; without a reader, none are.

    Args:
        take: Takes what is ready from the gate.
        next_idle: Seconds until the gate's next source is silent for too long; None if none will be.

    Attributes:
        end: The number of tuples that have become ready.
        frontier: The event time in ticks below which no tuple can become ready any more; None at first, and without
            times.
        done: True if both streams are finished.
        next_idle: As the argument.
    """

    def __init__(self, take: Callable[[], Taken], next_idle: Callable[[], float | None]):
        self._take, self.next_idle = take, next_idle
        self._changed = threads.condition()
        self._slices: list[tuple[int, Arrivals]] = []  # each with the number of its first tuple
        self._readers: list[GateReader] = []
        self._nothing: Arrivals | None = None
        self._stands = False  # nothing becomes ready
        self.end = 0
        self.frontier: int | None = None
        self.done = False

    def collect(self) -> None:
        """Take what has become ready from the gate, and wake the readers that wait for it."""
        with self._changed:
            if self._stands:
                return
            known = self.frontier, self.done
            arrivals, self.frontier, self.done = self._take()
            if self._nothing is None:
                self._nothing = arrivals.split(0)[0] if len(arrivals) else arrivals
            if len(arrivals):
                if self._readers:
                    self._append(arrivals)
                self.end += len(arrivals)
            if len(arrivals) or known != (self.frontier, self.done):
                self._changed.notify_all()

    def reader(self, columns: Columns | None = None, schemas: Mapping[Side, pa.Schema] | None = None) -> GateReader:
        """A reader of what becomes ready from now on, with the ``columns`` that this makes of it; None: as it is.
        ``schemas`` are those that its state tells of late tuples, of which it has none; None: those of the gate.
        """
        with self._changed:
            self.collect()
            made = GateReader(self, self.end, columns, schemas)
            self._readers.append(made)
            return made

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Within the context nothing becomes ready, so that all readers can get to one place."""
        with self._changed:
            self.collect()
            self._stands = True
        try:
            yield
        finally:
            with self._changed:
                self._stands = False

    @property
    def nothing(self) -> Arrivals:
        """A slice without tuples."""
        with self._changed:
            if self._nothing is None:
                self.collect()
            assert self._nothing is not None
            return self._nothing

    def unread_by(self, reader: GateReader) -> int:
        """The number of tuples that ``reader`` has to read."""
        with self._changed:
            return self.end - reader.position if reader in self._readers else 0

    def wait(self, reader: GateReader, seconds: float | None, ends: Callable[[], bool]) -> None:
        """Wait until there is something that ``reader`` has not read, ``ends`` is true after `wake`, or ``seconds``
        have passed.
        """
        with self._changed:
            self._changed.wait_for(lambda: ends() or reader not in self._readers or (
                reader.position, reader.frontier, reader.done) != (self.end, self.frontier, self.done), seconds)

    def wake(self) -> None:
        """Let all that `wait` look again."""
        with self._changed:
            self._changed.notify_all()

    def read(self, reader: GateReader) -> Arrivals:
        """All tuples that ``reader`` has not read; it notes how far the gate has got."""
        with self._changed:
            self.collect()
            if reader not in self._readers:
                return self.nothing
            found = [arrivals for start, arrivals in self._slices if start >= reader.position]
            reader.position, reader.frontier, reader.done = self.end, self.frontier, self.done
            self._free()
            return Arrivals.joined(found) if found else self.nothing

    def remove(self, reader: GateReader) -> None:
        """Give up the place of ``reader``."""
        with self._changed:
            if reader in self._readers:
                self._readers.remove(reader)
                self._free()
            self._changed.notify_all()

    def _append(self, arrivals: Arrivals) -> None:
        """Add a slice; small ones that no reader has read are one, so that a slow reader finds few."""
        if self._slices and all(reader.position < self.end for reader in self._readers):
            start, last = self._slices[-1]
            if len(last) + len(arrivals) <= _SMALL_SLICE:
                self._slices[-1] = (start, Arrivals.joined([last, arrivals]))
                return
        self._slices.append((self.end, arrivals))

    def _free(self) -> None:
        """Drop the slices that all readers have read."""
        first = min((reader.position for reader in self._readers), default=self.end)
        n = sum(1 for start, _ in self._slices if start < first)
        if n:
            del self._slices[:n]
            self._changed.notify_all()


class GateReader(ReadyGate):
    """One reader of a gate's ready tuples; `ScaleGate.reader` makes it. It never waits for another reader.

    Attributes:
        position: The number of ready tuples before the first that it has not read.
        frontier: The event time in ticks below which no tuple can arrive any more, as of its last `ready`; None at
            first, and without times.
        done: True if both streams were finished then, or if the reader is.
        paused: True if `ready` is to read nothing.
    """

    rule = "(shared)"
    done = False

    def __init__(self, sequence: ReadySequence, position: int, columns: Columns | None,
                 schemas: Mapping[Side, pa.Schema] | None):
        self._sequence, self._columns, self._schemas = sequence, columns, schemas
        self._failed: Arrivals | None = None  # what was read, and has no columns
        self.position = position
        self.frontier: int | None = None
        self.done = self.paused = self._last = False

    @property
    def passed(self) -> dict[Side, int | None]:
        return dict.fromkeys(SIDES, self.frontier)

    @property
    def waiting(self) -> int:
        """The number of ready tuples that it has not read."""
        return self._sequence.unread_by(self)

    def ready(self) -> Arrivals:
        if self._failed is not None:
            arrivals, self._failed = self._failed, None
        else:
            arrivals = self._sequence.nothing if self.paused else self._sequence.read(self)
        if self._columns is None:
            made = arrivals
        else:
            try:
                made = Arrivals(arrivals.stream, arrivals.ts, *(self._columns(side, arrivals.table(side))
                                                                for side in SIDES))
            except BaseException:
                self._failed = arrivals  # nothing is lost: each further call raises this
                raise
        if self._last:
            self.close()
        return made

    def wait(self, seconds: float | None, ends: Callable[[], bool] = lambda: False) -> None:
        """Wait until there is something to read, ``ends`` is true after `wake`, or ``seconds`` have passed (None: for
        ever).
        """
        self._sequence.wait(self, seconds, ends)

    def wake(self) -> None:
        """Let threads that `wait` look again."""
        self._sequence.wake()

    def finish(self) -> None:
        """Let the next `ready` be the last: later tuples are not for this reader."""
        self._last = True

    def close(self) -> None:
        """Give up the reader's place, so that no tuple is kept for it."""
        self.done = True
        self._sequence.remove(self)

    def next_idle(self) -> float | None:
        return None if self.done else self._sequence.next_idle()

    def counters(self) -> dict[str, int]:
        return {"waiting": self.waiting}

    def state(self) -> GateState:
        """The state from which `restore` continues; all that is ready must have been read."""
        nothing = self._sequence.read(self)
        assert not len(nothing)
        schemas = self._schemas or {side: nothing.table(side).schema for side in SIDES}
        return GateState.of(schemas, self.frontier, done=self.done)

    def restore(self, state: GateState) -> None:
        """Continue from ``state``, at the place where this reader is."""
        if all(state.values["finished"].values()):
            self.close()
