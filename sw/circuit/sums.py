"""Sum tests, as circuits are built for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .schedule import FACTOR, additions
from .sum_relations import kept_bits

__all__ = ["Axis", "Sum"]


@dataclass(frozen=True)
class Axis:
    """One key of each stream, which add to a sum 2^shift times the square or the absolute value of their difference, or
    the number of bits in which they differ.

    ``r``, ``s``: indices into ``keys_r`` and ``keys_s``. ``bits``: of the difference in two's complement, 2 to 64: a
    probe brings a place of so many bits, and key less place is the difference. Of kind ``differing``, the width of
    both keys and of the place.
    """

    kind: str
    r: int
    s: int
    bits: int
    shift: int = 0


@dataclass(frozen=True)
class Sum:
    """A sum test: whether all ``axes`` together come to at most ``limit``, or with ``above`` to more.

    ``rest``: of R and S, the key that is added if the tuple is stored, or None. With one in either stream a probe
    brings its limit, plus 1, so that 0 is none at all; ``limit`` is then the greatest that may come.
    """

    axes: tuple[Axis, ...]
    limit: int
    above: bool = False
    rest: tuple[int | None, int | None] = (None, None)

    @property
    def limited(self) -> bool:
        """True if probes bring limits of their own."""
        return self.rest != (None, None)

    @property
    def limit_bits(self) -> int:
        """Width of a limit that a probe brings."""
        return (self.limit + 1).bit_length()

    def kept(self, axis: Axis) -> int:
        """Of the difference of ``axis``, one of the sum's, how many bits what it adds is made of."""
        return kept_bits(axis.kind, axis.bits, axis.shift, self.limit)

    @cached_property
    def wide(self) -> bool:
        """True if an axis' square takes several multipliers."""
        return any(axis.kind == "square" and self.kept(axis) > FACTOR for axis in self.axes)

    @property
    def additions(self) -> int:
        """Additions in a row that add up the sum."""
        return additions(len(self.axes) + self.limited)

    @property
    def further(self) -> int:
        """Cycles beside `splitjoin.circuit.schedule.SUM_STAGES` where each addition has one of its own."""
        return self.wide + self.additions
