"""Source of arithmetic on exact values, as whole numbers in one width.

Every step is checked at compile time by the least and the greatest possible values, so that no step can wrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from splitjoin.lang.ir import Arith, Call

#: Operations on integers whose code is their symbol.
BITWISE = ("&", "|", "^")


class NotCompiled(Exception):
    """The predicate has a part for which there is no compiled code; the message names it."""


class TooWide(NotCompiled):
    """A whole number may leave the width that it is computed in."""


@dataclass(frozen=True)
class Operand:
    """``code`` of a value and of its validity (None: never NULL). Exact ones are whole numbers from ``low`` to ``high``
    over ``denominator``.
    """

    code: str
    valid: str | None = None
    low: int = 0
    high: int = 0
    denominator: int = 1

    @property
    def size(self) -> int:
        """The greatest magnitude of the whole number."""
        return max(abs(self.low), abs(self.high))


class ExactWriter:
    """Writes lines in which whole numbers have ``width`` (32 or 64) bits; each step gets a name of its own.

    Its methods raise `TooWide` where more bits or other values would do.

    Attributes:
        int_type: Code of the type that whole numbers have.
        lines: The written lines, in order.
    """

    def __init__(self, width: int):
        self._width = width
        self._names: dict[str, str] = {}
        self.int_type = f"np.int{width}"
        self.lines: list[str] = []

    def let(self, code: str) -> str:
        """A name for the value of ``code``, which gets a line, unless it is one already."""
        if code.isidentifier():
            return code
        if code not in self._names:
            self._names[code] = f"t{len(self._names)}"
            self.lines.append(f"{self._names[code]} = {code}")
        return self._names[code]

    def check(self, low: int, high: int, what: object) -> None:
        """Raise `TooWide`, naming ``what``, unless all whole numbers from ``low`` to ``high`` have the width."""
        if not -(2 ** (self._width - 1)) < low <= high < 2 ** (self._width - 1):
            raise TooWide(f"'{what}' from {low} to {high}")

    def scaled(self, a: Operand, factor: int) -> Operand:
        """The whole number of ``a`` times ``factor``, over the same denominator."""
        if factor == 1:
            return a
        self.check(a.low * factor, a.high * factor, a.code)
        self.check(factor, factor, a.code)
        code = self.let(self._whole(f"{a.code} * {self.int_type}({factor})"))
        return replace(a, code=code, low=a.low * factor, high=a.high * factor)

    def aligned(self, args: Sequence[Operand]) -> list[Operand]:
        """Exact values over one denominator."""
        common = math.lcm(*(a.denominator for a in args))
        return [replace(self.scaled(a, common // a.denominator), denominator=common) for a in args]

    def arith(self, e: Arith, a: Operand, b: Operand) -> Operand:
        """The exact operation ``e`` of the values ``a`` and ``b``. The result is not checked yet."""
        valid = both(a.valid, b.valid)
        if e.op == "*":
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Operand(self._whole(f"{a.code} * {b.code}"), valid, min(ends), max(ends),
                           a.denominator * b.denominator)
        if e.op in ("<<", ">>"):
            if not 0 <= b.low <= b.high < self._width:
                raise TooWide(f"'{e}'")
            ends = [x << y if e.op == "<<" else x >> y for x in (a.low, a.high) for y in (b.low, b.high)]
            # Where NULL stands, there may be any number.
            places = b.code if b.valid is None else f"({b.code} & {self._width - 1})"
            return Operand(self._whole(f"{a.code} {e.op} {places}"), valid, min(ends), max(ends))
        a, b = self.aligned([a, b])
        if e.op == "+":
            return Operand(self._whole(f"{a.code} + {b.code}"), valid, a.low + b.low, a.high + b.high, a.denominator)
        if e.op == "-":
            return Operand(self._whole(f"{a.code} - {b.code}"), valid, a.low - b.high, a.high - b.low, a.denominator)
        return self._division(e, a, b)

    def bits(self, e: Call, a: Operand, b: Operand) -> Operand:
        """The bitwise operation ``e``, of `BITWISE`, of the whole values ``a`` and ``b``; else `NotCompiled`."""
        if a.denominator != 1 or b.denominator != 1:
            raise NotCompiled(f"'{e}'")
        top = 1 << max(x.bit_length() for x in (a.low, a.high, b.low, b.high))
        ends = (0 if min(a.low, b.low) >= 0 else -top), top - 1
        masks = [x.high for x in (a, b) if x.low >= 0]
        if e.op == "&" and masks:
            ends = 0, min(masks)
        return Operand(self._whole(f"{a.code} {e.op} {b.code}"), both(a.valid, b.valid), *ends)

    def _division(self, e: Arith, a: Operand, b: Operand) -> Operand:
        """By zero NULL; rounded down, and for ``div`` and ``mod`` then towards zero."""
        self.check(0, a.size + b.size, e)  # the product of divisor and quotient
        valid, y, zero = both(a.valid, b.valid), b.code, f"{self.int_type}(0)"
        if b.low <= 0 <= b.high:
            valid = both(valid, self.let(f"{y} != {zero}"))
            y = self.let(f"{y} if {y} != {zero} else {self.int_type}(1)")
        quotient = self.let(self._whole(f"{a.code} // {y}"))
        rest = self.let(self._whole(f"{a.code} - {quotient} * {y}"))
        if e.op in ("div", "mod"):
            off = self.let(f"({rest} != {zero}) & (({a.code} < {zero}) != ({y} < {zero}))")
            quotient = self.let(self._whole(f"{quotient} + {self.int_type}({off})"))
            rest = self.let(f"{self._whole(f'{rest} - {y}')} if {off} else {rest}")
        if e.op in ("div", "//"):
            return Operand(quotient, valid, -a.size, a.size)
        most = max(b.size, 1)
        return Operand(rest, valid, -most, most, a.denominator)

    def _whole(self, code: str) -> str:
        return f"{self.int_type}({code})"


def both(a: str | None, b: str | None) -> str | None:
    """Code: both are valid; None is the code of what always is."""
    if a is None or b is None or a == b:
        return b if a is None else a
    return all_of([a, b])


def all_of(codes: Sequence[str | None]) -> str:
    """Code: all of ``codes`` are true; None is."""
    some = list(dict.fromkeys(c for c in codes if c not in (None, "True")))
    if "False" in some:
        return "False"
    return f"({' & '.join(str(c) for c in some)})" if some else "True"


def any_of(codes: Sequence[str]) -> str:
    """Code: any of ``codes`` is true."""
    some = list(dict.fromkeys(c for c in codes if c != "False"))
    if "True" in some:
        return "True"
    return f"({' | '.join(some)})" if some else "False"
