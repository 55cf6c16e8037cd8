"""The result rows of a SELECT from the columns gathered for its pairs, and what is done to all of them: ORDER BY, LIMIT
and OFFSET.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Array, Ints, Mask
from splitjoin.base.errors import InputError, SchemaError, StatementError
from splitjoin.lang.aggregate import Aggregate, UserAggregates, is_aggregate
from splitjoin.lang.aggregate_functions import FUNCTIONS
from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns, sides
from splitjoin.lang.kind import Kind
from splitjoin.lang.layouts import take
from splitjoin.lang.schema import Schema
from splitjoin.lang.types import Opaque, OrderedText, column_type, plain
from splitjoin.rows.aggregates import aggregate_types, may_have_values_without_partners, without_partners
from splitjoin.rows.output import OutputColumn
from splitjoin.rows.result_values import result_type, to_arrow

from .reader import Tables, TreeReader, read_select_aggregate, read_value
from .statement import Ordering, SelectItem, Statement

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class ProjectedColumn:
    """A column of the result: the gathered column ``source`` as it is, or the values of ``expr``.

    ``text``: the user's text of it.
    """

    field: pa.Field
    text: str
    source: str | None = None
    expr: Expr | None = None


@dataclass(frozen=True)
class SortKey:
    """A term of ORDER BY: the number of its column among the outputs, and how it is sorted."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Projection:
    """The SELECT list.

    Attributes:
        gathered: The columns of the pairs that it needs, at least one, as a table without columns has no rows; their
            names are ``"r.x"`` and ``"s.a"``.
        outputs: The columns of the result.
        aggregates: The aggregates that it needs; their names are ``"aggregate 0"``, …
        padded: Of a LEFT JOIN, those of them that have a value for a tuple of R that meets nothing: SQL gives such a
            tuple one row, whose columns of S are NULL, while ``aggregates`` count no partner.
        partners: The name of the aggregate that counts the partners, if there are ``padded`` ones.
        keys: The terms of ORDER BY, which may be columns behind those that are ``shown``.
    """

    gathered: tuple[OutputColumn, ...]
    outputs: tuple[ProjectedColumn, ...]
    aggregates: tuple[Aggregate, ...] = ()
    padded: tuple[Aggregate, ...] = ()
    partners: str | None = None
    keys: tuple[SortKey, ...] = ()
    hidden: int = 0

    @property
    def shown(self) -> tuple[ProjectedColumn, ...]:
        """The columns of the result, without ``hidden`` ones that it is sorted by."""
        return self.outputs[:len(self.outputs) - self.hidden]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema([o.field for o in self.shown])

    def rows(self, gathered: Rows) -> Rows:
        """The result rows for gathered ones. Raises `InputError` when a value does not fit the type of its column."""
        table = pa.Table.from_batches([gathered]) if isinstance(gathered, pa.RecordBatch) else gathered
        if self.partners is not None:
            table = self._padded(table)
        needed = dict.fromkeys(c for o in self.outputs if o.expr is not None for c in columns(o.expr))
        values = {c: column(table.column(f"{c.side}.{c.name}")) for c in needed}
        made = [table.column(o.source) if o.expr is None else
                to_arrow(evaluate_columns(o.expr, values, len(table)), o.field.type, o.text) for o in self.outputs]
        result = pa.table(made, schema=pa.schema([o.field for o in self.outputs]))
        return cast(Rows, _batch(result) if isinstance(gathered, pa.RecordBatch) else result)

    def _padded(self, table: pa.Table) -> pa.Table:
        """``table`` with the values that SQL gives to tuples of R without partners."""
        lone = np.flatnonzero(table.column(self.partners).to_numpy() == 0)
        if not len(lone):
            return table
        needed = dict.fromkeys(c for a in self.padded for e in a.args for c in columns(e) if c.side == "r")
        values = {c: column(take(table.column(f"r.{c.name}"), pa.array(lone))) for c in needed}
        chosen = np.arange(len(table))
        chosen[lone] = len(table) + np.arange(len(lone))
        for aggregate in self.padded:
            at = table.schema.get_field_index(aggregate.name)
            made = without_partners(aggregate, values, len(lone))
            both = pa.chunked_array([*table.column(at).chunks, made], table.schema.types[at])
            table = table.set_column(at, table.schema.field(at), take(both, pa.array(chosen)))
        return table


