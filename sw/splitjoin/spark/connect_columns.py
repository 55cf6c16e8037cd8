"""Spark Connect's `Column` → IR: the tree is made of Python objects (`pyspark.sql.connect.expressions`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect import expressions as nodes
from pyspark.sql.types import DataType, DateType, DayTimeIntervalType, TimestampNTZType, TimestampType

from splitjoin.base.errors import PredicateError, SchemaError
from splitjoin.lang import build
from splitjoin.lang.build import find_column
from splitjoin.lang.ir import Expr, Lit
from splitjoin.lang.schema import Schema, Side
from splitjoin.lang.types import Timestamp

from .column_reader import ColumnReader, chain, unsupported
from .versions import VERSION, type_named

_UNSUPPORTED: dict[type[Any], str] = {
    nodes.UnresolvedExtractValue: "an element of an array, map or struct", nodes.WindowExpression: "a window function",
    nodes.UnresolvedStar: "*", nodes.SortOrder: "an order", nodes.LambdaFunction: "a function of elements",
    nodes.CommonInlineUserDefinedFunction: "a user-defined function",
    **({nodes.SubqueryExpression: "a subquery"} if VERSION >= (4, 0) else {}),
}
#: A part of a column's name: in backticks, in which two stand for one, or up to the next dot.
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def connect_condition(column: Column, r: Schema, s: Schema, frames: Mapping[Side, DataFrame]) -> Expr:
    """The IR of the condition ``column`` of a Spark Connect session, as `splitjoin.spark.columns.condition` gives it.

    A column of a DataFrame, such as ``left["x"]``, must be taken from one of ``frames`` itself.
    """
    plans: dict[int, Side | None] = {}
    for side, frame in frames.items():
        plan = _plan_id(frame)
        plans[plan] = None if plan in plans else side
    root = column._expr  # type: ignore[attr-defined,unused-ignore]  # the class of Spark Connect has it
    return build.condition(_ConnectReader(r, s, plans).expr(root), _text(root))


class _ConnectReader(ColumnReader):
    """``plans``: Connect's ids of the DataFrames, and whose they are; None if both are one DataFrame."""

    def __init__(self, r: Schema, s: Schema, plans: Mapping[int, Side | None]):
        super().__init__(r, s)
        self._plans = plans

    def _node(self, node: Any) -> Expr:
        at = _text(node)
        match node:
            case nodes.UnresolvedFunction():
                name = node._name.lower()
                return self._called(name, _operands(node, name), at, plain=not node._is_distinct)
            case nodes.ColumnReference():
                return self._column(node, at)
            case nodes.LiteralExpression():
                return _literal(node._value, node._dataType, at)
            case nodes.CastExpression():
                to = node._data_type
                return self._cast(node._expr, to.simpleString() if isinstance(to, DataType) else str(to),
                                  node._eval_mode == "try", at)
            case nodes.CaseWhen():
                return self._case(node._branches, node._else_value, at)
            case nodes.ColumnAlias():
                return self.expr(node._child)
            case nodes.SQLExpression():
                return self._sql(node._expr)
        raise unsupported(at, _UNSUPPORTED.get(type(node), type(node).__name__))

    def _place(self, node: Any) -> str | None:
        origin = getattr(node, "origin", None)
        return None if origin is None else str(origin.python_origin.call_site) or None

    def _column(self, node: Any, at: str) -> Expr:
        text = node._unparsed_identifier
        parts = [quoted.replace("``", "`") if quoted else plain for quoted, plain in _PART.findall(text)]
        if node._plan_id is None:
            return self._named(parts, at)
        if len(parts) != 1:
            raise unsupported(at, _UNSUPPORTED[nodes.UnresolvedExtractValue])
        if node._plan_id not in self._plans:
            raise SchemaError(f"{at!r}: a column of a DataFrame in the condition must be one of left or right; write "
                              f"F.col('r.{text}') or F.col('s.{text}') if it is")
        side = self._plans[node._plan_id]
        if side is None:
            raise SchemaError(f"{at!r}: left and right are one DataFrame, or share columns; write F.col('r.{text}') "
                              f"or F.col('s.{text}')")
        return find_column(self._schemas, parts[0], side, at)


def _literal(value: Any, kind: DataType, at: str) -> Expr:
    """A literal, of whose value Connect keeps Spark's own form: microseconds and days since 1970."""
    if value is None:
        return build.literal(None, at)
    match kind:
        case TimestampType():
            return Lit(Timestamp("us", "UTC"), int(value))
        case DayTimeIntervalType():
            return build.duration(int(value) * 1000)
        case DateType() | TimestampNTZType():
            return build.literal(kind.fromInternal(value), at)
    if isinstance(kind, type_named("TimeType")):
        raise PredicateError(f"{at!r}: a literal of Spark's type {kind.simpleString()} is not supported in a condition")
    return build.literal(bytes(value) if isinstance(value, bytearray) else value, at)


def _operands(node: Any, name: str) -> list[Any]:
    """The arguments of a function; of AND and OR those of a whole chain, which is one level."""
    if name not in ("and", "or"):
        return list(node._args)
    return chain(node, lambda n: list(n._args),
                 lambda n: isinstance(n, nodes.UnresolvedFunction) and n._name.lower() == name)


def _text(node: Any) -> str:
    """The expression as messages show it."""
    try:
        return repr(node)
    except RecursionError:  # the text of a long chain is made by a function that calls itself
        return f"{getattr(node, '_name', type(node).__name__)}(…)"


def _plan_id(frame: Any) -> int:
    return int(frame._plan._plan_id)
