"""`UnorderedAsOfOperator`: rows of as-of joins that wait for S alone, whatever the order in which R comes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from splitjoin.engines.device import ITEM, PAIR, Items
from splitjoin.lang.schema import SIDES, Side

from .decisions import nearest_until
from .undecided import NEVER, NONE, Ints, later
from .unordered import UnorderedKindOperator

__all__ = ["UnorderedAsOfOperator"]


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
