"""Pairs that decide the rows of semi, anti and as-of joins of whole tables, found without the other pairs.

The windows of both streams and the kind of join leave each tuple of R one range of S's row ids, of which it wants the
first or the last partner. S is sorted by the codes of its equal keys, then by row id, so that the range is one there
too. Where nothing but equalities is asked, its end is the partner. Otherwise `search` goes from that end inwards, past
runs of tuples whose keys rule them out. The first partner within one key's interval, in windows that hold everything,
is the least row id of a run of S sorted by that key. Memory is that of the tuples and rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.memory import available_memory
from splitjoin.lang.kind import Kind
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES
from splitjoin.plan.encoding import Coder
from splitjoin.plan.keys import Codes, UnitKey
from splitjoin.plan.passes.pipeline import make_plan

from ..arrival import Arrivals, R, S, s_before_each_r
from ..device import ITEM, PAIR, STAR, DecidingPairs, Items
from .pairs import PairTest, column_arrays
from .runs_of_keys import Groups, Pyramid, Search, least_in_runs

__all__ = ["Condition", "deciding_pairs", "visible_spans"]

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Candidates of the sample that tells how many of them are partners.
_SAMPLE = 4096
#: Nanoseconds: a candidate of the search; a pair that is made and gathered, and a candidate of it, by compiled loops.
_TRIED, _MADE, _COMPARED = 60.0, 100.0, 0.2
#: Bytes of a pair until its rows are decided, about.
_PAIR_BYTES = 60
_MIN, _MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Spans:
    """For each tuple of R a range of S's row ids, from ``start`` to before ``end``: int64 (r,)."""

    start: Rows
    end: Rows

    def hold_all(self, rows: int) -> bool:
        """True if every range is that of all ``rows``."""
        return not len(self.start) or (int(self.start.max()) == 0 and int(self.end.min()) == rows)

    @property
    def pairs(self) -> int:
        """The number of pairs in the ranges."""
        return int(np.maximum(self.end - self.start, 0).sum())


class Condition:
    """The condition of ``query`` over two whole tables: codes of equal keys, bounds on others, and the rest.

    Attributes:
        possible_r, possible_s: Tuples that may have a partner: bool (r,), (s,).
        points: Pairs of codes (r,), (s,) that must be equal.
        bounds: By slot of S its keys (s,), and their lowest and highest code for each tuple of R.
        decided: False if pairs that meet all of this must be verified.
    """

    def __init__(self, query: Query, incoming: Arrivals):
        plan = make_plan(query.predicate)
        coder = Coder(plan)
        r, s = (coder.codes(side, incoming.table(side)) for side in SIDES)
        self.possible_r, self.possible_s = np.ones(len(incoming.r), np.bool_), np.ones(len(incoming.s), np.bool_)
        self.points: list[tuple[Codes, Codes]] = []
        found: dict[int, list[int]] = {}
        for j in plan.required:
            test = plan.tests[j]
            self.possible_r &= r.lows[j] <= r.highs[j]
            if plan.slots_s[test.s].null_code:
                self.possible_s &= s.keys[test.s] != 0
            if test.is_point:
                self.points.append((r.lows[j], s.keys[test.s]))
            elif not isinstance(plan.slots_s[test.s].key, UnitKey):
                found.setdefault(test.s, []).append(j)
        self.bounds = [(s.keys[slot], reduce(np.maximum, (r.lows[j] for j in tests)),
                        reduce(np.minimum, (r.highs[j] for j in tests))) for slot, tests in found.items()]
        self.decided = plan.residual is None and len(plan.required) == len(plan.tests) and _only_tests(plan.tree)
        self._test = PairTest(query.predicate)
        self._columns = {side: column_arrays(query.predicate, side, incoming.table(side)) for side in SIDES}

    def true(self, r: Rows, s: Rows) -> Mask:
        """True for each pair of row ids of which the condition is true."""
        return self._test.true("r", self._columns["r"], r, self._columns["s"], s)

    def groups(self) -> Groups:
        """The tuples of both streams by their equal keys."""
        return Groups(self.points, self.possible_r, self.possible_s)


def _only_tests(tree: Any) -> bool:
    return isinstance(tree, int) or (tree[0] == "and" and all(isinstance(arg, int) for arg in tree[1:]))


def deciding_pairs(query: Query, incoming: Arrivals) -> DecidingPairs | None:
    """The pairs that decide the rows of ``query``, of kind semi, anti or as-of, over all ``incoming`` arrivals.

    None for another kind, and where making all pairs is expected to be cheaper, by a sample.
    """
    kind = query.kind
    if not query.needs_few_pairs:
        return None
    visible = visible_spans(query, incoming)
    condition = Condition(query, incoming)
    groups = condition.groups()
    tried = 0
    if not kind.is_asof and visible.hold_all(len(incoming.s)) and condition.decided and len(condition.bounds) == 1:
        partner = least_in_runs(groups, *condition.bounds[0])
        how = "by the first partner of each run of sorted keys"
    else:
        if not suits_search(condition, groups, visible):
            return None
        search = _search(condition, groups)
        partner = _chosen(kind, incoming, visible, groups, search)
        how = "by equal keys and time" if search.is_direct else "from the nearest partner on" if kind.is_asof else (
            "until the first partner")
        tried = search.tried
    counters = {"tuples_r": len(incoming.r), "tuples_s": len(incoming.s), "comparisons": visible.pairs,
                "candidates": tried or int(np.count_nonzero(partner >= 0))}
    return DecidingPairs(_items(incoming, partner), f"rows without pairs, {how}", counters)


