"""Quotients and remainders of whole numbers in graphs: by constants a product, by values a subtraction for each bit."""

from __future__ import annotations

from splitjoin.lang.ir import Arith

from .builder import Builder


class DividingBuilder(Builder):
    """A builder with ``//``, ``%`` (rounded down), ``div`` and ``mod`` (towards 0) of any numbers.

    Where a divisor is 0, quotient and remainder are numbers of their ranges without a meaning.
    """

    def _divided(self, e: Arith, a: int, b: int) -> tuple[int, int]:
        node = self.nodes[b]
        down = e.op in ("//", "%")
        if node.kind != "constant":
            return self._by_value(a, b, down=down)
        if node.low == 0:
            return self._constant(0), self._constant(0)
        whole, rest = self._by_constant(a, abs(node.low))
        if not down and self.nodes[a].low < 0:  # of |b|, towards 0: one more than rounded down, unless nothing is left
            up = self._all(self._negative(a), self._not(self._is_zero(rest)))
            whole = self._plus(whole, up)
            rest = self._minus(rest, self._choose(up, self._constant(abs(node.low)), self._constant(0)))
        if node.low < 0:
            turned = self._minus(self._constant(0), whole)
            if not down:
                return turned, rest
            # a = −b · −whole + rest, and rest must not be above 0.
            short = self._not(self._is_zero(rest))
            whole = self._minus(turned, short)
            rest = self._minus(rest, self._choose(short, self._constant(-node.low), self._constant(0)))
        return whole, rest

    def _by_constant(self, a: int, c: int) -> tuple[int, int]:
        """The quotient by ``c`` > 0, rounded down, and the remainder."""
        if c & (c - 1) == 0:
            return self._shift(a, 1 - c.bit_length()), self._bits(a, c.bit_length() - 1)
        node = self.nodes[a]
        up = max(0, -(node.low // c))  # so many divisors more, and no number is negative
        x = self._plus(a, self._constant(up * c))
        most = self.nodes[x].high
        # x // c is x · ⌈2^s / c⌉ >> s where the product exceeds 2^s · x / c by less than 2^s / c (Granlund and
        # Montgomery: Division by invariant integers using multiplication, PLDI 1994).
        places = 0
        while (-(1 << places) % c) * most >= 1 << places:
            places += 1
        product = self._times(x, self._constant(-(-(1 << places) // c)))
        whole = self._add("shift", (product,), (node.low + up * c) // c, most // c, -places) if places else product
        bits = c.bit_length()  # the remainder needs no higher bits of either number
        rest = self._minus(self._bits(x, bits), self._bits(self._times(self._bits(whole, bits), self._constant(c)),
                                                           bits))
        return self._minus(whole, self._constant(up)), self._narrow(rest, c - 1)

    def _by_value(self, a: int, b: int, *, down: bool) -> tuple[int, int]:
        """The quotient and the remainder by a value, the highest bit of the quotient first."""
        minus_a, minus_b = self._negative(a), self._negative(b)
        x, y = self._size(a), self._size(b)
        most = max(1, self.nodes[y].high)
        rest = whole = self._constant(0)
        for n in reversed(range(self.nodes[x].width)):
            rest = self._joined(self._shift(rest, 1), self._bit(x, n))
            left = self._minus(rest, y)
            fits = self._not(self._negative(left))
            high = min(self.nodes[rest].high, most - 1)
            rest = self._choose(fits, self._narrow(left, high), self._narrow(rest, high))
            whole = self._joined(whole, self._shift(fits, n))
        zero = self._constant(0)
        if down:
            turned = self._differ(minus_a, minus_b)
            short = self._all(turned, self._not(self._is_zero(rest)))
            whole = self._minus(self._choose(turned, self._minus(zero, whole), whole), short)
            rest = self._choose(minus_a, self._minus(zero, rest), rest)
            return whole, self._plus(rest, self._choose(short, b, zero))
        whole = self._choose(self._differ(minus_a, minus_b), self._minus(zero, whole), whole)
        return whole, self._choose(minus_a, self._minus(zero, rest), rest)

    def _size(self, a: int) -> int:
        node = self.nodes[a]
        return a if node.low >= 0 else self._add("abs", (a,), 0, max(-node.low, node.high))

    def _narrow(self, a: int, high: int) -> int:
        """``a`` where it is known to be from 0 to ``high``."""
        node = self.nodes[a]
        if 0 <= node.low <= node.high <= high or node.kind == "constant":
            return a
        return self._add("bits", (a,), 0, high, max(1, high.bit_length()))

    def _joined(self, a: int, b: int) -> int:
        """``a`` and ``b``, which have no bit that is 1 in common, together."""
        x, y = self.nodes[a], self.nodes[b]
        if 0 in (x.high, y.high):
            return b if x.high == 0 else a
        return self._add("|", (a, b), 0, (1 << max(x.width, y.width)) - 1)

    def _bit(self, a: int, n: int) -> int:
        """Bit ``n`` of ``a``, in two's complement."""
        return self._bits(self._shift(a, -n), 1)

    def _negative(self, a: int) -> int:
        """1 if ``a`` is negative: its sign."""
        node = self.nodes[a]
        if node.low >= 0 or node.high < 0:
            return self._constant(int(node.high < 0))
        return self._bit(a, node.width - 1)

    def _is_zero(self, a: int) -> int:
        node = self.nodes[a]
        if node.low > 0 or node.high < 0:
            return self._constant(0)
        return self._add("=", (a, self._constant(0)), 0, 1)
