"""Sum tests in a circuit's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .schedule import FACTOR, additions
from .sum_relations import kept_bits

__all__ = ["Axis", "Sum"]


@dataclass(frozen=True)
class Axis:
    """A pair of keys, one of each stream, whose value in a sum is 2^shift times the square or the absolute value of
    their difference, or the number of bits in which they differ.

    ``r``, ``s``: indices into ``keys_r`` and ``keys_s``. ``bits``: width of the difference in two's complement, 2 to
    64. A probe's place has the same width, and the key minus the place is the difference. For kind ``differing``,
    ``bits`` is the width of both keys and of the place.
    """

    kind: str
    r: int
    s: int
    bits: int
    shift: int = 0


@dataclass(frozen=True)
class Sum:
    """A sum test: the sum of all ``axes`` is at most ``limit``, or with ``above`` greater.

    ``rest``: for R and S, the key that is added if the tuple is stored, or None. If either stream has one, each probe's
    record holds a limit of its own plus 1, where 0 means that nothing matches; ``limit`` is then the largest of these
    limits.
    """

    axes: tuple[Axis, ...]
    limit: int
    above: bool = False
    rest: tuple[int | None, int | None] = (None, None)

    @property
    def limited(self) -> bool:
        """True if each probe has a limit of its own."""
        return self.rest != (None, None)

    @property
    def limit_bits(self) -> int:
        """Width of a probe's limit."""
        return (self.limit + 1).bit_length()

    def kept(self, axis: Axis) -> int:
        """Number of bits of ``axis``' difference that its value is computed from; ``axis`` is one of the sum's."""
        return kept_bits(axis.kind, axis.bits, axis.shift, self.limit)

    @cached_property
    def wide(self) -> bool:
        """True if the square of an axis takes several multipliers."""
        return any(axis.kind == "square" and self.kept(axis) > FACTOR for axis in self.axes)

    @property
    def additions(self) -> int:
        """Depth of the tree of additions of the sum."""
        return additions(len(self.axes) + self.limited)

    @property
    def further(self) -> int:
        """Cycles on top of `splitjoin.circuit.schedule.SUM_STAGES` if each addition has one of its own."""
        return self.wide + self.additions
