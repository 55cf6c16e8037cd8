"""LEFT JOINs of which WHERE leaves the rows without partners alone, as ANTI JOINs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from .from_clause import FromTree
from .remainder import Remainder

__all__ = ["without_partners"]

#: A table and its label.
Named = tuple[str, pa.Table]


def without_partners(tree: FromTree, first: Named, second: Named, where: list[str],
                     rest: Remainder) -> tuple[FromTree, list[str]]:
    """``tree``, a LEFT JOIN of ``first`` and ``second``, with an ANTI JOIN in its place, and the conditions ``where``
    that are left; if its rows must lack a value that every partner has, and the ``rest`` says nothing else of its
    second table. Others as they are.
    """
    join = tree.joins[0]
    for n, condition in enumerate(where):
        others = [*where[:n], *where[n + 1:]]
        if rest.says(second[0], first[0], others):
            continue
        column = _lacking(condition)
        if column is not None and _is_partners(column, first, second, join.on):
            return FromTree(tree.first, (replace(join, how="anti"),)), others
    return tree, where


def _is_partners(column: exp.Column, first: Named, second: Named, on: Sequence[str]) -> bool:
    """True if ``column`` is of the second table and no partner has NULL in it."""
    label, table = second

    def own(c: exp.Column) -> str | None:
        named = next((n for n in table.column_names if n.lower() == c.name.lower()), None)
        if c.table:
            return named if c.table.lower() == label.lower() else None
        return None if any(n.lower() == c.name.lower() for n in first[1].column_names) else named

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


def _lacking(condition: str) -> exp.Column | None:
    """The column of which ``condition`` says that it is NULL; None for other conditions."""
    with contextlib.suppress(SqlglotError, RecursionError):
        tree = sqlglot.parse_one(condition, dialect="duckdb")
        if isinstance(tree, exp.Is) and isinstance(tree.this, exp.Column) and isinstance(tree.expression, exp.Null):
            return tree.this
    return None
