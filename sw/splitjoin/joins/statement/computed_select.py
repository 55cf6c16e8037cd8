"""A SELECT over two streams whose conditions have terms of one stream beyond the language: DuckDB computes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import PredicateError, SchemaError, SplitJoinError, ToolError
from splitjoin.lang.query import ComputedColumn
from splitjoin.lang.schema import SIDES, Column, Schema, Side
from splitjoin.lang.types import column_type

from .clauses import clauses, conjuncts
from .database import connection
from .from_clause import from_trees
from .joined_tables import conjunction
from .one_table_terms import OneTableTerms, row_of_nulls
from .parts import Statement, TableName
from .reader import TreeReader
from .select import Select

__all__ = ["computed_columns", "extended", "make_select"]


def make_select(statement: Statement, r: Schema, s: Schema, **parts: Any) -> Select:
    """`Select.make`, for streams; what ON and WHERE say of one stream in words that are not in the language is a
    computed column of the query. Raises what `Select.make` raises, where DuckDB does not know these words either.
    """
    try:
        return Select.make(statement, r, s, **parts)
    except PredicateError as refused:
        try:
            return _computed(statement, r, s, refused, **parts)
        except ToolError as error:
            said, *mark = str(refused).split("\n")
            raise type(refused)("\n".join([f"{said}; or {error}", *mark])) from None
        except SplitJoinError:
            raise refused from None


def _computed(statement: Statement, r: Schema, s: Schema, refused: PredicateError, **parts: Any) -> Select:
    found = clauses(statement.text)
    tree, *others = from_trees(found)
    joins = [*tree.joins, *(join for other in others for join in other.joins)]
    texts = {"ON": [text for join in joins for text in join.on], "WHERE": list(conjuncts(found, found.where))}
    schemas: dict[Side, Schema] = {"r": r, "s": s}
    with connection() as db:
        terms = _Terms(db, statement, {side: row_of_nulls(_arrow(schemas[side])) for side in SIDES})
        trees = {clause: [terms.read(text, clause) for text in of] for clause, of in texts.items()}
    every = [tree for of in trees.values() for tree in of]
    computed = computed_columns(terms, every)
    if not computed:
        raise refused
    labels = dict(zip(SIDES, (t.label for t in statement.tables), strict=True))
    for column in (c for tree in every for c in tree.find_all(exp.Column)):
        column.set("table", exp.to_identifier(labels["r" if column.table == "r" else "s"], quoted=True))
    made = replace(statement, on=conjunction(trees["ON"]), where=conjunction(trees["WHERE"]))
    select = Select.make(made, extended(r, computed), extended(s, computed), given=(r, s), **parts)
    return replace(select, query=replace(select.query, computed=tuple(computed)))


class _Terms(OneTableTerms):
    """The terms of ``statement``, in which its tables are called r and s, as the texts of computed columns have it."""

    def __init__(self, db: Any, statement: Statement, tables: dict[Side, pa.Table]):
        named = (TableName("r", "r", 0), TableName("s", "s", 0))
        super().__init__(db, replace(statement, tables=named), tables)
        self._reader = TreeReader(statement, [(t, Schema.from_table(side, tables[side])) for side, t in zip(
            SIDES, statement.tables, strict=True)], "the statement")

    def resolved(self, tree: Any) -> Any:
        def named(node: Any) -> Any:
            if not isinstance(node, exp.Column):
                return node
            schema, column = self._reader.find(node)
            return self.column(schema.side, column.name)

        return tree.transform(named)


def computed_columns(terms: OneTableTerms, trees: list[exp.Expr]) -> list[ComputedColumn]:
    """The columns that ``terms`` computed for the conditions ``trees``, which then name them by their texts."""
    made = {(side, name): ComputedColumn(side, text, terms.tables[side].schema.field(name).with_name(text))
            for (side, text), name in terms.computed.items()}
    for column in (c for tree in trees for c in tree.find_all(exp.Column)):
        if (found := made.get((column.table, column.name))) is not None:  # type: ignore[arg-type]  # "r" or "s"
            column.set("this", exp.to_identifier(found.text, quoted=True))
    return list(made.values())


def extended(schema: Schema, computed: list[ComputedColumn]) -> Schema:
    """``schema`` with the columns that are computed of its stream. They may hold NULL."""
    fields = [column.field for column in computed if column.side == schema.side]
    for field in fields:
        if field.name in schema.names:
            raise SchemaError(f"the column {schema.side}.{field.name} has the name of a term of the condition; rename "
                              f"it")
    return Schema(schema.side, [*schema.columns, *(Column(f.name, column_type(f.type), True) for f in fields)],
                  pa.schema([*_arrow(schema), *fields], _arrow(schema).metadata))


def _arrow(schema: Schema) -> pa.Schema:
    assert schema.arrow is not None
    return schema.arrow
