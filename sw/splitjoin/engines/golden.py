"""The golden model: it processes one tuple at a time, evaluates the condition as written, and keeps windows as plain
queues.

It is the reference for every other engine, so it is written for readability, not for speed; the meaning of conditions
is defined in `splitjoin.lang.eval.scalar`. `semantics` in comments is docs/semantics.md, the normative page on answers:
windows (section 2), three-valued logic and floats (3), orders and stars (4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import DeviceError, InputError
from splitjoin.lang.equalities import Equalities
from splitjoin.lang.eval.scalar import Row, RowValue, compile_condition
from splitjoin.lang.ir import Col, columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side
from splitjoin.lang.types import FLOAT32, Date, Decimal, Duration, Timestamp, Type, plain
from splitjoin.lang.windows import Extent

from .arrival import Arrivals, R
from .device import ITEM, PAIR, STAR, Device, Items, Session, check_inner, check_masked, checked_precision


class GoldenDevice(Device):
    """Runs any query in plain Python.

    ``cores`` (from 1) matters to order ``inner(n)``, where that many sub-windows each make n comparisons per slice, and
    to ``masked``: the numbers of cores that are masked from the start (see `Session.mask`). ``expire``: ``opposite``,
    or ``own`` for Kang's procedure as printed, in which tuples leave a RANGE window when their own stream has the next
    tuple (semantics, section 2).
    """

    name: ClassVar[str] = "golden"
    is_reference: ClassVar[bool] = True
    immediate: ClassVar[bool] = True
    settles: ClassVar[bool] = True

    def __init__(self, *, cores: int = 1, masked: Collection[int] = (), expire: str = "opposite"):
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            raise DeviceError(f"cores must be a positive integer, not {cores!r}")
        if expire not in ("opposite", "own"):
            raise DeviceError(f"expire must be 'opposite' or 'own', not {expire!r}")
        self._cores, self._masked, self.expire = cores, check_masked(masked, cores), expire

    @property
    def cores(self) -> int:
        """The number of sub-windows that ``inner(n)`` assumes."""
        return self._cores

    @property
    def has_prevailing(self) -> bool:
        return True

    def open(self, query: Query) -> GoldenSession:
        """Start ``query``; the golden model accepts every inner join."""
        check_inner(replace(query, prevailing=False))
        return GoldenSession(query, self._cores, self._masked, expire_own=self.expire == "own")

    def open_deciding(self, query: Query) -> GoldenSession:
        """Start a session with all pairs: what they decide is the reference's affair."""
        return self.open(query.pairs)

    def open_latest(self, query: Query) -> GoldenSession:
        """Start an as-of join without a window, which compares each tuple of R with the last tuple of S of each key."""
        return _LatestSession(query)


@dataclass
class _Stream:
    """The state of one stream: the tuples in its window, and the number of probes since its last star."""

    keeps_gone: bool
    extent: Extent
    window: deque[tuple[int, int | None, Row]] = field(default_factory=deque)  # (row id, event time, values)
    tuples: int = 0
    gone: list[tuple[int, int | None, Row]] = field(default_factory=list)  # those that have left the window
    open_probes: int = 0  # probes since the last star
    every: int = 1  # probes between stars

    def drop(self) -> None:
        """Have the oldest tuple leave the window."""
        left = self.window.popleft()
        if self.keeps_gone:
            self.gone.append(left)


