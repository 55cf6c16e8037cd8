"""What whole tables are joined with: as many threads as the work pays for, and compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from splitjoin.base.arrays import Array, Rows

from ..compiled.helpers import Team
from ..device import TableWay, begin
from ..loops import loops
from ..merging import aligned
from ..slices import Slices
from ..tuning import DEFAULTS, Tuning

A = TypeVar("A")
B = TypeVar("B")

#: Threads take the interpreter's lock between two steps of an item, and to wake one that waits for it takes as long as
#: a short step. With steps of 100 to 300 µs, more than so many threads at once wait for each other; with steps of some
#: 20 µs, more than one for so many items (docs/adr/0105).
_AT_ONCE, _SHORT = 8, 4


@dataclass
class Work(Slices):
    """A team of up to ``threads``. Sizes are those of ``tuning``. ``expected``: nanoseconds of the work, as far as is
    known.
    """

    threads: int
    team: Team
    tuning: Tuning = DEFAULTS
    expected: float = 0.0

    def share(self, nanoseconds: float) -> None:
        """Have as many threads as so much work pays for."""
        self.expected = nanoseconds
        self.team.size = max(1, min(self.threads, int(nanoseconds / self.tuning.table_share)))

    @property
    def loops(self) -> Mapping[str, Callable[..., int]]:
        """The compiled loops by name."""
        return loops()

    @property
    def text(self) -> str:
        """How many threads there are, in words, behind a plan; empty of one that is all."""
        return "" if self.threads == 1 else f"; {self.team.size} of {self.threads} threads"

    def begin(self, plan: str, candidates: float | None = None) -> None:
        """Report that the way ``plan`` is begun, with so many candidates, if it has some."""
        begin(TableWay(plan, candidates, f"{self.team.size} of {self.threads}; the work is expected to take "
                       f"{self.expected / 1e6:,.0f} ms, and each further thread pays from "
                       f"{self.tuning.table_share / 1e6:g} ms on"))

    def map(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        return self.team.map(function, items, _AT_ONCE)

    def map_long(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        return self.team.map(function, items)

    def map_short(self, function: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """As `Slices.map_short`, by as many threads as so little work pays for."""
        todo = list(items)
        return self.team.map(function, todo, min(_AT_ONCE, max(2, len(todo) // _SHORT)))

    @property
    def size(self) -> int:
        return self.tuning.table_rows

    def counts_below(self, ordered: Rows, wanted: Rows, *, equal: bool = False) -> Rows:
        """For each of ``wanted`` how many of ``ordered`` are below it, or with ``equal`` not above it; both rise."""
        found = np.empty(len(wanted), np.int64)
        ordered, wanted = aligned(ordered), aligned(wanted)
        self.each(len(wanted), lambda mine: self.loops["merged_counts"](ordered, wanted[mine], equal, found[mine]))
        return found

    def combined(self, function: Callable[..., Any], arrays: list[Array]) -> Array:
        """All ``arrays`` (n,), of which there is one at least, combined by a ufunc of two."""
        first, *others = arrays
        if not others:
            return first
        found = np.empty_like(first)

        def some(mine: slice) -> None:
            function(first[mine], others[0][mine], out=found[mine])
            for more in others[1:]:
                function(found[mine], more[mine], out=found[mine])

        self.each(len(first), some)
        return found


def plain_work() -> Work:
    """One thread."""
    return Work(1, Team(1))
