"""Conditions and values of a SELECT as IR: columns are written with the names that the statement gives its tables; and
the comparison of times in an ASOF JOIN: in ON, as DuckDB has it, or in MATCH_CONDITION, as Snowflake has it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from splitjoin.base.errors import PredicateError, SchemaError, StatementError
from splitjoin.lang import build
from splitjoin.lang.aggregate import Aggregate, UserAggregates, is_aggregate, read_aggregate
from splitjoin.lang.aggregate_functions import USAGES
from splitjoin.lang.build import midnight
from splitjoin.lang.categories import without_order
from splitjoin.lang.ir import And, Cast, Cmp, Col, Expr, check_depth, columns, text, too_deep
from splitjoin.lang.kind import Direction
from splitjoin.lang.schema import Column, Schema, UnknownName, suggest
from splitjoin.lang.sql.parser import SqlReader
from splitjoin.lang.time_columns import TimeSpec, time_columns
from splitjoin.lang.types import BOOL, Date, Timestamp

from .statement import SEMI, SelectItem, Statement, TableName

#: The two tables, R's first, with their schemas.
Tables = Sequence[tuple[TableName, Schema]]
R = TypeVar("R")


class TreeReader(SqlReader):
    """Reads trees of ``statement``. ``clause`` names in errors the part of the statement that is read; ``names`` are
    those that the SELECT list gives with AS.
    """

    def __init__(self, statement: Statement, tables: Tables, clause: str, names: Sequence[str] = (), *,
                 quoting: bool = False):
        super().__init__(statement.text, {}, quoting=quoting)
        self._tables, self._clause, self._names, self._grouped = tables, clause, names, statement.grouped

    def column(self, e: exp.Expr) -> Expr:
        """A column of one of the tables."""
        schema, column = self.find(e)
        return build.column(schema, column.name)

    def find(self, e: exp.Expr) -> tuple[Schema, Column]:
        """The stream and the column that ``e``, a column's tree, names; of any type."""
        name, label = e.name, e.args.get("table")
        if e.args.get("db") or isinstance(e.this, exp.Star):
            raise self.unsupported(e)
        if label is not None:
            named, schema = self.table(label.name)
            return schema, self._of(named, schema, name)
        found = [(t, s) for t, s in self._tables if any(name.lower() == n.lower() for n in s.names)]
        if len(found) == 1:
            return found[0][1], self._of(*found[0], name)
        if found:
            raise UnknownName(f"column {name!r} is ambiguous: it could be "
                              f"{' or '.join(f'{t.label}.{s.find(name).name}' for t, s in found)}; write which")
        if name.lower() in (n.lower() for n in self._names):
            raise SchemaError(f"neither table has a column {name!r}; a name that the SELECT list gives with AS is not "
                              f"known in {self._clause}: repeat the expression")
        names = [f"{t.label}.{n}" for t, s in self._tables for n in s.names]
        raise UnknownName(f"neither table has a column {name!r}{suggest(name, [n.split('.', 1)[1] for n in names])}; "
                          f"the columns are {', '.join(names) or '(none)'}"
                          + next(filter(None, (s.dropped_index() for _, s in self._tables)), ""))

    def table(self, label: str) -> tuple[TableName, Schema]:
        """The table that the statement calls ``label``."""
        for named, schema in self._tables:
            if named.label == label:
                return named, schema
        for named, schema in self._tables:
            if named.label.lower() == label.lower():
                return named, schema
        for named, _ in self._tables:
            if named.name.lower() == label.lower():
                raise SchemaError(f"the table {named.name!r} is called {named.label!r} in this statement; write "
                                  f"{named.label} for it")
        is_field = any(label.lower() == n.lower() for _, s in self._tables for n in s.names)  # of a struct
        raise (SchemaError if is_field else UnknownName)(
            f"there is no table {label!r}{suggest(label, [t.label for t, _ in self._tables])}; the tables are "
            f"{' and '.join(t.label for t, _ in self._tables)}")

    def _of(self, named: TableName, schema: Schema, name: str) -> Column:
        if not any(name.lower() == n.lower() for n in schema.names):
            raise UnknownName(f"table {named.label} has no column {name!r}{suggest(name, schema.names)}; its columns "
                              f"are {', '.join(schema.names) or '(none)'}{schema.dropped_index()}")
        return schema.find(name)

    def unsupported(self, e: exp.Expr) -> PredicateError:
        """The error for an unsupported part, with what to do instead where that is known."""
        part = self.quote(e)
        if isinstance(e, exp.Window):
            return PredicateError(f"{part!r}: a window function is not supported in {self._clause}; compute it on the "
                                  f"result")
        if isinstance(e, exp.AggFunc):
            what = f"the aggregate {e.sql_name()} is not supported in {self._clause}"
            if not self._grouped:
                return PredicateError(f"{part!r}: {what}: a join gives pairs; aggregate the result")
            if self._clause == "the SELECT list" and not is_aggregate(e):
                return PredicateError(f"{part!r}: there is no aggregate {e.sql_name()} yet; it may be one of "
                                      f"{USAGES}, or a class under splitjoin.aggregate that aggregates=… names")
            if self._clause == "the SELECT list":
                return PredicateError(f"{part!r}: the aggregate {e.sql_name()} is not supported within a larger value; "
                                      f"select it by itself, with AS and a name, and compute with it on the result")
            return PredicateError(f"{part!r}: {what}, which chooses the pairs that are aggregated; filter the rows of "
                                  f"the result")
        if isinstance(e, exp.Exists) or e.args.get("query") is not None:
            return PredicateError(f"{part!r}: a SELECT within {self._clause} is not supported; {SEMI}")
        if isinstance(e, (exp.Subquery, exp.Select)):
            return PredicateError(f"{part!r}: a subquery is not supported in {self._clause}; give its rows as a table "
                                  f"of their own")
        made = super().unsupported(e)
        return PredicateError(str(made).replace("not supported in a condition", f"not supported in {self._clause}"))


