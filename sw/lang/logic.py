"""Pass: three-valued logic to two-valued (semantics, section 3).

A predicate becomes a positive combination (AND, OR) of leaves that are simply true or false: conditions on one stream,
evaluated on the host once per tuple, and comparisons of both streams, which are false as soon as an operand is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Union

from . import build
from .ir import And, Cmp, CmpOp, Expr, IsNull, Lit, Not, Or, columns, sides, walk
from .schema import Side
from .types import BOOL, Bool
from .vector import constant

__all__ = ["FALSE", "TRUE", "Both", "Form", "Junction", "OneSided", "positive"]

Value = Literal["true", "false", "null"]
_NEGATED: dict[CmpOp, CmpOp] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ALL: frozenset[Value] = frozenset(("true", "false", "null"))


@dataclass(frozen=True)
class OneSided:
    """A condition on stream ``side`` alone: true when ``condition`` has one of the ``values``."""

    side: Side
    condition: Expr
    values: frozenset[Value]


@dataclass(frozen=True)
class Both:
    """A comparison of values (not of conditions) that reads both streams; false when an operand is NULL."""

    cmp: Cmp


@dataclass(frozen=True)
class Junction:
    """Conjunction or disjunction; without operands, the constant true ("and") or false ("or")."""

    op: Literal["and", "or"]
    args: tuple[Form, ...]


Form = Union[OneSided, Both, Junction]
TRUE, FALSE = Junction("and", ()), Junction("or", ())


def positive(e: Expr) -> Form:
    """The two-valued form that is true exactly when condition ``e`` is true."""
    return _is(e, "true")


def _join(op: Literal["and", "or"], args: Iterable[Form]) -> Form:
    neutral, absorbing = (TRUE, FALSE) if op == "and" else (FALSE, TRUE)
    flat: list[Form] = []
    for a in args:
        if a == absorbing:
            return absorbing
        flat += a.args if isinstance(a, Junction) and a.op == op else (a,)
    distinct = tuple(dict.fromkeys(flat))
    if not distinct:
        return neutral
    return distinct[0] if len(distinct) == 1 else Junction(op, distinct)


def _is(e: Expr, want: Value) -> Form:
    """The form that is true exactly when ``e`` has the value ``want``."""
    streams = sides(e)
    if not streams:
        return TRUE if constant(e) == {"true": True, "false": False, "null": None}[want] else FALSE
    if len(streams) == 1:
        return OneSided(next(iter(streams)), e, frozenset((want,)))
    if want == "null":
        return _join("and", (_complement(_is(e, "true")), _complement(_is(e, "false"))))
    match e:
        case And() | Or():
            op: Literal["and", "or"] = "and" if isinstance(e, And) == (want == "true") else "or"
            return _join(op, (_is(a, want) for a in e.args))
        case Not():
            return _is(e.a, "false" if want == "true" else "true")
        case IsNull():
            null = _is_null(e.a)
            return null if want == "true" else _complement(null)
        case Cmp() if isinstance(e.a.type, Bool):
            # Conditions are not NULL as soon as one of their columns is: FALSE AND NULL is false.
            return _compare_conditions(e.op if want == "true" else _NEGATED[e.op], e.a, e.b)
        case Cmp():
            return Both(e if want == "true" else Cmp(BOOL, _NEGATED[e.op], e.a, e.b))
    raise AssertionError(f"not a condition: {e}")


def _is_null(e: Expr) -> Form:
    if isinstance(e.type, Bool):
        return _is(e, "null")
    # Arithmetic is NULL exactly when one of its columns is.
    return _join("or", (_invalid(e, side) for side in ("r", "s")))


def _invalid(e: Expr, side: Side) -> Form:
    """True when a column of ``side`` in the value ``e`` is NULL (or a literal is)."""
    if any(isinstance(n, Lit) and n.value is None for n in walk(e)):
        return TRUE
    nulls = [build.is_null(c, str(c)) for c in columns(e) if c.side == side and c.nullable]
    if not nulls:
        return FALSE
    return OneSided(side, nulls[0] if len(nulls) == 1 else build.or_(nulls, str(e)), frozenset(("true",)))


def _compare_conditions(op: CmpOp, a: Expr, b: Expr) -> Form:
    """``a op b`` of two conditions, false before true."""
    t = {"a": _is(a, "true"), "b": _is(b, "true")}
    f = {"a": _is(a, "false"), "b": _is(b, "false")}
    ff, tt = _join("and", (f["a"], f["b"])), _join("and", (t["a"], t["b"]))
    ft, tf = _join("and", (f["a"], t["b"])), _join("and", (t["a"], f["b"]))
    cases: dict[CmpOp, tuple[Form, ...]] = {
        "=": (ff, tt), "<>": (ft, tf), "<": (ft,), "<=": (ff, ft, tt), ">": (tf,), ">=": (ff, tf, tt)}
    return _join("or", cases[op])


def _complement(form: Form) -> Form:
    match form:
        case OneSided():
            return OneSided(form.side, form.condition, _ALL - form.values)
        case Both():
            cmp = form.cmp
            return _join("or", (_invalid(cmp, "r"), _invalid(cmp, "s"),
                                Both(Cmp(BOOL, _NEGATED[cmp.op], cmp.a, cmp.b))))
        case Junction():
            return _join("or" if form.op == "and" else "and", (_complement(a) for a in form.args))

