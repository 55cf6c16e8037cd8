"""`tie_breakers`: the columns that put rows with equal times into an order, as Spark gives them in none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Union

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from splitjoin.base.errors import SchemaError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Side

from .versions import type_named

#: Columns that order rows with equal times: of both streams, or ``{"r": …, "s": …}``.
Ties = Union[str, Sequence[str], Mapping[str, Union[str, Sequence[str]]]]


def tie_breakers(query: Query, side: Side, schema: StructType, ties: Ties, always: bool = False) -> tuple[str, ...]:
    """The columns that order rows of stream ``side`` with equal times: those that the user names, then all others.

    None if their order cannot matter, unless ``always``. Raises `SchemaError` for names that are no columns with an
    order, and for columns without an order if none is named.
    """
    given = ties
    if isinstance(given, Mapping):
        if not set(given) <= {"r", "s"}:
            raise SchemaError(f"a mapping of ties must have the keys 'r' and 's', not {sorted(map(str, given))}")
        given = given.get(side, ())
    if not isinstance(given, (str, Sequence)):
        raise SchemaError(f"ties must be column names, or a mapping with 'r' and 's', not {ties!r}")
    given = [given] if isinstance(given, str) else given
    if not all(isinstance(name, str) for name in given):
        raise SchemaError(f"ties must be column names, or a mapping with 'r' and 's', not {ties!r}; for columns "
                          f"of each stream write ties={{'r': …, 's': …}}")
    names = [query.schema(side).find(name).name for name in given]
    for name in names:
        if not _orderable(schema[name].dataType):
            raise SchemaError(f"column {side}.{name} cannot break ties: {schema[name].dataType.simpleString()} has no "
                              f"order")
    chooses = query.kind.is_asof or any(a.ordered for a in query.aggregates)
    if query.window(side).rows is None and query.order.kind != "total" and not chooses and not always:
        return ()
    assert query.time is not None
    others = [f for f in schema if f.name not in (*names, query.time.name(side))]
    without = [f.name for f in others if not _orderable(f.dataType)]
    if without and not names:
        raise SchemaError(f"rows of stream {side} with equal times need an order here, but column {without[0]!r} has "
                          f"a type without one ({schema[without[0]].dataType.simpleString()}); name the columns that "
                          f"give it with ties=…, for example a row number")
    return (*names, *(f.name for f in others if f.name not in without))


def _orderable(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _orderable(kind.elementType)
    if isinstance(kind, StructType):
        return all(_orderable(f.dataType) for f in kind)
    return not isinstance(kind, (MapType, *type_named("VariantType"), *type_named("CalendarIntervalType")))
