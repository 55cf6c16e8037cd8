"""ORDER BY, LIMIT and OFFSET of a SELECT over tables: done to the rows of the result, which then are all there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.eval.vector import column
from splitjoin.lang.schema import suggest
from splitjoin.lang.types import Opaque, OrderedText, column_type, plain

from .checks import StatementText
from .parts import Statement
from .projection import Projection
from .reader import Tables, TreeReader

__all__ = ["SortKey", "refuse_ordering", "sort_keys", "sorted_rows"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SortKey:
    """A term of ORDER BY: the number of the result column, and how it is sorted."""

    column: int
    descending: bool
    nulls_first: bool


def refuse_ordering(statement: Statement, instead: str) -> None:
    """Raise `StatementError` if ``statement`` has ORDER BY, LIMIT or OFFSET, with what to do ``instead``."""
    if statement.ordering.is_empty:
        return
    word, start, end = statement.ordering.words[0]
    raise StatementText(statement.text, ()).error(f"{word.upper()} needs all rows of the result, which only joins of "
                                                  f"tables have; {instead}", start, end)


def sort_keys(statement: Statement, tables: Tables, projection: Projection) -> list[SortKey]:
    """The terms of ORDER BY as columns of the result. Raises `StatementError` for a term that is none of them, and for
    a column whose type has no order.
    """
    keys = []
    for term in statement.ordering.terms:
        reader = TreeReader(statement, tables, "ORDER BY", quoting=True)
        at = _column(statement, projection, reader, term.this)
        type_ = projection.outputs[at].field.type
        if isinstance(column_type(type_), Opaque) and not pa.types.is_null(type_):
            raise StatementError(f"{reader.quote(term.this)!r}: ORDER BY needs values with an order, but this is "
                                 f"{type_}{reader.mark(term.this)}")
        keys.append(SortKey(at, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
    return keys


def _column(statement: Statement, projection: Projection, reader: TreeReader, tree: exp.Expr) -> int:
    """The number of the result column that a term of ORDER BY means: by its place, name, column or text."""
    names = [o.field.name for o in projection.outputs]
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit() and (
            1 <= int(tree.name) <= len(names)):
        return int(tree.name) - 1
    if isinstance(tree, exp.Column) and tree.args.get("table") is None:
        same = [n for n, name in enumerate(names) if name == tree.name] or [
            n for n, name in enumerate(names) if name.lower() == tree.name.lower()]
        if len(same) == 1:
            return same[0]
    if isinstance(tree, exp.Column):
        try:
            schema, found = reader.find(tree)
            same = [n for n, o in enumerate(projection.outputs) if o.source == f"{schema.side}.{found.name}"]
        except (PredicateError, SchemaError):
            same = []
    else:
        texts = {i.text for i in statement.items if i.tree == tree}
        same = [n for n, o in enumerate(projection.outputs) if o.text in texts]
    if same:
        return same[0]
    raise StatementError(f"{reader.quote(tree)!r}: ORDER BY takes columns of the result, by name, by place or by the "
                         f"text of the SELECT list{suggest(tree.name, names)}; they are {', '.join(names)}"
                         f"{reader.mark(tree)}")


def sorted_rows(table: pa.Table, keys: Sequence[SortKey], statement: Statement) -> Ints:
    """The numbers of the rows of ``table`` that ORDER BY, OFFSET and LIMIT leave, in their order.

    Rows that are equal in all keys keep the order in which the join gives them. NaN is the greatest float, NULL comes
    last unless NULLS FIRST says otherwise, as in DuckDB.
    """
    ending = statement.ordering
    order = np.arange(len(table))
    if keys:
        by: list[Any] = []
        for key in reversed(keys):
            ranks, valid = _ranks(table.column(key.column), table.schema.names[key.column])
            by += [-ranks if key.descending else ranks, valid if key.nulls_first else ~valid]
        order = np.lexsort(by)
    stop = None if ending.limit is None else ending.offset + ending.limit
    return order[ending.offset:stop]


def _ranks(values: pa.ChunkedArray, name: str) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The places of ``values`` in their order, 0 for NULL; and which are not NULL."""
    ranks, valid = np.zeros(len(values), np.int64), plain(values).is_valid().to_numpy()
    type_ = column_type(values.type, values)
    if (isinstance(type_, OrderedText) and type_.categories is None) or isinstance(type_, Opaque):
        if not pa.types.is_null(values.type):
            raise InputError(f"ORDER BY {name}: the order of its categories must be the same in all rows; select "
                                 f"CAST(… AS VARCHAR) for that of text")
        return ranks, valid
    found: npt.NDArray[Any] = column(values).values[valid]
    if isinstance(type_, OrderedText):
        places = {category: n for n, category in enumerate(type_.categories or ())}
        found = np.array([places[value] for value in found.tolist()], np.int64)
    ranks[valid] = np.unique(found, return_inverse=True)[1]
    return ranks, valid
