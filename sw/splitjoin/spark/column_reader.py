"""`ColumnReader`: what Spark's functions and operators mean in a condition, whatever kind of session made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from splitjoin.base.errors import PredicateError, SplitJoinError
from splitjoin.lang import build, functions
from splitjoin.lang.build import find_column
from splitjoin.lang.calendar import UNITS
from splitjoin.lang.casts import cast, named_type
from splitjoin.lang.ir import MAX_DEPTH, ArithOp, CmpOp, Expr, Lit, too_deep
from splitjoin.lang.operations import OPERATIONS, functions as integer_functions
from splitjoin.lang.schema import Schema
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.types import EXACT, Float, Timestamp

__all__ = ["ColumnReader", "chain", "unsupported"]

_CMP: dict[str, CmpOp] = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "<>", "<>": "<>"}


class ColumnReader:
    """Makes IR of the nodes of a tree; a subclass knows the nodes of one kind of session."""

    def __init__(self, r: Schema, s: Schema):
        self._schemas: dict[str, Schema] = {"r": r, "s": s}
        self._depth = 0
        self._placed = False

    def expr(self, node: Any) -> Expr:
        """The IR of ``node``. Raises a `SplitJoinError` with the place of the part that is wrong."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise too_deep()
        try:
            return self._node(node)
        except SplitJoinError as error:
            place = None if self._placed else self._place(node)
            if place is None:
                raise
            self._placed = True  # the innermost part with a place is the wrong one
            raise type(error)(f"{error}\n  {place}") from None
        finally:
            self._depth -= 1

    def _node(self, node: Any) -> Expr:
        raise NotImplementedError

    def _place(self, node: Any) -> str | None:
        """The place in the user's Python that made ``node``, as ``file.py:7``; None if Spark did not note it."""
        raise NotImplementedError

    def _named(self, parts: Sequence[str], at: str) -> Expr:
        if len(parts) > 2:
            raise unsupported(at, "a name of more than two parts")
        return find_column(self._schemas, parts[-1], parts[0] if len(parts) == 2 else None, at)

    def _called(self, name: str, operands: Sequence[Any], at: str, *, plain: bool = True) -> Expr:
        """A call of the function ``name``; not ``plain``: a user-defined one, or one of distinct values."""
        parts = [self.expr(a) for a in operands]
        found = _FUNCTIONS.get(name)
        if found is None or not plain:
            raise unsupported(at, f"function {name.upper()}")
        least, most, make = found
        if not least <= len(parts) <= most:
            raise unsupported(at, f"function {name.upper()} of {len(parts)} values")
        return make(parts, at)

    def _case(self, branches: Sequence[tuple[Any, Any]], otherwise: Any | None, at: str) -> Expr:
        read = [(self.expr(when), self.expr(then)) for when, then in branches]
        last = build.literal(None, at) if otherwise is None else self.expr(otherwise)
        return functions.case([w for w, _ in read], [t for _, t in read], last, at)

    def _sql(self, text: str) -> Expr:
        return parse_sql(text, self._schemas["r"], self._schemas["s"], value=True)

    def _cast(self, child: Any, to: str, tried: bool, at: str) -> Expr:
        kind = named_type(to, at)
        if tried:
            raise PredicateError(f"{at!r}: TRY_CAST is not supported in a condition; write a cast")
        return cast(self.expr(child), kind, at)


def chain(node: Any, parts: Callable[[Any], list[Any]], same: Callable[[Any], bool]) -> list[Any]:
    """The operands of a whole chain of AND or OR, which is one level: ``parts`` gives those of a node, and ``same`` is
    true of a node that goes on with the chain.
    """
    todo, found = parts(node)[::-1], list[Any]()
    while todo:
        part = todo.pop()
        if same(part):
            todo += parts(part)[::-1]
        else:
            found.append(part)
    return found


def unsupported(at: str, what: str) -> PredicateError:
    """The error for a part ``at`` of a condition that is ``what``."""
    name, inner, _ = at.partition("(columnnodeexpression(")  # how Spark writes what a Python function is given
    at = f"{name}(…)" if inner else at
    return PredicateError(f"{at!r}: {what} is not supported in a condition of Spark Columns; it may hold columns, "
                          f"literals, operators, cast, between, isin, isNull, eqNullSafe, startswith, like, F.when, "
                          f"F.expr and F.{', F.'.join(_SHOWN)}")


