"""Spark 4's `Column` of a classic session → IR: a tree of `org.apache.spark.sql.internal.ColumnNode` in the JVM."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast as typed

from splitjoin.base.errors import PredicateError, SchemaError
from splitjoin.lang import build
from splitjoin.lang.ir import Expr, Lit
from splitjoin.lang.schema import Schema, Side
from splitjoin.lang.types import Timestamp

from .column_reader import ColumnReader, chain, unsupported


class ClassicReader(ColumnReader):
    """Reads the tree of a `Column` of Spark 4; ``ids``: Spark's ids of the frames' columns, and whose they are."""

    def __init__(self, r: Schema, s: Schema, ids: Mapping[int, tuple[Side, str]]):
        super().__init__(r, s)
        self._ids = ids

    def _node(self, node: Any) -> Expr:
        at = str(node.sql())
        match node.getClass().getSimpleName():
            case "UnresolvedFunction":
                return self._function(node, at)
            case "UnresolvedAttribute":
                return self._named([str(part) for part in sequence(node.nameParts())], at)
            case "Literal":
                return _literal(node.value(), at)
            case "Cast":
                mode = node.evalMode()
                tried = mode.isDefined() and "TRY" in str(mode.get()).upper()
                return self._cast(node.child(), node.dataType().simpleString(), tried, at)
            case "CaseWhenOtherwise":
                branches = [(b._1(), b._2()) for b in sequence(node.branches())]
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
        return sequence(node.arguments())
    return chain(node, lambda n: sequence(n.arguments()), lambda n: bool(
        n.getClass().getSimpleName() == "UnresolvedFunction" and str(n.functionName()).lower() == name))


def sequence(scala: Any) -> list[Any]:
    """A Scala Seq as a list."""
    return [scala.apply(i) for i in range(typed(int, scala.length()))]
