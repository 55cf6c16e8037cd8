"""`ChosenPairs`: the results of a query that takes its pairs from those of a common join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.errors import DeviceError, UnsupportedError
from splitjoin.engines.device import STAR, Device, Items
from splitjoin.lang.eval.vector import evaluate_columns
from splitjoin.lang.ir import And, Col, Expr, columns as columns_of
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.plan.implication import implies

from ..gate import GateState, Reader
from ..results import ResultQueue
from ..retained import RetainedWindows
from ..schemas import SessionSchemas
from ..snapshot import Snapshot, identity
from .scan import Cursor, FoundPairs, Scan

__all__ = ["ChosenPairs", "PairTest", "Places"]

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


class PairTest:
    """Tells which pairs of a common join are those of ``query``: by the conjuncts that do not follow from the common
    condition, and by the ages of tuples where its windows are shorter.
    """

    def __init__(self, query: Query, common: Query):
        predicate = query.predicate
        conjuncts = predicate.args if isinstance(predicate, And) else (predicate,)
        self.conjuncts: tuple[Expr, ...] = tuple(c for c in conjuncts if not implies(common.predicate, c))
        self._query = query
        #: The columns that the test reads, by stream.
        self.columns: tuple[Col, ...] = tuple(dict.fromkeys(c for e in self.conjuncts for c in columns_of(e)))
        self._shorter = {n: length for n, side in enumerate(SIDES)
                         if (length := query.window(side).length) is not None and length != common.window(side).length}

    def holds(self, found: FoundPairs) -> Mask:
        """True (n,) for the pairs of the query."""
        keep = np.ones(len(found), np.bool_)
        for stored, length in self._shorter.items():
            keep &= (found.pairs["side"] == stored) | (found.ages(self._query) <= np.uint64(min(length, 2**64 - 1)))
        for conjunct in self.conjuncts:
            value = evaluate_columns(conjunct, {c: found.vector(c) for c in columns_of(conjunct)}, len(found))
            keep &= value.valid & value.values
        return keep


class ChosenPairs:
    """Chooses a query's pairs from those of a `Scan`; for `SharedQuery`, what the pipeline of a device is. Not
    thread-safe, except for ``results``.

    Attributes:
        gate: Its place in what the scan finds.
        results: The rows that were not polled.
        ended: True if there will be no more rows than those in ``results``.
    """

    holds_back = False

    def __init__(self, name: str, scan: Scan, schemas: SessionSchemas, common: Query, places: Places, *,
                 punctuation: bool, snapshot: Snapshot | None = None):
        self._name, self._schemas, self._places, self._punctuation = name, schemas, places, punctuation
        self._scan, self._test = scan, PairTest(schemas.query, common)
        self.results = ResultQueue(schemas.gathered, punctuation)
        self.ended = False
        if snapshot is not None:
            with snapshot.reading():
                snapshot.check_tables(schemas)
                kind = snapshot.kind_state()
                self._places = Places(*(cast(RowIds, tuple(kind[at].tolist())) for at in ("probes", "stored")))
                self.results.restore(*snapshot.results())
                self.ended = snapshot.ended
        self.gate: Cursor = scan.cursor(ended=self.ended)
        if self.ended:
            self.results.end()

    @property
    def device(self) -> Device:
        return self._scan.pipeline.device

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
            over = self.gate.end is not None and all(a >= b for a, b in zip(
                self._scan.pipeline.pushed, self.gate.end, strict=True))
            if over or self._scan.pipeline.ended:
                self._end()

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

    def snapshot(self) -> bytes:
        """The state as bytes; what the scan has found is chosen from before."""
        with self._scan.lock:
            if not self.ended:
                self._choose()
            gate = GateState(None, dict.fromkeys(SIDES, self.ended), {side: [] for side in SIDES}, {
                side: (0, 0, self._schemas.streams[side].empty_table()) for side in SIDES})
            kind = {"probes": np.array(self._places.probes), "stored": np.array(self._places.stored)}
            windows = RetainedWindows(self._schemas.query, {side: self._schemas.kept_schema(side) for side in SIDES})
            return Snapshot.of(self.identity(self._schemas, self._punctuation), gate, {}, windows, [], self.results,
                               settled=(0, 0), ended=self.ended, restarts=0, kind=kind,
                               query=self._schemas.query).to_bytes()

    @staticmethod
    def identity(schemas: SessionSchemas, punctuation: bool) -> dict[str, str]:
        """What two queries must have in common for one to continue where the other was."""
        return identity(schemas.query, schemas.gathered, f"{Reader.rule}, of a common join", punctuation)

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
        chosen: Items = items[keep].copy()
        for side, name in enumerate(SIDES):
            chosen[name] -= np.where(chosen[name] >= 0, places.stored[side], 0)
        return chosen
