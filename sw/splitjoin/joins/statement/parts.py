"""SQL text → the parts of a SELECT: its items, its two tables and its conditions, as sqlglot's trees."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from splitjoin.base.errors import StatementError
from splitjoin.lang.ir import too_deep
from splitjoin.lang.kind import How
from splitjoin.lang.sql.parser import Sql
from splitjoin.lang.sql.source import sql_tokens, unreadable, untokenizable

from .checks import StatementText, check_clauses, check_join, check_table, grouping, join_how, table_start

__all__ = ["Ordering", "SelectItem", "Statement", "TableName", "is_distinct", "outer_tokens", "parse",
           "read_tree", "select_items", "table_name", "written"]

#: Words by which a number of rows begins.
_COUNTS = (TokenType.LIMIT, TokenType.FETCH)
_PAIRS = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET,
          TokenType.L_BRACE: TokenType.R_BRACE}


@dataclass(frozen=True)
class TableName:
    """A table as the text names it: its ``name``, and the ``label`` that its columns are written with."""

    name: str
    label: str
    start: int

    def __str__(self) -> str:
        return self.label if self.label == self.name else f"{self.name} {self.label}"


@dataclass(frozen=True)
class SelectItem:
    """An item of the SELECT list: its tree without AS, the name after AS (None without), its text and its place."""

    tree: exp.Expr
    alias: str | None
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Ordering:
    """Steps on all rows of the result: ORDER BY its ``terms``, then OFFSET, then LIMIT.

    ``words``: the words of the text by which the clauses begin, each with its place.
    """

    terms: tuple[Any, ...] = ()
    offset: int = 0
    limit: int | None = None
    words: tuple[tuple[str, int, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is no such clause."""
        return not self.words


@dataclass(frozen=True)
class Statement:
    """A SELECT over two tables; R is the first of them.

    ``match``: the comparison of times in MATCH_CONDITION. ``grouped``: True for a row for each tuple of R, by GROUP BY.
    ``nearest``: of an as-of join in both directions, how many partners a tuple has, and the columns of R and S by which
    they are near.
    """

    text: str
    items: tuple[SelectItem, ...]
    tables: tuple[TableName, TableName]
    on: exp.Expr | None
    where: exp.Expr | None
    how: How = "inner"
    match: exp.Expr | None = None
    grouped: bool = False
    ordering: Ordering = Ordering()
    nearest: tuple[int, str, str] | None = None


def read_tree(text: str) -> tuple[list[Token], list[Token], StatementText, Any]:
    """The tokens of the SELECT in ``text``, those outside parentheses, the text for errors, and sqlglot's tree.

    Raises `StatementError` for what is no statement.
    """
    try:
        tokens = sql_tokens(text)
    except TokenError as error:
        raise StatementError(untokenizable(text, error, "statement")) from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    outer, unpaired = outer_tokens(tokens)
    source = StatementText(text, outer)
    if unpaired is not None:
        raise source.error(f"{unpaired.text!r} has no counterpart", unpaired.start, unpaired.end + 1)
    if not tokens:
        raise StatementError("the statement is empty; write for example 'SELECT * FROM r JOIN s ON r.x = s.a'")
    source.check_begin()
    try:
        tree = cast(Any, Sql().parser().parse(tokens, text)[0])
    except ParseError as error:
        raise StatementError(unreadable(text, error, "statement")) from None
    except RecursionError:
        raise too_deep() from None
    source.check_commas()
    return tokens, outer, source, tree


def parse(text: str) -> Statement:
    """The parts of the SELECT in ``text``. Raises `StatementError` for all that is not SELECT-FROM-WHERE over two
    tables, pointing at it.
    """
    tokens, outer, source, tree = read_tree(text)
    check_clauses(tree, source)
    join = check_join(tree, source)
    tables = [table_name(t, source) for t in (tree.args["from_"].this, join.this)]
    if tables[0].label.lower() == tables[1].label.lower():
        raise source.error(f"two tables are called {tables[1].label!r}; give them names of their own, such as "
                           f"{tables[1].name} a JOIN {tables[1].name} b", tables[1].start, tables[1].start)
    by = grouping(tree)
    if by is not None and by.lower() != tables[0].label.lower():
        raise source.at(f"GROUP BY {by} is not supported in a SELECT over streams: it must name the first table, "
                        f"{tables[0].label}, for a row for each of its tuples", (TokenType.GROUP_BY,))
    where = tree.args.get("where")
    return Statement(text, tuple(select_items(tree.expressions, tokens, outer, text, source)), (tables[0], tables[1]),
                     join.args.get("on"), None if where is None else where.this, join_how(join) or "inner",
                     join.args.get("match_condition"), by is not None, _ordering(tree, outer, source))


