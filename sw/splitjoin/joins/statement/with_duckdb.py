"""A SELECT over tables of which only the joins run here: DuckDB computes the rest of it, before and behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.schema import Schema

from .clauses import (
    Clauses,
    clauses,
    common_tables,
    conjuncts,
    item_names,
    named_columns,
    quoted,
    select_first,
    set_operands,
    tokens_of,
    words,
)
from .from_clause import FromItem, FromJoin, FromTree, from_trees
from .join_order import JoinOrder, join_order
from .joined_tables import JoinedTables, RunJoin, TableJoin, coalesced, merged_names
from .multiway import MultiwayStatement, parse_multiway
from .multiway_trees import named_column
from .one_table_terms import REFUSED, aggregate_names, ask, connection
from .parts import SelectItem
from .remainder import NotDuckDBs, Remainder
from .subquery_joins import Database, SubqueryJoin, has_subquery, may_join, subquery_join, with_marks
from .subquery_values import SubqueryValue, subquery_value, value_column, value_pieces, with_named_stars, with_pieces

__all__ = ["REFUSED", "Answer", "Surroundings"]

#: Runs a statement that is a join alone, over three tables and more.
RunSeveral = Callable[[MultiwayStatement, Sequence[pa.Table], JoinOrder], pa.Table]
#: The error for a statement with several joins where one is meant.
ONE_JOIN = ("window, time and sort are those of one join, but the statement has several; run them one by one, or leave "
            "them out")
#: The label of the columns that say which rows a join leaves.
_MARKS = "splitjoin marks"
#: The label of the columns that stand for SELECTs that are values.
_VALUES = "splitjoin values"
#: Joins behind which a condition on earlier tables may be tested before them as well.
_KEEP_LEFT = {"inner", "left", "semi", "anti", "asof", "asof_left", "asof_semi", "asof_anti"}


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, and a line for each part of it that says where it ran."""

    rows: pa.Table
    lines: tuple[str, ...]


