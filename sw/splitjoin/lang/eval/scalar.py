"""The meaning of an expression: its value for one tuple of each stream, in plain Python.

The golden model's conditions, and so the reference for every other back end: three-valued logic and floats are those of
`semantics`, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from .. import ir
from ..calendar import tick, unit_number, unit_start
from ..ir import columns
from ..operations import OPERATIONS, float_values, like_pattern
from ..schema import Side
from ..types import FLOAT32, FLOAT64, Duration, Float, Int, Timestamp, Type, units_per

#: A value of the IR: int or Fraction (exact types and times), float (float64), numpy.float32, bool, str, bytes, None
#: (NULL).
RowValue = Any
#: Column name → value.
Row = Mapping[str, RowValue]
Evaluator = Callable[[Row, Row], RowValue]


def evaluate(expr: ir.Expr, r: Row, s: Row) -> RowValue:
    """The value of ``expr`` for one tuple of each stream; for a condition True, False or None (NULL).

    ``r`` and ``s`` map column names to values: dates in days, timestamps in the column's unit, both since 1970; floats
    are rounded to their column's type, decimals are `Fraction`.
    """
    rows: dict[Side, dict[str, RowValue]] = {"r": dict(r), "s": dict(s)}
    with np.errstate(all="ignore"):
        for c in columns(expr):
            if c.type == FLOAT32 and rows[c.side][c.name] is not None:
                rows[c.side][c.name] = np.float32(rows[c.side][c.name])
        return compile_condition(expr)(rows["r"], rows["s"])


def compile_condition(e: ir.Expr) -> Evaluator:
    """``e`` as a Python function of two rows, as in `evaluate`, with `numpy.float32` for float32 columns."""
    match e:
        case ir.Col():
            name = e.name
            return (lambda r, s: r[name]) if e.side == "r" else (lambda r, s: s[name])
        case ir.Lit():
            value = np.float32(e.value) if e.type == FLOAT32 and e.value is not None else e.value
            return lambda r, s: value
        case ir.Arith():
            return _strict2(_float_mod if e.op == "mod" and isinstance(e.type, Float) else _ARITH[e.op], e.a, e.b)
        case ir.Neg():
            return _strict1(lambda v: -v, e.a)
        case ir.Abs():
            return _strict1(abs, e.a)
        case ir.Cast():
            return _strict1(_cast(e.a.type, e.type), e.a)
        case ir.Cmp():
            return _strict2((_FLOAT_CMP if isinstance(e.a.type, Float) else _CMP)[e.op], e.a, e.b)
        case ir.And():
            return _connect([compile_condition(a) for a in e.args], decisive=False)
        case ir.Or():
            return _connect([compile_condition(a) for a in e.args], decisive=True)
        case ir.Not():
            return _strict1(lambda v: not v, e.a)
        case ir.IsNull():
            inner = compile_condition(e.a)
            return lambda r, s: inner(r, s) is None
        case ir.Case():
            return _choose([(compile_condition(w), compile_condition(t)) for w, t in zip(e.when, e.then, strict=True)],
                           compile_condition(e.otherwise))
        case ir.Extreme():
            better = (_FLOAT_CMP if isinstance(e.type, Float) else _CMP)["<" if e.kind == "least" else ">"]
            return _extreme([compile_condition(a) for a in e.args], better)
        case ir.StartsWith():
            return _strict1(lambda v: v.startswith(e.prefix), e.a)
        case ir.Like():
            fits = like_pattern(e.pattern).fullmatch
            return _strict1(lambda v: fits(v) is not None, e.a)
        case ir.FloatCall():
            return _strict1(lambda v: type(v)(float_values(e.function, e.places, np.asarray(v))), e.a)
        case ir.UnitNumber():
            return _strict1(lambda v: unit_number(v, e.unit, tick(e.a.type)), e.a)
        case ir.UnitStart():
            return _strict1(lambda v: unit_start(unit_number(v, e.unit, tick(e.a.type)), e.unit, tick(e.type)), e.a)
        case ir.Call():
            operation, of = OPERATIONS[e.op], e.of
            if operation.operands == 1:
                return _strict1(lambda v: operation.value(of, v), *e.args)
            return _strict2(lambda v, w: operation.value(of, v, w), *e.args)
        case ir.NextFloat():
            end = math.inf if e.up else -math.inf
            return _strict1(lambda v: end if v != v else np.nextafter(v, type(v)(end)), e.a)
        case ir.Isqrt():
            return _strict1(lambda v: math.isqrt(math.floor(v)) if v >= 0 else -1, e.a)
    raise TypeError(f"not an IR node: {e!r}")


def _strict1(op: Callable[[RowValue], RowValue], a: ir.Expr) -> Evaluator:
    """``op`` of one operand; NULL gives NULL."""
    fa = compile_condition(a)
    return lambda r, s: None if (v := fa(r, s)) is None else op(v)


def _strict2(op: Callable[[RowValue, RowValue], RowValue], a: ir.Expr, b: ir.Expr) -> Evaluator:
    """``op`` of two operands; NULL in either gives NULL."""
    fa, fb = compile_condition(a), compile_condition(b)
    return lambda r, s: None if (v := fa(r, s)) is None or (w := fb(r, s)) is None else op(v, w)


def _connect(args: list[Evaluator], decisive: bool) -> Evaluator:
    """AND (False decides) or OR (True decides): the decisive value if there is one, else NULL if there is one."""
    def connect(r: Row, s: Row) -> bool | None:
        result: bool | None = not decisive
        for arg in args:
            value: bool | None = arg(r, s)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result

    return connect


def _choose(branches: list[tuple[Evaluator, Evaluator]], otherwise: Evaluator) -> Evaluator:
    """The value beside the first condition that is true."""
    def choose(r: Row, s: Row) -> RowValue:
        for when, then in branches:
            if when(r, s) is True:
                return then(r, s)
        return otherwise(r, s)

    return choose


def _extreme(args: list[Evaluator], better: Callable[[RowValue, RowValue], bool]) -> Evaluator:
    """The best of the values that are not NULL, the first among equals."""
    def extreme(r: Row, s: Row) -> RowValue:
        best: RowValue = None
        for arg in args:
            value = arg(r, s)
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return extreme


def _quotient(a: RowValue, b: RowValue) -> RowValue:
    """Whole part towards zero, and the remainder, which has the sign of ``a``."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _float_mod(a: RowValue, b: RowValue) -> RowValue:
    return np.fmod(a, b) if isinstance(a, np.float32) else float(np.fmod(a, b))


