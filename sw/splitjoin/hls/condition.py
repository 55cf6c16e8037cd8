"""Conditions of two streams in three-valued logic as graphs: a truth value is two bits, a value a number and a bit that
says that it is not NULL.

Parts of one stream are inputs of the graph: the host computes them once for each tuple, whatever they are made of.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Protocol

from splitjoin.base.errors import UnsupportedError
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import (
    And,
    Arith,
    Call,
    Case,
    Cast,
    Cmp,
    Expr,
    Extreme,
    IsNull,
    Like,
    Not,
    Or,
    StartsWith,
    UnitNumber,
    UnitStart,
    as_case,
    rebuilt,
    sides,
    text,
)
from splitjoin.lang.properties import may_be_null
from splitjoin.lang.types import Binary, Bool, Duration, Float, Timestamp, is_text, units_per

from .division import DividingBuilder
from .graph import Graph, Node


class ConditionInputs(Protocol):
    """The inputs of a condition's graph: parts of the condition that read one stream, or none."""

    def number(self, e: Expr) -> tuple[Node, int] | None:
        """The input for the value ``e`` as a whole number, and the denominator; None if it is to be computed from its
        parts. Floats and texts are numbers whose order, or of texts whose equality, is that of the values.

        Raises `UnsupportedError` for a column that has no such number.
        """

    def code(self, value: object, e: Expr) -> int | None:
        """The number of the float ``value`` of constant ``e``; None for a type whose constants are inputs too."""

    def ordered(self, e: Expr, length: int | None) -> tuple[Node, bool | None]:
        """The input for the text or binary ``e``, or a constant, as a number in its order; and whether no other value
        has this number: None if it is so where the lowest byte is 8 at most. ``length``: bytes of all values, if known.
        """

    def flag(self, e: Expr, value: str) -> Node:
        """The input of one bit that is 1 where ``e`` is ``value``: of a condition ``true`` or ``false``, of a value
        ``present``.
        """


def condition_graph(e: Expr, inputs: ConditionInputs) -> tuple[Graph, bool]:
    """The graph whose only output is 1 where condition ``e``, which reads both streams, is true; and whether it is so
    nowhere else. It may also be 1 where two texts that are ordered begin alike, and their numbers do not tell.

    Raises `UnsupportedError`, naming the part, for what circuits have no operation for.
    """
    builder = _Conditions(inputs)
    found = builder.truth(e)
    return builder.graph([builder._any(found, *builder.ties)]), not builder.ties


