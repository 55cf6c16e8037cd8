"""Terms on one stream that are not in the language: columns that DuckDB computes once per tuple, before the join."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import PredicateError, SchemaError, SplitJoinError, ToolError
from splitjoin.lang.query import Query
from splitjoin.lang.schema import Schema, Side

#: A part of the error for words that are not in the language.
_UNKNOWN = "is not supported in a condition"


def make_query(r: Schema, s: Schema, *, on: Any = None, **parts: Any) -> Query:
    """`Query.make`; what a condition in SQL says of one stream in words that are not in the language is a computed
    column of the query, by DuckDB, behind those of the stream. `with_computed` adds them to its tuples.

    Raises what `Query.make` raises, where DuckDB does not know these words either, or is not installed.
    """
    try:
        return Query.make(r, s, on=on, **parts)
    except PredicateError as refused:
        if not isinstance(on, str) or r.arrow is None or s.arrow is None:
            raise
        # Here, as most conditions need no statements, whose modules take a tenth of a short process's time.
        from .sql import computed_terms, condition_statement, extended, read_condition, refused_twice, with_tool

        try:
            made, computed = computed_terms(condition_statement(on), {"r": r, "s": s})
        except RecursionError:  # of a condition that was refused as nested too deeply
            raise refused from None
        except ToolError as error:
            raise with_tool(refused, error) from None
        except SplitJoinError as error:
            if isinstance(error, SchemaError):
                raise error from None
            told = refused_twice(refused, error)
            raise (told if told is not refused else _with_statement(refused)) from None
        if not computed:
            raise
    r, s = extended(r, computed), extended(s, computed)
    assert made.on[0] is not None
    condition = read_condition(made, list(zip(made.tables, (r, s), strict=True)), made.on[0], "ON")
    query = Query.make(r, s, on=condition, **parts)
    return replace(query, computed=tuple(computed))


def with_computed(query: Query, side: Side, table: pa.Table) -> pa.Table:
    """``table``, tuples of stream ``side`` of ``query``, with the columns that are computed of it.

    Raises `InputError` for a value for which DuckDB has no result.
    """
    mine = [column for column in query.computed if column.side == side]
    if not mine:
        return table
    found = _asked(side, table, [column.text for column in mine])
    for column, values in zip(mine, found.columns, strict=True):
        if values.type != column.field.type:
            values = values.cast(column.field.type)
        table = table.append_column(column.field, values)
    return table


def _with_statement(refused: PredicateError) -> PredicateError:
    """``refused``, with the way for what DuckDB alone computes of both streams."""
    said, *mark = str(refused).split("\n")
    if _UNKNOWN not in said:
        return refused
    said = said.split("; it may hold ")[0]
    if " (did you mean " in said:
        return PredicateError("\n".join([said, *mark]))
    prefix = ", and starts_with(x, y) finds prefixes" if "LIKE" in said else ""
    return PredicateError("\n".join([f"{said}; over tables, splitjoin.sql has DuckDB compute it, on the pairs that the "
                                     f"other terms let through{prefix}", *mark]))


#: A database of each thread, with the context that closes it.
_ours = threading.local()


def _asked(side: Side, table: pa.Table, texts: list[str]) -> pa.Table:
    """What DuckDB computes of each tuple."""
    from .sql import ask, connection

    if getattr(_ours, "db", None) is None:
        _ours.context = connection()
        _ours.db = _ours.context.__enter__()
    said = ", ".join(f"{text} AS c{n}" for n, text in enumerate(texts))
    return ask(_ours.db, f"SELECT {said} FROM splitjoin_{side} AS {side}", {f"splitjoin_{side}": table})
