"""`ReadingSession`: the half of a session that gives results, of a session of its own and of shared streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Condition
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from splitjoin.base.closing import Closing
from splitjoin.base.errors import DeviceError, InputError, SplitJoinError
from splitjoin.base.explanation import Explanation, Fact
from splitjoin.engines.device import Device, Fault, Items
from splitjoin.engines.effectiveness import effectiveness
from splitjoin.engines.registry import device as find_device, merged_options
from splitjoin.lang.windows import WindowSpec

from .epochs import POLL_SECONDS
from .results import ResultQueue
from .schemas import SessionSchemas
from .work_lock import WorkLock

if TYPE_CHECKING:
    from .pipeline import Pipeline
    from .shared.chosen_pairs import ChosenPairs

#: Where the results of a `ReadingSession` come from. Methods that give a change work off what is ready, and raise what
#: is against it.
Results = TypeVar("Results", bound="Pipeline[Any] | ChosenPairs")


class ResultReader(ABC):
    """Gives the rows of a queue: to those who poll, or to the one who writes them as epochs."""

    _reserved: str | None = None  # why nobody may poll
    _lock: WorkLock | Condition

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The Arrow schema of the results."""

    def reserve(self, why: str | None) -> None:
        """Refuse polls with the reason ``why``, or None: let all poll again; `EpochWriter` calls this."""
        with self._lock:
            if why is not None:
                self._check_unreserved()
            self._reserved = why

    def found_rows(self) -> int:
        """Let the joins work, and return the number of rows that wait for a poll; `EpochWriter` calls this."""
        with self._usable():
            self._work()
            return self._results.rows

    def found(self) -> pa.Table:
        """The rows that wait for a poll, which stay there."""
        batches, _ = self._results.peek()
        return pa.Table.from_batches([self._made_of(batch) for batch in batches], self.schema)

    def take_found(self) -> tuple[pa.Table, Callable[[], None]]:
        """Take all rows that wait; what is returned with them puts them back. `EpochWriter` calls this."""
        taken: list[tuple[pa.RecordBatch, Items]] = []

        def undo() -> None:
            while taken:
                self._results.put_back(*taken.pop())

        try:
            while self._results.rows:
                taken.append(self._results.take())
            return pa.Table.from_batches([self._made_of(batch) for batch, _ in taken], self.schema), undo
        except BaseException:
            undo()
            raise

    @property
    @abstractmethod
    def _results(self) -> ResultQueue:
        """The rows that wait."""

    @abstractmethod
    def _usable(self) -> AbstractContextManager[None]:
        """Hold the lock, if the joins can work."""

    @abstractmethod
    def _work(self) -> None:
        """Let the joins work. The caller holds the lock."""

    def _made_of(self, found: pa.RecordBatch) -> pa.RecordBatch:
        """The result rows of a batch of the queue."""
        return found

    def _check_unreserved(self) -> None:
        check_unreserved(self._reserved)


def check_unreserved(why: str | None) -> None:
    """Raise `InputError` with the reason ``why`` rows are another one's, if there is one."""
    if why is not None:
        raise InputError(f"{why}, so no poll, restore or other writer can have them; read the files there, or close "
                         f"their writer first")


