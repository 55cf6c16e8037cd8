"""Arrival order: one total order over the tuples of both streams (semantics, section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitjoin.base.errors import InputError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.time_columns import TimeColumns
from splitjoin.lang.types import TIME_UNITS, UNIT_NS, Duration, Timestamp, TimeUnit, from_arrow, plain, units_per

#: Stream numbers, as in records and result items.
R, S = 0, 1


@dataclass(frozen=True)
class Arrivals:
    """A slice of arrival order: tuples of both streams that follow each other.

    ``stream``: uint8 (n,), 0 = R, 1 = S. ``ts``: int64 (n,) event times in ticks, or None without a time column.
    ``r`` and ``s`` hold the tuples of each stream in arrival order: the i-th 0 in ``stream`` is row i of ``r``. Of a
    slice that was merged by event time, ``merged`` has the times of each stream, which rise, and ``before`` what
    `s_before` tells: to find them again takes longer than to merge them.
    """

    stream: npt.NDArray[np.uint8]
    ts: npt.NDArray[np.int64] | None
    r: pa.Table
    s: pa.Table
    merged: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    before: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.stream)

    def table(self, side: str) -> pa.Table:
        """The tuples of stream ``side`` ("r" or "s")."""
        return self.r if side == "r" else self.s

    @property
    def tables(self) -> dict[Side, pa.Table]:
        """The tuples of both streams."""
        return {"r": self.r, "s": self.s}

    @classmethod
    def joined(cls, slices: Sequence[Arrivals]) -> Arrivals:
        """Slices (one at least) that follow each other in arrival order, as one."""
        if len(slices) == 1:
            return slices[0]
        times = [a.ts for a in slices if a.ts is not None]
        return cls(np.concatenate([a.stream for a in slices]), np.concatenate(times) if times else None,
                   *(pa.concat_tables([a.table(side) for a in slices]).combine_chunks() for side in ("r", "s")))

    @property
    def is_timed(self) -> bool:
        """True if there is a time column."""
        return self.merged is not None or self.ts is not None

    def positions(self, side: str) -> npt.NDArray[np.int64]:
        """The positions in ``stream`` of the tuples of stream ``side``, in order."""
        return np.flatnonzero(self.stream == (R if side == "r" else S))

    def times(self, side: str) -> npt.NDArray[np.int64]:
        """The event times of the tuples of stream ``side``; there must be a time column."""
        if self.merged is not None:
            return self.merged[side == "s"]
        assert self.ts is not None
        return self.ts[self.positions(side)]

    @property
    def s_before(self) -> npt.NDArray[np.int64]:
        """The number of tuples of S that precede each of R's here: int64 (r,)."""
        return s_before_each_r(self.stream, 0) if self.before is None else self.before

    @property
    def ends(self) -> tuple[int, int] | None:
        """The first and the last event time; None without a time column, and without tuples."""
        return None if self.ts is None or not len(self.ts) else (int(self.ts[0]), int(self.ts[-1]))

    def forget(self) -> None:
        """Give memory back of what is found anew if it is asked for."""

    def split(self, n: int) -> tuple[Arrivals, Arrivals | None]:
        """The first ``n`` arrivals, and the others, None if there are none."""
        if len(self) <= n:
            return self, None
        s = int(np.count_nonzero(self.stream[:n]))
        r, ts, merged, before = n - s, self.ts, self.merged, self.before
        return (Arrivals(self.stream[:n], None if ts is None else ts[:n], self.r.slice(0, r), self.s.slice(0, s),
                         merged and (merged[0][:r], merged[1][:s]), None if before is None else before[:r]),
                Arrivals(self.stream[n:], None if ts is None else ts[n:], self.r.slice(r), self.s.slice(s),
                         merged and (merged[0][r:], merged[1][s:]), None if before is None else before[r:] - s))


def arrivals(query: Query, r: pa.Table, s: pa.Table) -> Arrivals:
    """Interleave two whole tables: by ``(ts, R before S, position)``, or r0, s0, r1, s1, … without a time column.

    Raises `InputError` when a time column holds NULL or decreases, naming the row.
    """
    if query.time is None:
        return MergedTables(None, r, s)
    return timed_arrivals(r, s, _event_times(query, "r", r), _event_times(query, "s", s))


def timed_arrivals(r: pa.Table, s: pa.Table, times_r: npt.NDArray[np.int64],
                   times_s: npt.NDArray[np.int64]) -> Arrivals:
    """Two whole tables interleaved by their event times in ticks, (r,) and (s,), which do not fall."""
    return MergedTables((times_r, times_s), r, s)