@dataclass
class Surroundings:
    """Answers statements over ``tables``, whose names are in lower case; ``run`` runs their joins, ``several`` those of
    three tables and more within windows.

    ``only_one``: True if what the user gave, such as a window, is meant for one join.
    """

    tables: Mapping[str, pa.Table]
    run: RunJoin
    several: RunSeveral
    only_one: bool
    lines: list[str] = field(default_factory=list)
    joins: int = 0

    def answer(self, text: str) -> Answer:
        """The rows of the statement ``text``.

        Raises `StatementError` for what is neither a join nor DuckDB's, `InputError` where DuckDB refuses a value, and
        `ToolError` without DuckDB.
        """
        with connection() as db:
            rows = self._select(db, text, dict(self.tables), nested=False)
        twice = [n for at, n in enumerate(rows.column_names) if n in rows.column_names[:at]]
        if twice:
            raise StatementError(f"result columns must have distinct names, but {twice[0]!r} would occur more than "
                                 f"once; give one of them another name with AS")
        return Answer(rows, tuple(self.lines))

    def _select(self, db: Any, text: str, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        text = select_first(text)
        if nested and not may_join(text):
            self.lines.append(f"DuckDB           a selection: {' '.join(text.split())}")
            return ask(db, text, _said(scope, text))
        named, text = common_tables(text)
        text = select_first(text)
        for table in named:
            scope[table.name.lower()] = _renamed(db, self._select(db, table.text, dict(scope), nested=True),
                                                 table.columns)
        operands = set_operands(text)
        if operands:
            return self._set(db, text, operands, scope, nested=nested)
        found = clauses(text)
        trees = from_trees(found)
        if len(trees) > 1 or trees[0].joins or trees[0].first.tree is not None or value_pieces(found) or has_subquery(
                conjuncts(found, found.where)):
            rows = _Joins(self, db, found, trees, scope, nested=nested).rows()
        else:
            item = trees[0].first
            if item.query is not None and may_join(item.query):
                name = f"splitjoin_{len(scope)}"
                scope[name] = _renamed(db, self._select(db, item.query, dict(scope), nested=True), item.columns)
                at = text.index(item.text, found.source.start)
                text = text[:at] + name + text[at + len(item.text):]
            elif not nested and not self.joins:
                raise NotDuckDBs("there is no join")
            self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
            rows = ask(db, text, _said(scope, text))
        return rows if nested else rows.rename_columns(item_names(found, rows.column_names))

    def _set(self, db: Any, text: str, operands: Sequence[slice], scope: dict[str, pa.Table], *,
             nested: bool) -> pa.Table:
        """The rows of SELECTs between UNION, EXCEPT and INTERSECT."""
        for n, piece in reversed(list(enumerate(operands))):
            name = f"splitjoin_{len(scope)}"
            alone = nested or n > 0 or not may_join(text[piece])
            scope[name] = self._select(db, text[piece], dict(scope), nested=alone)
            text = f"{text[:piece.start]}(FROM {name}){text[piece.stop:]}"
        if not nested and not self.joins:
            raise NotDuckDBs("there is no join")
        self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        return ask(db, text, _said(scope, text))


class _Joins:
    """The joins in one FROM, and what DuckDB makes of their rows."""

    def __init__(self, of: Surroundings, db: Any, found: Clauses, trees: Sequence[FromTree],
                 scope: Mapping[str, pa.Table], *, nested: bool):
        self._of, self._db, self._trees, self._scope, self._nested = of, db, trees, dict(scope), nested
        self._found, self._text, self._bound = found, found.text, False
        self._tables = dict[int, JoinedTables]()
        items = [item for tree in trees for item in tree.items()]
        for n, item in enumerate(items):
            label = item.label or f"splitjoin unnamed {n}"
            if label.lower() in {other.lower() for rows in self._tables.values() for other in rows.parts}:
                raise StatementError(f"two tables are called {label!r}; give them names of their own, such as "
                                     f"{label} a JOIN {label} b")
            self._tables[id(item)] = JoinedTables({label: self._table(item)})
        self._labels = [label for rows in self._tables.values() for label in rows.parts]

    def rows(self) -> pa.Table:
        """The rows of the whole SELECT."""
        joins = sum(len(tree.items()) for tree in self._trees) - 1
        if self._of.only_one and self._of.joins + joins > 1:
            if self._of.joins or any(item.name is None for tree in self._trees for item in tree.items()):
                raise StatementError(ONE_JOIN)
            return self._several(self._order())
        if joins > 1 and (order := self._better_order()):
            return self._several(order)
        alone = None if joins or self._of.only_one else self._with_values(next(iter(self._tables.values())))
        self._where = list(conjuncts(self._found, self._found.where))
        self._rest = Remainder(self._found, {label: table for rows in self._tables.values()
                                             for label, table in rows.parts.items()}, nested=self._nested)
        if joins == 1 and self._trees[0].joins:
            self._trees = [self._without_partners(self._trees[0])]
        rows = self._tree(self._trees[0], top=True) if alone is None else alone
        for tree in self._trees[1:]:
            rows = self._join(rows, self._tree(tree, top=True), FromJoin("inner", tree.first), where=True)
        rows = self._with_subqueries(rows, several=joins > 0)
        if not self._nested and not self._of.joins:
            raise NotDuckDBs("there is no join")
        return self._answer(rows)

    def _table(self, item: FromItem) -> pa.Table:
        of, db = self._of, self._db
        if item.query is not None:
            return _renamed(db, of._select(db, item.query, dict(self._scope), nested=True), item.columns)
        if item.name is not None:
            found = self._scope.get(item.name.lower())
            if found is None:
                raise InputError(f"the table {item.name!r} of the statement is not given; its rows are given under its "
                                 f"name")
            return found
        of.lines.append(f"DuckDB           a table: {' '.join(item.text.split())}")
        return ask(db, f"SELECT * FROM {item.text}", _said(self._scope, item.text))

    def _tree(self, tree: FromTree, *, top: bool) -> JoinedTables:
        rows = self._item(tree.first)
        for n, join in enumerate(tree.joins):
            if join.how == "positional":
                if n or tree.first.tree is not None or join.item.tree is not None:
                    raise StatementError("POSITIONAL JOIN is of two tables, whose rows have places; those of a join "
                                         "have none: number them, and join by their numbers")
                rows = self._by_places(rows, self._item(join.item))
                continue
            later = {other.how for other in tree.joins[n + 1:]}
            rows = self._join(rows, self._item(join.item), join,
                              where=top and join.how == "inner" and later <= _KEEP_LEFT)
        return rows

    def _item(self, item: FromItem) -> JoinedTables:
        return self._tables[id(item)] if item.tree is None else self._tree(item.tree, top=False)

    def _by_places(self, left: JoinedTables, right: JoinedTables) -> JoinedTables:
        """The rows of both side by side, with NULL for those that one side lacks."""
        if self._of.only_one:
            raise StatementError("a POSITIONAL JOIN is by the places of rows alone; leave window, time and sort out")
        self._of.joins += 1
        self._of.lines.append(f"join             {left.label} POSITIONAL JOIN {right.label}, by places")
        at = np.arange(max(len(left), len(right)))
        return JoinedTables({label: part for side in (left, right) for label, part in side.taken(
            pa.array(at, mask=at >= len(side))).items()})

    def _join(self, left: JoinedTables, right: JoinedTables, join: FromJoin, *, where: bool) -> JoinedTables:
        """The rows of one join; ``where``: those terms of WHERE that have all their columns here belong to it."""
        self._of.joins += 1
        same = merged_names(left, right, join.using) if join.using != () else []
        work = TableJoin(self._db, left, right, join, self._scope)
        for condition in join.on:
            work.add(self._rest.shown(condition), "ON")
        work.add_equal((left.column_of(label, name), right.column_of(next(
            to for to, table in right.parts.items() if other in table.column_names), other))
            for label, name, other in same)
        if where:
            for condition in list(self._where):
                if self._belongs(condition, {*left.parts, *right.parts}):
                    with contextlib.suppress(PredicateError, SchemaError):
                        work.add_where(self._rest.shown(condition))
                        self._where.remove(condition)
        rows = work.run(self._of.run)
        self._of.lines += [*work.lines, f"join             {work.said}"]
        parts = dict(rows.parts)
        for label, name, other in same:
            to = next((t for t, table in right.parts.items() if other in table.column_names and t in parts), None)
            if to is None:
                continue  # SEMI and ANTI
            at, own = parts[label].column_names.index(name), parts[label].column(name)
            made = coalesced(self._db, own, parts[to].column(other), join.how)
            parts[to] = parts[to].rename_columns([self._rest.hide(to, other) if n == other else n
                                                  for n in parts[to].column_names])
            if made is not own:
                parts[label] = parts[label].set_column(at, name, made).append_column(self._rest.hide(label, name), own)
        return JoinedTables(parts)

    def _with_subqueries(self, rows: JoinedTables, *, several: bool) -> JoinedTables:
        """``rows`` after those conditions of WHERE that are semi and anti joins with the rows of a SELECT.

        Behind the joins of FROM (``several``), DuckDB has those that are not in the language.
        """
        if several and (self._of.only_one or self._rest.merges):
            return rows
        for condition in list(self._where):
            if has_subquery([condition]):
                made = self._with_subquery(rows, condition, several=several)
                if made is None and not several and not self._of.only_one:
                    made = self._marked(rows, condition)
                if made is not None:
                    rows = made
                    self._where.remove(condition)
        return rows

    def _with_subquery(self, rows: JoinedTables, condition: str, *, several: bool) -> JoinedTables | None:
        """``rows`` after a condition that is one join, or several, with the rows of a SELECT; None for others."""
        join = self._subquery_join(condition, rows)
        if join is None:
            return None
        for conditions in join.steps(one=self._of.only_one):
            work = self._work(join, join.how, conditions, rows)
            if several and not work.is_ours:
                return None
            self._count(work)
            rows = work.run(self._of.run)
        return rows

    def _marked(self, rows: JoinedTables, condition: str) -> JoinedTables | None:
        """``rows`` after a condition of which terms are such joins, beside OR: each is a column, true for the rows that
        the join leaves. None where no term is one.
        """
        marks = dict[str, pa.Array]()

        def mark(term: str) -> str | None:
            join = self._subquery_join(term, rows)
            if join is None:
                return None
            left = np.arange(len(rows))
            for conditions in join.steps(one=False):
                work = self._work(join, join.how, conditions, rows)
                self._count(work)
                left = np.intersect1d(left, work.numbers(self._of.run)[0])
            name = f"{_MARKS} {len(marks)}"
            marks[name] = pa.array(np.isin(np.arange(len(rows)), left))
            return f"{quoted(_MARKS)}.{quoted(name)}"

        text = with_marks(condition, mark)
        if not marks:
            return None
        self._of.lines.append(f"DuckDB           of these joins: {condition}")
        kept = JoinedTables({**rows.parts, _MARKS: pa.table(marks)}).where(self._db, text, self._scope)
        return JoinedTables(rows.taken(pa.array(kept)))

    def _with_values(self, rows: JoinedTables) -> JoinedTables | None:
        """``rows``, of one table, with a column for each SELECT that is a value and names columns of them; the SELECT
        around it has this column in its place. None where there is none.
        """
        found, (label,), pieces, values = self._found, rows.parts, list[tuple[slice, str]](), dict[str, Any]()
        for piece in value_pieces(found):
            value = subquery_value(found.text[piece.start + 1:piece.stop - 1], rows.parts, self._database)
            if value is None:
                continue
            self._bind()
            work, name = self._work(value, "inner", value.conditions, rows), f"{_VALUES} {len(values)}"
            self._count(work)
            values[name] = value_column(value, work, self._of.run, self._db, len(rows))
            pieces.append((piece, f"{quoted(_VALUES)}.{quoted(name)}"))
        if not values or "columns" in words(found.tokens):
            return None
        self._found = clauses(with_named_stars(clauses(with_pieces(found.text, pieces)), label))
        return JoinedTables({**rows.parts, _VALUES: pa.table(values)})

    @property
    def _database(self) -> Database:
        return Database(self._scope, self._rows_of, self._columns_of, lambda: aggregate_names(self._db),
                        single=self._of.only_one)

    def _bind(self) -> None:
        """Raise what DuckDB raises for the statement, of which it will not see all."""
        if not self._bound:
            ask(self._db, f"EXPLAIN {self._text}", _said(self._scope, self._text))
            self._bound = True

    def _subquery_join(self, condition: str, rows: JoinedTables) -> SubqueryJoin | None:
        join = subquery_join(condition, rows.parts, self._database)
        if join is not None and self._of.only_one and self._of.joins:
            raise StatementError(ONE_JOIN)
        if join is not None:
            self._bind()
        return join

    def _work(self, found: SubqueryJoin | SubqueryValue, how: str, conditions: Sequence[str],
              rows: JoinedTables) -> TableJoin:
        """The join of ``rows`` with the table of ``found`` by ``conditions``."""
        item, right = FromItem(found.label, found.label, found.label), JoinedTables({found.label: found.table})
        work = TableJoin(self._db, rows, right, FromJoin(how, item), self._scope)
        for text in conditions:
            work.add(text, "WHERE")
        return work

    def _count(self, work: TableJoin) -> None:
        self._of.joins += 1
        self._of.lines += [*work.lines, f"join             {work.said}"]

    def _rows_of(self, text: str) -> pa.Table:
        return self._of._select(self._db, text, dict(self._scope), nested=True)

    def _columns_of(self, text: str) -> list[str] | None:
        with contextlib.suppress(PredicateError, SchemaError, InputError):
            return list(ask(self._db, f"SELECT * FROM ({text}) LIMIT 0", _said(self._scope, text)).column_names)
        return None

    def _belongs(self, condition: str, labels: set[str]) -> bool:
        """True if all columns of ``condition`` are of the tables ``labels``, and there are some, without a SELECT."""
        try:
            tree = sqlglot.parse_one(condition, dialect="duckdb")
        except (SqlglotError, RecursionError):
            return False
        columns = list(tree.find_all(exp.Column))
        for column in columns:
            if column.table:
                of = [label for label in self._labels if label.lower() == column.table.lower()]
            else:
                of = [label for rows in self._tables.values() for label, table in rows.parts.items()
                      if column.name.lower() in {n.lower() for n in table.column_names}]
            if len(of) != 1 or of[0] not in labels:
                return False
        return bool(columns) and tree.find(exp.Query) is None

    def _without_partners(self, tree: FromTree) -> FromTree:
        """``tree`` with an ANTI JOIN in place of a LEFT JOIN whose rows must lack a value that every partner has, and
        of whose second table nothing else is said.
        """
        join = tree.joins[0]
        (label, _), = self._tables[id(tree.first)].parts.items() if tree.first.tree is None else [("", None)]
        if join.how != "left" or join.item.tree is not None or tree.first.tree is not None or join.using != ():
            return tree
        (other, table), = self._tables[id(join.item)].parts.items()
        for n, condition in enumerate(self._where):
            others = [*self._where[:n], *self._where[n + 1:]]
            if self._rest.says(other, label, others):
                continue
            column = _lacking(condition)
            if column is not None and self._is_partners(column, label, other, table, join.on):
                self._where = others
                return FromTree(tree.first, (replace(join, how="anti"),))
        return tree

    def _is_partners(self, column: exp.Column, label: str, other: str, table: pa.Table, on: Sequence[str]) -> bool:
        """True if ``column`` is of the second table and no partner has NULL in it."""
        first = self._tables[id(self._trees[0].first)].parts[label]

        def own(c: exp.Column) -> str | None:
            named = next((n for n in table.column_names if n.lower() == c.name.lower()), None)
            if c.table:
                return named if c.table.lower() == other.lower() else None
            return None if any(n.lower() == c.name.lower() for n in first.column_names) else named

        name = own(column)
        if name is None:
            return False
        if not table.column(name).null_count:
            return True
        for condition in on:
            with contextlib.suppress(SqlglotError):
                tree = sqlglot.parse_one(condition, dialect="duckdb")
                if type(tree) in (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE) and any(
                        isinstance(side, exp.Column) and own(side) == name for side in (tree.this, tree.expression)):
                    return True
        return False

    def _answer(self, rows: JoinedTables) -> pa.Table:
        piece = " AND ".join(f"({condition})" for condition in self._where)
        parts = self._rest.parts(rows.parts, piece)
        source, views = JoinedTables(parts).views()
        head, piece, tail = self._rest.texts(piece)
        text = f"{head} FROM {source}{f' WHERE {piece}' if piece else ''} {tail}"
        self._of.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        made = ask(self._db, text, {**_said(self._scope, text), **views})
        return made.rename_columns(self._rest.names(parts, made.column_names))

    def _inner_joins(self) -> MultiwayStatement:
        """FROM and WHERE as a join of three tables and more. Raises `StatementError` if it is none of inner joins."""
        found, where = self._found, self._found.text[self._found.where]
        return parse_multiway(f"SELECT * FROM {found.text[found.source]}{f' WHERE {where}' if where else ''}")

    def _parts(self) -> list[pa.Table]:
        return [rows.parts[label] for label, rows in zip(self._labels, self._tables.values(), strict=True)]

    def _better_order(self) -> JoinOrder | None:
        """The order of the joins, if another one than that of FROM promises to be much cheaper."""
        if any(item.name is None for tree in self._trees for item in tree.items()) or any(
                join.how == "positional" for tree in self._trees for join in tree.joins):
            return None
        with contextlib.suppress(StatementError):  # other joins than inner ones keep their places
            return order if (order := self._order()).told else None
        return None

    def _order(self) -> JoinOrder:
        """The order of the joins. Raises `StatementError` if they are not inner joins of three tables and more."""
        tables = self._parts()
        return join_order(self._inner_joins(), [Schema.from_table("r", t) for t in tables], tables)

    def _several(self, order: JoinOrder) -> pa.Table:
        """The statement's rows: the joins of FROM run in steps, in this ``order``, and DuckDB computes the rest."""
        found, statement, tables = self._found, self._inner_joins(), self._parts()
        rest = f"{found.text[found.head]} FROM x {found.text[found.tail]}"
        items = list[SelectItem]()
        for n, (t, table) in enumerate(zip(statement.tables, tables, strict=True)):
            said = named_columns(rest, table.column_names)
            items += [SelectItem(named_column((t.label, name)), f"{n}.{name}", name, 0, 0)
                      for name in [c for c in table.column_names if c in said] or table.column_names[:1]]
        self._of.joins += len(tables) - 1
        rows = self._of.several(replace(statement, items=tuple(items)), tables, order)
        parts = {}
        for n, t in enumerate(statement.tables):
            part = rows.select([c for c in rows.column_names if c.startswith(f"{n}.")])
            parts[t.label] = part.rename_columns([c.split(".", 1)[1] for c in part.column_names])
        source, views = JoinedTables(parts).views()
        text = f"{found.text[found.head]} FROM {source} {found.text[found.tail]}"
        self._of.lines += [f"join             {' JOIN '.join(map(str, statement.tables))}, step by step, "
                           f"{order.told or 'in the order of FROM'}",
                           f"DuckDB           the rest: {' '.join(text.split())}"]
        return ask(self._db, text, {**_said(self._scope, text), **views})


def _lacking(condition: str) -> exp.Column | None:
    """The column of which ``condition`` says that it is NULL; None for other conditions."""
    with contextlib.suppress(SqlglotError, RecursionError):
        tree = sqlglot.parse_one(condition, dialect="duckdb")
        if isinstance(tree, exp.Is) and isinstance(tree.this, exp.Column) and isinstance(tree.expression, exp.Null):
            return tree.this
    return None


def _said(scope: Mapping[str, pa.Table], text: str) -> dict[str, pa.Table]:
    """The tables that ``text`` may name."""
    said = words(tokens_of(text))
    return {name: table for name, table in scope.items() if name in said}


def _renamed(db: Any, rows: pa.Table, columns: str) -> pa.Table:
    """``rows`` with the names of the list ``columns`` for their first ones."""
    if not columns:
        return rows
    return ask(db, f"SELECT * FROM splitjoin_rows AS named{columns}", {"splitjoin_rows": rows})
