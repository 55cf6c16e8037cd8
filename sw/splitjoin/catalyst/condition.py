"""The condition of a join of Spark, as the rule in ``java/`` writes it: JSON → IR, and a check that the IR is exact.

A node is a list: its operator, the type of its value, and its operands. ``["l", type, n]`` and ``["r", type, n]`` are
keys, columns that Spark has computed; ``["lit", type, value]`` is a constant. All other nodes have an operand
``raises`` first: true if Spark raises an error where an integer does not fit the node's type, in place of wrapping it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from splitjoin.lang import build, functions
from splitjoin.lang.casts import cast
from splitjoin.lang.ir import MIRRORED, Cast, Cmp, CmpOp, Expr, Lit
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import BOOL, EXACT, FLOAT32, FLOAT64, Duration, Float, Int, is_exact

#: The widths of Spark's integers, by the names of their types.
BITS: Mapping[str, int] = {"byte": 8, "tinyint": 8, "short": 16, "smallint": 16, "integer": 32, "int": 32, "long": 64,
                           "bigint": 64}
_FLOATS = {"float": FLOAT32, "double": FLOAT64}
_COMPARISONS: Mapping[str, CmpOp] = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

#: The least and the greatest value of each integer key, by side and number; None for a key without values.
Ranges = Mapping[tuple[str, int], "tuple[int, int] | None"]


def keys(node: Sequence[Any]) -> set[tuple[str, int]]:
    """The keys in ``node``: sides and numbers."""
    if node[0] in ("l", "r"):
        return {(node[0], node[2])}
    return set().union(*(keys(a) for a in node[3:])) if node[0] != "lit" else set()


def expression(node: Sequence[Any], r: Schema, s: Schema) -> Expr:
    """The IR of ``node``; key n of a side is the column ``k<n>`` of the schema ``r`` or ``s``."""
    op, kind = node[0], node[1]
    if op in ("l", "r"):
        return build.column(r if op == "l" else s, f"k{node[2]}")
    if op == "lit":
        return _literal(kind, node[2])
    parts = [expression(a, r, s) for a in node[3:]]
    if op == "cast":
        return _cast(parts[0], kind)
    if op in _COMPARISONS:
        a, b = _same(parts[0], parts[1])
        compared = _COMPARISONS[op]
        return Cmp(BOOL, MIRRORED[compared], b, a) if isinstance(a, Lit) else Cmp(BOOL, compared, a, b)
    return _MAKERS[op](parts)


def _literal(kind: str, value: Any) -> Lit:
    if kind in _FLOATS:
        return Lit(_FLOATS[kind], float.fromhex(value))
    if kind == "boolean":
        return Lit(BOOL, value)
    if kind == "duration":
        return Lit(Duration("us"), value)
    return Lit(EXACT, build.whole(Fraction(Decimal(value))) if isinstance(value, str) else value)


def _cast(a: Expr, kind: str) -> Expr:
    """A cast that widens: exact numbers are exact anyway, and a float is the nearest one."""
    if kind not in _FLOATS:
        return a
    to = _FLOATS[kind]
    return a if a.type == to else Cast(to, a) if isinstance(a.type, (Float, Int)) else cast(a, to, "cast")


def _same(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    assert a.type == b.type or (is_exact(a.type) and is_exact(b.type)), f"{a.type} beside {b.type}"
    return a, b


def _case(parts: Sequence[Expr]) -> Expr:
    """WHEN, THEN, WHEN, THEN, …, and perhaps ELSE."""
    pairs, last = parts[:len(parts) // 2 * 2], parts[-1] if len(parts) % 2 else build.literal(None, "else")
    return functions.case(pairs[::2], pairs[1::2], last, "case")


def _of_bits(op: str, parts: list[Expr]) -> Expr:
    return functions.operation(op, parts, op)


_MAKERS: Mapping[str, Callable[[list[Expr]], Expr]] = {
    "<=>": lambda p: build.not_(functions.distinct(p[0], p[1], "<=>"), "<=>"),
    "+": lambda p: build.arith("+", p[0], p[1], "+"), "-": lambda p: build.arith("-", p[0], p[1], "-"),
    "*": lambda p: build.arith("*", p[0], p[1], "*"), "datediff": lambda p: build.arith("-", p[0], p[1], "datediff"),
    "and": lambda p: build.and_(p, "and"), "or": lambda p: build.or_(p, "or"), "not": lambda p: build.not_(p[0], "not"),
    "isnull": lambda p: build.is_null(p[0], "isnull"),
    "isnotnull": lambda p: build.not_(build.is_null(p[0], "isnotnull"), "isnotnull"),
    "abs": lambda p: build.abs_(p[0], "abs"), "neg": lambda p: build.neg(p[0], "neg"),
    "sqrt": lambda p: functions.square_root(p[0], "sqrt"),
    "greatest": lambda p: functions.extreme("greatest", p, "greatest"),
    "least": lambda p: functions.extreme("least", p, "least"),
    "coalesce": lambda p: functions.coalesce(p, "coalesce"), "in": lambda p: functions.in_(p[0], p[1:], "in"),
    "if": _case, "case": _case,
    # By a positive constant.
    "div": lambda p: build.remainder("div", p[0], p[1], "div"),
    "mod": lambda p: build.remainder("mod", p[0], p[1], "mod"),
    "pmod": lambda p: build.remainder("%", p[0], p[1], "pmod"), "/": lambda p: build.divide(p[0], p[1], "/"),
    **{op: partial(_of_bits, op) for op in "&|^"},
}


def fits(node: Sequence[Any], ranges: Ranges) -> bool:
    """True if no integer in ``node`` can leave its type for keys in ``ranges``, so that exact integers are Spark's."""
    try:
        _range(node, ranges)
    except OverflowError:
        return False
    return True