class MergedTables(Arrivals):
    """Two whole tables with event ``times`` of both, which rise, or None; they are merged when it is needed."""

    def __init__(self, times: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None, r: pa.Table, s: pa.Table):
        self.__dict__.update(r=r, s=s, merged=times)

    def __len__(self) -> int:
        return len(self.r) + len(self.s)

    @property
    def ends(self) -> tuple[int, int] | None:
        some = [times for side in "rs" if len(times := self.times(side))] if self.is_timed else []
        return (min(int(t[0]) for t in some), max(int(t[-1]) for t in some)) if some else None

    def positions(self, side: str) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._placed[side]
        return found

    def place(self, positions_r: npt.NDArray[np.int64], positions_s: npt.NDArray[np.int64],
              stream: npt.NDArray[np.uint8]) -> None:
        """Take the positions of all tuples, and `stream`, from one who has merged the times faster."""
        self.__dict__.update(_placed={"r": positions_r, "s": positions_s}, stream=stream)

    def forget(self) -> None:
        self.__dict__.pop("ts", None)

    @cached_property
    def stream(self) -> npt.NDArray[np.uint8]:
        if not self.is_timed:
            common = 2 * min(len(self.r), len(self.s))
            found = np.full(len(self), S if len(self.s) > len(self.r) else R, np.uint8)
            found[:common:2], found[1:common:2] = R, S
            return found
        found = np.full(len(self), S, np.uint8)
        found[self.positions("r")] = R
        return found

    @cached_property
    def ts(self) -> npt.NDArray[np.int64] | None:
        if self.merged is None:
            return None
        found = np.empty(len(self), np.int64)
        for side in "rs":
            found[self.positions(side)] = self.times(side)
        return found

    @cached_property
    def _placed(self) -> dict[str, npt.NDArray[np.int64]]:
        if not self.is_timed:  # r0, s0, r1, s1, …
            common = min(len(self.r), len(self.s))
            return {side: np.concatenate([np.arange(at, 2 * common, 2), np.arange(2 * common, common + len(table))])
                    for side, at, table in (("r", 0, self.r), ("s", 1, self.s))}
        # Stable: R, which comes first in the concatenation, wins ties.
        order = np.argsort(np.concatenate([self.times("r"), self.times("s")]), kind="stable")
        is_r = order < len(self.r)
        return {"r": np.flatnonzero(is_r), "s": np.flatnonzero(~is_r)}


def s_before_each_r(stream: npt.NDArray[np.uint8], before: int) -> npt.NDArray[np.int64]:
    """The number of S that precede each R in ``stream``, and ``before`` of them before its first tuple: int64 (r,)."""
    at = np.flatnonzero(stream == R)
    return at - np.arange(len(at)) + before


def interleave(r: pa.Table, s: pa.Table, ts: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None,
               s_before: npt.NDArray[np.int64]) -> Arrivals:
    """The rows of both streams in arrival order, of which ``s_before`` rows of ``s`` precede each of ``r``: int64 (r,).

    ``ts``: R's and S's event times in ticks, None without a time column.
    """
    at_r = s_before + np.arange(len(r))
    stream = np.full(len(r) + len(s), S, np.uint8)
    stream[at_r] = R
    if ts is None:
        return Arrivals(stream, None, r, s)
    times = np.empty(len(stream), np.int64)
    times[stream == R], times[stream == S] = ts
    return Arrivals(stream, times, r, s)


def event_ticks(time: TimeColumns, side: str, table: pa.Table) -> npt.NDArray[np.int64]:
    """The event times of ``table``, tuples of stream ``side``, in ticks: int64 (n,).

    Raises `InputError` for NULL, naming the row.
    """
    name = time.name(side)
    column = plain(table.column(name))
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(f"the time column {side}.{name} must not hold NULL, but row {row} does; filter such rows out")
    return ticks_of(column, time.tick, f"{side}.{name}")


def _event_times(query: Query, side: str, table: pa.Table) -> npt.NDArray[np.int64]:
    assert query.time is not None
    ts = event_ticks(query.time, side, table)
    check_rising(query.time, side, table, ts, np.arange(len(ts)))
    return ts


def check_rising(time: TimeColumns, side: str, table: pa.Table, ticks: npt.NDArray[np.int64],
                 rows: npt.NDArray[np.int64]) -> None:
    """Raise `InputError` unless ``ticks``, of these ``rows`` of ``table``, do not fall."""
    falls = np.flatnonzero(ticks[1:] < ticks[:-1])
    if len(falls):
        before, row, name = int(rows[falls[0]]), int(rows[falls[0] + 1]), time.name(side)
        column = plain(table.column(name))
        raise InputError(f"the time column {side}.{name} must not decrease, but row {row} has {shown(column[row])} "
                         f"after {shown(column[before])}; sort stream {side} by it first, or "
                         f"for tables pass sort=True")


def shown(value: pa.Scalar) -> str:
    """``value`` as text; the raw integer where Python has no such time, or does not know the zone."""
    try:
        return str(value.as_py())
    except Exception:  # OverflowError, ValueError, ArrowException and several of zoneinfo and pandas
        return f"{value.value} ({value.type})"


def ticks_of(column: pa.ChunkedArray, tick: TimeUnit | None, name: str) -> npt.NDArray[np.int64]:
    """The integers, dates, timestamps or durations of a ``column`` without NULL in ticks: int64 (n,).

    Raises `InputError` for times that do not fit 64 bits.
    """
    days = pa.types.is_date32(column.type)
    if days:
        column = column.cast(pa.int32())
    type_ = from_arrow(column.type)
    ticks: npt.NDArray[np.int64] = column.cast(pa.int64()).to_numpy().astype(np.int64, copy=False)
    per = 1 if tick is None else UNIT_NS["DAY"] // TIME_UNITS[tick] if days else units_per(
        type_.unit, tick) if isinstance(type_, (Timestamp, Duration)) else 1
    if per > 1 and len(ticks):
        if max(abs(int(ticks.min())), abs(int(ticks.max()))) * per >= 2**63:
            raise InputError(f"the time column {name} holds times that do not fit 64 bits in {tick}, the finer unit of "
                             f"the two time columns; cast both to one unit")
        ticks = ticks * per
    return ticks
