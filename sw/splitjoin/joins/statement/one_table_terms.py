"""Conditions on two tables, of which DuckDB computes what is said of one of them beyond the language."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from splitjoin.base.errors import InputError, PredicateError, SchemaError, SplitJoinError, StatementError, first_line
from splitjoin.lang.schema import SIDES, Schema, Side, suggest
from splitjoin.lang.sql.parser import parse_tree

from .clauses import quoted
from .database import check_table_functions
from .duckdb_columns import create_view, taken, with_enum_literals
from .parts import Statement
from .reader import Tables, TreeReader, read_condition

__all__ = ["REFUSED", "OneTableTerms", "aggregate_names", "ask", "asked_term", "check_constant",
           "refused_twice", "row_of_nulls"]

#: The beginning of the error for a statement that DuckDB refuses.
REFUSED = "DuckDB, which computes what is no join in a statement, refuses it"
_GIVEN = "; it was given "
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
        return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(self._label[side], quoted=True))

    def named(self, side: Side) -> str:
        """The rows of ``side`` under the name that the statement has for its table."""
        return f"splitjoin_{side} AS {quoted(self._label[side])}"

    def read(self, condition: str, clause: str) -> exp.Expr:
        """The tree of ``condition``. What it says of one table in words that are not ours is a column by DuckDB.

        Raises `PredicateError` or `SchemaError` for a condition on both tables that is not in the language.
        """
        with contextlib.suppress(PredicateError, SchemaError):
            tree = self.resolved(parse_tree(condition))
            read_condition(replace(self._statement, text=condition), self._schemas(), tree, clause)
            return _unmarked(tree)
        try:
            tree = self.resolved(sqlglot.parse_one(condition, dialect="duckdb"))
        except SqlglotError as error:
            raise PredicateError(first_line(error)) from None
        if any(tree.find(kind) for kind in (exp.Query, exp.AggFunc, exp.Window, exp.Star)):
            raise PredicateError(f"{condition!r} is no condition on a pair")
        text = self._hosted(tree).sql("duckdb")
        made = parse_tree(text)
        read_condition(replace(self._statement, text=text), self._schemas(), made, clause)
        return _unmarked(made)

    def resolved(self, tree: Any) -> Any:
        """``tree``, as the user has it, over the columns of `tables`: ``r.st.a`` is the field a of the column r.st."""
        labels = {label.lower() for label in self._label.values()}
        return tree.transform(lambda node: _field(node) if isinstance(node, exp.Column) and (
            node.parts[0].name.lower() in labels and len(node.parts) > 2) else node)

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
        if (ranked := self.ranked(tree)) is not None:
            return ranked
        tree = tree.copy()
        for child in list(tree.iter_expressions()):
            if child.find(exp.Column):
                child.replace(self._hosted(child))
        return tree

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
        table, text = self.tables[side], tree.sql("duckdb")
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
            TreeReader(self._statement, self._schemas(), "ON").expr(parse_tree(tree.sql("duckdb")))
            return True
        return False

    def side_of(self, column: exp.Column) -> Side:
        return TreeReader(self._statement, self._schemas(), "ON").find(column)[0].side

    def _schemas(self) -> Tables:
        return [(t, Schema.from_table(side, self.tables[side]))
                for side, t in zip(SIDES, self._statement.tables, strict=True)]


def _field(column: exp.Column) -> exp.Expr:
    """A name of more than two parts as fields of the column that the first two name."""
    table, name, *fields = column.parts
    made: exp.Expr = exp.Column(this=name.copy(), table=table.copy())
    for field in fields:
        made = exp.Dot(this=made, expression=field.copy())
    return made


def _unmarked(tree: exp.Expr) -> exp.Expr:
    """``tree`` without places, which were those of another text."""
    for node in tree.walk():
        node.meta.clear()
    return tree


def ask(db: Any, text: str, tables: Mapping[str, pa.Table], said: str | None = None) -> pa.Table:
    """The rows of ``text`` by DuckDB, over ``tables``; ``said``: what errors show for ``text``.

    Raises `StatementError`, `PredicateError` or `InputError` for what it refuses.
    """
    duckdb = importlib.import_module("duckdb")
    given = f"{_GIVEN}{' '.join((text if said is None else said).split())}"
    try:
        for name, table in tables.items():
            create_view(db, name, table, text)
        check_table_functions(db, text)
        return taken(db.sql(with_enum_literals(text, tables)), tables)
    except duckdb.ParserException as error:
        raise PredicateError(f"DuckDB does not read it: {first_line(error)}") from None
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        raise StatementError(f"{REFUSED}: {first_line(error)}{_meant(str(error))}{given}") from None
    except duckdb.Error as error:
        raise InputError(f"DuckDB, which computes what is no join in a statement, gives no rows: {first_line(error)}"
                         f"{given}") from None


def _meant(error: str) -> str:
    """The name that DuckDB takes a misspelled one for, in its text ``error``, if they are alike."""
    found = re.search(r'with name "?(\w+)"? does not exist!\s+Did you mean "(\w+)"', error)
    return "" if found is None else suggest(found[1], [found[2]])


def refused_twice(refused: SplitJoinError, error: SplitJoinError) -> SplitJoinError:
    """``refused``, which has the place in the user's text, with what DuckDB says of it in ``error``, if it refuses it
    too.
    """
    if not isinstance(refused, PredicateError) or not str(error).startswith(REFUSED):
        return refused
    said, *mark = str(refused).split("\n")
    said = said.split("; it may hold ")[0].split(" (did you mean ")[0]  # neither is what it was to have
    reason = str(error).removeprefix(f"{REFUSED}: ").split(_GIVEN)[0].removeprefix("Binder Error: ").removeprefix(
        "Catalog Error: ")
    return type(refused)("\n".join([f"{said}; DuckDB, which computes other functions, says: {reason}", *mark]))


def asked_term(db: Any, text: str, source: str, tables: Mapping[str, pa.Table], *others: str) -> pa.Table:
    """The values of the expression ``text`` over ``source``, FROM's text for ``tables``, and behind them of ``others``.

    Rows have the order of ``source`` only where ``text`` has no SELECT. Raises `PredicateError` for one that has no
    value for any rows, such as a number compared with ``'text'``.
    """
    try:
        return ask(db, f"SELECT {', '.join((text, *others))} FROM {source}", tables, text)
    except InputError as failed:
        empty = {name: row_of_nulls(table) for name, table in tables.items()}
        try:
            ask(db, f"SELECT {text} FROM {source}", empty)
        except InputError:
            said = str(failed).split("gives no rows: ")[1].split(_GIVEN)[0]
            raise PredicateError(f"{text!r} has no value for any row, says DuckDB, which computes it: {said}") from None
        raise


def row_of_nulls(like: pa.Schema | pa.Table) -> pa.Table:
    """A table of one row with the columns of ``like``, all NULL, and the categories of these if it has rows."""
    made = [pa.nulls(1, field.type) for field in (like if isinstance(like, pa.Schema) else like.schema)]
    for at, column in enumerate(like.columns if isinstance(like, pa.Table) else ()):
        if pa.types.is_dictionary(column.type) and column.chunks:
            made[at] = pa.DictionaryArray.from_arrays(pa.nulls(1, column.type.index_type), column.chunk(0).dictionary,
                                                      ordered=column.type.ordered)
    return pa.table(made, schema=like if isinstance(like, pa.Schema) else like.schema)


def check_constant(db: Any, tree: Any) -> None:
    """Raise `PredicateError` for a function in ``tree`` that has other values at other times, such as random()."""
    changing = _changing(db)
    for call in tree.find_all(exp.Func):
        names = [call.name] if isinstance(call, exp.Anonymous) else list(call.sql_names())
        if any(name.lower() in changing for name in names):
            raise PredicateError(f"{tree.sql('duckdb')}: {names[0]} has other values at other times")


def aggregate_names(db: Any) -> set[str]:
    """The functions of DuckDB that give one value of several rows."""
    return {name for (name,) in db.execute("SELECT DISTINCT function_name FROM duckdb_functions() "
                                           "WHERE function_type = 'aggregate'").fetchall()}


def _changing(db: Any) -> set[str]:
    """The functions of DuckDB that give other values at other times."""
    return {name for (name,) in db.execute("SELECT DISTINCT function_name FROM duckdb_functions() "
                                           "WHERE stability <> 'CONSISTENT'").fetchall()}
