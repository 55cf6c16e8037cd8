"""Conditions of WHERE on the rows of a SELECT, such as ``NOT EXISTS (SELECT …)``, as semi and anti joins with them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any, Literal

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from splitjoin.base.errors import InputError, StatementError

from .clauses import boolean_terms, clauses, common_tables, conjuncts, quoted, select_first, set_operands, tokens_of
from .from_clause import from_trees
from .parts import outer_tokens

__all__ = ["Correlated", "Database", "Parts", "SubqueryJoin", "correlated", "has_subquery", "is_aggregated",
           "may_join", "subquery_join", "with_marks"]

T = TokenType
#: Tables of rows by the label that their columns are written with.
Parts = Mapping[str, pa.Table]
#: The parts of a SELECT that is read as it is: its list, its FROM, its WHERE, and DISTINCT, as it says nothing of rows
#: that are only looked for.
_READ = {"expressions", "from_", "where", "distinct"}
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
#: Values whose number is not that of the rows, or that are no single ones.
_UNREAD = (exp.Query, exp.Window, exp.Star, exp.Tuple, exp.Explode, exp.Unnest, exp.UDTF)
#: The trees that have a SELECT for a table.
_TABLES = (exp.From, exp.Join, exp.CTE, exp.SetOperation, exp.Subquery)
_QUERIES = (T.SELECT, T.WITH, T.FROM, T.VALUES)
#: The most joins that NOT IN with NULL in several columns is made of.
_MOST_STEPS = 16


@dataclass(frozen=True)
class Database:
    """The database that runs the subqueries of a condition.

    ``tables``: those that a subquery may name, by names in lower case. ``rows`` runs a subquery. ``columns`` gives the
    names of a subquery's columns, None if it is correlated. ``aggregates``: names of aggregate functions in lower case.
    ``single``: True if no subquery runs before the join.
    """

    tables: Parts
    rows: Callable[[str], pa.Table]
    columns: Callable[[str], list[str] | None]
    aggregates: Callable[[], set[str]]
    single: bool = False


@dataclass(frozen=True)
class SubqueryJoin:
    """A semi or anti join (``how``) of the rows so far with ``table``, under a ``label`` that none of them has.

    All of ``conditions`` decide of a pair, and one of each of the ``alternatives``: a comparison, and behind it, as NOT
    IN has them, conditions on NULL.
    """

    how: Literal["semi", "anti"]
    table: pa.Table
    label: str
    conditions: tuple[str, ...]
    alternatives: tuple[tuple[str, ...], ...] = ()

    def steps(self, *, one: bool) -> list[tuple[str, ...]]:
        """The conditions of the joins that it is made of, one after the other: an index finds equal values, but not
        equal ones or NULL. With ``one`` it is one join in any case.
        """
        chosen = list(product(*self.alternatives))
        if one or len(chosen) > _MOST_STEPS:
            chosen = [tuple(" OR ".join(of) for of in self.alternatives)]
        return [(*self.conditions, *of) or ("TRUE",) for of in chosen]


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


def has_subquery(conditions: Iterable[str]) -> bool:
    """True if a term of ``conditions`` is on the rows of a SELECT, so that it may be a join."""
    found = list[str]()

    def marked(term: str) -> None:
        if _quantified(term) is not None:
            found.append(term)

    for condition in conditions:
        with_marks(condition, marked)
    return bool(found)


def may_join(text: str, *, unread: bool = True) -> bool:
    """True if ``text`` joins tables, in any of its parts, or may do so by a SELECT in a value; ``unread`` if it cannot
    be read.
    """
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
        return tree.find(exp.Join) is not None or any(
            query.parent is not None and not isinstance(query.parent, _TABLES) for query in tree.find_all(exp.Query))
    except (SqlglotError, RecursionError):
        return unread


def with_marks(condition: str, mark: Callable[[str], str | None]) -> str:
    """``condition`` with the text that ``mark`` gives for each term between AND, OR and NOT, where it gives one.

    A condition of WHERE must be true. So no NOT is left in front of parentheses: ``mark`` gets its terms negated, and
    what it gives may be false where the term is NULL.
    """
    def made(tokens: Sequence[Any], negated: bool) -> str:
        for kind, joint in ((T.OR, (" OR ", " AND ")), (T.AND, (" AND ", " OR "))):
            terms = boolean_terms(tokens, kind)
            if len(terms) > 1:
                return f"({joint[negated].join(made(term, negated) for term in terms)})"
        if len(tokens) > 1 and tokens[0].token_type == T.NOT:
            return made(tokens[1:], not negated)
        inside = _in_parentheses(tokens)
        if inside and inside[0].token_type not in _QUERIES:
            return made(inside, negated)
        term = condition[tokens[0].start:tokens[-1].end + 1] if tokens else ""
        term = f"NOT ({term})" if negated else term
        return mark(term) or f"({term})"

    return made(tokens_of(condition), False)


def subquery_join(condition: str, outer: Parts, db: Database) -> SubqueryJoin | None:
    """The join that is ``condition``, on the rows ``outer``; None where it is none.

    A SELECT that says nothing of ``outer`` is run first. Of others, the joins in FROM, with the conditions on their
    tables, are run first. Raises `InputError` for a table that is not given.
    """
    found = _quantified(condition)
    if found is None:
        return None
    one = _one_table(found.query)
    if one is not None:
        named = one.args["from_"].this
        table = db.tables.get(named.name.lower())
        if table is None:
            raise InputError(f"the table {named.name!r} of the statement is not given; its rows are given under its "
                             f"name")
        names = _Names(outer, {named.alias or named.name: {name: name for name in table.column_names}})
        where = one.args.get("where")
        terms = [] if where is None else where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
        join = _join(found, names, terms, one.expressions, lambda: table, db)
        if join is not None:
            return join
    text = None if db.single else _query_text(condition)
    if text is None:
        return None
    columns = db.columns(text)
    if columns is None:
        made = correlated(text, outer, db)
        return None if made is None else _join(found, made.names, made.terms, made.listed, made.rows, db)
    if found.values and len(found.values) != len(columns):
        return None
    rows = db.rows(text)
    numbered = [f"c{n}" for n in range(rows.num_columns)]
    names = _Names(outer, {"q": {name: name for name in numbered}})
    return _join(found, names, [], [exp.column(name) for name in numbered[:len(found.values)]],
                 lambda: rows.rename_columns(numbered), db)


@dataclass(frozen=True)
class Correlated:
    """A SELECT that names columns of the rows around it in its list and WHERE alone.

    ``terms``: the conditions with such columns; ``listed``: its list; ``rows`` runs its FROM with its other conditions.
    """

    names: _Names
    terms: Sequence[exp.Expr]
    listed: Sequence[exp.Expr]
    rows: Callable[[], pa.Table]
    is_distinct: bool


def correlated(text: str, outer: Parts, db: Database) -> Correlated | None:
    """The SELECT ``text`` within one over the rows ``outer``; None for one that names their columns elsewhere too."""
    with contextlib.suppress(StatementError, SqlglotError, RecursionError):
        text = select_first(text)
        if common_tables(text)[0] or set_operands(text):
            return None
        select = clauses(text)
        tree: Any = sqlglot.parse_one(text, dialect="duckdb")
        distinct = tree.args.get("distinct")
        if select.within(select.tail) or any(value for name, value in tree.args.items() if name not in (
                *_READ, "joins")) or (distinct is not None and distinct.args.get("on")):
            return None
        source, inner = text[select.source], dict[str, dict[str, str]]()
        for item in (item for of in from_trees(select) for item in of.items()):
            columns = db.columns(f"SELECT {quoted(item.label)}.* FROM {source}") if item.label else None
            if columns is None or item.label in inner:
                return None
            inner[item.label] = {name: f"c{len(inner)}_{n}" for n, name in enumerate(columns)}
        inside, terms = list[str](), list[exp.Expr]()
        for condition in conjuncts(select, select.where):
            if db.columns(f"SELECT 1 FROM {source} WHERE {condition}") is not None:
                inside.append(condition)
            else:
                terms.append(sqlglot.parse_one(condition, dialect="duckdb"))
        if any(term.find(exp.Query) for term in terms):
            return None
        names = _Names(outer, inner)

        def rows() -> pa.Table:
            listed = ", ".join(f"{quoted(label)}.{quoted(name)} AS {inner[label][name]}" for label, name in names.used)
            where = f" WHERE {' AND '.join(f'({term})' for term in inside)}" if inside else ""
            return db.rows(f"SELECT {listed or '1 AS c'} FROM {source}{where}")

        return Correlated(names, terms, tree.expressions, rows, distinct is not None)
    return None


def _join(found: _Quantified, names: _Names, terms: Iterable[exp.Expr], listed: Sequence[exp.Expr],
          rows: Callable[[], pa.Table], db: Database) -> SubqueryJoin | None:
    """The join by ``found`` and all of ``terms``, with the ``rows``, of which ``listed`` are the values."""
    where = [names.inside(term) for term in terms]
    if not found.values:
        if not all(isinstance(e.unalias(), (exp.Star, exp.Column, exp.Literal, exp.Null)) for e in listed):
            return None
        listed = []
    elif len(listed) == 1 and isinstance(listed[0], exp.Star) and not any(listed[0].args.values()):
        listed = names.all_columns()
    if len(listed) != len(found.values) or any(value.unalias().find(unread) for value in (
            *found.values, *listed) for unread in _UNREAD):
        return None
    pairs = [(names.outside(value), names.inside(of.unalias())) for value, of in zip(found.values, listed, strict=True)]
    sides = [side for pair in pairs for side in pair]
    if None in where or None in sides or is_aggregated([*where, *sides], db.aggregates):
        return None
    table = rows()
    alternatives = []
    for pair in pairs:
        compared: exp.Expr = found.compared(this=exp.Paren(this=pair[0]), expression=exp.Paren(this=pair[1]))
        of = [exp.Not(this=exp.Paren(this=compared)) if found.negated else compared]
        of += [exp.Is(this=exp.Paren(this=side), expression=exp.Null()) for side in pair
               if found.nulls and not names.has_no_null(side, table)]
        alternatives.append(tuple(tree.sql("duckdb") for tree in of))
    return SubqueryJoin(found.how, table, names.label, tuple(tree.sql("duckdb") for tree in where),
                        tuple(alternatives))


def _quantified(condition: str) -> _Quantified | None:
    """``condition`` as what it says of the rows of a SELECT. IN is ``= ANY``.

    A condition of WHERE must be true. So NOT IN asks that no comparison is true or NULL, ``< ALL`` that none is false
    or NULL, and ``NOT x < ALL (…)`` that one is false.
    """
    if "(" not in condition:
        return None
    with contextlib.suppress(SqlglotError, RecursionError):
        tree: Any = sqlglot.parse_one(condition, dialect="duckdb")
        positive = True
        kind: type[exp.Expr] = exp.EQ
        while isinstance(tree, (exp.Not, exp.Paren)):
            positive ^= isinstance(tree, exp.Not)
            tree = tree.this
        how: Literal["semi", "anti"] = "semi" if positive else "anti"
        if isinstance(tree, exp.Exists):
            return _Quantified(query, how) if (query := _query(tree.this)) is not None else None
        if isinstance(tree, exp.In):
            value, query, every = tree.this, _query(tree.args.get("query") or tree.expressions[:1]), False
        elif isinstance(tree, _COMPARED) and isinstance(tree.expression, (exp.Any, exp.All)):
            value, query, kind = tree.this, _query(tree.expression.this), type(tree)
            every = isinstance(tree.expression, exp.All)
        else:
            return None
        several = isinstance(tree, exp.In) and isinstance(value, exp.Tuple)
        values = tuple(value.expressions) if several else (value,)
        if query is None or not values or any(value.find(unread) for value in values for unread in _UNREAD):
            return None
        if every:
            return _Quantified(query, "anti" if positive else "semi", values, kind, True, positive)
        return _Quantified(query, how, values, kind, False, not positive)
    return None


def _query(tree: Any) -> exp.Query | exp.Values | None:
    if isinstance(tree, list):  # what IN has in parentheses, which is read as a list of values
        return tree[0] if tree and isinstance(tree[0], exp.Values) else None
    tree = tree.unnest() if isinstance(tree, (exp.Subquery, exp.Paren)) else tree
    return tree if isinstance(tree, exp.Query) else None


def _one_table(tree: exp.Query | exp.Values) -> exp.Select | None:
    """The SELECT ``tree`` if it has a named table in FROM, without a list of columns, and WHERE alone."""
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


def _query_text(condition: str) -> str | None:
    """The text of the SELECT at the end of ``condition``, without the parentheses around it."""
    tokens = tokens_of(condition)
    while True:
        inside = tokens[1:] if tokens and tokens[0].token_type == T.NOT else _in_parentheses(tokens)
        if not inside:
            break
        tokens = inside
    outer = outer_tokens(tokens)[0]
    if len(outer) < 2 or (outer[-2].token_type, outer[-1].token_type) != (T.L_PAREN, T.R_PAREN):
        return None
    within = [t for t in tokens if outer[-2].end < t.start < outer[-1].start]
    while inside := _in_parentheses(within):
        within = inside
    return condition[within[0].start:within[-1].end + 1] if within else None


def _in_parentheses(tokens: Sequence[Any]) -> list[Any]:
    """The tokens within the parentheses around all of ``tokens``; none without such parentheses."""
    outer = outer_tokens(list(tokens))[0]
    around = len(outer) == 2 and len(tokens) > 2 and outer[0].token_type == T.L_PAREN
    return list(tokens[1:-1]) if around else []


def is_aggregated(trees: Sequence[exp.Expr], aggregates: Callable[[], set[str]]) -> bool:
    """True if there is a function in ``trees`` whose value is of several rows, one of ``aggregates`` or another."""
    calls = [call for tree in trees for call in tree.find_all(exp.Func)]
    names = {name.lower() for call in calls for name in (
        [call.name] if isinstance(call, exp.Anonymous) else call.sql_names())}
    return any(isinstance(call, exp.AggFunc) for call in calls) or bool(names and names & aggregates())


class _Names:
    """The columns of a SELECT within a SELECT: those of its own tables come before those of the rows ``outer``.

    ``inner``: its tables, as it calls them, with the name of each column in the rows that are joined.

    Attributes:
        label: What these rows are called, in what this makes.
        used: The columns of its own tables that were found.
    """

    def __init__(self, outer: Parts, inner: Mapping[str, Mapping[str, str]]):
        self._parts, self._inner = outer, inner
        self._outer = {label: {name: name for name in part.column_names} for label, part in outer.items()}
        small, written = {label.lower() for label in outer}, next(iter(inner))
        self.label = written if written.lower() not in small else next(
            name for n in count(2) if (name := f"{written}_{n}").lower() not in small)
        self.used = dict[tuple[str, str], None]()

    def inside(self, tree: Any) -> Any:
        """``tree``, a part of the SELECT, with a table for each column; None if one is not found."""
        return self._named(tree, self._of_select)

    def outside(self, tree: Any) -> Any:
        """The same for a part of the SELECT around it."""
        return self._named(tree, lambda c: self._of(c, self._outer))

    def all_columns(self) -> list[exp.Expr]:
        """The columns that a star stands for, where there is one table."""
        if len(self._inner) > 1:
            return []
        return [exp.column(exp.to_identifier(name, quoted=True)) for name in next(iter(self._inner.values()))]

    def has_no_null(self, tree: exp.Expr, table: pa.Table) -> bool:
        """True if ``tree``, of what this makes, is a number or text, or a column without NULL; ``table`` are the rows
        that are joined.
        """
        return isinstance(tree, exp.Literal) or (isinstance(tree, exp.Column) and not {
            **self._parts, self.label: table}[tree.table].column(tree.name).null_count)

    def _of_select(self, column: exp.Column) -> tuple[str, str] | None:
        if column.table and column.table.lower() not in {label.lower() for label in self._inner}:
            return self._of(column, self._outer)
        found = self._of(column, self._inner)
        if found is None:
            if column.table or any(name.lower() == column.name.lower() for of in self._inner.values() for name in of):
                raise KeyError(column.sql())  # the table within hides one of this name without; or several have it
            return self._of(column, self._outer)
        label, name = next((label, name) for label, of in self._inner.items() for name in of
                           if (label, of[name]) == found)
        self.used[label, name] = None
        return self.label, found[1]

    def _of(self, column: exp.Column, labels: Mapping[str, Mapping[str, str]]) -> tuple[str, str] | None:
        found = [(label, made) for label, names in labels.items() if not column.table or (
            column.table.lower() == label.lower()) for name, made in names.items()
            if name.lower() == column.name.lower()]
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
