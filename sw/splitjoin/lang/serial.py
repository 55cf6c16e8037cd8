"""Serialization of queries as plain JSON values, to send them to another process. The values hold no code.

A condition becomes the list of its distinct nodes, operands first, each ``[node, type, positions of its operands, …]``;
a node that occurs in several places is in the list once. `decode_query` accepts only queries that a front end could
have made: known nodes, operators and types, columns of the schemas, literals that fit their types, and at most
`MAX_DEPTH` levels. It raises `PredicateError` for everything else.
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast, get_args

import pyarrow as pa

from splitjoin.base.errors import PredicateError, SplitJoinError

from . import ir
from .calendar import UNITS, started
from .ir import MAX_DEPTH, ArithOp, Cmp, CmpOp, Col, Expr, FloatFunction, Lit, distinct, properties, too_deep
from .operations import MAX_PLACES, OPERATIONS
from .order import Order
from .query import Query
from .schema import SIDES, Column, Schema, Side
from .time_columns import TimeColumns
from .types import (
    BOOL,
    EXACT,
    STRING,
    TIME_UNITS,
    Binary,
    Bool,
    Date,
    Decimal,
    Duration,
    Exact,
    Float,
    Int,
    Opaque,
    OrderedText,
    String,
    TimeOfDay,
    Timestamp,
    Type,
    is_exact,
)
from .windows import Extent

#: The most nodes of a condition, each counted as often as it occurs.
MAX_NODES = 1 << 20

#: The nodes that front ends make.
_NODES: dict[str, Any] = {cls.__name__: cls for cls in (
    Col, Lit, ir.Arith, ir.Neg, ir.Abs, ir.Cast, Cmp, ir.And, ir.Or, ir.Not, ir.IsNull, ir.Case, ir.Extreme,
    ir.StartsWith, ir.Like, ir.FloatCall, ir.UnitNumber, ir.UnitStart, ir.Call)}


def _number(least: int, most: float = math.inf) -> Callable[[object], bool]:
    return lambda x: type(x) is int and least <= x <= most


def _one_of(*values: object) -> Callable[[object], bool]:
    return lambda x: any(type(x) is type(value) and x == value for value in values)


def _text(x: object) -> bool:
    return isinstance(x, str)


#: The types by name, and what each of their properties must be.
_TYPES: dict[str, tuple[Any, *tuple[Callable[[object], bool], ...]]] = {cls.__name__: (cls, *known) for cls, *known in (
    (Exact,), (Bool,), (Date,), (String,), (Int, _one_of(8, 16, 32, 64), _one_of(True, False)),
    (Decimal, _number(1, 38), _number(0, 38)), (Float, _one_of(32, 64)),
    (Timestamp, _one_of(*TIME_UNITS), lambda x: x is None or _text(x)), (Duration, _one_of(*TIME_UNITS)),
    (TimeOfDay, _one_of(*TIME_UNITS)), (Binary, lambda x: x is None or _number(0)(x)), (Opaque, _text))}


def encode_query(query: Query) -> dict[str, Any]:
    """``query`` as a JSON object. Raises `PredicateError` for a condition with nodes that only passes make."""
    time = query.time
    return {
        "schemas": {side: _encode_schema(query.schema(side)) for side in SIDES},
        "condition": encode_condition(query.predicate),
        "windows": {side: [query.window(side).rows, query.window(side).length] for side in SIDES},
        "time": None if time is None else [time.r, time.s, _encode_type(time.type), time.tick],
        "order": [query.order.kind, query.order.n],
    }


def decode_query(data: object) -> Query:
    """The query in ``data``, parsed JSON from an untrusted source. Raises `PredicateError` unless it is a query."""
    match data:
        case {"schemas": {"r": r, "s": s}, "condition": condition, "windows": {"r": window_r, "s": window_s},
              "time": time, "order": [kind, n], **others} if not others:
            schemas = {"r": _decode_schema("r", r), "s": _decode_schema("s", s)}
            try:
                order = Order(kind, n)
            except SplitJoinError as error:
                raise PredicateError(str(error)) from None
            return Query(schemas["r"], schemas["s"], decode_condition(condition, schemas), _decode_extent(window_r),
                         _decode_extent(window_s), _decode_time(time, schemas), order)
    raise _wrong("a query", "an object with schemas, condition, windows, time and order", data)


def encode_condition(e: Expr) -> list[Any]:
    """The condition ``e`` as a list of its nodes. Raises `PredicateError` for nodes that only passes make."""
    return [[type(node).__name__, _encode_type(node.type), list(operands), *_properties(node)]
            for node, operands in distinct(e)]


def decode_condition(data: object, schemas: Mapping[str, Schema]) -> Expr:
    """The condition in ``data`` over columns of ``schemas`` ("r", "s"). Raises `PredicateError` for other data."""
    if not isinstance(data, list) or not data:
        raise _wrong("a condition", "a list of nodes", data)
    nodes: list[tuple[Expr, int, int]] = []  # each with its levels, and its nodes, counted as often as they occur
    for item in data:
        match item:
            case [str() as name, type_, list() as at, *properties] if (
                    all(type(i) is int and 0 <= i < len(nodes) for i in at)):
                levels = 1 + max((nodes[i][1] for i in at), default=0)
                size = 1 + sum(nodes[i][2] for i in at)
                if levels > MAX_DEPTH:
                    raise too_deep()
                if size > MAX_NODES:
                    raise PredicateError(f"the condition must not have more than {MAX_NODES} nodes; write it shorter")
                made = _node(name, _decode_type(type_), tuple(nodes[i][0] for i in at), properties, schemas)
                if made is None:
                    raise _wrong("a node", "of a known kind, with operands and properties that it may have", item)
                nodes.append((made, levels, size))
            case _:
                raise _wrong("a node", "a list of its name, its type, the positions of its operands among the nodes "
                                       "before it, and its properties", item)
    condition = nodes[-1][0]
    if condition.type != BOOL:
        raise PredicateError(f"a condition must be a truth value, not of type {condition.type}")
    return condition


def _properties(e: Expr) -> list[Any]:
    if type(e).__name__ not in _NODES:
        raise PredicateError(f"a condition must consist of nodes that front ends make, not of {type(e).__name__}; "
                             f"write it in SQL, Python or Spark columns")
    return [_encode_type(x) if isinstance(x, Type) else list(x) if isinstance(x, tuple) else _encode_value(x)
            for x in properties(e)]


def _node(name: str, type_: Type, of: tuple[Expr, ...], properties: list[Any], schemas: Mapping[str, Schema],
          ) -> Expr | None:
    """The node ``name`` of type ``type_`` with operands ``of``; None if there is no such node."""
    match name, of, properties:
        case "Col", (), [("r" | "s") as side, str() as column, bool(), _]:
            return _column(schemas[side], type_, properties, column)
        case "Lit", (), [value]:
            found = _decode_value(value)
            return Lit(type_, found) if _fits(found, type_) else None
        case "Arith", (a, b), [op] if op in get_args(ArithOp) and _is_sum(type_, a.type, b.type):
            return ir.Arith(type_, cast(ArithOp, op), a, b)
        case "Cmp", (a, b), [op] if op in get_args(CmpOp) and type_ == BOOL and _alike(a.type, b.type):
            return Cmp(type_, cast(CmpOp, op), a, b)
        case ("And" | "Or"), (_, _, *_), [] if all(t == BOOL for t in (type_, *(e.type for e in of))):
            return _NODES[name](type_, of)  # type: ignore[no-any-return]  # And or Or
        case "Not", (a,), [] if a.type == type_ == BOOL:
            return ir.Not(type_, a)
        case "IsNull", (a,), [] if type_ == BOOL:
            return ir.IsNull(type_, a)
        case ("Neg" | "Abs"), (a,), [] if _is_sum(type_, a.type, a.type):
            return _NODES[name](type_, a)  # type: ignore[no-any-return]  # Neg or Abs
        case "Cast", (a,), [] if not isinstance(type_, Opaque):
            return ir.Cast(type_, a)
        case "Case", (_, _, *_, otherwise), [] if (
                len(of) % 2 and all(e.type == BOOL for e in of[:-1:2])
                and all(_alike(e.type, otherwise.type) for e in of[1::2])):
            return ir.Case(type_, of[:-1:2], of[1::2], otherwise)
        case "Extreme", (first, _, *_), [("least" | "greatest") as kind] if all(_alike(e.type, first.type) for e in of):
            return ir.Extreme(type_, cast(Any, kind), of)
        case "StartsWith", (a,), [prefix] if type_ == BOOL:
            found = _decode_value(prefix)
            fits = (isinstance(a.type, String) and isinstance(found, str)) or (
                isinstance(a.type, Binary) and isinstance(found, bytes))
            return ir.StartsWith(type_, a, cast(Any, found)) if fits else None
        case "Like", (a,), [pattern] if type_ == BOOL and isinstance(a.type, String):
            found = _decode_value(pattern)
            return ir.Like(type_, a, found) if isinstance(found, str) else None
        case "FloatCall", (a,), [function, int() as places] if function in get_args(FloatFunction) and (
                isinstance(type_, Float) and a.type == type_
                and abs(places) <= (MAX_PLACES if function == "round" else 0)):
            return ir.FloatCall(type_, a, cast(FloatFunction, function), int(places))
        case "UnitNumber", (a,), [unit] if unit in UNITS and type_ == EXACT and isinstance(a.type, (Date, Timestamp)):
            return ir.UnitNumber(type_, a, cast(Any, unit))
        case "UnitStart", (a,), [unit] if unit in UNITS and type_ == started(a.type):
            return ir.UnitStart(type_, a, cast(Any, unit))
        case "Call", _, [str() as op, common] if (
                op in OPERATIONS and len(of) == OPERATIONS[op].operands and all(is_exact(e.type) for e in of)):
            whole = _decode_type(common)
            return ir.Call(type_, op, whole, of) if isinstance(whole, Int) else None
    return None


def _column(schema: Schema, type_: Type, properties: list[Any], name: str) -> Col:
    """The node of column ``name``. Raises `PredicateError` unless ``schema`` has it with the same properties."""
    for column in schema:
        given = None if column.range is None else list(column.range)
        if column.name == name and (column.type, [schema.side, name, column.nullable, given]) == (type_, properties):
            if isinstance(type_, Opaque):
                break
            return Col(type_, schema.side, name, column.nullable, column.range)
    raise PredicateError(f"the column {schema.side}.{name} of the condition must be one of the schema, with its type, "
                         f"nullability and range")


def _is_sum(result: Type, a: Type, b: Type) -> bool:
    """True if arithmetic on ``a`` and ``b`` may have type ``result``: floats of one width, or exact numbers."""
    if isinstance(result, Float):
        return a == b == result
    exact = (Int, Exact, Decimal, Date, Timestamp, Duration)
    return isinstance(result, exact) and isinstance(a, exact) and isinstance(b, exact)


def _alike(a: Type, b: Type) -> bool:
    """True if values of both types can be compared with each other."""
    return a == b or (is_exact(a) and is_exact(b)) or (isinstance(a, Binary) and isinstance(b, Binary)) or (
        isinstance(a, Timestamp) and isinstance(b, Timestamp) and a.unit == b.unit)


#: Types, and those of the values of their literals in Python.
_VALUES: tuple[tuple[tuple[type[Type], ...], tuple[type, ...]], ...] = (
    ((Int, Exact, Decimal), (int, Fraction)), ((Date, Timestamp, Duration), (int,)), ((Float,), (float,)),
    ((Bool,), (bool,)), ((String,), (str,)), ((Binary,), (bytes,)))


def _fits(value: object, type_: Type) -> bool:
    return any(isinstance(type_, types) and type(value) in (*values, type(None)) for types, values in _VALUES)


def _encode_value(value: int | Fraction | float | bool | str | bytes | None) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case Fraction():
            return {"ratio": [value.numerator, value.denominator]}
        case bytes():
            return {"bytes": value.hex()}
    return {"float": float(value).hex()}  # with inf, nan and -0.0


def _decode_value(data: object) -> int | Fraction | float | bool | str | bytes | None:
    try:
        match data:
            case None | bool() | int() | str():
                return data
            case {"ratio": [int() as numerator, int() as denominator], **others} if not others and denominator:
                return Fraction(numerator, denominator)
            case {"bytes": str() as text, **others} if not others:
                return bytes.fromhex(text)
            case {"float": str() as text, **others} if not others:
                return float.fromhex(text)
    except (ValueError, OverflowError):
        pass
    raise _wrong("a literal", "a JSON value, a ratio of two numbers, or a float or bytes in hexadecimal", data)


def _encode_type(type_: Type) -> list[Any]:
    if isinstance(type_, OrderedText):
        type_ = STRING
    return [type(type_).__name__, *(getattr(type_, f.name) for f in fields(type_))]


def _decode_type(data: object) -> Type:
    match data:
        case [str() as name, *given] if name in _TYPES:
            cls, *known = _TYPES[name]
            if len(given) == len(known) and all(fits(x) for fits, x in zip(known, given, strict=True)):
                made: Type = cls(*given)
                return made
    raise _wrong("a type", "a list of its name and its properties", data)


def _encode_schema(schema: Schema) -> dict[str, Any]:
    """The columns, and the Arrow schema in Arrow's IPC format, as base 64."""
    columns = [[c.name, _encode_type(c.type), c.nullable, None if c.range is None else list(c.range)] for c in schema]
    arrow = None if schema.arrow is None else b64encode(schema.arrow.serialize().to_pybytes()).decode()
    return {"columns": columns, "arrow": arrow}


