"""The step of a group: a function of the group's state and of the rows of one micro-batch.

A group is one of SplitJoin's join cores, one level up: it compares every tuple that it gets with the tuples that it
stores, and stores those whose slot is its own. A pair is found by the group that stores the earlier tuple; if both
tuples are of one micro-batch, by the group that stores the tuple of R.

With order "none" and RANGE windows, a pair depends on its two tuples alone, so a tuple is joined in the micro-batch in
which it comes. ROWS windows, order "total", as-of joins and aggregates depend on arrival order, so there a tuple waits
until the watermark has passed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import interleave
from splitjoin.engines.device import Device, pairs
from splitjoin.engines.effectiveness import compared
from splitjoin.engines.latest import KeyNumbers
from splitjoin.engines.registry import device as find_device
from splitjoin.lang.ir import columns
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.device_times import widened
from splitjoin.rows.kinds import OwnSide
from splitjoin.rows.output import OutputColumn

from ..resources import leased
from ..results import MadeRows, ResultRows
from .rows import Rows, arrival_order, pair_order
from .sessions import KeptSession, in_slices
from .slots import Slots
from .watermark import Progress, Watermarks

Numbers = npt.NDArray[np.int64]

#: Tuples of a micro-batch from which on it is looked at for skew.
_SKEWED = 1024
_LEAST, _GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class GroupState:
    """The state of a group between two micro-batches.

    Attributes:
        stored: The tuples of each stream that the group stores and later tuples may meet, by event time.
        waiting: The tuples that the watermark has not passed, where tuples wait.
        progress: The event times so far, in all groups, and the watermark.
        tuples: The number of tuples of each stream that the group has joined.
        hot: Slots whose tuples are stored by all groups in turn, since one group would have too much with them.
        beside: The live tuples of S that other groups store, where the group pairs its tuples of R with them too
            (`GroupJoin.replicates`), else None; a version does not hold them.
        undecided: What is known of the tuples whose rows wait for a decision (`KindOperator.state`; for joins that
            `GroupJoin.by_matches`, the ids of those stored tuples of each stream that are in a pair); empty for pairs.
        needed: The ids of the first tuples that later rows may have, where windows count rows and rows wait for a
            decision; else None.
    """

    stored: Mapping[Side, Rows]
    waiting: Mapping[Side, Rows]
    progress: Progress
    tuples: Mapping[Side, int]
    hot: frozenset[int] = frozenset()
    beside: Rows | None = None
    undecided: Mapping[str, Numbers] = field(default_factory=dict)
    needed: Mapping[Side, int] | None = None

    @classmethod
    def initial(cls, schemas: Mapping[Side, pa.Schema]) -> GroupState:
        """The state before the first micro-batch."""
        none = {side: Rows.empty(schemas[side]) for side in SIDES}
        return cls(none, none, Progress(), dict.fromkeys(SIDES, 0))


@dataclass
class Counts:
    """Counts of a step: rows, comparisons that the windows asked for, pairs that the devices compared and those of them
    that were matches, tuples pushed to them, seconds on them.
    """

    pairs: int = 0
    comparisons: int = 0
    compared: int = 0
    matches: int = 0
    pushed: int = 0
    seconds: float = 0.0

    def add(self, counters: Mapping[str, int]) -> None:
        """Add what a device session has counted for the step."""
        self.comparisons += counters.get("comparisons", 0)
        self.compared += compared(counters)
        self.matches += counters.get("matches", 0)


@dataclass(frozen=True)
class GroupStep:
    """A micro-batch of a group, before its pairs are searched.

    Attributes:
        state: The state after it.
        own: New tuples of each stream that the group stores, by event time; they follow those stored before.
        late: The tuples that came behind the watermark, of those that the group would have stored.
        fresh: All tuples of each stream that are joined in this micro-batch, in arrival order.
        before: The stored tuples of each stream before it.
        beside: Those of S that other groups store, as in `GroupState`.
        opposite: For each tuple of ``fresh``, the number of tuples of the other stream before it; only with ROWS.
    """

    state: GroupState
    own: Mapping[Side, Rows]
    late: Mapping[Side, Rows]
    fresh: Mapping[Side, Rows]
    before: Mapping[Side, Rows]
    beside: Rows | None
    opposite: Mapping[Side, Numbers]


@dataclass(frozen=True)
class GroupJoin:
    """Settings that all groups of a join share; the object travels to the tasks.

    Attributes:
        query: The query, with its order.
        schemas: The Arrow schemas of the columns that travel, of each stream.
        columns: The result columns that are gathered.
        projection: What makes the rows of these, as in `ResultRows`.
        rule: The rule of the watermark.
        ties: The columns that order tuples with equal times, where that matters.
        groups: The number of groups.
        device: The device, and its options.
        keeps: True if sessions of the device are kept between micro-batches.
        nulls_are_late: True if tuples without an event time are treated as late ones, False if they are an error.
        as_spark: True if a tuple that meets nothing is a row when Spark's own join has it: at once if a term of its own
            stream alone rules it out; one whose key is NULL with all others, and one without an event time never.
        early: True if tuples that met nothing so far are rows at once, which are taken back when a partner comes.
        retention: For each stream how far below the watermark the times begin whose tuples are stored, in ticks; None
            for the lengths of its windows.
    """

    query: Query
    schemas: Mapping[Side, pa.Schema]
    columns: Sequence[OutputColumn]
    projection: MadeRows | None
    rule: Watermarks
    ties: Mapping[Side, Sequence[str]]
    groups: int
    device: str | Device
    options: Mapping[str, object]
    slots: Slots
    keeps: bool = False
    nulls_are_late: bool = False
    early: bool = False
    as_spark: bool = False
    retention: Mapping[Side, int] | None = None

    @cached_property
    def _keys(self) -> KeyNumbers:
        return KeyNumbers(self.query)

    @cached_property
    def _ties(self) -> dict[Side, list[str]]:
        """The columns by which tuples with equal times are numbered: `ties`, and those that the condition reads.

        If a task runs again, its tuples may come in another order, but the numbers must be the same: versions of the
        state name undecided tuples by them, and the second run may replace the file of the first one after later
        versions were made from it. Tuples that are equal in these columns have the same partners.
        """
        read = {side: [c.name for c in columns(self.query.predicate) if c.side == side] for side in SIDES}
        return {side: list(dict.fromkeys([*self.ties[side], *read[side]])) for side in SIDES}

    @cached_property
    def own_sides(self) -> dict[Side, OwnSide]:
        """The part of the condition by which the tuples of each stream are ruled out at once."""
        found = {side: OwnSide.of(self.query, side) for side in SIDES}
        return {side: replace(own, values=()) for side, own in found.items()} if self.as_spark else found

    @property
    def waits(self) -> bool:
        """True if tuples wait for the watermark before they are joined."""
        return self.query.order.kind != "none" or self.counts_rows or not (self.query.is_pairs or self.by_matches)

    @property
    def by_matches(self) -> bool:
        """True for an outer, semi or anti join that needs to know only whether a tuple is in a pair."""
        return (not self.query.is_pairs and not self.query.aggregates and not self.query.kind.is_asof
                and self.query.order.kind == "none" and not self.counts_rows)

    @property
    def numbered(self) -> bool:
        """True if stored tuples keep their row ids."""
        return self.waits or self.by_matches

    @property
    def counts_rows(self) -> bool:
        """True if a window counts rows."""
        return self.query.window_r.rows is not None or self.query.window_s.rows is not None

    @property
    def replicates(self) -> bool:
        """True if a group finds all pairs of its own tuples of R, rather than those with the earlier tuple its own.

        A session that is kept stores every tuple that it gets, so only the tuples of one stream are divided among the
        groups (fragment and replicate): the groups share the comparisons, but each device stores all tuples of S. So
        does a group that decides rows of its tuples of R by all of their pairs.
        """
        return (self.keeps or not self.query.is_pairs) and self.groups > 1 and not self.slots.hashed

    @property
    def result(self) -> ResultRows:
        """The result rows."""
        return ResultRows(self.query, self.columns, self.projection, self.early)

    def by_arrival(self, rows: Rows) -> Rows:
        """Stored tuples in arrival order."""
        return rows.take(np.argsort(rows.ids, kind="stable")) if self.waits else rows.sorted()

    def step(self, state: GroupState, group: int, rows: Mapping[Side, tuple[Rows, npt.NDArray[np.uint16]]],
             progress: Progress, total: int) -> GroupStep:
        """The step of group number ``group`` from ``state``.

        ``rows``: the new tuples of each stream, in any order, and their slots, uint16 (n,). ``progress``: that after
        the micro-batch. ``total``: the number of tuples of the micro-batch, in all groups.
        """
        passed = progress.watermark
        after = replace(state, progress=progress)
        late, fresh, waiting, own, beside = {}, {}, {}, {}, state.beside
        tuples = dict(state.tuples)
        for side in SIDES:
            new, slots = rows[side]
            mine = slots % self.groups == group
            limit = progress.limits[side]
            behind = np.zeros(len(new), np.bool_) if limit is None else new.ts < limit
            late[side] = new.where(behind & mine)
            new = new.where(~behind)
            # Until a tuple is joined, its id holds its slot, which is the same in every group.
            taken = Rows(new.table, new.ts, slots[~behind].astype(np.int64))
            waiting[side] = state.waiting[side]
            if self.waits:
                pool = Rows.concat([state.waiting[side], taken])
                ready = np.zeros(len(pool), np.bool_) if passed is None else pool.ts < passed
                waiting[side], taken = pool.where(~ready), pool.where(ready)
            taken = arrival_order(taken, self._ties[side], taken.ids) if self.numbered else taken.sorted()
            mine = taken.ids % self.groups == group
            fresh[side] = taken.numbered(tuples[side])
            own[side] = fresh[side].where(mine)
            tuples[side] += len(taken)
            if side == "s" and self.replicates:
                foreign = fresh[side].where(~mine)
                beside = self.by_arrival(Rows.concat([*([] if beside is None else [beside]), foreign]))
        after = replace(after, waiting=waiting, tuples=tuples, hot=state.hot | self._hot(rows, group, total))
        stored = {side: self.kept(side, after, Rows.concat([state.stored[side], own[side]]).sorted(), state.needed)
                  for side in SIDES}
        if beside is not None:
            beside = self.kept("s", after, beside, None)
        return GroupStep(replace(after, stored=stored, beside=beside), own, late, fresh, state.stored, state.beside,
                    self._opposite(fresh, state.tuples) if self.counts_rows else {})

    def _hot(self, rows: Mapping[Side, tuple[Rows, npt.NDArray[np.uint16]]], group: int, total: int) -> set[int]:
        """The slots of the group that have more than half of a group's fair share of a micro-batch of some size."""
        if not self.slots.hashed or self.groups == 1 or total < _SKEWED or not self.query.is_pairs:
            return set()
        slots = np.concatenate([rows[side][1] for side in SIDES])
        counts = np.bincount(slots[slots % self.groups == group])
        return set(np.flatnonzero(counts > total / (2 * self.groups)).tolist())

    def restored(self, state: GroupState, stored: Mapping[Side, Rows]) -> GroupState:
        """``state`` with those of the tuples ``stored``, as versions hold them, that are live in it."""
        return replace(state, stored={side: self.kept(side, state, stored[side].sorted(), state.needed)
                                      for side in SIDES})

    def with_beside(self, state: GroupState, others: Sequence[GroupState]) -> GroupState:
        """``state`` with the tuples that ``others``, the states of all other groups, store beside it."""
        return replace(state, beside=self.by_arrival(Rows.concat([other.stored["s"] for other in others])))

    def in_session(self, state: GroupState) -> dict[Side, Rows]:
        """The tuples that a session that is kept has after ``state``, in arrival order."""
        beside = [] if state.beside is None else [state.beside]
        return {"r": state.stored["r"], "s": self.by_arrival(Rows.concat([state.stored["s"], *beside]))}

    def kept(self, side: Side, state: GroupState, rows: Rows, needed: Mapping[Side, int] | None) -> Rows:
        """Those of the stored tuples ``rows`` that a tuple from the watermark of ``state`` on may still meet, and that
        rows which wait may have. ``needed``: as in `GroupState`.
        """
        if needed is not None:
            return rows.slice(int(np.searchsorted(rows.ids, needed[side])), len(rows))
        if self.query.is_unbounded:
            return rows.slice(0, 0) if side == "r" else rows.where(self._keys.last_of_each(rows.table))
        window, passed = self.query.window(side), state.progress.watermark
        if self.counts_rows and not self.query.is_pairs:
            return rows  # nothing is decided yet
        if window.rows is not None and len(rows):
            rows = rows.slice(int(np.searchsorted(rows.ids, state.tuples[side] - window.rows)), len(rows))
        if window.length is not None and passed is not None:
            # A row that waits may have a partner that came before it, as long as its own window.
            looks_back = self.query.kind.is_asof and self.query.kind.direction != "forward"
            chosen = side == "s" and (looks_back or bool(self.query.aggregates))
            more = self.query.window_r.length if chosen else 0
            length = window.length if self.retention is None else self.retention[side]
            rows = rows.slice(_below(rows.ts, passed - length - (more or 0)), len(rows))
        return rows

    def _opposite(self, fresh: Mapping[Side, Rows], tuples: Mapping[Side, int]) -> dict[Side, Numbers]:
        r, s = fresh["r"], fresh["s"]
        return {"r": np.searchsorted(s.ts, r.ts, side="left") + tuples["s"],
                "s": np.searchsorted(r.ts, s.ts, side="right") + tuples["r"]}

    def new(self, step: GroupStep) -> dict[Side, Rows]:
        """The tuples that a step pushes to a session that is kept."""
        return {"r": step.own["r"], "s": step.fresh["s"]}

    def results(self, step: GroupStep, counts: Counts, kept: KeptSession | None = None) -> Iterator[pa.Table]:
        """The result rows of a step, a table of some thousand at a time, counted in ``counts``.

        ``kept``: a session with the tuples of the windows; None pushes them again, to a session of the step's own.
        """
        found = self.pairs(step, counts, kept)
        if self.query.order.kind == "total":
            found = iter([_in_total_order(list(found))])
        for r, s, r_at, s_at in found:
            counts.pairs += len(r_at)
            yield from self.result.of_pairs(r.table, s.table, r_at, s_at)

    def pairs(self, step: GroupStep, counts: Counts,
              kept: KeptSession | None) -> Iterator[tuple[Rows, Rows, Numbers, Numbers]]:
        """The pairs of a step, in any order: tuples of R, of S, and positions in both. ``kept``: as for `results`."""
        return self._found(step, counts) if kept is None else self._continued(kept, step, counts)

    def _found(self, step: GroupStep, counts: Counts) -> Iterator[tuple[Rows, Rows, Numbers, Numbers]]:
        """The pairs of the step by sessions of its own."""
        fresh, before = step.fresh, step.before
        # New tuples of S with R's stored ones, old and new; and new tuples of R with S's stored ones that are old.
        r_stored = Rows.concat([self._reached("r", before["r"], fresh["s"]), step.own["r"]]).sorted()
        yield from self._joined(r_stored, fresh["s"], step, counts)
        probes, old = step.own["r"] if self.replicates else fresh["r"], before["s"]
        if step.beside is not None:
            old = self.by_arrival(Rows.concat([old, step.beside]))
        if self.query.window_s.rows is not None and len(probes):
            # Beyond as many new tuples of S, no old one is in the window.
            last = step.opposite["r"][probes.ids - int(fresh["r"].ids[0])] - self.query.window_s.rows
            probes = probes.slice(0, int(np.searchsorted(last, old.ids[-1], side="right")) if len(old) else 0)
        yield from self._joined(probes, self._reached("s", old, probes), step, counts)

    def _continued(self, kept: KeptSession, step: GroupStep,
                   counts: Counts) -> Iterator[tuple[Rows, Rows, Numbers, Numbers]]:
        found = kept.join(self.new(step))
        while True:
            began = perf_counter()
            part = next(found, None)
            counts.seconds += perf_counter() - began
            if part is None:
                break
            yield self._inside(*part, step)
        counts.add(kept.counted())
        counts.pushed, kept.pushed = counts.pushed + kept.pushed, 0

    def _reached(self, side: Side, stored: Rows, probes: Rows) -> Rows:
        """The tuples of ``stored``, of stream ``side``, that the windows of ``probes`` may reach."""
        if not len(probes) or not len(stored):
            return stored.slice(0, 0)
        first, last = 0, len(stored)
        own, other = self.query.window(side).length, self.query.window("s" if side == "r" else "r").length
        if own is not None:
            first = _below(stored.ts, int(probes.ts[0]) - own)
        if other is not None:
            last = _below(stored.ts, int(probes.ts[-1]) + other + 1)
        return stored.slice(first, last)

    def _joined(self, r: Rows, s: Rows, step: GroupStep,
                counts: Counts) -> Iterator[tuple[Rows, Rows, Numbers, Numbers]]:
        """The pairs of ``r`` and ``s``, both by event time."""
        if not len(r) or not len(s):
            return
        one = {"r": _one_chunk(r), "s": _one_chunk(s)}
        arrivals = interleave(one["r"].table, one["s"].table, (r.ts, s.ts), np.searchsorted(s.ts, r.ts, side="left"))
        counts.pushed += len(arrivals)
        with find_device(self.device, **leased(self.device, self.options)).open(widened(self.query, 0)) as session:
            for part, last in in_slices(arrivals):
                began = perf_counter()
                session.push(part)
                r_at, s_at = pairs(session.flush() if last else session.poll())
                counts.seconds += perf_counter() - began
                yield self._inside(one["r"], one["s"], r_at, s_at, step)
            counts.add(session.counters())

    def _inside(self, r: Rows, s: Rows, r_at: Numbers, s_at: Numbers,
                step: GroupStep) -> tuple[Rows, Rows, Numbers, Numbers]:
        """The pairs that are within the windows that count rows."""
        if self.counts_rows and len(r_at):
            inside = self._in_rows(r, s, r_at, s_at, step)
            return r, s, r_at[inside], s_at[inside]
        return r, s, r_at, s_at

    def _in_rows(self, r: Rows, s: Rows, r_at: Numbers, s_at: Numbers, step: GroupStep) -> npt.NDArray[np.bool_]:
        """True for the pairs whose earlier tuple is among the last rows that its window counts.

        The device sees some of the tuples, so a window of n of them reaches at least as far back as it should.
        """
        inside = np.ones(len(r_at), np.bool_)
        r_first = r.ts[r_at] <= s.ts[s_at]
        for side, stored, probe, mine in (("r", r.ids[r_at], s.ids[s_at], r_first),
                                          ("s", s.ids[s_at], r.ids[r_at], ~r_first)):
            rows = self.query.window(side).rows
            if rows is not None and mine.any():
                other: Side = "s" if side == "r" else "r"
                ends = step.opposite[other]
                seen = ends[probe[mine] - int(step.fresh[other].ids[0])]
                inside[mine] = stored[mine] >= seen - rows
        return inside


