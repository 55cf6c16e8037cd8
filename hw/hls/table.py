"""Interval tests of constant width by table look-up: LUT RAM holds a probe's interval, digit by digit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Value
from splitjoin.circuit.geometry import DIGIT, LOOKED_UP

from .delays import registered
from .width import WidthTest

__all__ = ["Digit", "TableTest"]


@dataclass(frozen=True)
class Digit:
    """Bits ``first`` to ``stop``, exclusive, of a coded key, at most `DIGIT`; ``outputs``: bits that are looked up."""

    first: int
    stop: int
    outputs: int


class TableTest:
    """Test that a key of ``width`` bits is at most ``above`` greater than a probe's low end, as `WidthTest`.

    Of keys without their lowest k bits, 2^k > ``above``, an interval holds at most two that follow each other. Those
    differ in one bit of Gray's code, so that each digit of it by itself tells whether it may be one of the two: one bit
    a digit, and nothing to carry from digit to digit. In the lowest k + 1 bits, where the interval is no more than half
    of the numbers there are, begins and ends what of the two is within. They are two digits where they are few: the
    upper one is outside, inside, where the interval begins or where it ends, and the lower one decides for these. Else
    the low end's are subtracted.

    A table is written number by number, of four probes at once. LUT RAM has four outputs for one address, so that a key
    is wired to a fourth as many cells as there are probes.
    """

    def __init__(self, built_for: str, width: int, above: int, *, apart: bool):
        self._above, self._apart = above, apart
        self._bits = width + 1  # of a low end
        # Where the lowest digits are looked up anyhow, all of their bits are.
        least = above.bit_length()
        k = next((k for k in (DIGIT - 1, LOOKED_UP - 1) if least <= k), least)
        #: Bits of the low part that are not of the high part too, and all of its bits.
        self._k, self._low = (min(k, width), min(k, width) + 1) if above else (0, 0)
        self._subtracted = WidthTest(built_for, self._low, above, apart=apart) if self._low > LOOKED_UP else None
        low = [] if self._subtracted else [Digit(at, min(at + DIGIT, self._low), 1 if self._low <= DIGIT else 2)
                                           for at in range(0, self._low, DIGIT)]
        # A key has a bit less than a low end: the highest one of the code is always 0.
        high = [Digit(self._low + at, self._low + min(at + DIGIT, width - self._k), 1)
                for at in range(0, width - self._k, DIGIT)]
        self._looked_up = len(low)
        self.digits: tuple[Digit, ...] = (*low, *high)

    @property
    def low(self) -> int:
        """Bits of a low end that `within` takes of a probe: those that are subtracted."""
        return self._low if self._subtracted else 0

    def key(self, value: Value) -> Value:
        """The code of a key: its low part as it is, then the high part in Gray's code."""
        return Cat(Cat(value, Const(0, 1))[:self._low], _gray(value[self._k:]))

    def bound(self, value: Value) -> Value:
        """The code of a low end: its low part, Gray's code of the high part, and where that of one more differs."""
        high = value[self._k:]
        gray = _gray(high)
        if not self._above:
            return gray
        # One more changes, in Gray's code, the bit where a number has its lowest 0; if it has none, the highest one.
        more = (high + 1)[:len(high)]
        changes = Cat(~high[:-1] & more[:-1], high[-1] ^ more[-1])
        return Cat(value[:self._low], gray, changes)

    def written(self, number: Value, bound: Value) -> list[Value]:
        """The write data at address ``number`` of each table for a low end of this code, digit by digit."""
        found: list[Value] = []
        for n, digit in enumerate(self.digits):
            if n < self._looked_up:
                found += self._of_low(n, number, bound)
            else:
                first, stop = digit.first - self._low, digit.stop - self._low
                found.append(self._of_high(first, stop, number, bound))
        return found

    def within(self, m: Module, name: str, outputs: list[Value], key: Value, low: Value | None) -> Value:
        """True if the key whose digits were looked up is within; ``key``: its code, ``low``: the low end's part."""
        parts: list[Value] = []
        if self._looked_up == 2:
            over, under, begins, ends = outputs[:4]
            parts.append(registered(m, f"low{name}", (begins | ends) & (begins | under) & (ends | over)))
            outputs = outputs[4:]
        parts += [registered(m, f"digits{n}_{name}", Cat(outputs[n:n + 4]).all()) for n in range(0, len(outputs), 4)]
        if self._apart:
            parts = [registered(m, f"within{name}_digits", Cat(parts).all())]
        if self._subtracted:
            assert low is not None
            parts.append(self._subtracted.within(m, name, [key[:self._low]], [low]))
        return Cat(parts).all()

    def _of_high(self, first: int, stop: int, number: Value, bound: Value) -> Value:
        gray = bound[self._low:][:self._bits - self._k]
        changes = bound[self._low + len(gray):]
        fits = [bit == number[n] for n, bit in enumerate(gray[first:stop])]
        if self._above:
            fits = [fit | change for fit, change in zip(fits, changes[first:stop], strict=True)]
        if stop == len(gray) - 1:
            fits.append(~gray[-1] | changes[-1] if self._above else ~gray[-1])
        return Cat(fits).all()

    def _of_low(self, n: int, number: Value, bound: Value) -> list[Value]:
        """The write data of digit ``n`` of the low part."""
        wide, low = self._above, self._low
        if low <= DIGIT:
            return [_table(lambda at, begin: (at - begin) % 2**low <= wide, (number, low), (bound, low))]
        # The upper digit is one of those from where the interval begins to where it ends, so many further.
        upper = low - DIGIT
        begin = bound[:DIGIT]
        if n == 0:
            return [_table(lambda at, begin: begin <= at <= begin + wide, (number, DIGIT), (begin, DIGIT)),
                    _table(lambda at, begin: at <= (begin + wide) % 2**DIGIT, (number, DIGIT), (begin, DIGIT))]
        steps = (number - bound[DIGIT:low])[:upper]
        return [_table(lambda at, begin: at == 0 or at < (begin + wide) >> DIGIT, (steps, upper), (begin, DIGIT)),
                _table(lambda at, begin: 0 < at <= (begin + wide) >> DIGIT, (steps, upper), (begin, DIGIT))]


def _gray(value: Value) -> Value:
    """Gray's code of a number."""
    return value ^ (value >> 1)[:len(value)]


def _table(holds: Callable[[int, int], bool], *inputs: tuple[Value, int]) -> Value:
    """A function of two numbers of so many bits, as the table that it is."""
    (_, bits), (_, more) = inputs
    table = sum(holds(at, begin) << (at | begin << bits) for at in range(2**bits) for begin in range(2**more))
    index = Cat(value[:size] for value, size in inputs)
    return Const(table, 2**len(index)).bit_select(index, 1)
