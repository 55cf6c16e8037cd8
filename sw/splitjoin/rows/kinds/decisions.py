"""The rule of decisions (semantics, section 7): which arrival decides a tuple that waits, and in which order rows come.

Whole tables ask it once, of all tuples; sessions ask it of those that are undecided, batch by batch. Golden has a form
of its own (`reference_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from splitjoin.base.arrays import Ints, Mask
from splitjoin.engines.arrival import Arrivals
from splitjoin.engines.device import ITEM, PAIR, Items, stars
from splitjoin.engines.merging import places_among
from splitjoin.engines.sorting import stable_order
from splitjoin.lang.kind import Kind
from splitjoin.lang.query import Query
from splitjoin.lang.schema import SIDES, Side

from .undecided import NEVER, later

#: For each row the position of the arrival that brings it, or before whose results it comes, and its stream.
Places = tuple[Ints, npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Decisions:
    """Tuples of one stream that are decided, by row id, and their partners, `NONE` for those without; (n,) each.

    ``at``: the positions of the arrivals that decide them; `NEVER` for the end of input. ``last``: for those that time
    decides, the last event time at which they could still have changed; `NEVER` for those that an arrival decides.
    """

    side: Side
    rows: Ints
    partners: Ints
    at: Ints
    last: Ints


class Segments:
    """Rows in segments behind each other, one at least, each with the row ids of R and of S (n,), −1 for NULL. They are
    concatenated only where somebody asks for ``r`` or ``s``.
    """

    def __init__(self, segments: Sequence[tuple[Ints, Ints]]):
        self.segments = segments

    def __len__(self) -> int:
        return sum(len(r) for r, _ in self.segments)

    @cached_property
    def r(self) -> Ints:
        """The row ids of R's tuples, of all segments."""
        return self._whole(0)

    @cached_property
    def s(self) -> Ints:
        """The row ids of S's tuples, of all segments."""
        return self._whole(1)

    def _whole(self, side: int) -> Ints:
        parts = [segment[side] for segment in self.segments]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class OrderedRows(Segments):
    """The rows of a query over whole tables, by row ids: ``r`` and ``s``, and further segments ``behind`` them.

    ``places`` finds, for each row, the arrival that brings it, or whose results it precedes, the number of arrivals at
    the end: int64 (n,); and its stream, as of `ITEM`.
    """

    def __init__(self, r: Ints, s: Ints, places: Callable[[], Places], behind: Sequence[tuple[Ints, Ints]] = ()):
        super().__init__([(r, s), *behind])
        self.places = places

    def items(self, query: Query, incoming: Arrivals) -> Items:
        """The rows as items, with a star for each arrival where the order of ``query`` has them."""
        has_stars = query.order.kind != "left" and not (query.is_pairs and query.order.kind == "none")
        at, side = self.places()
        others = stars(incoming.stream) if has_stars else np.empty(0, ITEM)
        items = np.empty(len(self.r) + len(others), ITEM)
        mine = np.arange(len(self.r)) + (at if has_stars else 0)
        rest = np.ones(len(items), np.bool_)
        rest[mine] = False
        items[rest] = others
        items["kind"][mine], items["side"][mine], items["r"][mine], items["s"][mine] = PAIR, side, self.r, self.s
        return items


def nearest_until(time: Ints, back_time: Ints) -> Ints:
    """The last times at which a partner behind tuples of R at ``time`` would be nearer than the one before them, at
    ``back_time``, or at which one could come at their own time.
    """
    apart = time.view(np.uint64) - back_time.view(np.uint64)
    return later(time, np.maximum(apart, np.uint64(1)) - np.uint64(1))


def choice_limits(kind: Kind, timed: bool, position: Ints, time: Ints, by: Ints, last: Ints, behind: Ints,
                  back_time: Ints) -> tuple[Ints, Ints]:
    """``by`` and ``last``, as `deciding_arrivals` takes them, of tuples of R, with what decides the choice of partners.

    A tuple that looks backward waits for those of its own time alone, to which its window must be narrowed. One that
    has the partner before it waits until none behind it can be nearer, or come at its own time.

    Args:
        kind: An as-of join's.
        timed: True if there is a time column; otherwise positions are the times.
        position: Where the tuples are in arrival order.
        time: Their times.
        by: What decides them without a choice; it may be changed.
        last: As ``by``.
        behind: Which of them have a partner before them, by their numbers here; for joins with the nearest partner.
        back_time: The times of these partners.
    """
    if kind.direction == "backward" and not (timed and kind.allow_exact):
        return position, last
    if kind.direction == "nearest":
        limits = last if timed else by
        limits[behind] = np.minimum(limits[behind], nearest_until(time[behind], back_time))
    return by, last


def deciding_arrivals(by: Ints, last: Ints, times: Ints | None, base: int, n: int) -> tuple[Ints, Ints]:
    """For tuples that wait, the ``at`` and ``last`` of `Decisions`; ``at`` is `NEVER` where no arrival decides yet.

    Args:
        by: The positions of the arrivals that decide the tuples whatever their times are; `NEVER` without one.
        last: The last event time at which each may change; `NEVER` without one.
        times: The event times of the arrivals, which rise; None without a time column.
        base: The position of the first of these arrivals.
        n: Their number.
    """
    if times is None:
        by = np.where(by < base + n, by, NEVER)
        return by, np.where(by < NEVER, NEVER, last)
    if not len(last) or int(last.min()) == NEVER:
        return by, last
    first = places_among(times, last, after=True)
    by_time = np.where(first < n, first + base, NEVER)
    return np.minimum(by_time, by), np.where(by_time <= by, last, NEVER)


def ordered(parts: Sequence[Decisions], end: int = NEVER) -> OrderedRows:
    """The rows of all ``parts``, R's before S's, each by row id, in total order: by the arrival that decides, before
    its own results by time, then by the last time. ``end``: the position for the end of input.
    """
    at, last = (np.concatenate([getattr(part, name) for part in parts]) for name in ("at", "last"))
    r, s = (np.concatenate([part.rows if part.side == side else part.partners for part in parts]) for side in SIDES)
    sides = np.concatenate([np.full(len(part.rows), SIDES.index(part.side), np.uint8) for part in parts])
    at = np.minimum(at, end)
    order = _order(at, last)
    if order is None:
        return OrderedRows(r, s, lambda: (at, sides))
    return OrderedRows(r[order], s[order], lambda: (at[order], sides[order]))


def _order(at: Ints, last: Ints) -> Ints | None:
    """The stable order by ``at``, then by ``last``; None if they are in it."""
    if bool(((at[1:] > at[:-1]) | ((at[1:] == at[:-1]) & (last[1:] >= last[:-1]))).all()):
        return None
    order = stable_order(last.view(np.uint64) ^ np.uint64(2**63))  # the order of times with a sign
    return order[stable_order(at[order])]


def places_before(at: Ints, waited: Ints) -> tuple[Ints, Mask]:
    """The places of rows that waited for the arrivals at positions ``waited`` among rows that came at ``at``: each
    is before the first of these that came no earlier. Both ascend. Returns the places (n,), and for all places whether
    a row of ``at`` has it (n + m,).
    """
    places = places_among(at, waited) + np.arange(len(waited))
    others = np.ones(len(at) + len(waited), np.bool_)
    others[places] = False
    return places, others
