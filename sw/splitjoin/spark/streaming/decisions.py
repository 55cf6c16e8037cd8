"""Rows of kinds of join other than inner, and of aggregates, in a micro-batch of a group (semantics, sections 7 and 8).

Here tuples are joined in arrival order; matched.py has the kinds that do without it. A row waits until the watermark
has passed the last time at which its tuple could meet another one. What is known of the tuples that wait, such as
whether they are in a pair, is a part of the group's state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals, interleave
from splitjoin.engines.device import ITEM, PAIR, Items, pairs
from splitjoin.engines.registry import host
from splitjoin.lang.layouts import take
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.answers import operator_of_pairs
from splitjoin.rows.operator import RowBatch
from splitjoin.rows.table_rows import TableRows

from .group import Counts, GroupJoin, GroupStep
from .group_rows import FoundPairs, GroupRows, StepRows
from .rows import Numbers, Rows, pair_order

_MAX = 2**63 - 1


@dataclass(frozen=True)
class GroupBatch:
    """A micro-batch of a group's own subsequence of arrival order.

    Attributes:
        first: The row ids of the first stored tuples, R's and S's.
        before: The tuples of each stream that are stored before it.
        after: These and the new ones.
        new: The new ones.
        watermark: The event time below which no tuple comes any more; None if unknown.
        items: The pairs of the new ones in total order, if they are taken; asked for once.
    """

    first: tuple[int, int]
    before: Mapping[Side, Rows]
    after: Mapping[Side, Rows]
    new: Arrivals
    watermark: int | None
    items: Callable[[], Items]

    @cached_property
    def stored(self) -> Arrivals:
        """The tuples that are stored before it, in arrival order."""
        return in_arrival_order(self.before["r"], self.before["s"])

    @cached_property
    def known(self) -> Arrivals:
        """These and the new tuples, in arrival order."""
        return in_arrival_order(self.after["r"], self.after["s"])

    @cached_property
    def tables(self) -> dict[Side, pa.Table]:
        """The tuples of each stream, new ones as well."""
        return {side: self.after[side].table.combine_chunks() for side in SIDES}

    def gathered(self, side: Side, names: Sequence[str], rows: Numbers) -> list[pa.Array | pa.ChunkedArray]:
        """Columns ``names`` of the tuples of ``side`` with row ids ``rows``."""
        at = pa.array(rows - self.first[side == "s"])
        return [take(self.tables[side].column(name), at) for name in names]


class OrderedGroupRows(GroupRows):
    """Decides rows that depend on arrival order, by a `RowOperator`."""

    def decided(self, join: GroupJoin, step: GroupStep, found: Iterable[FoundPairs], counts: Counts) -> StepRows:
        beside = [] if step.beside is None else [step.beside]
        new: dict[Side, Rows] = {"r": step.own["r"], "s": step.fresh["s"]}
        # The tuples of this group's subsequence of arrival order, from the first one that is stored on.
        stored: dict[Side, Rows] = {"r": join.by_arrival(step.before["r"]),
                                    "s": join.by_arrival(Rows.concat([step.before["s"], *beside]))}
        known: dict[Side, Rows] = {side: join.by_arrival(Rows.concat([stored[side], new[side]])) for side in SIDES}
        undecided = step.state.undecided
        done = np.array(undecided["done"] if undecided else [0, 0]).tolist()
        first = {side: before + len(new[side]) - len(known[side]) for side, before in zip(SIDES, done, strict=True)}
        batch = GroupBatch((first["r"], first["s"]), stored, known, in_arrival_order(new["r"], new["s"]),
                           step.state.progress.watermark, lambda: _items(found, known, first))
        rows = TableRows.of(RowBatch.joined(self.join(join.query, batch, undecided, counts)))
        state = replace(step.state, undecided=self.state())
        if join.counts_rows:  # one group, so the numbers are ids
            needed = dict(zip(SIDES, self.needed, strict=True))
            state = replace(state, needed=needed, stored={
                side: join.kept(side, state, stored_rows, needed) for side, stored_rows in state.stored.items()})
        r, s = (ids - np.where(ids >= 0, first[side], 0) for side, ids in zip(SIDES, (rows.r, rows.s), strict=True))
        return StepRows(replace(step, state=state), len(rows), join.result.of_rows(
            batch.tables["r"], batch.tables["s"], TableRows(r, s, rows.values, rows.items)))

    @abstractmethod
    def join(self, query: Query, batch: GroupBatch, undecided: Mapping[str, Numbers],
             counts: Counts) -> list[RowBatch]:
        """The rows that ``batch`` decides, after the state ``undecided``."""

    @property
    @abstractmethod
    def needed(self) -> tuple[int, int]:
        """The ids of the first rows (R's, S's) that later rows may have."""

    @abstractmethod
    def state(self) -> dict[str, Numbers]:
        """Columns of the undecided tuples' states, from which another one goes on."""