class ReadingSession(ResultReader, Closing, Generic[Results]):
    """Gives the results of a pipeline, by polls and by iteration, and changes the query while it runs."""

    _schemas: SessionSchemas
    _pipeline: Results
    _lock: WorkLock

    def __init__(self, *, punctuation: bool):
        self._punctuation = punctuation
        self._lock = WorkLock(self._catch_up)  # held while the pipeline works
        self._closed = False

    @property
    def schema(self) -> pa.Schema:
        return self._schemas.result

    def poll(self) -> pa.RecordBatch:
        """The complete result rows that were not returned yet, in order: at most about 1 GiB of them.

        If there are none, the batch is empty. A poll also continues with input that a limit had held up.
        """
        return self.polled()[0][1]

    def poll_items(self) -> tuple[Items, pa.RecordBatch]:
        """The rows of a `poll`, with the items (pairs of row ids, and stars) that they belong to, in order.

        Row ids count each stream's tuples from 0 over the whole session, restarts and restored snapshots included.
        """
        self.check_punctuated()
        return self.polled()[0]

    def check_punctuated(self) -> None:
        """Raise `InputError` for a session without items."""
        if not self._punctuation:
            raise InputError("poll_items needs a session opened with punctuation=True")

    def polled(self) -> tuple[tuple[Items, pa.RecordBatch], Callable[[], None]]:
        """Take items and rows as `poll_items` does, with or without punctuation. Returns them and the function that
        puts them back; `AsyncStreamJoin` calls this.
        """
        self._check_unreserved()
        return self._given_out(*self._take())

    def flush(self) -> pa.RecordBatch:
        """End both streams, and return all remaining rows, regardless of the limits.

        Raises `InputError` if they do not fit one batch of 1 GiB; no row is lost then, and `poll` returns them.
        """
        return self.flushed()[0]

    def flushed(self) -> tuple[pa.RecordBatch, Callable[[], None]]:
        """End both streams as `flush` does. Returns the rows and the function that puts them back; `AsyncStreamJoin`
        calls this.
        """
        self._check_unreserved()
        with self._usable():
            self._end_input()
            self._work(unlimited=True)
        batch, items = self._results.take()
        if self._results.rows:
            self._results.put_back(batch, items)
            raise InputError("the remaining rows do not fit one batch of 1 GiB; end the input without flush(), and "
                             "iterate")
        (_, rows), undo = self._given_out(batch, items)
        return rows, undo

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches as they become complete, each with at least one row, until both streams are drained."""
        while True:
            batch = self.poll()
            if len(batch):
                yield batch
            elif self._results.finished:
                return
            else:
                self._wait(self._patience)

    @property
    def lags(self) -> bool:
        """True if results may come from the device between two pushes."""
        return self._pipeline.lags

    @property
    def drained(self) -> bool:
        """True if the streams have ended, and all rows are found; they may wait for a poll."""
        return self._pipeline.ended or self._pipeline.failure is not None

    @property
    def finished(self) -> bool:
        """True if both streams are closed and all rows have been given out."""
        return self._results.finished

    @property
    def failure(self) -> Exception | None:
        """Why the device has failed, if it has; `restart` goes on."""
        return self._pipeline.failure

    def counters(self) -> dict[str, int]:
        """Counters of the session since its beginning:

        ``tuples_r``, ``tuples_s`` (joined), ``rows`` (found), ``unread_rows``, ``unread_bytes``, ``retained_r``,
        ``retained_s``, ``retained_bytes`` (rows kept for later pairs), ``waiting`` (input that is not ready),
        ``late_…``, ``shed_…`` and ``forgotten_…`` (of both streams), ``restarts``, ``faults``, in order ``inner`` the
        ``precision``; and as ``device_…`` the device's counters since its session began: after a restart, they count
        what was replayed and what came later. A board that has lost its state is opened again first, as by a push.
        After a device failed, its counters are missing.
        """
        with self._lock:
            return self._pipeline.counters()

    def plan(self) -> Explanation:
        """The way in which rows are found at present, and how many threads share the work, and why, in words; empty
        where the device has no choice, and after it failed.
        """
        with self._lock:
            return Explanation([Fact("", self._pipeline.plan())])

    @property
    def effectiveness(self) -> float | None:
        """Pairs that are results per pair that the device session has compared (ESJ's ϱ); None where it does not count
        both.
        """
        return effectiveness({name.removeprefix("device_"): n for name, n in self.counters().items()
                              if name.startswith("device_")})

    def restart(self, device: str | Device | None = None, *, device_options: Mapping[str, Any] | None = None,
                **options: object) -> None:
        """Continue in a fresh device session, of another device if one is given: after a device failed, or to move.

        ``device``, ``device_options`` and ``options`` are those of `splitjoin.join`. The live
        windows are replayed into it; no result is lost or delivered twice.
        """
        with self._opened():
            chosen = self._pipeline.device if device is None else device
            self._pipeline.restart(find_device(chosen, **merged_options(device_options, options, chosen, self.restart)))
            self._work()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out, in the order in which the session learnt of them. Each `Fault` has
        the row ids from which on the core's share of the pairs is missing, unless ``on_fault`` reloaded the windows.
        """
        return self._pipeline.seen_faults

    def mask(self, cores: Collection[int], *, of: int | None = None) -> tuple[int, int]:
        """Leave out, from the next tuple on, the pairs whose stored tuple is in one of the sub-windows ``cores``, and
        give those of the others again (semantics, section 6).

        Sub-window i of ``of`` has the tuples whose row ids are i modulo ``of``; ``of`` is by default the number of the
        device's cores. Tuples are numbered over the whole session, so the mask stays with them through restarts, moves
        to other devices, and snapshots. Returns the row ids (R's, S's) of the first tuples for which it holds: what
        had become ready before is not masked. Raises `UnsupportedError` where the device gives no pairs.
        """
        with self._changing():
            if of is None:
                of = getattr(self._pipeline.device, "cores", None)
            if type(of) is not int or of < 1:
                raise InputError(f"the number of sub-windows must be a whole number from 1, not {of!r}; the device "
                                 f"{self._pipeline.device.name!r} has no cores by which to take it")
            return self._pipeline.mask(cores, of)()

    def move(self, device: str | Device, *, device_options: Mapping[str, Any] | None = None, **options: object) -> None:
        """Go on on ``device``, with another number of cores for example, without a pause for a replay.

        From the next tuple on, a fresh session of ``device`` takes all tuples. The old one goes on beside it for those
        that it has stored, until they have left the windows; the rows are as if nothing had changed. `restart` replays
        the windows instead, and works for every query; this raises `UnsupportedError` in order ``inner``, where tuples
        are joined as they come, and where a device folds or gives few pairs.
        """
        with self._changing():
            self._pipeline.move(find_device(device, **merged_options(device_options, options, device, self.move)))()
            self._work()

    def precision(self, n: int) -> tuple[int, int]:
        """Let a star come after every ``n`` probes of a stream in order ``outer``, from its next star on; or in order
        ``inner``, from the next tuple on, after every ``n`` comparisons of each sub-window.

        Returns the row ids (R's, S's) of the first tuples that come after the change. Raises `OrderError` in other
        orders.
        """
        with self._changing():
            return self._pipeline.precision(n)()

    def window(self, window: WindowSpec) -> tuple[int, int]:
        """Change the windows, which are given as to `splitjoin.query`, from the next tuple on.

        A shorter window leaves out at once what lies before it, and decides the rows of tuples that wait there. A
        longer one does not bring back tuples that had expired. They also replace a ``tolerance``. What the windows hold
        is replayed into a fresh device session; snapshots keep the change.

        Returns the row ids (R's, S's) of the first tuples after the change.

        Raises `WindowError` for an invalid window, `UnsupportedError` for aggregates, for order ``none`` over RANGE
        windows, for as-of joins without a window, and where the device has masked cores or ``expire='own'``, and what
        the device raises where the windows do not fit, such as `CapacityError`. Then nothing changes.
        """
        with self._changing():
            return self._pipeline.window(window)()

    def close(self) -> None:
        """Release the device. Blocked pushes are woken, and raise. Rows that were not polled are lost."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._pipeline.close()
                self._lock.notify_all()

    @abstractmethod
    def _take(self) -> tuple[pa.RecordBatch, Items]:
        """Take a batch from the queue of results, and let the pipeline work."""

    @abstractmethod
    def _end_input(self) -> None:
        """End the input. The caller holds the lock."""

    def _wait(self, seconds: float | None) -> None:
        """Wait until a poll may give rows, at most this long."""
        self._results.wait(seconds)

    @property
    def _patience(self) -> float | None:
        """Seconds after which a poll may give rows although nothing was pushed: as the device finds results by itself,
        or a silent source becomes idle; None if none will.
        """
        idle = self._pipeline.gate.next_idle()
        waits = [POLL_SECONDS] if self.lags else []
        return min([*waits, *([] if idle is None else [max(idle, POLL_SECONDS)])], default=None)

    def _given_out(self, found: pa.RecordBatch, items: Items) -> tuple[
            tuple[Items, pa.RecordBatch], Callable[[], None]]:
        """The items and the result rows of a batch from the queue, and what puts it back; so does an error of computing
        them.
        """
        def undo() -> None:
            if len(found) or len(items):
                self._results.put_back(found, items)

        try:
            return (items, self._made_of(found)), undo
        except SplitJoinError:
            undo()
            raise

    @property
    def _results(self) -> ResultQueue:
        return self._pipeline.results

    def _made_of(self, found: pa.RecordBatch) -> pa.RecordBatch:
        return self._schemas.rows(found)

    def _work(self, *, unlimited: bool = False) -> None:
        """Let the pipeline work, and wake the threads that wait for it. The caller holds the lock."""
        self._lock.is_owed = False
        try:
            self._pipeline.work(unlimited=unlimited)
        finally:
            self._lock.notify_all()

    def _catch_up(self) -> None:
        """Work for a poll that did not wait for the lock. The caller holds it, and may have asked for something else,
        so polls get what this raises: the pipeline keeps it.
        """
        self._lock.is_owed = False
        if not self._closed and not self._pipeline.ended and self._pipeline.failure is None:
            with suppress(Exception):
                self._work()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Hold the lock; raises `DeviceError` after `close`."""
        with self._lock:
            self._check_open()
            yield

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Hold the lock like `_opened`; raises `DeviceError` also if the device has failed."""
        with self._lock:
            self._check_usable()
            yield

    def _changing(self) -> AbstractContextManager[None]:
        """`_usable`, for a change from the next tuple on."""
        return self._usable()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the session is closed")

    def _check_unreserved(self) -> None:
        if self._reserved is not None and self._pipeline.failure is not None:
            raise self._pipeline.failed()
        super()._check_unreserved()

    def _check_usable(self) -> None:
        self._check_open()
        if self._pipeline.failure is not None:
            raise self._pipeline.failed()