def _batch(table: pa.Table) -> pa.RecordBatch:
    """``table``, which came from one batch, as one."""
    batches = table.combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in table.schema], schema=table.schema)
    assert len(batches) == 1, "a batch of rows gives a batch of rows"
    return batches[0]


@dataclass(frozen=True)
class _OutputDraft:
    """An output before names are settled: ``label`` is its table's, None for what has a name of its own."""

    name: str
    label: str | None
    item: SelectItem
    column: tuple[Schema, str] | None
    expr: Expr | None
    aggregate: Aggregate | None = None


def project(statement: Statement, tables: Tables, known: UserAggregates) -> Projection:
    """The projection of ``statement``; ``known``: user-defined aggregates by name. Raises `StatementError`,
    `SchemaError` or `PredicateError` for what is wrong in the SELECT list.
    """
    lacking = Kind(statement.how)
    tables = [(named, _nullable(schema) if lacking.may_lack(schema.side) else schema) for named, schema in tables]
    made = [draft for item in statement.items for draft in _drafts(statement, tables, item, known, "the SELECT list")]
    names = output_names(statement, [(m.name, m.label, m.item) for m in made])
    shown, keys = len(made), list[SortKey]()
    for term in statement.ordering.terms:
        at = _column(statement, made, names, term.this)
        if at is None:
            place = statement.source.span(term.this)
            item = SelectItem(term.this, None, " ".join(statement.text[slice(*place)].split()), place)
            made += _drafts(statement, tables, item, known, "ORDER BY")
            at = len(made) - 1
        keys.append(SortKey(at, bool(term.args.get("desc")), bool(term.args.get("nulls_first"))))
    numbers = count()
    made = [m if m.aggregate is None else replace(m, aggregate=replace(m.aggregate, name=f"aggregate {next(numbers)}"))
            for m in made]
    outputs = [_output(m, name) for m, name in zip(made, [*names, *(m.name for m in made[shown:])], strict=True)]
    for key, term in zip(keys, statement.ordering.terms, strict=True):
        type_ = outputs[key.column].field.type
        if isinstance(column_type(type_), Opaque) and not pa.types.is_null(type_):
            reader = TreeReader(statement, tables, "ORDER BY", quoting=True)
            raise StatementError(f"{reader.quote(term.this)!r}: ORDER BY needs values with an order, but this is "
                                 f"{type_}{reader.mark(term.this)}")
    aggregates = [m.aggregate for m in made if m.aggregate]
    padded = [a for a in aggregates if may_have_values_without_partners(a)] if statement.how == "left" else []
    partners = None
    if padded:
        counts = [a for a in aggregates if a.function == "count" and not a.args]
        if not counts:
            counts = [Aggregate(f"aggregate {len(aggregates)}", FUNCTIONS["count"], (), "count(*)")]
            aggregates += counts
        partners = counts[0].name
    needed: dict[tuple[str, str], None] = {}
    for c in dict.fromkeys(c for a in padded for e in a.args for c in columns(e) if c.side == "r"):
        needed[c.side, c.name] = None
    for m in made:
        if m.column is not None:
            needed[m.column[0].side, m.column[1]] = None
        elif m.expr is not None:
            needed |= dict.fromkeys((c.side, c.name) for c in columns(m.expr))
    if statement.grouped and not any(m.aggregate for m in made):
        raise StatementError(f"a SELECT with GROUP BY {tables[0][0].label} needs an aggregate, such as count(*)")
    if "s" not in lacking.sides or statement.grouped:
        what = f"GROUP BY {tables[0][0].label}" if statement.grouped else f"a {statement.how.upper()} JOIN"
        for m in made:
            used = [m.column[0].side] if m.column is not None else [] if m.expr is None else sides(m.expr)
            if "s" in used:
                raise statement.source.error(
                    f"{what} gives columns of {tables[0][0].label} only, not of {tables[1][0].label}; leave this out, "
                    f"or write {'an aggregate of it' if statement.grouped else 'INNER JOIN'}", *m.item.place)
    if not needed:
        needed = {(schema.side, schema.names[0]): None for _, schema in tables[:1]}
    return Projection(tuple(_gathered(tables, needed)), tuple(outputs), tuple(aggregates), tuple(padded), partners,
                      tuple(keys), len(made) - shown)


