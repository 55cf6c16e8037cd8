"""A SELECT over tables of which only the joins run here: DuckDB computes the rest of it, before and behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from splitjoin.base.arrays import Ints
from splitjoin.base.errors import InputError, PredicateError, SchemaError, SplitJoinError, StatementError
from splitjoin.lang.layouts import take
from splitjoin.lang.schema import Schema

from .database import Asked, aggregate_names, ask, finished
from .join_order import JoinOrder, join_order
from .merging import merged_query, with_subqueries
from .outputs import NotDuckDBs, Outputs, merged_names, name_groups
from .partial_aggregates import PARTIAL, partial_aggregates
from .plain_rows import columns_in, plain_rows
from .statement import SelectItem, Statement, all_tables, check_steps, statement_of
from .subqueries import (
    Database,
    SubqueryJoin,
    SubqueryNearest,
    SubqueryValue,
    has_query,
    is_aggregated,
    is_exists,
    is_outer,
    subquery_join,
    subquery_nearest,
    subquery_value,
    tests_and_values,
    value_column,
    with_marks,
)
from .table_join import OF_ROW, JoinedTables, RunJoin, TableJoin, lateral_columns, lateral_rows, nearest_pairs
from .trees import (
    FromItem,
    FromJoin,
    FromTree,
    StatementText,
    check_meaning,
    conjunction,
    conjuncts,
    from_trees,
    has_star,
    may_join,
    named_column,
    names_in,
    one_line,
    qualified,
    quoted,
    said_columns,
    sql_text,
)

#: Runs a statement that is a join alone, over three tables and more.
RunSeveral = Callable[[Statement, Sequence[pa.Table], JoinOrder], pa.Table]
#: The error for a statement with several joins where one is meant.
ONE_JOIN = ("window, time and sort are those of one join, but the statement has several; run them one by one, or leave "
            "them out")
#: The labels of the columns that say which rows a join leaves, and of those that stand for SELECTs that are values.
_MARKS, _VALUES = "splitjoin marks", "splitjoin values"
#: Joins behind which a condition on earlier tables may be tested before them as well.
_KEEP_LEFT = {"inner", "left", "semi", "anti", "asof", "asof_left", "asof_semi", "asof_anti"}


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, and a text for each part of it that says where it ran. ``asked``: True if DuckDB was."""

    rows: pa.Table
    told: Sequence[Callable[[], str]]
    asked: bool

    @property
    def lines(self) -> tuple[str, ...]:
        """The texts, which take longer to write than many a join."""
        return tuple(line for told in self.told for line in told().splitlines())