def _divide(a: RowValue, b: RowValue) -> RowValue:
    """IEEE 754: by zero infinity or NaN, where Python's float raises."""
    return a / b if isinstance(a, np.float32) else float(np.float64(a) / np.float64(b))


# Python's int and Fraction are exact, its float is IEEE 754 binary64, numpy.float32 is binary32.
_ARITH: dict[str, Callable[[RowValue, RowValue], RowValue]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divide,
    "div": lambda a, b: None if b == 0 else _quotient(a, b), "//": lambda a, b: None if b == 0 else a // b,
    "mod": lambda a, b: None if b == 0 else a - b * _quotient(a, b), "%": lambda a, b: None if b == 0 else a % b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
}
_CMP: dict[str, Callable[[RowValue, RowValue], bool]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}


def _equal(a: RowValue, b: RowValue) -> bool:
    """Float equality of SQL: NaN equals NaN."""
    return bool(a == b) or (_is_nan(a) and _is_nan(b))


def _less(a: RowValue, b: RowValue) -> bool:
    """Float order of SQL: NaN is greater than everything but NaN."""
    return not _is_nan(a) if _is_nan(b) else bool(a < b)


def _is_nan(a: RowValue) -> bool:
    return bool(a != a)


_FLOAT_CMP: dict[str, Callable[[RowValue, RowValue], bool]] = {
    "=": _equal, "<>": lambda a, b: not _equal(a, b), "<": _less, "<=": lambda a, b: not _less(b, a),
    ">": lambda a, b: _less(b, a), ">=": lambda a, b: not _less(a, b),
}


def _cast(source: Type, target: Type) -> Callable[[RowValue], RowValue]:
    if target == FLOAT64:
        return _to_float64
    if target == FLOAT32:
        return lambda v: np.float32(_to_float64(v))
    if isinstance(source, (Timestamp, Duration)) and isinstance(target, (Timestamp, Duration)):
        per = units_per(source.unit, target.unit)
        return lambda v: v * per
    if isinstance(target, Int):
        return lambda v: v
    raise TypeError(f"no cast from {source} to {target}")


def _to_float64(v: int | Fraction | float | np.float32) -> float:
    try:
        return float(v)
    except OverflowError:  # IEEE 754 rounds what is too large to infinity
        return float("inf") if v > 0 else float("-inf")
