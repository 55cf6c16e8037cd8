"""PySpark `Column` → IR: a condition written with Spark's functions, read from the tree that Spark keeps of it.

A `Column` of a classic session is a tree of nodes in Spark's JVM (`org.apache.spark.sql.internal.ColumnNode`,
from Spark 4 on), unresolved, with the place in the user's Python that made each. That of a Spark Connect session is a
tree of Python objects, which connect_columns.py reads. Every part means what the same SQL text means to splitjoin;
columns are ``F.col("r.x")``, ``F.col("x")`` where one stream alone has it, or ``left["x"]``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, cast as typed

from pyspark.sql import Column, DataFrame

from ..errors import PredicateError, SchemaError, SplitJoinError
from ..lang import build, functions
from ..lang.build import find_column
from ..lang.casts import cast, named_type
from ..lang.ir import MAX_DEPTH, ArithOp, CmpOp, Expr, Lit, too_deep
from ..lang.operations import OPERATIONS, functions as integer_functions
from ..lang.schema import Schema, Side
from ..lang.sql.parser import parse_sql
from ..lang.types import Timestamp

__all__ = ["ColumnReader", "condition", "unsupported"]

_CMP: dict[str, CmpOp] = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "<>", "<>": "<>"}


def condition(column: Column, r: Schema, s: Schema, frames: Mapping[Side, DataFrame] | None = None) -> Expr:
    """The IR of the condition ``column`` over streams of the schemas ``r`` and ``s``.

    ``frames``: the DataFrames that are the streams, whose columns may be used as ``left["x"]``.

    Raises `PredicateError` and `SchemaError` with the part that is wrong and its place in the user's source.
    """
    own = vars(column)  # not getattr: any other name is a field of the column
    if "_expr" in own:
        from .connect_columns import connect_condition  # Spark Connect's packages need not be installed

        return connect_condition(column, r, s, frames or {})
    handle = own.get("_jc")
    if not hasattr(handle, "node"):
        raise PredicateError("a condition of Spark Columns needs Spark 4 or later, whose columns keep their tree; "
                             "write it as SQL text or as a Python function of (r, s)")
    made = _ClassicReader(r, s, _ids(frames or {})).expr(handle.node())
    return build.condition(made, str(column))


def _ids(frames: Mapping[Side, DataFrame]) -> dict[int, tuple[Side, str]]:
    """Spark's ids of the frames' columns, and whose they are."""
    found: dict[int, tuple[Side, str]] = {}
    for side, frame in frames.items():
        for a in _sequence(frame._jdf.queryExecution().analyzed().output()):
            number = a.exprId().id()
            if found.get(number, (side,))[0] != side:
                found[number] = (side, "")  # ambiguous: both streams have it
            else:
                found[number] = side, a.name()
    return found


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


class _ClassicReader(ColumnReader):
    def __init__(self, r: Schema, s: Schema, ids: Mapping[int, tuple[Side, str]]):
        super().__init__(r, s)
        self._ids = ids

    def _node(self, node: Any) -> Expr:
        at = str(node.sql())
        match node.getClass().getSimpleName():
            case "UnresolvedFunction":
                return self._function(node, at)
            case "UnresolvedAttribute":
                return self._named([str(part) for part in _sequence(node.nameParts())], at)
            case "Literal":
                return _literal(node.value(), at)
            case "Cast":
                mode = node.evalMode()
                tried = mode.isDefined() and "TRY" in str(mode.get()).upper()
                return self._cast(node.child(), node.dataType().simpleString(), tried, at)
            case "CaseWhenOtherwise":
                branches = [(b._1(), b._2()) for b in _sequence(node.branches())]
                otherwise = node.otherwise()
                return self._case(branches, otherwise.get() if otherwise.isDefined() else None, at)
            case "Alias":
                return self.expr(node.child())
            case "SqlExpression":
                return self._sql(str(node.expression()))
            case "ExpressionColumnNode":
                return self._resolved(node.expression(), at)
            case name:
                raise unsupported(at, _NAMES.get(str(name), str(name)))

    def _resolved(self, expression: Any, at: str) -> Expr:
        """A column taken from a DataFrame."""
        if expression.getClass().getSimpleName() != "AttributeReference":
            raise unsupported(at, f"{expression.getClass().getSimpleName()}")
        found = self._ids.get(expression.exprId().id())
        if found is None:
            raise SchemaError(f"{at!r}: a column of a DataFrame in the condition must be one of left or right; write "
                              f"F.col('r.{expression.name()}') or F.col('s.{expression.name()}') if it is")
        side, name = found
        if not name:
            raise SchemaError(f"{at!r}: left and right are one DataFrame, or share columns; write "
                              f"F.col('r.{expression.name()}') or F.col('s.{expression.name()}')")
        return build.column(self._schemas[side], name)

    def _function(self, node: Any, at: str) -> Expr:
        name = str(node.functionName()).lower()
        plain = not node.isDistinct() and not node.isUserDefinedFunction()
        return self._called(name, _operands(node, name), at, plain=plain)

    def _place(self, node: Any) -> str | None:
        try:
            context = node.origin().pysparkErrorContext()
            return str(context.get()._2()) if context.isDefined() else None
        except TypeError:  # py4j: the node has no such method
            return None


def unsupported(at: str, what: str) -> PredicateError:
    """The error for a part ``at`` of a condition that is ``what``."""
    name, inner, _ = at.partition("(columnnodeexpression(")  # how Spark writes what a Python function is given
    at = f"{name}(…)" if inner else at
    return PredicateError(f"{at!r}: {what} is not supported in a condition of Spark Columns; it may hold columns, "
                          f"literals, operators, cast, between, isin, isNull, eqNullSafe, startswith, like, F.when, "
                          f"F.expr and F.{', F.'.join(_SHOWN)}")


def _like(parts: list[Expr], at: str) -> Expr:
    pattern = parts[1].value if isinstance(parts[1], Lit) else None
    prefix = pattern.removesuffix("%") if isinstance(pattern, str) else "_"
    if any(c in prefix for c in "%_\\"):
        raise unsupported(at, "LIKE with anything but a constant that ends in its only %")
    head = build.literal(prefix, at)
    if prefix == pattern:
        return build.compare("=", parts[0], head, at)
    return functions.starts_with(parts[0], head, at)


def _compare(op: CmpOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.compare(op, p[0], p[1], at)


def _arith(op: ArithOp) -> Callable[[list[Expr], str], Expr]:
    return lambda p, at: build.arith(op, p[0], p[1], at)


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
    "startswith": (2, 2, lambda p, at: functions.starts_with(p[0], p[1], at)), "like": (2, 2, _like),
    "coalesce": (1, _MANY, functions.coalesce), "ifnull": (2, 2, functions.coalesce), "nvl": (2, 2, functions.coalesce),
    "nullif": (2, 2, lambda p, at: functions.nullif(p[0], p[1], at)),
    "least": (2, _MANY, lambda p, at: functions.extreme("least", p, at)),
    "greatest": (2, _MANY, lambda p, at: functions.extreme("greatest", p, at)),
    **{o.name: (o.operands, o.operands, partial(functions.operation, o.name)) for o in OPERATIONS.values()},
    "~": (1, 1, lambda p, at: functions.complement(p[0], at)),
    "shiftleft": (2, 2, lambda p, at: functions.shift("<<", p[0], p[1], at)),
    "shiftright": (2, 2, lambda p, at: functions.shift(">>", p[0], p[1], at)),
}
_NAMES = {"UnresolvedExtractValue": "an element of an array, map or struct", "Window": "a window function",
          "UnresolvedStar": "*", "SortOrder": "an order", "LambdaFunction": "a function of elements"}
_SHOWN = sorted(("abs", "coalesce", "greatest", "ifnull", "least", "negative", "nullif", "shiftleft", "shiftright",
                 *(o.name for o in integer_functions())))


def _literal(value: Any, at: str) -> Expr:
    """A literal that py4j has turned into a Python value, or a Java object of a time."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return build.literal(value, at)
    if isinstance(value, bytearray):
        return build.literal(bytes(value), at)
    name = value.getClass().getName() if hasattr(value, "getClass") else type(value).__name__
    text = str(value.toString()) if hasattr(value, "toString") else str(value)
    if name in ("java.sql.Date", "java.time.LocalDate"):
        return build.literal(dt.date.fromisoformat(text), at)
    if name == "java.time.LocalDateTime":
        return build.literal(dt.datetime.fromisoformat(text), at)
    if name in ("java.sql.Timestamp", "java.time.Instant"):
        instant = value.toInstant() if name == "java.sql.Timestamp" else value
        us = instant.getEpochSecond() * 10**6 + instant.getNano() // 1000
        return Lit(Timestamp("us", "UTC"), us)
    if name == "java.time.Duration":
        return build.duration(value.toNanos())
    if name in ("java.math.BigDecimal", "org.apache.spark.sql.types.Decimal", "Decimal"):
        return build.literal(Decimal(text), at)
    raise PredicateError(f"{at!r}: a literal of Spark's type {name.rsplit('.', 1)[-1]} is not supported in a condition")


def _operands(node: Any, name: str) -> list[Any]:
    """The arguments of a function; of AND and OR those of a whole chain, which is one level."""
    if name not in ("and", "or"):
        return _sequence(node.arguments())
    todo, found = _sequence(node.arguments())[::-1], list[Any]()
    while todo:
        part = todo.pop()
        if part.getClass().getSimpleName() == "UnresolvedFunction" and str(part.functionName()).lower() == name:
            todo += _sequence(part.arguments())[::-1]
        else:
            found.append(part)
    return found


def _sequence(scala: Any) -> list[Any]:
    """A Scala Seq as a list."""
    return [scala.apply(i) for i in range(typed(int, scala.length()))]
