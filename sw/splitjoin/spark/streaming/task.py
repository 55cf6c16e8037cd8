"""`GroupTask`: runs a group's step inside a Spark task, from version n − 1 of its state to version n.

The state files are the truth. What a Python worker keeps in memory is a cache: it is used if its token is that of the
version in the file, and read anew otherwise. So a task may be repeated, run twice, or move to another worker or
machine.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from splitjoin.base.errors import SnapshotError
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.schema import SIDES, Side

from ..metrics import JoinMetrics
from ..resources import leased
from ..text import WHICH
from .frontier import Frontier
from .group import Counts, GroupJoin, GroupState, GroupStep
from .micro_batch import MicroBatch
from .regroup import regrouped
from .rows import Rows
from .rows_cache import RowsCache
from .sessions import KeptSession, SessionCache
from .spread import Unpacked, unpacked
from .state_files import StateFiles, check_root, delete_file, write_file
from .state_format import Version, check_identity, identity

#: The column beside the result's own ones: NULL in result rows, and in one row of each task what the task counted.
METRICS = "__splitjoin"
#: The fields of `METRICS`, all int64.
COUNTS = ("pairs", "comparisons", "compared", "matches", "tuples_r", "tuples_s", "late_r", "late_s", "null_r",
          "null_s", "stored_rows", "waiting_rows", "state_bytes", "reloads", "device_us", "pushed_rows")
_COUNTS_TYPE = pa.struct([(name, pa.int64()) for name in COUNTS])

#: States that a Python worker keeps: (root, query, join, group, groups) → the version and the state.
_CACHE: OrderedDict[tuple[Any, ...], tuple[str, GroupState]] = OrderedDict()
_MOST_CACHED = 8
#: Device sessions that a Python worker keeps.
_SESSIONS = SessionCache()
#: What decides rows of groups, as it keeps it.
_ROWS = RowsCache()
#: Micro-batches between two looks for files that are not needed any more, at most.
_DELETE_EVERY = 8


@dataclass(frozen=True)
class GroupTask:
    """Joins the packed rows of one group; given to ``mapInArrow``.

    Attributes:
        join: What all groups have in common.
        result: The Arrow schema of the result, without `METRICS`.
        root: The folder of the state files; None: below the query's checkpoint.
        name: The name of the join in the query.
        retained: The number of micro-batches whose state is kept.
        late_to: Where late tuples are written, or None.
        metrics: Counts for the driver's `JoinMetrics`, or None.
        earlier: Of streams that are rows of earlier joins of the query, where their watermark is.
        batch: The micro-batch; None if the packed rows tell it.
    """

    join: GroupJoin
    result: pa.Schema
    root: str | None
    name: str
    retained: int
    late_to: str | None
    metrics: JoinMetrics | None
    earlier: Mapping[Side, Frontier] = field(default_factory=dict)
    batch: MicroBatch | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        return self.run(context.partitionId(), batches)

    def run(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The result rows of a micro-batch in one group, and a last row with counts.

        The state is written before the first row, so that it is there whatever becomes of the rows. ``partition``: the
        number of the task. It is that of the group unless tasks were put together, as by ``coalesce``, so the rows name
        their group.
        """
        new = unpacked(self.join, batches)
        of = self.batch or new.batch or MicroBatch.of(None)
        batch, query = of.number, of.query
        files = StateFiles(of.root(self.root), query, self.name)
        if self.root is None and not batch:
            check_root(files.root, "the query's checkpoint")
        names = identity(self.join)
        group = partition if new.group is None else new.group
        before, state, reloaded = self._load(files, batch, group, names)
        progress = state.progress
        if new.group is not None:
            greatest = {**new.times.greatest, **self._reached(of, group)}
            progress = self.join.rule.after(progress, replace(new.times, greatest=greatest, run=of.run))
        step = self.join.step(state, group, new.rows, progress, new.tuples)
        counts = Counts()
        key, kept, rows = self._key(files, group), None, None
        token = "" if before is None else before.token
        if not self.join.query.is_pairs and new.group is not None:
            rows = _ROWS.take(key, token, self.join)
        if self.join.keeps and new.group is not None and (rows is None or rows.takes_pairs):
            kept = self._session(files, batch, key, token, state, step)
        try:
            if rows is None:
                tables = self.join.results(step, counts, kept)
            else:  # the state depends on the pairs
                decided = rows.decided(self.join, step, self.join.pairs(step, counts, kept), counts)
                step, tables, counts.pairs = decided.step, decided.tables, decided.count
            version, data = Version.after(before, batch, group, self.join, names, step.state, step.own, self.retained)
            if new.group is None:
                self._go_on(files, batch, names)
            else:
                files.write(batch, group, self.join.groups, data)
                _remember((files.root, query, self.name, group, self.join.groups), version.token, step.state)
            self._write_late({side: pa.concat_tables([step.late[side].table, new.timeless[side]]) for side in SIDES},
                             files, batch, group)
            for table in chain(tables, self._without_time(new)):
                for found in table.combine_chunks().to_batches():
                    yield self._with_counts(found, None)
        except BaseException:  # also if Spark reads no more rows: the session has some of the tuples then
            for held in (kept, rows):
                if held is not None:
                    held.close()
            raise
        if rows is not None:
            _ROWS.keep(key, version.token, rows)
        if kept is not None:
            _SESSIONS.keep(key, kept, version.token, resumable=not self.join.replicates)
        if group == 0 and batch % min(_DELETE_EVERY, max(self.retained, 1)) == 0 and batch > self.retained:
            files.delete_unneeded(batch - self.retained, self.join.groups)
        yield self._with_counts(None, self._counts(step, new, counts, version, reloaded))

    def _reached(self, batch: MicroBatch, group: int) -> dict[Side, int | None]:
        """What stands for the greatest event time of each stream that is rows of an earlier join."""
        reached = {side: frontier.after(batch, group) for side, frontier in self.earlier.items()}
        return {side: None if time is None else time - self.join.rule.beyond  # which the rule adds
                for side, time in reached.items()}

    def _without_time(self, new: Unpacked) -> Iterator[pa.Table]:
        """The rows of tuples without an event time, which meet nothing."""
        join = self.join
        for side in SIDES if join.as_spark else ():
            if not join.query.kind.gives_unmatched(side):
                continue
            rows = new.timeless[side]
            if join.query.kind.how != "anti":  # a kind of Spark's streams, which keeps them for ever
                rows = rows.filter(pa.array(join.own_sides[side].ruled_out(rows)))
            if count := len(rows):
                tables = {other: join.schemas[other].empty_table() for other in SIDES} | {side: rows}
                at = {other: np.full(count, -1, np.int64) for other in SIDES} | {side: np.arange(count)}
                yield from join.result.of_pairs(tables["r"], tables["s"], at["r"], at["s"])

    def _key(self, files: StateFiles, group: int) -> str:
        """A name of the group's session: the same in every task that may go on with it."""
        device = self.join.device
        made = device if isinstance(device, str) else repr(device) if is_dataclass(device) else type(device).__name__
        whole = repr((files.root, made, sorted(self.join.options.items())))
        return (f"{files.query} {self.name[:200]} group {group} of {self.join.groups} "
                f"{hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()}")

    def _session(self, files: StateFiles, batch: int, key: str, token: str, state: GroupState,
                 step: GroupStep) -> KeptSession | None:
        """A session with the tuples of ``state``, whose version has ``token``; None to do without."""
        join = self.join
        if join.slots.hashed and join.groups > 1 and files.hot_before(batch, join.groups):
            _SESSIONS.discard(key)  # a hot key's tuples are in several groups, each of which pairs those it stores
            return None
        device = find_device(join.device, **leased(join.device, join.options))
        return _SESSIONS.take(key, token, join.query, device, join.new(step), lambda: join.in_session(state),
                              resumable=not join.replicates)

    def _go_on(self, files: StateFiles, batch: int, names: Mapping[str, str]) -> None:
        """Write the version of every group after a micro-batch without input, in which no task is sure of its group."""
        groups = self.join.groups
        same = bool(batch) and files.groups_before(batch, groups) == groups
        for group in range(groups):
            if same:
                data = self._version(files, batch - 1, group, groups).carried(batch, self.join)
            else:
                before, state, _ = self._load(files, batch, group, names)
                none = {side: Rows.empty(self.join.schemas[side]) for side in SIDES}
                _, data = Version.after(before, batch, group, self.join, names, state, none, self.retained)
            files.write(batch, group, groups, data)

    def _load(self, files: StateFiles, batch: int, group: int,
              names: Mapping[str, str]) -> tuple[Version | None, GroupState, bool]:
        """The version before micro-batch ``batch`` (None where a chain begins anew), its state, and if it was read."""
        if not batch:
            return None, GroupState.initial(self.join.schemas), False
        groups = self.join.groups
        of = files.groups_before(batch, groups)
        if of is None:
            folder = "state=…" if self.root is not None else "state=…, if it had one,"
            raise SnapshotError(
                f"the query goes on with micro-batch {batch}, but there is no state of it at {files.root!r} (query "
                f"{files.query}, join {self.name!r}); give the {folder} and the name=… that the query had so far, or "
                f"start it with a new checkpoint")
        if of != groups:
            return None, self._regrouped(files, batch - 1, of, group, names), True
        head = files.header(batch - 1, group, groups)
        check_identity(head, names, files.where(head.batch, group, groups))
        key = (files.root, files.query, self.name, group, groups)
        cached = _CACHE.get(key)
        if cached is not None and cached[0] == head.token and (cached[1].beside is not None) == self.join.replicates:
            return head, cached[1], False
        state = self._read(files, head.batch, group, groups, names)
        if self.join.replicates:
            state = self.join.with_beside(state, [self._read(files, batch - 1, g, groups, names)
                                                  for g in range(groups) if g != group])
        return head, state, True

    def _read(self, files: StateFiles, batch: int, group: int, groups: int, names: Mapping[str, str]) -> GroupState:
        """The state of a version, with the tuples of its chain."""
        version = self._version(files, batch, group, groups)
        check_identity(version, names, files.where(batch, group, groups))
        parts = [version if n == batch else self._version(files, n, group, groups) for n, _, _ in version.chain]
        return self.join.restored(version.state, {
            side: Rows.concat([part.state.stored[side] for part in parts]) for side in SIDES})

    def _version(self, files: StateFiles, batch: int, group: int, groups: int) -> Version:
        where = files.where(batch, group, groups)
        return Version.decode(memoryview(files.read(batch, group, groups)), where, self.join.schemas)

    def _regrouped(self, files: StateFiles, batch: int, of: int, group: int, names: Mapping[str, str]) -> GroupState:
        """The state of ``group`` from the states of ``of`` groups."""
        states = [self._read(files, batch, g, of, names) for g in range(of)]
        return regrouped(self.join, states, group)

    def _write_late(self, late: Mapping[Side, pa.Table], files: StateFiles, batch: int, group: int) -> None:
        """Write the tuples ``late``, in place of those that an earlier run of the micro-batch wrote."""
        if self.late_to is None:
            return
        for side in SIDES:
            which = WHICH[side]
            for g, of in files.held(batch):
                if of != self.join.groups:  # the run failed, and the query was started again with other groups
                    delete_file(self.late_to, f"{which}/{files.query}-{self.name}-{batch:09d}-{g}-of-{of}.parquet")
            if len(late[side]):
                sink = pa.BufferOutputStream()
                pq.write_table(late[side], sink)
                name = f"{files.query}-{self.name}-{batch:09d}-{group}-of-{self.join.groups}.parquet"
                write_file(self.late_to, f"{which}/{name}", bytes(sink.getvalue()), private=False)

    def _counts(self, step: GroupStep, new: Unpacked, counts: Counts, version: Version,
                reloaded: bool) -> dict[str, int]:
        whole = {f"tuples_{side}": len(step.fresh[side]) for side in SIDES}
        if not self.join.slots.hashed and version.group:
            whole = dict.fromkeys(whole, 0)  # every group gets the same tuples; they count once
        stored = sum(len(step.state.stored[side]) for side in SIDES)
        made = {
            "pairs": counts.pairs, "comparisons": counts.comparisons, "compared": counts.compared,
            "matches": counts.matches, **whole,
            **{f"late_{side}": len(step.late[side]) for side in SIDES},
            **{f"null_{side}": len(new.timeless[side]) for side in SIDES},
            "stored_rows": stored, "waiting_rows": sum(len(step.state.waiting[side]) for side in SIDES),
            "state_bytes": version.nbytes, "reloads": int(reloaded), "device_us": round(counts.seconds * 1e6),
            "pushed_rows": counts.pushed,
        }
        if self.metrics is not None:
            self.metrics.add({"comparisons": counts.comparisons, "candidates": counts.compared,
                              "matches": counts.matches}, None, partitions=1, pairs=counts.pairs,
                             tuples=sum(whole.values()), warm=0)
        return made

    def _with_counts(self, rows: pa.RecordBatch | None, counts: Mapping[str, int] | None) -> pa.RecordBatch:
        n = 1 if rows is None else rows.num_rows
        columns = [pa.nulls(n, f.type) for f in self.result] if rows is None else rows.columns
        last = pa.array([counts] if counts is not None else [None] * n, _COUNTS_TYPE)
        schema = pa.schema([*(f.with_nullable(True) for f in self.result), pa.field(METRICS, _COUNTS_TYPE)])
        return pa.RecordBatch.from_arrays([*columns, last], schema=schema)


def _remember(key: tuple[Any, ...], token: str, state: GroupState) -> None:
    _CACHE[key] = token, state
    _CACHE.move_to_end(key)
    while len(_CACHE) > _MOST_CACHED:
        _CACHE.popitem(last=False)
