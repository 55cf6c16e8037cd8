"""Values and conditions as graphs of operations on whole numbers of known ranges.

What the circuit has no operation for is refused: floats, and NULL.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import cast

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.ir import Abs, And, Arith, Call, Case, Cast, Cmp, Col, Expr, Extreme, Lit, Neg, Not, Or, text
from splitjoin.lang.operations import OPERATIONS
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import Bool, Float, Int

from .delays import FACTOR
from .graph import Graph, Node, Place, needed, width_of
from .memories import TupleMemory

#: Bits of additions up to which a product with a constant is made of them, and not of a multiplier.
_SUMS = 96
#: Bits of a factor beyond those of a multiplier for which another multiplier does not pay.
_FEW = 2
#: Bits of a number that are compared apart from the upper ones, where choices by it have these in common.
_LOWER = 2
#: Operators of comparisons, and what they are with exchanged operands.
_COMPARED = {"=": ("=", False), "<>": ("=", True), "<": ("<", False), ">=": ("<", True)}


class Builder(ABC):
    """Adds each operation once; a value is a node's number and a denominator."""

    def __init__(self, constants: Mapping[str, int], names: Mapping[str, str]) -> None:
        self._constants, self._names = constants, names
        self.nodes: list[Node] = []
        self.place: Place | None = None
        self.places: list[Place | None] = []
        self._numbers: dict[Node, int] = {}
        self._known: dict[Col, tuple[int, int]] = {}
        #: Whether a number between two ends is compared with both, and its sign chooses the end: fewer LUTs than a
        #: choice behind a choice. Not for folds, whose stages a driver knows from a board.
        self.saturates = False
        #: Numbers with one end: which it is, the number without it, the end, and the bit that it is beyond it.
        self._ended: dict[int, tuple[str, int, int, int]] = {}

    def graph(self, outputs: Sequence[int]) -> Graph:
        """The graph of those operations that ``outputs`` need."""
        return needed(self.nodes, outputs, self.places)

    def let(self, column: Col, value: tuple[int, int]) -> None:
        """``value`` is what later operations read as ``column``."""
        number, per = value
        if per != 1:
            raise UnsupportedError(f"{column.name} is a fraction")
        self._known[column] = number, 1

    def fit(self, a: int, low: int, high: int, *, promised: bool = False) -> int:
        """The value of operation ``a``, which lies within ``low`` and ``high``; ``promised``: as the source says."""
        node = self.nodes[a]
        low, high = max(low, node.low), min(high, node.high)
        return a if (low, high) == (node.low, node.high) else self._add("fit", (a,), low, high, int(promised))

    def read(self, memory: TupleMemory, address: int, low: int, high: int) -> int:
        """The number at ``address`` of ``memory``, which lies within ``low`` and ``high``."""
        return self._node(memory.read(address, low, high))

    def number(self, e: Expr) -> tuple[int, int]:
        """The whole number and the denominator of the exact value ``e``."""
        if isinstance(e.type, Bool):
            return self.truth(e), 1
        if isinstance(e.type, Float):
            raise UnsupportedError(f"{text(e)} is a float")
        match e:
            case Col():
                return self._column(e)
            case Lit():
                if e.value is None:
                    raise UnsupportedError("NULL is no number of a circuit")
                exact = Fraction(cast(Fraction, e.value))
                return self._constant(exact.numerator), exact.denominator
            case Neg():
                a, per = self.number(e.a)
                return self._minus(self._constant(0), a), per
            case Abs():
                a, per = self.number(e.a)
                node = self.nodes[a]
                low = 0 if node.low <= 0 <= node.high else min(abs(node.low), abs(node.high))
                return (a if node.low >= 0 else self._add("abs", (a,), low, max(abs(node.low), abs(node.high)))), per
            case Cast() if isinstance(e.type, Int):
                return self.number(e.a)
            case Arith():
                return self._arith(e)
            case Case():
                return self._case(e)
            case Extreme():
                values, per = self._aligned([self.number(a) for a in e.args])
                return reduce(lambda a, b: self._extreme(e.kind, a, b), values), per
            case Call(op="&" | "|" | "^"):
                values, per = self._aligned([self.number(a) for a in e.args])
                # A step's range may be wider than that of its operation.
                ranges = [value_range(e), OPERATIONS[e.op].range(e.of, *(
                    (Fraction(n.low), Fraction(n.high)) for n in (self.nodes[v] for v in values)))]
                least, most = max(r[0] for r in ranges), min(r[1] for r in ranges)
                return self._add(e.op, tuple(values), int(least), int(most)), per
        raise UnsupportedError(f"circuits have no operation for {text(e)}")

    def truth(self, e: Expr) -> int:
        """The condition ``e`` as a node of one bit."""
        match e:
            case Col():
                return self._column(e)[0]
            case Lit():
                return self._constant(int(e.value is True))
            case And() | Or():
                return (self._all if isinstance(e, And) else self._any)(*map(self.truth, e.args))
            case Not():
                return self._add("not", (self.truth(e.a),), 0, 1)
            case Cmp() if isinstance(e.a.type, Float):
                raise UnsupportedError(f"{text(e)} compares floats")
            case Cmp():
                return self._compared(e)
            case Case():
                return self._chosen(e, self.truth)
        raise UnsupportedError(f"circuits have no operation for {text(e)}")

    def _compared(self, e: Cmp) -> int:
        """The comparison ``e`` of values that are not NULL."""
        (a, b), _ = self._aligned([self.number(e.a), self.number(e.b)])
        if e.op in ("<=", ">"):
            kind, negated, a, b = "<", e.op == "<=", b, a
        else:
            kind, negated = _COMPARED[e.op]
        made = self._add(kind, (a, b), 0, 1)
        return self._add("not", (made,), 0, 1) if negated else made

    def _column(self, e: Col) -> tuple[int, int]:
        if e in self._known:
            return self._known[e]
        if e.side == "r" and e.name in self._constants:
            return self._constant(self._constants[e.name]), 1
        low, high = (0, 1) if isinstance(e.type, Bool) else map(int, value_range(e))
        return self._node(Node("input", (), low, high, e.side, self._names.get(e.name, e.name))), 1

    def _constant(self, value: int) -> int:
        return self._node(Node("constant", (), value, value))

    def _node(self, node: Node) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.places.append(self.place)
        return self._numbers[node]

    def _add(self, kind: str, args: tuple[int, ...], low: int, high: int, places: int = 0) -> int:
        """The operation, or its value where all operands are constants."""
        operands = [self.nodes[a] for a in args]
        if all(o.kind == "constant" for o in operands):
            return self._constant(int(_EVALUATED[kind](*(o.low for o in operands)) if kind in _EVALUATED else
                                      _shifted(kind, operands[0].low, places)))
        if kind == "choose" and operands[0].kind == "constant":
            return args[1] if operands[0].low else args[2]
        if kind in ("min", "max", "<") and (known := self._decided(kind, args)) is not None:
            return known
        if kind in "+-" and (operands[1].low, operands[1].high) == (0, 0):
            return args[0]
        if kind == "+" and (operands[0].low, operands[0].high) == (0, 0):
            return args[1]
        return self._node(Node(kind, args, low, high, places=places))

    def _decided(self, kind: str, args: tuple[int, ...]) -> int | None:
        """The value of a comparison, or of an extreme, where the operands' ranges tell it."""
        a, b = (self.nodes[n] for n in args)
        if kind == "<":
            if a.high < b.low or a.low >= b.high:
                return self._constant(int(a.high < b.low))
            # Next to the end of a range, to be equal is smaller than to be less.
            if a.low == a.high == b.low or b.low == b.high == a.high:
                return self._add("not", (self._add("=", args, 0, 1),), 0, 1)
            if b.kind == "constant":
                return self._below(args[0], b.low)
            return self._not(self._below(args[1], a.low + 1)) if a.kind == "constant" else None
        if a.high <= b.low or b.high <= a.low:
            return args[(a.high <= b.low) == (kind == "max")]
        if {a.kind, b.kind} == {"min", "max"} and sorted(a.args) == sorted(b.args):
            return args[b.kind == kind]
        return None

    def _below(self, a: int, limit: int) -> int:
        """``a`` is less than the constant ``limit``: without the bits that are 0 in it, and near 0 by gates alone."""
        node = self.nodes[a]
        if node.kind == "choose" and any(self.nodes[n].kind == "constant" for n in node.args[1:]):
            # Of a value that a choice bounds: what is compared need not wait for the choice.
            arms = [self._constant(int(arm.low < limit)) if (arm := self.nodes[n]).kind == "constant" else
                    self._add("<", (n, self._constant(limit)), 0, 1) for n in node.args[1:]]
            return self._either(node.args[0], *arms)
        places = (limit & -limit).bit_length() - 1 if limit else 0
        x, limit = self._shift(a, -places), limit >> places
        constant, node = self._constant(limit), self.nodes[x]
        if limit == 1 and node.high > 0:
            is_zero = self._add("=", (x, self._constant(0)), 0, 1)
            return is_zero if node.low >= 0 else self._add("or", (self._below(x, 0), is_zero), 0, 1)
        if limit == -1 and node.high >= 0:
            short = self._not(self._add("=", (x, constant), 0, 1))
            return self._add("and", (self._below(x, 0), short), 0, 1)
        return self._node(Node("<", (x, constant), 0, 1))

    def _either(self, which: int, a: int, b: int) -> int:
        return self._any(self._all(which, a), self._all(self._not(which), b))

    def _chosen(self, e: Case, bit_of: Callable[[Expr], int]) -> int:
        """The bit of the value that ``e`` chooses."""
        chosen = bit_of(e.otherwise)
        for when, then in reversed(list(zip(e.when, e.then, strict=True))):
            chosen = self._either(self.truth(when), bit_of(then), chosen)
        return chosen

    def _all(self, *bits: int) -> int:
        return self._junction("and", bits)

    def _any(self, *bits: int) -> int:
        return self._junction("or", bits)

    def _junction(self, kind: str, bits: tuple[int, ...]) -> int:
        neutral = int(kind == "and")
        found: dict[int, None] = {}
        for bit in bits:
            node = self.nodes[bit]
            if node.kind == "constant" and node.low != neutral:
                return bit
            if node.kind != "constant":
                found[bit] = None
        made = list(found) or [self._constant(neutral)]
        while len(made) > 1:
            made = [self._add(kind, (made[n], made[n + 1]), 0, 1) if n + 1 < len(made) else made[n]
                    for n in range(0, len(made), 2)]
        return made[0]

    def _differ(self, a: int, b: int) -> int:
        for one, other in ((a, b), (b, a)):
            if self.nodes[other].kind == "constant":
                return self._not(one) if self.nodes[other].low else one
        return self._constant(0) if a == b else self._add("^", (a, b), 0, 1)

    def _not(self, a: int) -> int:
        node = self.nodes[a]
        return node.args[0] if node.kind == "not" else self._add("not", (a,), 0, 1)

    def _minus(self, a: int, b: int) -> int:
        x, y = self.nodes[a], self.nodes[b]
        return self._add("-", (a, b), x.low - y.high, x.high - y.low)

    def _shift(self, a: int, places: int) -> int:
        if not places:
            return a
        node = self.nodes[a]
        low, high = (n << places if places > 0 else n >> -places for n in (node.low, node.high))
        return self._add("shift", (a,), low, high, places)

    def _times(self, a: int, b: int) -> int:
        x, y = self.nodes[a], self.nodes[b]
        for one, constant in ((a, y), (b, x)):
            if constant.kind == "constant" and constant.low > 0 and constant.low & (constant.low - 1) == 0:
                return self._shift(one, constant.low.bit_length() - 1)
            if constant.kind == "constant" and constant.low == 0:
                return self._constant(0)
            if constant.kind == "constant" and (made := self._multiple(one, constant.low)) is not None:
                return made
        wide = max((a, b), key=lambda n: self.nodes[n].width + (self.nodes[n].low >= 0))
        if self.nodes[wide].width + (self.nodes[wide].low >= 0) > FACTOR and min(x.width, y.width) > 1:
            return self._by_halves(a, b, wide)
        ends = [p * q for p, q in product((x.low, x.high), (y.low, y.high))]
        # The product of a number with itself is not negative.
        return self._add("*", (a, b), 0 if a == b and min(ends) < 0 else min(ends), max(ends))

    def _multiple(self, a: int, factor: int) -> int | None:
        """``a`` times the constant ``factor`` as shifts and few sums; None where a multiplier is better."""
        node, digits = self.nodes[a], signed_digits(abs(factor))
        width = width_of(*sorted((node.low * factor, node.high * factor)))
        if node.kind == "constant" or (len(digits) - 1) * width > _SUMS:
            return None
        made, highest = self._constant(0), True
        for places, digit in reversed(digits):
            term = self._shift(a, places)
            if highest:
                made, highest = term, False
            elif digit > 0:
                made = self._plus(made, term)
            else:
                made = self._minus(made, term)
        if factor < 0:
            made = self._minus(self._constant(0), made)
        low, high = sorted((node.low * factor, node.high * factor))
        return self.fit(made, low, high)

    def _by_halves(self, a: int, b: int, wide: int) -> int:
        """The product of ``a`` and ``b``, of which ``wide`` has more bits than a multiplier takes: of its halves."""
        half, other = FACTOR - 1, b if wide == a else a
        high, low = self._shift(wide, -half), self._bits(wide, half)
        if a == b:  # a square needs three products in place of four
            parts = [(self._by_bits(high, high), 2 * half), (self._by_bits(high, low), half + 1),
                     (self._times(low, low), 0)]
        else:
            parts = [(self._by_bits(high, other), half), (self._times(low, other), 0)]
        terms = [self._shift(n, places) for n, places in parts]
        total = reduce(self._plus, terms)
        x, y = self.nodes[a], self.nodes[b]
        ends = [p * q for p, q in product((x.low, x.high), (y.low, y.high))]
        return self.fit(total, 0 if a == b and min(ends) < 0 else min(ends), max(ends))

    def _by_bits(self, a: int, b: int) -> int:
        """The product of ``a`` and ``b``: of few bits ``a``, without a multiplier."""
        node, total = self.nodes[a], self._constant(0)
        if node.width > _FEW:
            return self._times(a, b)
        for n in range(node.width):
            bit = self._bits(self._shift(a, -n), 1)
            term = self._choose(bit, self._shift(b, n), self._constant(0))
            negative = node.low < 0 and n == node.width - 1  # the sign
            total = self._minus(total, term) if negative else self._plus(total, term)
        ends = [p * q for p, q in product((node.low, node.high), (self.nodes[b].low, self.nodes[b].high))]
        return self.fit(total, 0 if a == b and min(ends) < 0 else min(ends), max(ends))

    def _plus(self, a: int, b: int) -> int:
        x, y = self.nodes[a], self.nodes[b]
        return self._add("+", (a, b), x.low + y.low, x.high + y.high)

    def _bits(self, a: int, places: int) -> int:
        node = self.nodes[a]
        if 0 <= node.low <= node.high < 1 << places:
            return a
        return self._add("bits", (a,), 0, (1 << places) - 1, places) if places else self._constant(0)

    def _aligned(self, values: list[tuple[int, int]]) -> tuple[list[int], int]:
        common = math.lcm(*(per for _, per in values))
        return [self._times(a, self._constant(common // per)) for a, per in values], common

    def _arith(self, e: Arith) -> tuple[int, int]:
        if e.op in ("<<", ">>"):
            (a, per), (by, of) = self.number(e.a), self.number(e.b)
            if (per, of) != (1, 1):
                raise UnsupportedError(f"{text(e)} shifts a fraction")
            return self._shifted(e, a, by), 1
        x, y = self.number(e.a), self.number(e.b)
        if e.op == "*":
            return self._times(x[0], y[0]), x[1] * y[1]
        (a, b), per = self._aligned([x, y])
        if e.op == "+":
            return self._plus(a, b), per
        if e.op == "-":
            return self._minus(a, b), per
        whole, rest = self._divided(e, a, b)
        return (whole, 1) if e.op in ("//", "div") else (rest, per)

    def _shifted(self, e: Arith, a: int, by: int) -> int:
        """``a`` shifted by ``by`` places, as ``e`` says: for each bit of ``by`` by a power of two."""
        sign, node = 1 if e.op == "<<" else -1, self.nodes[by]
        if node.kind == "constant":
            return self._shift(a, sign * node.low)
        for n in range(node.width):
            bit = self._bits(self._shift(by, -n), 1)
            a = self._choose(bit, self._shift(a, sign << n), a)
        low, high = map(int, value_range(e))
        return self.fit(a, low, high)

    @abstractmethod
    def _divided(self, e: Arith, a: int, b: int) -> tuple[int, int]:
        """The quotient and the remainder of ``a`` and ``b``, both whole, as ``e`` rounds."""

    def _case(self, e: Case) -> tuple[int, int]:
        values, per = self._aligned([self.number(x) for x in (*e.then, e.otherwise)])
        *then, chosen = values
        for when, value in reversed(list(zip(e.when, then, strict=True))):
            chosen = self._choose(self.truth(when), value, chosen)
        return chosen, per

    def _choose(self, which: int, a: int, b: int) -> int:
        """``a`` if ``which``, else ``b``; the lesser or the greater of both, if ``which`` compares them."""
        node = self.nodes[which]
        compared = self.nodes[node.args[0]] if node.kind == "not" else node
        if compared.kind == "<" and compared.args in ((a, b), (b, a)):
            lesser = (compared.args == (a, b)) == (compared is node)
            return self._extreme("least" if lesser else "greatest", *compared.args)
        if compared.kind == "<":
            less = compared is node  # in the branch a
            a, b = (self._compared_difference(v, compared, less=v_less) for v, v_less in ((a, less), (b, not less)))
        x, y = self.nodes[a], self.nodes[b]
        if compared.kind == "=" and self._changes_nothing(compared, *((a, b) if compared is node else (b, a))):
            return b if compared is node else a
        if (found := self._by_upper_bits(node, a, b)) is not None:
            return found
        if x.kind == "+" and x.args[0] == b and (self.nodes[x.args[1]].low, self.nodes[x.args[1]].high) == (1, 1):
            return self.fit(self._plus(b, which), min(x.low, y.low), max(x.high, y.high))  # the condition is added
        return self._add("choose", (which, a, b), min(x.low, y.low), max(x.high, y.high))

    def _by_upper_bits(self, equal: Node, a: int, b: int) -> int | None:
        """A choice of ``a`` or ``b``, a choice by the same number, which compares shared upper bits once."""
        other = self.nodes[b]
        if equal.kind != "=" or self.nodes[equal.args[1]].kind != "constant" or other.kind != "choose":
            return None
        (x, c), second = equal.args, self.nodes[other.args[0]]
        upper, at = self._shift(x, -_LOWER), self.nodes[c].low
        if second.kind != "=" or second.args[0] not in (x, upper) or self.nodes[second.args[1]].kind != "constant":
            return None
        d = self.nodes[second.args[1]].low
        if (d if second.args[0] == upper else d >> _LOWER) != at >> _LOWER or self.nodes[x].width <= 2 * _LOWER:
            return None

        def lower(value: int) -> int:
            return self._add("=", (self._bits(x, _LOWER), self._constant(value % (1 << _LOWER))), 0, 1)

        _, then, otherwise = other.args
        if second.args[0] == x:
            then = self._choose(lower(d), then, otherwise)
        which = self._add("=", (upper, self._constant(at >> _LOWER)), 0, 1)
        return self._choose(which, self._choose(lower(at), a, then), otherwise)

    def _compared_difference(self, a: int, compared: Node, *, less: bool) -> int:
        """``a`` where ``compared`` is true, if ``less``, or false: then the sign of a difference is known."""
        node = self._unfitted(a)
        if node.kind != "-" or node.args not in (compared.args, compared.args[::-1]):
            return a
        of = self.nodes[a]
        if node.args == compared.args:
            return self.fit(a, of.low, min(of.high, -1)) if less else self.fit(a, max(of.low, 0), of.high)
        return self.fit(a, max(of.low, 1), of.high) if less else self.fit(a, of.low, min(of.high, 0))

    def _unfitted(self, a: int) -> Node:
        node = self.nodes[a]
        return self._unfitted(node.args[0]) if node.kind == "fit" else node

    def _changes_nothing(self, equal: Node, a: int, b: int) -> bool:
        """True if ``b`` is ``a`` where ``equal`` compares with 0 what ``b`` adds to it, or subtracts from it."""
        other = self._unfitted(b)
        zeros = [n for n in equal.args if self.nodes[n].kind != "constant"]
        return (other.kind in ("+", "-", "|", "^") and other.args[0] == a and [other.args[1]] == zeros
                and any(self.nodes[n].kind == "constant" and self.nodes[n].low == 0 for n in equal.args))

    def _extreme(self, kind: str, a: int, b: int) -> int:
        p, q = self.nodes[a], self.nodes[b]
        for one, constant in ((a, q), (b, p)):
            # Of numbers that are equal either may be taken, so the constant with more zeros is compared with.
            limit = max(constant.low, constant.low + 1, key=lambda n: n & -n if n else math.inf)
            if constant.kind == "constant" and self.nodes[one].kind != "constant" and limit % 4 == 0 and (
                    self.nodes[one].low < constant.low < self.nodes[one].high):
                if self.saturates and (made := self._between(kind, one, constant.low, limit)) is not None:
                    return made
                below = self._add("<", (one, self._constant(limit)), 0, 1)
                ends = (one, self._constant(constant.low)) if kind == "least" else (self._constant(constant.low), one)
                low, high = ((min if kind == "least" else max)(x, y) for x, y in ((p.low, q.low), (p.high, q.high)))
                made = self._add("choose", (below, *ends), low, high)
                self._ended[made] = kind, one, constant.low, self._not(below) if kind == "least" else below
                return made
        if kind == "least":
            return self._add("min", (a, b), min(p.low, q.low), min(p.high, q.high))
        return self._add("max", (a, b), max(p.low, q.low), max(p.high, q.high))


    def _between(self, kind: str, one: int, end: int, limit: int) -> int | None:
        """The ``kind`` of ``end`` and ``one``, which is a number with its other end, if 0 lies between both."""
        if one not in self._ended or self._ended[one][0] == kind:
            return None
        _, x, other, beyond = self._ended[one]
        low, high = sorted((end, other))
        if not low < 0 <= high:
            return None
        below = self._add("<", (x, self._constant(limit)), 0, 1)
        beyond = self._any(beyond, self._not(below) if kind == "least" else below)
        negative = self._add("<", (x, self._constant(0)), 0, 1)
        nearest = self._add("choose", (negative, self._constant(low), self._constant(high)), low, high)
        node = self.nodes[x]
        return self.fit(self._add("choose", (beyond, nearest, x), node.low, node.high), low, high)


def signed_digits(n: int) -> list[tuple[int, int]]:
    """The places of ``n`` > 0 and their digits 1 or −1, fewest, from the lowest place on (the non-adjacent form)."""
    found, place = [], 0
    while n:
        if n & 1:
            digit = 2 - (n & 3)
            found.append((place, digit))
            n -= digit
        n, place = n >> 1, place + 1
    return found


def _shifted(kind: str, value: int, places: int) -> int:
    if kind == "bits":
        return value & (1 << places) - 1
    return value << places if places > 0 else value >> -places


_EVALUATED: dict[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "abs": abs, "min": min, "max": max, "=": operator.eq, "<": operator.lt,
    "and": operator.and_, "or": operator.or_, "not": operator.not_, "choose": lambda c, a, b: a if c else b,
    "fit": operator.pos,
}
