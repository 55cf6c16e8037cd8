"""PySpark `Column` → IR: a condition written with Spark's functions, read from the tree that Spark keeps of it.

A `Column` of a classic session is a tree of nodes in Spark's JVM (`org.apache.spark.sql.internal.ColumnNode`,
from Spark 4 on), unresolved, with the place in the user's Python that made each. That of a Spark Connect session is a
tree of Python objects, which connect_columns.py reads. Every part means what the same SQL text means to splitjoin;
columns are ``F.col("r.x")``, ``F.col("x")`` where one stream alone has it, or ``left["x"]``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast as typed

from pyspark.sql import Column, DataFrame

from splitjoin.base.errors import PredicateError, SchemaError
from splitjoin.lang import build
from splitjoin.lang.ir import Expr, Lit
from splitjoin.lang.schema import Schema, Side
from splitjoin.lang.types import Timestamp

from .column_reader import ColumnReader, unsupported

__all__ = ["condition"]


def condition(column: Column, r: Schema, s: Schema, frames: Mapping[Side, DataFrame] | None = None) -> Expr:
    """The IR of the condition ``column`` over streams of the schemas ``r`` and ``s``.

    ``frames``: the DataFrames that are the streams, whose columns may be used as ``left["x"]``.

    Raises `PredicateError` and `SchemaError` with the part that is wrong and its place in the user's source.
    """
    own = vars(column)  # not getattr: any other name is a field of the column
    if "_expr" in own:
        from .connect_columns import connect_condition  # Spark Connect's packages need not be installed

        return connect_condition(column, r, s, frames or {})
    handle: Any = own.get("_jc")
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


_NAMES = {"UnresolvedExtractValue": "an element of an array, map or struct", "Window": "a window function",
          "UnresolvedStar": "*", "SortOrder": "an order", "LambdaFunction": "a function of elements"}
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
