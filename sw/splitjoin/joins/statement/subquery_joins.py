"""Conditions of WHERE on a SELECT of one table, such as ``NOT EXISTS (SELECT …)``, as semi and anti joins with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from splitjoin.base.errors import InputError

__all__ = ["SubqueryJoin", "has_subquery", "subquery_join"]

#: Tables of rows by the label that their columns are written with.
Parts = Mapping[str, pa.Table]
#: The parts of a SELECT that this reads: its list, its FROM, its WHERE, and DISTINCT, as it says nothing of rows that
#: are only looked for.
_READ = {"expressions", "from_", "where", "distinct"}
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
#: Values whose number is not that of the rows, or that are no single ones.
_UNREAD = (exp.Query, exp.Window, exp.Star, exp.Tuple, exp.Explode, exp.Unnest, exp.UDTF)


@dataclass(frozen=True)
class SubqueryJoin:
    """A semi or anti join (``how``) of the rows so far with ``table``, under a ``label`` that none of them has.

    All of ``conditions`` decide of a pair; with ``nulls``, as NOT IN has them, the last one or any of ``nulls``.
    """

    how: Literal["semi", "anti"]
    table: pa.Table
    label: str
    conditions: tuple[str, ...]
    nulls: tuple[str, ...] = ()

    def steps(self, *, one: bool) -> list[tuple[str, ...]]:
        """The conditions of the joins that it is made of, one after the other: an index finds equal values, but not
        equal ones or NULL. With ``one`` it is one join in any case.
        """
        *where, compared = self.conditions or ("TRUE",)
        if one and self.nulls:
            return [(*where, " OR ".join((compared, *self.nulls)))]
        return [(*where, last) for last in (compared, *self.nulls)]


@dataclass(frozen=True)
class _Quantified:
    """A condition on the rows of ``query``: ``how`` says whether there must be one ("semi"), or none ("anti"), of which
    it is true that ``value`` is ``compared`` with it, or with ``negated`` that it is not. EXISTS has no ``value``.

    ``nulls``: True if a comparison with NULL rules a row out as well.
    """

    query: exp.Select
    how: Literal["semi", "anti"]
    value: exp.Expr | None = None
    compared: type[exp.Expr] = exp.EQ
    negated: bool = False
    nulls: bool = False


def has_subquery(conditions: Iterable[str | exp.Expr]) -> bool:
    """True if one of ``conditions`` is on a SELECT of one table alone, so that it may be a join."""
    return any(_quantified(condition) is not None for condition in conditions)


def subquery_join(condition: str, outer: Parts, tables: Parts, aggregates: Callable[[], set[str]]) -> (
        SubqueryJoin | None):
    """The join that is ``condition``, on the rows ``outer``; None where it is none with one table.

    ``tables``: those that a SELECT may name, by their names in lower case. ``aggregates``: the names, in lower case, of
    functions whose values are of several rows. Raises `InputError` for a table that is not given.
    """
    found = _quantified(condition)
    if found is None:
        return None
    query = found.query
    named = query.args["from_"].this
    table = tables.get(named.name.lower())
    if table is None:
        raise InputError(f"the table {named.name!r} of the statement is not given; its rows are given under its name")
    written = named.alias or named.name
    small = {label.lower() for label in outer}
    label = written if written.lower() not in small else next(
        name for n in count(2) if (name := f"{written}_{n}").lower() not in small)
    names = _Names(outer, written, label, table)
    where, nulls = query.args.get("where"), list[exp.Expr]()
    trees = [] if where is None else [names.inside(e) for e in (
        where.this.flatten() if isinstance(where.this, exp.And) else [where.this])]
    if found.value is not None:
        made = _value(query, table)
        sides = [names.outside(found.value), None if made is None else names.inside(made)]
        if None in sides:
            return None
        compared: exp.Expr = found.compared(this=exp.Paren(this=sides[0]), expression=exp.Paren(this=sides[1]))
        trees.append(exp.Not(this=exp.Paren(this=compared)) if found.negated else compared)
        nulls = [exp.Is(this=exp.Paren(this=side), expression=exp.Null()) for side in sides
                 if found.nulls and not names.has_no_null(side)]
    if None in trees or _aggregated(trees, aggregates):
        return None
    return SubqueryJoin(found.how, table, label, tuple(tree.sql("duckdb") for tree in trees),
                        tuple(tree.sql("duckdb") for tree in nulls))


def _quantified(condition: str | exp.Expr) -> _Quantified | None:
    """``condition`` as what it says of the rows of a SELECT. IN is ``= ANY``.

    A condition of WHERE must be true. So NOT IN asks that no comparison is true or NULL, ``< ALL`` that none is false
    or NULL, and ``NOT x < ALL (…)`` that one is false.
    """
    with contextlib.suppress(SqlglotError, RecursionError):
        tree: Any = sqlglot.parse_one(condition, dialect="duckdb") if isinstance(condition, str) else condition
        positive = True
        kind: type[exp.Expr] = exp.EQ
        while isinstance(tree, (exp.Not, exp.Paren)):
            positive ^= isinstance(tree, exp.Not)
            tree = tree.this
        how: Literal["semi", "anti"] = "semi" if positive else "anti"
        if isinstance(tree, exp.Exists):
            query = _one_table(tree.this)
            plain = query is not None and all(isinstance(e.unalias(), (exp.Star, exp.Column, exp.Literal, exp.Null))
                                              for e in query.expressions)
            return _Quantified(query, how) if query is not None and plain else None
        if isinstance(tree, exp.In) and tree.args.get("query") is not None:
            value, query, every = tree.this, _one_table(tree.args["query"]), False
        elif isinstance(tree, _COMPARED) and isinstance(tree.expression, (exp.Any, exp.All)):
            value, query, kind = tree.this, _one_table(tree.expression.this), type(tree)
            every = isinstance(tree.expression, exp.All)
        else:
            return None
        if query is None or len(query.expressions) != 1 or any(value.find(unread) for unread in _UNREAD):
            return None
        if every:
            return _Quantified(query, "anti" if positive else "semi", value, kind, True, positive)
        return _Quantified(query, how, value, kind, False, not positive)
    return None


def _one_table(tree: Any) -> exp.Select | None:
    """The SELECT ``tree`` if it has a named table in FROM, without a list of columns, and WHERE alone."""
    tree = tree.unnest() if isinstance(tree, (exp.Subquery, exp.Paren)) else tree
    if not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name not in _READ):
        return None
    named, distinct = tree.args.get("from_"), tree.args.get("distinct")
    if named is None or not isinstance(named.this, exp.Table) or (distinct is not None and distinct.args.get("on")):
        return None
    alias = named.this.args.get("alias")
    plain = isinstance(named.this.this, exp.Identifier) and not any(
        value for name, value in named.this.args.items() if name not in ("this", "alias"))
    where = tree.args.get("where")
    one = where is None or where.this.find(exp.Query) is None
    return tree if plain and one and (alias is None or not alias.args.get("columns")) else None


def _value(query: exp.Select, table: pa.Table) -> exp.Expr | None:
    """The value that ``query`` gives for each row of ``table``; None if it is not one."""
    value = query.expressions[0].unalias()
    if isinstance(value, exp.Star) and not any(value.args.values()) and table.num_columns == 1:
        return exp.column(exp.to_identifier(table.column_names[0], quoted=True))
    return None if any(value.find(unread) for unread in _UNREAD) else value


def _aggregated(trees: Sequence[exp.Expr], aggregates: Callable[[], set[str]]) -> bool:
    calls = [call for tree in trees for call in tree.find_all(exp.Func)]
    names = {name.lower() for call in calls for name in (
        [call.name] if isinstance(call, exp.Anonymous) else call.sql_names())}
    return any(isinstance(call, exp.AggFunc) for call in calls) or bool(names and names & aggregates())


class _Names:
    """The columns of a SELECT within a SELECT: its own table's come before those of the rows ``outer``.

    ``written``: what the SELECT calls its ``table``, which is called ``label`` in what this makes.
    """

    def __init__(self, outer: Parts, written: str, label: str, table: pa.Table):
        self._tables = {**outer, label: table}
        self._outer = {name: part.column_names for name, part in outer.items()}
        self._inner = {label: table.column_names}
        self._written, self._label = written.lower(), label

    def inside(self, tree: Any) -> Any:
        """``tree``, a part of the SELECT, with a table for each column; None if one is not found."""
        return self._named(tree, lambda c: self._of_table(c) or self._of(c, self._outer))

    def outside(self, tree: Any) -> Any:
        """The same for a part of the SELECT around it."""
        return self._named(tree, lambda c: self._of(c, self._outer))

    def has_no_null(self, tree: exp.Expr) -> bool:
        """True if ``tree``, of what this makes, is a number or text, or a column without NULL."""
        return isinstance(tree, exp.Literal) or (isinstance(tree, exp.Column) and not self._tables[
            tree.table].column(tree.name).null_count)

    def _of_table(self, column: exp.Column) -> tuple[str, str] | None:
        if column.table and column.table.lower() != self._written:
            return None
        found = self._of(exp.column(column.this.copy()), self._inner)
        if found is None and column.table:
            raise KeyError(column.sql())  # the table within hides one of this name without
        return found

    def _of(self, column: exp.Column, labels: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
        found = [(label, name) for label, names in labels.items() if not column.table or (
            column.table.lower() == label.lower()) for name in names if name.lower() == column.name.lower()]
        return found[0] if len(found) == 1 else None

    def _named(self, tree: Any, find: Callable[[exp.Column], tuple[str, str] | None]) -> Any:
        def named(node: Any) -> Any:
            if not isinstance(node, exp.Column):
                return node
            found = None if node.args.get("db") is not None or isinstance(node.this, exp.Star) else find(node)
            if found is None:
                raise KeyError(node.sql())
            return exp.column(exp.to_identifier(found[1], quoted=True), exp.to_identifier(found[0], quoted=True))

        with contextlib.suppress(KeyError):
            return tree.copy().transform(named)
        return None
