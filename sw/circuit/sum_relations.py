"""Sum tests: what interval tests cannot say, a circuit computes from keys of both streams, in whole numbers.

A sum test adds up, over its axes, a square, an absolute value or a number of differing bits of a key of R and one of
S, and compares the sum with a limit: squared and Manhattan distance, Hamming distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..plan.exact_keys import ExactKey
from ..plan.text import terms_text

__all__ = ["LIMIT_BITS", "AxisKind", "AxisRelation", "SumRelation", "axis_value_bits", "kept_bits"]

AxisKind = Literal["square", "absolute", "differing"]

#: Bits of a limit, at most. So no more than 32 bits are ever squared.
LIMIT_BITS = 62


@dataclass(frozen=True)
class AxisRelation:
    """2^shift times the square or the absolute value of R − S + c, or the number of bits in which R and S differ."""

    kind: AxisKind
    r: ExactKey
    s: ExactKey
    c: int
    shift: int

    @property
    def bits(self) -> int:
        """Of the difference in two's complement; of keys whose bits are compared, their width."""
        if self.kind == "differing":
            return self.r.width
        low, high = self.r.low - self.s.high + self.c, self.r.high - self.s.low + self.c
        return max(high, -low - 1, 0).bit_length() + 1


@dataclass(frozen=True)
class SumRelation:
    """The sum of ``axes``, and of the keys ``r`` and ``s`` where there are such, is at most ``limit``; with ``above``
    it is more.
    """

    axes: tuple[AxisRelation, ...]
    limit: int
    above: bool
    r: ExactKey | None = None
    s: ExactKey | None = None

    def keys(self, side: str) -> tuple[ExactKey | None, ...]:
        """The keys of stream ``side``: of each axis one, then the one beside the axes, None where there is none."""
        return (*(a.r for a in self.axes), self.r) if side == "r" else (*(a.s for a in self.axes), self.s)

    def described(self, r: tuple[int | None, ...], s: tuple[int | None, ...]) -> str:
        """The test in words; ``r`` and ``s`` number the keys among the stored ones, in the order of `keys`."""
        axes = [_axis_text(a, f"R{i}", f"S{j}") for a, i, j in zip(self.axes, r[:-1], s[:-1], strict=True)]
        rest = [f"{side}{n}" for side, n in (("R", r[-1]), ("S", s[-1])) if n is not None]
        limit = f"; the limit less its own {' or '.join(rest)}" if rest else ""
        return (f"{' + '.join(axes + rest)} {'>' if self.above else '<='} {self.limit}, added up in the circuit; "
                f"a probe brings its own place on each axis{limit}")

    def __str__(self) -> str:
        axes = [_axis_text(a, f"({terms_text(a.r.terms)})", f"({terms_text(a.s.terms)})") for a in self.axes]
        rest = [terms_text(key.terms) for key in (self.r, self.s) if key is not None]
        return f"{' + '.join(axes + rest)} {'>' if self.above else '<='} {self.limit}"

    @property
    def most(self) -> int:
        """The most that the axes may come to without being above the limit, whatever the keys beside them."""
        return self.limit - sum(key.low for key in (self.r, self.s) if key is not None)


def kept_bits(kind: str, bits: int, shift: int, most: int) -> int:
    """Of a difference of ``bits`` in two's complement, how many are needed as its axis may come to ``most`` at most:
    where the others are not copies of the last of them, it is more.
    """
    if kind == "differing":
        return bits
    share = max(0, most) >> shift
    return min(bits, (math.isqrt(share) if kind == "square" else share).bit_length() + 1)


def axis_value_bits(kind: str, kept: int, shift: int) -> int:
    """Width of what an axis adds to the sum, as an unsigned number."""
    return shift + {"square": 2 * kept - 1, "absolute": kept, "differing": kept.bit_length()}[kind]


def _axis_text(axis: AxisRelation, r: str, s: str) -> str:
    times = f"{2**axis.shift}·" if axis.shift else ""
    if axis.kind == "differing":
        return f"{times}bit_count({r} ^ {s})"
    difference = f"{r} - {s}" + (f" {'+' if axis.c > 0 else '-'} {abs(axis.c)}" if axis.c else "")
    return times + (f"({difference})²" if axis.kind == "square" else f"|{difference}|")
