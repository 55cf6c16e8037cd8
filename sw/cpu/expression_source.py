"""Source of a predicate on one pair, in numba's Python: the same values as `splitjoin.lang.vector` computes.

Three-valued logic becomes two-valued: *is it true* of AND and OR needs only *is it true* of their operands, of NOT *is
it false*. Numbers carry their validity beside them, where something can be NULL at all. Whole numbers are computed in
one width; every step is checked here, by the least and the greatest values that can come, so nothing can wrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..lang.ir import Abs, And, Arith, BitCount, Case, Cast, Cmp, Expr, Extreme, IsNull, Lit, Neg, Not, Or
from ..lang.traversal import sides
from ..lang.types import Bool, Duration, Float, Int, Timestamp, is_text, units_per
from ..lang.vector import constant
from .atoms import Atom, Spread

__all__ = ["Code", "NotCompiled", "TooWide", "compile_pair"]


class NotCompiled(Exception):
    """The predicate has a part for which there is no compiled code; the message names it."""


class TooWide(NotCompiled):
    """A whole number may leave the width that it is computed in."""


@dataclass(frozen=True)
class Code:
    """What finds out whether a pair matches.

    ``lines`` assign names, from those of the lanes: ``r0`` is the value in R's lane 0, ``r0v`` its validity. ``truth``:
    an expression of the names. ``values`` and ``valids``: the lanes used, whose values or validity are read.
    """

    lines: tuple[str, ...]
    truth: str
    values: tuple[Atom, ...]
    valids: tuple[Atom, ...]


@dataclass(frozen=True)
class _Value:
    """``code`` of a value and of its validity (None: never NULL). Exact ones are whole numbers from ``low`` to ``high``
    over ``denominator``.
    """

    code: str
    valid: str | None = None
    low: int = 0
    high: int = 0
    denominator: int = 1


def compile_pair(e: Expr, atoms: Sequence[Atom], spreads: Mapping[Expr, Spread], width: int) -> Code:
    """The condition ``e``, whole numbers in ``width`` (32 or 64) bits, lanes as ``spreads`` has them.

    Raises `NotCompiled`, or `TooWide` where more bits or other values would do.
    """
    writer = _Writer({a.expr: a for a in atoms}, spreads, width)
    truth = writer.true(e)
    used = [a for a in atoms if f"{a.side}{a.number}" in writer.used]
    return Code(tuple(writer.lines), truth, tuple(used),
                tuple(a for a in atoms if f"{a.side}{a.number}v" in writer.used))


class _Writer:
    """Writes lines; each step gets a name of its own."""

    def __init__(self, atoms: Mapping[Expr, Atom], spreads: Mapping[Expr, Spread], width: int):
        self._atoms, self._spreads, self._width = atoms, spreads, width
        self._int = f"np.int{width}"
        self._known: dict[tuple[str, Expr], _Value | str] = {}
        self._names: dict[str, str] = {}
        self.lines: list[str] = []
        self.used: set[str] = set()

    def true(self, e: Expr) -> str:
        """Code: ``e`` is true."""
        return self._truth(e, True)

    def _truth(self, e: Expr, wanted: bool) -> str:
        key = (str(wanted), e)
        if key not in self._known:
            self._known[key] = self._let(self._make_truth(e, wanted))
        return str(self._known[key])

    def _make_truth(self, e: Expr, wanted: bool) -> str:
        if e in self._atoms or isinstance(e, (Case, Extreme)):
            v = self._number(e)
            return _all([v.valid, f"({v.code} {'!=' if wanted else '=='} {self._int}(0))"])
        if not sides(e):
            return str((e.value if isinstance(e, Lit) else constant(e)) is wanted)
        match e:
            case And() | Or():
                parts = [self._truth(a, wanted) for a in e.args]
                return _all(parts) if isinstance(e, And) == wanted else _any(parts)
            case Not():
                return self._truth(e.a, not wanted)
            case IsNull():
                valid = self._valid(e.a)
                return str(not wanted) if valid is None else f"(not {valid})" if wanted else valid
            case Cmp():
                return self._compared(e, wanted)
        raise NotCompiled(f"'{e}'")

    def _valid(self, e: Expr) -> str | None:
        """Code: ``e`` is not NULL; None if it never is."""
        if e in self._atoms or not isinstance(e.type, Bool):
            return self._number(e).valid
        return self._let(_any([self._truth(e, True), self._truth(e, False)]))

    def _compared(self, e: Cmp, wanted: bool) -> str:
        a, b = self._number(e.a), self._number(e.b)
        is_float = isinstance(e.a.type, Float)
        if not is_float:
            a, b = self._aligned([a, b])
        holds = self._let(_float_compared(e, a.code, b.code) if is_float else f"{a.code} {_OPERATOR[e.op]} {b.code}")
        return _all([a.valid, b.valid, holds if wanted else f"(not {holds})"])

    # Numbers.

    def _number(self, e: Expr) -> _Value:
        key = ("number", e)
        if key not in self._known:
            v = self._make_number(e)
            if not isinstance(e.type, Float):
                self._check(v.low, v.high, e)
            code = self._let(v.code)
            self._known[key] = replace(v, code=code, valid=None if v.valid in (None, "True") else self._let(v.valid))
        found = self._known[key]
        assert isinstance(found, _Value)
        return found

    def _make_number(self, e: Expr) -> _Value:
        if is_text(e.type):
            raise NotCompiled(f"'{e}', a text")
        if e in self._atoms:
            return self._lane(self._atoms[e])
        if not sides(e):
            return self._literal(e if isinstance(e, Lit) else Lit(e.type, constant(e)))
        if isinstance(e, Case):
            return self._case(e)
        if isinstance(e, Extreme):
            return self._extreme(e)
        if isinstance(e, BitCount):
            return self._bit_count(e)
        if isinstance(e.type, Bool):
            return _Value(f"{self._int}({self._truth(e, True)})", self._valid(e), 0, 1)
        match e:
            case Neg():
                a = self._number(e.a)
                return replace(self._typed(e, f"-{a.code}", a), low=-a.high, high=-a.low)
            case Abs():
                a = self._number(e.a)
                least = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
                return replace(self._typed(e, f"abs({a.code})", a), low=least, high=_size(a))
            case Cast():
                return self._cast(e)
            case Arith() if isinstance(e.type, Float):
                a, b = self._number(e.a), self._number(e.b)
                code = f"np.fmod({a.code}, {b.code})" if e.op == "mod" else f"{a.code} {e.op} {b.code}"
                return replace(self._typed(e, code, a), valid=_both(a.valid, b.valid))
            case Arith(op="&" | "|" | "^"):
                return self._bits(e)
            case Arith(op="+" | "-" | "*" | "<<" | ">>" | "div" | "mod" | "//" | "%"):
                return self._arith(e)
        raise NotCompiled(f"'{e}'")

    def _lane(self, atom: Atom) -> _Value:
        spread, name = self._spreads[atom.expr], f"{atom.side}{atom.number}"
        self.used.add(name)
        if spread.nulls:
            self.used.add(name + "v")
        code = name if isinstance(atom.expr.type, Float) else f"{self._int}({name})"
        return _Value(code, name + "v" if spread.nulls else None, spread.low, spread.high, atom.denominator)

    def _literal(self, e: Lit) -> _Value:
        valid = None if e.value is not None else "False"
        if isinstance(e.type, Float):
            code = repr(float(e.value or 0))
            return _Value(f"np.float{e.type.bits}({code if math.isfinite(float(code)) else f'np.{code}'})"
                          .replace("np.-", "-np."), valid)
        exact = Fraction(e.value or 0)  # type: ignore[arg-type]  # other numbers' literals are whole or fractions
        return _Value(f"{self._int}({exact.numerator})", valid, exact.numerator, exact.numerator, exact.denominator)

    def _cast(self, e: Cast) -> _Value:
        a = self._number(e.a)
        if isinstance(e.type, Float):
            if isinstance(e.a.type, Float):
                return _Value(f"np.float{e.type.bits}({a.code})", a.valid)
            code = f"np.float64({a.code})"
            if a.denominator > 1:
                if max(_size(a), a.denominator) > 2**53:  # else both have a float64 of their own: it is rounded once
                    raise TooWide(f"'{e}'")
                code += f" / np.float64({a.denominator})"
            return _Value(f"np.float32({self._let(code)})" if e.type.bits == 32 else code, a.valid)
        if isinstance(e.type, Int):
            return a
        if not (isinstance(e.type, (Timestamp, Duration)) and isinstance(e.a.type, (Timestamp, Duration))):
            raise NotCompiled(f"'{e}'")
        return self._scaled(a, units_per(e.a.type.unit, e.type.unit))

    def _arith(self, e: Arith) -> _Value:
        a, b = self._number(e.a), self._number(e.b)
        valid = _both(a.valid, b.valid)
        if e.op == "*":
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return _Value(self._whole(f"{a.code} * {b.code}"), valid, min(ends), max(ends),
                          a.denominator * b.denominator)
        if e.op in ("<<", ">>"):
            if not 0 <= b.low <= b.high < self._width:
                raise TooWide(f"'{e}'")
            ends = [x << y if e.op == "<<" else x >> y for x in (a.low, a.high) for y in (b.low, b.high)]
            return _Value(self._whole(f"{a.code} {e.op} {b.code}"), valid, min(ends), max(ends))
        a, b = self._aligned([a, b])
        if e.op == "+":
            return _Value(self._whole(f"{a.code} + {b.code}"), valid, a.low + b.low, a.high + b.high, a.denominator)
        if e.op == "-":
            return _Value(self._whole(f"{a.code} - {b.code}"), valid, a.low - b.high, a.high - b.low, a.denominator)
        return self._division(e, a, b)

    def _division(self, e: Arith, a: _Value, b: _Value) -> _Value:
        """By zero NULL; rounded down, and for ``div`` and ``mod`` then towards zero."""
        self._check(0, _size(a) + _size(b), e)  # the product of divisor and quotient
        valid, y = _both(a.valid, b.valid), b.code
        if b.low <= 0 <= b.high:
            valid = _both(valid, self._let(f"{y} != {self._int}(0)"))
            y = self._let(f"{y} if {y} != {self._int}(0) else {self._int}(1)")
        quotient = self._let(self._whole(f"{a.code} // {y}"))
        rest = self._let(self._whole(f"{a.code} - {quotient} * {y}"))
        if e.op in ("div", "mod"):
            off = self._let(f"({rest} != {self._int}(0)) & (({a.code} < {self._int}(0)) != ({y} < {self._int}(0)))")
            quotient = self._let(self._whole(f"{quotient} + {self._int}({off})"))
            rest = self._let(f"{self._whole(f'{rest} - {y}')} if {off} else {rest}")
        if e.op in ("div", "//"):
            return _Value(quotient, valid, -_size(a), _size(a))
        most = max(_size(b), 1)
        return _Value(rest, valid, -most, most, a.denominator)

    def _bits(self, e: Arith) -> _Value:
        a, b = self._number(e.a), self._number(e.b)
        if a.denominator != 1 or b.denominator != 1:
            raise NotCompiled(f"'{e}'")
        top = 1 << max(x.bit_length() for x in (a.low, a.high, b.low, b.high))
        least = 0 if min(a.low, b.low) >= 0 else -top
        return _Value(self._whole(f"{a.code} {e.op} {b.code}"), _both(a.valid, b.valid), least, top - 1)

    def _bit_count(self, e: BitCount) -> _Value:
        type_ = e.a.type
        if not isinstance(type_, Int) or type_.bits > 64:
            raise NotCompiled(f"'{e}'")
        kind = "np.uint32" if type_.bits <= 32 else "np.uint64"
        code, valid = self._pattern(e.a, kind)
        mask = f"{kind}({2**type_.bits - 1})"
        return _Value(f"{self._int}(popcount({kind}({code} & {mask})))", valid, 0, type_.bits)

    def _pattern(self, e: Expr, kind: str) -> tuple[str, str | None]:
        """The last bits of ``e``, of a number of any size, in the unsigned type ``kind``; its validity."""
        if e in self._atoms:
            atom, spread = self._atoms[e], self._spreads[e]
            name = f"{atom.side}{atom.number}"
            self.used |= {name, name + "v"} if spread.nulls else {name}
            return self._let(f"{kind}(np.int64({name}))"), name + "v" if spread.nulls else None
        if isinstance(e, Lit):
            bits = 32 if kind == "np.uint32" else 64
            return f"{kind}({int(e.value or 0) % 2**bits})", None if e.value is not None else "False"
        if isinstance(e, Arith) and e.op in ("&", "|", "^"):
            (a, x), (b, y) = self._pattern(e.a, kind), self._pattern(e.b, kind)
            return self._let(f"{kind}({a} {e.op} {b})"), _both(x, y)
        v = self._number(e)
        if v.denominator != 1:
            raise NotCompiled(f"'{e}'")
        return self._let(f"{kind}({v.code})"), v.valid

    # Choices.

    def _case(self, e: Case) -> _Value:
        *then, otherwise = self._alike(e, [*e.then, e.otherwise])
        code, valid = otherwise.code, otherwise.valid or "True"
        for when, v in reversed(list(zip(e.when, then, strict=True))):
            true = self._truth(when, True)
            code = self._let(f"{v.code} if {true} else {code}")
            valid = self._let(f"{v.valid or 'True'} if {true} else {valid}") if (v.valid or valid != "True") else valid
        every = [*then, otherwise]
        return _Value(code, valid, min(v.low for v in every), max(v.high for v in every), otherwise.denominator)

    def _extreme(self, e: Extreme) -> _Value:
        best, *others = every = self._alike(e, e.args)
        code, valid = best.code, best.valid
        op = "<" if e.kind == "least" else ">"
        for a in others:
            better = self._let(_float_less(a.code, code) if isinstance(e.type, Float) and op == "<" else
                               _float_less(code, a.code) if isinstance(e.type, Float) else f"{a.code} {op} {code}")
            if valid is not None:
                better = _any([f"(not {valid})", better])
            better = self._let(_all([a.valid, better]))
            code = self._let(f"{a.code} if {better} else {code}")
            valid = None if valid is None or a.valid is None else self._let(_any([valid, a.valid]))
        return _Value(code, valid, min(v.low for v in every), max(v.high for v in every), best.denominator)

    def _alike(self, e: Expr, args: Sequence[Expr]) -> list[_Value]:
        """Values of ``args`` in one form."""
        found = [self._number(a) for a in args]
        return found if isinstance(e.type, Float) else self._aligned(found)

    # Steps.

    def _aligned(self, args: Sequence[_Value]) -> list[_Value]:
        """Exact values over one denominator."""
        common = math.lcm(*(a.denominator for a in args))
        return [replace(self._scaled(a, common // a.denominator), denominator=common) for a in args]

    def _scaled(self, a: _Value, factor: int) -> _Value:
        if factor == 1:
            return a
        self._check(a.low * factor, a.high * factor, a.code)
        self._check(factor, factor, a.code)
        code = self._let(self._whole(f"{a.code} * {self._int}({factor})"))
        return replace(a, code=code, low=a.low * factor, high=a.high * factor)

    def _typed(self, e: Expr, code: str, a: _Value) -> _Value:
        kind = f"np.float{e.type.bits}" if isinstance(e.type, Float) else self._int
        return replace(a, code=f"{kind}({code})")

    def _whole(self, code: str) -> str:
        return f"{self._int}({code})"

    def _check(self, low: int, high: int, what: object) -> None:
        if not -(2 ** (self._width - 1)) < low <= high < 2 ** (self._width - 1):
            raise TooWide(f"'{what}' from {low} to {high}")

    def _let(self, code: str) -> str:
        """A name for the value of ``code``, which gets a line, unless it is one already."""
        if code.isidentifier():
            return code
        if code not in self._names:
            self._names[code] = f"t{len(self._names)}"
            self.lines.append(f"{self._names[code]} = {code}")
        return self._names[code]


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


def _both(a: str | None, b: str | None) -> str | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    return _all([a, b])


def _size(v: _Value) -> int:
    return max(abs(v.low), abs(v.high))


def _all(codes: Sequence[str | None]) -> str:
    some = list(dict.fromkeys(c for c in codes if c not in (None, "True")))
    if "False" in some:
        return "False"
    return f"({' & '.join(str(c) for c in some)})" if some else "True"


def _any(codes: Sequence[str]) -> str:
    some = list(dict.fromkeys(c for c in codes if c != "False"))
    if "True" in some:
        return "True"
    return f"({' | '.join(some)})" if some else "False"
