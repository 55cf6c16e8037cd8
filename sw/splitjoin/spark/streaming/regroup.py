"""`regrouped`: the state of a group by the states of all groups, which were of another number (decision 117).

Stored tuples and those that wait go to the group that has their slot now. What is known of undecided tuples goes with
them: where arrival order does not matter, the flag whether a tuple was in a pair; otherwise an operator is shown the
stored tuples again, as none of the undecided ones can have lost a partner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from splitjoin.engines.device import PAIR
from splitjoin.lang.layouts import indices, take
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.answers import operator_of_pairs

from .decisions import found_again, in_arrival_order
from .group import GroupJoin, GroupState
from .rows import Numbers, Rows

_NONE = np.empty(0, np.int64)


def regrouped(join: GroupJoin, states: Sequence[GroupState], group: int) -> GroupState:
    """The state of ``group`` of ``join`` by the ``states`` of all groups as they were."""
    hot = frozenset[int]().union(*(state.hot for state in states))
    # Groups by a key have numbered their tuples each for itself, others all alike.
    anew = join.slots.hashed and join.numbered
    stored: dict[Side, Rows] = {}
    beside: dict[Side, Rows] = {}
    matched: dict[str, Numbers] = {}
    waiting, tuples = dict(states[0].waiting), dict(states[0].tuples)
    for side in SIDES:
        parts = [_undecided(join, state) if side == "r" else state.stored[side] for state in states]
        rows, origin = Rows.concat(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.lexsort((origin, rows.ids, rows.ts)) if anew else np.argsort(
            rows.ids if join.waits else rows.ts, kind="stable")
        if join.by_matches:
            known = np.concatenate([np.isin(part.ids, state.undecided.get(side, _NONE))
                                    for part, state in zip(parts, states, strict=True)])[order]
        rows = rows.take(order)
        if anew:
            rows, tuples[side] = rows.numbered(0), len(rows)
            pool = Rows.concat([state.waiting[side] for state in states])
            waiting[side] = pool.where(pool.ids % join.groups == group)
        mine = join.slots.of(side, rows.table, hot) % join.groups == group
        stored[side], beside[side] = rows.where(mine), rows.where(~mine)
        if join.by_matches:
            matched[side] = np.sort(rows.ids[known & mine])
    state = replace(states[0], stored=stored, waiting=waiting, tuples=tuples, hot=hot, undecided=matched,
                    beside=beside["s"] if join.replicates else None)
    if join.query.is_pairs or join.by_matches or join.query.is_unbounded:
        return state
    return replace(state, undecided=_replayed(join, state))


def _undecided(join: GroupJoin, state: GroupState) -> Rows:
    """The tuples of R that ``state`` stores, where tuples are decided in arrival order without those that are decided:
    they may lack partners, and would be rows again.
    """
    rows, known = state.stored["r"], state.undecided
    if not join.waits or not known:
        return rows
    rows = join.by_arrival(rows)
    first = int(known["done"][0]) - len(rows)
    return rows.take(known["r_first"][0] - first + np.flatnonzero(known["r_open"]))


def _replayed(join: GroupJoin, state: GroupState) -> Mapping[str, Numbers]:
    """The numbers of each undecided tuple, such as its partners so far, computed anew from the stored tuples."""
    more = [] if state.beside is None else [state.beside]
    rows: dict[Side, Rows] = {"r": join.by_arrival(state.stored["r"]),
                              "s": join.by_arrival(Rows.concat([state.stored["s"], *more]))}
    tables = {side: rows[side].table.combine_chunks() for side in SIDES}
    arrivals = in_arrival_order(rows["r"], rows["s"])
    items = found_again(join.query, arrivals)
    operator = operator_of_pairs(join.query, lambda side, names, at: [
        take(tables[side].column(name), indices(at)) for name in names])
    operator.arrive(arrivals)
    items = items[items["kind"] == PAIR]
    again = [operator.take(items, (len(rows["r"]), len(rows["s"])))]
    if state.progress.watermark is not None:
        again.append(operator.advance(state.progress.watermark))
    assert not any(len(batch.items) for batch in again), "an undecided tuple is decided without new ones"
    return operator.state()
