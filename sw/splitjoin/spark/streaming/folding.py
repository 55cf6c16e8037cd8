"""Groups that fold aggregates without pairs: an operator, and where a circuit folds, its device session.

The state of a group holds no pairs then. The rows that it stores are those that undecided base tuples need, so a task
that goes on from a state which its worker does not have folds these rows anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals, interleave
from splitjoin.engines.cpu import CpuDevice
from splitjoin.engines.device import ITEM, Device, pairs
from splitjoin.lang.layouts import take
from splitjoin.lang.order import Order
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side
from splitjoin.rows.answers import row_operator
from splitjoin.rows.numbered import NumberedSession
from splitjoin.rows.operator import RowBatch

from .rows import Rows

__all__ = ["FoldCache", "GroupFold", "in_arrival_order", "with_pairs"]

Numbers = npt.NDArray[np.int64]

#: Operators that a Python worker keeps.
_MOST_KEPT = 8


class GroupFold:
    """Folds the aggregates of a group's base tuples, micro-batch by micro-batch.

    Each micro-batch calls `begin`, then `join`; the first one of a fresh object calls `restore` between them, if there
    is a state.

    Attributes:
        pushed: The number of tuples that were given to the device or the engine.
    """

    def __init__(self, query: Query, device: Device):
        self._query, self._device = query, device
        self._session: NumberedSession | None = None
        self._first: dict[Side, int] = dict.fromkeys(SIDES, 0)
        self._known: dict[Side, pa.Table] = {}
        self._stored = self._all = Arrivals(np.empty(0, np.uint8), None, pa.table({}), pa.table({}))
        self._comparisons = self.pushed = 0
        self.fresh = True
        self._operator = row_operator(query, device, lambda: (self._ids, self._all), self._gathered)

    @property
    def folds(self) -> bool:
        """False if the device gives pairs, which the host folds: then this object is of no use."""
        return self._operator.folds

    @property
    def needed(self) -> tuple[int, int]:
        """The ids of the first rows (R's, S's) that later rows may have."""
        assert self._operator.needed is not None, "base tuples are decided"
        return self._operator.needed

    def begin(self, first: Mapping[Side, int], stored: Arrivals, known: Arrivals) -> None:
        """Take over the rows of a micro-batch: those ``stored`` before it, and all that are ``known`` now; the first
        ones have row ids ``first``.
        """
        self._first, self._stored, self._all = dict(first), stored, known
        self._known = {side: known.table(side).combine_chunks() for side in SIDES}

    def restore(self, undecided: Mapping[str, Numbers]) -> None:
        """Go on from a state, `GroupState.undecided`, with the stored rows."""
        state = {name: values for name, values in undecided.items() if not name.startswith("pairs_")}
        self._operator.restore(state)
        self._operator.replay(self._ids, self._stored)
        self._renew()

    def join(self, new: Arrivals, watermark: int | None) -> list[RowBatch]:
        """The base tuples that are decided now, with the ``new`` arrivals."""
        operator, self.fresh = self._operator, False
        operator.arrive(new)
        self.pushed += len(new)
        settled = (operator.done[0] + len(new.r), operator.done[1] + len(new.s))
        session = self._session if self._session is not None and self._session.fits(new) else self._renew()
        items = session.push(new)
        if watermark is not None:
            operator.expire(session, dict.fromkeys(SIDES, watermark))
        items = np.concatenate([items, session.settle()])
        operator.follow(session)
        found = [operator.take(items, settled)]
        if watermark is not None:
            found.append(operator.advance(watermark))
        return found

    def state(self) -> dict[str, Numbers]:
        """Columns of the base tuples' states, which `restore` takes beside the stored rows."""
        return self._operator.base_state()

    def comparisons(self) -> int:
        """Comparisons since the last call."""
        counters = {} if self._session is None else self._operator.counters(self._session)
        before, self._comparisons = self._comparisons, counters.get("comparisons", 0)
        return self._comparisons - before

    def close(self) -> None:
        """End its threads and its device session."""
        self._operator.close()
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def _ids(self) -> tuple[int, int]:
        return self._first["r"], self._first["s"]

    def _renew(self) -> NumberedSession:
        """Open a device session anew, and push the stored rows, which it folds again."""
        if self._session is not None:
            self._session.close()
        self._comparisons = 0
        self._session = session = self._operator.open(self._device, self._ids, self._ids)
        items = np.concatenate([session.push(self._stored), session.settle()])
        self.pushed += len(self._stored)
        self._operator.renew(items, session)
        return session

    def _gathered(self, side: Side, names: Sequence[str], rows: Numbers) -> list[pa.Array | pa.ChunkedArray]:
        at = pa.array(rows - self._first[side])
        return [take(self._known[side].column(name), at) for name in names]


@dataclass
class FoldCache:
    """The folds that a Python worker keeps, by group, each with the token of the version that it can go on from."""

    _kept: OrderedDict[str, tuple[str, GroupFold]] = field(default_factory=OrderedDict)

    def take(self, key: str, token: str, query: Query, device: Device) -> GroupFold | None:
        """The fold of ``key`` that goes on from ``token``, or a fresh one; None if ``device`` does not fold."""
        was, kept = self._kept.pop(key, ("", None))
        if kept is not None and was == token:
            return kept
        if kept is not None:
            kept.close()
        made = GroupFold(query, device)
        return made if made.folds else None

    def keep(self, key: str, token: str, fold: GroupFold) -> None:
        """Keep a fold, which can go on from the version with ``token``."""
        self._kept[key] = token, fold
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)[1][1].close()

    def clear(self) -> None:
        """Close and forget all."""
        for _, fold in self._kept.values():
            fold.close()
        self._kept.clear()


def in_arrival_order(r: Rows, s: Rows) -> Arrivals:
    """The tuples of both streams in arrival order."""
    return interleave(r.table, s.table, (r.ts, s.ts), np.searchsorted(s.ts, r.ts, side="left"))


def with_pairs(query: Query, undecided: Mapping[str, Numbers], first: tuple[int, int],
               stored: Arrivals) -> Mapping[str, Numbers]:
    """The state ``undecided`` for an operator that folds pairs. Where it has none, as another way of folding left it,
    the CPU finds those of the undecided base tuples again among the ``stored`` rows, the first ones of which have row
    ids ``first``.
    """
    if not query.aggregates or "pairs_r" in undecided:
        return undecided
    items = np.empty(0, ITEM)
    if len(stored):
        with CpuDevice(threads=1).open(replace(query.pairs, order=Order("total"))) as session:
            session.push(stored)
            items = session.flush()
    r, s = pairs(items)
    mine = r + first[0] >= undecided["r_first"][0]
    return {**undecided, "pairs_r": r[mine] + first[0], "pairs_s": s[mine] + first[1]}
