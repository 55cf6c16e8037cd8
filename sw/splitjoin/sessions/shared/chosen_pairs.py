"""`ChosenPairs`: the results of a query that takes its pairs from those of a common join."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.engines.device import STAR, Device, Fault, Items, check_masked
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.lang.windows import WindowSpec
from splitjoin.rows.changes import Changes

from ..change_checks import check_precision, resumed
from ..gate import GateReader, GateState
from ..results import ResultQueue
from ..retained import RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import DeviceProgress, Snapshot, identity
from .pair_test import PairTest, WindowSince
from .scan import Cursor, FoundPairs, SharedScan

__all__ = ["ChosenPairs", "Places"]

Mask = npt.NDArray[np.bool_]
RowIds = tuple[int, int]


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


class ChosenPairs:
    """Chooses a query's pairs from those of a `SharedScan`; for `SharedQuery`, what the pipeline of a device is. Not
    thread-safe, except for ``results``.

    Args:
        check: Raises `UnsupportedError` unless the windows of a query lie within the join's.

    Attributes:
        gate: Its place in what the scan finds.
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
        self.ended = False
        if snapshot is not None:
            with snapshot.reading():
                snapshot.check_tables(schemas)
                kind = snapshot.kind_state()
                self._places = Places(*(cast(RowIds, tuple(kind[at].tolist())) for at in ("probes", "stored")))
                self.results.restore(*snapshot.results())
                self.ended = snapshot.progress.ended
                self.query = resumed(self.query, *snapshot.windows, in_order=True)
                self._test.restore(kind["windows"])
                self.changes.restore(snapshot.changes)
        self.gate: Cursor = scan.cursor(ended=self.ended, restored=snapshot is not None)
        if self.ended:
            self.results.end()

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
        return None if self.ended or self._scan.has_more(self.gate) else self._scan.pipeline.failure

    def failed(self) -> DeviceError:
        return self._scan.pipeline.failed()

    def work(self, *, unlimited: bool = False) -> None:
        """Let the scan go on, and choose from what it found."""
        with self._scan.lock:
            if self.ended:
                return
            try:
                self._scan.work(unlimited=unlimited)
                if self.gate.end is not None and self._scan.pipeline.failure is None:
                    self._scan.settle()
            finally:
                self._choose()
            self._forget()
            over = self.gate.end is not None and all(a >= b for a, b in zip(
                self._scan.pipeline.pushed, self.gate.end, strict=True))
            if over or self._scan.pipeline.ended:
                self._end()

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
            "waiting": self.gate.waiting}

    def restart(self, device: Device) -> None:
        raise UnsupportedError(f"the query {self._name!r} has no device of its own, as it takes its pairs from a "
                               f"common join; call restart() of that join")

    def mask(self, cores: Collection[int], of: int) -> RowIds:
        """Hide pairs from the next tuples on, and return their row ids; see `Pipeline.mask`."""
        with self._scan.lock:
            self.changes.mask(place := self._own_place(), self.check_mask(cores, of), of)
            return place

    def check_mask(self, cores: Collection[int], of: int) -> frozenset[int]:
        """``cores`` as a set. Raises what `mask` raises."""
        return check_masked(cores, of)

    def precision(self, n: int) -> RowIds:
        """Raise `OrderError`, as its orders have no precision."""
        self.check_precision(n)
        return self._own_place()

    def check_precision(self, n: int) -> None:
        """Raise `OrderError`."""
        check_precision(self.query.order, n)

    def window(self, window: WindowSpec) -> RowIds:
        """Change the windows from the next tuples on, and return their row ids; see `Pipeline.window`."""
        with self._scan.lock:
            asked = self.check_window(window)
            self._scan.work(unlimited=True)
            if (pipeline := self._scan.pipeline).failure is not None:
                raise pipeline.failed()
            r, s = (rows.needed(pipeline.windows.now[side], self.query.window(side))
                    for side, rows in pipeline.windows.streams.items())
            self._test.change(WindowSince.of(asked, place := pipeline.pushed, (r, s)))
            self.query = asked
            return self._own_row_ids(place)  # not `place()`, as more tuples may have become ready

    def check_window(self, window: WindowSpec) -> Query:
        """The query with other windows. Raises `WindowError` and `UnsupportedError` unless it can get them."""
        if self.ended or self.gate.end is not None:
            raise UnsupportedError(f"windows change while input comes, but that of the query {self._name!r} has ended; "
                                   f"add another query")
        asked = self.query.with_window(window)
        self._check_within(asked)
        return asked

    def widen(self, common: Query) -> None:
        """Note that the join has the windows of ``common`` from now on. The caller holds the scan's lock."""
        self._test.widen(common)

    def move(self, device: Device) -> None:
        """Raise `UnsupportedError`, as the device is the join's."""
        self.check_move(device)

    def check_move(self, device: Device) -> None:
        """Raise `UnsupportedError`."""
        raise UnsupportedError(f"the query {self._name!r} has no device of its own, as it takes its pairs from a "
                               f"common join; call move() of that join")

    def snapshot(self) -> bytes:
        """The state as bytes; what the scan has found is chosen from before."""
        with self._scan.lock:
            if not self.ended:
                self._choose()
            gate = GateState.of(self._schemas.streams, done=self.ended)
            kind = {"probes": np.array(self._places.probes), "stored": np.array(self._places.stored),
                    "windows": self._test.state().ravel()}
            windows = RetainedWindows(self._schemas.query, {side: self._schemas.kept_schema(side) for side in SIDES})
            return Snapshot.of(self.identity(self._schemas, self._punctuation), self.query, gate, windows, self.results,
                               progress=DeviceProgress(ended=self.ended), kind=kind, changes=self.changes).to_bytes()

    @staticmethod
    def identity(schemas: SessionSchemas, punctuation: bool) -> dict[str, str]:
        """What two queries must have in common for one to continue where the other was."""
        return identity(schemas.query, schemas.gathered, f"{GateReader.rule}, of a common join", punctuation)

    def close(self) -> None:
        self.gate.close()
        self.results.end()

    def _end(self) -> None:
        self.ended = True
        self.results.end()
        self.gate.close()

    def _choose(self) -> None:
        """Queue the rows of all pairs that the query has not read. The caller holds the scan's lock."""
        for found in self.gate.take():
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

    def _is_mine(self, pairs: Items) -> Mask:
        """True (n,) for pairs of which the query got both tuples."""
        mine = np.ones(len(pairs), np.bool_)
        for side, name in enumerate(SIDES):
            probes, end = pairs["side"] == side, self.gate.end
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
                    self.gate.end is None or items[name] < self.gate.end[side])
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
        if not self.gate.paused:
            settled = self._scan.pipeline.device_session.settled
            self._test.forget(settled)
            r, s = (max(0, at - first) for at, first in zip(settled, self._places.stored, strict=True))
            self.changes.forget((r, s))
