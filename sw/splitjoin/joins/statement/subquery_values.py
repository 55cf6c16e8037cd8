"""SELECTs as values, such as ``(SELECT avg(s.a) FROM s WHERE s.k = r.k)``, as columns of the rows around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from splitjoin.base.errors import InputError
from splitjoin.lang.layouts import take

from .clauses import Clauses, list_items, quoted
from .joined_tables import JoinedTables, RunJoin, TableJoin
from .one_table_terms import ask
from .subquery_joins import Database, Parts, correlated, is_aggregated

__all__ = ["SubqueryValue", "subquery_value", "value_column", "value_pieces", "with_named_stars",
           "with_pieces"]

T = TokenType
#: Words before a SELECT that is no value.
_NO_VALUE = {T.EXISTS, T.IN, T.ANY, T.ALL, T.SOME, T.ARRAY}
_ROW = "splitjoin row"


@dataclass(frozen=True)
class SubqueryValue:
    """The ``value``, an SQL text, of those rows of ``table``, called ``label``, that meet all ``conditions`` with a row
    around the SELECT.

    ``folds``: True if it is one of all these rows; else there must be one row at most.
    """

    table: pa.Table
    label: str
    conditions: tuple[str, ...]
    value: str
    folds: bool


def value_pieces(select: Clauses) -> list[slice]:
    """The places, with parentheses, of the SELECTs in the list and WHERE of ``select`` that are values."""
    tokens = select.within(select.head, select.where)
    found, opened = list[slice](), list[tuple[int, bool]]()
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type == T.L_PAREN:
            begins = after is not None and after.token_type in (T.SELECT, T.FROM, T.WITH)
            is_value = begins and (before is None or before.token_type not in _NO_VALUE) and not any(
                of for _, of in opened)
            opened.append((token.start if is_value else -1, begins))
        elif token.token_type == T.R_PAREN and opened:
            start, _ = opened.pop()
            if start >= 0:
                found.append(slice(start, token.end + 1))
    return found


def subquery_value(text: str, outer: Parts, db: Database) -> SubqueryValue | None:
    """The value that the SELECT ``text`` has for each of the rows ``outer``; None where it says nothing of them, or
    says it elsewhere than in its WHERE.
    """
    if db.single or db.columns(text) is not None:
        return None
    found = correlated(text, outer, db)
    if found is None or len(found.listed) != 1:
        return None
    if any(found.listed[0].find(kind) for kind in (exp.Query, exp.Window, exp.Explode, exp.Unnest, exp.UDTF)):
        return None
    value = found.names.inside(found.listed[0].unalias())
    where = [found.names.inside(term) for term in found.terms]
    if value is None or None in where or is_aggregated(where, db.aggregates) or any(
            column.table != found.names.label for column in value.find_all(exp.Column)):
        return None
    folds = is_aggregated([value], db.aggregates)
    if found.is_distinct and not folds:
        return None
    return SubqueryValue(found.rows(), found.names.label, tuple(term.sql("duckdb") for term in where),
                         value.sql("duckdb"), folds)


def value_column(value: SubqueryValue, join: TableJoin, run: RunJoin, db: object, rows: int) -> pa.ChunkedArray:
    """The values of ``rows`` rows; ``join`` is the inner one with the table of ``value`` by its conditions.

    Raises `InputError` where a value would be of several rows.
    """
    source, met = f"splitjoin_met AS {quoted(value.label)}", value.table
    listed = value.value if value.folds else f"first({value.value})"
    found = join.folded(run, value.value) if value.folds else None
    if found is None:
        r, s = join.numbers(run)
        met = JoinedTables({value.label: value.table}).taken(s)[value.label].append_column(_ROW, r)
        found = ask(db, f"SELECT {quoted(_ROW)} AS n, {listed} AS v, count(*) AS c FROM {source} GROUP BY 1",
                    {"splitjoin_met": met}, value.value)
    if not value.folds and len(found) and max(found.column("c").to_pylist()) > 1:
        raise InputError(f"a SELECT that is a value must have one row at most, but {value.value} has several for one "
                         f"row around it; write for example max(…), or LIMIT 1")
    none = ask(db, f"SELECT {listed} AS v FROM {source} WHERE false", {"splitjoin_met": met}, value.value)
    at = np.zeros(rows, np.int64)
    at[found.column("n").to_numpy()] = 1 + np.arange(len(found))
    return take(pa.chunked_array([*none.column(0).chunks, *found.column("v").chunks], found.column("v").type),
                pa.array(at))


def with_named_stars(select: Clauses, label: str) -> str:
    """The text of ``select`` with the table ``label`` before each star that stands for columns alone."""
    text = select.text
    for item in reversed(list_items(select)):
        if item and item[0].token_type == T.STAR:
            text = f"{text[:item[0].start]}{quoted(label)}.{text[item[0].start:]}"
    return text


def with_pieces(text: str, pieces: Sequence[tuple[slice, str]]) -> str:
    """``text`` with another text for each of the ``pieces``, which are in order."""
    for piece, by in reversed(pieces):
        text = text[:piece.start] + by + text[piece.stop:]
    return text
