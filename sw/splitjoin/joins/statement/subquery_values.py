"""SELECTs as values, such as ``(SELECT avg(s.a) FROM s WHERE s.k = r.k)``, as columns of the rows around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import InputError
from splitjoin.lang.layouts import take

from .clauses import Clauses, boolean_terms, list_items, quoted, tokens_of
from .joined_tables import JoinedTables, RunJoin, TableJoin
from .one_table_terms import ask
from .subquery_joins import Database, Parts, correlated, is_aggregated

__all__ = ["SubqueryValue", "is_exists", "subquery_value", "test_pieces", "value_column", "value_pieces",
           "with_named_stars", "with_pieces"]

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


def test_pieces(select: Clauses) -> list[slice]:
    """The places in the list of ``select`` of tests on the rows of a SELECT: EXISTS anywhere, and as terms between AND,
    OR and NOT the comparisons with IN, ANY or ALL.
    """
    return sorted((piece for item in list_items(select) for piece in _tests(item)), key=lambda piece: piece.start)


def is_exists(term: str) -> bool:
    """True if ``term`` is an EXISTS, which is never NULL."""
    return tokens_of(term)[0].token_type == T.EXISTS


def _tests(item: Sequence[Token]) -> Iterator[slice]:
    for n, token in enumerate(item):
        if token.token_type == T.EXISTS and not _in_query(item[:n]) and (end := _closed(item, n + 1)):
            yield slice(token.start, item[end].end + 1)
    if len(item) > 2 and item[-2].token_type == T.ALIAS:
        item = item[:-2]
    elif len(item) > 2 and item[-2].token_type == T.R_PAREN and item[-1].token_type in (T.VAR, T.IDENTIFIER):
        item = item[:-1]
    yield from _terms(item)


def _terms(tokens: Sequence[Token]) -> Iterator[slice]:
    for kind in (T.OR, T.AND):
        terms = boolean_terms(tokens, kind)
        if len(terms) > 1:
            for term in terms:
                yield from _terms(term)
            return
    if tokens and tokens[0].token_type == T.NOT:
        yield from _terms(tokens[1:])
    elif tokens and tokens[0].token_type == T.L_PAREN and _closed(tokens, 0) == len(tokens) - 1:
        yield from _terms(tokens[1:-1])
    elif tokens and tokens[-1].token_type == T.R_PAREN and any(
            t.token_type in (T.IN, T.ANY, T.ALL, T.SOME) and _closed(tokens, n + 1) == len(tokens) - 1
            and tokens[n + 2].token_type in (T.SELECT, T.FROM, T.WITH, T.VALUES) for n, t in enumerate(tokens)):
        yield slice(tokens[0].start, tokens[-1].end + 1)


def _closed(tokens: Sequence[Token], at: int) -> int | None:
    """The place of the parenthesis that closes the one at ``at``."""
    if at >= len(tokens) or tokens[at].token_type != T.L_PAREN:
        return None
    depth = 0
    for n in range(at, len(tokens)):
        depth += (tokens[n].token_type == T.L_PAREN) - (tokens[n].token_type == T.R_PAREN)
        if not depth:
            return n
    return None


def _in_query(tokens: Sequence[Token]) -> bool:
    """True if a SELECT in parentheses is open behind ``tokens``."""
    opened = list[bool]()
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.token_type == T.L_PAREN:
            opened.append(after is not None and after.token_type in (T.SELECT, T.FROM, T.WITH))
        elif token.token_type == T.R_PAREN and opened:
            opened.pop()
    return any(opened)


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


def value_column(value: SubqueryValue, join: TableJoin, run: RunJoin, db: object, rows: int) -> pa.Table:
    """The values of ``rows`` rows, as a column; ``join`` is the inner one with the table of ``value`` by its
    conditions.

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
    both = pa.chunked_array([*none.column(0).chunks, *found.column("v").chunks], found.column("v").type)
    return pa.table([take(both, pa.array(at))], schema=pa.schema([found.schema.field("v").with_nullable(True)]))


def with_named_stars(select: Clauses, label: str) -> str:
    """The text of ``select`` with the table ``label`` before each star that stands for columns alone."""
    text = select.text
    for item in reversed(list_items(select)):
        if item and item[0].token_type == T.STAR:
            text = f"{text[:item[0].start]}{quoted(label)}.{text[item[0].start:]}"
    return text


def with_pieces(text: str, pieces: Sequence[tuple[slice, str]]) -> str:
    """``text`` with another text for each of the ``pieces``."""
    for piece, by in sorted(pieces, key=lambda of: -of[0].start):
        text = text[:piece.start] + by + text[piece.stop:]
    return text
