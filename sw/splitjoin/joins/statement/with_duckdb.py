"""A SELECT over tables of which only the joins run here: DuckDB computes the rest of it, before and behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError

from .clauses import (
    Clauses,
    clauses,
    common_tables,
    conjuncts,
    item_names,
    quoted,
    says_from,
    select_first,
    set_operands,
    tokens_of,
    words,
)
from .database import connection
from .duckdb_columns import finished
from .from_clause import FromItem, FromJoin, FromTree, from_trees
from .inner_joins import InnerJoins, RunSeveral
from .join_order import JoinOrder
from .joined_tables import Ints, JoinedTables, RunJoin, TableJoin, coalesced, merged_names, names_only
from .lateral import OF_ROW, lateral_columns, lateral_rows, nearest_pairs
from .one_table_terms import REFUSED, aggregate_names, ask
from .partners import without_partners
from .remainder import NotDuckDBs, Remainder
from .subquery_joins import Database, SubqueryJoin, has_subquery, may_join, subquery_join, with_marks
from .subquery_values import (
    SubqueryValue,
    is_exists,
    subquery_value,
    test_pieces,
    value_column,
    value_pieces,
    with_named_stars,
    with_pieces,
)

__all__ = ["REFUSED", "Answer", "Surroundings"]

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
            rows = finished(self._select(db, text, dict(self.tables), nested=False))
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
        if self.joins and not says_from(text):  # of tables that WITH has joined
            self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
            return ask(db, text, _said(scope, text))
        found = clauses(text)
        trees = from_trees(found)
        if len(trees) > 1 or trees[0].joins or trees[0].first.tree is not None or value_pieces(found) or test_pieces(
                found) or has_subquery(conjuncts(found, found.where)):
            rows = _Joins(self, db, found, trees, scope, nested=nested).rows()
        else:
            item = trees[0].first
            if item.query is not None and may_join(item.query):
                name = f"splitjoin_{len(scope)}"
                scope[name] = _renamed(db, self._select(db, item.query, dict(scope), nested=True), item.columns)
                at = text.index(item.text, found.source.start)
                text = text[:at] + name + text[at + len(item.text):]
            elif not nested and not self.joins and (self.only_one or not may_join(text, unread=False)):
                raise NotDuckDBs("there is no join")
            self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
            rows = ask(db, text, _said(scope, text))
        return rows if nested else rows.rename_columns(item_names(found, rows.column_names))

    def _set(self, db: Any, text: str, operands: Sequence[slice], scope: dict[str, pa.Table], *,
             nested: bool) -> pa.Table:
        """The rows of SELECTs between UNION, EXCEPT and INTERSECT."""
        text_given = text
        for n, piece in reversed(list(enumerate(operands))):
            name = f"splitjoin_{len(scope)}"
            alone = nested or n > 0 or not may_join(text[piece])
            scope[name] = self._select(db, text[piece], dict(scope), nested=alone)
            text = f"{text[:piece.start]}(FROM {name}){text[piece.stop:]}"
        if not nested and not self.joins and (self.only_one or len(_said(self.tables, text_given)) < 2):
            raise NotDuckDBs("there is no join")
        self.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        return ask(db, text, _said(scope, text))


class _Joins:
    """The joins in one FROM, and what DuckDB makes of their rows."""

    def __init__(self, of: Surroundings, db: Any, found: Clauses, trees: Sequence[FromTree],
                 scope: Mapping[str, pa.Table], *, nested: bool):
        self._of, self._db, self._trees, self._scope, self._nested = of, db, trees, dict(scope), nested
        self._found, self._text, self._bound = found, found.text, False
        self._tables, self._laterals = dict[int, JoinedTables](), set[int]()
        items = [item for tree in trees for item in tree.items()]
        for n, item in enumerate(items):
            label = item.label or f"splitjoin unnamed {n}"
            if label.lower() in {other.lower() for other in self._known()}:
                raise StatementError(f"two tables are called {label!r}; give them names of their own, such as "
                                     f"{label} a JOIN {label} b")
            self._tables[id(item)] = JoinedTables({label: self._table(item, label)})

    def rows(self) -> pa.Table:
        """The rows of the whole SELECT."""
        joins = sum(len(tree.items()) for tree in self._trees) - 1
        if self._of.only_one and self._of.joins + joins > 1:
            if self._of.joins or any(item.name is None for tree in self._trees for item in tree.items()):
                raise StatementError(ONE_JOIN)
            return self._several(self._inner.order())
        if joins > 1 and (order := self._better_order()):
            return self._several(order)
        alone = None if joins or self._of.only_one else self._with_values(next(iter(self._tables.values())))
        self._where = list(conjuncts(self._found, self._found.where))
        self._rest = Remainder(self._found, self._known(), nested=self._nested)
        tree = self._trees[0]
        if joins == 1 and tree.joins and tree.joins[0].how == "left" and tree.joins[0].using == () and not (
                self._laterals or tree.joins[0].nearest):
            first, second = (next(iter(rows.parts.items())) for rows in self._tables.values())
            tree, self._where = without_partners(tree, first, second, self._where, self._rest)
        rows = self._tree(tree, top=True) if alone is None else alone
        for tree in self._trees[1:]:
            own = FromJoin("inner", tree.first)
            if id(tree.first) not in self._laterals:
                rows = self._join(rows, self._tree(tree, top=True), own, where=True)
            elif {join.how for join in tree.joins} <= _KEEP_LEFT:
                rows = self._joined(rows, [own, *tree.joins], top=True)
            else:
                raise StatementError("a table that names those before its comma must not stand before RIGHT or FULL "
                                     "JOIN; put it behind the other tables")
        rows = self._with_subqueries(rows, several=joins > 0)
        if not self._nested and not self._of.joins and (self._of.only_one or not may_join(self._text, unread=False)):
            raise NotDuckDBs("there is no join")
        return self._answer(rows)

    def _table(self, item: FromItem, label: str) -> pa.Table:
        of, db = self._of, self._db
        if item.body and self._tables and self._columns_of(f"SELECT * FROM {item.body}") is None:
            found = lateral_columns(db, self._known(), item, label, _said(self._scope, item.text))
            if found is not None:
                self._laterals.add(id(item))
                return found
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
        if any(join.how == "positional" and (n or tree.first.tree is not None or join.item.tree is not None)
               for n, join in enumerate(tree.joins)):
            raise StatementError("POSITIONAL JOIN is of two tables, whose rows have places; those of a join have none: "
                                 "number them, and join by their numbers")
        return self._joined(self._item(tree.first), tree.joins, top=top)

    def _joined(self, rows: JoinedTables, joins: Sequence[FromJoin], *, top: bool) -> JoinedTables:
        for n, join in enumerate(joins):
            if join.how == "positional":
                rows = self._by_places(rows, self._item(join.item))
                continue
            later = {other.how for other in joins[n + 1:]}
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
        each = id(join.item) in self._laterals
        if self._of.only_one and (each or join.nearest):
            raise StatementError("window, time and sort are for joins by a condition, but the statement has NEAREST BY "
                                 "or a table that names those before it; leave them out")
        if join.nearest is not None:
            return self._nearest(left, right, join)
        if each:
            right = self._each_row(left, join)
        same = merged_names(left, right, join.using) if join.using != () else []
        work = TableJoin(self._db, left, right, join, self._scope)
        if each:
            work.add_rows(next(iter(right.parts)), OF_ROW)
        for condition in join.on:
            work.add(self._rest.shown(condition), "ON")
        work.add_equal((left.column_of(label, name), right.column_of(next(
            to for to, table in right.parts.items() if other in table.column_names), other))
            for label, name, other in same)
        if where:
            for condition in list(self._where):
                if names_only(condition, self._known(), {*left.parts, *right.parts}):
                    with contextlib.suppress(PredicateError, SchemaError):
                        work.add_where(self._rest.shown(condition))
                        self._where.remove(condition)
        rows = work.run(self._of.run)
        self._of.lines += [*work.lines, f"join             {work.said}"]
        parts = dict(rows.parts)
        if each:
            label = next(iter(right.parts))
            parts[label] = parts[label].drop_columns([OF_ROW])
        for label, name, other in same:
            to = next((t for t, table in right.parts.items() if other in table.column_names and t in parts), None)
            if to is None:
                continue  # SEMI and ANTI
            at, own = parts[label].column_names.index(name), parts[label].column(name)
            made, field = coalesced(self._db, parts[label].select([name]), parts[to].select([other]), join.how)
            parts[to] = parts[to].rename_columns([self._rest.hide(to, other) if n == other else n
                                                  for n in parts[to].column_names])
            if made is not own:
                hidden = parts[label].schema.field(at).with_name(self._rest.hide(label, name))
                parts[label] = parts[label].set_column(at, field, made).append_column(hidden, own)
        return JoinedTables(parts)

    def _each_row(self, left: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a table that has others for each row of ``left``."""
        if join.how not in ("inner", "left"):
            raise StatementError(f"a table that names those before it takes JOIN and LEFT JOIN, not "
                                 f"{join.how.upper().replace('_', ' ')} JOIN")
        self._of.lines.append(f"DuckDB           a table for each row: {' '.join(join.item.text.split())}")
        label, = self._item(join.item).parts
        item = replace(join.item, body=self._rest.shown(join.item.body))
        return lateral_rows(self._db, left, item, label, _said(self._scope, item.text))

    def _nearest(self, left: JoinedTables, right: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a join by NEAREST BY."""
        assert join.nearest is not None
        rank = self._rest.shown(join.nearest.rank)
        nearest = replace(join.nearest, rank=rank)
        found = TableJoin(self._db, left, right, join, self._scope).nearest(self._of.run, nearest)
        self._of.lines.append(f"{'join  ' if found else 'DuckDB'}           the nearest {join.nearest.k} rows of "
                              f"{right.label} by {rank}{'' if found else ', of all pairs'}")
        r, s = found or nearest_pairs(self._db, left, right, nearest, _said(self._scope, rank))
        alone = np.setdiff1d(np.arange(len(left)), r) if join.how == "left" else r[:0]
        of_s = pa.concat_arrays([pa.array(s, pa.int64()), pa.nulls(len(alone), pa.int64())])
        return JoinedTables({**left.taken(pa.array(np.concatenate([r, alone]))), **right.taken(of_s)})

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
            left = self._left_by(term, rows)
            if left is None:
                return None
            name = f"{_MARKS} {len(marks)}"
            marks[name] = pa.array(np.isin(np.arange(len(rows)), left))
            return f"{quoted(_MARKS)}.{quoted(name)}"

        text = with_marks(condition, mark)
        if not marks:
            return None
        self._of.lines.append(f"DuckDB           of these joins: {condition}")
        kept = JoinedTables({**rows.parts, _MARKS: pa.table(marks)}).where(self._db, text, self._scope)
        return JoinedTables(rows.taken(pa.array(kept)))

    def _left_by(self, term: str, rows: JoinedTables) -> Ints | None:
        """The numbers of the rows of which ``term`` is true, as joins with the rows of a SELECT; None for others."""
        join = self._subquery_join(term, rows)
        if join is None:
            return None
        left = np.arange(len(rows))
        for conditions in join.steps(one=False):
            work = self._work(join, join.how, conditions, rows)
            self._count(work)
            left = np.intersect1d(left, work.numbers(self._of.run)[0])
        return left

    def _truth_of(self, term: str, rows: JoinedTables) -> pa.Array | None:
        """The values of ``term``, a test on the rows of a SELECT, for each row; None where it is no join."""
        left = [self._left_by(text, rows) for text in ([term] if is_exists(term) else [term, f"NOT ({term})"])]
        found = [np.isin(np.arange(len(rows)), one) for one in left if one is not None]
        if len(found) < len(left):
            return None
        true, *false = found
        return pa.array(true, mask=~(true | false[0]) if false else None)

    def _with_values(self, rows: JoinedTables) -> JoinedTables | None:
        """``rows``, of one table, with a column for each SELECT that is a value and names columns of them, and for each
        test on the rows of one; the SELECT around it has this column in its place. None where there is none.
        """
        found, (label,), pieces, values = self._found, rows.parts, list[tuple[slice, str]](), dict[str, pa.Table]()
        for piece in value_pieces(found):
            value = subquery_value(found.text[piece.start + 1:piece.stop - 1], rows.parts, self._database)
            if value is None:
                continue
            self._bind()
            work, name = self._work(value, "inner", value.conditions, rows), f"{_VALUES} {len(values)}"
            self._count(work)
            values[name] = value_column(value, work, self._of.run, self._db, len(rows))
            pieces.append((piece, f"{quoted(_VALUES)}.{quoted(name)}"))
        for piece in test_pieces(found):
            truth = self._truth_of(found.text[piece], rows)
            if truth is not None:
                name = f"{_VALUES} {len(values)}"
                values[name] = pa.table({name: truth})
                pieces.append((piece, f"{quoted(_VALUES)}.{quoted(name)}"))
        if not values or "columns" in words(found.tokens):
            return None
        self._found = clauses(with_named_stars(clauses(with_pieces(found.text, pieces)), label))
        fields = [table.schema.field(0).with_name(name) for name, table in values.items()]
        made = pa.table([table.column(0) for table in values.values()], schema=pa.schema(fields))
        return JoinedTables({**rows.parts, _VALUES: made})

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

    def _answer(self, rows: JoinedTables) -> pa.Table:
        piece = " AND ".join(f"({condition})" for condition in self._where)
        parts = self._rest.parts(rows.parts, piece)
        source, views = JoinedTables(parts).views()
        head, piece, tail = self._rest.texts(piece)
        text = f"{head} FROM {source}{f' WHERE {piece}' if piece else ''} {tail}"
        self._of.lines.append(f"DuckDB           the rest: {' '.join(text.split())}")
        made = ask(self._db, text, {**_said(self._scope, text), **views})
        return made.rename_columns(self._rest.names(parts, made.column_names))

    def _better_order(self) -> JoinOrder | None:
        """The order of the joins, if another one than that of FROM promises to be much cheaper."""
        if any(item.name is None for tree in self._trees for item in tree.items()) or any(
                join.how == "positional" or join.nearest for tree in self._trees for join in tree.joins):
            return None
        with contextlib.suppress(StatementError):  # other joins than inner ones keep their places
            return order if (order := self._inner.order()).told else None
        return None

    @property
    def _inner(self) -> InnerJoins:
        return InnerJoins(self._found, self._known())

    def _known(self) -> dict[str, pa.Table]:
        """The tables of FROM so far, by their labels."""
        return {label: table for rows in self._tables.values() for label, table in rows.parts.items()}

    def _several(self, order: JoinOrder) -> pa.Table:
        """The statement's rows: the joins of FROM run in steps, in this ``order``, and DuckDB computes the rest."""
        found = self._found
        self._of.joins += len(self._tables) - 1
        source, views = JoinedTables(self._inner.rows(self._of.several, order)).views()
        text = f"{found.text[found.head]} FROM {source} {found.text[found.tail]}"
        self._of.lines += [f"join             {' JOIN '.join(self._known())}, step by step, "
                           f"{order.told or 'in the order of FROM'}",
                           f"DuckDB           the rest: {' '.join(text.split())}"]
        return ask(self._db, text, {**_said(self._scope, text), **views})


def _said(scope: Mapping[str, pa.Table], text: str) -> dict[str, pa.Table]:
    """The tables that ``text`` may name."""
    said = words(tokens_of(text))
    return {name: table for name, table in scope.items() if name in said}


def _renamed(db: Any, rows: pa.Table, columns: str) -> pa.Table:
    """``rows`` with the names of the list ``columns`` for their first ones."""
    if not columns:
        return rows
    return ask(db, f"SELECT * FROM splitjoin_rows AS named{columns}", {"splitjoin_rows": rows})
