"""The joins in one FROM of a statement, table by table, and what is left of its SELECT over their rows, which is
DuckDB's where it says more than which columns of which rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.errors import InputError, PredicateError, SchemaError, StatementError
from splitjoin.lang.schema import Schema

from .answer_steps import nearest_row, one_table, plain_part, rows_of, value_name, with_names, with_values, without_null
from .database import ask
from .join_order import JoinOrder, join_order
from .outputs import NotDuckDBs, Outputs, merged_names, name_groups
from .partial_aggregates import PARTIAL, partial_aggregates
from .rewrites import WhereTerm, semi_join, without_from
from .statement import SelectItem, Statement, check_steps, statement_of
from .steps import Step
from .subqueries import SubqueryNearest, has_query, is_aggregated, is_outer, subquery_nearest, tests_and_values
from .table_join import (
    OF_ROW,
    JoinedTables,
    StatementRun,
    TableJoin,
    lateral_columns,
    lateral_rows,
    named_tables,
    nearest_pairs,
)
from .trees import (
    FromItem,
    FromJoin,
    FromTree,
    conjuncts,
    has_star,
    may_join,
    named_column,
    one_line,
    qualified,
    quoted,
    said_columns,
    sql_text,
)
from .unnesting import ONE_JOIN, Unnesting

#: Runs a SELECT within another one, over the tables that it may name.
RunQuery = Callable[[exp.Expr, dict[str, pa.Table]], pa.Table]
#: Joins behind which a condition on earlier tables may be tested before them as well.
_KEEP_LEFT = {"inner", "left", "semi", "anti", "asof", "asof_left", "asof_semi", "asof_anti"}


class FromClause:
    """The joins in FROM of ``select``, as ``trees``, and what is made of their rows; ``scope``: the tables that are
    there by name. ``rows`` runs a SELECT within this one, which is ``nested`` if it stands within another one.
    """

    def __init__(self, run: StatementRun, select: exp.Select, trees: Sequence[FromTree],
                 scope: Mapping[str, pa.Table], rows: RunQuery, *, nested: bool):
        self._run, self._select, self._trees, self._nested = run, select, trees, nested
        self._scope, self._rows, self._one_each = dict(scope), rows, False
        self._tables, self._laterals = dict[int, JoinedTables](), set[int]()
        self._nearests = dict[int, SubqueryNearest]()
        self._unnesting = Unnesting(run, self._scope, lambda: self._written, lambda query: rows(query, dict(scope)))
        within = {table.alias.lower() for table in select.find_all(exp.CTE)}
        for table in select.find_all(exp.Table):
            if isinstance(table.this, exp.Identifier) and not table.args.get("db") and not (
                    {table.name.lower()} & {*within, *scope}):
                raise InputError(f"the table {table.name!r} of the statement is not given; its rows are given under "
                                 f"its name")
        items = [item for tree in trees for item in tree.items()]
        for n, item in enumerate(items):
            label = item.label or f"splitjoin unnamed {n}"
            if label.lower() in {other.lower() for other in self._known()}:
                raise StatementError(f"two tables are called {label!r}; give them names of their own, such as "
                                     f"{label} a JOIN {label} b")
            self._tables[id(item)] = run.steps.made(partial(one_table, label), self._table(item, label))
        self._outputs = Outputs(select, self._known())
        name_groups(select, self._known())
        self._written = select.copy()
        where = select.args.get("where")
        terms = list(conjuncts(where.this if where else None))
        self._where = [WhereTerm(term, known) for term, known in zip(terms, self._qualified(terms), strict=True)]

    def rows(self) -> pa.Table:
        """The rows of the whole SELECT."""
        run, tree = self._run, self._trees[0]
        joins = sum(len(tree.items()) for tree in self._trees) - 1
        if run.only_one and run.joins + joins > 1:
            if run.joins or any(item.name is None for tree in self._trees for item in tree.items()):
                raise StatementError(ONE_JOIN)
            return self._several(self._inner(), self._order(self._inner()))
        if joins > 1 and (better := self._better_order()) is not None:
            return self._several(*better)
        alone = None if joins or run.only_one else self._with_values(next(iter(self._tables.values())))
        if joins == 1 and not self._laterals:
            join = tree.joins[0] if tree.joins else FromJoin("inner", self._trees[1].first)
            if join.using == () and not join.nearest and join.how in ("inner", "left") and not (
                    tree.first.tree or join.item.tree):
                if (folded := self._folded(tree.first, join)) is not None:
                    return folded
                tree = self._without_pairs(tree.first, join)
            self._trees = [tree if tree.joins else FromTree(tree.first, (join,))]
        rows = self._tree(self._trees[0], top=True) if alone is None else alone
        for tree in self._trees[1:]:
            own = FromJoin("inner", tree.first)
            if id(tree.first) not in self._laterals and not self._names_before(tree, rows):
                rows = self._join(rows, self._tree(tree, top=True), own, where=True)
            elif {join.how for join in tree.joins} <= _KEEP_LEFT:
                rows = self._joined(rows, [own, *tree.joins], top=True)
            else:
                raise StatementError("a table or an ON that names tables before its comma must not stand before RIGHT "
                                     "or FULL JOIN, nor may their own ON; write CROSS JOIN in place of the comma")
        rows = self._with_subqueries(rows, several=joins > 0)
        if not self._nested and not run.joins and (run.only_one or not may_join(self._written)):
            raise NotDuckDBs("there is no join")
        return self._answer(rows)

    def plain(self) -> pa.Table | None:
        """The rows of the SELECT, of one table, if it says no more than `plain_rows` does; else None."""
        rest, (table,) = without_from(self._select, self._where), self._tables.values()
        return self._plain(rest, table, self._outputs.parts(rest, table.parts), lambda: (
            f"selection        {one_line(self._written)}"))

    def _known(self) -> dict[str, pa.Table]:
        """The tables of FROM so far, by their labels."""
        return {label: table for rows in self._tables.values() for label, table in rows.parts.items()}

    def _qualified(self, terms: Sequence[exp.Expr]) -> list[exp.Expr | None]:
        tables = {label: table.column_names for label, table in self._known().items()}
        return qualified(terms, tables, {name: table.column_names for name, table in self._scope.items()})

    def _table(self, item: FromItem, label: str) -> pa.Table:
        text, known = f"SELECT * FROM {item.called(label)}", self._around(item)
        if known is not None and (nearest := self._nearest_of(item, known)) is not None:
            self._laterals.add(id(item))
            self._nearests[id(item)] = nearest
            return nearest.listed(nearest.inner.table.slice(0, 0))
        if known is not None and not self._stands_alone(text, item.node):
            found = lateral_columns(self._run.db, self._known(), item, label, named_tables(self._scope, item.node))
            if found is not None:
                self._laterals.add(id(item))
                return found
        if item.query is not None:
            rows = self._rows(item.query, dict(self._scope))
            if item.node.args.get("pivots") or item.node.args.get("sample"):
                node = in_place_of(item.node, "splitjoin_rows")
                return ask(self._run.db, f"SELECT * FROM {sql_text(node)}", {"splitjoin_rows": rows})
            return renamed(self._run, rows, item.node.args.get("alias"))
        if item.name is not None:
            return self._scope[item.name.lower()]
        self._run.say(item.node, "a table")
        return self._run.ask(text, self._scope, item.node)

    def _stands_alone(self, text: str, node: exp.Expr) -> bool:
        """True if DuckDB knows the columns of ``text``, a SELECT of ``node``, without those before it."""
        with contextlib.suppress(PredicateError, SchemaError, InputError):
            self._run.ask(f"SELECT * FROM ({text}) LIMIT 0", self._scope, node)
            return True
        return False

    def _around(self, item: FromItem) -> exp.Expr | None:
        """The tree of ``item`` if it names tables before it, or may do so; with tables for its columns, if it can."""
        if item.name is not None or not self._tables:
            return None
        known = None if item.query is None else self._qualified([exp.Subquery(this=item.query.copy())])[0]
        said = [] if known is None else list(known.find_all(exp.Column))
        if known is None or any(not of.table and not isinstance(of.this, exp.Star) for of in said):
            unknown: exp.Expr = item.node
            return unknown
        return known.unnest() if any(is_outer(of, self._known()) for of in said) else None

    def _nearest_of(self, item: FromItem, known: exp.Expr) -> SubqueryNearest | None:
        """``item``, a SELECT that names tables before it, as an as-of join; None for others."""
        alias = item.node.args.get("alias")
        if item.query is None or not item.query.args.get("order") or (alias is not None and alias.args.get("columns")):
            return None
        made = subquery_nearest(known, self._known(), self._unnesting.database)
        if made is None:
            return None
        called = [of.alias or name for of, name in zip(item.query.expressions, made.names, strict=False)]
        return replace(made, called=tuple(made.names if has_star(item.query) else called))

    def _names_before(self, tree: FromTree, rows: JoinedTables) -> bool:
        """True if an ON of ``tree`` names tables of ``rows``, before its comma: as DuckDB has it, and not the standard,
        it may, as these are there for each of their rows.
        """
        shown = [self._outputs.shown(condition) for join in tree.joins for condition in join.on]
        before = {label.lower() for label in rows.parts}
        return any(column.table in before for known in self._qualified(shown) if known is not None
                   for column in known.find_all(exp.Column))

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
        if self._run.only_one:
            raise StatementError("a POSITIONAL JOIN is by the places of rows alone; leave window, time and sort out")
        self._run.joins += 1
        self._run.told.append(lambda: f"join             {left.label} POSITIONAL JOIN {right.label}, by places")
        at = np.arange(max(len(left), len(right)))
        return JoinedTables({label: part for side in (left, right) for label, part in side.taken(
            pa.array(at, mask=at >= len(side))).items()})

    def _join(self, left: JoinedTables, right: JoinedTables, join: FromJoin, *, where: bool) -> JoinedTables:
        """The rows of one join; ``where``: those terms of WHERE that have all their columns here belong to it."""
        self._run.joins += 1
        each = id(join.item) in self._laterals
        if self._run.only_one and (each or join.nearest):
            raise StatementError("window, time and sort are for joins by a condition, but the statement has NEAREST BY "
                                 "or a table that names those before it; leave them out")
        if join.nearest is not None:
            return self._nearest(left, right, join)
        nearest = self._nearests.get(id(join.item))
        always = all(isinstance(on, exp.Boolean) and on.this for on in join.on) and join.using == ()
        if nearest is not None and always and join.how in ("inner", "left"):
            work = self._unnesting.join(nearest.inner, "asof" if join.how == "inner" else "asof_left", left)
            rows = self._run.joined(work)
            self._run.say_join(work)
            (label,) = right.parts
            return self._made(partial(nearest_row, nearest.names, nearest.called, label), rows)
        if each:
            right = self._each_row(left, join)
        same = merged_names(left.parts, right.parts, join.using, self._outputs.merged) if join.using != () else []
        work = TableJoin(self._run.db, left, right, join, self._scope)
        if each:
            work.add_rows(next(iter(right.parts)), OF_ROW)
        shown = [self._outputs.shown(condition) for condition in join.on]
        for condition, known in zip(shown, self._qualified(shown), strict=True):
            work.add(known or condition, "ON")
        for n, (_, of_left, of_right) in enumerate(same):
            kind = exp.GTE if join.how.startswith("asof") and n == len(same) - 1 else exp.EQ
            work.add(kind(this=of_left.copy(), expression=of_right.copy()), "USING")
        for term in self._where if where else ():
            if term.is_of((*left.parts, *right.parts)):
                with contextlib.suppress(PredicateError, SchemaError):
                    assert term.known is not None
                    work.add_where(term.known)
                    self._where = [other for other in self._where if other is not term]
        rows = self._run.joined(work)
        self._run.say_join(work)
        if not {*join.how.split("_")} & {"semi", "anti"}:
            self._outputs.merge(same, join.how)
        if not each:
            return rows
        label = next(iter(right.parts))
        return JoinedTables({**rows.parts, label: rows.parts[label].drop_columns([OF_ROW])})

    def _made(self, step: Step, *inputs: Any) -> JoinedTables:
        made: JoinedTables = self._run.steps.made(step, *inputs)
        return made

    def _each_row(self, left: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a table that has others for each row of ``left``."""
        if join.how not in ("inner", "left"):
            raise StatementError(f"a table that names those before it takes JOIN and LEFT JOIN, not "
                                 f"{join.how.upper().replace('_', ' ')} JOIN")
        self._run.say(join.item.node, "a table for each row")
        (label, table), = self._item(join.item).parts.items()
        item = replace(join.item, node=self._outputs.shown(join.item.node))
        if (made := self._aggregated_row(left, item)) is not None:
            return JoinedTables({label: made.rename_columns([*table.column_names, OF_ROW])})
        return lateral_rows(self._run.db, left, item, label, named_tables(self._scope, item.node))

    def _aggregated_row(self, left: JoinedTables, item: FromItem) -> pa.Table | None:
        """The one row that aggregates without GROUP BY have for each row of ``left``, with its number; else None."""
        query, made = item.node.unnest(), list[pa.ChunkedArray]()
        if not isinstance(query, exp.Select) or not all(is_aggregated([e], self._unnesting.database.aggregates)
                                                        for e in query.expressions):
            return None
        for listed in query.expressions:
            one = query.copy()
            one.set("expressions", [listed.copy()])
            known = self._qualified([exp.Subquery(this=one)])[0]
            if known is None or (value := self._unnesting.value_of(known.unnest(), left)) is None:
                return None
            made.append(value.column(0))
        return pa.table([*made, pa.array(np.arange(len(left)))], [f"c{n}" for n in range(len(made) + 1)])

    def _nearest(self, left: JoinedTables, right: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a join by NEAREST BY."""
        assert join.nearest is not None
        nearest = join.nearest.copy()
        rank = self._outputs.shown(nearest.this)
        nearest.set("this", self._qualified([rank])[0] or rank)
        found = TableJoin(self._run.db, left, right, join, self._scope).nearest(self._run.two, nearest)
        said = f"{nearest.args['count'].name} rows of {right.label} by"
        self._run.told.append(lambda: f"{'join  ' if found else 'DuckDB'}           the nearest {said} "
                                      f"{sql_text(rank)}{'' if found else ', of all pairs'}")
        r, s = found or nearest_pairs(self._run.db, left, right, nearest, named_tables(self._scope, rank))
        alone = np.setdiff1d(np.arange(len(left)), r) if join.how == "left" else r[:0]
        of_s = pa.concat_arrays([pa.array(s, pa.int64()), pa.nulls(len(alone), pa.int64())])
        return JoinedTables({**left.taken(pa.array(np.concatenate([r, alone]))), **right.taken(of_s)})

    def _folded(self, first: FromItem, join: FromJoin) -> pa.Table | None:
        """The rows of the whole SELECT, if it is one of aggregates that are folded for each row of ``first``, or of the
        table that it is joined with, without pairs; None for others.
        """
        if self._outputs.is_opaque or (join.how == "left" and self._where):
            return None
        tables = self._known()
        found = partial_aggregates(self._run.db, self._select, tables, self._qualified)
        if found is None and join.how == "inner" and not self._run.only_one:  # the second table may have the groups
            first, join = join.item, replace(join, item=first)
            tables = dict(reversed(tables.items()))
            found = partial_aggregates(self._run.db, self._select, tables, self._qualified)
        if found is None:
            return None
        try:
            work = TableJoin(self._run.db, self._item(first), self._item(join.item), join, self._scope)
            for condition, known in zip(join.on, self._qualified(join.on), strict=True):
                work.add(known or condition, "ON")
            for term in self._where:
                if term.known is None or not term.is_of(tables):
                    return None
                work.add_where(term.known)
            if not work.is_ours:
                return None
            rows = work.partial(self._run.two, found.parts())
            source, views = JoinedTables({label: table.slice(0, 0) for label, table in tables.items()}).views()
            found.replace(self._run.db, views, source)
        except (PredicateError, SchemaError, InputError):
            return None
        self._run.count(work)
        self._where = []
        if found.alone:
            having = self._select.args.get("having")
            self._where = [] if having is None else [WhereTerm(having.this, None)]
            self._select.set("group", None)
            self._select.set("having", None)
        part = rows.drop_columns(["n"]).rename_columns([str(n) for n in range(rows.num_columns - 1)])
        return self._answer(JoinedTables({**self._item(first).taken(rows.column("n").combine_chunks()), PARTIAL: part}))

    def _without_pairs(self, first: FromItem, join: FromJoin) -> FromTree:
        """The FROM of two tables, as a SEMI or ANTI JOIN where the SELECT says nothing else of one of them."""
        made = semi_join(self._select, self._where, first, join, self._known(), lambda: self._qualified(join.on))
        if made is None:
            return FromTree(first, (join,))
        self._where = made.where
        if made.without_null is not None:
            self._made(partial(without_null, made.without_null), self._item(join.item))
        if made.distinct:
            self._one_each = True
            self._select.set("group", None)
            self._select.set("distinct", exp.Distinct())
        return FromTree(made.first, (made.join,))

    def _with_subqueries(self, rows: JoinedTables, *, several: bool) -> JoinedTables:
        """``rows`` after those conditions of WHERE that are semi and anti joins with the rows of a SELECT.

        Behind the joins of FROM (``several``), DuckDB has those that are not in the language.
        """
        if several and (self._run.only_one or self._outputs.merged):
            return rows
        for term in list(self._where):
            if term.known is not None and has_query(term.known):
                left = self._unnesting.left_by(term.known, rows, ours=several)
                if left is None and not several and not self._run.only_one:
                    left = self._unnesting.left_by_terms(term.known, rows)
                if left is not None:
                    rows = self._made(rows_of, rows, left)
                    self._where = [other for other in self._where if other is not term]
        return rows

    def _with_values(self, rows: JoinedTables) -> JoinedTables | None:
        """``rows``, of one table, with a column for each SELECT that is a value and names columns of them, and for each
        test on the rows of one behind SELECT; the SELECT around it has this column in its place. None where there is
        none.
        """
        if self._outputs.is_opaque:  # what it stands for would have the columns that are added here
            return None
        listed = [part for item in self._select.expressions for part in tests_and_values(item)]
        values = [part for term in self._where for part in tests_and_values(term.tree) if not part[1]]
        found, columns = [*listed, *values], list[pa.Table]()
        for (node, is_test), known in zip(found, self._qualified([node for node, _ in found]), strict=True):
            if known is None:
                continue
            made = self._unnesting.truth_of(known, rows) if is_test else self._unnesting.value_of(known.unnest(), rows)
            if made is not None:
                self._put(node, value_name(len(columns)))
                columns.append(made)
        return self._made(with_values, rows, *columns) if columns else None

    def _put(self, node: exp.Expr, made: exp.Expr) -> None:
        """Have ``made`` in place of ``node``, a part of the SELECT list or of WHERE."""
        for term in self._where:
            if any(node is part for part in term.tree.walk()):
                term.known = None
                if term.tree is node:
                    term.tree = made
                    return
        node.replace(made)

    def _answer(self, rows: JoinedTables) -> pa.Table:
        """The rows of what is left of the SELECT over ``rows``, the joined ones."""
        rest = without_from(self._select, self._where)
        parts = self._outputs.parts(rest, rows.parts)
        plain = self._plain(rest, rows, parts, lambda: (
            f"the rest         {one_line(without_from(self._select, self._where))}"))
        if plain is not None:
            return plain
        _, views = JoinedTables(parts).views()
        tables = named_tables(self._scope, rest)
        head, *joins = (exp.Table(this=exp.to_identifier(name), alias=exp.TableAlias(
            this=exp.to_identifier(label, quoted=True))) for name, label in zip(views, (
                label for label, table in parts.items() if table.num_columns), strict=True))
        rest.set("from_", exp.From(this=head))
        rest.set("joins", [exp.Join(this=table, method="POSITIONAL") for table in joins])
        self._run.say(rest)
        made = ask(self._run.db, sql_text(rest), {**tables, **views})
        return made.rename_columns(self._outputs.names(made.column_names, nested=self._nested))

    def _plain(self, rest: exp.Select, rows: JoinedTables, parts: Mapping[str, pa.Table], told: Callable[[], str]
               ) -> pa.Table | None:
        """The rows of ``rest`` over ``parts``, columns of ``rows``, if it says no more than `plain_rows` does."""
        columns = {label: part.column_names for label, part in parts.items()}
        made = self._run.steps.made(partial(plain_part, rest, columns, self._one_each), rows)
        if made is None:
            return None
        names = self._outputs.names(made.column_names, nested=self._nested)
        if self._nested and len({name.lower() for name in names}) < len(names):
            return None  # DuckDB numbers them
        self._run.told.append(told)
        shown: pa.Table = self._run.steps.made(partial(with_names, names), made)
        return shown

    def _better_order(self) -> tuple[Statement, JoinOrder] | None:
        """The inner joins and their order, if another one than that of FROM promises to be much cheaper."""
        if any(item.name is None for tree in self._trees for item in tree.items()) or any(
                join.how == "positional" or join.nearest for tree in self._trees for join in tree.joins):
            return None
        with contextlib.suppress(StatementError):  # other joins than inner ones keep their places
            statement = self._inner()
            order = self._order(statement)
            return (statement, order) if order.told else None
        return None

    def _inner(self) -> Statement:
        """FROM and WHERE as a join of three tables and more. Raises `StatementError` if it is none of inner joins."""
        alone = exp.Select(expressions=[exp.Star()], **{
            part: self._written.args[part].copy() if part != "joins" else [join.copy() for join in self._written.args[
                part]] for part in ("from_", "joins", "where") if self._written.args.get(part)})
        statement = statement_of(alone, self._run.source)
        check_steps(statement, "inner")
        return statement

    def _order(self, statement: Statement) -> JoinOrder:
        tables = list(self._known().values())
        return join_order(statement, [Schema.from_table("r", t) for t in tables], tables)

    def _several(self, statement: Statement, order: JoinOrder) -> pa.Table:
        """The statement's rows: the joins of FROM run in steps, in this ``order``, and DuckDB computes the rest."""
        self._run.joins += len(self._tables) - 1
        rest, items = without_from(self._select, []), list[SelectItem]()
        for n, (t, table) in enumerate(zip(statement.tables, self._known().values(), strict=True)):
            items += [SelectItem(named_column(t.label, name), f"{n}.{name}", name)
                      for name in said_columns(rest, table.column_names) or table.column_names[:1]]
        rows = self._run.several(replace(statement, items=tuple(items)), list(self._known().values()), order)
        parts = {}
        for n, t in enumerate(statement.tables):
            part = rows.select([c for c in rows.column_names if c.startswith(f"{n}.")])
            parts[t.label] = part.rename_columns([c.split(".", 1)[1] for c in part.column_names])
        self._run.told.append(lambda: f"join             {' JOIN '.join(self._known())}, step by step, "
                                      f"{order.told or 'in the order of FROM'}")
        self._where = []
        return self._answer(JoinedTables(parts))


def in_place_of(node: exp.Expr, name: str) -> exp.Table:
    """The table ``name`` with what stands behind ``node``, a SELECT in FROM."""
    return exp.Table(this=exp.to_identifier(name), **{
        part: node.args[part].copy() if part != "pivots" else [pivot.copy() for pivot in node.args[part]]
        for part in ("alias", "pivots", "sample") if node.args.get(part)})


def renamed(run: StatementRun, rows: pa.Table, alias: exp.Expr | None) -> pa.Table:
    """``rows`` with the names of the list that ``alias`` has, if any, for their first columns."""
    columns = alias.args.get("columns") if alias is not None else None
    if not columns:
        return rows
    names = ", ".join(quoted(of.name) for of in columns)
    return ask(run.db, f"SELECT * FROM splitjoin_rows AS named({names})", {"splitjoin_rows": rows})