def visible_spans(query: Query, incoming: Arrivals) -> Spans:
    """The tuples of S that each tuple of R meets within the windows, before it or after it (semantics, section 2)."""
    before_r = s_before_each_r(incoming.stream, 0)
    at = np.flatnonzero(incoming.stream == S)
    before_s = at - np.arange(len(at))  # tuples of R before each of S
    start, end = np.zeros(len(before_r), np.int64), np.full(len(before_r), len(at), np.int64)
    if query.window_s.rows is not None:
        start = np.maximum(before_r - min(query.window_s.rows, len(at)), 0)
    if query.window_r.rows is not None:
        last = np.arange(len(before_r)) + min(query.window_r.rows, len(before_r))
        end = np.searchsorted(before_s, last, side="right")
    if incoming.ts is not None:
        times_r, times_s = incoming.ts[incoming.stream == R], incoming.ts[at]
        if query.window_s.length is not None:
            length = min(query.window_s.length, _MAX)
            earliest = np.where(times_r < _MIN + length, _MIN, times_r - length)
            start = np.maximum(start, np.searchsorted(times_s, earliest, side="left"))
        if query.window_r.length is not None:
            length = min(query.window_r.length, _MAX)
            latest = np.where(times_r > _MAX - length, _MAX, times_r + length)
            end = np.minimum(end, np.searchsorted(times_s, latest, side="right"))
    return Spans(start, end)


def _search(condition: Condition, groups: Groups) -> Search:
    """The search of S in the order of ``groups``."""
    pyramids = [(Pyramid(keys[groups.order]), lows, highs) for keys, lows, highs in condition.bounds]
    return Search(pyramids, None if condition.decided else lambda r, at: condition.true(r, groups.order[at]))


def suits_search(condition: Condition, groups: Groups, visible: Spans) -> bool:
    """True if trying candidates until the first partner takes less than making all pairs, or these do not fit."""
    if condition.decided and not condition.bounds:
        return True
    first, last = groups.positions(visible.start), groups.positions(visible.end)
    lengths = np.maximum(last - first, 0)
    some = np.flatnonzero(lengths)
    if not len(some):
        return True
    chance = np.random.default_rng(1)
    r = chance.choice(some, _SAMPLE)
    at = first[r] + (chance.random(_SAMPLE) * lengths[r]).astype(np.int64)
    share = float(np.count_nonzero(condition.true(r, groups.order[at]))) / _SAMPLE
    candidates = float(lengths.sum())
    pairs = share * candidates
    if pairs * _PAIR_BYTES > available_memory() / 2:
        return True
    if condition.decided and len(condition.bounds) == 1 and groups.one_ended(condition.bounds[0]):
        return True  # runs are ruled out exactly
    tries = float(np.minimum(lengths, 1 / max(share, 1e-9)).sum())
    return tries * _TRIED <= pairs * _MADE + candidates * _COMPARED


def _chosen(kind: Kind, incoming: Arrivals, visible: Spans, groups: Groups, search: Search) -> Rows:
    """The partner of each tuple of R that decides its row: row ids (r,), −1 for none."""

    def find(start: Rows, end: Rows, last: bool) -> Rows:
        at = search.find(groups.positions(start), groups.positions(end), last)
        found = np.full(len(at), -1, np.int64)
        found[at >= 0] = groups.order[at[at >= 0]]
        return found

    if not kind.is_asof:
        return find(visible.start, visible.end, last=False)
    if incoming.ts is None:
        not_after = not_before = s_before_each_r(incoming.stream, 0)
    else:
        times, times_s = incoming.ts[incoming.stream == R], incoming.ts[incoming.stream == S]
        not_after = np.searchsorted(times_s, times, side="right" if kind.allow_exact else "left")
        not_before = np.searchsorted(times_s, times, side="left" if kind.allow_exact else "right")
    back = fore = np.empty(0, np.int64)
    if kind.direction != "forward":
        back = find(visible.start, np.minimum(visible.end, not_after), last=True)
    if kind.direction != "backward":
        fore = find(np.maximum(visible.start, not_before), visible.end, last=False)
    if kind.direction != "nearest":
        return back if kind.direction == "backward" else fore
    # As unsigned numbers, since the difference of two times may not fit 64 bits with a sign.
    if incoming.ts is None:
        times, times_s = np.flatnonzero(incoming.stream == R), np.flatnonzero(incoming.stream == S)
    if not len(times_s):
        return back
    to_back = times.view(np.uint64) - times_s[back].view(np.uint64)
    to_fore = times_s[fore].view(np.uint64) - times.view(np.uint64)
    return np.where((back >= 0) & ((fore < 0) | (to_back <= to_fore)), back, fore)


def _items(incoming: Arrivals, partner: Rows) -> Items:
    """The pairs of tuples of R with a ``partner``, and a star for each arrival, in total order."""
    stream = incoming.stream
    of_r, of_s = np.flatnonzero(stream == R), np.flatnonzero(stream == S)
    items = np.zeros(len(stream) + int(np.count_nonzero(partner >= 0)), ITEM)
    r = np.flatnonzero(partner >= 0)
    s = partner[r]
    at = np.maximum(of_r[r], of_s[s])  # the later one of both finds the pair
    order = np.argsort(at, kind="stable")
    r, s, at = r[order], s[order], at[order]
    mine = at + np.arange(len(at))  # a star for each arrival before it
    is_star = np.ones(len(items), np.bool_)
    is_star[mine] = False
    items["kind"] = np.where(is_star, STAR, PAIR)
    items["side"][mine], items["r"][mine], items["s"][mine] = stream[at], r, s
    stars = np.flatnonzero(is_star)
    items["side"][stars] = stream
    for name, other, positions in (("r", "s", of_r), ("s", "r", of_s)):
        items[name][stars[positions]] = np.arange(len(positions))
        items[other][stars[positions]] = -1
    return items
