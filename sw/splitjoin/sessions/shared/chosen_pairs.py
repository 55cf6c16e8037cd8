"""`ChosenPairs`: the results of a query that takes its pairs from those of a common join, by a `PairTest`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.errors import DeviceError, SplitJoinError, UnsupportedError
from splitjoin.engines.device import STAR, Device, Fault, Items, check_masked, checked_precision
from splitjoin.lang.eval.vector import evaluate_columns
from splitjoin.lang.ir import And, Col, Expr, columns as columns_of
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.windows import WindowSpec
from splitjoin.plan.implication import implies
from splitjoin.rows.changes import Changes

from ..change_checks import Change, resumed
from ..gate import GateReader, GateState
from ..results import ResultQueue
from ..retained import RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import DeviceProgress, Snapshot, identity
from .scan import FoundPairs, SharedScan

RowIds = tuple[int, int]
#: The age in ticks that no tuple exceeds.
_ANY_AGE = 2**64 - 1


@dataclass(frozen=True)
class Places:
    """Where a query begins, by row ids of the scan (R's, S's).

    Attributes:
        probes: The first tuples whose pairs with earlier ones are its own.
        stored: The first tuples that these may meet: as ``probes``, or those that were retained. The query's own row
            ids begin there.
    """

    probes: RowIds
    stored: RowIds


@dataclass(frozen=True)
class WindowSince:
    """The windows of R and S from the probes with row ids ``place`` (R's, S's) on: tuples with a row id from ``first``
    on, and of an age of ``lengths`` ticks at most. Row ids are the scan's.
    """

    place: RowIds
    first: RowIds
    lengths: RowIds

    @classmethod
    def of(cls, query: Query, place: RowIds = (0, 0), first: RowIds = (0, 0)) -> WindowSince:
        """The windows of ``query``. Its ROWS are the common join's, which has tested them."""
        r, s = _lengths(query)
        return cls(place, first, (r, s))


class PairTest:
    """Tells which pairs of a common join are those of ``query``: by the conjuncts that do not follow from the common
    condition, and by the ages of tuples where its windows are shorter than those of ``common`` are or were.

    Attributes:
        conjuncts: The conjuncts.
        columns: The columns that they read, by stream.
        windows: The windows of the query, each from other probes on.
    """

    def __init__(self, query: Query, common: Query):
        predicate = query.predicate
        conjuncts = predicate.args if isinstance(predicate, And) else (predicate,)
        self.conjuncts: tuple[Expr, ...] = tuple(c for c in conjuncts if not implies(common.predicate, c))
        self._query = query
        self.columns: tuple[Col, ...] = tuple(dict.fromkeys(c for e in self.conjuncts for c in columns_of(e)))
        self.windows = [WindowSince.of(query)]
        self._longest = _lengths(common)

    def widen(self, common: Query) -> None:
        """Note that the join has the windows of ``common`` now; what was found is of those before."""
        r, s = (max(pair) for pair in zip(self._longest, _lengths(common), strict=True))
        self._longest = r, s

    def change(self, since: WindowSince) -> None:
        """Take other windows, none of which is of earlier probes."""
        r, s = (max(pair) for pair in zip(self.windows[-1].first, since.first, strict=True))
        self.windows.append(WindowSince(since.place, (r, s), since.lengths))

    def forget(self, settled: RowIds) -> None:
        """Drop windows that concern only probes before row ids ``settled``."""
        while len(self.windows) > 1 and all(a <= b for a, b in zip(self.windows[1].place, settled, strict=True)):
            del self.windows[0]

    def holds(self, found: FoundPairs) -> Mask:
        """True (n,) for the pairs of the query."""
        keep = self._in_windows(found)
        for conjunct in self.conjuncts:
            value = evaluate_columns(conjunct, {c: found.vector(c) for c in columns_of(conjunct)}, len(found))
            keep &= value.valid & value.values
        return keep

    def _in_windows(self, found: FoundPairs) -> Mask:
        pairs = found.pairs
        keep = np.ones(len(pairs), np.bool_)
        for stored, name in enumerate(SIDES):
            probe = SIDES[1 - stored]
            for since, after in zip(self.windows, [*self.windows[1:], None], strict=True):
                first, length = since.first[stored], since.lengths[stored]
                if not first and length >= self._longest[stored]:
                    continue
                seen = pairs[name] >= first
                if length < self._longest[stored]:
                    seen &= found.ages(self._query) <= np.uint64(length)
                seen |= pairs["side"] == stored
                if since is not self.windows[0]:
                    seen |= pairs[probe] < since.place[1 - stored]
                if after is not None:
                    seen |= pairs[probe] >= after.place[1 - stored]
                keep &= seen
        return keep

    def state(self) -> Ints:
        """The windows, (n, 6), from which `restore` continues."""
        rows = [[*since.place, *since.first, *since.lengths] for since in self.windows]
        return np.array(rows, np.uint64).view(np.int64)

    def restore(self, state: Ints) -> None:
        """Take over the windows of another test. Raises `ValueError` for what is none."""
        rows = state.view(np.uint64).reshape(-1, 6).tolist()
        self.windows = [WindowSince((row[0], row[1]), (row[2], row[3]), (row[4], row[5])) for row in rows]
        if not rows or (state.reshape(-1, 6)[:, :4] < 0).any() or any(
                a[n] > b[n] for a, b in pairwise(rows) for n in range(4)):
            raise ValueError("no windows are so")


