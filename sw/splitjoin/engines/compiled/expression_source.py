"""Source of a predicate on one pair, in numba's Python: the same values as `splitjoin.lang.eval.vector` computes.

Three-valued logic becomes two-valued: *is it true* of AND and OR needs only *is it true* of their operands, of NOT *is
it false*. Numbers carry their validity beside them, where something can be NULL at all. Whole numbers are computed in
one width, by `splitjoin.engines.compiled.exact_source`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from splitjoin.lang import ir
from splitjoin.lang.eval.vector import constant
from splitjoin.lang.ir import Cmp, Expr, Lit, sides
from splitjoin.lang.properties import value_range
from splitjoin.lang.types import Bool, Duration, Float, Int, Timestamp, is_text, units_per

from .atoms import Atom, ValueRange
from .exact_source import BITWISE, ExactWriter, NotCompiled, Operand, TooWide, all_of, any_of, both

#: Functions of floats that are one instruction each.
_FLOAT_CALLS = {"sqrt": "np.sqrt", "floor": "np.floor", "ceil": "np.ceil"}


@dataclass(frozen=True)
class Code:
    """Code that tests whether a pair matches.

    ``lines`` assign names, from those of the lanes: ``r0`` is the value in R's lane 0, ``r0v`` its validity. ``truth``:
    an expression of the names. ``values`` and ``valids``: the lanes used, whose values or validity are read.
    """

    lines: tuple[str, ...]
    truth: str
    values: tuple[Atom, ...]
    valids: tuple[Atom, ...]


def compile_pair(e: Expr, atoms: Sequence[Atom], ranges: Mapping[Expr, ValueRange], width: int) -> Code:
    """The condition ``e``, whole numbers in ``width`` (32 or 64) bits, lanes as ``ranges`` has them.

    Raises `NotCompiled`, or `TooWide` where more bits or other values would do.
    """
    writer = ExactWriter(width)
    pair = PairWriter({a.expr: a for a in atoms}, ranges, writer)
    truth = pair.true(e)
    used = [a for a in atoms if f"{a.side}{a.number}" in pair.used]
    return Code(tuple(writer.lines), truth, tuple(used), tuple(a for a in atoms if f"{a.side}{a.number}v" in pair.used))


class PairWriter:
    """Writes the lines of each part of a condition to ``writer``, once; ``used``: names of the lanes that they read."""

    def __init__(self, atoms: Mapping[Expr, Atom], ranges: Mapping[Expr, ValueRange], writer: ExactWriter):
        self._atoms, self._ranges, self._writer = atoms, ranges, writer
        self._int = writer.int_type
        self._known: dict[tuple[str, Expr], Operand | str] = {}
        self.used: set[str] = set()

    def true(self, e: Expr) -> str:
        """Code: ``e`` is true."""
        return self._truth(e, True)

    def _truth(self, e: Expr, wanted: bool) -> str:
        key = (str(wanted), e)
        if key not in self._known:
            self._known[key] = self._writer.let(self._make_truth(e, wanted))
        return str(self._known[key])

    def _make_truth(self, e: Expr, wanted: bool) -> str:
        if e in self._atoms or isinstance(e, (ir.Case, ir.Extreme)):
            v = self.number(e)
            return all_of([v.valid, f"({v.code} {'!=' if wanted else '=='} {self._int}(0))"])
        if not sides(e):
            return str((e.value if isinstance(e, Lit) else constant(e)) is wanted)
        match e:
            case ir.And() | ir.Or():
                parts = [self._truth(a, wanted) for a in e.args]
                return all_of(parts) if isinstance(e, ir.And) == wanted else any_of(parts)
            case ir.Not():
                return self._truth(e.a, not wanted)
            case ir.IsNull():
                valid = self._valid(e.a)
                return str(not wanted) if valid is None else f"(not {valid})" if wanted else valid
            case Cmp():
                return self._compared(e, wanted)
        raise NotCompiled(f"'{e}'")

    def _valid(self, e: Expr) -> str | None:
        """Code: ``e`` is not NULL; None if it never is."""
        if e in self._atoms or not isinstance(e.type, Bool):
            return self.number(e).valid
        return self._writer.let(any_of([self._truth(e, True), self._truth(e, False)]))

    def _compared(self, e: Cmp, wanted: bool) -> str:
        a, b = self.number(e.a), self.number(e.b)
        is_float = isinstance(e.a.type, Float)
        if not is_float:
            a, b = self._writer.aligned([a, b])
        holds = self._writer.let(
            _float_compared(e, a.code, b.code) if is_float else f"{a.code} {_OPERATOR[e.op]} {b.code}")
        return all_of([a.valid, b.valid, holds if wanted else f"(not {holds})"])

    # Numbers.

    def number(self, e: Expr) -> Operand:
        """The value of ``e``; a truth value as 1 or 0."""
        key = ("number", e)
        if key not in self._known:
            v = self._make_number(e)
            if not isinstance(e.type, Float):
                self._writer.check(v.low, v.high, e)
            code = self._writer.let(v.code)
            valid = None if v.valid in (None, "True") else self._writer.let(v.valid)
            self._known[key] = replace(v, code=code, valid=valid)
        found = self._known[key]
        assert isinstance(found, Operand)
        return found

    def _make_number(self, e: Expr) -> Operand:
        if is_text(e.type):
            raise NotCompiled(f"'{e}', a text")
        if e in self._atoms:
            return self._lane(self._atoms[e])
        if not sides(e):
            return self._literal(e if isinstance(e, Lit) else Lit(e.type, constant(e)))
        if isinstance(e, ir.Case):
            return self._case(e)
        if isinstance(e, ir.Extreme):
            return self._extreme(e)
        if isinstance(e, ir.Call):
            return self._call(e)
        if isinstance(e.type, Bool):
            return Operand(f"{self._int}({self._truth(e, True)})", self._valid(e), 0, 1)
        match e:
            case ir.Neg():
                a = self.number(e.a)
                return replace(self._typed(e, f"-{a.code}", a), low=-a.high, high=-a.low)
            case ir.Abs():
                a = self.number(e.a)
                least = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
                return replace(self._typed(e, f"abs({a.code})", a), low=least, high=a.size)
            case ir.FloatCall() if e.function in _FLOAT_CALLS:
                a = self.number(e.a)
                return self._typed(e, f"{_FLOAT_CALLS[e.function]}({a.code})", a)
            case ir.Cast():
                return self._cast(e)
            case ir.Arith() if isinstance(e.type, Float):
                a, b = self.number(e.a), self.number(e.b)
                code = f"np.fmod({a.code}, {b.code})" if e.op == "mod" else f"{a.code} {e.op} {b.code}"
                return replace(self._typed(e, code, a), valid=both(a.valid, b.valid))
            case ir.Arith() if e.op != "/":
                return self._writer.arith(e, self.number(e.a), self.number(e.b))
        raise NotCompiled(f"'{e}'")

    def _lane(self, atom: Atom) -> Operand:
        value_range, name = self._ranges[atom.expr], f"{atom.side}{atom.number}"
        self.used.add(name)
        if value_range.nulls:
            self.used.add(name + "v")
        code = name if isinstance(atom.expr.type, Float) else f"{self._int}({name})"
        valid = name + "v" if value_range.nulls else None
        return Operand(code, valid, value_range.low, value_range.high, atom.denominator)

    def _literal(self, e: Lit) -> Operand:
        valid = None if e.value is not None else "False"
        if isinstance(e.type, Float):
            code = repr(float(e.value or 0))
            return Operand(f"np.float{e.type.bits}({code if math.isfinite(float(code)) else f'np.{code}'})"
                          .replace("np.-", "-np."), valid)
        exact = Fraction(e.value or 0)  # type: ignore[arg-type]  # other numbers' literals are whole or fractions
        return Operand(f"{self._int}({exact.numerator})", valid, exact.numerator, exact.numerator, exact.denominator)

    def _cast(self, e: ir.Cast) -> Operand:
        a = self.number(e.a)
        if isinstance(e.type, Float):
            if isinstance(e.a.type, Float):
                return Operand(f"np.float{e.type.bits}({a.code})", a.valid)
            code = f"np.float64({a.code})"
            if a.denominator > 1:
                if max(a.size, a.denominator) > 2**53:  # else both have a float64 of their own: it is rounded once
                    raise TooWide(f"'{e}'")
                code += f" / np.float64({a.denominator})"
            return Operand(f"np.float32({self._writer.let(code)})" if e.type.bits == 32 else code, a.valid)
        if isinstance(e.type, Int):
            return a
        if not (isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration))):
            raise NotCompiled(f"'{e}'")
        return self._writer.scaled(a, units_per(e.a.type.unit, e.type.unit))

    def _call(self, e: ir.Call) -> Operand:
        if e.op in BITWISE:
            return self._writer.bits(e, *map(self.number, e.args))
        if e.op not in _WORDS:
            raise NotCompiled(f"'{e}'")
        kind = "np.uint32" if e.of.bits <= 32 else "np.uint64"
        parts = [self._pattern(a, kind) for a in e.args]
        mask = f"{kind}({2**e.of.bits - 1})"
        code = _WORDS[e.op].format(*(f"{kind}({code} & {mask})" for code, _ in parts))
        low, high = value_range(e)
        assert low >= 0, f"{e.op} has negative values, so it needs a case of its own in _call, not a line in _WORDS"
        return Operand(f"{self._int}({code})", reduce(both, (valid for _, valid in parts)), int(low), int(high))

    def _pattern(self, e: Expr, kind: str) -> tuple[str, str | None]:
        """The last bits of ``e``, of a number of any size, in the unsigned type ``kind``; its validity."""
        if e in self._atoms:
            atom, value_range = self._atoms[e], self._ranges[e]
            name = f"{atom.side}{atom.number}"
            self.used |= {name, name + "v"} if value_range.nulls else {name}
            return self._writer.let(f"{kind}(np.int64({name}))"), name + "v" if value_range.nulls else None
        if isinstance(e, Lit):
            bits = 32 if kind == "np.uint32" else 64
            return f"{kind}({int(e.value or 0) % 2**bits})", None if e.value is not None else "False"
        if isinstance(e, ir.Call) and e.op in BITWISE:
            (a, x), (b, y) = (self._pattern(part, kind) for part in e.args)
            return self._writer.let(f"{kind}({a} {e.op} {b})"), both(x, y)
        v = self.number(e)
        if v.denominator != 1:
            raise NotCompiled(f"'{e}'")
        return self._writer.let(f"{kind}({v.code})"), v.valid

    # Choices.

    def _case(self, e: ir.Case) -> Operand:
        *then, otherwise = self._one_denominator(e, [*e.then, e.otherwise])
        code, valid = otherwise.code, otherwise.valid or "True"
        for when, v in reversed(list(zip(e.when, then, strict=True))):
            true = self._truth(when, True)
            code = self._writer.let(f"{v.code} if {true} else {code}")
            if v.valid or valid != "True":
                valid = self._writer.let(f"{v.valid or 'True'} if {true} else {valid}")
        every = [*then, otherwise]
        return Operand(code, valid, min(v.low for v in every), max(v.high for v in every), otherwise.denominator)

    def _extreme(self, e: ir.Extreme) -> Operand:
        best, *others = every = self._one_denominator(e, e.args)
        code, valid = best.code, best.valid
        op = "<" if e.kind == "least" else ">"
        for a in others:
            better = self._writer.let(
                _float_less(a.code, code) if isinstance(e.type, Float) and op == "<" else
                _float_less(code, a.code) if isinstance(e.type, Float) else f"{a.code} {op} {code}")
            if valid is not None:
                better = any_of([f"(not {valid})", better])
            better = self._writer.let(all_of([a.valid, better]))
            code = self._writer.let(f"{a.code} if {better} else {code}")
            valid = None if valid is None or a.valid is None else self._writer.let(any_of([valid, a.valid]))
        # An operand that is never NULL bounds the result.
        sure = [v for v in every if v.valid is None]
        low, high = min(v.low for v in every), max(v.high for v in every)
        if op == "<":
            high = min([high, *(v.high for v in sure)])
        else:
            low = max([low, *(v.low for v in sure)])
        return Operand(code, valid, low, high, best.denominator)

    def _one_denominator(self, e: Expr, args: Sequence[Expr]) -> list[Operand]:
        """Values of ``args`` in one form."""
        found = [self.number(a) for a in args]
        return found if isinstance(e.type, Float) else self._writer.aligned(found)

    def _typed(self, e: Expr, code: str, a: Operand) -> Operand:
        kind = f"np.float{e.type.bits}" if isinstance(e.type, Float) else self._int
        return replace(a, code=f"{kind}({code})")


#: For each of these functions on integers, the code of its value, from its operands as unsigned words: only for values
#: that depend on nothing else, and are never negative.
_WORDS = {"bit_count": "popcount({0})"}
_OPERATOR = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _float_less(a: str, b: str) -> str:
    """SQL's total order: NaN is greater than everything else, and equals NaN."""
    return f"({a} < {b}) | (({a} == {a}) & ({b} != {b}))"


def _float_compared(e: Cmp, a: str, b: str) -> str:
    if any(isinstance(x, Lit) and x.value is not None and not math.isnan(float(x.value)) for x in (e.a, e.b)):
        # One of them is a number: the order of IEEE 754, or the opposite of its opposite, knows where NaN stands.
        opposite = {">": "<=", ">=": "<"} if isinstance(e.b, Lit) else {"<": ">=", "<=": ">"}
        return f"not ({a} {opposite[e.op]} {b})" if e.op in opposite else f"{a} {_OPERATOR[e.op]} {b}"
    if e.op in ("=", "<>"):
        equal = f"(({a} == {b}) | (({a} != {a}) & ({b} != {b})))"
        return equal if e.op == "=" else f"not {equal}"
    less = _float_less(a, b) if e.op in ("<", ">=") else _float_less(b, a)
    return less if e.op in ("<", ">") else f"not ({less})"
