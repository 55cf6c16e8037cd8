"""The rest of a SELECT over rows that are joined, where it says no more than which columns, of which rows, in which
order: then these are its rows as they are, and DuckDB is not asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints, Mask
from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import columns
from splitjoin.lang.layouts import take
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import Opaque, column_type
from splitjoin.rows.aggregates import identical_rows

from .database import is_kept
from .projection import SortKey, sorted_rows
from .reader import TreeReader, read_condition
from .statement import Ordering, Statement, TableName, ordering_of
from .trees import StatementText, conjuncts

_READ = {"expressions", "where", "order", "limit", "offset", "distinct"}


def plain_rows(select: exp.Select, parts: Mapping[str, pa.Table], *, distinct: bool = False) -> pa.Table | None:
    """The rows of ``select`` over the rows whose columns are in ``parts``, by their tables' labels; None for one that
    says more. ``distinct``: True if most rows differ, so that those that DISTINCT leaves are soon found.
    """
    once, where = select.args.get("distinct"), select.args.get("where")
    if any(value for name, value in select.args.items() if name not in _READ) or (
            once is not None and (once.args.get("on") or not distinct)):
        return None
    found = [(item.alias, column_of(item.unalias(), parts)) for item in select.expressions]
    made = [(of[0].with_name(alias) if alias else of[0], of[1]) for alias, of in found if of is not None]
    small = [field.name.lower() for field, _ in made]
    if len(made) < len(found) or not made:
        return None
    with contextlib.suppress(StatementError):
        ordering = ordering_of(select, StatementText(""))
        hidden, keys = list[tuple[pa.Field, pa.ChunkedArray]](), list[SortKey]()
        for term in ordering.terms:
            at = _place(term.this, small)
            if at is None:
                of = column_of(term.this, parts)
                if of is None or once is not None:
                    return None
                hidden.append(of)
                at = len(made) + len(hidden) - 1
            field, values = [*made, *hidden][at]
            if isinstance(column_type(field.type, values), Opaque):
                return None
            keys.append(SortKey(at, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
        rows = rows_where(conjuncts(None if where is None else where.this), parts)
        if rows is None:
            return None
        return _chosen(made, hidden, rows, keys, ordering, distinct=once is not None)
    return None


def column_of(tree: exp.Expr, parts: Mapping[str, pa.Table]) -> tuple[pa.Field, pa.ChunkedArray] | None:
    """The column of ``parts`` that ``tree`` names; None for anything else, and where it could be several."""
    if not isinstance(tree, exp.Column) or isinstance(tree.this, exp.Star) or len(tree.parts) > 2:
        return None
    found = [(part.schema.field(at), part.column(at)) for label, part in parts.items()
             if not tree.args.get("table") or label.lower() == tree.table.lower()
             for at, name in enumerate(part.column_names) if name.lower() == tree.name.lower()]
    return found[0] if len(found) == 1 else None


def columns_in(tree: exp.Expr, tables: Mapping[str, pa.Table]) -> set[tuple[str, str]] | None:
    """The columns of ``tables``, by label and name, that ``tree``, a column or a star, is; None for anything else."""
    star = tree if isinstance(tree, exp.Star) else tree.this if isinstance(tree, exp.Column) else None
    if isinstance(star, exp.Star):
        own = tree.table.lower() if isinstance(tree, exp.Column) else None
        of = {label: table for label, table in tables.items() if own in (None, label.lower())}
        return None if any(star.args.values()) else {(label, name) for label in of for name in of[label].column_names}
    found = [(label, name) for label, table in tables.items() for name in table.column_names
             if isinstance(tree, exp.Column) and len(tree.parts) < 3 and tree.name.lower() == name.lower()
             and (not tree.args.get("table") or tree.table.lower() == label.lower())]
    return {*found} if len(found) == 1 else None


def rows_where(conditions: Iterable[exp.Expr], parts: Mapping[str, pa.Table]) -> Ints | slice | None:
    """The numbers of those rows of ``parts`` of which all ``conditions`` are true; None where one of them is not in the
    language, is not of one table, or compares texts, which DuckDB does in less time.
    """
    left: Mask | None = None
    for condition in conditions:
        true = _true_rows(condition, parts)
        if true is None:
            return None
        left = true if left is None else left & true
    return slice(None) if left is None else np.flatnonzero(left)


def _true_rows(condition: exp.Expr, parts: Mapping[str, pa.Table]) -> Mask | None:
    tables = [(TableName(label, label), Schema.from_arrow("r", part.schema)) for label, part in parts.items()]
    empty = Statement(StatementText(""), (), tuple(named for named, _ in tables))
    with contextlib.suppress(PredicateError, SchemaError, InputError, RecursionError):
        reader = TreeReader(empty, tables, "WHERE")
        said = [reader.find(of) for of in condition.find_all(exp.Column)]
        labels = {named.label for schema, _ in said for named, of in tables if of is schema}
        if len(labels) != 1:
            return None
        (label,) = labels
        part = parts[label].select(list(dict.fromkeys(of.name for _, of in said)))
        if not all(is_kept(field) and not _is_text(field.type) for field in part.schema):
            return None
        made = read_condition(empty, [(TableName(label, label), Schema.from_table("r", part))], condition, "WHERE")
        found = evaluate_columns(made, {of: column(part.column(of.name)) for of in columns(made)}, len(part))
        true: Mask = found.values.astype(np.bool_) & found.valid
        return true
    return None


def _is_text(type_: pa.DataType) -> bool:
    return not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_temporal(type_)
                or pa.types.is_decimal(type_) or pa.types.is_boolean(type_))


def _place(tree: exp.Expr, names: Sequence[str]) -> int | None:
    """The number of the result column that a term of ORDER BY means by its place or its name; None for others."""
    if isinstance(tree, exp.Literal) and tree.is_int and 1 <= int(tree.name) <= len(names):
        return int(tree.name) - 1
    if isinstance(tree, exp.Column) and not tree.args.get("table") and names.count(tree.name.lower()) == 1:
        return names.index(tree.name.lower())
    return None


def _chosen(made: Sequence[tuple[pa.Field, pa.ChunkedArray]], hidden: Sequence[tuple[pa.Field, pa.ChunkedArray]],
            rows: Ints | slice, keys: Sequence[SortKey], ordering: Ordering, *, distinct: bool) -> pa.Table:
    """Those of the ``rows`` of the columns ``made`` that DISTINCT, ORDER BY and LIMIT leave."""
    columns_of = [*made, *hidden]
    table = pa.table([of for _, of in columns_of], schema=pa.schema([field.with_name(f"c{n}") for n, (field, _) in
                                                                     enumerate(columns_of)]))
    shown = pa.schema([field for field, _ in made])
    if not isinstance(rows, slice):
        table = _taken(table, rows)
    if distinct and (first := identical_rows(table)) is not None:
        table = _taken(table, np.flatnonzero(first == np.arange(len(table))))
    if keys:
        table = _taken(table, sorted_rows(table, keys, ordering))
    elif ordering.limit is not None or ordering.offset:
        table = table.slice(ordering.offset, ordering.limit)
    return pa.table(table.columns[:len(made)], schema=shown)


def _taken(table: pa.Table, rows: Ints) -> pa.Table:
    return pa.table([take(of, pa.array(rows)) for of in table.columns], schema=table.schema)
