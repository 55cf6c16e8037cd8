"""Interval tests of constant width: a probe has the low end alone."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value

from ..tech.equality import equality_of
from .delays import registered

__all__ = ["WidthTest"]

#: Bits of a difference per gate.
_DIGIT = 4


class WidthTest:
    """Test that a key is at most ``above`` greater than a probe's low end, modulo the range of its ``bits``.

    The low end has one bit more than the key, so that no difference wraps around, and an empty interval is one that
    begins above every key (`splitjoin.circuit.wire.Configuration.bounds`). With width 0 it is an equality test without
    a subtraction.
    """

    ends = ("lo",)

    def __init__(self, built_for: str, bits: int, above: int, *, apart: bool):
        self._equality = equality_of(built_for)
        self._bits, self._above, self._apart = bits, above, apart and above > 0

    @property
    def cycles(self) -> int:
        """Cycles from key and low end to the outcome."""
        return 2 if self._apart else 1

    def keys(self, value: Value) -> list[Value]:
        """The codes of a key, in this test the key itself."""
        return [value]

    def bounds(self, value: Value) -> list[Value]:
        """The codes of a low end, as registers hold them."""
        return [value if self._above else self._equality.bound(value)]

    def within(self, m: Module, name: str, keys: list[Value], lows: list[Value]) -> Value:
        """True if a key is within its interval; a function of registers."""
        (key,), (low,) = keys, lows
        key = Cat(key, Const(0, 1))[:self._bits]
        if not self._above:
            return registered(m, f"equal{name}", self._equality.equal(m, f"eq{name}", key, low))
        difference = Signal(self._bits, name=f"difference{name}")
        m.d.comb += difference.eq(key - low)
        digits: list[tuple[Value, Value]] = []  # per digit: it is less than, and at most, the width's
        for n, at in enumerate(range(0, self._bits, _DIGIT)):
            digit, of = difference[at:at + _DIGIT], self._above >> at & 2**_DIGIT - 1
            top = 2**len(digit) - 1
            less = registered(m, f"less{n}_{name}", _below(digit, of, Const(0))) if of and n else Const(0)
            most = registered(m, f"most{n}_{name}", _below(digit, of, Const(1))) if of < top else Const(1)
            digits.append((less, most))
        while len(digits) > 1:
            pairs = [(less | most & below, less | most & at_most) for (below, at_most), (less, most) in zip(
                digits[::2], digits[1::2], strict=False)]
            digits = pairs + digits[2 * len(pairs):]
        return registered(m, f"within{name}_digits", digits[0][1]) if self._apart else digits[0][1]


def _below(digit: Value, of: int, equal: Const) -> Value:
    """True if ``digit`` is less than ``of``; ``equal`` if it equals ``of``.

    It is made of gates, as Yosys would turn some bits of a comparison into the reset of the register behind it, a
    different one for each register.
    """
    out: Value = equal
    for n, bit in enumerate(digit):
        out = ~bit | out if of >> n & 1 else ~bit & out
    return out
