"""Serialization of queries as plain JSON values, to send them to another process of the same user and release.

A condition becomes the list of its distinct nodes, operands first, each ``[node, field, …]``, with the positions of its
operands; a node that occurs in several places is in the list once. The values hold no code: `decode_query` makes the
objects of a query of fields that fit their annotations, and raises `PredicateError` for everything else. That types
fit operators is left to who made the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from splitjoin.base.errors import PredicateError, SplitJoinError

from . import ir, types
from .ir import Expr, check_depth, columns, distinct
from .order import Order
from .query import Query
from .schema import SIDES, Column, Schema, Side
from .time_columns import TimeColumns
from .types import BOOL, STRING, Date, Int, OrderedText, Timestamp, Type
from .windows import Extent

#: The nodes that front ends make, and the types of values, by name.
_NODES: dict[str, Any] = {cls.__name__: cls for cls in (
    ir.Col, ir.Lit, ir.Arith, ir.Neg, ir.Abs, ir.Cast, ir.Cmp, ir.And, ir.Or, ir.Not, ir.IsNull, ir.Case, ir.Extreme,
    ir.StartsWith, ir.Like, ir.FloatCall, ir.UnitNumber, ir.UnitStart, ir.Call)}
_TYPES: dict[str, Any] = {cls.__name__: cls for cls in vars(types).values() if isinstance(cls, type) and issubclass(
    cls, Type) and cls not in (Type, OrderedText)}


#: The fields of a query that are sent, beside its condition.
_SENT = ("r", "s", "window_r", "window_s", "time", "order")


def encode_query(query: Query) -> dict[str, Any]:
    """``query`` as a JSON object. Raises `PredicateError` for a condition with nodes that only passes make."""
    return {name: _encode(getattr(query, name)) for name in _SENT} | {"condition": encode_condition(query.predicate)}


def decode_query(data: object) -> Query:
    """The query in ``data``, parsed JSON from another process. Raises `PredicateError` unless it is a query."""
    if not isinstance(data, dict) or {*data} != {*_SENT, "condition"}:
        raise _wrong(f"an object with condition, {', '.join(_SENT)}", data)
    hints = get_type_hints(Query)
    of = {name: _decode(hints[name], data[name]) for name in _SENT}
    for window in (of["window_r"], of["window_s"]):
        limits = [(window.rows, 1), (window.length, 0)]
        if window == Extent(None, None) or any(limit is not None and limit < least for limit, least in limits):
            raise _wrong("a window with a number of rows from 1 and a length from 0, of which one may be null", data)
    time, schemas = of["time"], {"r": of["r"], "s": of["s"]}
    if [schemas[side].side for side in SIDES] != [*SIDES] or (time is not None and (
            {time.r} - {*of["r"].names} or {time.s} - {*of["s"].names} or not isinstance(
                time.type, (Int, Date, Timestamp)) or isinstance(time.type, Timestamp) != (time.tick is not None))):
        raise _wrong("columns of both streams as time, and their type and tick", data)
    return Query(predicate=decode_condition(data["condition"], schemas), **of)


def encode_condition(e: Expr) -> list[Any]:
    """The condition ``e`` as a list of its nodes. Raises `PredicateError` for nodes that only passes make."""
    found = []
    for node, operands in distinct(e):
        if type(node).__name__ not in _NODES:
            raise PredicateError(f"a condition must consist of nodes that front ends make, not of "
                                 f"{type(node).__name__}; write it in SQL, Python or Spark columns")
        places = {id(child): place for child, place in zip(node.children, operands, strict=True)}
        found.append([type(node).__name__, *(_encode(getattr(node, f.name), places) for f in fields(node))])
    return found


def decode_condition(data: object, schemas: Mapping[str, Schema]) -> Expr:
    """The condition in ``data`` over columns of ``schemas`` ("r", "s"). Raises `PredicateError` for other data."""
    nodes: list[Expr] = []
    for item in data if isinstance(data, list) else ():
        match item:
            case [str() as name, *given] if name in _NODES:
                nodes.append(_made(_NODES[name], given, nodes))
            case _:
                raise _wrong("a list of nodes, each a list of its name and its fields", item)
    if not nodes or nodes[-1].type != BOOL:
        raise _wrong("a list of nodes, of which the last one is a truth value", data)
    check_depth(nodes[-1])
    for c in columns(nodes[-1]):
        if Column(c.name, c.type, c.nullable, c.range) not in schemas[c.side].columns:
            raise PredicateError(f"the column {c.side}.{c.name} of the condition must be one of the schema, with its "
                                 f"type, nullability and range")
    return nodes[-1]


def _encode(value: Any, places: Mapping[int, int] | None = None) -> Any:
    """A field as JSON; ``places``: the position of each operand by its id."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"float": value.hex()}  # with inf, nan and -0.0
        case Fraction():
            return {"ratio": [value.numerator, value.denominator]}
        case bytes():
            return {"bytes": value.hex()}
        case tuple():
            return [_encode(one, places) for one in value]
        case Expr():
            assert places is not None
            return places[id(value)]
        case OrderedText():
            return _encode(STRING)
        case Schema():
            arrow = None if value.arrow is None else value.arrow.serialize().to_pybytes()
            return [value.side, _encode(value.columns), _encode(arrow)]
    name = [type(value).__name__] if isinstance(value, Type) else []
    return [*name, *(_encode(getattr(value, f.name)) for f in fields(value))]


