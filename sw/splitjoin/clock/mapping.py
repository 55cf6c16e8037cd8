"""A clock's times in those of another: pieces of straight lines, exact in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, OptionError

from .arrays import Numbers, column_of, numbers

#: The greatest distance of two times of a clock: differences of differences are within int64.
_MOST = 2**62


@dataclass(frozen=True)
class _Piece:
    """The line from (``start``, ``low``) to (``end``, ``high``): a time of the one clock, and of the other."""

    start: int
    end: int
    low: int
    high: int

    def at(self, times: Numbers) -> Numbers:
        """The line's values at ``times``, exact and rounded down; beyond its ends it goes on."""
        run, rise = self.end - self.start, self.high - self.low
        whole, rest = divmod(rise, run)
        gone = times - self.start
        # rest * gone has up to 126 bits. What is left of it beside a quotient by floats, which three roundings put off
        # by gone / 2**53 each, is exact modulo 2**64 if it is that small.
        if (3 * int(np.abs(gone).max(initial=0)) + 2**54) * run >= 2**116:
            return np.array([self.low + distance * rise // run for distance in gone.tolist()], dtype=np.int64)
        with np.errstate(over="ignore"):
            quotient = np.floor(gone.astype(np.float64) * (rest / run)).astype(np.int64)
            left = gone * np.int64(rest) - quotient * np.int64(run)
            value: Numbers = self.low + gone * whole + quotient + left // run
        return value


@dataclass(frozen=True)
class ClockMap:
    """A map of one clock's times to another's, as `fit` returns it; call it with a column of times.

    Attributes:
        pieces: For each stretch between jumps or changes of rate: the first and last time of the one clock, and those
            of the other there.
        residual: The most by which the map is off at a point that both clocks have seen, in the other clock's unit: a
            join by mapped times needs it as a tolerance, beside what the points themselves are off.
        jumps: Stretches of the one clock within which the other jumped, by their last time before and first time behind
            it. When in between is not known, so times strictly in between become NULL.
    """

    pieces: tuple[tuple[int, int, int, int], ...]
    residual: int
    jumps: tuple[tuple[int, int], ...]
    _type: pa.DataType = field(repr=False)

    def __call__(self, times: Any) -> pa.Array:
        """The other clock's times at ``times`` of the one: int64, or the type of the points' timestamps.

        Beyond the first and the last point the outer pieces go on; how far off they are there, nothing says. NULL, and
        times within a jump, become NULL.

        Raises:
            SplitJoinError: If ``times`` are no whole numbers, or farther from the points than 1,000 times their span.
        """
        found, known, _ = numbers(times, "times")
        pieces = [_Piece(*piece) for piece in self.pieces]
        span = max(pieces[-1].end - pieces[0].start, 1)
        if known.any():
            least, greatest = int(found[known].min()), int(found[known].max())
            if (least < pieces[0].start - 1000 * span or greatest > pieces[-1].end + 1000 * span
                    or max(greatest - pieces[0].start, pieces[-1].end - least) > _MOST):
                raise InputError("times must not be farther from the points of both clocks than 1,000 times the "
                                 "points' span; are they in the unit of these points?")
            ends = [(pieces[0], least), (pieces[-1], greatest)]
            if any(abs(piece.low) + abs((time - piece.start) * (piece.high - piece.low) // (piece.end - piece.start))
                   > 2**63 - 1 for piece, time in ends):
                raise InputError("times must be such that those of the other clock are within int64")
        at = np.searchsorted(np.array([piece.start for piece in pieces[1:]], dtype=np.int64), found, side="right")
        result = np.zeros(len(found), dtype=np.int64)
        for place, piece in enumerate(pieces):
            here = known & (at == place)
            result[here] = piece.at(found[here])
        for before, behind in self.jumps:
            known = known & ~((found > before) & (found < behind))
        return column_of(result, known, self._type)


def fit(source: Any, target: Any, *, within: int) -> ClockMap:
    """A map from the clock of ``source`` to that of ``target``, from points that both have seen.

    The map is made of straight lines, as few as there can be if each is to be ``within`` of all its points: one for two
    clocks of a constant rate, more where a rate changes or a clock is set. Where two neighbouring lines do not meet, a
    clock jumped.

    Args:
        source: Times of the one clock, one a point, increasing: whole numbers or timestamps in any form, such as the
            counts that `unwrap` returns.
        target: Times of the other clock at the same moments.
        within: The most by which a line may be off at a point, in the unit of ``target``, at least 0: how far the
            points scatter, by the way in which they were taken.

    Raises:
        SplitJoinError: If there are fewer than two points, ``source`` does not increase, or a value is NULL.
    """
    if isinstance(within, bool) or not isinstance(within, int) or within < 0:
        raise OptionError(f"within must be a whole number, 0 or more, in the unit of target, not {within!r}")
    x, known_x, _ = numbers(source, "source")
    y, known_y, type_ = numbers(target, "target")
    if len(x) != len(y) or len(x) < 2:
        raise InputError(f"source and target must be as many, two or more: {len(x)} and {len(y)}")
    if not (known_x.all() and known_y.all()):
        raise InputError("points must have both times, not NULL")
    if any(max(values) - min(values) > _MOST for values in (x.tolist(), y.tolist())):
        raise InputError("the points of each clock must lie within 2**62 of each other")
    if (steps := np.diff(x) <= 0).any():
        at = int(np.flatnonzero(steps)[0])
        raise InputError(f"source must increase from point to point: {x[at]:,} comes before {x[at + 1]:,} (point "
                         f"{at:,}); sort by it, unwrap a counter, and give a clock that was set back as the target")
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    lines: list[tuple[_Line, int, int]] = []
    begin = 0
    while begin < len(points):
        line, end = _longest_line(points, begin, within)
        if line is None:  # the last point alone: the rate before it is the best one known
            line = _Line(*points[begin], *(lines[-1][0].rise, lines[-1][0].run))
        lines.append((line, points[begin][0], points[end - 1][0]))
        begin = end
    pieces: list[_Piece] = []
    jumps = []
    for place, (line, first, final) in enumerate(lines):
        start = first
        if place:
            before, _, last = lines[place - 1]
            start, jump = _meeting(before, line, last, first, 2 * within + 2)
            if jump:
                jumps.append((last, first))
        end = max(final, start + 1)
        pieces.append(_Piece(start, end, round(line.at(start)), round(line.at(end))))
    made = ClockMap(tuple((p.start, p.end, p.low, p.high) for p in pieces), 0, tuple(jumps), type_)
    off = np.abs(numbers(made(x), "times")[0] - y)
    return replace(made, residual=int(off.max()))


_Point = tuple[int, int]


@dataclass(frozen=True)
class _Line:
    """The line through (``x``, ``y``) that rises by ``rise`` on a ``run``, more than 0."""

    x: int
    y: int | Fraction
    rise: int
    run: int

    def at(self, x: int) -> Fraction:
        return self.y + Fraction(self.rise, self.run) * (x - self.x)

    def is_below(self, point: _Point) -> bool:
        return (point[1] - self.y) * self.run > self.rise * (point[0] - self.x)

    def is_above(self, point: _Point) -> bool:
        return (point[1] - self.y) * self.run < self.rise * (point[0] - self.x)


def _through(corner: _Point, point: _Point) -> _Line:
    return _Line(*corner, point[1] - corner[1], point[0] - corner[0])


def _longest_line(points: list[_Point], begin: int, within: int) -> tuple[_Line | None, int]:
    """A line that is ``within`` of as many points from ``begin`` on as there can be, and the end of these points; None
    for one point.

    The steepest and the flattest line through all intervals are kept (O'Rourke, "An on-line algorithm for fitting
    straight lines between data ranges", CACM 24(9), 1981): each is held by a corner of the lower ends and one of the
    upper ends, and a new interval turns it about the hull of the others.
    """
    x, y = points[begin]
    if begin + 1 == len(points):
        return None, begin + 1
    lower, upper = [(x, y - within)], [(x, y + within)]  # hulls: of lower ends from above, of upper ends from below
    x, y = points[begin + 1]
    steep, flat = _through(lower[0], (x, y + within)), _through(upper[0], (x, y - within))
    end = begin + 1
    for x, y in points[begin + 1:]:
        low, high = (x, y - within), (x, y + within)
        if steep.is_below(low) or flat.is_above(high):
            break
        if steep.is_above(high):
            steep = _tangent(lower, high, 1)
        if flat.is_below(low):
            flat = _tangent(upper, low, -1)
        _extend(lower, low, -1)
        _extend(upper, high, 1)
        end += 1
    # A mean of two lines through all intervals goes through all.
    at = points[begin][0]
    rate = (Fraction(steep.rise, steep.run) + Fraction(flat.rise, flat.run)) / 2
    return _Line(at, (steep.at(at) + flat.at(at)) / 2, rate.numerator, rate.denominator), end


def _tangent(hull: list[_Point], point: _Point, side: int) -> _Line:
    """The line through ``point`` with all of ``hull``, left of it, on one side: the flattest (1) or steepest (-1)."""
    found = _through(hull[0], point)
    for corner in hull[1:]:
        other = _through(corner, point)
        if side * (other.rise * found.run - found.rise * other.run) < 0:
            found = other
    return found


def _extend(hull: list[_Point], point: _Point, side: int) -> None:
    """Add ``point``, right of all others, to a hull that bends to one ``side``."""
    while len(hull) > 1:
        (ax, ay), (bx, by) = hull[-2], hull[-1]
        if side * ((bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax)) > 0:
            break
        hull.pop()
    hull.append(point)


def _meeting(before: _Line, behind: _Line, last: int, first: int, near: int) -> tuple[int, bool]:
    """The time from which the line ``behind`` holds, after ``last`` and not after ``first``; and True if the clock
    jumped: the lines neither cross in between, nor are they ``near`` each other at one of both times.
    """
    here, there = (behind.at(x) - before.at(x) for x in (last, first))
    if here * there <= 0 and here != there:
        return max(last + math.ceil((first - last) * here / (here - there)), last + 1), False
    return first, min(abs(here), abs(there)) > near