class _Conditions(DividingBuilder):
    """Adds conditions and values to a graph; what occurs several times is added once."""

    def __init__(self, inputs: ConditionInputs):
        super().__init__({}, {})
        self._inputs = inputs
        self._values: dict[int, tuple[Expr, tuple[int, int]]] = {}
        self._presents: dict[int, tuple[Expr, int]] = {}
        self._truths: dict[tuple[int, bool], tuple[Expr, int]] = {}
        self._orders: dict[tuple[int, int | None], tuple[Expr, tuple[int, int]]] = {}
        #: Bits that are 1 where the order of two texts is not known.
        self.ties: list[int] = []

    # The dictionaries hold expressions too, so that no other one gets their `id`.

    def number(self, e: Expr) -> tuple[int, int]:
        if id(e) not in self._values:
            self._values[id(e)] = e, self._number(e)
        return self._values[id(e)][1]

    def present(self, e: Expr) -> int:
        if id(e) not in self._presents:
            self._presents[id(e)] = e, self._present(e)
        return self._presents[id(e)][1]

    def truth(self, e: Expr) -> int:
        return self._is(e, want=True)

    def _is(self, e: Expr, *, want: bool) -> int:
        if (id(e), want) not in self._truths:
            self._truths[id(e), want] = e, self._truth(e, want=want)
        return self._truths[id(e), want][1]

    def _truth(self, e: Expr, *, want: bool) -> int:
        streams = sides(e)
        if not streams:
            return self._constant(int(constant(e) is want))
        if len(streams) == 1:
            if not want and not may_be_null(e):
                return self._not(self.truth(e))
            return self._node(self._inputs.flag(e, "true" if want else "false"))
        match e:
            case And() | Or():
                every = isinstance(e, And) == want
                return (self._all if every else self._any)(*(self._is(a, want=want) for a in e.args))
            case Not():
                return self._is(e.a, want=not want)
            case IsNull():
                found = self.present(e.a)
                return self._not(found) if want else found
            case Cmp():
                if not want:
                    return self._all(self._not(self.truth(e)), self.present(e.a), self.present(e.b))
                ordered = is_text(e.a.type) and e.op not in ("=", "<>")
                return self._all(self._ordered(e) if ordered else self._compared(e), self.present(e.a),
                                 self.present(e.b))
            case StartsWith() | Like() if isinstance(e.a, (Case, Extreme)):
                return self._is(_of_each(e), want=want)
            case Case():
                return self._chosen(e, lambda part: self._is(part, want=want))
        raise UnsupportedError(f"circuits have no operation for {text(e)}")

    def _ordered(self, e: Cmp) -> int:
        """The comparison ``e`` of texts that are not NULL, as their numbers tell it."""
        length = e.a.type.width if isinstance(e.a.type, Binary) and e.a.type == e.b.type else None
        (a, whole_a), (b, whole_b) = self.ordered(e.a, length), self.ordered(e.b, length)
        equal = self._add("=", (a, b), 0, 1)
        # Equal numbers are both of one value alone, or both not.
        whole = whole_b if self.nodes[whole_b].kind == "constant" else whole_a
        tie = self._all(equal, self._not(whole), self.present(e.a), self.present(e.b))
        if self.nodes[tie].kind != "constant" and tie not in self.ties:
            self.ties.append(tie)
        if e.op in ("<", ">="):
            less = self._add("<", (a, b), 0, 1)
            return less if e.op == "<" else self._not(less)
        less = self._add("<", (b, a), 0, 1)
        return less if e.op == ">" else self._not(less)

    def ordered(self, e: Expr, length: int | None) -> tuple[int, int]:
        """The text ``e`` as a number in its order, and 1 where no other value has this number."""
        if (id(e), length) not in self._orders:
            self._orders[id(e), length] = e, self._order(e, length)
        return self._orders[id(e), length][1]

    def _order(self, e: Expr, length: int | None) -> tuple[int, int]:
        if len(sides(e)) < 2:
            node, alone = self._inputs.ordered(e, length)
            code = self._node(node)
            return code, self._below(self._bits(code, 8), 9) if alone is None else self._constant(int(alone))
        case = as_case(e) if isinstance(e, Extreme) else e
        assert isinstance(case, Case)
        code, whole = self.ordered(case.otherwise, length)
        for when, then in reversed(list(zip(case.when, case.then, strict=True))):
            which, (of, is_whole) = self.truth(when), self.ordered(then, length)
            code, whole = self._choose(which, of, code), self._either(which, is_whole, whole)
        return code, whole

    def _present(self, e: Expr) -> int:
        if isinstance(e.type, Bool):
            return self._any(self._is(e, want=True), self._is(e, want=False))
        streams = sides(e)
        if not streams:
            return self._constant(int(constant(e) is not None))
        if not may_be_null(e):
            return self._constant(1)
        if len(streams) == 1:
            return self._node(self._inputs.flag(e, "present"))
        match e:
            case Case():
                return self._chosen(e, self.present)
            case Extreme():
                return self._any(*map(self.present, e.args))
            case Arith(op="div" | "mod" | "//" | "%"):
                divides = self._not(self._is_zero(self.number(e.b)[0]))
                return self._all(self.present(e.a), self.present(e.b), divides)
        return self._all(*map(self.present, e.children))

    def _number(self, e: Expr) -> tuple[int, int]:
        if isinstance(e.type, Bool):
            return self.truth(e), 1
        streams = sides(e)
        if not streams:
            value = constant(e)
            if value is None:
                return self._constant(0), 1
            if isinstance(e.type, Float) or is_text(e.type):
                code = self._inputs.code(value, e)
                if code is not None:
                    return self._constant(code), 1
            else:
                exact = Fraction(value)
                return self._constant(exact.numerator), exact.denominator
        if len(streams) < 2:
            found = self._inputs.number(e)
            if found is not None:
                return self._node(found[0]), found[1]
        coded = isinstance(e.type, Float) or is_text(e.type)
        match e:
            case Case():
                return self._case(e)
            case Extreme():
                return self.number(as_case(e)) if is_text(e.type) else self._extreme_of(e)
            case UnitNumber() | UnitStart() if isinstance(e.a, (Case, Extreme)):
                return self.number(_of_each(e))
            case Cast() if isinstance(e.type, (Timestamp, Duration)):
                a, per = self.number(e.a)
                assert isinstance(e.a.type, (Timestamp, Duration))
                return self._times(a, self._constant(units_per(e.a.type.unit, e.type.unit))), per
            case Call(op="bit_count"):
                return self._ones(self._bits(self.number(e.args[0])[0], e.of.bits), e.of.bits), 1
        if coded:
            raise UnsupportedError(f"{text(e)} is a {'float' if isinstance(e.type, Float) else 'text'} of both streams")
        return super().number(e)

    def _extreme_of(self, e: Extreme) -> tuple[int, int]:
        """The least or the greatest of the operands that are not NULL."""
        values, per = self._aligned([self.number(a) for a in e.args])

        def better(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
            (a, known_a), (b, known_b) = x, y
            found = self._choose(known_a, self._extreme(e.kind, a, b), b)
            return self._choose(known_b, found, a), self._any(known_a, known_b)

        return reduce(better, zip(values, map(self.present, e.args), strict=True))[0], per

    def _ones(self, a: int, bits: int) -> int:
        """The number of ones among the ``bits`` lowest bits of ``a``: full adders, column by column (Wallace, 1964)."""
        columns = [[self._bit(a, n) for n in range(bits)]]
        found = self._constant(0)
        for n, column in enumerate(columns):  # grows meanwhile
            waiting = column
            while len(waiting) > 1:
                three, waiting = waiting[:3], waiting[3:]
                if len(columns) == n + 1:
                    columns.append([])
                a, b, *rest = three
                odd = self._differ(a, b)
                columns[n + 1].append(self._any(self._all(a, b), *(self._all(c, odd) for c in rest)))
                waiting.append(reduce(self._differ, rest, odd))
            found = self._joined(found, self._shift(waiting[0], n))
        return self._narrow(found, bits)


def _of_each(e: StartsWith | Like | UnitNumber | UnitStart) -> Case:
    """``e``, of a choice, as the choice of its values."""
    case = as_case(e.a) if isinstance(e.a, Extreme) else e.a
    assert isinstance(case, Case)
    *then, otherwise = (rebuilt(e, [a]) for a in (*case.then, case.otherwise))
    return Case(e.type, case.when, tuple(then), otherwise)
