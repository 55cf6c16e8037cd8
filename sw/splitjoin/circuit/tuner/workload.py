"""The workload of a circuit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """The window sizes, matches and selectivity that a circuit has to handle.

    Attributes:
        r, s: Tuples in each stream's window.
        matches: Results of a probe, on average.
        stars: Stars of a probe that leave the circuit, on average.
        arrival: The order in which tuples of both streams arrive, one of `splitjoin.circuit.tuner.arrival.ARRIVALS`.
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
    stars: float = 1.0
    arrival: str = "alternating"

    @property
    def tuples(self) -> int:
        """Tuples of the longer window: the cores must have room for them, and the busier region reads them."""
        return max(self.r, self.s)
