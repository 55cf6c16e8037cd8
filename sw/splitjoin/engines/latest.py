"""The last tuple of each key, all that as-of joins without a window keep of S; and their session on the CPU, which
looks it up a batch at a time (`LatestSession`).
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.base.errors import DeviceError
from splitjoin.lang.equalities import Equalities
from splitjoin.lang.eval.vector import Vector, evaluate
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .arrival import Arrivals, R
from .device import ITEM, PAIR, Items, Session, joined_items, stars

#: A column of keys: its values, those that differ, and for each usable row which of these it has.
_Column = tuple[Vector, Array, Ints]
_NONE = -1
#: Keys that only tuples of R had are forgotten once there are twice as many keys as before, and so many more.
_SPARE_KEYS = 1024


class KeyNumbers:
    """Numbers the keys that a query's condition compares, in whole tables: equal keys get equal numbers.

    ``query``: its condition must consist of equalities between the streams and conditions on one of them.
    """

    def __init__(self, query: Query):
        self._equal = Equalities.of(query.predicate)

    def of(self, side: Side, table: pa.Table) -> tuple[Ints, list[Hashable]]:
        """The number of the key of each row of ``table``, tuples of stream ``side``, and the keys by number, each of
        which occurs: int64 (n,), −1 for a row that is in no pair, as its own side of the condition rules it out.
        """
        numbers, first, columns = self._numbered(side, table)
        parts = [_hashable(column, distinct[inverse[first]]) for column, distinct, inverse in columns]
        return numbers, parts[0] if len(parts) == 1 else [*zip(*parts, strict=True)] if parts else [()] * len(first)

    def last_of_each(self, table: pa.Table) -> Mask:
        """True for each row of ``table``, tuples of S in arrival order, that is the last one of its key: bool (n,)."""
        numbers, first, _ = self._numbered("s", table)
        last = np.full(len(first), -1, np.int64)
        at = np.flatnonzero(numbers >= 0)
        last[numbers[at]] = at  # of several values for one place the last one stays
        kept = np.zeros(len(table), np.bool_)
        kept[last] = True
        return kept

    def _numbered(self, side: Side, table: pa.Table) -> tuple[Ints, Ints, list[_Column]]:
        """The numbers as of `of`, one usable row for each number, and the keys of the usable rows, column by column."""
        usable = np.ones(len(table), np.bool_)
        with np.errstate(all="ignore"):
            for term in self._equal.selections[side]:
                found = evaluate(term, table)
                usable &= found.valid & found.values.astype(np.bool_)
            values = [evaluate(key, table) for key in self._equal.key(side)]
        for column in values:
            usable &= column.valid
        at = np.flatnonzero(usable)
        numbers = np.full(len(table), -1, np.int64)
        combined, first = np.zeros(len(at), np.int64), np.zeros(min(len(at), 1), np.int64)
        columns: list[_Column] = []
        for column in values:
            distinct, its_first, inverse = np.unique(column.values[at], return_index=True, return_inverse=True)
            if columns:  # numbered anew, so that the products stay small
                _, first, combined = np.unique(combined * len(distinct) + inverse, return_index=True,
                                               return_inverse=True)
            else:
                first, combined = its_first, inverse
            columns.append((column, distinct, inverse))
        numbers[at] = combined
        return numbers, first, columns


def _hashable(column: Vector, values: Array) -> list[Hashable]:
    """``values`` of ``column`` as Python values that are equal where SQL says so."""
    if values.dtype.kind == "f":
        return [None if value != value else value for value in values.tolist()]  # NaN equals NaN
    if column.denominator != 1:
        return [Fraction(value, column.denominator) for value in values.tolist()]
    found: list[Hashable] = values.tolist()
    return found


class LatestSession(Session):
    """An as-of join of ``query`` that looks backward without end; gives what `Device.open_latest` says.

    Of a tuple of S at the time of tuples of R, it gives the pairs only if no later one of a batch replaces it.
    """

    def __init__(self, query: Query):
        self._numbers = KeyNumbers(query)
        self._meets_equals = query.time is not None and query.kind.allow_exact
        self._slots: dict[Hashable, int] = {}
        self._last = np.empty(0, np.int64)  # by slot: the row id of the last tuple of S
        self._most_slots = _SPARE_KEYS
        self._time: int | None = None
        #: The tuples of R at this time, which tuples of S of the same time can still meet.
        self._row, self._slot = np.empty(0, np.int64), np.empty(0, np.int64)
        self._ends = [0, 0]
        self._items: list[Items] = []
        self._matches = 0
        self._flushed = False

    def push(self, arrivals: Arrivals) -> None:
        if self._flushed:
            raise DeviceError("nothing can be pushed after flush; open a new session")
        n = len(arrivals)
        if not n:
            return
        stream, ts = arrivals.stream, arrivals.ts
        slot, row = np.empty(n, np.int64), np.empty(n, np.int64)
        for number, side in enumerate(SIDES):
            mine = stream == number
            slot[mine] = self._slots_of(*self._numbers.of(side, arrivals.table(side)))
            row[mine] = self._ends[number] + np.arange(np.count_nonzero(mine))
        at, is_s, old = np.arange(n), stream != R, 0
        if self._meets_equals:
            assert ts is not None
            if self._time == ts[0]:
                old = len(self._row)
                slot, row = np.concatenate([self._slot, slot]), np.concatenate([self._row, row])
                at, is_s = np.concatenate([np.full(old, -1), at]), np.concatenate([np.zeros(old, np.bool_), is_s])
                ts = np.concatenate([np.full(old, self._time), ts])
            self._time = int(ts[-1])
            still = (ts == self._time) & ~is_s & (slot >= 0)
            self._row, self._slot = row[still], slot[still]
        chosen = np.flatnonzero(slot >= 0)
        order = chosen[np.argsort(slot[chosen], kind="stable")]
        probes, r, s = self._pairs(slot[order], row[order], at[order], is_s[order],
                                   ts[order] if self._meets_equals and ts is not None else None)
        self._matches += len(r)
        self._items.append(_in_order(stream, (self._ends[0], self._ends[1]), probes, r, s))
        self._ends = [self._ends[0] + len(arrivals.r), self._ends[1] + len(arrivals.s)]
        if len(self._slots) > self._most_slots:
            self._forget()

    def poll(self) -> Items:
        items, self._items = joined_items(self._items), []
        return items

    def settle(self) -> Items:
        return self.poll()

    def flush(self) -> Items:
        self._flushed = True
        return self.poll()

    def counters(self) -> dict[str, int]:
        """``tuples_r``, ``tuples_s``, ``matches`` (pairs that decide)."""
        return {"tuples_r": self._ends[0], "tuples_s": self._ends[1], "matches": self._matches}

    def plan(self) -> str:
        return "the last tuple of s of each key, by a hash table"

    def _slots_of(self, numbers: Ints, keys: list[Hashable]) -> Ints:
        """The slot of each row, by the ``numbers`` of the rows' ``keys``; −1 for a row that is in no pair."""
        slots = self._slots
        known: list[int | None] = [*map(slots.get, keys)]
        for at in [at for at, slot in enumerate(known) if slot is None] if None in known else ():
            slots[keys[at]] = known[at] = len(slots)
        found = np.array([*known, -1], np.int64)
        if len(slots) > len(self._last):
            self._last = np.concatenate([self._last, np.full(len(slots), _NONE)])
        return found[numbers]  # that of −1 is the last

    def _pairs(self, slot: Ints, row: Ints, at: Ints, is_s: Mask, ts: Ints | None) -> tuple[Ints, Ints, Ints]:
        """The pairs that decide, as positions of their probes, and row ids of R and S, from tuples by slot and arrival.

        ``at``: the tuples' positions, −1 for those of R that were there before.
        """
        n = len(slot)
        index = np.arange(n)
        last_s = np.maximum.accumulate(np.where(is_s, index, -1)) if n else index
        begins = np.ones(n, np.bool_)
        begins[1:] = slot[1:] != slot[:-1]
        start = np.maximum.accumulate(np.where(begins, index, 0)) if n else index
        here = last_s >= start
        of_r = np.flatnonzero(~is_s & (at >= 0))
        partner = np.where(here[of_r], row[last_s[of_r]], self._last[slot[of_r]])
        has = partner != _NONE
        probes, r, s = at[of_r[has]], row[of_r[has]], partner[has]
        if ts is not None:  # the last tuple of S of the same time and key, which all come after those of R
            ends = np.ones(n, np.bool_)
            ends[:-1] = begins[1:] | (ts[1:] != ts[:-1])
            end = np.flatnonzero(ends)[np.searchsorted(np.flatnonzero(ends), index)] if n else index
            equal = np.flatnonzero(~is_s & (last_s[end] > index))
            by = last_s[end][equal]
            probes, r, s = (np.concatenate(both) for both in ((probes, at[by]), (r, row[equal]), (s, row[by])))
        final = np.ones(n, np.bool_)
        final[:-1] = begins[1:]
        final &= here
        self._last[slot[final]] = row[last_s[final]]
        return probes, r, s

    def _forget(self) -> None:
        """Forget the keys that no tuple of S had, but those of the tuples of R that may still meet one."""
        used = self._last != _NONE
        used[self._slot] = True
        number = np.cumsum(used) - 1
        self._slots = {key: int(number[slot]) for key, slot in self._slots.items() if used[slot]}
        self._slot = number[self._slot]
        self._last = self._last[used]
        self._most_slots = 2 * len(self._slots) + _SPARE_KEYS


def _in_order(stream: npt.NDArray[np.uint8], first: tuple[int, int], probes: Ints, r: Ints, s: Ints) -> Items:
    """The pairs and the stars of a batch, each pair before the star of its probe."""
    order = np.lexsort((r, probes))
    probes = probes[order]
    items = np.empty(len(stream) + len(order), ITEM)
    mine = probes + np.arange(len(order))
    others = np.ones(len(items), np.bool_)
    others[mine] = False
    items[others] = stars(stream, first)
    items["kind"][mine], items["side"][mine] = PAIR, stream[probes]
    items["r"][mine], items["s"][mine] = r[order], s[order]
    return items
