"""The tuples of a stream that are not decided yet: later pairs may still contain them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from splitjoin.base.sliding import SlidingArray
from splitjoin.lang.windows import Extent

__all__ = ["NONE", "Ints", "Undecided"]

Ints = npt.NDArray[np.int64]

#: A partner that does not exist.
NONE = -1
_MIN, _MAX = -(2**63), 2**63 - 1


class Undecided:
    """The tuples of one stream from row id ``first`` to before ``end``, each with some numbers.

    A tuple is decided by the first arrival that no longer finds it in the stream's window: with ``ROWS n`` the n-th
    tuple of its stream after it, with ``RANGE l`` the first one more than l later, with both whichever comes first. So
    tuples are decided in the order of their row ids.

    Attributes:
        extent: The stream's window.
        numbers: By name. ``position``: the tuple's number in arrival order. ``time``: its event time, or its position
            without a time column. ``matched``: 1 if it is in a pair. Others as the kind of join needs.
    """

    def __init__(self, extent: Extent, defaults: Mapping[str, int]):
        self.extent, self._defaults = extent, dict(defaults)
        self.numbers = {name: SlidingArray() for name in ("position", "time", "matched", *defaults)}
        self.first = 0

    def __len__(self) -> int:
        return len(self.numbers["position"])

    @property
    def end(self) -> int:
        """The row id of the next tuple."""
        return self.first + len(self)

    def __getitem__(self, name: str) -> Ints:
        """The numbers ``name``: a view, valid until the next change."""
        return self.numbers[name].values

    def append(self, position: Ints, time: Ints) -> None:
        """Add tuples at the end."""
        given = {"position": position, "time": time, "matched": np.zeros(len(position), np.int64)}
        for name, default in self._defaults.items():
            given[name] = np.full(len(position), default, np.int64)
        for name, values in given.items():
            self.numbers[name].append(values)

    def decided(self, times: Ints | None, base: int, n: int) -> Ints:
        """The positions of the arrivals that decide the first tuples, one for each tuple that is decided.

        ``times``: the event times of the ``n`` arrivals from position ``base`` on, None without a time column. The
        tuples of these arrivals must have been appended.
        """
        count = 0
        rows, length = self.extent.rows, self.extent.length
        if rows is not None:
            count = max(count, len(self) - rows)
        if length is not None and n:
            assert times is not None, "a RANGE window has event times"
            count = max(count, self.before(int(times[-1])))
        found = np.full(count, _MAX, np.int64)
        if rows is not None:
            by_rows = self["position"][rows:rows + count]
            found[:len(by_rows)] = by_rows
        if length is not None and n:
            assert times is not None
            ends = self["time"][:count]
            ends = np.where(ends > _MAX - min(length, _MAX), _MAX, ends + min(length, _MAX))
            at = np.searchsorted(times, ends, side="right")
            np.minimum(found, np.where(at < n, base + at, _MAX), out=found)
        return found

    def before(self, now: int) -> int:
        """The number of tuples that an arrival at event time ``now`` decides by the RANGE window."""
        if self.extent.length is None:
            return 0
        return int(np.searchsorted(self["time"], max(now - self.extent.length, _MIN), side="left"))

    def drop(self, n: int) -> None:
        """Remove the first ``n`` tuples, which are decided."""
        for numbers in self.numbers.values():
            numbers.drop(n)
        self.first += n

    def state(self) -> dict[str, Ints]:
        """All that `restore` needs."""
        return {"first": np.array([self.first], np.int64)} | {name: self[name].copy() for name in self.numbers}

    def restore(self, state: Mapping[str, Ints]) -> None:
        """Take over the ``state`` of another one of the same query; there must be no tuples yet."""
        self.first = int(state["first"][0])
        for name, numbers in self.numbers.items():
            numbers.append(state[name])
