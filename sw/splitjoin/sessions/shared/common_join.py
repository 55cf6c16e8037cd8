"""`CommonJoin`: one join over shared streams from whose pairs several queries choose theirs (semantics, *Shared
streams*).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from splitjoin.base.closing import Closing
from splitjoin.base.errors import DeviceError, InputError, SchemaError, SnapshotError, UnsupportedError
from splitjoin.engines.device import Device, Fault
from splitjoin.engines.effectiveness import effectiveness
from splitjoin.engines.registry import device as find_device, merged_options
from splitjoin.joins.explain import window_text
from splitjoin.joins.sql import Select
from splitjoin.lang import build
from splitjoin.lang.ir import columns as columns_of
from splitjoin.lang.order import Order
from splitjoin.lang.query import Predicate, Query, predicate
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.windows import WindowSpec
from splitjoin.plan.implication import implies, weakest
from splitjoin.rows.output import Selected

from ..faults import CoreFaults
from ..gate import ReadySequence
from ..limit import PipelineOptions
from ..schemas import SessionSchemas
from ..snapshot import Snapshot
from .chosen_pairs import ChosenPairs, PairTest, Places
from .input import SharedInput
from .query import SharedPipeline, SharedQuery
from .scan import SharedScan

#: What a user can do whose query is refused.
_OWN = "or give the query a device of its own, with streams.query(…)"


@dataclass(frozen=True)
class CommonHost:
    """What a common join asks of its `SharedStreams`.

    Attributes:
        make_query: Makes a checked query over the streams, of the arguments of `Query.make`.
        make_select: Makes that of a SELECT, a window and an order.
        register: Adds the query that a function makes of its name; meanwhile no push makes a tuple ready.
        forget: Removes a query that closes, also from the queries of its join.
        forget_join: Removes a common join that is closed.
        input: Gives the streams' input.
        held: Within the context no query is added, and no push makes a tuple ready.
    """

    make_query: Callable[..., Query]
    make_select: Callable[[str, WindowSpec, str | Order], Select]
    register: Callable[[str | None, Callable[[str], SharedQuery]], SharedQuery]
    forget: Callable[[SharedQuery, list[Any]], None]
    forget_join: Callable[[CommonJoin], None]
    input: Callable[[], SharedInput]
    held: Callable[[], AbstractContextManager[None]]


class CommonJoin(Closing):
    """One join over shared streams, on one device, for several queries; `SharedStreams.common_join` adds it.

    Tuples are stored, encoded and compared once. From the pairs that the join finds, each query keeps, by a test on the
    host, those that its own condition and windows admit; rows and order are those of a session of its own. So its
    condition must imply the join's, by equal parts and by constants, and its windows must lie within the join's. The
    device is open while there are queries. Queries of one join are polled one at a time.

    Attributes:
        name: The name by which snapshots know it.
        joined: The checked query of the join, with the windows that it began with.
    """

    def __init__(self, host: CommonHost, name: str, query: Query, window: WindowSpec, select: Sequence[str] | None,
                 device: Device, faults: CoreFaults):
        self._host, self.name, self.joined, self._window = host, name, query, window
        self._device, self._options = device, PipelineOptions(punctuation=True, faults=faults)
        self._schemas = SessionSchemas(query, None if select is None else _with_tested(query, select))
        self._gives = {(c.side, c.source) for c in self._schemas.columns}
        self._scan: SharedScan | None = None
        self._queries: list[CommonQuery] = []
        self._closed = False

    def query(self, *, on: Predicate, window: WindowSpec | None = None, order: str | Order = "total",
                 select: Selected | None = None, name: str | None = None, history: bool = False,
                 punctuation: bool = False) -> SharedQuery:
        """Add a query that chooses from the pairs of this join, from the next tuples that become ready on.

        The arguments are those of `SharedStreams.query`; ``window``: None for the join's; ``order``: ``"total"`` or
        ``"none"``. Raises `UnsupportedError` unless it is known that the join finds all pairs of the query.
        """
        made = self._host.make_query(on=on, window=self._window if window is None else window, order=order)
        return self._add(SessionSchemas(made, select), name, history, punctuation)

    def sql(self, text: str, *, window: WindowSpec | None = None, order: str | Order = "total",
            name: str | None = None, history: bool = False, punctuation: bool = False) -> SharedQuery:
        """Add the query of a SELECT over the two streams; see `query` and `SharedStreams.sql`."""
        select = self._host.make_select(text, self._window if window is None else window, order)
        return self._add(SessionSchemas(select, None), name, history, punctuation)

    @property
    def queries(self) -> list[SharedQuery]:
        """The queries, in the order in which they were added."""
        return list(self._queries)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The cores that the device has left out (`StreamJoin.faults`), by row ids of the join."""
        return self._options.faults.seen

    def counters(self) -> dict[str, int]:
        """The counters of the session that joins (`ReadingSession.counters`), since it was opened; empty while there is
        no query.
        """
        with self._running() as scan:
            return {} if scan is None else scan.pipeline.counters()

    @property
    def effectiveness(self) -> float | None:
        """Pairs found per pair compared (ESJ's ϱ); None where the device does not count both."""
        return effectiveness({name.removeprefix("device_"): n for name, n in self.counters().items()
                              if name.startswith("device_")})

    def restart(self, device: str | Device | None = None, *, device_options: Mapping[str, Any] | None = None,
                **options: object) -> None:
        """Continue in a fresh device session, of another device if one is given; see `StreamJoin.restart`."""
        self._check_open()
        chosen = self._device if device is None else device
        self._device = find_device(chosen, **merged_options(device_options, options, chosen, self.restart))
        with self._running() as scan:
            if scan is not None:
                scan.pipeline.restart(self._device)
                scan.collect()

    def move(self, device: str | Device, *, device_options: Mapping[str, Any] | None = None, **options: object) -> None:
        """Go on on ``device`` without a pause for a replay; see `StreamJoin.move`. Without queries, the next one opens
        it there.
        """
        chosen = find_device(device, **merged_options(device_options, options, device, self.move))
        self._check_open()
        with self._running() as scan:
            if scan is not None:
                try:
                    scan.pipeline.move(chosen)()
                finally:
                    scan.collect()
            self._device = chosen

    def check_move(self, device: Device) -> None:
        """Raise `UnsupportedError` unless the join can `move` to ``device``; `SharedStreams` calls this."""
        with self._running() as scan:
            if scan is not None:
                try:
                    scan.pipeline.move(device)
                finally:
                    scan.collect()

    def window(self, window: WindowSpec) -> tuple[int, int]:
        """Change the windows within which those of the queries must lie, as long as there are queries.

        The queries keep their windows; `SharedQuery.window` changes these. Returns the row ids (R's, S's) of the first
        tuples after the change, counted since the device was opened. Raises what `StreamJoin.window` raises, and
        `UnsupportedError` without queries and for windows that are shorter than a query's.
        """
        with self._host.held(), self._running() as scan:
            self._check_open()
            if scan is None:
                raise UnsupportedError(f"the windows of a common join change while it has queries, and {self.name!r} "
                                       f"has none; add one first, or open another common join")
            asked = scan.pipeline.query.with_window(window)
            for query in self._queries:
                self._check_windows(query.pairs.query, asked)
            place = scan.window(window)
            for query in self._queries:
                query.pairs.widen(asked)
            return place

    @property
    def running(self) -> bool:
        """True if it has a device open, for its queries."""
        return self._scan is not None and not self._scan.closed

    def close(self) -> None:
        """Close the queries of the join, and remove it from the streams."""
        self._closed = True
        for query in self.queries:
            query.close()
        self._host.forget_join(self)

    @property
    def current(self) -> Query:
        """The query of the join, with the windows that it has now."""
        scan = self._scan
        return self.joined if scan is None or scan.closed else scan.pipeline.query

    def check_windows(self, query: Query) -> None:
        """Raise `UnsupportedError` unless the windows of ``query`` lie within those of the join."""
        self._check_windows(query, self.current)

    def state(self) -> bytes:
        """The join's part of a snapshot; empty without queries. `SharedStreams` asks for it."""
        if self._scan is None or not self._queries:
            return b""
        with self._scan.lock:
            return self._scan.pipeline.snapshot()

    def opened_again(self, sequence: ReadySequence, state: bytes) -> SharedScan | None:
        """A scan from ``state`` that reads ``sequence`` from now on, or None; see `replace`."""
        if bool(state) != bool(self._queries):
            raise SnapshotError(f"the snapshot must be of a common join {self.name!r} with the same queries")
        if not state:
            return None
        found = Snapshot.from_bytes(state)
        assert self._scan is not None
        windows = {name: text for name, text in found.header["about"].items() if name.startswith("window of ")}
        found.check(self._scan.pipeline.identity | windows)  # those that it had go on
        return SharedScan(sequence, self._schemas, self._device, self._options, found)

    def replace(self, scan: SharedScan | None) -> None:
        """Go on with ``scan``, which the queries read already, but for those that have ended."""
        self._scan = scan
        if scan is not None and scan.closed:
            scan.close()

    def forget(self, query: CommonQuery) -> None:
        """Remove a query that closes."""
        self._host.forget(query, self._queries)

    def _add(self, schemas: SessionSchemas, name: str | None, history: bool, punctuation: bool) -> SharedQuery:
        self._check_open()
        self._check(schemas)

        def made(name: str) -> SharedQuery:
            new, given = self._scan is None or self._scan.closed, self._host.input()
            if self._scan is None or self._scan.closed:
                self._scan = SharedScan(given.sequence, self._schemas, self._device, self._options, (
                    given.past(self._schemas, True) if given.retains else None))
            scan = self._scan
            try:
                with scan.lock:
                    r, s = scan.pipeline.place()
                    of_r, of_s = (len(rows) for rows in given.windows_for(schemas).streams.values()) if history else (
                        0, 0)
                    stored = r - of_r, s - of_s
                    if history and any(a < b for a, b in zip(stored, scan.begin, strict=True)):
                        raise UnsupportedError(f"history=True needs the tuples that the query's windows hold, but some "
                                               f"had left the common join {self.name!r} before its windows were made "
                                               f"longer; leave history out, {_OWN}")
                    pairs = ChosenPairs(name, scan, schemas, self.current, Places((r, s), stored),
                                        check=self.check_windows, punctuation=punctuation)
            except BaseException:
                if new:
                    scan.close()
                raise
            query = CommonQuery(self, name, schemas, pairs, punctuation)
            self._queries.append(query)
            return query

        return self._host.register(name, made)

    def _check(self, schemas: SessionSchemas) -> None:
        """Raise `UnsupportedError` unless the pairs of the query of ``schemas`` are among those of the join."""
        query, common, own = schemas.query, self.current, _OWN
        if not query.is_pairs or query.computed:
            raise UnsupportedError(f"a query of a common join is an inner join without aggregates and without terms "
                                   f"that DuckDB computes, as it only chooses among pairs; write it so, {own}")
        if query.order.kind not in ("total", "none"):
            raise UnsupportedError(f"a query of a common join has order 'total' or 'none', not '{query.order}', whose "
                                   f"groups count from the query's first tuple; choose one of these, {own}")
        if not implies(query.predicate, common.predicate):
            raise UnsupportedError(f"the common join {self.name!r} finds the pairs for which '{common.predicate}', and "
                                   f"'{query.predicate}' is not known to imply that; open another common join whose "
                                   f"`on` lists this condition too, {own}")
        self._check_windows(query, common)
        needed = {(c.side, c.source): None for c in schemas.columns}
        needed |= {(c.side, c.name): None for c in PairTest(query, common).columns}
        lacking = [f"{side}.{name}" for side, name in needed if (side, name) not in self._gives]
        if lacking:
            raise UnsupportedError(f"the common join {self.name!r} gives no column {lacking[0]}, which the query "
                                   f"needs; name it in the join's select, {own}")

    def _check_windows(self, query: Query, common: Query) -> None:
        """Raise `UnsupportedError` unless the windows of ``query`` lie within those of ``common``."""
        for side in SIDES:
            mine, whole = query.window(side), common.window(side)
            if mine.rows != whole.rows or (whole.length is not None and (
                    mine.length is None or mine.length > whole.length)):
                raise UnsupportedError(f"the window of {side} must have the ROWS of the common join {self.name!r}, and "
                                       f"a RANGE within its, but is {window_text(query, side)}, and that of the join "
                                       f"{window_text(common, side)}; shorten it, {_OWN}")

    @contextmanager
    def _running(self) -> Iterator[SharedScan | None]:
        """The scan, which does not work meanwhile; None if there is none."""
        scan = self._scan
        if scan is None:
            yield None
            return
        with scan.lock:
            yield None if scan.closed else scan

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError(f"the common join {self.name!r} is closed; open another one")