def _below(ts: Numbers, time: int) -> int:
    """The number of the ascending ``ts`` that are less than ``time``."""
    return 0 if time <= _LEAST else len(ts) if time > _GREATEST else int(np.searchsorted(ts, time, side="left"))


def _one_chunk(rows: Rows) -> Rows:
    # `take` looks for the chunk of every row otherwise.
    return Rows(rows.table.combine_chunks(), rows.ts, rows.ids)


def _in_total_order(found: Sequence[tuple[Rows, Rows, Numbers, Numbers]]) -> tuple[Rows, Rows, Numbers, Numbers]:
    """All pairs in one sequence, by the arrival of the later tuple, then of the earlier one (semantics, section 4)."""
    r, r_at = _as_one([(part[0], part[2]) for part in found])
    s, s_at = _as_one([(part[1], part[3]) for part in found])
    if not len(r_at):
        return r, s, r_at, s_at
    order, _ = pair_order(r.ts[r_at], s.ts[s_at], r.ids[r_at], s.ids[s_at])
    return r, s, r_at[order], s_at[order]


def _as_one(found: Sequence[tuple[Rows, Numbers]]) -> tuple[Rows, Numbers]:
    """Positions in several `Rows`, each perhaps there more than once, as positions in one."""
    starts: dict[int, int] = {}
    parts: list[Rows] = []
    at = [np.empty(0, np.int64)]
    for rows, positions in found:
        if id(rows) not in starts:
            starts[id(rows)] = sum(map(len, parts))
            parts.append(rows)
        at.append(positions + starts[id(rows)])
    return _one_chunk(Rows.concat(parts or [Rows.empty(pa.schema([]))])), np.concatenate(at)
