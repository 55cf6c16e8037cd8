"""`KindOperator`: turns the pairs of an inner join into the rows of another kind of join, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.sliding import SlidingArray
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items, chosen_items, joined_items, stars
from splitjoin.engines.loops import loops
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from ..numbered import RowIds
from ..operator import RowBatch, RowOperator
from .decisions import Decisions, choice_limits, deciding_arrivals, ordered, places_before
from .own_side import OwnSide
from .undecided import MOST_ROWS, NEVER, NONE, Undecided

_MIN, _MAX = -(2**63), 2**63 - 1


class KindOperator(RowOperator):
    """Decides the rows of ``query``, whose kind is not inner, from arrivals and from the items of the inner join.

    When rows are decided, and where they stand, is told in section 7 of the semantics; their ``side`` is the stream of
    the tuple that waited. The state are the undecided tuples and the arrivals whose pairs are not known yet.

    ``bases``: True if the rows are all tuples of R, each when nothing can meet it any more, whatever the kind.
    """

    def __init__(self, query: Query, *, bases: bool = False):
        super().__init__(query)
        self._kind, self._bases = query.kind, bases
        self._timed = query.time is not None
        self._as_of = self._kind.is_asof and not bases
        self._unbounded = query.is_unbounded
        back: dict[str, int] = {}
        if self._as_of and self._kind.direction != "forward":
            back = {"back": NONE, "back_time": 0}
        query = query.narrowed
        self._undecided = {"r": Undecided(query.window_r, back | ({"s_first": 0} if bases else {})),
                           "s": Undecided(query.window_s, {})}
        self._stream, self._times = SlidingArray(np.uint8), SlidingArray()  # of arrivals whose pairs are not known
        self._own = {} if bases else {side: OwnSide.of(query, side) for side in SIDES if self._waits(side)}
        self._ruled_out = SlidingArray(np.uint8)  # of the same arrivals: 1 if its own side rules the tuple out
        self._done = [0, 0]  # the tuples of R and of S whose pairs, as probes, are known
        self._frontier: int | None = None

    @property
    def needed(self) -> tuple[int, int]:
        r, s = self._undecided["r"], self._undecided["s"]
        first_s = s.first
        if self._bases and len(r):  # R tuples keep partners that leave their window before them
            first_s = int(r["s_first"][0])
        elif self._as_of and "back" in r.numbers:
            back = r["back"]
            first_s = int(np.min(back[(r["open"] == 1) & (back != NONE)], initial=first_s))
        return r.first, first_s

    @property
    def done(self) -> tuple[int, int]:
        return self._done[0], self._done[1]

    def arrive(self, arrivals: Arrivals) -> None:
        self._stream.append(arrivals.stream)
        if arrivals.ts is not None:
            self._times.append(arrivals.ts)
        ruled_out = self._ruled_out.added(len(arrivals))
        ruled_out[:] = 0
        for side, own in self._own.items():
            if (mine := own.ruled_out(arrivals.table(side))).any():
                ruled_out[arrivals.positions(side)] = mine

    def take(self, items: Items, settled: tuple[int, int]) -> RowBatch:
        return self._rows(self._taken(items, settled))

    def advance(self, now: int) -> RowBatch:
        return self._rows(self._advanced(now))

    def close_before(self, first: RowIds) -> RowBatch:
        parts = []
        for side, row in zip(SIDES, first, strict=True):
            tuples = self._undecided[side]
            closed = min(max(row - tuples.first, 0), len(tuples))
            if self._waits(side):
                at = np.flatnonzero(tuples["open"][:closed])
                back = tuples["back"][at] if "back" in tuples.numbers else np.full(len(at), NONE)
                parts.append(self._close(side, at, back, np.full(len(at), NEVER), np.full(len(at), NEVER)))
            self._drop(side, closed)
        return self._rows(self._in_order(parts)[0])

    def finish(self, items: Items) -> RowBatch:
        return self._rows(self._finished(items))

    def between(self, arrivals: Arrivals, items: Items, warm: int, start: int | None, end: int | None) -> RowBatch:
        """The rows that times from ``start`` to before ``end`` decide or bring; None is no bound. This must be fresh.

        ``items``: those of the inner join over ``arrivals``, of which the first ``warm`` lie before ``start`` and the
        rest before ``end``. All tuples must be there that a row needs: with RANGE windows, those up to both lengths
        before ``start``. The rows of adjacent times, put together, are those of the whole query, in total order.
        """
        rest: Arrivals | None = arrivals
        if warm:
            before, rest = arrivals.split(warm)
            self.arrive(before)
            mine = np.where(items["side"] == 0, items["r"] >= len(before.r), items["s"] >= len(before.s))
            self._pass_over(self._taken(chosen_items(items, ~mine), (len(before.r), len(before.s))))
            items = chosen_items(items, mine)
        if start is not None:
            self._pass_over(self._advanced(start))
        if rest is not None:
            self.arrive(rest)
        if end is None:
            return self.finish(items)
        return RowBatch.joined([self.take(items, (len(arrivals.r), len(arrivals.s))), self.advance(end)])

    def _rows(self, decided: Items) -> RowBatch:
        """The rows of what is ``decided``."""
        return RowBatch(decided)

    def _pass_over(self, decided: Items) -> None:
        """Forget what is noted for the rows of what is ``decided``."""

    def _taken(self, items: Items, settled: tuple[int, int]) -> Items:
        """The rows that `take` gives, as items."""
        stream = self._stream.values
        n, of_s = len(stream), int(np.count_nonzero(stream))
        for side, count in enumerate((n - of_s, of_s)):
            left = settled[side] - self._done[side]
            if left < count:
                n = min(n, int(np.flatnonzero(stream == side)[left]))
        rows = self._process(items, n)
        if not len(self._stream) and self._frontier is not None:
            rows = _joined(rows, self._decide_before(self._frontier))
        return rows

    def _advanced(self, now: int) -> Items:
        """The rows that `advance` gives, as items."""
        self._frontier = now
        return np.empty(0, ITEM) if len(self._stream) else self._decide_before(now)

    def _finished(self, items: Items) -> Items:
        """The rows that `finish` gives, as items."""
        rows = self._process(items, len(self._stream))
        return _joined(rows, self._decide_before(None))

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
            count += int(np.searchsorted(times, max(now - r.extent.length, _MIN), side="left"))
        return r.first + count

    def stars(self, settled: tuple[int, int]) -> Items:
        """The stars of the noted arrivals up to row ids ``settled`` whose pairs are not known."""
        n = sum(settled) - sum(self._done)
        return stars(self._stream.values[:n], self.done)

    def state(self) -> dict[str, Ints]:
        # A frontier beyond int64 comes again with the first `advance`, from the gate's own state.
        frontier = [] if self._frontier is None else [min(max(self._frontier, _MIN), _MAX)]
        log = {"stream": self._stream.values.astype(np.int64), "times": self._times.values.copy(),
               "ruled_out": self._ruled_out.values.astype(np.int64), "done": np.array(self._done, np.int64),
               "frontier": np.array(frontier, np.int64)}
        return log | {f"{side}_{name}": values for side in SIDES
                      for name, values in self._undecided[side].state().items()}

    def restore(self, state: Mapping[str, Ints]) -> None:
        lengths = {len(state[name]) for name in ("stream", "ruled_out", *(["times"] if self._timed else []))}
        if len(lengths) > 1 or not np.isin(state["stream"], (0, 1)).all():
            raise ValueError("noted arrivals must have a stream, 0 or 1, and each of their other numbers")
        if len(state["done"]) != len(SIDES) or not ((state["done"] >= 0) & (state["done"] <= MOST_ROWS)).all():
            raise ValueError(f"the tuples whose pairs are known must be two numbers from 0 to {MOST_ROWS:,}")
        self._stream.append(state["stream"].astype(np.uint8))
        self._ruled_out.append(state["ruled_out"].astype(np.uint8))
        self._times.append(state["times"])
        self._done = state["done"].tolist()
        self._frontier = int(state["frontier"][0]) if len(state["frontier"]) else None
        for side in SIDES:
            self._undecided[side].restore({name.removeprefix(f"{side}_"): values for name, values in state.items()
                                           if name.startswith(f"{side}_")})
        r, s = self._undecided["r"], self._undecided["s"]
        if "back" in r.numbers and not ((r["back"] >= NONE) & (r["back"] < s.end)).all():
            raise ValueError(f"partners of undecided tuples must be among the {s.end:,} of S that have arrived")

    def _waits(self, side: Side) -> bool:
        """True if rows depend on what becomes of each tuple of ``side``."""
        if self._bases:
            return side == "r"
        return self._kind.gives_unmatched(side) or (side == "r" and self._kind.how in ("semi", "asof"))

    def _process(self, items: Items, n: int) -> Items:
        """The rows of the next ``n`` arrivals, whose pairs are in ``items``."""
        base = sum(self._done)
        if self._suits_loops and not self._ruled_out.values[:n].any():
            return self._process_by_loops(items, n, base)
        stream, ruled_out = self._stream.values[:n].copy(), self._ruled_out.values[:n].copy()
        times = self._times.values[:n].copy() if self._timed else None
        self._stream.drop(n)
        self._ruled_out.drop(n)
        if times is not None:
            self._times.drop(n)
        places = [np.flatnonzero(stream == number) for number in range(len(SIDES))]
        positions = [base + mine for mine in places]
        for side, mine, position in zip(SIDES, places, positions, strict=True):
            self._undecided[side].append(position, position if times is None else times[mine])
        # The items of an arrival, stars included, have the position of their probe.
        of_s = items["side"] != 0
        probe = np.where(of_s, items["s"] + (len(positions[0]) - self._done[1]), items["r"] - self._done[0])
        at = np.concatenate(positions)[probe]
        if self._bases:
            self._note_first_partners(len(places[0]), times, base, n)
        kept, chosen = self._note(items, at)
        parts = []
        for number, side in enumerate(SIDES):
            closed = self._undecided[side].closed(times)
            if self._waits(side):
                parts.append(self._decided(side, closed, ruled_out[places[number]], chosen, times, base, n))
            self._drop(side, closed)
            self._done[number] += len(places[number])
        given = items if self._kind.has_pairs and kept.all() else chosen_items(items, kept)
        if self._kind.how == "semi":
            given["s"][given["kind"] == PAIR] = NONE
        rows, waited = self._in_order(parts)
        return _merged(given, at[kept], rows, waited)

    @property
    def _suits_loops(self) -> bool:
        """True if tuples are decided in the order of their row ids: by their window alone, or for a partner before
        them.
        """
        return not (self._bases or self._unbounded or (self._as_of and self._kind.direction != "backward"))

    def _process_by_loops(self, items: Items, n: int, base: int) -> Items:
        """As `_process`, where no tuple is ruled out by its own side."""
        stream = self._stream.values[:n]
        times = self._times.values[:n] if self._timed else np.arange(base, base + n)
        of_s = int(np.count_nonzero(stream))
        counts, tuples = (n - of_s, of_s), [self._undecided[side] for side in SIDES]
        r, s = tuples
        loops()["spread_arrivals"](stream, times, base, *r.added(n - of_s), *s.added(of_s))
        closed = [one.closed(times if self._timed else None) for one in tuples]
        waits = [self._waits(side) for side in SIDES]
        opened = [one["open"] if waiting else np.empty(0, np.int64) for one, waiting in zip(tuples, waits, strict=True)]
        positions = [one["position"][len(one) - new:] for one, new in zip(tuples, counts, strict=True)]
        items = np.ascontiguousarray(items)
        at, found = np.empty(len(items), np.int64), np.empty(3, np.int64)
        exact, at_once = self._kind.allow_exact, self._as_of and not (self._timed and self._kind.allow_exact)
        ends = (len(r), 0) if self._as_of else closed  # of those that may be decided
        back = r["back"] if self._as_of else np.empty(0, np.int64)
        loops()["note_items"](
            items, positions[0], positions[1], self._done[0], self._done[1], r.first, s.first, opened[0], opened[1],
            2 if self._kind.has_pairs else int(self._kind.how == "semi"), ends[0], ends[1], back, r["time"], s["time"],
            exact, at, found)
        gives = [int(self._kind.gives_unmatched(side)) for side in SIDES]
        if self._kind.how == "asof":
            gives[0] = 2
        kept, *left = found.tolist()
        if kept < 0:
            raise ValueError("items must be of tuples that have arrived, and not before")
        out = np.empty(kept + sum(some for some, of in zip(left, gives, strict=True) if of), ITEM)
        made = loops()["write_rows"](
            items, at, self._kind.how == "semi", times, base, back,
            r.first, r["position"], r["time"], opened[0], ends[0], r.about(gives[0], at_once),
            s.first, s["position"], s["time"], opened[1], ends[1], s.about(gives[1], False), out)
        for number, side in enumerate(SIDES):
            self._drop(side, closed[number])
            self._done[number] += counts[number]
        for noted in (self._stream, self._ruled_out, *([self._times] if self._timed else [])):
            noted.drop(n)
        return out[:made]

    def _decide_before(self, now: int | None) -> Items:
        """The rows that event time ``now`` decides; None is the end of input."""
        parts = []
        for side in SIDES:
            tuples = self._undecided[side]
            closed = len(tuples) if now is None else tuples.before(now)
            end = closed if not self._as_of or self._kind.direction == "forward" else len(tuples)
            if self._waits(side) and end and len(at := np.flatnonzero(tuples["open"][:end])):
                last = self._limits(side, at)[1]
                if now is not None:
                    at, last = at[last < now], last[last < now]
                back = tuples["back"][at] if "back" in tuples.numbers else np.full(len(at), NONE)
                parts.append(self._close(side, at, back, np.full(len(at), NEVER), last))
            self._drop(side, closed)
        return self._in_order(parts)[0]

    def _drop(self, side: Side, closed: int) -> None:
        """Drop the tuples on which the window has ``closed``, and of R those that no row needs any more."""
        tuples = self._undecided[side]
        if side == "s" and self._unbounded:
            closed = len(tuples)  # the device knows which ones are needed
        if side == "r" and not self._bases and not self._kind.has_pairs:
            closed = tuples.first_open - tuples.first
        if closed:
            tuples.drop(closed)

    def _note_first_partners(self, new: int, times: Ints | None, base: int, n: int) -> None:
        """Note the first tuple of S that each of the last ``new`` tuples of R finds."""
        r, s = self._undecided["r"], self._undecided["s"]
        if new:
            left = np.arange(s.closed(times))
            gone, _ = deciding_arrivals(s.pushed_out(left), s.last_times(left), times, base, n)
            r["s_first"][-new:] = s.first + np.searchsorted(gone, r["position"][-new:], side="right")

    def _note(self, items: Items, at: Ints) -> tuple[Mask, tuple[Ints, Ints] | None]:
        """Note the pairs in ``items``, whose probes have positions ``at``. True for each item that is a row, or a star;
        and `_choose`'s, for as-of joins.
        """
        pair = items["kind"] == PAIR
        if self._bases:
            return ~pair, None
        r, s = self._undecided["r"], self._undecided["s"]
        in_r, in_s = items["r"][pair] - r.first, items["s"][pair] - s.first
        if self._unbounded:
            left = (in_r >= 0) & (r["open"][in_r] == 1)
            r["back"][in_r[left]] = items["s"][pair][left]  # of the pairs of a tuple of R the last one decides
            return ~pair, None
        if self._as_of:
            return ~pair, self._choose(in_r, in_s, at[pair])
        kept = np.ones(len(items), np.bool_) if self._kind.has_pairs else ~pair
        if not self._kind.has_pairs:
            in_r = in_r[left := in_r >= 0]  # others have a pair, and were dropped
            if self._kind.how == "semi":
                _, firsts = np.unique(in_r, return_index=True)
                firsts = firsts[r["open"][in_r[firsts]] == 1]
                kept[np.flatnonzero(pair)[left][firsts]] = True
        if self._waits("r"):
            r["open"][in_r] = 0
        if self._waits("s"):
            s["open"][in_s] = 0
        return kept, None

    def _choose(self, in_r: Ints, in_s: Ints, at: Ints) -> tuple[Ints, Ints] | None:
        """Note the last partner before each undecided tuple of R. Of all these tuples, the positions at which a first
        partner behind them was found, `NEVER` for others, and its row id; None if there is no such partner.
        """
        r, s = self._undecided["r"], self._undecided["s"]
        left = np.flatnonzero((in_r >= 0) & (in_s >= 0))
        left = left[r["open"][in_r[left]] == 1]
        in_r, in_s, at = in_r[left], in_s[left], at[left]
        time_r, time_s = r["time"][in_r], s["time"][in_s]
        exact, direction = self._kind.allow_exact, self._kind.direction
        if direction != "forward":
            before = time_s <= time_r if exact else time_s < time_r
            # Pairs come in the order of S's row ids, so the last one of a tuple of R stays.
            r["back"][in_r[before]] = in_s[before] + s.first
            r["back_time"][in_r[before]] = time_s[before]
        behind = np.flatnonzero(time_s >= time_r if exact and direction == "forward" else time_s > time_r)[::-1]
        if direction == "backward" or not len(behind):
            return None
        found_at, partner = np.full(len(r), NEVER), np.full(len(r), NONE)
        found_at[in_r[behind]], partner[in_r[behind]] = at[behind], in_s[behind] + s.first  # the first one stays
        return found_at, partner

    def _decided(self, side: Side, closed: int, ruled_out: npt.NDArray[np.uint8], chosen: tuple[Ints, Ints] | None,
                 times: Ints | None, base: int, n: int) -> Decisions:
        """The tuples of ``side`` that the ``n`` arrivals from position ``base`` on decide.

        ``closed``: on how many the window has closed. ``ruled_out``: of its new tuples. ``chosen``: as `_choose` gives
        it.
        """
        tuples, direction = self._undecided[side], self._kind.direction
        new = len(tuples) - len(ruled_out)
        if self._as_of and direction != "forward":
            at = np.flatnonzero(tuples["open"])
        elif chosen is None and not ruled_out.any():
            at = np.flatnonzero(tuples["open"][:closed])
        else:
            some = np.zeros(len(tuples), np.bool_) if chosen is None else chosen[0] != NEVER
            some[:closed] |= tuples["open"][:closed] == 1
            some[new:] |= ruled_out == 1
            at = np.flatnonzero(some)
        if not len(at):
            return self._close(side, at, at, at, at)
        partner = tuples["back"][at] if "back" in tuples.numbers else np.full(len(at), NONE)
        alone = None
        if ruled_out.any():
            alone = at >= new
            alone[alone] = ruled_out[at[alone] - new] == 1
        by, last = self._limits(side, at, alone)
        decides, last = deciding_arrivals(by, last, times, base, n)
        if chosen is not None:
            found_at = chosen[0][at]
            wins = (found_at < decides) | ((found_at == decides) & (last == NEVER) & (found_at < NEVER))
            partner = np.where(wins, chosen[1][at], partner)
            decides, last = np.minimum(decides, found_at), np.where(wins, NEVER, last)
        done = decides < NEVER
        return self._close(side, at[done], partner[done], decides[done], last[done])

    def _close(self, side: Side, index: Ints, partner: Ints, at: Ints, last: Ints) -> Decisions:
        """Note that the tuples ``index`` of ``side`` are decided, and give those that are rows."""
        tuples = self._undecided[side]
        tuples["open"][index] = 0
        if not self._bases and not self._kind.gives_unmatched(side):
            some = partner != NONE
            index, partner, at, last = index[some], partner[some], at[some], last[some]
        return Decisions(side, tuples.first + index, partner, at, last)

    def _limits(self, side: Side, at: Ints, alone: Mask | None = None) -> tuple[Ints, Ints]:
        """What decides the open tuples ``at`` of ``side``, as `deciding_arrivals` takes it. ``alone``: True for those
        that their own side rules out; None if there are none.
        """
        tuples = self._undecided[side]
        by, last = tuples.pushed_out(at), tuples.last_times(at)
        if alone is not None:
            by[alone] = tuples["position"][at[alone]]
        if not self._as_of:
            return by, last
        position = tuples["position"][at]
        behind = back_time = np.empty(0, np.int64)
        if self._kind.direction == "nearest":
            behind = np.flatnonzero(tuples["back"][at] != NONE)
            back_time = tuples["back_time"][at[behind]]
        return choice_limits(self._kind, self._timed, position, tuples["time"][at], by, last, behind, back_time)

    def _in_order(self, parts: Sequence[Decisions]) -> tuple[Items, Ints]:
        """The rows of all ``parts`` in total order, and the positions of the arrivals that decide them."""
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            return np.empty(0, ITEM), np.empty(0, np.int64)
        rows = ordered(parts)
        at, sides = rows.places()
        items = np.empty(len(at), ITEM)
        items["kind"], items["side"], items["r"], items["s"] = PAIR, sides, rows.r, rows.s
        return items, at


def _joined(rows: Items, others: Items) -> Items:
    return joined_items([rows, others]) if len(others) else rows


def _merged(items: Items, at: Ints, rows: Items, waited: Ints) -> Items:
    """``rows``, which wait for the arrivals at positions ``waited``, before the first of ``items`` from there on."""
    if not len(rows):
        return items
    out = np.empty(len(items) + len(rows), ITEM)
    mine, others = places_before(at, waited)
    whole = f"V{ITEM.itemsize}"  # as bytes, since NumPy copies records field by field
    out.view(whole)[mine], out.view(whole)[others] = rows.view(whole), np.ascontiguousarray(items).view(whole)
    return out
