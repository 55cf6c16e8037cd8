"""The rule of lateness: which tuples are late, and how far each source has got (semantics, section 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from splitjoin.base.arrays import Ticks
from splitjoin.base.errors import InputError, WindowError
from splitjoin.lang.schema import SIDES, Side
from splitjoin.lang.time_columns import TimeColumns

from .source import SourceQueue
from .times import by_side, parse_idle, parse_lateness

#: The rules by which a tuple is late; `LatenessRule` says what each means.
Watermark = Literal["source", "min", "max", "spark"]
Queues = Mapping[Side, Sequence[SourceQueue]]

_MIN, _MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class LatenessRule:
    """The rule of lateness of a gate. A source's own mark is its highest event time, less the delay of its stream.

    A tuple is late if it is below the watermark: by ``"source"`` the own mark of its source, by ``"min"`` the least of
    the own marks of all sources that are open and not idle, by ``"max"`` the greatest own mark of all sources (stream
    time, less grace). ``"spark"`` is ``"min"``, and a tuple at the watermark is late too. A source's promise counts as
    its own mark, except in ``"max"``. It binds the source itself by every rule.

    Attributes:
        delays: For each stream how far behind a tuple may come, in ticks, from 0; None for a stream that has no say in
            the watermark.
        watermark: The rule.
        strict: True if a tuple below its source's own mark is an error instead of late.
        idle: For each stream the seconds of silence after which a source is idle; None for never.
    """

    delays: Mapping[Side, int | None]
    watermark: Watermark = "min"
    strict: bool = False
    idle: Mapping[Side, float | None] | None = None

    @classmethod
    def make(cls, lateness: Any, watermark: Any, idle: Any, time: TimeColumns) -> LatenessRule:
        """Check and parse a user's arguments; see `splitjoin.open`. Raises `WindowError` and `InputError`."""
        silence = None if idle is None else {side: parse_idle(one) for side, one in by_side(
            idle, "idle", "one time").items()}
        if watermark is not None and watermark not in get_args(Watermark):
            raise InputError(f"watermark must be 'source', 'min', 'max' or 'spark', not {watermark!r}")
        if lateness is None:
            if watermark is not None:
                raise InputError(f"watermark={watermark!r} says which tuples are late, so it needs a lateness; without "
                                 f"one, each source must be in order")
            return cls(dict.fromkeys(SIDES, 0), "source", True, silence)
        given = by_side(lateness, "lateness", "one lateness")
        delays = {side: None if given[side] is None else parse_lateness(given[side], time) for side in SIDES}
        if all(delay is None for delay in delays.values()):
            raise WindowError(f"lateness={lateness!r} leaves no stream to move the watermark; give the lateness of one "
                              f"stream at least")
        if watermark == "source" and None in delays.values():
            raise WindowError(f"lateness={lateness!r} needs watermark='min', 'max' or 'spark', as by 'source' each "
                              f"stream has a lateness of its own; give both")
        return cls(delays, watermark or "min", False, silence)

    def __str__(self) -> str:
        if self.strict:
            return "(none)"
        r, s = (self.delays[side] for side in SIDES)
        return f"{r if r == s else (r, s)} by {self.watermark}"

    def own(self, side: Side, queue: SourceQueue) -> int | None:
        """The own mark of a source of stream ``side``, in ticks; None if unknown."""
        delay = self.delays[side]
        return None if queue.highest is None or delay is None else queue.highest - delay + (self.watermark == "spark")

    def reached(self, queues: Queues, missing: Sequence[Side]) -> int | None:
        """The watermark of all sources; None if unknown, or by ``"source"``.

        ``missing``: the streams that may still get their first source.
        """
        if self.watermark == "source":
            return None
        return (max if self.watermark == "max" else min)(self._marks(queues, missing) or [], default=None)

    def mark(self, side: Side, queue: SourceQueue, reached: int | None) -> int | None:
        """The event time below which a source delivers nothing that is not late. ``reached``: by all sources."""
        return later(self.own(side, queue) if self.watermark == "source" else reached, queue.promise)

    def limits(self, side: Side, queue: SourceQueue, ts: Ticks, queues: Queues, missing: Sequence[Side]) -> Ticks:
        """The watermark before each of a source's next tuples at ``ts``, int64 (n,), without promises of its own."""
        delay = self.delays[side]
        own = np.full(len(ts), _MIN, np.int64)
        if delay is not None:
            own = queue.highest_before(ts, delay, self.watermark == "spark")
        if self.watermark == "source":
            return own
        others = self._marks(queues, missing, queue)
        if others is None:
            return np.full(len(ts), _MIN, np.int64)
        if self.watermark == "max":
            return np.maximum(own, _clipped(max(others, default=_MIN)))
        if delay is None:
            return np.full(len(ts), _clipped(min(others, default=_MIN)), np.int64)
        if queue.promise is not None:
            own = np.maximum(own, _clipped(queue.promise))
        return np.minimum(own, _clipped(min(others, default=_MAX)))

    def by_own_mark(self, side: Side) -> bool:
        """True if no tuple of a source of ``side`` is late that its source has not got, or promised, beyond."""
        return self.watermark in ("source", "min") and self.delays[side] is not None

    def _marks(self, queues: Queues, missing: Sequence[Side], but: SourceQueue | None = None) -> list[int] | None:
        """The marks of which the watermark is the least or the greatest, without that of the source ``but``.

        None if a source that counts has none yet: then there is no watermark.
        """
        counted = [(side, queue) for side in SIDES if self.delays[side] is not None for queue in queues[side]
                   if queue is not but]
        if self.watermark == "max":
            return [own for side, queue in counted if (own := self.own(side, queue)) is not None]
        marks = [later(self.own(side, queue), queue.promise) for side, queue in counted
                 if not queue.closed and not queue.idle]
        known = [mark for mark in marks if mark is not None]
        missed = any(self.delays[side] is not None for side in missing)
        return None if missed or len(known) < len(marks) else known


def later(a: int | None, b: int | None) -> int | None:
    """The later of two times, of which each may be unknown."""
    return max((t for t in (a, b) if t is not None), default=None)


def _clipped(time: int) -> int:
    return min(max(time, _MIN), _MAX)