def _decode_schema(side: Side, data: object) -> Schema:
    match data:
        case {"columns": list() as columns, "arrow": (None | str()) as text, **others} if not others:
            try:
                arrow = None if text is None else pa.ipc.read_schema(pa.py_buffer(b64decode(text, validate=True)))
                _ = arrow and (arrow.names, list(map(str, arrow.types)))  # raises for names that are no UTF-8
                return Schema(side, [_decode_column(column) for column in columns], arrow)
            except (pa.ArrowException, binascii.Error, OSError, ValueError) as error:
                raise PredicateError(f"the schema of stream {side} must be in Arrow's IPC format, but is not: "
                                     f"{str(error)[:200]}") from None
            except SplitJoinError as error:
                raise PredicateError(str(error)) from None
    raise _wrong("a schema", "an object with columns and arrow", data)


def _decode_column(data: object) -> Column:
    match data:
        case [str() as name, type_, bool() as nullable, None]:
            return Column(name, _decode_type(type_), nullable)
        case [str() as name, type_, bool() as nullable, [low, high]] if type(low) is type(high) is int and low <= high:
            return Column(name, _decode_type(type_), nullable, (low, high))
    raise _wrong("a column", "a list of its name, type, nullability and range", data)


def _decode_extent(data: object) -> Extent:
    match data:
        case [rows, length] if (rows is None or (type(rows) is int and rows >= 1)) and (
                length is None or (type(length) is int and length >= 0)) and not rows is length is None:
            return Extent(rows, length)
    raise _wrong("a window", "a list of a number of rows from 1 and a length from 0, of which one may be null", data)


def _decode_time(data: object, schemas: Mapping[str, Schema]) -> TimeColumns | None:
    match data:
        case None:
            return None
        case [str() as r, str() as s, type_, (None | str()) as tick] if (
                r in schemas["r"].names and s in schemas["s"].names and (tick is None or tick in TIME_UNITS)):
            kind = _decode_type(type_)
            if isinstance(kind, (Int, Date, Timestamp)) and isinstance(kind, Timestamp) == (tick is not None):
                return TimeColumns(r, s, kind, cast(Any, tick))
    raise _wrong("the time", "null, or a list of R's column, S's column, their type and the tick", data)


def _wrong(what: str, must: str, came: object) -> PredicateError:
    shown = repr(came) if isinstance(came, (str, int, float, bool, type(None))) else f"{type(came).__name__} {came!r}"
    return PredicateError(f"{what} that comes from another process must be {must}, not {shown[:200]}")
