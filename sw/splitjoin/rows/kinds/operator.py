"""`KindOperator`: turns the pairs of an inner join into the rows of another kind of join, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items, stars
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side, other_side

from .undecided import NONE, Ints, Undecided

__all__ = ["KindOperator", "rows_between"]

_MAX = 2**63 - 1


class KindOperator:
    """Decides the rows of ``query``, whose kind is not inner, from arrivals and from the items of the inner join.

    `arrive` takes arrivals as they are given to the device, `take` the device's items, which must be in total order, of
    all pairs or of those that decide (`Device.open_deciding`). A row is an item of kind `PAIR`, in whose field ``r`` or
    ``s`` a −1 stands for NULL. Rows that wait for a decision precede the results of the arrival that decides it, R's
    before S's, then by row id; their ``side`` is the stream of the tuple that waited. Stars stay where they are. The
    state are the undecided tuples and the arrivals whose pairs are not known yet.

    ``bases``: True if the rows are all tuples of R, each when it is decided, whatever the kind.
    """

    #: The device must find pairs.
    needs_pairs = True

    def __init__(self, query: Query, *, bases: bool = False):
        self._kind, self._bases = query.kind, bases
        self._timed = query.time is not None
        partners = {"back": NONE, "back_time": 0, "fore": _MAX, "fore_time": 0} if self._kind.is_asof else {}
        self._undecided = {"r": Undecided(query.window_r, {**partners, "s_first": 0}),
                           "s": Undecided(query.window_s, {})}
        self._stream, self._times = SlidingArray(np.uint8), SlidingArray()  # of arrivals whose pairs are not known
        self._done = [0, 0]  # the tuples of R and of S whose pairs, as probes, are known
        self._frontier: int | None = None

    @property
    def needed(self) -> tuple[int, int]:
        """The ids of the first rows (R's, S's) that later rows may have."""
        r, s = self._undecided["r"], self._undecided["s"]
        keeps = self._kind.is_asof or self._bases  # R tuples keep partners that are decided before them
        return r.first, int(r["s_first"][0]) if keeps and len(r) else s.first

    @property
    def done(self) -> tuple[int, int]:
        """The numbers of tuples of R and of S whose pairs, as probes, are known."""
        return self._done[0], self._done[1]

    def arrive(self, arrivals: Arrivals) -> None:
        """Note the next slice of arrival order."""
        self._stream.append(arrivals.stream)
        if arrivals.ts is not None:
            self._times.append(arrivals.ts)

    def take(self, items: Items, settled: tuple[int, int]) -> Items:
        """The rows that are decided now, with ``items``: those of the probes up to row ids ``settled`` that were not
        given yet.
        """
        stream = self._stream.values
        n = len(stream)
        for side in (0, 1):
            at = np.flatnonzero(stream == side)
            left = settled[side] - self._done[side]
            if left < len(at):
                n = min(n, int(at[left]))
        rows = self._process(items, n)
        if not len(self._stream) and self._frontier is not None:
            rows = np.concatenate([rows, self._decide_before(self._frontier)])
        return rows

    def advance(self, now: int) -> Items:
        """The rows that are decided as no tuple below event time ``now`` will arrive any more."""
        self._frontier = now
        return np.empty(0, ITEM) if len(self._stream) else self._decide_before(now)

    def finish(self, items: Items) -> Items:
        """All remaining rows, with ``items``, the last ones, at the end of input."""
        rows = self._process(items, len(self._stream))
        return np.concatenate([rows, self._decide({side: len(self._undecided[side]) for side in SIDES})])

    def before_decision(self, base: int) -> tuple[int, int]:
        """The numbers of tuples of R and of S that were noted before the arrival which decides tuple ``base`` of R; all
        of them, if none of the arrivals whose pairs are not known does.
        """
        stream = self._stream.values
        r, n = self._undecided["r"], len(stream)
        at = np.flatnonzero(stream == 0)
        number = base - self._done[0]  # among the arrivals whose pairs are not known; negative before them
        if number < len(at):
            if r.extent.rows is not None and number + r.extent.rows < len(at):
                n = int(at[number + r.extent.rows])
            if r.extent.length is not None:
                times = self._times.values
                time = int(r["time"][base - r.first] if number < 0 else times[at[number]])
                last = min(time + r.extent.length, _MAX)
                n = min(n, int(np.searchsorted(times, last, side="right")))
        of_s = int(np.count_nonzero(stream[:n]))
        return self._done[0] + n - of_s, self._done[1] + of_s

    def decided_by(self, now: int) -> int:
        """The number of tuples of R that event time ``now``, or an arrival before it, decides by R's RANGE."""
        r = self._undecided["r"]
        count = r.before(now)
        if r.extent.length is not None and count == len(r):
            times = self._times.values[self._stream.values == 0]
            count += int(np.searchsorted(times, max(now - r.extent.length, -(2**63)), side="left"))
        return r.first + count

    def stars(self, settled: tuple[int, int]) -> Items:
        """The stars of the noted arrivals up to row ids ``settled`` whose pairs are not known."""
        n = sum(settled) - sum(self._done)
        return stars(self._stream.values[:n], self.done)

    def state(self) -> dict[str, Ints]:
        """The state by name, from which `restore` continues."""
        log = {"stream": self._stream.values.astype(np.int64), "times": self._times.values.copy(),
               "done": np.array(self._done, np.int64),
               "frontier": np.array([] if self._frontier is None else [self._frontier], np.int64)}
        return log | {f"{side}_{name}": values for side in SIDES
                      for name, values in self._undecided[side].state().items()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another operator of the same query; this one must be fresh."""
        self._stream.append(state["stream"].astype(np.uint8))
        self._times.append(state["times"])
        self._done = state["done"].tolist()
        self._frontier = int(state["frontier"][0]) if len(state["frontier"]) else None
        for side in SIDES:
            self._undecided[side].restore({name.removeprefix(f"{side}_"): values for name, values in state.items()
                                           if name.startswith(f"{side}_")})

    def _process(self, items: Items, n: int) -> Items:
        """The rows of the next ``n`` arrivals, whose pairs are in ``items``."""
        base = sum(self._done)
        stream = self._stream.values[:n].copy()
        times = self._times.values[:n].copy() if self._timed else None
        self._stream.drop(n)
        if times is not None:
            self._times.drop(n)
        positions = {}
        for number, side in enumerate(SIDES):
            at = np.flatnonzero(stream == number)
            positions[side] = base + at
            self._undecided[side].append(positions[side], positions[side] if times is None else times[at])
        # The items of an arrival, stars included, have the position of their probe.
        probe = np.where(items["side"] == 0, items["r"], items["s"])
        at = np.empty(len(items), np.int64)
        for number, side in enumerate(SIDES):
            mine = items["side"] == number
            at[mine] = positions[side][probe[mine] - self._done[number]]
        decided = {side: self._undecided[side].decided(times, base, n) for side in SIDES}
        if (self._kind.is_asof or self._bases) and len(positions["r"]):
            s = self._undecided["s"]
            gone = np.searchsorted(decided["s"], positions["r"], side="right")
            self._undecided["r"]["s_first"][-len(gone):] = s.first + gone
        kept = self._note(items)
        found = {side: self._waiting(side, len(decided[side])) for side in SIDES}
        rows = np.concatenate([waiting for _, waiting in found.values()])
        waited = np.concatenate([decided[side][index] for side, (index, _) in found.items()])
        order = np.argsort(waited, kind="stable")  # stable: R's rows stand before S's
        for number, side in enumerate(SIDES):
            self._undecided[side].drop(len(decided[side]))
            self._done[number] += len(positions[side])
        given = items[kept]
        if self._kind.how == "semi":
            given["s"][given["kind"] == PAIR] = NONE
        return _merged(given, at[kept], rows[order], waited[order])

    def _decide_before(self, now: int) -> Items:
        return self._decide({side: self._undecided[side].before(now) for side in SIDES})

    def _note(self, items: Items) -> npt.NDArray[np.bool_]:
        """Note the partners in ``items``. True for each item that is a row, or a star."""
        pair = items["kind"] == PAIR
        r, s = self._undecided["r"], self._undecided["s"]
        in_r, in_s = items["r"][pair] - r.first, items["s"][pair]
        in_s = in_s[in_s != NONE] - s.first  # a partner without a number decides for R alone
        kept = ~pair if self._bases or not self._kind.has_pairs else np.ones(len(items), np.bool_)
        if self._kind.how == "semi":
            _, firsts = np.unique(in_r, return_index=True)
            firsts = firsts[r["matched"][in_r[firsts]] == 0]
            kept[np.flatnonzero(pair)[firsts]] = True
        r["matched"][in_r], s["matched"][in_s] = 1, 1
        if self._kind.is_asof:
            self._choose(in_r, in_s)
        return kept

    def _choose(self, in_r: Ints, in_s: Ints) -> None:
        """Note the last partner before each R tuple and the first one behind it, among pairs of undecided tuples."""
        r, s = self._undecided["r"], self._undecided["s"]
        time_r, time_s = r["time"][in_r], s["time"][in_s]
        exact = self._kind.allow_exact
        before = time_s <= time_r if exact else time_s < time_r
        after = time_s >= time_r if exact else time_s > time_r
        # S's times never fall, so the greatest row id has the greatest time, and comes last of those with this time.
        for chosen, better, name in ((before, np.maximum, "back"), (after, np.minimum, "fore")):
            at, partner, time = in_r[chosen], in_s[chosen] + s.first, time_s[chosen]
            old = r[name][at]
            better.at(r[name], at, partner)
            new = r[name][at] != old
            won = new & (partner == r[name][at])
            r[f"{name}_time"][at[won]] = time[won]

    def _waiting(self, side: Side, count: int) -> tuple[Ints, Items]:
        """The rows that wait for the first ``count`` undecided tuples of ``side``, and which of these each is for."""
        tuples = self._undecided[side]
        if self._bases:
            index = np.arange(count if side == "r" else 0)
            partner = np.full(count, NONE, np.int64)
        elif self._kind.is_asof:
            partner = self._partners(count) if side == "r" else np.empty(0, np.int64)
            index = np.arange(len(partner))
            if not self._kind.gives_unmatched("r"):
                index = np.flatnonzero(partner != NONE)
        else:
            index = np.flatnonzero(tuples["matched"][:count] == 0)
            index = index if self._kind.gives_unmatched(side) else index[:0]
            partner = np.full(count, NONE, np.int64)
        rows = np.empty(len(index), ITEM)
        rows["kind"], rows["side"] = PAIR, SIDES.index(side)
        rows[side], rows[other_side(side)] = tuples.first + index, partner[index]
        return index, rows

    def _partners(self, count: int) -> Ints:
        """The chosen S tuple of each of the first ``count`` undecided R tuples; `NONE` where there is none."""
        r = self._undecided["r"]
        back, fore, time = r["back"][:count], r["fore"][:count], r["time"][:count]
        has_fore = fore != _MAX
        if self._kind.direction == "backward":
            return back.copy()
        if self._kind.direction == "forward":
            return np.where(has_fore, fore, NONE)
        # As unsigned numbers, since the difference of two times may not fit 64 bits with a sign.
        to_back = (time.view(np.uint64) - r["back_time"][:count].view(np.uint64))
        to_fore = (r["fore_time"][:count].view(np.uint64) - time.view(np.uint64))
        return np.where((back != NONE) & (~has_fore | (to_back <= to_fore)), back, np.where(has_fore, fore, NONE))

    def _decide(self, counts: Mapping[Side, int]) -> Items:
        """The rows of the first ``counts`` undecided tuples of both streams, which are dropped."""
        found = []
        for side, count in counts.items():
            found.append(self._waiting(side, count)[1])
            self._undecided[side].drop(count)
        return np.concatenate(found)


def rows_between(operator: Any, arrivals: Arrivals, items: Items, warm: int, start: int | None,
                 end: int | None) -> list[Any]:
    """The rows that times from ``start`` to before ``end`` decide or bring, part by part; None is no bound.

    ``operator``: a fresh `KindOperator`, or another one with its methods. ``items``: those of the inner join over
    ``arrivals``, of which the first ``warm`` lie before ``start`` and the rest before ``end``. All tuples must be there
    that a row needs: with RANGE windows, those up to both lengths before ``start``. The rows of adjacent times, put
    together, are those of the whole query, in total order (for ``full``, of the rows that one arrival decides, some may
    come in another order).
    """
    rest: Arrivals | None = arrivals
    if warm:
        before, rest = arrivals.split(warm)
        operator.arrive(before)
        mine = np.where(items["side"] == 0, items["r"] >= len(before.r), items["s"] >= len(before.s))
        operator.take(items[~mine], (len(before.r), len(before.s)))
        items = items[mine]
    if start is not None:
        operator.advance(start)
    if rest is not None:
        operator.arrive(rest)
    if end is None:
        return [operator.finish(items)]
    return [operator.take(items, (len(arrivals.r), len(arrivals.s))), operator.advance(end)]


def _merged(items: Items, at: Ints, rows: Items, waited: Ints) -> Items:
    """``rows``, which wait for the arrivals at positions ``waited``, before the first of ``items`` from there on."""
    out = np.empty(len(items) + len(rows), ITEM)
    mine = np.searchsorted(at, waited, side="left") + np.arange(len(rows))
    others = np.ones(len(out), np.bool_)
    others[mine] = False
    out[mine], out[others] = rows, items
    return out
