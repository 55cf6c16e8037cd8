"""The work that a circuit is asked to do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """The work of a circuit.

    Attributes:
        r, s: Tuples in each stream's window.
        matches: Results of a probe, on average.
        single: True if batches are of one probe, as in order ``inner``.
        selectivity: The share of pairs that meet the tests of an index, 0 to 1.
        points: The tests that are equalities.
    """

    r: int
    s: int
    matches: float = 0.0
    single: bool = False
    selectivity: float = 0.0
    points: Collection[int] = field(default=frozenset())

    @property
    def tuples(self) -> int:
        """Tuples of the longer window: those that a core must have room for, and that the busier region reads."""
        return max(self.r, self.s)
