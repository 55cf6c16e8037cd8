"""`Slices`: work on rows of whole tables that is divided into slices, so that a device may have threads share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
A = TypeVar("A")
B = TypeVar("B")


class Slices:
    """Divides rows into slices, whose values stay in the second-level cache between the steps of a formula; here they
    follow each other. Functions get a slice of the rows, and must not depend on the order of slices.
    """

    @property
    def size(self) -> int:
        """Rows of a slice."""
        return 1 << 16

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """``function`` of all ``items``, in their order."""
        return [function(item) for item in items]

    def map_long(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """The same where an item has few steps that take long, such as to take many rows of a column."""
        return self.map(function, items)

    def map_short(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """The same where an item is a slice of a formula, of which the interpreter has a part."""
        return self.map(function, items)

    def slices(self, rows: int) -> list[slice]:
        """Slices of so many rows for `map`, one after the other; at least one."""
        size = self.size
        return [slice(at, min(rows, at + size)) for at in range(0, max(rows, 1), size)]

    def each(self, rows: int, function: Callable[[slice], B]) -> list[B]:
        """``function`` of all slices of so many rows."""
        return self.map_short(function, self.slices(rows))

    def made(self, rows: int, dtype: Any, make: Callable[[slice], Any]) -> npt.NDArray[Any]:
        """The concatenated arrays of ``make``, one for each slice, in the order of the rows: (rows,)."""
        found = np.empty(rows, dtype)

        def some(mine: slice) -> None:
            found[mine] = make(mine)

        self.each(rows, some)
        return found

    def every(self, rows: int, test: Callable[[slice], bool]) -> bool:
        """True if ``test`` is true of all slices. No more are tested if it is false of the first one."""
        first, *others = self.slices(rows)
        return test(first) and all(self.map_short(test, others))

    def where(self, rows: int, test: Callable[[slice], npt.NDArray[np.bool_]]) -> Rows:
        """The rows of which ``test`` is true, which gives (n,) for a slice of n."""
        slices = self.slices(rows)
        found = self.map_short(test, slices)
        ends = np.cumsum([np.count_nonzero(some) for some in found])
        if ends[-1] == rows:
            return np.arange(rows)
        made = np.empty(int(ends[-1]), np.int64)

        def some(n: int) -> None:
            np.add(np.flatnonzero(found[n]), slices[n].start, out=made[ends[n - 1] if n else 0:ends[n]])

        self.map_short(some, range(len(found)))
        return made

    def taken(self, values: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
        """The ``values`` at ``rows`` (n,): (n,)."""
        return self.made(len(rows), values.dtype, lambda mine: values[rows[mine]])