#: What JSON has no word for, by the name that it gets.
_TAGGED: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", float.fromhex), bytes: ("bytes", bytes.fromhex), Fraction: ("ratio", lambda of: Fraction(*of))}


def _decode(hint: Any, data: Any, nodes: Sequence[Expr] = ()) -> Any:
    """``data`` as what the annotation ``hint`` says; ``nodes``: those that may be operands."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for one in args:
            try:
                return _decode(one, data, nodes)
            except PredicateError:
                continue
    elif origin is Literal and any(type(data) is type(one) and data == one for one in args):
        return data
    elif origin is tuple and isinstance(data, list) and (args[-1] is ... or len(data) == len(args)):
        return tuple(_decode(args[0] if args[-1] is ... else args[n], one, nodes) for n, one in enumerate(data))
    elif hint in (bool, int, str, NoneType) and type(data) is hint:
        return data
    elif hint in _TAGGED and isinstance(data, dict):
        name, made = _TAGGED[hint]
        try:
            if [*data] == [name]:
                return made(data[name])
        except (ValueError, TypeError, ArithmeticError):
            pass
    elif hint is Expr and type(data) is int and 0 <= data < len(nodes):
        return nodes[data]
    elif isinstance(hint, type) and issubclass(hint, Type) and isinstance(data, list) and data and (
            isinstance(data[0], str) and data[0] in _TYPES and issubclass(_TYPES[data[0]], hint)):
        return _made(_TYPES[data[0]], data[1:])
    elif hint in (Schema, Column, Extent, TimeColumns, Order) and isinstance(data, list):
        return _made(hint, data)
    raise _wrong(getattr(hint, "__name__", str(hint)), data)


def _made(cls: Any, given: Sequence[Any], nodes: Sequence[Expr] = ()) -> Any:
    """An object of the data class ``cls`` of its fields."""
    hints = _hints(cls)
    if len(given) != len(hints):
        raise _wrong(f"{cls.__name__} with {len(hints)} fields", [*given])
    values = [_decode(hint, one, nodes) for hint, one in zip(hints, given, strict=True)]
    try:
        return _schema(*values) if cls is Schema else cls(*values)
    except SplitJoinError as error:
        raise PredicateError(str(error)) from None


@cache
def _hints(cls: Any) -> list[Any]:
    found = get_type_hints(_schema if cls is Schema else cls)
    return [hint for name, hint in found.items() if name != "return"]


def _schema(side: Side, columns: tuple[Column, ...], arrow: bytes | None) -> Schema:
    try:
        read = None if arrow is None else pa.ipc.read_schema(pa.py_buffer(arrow))
        _ = read and (read.names, list(map(str, read.types)))  # raises for names that are no UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:
        raise PredicateError(f"the schema of stream {side} must be in Arrow's IPC format, but is not: "
                             f"{str(error)[:200]}") from None
    return Schema(side, columns, read)


def _wrong(must: str, came: object) -> PredicateError:
    shown = repr(came) if isinstance(came, (str, int, float, bool, type(None))) else f"{type(came).__name__} {came!r}"
    return PredicateError(f"a query that comes from another process must have {must} there, not {shown[:200]}")