class PairedGroupRows(OrderedGroupRows):
    """Decides rows by pairs; it holds nothing from one step to the next."""

    def join(self, query: Query, batch: GroupBatch, undecided: Mapping[str, Numbers],
             counts: Counts) -> list[RowBatch]:
        self._operator = operator = operator_of_pairs(query, batch.gathered)
        if undecided:
            operator.restore(_with_pairs(query, undecided, batch.first, batch.stored))
        operator.arrive(batch.new)
        settled = (operator.done[0] + len(batch.new.r), operator.done[1] + len(batch.new.s))
        parts = [operator.take(batch.items(), settled)]
        if batch.watermark is not None:
            parts.append(operator.advance(batch.watermark))
        return parts

    @property
    def needed(self) -> tuple[int, int]:
        assert self._operator.needed is not None, "rows wait"
        return self._operator.needed

    def state(self) -> dict[str, Numbers]:
        return self._operator.state()


def _items(found: Iterable[FoundPairs], known: dict[Side, Rows],
           first: dict[Side, int]) -> Items:
    """The pairs in total order, as items: their tuples have the numbers of the group's own subsequence.

    A session may still find partners of tuples of R that are not ``known`` any more, as they are decided: no pairs.
    """
    parts = list(found)
    none = [np.empty(0, np.int64)]
    r_ts = np.concatenate([*none, *(r.ts[at] for r, _, at, _ in parts)])
    s_ts = np.concatenate([*none, *(s.ts[at] for _, s, _, at in parts)])
    r_id = np.concatenate([*none, *(r.ids[at] for r, _, at, _ in parts)])
    s_id = np.concatenate([*none, *(s.ids[at] for _, s, _, at in parts)])
    some = r_id >= (known["r"].ids[0] if len(known["r"]) else _MAX)
    if not some.all():
        r_ts, s_ts, r_id, s_id = r_ts[some], s_ts[some], r_id[some], s_id[some]
    items = np.empty(len(r_id), ITEM)
    items["kind"] = PAIR
    items["r"] = np.searchsorted(known["r"].ids, r_id) + first["r"]
    items["s"] = np.searchsorted(known["s"].ids, s_id) + first["s"]
    order, items["side"] = pair_order(r_ts, s_ts, r_id, s_id)
    return items[order]


def in_arrival_order(r: Rows, s: Rows) -> Arrivals:
    """The tuples of both streams in arrival order."""
    return interleave(r.table, s.table, (r.ts, s.ts), np.searchsorted(s.ts, r.ts, side="left"))


def found_again(query: Query, stored: Arrivals) -> Items:
    """The pairs of ``stored`` tuples in total order, which the CPU finds."""
    if not len(stored):
        return np.empty(0, ITEM)
    with host(threads=1).open(replace(query.pairs, order=Order("total"))) as session:
        session.push(stored)
        return session.flush()


def _with_pairs(query: Query, undecided: Mapping[str, Numbers], first: tuple[int, int],
               stored: Arrivals) -> Mapping[str, Numbers]:
    """The state ``undecided`` for an operator that folds pairs. Where it has none, as another way of folding left it,
    the CPU finds those of the undecided base tuples again among the ``stored`` rows, the first ones of which have row
    ids ``first``.
    """
    if not query.aggregates or "pairs_r" in undecided:
        return undecided
    r, s = pairs(found_again(query, stored))
    mine = r + first[0] >= undecided["r_first"][0]
    return {**undecided, "pairs_r": r[mine] + first[0], "pairs_s": s[mine] + first[1]}
