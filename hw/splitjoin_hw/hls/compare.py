"""Comparators of one width, pipelined as deeply as the clock requires, and tests of constant width."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value

from splitjoin.circuit.schedule import parts

from ..tech.equality import equality_of
from ..tech.order import order_of
from .delays import registered


class Comparison:
    """Pipelined comparator of keys of ``width`` bits with bounds: ``chain`` bits per cycle, the lowest first.

    Each part but the first takes the outcome of the previous part, a cycle old, as one more bit below its own, which
    decides if its own bits are equal. So key and bound of a part are needed a cycle later than those of the previous
    part.
    """

    ends = ("lo", "hi")

    def __init__(self, built_for: str, width: int, chain: int):
        self._sizes = parts(width, chain)
        self._orders = [order_of(built_for, size + (n > 0)) for n, size in enumerate(self._sizes)]

    @property
    def cycles(self) -> int:
        """Cycles from the codes of the first part to the outcome: one per part."""
        return len(self._sizes)

    def keys(self, value: Value) -> list[Value]:
        """The codes of a key, one per part."""
        return [order.key(part) if n == 0 else order.key(Cat(Const(0), part))[1:]
                for n, (order, part) in enumerate(zip(self._orders, self._split(value), strict=True))]

    def bounds(self, value: Value) -> list[Value]:
        """The codes of a bound, one per part."""
        return [order.bound(part) if n == 0 else order.bound(Cat(Const(0), part))[1:]
                for n, (order, part) in enumerate(zip(self._orders, self._split(value), strict=True))]

    def within(self, m: Module, name: str, keys: list[Value], lows: list[Value], highs: list[Value]) -> Value:
        """True if a key is within its bounds; the AND of two registers."""
        above: Signal | None = None
        below: Signal | None = None
        for n, (order, key, low, high) in enumerate(zip(self._orders, keys, lows, highs, strict=True)):
            place = f"{name}_{n}" if n else name
            over, under = (Signal(name=f"{name}{place}", reset_less=True) for name in ("above", "below"))
            if above is not None and below is not None:
                # The lowest bit of a number is also that of its code, so one bit more below key and bound carries the
                # previous outcome: (key, it) >= (bound, 1), and (key, 1) <= (bound, it).
                key_over, low, key_under, high = Cat(above, key), Cat(Const(1), low), Cat(Const(1), key), Cat(below,
                                                                                                            high)
            else:
                key_over = key_under = key
            m.d.sync += [over.eq(order.above(m, f"ge{place}", key_over, low)),
                         under.eq(order.below(m, f"le{place}", key_under, high))]
            above, below = over, under
        assert above is not None and below is not None
        return above & below

    def _split(self, value: Value) -> list[Value]:
        found, at = [], 0
        for size in self._sizes:
            found.append(value[at:at + size])
            at += size
        return found


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
