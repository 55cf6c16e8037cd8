"""The tuples of a stream that are not decided yet, and those that later pairs may still contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from splitjoin.base.arrays import Ints
from splitjoin.base.sliding import SlidingArray
from splitjoin.lang.windows import Extent

#: A partner that does not exist, and an arrival that has not come.
NONE, NEVER = -1, 2**63 - 1
#: The greatest row id of a state: sums of two and more tuples fit 64 bits.
MOST_ROWS = 2**61
_MIN = -(2**63)


class Undecided:
    """The tuples of one stream from row id ``first`` to before ``end``, each with some numbers.

    The window closes on tuples in the order of their row ids: with ``ROWS n`` at the n-th tuple of the stream after
    one, with ``RANGE l`` at the first arrival more than l later, with both whichever comes first.

    Attributes:
        extent: The stream's window.
        numbers: By name. ``position``: the tuple's number in arrival order. ``time``: its event time, or its position
            without a time column. ``open``: 1 until it is decided. Others as the kind of join needs.
    """

    def __init__(self, extent: Extent, defaults: Mapping[str, int]):
        self.extent, self._defaults = extent, dict(defaults)
        self.numbers = {name: SlidingArray() for name in ("position", "time", "open", *defaults)}
        self.first = 0

    def __len__(self) -> int:
        return len(self.numbers["position"])

    @property
    def end(self) -> int:
        """The row id of the next tuple."""
        return self.first + len(self)

    @property
    def first_open(self) -> int:
        """The row id of the first tuple that is not decided; `end` if all are."""
        left = self["open"]
        at = int(left.argmax()) if len(left) else 0
        return self.first + (at if len(left) and left[at] else len(left))

    def __getitem__(self, name: str) -> Ints:
        """The numbers ``name``: a view, valid until the next change."""
        return self.numbers[name].values

    def append(self, position: Ints, time: Ints) -> None:
        """Add tuples at the end."""
        given = {"position": position, "time": time, "open": 1, **self._defaults}
        for name, values in given.items():
            self.numbers[name].added(len(position))[:] = values

    def added(self, n: int) -> tuple[Ints, Ints]:
        """Add ``n`` tuples at the end, and return views of their positions and times, to be filled before the next
        change.
        """
        found = {name: numbers.added(n) for name, numbers in self.numbers.items()}
        found["open"][:] = 1
        for name, value in self._defaults.items():
            found[name][:] = value
        return found["position"], found["time"]

    def about(self, gives: int, at_once: bool) -> Ints:
        """The settings of this stream as numbers for compiled loops (`Deciding` of ``kinds.hpp``): int64 (5,).
        ``gives``: which of its decided tuples are rows: 0 none, 1 all, 2 those with a partner. ``at_once``: True if its
        tuples are decided as they arrive.
        """
        length, rows = self.extent.length, self.extent.rows
        long = np.array([min(length or 0, 2**64 - 1)], np.uint64).view(np.int64)
        return np.array([gives, length is not None, long[0], min(rows or 0, NEVER // 2), at_once], np.int64)

    def last_times(self, at: Ints | slice) -> Ints:
        """The last event time of an arrival that still finds the tuples ``at``; `NEVER` without a RANGE."""
        time = self["time"][at]
        if self.extent.length is None:
            return np.full(len(time), NEVER)
        return later(time, np.uint64(min(self.extent.length, 2**64 - 1)))

    def pushed_out(self, at: Ints) -> Ints:
        """The positions of the arrivals that push the tuples ``at`` out of a window of ROWS; `NEVER` if none has."""
        found = np.full(len(at), NEVER)
        if self.extent.rows is not None:
            by = at + min(self.extent.rows, NEVER // 2)
            there = by < len(self)
            found[there] = self["position"][by[there]]
        return found

    def closed(self, times: Ints | None) -> int:
        """The number of tuples on which the window has closed, after arrivals with event ``times``, None without a time
        column; the tuples of these arrivals must have been appended.
        """
        rows = self.extent.rows
        count = 0 if rows is None else max(len(self) - rows, 0)
        return count if times is None or not len(times) else max(count, self.before(int(times[-1])))

    def before(self, now: int) -> int:
        """The number of tuples that an arrival at event time ``now`` does not find, by the RANGE window."""
        if self.extent.length is None:
            return 0
        return int(np.searchsorted(self["time"], max(now - self.extent.length, _MIN), side="left"))

    def drop(self, n: int) -> None:
        """Remove the first ``n`` tuples."""
        for numbers in self.numbers.values():
            numbers.drop(n)
        self.first += n

    def state(self) -> dict[str, Ints]:
        """All that `restore` needs."""
        return {"first": np.array([self.first], np.int64)} | {name: self[name].copy() for name in self.numbers}

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another one of the same query; there must be no tuples yet."""
        self.first = int(state["first"][0])
        if not 0 <= self.first <= MOST_ROWS:
            raise ValueError(f"row ids must be from 0 to {MOST_ROWS:,}, not {self.first:,}")
        if len({len(state[name]) for name in self.numbers}) > 1:
            raise ValueError("there are more numbers of some kinds than of others")
        for name, numbers in self.numbers.items():
            numbers.append(state[name])


def later(time: Ints, by: Any) -> Ints:
    """``time`` and the unsigned numbers ``by``, `NEVER` where the sum does not fit.

    Unsigned, since the difference of two times may not fit 64 bits with a sign.
    """
    room = np.uint64(NEVER) - time.view(np.uint64)
    found: Ints = (time.view(np.uint64) + np.minimum(by, room)).view(np.int64)
    return found
