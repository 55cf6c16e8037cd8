"""A SELECT within a SELECT as a join: conditions of WHERE on its rows, such as ``NOT EXISTS (SELECT …)``, as semi and
anti joins, and SELECTs that are values, such as ``(SELECT avg(s.a) FROM s WHERE s.k = r.k)``, as columns of the rows
around them.

All trees are those of `qualified`: each column has its table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, product
from typing import Any, Literal

import pyarrow as pa
from sqlglot import exp

from .trees import conjunction, conjuncts, named_column

#: Tables of rows by the label that their columns are written with.
Parts = Mapping[str, pa.Table]
#: The parts of a SELECT that is read as it is: its list, its FROM, its WHERE, and DISTINCT, as it says nothing of rows
#: that are only looked for.
_READ = {"expressions", "from_", "joins", "where", "distinct"}
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_INEQUALITIES = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_NEGATED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
#: Comparisons of a count with a number → whether they say that there are rows, or that there are none.
_COUNTS: dict[tuple[type[exp.Expr], str], bool] = {
    (exp.GT, "0"): True, (exp.GTE, "1"): True, (exp.NEQ, "0"): True, (exp.EQ, "0"): False, (exp.LT, "1"): False,
           (exp.LTE, "0"): False}
#: Values whose number is not that of the rows, or that are no single ones.
_UNREAD = (exp.Query, exp.Window, exp.Star, exp.Tuple, exp.Explode, exp.Unnest, exp.UDTF)
#: The most joins that NOT IN with NULL in several columns is made of.
_MOST_STEPS = 16


@dataclass(frozen=True)
class Database:
    """The database that runs the subqueries of a condition.

    ``tables``: those that a subquery may name, by names in lower case. ``rows`` runs a subquery. ``aggregates``: names
    of aggregate functions in lower case. ``single``: True if no subquery runs before the join.
    """

    tables: Parts
    rows: Callable[[exp.Expr], pa.Table]
    aggregates: Callable[[], frozenset[str]]
    single: bool = False


@dataclass(frozen=True)
class InnerRows:
    """The rows of a SELECT, which those around it are joined with: ``conditions`` on both, and ``listed``, its list,
    over columns of ``label``, which none of those around it is. ``made``: makes the table.
    """

    label: str
    conditions: tuple[exp.Expr, ...]
    listed: Sequence[exp.Expr]
    made: Callable[[], pa.Table]
    is_distinct: bool = False

    @cached_property
    def table(self) -> pa.Table:
        """The rows themselves, which are computed when they are asked for first."""
        return self.made()


@dataclass(frozen=True)
class SubqueryJoin:
    """A semi or anti join (``how``) with the ``inner`` rows.

    All of its conditions decide of a pair, and one of each of the ``alternatives``: a comparison, and behind it, as NOT
    IN has them, conditions on NULL; but none on the columns ``without_null``.
    """

    inner: InnerRows
    how: Literal["semi", "anti"]
    alternatives: tuple[tuple[exp.Expr, ...], ...] = ()
    without_null: tuple[exp.Column, ...] = ()

    def steps(self, *, one: bool) -> list[tuple[exp.Expr, ...]]:
        """The conditions of the joins that it is made of, one after the other: an index finds equal values, but not
        equal ones or NULL. With ``one`` it is one join in any case.
        """
        chosen = list(product(*self.alternatives))
        if one or len(chosen) > _MOST_STEPS:
            chosen = [tuple(exp.or_(*of) for of in self.alternatives)]
        return [(*self.inner.conditions, *of) or (exp.true(),) for of in chosen]


@dataclass(frozen=True)
class SubqueryValue:
    """The ``value`` of those ``inner`` rows that meet all conditions with a row around the SELECT. ``folds``: True if
    it is one of all these rows; else there must be one row at most.
    """

    inner: InnerRows
    value: exp.Expr
    folds: bool


@dataclass(frozen=True)
class SubqueryNearest:
    """The one of the ``inner`` rows with the greatest or the least value of a column that meets all conditions with a
    row around the SELECT, one of which bounds this column: an as-of join. ``names``: the columns of its list in the
    table; ``called``: the names that these have.
    """

    inner: InnerRows
    names: tuple[str, ...]
    called: tuple[str, ...]

    def listed(self, table: pa.Table) -> pa.Table:
        """The columns of the list out of those of ``table``."""
        return table.select(list(self.names)).rename_columns(list(self.called))


@dataclass(frozen=True)
class _Quantified:
    """A condition on the rows of ``query``: ``how`` says whether there must be one ("semi"), or none ("anti"), of which
    it is true that ``values`` are ``compared`` with its own, or with ``negated`` that they are not. EXISTS has none.

    ``nulls``: True if a comparison with NULL rules a row out as well.
    """

    query: exp.Query | exp.Values
    how: Literal["semi", "anti"]
    values: tuple[exp.Expr, ...] = ()
    compared: type[exp.Expr] = exp.EQ
    negated: bool = False
    nulls: bool = False


def has_query(tree: exp.Expr | None) -> bool:
    """True if there is a SELECT in ``tree``."""
    return tree is not None and tree.find(exp.Query, exp.Values) is not None


def is_exists(term: exp.Expr) -> bool:
    """True if ``term`` says whether a SELECT has rows, which is never NULL."""
    return (found := _quantified(term)) is not None and not found.values


def tests_and_values(tree: exp.Expr) -> Iterator[tuple[exp.Expr, bool]]:
    """The largest parts of ``tree`` that are tests on the rows of a SELECT, and SELECTs that are values; True for the
    tests.
    """
    if isinstance(tree, exp.Exists) or _quantified(tree) is not None:
        yield tree, True
    elif isinstance(tree, exp.Subquery):
        yield tree, False
    elif not isinstance(tree, exp.Query):
        for child in list(tree.iter_expressions()):
            yield from tests_and_values(child)


def with_marks(tree: exp.Expr, mark: Callable[[exp.Expr], exp.Expr | None], *, negated: bool = False) -> exp.Expr:
    """The condition ``tree`` with what ``mark`` gives for each term between AND, OR and NOT, where it gives one.

    A condition of WHERE must be true. So no NOT is left in front of parentheses: ``mark`` gets its terms negated, and
    what it gives may be false where the term is NULL.
    """
    if isinstance(tree, (exp.Paren, exp.Not)):
        return with_marks(tree.this, mark, negated=negated ^ isinstance(tree, exp.Not))
    if isinstance(tree, (exp.And, exp.Or)):
        joint = exp.And if isinstance(tree, exp.And) ^ negated else exp.Or
        a, b = (with_marks(part, mark, negated=negated) for part in (tree.this, tree.expression))
        return exp.Paren(this=joint(this=a, expression=b))
    term = exp.Not(this=exp.Paren(this=tree.copy())) if negated else tree.copy()
    return mark(term) or exp.Paren(this=term)


def subquery_join(term: exp.Expr, outer: Parts, db: Database) -> SubqueryJoin | None:
    """The join that is ``term``, on the rows ``outer``; None where it is none.

    A SELECT that says nothing of ``outer`` is run first. Of others, the joins in FROM, with the conditions on their
    tables, are run first.
    """
    found = _quantified(term)
    if found is None or not _of_outer(found.values, outer):
        return None
    made = _inner(found.query, outer, db)
    if made is None:
        return None
    listed, conditions = made.listed, made.conditions
    if not found.values:
        if not all(isinstance(e.unalias(), (exp.Star, exp.Column, exp.Literal, exp.Null)) for e in listed):
            return None
        said, listed = [c for e in listed for c in e.find_all(exp.Column) if not isinstance(c.this, exp.Star)], []
    else:
        said = []
    values = [value.unalias() for value in listed]
    if len(values) != len(found.values) or any(value.find(*_UNREAD) for value in (*found.values, *values)) or (
            is_aggregated([*conditions, *found.values, *values], db.aggregates)):
        return None
    parts = {**{label.lower(): part for label, part in outer.items()}, made.label.lower(): made.table}
    alternatives, without_null = [], list[exp.Column]()
    if any(c.table and c.name.lower() not in map(str.lower, parts[c.table.lower()].column_names) for c in said):
        return None  # whose error is DuckDB's
    for pair in zip(found.values, values, strict=True):
        kind = _NEGATED[found.compared] if found.negated else found.compared
        of: list[exp.Expr] = [kind(this=exp.Paren(this=pair[0].copy()), expression=exp.Paren(this=pair[1].copy()))]
        for side in pair if found.nulls else ():
            if isinstance(side, exp.Column) and has_no_null(side, parts):
                without_null.append(side)
            elif not isinstance(side, exp.Literal):
                of.append(exp.Is(this=exp.Paren(this=side.copy()), expression=exp.Null()))
        alternatives.append(tuple(of))
    return SubqueryJoin(made, found.how, tuple(alternatives), tuple(without_null))


def subquery_value(query: exp.Expr, outer: Parts, db: Database) -> SubqueryValue | None:
    """The value that the SELECT ``query`` has for each of the rows ``outer``; None where it says nothing of them, or
    says it elsewhere than in its WHERE.
    """
    if db.single or not isinstance(query, exp.Select) or not any(is_outer(c, outer) for c in query.find_all(
            exp.Column)):
        return None
    found = _inner(query, outer, db)
    if found is None or len(found.listed) != 1 or found.listed[0].find(exp.Query, exp.Window, exp.Explode, exp.Unnest,
                                                                      exp.UDTF):
        return None
    value = found.listed[0].unalias()
    if is_aggregated(found.conditions, db.aggregates) or any(
            column.table != found.label for column in value.find_all(exp.Column)):
        return None
    folds = is_aggregated([value], db.aggregates)
    if found.is_distinct and not folds:
        return None
    return SubqueryValue(found, value, folds)


def subquery_nearest(query: exp.Expr, outer: Parts, db: Database) -> SubqueryNearest | None:
    """The row that the SELECT ``query``, with ORDER BY and LIMIT 1, has for each of the rows ``outer``, or the greatest
    or least value that it has; None where that is no as-of join.
    """
    if db.single or not isinstance(query, exp.Select):
        return None
    query, order, limit = query.copy(), query.args.get("order"), query.args.get("limit")
    if order is None:
        extreme = query.expressions[0].unalias() if len(query.expressions) == 1 else None
        if limit is not None or not isinstance(extreme, (exp.Max, exp.Min)) or extreme.expressions:
            return None
        by, last = extreme.this, isinstance(extreme, exp.Max)
        query.set("expressions", [by.copy()])
    else:
        number: Any = limit.args.get("expression") if isinstance(limit, exp.Limit) else None
        if number is None or number.parent.args.get("limit_options") or number.name != "1" or len(
                order.expressions) != 1:
            return None
        by, last = order.expressions[0].this, bool(order.expressions[0].args.get("desc"))
    query.set("order", None)
    query.set("limit", None)
    query.append("expressions", by.copy())
    found = _inner(query, outer, db)
    if found is None or found.is_distinct:
        return None
    listed: list[Any] = [of.unalias() for of in found.listed]
    if not all(isinstance(of, exp.Column) and of.table == found.label and not isinstance(of.this, exp.Star)
               for of in listed):
        return None
    bound, names = listed.pop(), tuple(of.name for of in listed)
    kinds = (exp.LT, exp.LTE) if last else (exp.GT, exp.GTE)
    bounds = [term for term in found.conditions if isinstance(term, _INEQUALITIES)]
    if len(bounds) != 1:
        return None  # an as-of join has one
    sides = [bounds[0].this, bounds[0].expression]
    kind = type(bounds[0]) if sides[0] == bound else _SWAPPED[type(bounds[0])]
    said = {of.table for side in sides if side != bound for of in side.find_all(exp.Column)}
    if bound not in sides or kind not in kinds or not said or found.label in said:
        return None
    return SubqueryNearest(found, names, names)


def is_aggregated(trees: Sequence[exp.Expr], aggregates: Callable[[], frozenset[str]]) -> bool:
    """True if there is a function in ``trees`` whose value is of several rows, one of ``aggregates`` or another."""
    calls = [call for tree in trees for call in tree.find_all(exp.Func) if not isinstance(call, exp.Connector)]
    names = {name.lower() for call in calls for name in (
        [call.name] if isinstance(call, exp.Anonymous) else call.sql_names())}
    return any(isinstance(call, exp.AggFunc) for call in calls) or bool(names and names & aggregates())


def _quantified(tree: Any) -> _Quantified | None:
    """``tree`` as what it says of the rows of a SELECT. IN is ``= ANY``.

    A condition of WHERE must be true. So NOT IN asks that no comparison is true or NULL, ``< ALL`` that none is false
    or NULL, and ``NOT x < ALL (…)`` that one is false.
    """
    positive = True
    kind: type[exp.Expr] = exp.EQ
    while isinstance(tree, (exp.Not, exp.Paren)):
        positive ^= isinstance(tree, exp.Not)
        tree = tree.this
    how: Literal["semi", "anti"] = "semi" if positive else "anti"
    if isinstance(tree, exp.Exists):
        return _Quantified(query, how) if (query := _query(tree.this)) is not None else None
    if (counted := _counted(tree)) is not None:
        return _Quantified(counted[0], how if counted[1] else "anti" if positive else "semi")
    if isinstance(tree, exp.In):
        value, query, every = tree.this, _query(tree.args.get("query") or tree.expressions[:1]), False
    elif isinstance(tree, _COMPARED) and isinstance(tree.expression, (exp.Any, exp.All)):
        value, query, kind = tree.this, _query(tree.expression.this), type(tree)
        every = isinstance(tree.expression, exp.All)
    else:
        return None
    several = isinstance(tree, exp.In) and isinstance(value, exp.Tuple)
    values = tuple(value.expressions) if several else (value,)
    if query is None or not values or any(value.find(*_UNREAD) for value in values):
        return None
    if every:
        return _Quantified(query, "anti" if positive else "semi", values, kind, True, positive)
    return _Quantified(query, how, values, kind, False, not positive)


def _counted(tree: Any) -> tuple[exp.Select, bool] | None:
    """The SELECT of whose rows ``tree`` says, by their count, that there is one (True) or none (False)."""
    if not isinstance(tree, _COMPARED):
        return None
    sides = [part.unnest() for part in (tree.this, tree.expression)]
    kind = type(tree) if isinstance(sides[1], exp.Literal) else _SWAPPED.get(type(tree), type(tree))
    query, number = sides if isinstance(sides[1], exp.Literal) else reversed(sides)
    some = None if not isinstance(number, exp.Literal) or number.is_string else _COUNTS.get((kind, number.name))
    if some is None or not isinstance(query, exp.Select) or len(query.expressions) != 1 or any(
            value for name, value in query.args.items() if name not in ("expressions", "from_", "joins", "where")):
        return None
    count = query.expressions[0].unalias()
    if not isinstance(count, exp.Count) or not isinstance(count.this, (exp.Star, exp.Literal)) or count.expressions:
        return None
    query = query.copy()
    query.set("expressions", [exp.Literal.number(1)])
    return query, some


def _query(tree: Any) -> exp.Query | exp.Values | None:
    if isinstance(tree, list):  # what IN has in parentheses, which is read as a list of values
        return tree[0] if tree and isinstance(tree[0], exp.Values) else None
    tree = tree.unnest() if isinstance(tree, (exp.Subquery, exp.Paren)) else tree
    return tree if isinstance(tree, exp.Query) else None


def _inner(query: exp.Expr, outer: Parts, db: Database) -> InnerRows | None:
    """The rows of ``query`` within one over the rows ``outer``; None for one that names their columns elsewhere than in
    its list and WHERE, and where it is not known whose column one is.
    """
    for column in query.find_all(exp.Column):
        if not column.table and not isinstance(column.this, exp.Star):
            return None
        column.meta["outer"] = is_outer(column, outer)  # what copies of its parts do not show
    found = _of_rows(query, outer, db)
    if found is not None or db.single or any(is_outer(c, outer) for c in query.find_all(exp.Column)):
        return found
    rows = db.rows(query)  # which says nothing of those around it
    numbered, label = [f"c{n}" for n in range(rows.num_columns)], _free("q", outer)
    return InnerRows(label, (), [named_column(label, name) for name in numbered],
                     lambda: rows.rename_columns(numbered))


def _of_rows(query: exp.Expr, outer: Parts, db: Database) -> InnerRows | None:
    """``query`` as a table in FROM, or several, with a list and conditions, which alone may be of ``outer`` as well."""
    distinct = query.args.get("distinct")
    if not isinstance(query, exp.Select) or any(value for name, value in query.args.items() if name not in _READ) or (
            not query.args.get("from_") or (distinct is not None and distinct.args.get("on"))):
        return None
    source, joins = query.args["from_"], query.args.get("joins") or []
    sources = [source.this, *(join.this for join in joins)]
    labels = [one.alias_or_name for one in sources]
    if len({*labels} - {""}) < len(sources) or any(one.args.get("joins") for one in sources) or any(
            is_outer(c, outer) for part in (source, *joins) for c in part.find_all(exp.Column)):
        return None
    terms, inside = list(conjuncts(query.args["where"].this if query.args.get("where") else None)), list[exp.Expr]()
    one = sources[0] if len(sources) == 1 and isinstance(sources[0], exp.Table) else None
    if one is not None and not (isinstance(one.this, exp.Identifier) and not any(
            value for name, value in one.args.items() if name not in ("this", "alias")) and not any(
            map(has_query, terms)) and not one.args["alias"].args.get("columns")):
        one = None
    correlated = any(is_outer(c, outer) for c in query.find_all(exp.Column))
    if one is None:
        if not correlated or db.single:
            return None
        inside = [term for term in terms if not any(is_outer(c, outer) for c in term.find_all(exp.Column))]
        terms = [term for term in terms if not any(term is of for of in inside)]
        if any(map(has_query, terms)):
            return None
    label = _free(labels[0], outer)
    names = dict[tuple[str, str], str]()  # of the columns of the rows
    table = None if one is None else db.tables[one.name.lower()]
    exact = {} if table is None else {name.lower(): name for name in table.column_names}

    def own(node: Any) -> Any:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.meta["outer"]:
            return node
        of = (node.table, node.name)
        name = exact.get(node.name, node.name) if one is not None else names.setdefault(of, f"c{len(names)}")
        return named_column(label, name)

    conditions = tuple(term.copy().transform(own) for term in terms)
    listed = [value.copy().transform(own) for value in query.expressions]

    def rows() -> pa.Table:
        if table is not None:
            return table
        items = [exp.Alias(this=named_column(*of), alias=exp.to_identifier(name)) for of, name in names.items()] or [
            exp.Alias(this=exp.Literal.number(1), alias=exp.to_identifier("c"))]
        where = conjunction(term.copy() for term in inside)
        return db.rows(exp.Select(expressions=items, from_=source.copy(), joins=[join.copy() for join in joins],
                                  where=None if where is None else exp.Where(this=where)))

    return InnerRows(label, conditions, listed, rows, distinct is not None)


def is_outer(column: exp.Column, outer: Parts) -> bool:
    """True if ``column``, within a SELECT, is of the rows ``outer`` around it, and of no table of a SELECT between."""
    if column.table not in {label.lower() for label in outer}:
        return False
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for source in [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())] if (
                select.args.get("from_")) else []:
            if source.alias_or_name == column.table:
                return False
        select = select.find_ancestor(exp.Select)
    return True


def _of_outer(trees: Sequence[exp.Expr], outer: Parts) -> bool:
    return all(is_outer(column, outer) for tree in trees for column in tree.find_all(exp.Column))


def _free(written: str, outer: Parts) -> str:
    """``written``, or a name like it that no table of ``outer`` has."""
    small = {label.lower() for label in outer}
    return next(name for n in count(1) if (name := written if n == 1 else f"{written}_{n}").lower() not in small)


def has_no_null(column: exp.Column, parts: Parts) -> bool:
    """True if ``column`` of ``parts``, by labels in lower case, is without NULL."""
    table = parts[column.table.lower()]
    return not any(table.column(name).null_count for name in table.column_names if name.lower() == column.name.lower())
