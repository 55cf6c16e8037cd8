"""Aggregates over groups of the rows of one join: folded here for each row of its first table, without pairs, and put
together by DuckDB (Yan and Larson, "Eager aggregation and lazy aggregation").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from splitjoin.rows.aggregates import identical_rows

from .database import aggregate_names, ask
from .trees import quoted, sql_text

#: The label of the table with a column for each part that is folded for a row of the first table.
PARTIAL = "splitjoin partial"
#: What puts together the parts ``{v}`` of the rows of a group; of an average, a sum and a count.
_TOGETHER: dict[type[exp.Expr], str] = {
    exp.Count: "coalesce(sum({0}), 0)", exp.Sum: "sum({0})", exp.Min: "min({0})", exp.Max: "max({0})",
    exp.Avg: "CAST(sum({0}) AS DOUBLE) / sum({1})"}
#: The same of a value ``{e}`` of the first table, which ``{n}`` rows of the join have.
_OF_FIRST: dict[type[exp.Expr], str] = {
    exp.Count: "coalesce(sum({n}) FILTER (WHERE ({e}) IS NOT NULL), 0)", exp.Sum: "sum({e} * {n})",
    exp.Min: "min({e})", exp.Max: "max({e})",
    exp.Avg: "CAST(sum({e} * {n}) AS DOUBLE) / sum({n}) FILTER (WHERE ({e}) IS NOT NULL)"}


@dataclass(frozen=True)
class _Call:
    """An aggregate in the text: the ``node`` that is replaced, and its tree with a table for each column, ``known``.

    ``of_first``: True if its values are those of the first table. ``is_plain``: True if `_TOGETHER` has it.
    """

    node: exp.Expr
    known: Any
    of_first: bool

    @property
    def call(self) -> Any:
        """The aggregate without FILTER."""
        return self.known.this if isinstance(self.known, exp.Filter) else self.known

    @property
    def value(self) -> exp.Expr | None:
        """The argument, NULL where FILTER leaves a row out; None of ``count(*)``."""
        value = None if isinstance(self.call.this, exp.Star) else self.call.this
        if self.known is self.call:
            return value
        return exp.Case(ifs=[exp.If(this=self.known.expression.this.copy(),
                                    true=exp.true() if value is None else value.copy())])

    @property
    def is_plain(self) -> bool:
        return type(self.call) in _TOGETHER and not isinstance(self.call.this, exp.Distinct) and not any(
            of for name, of in self.call.args.items() if name not in ("this", "big_int"))

    def parts(self) -> list[exp.Expr]:
        """The aggregates over the partners of a row of the first table, of which `made` makes the value."""
        if not self.is_plain:
            return [self.known]
        value = self.value
        if self.of_first or value is None:
            return []
        return [kind(this=value.copy()) for kind in ((exp.Sum, exp.Count) if isinstance(self.call, exp.Avg) else (
            type(self.call),))]

    def made(self, rows: str, parts: Sequence[str], table: pa.Table) -> str:
        """The value, as text: ``rows``, ``parts``: the columns with the number of partners and with the `parts`;
        ``table``: the first one.
        """
        if not self.is_plain:
            return f"any_value({parts[0]})"
        if self.of_first and self.value is not None:
            value = f"({sql_text(self.value)})"
            if isinstance(self.call, (exp.Sum, exp.Avg)):  # in the type in which DuckDB sums, of 32 bits too
                is_integer = any(pa.types.is_integer(field.type) for field in _fields(self.call.this, table))
                value = f"CAST({value} AS {'HUGEINT' if is_integer else 'DOUBLE'})"
            return _OF_FIRST[type(self.call)].format(n=rows, e=value)
        return _TOGETHER[type(self.call)].format(*parts or [rows])


@dataclass(frozen=True)
class PartialAggregates:
    """The aggregates ``calls`` of a SELECT over the rows of a join whose first table is ``table``.

    ``alone``: True if each row of that table is a group, and no aggregate is of its own values: then they are those of
    its partners, and GROUP BY changes nothing.
    """

    calls: tuple[_Call, ...]
    table: pa.Table
    alone: bool

    def parts(self) -> list[exp.Expr]:
        """The aggregates over the partners of a row of the first table, of which `replace` makes the values."""
        return [exp.Count(this=exp.Star(), big_int=True), *(part for call in self.calls for part in self._parts(call))]

    def _parts(self, call: _Call) -> list[exp.Expr]:
        return [call.known] if self.alone else call.parts()

    def replace(self, db: Any, views: Mapping[str, pa.Table], source: str) -> None:
        """Have the values made of the columns 0, 1, … of the table `PARTIAL` in place of the calls, in the types that
        DuckDB gives these over ``source``, a FROM of ``views``.
        """
        types = ask(db, f"SELECT {', '.join(f'typeof({sql_text(call.known)})' for call in self.calls)} FROM {source}",
                    views)
        columns = iter([f"{quoted(PARTIAL)}.{quoted(str(n))}" for n in range(len(self.parts()))])
        rows = next(columns)
        for call, type_ in zip(self.calls, types.columns, strict=True):
            parts = [next(columns) for _ in self._parts(call)]
            made = parts[0] if self.alone else call.made(rows, parts, self.table)
            call.node.replace(exp.Cast(this=sqlglot.parse_one(made, dialect="duckdb"), to=exp.DataType(
                this=exp.DataType.Type.USERDEFINED, kind=type_[0].as_py())))  # as DuckDB writes it, such as "NULL"[]


def partial_aggregates(db: Any, select: exp.Select, tables: Mapping[str, pa.Table],
                       qualified: Callable[[Sequence[exp.Expr]], list[exp.Expr | None]]) -> PartialAggregates | None:
    """The aggregates of ``select``, of the join of two ``tables``, if all can be put together from those of each row of
    the first table; else None. ``qualified`` gives trees with a table for each column.
    """
    (first, of_first), (second, of_second) = tables.items()
    listed = [select.args.get(part) for part in ("having", "order")]
    parts = [*select.expressions, *(part for part in listed if part is not None)]
    if any(select.args.get(part) for part in ("qualify", "windows", "distinct")) or any(
            part.find(exp.Window, exp.Query, exp.Columns) for part in parts):
        return None
    nodes = [call.parent if isinstance(call.parent, exp.Filter) else call for part in parts for call in part.find_all(
        exp.AggFunc)]
    group = select.args.get("group")
    outside = [c for part in [*parts, *([] if group is None else [group])] for c in part.find_all(exp.Column, exp.Star)
               if not isinstance(c.parent, exp.Column) and not any(  # of r.*, the column is looked at
                   node is above for node in nodes for above in _above(c))]
    aliases = {of.alias.lower() for of in select.expressions if isinstance(of, exp.Alias)}
    outside = [c for c in outside if not (c.find_ancestor(exp.Order) and not c.args.get("table")
                                          and c.name.lower() in aliases)]
    others = {name.lower() for name in of_second.column_names}
    if not nodes or any(isinstance(c, exp.Star) or (
            c.table.lower() != first.lower() if c.table else c.name.lower() in others) for c in outside):
        return None
    names = aggregate_names(db)
    if any(call.name.lower() in names for part in parts for call in part.find_all(exp.Anonymous)):
        return None
    keys = None if group is None else _keys(group, of_first)
    each = keys is not None and identical_rows(of_first.select(keys)) is None
    calls = list[_Call]()
    for node, known in zip(nodes, qualified(nodes), strict=True):
        labels = {c.table for c in known.find_all(exp.Column)} if known is not None else {""}
        if not labels <= {first.lower()} and labels != {second.lower()}:
            return None
        made = _Call(node, known, labels == {first.lower()})
        if not labels and not (isinstance(node, exp.Count) and isinstance(node.this, exp.Star)):
            return None
        if made.of_first and isinstance(made.call, (exp.Sum, exp.Avg)) and not any(pa.types.is_integer(
                of.type) or pa.types.is_floating(of.type) for of in _fields(made.call.this, of_first)):
            return None
        if not made.is_plain and (made.of_first or not each):
            return None
        calls.append(made)
    return PartialAggregates(tuple(calls), of_first, each and not any(call.of_first for call in calls))


def _fields(tree: Any, table: pa.Table) -> list[pa.Field]:
    """The field of ``table`` that ``tree`` is, if it is a column."""
    return [of for of in table.schema if isinstance(tree, exp.Column) and of.name.lower() == tree.name.lower()]


def _keys(group: Any, table: pa.Table) -> list[str] | None:
    """The columns of ``table`` that GROUP BY names, and nothing else; None for others."""
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    own = {name.lower(): name for name in table.column_names}
    names = [own.get(of.name.lower()) if isinstance(of, exp.Column) else None for of in group.expressions]
    return None if None in names else [name for name in names if name is not None]


def _above(tree: exp.Expr) -> list[exp.Expr]:
    """``tree`` and all that it is a part of."""
    found = [tree]
    while found[-1].parent is not None:
        found.append(found[-1].parent)
    return found
