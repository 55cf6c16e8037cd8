"""The result rows of a SELECT from the columns gathered for its pairs, and what is done to all of them: ORDER BY, LIMIT
and OFFSET.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.aggregate import Aggregate, UserAggregates, is_aggregate
from splitjoin.lang.aggregate_functions import FUNCTIONS
from splitjoin.lang.eval.vector import column, evaluate_columns
from splitjoin.lang.ir import Col, Expr, columns, sides
from splitjoin.lang.kind import Kind
from splitjoin.lang.layouts import take
from splitjoin.lang.schema import Schema, suggest
from splitjoin.lang.types import Opaque, OrderedText, column_type, plain
from splitjoin.rows.aggregates import aggregate_types, may_have_values_without_partners, without_partners
from splitjoin.rows.output import OutputColumn
from splitjoin.rows.result_values import result_type, to_arrow

from .reader import Tables, TreeReader, read_select_aggregate, read_value
from .statement import SelectItem, Statement, StatementText

__all__ = ["ProjectedColumn", "Projection", "SortKey", "project", "refuse_ordering", "sort_keys", "sorted_rows"]

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
    """

    gathered: tuple[OutputColumn, ...]
    outputs: tuple[ProjectedColumn, ...]
    aggregates: tuple[Aggregate, ...] = ()
    padded: tuple[Aggregate, ...] = ()
    partners: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema([o.field for o in self.outputs])

    def rows(self, gathered: Rows) -> Rows:
        """The result rows for gathered ones. Raises `InputError` when a value does not fit the type of its column."""
        table = pa.Table.from_batches([gathered]) if isinstance(gathered, pa.RecordBatch) else gathered
        if self.partners is not None:
            table = self._padded(table)
        needed = dict.fromkeys(c for o in self.outputs if o.expr is not None for c in columns(o.expr))
        values = {c: column(table.column(f"{c.side}.{c.name}")) for c in needed}
        made = [table.column(o.source) if o.expr is None else
                to_arrow(evaluate_columns(o.expr, values, len(table)), o.field.type, o.text) for o in self.outputs]
        result = pa.table(made, schema=self.schema)
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
    made = list[_OutputDraft]()
    for item in statement.items:
        if statement.grouped and is_aggregate(item.tree, known):
            n = sum(m.aggregate is not None for m in made)
            aggregate = read_select_aggregate(statement, tables, item, f"aggregate {n}", known)
            made.append(_OutputDraft(item.alias or item.text, None, item, None, None, aggregate))
        else:
            made += _outputs(statement, tables, item)
    names = _names(statement, made)
    outputs = [_output(m, name) for m, name in zip(made, names, strict=True)]
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
                raise _marked(statement).error(
                    f"{what} gives columns of {tables[0][0].label} only, not of {tables[1][0].label}; leave this out, "
                    f"or write {'an aggregate of it' if statement.grouped else 'INNER JOIN'}", m.item.start, m.item.end)
    if not needed:
        needed = {(schema.side, schema.names[0]): None for _, schema in tables[:1]}
    return Projection(tuple(_gathered(tables, needed)), tuple(outputs), tuple(aggregates), tuple(padded), partners)


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


def _outputs(statement: Statement, tables: Tables, item: SelectItem) -> Iterable[_OutputDraft]:
    tree = item.tree
    star = tree if isinstance(tree, exp.Star) else tree.this if isinstance(tree, exp.Column) else None
    if isinstance(star, exp.Star):
        unread = [name for name, value in star.args.items() if value]
        if unread or item.alias is not None:
            what = f"* {unread[0].strip('_').upper()}" if unread else "AS behind *"
            raise _marked(statement).error(f"{what} is not supported in a SELECT over streams: write out the columns",
                                           item.start, item.end)
        chosen = tables[:1] if statement.how in ("semi", "anti") or statement.grouped else tables
        if isinstance(tree, exp.Column):
            reader = TreeReader(statement, tables, "the SELECT list")
            try:
                chosen = [reader.table(tree.args["table"].name)]
            except Exception as error:
                raise type(error)(f"{error}{reader.mark(tree)}") from None
        for named, schema in chosen:
            for name in schema.names:
                yield _OutputDraft(name, named.label, item, (schema, name), None)
        return
    value = read_value(statement, tables, item)
    if isinstance(value, tuple):
        schema, found = value
        label = next(t.label for t, s in tables if s is schema) if item.alias is None else None
        yield _OutputDraft(found.name if item.alias is None else item.alias, label, item, (schema, found.name), None)
        return
    if isinstance(value, Col):  # in parentheses
        schema = next(s for _, s in tables if s.side == value.side)
        yield _OutputDraft(item.alias or item.text, None, item, (schema, value.name), None)
        return
    yield _OutputDraft(item.alias or item.text, None, item, None, value)


def _names(statement: Statement, made: Sequence[_OutputDraft]) -> list[str]:
    """The names of the result columns: of columns of both tables with one name, with the table's name appended."""
    labels: dict[str, set[str | None]] = {}
    for m in made:
        labels.setdefault(m.name, set()).add(m.label)
    names = [f"{m.name}_{m.label}" if len(labels[m.name]) > 1 and None not in labels[m.name] else m.name for m in made]
    counted = Counter(names)
    seen: set[str] = set()
    for m, name in zip(made, names, strict=True):
        if counted[name] > 1 and name in seen:
            raise _marked(statement).error(f"result columns must have distinct names, but {name!r} would occur more "
                                           f"than once; give one of them another name with AS", m.item.start,
                                           m.item.end)
        seen.add(name)
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


def _marked(statement: Statement) -> StatementText:
    return StatementText(statement.text, ())


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
