"""Interval tests of constant width by table look-up: LUT RAM holds a probe's interval digit by digit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Value

from splitjoin.circuit.geometry import DIGIT, LOOKED_UP

from .compare import WidthTest
from .delays import registered


@dataclass(frozen=True)
class Digit:
    """Bits ``first`` to ``stop``, exclusive, of a coded key, at most `DIGIT`; ``outputs``: bits of a table entry."""

    first: int
    stop: int
    outputs: int


class TableTest:
    """Test that a key of ``width`` bits is at most ``above`` greater than a probe's low end, as `WidthTest`.

    The high part of a key omits its lowest k bits, 2^k > ``above``. An interval covers at most two values of the high
    part, which follow each other and so differ in one bit of their Gray code. Each digit of the Gray code is thus
    checked by itself: one bit per digit, and no carry from digit to digit. The low part, the lowest k + 1 bits, decides
    where in these two values the interval begins and ends; the interval covers at most half of the low part's values. A
    short low part is looked up as one or two digits. Of two, the upper one is outside, inside, the one where the
    interval begins or the one where it ends; the lower one decides in the last two cases. A longer low part is compared
    by subtraction of the low end's.

    Tables are written one digit value per cycle, for four probes at once. LUT RAM has four outputs for one address, so
    that a key is wired to only a quarter as many cells as there are probes.
    """

    def __init__(self, built_for: str, width: int, above: int, *, apart: bool):
        self._above, self._apart = above, apart
        self._bits = width + 1  # of a low end
        # The low part fills its digits, if it is looked up.
        least = above.bit_length()
        k = next((k for k in (DIGIT - 1, LOOKED_UP - 1) if least <= k), least)
        #: Bits of the low part that the high part does not share, and all bits of the low part.
        self._k, self._low = (min(k, width), min(k, width) + 1) if above else (0, 0)
        self._subtracted = WidthTest(built_for, self._low, above, apart=apart) if self._low > LOOKED_UP else None
        low = [] if self._subtracted else [Digit(at, min(at + DIGIT, self._low), 1 if self._low <= DIGIT else 2)
                                           for at in range(0, self._low, DIGIT)]
        # A key has one bit fewer than a low end, so the highest bit of its code is always 0 and needs no table.
        high = [Digit(self._low + at, self._low + min(at + DIGIT, width - self._k), 1)
                for at in range(0, width - self._k, DIGIT)]
        self._looked_up = len(low)
        self.digits: tuple[Digit, ...] = (*low, *high)

    @property
    def low(self) -> int:
        """Number of bits of a probe's low end that `within` subtracts."""
        return self._low if self._subtracted else 0

    def key(self, value: Value) -> Value:
        """The code of a key: its low part in binary, then the high part in Gray code."""
        return Cat(Cat(value, Const(0, 1))[:self._low], _gray(value[self._k:]))

    def bound(self, value: Value) -> Value:
        """The code of a low end: its low part, the Gray code of the high part, and the bit that an increment flips."""
        high = value[self._k:]
        gray = _gray(high)
        if not self._above:
            return gray
        # An increment flips that bit of the Gray code where the number has its lowest 0; if it has none, the highest.
        more = (high + 1)[:len(high)]
        changes = Cat(~high[:-1] & more[:-1], high[-1] ^ more[-1])
        return Cat(value[:self._low], gray, changes)

    def written(self, number: Value, bound: Value) -> list[Value]:
        """The write data at address ``number`` of each table for a coded low end, digit by digit."""
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
        # ``steps``: the distance of the upper digit from the one where the interval begins.
        upper = low - DIGIT
        begin = bound[:DIGIT]
        if n == 0:
            return [_table(lambda at, begin: begin <= at <= begin + wide, (number, DIGIT), (begin, DIGIT)),
                    _table(lambda at, begin: at <= (begin + wide) % 2**DIGIT, (number, DIGIT), (begin, DIGIT))]
        steps = (number - bound[DIGIT:low])[:upper]
        return [_table(lambda at, begin: at == 0 or at < (begin + wide) >> DIGIT, (steps, upper), (begin, DIGIT)),
                _table(lambda at, begin: 0 < at <= (begin + wide) >> DIGIT, (steps, upper), (begin, DIGIT))]


def _gray(value: Value) -> Value:
    """The Gray code of a number."""
    return value ^ (value >> 1)[:len(value)]


def _table(holds: Callable[[int, int], bool], *inputs: tuple[Value, int]) -> Value:
    """``holds`` as a constant table; ``inputs``: its two arguments, each with its number of bits."""
    (_, bits), (_, more) = inputs
    table = sum(holds(at, begin) << (at | begin << bits) for at in range(2**bits) for begin in range(2**more))
    index = Cat(value[:size] for value, size in inputs)
    return Const(table, 2**len(index)).bit_select(index, 1)