def _range(node: Sequence[Any], ranges: Ranges) -> tuple[int, int] | None:
    """The least and the greatest value of an integer ``node``, None for other nodes and those without values."""
    op, kind = node[0], node[1]
    if op in ("l", "r"):
        return ranges.get((op, node[2]))
    if op == "lit":
        return (node[2], node[2]) if kind in BITS or kind == "duration" else None
    parts = [_range(a, ranges) for a in node[3:]]
    bits = BITS.get(kind, 64 if kind == "duration" else 0)
    if not bits:
        return None
    known = [p for p in parts if p is not None]
    if not known or (op in ("+", "-", "*", "div", "mod", "pmod") and len(known) < 2):
        return None  # no value, or NULL
    if op in ("+", "-", "*"):
        (a, b), (c, d) = known
        ends = {"+": (a + c, b + d), "-": (a - d, b - c), "*": (a * c, a * d, b * c, b * d)}[op]
        low, high = min(ends), max(ends)
    elif op == "datediff":
        if len(known) < 2:
            return None
        (a, b), (c, d) = known
        low, high = a - d, b - c
    elif op in ("div", "mod", "pmod"):
        (a, b), (by, _) = known
        low, high = {"div": (-(-a // by) if a < 0 else a // by, -(-b // by) if b < 0 else b // by),
                     "mod": (max(a, 1 - by) if a < 0 else 0, min(b, by - 1) if b > 0 else 0),
                     "pmod": (0, by - 1)}[op]
    elif op in ("&", "|", "^"):
        low, high = -2**(bits - 1), 2**(bits - 1) - 1
    elif op in ("abs", "neg"):
        a, b = known[0]
        low, high = (-b, -a) if op == "neg" else (0 if a <= 0 <= b else min(abs(a), abs(b)), max(abs(a), abs(b)))
    else:  # one of the operands
        low, high = min(k[0] for k in known), max(k[1] for k in known)
    if low < -2**(bits - 1) or high >= 2**(bits - 1):
        raise OverflowError(op)
    return low, high