class GoldenSession(Session):
    """A query running on the golden model. `push` returns after it has processed the whole slice."""

    def __init__(self, query: Query, cores: int = 1, masked: Collection[int] = (), *, expire_own: bool = False):
        self._query, self._expire_own = query, expire_own
        self._cores = cores
        self._masked = frozenset(masked)
        self.rotation = cores if masked else 1
        self._condition = compile_condition(query.predicate)
        #: What groups of order outer(N), or slices of order inner(n), have from the next star on.
        self._precision = query.order.n
        self._streams = {side: _Stream(query.prevailing and side == "s", query.window(side), every=query.order.n)
                         for side in SIDES}
        self._columns = columns(query.predicate)
        self._items: list[tuple[int, int, int, int]] = []
        self._last_ts: int | None = None
        self._flushed = False
        self._comparisons = self._matches = 0

    def push(self, arrivals: Arrivals) -> None:
        """Process the next slice of arrival order. Raises `InputError` when event time decreases."""
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        times = [None] * len(arrivals) if arrivals.ts is None else arrivals.ts.tolist()
        rows = {side: iter(tuples_of(arrivals.table(side), side, self._columns)) for side in SIDES}
        with np.errstate(all="ignore"):  # float32 overflow and inf − inf are IEEE results here, not mistakes
            for stream, ts in zip(arrivals.stream.tolist(), times, strict=True):
                if ts is not None and self._last_ts is not None and ts < self._last_ts:
                    raise InputError(f"event time must not decrease in arrival order, but {ts} came after "
                                     f"{self._last_ts}")
                self._last_ts = ts
                side: Side = "r" if stream == R else "s"
                self._process(side, ts, next(rows[side]))

    def poll(self) -> Items:
        items = np.array(self._items, ITEM)
        self._items = []
        return items

    def flush(self) -> Items:
        if not self._flushed:
            self._flushed = True
            for side in SIDES:
                if self._streams[side].open_probes:  # never with order none, which counts no open probes
                    self._star(side)
        return self.poll()

    def settle(self) -> Items:
        return self.poll()  # a push returns after all its results are there

    def mask(self, cores: Collection[int]) -> None:
        """From the next tuple on, ignore the tuples stored in ``cores``, and only these."""
        self._masked = check_masked(cores, self._cores)
        self.rotation = self._cores if self._masked else self.rotation

    def precision(self, n: int) -> None:
        """From the next star on, groups have ``n`` probes (order outer); from the next probe on, slices ``n``
        comparisons of each sub-window (inner). Raises `OrderError` in other orders.
        """
        self._precision = checked_precision(self._query.order, n)
        for stream in self._streams.values():
            if not stream.open_probes:
                stream.every = n

    def window(self, query: Query, now: int | None = None) -> None:
        """From the next tuple on, take the windows of ``query``. What has expired by those before stays away: tuples
        that no probe from event time ``now`` on sees, where that is later than the last tuple's.
        """
        times = [time for time in (now, self._last_ts) if time is not None]
        for side, stream in self._streams.items():
            _expire(stream, max(times, default=None))
            stream.extent = query.window(side)
            while stream.extent.rows is not None and len(stream.window) > stream.extent.rows:
                stream.drop()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``comparisons`` (pairs on which the condition was evaluated), ``matches``."""
        return {"tuples_r": self._streams["r"].tuples, "tuples_s": self._streams["s"].tuples,
                "comparisons": self._comparisons, "matches": self._matches}

    def _process(self, side: Side, ts: int | None, row: Row) -> None:
        own, opposite = self._streams[side], self._streams[other_side(side)]
        if not self._expire_own:
            _expire(opposite, ts)
        probe = own.tuples
        own.tuples += 1
        own.open_probes += 1
        self._probe(side, probe, row, opposite)
        own.window.append((probe, ts, row))
        if own.extent.rows is not None and len(own.window) > own.extent.rows:
            own.drop()
        if self._expire_own:
            _expire(own, ts)

    def _probe(self, side: Side, probe: int, row: Row, opposite: _Stream) -> None:
        """Compare a probe with the whole window, oldest tuple first, then emit the stars that are due."""
        order = self._query.order
        for i, (stored, _, other) in enumerate([*self._prevailing(side, row), *opposite.window]):
            # Tuples fill k sub-windows in turn, so n comparisons in each cover the n·k oldest tuples.
            if order.kind == "inner" and i > 0 and i % (self._precision * self._cores) == 0:
                self._star(side)
            if stored % self._cores in self._masked:
                continue
            r, s = ((probe, row), (stored, other)) if side == "r" else ((stored, other), (probe, row))
            self._comparisons += 1
            if self._condition(r[1], s[1]) is True:
                self._matches += 1
                self._items.append((PAIR, SIDES.index(side), r[0], s[0]))
        own = self._streams[side]
        every = {"none": None, "outer": own.every, "inner": 1, "total": 1}[order.kind]
        if every is None:
            own.open_probes = 0
        elif own.open_probes >= every:
            self._star(side)
            own.open_probes, own.every = 0, self._precision

    def _prevailing(self, side: Side, row: Row) -> list[tuple[int, int | None, Row]]:
        """For a tuple of R the last one that has left S's window and is its partner, if the query asks for it."""
        gone = self._streams["s"].gone if side == "r" else []
        return next(([one] for one in reversed(gone) if self._condition(row, one[2]) is True), [])

    def _star(self, side: Side) -> None:
        """A star for the last probe of stream ``side``."""
        last = self._streams[side].tuples - 1
        self._items.append((STAR, 0, last, -1) if side == "r" else (STAR, 1, -1, last))


