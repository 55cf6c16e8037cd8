"""`ColumnReader`: what Spark's functions and operators mean in a condition, whatever kind of session made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import functions as F  # noqa: N812  # the name all Spark code uses

from splitjoin.base.errors import PredicateError, SplitJoinError
from splitjoin.lang import build, functions
from splitjoin.lang.build import find_column
from splitjoin.lang.casts import cast, named_type
from splitjoin.lang.ir import MAX_DEPTH, Expr, too_deep
from splitjoin.lang.operations import functions as integer_functions
from splitjoin.lang.schema import Schema
from splitjoin.lang.sql.parser import parse_sql
from splitjoin.lang.sql.spark import SPARK_FUNCTIONS, SparkReader, is_interval
from splitjoin.lang.sql.spark_times import TIME_FUNCTIONS, spark_cast
from splitjoin.lang.types import Duration


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
        found = SPARK_FUNCTIONS.get(name)
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
        return parse_sql(text, self._schemas["r"], self._schemas["s"], value=True, reader=SparkReader)

    def _cast(self, child: Any, to: str, tried: bool, at: str) -> Expr:
        if tried:
            raise PredicateError(f"{at!r}: TRY_CAST is not supported in a condition; write a cast")
        a = self.expr(child)
        if is_interval(to) and isinstance(a.type, Duration):
            return a
        kind = named_type(to, at)
        return spark_cast(a, kind, at) or cast(a, kind, at)


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


_SHOWN = sorted(("abs", "coalesce", "greatest", "ifnull", "least", "negative", "nullif", "shiftleft", "shiftright",
                 *(o.name for o in integer_functions()), *(name for name in TIME_FUNCTIONS if hasattr(F, name))))