def read_condition(statement: Statement, tables: Tables, tree: exp.Expr, clause: str) -> Expr:
    """The condition ``tree`` of ``clause`` ("ON" or "WHERE")."""
    names = [i.alias for i in statement.items if i.alias is not None]

    def read(reader: TreeReader) -> Expr:
        made = reader.expr(tree)
        try:
            return without_order(build.condition(made, reader.quote(tree)))
        except PredicateError as error:
            raise PredicateError(f"{error}{reader.mark(tree)}" if reader.quoting else str(error)) from None

    return _read(statement, tables, clause, names, read)


def read_value(statement: Statement, tables: Tables, item: SelectItem, clause: str) -> Expr | tuple[Schema, Column]:
    """The value of an item of ``clause``: a column as it is, of any type, or an expression."""
    def read(reader: TreeReader) -> Expr | tuple[Schema, Column]:
        if isinstance(item.tree, exp.Column):
            try:
                return reader.find(item.tree)
            except (PredicateError, SchemaError) as error:
                raise type(error)(f"{error}{reader.mark(item.tree)}" if reader.quoting else str(error)) from None
        return without_order(reader.expr(item.tree))

    return _read(statement, tables, clause, (), read)


def read_select_aggregate(statement: Statement, tables: Tables, item: SelectItem, name: str,
                          known: UserAggregates) -> Aggregate:
    """The aggregate of an item of the SELECT list, under ``name``; ``known``: user-defined ones."""
    reader = _reader(statement, tables, "the SELECT list", (), quoting=True)
    try:
        made = read_aggregate(item.tree, reader, name, item.text, known)
    except PredicateError as error:
        raise PredicateError(f"{error}{'' if reader.marked else reader.mark(item.tree)}") from None
    assert made is not None
    return made


def _read(statement: Statement, tables: Tables, clause: str, names: Sequence[str],
          read: Callable[[TreeReader], R]) -> R:
    try:
        # Finding the text of every part costs more than all the rest, and only errors show it.
        with contextlib.suppress(PredicateError, SchemaError):
            made = read(_reader(statement, tables, clause, names))
            if isinstance(made, Expr):
                check_depth(made)
            return made
        return read(_reader(statement, tables, clause, names, quoting=True))
    except RecursionError:
        raise too_deep() from None


def _reader(statement: Statement, tables: Tables, clause: str, names: Sequence[str], *, quoting: bool = False
            ) -> TreeReader:
    made: TreeReader = (statement.reader or TreeReader)(statement, tables, clause, names, quoting=quoting)
    return made


_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class AsOf:
    """The parts of an ASOF JOIN: its condition without the comparison of times, the time columns, and what the
    comparison says.
    """

    on: Expr | None
    time: TimeSpec
    direction: Direction
    allow_exact: bool


def as_of(on: Expr | None, match: Expr | None, r: Schema, s: Schema, time: TimeSpec | None, *,
          whole: bool = False) -> AsOf:
    """Find the comparison of times: ``match``, or else one of the terms of ``on``.

    ``time``: the query's time columns; None to take those that are compared. ``whole``: as of `Query.make`. Raises
    `StatementError` unless exactly one inequality compares them.
    """
    terms = [match] if match is not None else [] if on is None else list(on.args) if isinstance(on, And) else [on]
    named = None if time is None else time_columns(r, s, time, whole=whole)
    found = []
    for term in terms:
        compared = _compared(term)
        if compared is not None and (named is None or compared[1:] == (named.r, named.s)):
            found.append((term, *compared))
    if len(found) != 1:
        columns = "r.ts >= s.ts" if named is None else f"r.{named.r} >= s.{named.s}"
        came = "MATCH_CONDITION has " + text(match) if match is not None else f"there are {len(found)} in ON"
        raise StatementError(f"an ASOF JOIN needs one comparison of both tables' time columns by >=, >, <= or <, such "
                             f"as {columns}, in ON or in MATCH_CONDITION; {came}"
                             + ("; name the time columns with time=…" if len(found) > 1 and time is None else ""))
    term, op, name_r, name_s = found[0]
    if match is not None:
        rest = on
    else:
        others = [other for other in terms if other is not term]
        rest = None if not others else others[0] if len(others) == 1 else And(BOOL, tuple(others))
    return AsOf(rest, time if time is not None else (name_r, name_s), "backward" if op in (">", ">=") else "forward",
                op in (">=", "<="))


def _compared(e: Expr) -> tuple[str, str, str] | None:
    """The operator, with R on its left, and the columns of R and S, if ``e`` compares a column of each by an
    inequality.
    """
    if not isinstance(e, Cmp) or e.op not in _SWAPPED:
        return None
    a, b = _column(e.a), _column(e.b)
    if a is None or b is None or a.side == b.side:
        return None
    return (e.op, a.name, b.name) if a.side == "r" else (_SWAPPED[e.op], b.name, a.name)


def _column(e: Expr) -> Col | None:
    """The column that ``e`` is, converted at most to the other one's unit."""
    while isinstance(e, Cast):
        e = e.a
    if isinstance(e.type, Timestamp):  # the midnight of a date, beside a timestamp
        days = [c for c in columns(e) if isinstance(c.type, Date)]
        if len(days) == 1 and midnight(days[0], e.type.unit, "") == e:
            return days[0]
    return e if isinstance(e, Col) else None
