"""Spark 3.5's `Column` → IR: a column there keeps an expression of Catalyst, in which each function has a class."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark.sql.types import DateType, TimestampNTZType

from splitjoin.base.errors import PredicateError
from splitjoin.lang import build
from splitjoin.lang.ir import Expr, Lit
from splitjoin.lang.types import Timestamp

from .classic_columns import ClassicReader, sequence
from .column_reader import chain, unsupported

#: The classes whose name in SQL is not that of `prettyName`.
_NAMES = {"EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
          "GreaterThanOrEqual": ">=", "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
          "IntegralDivide": "div", "And": "and", "Or": "or", "Not": "not", "UnaryMinus": "negative", "In": "in",
          "TruncTimestamp": "date_trunc",
          "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "BitwiseNot": "~"}
#: The types of durations, by their fields.
_FIELDS = "day", "hour", "minute", "second"
_DURATIONS = {f"interval {a}" if a == b else f"interval {a} to {b}" for n, a in enumerate(_FIELDS) for b in _FIELDS[n:]}


class CatalystReader(ClassicReader):
    """Reads an expression of Catalyst, which may be unresolved."""

    def _node(self, node: Any) -> Expr:
        at = str(node.toString())  # `sql` wants the types of some functions, which are not known yet
        match str(node.getClass().getSimpleName()):
            case "UnresolvedAttribute":
                return self._named([str(part) for part in sequence(node.nameParts())], at)
            case "AttributeReference":
                return self._resolved(node, at)
            case "Literal":
                return _literal(node, at)
            case "Cast":
                return self._cast(node.child(), node.dataType().simpleString(), "TRY" in str(node.evalMode()), at)
            case "CaseWhen":
                branches = [(b._1(), b._2()) for b in sequence(node.branches())]
                otherwise = node.elseValue()
                return self._case(branches, otherwise.get() if otherwise.isDefined() else None, at)
            case "Alias":
                return self.expr(node.child())
            case "UnresolvedFunction":
                name = ".".join(str(part) for part in sequence(node.nameParts())).lower()
                return self._called(name, sequence(node.arguments()), at, plain=not node.isDistinct())
            case "PythonUDF" | "ScalaUDF":
                raise unsupported(at, "a user-defined function")
            case name:
                called = _NAMES.get(name) or str(node.prettyName()).lower()
                return self._called(called, _operands(node, name), at)

    def _place(self, node: Any) -> str | None:
        return None  # Spark 3.5 does not note where a column was made


def _literal(node: Any, at: str) -> Expr:
    """A literal, of whose value Catalyst keeps Spark's own form: microseconds and days since 1970."""
    kind, value = str(node.dataType().simpleString()), node.value()
    if value is None:
        return build.literal(None, at)
    if kind == "timestamp":
        return Lit(Timestamp("us", "UTC"), int(value))
    if kind == "timestamp_ntz":
        return build.literal(TimestampNTZType().fromInternal(value), at)
    if kind == "date":
        return build.literal(DateType().fromInternal(value), at)
    if kind in _DURATIONS:
        return build.duration(int(value) * 1000)
    if kind == "string":
        return build.literal(str(value.toString()) if hasattr(value, "toString") else value, at)
    if kind.startswith("decimal"):
        return build.literal(Decimal(str(value.toString())), at)
    if isinstance(value, (bool, int, float, bytes, bytearray)):
        return build.literal(bytes(value) if isinstance(value, bytearray) else value, at)
    raise PredicateError(f"{at!r}: a literal of Spark's type {kind} is not supported in a condition")


def _operands(node: Any, name: str) -> list[Any]:
    """The arguments of a function; of AND and OR those of a whole chain, which is one level."""
    if name in ("Nvl", "NullIf"):  # whose children are what replaces it
        return [node.left(), node.right()]
    if name not in ("And", "Or"):
        return sequence(node.children())
    return chain(node, lambda n: sequence(n.children()), lambda n: bool(n.getClass().getSimpleName() == name))
