"""Rows of outer, semi and anti joins where arrival order does not matter: with RANGE windows and order "none".

A pair, and the row of a semi join, comes out in the micro-batch in which it is found, and so does a tuple that its own
side of the condition rules out. Another one that may still be the row of one that met nothing waits until the watermark
has passed its window. Then it leaves the stored tuples too, so it is decided at that moment. Where rows come early, it
is a row at once, and taken back with its first pair. The state has the ids of the stored tuples that are in a pair or
were ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from splitjoin.lang.schema import SIDES

from .group import Counts, GroupJoin, GroupStep
from .group_rows import FoundPairs, GroupRows, StepRows
from .rows import Numbers, Rows

_NONE = np.empty(0, np.int64)


class MatchedRows(GroupRows):
    """Decides rows by which tuples are in a pair."""

    def decided(self, join: GroupJoin, step: GroupStep, found: Iterable[FoundPairs], counts: Counts) -> StepRows:
        kind = join.query.kind
        empty = {side: join.schemas[side].empty_table() for side in SIDES}
        matched = {side: step.state.undecided.get(side, _NONE) for side in SIDES}
        before = dict(matched)
        given: list[tuple[pa.Table, pa.Table, Numbers, Numbers, str]] = []
        for r, s, r_at, s_at in found:
            ids, firsts = np.unique(r.ids[r_at], return_index=True)
            if kind.has_pairs:
                given.append((r.table, s.table, r_at, s_at, "+"))
            elif kind.how == "semi":
                at = r_at[firsts[~np.isin(ids, matched["r"])]]
                given.append((r.table, empty["s"], at, np.full(len(at), -1, np.int64), "+"))
            matched["r"] = np.union1d(matched["r"], ids)
            if kind.gives_unmatched("s"):
                matched["s"] = np.union1d(matched["s"], s.ids[s_at])
        for side in SIDES:
            stored = step.state.stored[side]
            if kind.gives_unmatched(side):
                old, new = step.before[side], step.own[side]
                ruled_out = new.ids[join.own_sides[side].ruled_out(new.table)]
                if join.early:  # those that were not in a pair before were rows at once
                    alone = new.where(~np.isin(new.ids, matched[side]))
                    back = old.where(np.isin(old.ids, matched[side]) & ~np.isin(old.ids, before[side]))
                    lone = [(back, "-"), (alone, "+")]
                else:
                    whole = Rows.concat([old, new]).sorted()  # the state has the last ones
                    decided = np.arange(len(whole)) < len(whole) - len(stored)
                    decided |= np.isin(whole.ids, ruled_out)
                    lone = [(whole.where(decided & ~np.isin(whole.ids, matched[side])), "+")]
                matched[side] = np.union1d(matched[side], ruled_out)
                for rows, operation in lone:
                    at, none = np.arange(len(rows)), np.full(len(rows), -1, np.int64)
                    given.append((rows.table, empty["s"], at, none, operation) if side == "r" else
                                 (empty["r"], rows.table, none, at, operation))
            matched[side] = np.intersect1d(matched[side], stored.ids)
        state = replace(step.state, undecided={side: matched[side] for side in SIDES})

        def tables() -> Iterator[pa.Table]:
            for part in given:
                yield from join.result.of_pairs(*part)

        return StepRows(replace(step, state=state), sum(len(r_at) for _, _, r_at, *_ in given), tables())