def _ordering(tree: Any, outer: list[Token], source: StatementText) -> Ordering:
    """ORDER BY, LIMIT (or FETCH) and OFFSET of the statement ``tree``. Raises `StatementError` for what they cannot
    have.
    """
    order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
    terms = () if order is None else tuple(order.expressions)
    unread = [term for term in terms if any(value for name, value in term.args.items()
                                            if name not in ("this", "desc", "nulls_first"))]
    if unread or (order is not None and any(value for name, value in order.args.items() if name != "expressions")):
        raise source.at("ORDER BY takes columns of the result, each with ASC or DESC and NULLS FIRST or LAST only",
                        (TokenType.ORDER_BY,))
    options = None if limit is None else limit.args.get("limit_options")
    asked = options is not None and any(options.args.get(name) for name in ("percent", "with_ties"))
    if limit is not None and (asked or limit.args.get("expressions")):
        raise source.at("LIMIT and FETCH take a number of rows only, without PERCENT, WITH TIES and BY", _COUNTS)
    counts = [None if part is None else _count(part, source) for part in (limit, offset)]
    words = tuple((t.text, t.start, t.end + 1) for t in outer
                  if t.token_type in (TokenType.ORDER_BY, *_COUNTS, TokenType.OFFSET))
    return Ordering(terms, counts[1] or 0, counts[0], words)


def _count(part: Any, source: StatementText) -> int:
    """The number of rows that LIMIT, FETCH or OFFSET has."""
    number = part.args.get("count") if isinstance(part, exp.Fetch) else part.args.get("expression")
    if not isinstance(number, exp.Literal) or number.is_string or not re.fullmatch(r"[0-9]{1,18}", number.name):
        kinds = (TokenType.OFFSET,) if isinstance(part, exp.Offset) else _COUNTS
        raise source.at("LIMIT, FETCH and OFFSET take a whole number of rows, from 0 and of up to 18 digits", kinds)
    return int(number.name)


def outer_tokens(tokens: list[Token]) -> tuple[list[Token], Token | None]:
    """The tokens outside all parentheses, and the first parenthesis that has no counterpart."""
    opened: list[Token] = []
    found: list[Token] = []
    for token in tokens:
        if token.token_type in _PAIRS.values() and (
                not opened or _PAIRS[opened.pop().token_type] != token.token_type):
            return found, token
        if not opened:
            found.append(token)
        if token.token_type in _PAIRS:
            opened.append(token)
    return found, opened[0] if opened else None


def table_name(tree: exp.Expr, source: StatementText) -> TableName:
    """The table that ``tree``, a part of FROM, names. Raises `StatementError` for anything else."""
    check_table(tree, source)
    alias = tree.args.get("alias")
    name = tree.name
    return TableName(name, name if alias is None else alias.name, table_start(tree))


def is_distinct(before: list[Token]) -> bool:
    """True if a FROM after ``before`` ends IS [NOT] DISTINCT FROM."""
    kinds = [t.token_type for t in before[-3:]]
    return kinds[-2:] == [TokenType.IS, TokenType.DISTINCT] or kinds == [TokenType.IS, TokenType.NOT,
                                                                       TokenType.DISTINCT]


def select_items(trees: list[exp.Expr], tokens: list[Token], outer: list[Token], text: str,
                 source: StatementText) -> list[SelectItem]:
    """The items with their texts: the words between the commas outside parentheses."""
    cuts = [0]
    at = {id(t) for t in outer}
    for n, token in enumerate(tokens):
        if token.token_type == TokenType.FROM and is_distinct(tokens[:n]):
            continue  # x IS DISTINCT FROM y
        if id(token) in at and token.token_type in (TokenType.COMMA, TokenType.FROM):
            cuts.append(n)
            if token.token_type == TokenType.FROM:
                break
    parts = [tokens[a + 1:b] for a, b in pairwise(cuts)]
    if parts and parts[0] and parts[0][0].token_type == TokenType.ALL:
        parts[0] = parts[0][1:]
    parts = [p for p in parts if p]
    if len(parts) != len(trees):
        raise source.at("the values of the SELECT list cannot be told apart; put parentheses around those that are no "
                        "plain names", (TokenType.SELECT,))
    items = []
    for tree, part in zip(trees, parts, strict=True):
        alias = tree.alias if isinstance(tree, exp.Alias) else None
        words = part
        if alias is not None:
            words = part[:-1] if part[-2].token_type != TokenType.ALIAS else part[:-2]
        items.append(SelectItem(tree.this if alias is not None else tree, alias, written(words, text), part[0].start,
                          part[-1].end + 1))
    return items


def written(words: list[Token], text: str) -> str:
    """The words of the text, without comments and line breaks."""
    gaps = ["" if a.end + 1 == b.start else " " for a, b in pairwise(words)]
    return "".join(text[w.start:w.end + 1] + gap for w, gap in zip(words, [*gaps, ""], strict=True))
