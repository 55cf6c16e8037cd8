"""`SharedStreams`: one pair of streams for many queries (semantics, *Shared streams*)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Condition
from typing import Any, Literal, TypeVar

import pyarrow as pa

from splitjoin.base import threads
from splitjoin.base.closing import Closing
from splitjoin.base.errors import DeviceError, InputError, SnapshotError, SplitJoinError
from splitjoin.engines.device import Device
from splitjoin.engines.registry import device as find_device, merged_options
from splitjoin.joins.computed import make_query
from splitjoin.joins.sql import Select, sql
from splitjoin.lang.order import Order
from splitjoin.lang.query import Predicate, Query
from splitjoin.lang.schema import SIDES, Schema, Side
from splitjoin.lang.time_columns import TimeSpec
from splitjoin.lang.windows import Tolerance, WindowSpec, session_windows
from splitjoin.rows.output import Selected

from ..envelope import Envelope, damaged
from ..epochs import EpochSource
from ..faults import CoreFaults, OnFault
from ..feeding import FeedingSession
from ..gate import SourceGate, Watermark
from ..gate.times import Idle, Lateness
from ..limit import GateOptions, Limit, PipelineOptions
from ..reading import check_unreserved
from ..schemas import SessionSchemas, arrow_schema
from ..snapshot import Snapshot, identity
from .common_join import CommonHost, CommonJoin, any_of
from .input import SharedInput
from .query import SharedPipeline, SharedQuery, new_name
from .scan import SharedScan, opened_pipeline

#: The condition of the query whose windows are what is kept for later queries.
_ANY = "TRUE"
#: A snapshot holds those of the streams and of each query.
_ENVELOPE, _STREAMS = Envelope(b"SPLJSHAR", 2, "shared streams"), "streams"
#: By the names of queries, the row ids (R's, S's) of the first tuples after a change.
Places = dict[str, tuple[int, int]]
Changed = TypeVar("Changed")
Answer = TypeVar("Answer")
#: Seconds after which a push that is held up looks again: a query that reads tells no push, lest it wait for one.
_PATIENCE = 0.02


class SharedStreams(FeedingSession, Closing):
    """One pair of streams that many queries read; `splitjoin.share` starts it.

    Each query's rows are those of its own single session over the same arrival order, from the tuple at which it was
    added. Adding, removing, or failing of one query changes no other's rows. Tuples are checked, ordered and kept once
    until every query has read them. Several threads may call its methods. Use as a context manager, which ends the
    streams and closes the queries that are left.

    A change of all queries, before the next tuple, is that of each query's own method. It is checked for all first, and
    if it is refused for one, none changes. If a device fails later, the error's notes say which queries have changed.

    Args:
        r_schema: The Arrow schema of stream R.
        s_schema: The Arrow schema of stream S.
        time: The event-time column, as in `splitjoin.join`; None: tuples arrive as they are pushed.
        names: The names of R and S in statements.
        retain: The window whose tuples are kept for queries that are added later with ``history=True``; None: none.
        lateness: As of `splitjoin.open`.
        watermark: As there.
        idle: As there.
        clock: As there.
        waiting: Number of tuples that may wait for a source that is behind.
        unread: Number of ready tuples that the slowest query may have to read.
        late: Number of late tuples of a stream that are kept until they are taken.
        when_full: ``"raise"``: a push beyond these bounds raises `BackPressure`; ``"block"``: it blocks until a source,
            or a query in another thread, has gone on.
    """

    _full_text = "the shared streams are full"
    _lock: Condition

    def __init__(self, r_schema: Any, s_schema: Any, *, time: TimeSpec | None = None,
                 names: tuple[str, str] = ("r", "s"), retain: WindowSpec | None = None,
                 lateness: Lateness | None = None, watermark: Watermark | None = None, idle: Idle | None = None,
                 waiting: int | None = 1 << 22, unread: int | None = 1 << 22, late: int = 1 << 16,
                 when_full: Literal["raise", "block"] = "raise", clock: Callable[[], float] = threads.monotonic):
        if when_full not in ("raise", "block"):
            raise InputError(f"when_full must be 'raise' or 'block', not {when_full!r}")
        if len(names) != 2 or names[0] == names[1] or not all(isinstance(name, str) and name for name in names):
            raise InputError(f"names must be two different names, R's and S's, not {names!r}")
        if unread is not None and (type(unread) is not int or unread < 1):
            raise InputError(f"unread must be a whole number from 1, or None, not {unread!r}")
        self._streams: dict[Side, Schema] = {"r": arrow_schema("r", r_schema), "s": arrow_schema("s", s_schema)}
        self._time, self._names = time, names
        self._most = unread
        base = self._query(on=_ANY, window=retain or "ROWS 1")
        self._base = SessionSchemas(base, None)
        self._begin_feeding(self._base, Limit(waiting=waiting, late=late), blocks=when_full == "block")
        self._options = GateOptions(lateness, watermark, idle, clock, late)
        self._retains = retain is not None
        self._input = self._fresh_input()
        self._queries: dict[str, SharedQuery] = {}
        self._joins: dict[str, CommonJoin] = {}
        self._lock = threads.condition()
        self._closed = False
        self._room_to = 0  # until so many tuples are ready, no query can have too many to read, so none is asked
        self._reserved: str | None = None  # why no query may be polled

    def query(self, *, on: Predicate | None = None, window: WindowSpec | None = None, closed: str | None = None,
              order: str | Order = "total", how: str = "inner", direction: str | None = None,
              allow_exact: bool | None = None, k: int | None = None, ties: str | None = None,
              tolerance: Tolerance | None = None, by: str | None = None, aggregate: Mapping[str, Any] | None = None,
              select: Selected | None = None, name: str | None = None, device: str | Device = "cpu",
              history: bool = False, limit: Limit | int | None = None, punctuation: bool = False,
              on_fault: OnFault = "continue", device_options: Mapping[str, Any] | None = None,
              **options: object) -> SharedQuery:
        """Add a query that reads the streams from now on, or with what is retained.

        ``on`` to ``aggregate`` are as for `splitjoin.query`, ``select``, ``device``, ``device_options`` and ``options``
        as for `splitjoin.join`, ``limit``, ``punctuation`` and ``on_fault`` as for `splitjoin.open`. ``history``: True
        if its windows begin with the retained tuples, as far as they reach; pairs of two of them were, or would have
        been, earlier and are not given. ``name``: by default q1, q2 …. Raises a `SplitJoinError` that names the part
        that is wrong.
        """
        made = self._query(on=on, window=session_windows(window, closed, how, tolerance), order=order, how=how,
                           direction=direction, allow_exact=allow_exact, k=k, ties=ties, tolerance=tolerance, by=by,
                           aggregate=aggregate)
        return self._add(SessionSchemas(made, select), name, history, find_device(
            device, **merged_options(device_options, options, device, self.query)),
                         PipelineOptions(Limit.of(limit), punctuation, CoreFaults(on_fault)))

    def sql(self, text: str, *, window: WindowSpec, order: str | Order = "total", name: str | None = None,
            device: str | Device = "cpu", history: bool = False, limit: Limit | int | None = None,
            punctuation: bool = False, on_fault: OnFault = "continue",
            device_options: Mapping[str, Any] | None = None, **options: object) -> SharedQuery:
        """Add the query of a SELECT over the two streams, which FROM calls by ``names``, R's first; see `query`."""
        return self._add(SessionSchemas(self._select(text, window, order), None), name, history, find_device(
            device, **merged_options(device_options, options, device, self.sql)),
                         PipelineOptions(Limit.of(limit), punctuation, CoreFaults(on_fault)))

    def common_join(self, *, on: Predicate | Sequence[Predicate], window: WindowSpec,
                    select: Sequence[str] | None = None, name: str | None = None, device: str | Device = "cpu",
                    on_fault: OnFault = "continue", device_options: Mapping[str, Any] | None = None,
                    **options: object) -> CommonJoin:
        """Add a join on one device from whose pairs several queries choose; `CommonJoin.query` and ``sql`` add them.

        ``on``: one condition, or several; each query's condition must imply one of them. ``window``: the longest that
        a query may have. ``select``: the columns that queries may give and test, beside those of ``on`` and the times;
        by default all. ``name``: by default j1, j2, and so on. ``on_fault``: as for `splitjoin.open`.
        """
        query = self._query(on=any_of(on, self._streams), window=window)
        chosen = find_device(device, **merged_options(device_options, options, device, self.common_join))
        host = CommonHost(self._query, self._select, self._register, self._forget, self._forget_join,
                          lambda: self._input, self._usable)
        with self._usable():
            name = new_name("j", "common join", name, self._joins)
            self._joins[name] = made = CommonJoin(host, name, query, window, select, chosen, CoreFaults(on_fault))
            return made

    def mask(self, cores: Collection[int], *, of: int) -> Places:
        """Mask sub-windows of all queries; see `SharedQuery.mask`. Each counts its own row ids.

        Returns, by the queries' names, the row ids (R's, S's) of the first tuples after the change.
        """
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.mask(cores, of)),
                           lambda query: query.mask(cores, of=of))

    def precision(self, n: int) -> Places:
        """Change the precision of all queries; see `SharedQuery.precision`. Returns places as `mask`."""
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.precision(n)),
                           lambda query: query.precision(n))

    def window(self, window: WindowSpec) -> Places:
        """Change the windows of all queries; see `SharedQuery.window`. Returns places as `mask`.

        Those of a common join, within which its queries' windows must lie, are changed by `CommonJoin.window`.
        """
        with self._standing() as (queries, _):
            return _change(queries, lambda query: query.check(lambda of_query: of_query.window(window)),
                           lambda query: query.window(window))

    def move(self, device: str | Device, *, device_options: Mapping[str, Any] | None = None, **options: object) -> None:
        """Move all queries, and the common joins that have queries, to ``device``; see `SharedQuery.move`."""
        given = merged_options(device_options, options, device, self.move)
        with self._standing() as (queries, joins):
            chosen = {name: find_device(device, **given) for name in (*queries, *joins)}
            movers = {f"query {name}": query for name, query in queries.items() if query.has_device} | {
                f"join {name}": join for name, join in joins.items()}
            _change(movers, lambda mover: mover.check_move(chosen[mover.name]),
                    lambda mover: mover.move(chosen[mover.name]))

    @property
    def queries(self) -> Mapping[str, SharedQuery]:
        """The queries by name, in the order in which they were added."""
        with self._lock:
            return dict(self._queries)

    @property
    def ended(self) -> bool:
        """True if both streams have ended."""
        return self._closed or self._input.gate.done

    def counters(self) -> dict[str, int]:
        """Counters: ``queries``; ``ready`` tuples so far; ``unread``, those that the slowest query has not read;
        ``waiting``, ``late_…``, ``forgotten_…`` as of `StreamJoin.counters`; ``retained_…``, kept for later queries.
        """
        with self._lock:  # also once the streams are closed, as queries may have rows to give then
            return {"queries": len(self._queries), "ready": self._input.sequence.end, "unread": self._most_unread()[0],
                    **self._input.gate.counters(), **self._input.counters()}

    def found(self) -> dict[str, pa.Table]:
        """The rows of all queries that wait for polls or epochs, at one place of the streams; they stay there. A query
        whose device has failed has those from before.
        """
        with self._lock, self._held():
            for query in self._queries.values():
                with suppress(SplitJoinError):
                    query.found_rows()
            return {name: query.found() for name, query in self._queries.items()}

    def snapshot(self) -> bytes:
        """The state of the streams and of all their queries as bytes, from which `restore` continues."""
        with self._usable():
            return self._state()

    def _epochs(self) -> EpochSource:
        return EpochSource(self._lock, lambda: self.queries, self._delivered, lambda: self._input.sequence.frontier,
                           lambda: self.ended, self._state, self.restore, self.reserve, self._base.query.time,
                           self._options.clock)

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of streams with the same schemas and queries, by name; devices may be others.

        Add the queries first, as they were when the snapshot was taken. Raises `SnapshotError` when the bytes are no
        such snapshot, and `InputError` while rows are written as epochs; then it changes nothing.
        """
        parts = _ENVELOPE.unpacked(snapshot)
        if _STREAMS not in parts:
            raise damaged("it has no part of the streams")
        with self._usable():
            check_unreserved(self._reserved)
            self._check_names("query ", "queries", parts, self._queries)
            self._check_names("join ", "common joins", parts, self._joins)
            streams = Snapshot.from_bytes(parts[_STREAMS])
            streams.check(self._identity)
            states = {name: Snapshot.from_bytes(parts[f"query {name}"]) for name in self._queries}
            scans: dict[str, SharedScan] = {}
            fresh: dict[str, SharedPipeline] = {}
            made = self._fresh_input()
            try:
                for name, join in self._joins.items():
                    if (scan := join.opened_again(made.sequence, parts[f"join {name}"])) is not None:
                        scans[name] = scan
                for name, query in self._queries.items():
                    fresh[name] = query.opened_again(made.sequence, states[name], scans)
                with streams.reading():
                    streams.check_tables(self._base)
                    made.restore(streams)  # last, so that nothing is ready before all queries are at one place
            except BaseException:
                for pipeline in fresh.values():
                    pipeline.close()
                for scan in scans.values():
                    scan.close()
                raise
            self._input, self._room_to = made, 0
            for name, query in self._queries.items():
                query.replace(fresh[name])
            for name, join in self._joins.items():
                join.replace(scans.get(name))
            self._work()

    @staticmethod
    def _check_names(prefix: str, what: str, parts: Mapping[str, bytes], names: Mapping[str, object]) -> None:
        """Raise `SnapshotError` unless the ``parts`` of a snapshot with this prefix have these names."""
        theirs = [name.removeprefix(prefix) for name in parts if name.startswith(prefix)]
        if sorted(theirs) != sorted(names):
            raise SnapshotError(f"the snapshot must be of the same {what}, but has "
                                f"{', '.join(sorted(theirs)) or 'none'}, and here are "
                                f"{', '.join(sorted(names)) or 'none'}; add them by these names first")

    def close(self) -> None:
        """End both streams: queries give their last rows when they are polled. Closing again has no effect."""
        with self._lock:
            if not self._closed:
                for side in SIDES:
                    self._input.gate.finish(side)
                self._work()
                self._closed = True
                self._lock.notify_all()

    def __exit__(self, *_: object) -> None:
        self.close()
        for query in self.queries.values():
            query.close()
        for join in list(self._joins.values()):
            join.close()

    def reserve(self, why: str | None) -> None:
        """Refuse polls of all queries, as `ReadingSession.reserve`; `EpochWriter` calls this."""
        with self._lock:
            if why is not None:
                check_unreserved(self._reserved)
            for query in self._queries.values():
                query.reserve(why)
            self._reserved = why

    def _state(self) -> bytes:
        """The bytes of `snapshot`. The caller holds the lock."""
        with self._held():
            parts = {f"query {name}": query.state() for name, query in self._queries.items()}
            parts |= {f"join {name}": join.state() for name, join in self._joins.items()}
            parts[_STREAMS] = self._input.snapshot(self._identity)
        return _ENVELOPE.packed(parts)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Within the context, under the lock, nobody reads the queries, and nothing becomes ready."""
        self._work()
        with ExitStack() as held:
            held.enter_context(self._input.sequence.standing())
            for query in self._queries.values():
                held.enter_context(query.held())
            yield

    @contextmanager
    def _standing(self) -> Iterator[tuple[Mapping[str, SharedQuery], Mapping[str, CommonJoin]]]:
        """The queries and the common joins that have not ended, by name; within the context nobody reads them, and no
        tuple becomes ready.
        """
        with self._usable(), self._held():
            yield ({name: query for name, query in self._queries.items() if not query.ended},
                   {name: join for name, join in self._joins.items() if join.running})

    def _query(self, **parts: Any) -> Query:
        return make_query(self._streams["r"], self._streams["s"], time=self._time, **parts)

    def _select(self, text: str, window: WindowSpec, order: str | Order) -> Select:
        """The query of a SELECT over the two streams."""
        time = self._time if not isinstance(self._time, Mapping) else {
            name: self._time[side] for side, name in zip(SIDES, self._names, strict=True)}
        tables = {name: self._base.streams[side] for side, name in zip(SIDES, self._names, strict=True)}
        select: Any = sql(text, window=window, time=time, order=order, tables=tables)
        if not isinstance(select, Select):
            raise InputError("a query joins these two, but FROM names more; join its result with the next stream")
        if select.statement.tables[0].name != self._names[0]:
            raise InputError(f"FROM must name {self._names[0]!r} first and {self._names[1]!r} second, as the streams "
                             f"are shared in this order; put the other way round what the statement joins")
        return select

    def _add(self, schemas: SessionSchemas, name: str | None, history: bool, device: Device,
             options: PipelineOptions) -> SharedQuery:
        def made(name: str) -> SharedQuery:
            past = self._input.past(schemas, options.punctuation) if history else None
            return SharedQuery(self._forget, name, schemas, opened_pipeline(
                self._input.sequence, schemas, device, options, past), options)

        return self._register(name, made)

    def _register(self, name: str | None, made: Callable[[str], SharedQuery]) -> SharedQuery:
        """Add the query that ``made`` makes of its name; meanwhile no tuple becomes ready by a push."""
        with self._usable():
            name = new_name("q", "query", name, self._queries)
            self._work()
            self._queries[name] = query = made(name)
            query.reserve(self._reserved)
            return query

    def _forget(self, query: SharedQuery, of: list[SharedQuery] | None = None) -> None:
        """Remove a query that closes, also from the queries ``of`` its common join."""
        with self._lock:
            if self._queries.get(query.name) is query:
                del self._queries[query.name]
            if of is not None and query in of:
                of.remove(query)
            self._lock.notify_all()

    def _forget_join(self, join: CommonJoin) -> None:
        """Remove a common join that is closed."""
        with self._lock:
            if self._joins.get(join.name) is join:
                del self._joins[join.name]

    @property
    def _identity(self) -> dict[str, str]:
        return identity(self._base.query, self._base.gathered, str(self._input.gate.rule), False)

    @property
    def _gate(self) -> SourceGate:
        return self._input.gate

    def _look_again(self) -> float:
        return _PATIENCE

    def _unread(self) -> str | None:
        if self._most is not None and self._input.sequence.end >= self._room_to:
            unread, name = self._most_unread()
            self._room_to = self._input.sequence.end + self._most - unread
            if unread >= self._most:
                return (f"query {name!r} has {unread} tuples to read, and the limit is {self._most}; poll it, or "
                        f"close it")
        return None

    def _most_unread(self) -> tuple[int, str]:
        """The number of tuples that the slowest query has to read, and its name."""
        return max(((query.unread, name) for name, query in self._queries.items()), default=(0, ""))

    def _fresh_input(self) -> SharedInput:
        return SharedInput(self._base, self._options, retains=self._retains)

    def _work(self) -> None:
        """Let the queries see what has become ready. The caller holds the lock."""
        self._input.collect()
        self._lock.notify_all()

    @contextmanager
    def _usable(self) -> Iterator[None]:
        with self._lock:
            self._check_usable()
            yield

    def _check_usable(self) -> None:
        if self._closed:
            raise DeviceError("the shared streams are closed")


def _change(chosen: Mapping[str, Changed], check: Callable[[Changed], None],
            act: Callable[[Changed], Answer]) -> dict[str, Answer]:
    """What ``act`` gives for each of ``chosen``, once all have passed ``check``."""
    for name, one in chosen.items():
        try:
            check(one)
        except SplitJoinError as error:
            error.add_note(f"that is so of {name!r}; nothing was changed")
            raise
    done: dict[str, Answer] = {}
    for name, one in chosen.items():
        try:
            done[name] = act(one)
        except Exception as error:
            rest = [other for other in chosen if other not in done]
            error.add_note(f"changed were {', '.join(done) or 'none'}; not changed were {', '.join(rest)}")
            raise
    return done
