"""`UnsortedJoin`: an interval join with aggregates of late and unordered streams, without a gate that sorts them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints
from splitjoin.base.closing import Closing
from splitjoin.base.errors import DeviceError, InputError
from splitjoin.engines.arrival import event_ticks
from splitjoin.engines.compiled.helpers import Team
from splitjoin.engines.registry import host
from splitjoin.engines.tuning import DEFAULTS, Tuning
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.aggregates import aggregate_fields
from splitjoin.rows.interval_joins.bounds import IntervalLengths
from splitjoin.rows.interval_joins.choice import interval_choice
from splitjoin.rows.interval_joins.encoding import EncodedRows, IntervalEncoder
from splitjoin.rows.interval_joins.rows import StoredRows
from splitjoin.rows.interval_joins.sliding import Bases
from splitjoin.rows.interval_joins.state import partners_between
from splitjoin.rows.interval_joins.values import aggregate_values
from splitjoin.rows.output import Selected

from .gate import LatenessRule, SourceQueue, Watermark
from .gate.source import check_unfinished
from .gate.times import Lateness, to_ticks
from .retained import RetainedRows
from .schemas import SessionSchemas

#: Tuples for which threads are woken.
_MIN_PARALLEL = 1 << 13


class UnsortedJoin(Closing):
    """Folds aggregates over partners straight from delivery order; `splitjoin.open_unsorted` makes it.

    Each stream has one source, which may be out of order by the lateness and the rule of `splitjoin.open`. Tuples go
    into the engine's index as they come, and a base tuple is folded once no tuple within its interval can come any
    more. The rows are those of a session with the same arguments, whose gate sorts first, in the same order. Later
    tuples are left out and counted.

    Attributes:
        engine: The engine, with its counters and figures.
        late: The number of late tuples, by stream.
    """

    def __init__(self, query: Query, *, lateness: Lateness, watermark: Watermark | None = None,
                 engine: Literal["key-oij", "scale-oij"] = "scale-oij",
                 threads: int | Literal["auto"] = "auto",
                 select: Selected | None = None, tuning: Tuning = DEFAULTS):
        if engine not in ("key-oij", "scale-oij"):
            raise InputError(f"engine must be 'key-oij' or 'scale-oij', which need no order, not {engine!r}; others "
                             f"run in splitjoin.open, whose gate sorts")
        if not query.aggregates:
            raise InputError("a join of unsorted streams gives aggregates, but the query gives pairs; use "
                             "splitjoin.open with a lateness")
        asked = host(engine=engine, threads=threads, tuning=tuning).host_folds
        assert asked is not None, "the engine folds"
        choice = interval_choice(query, asked)
        assert choice is not None, "these engines are chosen or refused"
        assert query.time is not None, "the engines need times"
        self._query, self._form = query, choice.form
        self._schemas = SessionSchemas(query, select)
        self._lengths = IntervalLengths.of(query)
        if lateness is None:
            raise InputError("a join of unsorted streams needs a lateness; streams in order run in splitjoin.open")
        self._rule = LatenessRule.make(lateness, watermark, None, query.time)
        self._sources = {side: [SourceQueue()] for side in SIDES}
        self._encoder, self._stored = IntervalEncoder(self._form), StoredRows(len(self._form.feeds))
        self._rows = {side: RetainedRows(self._schemas.kept_schema(side), query.window(side), in_order=False)
                      for side in SIDES}
        self.engine = choice.engine(in_order=False)
        self._threads, self._team = choice.workers, Team(choice.workers)
        none = np.empty(0, np.int64)
        self._waiting = {"row": none, "time": none, "key": none}  # base tuples that are not decided
        self._new = 0
        self._ended = self._closed = False
        self.late: dict[Side, int] = dict.fromkeys(SIDES, 0)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the results."""
        return self._schemas.result

    def push_r(self, data: Any) -> None:
        """Deliver base tuples in any order within the lateness. Raises as `StreamJoin.push_r`."""
        ts, first, encoded = self._take("r", data)
        for name, values in (("row", first + np.arange(len(ts))), ("time", ts), ("key", encoded.keys)):
            self._waiting[name] = np.concatenate([self._waiting[name], values])

    def push_s(self, data: Any) -> None:
        """Deliver tuples of S; see `push_r`."""
        ts, _, encoded = self._take("s", data)
        self._stored.append(ts, encoded)

    def heartbeat(self, time: Any) -> None:
        """Promise that no tuple below ``time`` will come any more; as `StreamJoin.heartbeat`."""
        self._check_open()
        assert self._query.time is not None
        ticks = {side: to_ticks(time, self._query.time, side, self._schemas.streams[side]) for side in SIDES}
        for side, (source,) in self._sources.items():
            source.promise = ticks[side] if source.promise is None else max(source.promise, ticks[side])

    def poll(self) -> pa.RecordBatch:
        """The rows of the base tuples that are decided since the last call, by time, then by delivery."""
        self._check_open()
        reached = self._rule.reached(self._sources, ())
        marks = [self._rule.mark(side, source, reached) for side in SIDES for source in self._sources[side]]
        return self._folded(None if None in marks else min(mark for mark in marks if mark is not None))

    def flush(self) -> pa.RecordBatch:
        """End both streams, and return the rows of all remaining base tuples."""
        self._check_open()
        self._ended = True
        return self._folded(2**64)

    def close(self) -> None:
        self._closed = True
        self._team.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the session is closed")

    def _take(self, side: Side, data: Any) -> tuple[Ints, int, EncodedRows]:
        """Take the tuples of ``data`` that are not late. Returns their times, the first one's row id by delivery, and
        what the engine reads of them.
        """
        self._check_open()
        check_unfinished(side, self._ended)
        table = self._schemas.batch(side, data)
        assert self._query.time is not None
        ts = event_ticks(self._query.time, side, table)
        source, = self._sources[side]
        late = (ts < self._rule.limits(side, source, ts, self._sources, ())) | source.promised_away(ts)
        if late.any():
            table, ts = table.filter(pa.array(~late)), ts[~late]
        encoded = self._encoder.encode(side, table)
        self.late[side] += int(late.sum())
        if len(ts):
            source.highest = max(int(ts.max()), int(ts.max()) if source.highest is None else source.highest)
        rows = self._rows[side]
        first = rows.end
        rows.append(table.select(self._schemas.kept[side]), ts, None)
        self._new += len(ts)
        return ts, first, encoded

    def _folded(self, frontier: int | None) -> pa.RecordBatch:
        """The rows of the base tuples whose intervals end before ``frontier``."""
        row, time, key = (self._waiting[name] for name in ("row", "time", "key"))
        latest = -(2**63) if frontier is None else max(frontier - self._lengths.behind, -(2**63))
        decided = np.ones(len(row), np.bool_) if latest >= 2**63 else time < latest
        at = np.flatnonzero(decided)
        at = at[np.lexsort((row[at], time[at]))]
        bases = Bases(key[at], time[at], row[at], row[at])
        self._team.size = self._threads if self._new + len(at) >= _MIN_PARALLEL else 1
        found = self.engine.fold(self._stored, bases, self._encoder.codes, self._team)
        for n in found.uncertain.tolist():
            now = int(bases.times[n])
            found.partners[n] = partners_between(self._stored, int(bases.keys[n]), now - self._lengths.before,
                                                 now + self._lengths.behind)
        ids = row[at]
        if self._query.kind.is_inner:
            kept = found.counts > 0
            ids, found = ids[kept], found.chosen(kept)
        values = aggregate_values(self._form, found, ids,
                                  lambda side, names, rows: self._rows[side].gather(names, rows))
        columns = self._schemas.columns
        names = list(dict.fromkeys(c.source for c in columns))
        gathered = dict(zip(names, self._rows["r"].gather(names, ids), strict=True))
        arrays = [*(gathered[c.source] for c in columns), *(pa.concat_arrays(v.chunks) for v in values)]
        assert len(arrays) == len(columns) + len(aggregate_fields(self._query))
        made = self._schemas.rows(pa.RecordBatch.from_arrays(arrays, schema=self._schemas.gathered))
        # No base tuple is lost if values cannot be computed.
        self._new = 0
        self._waiting = {name: values[~decided] for name, values in self._waiting.items()}
        self._forget(latest)
        return made

    def _forget(self, latest: int) -> None:
        """Forget rows that no undecided or later base tuple, at ``latest`` or after it, needs."""
        r, s = self._rows["r"], self._rows["s"]
        r.trim(int(self._waiting["row"].min()) if len(self._waiting["row"]) else r.end)
        gone = s.ts.values >= latest - self._lengths.before  # of those delivered first, all that are too old
        old = int(gone.argmax()) if gone.any() else len(gone)
        first = min(s.first + old, self.engine.needed)
        s.trim(first)
        self._stored.drop(first)
