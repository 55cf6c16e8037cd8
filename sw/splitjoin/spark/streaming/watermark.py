"""The watermark of a streaming join: what is late, and how far it advances when a stream is silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from splitjoin.lang.schema import SIDES, Side


def _none() -> dict[Side, int | None]:
    return dict.fromkeys(SIDES)


@dataclass(frozen=True)
class Progress:
    """Record of the event times of both streams after a micro-batch.

    Attributes:
        greatest: The greatest event time of each stream so far, in ticks; None before its first tuple.
        silent: For each stream the time, in milliseconds since 1970, of the first micro-batch since its last tuple;
            None if the last micro-batch had one.
        watermark: The event time below which no tuple of a later micro-batch comes that is not late, in ticks; None if
            none is known. It never falls.
        limits: For each stream the event time below which tuples of the micro-batch were late; None if none was.
        run: The run of the query that ``greatest`` is of, where that matters, else empty.
    """

    greatest: Mapping[Side, int | None] = field(default_factory=_none)
    silent: Mapping[Side, int | None] = field(default_factory=_none)
    watermark: int | None = None
    limits: Mapping[Side, int | None] = field(default_factory=_none)
    run: str = ""


@dataclass(frozen=True)
class BatchTimes:
    """The part of a micro-batch that its watermark depends on.

    Attributes:
        greatest: The greatest event time of each stream, in ticks; None for a stream without tuples.
        now: Its time in milliseconds since 1970.
        run: A name of the run of the query, another one after each restart.
        watermarks: Those that Spark has for it, by which tuples are late and by which state is evicted, in
            milliseconds since 1970; None if it was not asked.
    """

    greatest: Mapping[Side, int | None]
    now: int = 0
    run: str = ""
    watermarks: tuple[int, int] | None = None


class Watermarks(Protocol):
    """The rule by which the watermark advances."""

    @property
    def beyond(self) -> bool:
        """True if a tuple at the watermark is late too."""

    def after(self, before: Progress, batch: BatchTimes) -> Progress:
        """The progress after ``batch``."""


@dataclass(frozen=True)
class SparkWatermarks:
    """The watermarks that Spark has for each micro-batch of a join, for event times in µs (decision 130)."""

    beyond: bool = True

    def after(self, before: Progress, batch: BatchTimes) -> Progress:
        """The progress after ``batch``, which has Spark's watermarks."""
        assert batch.watermarks is not None, "the rule of Catalyst sends them with the rows"
        late, evicted = (1000 * time + self.beyond for time in batch.watermarks)
        return Progress(watermark=evicted, limits=dict.fromkeys(SIDES, late))


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
        beyond: True for Spark's rule: a tuple at the watermark is late too, and a micro-batch moves the watermark of
            the next one.
        lags: By Spark's rule, True if a row is late by the watermark of the micro-batch before, False if by that by
            which state is evicted.
        spark: The ticks of a millisecond where Spark has such watermarks, else None: it counts in milliseconds, begins
            with 1970, and forgets the greatest times when the query starts again.
    """

    delays: Mapping[Side, int | None]
    idle: Mapping[Side, int | None] = field(default_factory=_none)
    policy: Literal["min", "max", "source"] = "min"
    beyond: bool = False
    lags: bool = True
    spark: int | None = None

    def after(self, before: Progress, batch: BatchTimes) -> Progress:
        """The progress after ``batch``."""
        forgets = self.spark is not None and batch.run != before.run
        whole = {side: _latest(None if forgets else before.greatest[side], batch.greatest[side]) for side in SIDES}
        # Counted from the first micro-batch without a tuple: so the time in which the query was stopped does not count
        # unless the stream was silent before.
        silent = {side: None if batch.greatest[side] is not None else batch.now if before.silent[side] is None else
                  before.silent[side] for side in SIDES}
        reached = _latest(before.watermark, None if self.spark is None else int(self.beyond))
        moved = _latest(reached, self._watermark(before.greatest if self.beyond else whole, silent, batch.now))
        own = {side: self._own(side, before.greatest[side]) if self.policy == "source" else None for side in SIDES}
        by = moved if self.beyond and not self.lags else reached
        limits = {side: _latest(before.limits[side], by, own[side]) for side in SIDES}
        return Progress(whole, silent, moved, limits, "" if self.spark is None else batch.run)

    def _own(self, side: Side, greatest: int | None) -> int | None:
        delay = self.delays[side]
        if delay is None or greatest is None:
            return None
        return greatest - (greatest % self.spark if self.spark else 0) - delay + self.beyond

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