class ChosenPairs:
    """Chooses a query's pairs from those of a `SharedScan`; for `SharedQuery`, what the pipeline of a device is. Not
    thread-safe, except for ``results``.

    Args:
        check: Raises `UnsupportedError` unless the windows of a query lie within the join's.

    Attributes:
        gate: Its place in the streams, which it keeps itself.
        paused: False: it reads all that is ready.
        query: The query, with the windows that it has now.
        changes: Its masks, by its own row ids.
        results: The rows that were not polled.
        ended: True if there will be no more rows than those in ``results``.
    """

    holds_back = is_behind = False  # who waits for it looks again soon

    def __init__(self, name: str, scan: SharedScan, schemas: SessionSchemas, common: Query, places: Places, *,
                 check: Callable[[Query], None], punctuation: bool, snapshot: Snapshot | None = None):
        self._name, self._schemas, self._places, self._punctuation = name, schemas, places, punctuation
        self._scan, self._test = scan, PairTest(schemas.query, common)
        self.query, self._check_within, self.changes = schemas.query, check, Changes(schemas.query.order.n)
        self.results = ResultQueue(schemas.gathered, punctuation)
        self.ended = self.paused = False
        self._failure: SplitJoinError | None = None  # of the test or of the columns, for the next one who reads
        self._end: RowIds | None = None  # the scan's first tuples that are no longer the query's, once input is ended
        if snapshot is not None:
            with snapshot.reading():
                snapshot.check_tables(schemas)
                kind = snapshot.kind_state()
                self._places = Places(*(cast(RowIds, tuple(kind[at].tolist())) for at in ("probes", "stored")))
                if "end" in kind:  # a device failed when its input had ended
                    self._end = cast(RowIds, tuple(kind["end"].tolist()))
                self.results.restore(*snapshot.results())
                self.ended = snapshot.progress.ended
                self.query = resumed(self.query, *snapshot.windows, in_order=True)
                self._test.restore(kind["windows"])
                self.changes.restore(snapshot.changes)
        self._reached = sum(scan.pipeline.place())  # the number of tuples of both streams whose pairs it has read
        if self.ended:
            self.results.end()
        else:
            scan.add(self, restored=snapshot is not None)

    @property
    def gate(self) -> ChosenPairs:
        return self

    @property
    def waiting(self) -> int:
        """The number of ready tuples whose pairs the query has not read."""
        return self._scan.unread(self._reached) if self in self._scan.readers else 0

    def finish(self) -> None:
        """Let the tuples that are ready now be the query's last ones."""
        with self._scan.lock:
            self._end = self._end or self._scan.pipeline.place()

    def wait(self, seconds: float | None, ends: Callable[[], bool]) -> None:
        """Wait until there may be something to read, ``ends`` is true, or ``seconds`` have passed."""
        self._scan.wait(seconds, ends)

    def wake(self) -> None:
        """Let threads that `wait` look again."""
        self._scan.pipeline.gate.wake()

    def next_idle(self) -> float | None:
        return self._scan.pipeline.gate.next_idle()

    @property
    def device(self) -> Device:
        return self._scan.pipeline.device

    @property
    def seen_faults(self) -> tuple[Fault, ...]:
        """The faults of the join, by the query's own row ids."""
        r, s = self._places.stored
        return tuple(replace(fault, r=max(fault.r - r, 0), s=max(fault.s - s, 0),
                             lost_r=(fault.lost_r - r) % fault.cores, lost_s=(fault.lost_s - s) % fault.cores)
                     for fault in self._scan.pipeline.seen_faults)

    @property
    def lags(self) -> bool:
        return self._scan.pipeline.lags

    @property
    def failure(self) -> Exception | None:
        # What was found before the device failed is there to be read.
        return None if self.ended or self.results.rows else self._scan.pipeline.failure

    def failed(self) -> DeviceError:
        return self._scan.pipeline.failed()

    def work(self, *, unlimited: bool = False) -> None:
        """Let the scan go on, and choose from what it found."""
        with self._scan.lock:
            if self.ended:
                return
            pipeline = self._scan.pipeline
            try:
                self._scan.work(unlimited=unlimited)
                if self._end is not None and pipeline.failure is None:
                    self._scan.settle()
            finally:
                self._reached = max(self._reached, sum(pipeline.pushed))
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            self._forget()
            if pipeline.ended or (self._end is not None and all(a >= b for a, b in zip(
                    pipeline.pushed, self._end, strict=True))):
                self.ended = True
                self.close()

    def plan(self) -> str:
        """That of the scan."""
        return self._scan.pipeline.plan()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s`` (joined since the query was added), ``rows``, ``unread_rows``, ``unread_bytes``,
        and ``waiting``, the ready tuples that it has not read. `CommonJoin.counters` has the others.
        """
        pushed = self._scan.pipeline.pushed
        return {f"tuples_{side}": max(0, pushed[n] - self._places.probes[n]) for n, side in enumerate(SIDES)} | {
            "rows": self.results.total, "unread_rows": self.results.rows, "unread_bytes": self.results.nbytes,
            "waiting": self.waiting}

    def restart(self, device: Device) -> None:
        raise self._without_device("restart")

    def move(self, device: Device) -> Change:
        raise self._without_device("move")

    def _without_device(self, method: str) -> UnsupportedError:
        return UnsupportedError(f"the query {self._name!r} has no device of its own, as it takes its pairs from a "
                                f"common join; call {method}() of that join")

    def mask(self, cores: Collection[int], of: int) -> Change:
        masked = check_masked(cores, of)

        def act() -> RowIds:
            with self._scan.lock:
                self.changes.mask(place := self._own_place(), masked, of)
                return place

        return act

    def precision(self, n: int) -> Change:
        """Raises `OrderError`, as its orders have no precision."""
        checked_precision(self.query.order, n)
        return self._own_place

    def window(self, window: WindowSpec) -> Change:
        def check() -> Query:
            if self.ended or self._end is not None:
                raise UnsupportedError(f"windows change while input comes, but that of the query {self._name!r} has "
                                       f"ended; add another query")
            asked = self.query.with_window(window)
            self._check_within(asked)
            return asked

        def act() -> RowIds:
            with self._scan.lock:
                asked = check()
                self._scan.work(unlimited=True)
                if (pipeline := self._scan.pipeline).failure is not None:
                    raise pipeline.failed()
                r, s = (rows.needed(pipeline.windows.now[side], self.query.window(side))
                        for side, rows in pipeline.windows.streams.items())
                self._test.change(WindowSince.of(asked, place := pipeline.pushed, (r, s)))
                self.query = asked
                return self._own_row_ids(place)  # not `place()`, as more tuples may have become ready

        check()
        return act

    def widen(self, common: Query) -> None:
        """Note that the join has the windows of ``common`` from now on. The caller holds the scan's lock."""
        self._test.widen(common)

    def snapshot(self) -> bytes:
        """The state as bytes; what the scan has found is chosen from before."""
        with self._scan.lock:
            if not self.ended:
                self._scan.collect()
                self._reached = max(self._reached, sum(self._scan.pipeline.pushed))
            gate = GateState.of(self._schemas.streams, done=self.ended)
            kind = {"probes": np.array(self._places.probes), "stored": np.array(self._places.stored),
                    "windows": self._test.state().ravel()}
            if self._end is not None:
                kind["end"] = np.array(self._end)
            windows = RetainedWindows(self._schemas.query, {side: self._schemas.kept_schema(side) for side in SIDES})
            return Snapshot.of(self.identity(self._schemas, self._punctuation), self.query, gate, windows, self.results,
                               progress=DeviceProgress(ended=self.ended), kind=kind, changes=self.changes).to_bytes()

    @staticmethod
    def identity(schemas: SessionSchemas, punctuation: bool) -> dict[str, str]:
        """What two queries must have in common for one to continue where the other was."""
        return identity(schemas.query, schemas.gathered, f"{GateReader.rule}, of a common join", punctuation)

    def close(self) -> None:
        """End the results, and give up the place."""
        self.results.end()
        self._scan.remove(self)

    def take(self, found: FoundPairs) -> None:
        """Queue the rows of the query's pairs among those ``found``. The caller holds the scan's lock."""
        try:
            mine = self._is_mine(found.pairs)
            if mine.any():
                mine &= self._test.holds(found)
            if self.changes.has_masks:
                mine &= ~self.changes.hidden(self._own(found.pairs))
            arrays = [found.column(c.side, c.source) for c in self._schemas.columns]
            if not mine.all():
                at = pa.array(np.flatnonzero(mine))
                arrays = [array.take(at) for array in arrays]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schemas.gathered)
            self.results.put(batch, self._items(found, mine) if self._punctuation else found.items[:0])
        except SplitJoinError as error:  # other queries go on
            self._failure = error

    def _is_mine(self, pairs: Items) -> Mask:
        """True (n,) for pairs of which the query got both tuples."""
        mine = np.ones(len(pairs), np.bool_)
        for side, name in enumerate(SIDES):
            probes, end = pairs["side"] == side, self._end
            mine &= pairs[name] >= np.where(probes, self._places.probes[side], self._places.stored[side])
            if end is not None:
                mine &= pairs[name] < end[side]
        return mine

    def _items(self, found: FoundPairs, mine: Mask) -> Items:
        """The query's items among those of ``found``, by its own row ids."""
        items, places = found.items, self._places
        keep = np.zeros(len(items), np.bool_)
        keep[found.is_pair] = mine
        if self._schemas.query.order.kind != "none":
            for side, name in enumerate(SIDES):
                stars = (items["kind"] == STAR) & (items["side"] == side)
                keep |= stars & (items[name] >= places.probes[side]) & (
                    self._end is None or items[name] < self._end[side])
        return self._own(items[keep])

    def _own(self, items: Items) -> Items:
        """``items`` with the query's own row ids."""
        own: Items = items.copy()
        for side, name in enumerate(SIDES):
            own[name] -= np.where(own[name] >= 0, self._places.stored[side], 0)
        return own

    def _own_place(self) -> RowIds:
        """The query's own row ids of the next tuples that become ready."""
        return self._own_row_ids(self._scan.pipeline.place())

    def _own_row_ids(self, place: RowIds) -> RowIds:
        """The row ids ``place`` of the scan, as the query's own."""
        r, s = (at - first for at, first in zip(place, self._places.stored, strict=True))
        return r, s

    def _forget(self) -> None:
        """Drop changes that no pair to come needs; what was found is chosen from."""
        settled = self._scan.pipeline.device_session.settled
        self._test.forget(settled)
        r, s = (max(0, at - first) for at, first in zip(settled, self._places.stored, strict=True))
        self.changes.forget((r, s))


def _lengths(query: Query) -> RowIds:
    """The RANGE of R and of S in ticks; `_ANY_AGE` without one."""
    r, s = (_ANY_AGE if (length := query.window(side).length) is None else min(length, _ANY_AGE) for side in SIDES)
    return r, s
