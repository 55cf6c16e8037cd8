"""Rows of kinds of join other than inner, and of aggregates, in a micro-batch of a group (semantics, sections 7 and 8).

Here tuples are joined in arrival order; matched.py has the kinds that do without it. A row waits until the watermark
has passed the last time at which its tuple could meet another one. What is known of the tuples that wait, such as
whether they are in a pair, is a part of the group's state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.layouts import take
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.answers import operator_of_pairs
from splitjoin.rows.operator import RowBatch
from splitjoin.rows.whole import TableRows

from .folding import GroupFold, in_arrival_order, with_pairs
from .group import GroupJoin, Step
from .rows import Numbers, Rows

__all__ = ["Decided", "decided"]


@dataclass(frozen=True)
class Decided:
    """Decisions of a micro-batch: the step with the state behind it, the number of result rows, and these."""

    step: Step
    count: int
    tables: Iterator[pa.Table]


def decided(join: GroupJoin, step: Step, found: Iterable[tuple[Rows, Rows, Numbers, Numbers]],
            fold: GroupFold | None = None) -> Decided:
    """The rows that are decided in ``step``, by the pairs ``found`` in it, or by ``fold``, which needs none."""
    beside = [] if step.beside is None else [step.beside]
    new: dict[Side, Rows] = {"r": step.own["r"], "s": step.fresh["s"]}
    # The tuples of this group's subsequence of arrival order, from the first one that is stored on.
    stored = {"r": join.by_arrival(step.before["r"]), "s": join.by_arrival(Rows.concat([step.before["s"], *beside]))}
    known = {side: join.by_arrival(Rows.concat([stored[side], new[side]])) for side in SIDES}
    undecided = step.state.undecided
    done = np.array(undecided["done"] if undecided else [0, 0]).tolist()
    ends = [before + len(new[side]) for side, before in zip(SIDES, done, strict=True)]
    first = {side: end - len(known[side]) for side, end in zip(SIDES, ends, strict=True)}
    tables = {side: known[side].table.combine_chunks() for side in SIDES}
    fresh, watermark = in_arrival_order(new["r"], new["s"]), step.state.progress.watermark
    operator: Any = fold or operator_of_pairs(join.query, lambda side, names, rows: [
        take(tables[side].column(name), pa.array(rows - first[side])) for name in names])
    if fold is not None:
        fold.begin(first, in_arrival_order(stored["r"], stored["s"]), in_arrival_order(known["r"], known["s"]))
        if fold.fresh and undecided:
            fold.restore(undecided)
        parts = fold.join(fresh, watermark)
    else:
        if undecided:
            operator.restore(with_pairs(join.query, undecided, (first["r"], first["s"]),
                                        in_arrival_order(stored["r"], stored["s"])))
        operator.arrive(fresh)
        parts = [operator.take(_items(found, known, first), tuple(ends))]
        if watermark is not None:
            parts.append(operator.advance(watermark))
    state = replace(step.state, undecided=operator.state())
    if join.counts_rows:  # one group, so the numbers are ids
        needed = dict(zip(SIDES, operator.needed, strict=True))
        state = replace(state, needed=needed, stored={side: join.kept(side, state, rows, needed) for side, rows in
                                                      state.stored.items()})
    rows = TableRows.of(RowBatch.joined(parts))
    r, s = (ids - np.where(ids >= 0, first[side], 0) for side, ids in zip(SIDES, (rows.r, rows.s), strict=True))
    return Decided(replace(step, state=state), len(rows),
                   join.result.of_rows(tables["r"], tables["s"], replace(rows, r=r, s=s)))


def _items(found: Iterable[tuple[Rows, Rows, Numbers, Numbers]], known: dict[Side, Rows],
           first: dict[Side, int]) -> Items:
    """The pairs in total order, as items: their tuples have the numbers of the group's own subsequence."""
    parts = list(found)
    none = [np.empty(0, np.int64)]
    r_ts = np.concatenate([*none, *(r.ts[at] for r, _, at, _ in parts)])
    s_ts = np.concatenate([*none, *(s.ts[at] for _, s, _, at in parts)])
    r_id = np.concatenate([*none, *(r.ids[at] for r, _, at, _ in parts)])
    s_id = np.concatenate([*none, *(s.ids[at] for _, s, _, at in parts)])
    items = np.empty(len(r_id), ITEM)
    items["kind"] = PAIR
    items["r"] = np.searchsorted(known["r"].ids, r_id) + first["r"]
    items["s"] = np.searchsorted(known["s"].ids, s_id) + first["s"]
    s_later = r_ts <= s_ts  # at equal times a tuple of R comes before one of S
    items["side"] = s_later
    # By the arrival of the later tuple, then of the earlier one (semantics, section 4).
    order = np.lexsort((np.where(s_later, r_id, s_id), np.where(s_later, s_id, r_id), s_later,
                        np.where(s_later, s_ts, r_ts)))
    return items[order]
