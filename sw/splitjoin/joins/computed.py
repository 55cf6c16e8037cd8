"""Terms on one stream that are not in the language: columns that DuckDB computes once per tuple, before the join."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa

from splitjoin.base.errors import PredicateError, SchemaError, SplitJoinError, ToolError
from splitjoin.lang.ir import Expr
from splitjoin.lang.query import ComputedColumn, Query
from splitjoin.lang.schema import SIDES, Schema, Side

__all__ = ["make_query", "with_computed"]

#: The statement whose ON a condition is read as.
_STATEMENT = "SELECT * FROM r JOIN s ON TRUE"
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
        try:
            condition, computed = _read(on, {"r": r, "s": s})
        except RecursionError:  # of a condition that was refused as nested too deeply
            raise refused from None
        except ToolError as error:
            said, *mark = str(refused).split("\n")
            raise PredicateError("\n".join([f"{said}; or {error}", *mark])) from None
        except SplitJoinError as error:
            from .sql import refused_twice

            if isinstance(error, SchemaError):
                raise error from None
            told = refused_twice(refused, error)
            raise (told if told is not refused else _with_statement(refused)) from None
        if not computed:
            raise
    from .sql import extended

    query = Query.make(extended(r, computed), extended(s, computed), on=condition, **parts)
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


def _read(on: str, schemas: dict[Side, Schema]) -> tuple[Expr, list[ComputedColumn]]:
    """The condition ``on``, and the columns that it reads beside those of ``schemas``."""
    # Here, as most conditions need no statements, whose modules take a tenth of a short process's time.
    from .sql import (
        OneTableTerms,
        computed_columns,
        condition_tree,
        connection,
        extended,
        parse,
        read_condition,
        row_of_nulls,
    )

    statement = parse(_STATEMENT)
    with connection() as db:
        terms = OneTableTerms(db, statement, {side: row_of_nulls(_arrow(schemas[side])) for side in SIDES})
        tree = terms.read(condition_tree(on), "ON")
    computed = computed_columns(terms, [tree])
    both = [(table, extended(schemas[side], computed)) for table, side in zip(statement.tables, SIDES, strict=True)]
    return read_condition(statement, both, tree, "ON"), computed


def _arrow(schema: Schema) -> pa.Schema:
    assert schema.arrow is not None
    return schema.arrow


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
