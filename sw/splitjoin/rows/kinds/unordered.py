"""Rows as changes: of joins whose pairs do not depend on arrival order, outer, semi and anti joins
(`UnorderedKindOperator`), and of as-of joins that wait for S alone, whatever the order of R (`UnorderedAsOfOperator`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items, chosen_items, joined_items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side

from ..operator import RowBatch, RowOperator
from .decisions import nearest_until
from .own_side import OwnSide
from .undecided import NEVER, NONE, later

_MAX = 2**63 - 1
#: What is noted of every waiting tuple.
_NUMBERS = ("id", "time", "matched", "ruled_out", "given")


class UnorderedKindOperator(RowOperator):
    """Decides the rows of ``query`` from tuples in any order and the pairs of the inner join, in any order too.

    A pair, and the row of a semi join, is given when it is found. A tuple that waits has a row by itself while it has
    met nothing. Where that row differs from the one that was given, the old one is taken back and the new one given
    (`_revise`): once the other stream has passed the tuple's window, or its own side of the condition rules it out;
    with ``early`` as soon as the tuple's own pairs are known, and at each change. Each row has an operation then, "+"
    or "-", in `RowBatch.values`. The windows must be RANGE windows. The state are the tuples that may have such rows,
    until they are decided.
    """

    #: Which of a waiting tuple's numbers tells its row; `_revise` writes that of the row that was given.
    _version: ClassVar[str] = "matched"

    def __init__(self, query: Query, *, early: bool = False):
        super().__init__(query)
        self._kind, self._early = query.kind, early
        self._lengths = {side: query.narrowed.window(side).length or 0 for side in SIDES}
        #: By stream: row id, event time, 1 for a tuple that is in a pair, 1 for one that can be in none, 1 for one
        #: whose row was given, and more.
        self._waiting = {side: {name: np.empty(0, np.int64) for name in (*_NUMBERS, *self._more(side))}
                         for side in SIDES if self._keeps(side)}
        self._back, self._new = list[Any](), list[Any]()  # rows that are taken back, and given, since the last batch
        self._own = {side: OwnSide.of(query, side) for side in self._waiting if self._may_rule_out(side)}
        self._ends = dict.fromkeys(SIDES, 0)
        self._settled = (0, 0)
        self._passed: deque[tuple[tuple[int, int], dict[Side, int | None]]] = deque()

    @property
    def needed(self) -> tuple[int, int]:
        ends = [int(self._waiting[side]["id"][0]) if side in self._waiting and len(self._waiting[side]["id"]) else
                self._ends[side] for side in SIDES]
        return ends[0], ends[1]

    @property
    def done(self) -> tuple[int, int]:
        return self._settled

    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next tuples, with their true times."""
        assert arrivals.ts is not None
        for number, side in enumerate(SIDES):
            time = arrivals.ts[arrivals.stream == number]
            if side in self._waiting and len(time):
                new = {"id": self._ends[side] + np.arange(len(time)), "time": time}
                if side in self._own:
                    new["ruled_out"] = self._own[side].ruled_out(arrivals.table(side)).astype(np.int64)
                new |= {name: np.full(len(time), first) for name, first in {
                    **dict.fromkeys(_NUMBERS, 0), **self._more(side)}.items() if name not in new}
                self._waiting[side] = {name: np.concatenate([old, new[name]])
                                       for name, old in self._waiting[side].items()}
            self._ends[side] += len(time)

    def take(self, items: Items, settled: tuple[int, int]) -> RowBatch:
        self._settled = settled
        pairs = self._matched(items)
        for side, numbers in self._waiting.items():
            self._decide(side, numbers["ruled_out"] == 1)
        self._decide_known()
        self._decide_passed()
        return self._rows(pairs)

    def advance(self, now: int) -> RowBatch:
        return self.advance_streams(dict.fromkeys(SIDES, now))

    def advance_streams(self, passed: Mapping[Side, int | None]) -> RowBatch:
        ends = self._ends["r"], self._ends["s"]
        if self._passed and self._passed[-1][0] == ends:
            self._passed.pop()
        self._passed.append((ends, dict(passed)))
        self._decide_passed()
        return self._rows(np.empty(0, ITEM))

    def finish(self, items: Items) -> RowBatch:
        self._settled = self._ends["r"], self._ends["s"]
        pairs = self._matched(items)
        for side, numbers in self._waiting.items():
            self._decide(side, numbers["id"] < self._ends[side])
        return self._rows(pairs)

    def state(self) -> dict[str, Ints]:
        """The state by name, from which `restore` continues; what is passed is told again."""
        return {"ends": np.array([*self._ends.values(), *self._settled], np.int64)} | {
            f"{side}_{name}": values for side, numbers in self._waiting.items() for name, values in numbers.items()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        r, s, settled_r, settled_s = state["ends"].tolist()
        self._ends, self._settled = {"r": r, "s": s}, (settled_r, settled_s)
        for side, numbers in self._waiting.items():
            self._waiting[side] = {name: state[f"{side}_{name}"].copy() for name in numbers}
            # Older states note a row as given, too, after it was taken back for the tuple's first pair.
            self._waiting[side]["given"][self._waiting[side]["matched"] == 1] = 0

    def _rows(self, pairs: Items) -> RowBatch:
        """The changes since the last batch: rows that are taken back, ``pairs``, and new rows of waiting tuples."""
        if self._early:
            pairs = chosen_items(pairs, pairs["kind"] == PAIR)
            for side in self._waiting:
                self._revise(side, np.flatnonzero(self._waiting[side]["id"] < self._settled[SIDES.index(side)]))
        back, new = self._back, self._new
        self._back, self._new = [], []
        return self._batch(pairs, back, new)

    def _batch(self, pairs: Items, back: list[Any], new: list[Any]) -> RowBatch:
        """The rows of these changes, each of the lists as `_shown` has made them."""
        items = joined_items([*back, pairs, *new])
        return RowBatch(items, [operations(sum(map(len, back)), len(items))] if self._early else ())

    def _present(self, side: Side, at: Ints) -> tuple[Mask, Ints]:
        """Of the waiting tuples ``at``: whether each has a row by itself at present, and the version of that."""
        matched = self._waiting[side]["matched"][at]
        return (matched == 0) & self._kind.gives_unmatched(side), matched

    def _shown(self, side: Side, at: Ints, version: Ints) -> Any:
        """The rows by themselves of the waiting tuples ``at``, in this version."""
        return rows_of(side, self._waiting[side]["id"][at])

    def _revise(self, side: Side, at: Ints) -> None:
        """Note as changes what is different now in the rows of the waiting tuples ``at``."""
        numbers = self._waiting[side]
        given, old = numbers["given"][at] == 1, numbers[self._version][at]
        is_row, now = self._present(side, at)
        back, new = given & ~(is_row & (now == old)), is_row & ~(given & (now == old))
        for some, version, rows in ((back, old, self._back), (new, now, self._new)):
            if some.any():
                rows.append(self._shown(side, at[some], version[some]))
        numbers["given"][at], numbers[self._version][at] = is_row, now

    def _more(self, side: Side) -> dict[str, int]:
        """Further numbers of the waiting tuples of stream ``side`` by name, each with its first value."""
        return {}

    def _may_rule_out(self, side: Side) -> bool:
        """True if a tuple of stream ``side`` that its own side of the condition rules out is decided at once."""
        return True

    def _decide_known(self) -> None:
        """Decide the tuples whose rows their pairs tell."""

    def _keeps(self, side: Side) -> bool:
        """True if the tuples of stream ``side`` wait for a decision."""
        return self._kind.gives_unmatched(side) or (side == "r" and self._kind.how == "semi")

    def _matched(self, items: Items) -> Items:
        """Note the partners in ``items``, and return those that are rows."""
        pair = items["kind"] == PAIR
        kept = np.ones(len(items), np.bool_) if self._kind.has_pairs else ~pair
        for side, numbers in self._waiting.items():
            at = np.searchsorted(numbers["id"], items[side][pair])
            if self._kind.how == "semi":
                fresh = np.flatnonzero(pair)[numbers["matched"][at] == 0]
                _, first = np.unique(items["r"][fresh], return_index=True)
                kept[fresh[first]] = True
            numbers["matched"][at] = 1
        found: Items = items[kept]
        if self._kind.how == "semi":
            found["s"][found["kind"] == PAIR] = NONE
        return found

    def _decide_passed(self) -> None:
        """Decide the tuples by the latest times for which all pairs of earlier tuples are known."""
        ends, passed = (0, 0), dict[Side, int | None]()
        while self._passed and all(a <= b for a, b in zip(self._passed[0][0], self._settled, strict=True)):
            ends, passed = self._passed.popleft()
        for side, numbers in self._waiting.items():
            if (time := passed.get(other_side(side))) is not None:
                self._decide(side, self._passes(side, time) & (numbers["id"] < ends[SIDES.index(side)]))

    def _passes(self, side: Side, time: int) -> Mask:
        """True for each waiting tuple of stream ``side`` of which the other stream has passed what it may meet, as it
        delivers nothing below event ``time`` any more.
        """
        passed: Mask = self._waiting[side]["time"] < max(time - self._lengths[side], -_MAX)
        return passed

    def _decide(self, side: Side, gone: Mask) -> None:
        """Note the last changes of the tuples ``gone``, which are forgotten."""
        if gone.any():
            self._revise(side, np.flatnonzero(gone))
            self._waiting[side] = {name: values[~gone] for name, values in self._waiting[side].items()}


def operations(back: int, rows: int) -> pa.ChunkedArray:
    """The operations of so many ``rows``, of which the first ones are taken ``back``."""
    return pa.chunked_array([pa.array(["-"] * back + ["+"] * (rows - back), pa.string())])


def rows_of(side: Side, ids: Ints, partners: Ints | int = NONE) -> Items:
    """The rows of tuples ``ids`` of ``side`` with their ``partners``."""
    rows = np.empty(len(ids), ITEM)
    rows["kind"], rows["side"] = PAIR, SIDES.index(side)
    rows[side], rows[other_side(side)] = ids, partners
    return rows


class UnorderedAsOfOperator(UnorderedKindOperator):
    """Decides the rows of an as-of join from tuples of R in any order, tuples of S in theirs, and all pairs.

    A tuple of R is decided once S has passed all that it may choose, or by its first partner, as in arrival order. Its
    row has the best partner so far.
    """

    _version = "partner"

    def _more(self, side: Side) -> dict[str, int]:
        return {"back": NONE, "back_time": 0, "fore": NONE, "partner": NONE} if side == "r" else {}

    def _keeps(self, side: Side) -> bool:
        return True  # of S, for its times

    def _may_rule_out(self, side: Side) -> bool:
        return side == "r"

    @property
    def needed(self) -> tuple[int, int]:
        first_r, first_s = super().needed
        partners = np.concatenate([self._waiting["r"][name] for name in ("back", "fore", "partner")])
        return first_r, int(np.min(partners[partners != NONE], initial=first_s))

    def _matched(self, items: Items) -> Items:
        """Note the partners in ``items``: behind a tuple of R the last one of S, before it the first one."""
        pair = items["kind"] == PAIR
        r, s, kind = self._waiting["r"], self._waiting["s"], self._kind
        at = np.searchsorted(r["id"], items["r"][pair])
        there = at < len(r["id"])
        there[there] = r["id"][at[there]] == items["r"][pair][there]  # others are decided
        at, partner = at[there], items["s"][pair][there]
        time_r, time_s = r["time"][at], s["time"][np.searchsorted(s["id"], partner)]
        if kind.direction != "forward":
            back = time_s <= time_r if kind.allow_exact else time_s < time_r
            # The tuples of S are numbered in their order, so that the greatest number is the last one's.
            np.maximum.at(r["back"], at[back], partner[back])
            has = np.unique(at[back])
            r["back_time"][has] = s["time"][np.searchsorted(s["id"], r["back"][has])]
        if kind.direction != "backward":
            fore = time_s > time_r if kind.direction == "nearest" or not kind.allow_exact else time_s >= time_r
            at, partner = at[fore], partner[fore]
            first = np.where(r["fore"] == NONE, NEVER, r["fore"])
            np.minimum.at(first, at, partner)
            r["fore"] = np.where(first == NEVER, NONE, first)
        rest: Items = items[~pair]
        return rest

    def _decide_known(self) -> None:
        r = self._waiting["r"]
        self._decide("r", (r["fore"] != NONE) & (r["id"] < self._settled[0]))

    def _passes(self, side: Side, time: int) -> Mask:
        if side == "s":
            return super()._passes(side, time)
        r, kind = self._waiting["r"], self._kind
        last = later(r["time"], np.uint64(min(self._lengths["r"], 2**64 - 1)))
        passed: Mask = last < time
        if kind.direction == "backward" and not kind.allow_exact:
            passed |= r["time"] <= time
        elif kind.direction == "nearest":
            passed |= (r["back"] != NONE) & (nearest_until(r["time"], r["back_time"]) < time)
        return passed

    def _present(self, side: Side, at: Ints) -> tuple[Mask, Ints]:
        r = self._waiting["r"]
        back, fore = r["back"][at], r["fore"][at]
        best = np.where(back == NONE, fore, back)
        both = np.flatnonzero((back != NONE) & (fore != NONE))
        if len(both):
            s, time = self._waiting["s"], r["time"][at[both]].view(np.uint64)
            before = time - r["back_time"][at[both]].view(np.uint64)
            after = s["time"][np.searchsorted(s["id"], fore[both])].view(np.uint64) - time
            best[both[after < before]] = fore[both[after < before]]
        return (best != NONE) | self._kind.gives_unmatched("r"), best

    def _shown(self, side: Side, at: Ints, version: Ints) -> Items:
        return rows_of(side, self._waiting[side]["id"][at], version)

    def _revise(self, side: Side, at: Ints) -> None:
        if side == "r":
            super()._revise(side, at)