@dataclass
class Surroundings:
    """Answers statements over ``tables``, whose names are in lower case; ``run`` runs their joins, ``several`` those of
    three tables and more within windows.

    ``only_one``: True if what the user gave, such as a window, is meant for one join. ``source``: the text, for errors.
    """

    tables: Mapping[str, pa.Table]
    run: RunJoin
    several: RunSeveral
    only_one: bool
    source: StatementText
    told: list[Callable[[], str]] = field(default_factory=list)
    joins: int = 0

    def answer(self, tree: exp.Expr) -> Answer:
        """The rows of the statement ``tree``.

        Raises `StatementError` for what is neither a join nor DuckDB's, `InputError` where DuckDB refuses a value, and
        `ToolError` without DuckDB.
        """
        check_meaning(tree, self.source)
        with contextlib.ExitStack() as closed:
            db = Asked(closed)
            rows = finished(self.rows(db, tree, dict(self.tables), nested=False))
            asked = db.was
        twice = [n for at, n in enumerate(rows.column_names) if n in rows.column_names[:at]]
        if twice:
            raise StatementError(f"result columns must have distinct names, but {twice[0]!r} would occur more than "
                                 f"once; give one of them another name with AS")
        return Answer(rows, self.told, asked)

    def rows(self, db: Any, tree: Any, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        """The rows of the query ``tree``, which may name the tables of ``scope``; ``nested``: within another one."""
        if nested and not may_join(tree):
            if (plain := self._plain(db, tree, scope)) is not None:
                return plain
            self.said(tree, "a selection")
            return ask(db, _text_of(tree), _said(scope, tree))
        tree = with_subqueries(tree.copy() if nested else tree)
        if (named_tables := tree.args.get("with_")) is not None:
            tree.set("with_", None)
            for table in named_tables.expressions:
                scope[table.alias.lower()] = _renamed(db, self.rows(db, table.this, dict(scope), nested=True),
                                                      table.args["alias"])
        if isinstance(tree, (exp.SetOperation, exp.Subquery)):
            return self._operands(db, tree, scope, nested=nested)
        if not tree.args.get("from_"):
            if not self.joins:
                raise self.source.at("a statement must say FROM which two tables its rows come, such as FROM r JOIN s "
                                     "ON r.x = s.a", ())
            self.said(tree)  # of tables that WITH has joined
            return ask(db, sql_text(tree), _said(scope, tree))
        if tree.args.get("sample"):
            raise self.source.error("USING SAMPLE is not supported: which rows it leaves is left to chance; leave it "
                                    "out")
        trees, where = from_trees(tree, self.source), tree.args.get("where")
        if len(trees) > 1 or trees[0].joins or trees[0].first.tree is not None or any(
                map(has_query, (*tree.expressions, where))):
            return _Joins(self, db, tree, trees, scope, nested=nested).rows()
        item = trees[0].first
        if item.query is not None and may_join(item.query):
            if (merged := merged_query(tree, item)) is not None:
                return self.rows(db, merged, scope, nested=nested)
            name = f"splitjoin_{len(scope)}"
            scope[name] = self.rows(db, item.query, dict(scope), nested=True)
            item.node.replace(_in_place_of(item.node, name))
        elif not nested and not self.joins and (self.only_one or not may_join(tree)):
            raise NotDuckDBs("there is no join")
        if (plain := self._plain(db, tree, scope, nested=nested)) is not None:
            return plain
        self.said(tree)
        rows = ask(db, sql_text(tree), _said(scope, tree))
        return rows if nested else rows.rename_columns(Outputs(tree, {}).names(rows.column_names))

    def _plain(self, db: Any, tree: exp.Expr, scope: Mapping[str, pa.Table], *, nested: bool = True) -> pa.Table | None:
        """The rows of a SELECT from one table that says no more than `plain_rows` does; None for others."""
        if not isinstance(tree, exp.Select) or tree.args.get("with_") or not tree.args.get("from_"):
            return None
        node = tree.args["from_"].this
        if not isinstance(node, exp.Table) or tree.args.get("joins") or node.name.lower() not in scope:
            return None
        trees = from_trees(tree, self.source)
        if len(trees) > 1 or trees[0].joins or trees[0].first.name is None:
            return None
        return _Joins(self, db, tree.copy(), trees, scope, nested=nested).plain()

    def _operands(self, db: Any, tree: Any, scope: dict[str, pa.Table], *, nested: bool) -> pa.Table:
        """The rows of SELECTs between UNION, EXCEPT and INTERSECT, or in parentheses with ORDER BY or LIMIT behind."""
        given, found, operands = set(self.tables) & all_tables(tree), list(_leaves(tree)), list[pa.Table]()
        appends = _appends(tree)
        for n, operand in reversed(list(enumerate(found))):
            name = f"splitjoin_{len(scope)}"
            scope[name] = self.rows(db, operand, dict(scope), nested=nested or n > 0 or not may_join(operand))
            made = exp.select("*").from_(exp.Table(this=exp.to_identifier(name)))
            operand.replace(made if isinstance(operand.parent, exp.Subquery) else made.subquery())
            operands.insert(0, scope[name])
        if not nested and not self.joins and (self.only_one or len(given) < 2):
            raise NotDuckDBs("there is no join")
        if appends and all(of.schema.types == operands[0].schema.types for of in operands):
            return pa.concat_tables([pa.table(of.columns, schema=operands[0].schema) for of in operands])
        self.said(tree)
        return ask(db, _text_of(tree), _said(scope, tree))

    def said(self, tree: exp.Expr | str, part: str = "the rest") -> None:
        """Say that DuckDB computes ``tree``, a ``part`` of the statement."""
        self.told.append(lambda: f"DuckDB           {part}: {one_line(tree)}")


@dataclass
class _WhereTerm:
    """A condition of WHERE, as it is written, and with a table for each column; None if that is not known."""

    tree: exp.Expr
    known: exp.Expr | None

    def is_of(self, labels: Iterable[str]) -> bool:
        """True if all its columns are of tables with these ``labels``, and it has some, and no SELECT."""
        if self.known is None or has_query(self.known):
            return False
        tables = {column.table for column in self.known.find_all(exp.Column)}
        return bool(tables) and tables <= {label.lower() for label in labels}


class _Joins:
    """The joins in one FROM, and what DuckDB makes of their rows."""

    def __init__(self, of: Surroundings, db: Any, select: exp.Select, trees: Sequence[FromTree],
                 scope: Mapping[str, pa.Table], *, nested: bool):
        self._of, self._db, self._trees, self._scope, self._nested = of, db, trees, dict(scope), nested
        self._select, self._bound, self._one_each = select, False, False
        self._tables, self._laterals = dict[int, JoinedTables](), set[int]()
        self._nearests = dict[int, SubqueryNearest]()
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
            self._tables[id(item)] = JoinedTables({label: self._table(item, label)})
        self._outputs = Outputs(select, self._known())
        name_groups(select, self._known())
        self._written = select.copy()
        where = select.args.get("where")
        terms = list(conjuncts(where.this if where else None))
        self._where = [_WhereTerm(term, known) for term, known in zip(terms, self._qualified(terms), strict=True)]

    def rows(self) -> pa.Table:
        """The rows of the whole SELECT."""
        joins = sum(len(tree.items()) for tree in self._trees) - 1
        if self._of.only_one and self._of.joins + joins > 1:
            if self._of.joins or any(item.name is None for tree in self._trees for item in tree.items()):
                raise StatementError(ONE_JOIN)
            return self._several(self._inner(), self._order(self._inner()))
        if joins > 1 and (better := self._better_order()) is not None:
            return self._several(*better)
        alone = None if joins or self._of.only_one else self._with_values(next(iter(self._tables.values())))
        tree = self._trees[0]
        if joins == 1 and not self._laterals:
            if (folded := self._folded()) is not None:
                return folded
            tree, self._trees = self._without_pairs(tree), self._trees[:1]
        rows = self._tree(tree, top=True) if alone is None else alone
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
        if not self._nested and not self._of.joins and (self._of.only_one or not may_join(self._written)):
            raise NotDuckDBs("there is no join")
        return self._answer(rows)

    def _names_before(self, tree: FromTree, rows: JoinedTables) -> bool:
        """True if an ON of ``tree`` names tables of ``rows``, before its comma: as DuckDB has it, and not the standard,
        it may, as these are there for each of their rows.
        """
        shown = [self._outputs.shown(condition) for join in tree.joins for condition in join.on]
        before = {label.lower() for label in rows.parts}
        return any(column.table in before for known in self._qualified(shown) if known is not None
                   for column in known.find_all(exp.Column))

    def _qualified(self, terms: Sequence[exp.Expr]) -> list[exp.Expr | None]:
        tables = {label: table.column_names for label, table in self._known().items()}
        return qualified(terms, tables, {name: table.column_names for name, table in self._scope.items()})

    def _table(self, item: FromItem, label: str) -> pa.Table:
        of, db, text = self._of, self._db, f"SELECT * FROM {item.called(label)}"
        known = self._around(item)
        if known is not None and (nearest := self._nearest_of(item, known)) is not None:
            self._laterals.add(id(item))
            self._nearests[id(item)] = nearest
            return nearest.listed(nearest.table.slice(0, 0))
        if known is not None and self._columns_of(text, item.node) is None:
            found = lateral_columns(db, self._known(), item, label, _said(self._scope, item.node))
            if found is not None:
                self._laterals.add(id(item))
                return found
        if item.query is not None:
            rows = of.rows(db, item.query, dict(self._scope), nested=True)
            if item.node.args.get("pivots") or item.node.args.get("sample"):
                node = _in_place_of(item.node, "splitjoin_rows")
                return ask(db, f"SELECT * FROM {sql_text(node)}", {"splitjoin_rows": rows})
            return _renamed(db, rows, item.node.args.get("alias"))
        if item.name is not None:
            return self._scope[item.name.lower()]
        of.said(item.node, "a table")
        return ask(db, text, _said(self._scope, item.node))

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
        made = subquery_nearest(known, self._known(), self._database)
        if made is None:
            return None
        called = [of.alias or name for of, name in zip(item.query.expressions, made.names, strict=False)]
        return replace(made, called=tuple(made.names if has_star(item.query) else called))

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
        self._of.told.append(lambda: f"join             {left.label} POSITIONAL JOIN {right.label}, by places")
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
        nearest = self._nearests.get(id(join.item))
        always = all(isinstance(on, exp.Boolean) and on.this for on in join.on) and join.using == ()
        if nearest is not None and always and join.how in ("inner", "left"):
            work = self._work(nearest, "asof" if join.how == "inner" else "asof_left", nearest.conditions, left)
            rows = work.run(self._of.run)
            self._count(work, counted=True)
            (label,) = right.parts
            return JoinedTables({**{of: rows.parts[of] for of in left.parts}, label: nearest.listed(rows.parts[
                nearest.label])})
        if each:
            right = self._each_row(left, join)
        same = merged_names(left.parts, right.parts, join.using, self._outputs.merged) if join.using != () else []
        work = TableJoin(self._db, left, right, join, self._scope)
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
        rows = work.run(self._of.run)
        self._count(work, counted=True)
        parts = dict(rows.parts)
        if each:
            label = next(iter(right.parts))
            parts[label] = parts[label].drop_columns([OF_ROW])
        if not {*join.how.split("_")} & {"semi", "anti"}:
            self._outputs.merge(same, join.how)
        return JoinedTables(parts)

    def _each_row(self, left: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a table that has others for each row of ``left``."""
        if join.how not in ("inner", "left"):
            raise StatementError(f"a table that names those before it takes JOIN and LEFT JOIN, not "
                                 f"{join.how.upper().replace('_', ' ')} JOIN")
        self._of.said(join.item.node, "a table for each row")
        (label, table), = self._item(join.item).parts.items()
        item = replace(join.item, node=self._outputs.shown(join.item.node))
        if (made := self._aggregated_row(left, item)) is not None:
            return JoinedTables({label: made.rename_columns([*table.column_names, OF_ROW])})
        return lateral_rows(self._db, left, item, label, _said(self._scope, item.node))

    def _aggregated_row(self, left: JoinedTables, item: FromItem) -> pa.Table | None:
        """The one row that aggregates without GROUP BY have for each row of ``left``, with its number; else None."""
        query, made = item.node.unnest(), list[pa.ChunkedArray]()
        if not isinstance(query, exp.Select) or not all(is_aggregated([e], self._database.aggregates)
                                                        for e in query.expressions):
            return None
        for listed in query.expressions:
            one = query.copy()
            one.set("expressions", [listed.copy()])
            known = self._qualified([exp.Subquery(this=one)])[0]
            if known is None or (value := self._value_of(known.unnest(), left)) is None:
                return None
            made.append(value.column(0))
        return pa.table([*made, pa.array(np.arange(len(left)))], [f"c{n}" for n in range(len(made) + 1)])

    def _nearest(self, left: JoinedTables, right: JoinedTables, join: FromJoin) -> JoinedTables:
        """The rows of a join by NEAREST BY."""
        assert join.nearest is not None
        nearest = join.nearest.copy()
        rank = self._outputs.shown(nearest.this)
        nearest.set("this", self._qualified([rank])[0] or rank)
        found = TableJoin(self._db, left, right, join, self._scope).nearest(self._of.run, nearest)
        said = f"{nearest.args['count'].name} rows of {right.label} by"
        self._of.told.append(lambda: f"{'join  ' if found else 'DuckDB'}           the nearest {said} {sql_text(rank)}"
                                     f"{'' if found else ', of all pairs'}")
        r, s = found or nearest_pairs(self._db, left, right, nearest, _said(self._scope, rank))
        alone = np.setdiff1d(np.arange(len(left)), r) if join.how == "left" else r[:0]
        of_s = pa.concat_arrays([pa.array(s, pa.int64()), pa.nulls(len(alone), pa.int64())])
        return JoinedTables({**left.taken(pa.array(np.concatenate([r, alone]))), **right.taken(of_s)})

    def _folded(self) -> pa.Table | None:
        """The rows of the whole SELECT, if it is one of aggregates that are folded for each row of the first of two
        tables, without pairs; None for others.
        """
        first = self._trees[0].first
        join = self._trees[0].joins[0] if self._trees[0].joins else FromJoin("inner", self._trees[1].first)
        if join.how not in ("inner", "left") or join.using != () or join.nearest or first.tree or join.item.tree or (
                self._outputs.is_opaque or (join.how == "left" and self._where)):
            return None
        tables = self._known()
        found = partial_aggregates(self._db, self._select, tables, self._qualified)
        if found is None and join.how == "inner" and not self._of.only_one:  # the second table may have the groups
            first, join = join.item, replace(join, item=first)
            tables = dict(reversed(tables.items()))
            found = partial_aggregates(self._db, self._select, tables, self._qualified)
        if found is None:
            return None
        try:
            work = TableJoin(self._db, self._item(first), self._item(join.item), join, self._scope)
            for condition, known in zip(join.on, self._qualified(join.on), strict=True):
                work.add(known or condition, "ON")
            for term in self._where:
                if term.known is None or not term.is_of(tables):
                    return None
                work.add_where(term.known)
            if not work.is_ours:
                return None
            rows = work.partial(self._of.run, found.parts())
            source, views = JoinedTables({label: table.slice(0, 0) for label, table in tables.items()}).views()
            found.replace(self._db, views, source)
        except (PredicateError, SchemaError, InputError):
            return None
        self._count(work)
        self._where = []
        if found.alone:
            having = self._select.args.get("having")
            self._where = [] if having is None else [_WhereTerm(having.this, None)]
            self._select.set("group", None)
            self._select.set("having", None)
        part = rows.drop_columns(["n"]).rename_columns([str(n) for n in range(rows.num_columns - 1)])
        return self._answer(JoinedTables({**self._item(first).taken(rows.column("n").combine_chunks()), PARTIAL: part}))

    def _without_pairs(self, tree: FromTree) -> FromTree:
        """The FROM of two tables as a SEMI or ANTI JOIN, if the SELECT says nothing else of one of them: of an inner
        join's rows which different ones there are, or of a LEFT JOIN's which lack a value that every partner has.
        """
        join = tree.joins[0] if tree.joins else FromJoin("inner", self._trees[1].first)
        tables = self._known().items()
        if join.using != () or join.nearest or join.how not in ("inner", "left") or tree.first.tree or join.item.tree:
            return tree if tree.joins else FromTree(tree.first, (join,))
        if join.how == "inner" and self._is_distinct():
            for items in ((tree.first, join.item), (join.item, tree.first)):
                first, second = tables if items[0] is tree.first else reversed(tables)
                partners = [term for term in self._where if not term.is_of([first[0]])]
                others = [term for term in self._where if term.is_of([first[0]])]
                known = all(term.is_of([first[0], second[0]]) for term in partners)
                if known and not self._says(second, first, others):
                    self._where, self._one_each = others, True
                    self._select.set("group", None)
                    self._select.set("distinct", exp.Distinct())
                    on = (*join.on, *(term.known for term in partners if term.known is not None))
                    return FromTree(items[0], (replace(join, how="semi", item=items[1], on=on),))
        (first, second) = tables
        for n, term in enumerate(self._where if join.how == "left" else ()):
            lacking = term.known.this if isinstance(term.known, exp.Is) and isinstance(
                term.known.expression, exp.Null) else None
            others = [*self._where[:n], *self._where[n + 1:]]
            if isinstance(lacking, exp.Column) and lacking.table == second[0].lower() and _is_partners(
                    lacking.name, second[1], self._qualified(join.on)) and not self._says(second, first, others):
                self._where = others
                return FromTree(tree.first, (replace(join, how="anti"),))
        return tree if tree.joins else FromTree(tree.first, (join,))

    def _is_distinct(self) -> bool:
        """True if the SELECT asks for the different rows of its columns: by DISTINCT, or by groups that are these."""
        distinct, group = self._select.args.get("distinct"), self._select.args.get("group")
        listed, groups = ([columns_in(of.unalias(), self._known()) for of in part] for part in (
            self._select.expressions, [] if group is None else group.expressions))
        if None in (*listed, *groups) or any(self._select.args.get(name) for name in ("having", "qualify", "windows")):
            return False
        if group is None:
            return distinct is not None and not distinct.args.get("on")
        return not any(value for name, value in group.args.items() if name != "expressions") and {
            of for one in listed for of in one or ()} == {of for one in groups for of in one or ()}

    def _says(self, second: tuple[str, pa.Table], first: tuple[str, pa.Table], where: Sequence[_WhereTerm]) -> bool:
        """True if the SELECT, with the conditions ``where``, may say anything of the table ``second``."""
        rest = self._rest([term.tree for term in where])
        if any(isinstance(star.parent, exp.Select) or (isinstance(star.parent, exp.Column) and star.parent.table.lower(
                ) == second[0].lower()) for star in rest.find_all(exp.Star)) or rest.find(exp.Columns):
            return True
        own, small = ({name.lower() for name in of[1].column_names} for of in (first, second))
        return any(column.table.lower() == second[0].lower() if column.table else column.name.lower() in small - own
                   for column in rest.find_all(exp.Column))

    def _with_subqueries(self, rows: JoinedTables, *, several: bool) -> JoinedTables:
        """``rows`` after those conditions of WHERE that are semi and anti joins with the rows of a SELECT.

        Behind the joins of FROM (``several``), DuckDB has those that are not in the language.
        """
        if several and (self._of.only_one or self._outputs.merged):
            return rows
        for term in list(self._where):
            if term.known is not None and has_query(term.known):
                made = self._with_subquery(rows, term.known, several=several)
                if made is None and not several and not self._of.only_one:
                    made = self._marked(rows, term.known)
                if made is not None:
                    rows = made
                    self._where = [other for other in self._where if other is not term]
        return rows

    def _with_subquery(self, rows: JoinedTables, term: exp.Expr, *, several: bool) -> JoinedTables | None:
        """``rows`` after a condition that is one join, or several, with the rows of a SELECT; None for others."""
        join = self._subquery_join(term, rows)
        if join is None:
            return None
        for conditions in join.steps(one=self._of.only_one):
            work = self._work(join, join.how, conditions, rows)
            if several and not work.is_ours:
                return None
            self._count(work)
            rows = work.run(self._of.run)
        return rows

    def _marked(self, rows: JoinedTables, condition: exp.Expr) -> JoinedTables | None:
        """``rows`` after a condition of which terms are such joins, beside OR: each is a column, true for the rows that
        the join leaves. None where no term is one.
        """
        marks = dict[str, pa.Array]()

        def mark(term: exp.Expr) -> exp.Expr | None:
            left = self._left_by(term, rows)
            if left is None:
                return None
            name = f"{_MARKS} {len(marks)}"
            marks[name] = pa.array(np.isin(np.arange(len(rows)), left))
            return named_column(_MARKS, name)

        tree = with_marks(condition, mark)
        if not marks:
            return None
        self._of.said(condition, "of these joins")
        kept = JoinedTables({**rows.parts, _MARKS: pa.table(marks)}).where(self._db, sql_text(tree), self._scope)
        return JoinedTables(rows.taken(pa.array(kept)))

    def _left_by(self, term: exp.Expr, rows: JoinedTables) -> Ints | None:
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

    def _truth_of(self, term: exp.Expr, rows: JoinedTables) -> pa.Table | None:
        """The values of ``term``, a test on the rows of a SELECT, for each row; None where it is no join."""
        left = [self._left_by(of, rows) for of in ([term] if is_exists(term) else [term, exp.Not(this=exp.Paren(
            this=term.copy()))])]
        found = [np.isin(np.arange(len(rows)), one) for one in left if one is not None]
        if len(found) < len(left):
            return None
        true, *false = found
        return pa.table({"v": pa.array(true, mask=~(true | false[0]) if false else None)})

    def _value_of(self, query: exp.Expr, rows: JoinedTables) -> pa.Table | None:
        """The values of ``query``, a SELECT that is a value, for each row; None where it is no join."""
        nearest = subquery_nearest(query, rows.parts, self._database)
        if nearest is not None and len(nearest.names) == 1:
            work = self._work(nearest, "asof_left", nearest.conditions, rows)
            self._count(work)
            r, s = work.numbers(self._of.run)
            assert s is not None
            at = np.empty(len(rows), np.int64)
            at[r.to_numpy()] = np.arange(len(rows))
            return pa.table({"v": take(nearest.table.column(nearest.names[0]), s.take(pa.array(at)))})
        value = subquery_value(query, rows.parts, self._database)
        if value is None:
            return None
        work = self._work(value, "inner", value.conditions, rows)
        self._count(work)
        return value_column(value, work, self._of.run, self._db, len(rows))

    def _with_values(self, rows: JoinedTables) -> JoinedTables | None:
        """``rows``, of one table, with a column for each SELECT that is a value and names columns of them, and for each
        test on the rows of one behind SELECT; the SELECT around it has this column in its place. None where there is
        none.
        """
        if self._outputs.is_opaque:  # what it stands for would have the columns that are added here
            return None
        listed = [part for item in self._select.expressions for part in tests_and_values(item)]
        values = [part for term in self._where for part in tests_and_values(term.tree) if not part[1]]
        found, fields = [*listed, *values], dict[str, tuple[pa.Field, pa.ChunkedArray]]()
        for (node, is_test), known in zip(found, self._qualified([node for node, _ in found]), strict=True):
            if known is None:
                continue
            made = self._truth_of(known, rows) if is_test else self._value_of(known.unnest(), rows)
            if made is not None:
                name = f"{_VALUES} {len(fields)}"
                fields[name] = made.schema.field(0).with_name(name), made.column(0)
                self._put(node, named_column(_VALUES, name))
        if not fields:
            return None
        values_of = pa.table([column for _, column in fields.values()], schema=pa.schema([
            of for of, _ in fields.values()]))
        return JoinedTables({**rows.parts, _VALUES: values_of})

    def _put(self, node: exp.Expr, made: exp.Expr) -> None:
        """Have ``made`` in place of ``node``, a part of the SELECT list or of WHERE."""
        for term in self._where:
            if any(node is part for part in term.tree.walk()):
                term.known = None
                if term.tree is node:
                    term.tree = made
                    return
        node.replace(made)

    @property
    def _database(self) -> Database:
        return Database(self._scope, lambda query: self._of.rows(self._db, query, dict(self._scope), nested=True),
                        lambda: aggregate_names(self._db), single=self._of.only_one)

    def _bind(self) -> None:
        """Raise what DuckDB raises for the statement, of which it will not see all."""
        if not self._bound:
            ask(self._db, f"EXPLAIN {sql_text(self._written)}", _said(self._scope, self._written))
            self._bound = True

    def _subquery_join(self, term: exp.Expr, rows: JoinedTables) -> SubqueryJoin | None:
        join = subquery_join(term, rows.parts, self._database)
        if join is not None and self._of.only_one and self._of.joins:
            raise StatementError(ONE_JOIN)
        return join

    def _work(self, found: SubqueryJoin | SubqueryValue | SubqueryNearest, how: str, conditions: Sequence[exp.Expr],
              rows: JoinedTables) -> TableJoin:
        """The join of ``rows`` with the table of ``found`` by ``conditions``."""
        item, right = FromItem(None, found.label), JoinedTables({found.label: found.table})
        work = TableJoin(self._db, rows, right, FromJoin(how, item), self._scope)
        refused: SplitJoinError | None = None
        try:
            for condition in conditions:
                work.add(condition, "WHERE")
        except SplitJoinError as error:
            refused = error
        if refused is not None or not work.is_ours or work.computed:
            self._bind()
        if refused is not None:
            raise refused
        return work

    def _count(self, work: TableJoin, *, counted: bool = False) -> None:
        self._of.joins += not counted
        self._of.told.append(lambda: "\n".join([*work.lines, f"join             {one_line(work.said)}"]))

    def _columns_of(self, text: str, node: exp.Expr) -> list[str] | None:
        with contextlib.suppress(PredicateError, SchemaError, InputError):
            return list(ask(self._db, f"SELECT * FROM ({text}) LIMIT 0", _said(self._scope, node)).column_names)
        return None

    def _rest(self, where: Sequence[exp.Expr]) -> exp.Select:
        """The SELECT with the conditions ``where``, and without tables."""
        condition = conjunction(term.copy() for term in where)
        kept = {name: value for name, value in self._select.args.items() if value and name not in (
            "joins", "from_", "where")}
        rest = exp.Select(**{name: [of.copy() for of in value] if isinstance(value, list) else value.copy()
                             for name, value in kept.items()})
        rest.set("where", None if condition is None else exp.Where(this=condition))
        return rest

    def _answer(self, rows: JoinedTables) -> pa.Table:
        """The rows of what is left of the SELECT over ``rows``, the joined ones."""
        rest = self._rest([term.tree for term in self._where])
        parts = self._outputs.parts(rest, rows.parts)
        plain = self._plain(rest, parts, lambda: (
            f"the rest         {one_line(self._rest([term.tree for term in self._where]))}"))
        if plain is not None:
            return plain
        _, views = JoinedTables(parts).views()
        tables = _said(self._scope, rest)
        head, *joins = (exp.Table(this=exp.to_identifier(name), alias=exp.TableAlias(
            this=exp.to_identifier(label, quoted=True))) for name, label in zip(views, (
                label for label, table in parts.items() if table.num_columns), strict=True))
        rest.set("from_", exp.From(this=head))
        rest.set("joins", [exp.Join(this=table, method="POSITIONAL") for table in joins])
        self._of.said(rest)
        made = ask(self._db, sql_text(rest), {**tables, **views})
        return made.rename_columns(self._outputs.names(made.column_names, nested=self._nested))

    def plain(self) -> pa.Table | None:
        """The rows of the SELECT, of one table, if it says no more than `plain_rows` does; else None."""
        rest, (table,) = self._rest([term.tree for term in self._where]), self._tables.values()
        return self._plain(rest, self._outputs.parts(rest, table.parts), lambda: (
            f"selection        {one_line(self._written)}"))

    def _plain(self, rest: exp.Select, parts: Mapping[str, pa.Table], told: Callable[[], str]) -> pa.Table | None:
        made = plain_rows(rest, parts, distinct=self._one_each)
        if made is None:
            return None
        names = self._outputs.names(made.column_names, nested=self._nested)
        if self._nested and len({name.lower() for name in names}) < len(names):
            return None  # DuckDB numbers them
        self._of.told.append(told)
        return made.rename_columns(names)

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
        statement = statement_of(alone, self._of.source)
        check_steps(statement, "inner")
        return statement

    def _order(self, statement: Statement) -> JoinOrder:
        tables = list(self._known().values())
        return join_order(statement, [Schema.from_table("r", t) for t in tables], tables)

    def _known(self) -> dict[str, pa.Table]:
        """The tables of FROM so far, by their labels."""
        return {label: table for rows in self._tables.values() for label, table in rows.parts.items()}

    def _several(self, statement: Statement, order: JoinOrder) -> pa.Table:
        """The statement's rows: the joins of FROM run in steps, in this ``order``, and DuckDB computes the rest."""
        self._of.joins += len(self._tables) - 1
        rest, items = self._rest([]), list[SelectItem]()
        for n, (t, table) in enumerate(zip(statement.tables, self._known().values(), strict=True)):
            items += [SelectItem(named_column(t.label, name), f"{n}.{name}", name)
                      for name in said_columns(rest, table.column_names) or table.column_names[:1]]
        rows = self._of.several(replace(statement, items=tuple(items)), list(self._known().values()), order)
        parts = {}
        for n, t in enumerate(statement.tables):
            part = rows.select([c for c in rows.column_names if c.startswith(f"{n}.")])
            parts[t.label] = part.rename_columns([c.split(".", 1)[1] for c in part.column_names])
        self._of.told.append(lambda: f"join             {' JOIN '.join(self._known())}, step by step, "
                                     f"{order.told or 'in the order of FROM'}")
        self._where = []
        return self._answer(JoinedTables(parts))


def _leaves(tree: Any) -> Iterable[Any]:
    """The SELECTs of which ``tree`` is made by UNION and its like, and by parentheses."""
    if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
        yield from _leaves(tree.this)
        yield from _leaves(tree.expression)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        yield from _leaves(tree.this)
    else:
        yield tree


def _appends(tree: Any) -> bool:
    """True if ``tree`` is SELECTs with UNION ALL between them, and nothing else."""
    if not isinstance(tree, exp.SetOperation):
        return isinstance(tree, exp.Select)
    return isinstance(tree, exp.Union) and all(name in ("this", "expression") or not value for name, value in
                                               tree.args.items()) and _appends(tree.this) and _appends(tree.expression)


def _is_partners(name: str, table: pa.Table, on: Sequence[exp.Expr | None]) -> bool:
    """True if no row of ``table`` of which the conditions ``on`` are true has NULL in the column ``name``."""
    column = next(of for of in table.column_names if of.lower() == name)
    return not table.column(column).null_count or any(
        isinstance(tree, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)) and any(
            isinstance(side, exp.Column) and side.name == name for side in (tree.this, tree.expression)) for tree in on)


def _in_place_of(node: exp.Expr, name: str) -> exp.Table:
    """The table ``name`` with what stands behind ``node``, a SELECT in FROM."""
    return exp.Table(this=exp.to_identifier(name), **{
        part: node.args[part].copy() if part != "pivots" else [pivot.copy() for pivot in node.args[part]]
        for part in ("alias", "pivots", "sample") if node.args.get(part)})


def _text_of(tree: exp.Expr) -> str:
    return f"SELECT * FROM ({sql_text(tree)})" if isinstance(tree, exp.Values) else sql_text(tree)


def _said(scope: Mapping[str, pa.Table], tree: exp.Expr) -> dict[str, pa.Table]:
    """The tables that ``tree`` may name."""
    said = names_in(tree)
    return {name: table for name, table in scope.items() if name in said}


def _renamed(db: Any, rows: pa.Table, alias: Any) -> pa.Table:
    """``rows`` with the names of the list that ``alias`` has, if any, for their first columns."""
    columns = alias.args.get("columns") if alias is not None else None
    if not columns:
        return rows
    names = ", ".join(quoted(of.name) for of in columns)
    return ask(db, f"SELECT * FROM splitjoin_rows AS named({names})", {"splitjoin_rows": rows})