def _nullable(schema: Schema) -> Schema:
    """``schema`` for rows that may lack a tuple of its stream."""
    return Schema(schema.side, [replace(c, nullable=True) for c in schema],
                  pa.schema([f.with_nullable(True) for f in _arrow(schema)]))


def _gathered(tables: Tables, needed: Iterable[tuple[str, str]]) -> Iterable[OutputColumn]:
    schemas = {schema.side: schema for _, schema in tables}
    for side, name in needed:
        schema = schemas["r" if side == "r" else "s"]
        yield OutputColumn(f"{side}.{name}", schema.side, name, _arrow(schema).field(name))


def _arrow(schema: Schema) -> Any:
    assert schema.arrow is not None, "a SELECT is made from Arrow schemas"
    return schema.arrow


def starred(statement: Statement, tables: Tables, item: SelectItem) -> Tables | None:
    """The ``tables`` whose columns ``item``, a star, stands for; None for other items."""
    tree, source = item.tree, statement.source
    star = tree if isinstance(tree, exp.Star) else tree.this if isinstance(tree, exp.Column) else None
    if not isinstance(star, exp.Star):
        return None
    unread = [name for name, value in star.args.items() if value]
    if unread or item.alias is not None:
        what = f"* {unread[0].strip('_').upper()}" if unread else "AS behind *"
        raise source.error(f"{what} is not supported in a SELECT over streams: write out the columns", *item.place)
    if isinstance(tree, exp.Column):
        reader = TreeReader(statement, tables, "the SELECT list")
        try:
            return [reader.table(tree.args["table"].name)]
        except SchemaError as error:
            raise SchemaError(f"{error}{reader.mark(tree)}") from None
    there = statement.present(len(tables) - statement.grouped)
    return [(named, schema) for named, schema in tables if named in there]


def _drafts(statement: Statement, tables: Tables, item: SelectItem, known: UserAggregates,
            clause: str) -> Iterable[_OutputDraft]:
    """The outputs of ``item`` of ``clause``."""
    if statement.grouped and is_aggregate(item.tree, known):
        aggregate = read_select_aggregate(statement, tables, item, "", known)
        return [_OutputDraft(item.alias or item.text, None, item, None, None, aggregate)]
    if (star := starred(statement, tables, item)) is not None:
        return [_OutputDraft(name, named.label, item, (schema, name), None) for named, schema in star
                for name in schema.names]
    value = read_value(statement, tables, item, clause)
    if isinstance(value, tuple):
        schema, found = value
        label = next(t.label for t, s in tables if s is schema) if item.alias is None else None
        return [_OutputDraft(found.name if item.alias is None else item.alias, label, item, (schema, found.name), None)]
    if isinstance(value, Col):  # in parentheses
        schema = next(s for _, s in tables if s.side == value.side)
        return [_OutputDraft(item.alias or item.text, None, item, (schema, value.name), None)]
    return [_OutputDraft(item.alias or item.text, None, item, None, value)]


def output_names(statement: Statement, made: Sequence[tuple[str, str | None, SelectItem]]) -> list[str]:
    """The names of the result columns, from their own and the table of those that are columns as they are: columns of
    several tables with one name have the table's name appended. Raises `StatementError` for a name that comes twice.
    """
    labels: dict[str, set[str | None]] = {}
    for name, label, _ in made:
        labels.setdefault(name, set()).add(label)
    names = list[str]()
    for name, label, item in made:
        names.append(f"{name}_{label}" if len(labels[name]) > 1 and None not in labels[name] else name)
        if names[-1] in names[:-1]:
            raise statement.source.error(f"result columns must have distinct names, but {names[-1]!r} would occur more "
                                         f"than once; give one of them another name with AS", *item.place)
    return names


