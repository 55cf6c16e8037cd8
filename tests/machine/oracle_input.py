"""Arrival order, readiness and lateness by brute force, from sections 1 and 9 of docs/semantics.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

R, S = 0, 1
_NEVER = -(1 << 60)


class Arrival(NamedTuple):
    """A tuple: its place in arrival order (``ts``, ``side``, ``source``, ``position``), its value, None for NULL."""

    ts: int
    side: int
    source: int
    position: int
    value: int | None
    name: int


@dataclass
class _Source:
    side: int
    number: int  # among all sources of its side, in the order in which they were added
    greatest: int | None = None
    heartbeat: int | None = None
    closed: bool = False
    idle: bool = False
    delivered: int = 0
    spoke_at: float = 0.0

    def own_mark(self, delay: int | None, less: int = 0) -> int | None:
        """Greatest event time less the delay, or the latest heartbeat, ``less`` so many ticks, if that is greater."""
        marks = [mark for mark in (None if self.heartbeat is None else self.heartbeat - less,
                                   None if self.greatest is None or delay is None
                                   else self.greatest - delay) if mark is not None]
        return max(marks, default=None)


@dataclass
class Input:
    """What the sources of both streams have delivered, which tuples were late, and which are ready.

    ``delays`` are the lateness of R and of S (None for a stream that has no say), or None where each source must be in
    order; ``rule`` is the rule by which a tuple is late. ``at_once`` says that tuples are joined as they come.
    ``silence`` are the seconds after which a source of R and of S is idle, and ``now`` is the time by which they count.
    """

    sides: list[int]
    delays: tuple[int | None, int | None] | None
    rule: str = "min"
    at_once: bool = False
    silence: tuple[float | None, float | None] = (None, None)
    now: float = 0.0
    accepted: list[Arrival] = field(default_factory=list)
    late: list[Arrival] = field(default_factory=list)
    sequence: list[Arrival] = field(default_factory=list)
    watermark: int = _NEVER
    reached: list[tuple[int, int, int] | None] = field(default_factory=lambda: [None, None])  # for tuples of R, of S

    def __post_init__(self) -> None:
        self.sources = [_Source(side, self.sides[:i].count(side)) for i, side in enumerate(self.sides)]

    def add(self, side: int) -> int:
        """Add a source of stream ``side``; its number in ``sources``."""
        number = sum(source.side == side for source in self.sources)
        self.sources.append(_Source(side, number, spoke_at=self.now))
        return len(self.sources) - 1

    def least_in_order(self, index: int) -> int:
        """The least time that a source may deliver without error where each must be in order."""
        source = self.sources[index]
        place = self._next_place(source)[0]
        return max(source.greatest or 0, source.heartbeat or 0, place if self.delays is None else 0)

    def push(self, index: int, tuples: list[tuple[int, int | None, int]], shed: frozenset[int] = frozenset()) -> None:
        """Deliver (ts, value, name) of one source, judged one by one. Those of the names ``shed`` are dropped under
        load: time goes on with them, and nothing else.
        """
        source = self.sources[index]
        for ts, value, name in tuples:
            arrival = Arrival(ts, source.side, source.number, source.delivered, value, name)
            source.idle = False  # it has a say from now on
            self.watermark = max(self.watermark, self._moved_watermark())
            source.delivered += 1
            late = self._is_late(source, arrival)
            assert not (late and name in shed), "late tuples are late, and not dropped"
            if late:
                self.late.append(arrival)
            elif name not in shed:
                self.accepted.append(arrival)
            if not late:
                source.greatest = ts if source.greatest is None else max(ts, source.greatest)
            source.spoke_at = self.now
            self._advance()

    def heartbeat(self, index: int, ts: int) -> None:
        """A source's promise to deliver nothing below ``ts``."""
        source = self.sources[index]
        source.idle = False
        source.spoke_at = self.now
        source.heartbeat = ts if source.heartbeat is None else max(ts, source.heartbeat)
        self._advance()

    def idle(self, index: int) -> None:
        """A source is silent, and nothing waits for it."""
        self.sources[index].idle = True
        self._advance()

    def wait(self, seconds: float) -> None:
        """Time passes in which no source speaks."""
        self.now += seconds
        for source in self.sources:
            limit = self.silence[source.side]
            if limit is not None and self.now - source.spoke_at >= limit:
                source.idle = True
        self._advance()

    def close(self, index: int) -> None:
        """A source will deliver nothing more."""
        self.sources[index].closed = True
        self._advance()

    def least_time(self) -> int:
        """The least event time of what can still come."""
        place = self.reached[R]
        return _NEVER if place is None else place[0]

    def joined(self, sorted_side: int | None) -> list[Arrival]:
        """The tuples that are joined so far where they are joined as they come, those of ``sorted_side`` in order."""
        place = None if sorted_side is None else self.reached[sorted_side]
        ended = all(source.closed for source in self.sources if source.side == sorted_side)
        return sorted(arrival for arrival in self.accepted if arrival.side != sorted_side or ended or (
            place is not None and arrival[:3] <= place))

    def finish(self) -> None:
        """All sources are closed."""
        for source in self.sources:
            source.closed = True
        self._advance()

    def _delay(self, source: _Source) -> int | None:
        return 0 if self.delays is None else self.delays[source.side]

    def _has_say(self, source: _Source) -> bool:
        return self._delay(source) is not None

    def _is_late(self, source: _Source, arrival: Arrival) -> bool:
        if self.delays is None:
            return False
        if source.heartbeat is not None and arrival.ts < source.heartbeat:
            return True
        if self.rule == "source":
            mark = source.own_mark(self._delay(source))
            if mark is not None and arrival.ts < mark:
                return True
        elif arrival.ts < self.watermark or (self.rule == "spark" and arrival.ts == self.watermark):
            return True
        reached = self.reached[source.side if self.at_once else R]
        return reached is not None and arrival[:3] < reached

    def _moved_watermark(self) -> int:
        if self.rule == "max":
            return max((source.greatest - delay for source in self.sources
                        if source.greatest is not None and (delay := self._delay(source)) is not None), default=_NEVER)
        marks = [source.own_mark(self._delay(source), self.rule == "spark") for source in self.sources
                 if not source.closed and not source.idle and self._has_say(source)]
        if not marks or None in marks:
            return _NEVER
        return min(mark for mark in marks if mark is not None)

    def _bound(self, source: _Source) -> int:
        """The least time of what a source may still deliver without being late."""
        if self.delays is None or self.rule == "source":
            mark = source.own_mark(self._delay(source))
            return _NEVER if mark is None else mark
        bounds = [self.watermark + (self.rule == "spark" and self.watermark != _NEVER)]
        if source.heartbeat is not None:
            bounds.append(source.heartbeat)
        return max(bounds)

    def _frontier(self, own_side: int | None = None) -> tuple[int, int, int] | None:
        """The first place in arrival order that can still be taken: (ts, side, source); None if nothing moves."""
        waited_for = [source for source in self.sources if not source.closed and not source.idle
                      and own_side in (None, source.side)]
        if not waited_for:
            return None
        return min(self._next_place(source) for source in waited_for)

    def _next_place(self, source: _Source) -> tuple[int, int, int]:
        """The first place that a source can still take: one before what others have got to would be late."""
        place = self._bound(source), source.side, source.number
        reached = self.reached[source.side if self.at_once else R]
        if reached is None or place >= reached:
            return place
        return reached[0] + (place[1:] < reached[1:]), *place[1:]

    def _advance(self) -> None:
        self.watermark = max(self.watermark, self._moved_watermark())
        for side in (R, S):
            place = self._frontier(own_side=side) if self.at_once else self._frontier()
            if place is None and self.at_once and (other := self._frontier()) is not None:
                place = other[0], side, 0  # its own stream has none that others wait for
            before = self.reached[side]
            if place is not None and (before is None or place > before):
                self.reached[side] = place
        if all(source.closed for source in self.sources):
            ready = self.accepted[:]
            times = [source.greatest for source in self.sources if source.greatest is not None]
            if times and not self.at_once:  # a source that is added now comes behind all that is there
                end = (max(times), S + 1, 0)
                self.reached = [max(end, before or end) for before in self.reached]
        elif (frontier := self._frontier()) is not None:
            ready = [arrival for arrival in self.accepted if arrival[:3] <= frontier]
        else:
            return
        done = set(self.sequence)
        self.sequence += sorted(arrival for arrival in ready if arrival not in done)
