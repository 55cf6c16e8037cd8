"""`FoldedGroupRows`: folds the aggregates of a group without pairs, by an operator, and its session where
a circuit folds.

The state of a group holds no pairs then. The rows that it stores are those that undecided base tuples need, so a task
that goes on from a state which its worker does not have folds these rows anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import ClassVar

import numpy as np

from splitjoin.engines.device import Device
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.rows.answers import folding_operator
from splitjoin.rows.numbered import NumberedSession
from splitjoin.rows.operator import RowBatch, RowOperator

from .decisions import GroupBatch, OrderedGroupRows
from .group import Counts
from .rows import Numbers


class FoldedGroupRows(OrderedGroupRows):
    """Folds the aggregates of a group's base tuples, micro-batch by micro-batch."""

    takes_pairs: ClassVar[bool] = False
    _operator: RowOperator
    _batch: GroupBatch

    def __init__(self, device: Device):
        self._device = device
        self._session: NumberedSession | None = None
        self._counted: dict[str, int] = {}
        self._fresh = True

    @classmethod
    def of(cls, query: Query, device: Device) -> FoldedGroupRows | None:
        """The rows of ``query`` as ``device`` folds them; None if it gives pairs."""
        made = cls(device)
        operator = folding_operator(query, device, lambda: (made._batch.first, made._batch.known),
                                    lambda side, names, rows: made._batch.gathered(side, names, rows))
        if operator is None:
            return None
        made._operator = operator
        return made

    @property
    def needed(self) -> tuple[int, int]:
        assert self._operator.needed is not None, "base tuples are decided"
        return self._operator.needed

    def join(self, query: Query, batch: GroupBatch, undecided: Mapping[str, Numbers],
             counts: Counts) -> list[RowBatch]:
        began = perf_counter()
        operator, self._batch = self._operator, batch
        if self._fresh and undecided:
            operator.restore({name: values for name, values in undecided.items() if not name.startswith("pairs_")})
            operator.replay(batch.first, batch.stored)
            self._renew(counts)
        self._fresh = False
        operator.arrive(batch.new)
        counts.pushed += len(batch.new)
        settled = (operator.done[0] + len(batch.new.r), operator.done[1] + len(batch.new.s))
        session = self._session
        if session is None or not session.fits(batch.new):
            session = self._renew(counts)
        items = session.push(batch.new)
        if batch.watermark is not None:
            operator.expire(session, dict.fromkeys(SIDES, batch.watermark))
        items = np.concatenate([items, session.settle()])
        operator.follow(session)
        found = [operator.take(items, settled)]
        if batch.watermark is not None:
            found.append(operator.advance(batch.watermark))
        before, self._counted = self._counted, operator.counters(session)
        counts.add({name: n - before.get(name, 0) for name, n in self._counted.items()})
        counts.seconds += perf_counter() - began
        return found

    def state(self) -> dict[str, Numbers]:
        return self._operator.base_state()

    def close(self) -> None:
        """End its threads and its device session."""
        self._operator.close()
        if self._session is not None:
            self._session.close()
            self._session = None

    def _renew(self, counts: Counts) -> NumberedSession:
        """Open a device session anew, and push the stored rows, which it folds again."""
        if self._session is not None:
            self._session.close()
        first, stored = self._batch.first, self._batch.stored
        self._counted = {}
        self._session = session = self._operator.open(self._device, first, first)
        items = np.concatenate([session.push(stored), session.settle()])
        counts.pushed += len(stored)
        self._operator.renew(items, session)
        return session