def _output(m: _OutputDraft, name: str) -> ProjectedColumn:
    if m.column is not None:
        schema, of = m.column
        return ProjectedColumn(_arrow(schema).field(of).with_name(name), m.item.text, source=f"{schema.side}.{of}")
    if m.aggregate is not None:
        return ProjectedColumn(pa.field(name, aggregate_types(m.aggregate), nullable=m.aggregate.nullable), m.item.text,
                      source=m.aggregate.name)
    assert m.expr is not None
    return ProjectedColumn(pa.field(name, result_type(m.expr, m.item.text)), m.item.text, expr=m.expr)


def refuse_ordering(statement: Statement, instead: str) -> None:
    """Raise `StatementError` if ``statement`` has ORDER BY, LIMIT or OFFSET, with what to do ``instead``."""
    if (word := statement.ordering.word) is not None:
        raise statement.source.error(f"{word.text.upper()} needs all rows of the result, which only joins of tables "
                                     f"have; {instead}", word.start, word.end + 1)


def _column(statement: Statement, made: Sequence[_OutputDraft], names: Sequence[str], tree: exp.Expr) -> int | None:
    """The number of the result column that a term of ORDER BY means, by its place, name or text; None for others."""
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit() and (
            1 <= int(tree.name) <= len(names)):
        return int(tree.name) - 1
    if isinstance(tree, exp.Column) and not tree.table:
        same = [n for n, name in enumerate(names) if name == tree.name] or [
            n for n, name in enumerate(names) if name.lower() == tree.name.lower()]
        if len(same) == 1:
            return same[0]
    elif (at := next((n for n, m in enumerate(made) if m.item.tree == tree), None)) is not None:
        return at
    elif isinstance(tree, exp.Literal) or {c.name.lower() for c in tree.find_all(exp.Column) if not c.table} & {
            m.item.alias.lower() for m in made if m.item.alias is not None}:
        raise statement.source.on(f"ORDER BY takes columns of the result by their numbers or names, which are "
                                  f"{', '.join(names)}, or values of the tables' columns", tree)
    return None


def sorted_rows(table: pa.Table, keys: Sequence[SortKey], ending: Ordering) -> Ints:
    """The numbers of the rows of ``table`` that ORDER BY, OFFSET and LIMIT leave, in their order.

    Rows that are equal in all keys keep the order in which the join gives them. NaN is the greatest float, NULL comes
    last unless NULLS FIRST says otherwise, as in DuckDB.
    """
    order = np.arange(len(table))
    if keys:
        by: list[Any] = []
        for key in reversed(keys):
            ranks, valid = _ranks(table.column(key.column), table.schema.names[key.column])
            by += [-ranks if key.descending else ranks, valid if key.nulls_first else ~valid]
        order = np.lexsort(by)
    stop = None if ending.limit is None else ending.offset + ending.limit
    return order[ending.offset:stop]


def _ranks(values: pa.ChunkedArray, name: str) -> tuple[Ints, Mask]:
    """The places of ``values`` in their order, 0 for NULL; and which are not NULL."""
    ranks, valid = np.zeros(len(values), np.int64), plain(values).is_valid().to_numpy()
    type_ = column_type(values.type, values)
    if (isinstance(type_, OrderedText) and type_.categories is None) or isinstance(type_, Opaque):
        if not pa.types.is_null(values.type):
            raise InputError(f"ORDER BY {name}: the order of its categories must be the same in all rows; select "
                                 f"CAST(… AS VARCHAR) for that of text")
        return ranks, valid
    found: Array = column(values).values[valid]
    if isinstance(type_, OrderedText):
        places = {category: n for n, category in enumerate(type_.categories or ())}
        found = np.array([places[value] for value in found.tolist()], np.int64)
    ranks[valid] = np.unique(found, return_inverse=True)[1]
    return ranks, valid
