"""Rows of joins whose pairs do not depend on arrival order: of outer, semi and anti joins (`UnorderedKindOperator`),
and of as-of joins that wait for S alone, whatever the order in which R comes (`UnorderedAsOfOperator`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side

from ..operator import RowBatch, RowOperator
from .decisions import nearest_until
from .own_side import OwnSide
from .undecided import NEVER, NONE, Ints, later

__all__ = ["UnorderedAsOfOperator", "UnorderedKindOperator", "lone_rows", "operations"]

_MAX = 2**63 - 1
#: What is noted of every waiting tuple.
_NUMBERS = ("id", "time", "matched", "ruled_out", "given")


class UnorderedKindOperator(RowOperator):
    """Decides the rows of ``query`` from tuples in any order and the pairs of the inner join, in any order too.

    A pair, and the row of a semi join, is given when it is found. The row of a tuple that met nothing is given when the
    other stream has passed the tuple's window; at once if its own side of the condition rules it out. The windows must
    be RANGE windows.

    With ``early``, the row of a tuple that has met nothing so far is given as soon as its own pairs are known, and
    taken back at its first pair. Each row has an operation then, "+" or "-", in `RowBatch.values`. The state are the
    tuples of the streams that may have such rows, until they are decided.
    """

    def __init__(self, query: Query, *, early: bool = False):
        super().__init__(query)
        self._kind, self._early = query.kind, early
        self._lengths = {side: query.narrowed.window(side).length or 0 for side in SIDES}
        #: By stream: row id, event time, 1 for a tuple that is in a pair, 1 for one that can be in none, 1 for one
        #: whose row was given, and more.
        self._waiting = {side: {name: np.empty(0, np.int64) for name in (*_NUMBERS, *self._more(side))}
                         for side in SIDES if self._keeps(side)}
        self._taken_back = np.empty(0, ITEM)
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
        alone = [self._unmatched(side, numbers["ruled_out"] == 1) for side, numbers in self._waiting.items()]
        return self._rows(np.concatenate([pairs, *alone, *self._known(), self._decided()]))

    def advance(self, now: int) -> RowBatch:
        return self.advance_streams(dict.fromkeys(SIDES, now))

    def advance_streams(self, passed: Mapping[Side, int | None]) -> RowBatch:
        ends = self._ends["r"], self._ends["s"]
        if self._passed and self._passed[-1][0] == ends:
            self._passed.pop()
        self._passed.append((ends, dict(passed)))
        return self._rows(self._decided())

    def finish(self, items: Items) -> RowBatch:
        self._settled = self._ends["r"], self._ends["s"]
        pairs = self._matched(items)
        return self._rows(np.concatenate([pairs, *(self._unmatched(side, numbers["id"] < self._ends[side])
                                                   for side, numbers in self._waiting.items())]))

    def state(self) -> dict[str, Ints]:
        """The state by name, from which `restore` continues; what is passed is told again."""
        return {"ends": np.array([*self._ends.values(), *self._settled], np.int64)} | {
            f"{side}_{name}": values for side, numbers in self._waiting.items() for name, values in numbers.items()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        r, s, settled_r, settled_s = state["ends"].tolist()
        self._ends, self._settled = {"r": r, "s": s}, (settled_r, settled_s)
        for side, numbers in self._waiting.items():
            self._waiting[side] = {name: state[f"{side}_{name}"].copy() for name in numbers}

    def _rows(self, decided: Items) -> RowBatch:
        """The rows of what is ``decided``; where rows come early, between those taken back and new ones."""
        if not self._early:
            return RowBatch(decided)
        early = self._new_rows()
        back, self._taken_back = self._taken_back, self._taken_back[:0]
        items = np.concatenate([back, decided[decided["kind"] == PAIR], *early])
        return RowBatch(items, [operations(len(back), len(items) - len(back))])

    def _new_rows(self) -> list[Items]:
        """The rows that are given early now."""
        rows = []
        for side, numbers in self._waiting.items():
            new = (numbers["matched"] + numbers["given"] == 0) & (numbers["id"] < self._settled[SIDES.index(side)])
            numbers["given"][new] = 1
            rows.append(lone_rows(side, numbers["id"][new]))
        return rows

    def _more(self, side: Side) -> dict[str, int]:
        """Further numbers of the waiting tuples of stream ``side`` by name, each with its first value."""
        return {}

    def _may_rule_out(self, side: Side) -> bool:
        """True if a tuple of stream ``side`` that its own side of the condition rules out is decided at once."""
        return True

    def _known(self) -> list[Items]:
        """The rows of tuples that their pairs decide, which are forgotten."""
        return []

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
            if self._early:
                first = np.unique(at)
                first = first[(numbers["matched"][first] == 0) & (numbers["given"][first] == 1)]
                self._taken_back = np.concatenate([self._taken_back, lone_rows(side, numbers["id"][first])])
            numbers["matched"][at] = 1
        found: Items = items[kept]
        if self._kind.how == "semi":
            found["s"][found["kind"] == PAIR] = NONE
        return found

    def _decided(self) -> Items:
        """The rows that the latest times decide for which all pairs of earlier tuples are known."""
        known: tuple[tuple[int, int], dict[Side, int | None]] | None = None
        while self._passed and all(a <= b for a, b in zip(self._passed[0][0], self._settled, strict=True)):
            known = self._passed.popleft()
        rows = [np.empty(0, ITEM)]
        if known is not None:
            for side, numbers in self._waiting.items():
                time = known[1][other_side(side)]
                if time is not None:
                    gone = self._passes(side, time) & (numbers["id"] < known[0][SIDES.index(side)])
                    rows.append(self._unmatched(side, gone))
        return np.concatenate(rows)

    def _passes(self, side: Side, time: int) -> npt.NDArray[np.bool_]:
        """True for each waiting tuple of stream ``side`` of which the other stream has passed what it may meet, as it
        delivers nothing below event ``time`` any more.
        """
        passed: npt.NDArray[np.bool_] = self._waiting[side]["time"] < max(time - self._lengths[side], -_MAX)
        return passed

    def _unmatched(self, side: Side, gone: npt.NDArray[np.bool_]) -> Items:
        """The rows of the tuples ``gone``, which are forgotten."""
        if not gone.any():
            return np.empty(0, ITEM)
        rows = self._last_rows(side, np.flatnonzero(gone))
        self._waiting[side] = {name: values[~gone] for name, values in self._waiting[side].items()}
        return rows

    def _last_rows(self, side: Side, at: Ints) -> Items:
        """The rows of those of the tuples ``at``, which are decided, that met nothing."""
        numbers = self._waiting[side]
        ids = numbers["id"][at[numbers["matched"][at] + numbers["given"][at] == 0]]
        return lone_rows(side, ids if self._kind.gives_unmatched(side) else ids[:0])


def operations(back: int, new: int) -> pa.ChunkedArray:
    """The operations of rows that are taken ``back``, and of ``new`` ones behind them."""
    return pa.chunked_array([pa.array(["-"] * back + ["+"] * new, pa.string())])


def lone_rows(side: Side, ids: Ints) -> Items:
    """The rows of tuples ``ids`` of ``side``, with NULL on the other side."""
    rows = np.empty(len(ids), ITEM)
    rows["kind"], rows["side"] = PAIR, SIDES.index(side)
    rows[side], rows[other_side(side)] = ids, NONE
    return rows


class UnorderedAsOfOperator(UnorderedKindOperator):
    """Decides the rows of an as-of join from tuples of R in any order, tuples of S in theirs, and all pairs.

    A tuple of R is decided once S has passed all that it may choose, or by its first partner, as in arrival order. With
    ``early``, the row with the best partner so far is given, and taken back when a better one comes.
    """

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

    def _known(self) -> list[Items]:
        r = self._waiting["r"]
        return [self._unmatched("r", (r["fore"] != NONE) & (r["id"] < self._settled[0]))]

    def _passes(self, side: Side, time: int) -> npt.NDArray[np.bool_]:
        if side == "s":
            return super()._passes(side, time)
        r, kind = self._waiting["r"], self._kind
        last = later(r["time"], np.uint64(min(self._lengths["r"], 2**64 - 1)))
        passed: npt.NDArray[np.bool_] = last < time
        if kind.direction == "backward" and not kind.allow_exact:
            passed |= r["time"] <= time
        elif kind.direction == "nearest":
            passed |= (r["back"] != NONE) & (nearest_until(r["time"], r["back_time"]) < time)
        return passed

    def _best(self, at: Ints) -> Ints:
        """The best partners so far of the waiting tuples ``at`` of R; `NONE` for those without."""
        r = self._waiting["r"]
        back, fore = r["back"][at], r["fore"][at]
        best = np.where(back == NONE, fore, back)
        both = np.flatnonzero((back != NONE) & (fore != NONE))
        if len(both):
            s, time = self._waiting["s"], r["time"][at[both]].view(np.uint64)
            before = time - r["back_time"][at[both]].view(np.uint64)
            after = s["time"][np.searchsorted(s["id"], fore[both])].view(np.uint64) - time
            best[both[after < before]] = fore[both[after < before]]
        return best

    def _last_rows(self, side: Side, at: Ints) -> Items:
        return np.empty(0, ITEM) if side == "s" else self._changed(at)

    def _new_rows(self) -> list[Items]:
        return [self._changed(np.flatnonzero(self._waiting["r"]["id"] < self._settled[0]))]

    def _changed(self, at: Ints) -> Items:
        """The rows of the waiting tuples ``at`` of R that were not given as they are now; those that were given
        otherwise are taken back.
        """
        r, best = self._waiting["r"], self._best(at)
        is_row = np.ones(len(at), np.bool_) if self._kind.gives_unmatched("r") else best != NONE
        new = np.flatnonzero(is_row & ((r["given"][at] == 0) | (r["partner"][at] != best)))
        back = at[new[r["given"][at[new]] == 1]]
        self._taken_back = np.concatenate([self._taken_back, _rows(r["id"][back], r["partner"][back])])
        at, best = at[new], best[new]
        r["given"][at], r["partner"][at] = 1, best
        return _rows(r["id"][at], best)


def _rows(r: Ints, s: Ints) -> Items:
    """The rows of tuples ``r`` of R with their partners ``s``."""
    rows = np.empty(len(r), ITEM)
    rows["kind"], rows["side"], rows["r"], rows["s"] = PAIR, SIDES.index("r"), r, s
    return rows
