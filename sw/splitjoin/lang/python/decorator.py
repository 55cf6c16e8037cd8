"""``@splitjoin.predicate``: a condition in Python that is checked where it is defined, by classes of its two tuples."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import PredicateError, SchemaError

from ..ir import Expr
from ..schema import Column, Schema
from ..types import (
    BINARY,
    BOOL,
    DATE,
    FLOAT64,
    STRING,
    Binary,
    Bool,
    Date,
    Decimal,
    Duration,
    Float,
    Int,
    String,
    TimeOfDay,
    Timestamp,
    Type,
    from_arrow,
)
from .traced_condition import trace

#: Python type → the column type it stands for where none is known, and those it takes.
_KINDS: dict[Any, tuple[Type, tuple[type[Type], ...]]] = {
    bool: (BOOL, (Bool,)), int: (Int(64), (Int,)), float: (FLOAT64, (Float,)), str: (STRING, (String,)),
    bytes: (BINARY, (Binary,)), PyDecimal: (Decimal(38, 9), (Decimal, Int)), dt.date: (DATE, (Date,)),
    dt.datetime: (Timestamp("us"), (Timestamp,)), dt.timedelta: (Duration("us"), (Duration,)),
    dt.time: (TimeOfDay("us"), (TimeOfDay,)),
}


@dataclass(frozen=True)
class _Attribute:
    """A column as a class declares it: an exact type (from ``Annotated``), or kinds of types."""

    column_type: Type
    kinds: tuple[type[Type], ...]
    exact: bool
    nullable: bool

    def takes(self, column: Column) -> bool:
        return column.type == self.column_type if self.exact else isinstance(column.type, self.kinds)


class TypedPredicate:
    """A function of ``(r, s)`` and what its annotations say of the tuples. Made by `predicate`; use it as ``on=``."""

    def __init__(self, fn: Callable[[Any, Any], Any]):
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._classes = _classes(fn)
        r, s = self._classes
        if r is not None and s is not None:
            # Both tuples are known: what is wrong shows here, where it is written.
            trace(fn, Schema("r", _columns(r)), Schema("s", _columns(s)))

    def __call__(self, r: Any, s: Any) -> Any:
        return self._fn(r, s)

    def trace(self, r: Schema, s: Schema) -> Expr:
        """The IR over the schemas ``r`` and ``s``, of whose columns the function sees those that its classes name.

        Raises `SchemaError` where a column is missing or of another kind.
        """
        return trace(self._fn, *(_seen(schema, known) for schema, known in zip((r, s), self._classes, strict=True)))


def predicate(fn: Callable[[Any, Any], Any]) -> TypedPredicate:
    """Mark ``fn(r, s)`` as a join condition.

    Its parameters may be annotated with classes (plain, dataclasses, `NamedTuple`, `TypedDict`, `Protocol`) that give
    the tuples' columns: ``int``, ``float``, ``bool``, ``str``, ``bytes``, ``Decimal``, ``date``, ``datetime``,
    ``timedelta``, ``time``, with ``| None`` where NULL may be, or ``Annotated[int, pyarrow.int16()]`` for an exact
    type. Then the condition is checked at once, sees no other columns, and joins only tables that have them.

    Raises `PredicateError` and `SchemaError` that point at the part of ``fn`` which is wrong.
    """
    if not callable(fn):
        raise PredicateError(f"@splitjoin.predicate must stand above a function of (r, s), not {type(fn).__name__}")
    return fn if isinstance(fn, TypedPredicate) else TypedPredicate(fn)


def _classes(fn: Callable[..., Any]) -> tuple[dict[str, _Attribute] | None, dict[str, _Attribute] | None]:
    parameters = list(inspect.signature(fn).parameters)
    if len(parameters) != 2:
        raise PredicateError(f"the condition must be a function of two parameters (r, s), not "
                             f"{getattr(fn, '__name__', 'function')}({', '.join(parameters)})")
    try:
        hints = typing.get_type_hints(_annotated(fn))
        r, s = (_attributes(hints[p]) if p in hints else None for p in parameters)
    except NameError as error:
        raise PredicateError(f"the annotations of {getattr(fn, '__name__', fn)} must be known where it is defined: "
                             f"{error}") from None
    return r, s


def _annotated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The object with the annotations of ``fn``, which may be a partial, or an object that can be called."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn if inspect.isroutine(fn) else type(fn).__call__


def _attributes(class_: Any) -> dict[str, _Attribute] | None:
    if class_ is Any:
        return None
    hints = typing.get_type_hints(class_, include_extras=True) if isinstance(class_, type) else {}
    if not hints:
        raise PredicateError(f"a parameter of a condition must be annotated with a class that has annotated columns, "
                             f"such as 'class Order: price: float', not {class_!r}")
    return {name: _attribute(class_, name, hint) for name, hint in hints.items()}


def _attribute(class_: type, name: str, hint: Any) -> _Attribute:
    nullable = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = [o for o in typing.get_args(hint) if o is not type(None)]
        nullable = len(options) < len(typing.get_args(hint))
        hint = options[0] if len(options) == 1 else hint
    exact = None
    if typing.get_origin(hint) is typing.Annotated:
        hint, *more = typing.get_args(hint)
        exact = next((from_arrow(m) for m in more if isinstance(m, pa.DataType)), None)
    if hint not in _KINDS:
        raise PredicateError(f"{class_.__name__}.{name} must be annotated with int, float, bool, str, bytes, Decimal, "
                             f"date, datetime or timedelta, with '| None' where NULL may be, not {hint!r}")
    type_, kinds = _KINDS[hint]
    return _Attribute(exact or type_, kinds, exact is not None, nullable)


def _columns(known: dict[str, _Attribute]) -> list[Column]:
    return [Column(name, a.column_type, a.nullable) for name, a in known.items()]


def _seen(schema: Schema, known: dict[str, _Attribute] | None) -> Schema:
    if known is None:
        return schema
    columns = []
    for name, attribute in known.items():
        column = schema.find(name)
        if not attribute.takes(column):
            kinds = " or ".join(k.__name__.lower() for k in attribute.kinds)
            wanted = str(attribute.column_type) if attribute.exact else kinds
            raise SchemaError(f"column {schema.side}.{name} must be {wanted}, as the condition's class says, not "
                              f"{column.type}")
        columns.append(column)
    return Schema(schema.side, columns)
