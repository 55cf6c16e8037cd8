"""The pipeline of a session: sources, gate, slices of arrival order, device, result rows; and its bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Generic, Self, TypeVar

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import DeviceError, DeviceLost, UnsupportedError
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import Device, Fault, Items, check_masked, checked_precision
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.aggregates import Gather
from splitjoin.rows.answers import row_operator
from splitjoin.rows.changes import Changes
from splitjoin.rows.device_times import DeviceTimes
from splitjoin.rows.numbered import NumberedSession, RowIds
from splitjoin.rows.operator import RowBatch, RowOperator
from splitjoin.rows.overlapped import OverlappedSession, against_overlap

from .change_checks import Change, check_window, resumed
from .faults import ATTEMPTS, lost, opened_again
from .gate import ReadyGate, Shed
from .limit import PipelineOptions
from .results import ResultQueue, RowGatherer
from .retained import RetainedWindows
from .schemas import SessionSchemas
from .shedding import Shedder
from .snapshot import DeviceProgress, Snapshot, identity

#: Rows of the first slice of arrival order, which a device gets at once: later ones have more if they have few results.
_MIN_SLICE = 256
#: Target number of results of a slice, unless the limit is lower.
_SLICE_RESULTS = 1 << 18
#: What a user can do when a device has failed.
_KEPT = ("what was pushed is kept: restart() goes on in a fresh device session, restart('cpu') on another device")

Answer = TypeVar("Answer")
Gate = TypeVar("Gate", bound=ReadyGate)


class Pipeline(Generic[Gate]):
    """Runs the query of ``schemas`` on ``device``. Not thread-safe, except for ``results``.

    The state between two calls suffices to continue in another device session: of any device (`restart`), or from the
    bytes of a ``snapshot`` of this or another session (`restored`).

    Attributes:
        gate: The gate, which merges the tuples of all sources into arrival order.
        windows: The rows of both streams that results and fresh device sessions need.
        results: The result rows that were not polled; thread-safe.
        device: Where the query runs.
        device_session: Its session.
        query: The query, with the windows that it has now.
        faults: The cores that devices have left out, and what follows.
        ended: True if the input was ended, and all results are in ``results``.
        failure: The exception of a device that failed, else None.
        is_behind: True if input was taken from the gate, or its progress noted, and no `work` has followed.
        identity: What another session must have in common to continue from a snapshot of this one.
    """

    def __init__(self, schemas: SessionSchemas, device: Device, options: PipelineOptions, *, gate: Callable[[], Gate],
                 snapshot: Snapshot | None = None):
        query = schemas.query
        self.query, self._schemas, self._make_gate = query, schemas, gate
        self._options, self._limit, self._punctuation = options, options.limit, options.punctuation
        self._slice_results = min(self._limit.rows or _SLICE_RESULTS, _SLICE_RESULTS)
        self._slice_rows = min(_MIN_SLICE, device.most_arrivals)
        self._ready: deque[Arrivals] = deque()
        self.device = device
        self.gate = gate()
        #: The times on the device, of a query whose tuples are joined as they come.
        self._times = (DeviceTimes(query.narrowed, self.gate.longest_delay, lambda: {
            side: (kept.first, kept.ts.values) for side, kept in self.windows.streams.items()})
                       if not self.gate.in_order else None)
        self.windows = RetainedWindows(query, {side: schemas.kept_schema(side) for side in SIDES},
                                       in_order=self._times is None)
        #: Chooses the tuples that are dropped under load; None if none are.
        self.shedder = None if options.shedding is None else Shedder(options.shedding, query, device,
                                                                     in_order=self._times is None)
        self.results = ResultQueue(schemas.gathered, self._punctuation)
        self._gather: Gather = lambda side, names, rows: self.windows.streams[side].gather(names, rows)
        self._put = RowGatherer(schemas, self._gather, self.results).put
        #: Masks and precisions, and from which tuples on they hold.
        self.changes = Changes(query.order.n)
        self._operator = self._operator_for(device)
        self.faults = options.faults
        self.restarts = 0
        self.ended = self.is_behind = False
        self.failure: Exception | None = None
        self._frontier: int | None = None
        self._replayed_to = (0, 0)
        self.identity = identity(query, schemas.gathered, str(self.gate.rule), self._punctuation)
        self.device_session = (
            opened_again(lambda: self._begun(device))
            if snapshot is None else self._resumed(snapshot))

    @property
    def frontier(self) -> int | None:
        """The event time in ticks below which no later result lies; None at first, and without times."""
        if not self._ready and (not self.lags or self.ended or self.device_session.settled == self.pushed):
            times = [time for time in self.gate.passed.values() if time is not None]
            if len(times) == len(SIDES):
                self._frontier = min(times)
        return self._frontier

    @property
    def seen_faults(self) -> tuple[Fault, ...]:
        """The cores that devices have left out, in the order in which this was seen."""
        return self.faults.seen

    @property
    def lags(self) -> bool:
        """True if results may come from the device between two pushes."""
        return self.device_session.lags

    @property
    def pushed(self) -> tuple[int, int]:
        """The row ids (R's, S's) of the next tuples that the device gets."""
        return self.windows.streams["r"].end, self.windows.streams["s"].end

    @property
    def holds_back(self) -> bool:
        """True if there is input that a limit has held up."""
        return bool(self._ready)

    def work(self, *, unlimited: bool = False) -> None:
        """Push the ready tuples to the device, up to a limit unless ``unlimited``, and queue its results.

        When a device has lost its session, the live windows are replayed into a fresh one, as long as each gets further
        than the one before, and a few times otherwise. An exception is also kept as ``failure``. The slice on which a
        device failed will be pushed again.
        """
        control, before = self._options.control, sum(self.pushed)
        began = 0.0 if control is None else control.clock()
        with self._noting_failures():
            self._collect()
            self._persisting(lambda: self._advance(unlimited))
        if control is not None and sum(self.pushed) > before and not self.ended:
            seconds = control.clock() - began
            with self._noting_failures():
                waiting = self._persisting(lambda: self.device_session.waiting())
            n = control.chosen(self.changes.n, seconds, waiting)
            if n != self.changes.n:
                self._slices(n)

    def place(self) -> tuple[int, int]:
        """The row ids (R's, S's) of the next tuples that become ready."""
        self._collect()
        r, s = (end + sum(len(part.table(side)) for part in self._ready)
                for side, end in zip(SIDES, self.pushed, strict=True))
        return r, s

    def shed(self, side: Side, before: int) -> Shed | None:
        """Chooses the next tuples of ``side`` that are dropped under load, of which so many were dropped ``before``;
        None if none are.
        """
        if (shedder := self.shedder) is None:
            return None
        held = sum(len(arrivals.table(side)) for arrivals in self._ready)
        number = self.windows.streams[side].end + held + before
        return lambda n, waiting: shedder.dropped(side, number + waiting, n, held + waiting + self.windows.live(side))

    def settle(self) -> None:
        """Queue all results of the tuples that the device got (`Session.settle`)."""
        if self.lags and not self.ended:
            self._persisting(lambda: self._emit(self.device_session.settle(), self.device_session))
            self._trim()

    def counters(self) -> dict[str, int]:
        """The counters of `StreamJoin.counters`. A device that has lost its session is opened again, as by `work`."""
        if self.failure is None:
            with self._noting_failures():
                of_device = self._persisting(lambda: self._operator.counters(self.device_session))
        else:
            of_device = {}
        kept = self.windows.streams
        out = {f"tuples_{side}": kept[side].end for side in SIDES}
        out |= {"rows": self.results.total, "unread_rows": self.results.rows, "unread_bytes": self.results.nbytes}
        out |= {f"retained_{side}": len(kept[side]) for side in SIDES}
        out |= {"retained_bytes": sum(k.nbytes for k in kept.values()), "restarts": self.restarts,
                "faults": len(self.faults.seen)}
        out |= {"precision": self.changes.n} if self.query.order.kind == "inner" else {}
        out |= self.gate.counters()
        return out | {f"device_{name}": n for name, n in of_device.items()}

    def plan(self) -> str:
        """As of `StreamJoin.plan`."""
        return "" if self.failure is not None else self._operator.plan(self.device_session)

    def snapshot(self) -> bytes:
        """The bytes of `StreamJoin.snapshot`."""
        self._collect()
        self.windows.prune()
        progress = DeviceProgress(self._settled, self.ended, self.restarts)
        return Snapshot.of(self.identity, self.query, self.gate.state(), self.windows, self.results, self._ready,
                           progress, self._operator.state(), self.changes).to_bytes()

    def restored(self, snapshot: bytes) -> Self:
        """A fresh pipeline of the same query and device in the state of ``snapshot``. Raises `SnapshotError`."""
        found = Snapshot.from_bytes(snapshot)
        found.check(self.identity)
        return type(self)(self._schemas, self.device, self._options, gate=self._make_gate, snapshot=found)

    def mask(self, cores: Collection[int], of: int) -> Change:
        """Hides the pairs of `StreamJoin.mask` from the next tuples on."""
        self._operator.check_pairs(self.device, "a mask")
        masked = check_masked(cores, of)
        return lambda: self._changed(lambda place: self.changes.mask(place, masked, of))

    def precision(self, n: int) -> Change:
        """Changes the precision of order ``outer`` or ``inner`` from the next tuples on."""
        checked_precision(self.query.order, n)
        if self.query.order.kind == "outer":
            return lambda: self._changed(lambda place: self.changes.precision(place, n))

        def act() -> RowIds:
            self.work(unlimited=True)  # so that the device has all that is ready
            self._slices(n)
            return self.pushed

        return act

    def _slices(self, n: int) -> None:
        """Let slices have ``n`` comparisons from the next tuple on that the device gets."""
        if not self.ended:
            with self._noting_failures():
                self._persisting(lambda: self._emit(self.device_session.precision(n), self.device_session))
            self._trim()
        self.changes.precision(self.pushed, n)

    def _changed(self, change: Callable[[RowIds], None]) -> RowIds:
        change(place := self.place())
        return place

    def move(self, device: Device) -> Change:
        """Goes on on ``device`` from the next tuples on, while the old device session serves what it has stored."""
        self.work(unlimited=True)  # so that the old session has all that is ready
        checks = [partial(self._operator.check_pairs, one, "it") for one in (self.device, device)]
        if reasons := against_overlap(self.device_session, self.query.order, ended=self.ended,
                                      in_order=self._times is None, checks=checks):
            raise UnsupportedError(f"the session cannot move without a replay, as {'; and '.join(reasons)}; use "
                                   f"restart(), which replays the windows")

        def act() -> RowIds:
            old, place = self.device_session, self.pushed
            if self.shedder is not None:
                self.shedder.move(device)
            self.device_session, self.device = OverlappedSession(old, self._begun(device, place, place), place), device
            self.restarts += 1
            return place

        return act

    def window(self, window: WindowSpec) -> Change:
        """Changes the windows from the next tuples on."""
        self.work(unlimited=True)
        before, asked = self.query, self.query.with_window(window)
        check_window(before, self.device, self.device_session, ended=self.ended, in_order=self._times is None)

        def act() -> RowIds:
            with self._noting_failures():
                self._persisting(lambda: self._emit(self.device_session.end(), self.device_session))
            state, live = self._operator.state(), self.windows.needed
            self.device_session.close()  # before the next one opens: a board has one user
            try:
                decided = self._begin(asked, state, live)
            except BaseException:
                with self._noting_failures():
                    self._begin(before, state, live)
                raise
            self._put(decided)
            self._trim()
            self.restarts += 1
            return self.pushed

        return act

    def _begin(self, query: Query, state: Mapping[str, Ints], live: RowIds) -> RowBatch:
        """Replay rows from ``live`` on into the windows of ``query``, and go on with ``state``; the rows decided so."""
        self._use(query)
        self._operator.restore(state)
        self.windows.resize(query, live)
        decided = self._operator.close_before(self.windows.needed)  # ahead of the replay, which would decide them too
        self.device_session = opened_again(lambda: self._replayed(self.device, self._settled))
        return decided

    def _use(self, query: Query) -> None:
        """Decide rows, and drop tuples under load, by ``query``, which has other windows."""
        if self.shedder is not None:
            self.shedder = Shedder(self.shedder.rule, query, self.device, in_order=True)
        self.query = query
        self._operator.close()
        self._operator = self._operator_for(self.device)

    def restart(self, device: Device) -> None:
        """Continue in a fresh session of ``device``, to which the live windows are replayed."""
        if self.shedder is not None:
            self.shedder.move(device)
        self._move(device)
        self.failure = None
        self.results.recover()

    def failed(self) -> DeviceError:
        """The error to raise after a ``failure``."""
        said = repr(self.failure)
        return DeviceError(f"the device failed: {said if _KEPT in said else f'{said}; {_KEPT}'}")

    def close(self) -> None:
        """Close the device session; there will be no more results."""
        self.device_session.close()
        self._operator.close()
        self.results.end()

    @contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """Keep an exception as ``failure`` too."""
        try:
            yield
        except Exception as error:
            self.failure = error
            self.results.fail()
            raise

    def _persisting(self, act: Callable[[], Answer]) -> Answer:
        """The answer of ``act`` on the device session; if the device has lost that session, on a fresh one."""
        attempt, settled, device = 0, self._settled, self.device
        while True:
            try:
                if attempt:
                    self._move(device)
                return act()
            except DeviceLost as error:
                device = self.faults.next_device(error, device)
                self._rescue(self.device_session)
                attempt, settled = 1 if self._settled != settled else attempt + 1, self._settled
                if attempt > ATTEMPTS:
                    raise lost(error, attempt, _KEPT) from error

    def _rescue(self, session: NumberedSession) -> None:
        """Queue the results that the device gave before it lost ``session``: else a long flush might never end."""
        self._note_faults(session)
        items = session.checked(session.rescued(self.pushed))
        self._operator.follow(session, self.pushed[0])
        self._put(self._operator.take(items, session.settled))
        self._trim(session)

    def _note_faults(self, session: NumberedSession) -> None:
        """Note the new faults of ``session``, and that it hides pairs."""
        self.faults.note(session)
        if session.hides_pairs:
            self.changes.hide(self.pushed)

    def _operator_for(self, device: Device) -> RowOperator:
        """The operator that decides the rows from the results of ``device``. Raises `UnsupportedError` where pairs were
        hidden of undecided tuples, which ``device`` would find again.
        """
        hides_pairs, in_order = self.changes.hides_pairs, self._times is None
        operator = row_operator(
            self.query, device, lambda: (self.windows.first, self.windows.arrivals()), self._gather,
            stars=self._punctuation, in_order=in_order, early=self._schemas.early, hides_pairs=hides_pairs)
        if hides_pairs and in_order:
            operator.check_pairs(device, "a session of which cores were masked or left out")
        return operator

    def _advance(self, unlimited: bool) -> None:
        """Push what is ready, and take what the device found."""
        while self._ready and (unlimited or not self._limit.full(self.results)):
            self._push_slice()
        if self.lags and not self.ended:
            self._emit(self.device_session.poll(), self.device_session)
            self._trim()
        self.is_behind = bool(self._ready)
        if not self._ready:
            passed = self.gate.passed
            if any(time is not None for time in passed.values()):
                if not self.ended and self._operator.expire(self.device_session, passed):
                    self._emit(self.device_session.settle(), self.device_session)
                self._put(self._operator.advance_streams(passed))
                self.windows.advance(passed)
                self._trim()
            if isinstance(session := self.device_session, OverlappedSession):
                self.device_session, items = session.successor(self.windows.needed)
                self._emit(items, self.device_session)
            if self.gate.done:
                self._end()

    def _collect(self) -> None:
        arrivals, self.is_behind = self.gate.ready(), True
        if len(arrivals):
            self._ready.append(arrivals)

    def _push_slice(self) -> None:
        """Push the next slice of arrival order to the device, and queue its results."""
        head, rest = self._ready[0].split(self._slice_rows)
        if not self.device_session.fits(head):
            self._move(self.device)
        items = self.device_session.push(head)
        self.windows.append(head)
        self._operator.arrive(head)
        if rest is None:
            self._ready.popleft()
        else:
            self._ready[0] = rest
        found = self._emit(items, self.device_session)
        self._trim()
        # The number of arrivals that gave the target number of results, with slow growth, as results may come in
        # bursts.
        fitting = len(head) * self._slice_results // max(found, 1)
        self._slice_rows = min(max(fitting, _MIN_SLICE), 2 * self._slice_rows, self.device.most_arrivals)

    def _end(self) -> None:
        """End the device's input; all of it must have been pushed."""
        if not self.ended:
            items = self.device_session.checked(self.device_session.flush())
            self._note_faults(self.device_session)
            self._operator.follow(self.device_session)
            self._put(self._operator.finish(items))
            self.ended = True
            self.windows.clear()
            self.results.end()

    def _move(self, device: Device) -> None:
        old = self.device_session
        if device is self.device:
            old.close()  # before the next one opens: a board has one user
        else:
            operator, state = self._operator_for(device), self._operator.state()
            self._operator.close()
            self._operator = operator
            self._restore_operator(state)
        fresh = self._replayed(device, self._settled)
        if device is not self.device:
            old.close()
        self.device_session, self.device = fresh, device
        self.restarts += 1

    def _resumed(self, snapshot: Snapshot) -> NumberedSession:
        """A device session that continues from ``snapshot``; the pipeline's other state is restored from it."""
        with snapshot.reading():
            snapshot.check_tables(self._schemas)
            self.gate.restore(snapshot.gate())
            self.results.restore(*snapshot.results())
            if len(ready := snapshot.ready(self.query)):
                self._ready.append(ready)
            progress = snapshot.progress
            self.ended, self.restarts = progress.ended, progress.restarts
            if (query := resumed(self.query, *snapshot.windows, in_order=self._times is None)) is not self.query:
                self._use(query)
                self.windows.resize(query, self.windows.first_live)
            self.windows.restore(snapshot.retained(self.query), snapshot.now, snapshot.live)
            snapshot.check_ends(*self.pushed)
            self.changes.restore(snapshot.changes)
            if self.changes.hides_pairs:
                self._operator.close()
                self._operator = self._operator_for(self.device)
            self._restore_operator(snapshot.kind_state())
            session = opened_again(lambda: self._replayed(self.device, self._furthest(progress.settled)))
            self._trim(session)
        if self.ended:
            self.results.end()
        return session

    def _restore_operator(self, state: Mapping[str, Ints]) -> None:
        """Continue from the ``state`` of an operator, with the retained rows."""
        self._operator.restore(state)
        if not self.ended:
            self._operator.replay(self.windows.first, self.windows.arrivals())

    @property
    def _settled(self) -> tuple[int, int]:
        """Row ids before which all probes' items have been given out: a replay that failed may have given out more than
        the session before it.
        """
        return self._furthest(self.device_session.settled)

    def _furthest(self, settled: tuple[int, int]) -> tuple[int, int]:
        """The greater of the row ids ``settled`` and those to which a failed replay gave items out."""
        return max(settled[0], self._replayed_to[0]), max(settled[1], self._replayed_to[1])

    def _replayed(self, device: Device, settled: tuple[int, int]) -> NumberedSession:
        """A fresh session of ``device`` to which all retained rows were replayed."""
        rest = None if self.ended else self.windows.arrivals()
        if self._times is not None:
            self._times.begin(rest)
        session = self._begun(device, self.windows.first, settled)
        session.stored_s = self.windows.stored_s
        try:
            while rest is not None and len(rest):
                head, rest = rest.split(self._slice_rows)
                self._emit(session.push(head), session)
        except BaseException as error:
            if isinstance(error, DeviceLost):
                self._rescue(session)
            self._replayed_to = session.settled
            session.close()
            raise
        return session

    def _begun(self, device: Device, first: RowIds = (0, 0), settled: RowIds = (0, 0)) -> NumberedSession:
        """A fresh session of ``device``, whose first tuples have row ids ``first``."""
        return self.faults.begin(self._operator.open(device, first, settled, times=self._times, changes=self.changes,
                                                     stars=self._punctuation))

    def _trim(self, session: NumberedSession | None = None) -> None:
        """Drop the retained rows that nothing needs any more."""
        session, needed = session or self.device_session, self._operator.needed
        self.changes.forget(session.settled, needed)
        self.windows.trim(session.settled, needed, session.rotation)

    def _emit(self, items: Items, session: NumberedSession) -> int:
        """Queue the rows that ``items`` of ``session`` decide, and return how many there are."""
        self._operator.follow(session)
        self._note_faults(session)
        return self._put(self._operator.take(session.checked(items), session.settled))
