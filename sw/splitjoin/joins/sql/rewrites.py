"""Statements that say one join, in the form that has one plan: SELECTs in FROM that only name columns of their tables,
as parts of the SELECT around them; and joins of which one table only says which rows of the other there are, as SEMI
and ANTI joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from .plain_rows import columns_in
from .subqueries import has_no_null, has_query
from .trees import FromItem, FromJoin, conjunction, conjuncts

_READ = {"expressions", "from_", "joins", "where"}


def with_subqueries(tree: Any) -> Any:
    """``tree`` with the SELECTs of its WITH that it names once where it names them."""
    named = tree.args.get("with_")
    if named is None:
        return tree
    for table in list(named.expressions):
        own = {id(of) for of in table.this.find_all(exp.Table, exp.CTE)}
        said = [of for of in tree.find_all(exp.Table) if of.name.lower() == table.alias.lower() and id(of) not in own]
        others = [of.alias.lower() for of in tree.find_all(exp.CTE) if of is not table and id(of) not in own]
        # A name of another WITH could be one of other rows where this SELECT is to stand.
        inside = {of.name.lower() for of in table.this.find_all(exp.Table)} & {*others}
        hidden = table.alias.lower() in others
        if len(said) != 1 or inside or hidden or table.args.get("materialized") or table.args["alias"].args.get(
                "columns") or said[0].args.get("db") or not isinstance(said[0].parent, (exp.From, exp.Join)):
            continue
        node = said[0]
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        if alias.args.get("columns") or {name for name, value in node.args.items() if value} - {"this", "alias"}:
            continue
        node.replace(exp.Subquery(this=table.this.copy(), alias=alias))
        table.pop()
    if not named.expressions:
        tree.set("with_", None)
    return tree


def merged_query(outer: exp.Select, item: FromItem) -> exp.Select | None:
    """``outer``, whose FROM is ``item``, over the tables of the SELECT that this is; None where ``item`` says more than
    which columns of which rows, or its names are not known for sure.
    """
    inner, alias = item.query, item.node.args.get("alias")
    if not isinstance(inner, exp.Select) or any(value for name, value in inner.args.items() if name not in _READ) or (
            not inner.args.get("from_")) or any(item.node.args.get(name) for name in ("pivots", "sample")) or (
            alias is not None and alias.args.get("columns")):
        return None
    columns, items = dict[str, exp.Column](), dict[str, exp.Expr]()
    for one in inner.expressions:
        column, name = one.unalias(), one.alias_or_name.lower()
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star) or len(column.parts) != 2 or (
                name in columns):
            return None
        columns[name], items[name] = column, one
    made, label = outer.copy(), item.label.lower()
    made.set("from_", None)
    if made.find(exp.Columns) or any(of is not made for of in made.find_all(exp.Query)):
        return None
    aliases, listed = {of.alias.lower() for of in made.expressions if isinstance(of, exp.Alias)}, list[exp.Expr]()
    for one in made.expressions:
        star = one if isinstance(one, exp.Star) else one.this if isinstance(one, exp.Column) else None
        if isinstance(star, exp.Star) and any(star.args.values()):
            return None
        listed += list(items.values()) if star is one else [one]
    by = made.args["order"].expressions if made.args.get("order") else []
    for of in list(made.find_all(exp.Column)):
        if not of.table and of.name.lower() in aliases and any(of.parent is term for term in by):
            continue  # a term of ORDER BY alone, where an alias comes before a column of the tables
        if of.name.lower() not in columns or len(of.parts) > 2 or (of.table and of.table.lower() != label):
            return None
        if any(of is one for one in listed):
            listed = [items[of.name.lower()] if one is of else one for one in listed]
        else:
            of.replace(columns[of.name.lower()].copy())
    made.set("expressions", [one.copy() for one in listed])
    made.set("from_", inner.args["from_"].copy())
    made.set("joins", [join.copy() for join in inner.args.get("joins") or ()])
    where = [*conjuncts(inner.args["where"].this if inner.args.get("where") else None),
             *conjuncts(made.args["where"].this if made.args.get("where") else None)]
    condition = conjunction(term.copy() for term in where)
    made.set("where", None if condition is None else exp.Where(this=condition))
    return made


@dataclass
class WhereTerm:
    """A condition of WHERE, as it is written, and with a table for each column; None if that is not known."""

    tree: exp.Expr
    known: exp.Expr | None

    def is_of(self, labels: Iterable[str]) -> bool:
        """True if all its columns are of tables with these ``labels``, and it has some, and no SELECT."""
        if self.known is None or has_query(self.known):
            return False
        tables = {column.table for column in self.known.find_all(exp.Column)}
        return bool(tables) and tables <= {label.lower() for label in labels}


def without_from(select: exp.Select, where: Sequence[WhereTerm]) -> exp.Select:
    """``select`` with the conditions ``where``, and without tables."""
    condition = conjunction(term.tree.copy() for term in where)
    rest = exp.Select(**{name: [of.copy() for of in value] if isinstance(value, list) else value.copy()
                         for name, value in select.args.items() if value and name not in ("joins", "from_", "where")})
    rest.set("where", None if condition is None else exp.Where(this=condition))
    return rest


@dataclass(frozen=True)
class SemiJoin:
    """The SEMI or ANTI ``join`` of a table, ``first``, that a SELECT of a join of two tables says; ``where``: what is
    left of its WHERE. ``distinct``: True if the SELECT is to have DISTINCT and no groups. ``without_null``: the
    column that must have no NULL, None for none.
    """

    first: FromItem
    join: FromJoin
    where: list[WhereTerm]
    distinct: bool = False
    without_null: exp.Column | None = None


def semi_join(select: exp.Select, where: list[WhereTerm], first: FromItem, join: FromJoin,
              tables: Mapping[str, pa.Table], on: Callable[[], Sequence[exp.Expr | None]]) -> SemiJoin | None:
    """``select``, over ``first`` and the table of ``join``, as a join that only chooses rows of one of them; None where
    it says more of both. It asks for the different rows of an inner join's columns of one table, or for those rows of a
    LEFT JOIN that lack a value which every partner has.

    ``tables``: both, by their labels. ``on``: the conditions of ``join``, with a table for each column.
    """
    parts = list(tables.items())
    if join.how == "inner" and _is_distinct(select, tables):
        for items, (one, other) in (((first, join.item), parts), ((join.item, first), parts[::-1])):
            others = [term for term in where if term.is_of([one[0]])]
            partners = [term for term in where if not term.is_of([one[0]])]
            if all(term.is_of(tables) for term in partners) and not _says(other, without_from(select, others)):
                both = (*join.on, *(term.known for term in partners if term.known is not None))
                return SemiJoin(items[0], replace(join, how="semi", item=items[1], on=both), others, distinct=True)
    for n, term in enumerate(where if join.how == "left" else ()):
        column = term.known.this if isinstance(term.known, exp.Is) and isinstance(
            term.known.expression, exp.Null) else None
        others = [*where[:n], *where[n + 1:]]
        if isinstance(column, exp.Column) and column.table == parts[1][0].lower() and not _says(
                parts[1], without_from(select, others)):
            is_compared = _is_compared(column, on())
            if is_compared or has_no_null(column, {column.table: parts[1][1]}):
                return SemiJoin(first, replace(join, how="anti"), others,
                                without_null=None if is_compared else column)
    return None


def _is_distinct(select: exp.Select, tables: Mapping[str, pa.Table]) -> bool:
    """True if ``select`` asks for the different rows of its columns: by DISTINCT, or by groups that are these."""
    distinct, group = select.args.get("distinct"), select.args.get("group")
    listed, groups = ([columns_in(of.unalias(), tables) for of in part] for part in (
        select.expressions, [] if group is None else group.expressions))
    if None in (*listed, *groups) or any(select.args.get(name) for name in ("having", "qualify", "windows")):
        return False
    if group is None:
        return distinct is not None and not distinct.args.get("on")
    return not any(value for name, value in group.args.items() if name != "expressions") and {
        of for one in listed for of in one or ()} == {of for one in groups for of in one or ()}


def _says(second: tuple[str, pa.Table], rest: exp.Select) -> bool:
    """True if ``rest``, a SELECT without FROM, may say anything of the table ``second``."""
    if any(isinstance(star.parent, exp.Select) or (isinstance(star.parent, exp.Column) and star.parent.table.lower(
            ) == second[0].lower()) for star in rest.find_all(exp.Star)) or rest.find(exp.Columns):
        return True
    small = {name.lower() for name in second[1].column_names}
    return any(column.table.lower() == second[0].lower() if column.table else column.name.lower() in small
               for column in rest.find_all(exp.Column))


def _is_compared(column: exp.Column, on: Sequence[exp.Expr | None]) -> bool:
    """True if no row of which the conditions ``on`` are true has NULL in ``column``."""
    return any(isinstance(tree, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)) and column in (tree.this, tree.expression)
               for tree in on)