def _compare(op: CmpOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.compare(op, p[0], p[1], at)


def _rounded(name: Literal["floor", "ceil"]) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: functions.rounded(name, p[0], at)


def _arith(op: ArithOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.arith(op, p[0], p[1], at)


def _round(p: list[Expr], at: str) -> Expr:
    if len(p) == 1 or p[1] == Lit(EXACT, 0):
        return functions.rounded("round", p[0], at)
    if isinstance(p[0].type, Float):
        raise PredicateError(f"{at!r}: Spark rounds the decimal digits that a float prints as; round the column "
                             f"before the join, or cast it to a decimal there")
    return functions.rounded_to(p[0], p[1], at)


def _date_trunc(p: list[Expr], at: str) -> Expr:
    if isinstance(p[1].type, Timestamp) and p[1].type.tz is not None:
        raise PredicateError(f"{at!r}: Spark truncates a timestamp in the session's time zone; truncate the column "
                             f"before the join, or cast it to timestamp_ntz there")
    if isinstance(p[0], Lit) and str(p[0].value).lower() not in UNITS:  # of other units Spark makes NULL
        raise PredicateError(f"{at!r}: the unit of date_trunc() must be one of {', '.join(UNITS)}, not {p[0]}")
    return functions.date_trunc(p[0], p[1], at)


_ROUNDED: dict[str, Literal["floor", "ceil"]] = {"floor": "floor", "ceil": "ceil", "ceiling": "ceil"}
_MANY = 1 << 30
#: Name → the least and the greatest number of its arguments, and what it is.
_FUNCTIONS: dict[str, tuple[int, int, Callable[[list[Expr], str], Expr]]] = {
    **{symbol: (2, 2, _compare(op)) for symbol, op in _CMP.items()},
    "+": (2, 2, _arith("+")), "-": (2, 2, _arith("-")), "*": (2, 2, _arith("*")),
    "/": (2, 2, lambda p, at: build.divide(p[0], p[1], at)),
    "%": (2, 2, lambda p, at: build.remainder("mod", p[0], p[1], at)),
    "mod": (2, 2, lambda p, at: build.remainder("mod", p[0], p[1], at)),
    "div": (2, 2, lambda p, at: build.remainder("div", p[0], p[1], at)),
    "and": (2, _MANY, build.and_), "or": (2, _MANY, build.or_),
    "!": (1, 1, lambda p, at: build.not_(p[0], at)), "not": (1, 1, lambda p, at: build.not_(p[0], at)),
    "<=>": (2, 2, lambda p, at: build.not_(functions.distinct(p[0], p[1], at), at)),
    "negative": (1, 1, lambda p, at: build.neg(p[0], at)), "abs": (1, 1, lambda p, at: build.abs_(p[0], at)),
    "isnull": (1, 1, lambda p, at: build.is_null(p[0], at)),
    "isnotnull": (1, 1, lambda p, at: build.not_(build.is_null(p[0], at), at)),
    "between": (3, 3, lambda p, at: build.between(p[0], p[1], p[2], at)),
    "in": (2, _MANY, lambda p, at: functions.in_(p[0], p[1:], at)),
    "startswith": (2, 2, lambda p, at: functions.starts_with(p[0], p[1], at)),
    "like": (2, 2, lambda p, at: functions.like(p[0], p[1], at)),
    "sqrt": (1, 1, lambda p, at: functions.square_root(p[0], at)),
    **{name: (1, 1, _rounded(function)) for name, function in _ROUNDED.items()},
    "round": (1, 2, _round), "date_trunc": (2, 2, _date_trunc),
    "coalesce": (1, _MANY, functions.coalesce), "ifnull": (2, 2, functions.coalesce), "nvl": (2, 2, functions.coalesce),
    "nullif": (2, 2, lambda p, at: functions.nullif(p[0], p[1], at)),
    "least": (2, _MANY, lambda p, at: functions.extreme("least", p, at)),
    "greatest": (2, _MANY, lambda p, at: functions.extreme("greatest", p, at)),
    **{o.name: (o.operands, o.operands, partial(functions.operation, o.name)) for o in OPERATIONS.values()},
    "~": (1, 1, lambda p, at: functions.complement(p[0], at)),
    "shiftleft": (2, 2, lambda p, at: functions.shift("<<", p[0], p[1], at)),
    "shiftright": (2, 2, lambda p, at: functions.shift(">>", p[0], p[1], at)),
}
_SHOWN = sorted(("abs", "coalesce", "greatest", "ifnull", "least", "negative", "nullif", "shiftleft", "shiftright",
                 *(o.name for o in integer_functions())))