class CommonQuery(SharedQuery):
    """A query of a `CommonJoin`."""

    has_device = False

    def __init__(self, join: CommonJoin, name: str, schemas: SessionSchemas, pairs: ChosenPairs, punctuation: bool):
        super().__init__(lambda _: join.forget(self), name, schemas, pairs, PipelineOptions(punctuation=punctuation))
        self._join, self.pairs = join, pairs

    def replace(self, pipeline: SharedPipeline) -> None:
        super().replace(pipeline)
        assert isinstance(pipeline, ChosenPairs)
        self.pairs = pipeline

    def mask(self, cores: Collection[int], *, of: int | None = None) -> tuple[int, int]:
        if of is None:
            raise InputError(f"the query {self.name!r} counts its own tuples, and the device those of its common join; "
                             f"give the number of sub-windows, of=…")
        return super().mask(cores, of=of)

    def opened_again(self, sequence: ReadySequence, state: Snapshot, scans: Mapping[str, SharedScan]) -> ChosenPairs:
        with self._opened():
            state.check(ChosenPairs.identity(self._schemas, self._punctuation))
            scan = scans[self._join.name]
            return ChosenPairs(self.name, scan, self._schemas, scan.pipeline.query, Places((0, 0), (0, 0)),
                               check=self._join.check_windows, punctuation=self._punctuation, snapshot=state)


def any_of(on: Predicate | Sequence[Predicate], schemas: Mapping[Side, Schema]) -> Predicate:
    """The condition that one of ``on`` holds, without those that imply another."""
    if isinstance(on, (str, bytes)) or not isinstance(on, Sequence):
        return on
    if not on:
        raise InputError("on must have one condition at least, but the list is empty")
    conditions = weakest([predicate(one, schemas["r"], schemas["s"]) for one in on])
    return conditions[0] if len(conditions) == 1 else build.or_(conditions, "on")


def _with_tested(query: Query, select: Sequence[str]) -> list[str]:
    """``select`` with the columns that queries with other constants and shorter windows test."""
    if isinstance(select, Mapping):
        raise SchemaError("select of a common join names the columns that its queries may give, so it is a list; give "
                          "them other names with select= of each query")
    gives = {(c.side, c.source) for c in SessionSchemas(query, select).columns}
    tested: dict[tuple[Side, str], None] = {(c.side, c.name): None for c in columns_of(query.predicate)}
    tested |= {(side, query.time.name(side)): None for side in SIDES if query.time is not None}
    return [*select, *(f"{side}.{name}" for side, name in tested if (side, name) not in gives)]
