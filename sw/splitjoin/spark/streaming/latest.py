"""`LatestGroupRows`: as-of joins without a window; a group stores the last tuple of S of each key (decision 76).

Tuples wait until the watermark has passed them. So all tuples of a time are joined in one micro-batch, in arrival
order, and each tuple of R is decided in it: no row waits, no tuple of R is stored, and of S the last tuples suffice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import ClassVar

import numpy as np

from splitjoin.engines.device import Device
from splitjoin.lang.layouts import indices, take
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.answers import operator_of_pairs
from splitjoin.rows.operator import RowBatch
from splitjoin.rows.table_rows import TableRows

from .decisions import in_arrival_order
from .group import Counts, GroupJoin, GroupStep
from .group_rows import FoundPairs, GroupRows, StepRows
from .rows import Rows


class LatestGroupRows(GroupRows):
    """Decides the rows of an as-of join without a window by a session of ``device`` for each step."""

    takes_pairs: ClassVar[bool] = False

    def __init__(self, device: Device):
        self._device = device

    def decided(self, join: GroupJoin, step: GroupStep, found: Iterable[FoundPairs], counts: Counts) -> StepRows:
        stored = Rows.concat([step.before["s"], *([] if step.beside is None else [step.beside])])
        known = {"r": step.own["r"], "s": Rows.concat([join.by_arrival(stored), step.fresh["s"]])}
        arrivals = in_arrival_order(known["r"], known["s"])
        tables = {side: known[side].table.combine_chunks() for side in SIDES}
        operator = operator_of_pairs(join.query, lambda side, names, rows: [
            take(tables[side].column(name), indices(rows)) for name in names])
        began = perf_counter()
        session = operator.open(self._device)
        try:
            operator.arrive(arrivals)
            items = np.concatenate([session.push(arrivals), session.flush()])
            counts.comparisons += session.counters().get("comparisons", 0)
        finally:
            session.close()
        counts.seconds += perf_counter() - began
        counts.pushed += len(arrivals)
        rows = TableRows.of(RowBatch.joined([operator.finish(items)]))
        # A version of the state need not hold what later tuples cannot choose.
        own: dict[Side, Rows] = {"r": step.own["r"].slice(0, 0), "s": join.kept("s", step.state, step.own["s"], None)}
        return StepRows(replace(step, own=own), len(rows), join.result.of_rows(tables["r"], tables["s"], rows))
