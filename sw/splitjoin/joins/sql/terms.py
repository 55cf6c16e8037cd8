"""Conditions on two tables, of which DuckDB computes what is said of one of them beyond the language: over tables, and
for streams as computed columns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from splitjoin.base.errors import PredicateError, SchemaError, SplitJoinError, ToolError
from splitjoin.lang.query import ComputedColumn
from splitjoin.lang.schema import SIDES, Column, Schema, Side
from splitjoin.lang.types import STRING, column_type

from .database import asked_term, check_constant, connection, row_of_nulls, with_tool
from .reader import Tables, TreeReader, read_condition
from .select import Select
from .statement import Statement, TableName
from .trees import conjunction, conjuncts, named_column, quoted, sql_text

#: The text above all that begin with p, where there is one. No text has a character from D800 to DFFF.
_LAST = "rtrim(p, chr(1114111))"
_ABOVE = (f"CASE WHEN {_LAST} <> '' THEN left({_LAST}, length({_LAST}) - 1) || chr(CASE unicode(right({_LAST}, 1)) "
          f"WHEN 55295 THEN 57344 ELSE unicode(right({_LAST}, 1)) + 1 END) END")
_BEGINS = "((p <= t AND t < above) OR (above IS NULL AND p <= t))"


class OneTableTerms:
    """The tables of ``statement``, R's and S's, and the columns that DuckDB computes for its conditions.

    Attributes:
        tables: The tables, with these columns behind theirs.
        computed: The side and the SQL text of each of them → its name.
    """

    def __init__(self, db: Any, statement: Statement, tables: Mapping[Side, pa.Table]):
        self._db, self._statement = db, statement
        self.tables = dict(tables)
        self.computed: dict[tuple[Side, str], str] = {}
        self._own = {side: list(table.column_names) for side, table in tables.items()}
        self._label = {side: t.label for side, t in zip(SIDES, statement.tables, strict=True)}

    @property
    def lines(self) -> list[str]:
        """A line for each column that was computed, which says of what."""
        return [f"DuckDB           {self._label[side]}: {name} = {text}, once per tuple"
                for (side, text), name in self.computed.items()]

    def column(self, side: Side, name: str) -> exp.Column:
        """The tree of the column ``name`` of ``side``."""
        return named_column(self._label[side], name)

    def named(self, side: Side) -> str:
        """The rows of ``side`` under the name that the statement has for its table."""
        return f"splitjoin_{side} AS {quoted(self._label[side])}"

    def read(self, condition: exp.Expr, clause: str) -> exp.Expr:
        """``condition`` as one in the language. What it says of one table in words that are not ours is a column by
        DuckDB.

        Raises `PredicateError` or `SchemaError` for a condition on both tables that is not in the language.
        """
        tree = self.resolved(condition)
        with contextlib.suppress(PredicateError, SchemaError):
            return self._in_language(tree, clause)
        if any(tree.find(kind) for kind in (exp.Query, exp.AggFunc, exp.Window, exp.Star)):
            raise PredicateError(f"{sql_text(condition)!r} is no condition on a pair")
        return self._in_language(self._hosted(tree), clause)

    def _in_language(self, tree: exp.Expr, clause: str) -> exp.Expr:
        read_condition(self._statement, self._schemas(), tree, clause)
        return tree

    def resolved(self, tree: Any) -> Any:
        """``tree``, as the user has it, over the columns of `tables`."""
        return with_fields(tree, self._label.values())

    def ranked(self, tree: Any) -> exp.Expr | None:
        """A comparison of ranks in place of ``tree``, a part of a condition on both tables; None for none."""
        return None

    def _hosted(self, tree: Any) -> Any:
        """``tree`` with a column of DuckDB for each largest part that is of one table and not in the language."""
        if self._is_ours(tree):
            return tree
        sides = {self.side_of(c) for c in tree.find_all(exp.Column)}
        if len(sides) == 1 and not isinstance(tree, (exp.Column, exp.Tuple, exp.If)):
            return self.computed_column(tree, *sides)
        if isinstance(tree, exp.StartsWith) and (begins := self._beginning(tree)) is not None:
            return begins
        if (found := self._of_texts(tree) or self.ranked(tree)) is not None:
            return found
        tree = tree.copy()
        for child in list(tree.iter_expressions()):
            if child.find(exp.Column):
                child.replace(self._hosted(child))
        return tree

    def _of_texts(self, tree: Any) -> exp.Expr | None:
        """The equality ``tree`` of a text of one table and one of the other, as one of columns, which is a hash join
        where ranks are a sort; None for others.
        """
        parts = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
        sides = [{self.side_of(c) for c in part.find_all(exp.Column)} for part in parts]
        if sides not in ([{"r"}, {"s"}], [{"s"}, {"r"}]):
            return None
        made = [self._hosted(part) for part in parts]
        are_texts = all(isinstance(of, exp.Column) and column_type(
            self.tables[side].schema.field(of.name).type) == STRING for of, (side,) in zip(made, sides, strict=True))
        return exp.EQ(this=made[0].copy(), expression=made[1].copy()) if are_texts else None

    def _beginning(self, tree: Any) -> exp.Expr | None:
        """Comparisons that are ``tree``, a text of one table that begins with one of the other; None for others.

        A text begins with p if it is p or greater, and less than each text that is greater than all of these: the least
        one is p with its last character, of those that are not the greatest one, replaced by the next. There is none if
        p has no other characters.
        """
        sides = [{self.side_of(c) for c in part.find_all(exp.Column)} for part in (tree.this, tree.expression)]
        if [len(of) for of in sides] != [1, 1] or sides[0] == sides[1]:
            return None
        above: Any = sqlglot.parse_one(_ABOVE, dialect="duckdb").transform(
            lambda node: tree.expression.copy() if isinstance(node, exp.Column) else node)
        named = {"t": self._hosted(tree.this), "p": self._hosted(tree.expression),
                 "above": self.computed_column(above, *sides[1])}
        made: exp.Expr = sqlglot.parse_one(_BEGINS, dialect="duckdb").transform(
            lambda node: named[node.name].copy() if isinstance(node, exp.Column) else node)
        return made

    def computed_column(self, tree: Any, side: Side) -> exp.Expr:
        """The column that DuckDB computes of ``tree``, over the columns of ``side``."""
        check_constant(self._db, tree)
        table, text = self.tables[side], sql_text(tree)
        if (side, text) in self.computed:
            return self.column(side, self.computed[side, text])
        used = {c.name.lower() for c in tree.find_all(exp.Column)}
        source = table.select([n for n in self._own[side] if n.lower() in used])
        made = asked_term(self._db, text, self.named(side), {f"splitjoin_{side}": source})
        name = f"splitjoin_{len(table.column_names)}"
        self.tables[side] = table.append_column(name, made.column(0))
        self.computed[side, text] = name
        return self.column(side, name)

    def _is_ours(self, tree: Any) -> bool:
        with contextlib.suppress(PredicateError, SchemaError, RecursionError):
            TreeReader(self._statement, self._schemas(), "ON").expr(tree)
            return True
        return False

    def side_of(self, column: exp.Column) -> Side:
        return TreeReader(self._statement, self._schemas(), "ON").find(column)[0].side

    def _schemas(self) -> Tables:
        return [(t, Schema.from_table(side, self.tables[side]))
                for side, t in zip(SIDES, self._statement.tables, strict=True)]


def with_fields(tree: Any, labels: Iterable[str]) -> Any:
    """``tree``, where a name of more than two parts that begins with one of ``labels`` is a field: ``r.st.a`` is the
    field a of the column r.st.
    """
    known = {label.lower() for label in labels}

    def field(node: Any) -> Any:
        if not isinstance(node, exp.Column) or len(node.parts) < 3 or node.parts[0].name.lower() not in known:
            return node
        table, name, *fields = node.parts
        made: exp.Expr = exp.Column(this=name.copy(), table=table.copy())
        for part in fields:
            made = exp.Dot(this=made, expression=part.copy())
        return made

    return tree.transform(field)


def make_select(statement: Statement, r: Schema, s: Schema, **parts: Any) -> Select:
    """`Select.make`, for streams; what ON and WHERE say of one stream in words that are not in the language is a
    computed column of the query. Raises what `Select.make` raises, where DuckDB does not know these words either.
    """
    try:
        return Select.make(statement, r, s, **parts)
    except PredicateError as refused:
        try:
            made, computed = computed_terms(statement, {"r": r, "s": s})
            select = Select.make(made, extended(r, computed), extended(s, computed), given=(r, s), **parts)
        except ToolError as error:
            raise with_tool(refused, error) from None
        except SplitJoinError:
            raise refused from None
        if not computed:
            raise
        return replace(select, query=replace(select.query, computed=tuple(computed)))


def with_computed_terms(statement: Statement, tables: Mapping[Side, pa.Table],
                        refused: PredicateError) -> tuple[Statement, dict[Side, pa.Table]]:
    """``statement``, over two ``tables``, with columns in place of what ON says of one of them in words that are not in
    the language; and the tables with these. Raises ``refused``, the error of the statement, where DuckDB does not know
    these words either.
    """
    try:
        with connection() as db:
            terms = OneTableTerms(db, statement, tables)
            on = [terms.read(term, "ON") for term in conjuncts(statement.on[0])]
    except ToolError as error:
        raise with_tool(refused, error) from None
    except SplitJoinError:
        raise refused from None
    return replace(statement, on=(conjunction(on),)), terms.tables


def computed_terms(statement: Statement, schemas: Mapping[Side, Schema]) -> tuple[Statement, list[ComputedColumn]]:
    """``statement``, of two streams of these ``schemas``, with columns in place of what ON and WHERE say of one stream
    in words that are not in the language; and these columns, whose texts call the streams r and s.
    """
    labels = dict(zip(SIDES, (t.label for t in statement.tables), strict=True))
    reader = TreeReader(statement, list(zip(statement.tables, schemas.values(), strict=True)), "the statement")
    two = replace(statement, tables=(TableName("r", "r"), TableName("s", "s")))
    made = dict[str, list[exp.Expr]]()

    def of_stream(node: Any) -> Any:
        if not isinstance(node, exp.Column):
            return node
        schema, column = reader.find(node)
        return node if node.table == schema.side and node.name == column.name else named_column(
            schema.side, column.name)

    with connection() as db:
        terms = OneTableTerms(db, two, {side: row_of_nulls(_arrow(schemas[side])) for side in SIDES})
        for clause, tree in (("ON", statement.on[0]), ("WHERE", statement.where)):
            made[clause] = [terms.read(with_fields(term, labels.values()).transform(of_stream), clause)
                            for term in conjuncts(tree)]
    computed = {(side, name): ComputedColumn(side, text, terms.tables[side].schema.field(name).with_name(text))
                for (side, text), name in terms.computed.items()}
    for column in (c for of in made.values() for tree in of for c in tree.find_all(exp.Column)):
        if (found := computed.get((column.table, column.name))) is not None:  # type: ignore[arg-type]  # "r" or "s"
            column.set("this", exp.to_identifier(found.text, quoted=True))
        column.set("table", exp.to_identifier(labels["r" if column.table == "r" else "s"], quoted=True))
    return replace(statement, on=(conjunction(made["ON"]),), where=conjunction(made["WHERE"])), list(computed.values())


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