class _LatestSession(GoldenSession):
    """An as-of join that looks backward without end (`Device.open_latest`)."""

    def __init__(self, query: Query):
        super().__init__(query.narrowed.pairs)
        self._meets_equals = query.time is not None and query.kind.allow_exact
        equal = Equalities.of(query.predicate)
        self._key = [compile_condition(e) for e in equal.key("s")]
        self._selections = [compile_condition(e) for e in equal.selections["s"]]

    def _process(self, side: Side, ts: int | None, row: Row) -> None:
        super()._process(side, ts, row)
        r, s = self._streams["r"], self._streams["s"]
        if not self._meets_equals:  # tuples of S meet none before them
            r.window.clear()
        if side == "s":
            new = s.window.pop()
            if all(selection({}, row) is True for selection in self._selections):
                key = self._key_of(row)
                s.window = deque([*(one for one in s.window if self._key_of(one[2]) != key), new])

    def _key_of(self, row: Row) -> list[object]:
        """The key of a tuple of S, in which NaN equals NaN."""
        values = [key({}, row) for key in self._key]
        return ["NaN" if value != value else value for value in values]


def _expire(stream: _Stream, now: int | None) -> None:
    """Drop the tuples that a probe at time ``now`` no longer sees; later probes do not see them either."""
    length = stream.extent.length
    while length is not None and stream.window:
        oldest = stream.window[0][1]
        if now is None or oldest is None:
            raise InputError("a RANGE window needs event times, but these arrivals have none")
        if now - oldest <= length:
            break
        stream.drop()


def tuples_of(table: pa.Table, side: str, of: Iterable[Col]) -> list[dict[str, RowValue]]:
    """The tuples of ``table``, of stream ``side``: the values of its columns among ``of``, by name."""
    needed = {c.name: c.type for c in of if c.side == side}
    values = [row_values(table.column(name), type_) for name, type_ in needed.items()]
    return [dict(zip(needed, row, strict=True)) for row in zip(*values, strict=True)] if needed else [{}] * len(table)


def row_values(column: pa.ChunkedArray, type_: Type) -> list[RowValue]:
    """The values of a column as `splitjoin.lang.eval.scalar` has them."""
    column = plain(column)
    if isinstance(type_, Date):
        column = column.cast(pa.int32())
    if isinstance(type_, (Timestamp, Duration)):
        column = column.cast(pa.int64())
    values: list[RowValue] = column.to_pylist()
    if type_ == FLOAT32:
        return [None if v is None else np.float32(v) for v in values]
    return [None if v is None else Fraction(v) for v in values] if isinstance(type_, Decimal) else values
