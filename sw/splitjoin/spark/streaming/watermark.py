"""The watermark of a streaming join: what is late, and how far it advances when a stream is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from splitjoin.lang.schema import SIDES, Side

__all__ = ["Progress", "WatermarkRule"]


def _none() -> dict[Side, int | None]:
    return dict.fromkeys(SIDES)


@dataclass(frozen=True)
class Progress:
    """Record of the event times of both streams after a micro-batch.

    Attributes:
        greatest: The greatest event time of each stream so far, in ticks; None before its first tuple.
        silent: For each stream the time, in milliseconds since 1970, of the first micro-batch since its last tuple;
            None if the last micro-batch had one.
        watermark: The event time below which no tuple comes any more that is not late, in ticks; None if none is
            known. It never falls.
        limits: For each stream the event time below which its tuples are late, at least the watermark; None if none is.
    """

    greatest: Mapping[Side, int | None] = field(default_factory=_none)
    silent: Mapping[Side, int | None] = field(default_factory=_none)
    watermark: int | None = None
    limits: Mapping[Side, int | None] = field(default_factory=_none)


@dataclass(frozen=True)
class WatermarkRule:
    """The rule by which the watermark advances.

    Attributes:
        delays: For each stream, how far behind its greatest event time a tuple may come, in ticks; None for a stream
            that has no say in the watermark.
        idle: For each stream, after how many milliseconds without a tuple it no longer holds the watermark back; None
            for never.
        policy: "min": the watermark is the least of both streams'; "max": the greatest; "source": as "min", and a tuple
            is late by its own stream (semantics, section 9).
        beyond: True if a tuple at the watermark is late too.
    """

    delays: Mapping[Side, int | None]
    idle: Mapping[Side, int | None] = field(default_factory=_none)
    policy: Literal["min", "max", "source"] = "min"
    beyond: bool = False

    def after(self, before: Progress, greatest: Mapping[Side, int | None], now: int) -> Progress:
        """The progress after a micro-batch at the time ``now``, in milliseconds since 1970.

        ``greatest``: the greatest event time of each stream in the micro-batch; None for a stream without tuples.
        """
        whole = {side: _latest(before.greatest[side], greatest[side]) for side in SIDES}
        # Counted from the first micro-batch without a tuple: so the time in which the query was stopped does not count
        # unless the stream was silent before.
        silent = {side: None if greatest[side] is not None else now if before.silent[side] is None else
                  before.silent[side] for side in SIDES}
        mark = self._watermark(whole, silent, now)
        watermark = _latest(before.watermark, mark)
        limits = {side: _latest(before.limits[side], watermark, self._own(side, whole[side])
                                if self.policy == "source" else None) for side in SIDES}
        return Progress(whole, silent, watermark, limits)

    def _own(self, side: Side, greatest: int | None) -> int | None:
        delay = self.delays[side]
        return None if delay is None or greatest is None else greatest - delay + self.beyond

    def _watermark(self, greatest: Mapping[Side, int | None], silent: Mapping[Side, int | None],
                   now: int) -> int | None:
        times: list[int] = []
        for side in SIDES:
            if self.delays[side] is None or (self.policy != "max" and self._is_idle(side, silent[side], now)):
                continue
            own = self._own(side, greatest[side])
            if own is not None:
                times.append(own)
            elif self.policy != "max":
                return None  # nothing is known of a stream that counts
        return (max if self.policy == "max" else min)(times, default=None)

    def _is_idle(self, side: Side, silent: int | None, now: int) -> bool:
        limit = self.idle[side]
        return limit is not None and silent is not None and now - silent >= limit


def _latest(*times: int | None) -> int | None:
    return max((t for t in times if t is not None), default=None)
