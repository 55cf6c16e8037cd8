"""Streams, windows and times as users write them, for errors, `explain` and the names of Spark's plan nodes."""

from __future__ import annotations

from collections.abc import Mapping

from splitjoin.base.errors import plural
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side
from splitjoin.lang.types import TIME_UNITS, TimeUnit

#: Stream → the name that users of `stream_join` have for its DataFrame.
WHICH: Mapping[Side, str] = {"r": "left", "s": "right"}

#: Units from the largest, in nanoseconds.
_UNITS = (("day", 86400 * 10**9), ("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 10**3),
          ("ns", 1))


def duration(ticks: int, tick: TimeUnit) -> str:
    """``ticks`` in the largest unit that gives a whole number, such as ``"90 s"``."""
    ns = ticks * TIME_UNITS[tick]
    name, size = next((unit for unit in _UNITS if ns >= unit[1] and ns % unit[1] == 0), (tick, TIME_UNITS[tick]))
    return f"{ns // size} {name}{'s' if name == 'day' and ns != size else ''}"


def extent(query: Query, side: Side) -> str:
    """The window of stream ``side`` in words."""
    if query.is_unbounded:
        return "the last row of each key" if side == "s" else "none"
    window = query.window(side)
    tick = None if query.time is None else query.time.tick
    parts = [f"the last {window.rows} {plural(window.rows, 'row')}"] if window.rows is not None else []
    if window.length is not None:
        parts.append(f"the last {window.length if tick is None else duration(window.length, tick)}")
    return " within ".join(parts)
